/* What KEYDB.CRON keeps: a script with its keys and arguments, and when it is to be run. A value's data is a struct
 * cron. It is one piece of memory, and its words stay as they are; only the times move on.
 *
 * The next run is at start + interval. A run that repeats moves the start on to the time it was for, or, when times
 * were missed, to the last one that was; so what a key says by itself is all that anybody needs to know of it. */
#pragma once

#include "base/slice.h"
#include "data/value.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct value_ops cron_ops;

struct cron {
    int64_t start_ms;    /* wall clock */
    int64_t interval_ms; /* above 0 */
    uint64_t id;         /* no other value made in this process has it; copies are others */
    bool repeats;
    bool fails; /* its last run ended with an error */
    uint32_t key_count;
    uint32_t word_count; /* the script, the keys, the arguments */
    struct slice words[];
};

struct cron_terms {
    bool repeats;
    int64_t start_ms, interval_ms;
    uint32_t key_count;
};

/* The words are copied; there is at least the script, and as many as key_count behind it. */
struct value cron_create(const struct cron_terms *terms, const struct slice *words, uint32_t word_count);
struct cron *cron_clone(const struct cron *cron); /* with the same id, for who runs it; cron_free is his */
void cron_free(struct cron **cron);

static inline struct cron *cron_of(struct value value)
{
    return value.data;
}

int64_t cron_next_ms(const struct cron *cron); /* when it is to be run */
/* The start after a run at now_ms, which was due: times missed are left out. A start of 0 is none to keep to: then the
 * next run is an interval from now. */
int64_t cron_start_after(const struct cron *cron, int64_t now_ms);
