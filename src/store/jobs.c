#include "store/jobs.h"

#include "base/mem.h"
#include "store/expiry.h"
#include "store/lookup.h"
#include "store/subkey_ttl_priv.h"

static void changed(const struct change *change, int64_t before_ms, int64_t after_ms)
{
    expiry_changed(expiry_jobs(deadlines_use(change->keys)), change->key->hash, before_ms, after_ms,
                   &change->keys->keys);
}

void jobs_list(const struct change *change, const struct entry *entry)
{
    stripe_assert_held(change->stripe);
    atomic_store_explicit(&change->access->store->has_jobs, true, memory_order_relaxed);
    changed(change, EXPIRE_NEVER, entry_job_ms(entry));
}

void jobs_unlist(const struct change *change, const struct entry *entry)
{
    stripe_assert_held(change->stripe);
    changed(change, entry_job_ms(entry), EXPIRE_NEVER);
}

void change_move_job(struct change *change, int64_t start_ms, bool fails)
{
    struct entry *entry = change_existing(change);
    struct cron *cron = cron_of(entry_value(entry));
    int64_t before_ms = entry_job_ms(entry);

    assert(entry->type == TYPE_CRON);
    cron->start_ms = start_ms;
    cron->fails = fails;
    changed(change, before_ms, entry_job_ms(entry));
}

static struct expiry *jobs_of(const struct access *access, uint32_t stripe, unsigned db)
{
    const struct stripe_db *keys = stripe_db(&access->store->stripes[stripe], db);
    struct expiry *deadlines = keys != NULL ? atomic_load_explicit(&keys->deadlines, memory_order_acquire) : NULL;

    return deadlines != NULL ? atomic_load_explicit(&deadlines->jobs, memory_order_acquire) : NULL;
}

bool access_has_due_job(const struct access *access, uint32_t stripe, unsigned db)
{
    const struct expiry *jobs = jobs_of(access, stripe, db);

    return jobs != NULL && atomic_load_explicit(&jobs->next_ms, memory_order_relaxed) <= access->now_ms;
}

static bool is_any(const void *item, void *context)
{
    const uint64_t *hash = context;

    return lookup_entry_hash(item) == *hash;
}

static bool is_among(const struct buffer *records, uint64_t hash)
{
    for (size_t at = 0; at < records->size; at += sizeof(struct expiry_record)) {
        struct expiry_record record;

        memcpy(&record, records->data + at, sizeof(record));
        if (record.hash == hash)
            return true;
    }
    return false;
}

/* Records that are true go back after all have been looked at: a job is due until it has been moved on. */
void access_each_due_job(struct access *access, uint32_t stripe, unsigned db, job_fn fn, void *context)
{
    const struct stripe_db *keys = stripe_db(&access->store->stripes[stripe], db);
    struct expiry *jobs = jobs_of(access, stripe, db);
    struct expiry_record record;
    struct buffer due = {0};

    assert(access_holds(access, stripe));
    if (jobs == NULL)
        return;
    while (expiry_take_due(jobs, access->now_ms + 1, &record)) {
        const uint64_t *slot = table_find_by_hash(&keys->keys, record.hash, is_any, &record.hash);
        const struct entry *entry = slot != NULL ? table_slot_item(slot) : NULL;

        if (entry == NULL || entry->type != TYPE_CRON || is_among(&due, record.hash))
            continue;
        record.when_ms = entry_job_ms(entry);
        if (record.when_ms > access->now_ms) {
            expiry_put_back(jobs, record.hash, record.when_ms);
            continue;
        }
        buffer_append(&due, &record, sizeof(record));
        if (!lookup_is_expired(access, entry))
            fn(db, entry, context);
    }
    for (size_t at = 0; at < due.size; at += sizeof(record)) {
        memcpy(&record, due.data + at, sizeof(record));
        expiry_put_back(jobs, record.hash, record.when_ms);
    }
    buffer_fini(&due);
}
