/* DUMP, RESTORE, KEYDB.MVCCRESTORE: values as bytes that other servers read, too. */
#include "commands/shared/families.h"
#include "commands/shared/operations.h"

#include "active/mvcc.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "commands/shared/type_options.h"
#include "commands/shared/typed.h"
#include "persist/rdb_payload.h"
#include "server/core/client.h"
#include "server/core/deferred_log.h"
#include "server/durable/file_options.h"
#include "store/lru_lfu.h"

#include <inttypes.h>

/* ------------------------------------------------------------------------------------------------------- DUMP -- */

static void cmd_dump(struct request *request)
{
    const struct entry *entry = access_read(request->access, request->db, &request->keys[0]);
    const struct rdb_write_options options = rdb_payload_options();
    struct rdb_writer writer;

    if (entry == NULL) {
        reply_null(request);
        return;
    }
    rdb_writer_init(&writer, &options, NULL);
    rdb_payload_write(&writer, entry);
    reply_bulk(request, buffer_slice(&writer.out));
    rdb_writer_fini(&writer);
}

/* ---------------------------------------------------------------------------------------------------- RESTORE -- */

struct restore {
    uint32_t payload_at; /* the payload's argument */
    int64_t expire_ms;   /* EXPIRE_NEVER: no deadline */
    bool is_relative;
    bool replaces;
    int64_t idle_s;    /* -1: not told */
    int64_t frequency; /* -1: not told */
};

enum { ARG_KEY = 1, ARG_TTL = 2, ARG_PAYLOAD = 3, ARG_OPTIONS = 4 };

static bool parse_number(struct request *request, uint32_t at, int64_t most, int64_t *number, const char *error)
{
    if (!request_arg_i64(request, at, number))
        return false;
    if (*number >= 0 && *number <= most)
        return true;
    reply_error(request, error);
    return false;
}

/* IDLETIME, FREQ: of one of them, not of both. False: no such option, or a mistake that was replied. */
static bool parse_use(struct request *request, struct restore *restore, uint32_t at)
{
    bool has_value = at + 1 < request->arg_count;

    if (has_value && request_arg_is(request, at, "idletime") && restore->frequency < 0)
        return parse_number(request, at + 1, INT64_MAX, &restore->idle_s, "ERR Invalid IDLETIME value, must be >= 0");
    if (has_value && request_arg_is(request, at, "freq") && restore->idle_s < 0)
        return parse_number(request, at + 1, LFU_MOST_COUNT, &restore->frequency,
                            "ERR Invalid FREQ value, must be >= 0 and <= 255");
    reply_syntax_error(request);
    return false;
}

static bool parse_options(struct request *request, struct restore *restore)
{
    *restore = (struct restore){.payload_at = ARG_PAYLOAD, .is_relative = true, .idle_s = -1, .frequency = -1};
    for (uint32_t i = ARG_OPTIONS; i < request->arg_count; i++) {
        if (request_arg_is(request, i, "replace"))
            restore->replaces = true;
        else if (request_arg_is(request, i, "absttl"))
            restore->is_relative = false;
        else if (!parse_use(request, restore, i++))
            return false;
    }
    return true;
}

static bool parse_deadline(struct request *request, struct restore *restore)
{
    int64_t ms;

    if (!parse_number(request, ARG_TTL, INT64_MAX, &ms, "ERR Invalid TTL value, must be >= 0"))
        return false;
    if (ms != 0 && restore->is_relative && __builtin_add_overflow(ms, request->access->now_ms, &ms))
        ms = 1; /* no such time: the key expires at once, as with other commands */
    restore->expire_ms = ms != 0 ? ms : EXPIRE_NEVER;
    return true;
}

/* False: the payload is no value, which was replied. */
static bool read_payload(struct request *request, const struct restore *restore, struct rdb_reader *reader,
                         struct rdb_value *value)
{
    const struct rdb_limits limits = type_rdb_limits();
    struct slice body;

    if (!rdb_payload_check(request_arg(request, restore->payload_at), &body)) {
        reply_error(request, "ERR DUMP payload version or checksum are wrong");
        return false;
    }
    rdb_reader_init_memory(reader, body);
    reader->version = rdb_payload_version(request_arg(request, restore->payload_at));
    if (rdb_payload_read(reader, &limits, value) && !value->is_empty)
        return true;
    deferred_log(request->worker, LOG_LEVEL_VERBOSE,
                 "RESTORE refused a payload: integrity check failed at byte %" PRIu64 ": %s", reader->failed_at,
                 reader->status != STATUS_OK ? reader->error : "the payload is empty");
    rdb_reader_fini(reader);
    reply_error(request, "ERR Bad data format");
    return false;
}

static void put_member_deadline(struct slice member, int64_t when_ms, void *context)
{
    change_member_expire(context, member, when_ms);
}

static void put_value(struct change *change, const struct restore *restore, struct rdb_value *value)
{
    if (value->type == TYPE_STRING)
        change_put_string(change, value->text, restore->expire_ms);
    else
        change_put_value(change, value->type, value->value, restore->expire_ms);
    value->value.data = NULL;
    deadlines_each_due(&value->members, DEADLINE_NONE, put_member_deadline, change);
}

static void set_use(const struct access *access, struct entry *entry, const struct restore *restore)
{
    if (restore->idle_s >= 0 && !access->counts_uses)
        entry->clock = (access->clock - (uint32_t)MIN(restore->idle_s, (int64_t)0xffffff)) & 0xffffff;
    if (restore->frequency >= 0 && access->counts_uses)
        entry->clock = (access->clock & ~(uint32_t)0xff) | (uint32_t)restore->frequency;
}

/* Others are told the time itself. */
static void tell_deadline(struct request *request, const struct restore *restore)
{
    char text[NUMBER_I64_SPACE];
    struct slice *words;

    if (!restore->is_relative || restore->expire_ms == EXPIRE_NEVER)
        return;
    words = mem_alloc((request->arg_count + 1) * sizeof(*words));
    memcpy(words, request->args, request->arg_count * sizeof(*words));
    words[ARG_TTL] = slice_make(text, number_format_i64(text, restore->expire_ms));
    words[request->arg_count] = SLICE("ABSTTL");
    effect_set(request, words, request->arg_count + 1);
    mem_free(words);
}

/* The payload as it came, over what there may be: an operation beside the effect, or both. */
static void add_restore(struct request *request, const struct restore *restore,
                        void (*add)(struct request *request, const struct slice *words, uint32_t count))
{
    char text[NUMBER_I64_SPACE];
    const struct slice words[] = {SLICE("RESTORE"),
                                  request_arg(request, ARG_KEY),
                                  restore->expire_ms == EXPIRE_NEVER
                                      ? SLICE("0")
                                      : slice_make(text, number_format_i64(text, restore->expire_ms)),
                                  request_arg(request, restore->payload_at),
                                  SLICE("REPLACE"),
                                  SLICE("ABSTTL")};

    add(request, words, countof(words));
}

/* The deadline has passed already: the old value is deleted, and no new one is stored. */
static void leave_nothing(struct request *request, struct change *change)
{
    const struct slice words[] = {SLICE("DEL"), request_arg(request, ARG_KEY)};
    bool is_there = change_entry(change) != NULL;

    change_abandon(change);
    if (is_there && access_delete(request->access, request->db, &request->keys[0]))
        effect_set(request, words, countof(words));
}

static void make_key(struct request *request, struct change *change, const struct restore *restore,
                     struct rdb_value *value)
{
    struct access *access = request->access;
    bool is_there = change_entry(change) != NULL;

    put_value(change, restore, value);
    change_end(change, EVENT_GENERIC | EVENT_REPLACES, NULL);
    set_use(access, change_entry(change), restore); /* the end of a change may be a use, too */
    if (is_there)
        access_event(access, request->db, change->key, EVENT_NEW, "new");
    access_event(access, request->db, change->key, EVENT_GENERIC, "restore");
}

/* Jobs run with all permissions (KEYDB.CRON): users with fewer permissions may not create one. */
static bool may_make(struct request *request, const struct rdb_value *value)
{
    if (value->type != TYPE_CRON || request->client == NULL || (request->client->flags & CLIENT_RESTRICTED) == 0)
        return true;
    reply_error(request, "NOPERM A job runs with all permissions: only users with all permissions may create one");
    return false;
}

/* False: the deadline has passed already. */
static bool put_payload(struct request *request, const struct restore *restore, struct rdb_value *value)
{
    struct access *access = request->access;
    struct change change;
    bool is_made;

    change_begin(&change, access, request->db, &request->keys[0]);
    is_made = restore->expire_ms == EXPIRE_NEVER || restore->expire_ms > access->due_ms;
    if (is_made)
        make_key(request, &change, restore, value);
    else
        leave_nothing(request, &change);
    return is_made;
}

/* False: the key has changed since. A key without a version says nothing of that. */
static bool is_older(const struct entry *entry, uint64_t mvcc)
{
    if (entry == NULL || entry_version(entry) == 0)
        return true;
    return mvcc_of_stamp(version_stamp(entry_version(entry))) <= mvcc;
}

/* With `mvcc` only what is not younger is replaced (NULL: everything). A payload that is no value is an error in any
 * case. False: nothing was put. */
static bool restore_payload(struct request *request, const struct restore *restore, const uint64_t *mvcc)
{
    struct rdb_reader reader;
    struct rdb_value value;
    bool is_made = false;

    if (!read_payload(request, restore, &reader, &value))
        return false;
    if (may_make(request, &value)) {
        is_made = (mvcc == NULL || is_older(access_find(request->access, request->db, &request->keys[0]), *mvcc)) &&
                  put_payload(request, restore, &value);
        reply_ok(request);
    }
    rdb_value_destroy(&value);
    rdb_reader_fini(&reader);
    return is_made;
}

static void cmd_restore(struct request *request)
{
    struct restore restore;

    if (!parse_options(request, &restore))
        return;
    if (!restore.replaces && access_find(request->access, request->db, &request->keys[0]) != NULL) {
        reply_error(request, "BUSYKEY Target key name already exists.");
        return;
    }
    if (!parse_deadline(request, &restore) || !restore_payload(request, &restore, NULL))
        return;
    tell_deadline(request, &restore);
    add_restore(request, &restore, operation_add);
}

/* ---------------------------------------------------------------------------------------- KEYDB.MVCCRESTORE -- */

static void cmd_mvccrestore(struct request *request)
{
    struct restore restore = {.payload_at = 4, .idle_s = -1, .frequency = -1};
    uint64_t mvcc;

    if (!number_parse_u64(request_arg(request, 2), &mvcc)) {
        reply_error(request, "ERR Invalid MVCC Tstamp");
        return;
    }
    if (!number_parse_i64(request_arg(request, 3), &restore.expire_ms)) {
        reply_error(request, "ERR Invalid expire");
        return;
    }
    if (restore.expire_ms < 0 || restore.expire_ms == INT64_MAX) /* as KeyDB sends keys without a deadline */
        restore.expire_ms = EXPIRE_NEVER;
    if (restore_payload(request, &restore, &mvcc))
        add_restore(request, &restore, effect_set);
}

/* clang-format off */
const struct command_row dump_commands[] = {
    {.name = "dump", .run = cmd_dump, .arity = 2, .access = ACCESS_STRIPED, .flags = "readonly",
     .categories = "@keyspace @read @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "generic",
     .since = "2.6.0", .summary = "Returns a value as bytes that RESTORE accepts.",
     .complexity = "O(1) to find the key, O(N*M) for N parts of M bytes", .syntax = "DUMP key",
     .tips = "nondeterministic_output"},
    {.name = "keydb.mvccrestore", .run = cmd_mvccrestore, .arity = 5, .access = ACCESS_STRIPED,
     .flags = "write denyoom", .categories = "@keyspace @write @slow @dangerous",
     .keys = "OW,UPDATE@index:1@range:0,1,0", .group = "generic", .since = "6.0.18",
     .summary = "RESTORE with REPLACE and ABSTTL, unless the key has changed since (active replicas).",
     .complexity = "O(1) to make the key, O(N*M) for N parts of M bytes; O(N*M*log(N)) for sorted sets",
     .syntax = "KEYDB.MVCCRESTORE key timestamp deadline serialized-value"},
    {.name = "restore", .run = cmd_restore, .arity = -4, .access = ACCESS_STRIPED, .flags = "write denyoom",
     .categories = "@keyspace @write @slow @dangerous", .keys = "OW,UPDATE@index:1@range:0,1,0", .group = "generic",
     .since = "2.6.0", .summary = "Creates a key from the bytes that DUMP returned.",
     .complexity = "O(1) to make the key, O(N*M) for N parts of M bytes; O(N*M*log(N)) for sorted sets",
     .syntax = "RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
     .arg_since = "REPLACE:3.0.0 ABSTTL:5.0.0 IDLETIME:5.0.0 FREQ:5.0.0",
     .history = "3.0.0=The word REPLACE.|5.0.0=The word ABSTTL.|5.0.0=The options IDLETIME and FREQ."},
    {.name = NULL},
};
/* clang-format on */
