#include "server/diagnose/info_persistence.h"

#include "base/buffer.h"
#include "server/durable/child.h"
#include "server/durable/loading.h"
#include "server/durable/persistence.h"

/* Each field asks for itself: they are few, and asked for now and then. */
static struct child_stats child_now(void)
{
    struct child_stats stats;

    child_stats(&stats);
    return stats;
}

static struct persistence_stats saving_now(void)
{
    struct persistence_stats stats;

    persistence_stats(&stats);
    return stats;
}

void put_loading(struct buffer *buffer)
{
    buffer_append_u64(buffer, loading_runs());
}

bool info_is_loading(void)
{
    return loading_runs();
}

void put_loading_fields(struct buffer *buffer)
{
    struct loading_stats now;

    loading_stats(&now);
    buffer_printf(buffer, "loading_start_time:%lld\r\n", (long long)now.start_s);
    buffer_printf(buffer, "loading_total_bytes:%llu\r\n", (unsigned long long)now.total_bytes);
    buffer_printf(buffer, "loading_rdb_used_mem:%llu\r\n", (unsigned long long)now.memory_bytes);
    buffer_printf(buffer, "loading_loaded_bytes:%llu\r\n", (unsigned long long)now.loaded_bytes);
    buffer_printf(buffer, "loading_loaded_perc:%.2f\r\n",
                  now.total_bytes != 0 ? (double)now.loaded_bytes * 100 / (double)now.total_bytes : 0.0);
    buffer_printf(buffer, "loading_eta_seconds:%lld\r\n", now.eta_s >= 0 ? (long long)now.eta_s : 1LL);
}

void put_current_cow_peak(struct buffer *buffer)
{
    buffer_append_u64(buffer, child_now().cow_peak_bytes);
}

void put_current_cow_size(struct buffer *buffer)
{
    buffer_append_u64(buffer, child_now().cow_bytes);
}

void put_current_cow_size_age(struct buffer *buffer)
{
    buffer_append_i64(buffer, child_now().cow_age_s);
}

void put_current_fork_perc(struct buffer *buffer)
{
    struct child_stats now = child_now();

    buffer_printf(buffer, "%.2f", now.keys_total != 0 ? (double)now.keys * 100 / (double)now.keys_total : 0.0);
}

void put_current_save_keys_processed(struct buffer *buffer)
{
    buffer_append_u64(buffer, child_now().keys);
}

void put_current_save_keys_total(struct buffer *buffer)
{
    buffer_append_u64(buffer, child_now().keys_total);
}

void put_rdb_changes_since_last_save(struct buffer *buffer)
{
    buffer_append_u64(buffer, persistence_changes());
}

void put_rdb_bgsave_in_progress(struct buffer *buffer)
{
    buffer_append_u64(buffer, saving_now().runs);
}

void put_rdb_last_save_time(struct buffer *buffer)
{
    buffer_append_i64(buffer, persistence_last_save_s());
}

void put_rdb_last_bgsave_status(struct buffer *buffer)
{
    buffer_append_text(buffer, saving_now().last_was_good ? "ok" : "err");
}

void put_rdb_last_bgsave_time_sec(struct buffer *buffer)
{
    buffer_append_i64(buffer, saving_now().last_duration_s);
}

void put_rdb_current_bgsave_time_sec(struct buffer *buffer)
{
    buffer_append_i64(buffer, saving_now().runs ? child_now().running_s : -1);
}

void put_rdb_saves(struct buffer *buffer)
{
    buffer_append_u64(buffer, saving_now().saves);
}

void put_rdb_last_cow_size(struct buffer *buffer)
{
    buffer_append_u64(buffer, saving_now().last_cow_bytes);
}

void put_rdb_last_load_keys_expired(struct buffer *buffer)
{
    buffer_append_u64(buffer, saving_now().expired_at_load);
}

void put_rdb_last_load_keys_loaded(struct buffer *buffer)
{
    buffer_append_u64(buffer, saving_now().loaded);
}

void put_latest_fork_usec(struct buffer *buffer)
{
    buffer_append_i64(buffer, child_now().last_fork_us);
}

void put_total_forks(struct buffer *buffer)
{
    buffer_append_u64(buffer, child_now().fork_count);
}
