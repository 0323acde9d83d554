/* DEBUG subcommands about the stamps by which servers of an active group order operations. */
#include "commands/debug/debug_priv.h"

#include "active/node.h"
#include "active/place.h"
#include "base/random.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "store/stamp.h"
#include "store/undo.h"
#include "store/window.h"

#include <inttypes.h>

/* As the origin that this is now: another one each time. */
static void debug_stamping(struct request *request)
{
    const bool on = !slice_equal_text(request_arg(request, 2), "0");
    const uint64_t origin = on ? random_u64(random_thread()) >> 1 | 1 : 0;
    struct journal *journal = &request->worker->server->journal;

    gate_assert_alone();
    if (undo_is_recording(request->access)) /* since this command began */
        undo_end(request->access);
    journal_set_stamping(journal, origin, 0);
    journal_set_peers(journal, on);
    for (unsigned db = 0; db <= horizon_libraries_db(&request->access->store->horizon); db++) /* nobody has kept it */
        window_forget_db(request->access, db);
    store_set_stamping(request->access->store, on);
    if (on)
        origins_set_own(&request->access->store->origins, origin);
    reply_ok(request);
}

static void debug_stamp(struct request *request)
{
    const struct entry *entry = access_look(request->access, request->db, &request->keys[0]);
    const uint64_t version = entry != NULL ? entry_version(entry) : 0;

    if (version == 0) {
        reply_null(request);
        return;
    }
    reply_array(request, 4);
    reply_int(request, stamp_ms(version_stamp(version)));
    reply_int(request, (int64_t)(version_stamp(version) & ((UINT64_C(1) << STAMP_COUNTER_BITS) - 1)));
    reply_int(request, version_overwrote(version));
    reply_int(request, version_origin(version));
}

static void append_uuid(struct buffer *text, const char *field, const struct uuid *uuid)
{
    char name[UUID_TEXT_BYTES + 1];

    uuid_format(uuid, name);
    buffer_printf(text, "%s:%s\r\n", field, name);
}

/* What INFO does not show: bounds, walls, frontiers as they are. */
static void debug_active(struct request *request)
{
    struct node_facts facts;
    struct buffer text = {0};

    node_facts(&facts);
    append_uuid(&text, "name", &facts.name);
    append_uuid(&text, "origin", &facts.origin);
    buffer_printf(&text, "starts:%" PRIu32 "\r\nbeats:%" PRIu64 "\r\n", facts.incarnation, facts.beats);
    buffer_printf(&text, "clock:%" PRIu64 "\r\nfrontier:%" PRIu64 "\r\nstamp_bound:%" PRIu64 "\r\n", facts.clock,
                  facts.frontier, facts.stamp_bound);
    buffer_printf(&text, "wall:%" PRId64 "\r\nwall_frontier:%" PRId64 "\r\nwall_bound:%" PRId64 "\r\n", facts.wall,
                  facts.wall_frontier, facts.wall_bound);
    buffer_printf(&text, "may_evict:%d\r\nmembers:%" PRIu32 "\r\n", horizon_may_evict(&request->access->store->horizon),
                  facts.member_count);
    buffer_printf(&text, "longest_batch_us:%" PRIu64 "\r\n", place_longest_us());
    for (uint32_t i = 0; i < facts.member_count; i++) {
        const struct node_member *member = &facts.members[i];

        buffer_printf(&text, "member%" PRIu32 ":name=%016" PRIx64 ",origin=%016" PRIx64 ",starts=%" PRIu32, i,
                      member->name, member->origin, member->incarnation);
        buffer_printf(&text, ",silent=%" PRId64 ",here=%" PRIu64 ",there=%" PRIu64 ",frontier=%" PRIu64 "\r\n",
                      member->silent_ms, member->here, member->there, member->frontier);
    }
    reply_bulk(request, buffer_slice(&text));
    buffer_fini(&text);
    node_facts_fini(&facts);
}

const struct debug_row debug_stamp_rows[] = {
    {"active", "",
     "Return what this server knows as a node of an active group: name, origin, clock, frontiers, bounds, members; and "
     "how long a batch "
     "of what peers sent has held its stripes at most, since the last call.",
     debug_active, 2, 2, ACCESS_FREE, 0, 0},
    {"stamp", "<key>",
     "Return what the key's version says: milliseconds and counter of the stamp, whether the last operation overwrote, "
     "the local number of its origin.",
     debug_stamp, 3, 3, ACCESS_STRIPED, 2, 2},
    {"stamping", "<0|1>",
     "With 1, commands that the journal records get stamps, and the keys that they change versions. With 0 no more of "
     "them.",
     debug_stamping, 3, 3, ACCESS_EXCLUSIVE, 0, 0},
    {0},
};
