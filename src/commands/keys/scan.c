/* Commands on a whole database: SCAN, KEYS, RANDOMKEY, DBSIZE, FLUSHDB, FLUSHALL, SWAPDB. */
#include "commands/shared/families.h"

#include "active/node.h"
#include "base/buffer.h"
#include "base/number.h"
#include "commands/shared/scan_options.h"
#include "server/config/options.h"
#include "server/core/request.h"
#include "server/durable/persistence.h"
#include "server/pubsub/tracking.h"

/* --- SCAN and KEYS --- */

/* Which keys are wanted, and how many of them were replied. */
struct filter {
    struct request *request;
    struct scan_options options;
    struct scan_reply reply; /* SCAN's, */
    bool has_reply;          /* once it has begun */
    uint64_t count;
};

static bool filter_wants(const struct entry *entry, void *context)
{
    const struct filter *filter = context;

    return scan_wants(&filter->options, entry_key(entry));
}

/* The type is checked only here, after an expired key was deleted: SCAN ... TYPE also deletes expired keys of other
 * types. */
static void filter_visit(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    struct filter *filter = context;

    (void)db;
    if (filter->options.type_name.data != NULL &&
        !slice_equal_text_nocase(filter->options.type_name, access->store->types[entry->type].name))
        return;
    reply_bulk(filter->request, entry_key(entry));
    filter->count++;
}

/* Only when there is something to tell: a scan may have to wait instead. */
static void scan_begin(struct filter *filter)
{
    if (!filter->has_reply)
        filter->reply = scan_reply_begin(filter->request);
    filter->has_reply = true;
}

static void scan_visit(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    scan_begin(context);
    filter_visit(access, db, entry, context);
}

static struct access_visitor visitor_of(struct filter *filter)
{
    return (struct access_visitor){.wanted = filter_wants, .visit = filter_visit, .context = filter};
}

static void cmd_keys(struct request *request)
{
    struct filter filter = {.request = request, .options = {.pattern = request_arg(request, 1)}};
    struct access_visitor visitor = visitor_of(&filter);
    struct resp_deferred keys = resp_begin_deferred(request->out);

    access_each(request->access, request->db, &visitor);
    resp_end_deferred(request->out, request->proto, keys, RESP_ARRAY, filter.count);
}

static void cmd_scan(struct request *request)
{
    struct filter filter = {.request = request};
    struct access_visitor visitor = visitor_of(&filter);
    enum access_walk walk;
    uint64_t cursor;
    uint32_t busy;

    visitor.visit = scan_visit;
    if (!scan_parse_cursor(request, 1, &cursor) || !scan_parse_options(request, 2, SCAN_TYPE, &filter.options))
        return;
    walk = access_scan(request->access, request->db, &cursor, (uint64_t)filter.options.want, &visitor, &busy);
    if (walk == WALK_BUSY) {
        request_again_after(request, busy);
        return;
    }
    scan_begin(&filter);
    scan_reply_end(request, filter.reply, cursor, filter.count);
}

static void cmd_randomkey(struct request *request)
{
    struct buffer name = {0};
    uint32_t busy;

    switch (access_random_key(request->access, request->db, &name, &busy)) {
    case WALK_DONE:
        reply_bulk(request, buffer_slice(&name));
        break;
    case WALK_NOTHING:
        reply_null(request);
        break;
    case WALK_BUSY:
        request_again_after(request, busy);
        break;
    }
    buffer_fini(&name);
}

static void cmd_dbsize(struct request *request)
{
    reply_int(request, (int64_t)store_key_count(request->access->store, request->db));
}

/* --- whole databases --- */

/* Others must hear of these commands also where there was nothing to change. */
static void tell_others(struct request *request)
{
    effect_set(request, request->args, request->arg_count);
}

static bool parse_flush(struct request *request, bool *background)
{
    if (request->arg_count == 1) {
        *background = OPTION_IS(option_lazyfree_lazy_user_flush);
        return true;
    }
    *background = request_arg_is(request, 1, "ASYNC");
    if (request->arg_count == 2 && (*background || request_arg_is(request, 1, "SYNC")))
        return true;
    reply_syntax_error(request);
    return false;
}

static void cmd_flushdb(struct request *request)
{
    bool background;

    if (!parse_flush(request, &background))
        return;
    access_flush_db(request->access, request->db, background);
    tracking_note_flush(request->worker);
    tell_others(request);
    reply_ok(request);
}

static void cmd_flushall(struct request *request)
{
    bool background;

    if (!parse_flush(request, &background))
        return;
    access_flush_all(request->access, background);
    persistence_flushed(request->access);
    tracking_note_flush(request->worker);
    tell_others(request);
    reply_ok(request);
}

/* It is about what an active node knows of its keys, which does it where it places operations. Data stay. */
static void operate_late_flush(struct request *request)
{
    reply_ok(request);
}

static bool parse_db(struct request *request, uint32_t index, const char *error, int64_t *db)
{
    if (number_parse_i64(request_arg(request, index), db) && *db >= INT32_MIN && *db <= INT32_MAX)
        return true;
    reply_error(request, error);
    return false;
}

static bool swapdb_find_databases(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    (void)args, (void)arg_count;
    key_positions_add(positions, 1, 0);
    key_positions_add(positions, 2, 0);
    return true;
}

static void cmd_swapdb(struct request *request)
{
    int64_t most = (int64_t)request->access->store->database_count - 1, first, second;

    if (!parse_db(request, 1, "ERR invalid first DB index", &first) ||
        !parse_db(request, 2, "ERR invalid second DB index", &second))
        return;
    if (first < 0 || first > most || second < 0 || second > most) {
        reply_error(request, "ERR DB index is out of range");
        return;
    }
    if (active_is_on()) { /* not the operations of one key, nor of a database alone; a file from before may have it */
        reply_error(request, "ERR SWAPDB is not allowed on an active replica");
        return;
    }
    access_swap_db(request->access, (unsigned)first, (unsigned)second);
    request->access->dirty++;
    reply_ok(request);
}

/* clang-format off */
const struct command_row scan_commands[] = {
    {.name = "scan", .run = cmd_scan, .arity = -2, .access = ACCESS_WALK,
     .flags = "readonly touches_arbitrary_keys", .categories = "@keyspace @read @slow", .group = "generic",
     .since = "2.8.0", .summary = "Iterates over the keys of the database.",
     .complexity = "O(1) for each step, O(N) for all N keys",
     .syntax = "SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]", .arg_since = "TYPE:6.0.0",
     .history = "6.0.0=The option `TYPE`.",
     .tips = "nondeterministic_output request_policy:special response_policy:special"},
    {.name = "keys", .run = cmd_keys, .arity = 2, .access = ACCESS_EXCLUSIVE, .flags = "readonly",
     .categories = "@keyspace @read @slow @dangerous", .group = "generic", .since = "1.0.0",
     .summary = "Returns all keys that match a pattern.", .complexity = "O(N) for N keys in the database",
     .syntax = "KEYS pattern", .tips = "request_policy:all_shards nondeterministic_output_order"},
    {.name = "randomkey", .run = cmd_randomkey, .arity = 1, .access = ACCESS_WALK,
     .flags = "readonly touches_arbitrary_keys", .categories = "@keyspace @read @slow", .group = "generic",
     .since = "1.0.0", .summary = "Returns a random key of the database.",
     .complexity = "O(1)", .syntax = "RANDOMKEY",
     .tips = "request_policy:all_shards response_policy:special nondeterministic_output"},
    {.name = "dbsize", .run = cmd_dbsize, .arity = 1, .access = ACCESS_FREE, .flags = "readonly fast",
     .categories = "@keyspace @read @fast", .group = "server", .since = "1.0.0",
     .summary = "Returns how many keys the database has.", .complexity = "O(1)", .syntax = "DBSIZE",
     .tips = "request_policy:all_shards response_policy:agg_sum"},
    {.name = "flushdb", .run = cmd_flushdb, .arity = -1, .access = ACCESS_EXCLUSIVE, .flags = "write",
     .categories = "@keyspace @write @slow @dangerous", .group = "server", .since = "1.0.0",
     .summary = "Deletes all keys of the current database.", .complexity = "O(N) for N keys in the database",
     .syntax = "FLUSHDB [ASYNC|SYNC]", .arg_since = "ASYNC:4.0.0 SYNC:6.2.0",
     .history = "4.0.0=`ASYNC`, which frees the memory in the background.|6.2.0=`SYNC`, the opposite.",
     .tips = "request_policy:all_shards response_policy:all_succeeded"},
    {.name = "flushall", .run = cmd_flushall, .arity = -1, .access = ACCESS_EXCLUSIVE, .flags = "write",
     .categories = "@keyspace @write @slow @dangerous", .group = "server", .databases = DATABASES_ALL,
     .since = "1.0.0", .summary = "Deletes all keys of all databases.",
     .complexity = "O(N) for N keys in all databases",
     .syntax = "FLUSHALL [ASYNC|SYNC]", .arg_since = "ASYNC:4.0.0 SYNC:6.2.0",
     .history = "4.0.0=`ASYNC`, which frees the memory in the background.|6.2.0=`SYNC`, the opposite.",
     .tips = "request_policy:all_shards response_policy:all_succeeded"},
    {.name = "keydb.op.flushed", .run = operate_late_flush, .arity = 2, .access = ACCESS_EXCLUSIVE,
     .flags = "write operation", .categories = "@keyspace @write @slow @dangerous", .group = "server",
     .since = "7.0.0", .summary = "Tells that a flush came too late to some server, by its stamp.",
     .complexity = "O(N) for N keys in the database", .syntax = "KEYDB.OP.FLUSHED stamp"},
    {.name = "swapdb", .run = cmd_swapdb, .arity = 3, .access = ACCESS_EXCLUSIVE, .flags = "write fast",
     .categories = "@keyspace @write @fast @dangerous", .group = "server", .databases = DATABASES_NAMED,
     .find_databases = swapdb_find_databases, .since = "4.0.0",
     .summary = "Exchanges two databases.", .complexity = "O(N) for N stripes and the keys that are watched in them",
     .syntax = "SWAPDB index1 index2"},
    {.name = NULL},
};
/* clang-format on */
