/* DEBUG subcommands about the stamps by which servers of an active group order operations. */
#include "commands/debug/debug_priv.h"

#include "base/random.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "store/stamp.h"

/* As the origin that this is now: another one each time. */
static void debug_stamping(struct request *request)
{
    const bool on = !slice_equal_text(request_arg(request, 2), "0");

    gate_assert_alone();
    journal_set_stamping(&request->worker->server->journal, on ? random_u64(random_thread()) >> 1 | 1 : 0, 0);
    store_set_stamping(request->access->store, on);
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

const struct debug_row debug_stamp_rows[] = {
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
