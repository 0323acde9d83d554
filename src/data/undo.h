/* What takes back changes of values. A module of data/ that changes a value in place asks first whether the value is
 * watched, and if so notes what takes the change back: a removed element with its place, an old member, bytes.
 *
 *     struct value_log *log = value_log_of(hash->data);
 *
 *     if (UNLIKELY(log != NULL))
 *         value_log_note(log, ...);
 *     ... change it ...
 *     value_log_moved(log, hash->data);
 *
 * A step is texts with a trailer behind them, so the newest one is found at the end. The steps of a value are taken
 * back from the newest to the oldest; then each meets the value as it was right behind its change.
 *
 * A thread watches the values that it changes, few at a time: those of the changes that are open (store/undo.h), and of
 * them those that a snapshot still needs as they were (data/former.h). A value may be watched by several: each of them
 * gets every step. While a thread watches none, a change costs a load and a branch. All belongs to the thread. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* What a step is, for the type of the value; the owner of the log has others, from VALUE_STEP_OWNERS on. Those here
 * others look for. The first two are of types with members. A member's addition is the same for all types: it takes off
 * what was added to an integer, whatever has been added since. A push takes off as many elements as were pushed, from
 * the same end of the list, whether or not others were behind them. */
enum {
    VALUE_STEP_NEW,           /* first: a member that was not there */
    VALUE_STEP_OLD,           /* first: a member; second: its value, of a hash; a: its score, of a sorted set */
    VALUE_STEP_ADDITION = 32, /* first: the member; a: the amount */
    VALUE_STEP_PUSHED,        /* a: how many elements; b: at which end, and 2 * how many were behind them there */
    VALUE_STEP_OWNERS = 64
};

struct value_step {
    uint64_t a, b; /* numbers */
    struct slice first, second;
    uint32_t kind;
};

struct value_log {
    const void *data; /* of the watched value, as it is now; NULL: it is not watched */
    struct value_log *next;
    struct buffer steps;
    uint32_t ignored; /* 1 << kind of steps that are not wanted, of kinds below VALUE_STEP_ADDITION */
};

/* A command changes two keys at a time, for an undo and for snapshots; those that it left behind unchanged go. */
enum { VALUE_LOGS_MOST = 8 };

extern _Thread_local struct value_log *value_logs; /* those that are watched, the last one first */

static inline struct value_log *value_log_of(const void *data)
{
    struct value_log *log = value_logs;

    while (UNLIKELY(log != NULL) && log->data != data)
        log = log->next;
    return log;
}

void value_log_moved_slow(struct value_log *log, const void *data);

/* The value's data has moved. `log` is that of value_log_of, or NULL. */
static inline void value_log_moved(struct value_log *log, const void *data)
{
    if (UNLIKELY(log != NULL))
        value_log_moved_slow(log, data);
}

void value_log_watch(struct value_log *log, const void *data); /* also if it is watched already */
void value_log_ignore_slow(struct value_log *log);

/* Also if it is not watched. */
static inline void value_log_ignore(struct value_log *log)
{
    log->data = NULL;
    if (UNLIKELY(value_logs != NULL))
        value_log_ignore_slow(log);
}

/* `log` is that of value_log_of: all that watch the value get the step, but an owner's own step only that log. */
void value_log_note(struct value_log *log, const struct value_step *step);
/* The same, but where the newest step is of this kind and has the same `b`, adds to its `a`. */
void value_log_extend(struct value_log *log, const struct value_step *step);
bool value_log_wants(const struct value_log *log, uint32_t kind); /* false: value_log_note would do nothing */
/* The newest of the steps; its texts are in there. Takes it off. False: there is none. */
must_check bool value_steps_take(struct slice *steps, struct value_step *step);
