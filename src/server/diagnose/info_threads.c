/* INFO's section keydb: what the workers do, one line each. */
#include "server/diagnose/info_rows.h"

#include "base/buffer.h"

static void put_zero(struct buffer *buffer)
{
    buffer_append_char(buffer, '0');
}

static void put_workers(struct buffer *buffer)
{
    const struct server_stats *stats = info_rows_stats();

    for (unsigned i = 0; i < stats->thread_count; i++) {
        const struct thread_stats *thread = &stats->threads[i];

        buffer_printf(buffer,
                      "worker%u:clients=%llu,commands=%llu,errors=%llu,input_bytes=%llu,output_bytes=%llu,"
                      "lock_waits=%llu,turns=%llu\r\n",
                      i, (unsigned long long)stats->thread_clients[i], (unsigned long long)thread->commands,
                      (unsigned long long)thread->errors, (unsigned long long)thread->net_input_bytes,
                      (unsigned long long)thread->net_output_bytes, (unsigned long long)thread->lock_waits,
                      (unsigned long long)thread->loop_turns);
    }
}

const struct info_field info_thread_rows[] = {
    {.section = "keydb", .name = "mvcc_depth", .append = put_zero}, /* versions are not kept */
    {.section = "keydb", .append = put_workers},
};
const size_t info_thread_row_count = sizeof(info_thread_rows) / sizeof(info_thread_rows[0]);
