/* Jobs: keys whose value (data/cron.h) says when a script is to be run.
 *
 * When each is due stands in a heap of the stripe's database (expiry.h), so that jobs that are not due cost nothing,
 * and nobody looks for them among other keys. Whatever puts a job under a key or takes it away keeps the heap
 * (access.c); who runs jobs asks here which are due, stripe by stripe, and tells when each is due again. */
#pragma once

#include "data/cron.h"
#include "store/access.h"

/* When the job is to be run; EXPIRE_NEVER: the key is none. */
static inline int64_t entry_job_ms(const struct entry *entry)
{
    return UNLIKELY(entry->type == TYPE_CRON) ? MAX(cron_next_ms(cron_of(entry_value(entry))), 0) : EXPIRE_NEVER;
}

/* Has the stripe's database a job that is due? Looks without the lock. */
bool access_has_due_job(const struct access *access, uint32_t stripe, unsigned db);
/* Tells fn of each that is; the stripe is held, and fn changes nothing. A key past its own deadline is none. */
typedef void (*job_fn)(unsigned db, const struct entry *entry, void *context);
void access_each_due_job(struct access *access, uint32_t stripe, unsigned db, job_fn fn, void *context);

/* Within a change: the key's job has another start; whether it fails is noted with it. */
void change_move_job(struct change *change, int64_t start_ms, bool fails);

/* --- for access.c: a job came under the key, or leaves it; the entry is in the table --- */
void jobs_list(const struct change *change, const struct entry *entry);
void jobs_unlist(const struct change *change, const struct entry *entry);
