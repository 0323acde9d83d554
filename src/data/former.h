/* A value as it was, while it goes on changing: what a snapshot needs of a large value, without a copy of it.
 *
 *     former = former_create(ops, value);          the moment: the value as it will be given
 *     ...
 *     value_log_watch(&log, value.data);           around each change
 *     ... the value changes ...
 *     former_keep(former, value, steps of the log);
 *     ...
 *     while (former_prepare(former, value, 256))
 *         ;                                        piece by piece, also between changes
 *     while (former_give(former, value, 256, fn, context))
 *         ;                                        likewise
 *
 * It may also be given as it was earlier, if steps are known that lead back there: former_take_back, before anything is
 * given, of one after the other from the newest one on. They may be taken back late, behind changes that were kept.
 *
 * Elements are given in an order of the type's own. A position tells which ones were given. A change of one that was
 * not leaves what it was; the walk skips it, and it is given from there. So the memory is that of what was changed, and
 * nothing waits longer than for one piece. A value may tell its formers more in its own way; keep comes behind that.
 *
 * Only of values in their large forms (former_suits), which they never leave. The value may be the live one, which its
 * owner guards, as the former itself. When it is taken out of the keyspace (is_taken) it is given as it is then. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "data/undo.h"
#include "data/value.h"

#include <stdbool.h>
#include <stdint.h>

struct former_element {
    struct slice first;  /* a member, a field, an element of a list; of a stream the id of a node (16 bytes) */
    struct slice second; /* the field's value; the bytes of a stream's node */
    double score;
    /* Not 0: what a stream has behind its nodes (former_groups.h), which does not count, or what this is of a nested
     * hash (former_nested.h). */
    unsigned part;
};

/* The texts are valid until it returns. */
typedef void (*former_fn)(const struct former_element *element, void *context);

struct former {
    const struct former_ops *ops;
    uint64_t count; /* elements in all; of a stream nodes; of a nested hash nodes and texts */
    uint64_t bytes; /* memory that it takes beside the value, about */
    bool is_taken;  /* the value was taken out of the keyspace: nobody changes it, and other threads may read it */
};

/* The functions of a type (value_ops.former). */
struct former_ops {
    struct former *(*create)(struct value value);
    /* The value has changed: it is `value` now, and the steps (value_steps_take) take the change back. */
    void (*keep)(struct former *former, struct value value, struct slice steps);
    /* Looks at about `most` parts of the value for the rest, before it gives. False: the rest is what it will be. NULL:
     * as from the beginning. */
    bool (*prepare)(struct former *former, struct value value, uint64_t most);
    /* Whether take_back can do so with all of these steps. NULL: it can. */
    bool (*takes_back)(struct value value, struct slice steps);
    /* The value was changed before the moment, and this step takes that back. NULL: see former_takes_back. */
    void (*take_back)(struct former *former, struct value value, const struct value_step *step);
    /* Gives about `most` elements. False: these were the last ones. */
    bool (*give)(struct former *former, struct value value, uint64_t most, former_fn fn, void *context);
    /* What the value had beside its elements and is not given, as a value without elements; the former's. NULL:
     * nothing. */
    struct value (*rest)(const struct former *former);
    /* No change is told any more. NULL: the value does not know of it. */
    void (*detach)(struct former *former);
    void (*destroy)(struct former *former);
    uint32_t ignored; /* for the log (data/undo.h) */
};

enum { FORMER_PIECE_BYTES = 64 << 10 }; /* a piece ends with the element that reaches this size, however few */

/* False: a copy of the value is as good, or there is no other way. */
bool former_suits(const struct value_ops *ops, struct value value);
/* False: only a copy of the value can tell where these steps lead back to; an owner's may be among them. */
static inline bool former_takes_back(const struct value_ops *ops, struct value value, struct slice noted)
{
    return ops->former->take_back != NULL && (ops->former->takes_back == NULL || ops->former->takes_back(value, noted));
}

static inline struct former *former_create(const struct value_ops *ops, struct value value)
{
    return ops->former->create(value);
}
static inline void former_keep(struct former *former, struct value value, struct slice noted)
{
    former->ops->keep(former, value, noted);
}
/* Until it is false, then the rest is complete, and elements are given. */
static inline must_check bool former_prepare(struct former *former, struct value value, uint64_t most)
{
    return former->ops->prepare != NULL && former->ops->prepare(former, value, most);
}
static inline void former_take_back(struct former *former, struct value value, const struct value_step *step)
{
    former->ops->take_back(former, value, step);
}
static inline must_check bool former_give(struct former *former, struct value value, uint64_t most, former_fn fn,
                                          void *context)
{
    return former->ops->give(former, value, most, fn, context);
}
static inline struct value former_rest(const struct former *former)
{
    return former->ops->rest != NULL ? former->ops->rest(former) : (struct value){.data = NULL};
}
/* Before it is destroyed, by who guards the value, unless that was taken out of the keyspace. */
static inline void former_detach(struct former *former)
{
    if (former->ops->detach != NULL)
        former->ops->detach(former);
}
void former_destroy(struct former **former); /* any thread; accepts NULL; leaves NULL */
