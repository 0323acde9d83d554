/* The libraries of functions that all workers share: FUNCTION LOAD brings them, FCALL runs what they register. Only
 * their texts and what they say of their functions are here; each worker loads them into its own Lua state when it
 * first needs one (function_host.h), so what a library keeps in its local variables, each worker has for itself.
 *
 * They change in exclusive sections alone; reading takes the lock (LOCK_REGISTRY, a leaf). */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct library;

struct function {
    struct library *library;
    uint32_t index; /* in the library */
    char *name;
    char *description; /* NULL: none */
    uint32_t flags;    /* enum script_flag */
    uint64_t hash;
};

struct library { /* all const once it is in the set */
    char *name;
    struct slice code; /* the whole text; owned */
    struct {
        struct function *items;
        uint32_t count, capacity;
    } functions;
    _Atomic uint32_t references; /* atomic */
    _Atomic bool dropped;        /* atomic: no longer in the set */
};

/* The first line. False: `error` has the reply. *name is the caller's. */
must_check bool library_read_head(struct slice code, char **name, struct slice *body, struct buffer *error);
bool library_name_is_fine(struct slice name);

struct library *library_create(struct slice name, struct slice code); /* without functions; one reference */
/* False: it has one of that name. */
must_check bool library_add_function(struct library *library, struct slice name, const char *description,
                                     uint32_t flags);
void library_release(struct library **library);

void functions_setup(void);    /* main thread, before the workers start */
void functions_teardown(void); /* likewise, after they have gone */

/* What becomes of the libraries that are there. */
enum functions_policy { FUNCTIONS_APPEND, FUNCTIONS_REPLACE, FUNCTIONS_FLUSH };
/* Takes in all of them or none; they stay the caller's. False: a name is taken, `error` has the reply. Exclusive. */
must_check bool functions_add(struct library **libraries, uint32_t count, enum functions_policy policy,
                              struct buffer *error);
bool functions_delete(struct slice library_name); /* false: there is none. Exclusive */
void functions_flush(void);                       /* exclusive */

void functions_assert_steady(void); /* nobody changes them now: inside the gate, alone, or in such a child */
bool functions_has_library(struct slice name);
struct function *functions_find(struct slice name); /* its library acquired; NULL: none */
/* Every library, under the lock: `visit` does not come back here. */
void functions_each(void (*visit)(const struct library *library, void *context), void *context);
/* The source of each, in the order they were loaded in. Inside the gate, or in a child that was forked by who was
 * alone: nothing is locked. */
void functions_each_source(void (*visit)(struct slice source, void *context), void *context);

struct functions_facts {
    uint64_t libraries, functions, bytes;
};
void functions_facts(struct functions_facts *facts);

static inline bool library_is_dropped(const struct library *library)
{
    return atomic_load_explicit(&library->dropped, memory_order_acquire);
}
