#include "replication/replication_info.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "replication/backlog.h"
#include "replication/failover.h"
#include "replication/history.h"
#include "replication/local_keys.h"
#include "replication/master.h"
#include "replication/options.h"
#include "replication/replicas.h"
#include "server/config/config.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "store/journal.h"

enum { SAMPLES = 16 }; /* ten each second */

/* Bytes a second, over the last samples. */
struct rate {
    struct {
        uint64_t bytes;
        int64_t at_us;
    } samples[SAMPLES]; /* worker 0's, as the next two */
    unsigned next;
    _Atomic uint64_t bytes_a_second; /* atomic: relaxed */
};

static struct rate input_rate, output_rate;

struct picture {
    struct master_facts master;
    struct master_stats received;
    struct replicas_stats sent;
    struct history_facts history;
    bool is_linked, backlog_is_on;
    const char *role, *host, *link_status, *id, *id2; /* they may point into this picture */
    int64_t port, sync_left_bytes;
    uint64_t replica_count, good_replica_count;
    int64_t backlog_begin, backlog_bytes; /* the offset of its first byte, counted from 1 */
    uint64_t backlog_memory_bytes, memory_bytes;
    double input_kb_a_second, output_kb_a_second;
    uint64_t local_key_count;
};

/* ------------------------------------------------------------------------------------------------------- rates -- */

static void sample_rate(struct rate *rate, uint64_t bytes)
{
    const int64_t now_us = (int64_t)clock_monotonic_us();
    const unsigned at = rate->next++ % SAMPLES;
    const int64_t span_us = now_us - rate->samples[at].at_us;
    const uint64_t before = rate->samples[at].bytes;

    if (rate->samples[at].at_us != 0 && span_us > 0 && bytes >= before)
        atomic_store_explicit(&rate->bytes_a_second, (bytes - before) * 1000 * 1000 / (uint64_t)span_us,
                              memory_order_relaxed);
    rate->samples[at].bytes = bytes;
    rate->samples[at].at_us = now_us;
}

static void sample(struct server *server)
{
    struct master_stats received;
    struct replicas_stats sent;

    worker_assert_zero(&server->workers[0]);
    master_stats(&received);
    replicas_stats(&sent);
    sample_rate(&input_rate, received.input_bytes);
    sample_rate(&output_rate, sent.output_bytes);
}

const struct lifecycle replication_info_lifecycle = {.server_sample = sample};

static double kb_a_second(const struct rate *rate)
{
    return (double)atomic_load_explicit(&rate->bytes_a_second, memory_order_relaxed) / 1024;
}

/* ----------------------------------------------------------------------------------------------------- pictures -- */

uint64_t replication_backlog_bytes(void)
{
    return backlog_is_on() ? journal_memory_bytes(&server_instance()->journal) : 0;
}

static void take_backlog(struct picture *picture)
{
    struct journal_stats journal;

    picture->backlog_is_on = backlog_is_on();
    picture->backlog_begin = picture->backlog_bytes = 0;
    if (!picture->backlog_is_on)
        return;
    journal_stats(&server_instance()->journal, &journal);
    picture->backlog_begin = MAX(history_of_journal(journal.begin_offset), picture->history.begin) + 1;
    picture->backlog_bytes = MAX(picture->history.offset - picture->backlog_begin + 1, 0);
}

static void take(void *into, const struct info_moment *moment)
{
    struct picture *picture = into;

    (void)moment;
    master_facts(&picture->master);
    master_stats(&picture->received);
    replicas_stats(&picture->sent);
    history_facts(&picture->history);
    picture->is_linked = picture->master.state == MASTER_CONNECTED;
    if (role_is_active())
        picture->role = "active-replica";
    else
        picture->role = picture->master.follows ? "slave" : "master";
    picture->host = picture->master.host;
    picture->port = picture->master.port;
    picture->id = picture->history.id;
    picture->id2 = picture->history.id2;
    picture->link_status = picture->is_linked ? "up" : "down";
    picture->sync_left_bytes = picture->master.sync_total_bytes - picture->master.sync_read_bytes;
    picture->replica_count = replicas_count();
    picture->good_replica_count = replicas_good_count();
    take_backlog(picture);
    picture->backlog_memory_bytes = replication_backlog_bytes();
    picture->memory_bytes = picture->backlog_memory_bytes + picture->sent.held_bytes;
    picture->input_kb_a_second = kb_a_second(&input_rate);
    picture->output_kb_a_second = kb_a_second(&output_rate);
    picture->local_key_count = local_keys_count();
}

static const struct info_source source = {sizeof(struct picture), .take = take};

static bool follows(const void *picture)
{
    return ((const struct picture *)picture)->master.follows;
}

static bool receives(const void *picture)
{
    return follows(picture) && ((const struct picture *)picture)->master.sync_in_progress;
}

static bool is_cut_off(const void *picture)
{
    return follows(picture) && !((const struct picture *)picture)->is_linked;
}

static bool is_linked(const void *picture)
{
    return follows(picture) && ((const struct picture *)picture)->is_linked;
}

static bool minimum_is_set(const void *picture)
{
    (void)picture;
    return OPTION_GET(option_min_replicas_to_write) != 0 && OPTION_GET(option_min_replicas_max_lag) != 0;
}

static void append_percent(struct buffer *buffer, const void *picture)
{
    const struct master_facts *master = &((const struct picture *)picture)->master;
    double percent = 0;

    if (master->sync_total_bytes > 0)
        percent = (double)master->sync_read_bytes / (double)master->sync_total_bytes * 100;
    buffer_printf(buffer, "%.2f", percent);
}

/* -------------------------------------------------------------------------------------------------------- lines -- */

struct lines {
    struct buffer *buffer;
    unsigned count;
};

static void append_line(const struct replica_facts *facts, void *context)
{
    static const char *const states[] =
        {[REPLICA_WAITS] = "wait_bgsave", [REPLICA_LOADS] = "send_bulk", [REPLICA_ONLINE] = "online"};
    struct lines *lines = context;

    if (facts->ip[0] == '\0')
        return;
    buffer_printf(lines->buffer, "slave%u:ip=%s,port=%d,state=%s,offset=%lld,lag=%lld\r\n", lines->count++, facts->ip,
                  facts->port, states[facts->state], (long long)facts->acked_offset, (long long)facts->lag_s);
}

static void append_replicas(struct buffer *buffer, const void *picture)
{
    struct lines lines = {.buffer = buffer};

    (void)picture;
    replicas_each(append_line, &lines);
}

static void append_place_line(const struct replica_place_facts *facts, void *context)
{
    struct lines *lines = context;

    buffer_printf(lines->buffer, "replica_place%u:ip=%s,port=%d,offset=%lld,kept_bytes=%llu,gone=%lld\r\n",
                  lines->count++, facts->ip, facts->port, (long long)facts->offset,
                  (unsigned long long)facts->kept_bytes, (long long)facts->gone_s);
}

/* Our own. */
static void append_places(struct buffer *buffer, const void *picture)
{
    struct lines lines = {.buffer = buffer};

    (void)picture;
    replicas_each_place(append_place_line, &lines);
}

#define FIELD(name_, member_, ...) INFO_FIELD(name_, &source, struct picture, member_, ##__VA_ARGS__)

const struct info_row replication_info[] = {
    FIELD("role", role),
    FIELD("master_host", host, .wanted = follows),
    FIELD("master_port", port, .wanted = follows),
    FIELD("master_link_status", link_status, .wanted = follows),
    FIELD("master_last_io_seconds_ago", master.last_io_s, .wanted = follows),
    FIELD("master_sync_in_progress", master.sync_in_progress, .wanted = follows),
    FIELD("slave_read_repl_offset", master.read_offset, .wanted = follows),
    FIELD("slave_repl_offset", master.applied_offset, .wanted = follows),
    FIELD("master_sync_total_bytes", master.sync_total_bytes, .wanted = receives),
    FIELD("master_sync_read_bytes", master.sync_read_bytes, .wanted = receives),
    FIELD("master_sync_left_bytes", sync_left_bytes, .wanted = receives),
    INFO_VALUE("master_sync_perc", &source, append_percent, .wanted = receives),
    FIELD("master_sync_last_io_seconds_ago", master.sync_read_s, .wanted = receives),
    FIELD("master_link_down_since_seconds", master.down_s, .wanted = is_cut_off),
    FIELD("master_current_sync_attempts", master.current_tries, .wanted = follows),
    FIELD("master_total_sync_attempts", master.master_tries, .wanted = follows),
    FIELD("master_link_up_since_seconds", master.up_s, .wanted = is_linked),
    FIELD("total_disconnect_time_sec", master.away_s, .wanted = follows),
    INFO_OPTION("slave_priority", option_replica_priority, .source = &source, .wanted = follows),
    INFO_OPTION("slave_read_only", option_replica_read_only, .source = &source, .wanted = follows),
    INFO_OPTION("replica_announced", option_replica_announced, .source = &source, .wanted = follows),
    FIELD("connected_slaves", replica_count),
    FIELD("min_slaves_good_slaves", good_replica_count, .wanted = minimum_is_set),
    INFO_LINES("slave<n>", &source, append_replicas),
    INFO_CALL_TEXT("master_failover_state", failover_state_word),
    FIELD("master_replid", id),
    FIELD("master_replid2", id2),
    FIELD("master_repl_offset", history.offset),
    FIELD("second_repl_offset", history.second_offset),
    FIELD("repl_backlog_active", backlog_is_on),
    FIELD("repl_backlog_first_byte_offset", backlog_begin),
    FIELD("repl_backlog_histlen", backlog_bytes),
    INFO_LINES("replica_place<n>", &source, append_places),
    FIELD("mem_replication_backlog", backlog_memory_bytes),
    FIELD("mem_total_replication_buffers", memory_bytes),
    FIELD("mem_clients_slaves", sent.held_bytes),
    FIELD("total_net_repl_input_bytes", received.input_bytes),
    FIELD("total_net_repl_output_bytes", sent.output_bytes),
    FIELD("instantaneous_input_repl_kbps", input_kb_a_second),
    FIELD("instantaneous_output_repl_kbps", output_kb_a_second),
    FIELD("slave_expires_tracked_keys", local_key_count),
    FIELD("sync_full", sent.full_syncs),
    FIELD("sync_partial_ok", sent.partial_syncs),
    FIELD("sync_partial_err", sent.refused_partial_syncs),
    {0},
};

void replication_info_setup(void)
{
    gate_assert_main_alone();
    config_on_reset_stat(replicas_reset_stats);
}
