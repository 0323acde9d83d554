/* What goes through a whole database: SCAN, KEYS, RANDOMKEY, DBSIZE, FLUSHDB, FLUSHALL, SWAPDB. */
#include "commands/families.h"

#include "base/buffer.h"
#include "base/glob.h"
#include "base/number.h"
#include "server/options.h"
#include "server/request.h"

#include <stdio.h>

/* --- SCAN and KEYS --- */

/* Which keys are wanted, and how many of them were replied. */
struct filter {
    struct request *request;
    struct slice pattern;   /* data NULL: any */
    struct slice type_name; /* data NULL: any */
    uint64_t count;
};

static bool filter_wants(const struct entry *entry, void *context)
{
    const struct filter *filter = context;

    return filter->pattern.data == NULL || glob_match(filter->pattern, entry_key(entry), false);
}

/* The type is asked only here, after an expired key was deleted: SCAN ... TYPE clears away what is of another type. */
static void filter_visit(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    struct filter *filter = context;

    (void)access;
    (void)db;
    if (filter->type_name.data != NULL && !slice_equal_text_nocase(filter->type_name, entry_type_name(entry)))
        return;
    reply_bulk(filter->request, entry_key(entry));
    filter->count++;
}

static struct access_visitor visitor_of(struct filter *filter)
{
    return (struct access_visitor){.wanted = filter_wants, .visit = filter_visit, .context = filter};
}

/* "*" asks for everything. */
static struct slice pattern_of(struct slice text)
{
    return slice_equal_text(text, "*") ? SLICE_EMPTY : text;
}

static void cmd_keys(struct request *request)
{
    struct filter filter = {.request = request, .pattern = pattern_of(request_arg(request, 1))};
    struct access_visitor visitor = visitor_of(&filter);
    struct resp_deferred keys = resp_begin_deferred(request->out);

    access_each(request->access, request->db, &visitor);
    resp_end_deferred(request->out, request->proto, keys, RESP_ARRAY, filter.count);
}

/* A cursor as clients write it: also with a sign, with zeros before it, or nothing at all. A zero byte ends it. */
static bool parse_cursor(struct slice text, uint64_t *cursor)
{
    bool negative = text.size != 0 && text.data[0] == '-';
    uint64_t number = 0;

    if (text.size != 0 && (text.data[0] == '-' || text.data[0] == '+')) {
        text = slice_skip(text, 1);
        if (text.size == 0 || text.data[0] == '\0')
            return false;
    }
    for (size_t i = 0; i < text.size && text.data[i] != '\0'; i++) {
        unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';

        if (digit > 9 || __builtin_mul_overflow(number, UINT64_C(10), &number) ||
            __builtin_add_overflow(number, (uint64_t)digit, &number))
            return false;
    }
    *cursor = negative ? -number : number;
    return true;
}

enum { SCAN_COUNT_DEFAULT = 10 };

static bool parse_scan_options(struct request *request, struct filter *filter, int64_t *want)
{
    for (uint32_t i = 2; i < request->arg_count; i += 2) {
        if (i + 1 == request->arg_count) {
            reply_syntax_error(request);
            return false;
        }
        if (request_arg_is(request, i, "COUNT")) {
            if (!request_arg_i64(request, i + 1, want))
                return false;
            if (*want < 1) {
                reply_syntax_error(request);
                return false;
            }
        } else if (request_arg_is(request, i, "MATCH")) {
            filter->pattern = pattern_of(request_arg(request, i + 1));
        } else if (request_arg_is(request, i, "TYPE")) {
            filter->type_name = request_arg(request, i + 1);
        } else {
            reply_syntax_error(request);
            return false;
        }
    }
    return true;
}

/* The cursor stands before the keys but is known after them: room for it is left open. */
static void cmd_scan(struct request *request)
{
    struct filter filter = {.request = request};
    struct access_visitor visitor = visitor_of(&filter);
    char text[2 * NUMBER_I64_SPACE + 8], digits[NUMBER_I64_SPACE];
    int64_t want = SCAN_COUNT_DEFAULT;
    struct resp_deferred keys;
    struct output_gap gap;
    uint64_t cursor;
    int size;
    bool busy;

    if (!parse_cursor(request_arg(request, 1), &cursor)) {
        reply_error(request, "ERR invalid cursor");
        return;
    }
    if (!parse_scan_options(request, &filter, &want))
        return;
    reply_array(request, 2);
    gap = output_gap_open(request->out, sizeof(text));
    keys = resp_begin_deferred(request->out);
    cursor = access_scan(request->access, request->db, cursor, (uint64_t)want, &visitor, &busy);
    resp_end_deferred(request->out, request->proto, keys, RESP_ARRAY, filter.count);
    size = snprintf(text, sizeof(text), "$%zu\r\n%s\r\n", number_format_u64(digits, cursor), digits);
    output_gap_close(request->out, gap, text, (size_t)size);
}

static void cmd_randomkey(struct request *request)
{
    struct buffer name = {0};

    if (access_random_key(request->access, request->db, &name))
        reply_bulk(request, buffer_slice(&name));
    else
        reply_null(request);
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
    tell_others(request);
    reply_ok(request);
}

static void cmd_flushall(struct request *request)
{
    bool background;

    if (!parse_flush(request, &background))
        return;
    for (unsigned db = 0; db < request->access->store->database_count; db++)
        access_flush_db(request->access, db, background);
    tell_others(request);
    reply_ok(request);
}

static bool parse_db(struct request *request, uint32_t index, const char *error, int64_t *db)
{
    if (number_parse_i64(request_arg(request, index), db) && *db >= INT32_MIN && *db <= INT32_MAX)
        return true;
    reply_error(request, error);
    return false;
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
    access_swap_db(request->access, (unsigned)first, (unsigned)second);
    request->access->dirty++;
    reply_ok(request);
}

const struct command_row scan_commands[] = {
    {.name = "scan", .run = cmd_scan, .arity = -2, .access = ACCESS_WALK,
     .flags = "readonly touches_arbitrary_keys", .categories = "@keyspace @read @slow", .group = "generic",
     .since = "2.8.0", .summary = "Goes through the keys of a database in small steps.",
     .complexity = "O(1) for each step, O(N) for all N keys",
     .syntax = "SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]", .arg_since = "TYPE:6.0.0",
     .history = "6.0.0=The option `TYPE`.", .tips = "nondeterministic_output request_policy:special"},
    {.name = "keys", .run = cmd_keys, .arity = 2, .access = ACCESS_EXCLUSIVE, .flags = "readonly",
     .categories = "@keyspace @read @slow @dangerous", .group = "generic", .since = "1.0.0",
     .summary = "Returns all keys that match a pattern.", .complexity = "O(N) for N keys in the database",
     .syntax = "KEYS pattern", .tips = "request_policy:all_shards nondeterministic_output_order"},
    {.name = "randomkey", .run = cmd_randomkey, .arity = 1, .access = ACCESS_WALK,
     .flags = "readonly touches_arbitrary_keys", .categories = "@keyspace @read @slow", .group = "generic",
     .since = "1.0.0", .summary = "Returns one key of the database, any with the same chance.",
     .complexity = "O(1)", .syntax = "RANDOMKEY", .tips = "request_policy:all_shards nondeterministic_output"},
    {.name = "dbsize", .run = cmd_dbsize, .arity = 1, .access = ACCESS_FREE, .flags = "readonly fast",
     .categories = "@keyspace @read @fast", .group = "server", .since = "1.0.0",
     .summary = "Tells how many keys the database has.", .complexity = "O(1)", .syntax = "DBSIZE",
     .tips = "request_policy:all_shards response_policy:agg_sum"},
    {.name = "flushdb", .run = cmd_flushdb, .arity = -1, .access = ACCESS_EXCLUSIVE, .flags = "write",
     .categories = "@keyspace @write @slow @dangerous", .group = "server", .since = "1.0.0",
     .summary = "Deletes all keys of the database.", .complexity = "O(N) for N keys in the database",
     .syntax = "FLUSHDB [ASYNC|SYNC]", .arg_since = "ASYNC:4.0.0 SYNC:6.2.0",
     .history = "4.0.0=`ASYNC`, which frees the memory in the background.|6.2.0=`SYNC`, the opposite.",
     .tips = "request_policy:all_shards response_policy:all_succeeded"},
    {.name = "flushall", .run = cmd_flushall, .arity = -1, .access = ACCESS_EXCLUSIVE, .flags = "write",
     .categories = "@keyspace @write @slow @dangerous", .group = "server", .since = "1.0.0",
     .summary = "Deletes all keys of all databases.", .complexity = "O(N) for N keys in all databases",
     .syntax = "FLUSHALL [ASYNC|SYNC]", .arg_since = "ASYNC:4.0.0 SYNC:6.2.0",
     .history = "4.0.0=`ASYNC`, which frees the memory in the background.|6.2.0=`SYNC`, the opposite.",
     .tips = "request_policy:all_shards response_policy:all_succeeded"},
    {.name = "swapdb", .run = cmd_swapdb, .arity = 3, .access = ACCESS_EXCLUSIVE, .flags = "write fast",
     .categories = "@keyspace @write @fast @dangerous", .group = "server", .since = "4.0.0",
     .summary = "Exchanges two databases.", .complexity = "O(N) for N stripes and the keys that are watched in them",
     .syntax = "SWAPDB index1 index2"},
    {.name = NULL},
};
