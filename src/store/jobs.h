/* Jobs: keys whose value (data/cron.h) has a script and the time to run it.
 *
 * A heap of the stripe's database has the times of the next runs (expiry.h). So jobs that are not due cost nothing, and
 * no code searches for them among other keys. Every change that adds or removes a job updates the heap (access.c). The
 * runner of jobs asks here which jobs are due, stripe by stripe, and sets the time of the next run. */
#pragma once

#include "data/cron.h"
#include "store/access.h"

/* The time of the job's next run; EXPIRE_NEVER: the key is not a job. */
static inline int64_t entry_job_ms(const struct entry *entry)
{
    return UNLIKELY(entry->type == TYPE_CRON) ? MAX(cron_next_ms(cron_of(entry_value(entry))), 0) : EXPIRE_NEVER;
}

/* True if the stripe's database has a job that is due. Reads without the lock. */
bool access_has_due_job(const struct access *access, uint32_t stripe, unsigned db);
/* Calls fn for each job that is due; the stripe is held, and fn changes nothing. An expired key does not count. */
typedef void (*job_fn)(unsigned db, const struct entry *entry, void *context);
void access_each_due_job(struct access *access, uint32_t stripe, unsigned db, job_fn fn, void *context);

/* Within a change: sets the start of the key's job, and whether its last run failed. */
void change_move_job(struct change *change, int64_t start_ms, bool fails);

/* --- for access.c: a job was added to the key, or is being removed; the entry is in the table --- */
void jobs_list(const struct change *change, const struct entry *entry);
void jobs_unlist(const struct change *change, const struct entry *entry);
