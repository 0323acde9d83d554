/* INFO's section keydb: one line for each worker. */
#include "server/diagnose/info_rows.h"

#include "server/core/stats.h"

static void put_workers(struct buffer *buffer, const void *picture)
{
    const struct server_stats *stats = picture;

    for (unsigned i = 0; i < stats->thread_count; i++) {
        const struct thread_stats *thread = &stats->threads[i];

        buffer_printf(buffer,
                      "worker%u:clients=%llu,commands=%llu,errors=%llu,input_bytes=%llu,output_bytes=%llu,"
                      "lock_waits=%llu,turns=%llu\r\n",
                      i, (unsigned long long)stats->thread_clients[i], (unsigned long long)thread->commands_processed,
                      (unsigned long long)thread->error_replies, (unsigned long long)thread->net_input_bytes,
                      (unsigned long long)thread->net_output_bytes, (unsigned long long)thread->lock_waits,
                      (unsigned long long)thread->loop_turns);
    }
}

const struct info_row info_thread_rows[] = {
    INFO_TEXT("mvcc_depth", "0"), /* versions are not kept */
    INFO_LINES("worker<n>", &info_rows_source, put_workers),
    {0},
};
