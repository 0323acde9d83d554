#include "server/diagnose/info_aof.h"

#include "base/buffer.h"
#include "server/durable/aof.h"
#include "server/durable/aof_writer.h"

static struct aof_stats rewriting_now(void)
{
    struct aof_stats stats;

    aof_stats(&stats);
    return stats;
}

static struct aof_writer_stats writing_now(void)
{
    struct aof_writer_stats stats;

    aof_writer_stats(&stats);
    return stats;
}

bool info_has_aof(void)
{
    return aof_state() != AOF_OFF;
}

void put_aof_enabled(struct buffer *buffer)
{
    buffer_append_u64(buffer, aof_is_on());
}

void put_aof_rewrite_in_progress(struct buffer *buffer)
{
    buffer_append_u64(buffer, rewriting_now().is_rewriting);
}

void put_aof_rewrite_scheduled(struct buffer *buffer)
{
    buffer_append_u64(buffer, rewriting_now().is_scheduled);
}

void put_aof_last_rewrite_time_sec(struct buffer *buffer)
{
    buffer_append_i64(buffer, rewriting_now().last_duration_s);
}

void put_aof_current_rewrite_time_sec(struct buffer *buffer)
{
    buffer_append_i64(buffer, rewriting_now().running_s);
}

void put_aof_last_bgrewrite_status(struct buffer *buffer)
{
    buffer_append_text(buffer, rewriting_now().last_was_good ? "ok" : "err");
}

void put_aof_rewrites(struct buffer *buffer)
{
    buffer_append_u64(buffer, rewriting_now().rewrites);
}

void put_aof_rewrites_consecutive_failures(struct buffer *buffer)
{
    buffer_append_u64(buffer, rewriting_now().failures);
}

void put_aof_last_write_status(struct buffer *buffer)
{
    buffer_append_text(buffer, writing_now().is_well ? "ok" : "err");
}

void put_aof_last_cow_size(struct buffer *buffer)
{
    buffer_append_u64(buffer, rewriting_now().last_cow_bytes);
}

void put_aof_fields(struct buffer *buffer)
{
    struct aof_writer_stats now = writing_now();

    buffer_printf(buffer, "aof_current_size:%llu\r\n", (unsigned long long)now.size_bytes);
    buffer_printf(buffer, "aof_base_size:%llu\r\n", (unsigned long long)now.rewritten_bytes);
    buffer_printf(buffer, "aof_pending_rewrite:%d\r\n", rewriting_now().is_scheduled);
    buffer_printf(buffer, "aof_buffer_length:%llu\r\n", (unsigned long long)now.waiting_bytes);
    buffer_printf(buffer, "aof_pending_bio_fsync:%d\r\n", now.is_syncing);
    buffer_printf(buffer, "aof_syncs:%llu\r\n", (unsigned long long)now.syncs);
    buffer_printf(buffer, "aof_delayed_fsync:%llu\r\n", (unsigned long long)now.slow_syncs);
}

void put_mem_aof_buffer(struct buffer *buffer)
{
    buffer_append_u64(buffer, writing_now().buffer_bytes);
}
