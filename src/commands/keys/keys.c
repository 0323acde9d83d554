/* Keys whatever they hold: DEL, EXISTS, RENAME, COPY, MOVE, OBJECT and the like, and TIME. */
#include "commands/shared/families.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "commands/shared/object.h"
#include "commands/shared/operations.h"
#include "server/config/options.h"
#include "server/core/request.h"
#include "store/lru_lfu.h"

#include <string.h>

/* --- being there --- */

/* How many there were. */
static int64_t delete_keys(struct request *request, enum free_reason reason)
{
    int64_t count = 0;

    for (uint32_t i = 0; i < request->key_count; i++) {
        if (!access_delete_for(request->access, request->db, &request->keys[i], reason))
            continue;
        count++;
        operation_add_delete(request, request->db, request->keys[i].name);
    }
    reply_int(request, count);
    return count;
}

static void cmd_del(struct request *request)
{
    (void)delete_keys(request, FREE_USER_DEL);
}

static void cmd_unlink(struct request *request)
{
    (void)delete_keys(request, FREE_UNLINK);
}

/* Told as DEL, which other servers know, too. */
static void cmd_expdel(struct request *request)
{
    struct slice *words;

    if (delete_keys(request, FREE_USER_DEL) == 0)
        return;
    words = mem_alloc(request->arg_count * sizeof(*words));
    memcpy(words, request->args, request->arg_count * sizeof(*words));
    words[0] = SLICE("DEL");
    effect_set(request, words, request->arg_count);
    mem_free(words);
}

static void cmd_exists(struct request *request)
{
    int64_t count = 0;

    for (uint32_t i = 0; i < request->key_count; i++)
        count += access_peek(request->access, request->db, &request->keys[i]) != NULL;
    reply_int(request, count);
}

/* Also for a client whose reads leave no trace: this is how it says that a key is in use. */
static void cmd_touch(struct request *request)
{
    bool no_touch = request->access->no_touch;
    int64_t count = 0;

    request->access->no_touch = false;
    for (uint32_t i = 0; i < request->key_count; i++)
        count += access_read(request->access, request->db, &request->keys[i]) != NULL;
    request->access->no_touch = no_touch;
    reply_int(request, count);
}

static void cmd_mexists(struct request *request)
{
    reply_array(request, request->key_count);
    for (uint32_t i = 0; i < request->key_count; i++)
        reply_bool(request, access_read(request->access, request->db, &request->keys[i]) != NULL);
}

static void cmd_type(struct request *request)
{
    const struct entry *entry = access_peek(request->access, request->db, &request->keys[0]);

    reply_status(request, entry != NULL ? request->access->store->types[entry->type].name : "none");
}

/* --- going elsewhere --- */

/* For the destination of a value. An existing key was deleted before, so the new one is a new key for listeners, too.
 * The caller sends the event itself: others may come first. */
static void arrive(struct change *to, bool replaced)
{
    change_end(to, EVENT_GENERIC | EVENT_REPLACES, NULL);
    if (replaced)
        access_event(to->access, to->db, to->key, EVENT_NEW, "new");
}

static void move_value(struct request *request, unsigned to_db, const struct key *to_key, const char *from_event,
                       const char *to_event)
{
    struct access *access = request->access;
    const struct key *from_key = &request->keys[0];
    bool replaced = access_probe(access, to_db, to_key) != NULL;
    const struct entry *entry = access_probe(access, request->db, from_key);
    struct change from, to;

    assert(entry != NULL); /* the caller has looked */
    change_begin(&from, access, request->db, from_key);
    change_begin(&to, access, to_db, to_key);
    change_move_value(&to, &from, entry_expire_ms(entry));
    arrive(&to, replaced);
    change_end(&from, EVENT_GENERIC, from_event);
    access_event(access, to_db, to_key, EVENT_GENERIC, to_event);
    operation_add_delete(request, request->db, from_key->name);
    operation_add_value(request, to_db, to_key);
}

/* False: there is no such key to rename, which was replied. */
static bool check_source(struct request *request)
{
    if (access_find(request->access, request->db, &request->keys[0]) != NULL)
        return true;
    reply_error(request, "ERR no such key");
    return false;
}

static bool is_same_key(const struct request *request)
{
    return slice_equal(request->keys[0].name, request->keys[1].name);
}

static void cmd_rename(struct request *request)
{
    if (!check_source(request))
        return;
    if (!is_same_key(request))
        move_value(request, request->db, &request->keys[1], "rename_from", "rename_to");
    reply_ok(request);
}

static void cmd_renamenx(struct request *request)
{
    if (!check_source(request))
        return;
    if (is_same_key(request) || access_find(request->access, request->db, &request->keys[1]) != NULL) {
        reply_int(request, 0);
        return;
    }
    move_value(request, request->db, &request->keys[1], "rename_from", "rename_to");
    reply_int(request, 1);
}

static void reply_same_object(struct request *request)
{
    reply_error(request, "ERR source and destination objects are the same");
}

static bool move_find_databases(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    (void)args, (void)arg_count;
    key_positions_add(positions, 2, 0);
    return true;
}

static void cmd_move(struct request *request)
{
    const struct key *key = &request->keys[0];
    unsigned db;

    if (!request_arg_db(request, 2, &db, NULL))
        return;
    if (db == request->db) {
        reply_same_object(request);
        return;
    }
    if (access_find(request->access, request->db, key) == NULL || access_find(request->access, db, key) != NULL) {
        reply_int(request, 0);
        return;
    }
    move_value(request, db, key, "move_from", "move_to");
    reply_int(request, 1);
}

/* All that are given, as the last one counts. */
static bool copy_find_databases(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    for (uint32_t i = 3; i < arg_count; i++) {
        if (slice_equal_text_nocase(args[i], "REPLACE"))
            continue;
        if (!slice_equal_text_nocase(args[i], "DB") || i + 1 == arg_count)
            return false;
        key_positions_add(positions, ++i, 0);
    }
    return true;
}

static bool parse_copy_options(struct request *request, unsigned *db, bool *replace)
{
    *db = request->db;
    *replace = false;
    for (uint32_t i = 3; i < request->arg_count; i++) {
        if (request_arg_is(request, i, "REPLACE")) {
            *replace = true;
        } else if (request_arg_is(request, i, "DB") && i + 1 < request->arg_count) {
            if (!request_arg_db(request, ++i, db, NULL))
                return false;
        } else {
            reply_syntax_error(request);
            return false;
        }
    }
    return true;
}

static void cmd_copy(struct request *request)
{
    struct access *access = request->access;
    const struct key *to_key = &request->keys[1];
    const struct entry *from;
    struct change to;
    unsigned db;
    bool replace, there;

    if (!parse_copy_options(request, &db, &replace))
        return;
    if (db == request->db && is_same_key(request)) {
        reply_same_object(request);
        return;
    }
    from = access_read(access, request->db, &request->keys[0]);
    if (from == NULL) {
        reply_int(request, 0);
        return;
    }
    there = access_find(access, db, to_key) != NULL;
    if (there && !replace) {
        reply_int(request, 0);
        return;
    }
    change_begin(&to, access, db, to_key);
    change_copy_value(&to, from, entry_expire_ms(from));
    arrive(&to, there);
    access_event(access, db, to_key, EVENT_GENERIC, "copy_to");
    operation_add_value(request, db, to_key);
    reply_int(request, 1);
}

/* --- OBJECT --- */

/* Looks at a key without touching it; it counts as a hit or a miss, but is no event. NULL: null was replied. */
static const struct entry *object_entry(struct request *request)
{
    struct access *access = request->access;
    const struct entry *entry = access_probe(access, request->db, &request->keys[0]);

    counter_add(entry != NULL ? &access->counters->keyspace_hits : &access->counters->keyspace_misses, 1);
    if (entry == NULL)
        reply_null(request);
    return entry;
}

static void cmd_object_encoding(struct request *request)
{
    const struct entry *entry = object_entry(request);

    if (entry != NULL)
        reply_text(request, entry_encoding_name(entry));
}

static bool counts_uses(const struct request *request)
{
    return request->access->counts_uses;
}

static void cmd_object_freq(struct request *request)
{
    const struct entry *entry = object_entry(request);
    const struct lru_lfu_rule rule = {(uint32_t)OPTION_GET(option_lfu_log_factor),
                                      (uint32_t)OPTION_GET(option_lfu_decay_time)};

    if (entry == NULL)
        return;
    if (counts_uses(request))
        reply_int(request, lru_lfu_count(entry->clock, request->access->now_ms, rule));
    else
        reply_error(request, "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note "
                             "that when switching between policies at runtime LRU and LFU data will take some time to "
                             "adjust.");
}

static void reply_idle_seconds(struct request *request, const struct entry *entry)
{
    if (counts_uses(request))
        reply_error(request, "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when "
                             "switching between policies at runtime LRU and LFU data will take some time to adjust.");
    else
        reply_int(request, (request->access->clock - entry->clock) & 0xFFFFFF);
}

static void cmd_object_idletime(struct request *request)
{
    const struct entry *entry = object_entry(request);

    if (entry != NULL)
        reply_idle_seconds(request, entry);
}

int64_t object_refcount(const struct entry *entry)
{
    enum { SMALL_INTEGERS = 10000 };
    bool clocks_differ = OPTION_GET(option_maxmemory) != 0 &&
                         (OPTION_GET(option_maxmemory_policy) & (POLICY_LRU | POLICY_LFU)) != 0;

    if (clocks_differ || !entry_is_int(entry) || entry_int(entry) < 0 || entry_int(entry) >= SMALL_INTEGERS)
        return 1;
    return INT32_MAX;
}

static void cmd_object_refcount(struct request *request)
{
    const struct entry *entry = object_entry(request);

    if (entry != NULL)
        reply_int(request, object_refcount(entry));
}

/* The time of the key's stamp; without one nobody keeps it, and the last use is the closest there is. */
static void cmd_object_lastmodified(struct request *request)
{
    const struct entry *entry = object_entry(request);

    if (entry == NULL)
        return;
    if (entry_version(entry) != 0)
        reply_int(request, MAX(request->access->now_ms - stamp_ms(version_stamp(entry_version(entry))), 0) / 1000);
    else
        reply_idle_seconds(request, entry);
}

static void cmd_object_help(struct request *request)
{
    static const char *const lines[] = {
        "ENCODING <key>",
        "    Return the encoding of the value.",
        "FREQ <key>",
        "    Return how often the key is used, on a logarithmic scale. Needs an LFU",
        "    maxmemory policy.",
        "IDLETIME <key>",
        "    Return the seconds since the last use of the key.",
        "LASTMODIFIED <key>",
        "    Return the seconds since the last change of the key, as far as known.",
        "REFCOUNT <key>",
        "    Return the number of references to the value.",
    };

    reply_help(request, lines, countof(lines));
}

/* --- beside the keys --- */

static void cmd_time(struct request *request)
{
    enum { US_A_SECOND = 1000000 };
    int64_t now_us = clock_wall_us();

    reply_array(request, 2);
    resp_write_bulk_int(request->out, now_us / US_A_SECOND);
    resp_write_bulk_int(request->out, now_us % US_A_SECOND);
}

/* A promise that reads to come see all writes so far: here every read does. */
static void cmd_lfence(struct request *request)
{
    reply_ok(request);
}

/* --- rows --- */

#define KEYS_ROW(name_, run_, arity_, flags_, categories_, keys_, since_, complexity_, syntax_, summary_, ...) \
    {                                                                                                          \
        .name = (name_), .run = (run_), .arity = (arity_), .access = ACCESS_STRIPED, .flags = (flags_),        \
        .categories = (categories_), .keys = (keys_), .group = "generic", .since = (since_),                   \
        .complexity = (complexity_), .syntax = (syntax_), .summary = (summary_), ##__VA_ARGS__                 \
    }
#define DELETE_ROW(name_, run_, flags_, categories_, since_, syntax_, summary_)                                 \
    KEYS_ROW(name_, run_, -2, flags_, categories_, "RM,DELETE@index:1@range:-1,1,0", since_, "O(N) for N keys", \
             syntax_, summary_, .tips = "request_policy:multi_shard response_policy:agg_sum")
#define OBJECT_ROW(name_, run_, since_, syntax_, summary_)                                                           \
    KEYS_ROW(name_, run_, 3, "readonly", "@keyspace @read @slow", "RO@index:2@range:0,1,0", since_, "O(1)", syntax_, \
             summary_, .tips = "nondeterministic_output")

/* clang-format off */
static const struct command_row object_commands[] = {
    OBJECT_ROW("encoding", cmd_object_encoding, "2.2.3", "OBJECT ENCODING key", "Returns the encoding of a value."),
    OBJECT_ROW("freq", cmd_object_freq, "4.0.0", "OBJECT FREQ key", "Returns how frequently a key is used (LFU)."),
    OBJECT_ROW("idletime", cmd_object_idletime, "2.2.3", "OBJECT IDLETIME key",
               "Returns the time since the last use of a key (LRU)."),
    OBJECT_ROW("lastmodified", cmd_object_lastmodified, "5.1.0", "OBJECT LASTMODIFIED key",
               "Returns the time since the last change of a key."),
    OBJECT_ROW("refcount", cmd_object_refcount, "2.2.3", "OBJECT REFCOUNT key",
               "Returns the number of references to a value."),
    {.name = "help", .run = cmd_object_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
     .categories = "@keyspace @slow", .group = "generic", .since = "6.2.0", .summary = "Explains the subcommands.",
     .complexity = "O(1)", .syntax = "OBJECT HELP"},
    {.name = NULL},
};
/* clang-format on */

/* clang-format off */
const struct command_row keys_commands[] = {
    DELETE_ROW("del", cmd_del, "write", "@keyspace @write @slow", "1.0.0", "DEL key [key ...]", "Deletes keys."),
    DELETE_ROW("unlink", cmd_unlink, "write fast", "@keyspace @write @fast", "4.0.0", "UNLINK key [key ...]",
               "Deletes keys. The background thread frees large values."),
    DELETE_ROW("expdel", cmd_expdel, "write", "@keyspace @write @slow", "5.1.0", "EXPDEL key [key ...]",
               "Deletes keys."),
    KEYS_ROW("exists", cmd_exists, -2, "readonly fast", "@keyspace @read @fast", "RO@index:1@range:-1,1,0", "1.0.0",
             "O(N) for N keys", "EXISTS key [key ...]", "Returns how many of the keys exist.",
             .history = "3.0.3=Several keys.", .tips = "request_policy:multi_shard response_policy:agg_sum"),
    KEYS_ROW("keydb.mexists", cmd_mexists, -2, "readonly fast", "@keyspace @read @fast", "RO@index:1@range:-1,1,0",
             "6.0.13", "O(N) for N keys", "KEYDB.MEXISTS key [key ...]", "Checks for each key whether it exists."),
    KEYS_ROW("touch", cmd_touch, -2, "readonly fast", "@keyspace @read @fast", "RO@index:1@range:-1,1,0", "3.2.1",
             "O(N) for N keys", "TOUCH key [key ...]", "Updates the last use of keys and returns how many exist.",
             .tips = "request_policy:multi_shard response_policy:agg_sum"),
    KEYS_ROW("type", cmd_type, 2, "readonly fast", "@keyspace @read @fast", "RO@index:1@range:0,1,0", "1.0.0", "O(1)",
             "TYPE key", "Returns the type of the value of a key."),
    KEYS_ROW("rename", cmd_rename, 3, "write", "@keyspace @write @slow",
             "RW,ACCESS,DELETE@index:1@range:0,1,0 OW,UPDATE@index:2@range:0,1,0", "1.0.0", "O(1)",
             "RENAME key newkey", "Renames a key and overwrites the new name."),
    KEYS_ROW("renamenx", cmd_renamenx, 3, "write fast", "@keyspace @write @fast",
             "RW,ACCESS,DELETE@index:1@range:0,1,0 OW,INSERT@index:2@range:0,1,0", "1.0.0", "O(1)",
             "RENAMENX key newkey", "Renames a key if the new name does not exist.",
             .history = "3.2.0=Two equal names are no error."),
    KEYS_ROW("copy", cmd_copy, -3, "write denyoom", "@keyspace @write @slow",
             "RO,ACCESS@index:1@range:0,1,0 OW,UPDATE@index:2@range:0,1,0", "6.2.0",
             "O(N) for N elements of a value, O(1) for a string",
             "COPY source destination [DB destination-db] [REPLACE]", "Copies a value to another key.",
             .find_databases = copy_find_databases),
    KEYS_ROW("move", cmd_move, 3, "write fast", "@keyspace @write @fast", "RW,ACCESS,UPDATE@index:1@range:0,1,0",
             "1.0.0", "O(1)", "MOVE key db", "Moves a key to another database.",
             .find_databases = move_find_databases),
    {.name = "object", .arity = -2, .access = ACCESS_STRIPED, .categories = "@slow", .group = "generic",
     .since = "2.2.3", .summary = "Container for commands about the internals of values.", .complexity = "O(1)",
     .syntax = "OBJECT subcommand [arg ...]", .subcommands = object_commands},
    {.name = "lfence", .run = cmd_lfence, .arity = 1, .access = ACCESS_FREE, .flags = "readonly stale",
     .categories = "@read @slow", .group = "generic", .since = "6.3.0",
     .summary = "Makes the reads that follow see all earlier writes.", .complexity = "O(1)", .syntax = "LFENCE"},
    {.name = "time", .run = cmd_time, .arity = 1, .access = ACCESS_FREE, .flags = "loading stale fast",
     .categories = "@fast", .group = "server", .since = "2.6.0",
     .summary = "Returns the Unix time in seconds and microseconds.", .complexity = "O(1)", .syntax = "TIME",
     .tips = "nondeterministic_output"},
    {.name = NULL},
};
/* clang-format on */
