#include "active/active_info.h"

#include "active/compare.h"
#include "active/history.h"
#include "active/options.h"
#include "active/overview.h"
#include "active/place.h"
#include "active/readiness.h"
#include "active/room.h"
#include "active/window_cycle.h"
#include "replication/history.h"
#include "replication/options.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "store/horizon.h"
#include "store/journal.h"
#include "store/stamp.h"
#include "store/store.h"
#include "store/window.h"

#include <stdio.h>

struct picture {
    int64_t now_ms;
    bool is_on;     /* an active node */
    bool is_active; /* with masters */
    bool serves, waits_for_memory;
    uint64_t memory_waits;
    const char *readiness, *name, *origin; /* the last two point into this picture */
    char name_text[UUID_TEXT_BYTES + 1], origin_text[UUID_TEXT_BYTES + 1];
    uint64_t starts, members, given_up, open_origins, closed_origins, beats, links_up;
    struct place_counts placed;
    struct window_totals window;
    uint64_t history_bytes, history_memory_bytes;
    uint64_t repaired;
    struct compare_totals compared;
    int64_t frontier_age_ms, wall_age_ms, floor_age_ms; /* -1: it has not begun */
};

static int64_t age_ms(int64_t now_ms, uint64_t stamp)
{
    return stamp == 0 ? -1 : MAX(now_ms - stamp_ms(stamp), 0);
}

static void take_node(struct picture *picture)
{
    struct node_facts facts;

    node_facts(&facts);
    uuid_format(&facts.name, picture->name_text);
    uuid_format(&facts.origin, picture->origin_text);
    picture->starts = facts.incarnation;
    picture->members = facts.member_count;
    picture->given_up = 0;
    for (uint32_t i = 0; i < facts.member_count; i++)
        picture->given_up += facts.members[i].is_given_up;
    picture->open_origins = facts.open_origins;
    picture->closed_origins = facts.closed_origins;
    picture->beats = facts.beats;
    picture->frontier_age_ms = age_ms(picture->now_ms, facts.frontier);
    picture->wall_age_ms = facts.wall_frontier == 0 ? -1 : MAX(picture->now_ms - facts.wall_frontier, 0);
    node_facts_fini(&facts);
}

static void take(void *into, const struct info_moment *moment)
{
    struct picture *picture = into;
    const struct store *store = server_instance()->store;

    picture->now_ms = moment->wall_us / 1000;
    picture->is_on = active_is_on();
    picture->is_active = role_is_active();
    picture->readiness = readiness_text(readiness_now());
    picture->serves = readiness_now() == READINESS_FULL;
    picture->name = picture->name_text;
    picture->origin = picture->origin_text;
    if (!picture->is_on)
        return;
    take_node(picture);
    picture->links_up = links_up_count();
    picture->floor_age_ms = age_ms(picture->now_ms, horizon_floor(&store->horizon));
    place_totals(&picture->placed);
    window_totals(store, &picture->window);
    picture->waits_for_memory = room_is_waited_for();
    picture->memory_waits = room_waits();
    picture->history_bytes = active_history_bytes();
    picture->history_memory_bytes = journal_memory_bytes(&server_instance()->journal);
    picture->repaired = window_cycle_repaired();
    compare_totals(&picture->compared);
}

static const struct info_source source = {sizeof(struct picture), .take = take};

static bool is_on(const void *picture)
{
    return ((const struct picture *)picture)->is_on;
}

/* ---------------------------------------------------------------------------------------- what clients read -- */

/* Clients take a node whose link is down for one that must not be asked. This one may, as long as it serves: how the
 * links are is told by active_peer<n>. The first master's fields have no number, as those of a replica. */
static void append_master(struct buffer *buffer, const struct link_facts *link, unsigned index, bool serves)
{
    char prefix[32] = "master";

    if (index != 0)
        (void)snprintf(prefix, sizeof(prefix), "master_%u", index);
    buffer_printf(buffer, "%s_host:%s\r\n%s_port:%d\r\n", prefix, link->host, prefix, link->port);
    buffer_printf(buffer, "%s_link_status:%s\r\n", prefix, serves ? "up" : "down");
    buffer_printf(buffer, "%s_last_io_seconds_ago:%lld\r\n", prefix, (long long)link->last_io_s);
    buffer_printf(buffer, "%s_sync_in_progress:%d\r\n", prefix, link->state == MASTER_SYNC);
}

static void append_masters(struct buffer *buffer, const void *from)
{
    const struct picture *picture = from;
    const long long offset = history_offset();
    struct overview overview;

    if (!picture->is_active)
        return;
    overview_take(&overview, picture->now_ms);
    buffer_printf(buffer, "master_global_link_status:%s\r\n", picture->serves ? "up" : "down");
    buffer_printf(buffer, "connected_masters:%u\r\n", links_up_count());
    for (unsigned i = 0; i < overview.count && overview.items[i].has_link; i++)
        append_master(buffer, &overview.items[i].link, i, picture->serves);
    overview_fini(&overview);
    buffer_printf(buffer, "slave_read_repl_offset:%lld\r\nslave_repl_offset:%lld\r\n", offset, offset);
    buffer_printf(buffer, "slave_priority:%lld\r\nslave_read_only:0\r\nreplica_announced:%lld\r\n",
                  (long long)OPTION_GET(option_replica_priority), (long long)OPTION_GET(option_replica_announced));
}

/* ------------------------------------------------------------------------------------------------ what is so -- */

static void append_link(struct buffer *buffer, const struct link_facts *link)
{
    buffer_printf(buffer, ",host=%s,port=%d,last_io=%lld,down=%lld,tries=%llu,held=%d", link->host, link->port,
                  (long long)link->last_io_s, (long long)link->down_s, (unsigned long long)link->connect_tries,
                  link->is_held);
    buffer_printf(buffer, ",received_bytes=%llu,state_bytes=%llu,received=%llu,old=%llu,gaps=%llu",
                  (unsigned long long)link->input_bytes, (unsigned long long)link->state_bytes,
                  (unsigned long long)link->entries, (unsigned long long)link->old, (unsigned long long)link->gaps);
}

static void append_member(struct buffer *buffer, const struct overview *overview, const struct node_member *member)
{
    buffer_printf(buffer, ",starts=%u,given_up=%d,silent_ms=%lld,skew_ms=%lld", member->incarnation,
                  member->is_given_up, (long long)member->silent_ms, (long long)member->skew_ms);
    buffer_printf(buffer, ",lag_ms=%lld,behind_ms=%lld,frontier_age_ms=%lld",
                  (long long)overview_age_ms(overview, member->here),
                  (long long)overview_age_ms(overview, member->there),
                  (long long)overview_age_ms(overview, member->frontier));
}

static void append_sender(struct buffer *buffer, const struct sender_facts *sender)
{
    buffer_printf(buffer, ",receives=%s,sent=%llu,sent_bytes=%llu,lag_bytes=%llu", sender_state_name(sender->state),
                  (unsigned long long)sender->entries, (unsigned long long)sender->bytes,
                  (unsigned long long)sender->lag_bytes);
}

static void append_peers(struct buffer *buffer, const void *from)
{
    const struct picture *picture = from;
    struct overview overview;

    if (!picture->is_on)
        return;
    overview_take(&overview, picture->now_ms);
    for (unsigned i = 0; i < overview.count; i++) {
        const struct overview_peer *peer = &overview.items[i];

        buffer_printf(buffer, "active_peer%u:name=%s,link=%s", i, peer->name, overview_link_word(peer));
        if (peer->has_link)
            append_link(buffer, &peer->link);
        if (peer->is_member)
            append_member(buffer, &overview, &peer->member);
        if (peer->is_sent_to)
            append_sender(buffer, &peer->sender);
        buffer_append_text(buffer, "\r\n");
    }
    overview_fini(&overview);
}

#define FIELD(name_, member_) INFO_FIELD(name_, &source, struct picture, member_, .wanted = is_on)

const struct info_row active_info[] = {
    INFO_LINES("master<n>", &source, append_masters),
    FIELD("active_state", readiness),
    FIELD("active_name", name),
    FIELD("active_origin", origin),
    FIELD("active_starts", starts),
    FIELD("active_links_up", links_up),
    FIELD("active_members", members),
    FIELD("active_members_given_up", given_up),
    FIELD("active_origins_open", open_origins),
    FIELD("active_origins_closed", closed_origins),
    FIELD("active_beats", beats),
    FIELD("active_frontier_age_ms", frontier_age_ms),
    FIELD("active_wall_age_ms", wall_age_ms),
    FIELD("active_floor_age_ms", floor_age_ms),
    FIELD("active_operations_appended", placed.appended),
    FIELD("active_operations_placed", placed.placed),
    FIELD("active_operations_dropped", placed.dropped),
    FIELD("active_operations_refused", placed.refused),
    FIELD("active_operations_late", placed.late),
    FIELD("active_operations_late_wall", placed.late_wall),
    FIELD("active_operations_unknown", placed.unknown),
    FIELD("active_flushes", placed.flushes),
    FIELD("active_flushes_late", placed.late_flushes),
    FIELD("active_history_bytes", history_bytes),
    FIELD("active_waits_for_memory", waits_for_memory),
    FIELD("active_memory_waits", memory_waits),
    FIELD("active_window_bytes", window.bytes),
    FIELD("active_window_keys", window.keys),
    FIELD("active_window_tombstones", window.tombstones),
    FIELD("active_window_joined", window.joined),
    FIELD("active_window_given_up", window.given_up),
    FIELD("active_dirty_keys", window.dirty),
    FIELD("active_repaired_keys", repaired),
    FIELD("active_compared", compared.members),
    FIELD("active_compared_different", compared.different),
    FIELD("active_compared_keys", compared.keys),
    INFO_LINES("active_peer<n>", &source, append_peers),
    FIELD("mem_active_history", history_memory_bytes),
    FIELD("mem_active_window", window.bytes),
    FIELD("mem_active_tombstones", window.tombstone_bytes),
    {0},
};
