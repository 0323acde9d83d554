/* The value of a job (KEYDB.CRON): a script with its keys and arguments, and its times. A value's data is a struct
 * cron. It is one allocation; its words never change, only its times do.
 *
 * The next run is at start + interval. A run of a repeating job sets the start to the time for which the run was
 * planned, or, if times were missed, to the last one missed. So the value alone says when the job runs next. */
#pragma once

#include "base/slice.h"
#include "data/value.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct value_ops cron_ops;

struct cron {
    int64_t start_ms;    /* wall clock */
    int64_t interval_ms; /* above 0 */
    uint64_t id;         /* unique among the values made in this process; a copy gets another id */
    bool repeats;
    bool fails; /* the last run ended with an error */
    uint32_t key_count;
    uint32_t word_count; /* the script, the keys, the arguments */
    struct slice words[];
};

struct cron_terms {
    bool repeats;
    int64_t start_ms, interval_ms;
    uint32_t key_count;
};

/* Copies the words: at least the script, and key_count words behind it. */
struct value cron_create(const struct cron_terms *terms, const struct slice *words, uint32_t word_count);
/* A copy with the same id, for the caller that runs it; free it with cron_free. */
struct cron *cron_clone(const struct cron *cron);
void cron_free(struct cron **cron);

static inline struct cron *cron_of(struct value value)
{
    return value.data;
}

int64_t cron_next_ms(const struct cron *cron); /* the time of the next run */
/* Returns the start after a run at now_ms that was due. Times that were missed are skipped. If the start is 0, the next
 * run is one interval after now. */
int64_t cron_start_after(const struct cron *cron, int64_t now_ms);
