#include "commands/debug.h"

#include "base/background.h"
#include "base/glob.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/panic.h"
#include "commands/digest.h"
#include "commands/object.h"
#include "server/client.h"
#include "server/options.h"
#include "server/request.h"
#include "server/server.h"
#include "server/worker.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

enum { POPULATE_VALUE_MOST_BYTES = 512 << 20, RELEASE_STEP_US = 1000 };

struct debug_row {
    const char *name;
    void (*run)(struct request *request);
    uint32_t least, most; /* arguments, with DEBUG and the name */
    enum access_class access;
    uint32_t first_key, last_key; /* 0: none; UINT32_MAX: to the end */
};

/* ----------------------------------------------------------------------------------------------------- the data -- */

/* How long the string is in a saved file that does not compress. */
static size_t serialized_size(const struct entry *entry)
{
    char scratch[ENTRY_INT_TEXT_BYTES];
    struct slice text = entry_string(entry, scratch);
    int64_t number;

    if (text.size <= 11 && number_parse_i64(text, &number) && number >= INT32_MIN && number <= INT32_MAX)
        return number >= INT8_MIN && number <= INT8_MAX ? 2 : number >= INT16_MIN && number <= INT16_MAX ? 3 : 5;
    return text.size + (text.size < 64 ? 1 : text.size < 16384 ? 2 : text.size <= UINT32_MAX ? 5 : 9);
}

static void debug_object(struct request *request)
{
    const struct entry *entry = access_look(request->access, request->db, &request->keys[0]);
    char text[256];

    if (entry == NULL) {
        reply_error(request, "ERR no such key");
        return;
    }
    snprintf(text, sizeof(text),
             "Value at:%p refcount:%lld encoding:%s serializedlength:%zu lru:%u lru_seconds_idle:%u",
             (const void *)entry, (long long)object_refcount(entry), entry_encoding_name(entry), serialized_size(entry),
             (unsigned)entry->clock, (unsigned)((request->access->clock - entry->clock) & 0xFFFFFF));
    reply_status(request, text);
}

static void reply_digest(struct request *request, const struct digest *digest)
{
    char text[DIGEST_TEXT_BYTES];

    digest_format(digest, text);
    reply_status(request, text);
}

static void debug_digest(struct request *request)
{
    struct digest digest;

    digest_all(&digest, request->access);
    reply_digest(request, &digest);
}

static void debug_digest_value(struct request *request)
{
    reply_array(request, request->key_count);
    for (uint32_t i = 0; i < request->key_count; i++) {
        const struct entry *entry = access_look(request->access, request->db, &request->keys[i]);
        struct digest digest = {{0}};

        if (entry != NULL)
            digest_mix_value(&digest, entry);
        reply_digest(request, &digest);
    }
}

static void debug_htstats(struct request *request)
{
    const struct store *store = request->access->store;
    uint64_t slots = 0, keys = 0, bytes = 0, most = 0;
    struct database_totals totals;
    struct buffer text = {0};
    int64_t db;

    if (!request_arg_i64(request, 2, &db))
        return;
    if (db < 0 || db >= (int64_t)store->database_count) {
        reply_error(request, "ERR Out of range database");
        return;
    }
    for (uint32_t i = 0; i <= store->stripe_mask; i++) {
        const struct stripe_db *stripe = stripe_db(&store->stripes[i], (unsigned)db);

        if (stripe == NULL)
            continue;
        slots += table_slot_count(&stripe->keys);
        keys += table_count(&stripe->keys);
        bytes += table_memory_bytes(&stripe->keys);
        most = MAX(most, table_count(&stripe->keys));
    }
    store_database_totals(store, (unsigned)db, &totals);
    buffer_printf(&text,
                  "[Dictionary HT]\n stripes: %u\n table size: %llu\n number of elements: %llu\n"
                  " load: %.2f%%\n memory: %llu\n most elements in a stripe: %llu\n"
                  "[Expires HT]\n number of elements: %llu\n",
                  store->stripe_mask + 1, (unsigned long long)slots, (unsigned long long)keys,
                  slots != 0 ? 100.0 * (double)keys / (double)slots : 0.0, (unsigned long long)bytes,
                  (unsigned long long)most, (unsigned long long)totals.expires);
    reply_verbatim(request, "txt", buffer_slice(&text));
    buffer_fini(&text);
}

/* One key of POPULATE; one that is there stays. */
static void populate_key(struct request *request, struct slice name, struct slice value)
{
    struct key key = key_make(name);
    struct change change;

    if (access_probe(request->access, request->db, &key) != NULL)
        return;
    change_begin(&change, request->access, request->db, &key);
    change_put_string(&change, value, EXPIRE_NEVER);
    change_end(&change, EVENT_STRING, NULL);
}

static void debug_populate(struct request *request)
{
    static const char range_error[] = "ERR value is out of range, must be positive";
    struct slice prefix = request->arg_count > 3 ? request_arg(request, 3) : SLICE("key");
    struct buffer name = {0}, value = {0};
    int64_t count, size = -1; /* -1: as long as the text */

    if (!request_arg_range(request, 2, 0, INT64_MAX, &count, range_error) ||
        (request->arg_count > 4 &&
         !request_arg_range(request, 4, 0, POPULATE_VALUE_MOST_BYTES, &size, range_error)))
        return;
    effect_none(request); /* every server makes its own */
    for (int64_t i = 0; i < count; i++) {
        buffer_clear(&name);
        buffer_append_slice(&name, prefix);
        buffer_append_char(&name, ':');
        buffer_append_i64(&name, i);
        buffer_clear(&value);
        buffer_append_text(&value, "value:");
        buffer_append_i64(&value, i);
        if (size >= 0 && value.size < (size_t)size)
            memset(buffer_reserve(&value, (size_t)size - value.size), 0, (size_t)size - value.size);
        if (size >= 0)
            value.size = (size_t)size;
        populate_key(request, buffer_slice(&name), buffer_slice(&value));
    }
    buffer_fini(&name);
    buffer_fini(&value);
    reply_ok(request);
}

static void debug_set_active_expire(struct request *request)
{
    bool on = !slice_equal_text(request_arg(request, 2), "0");

    atomic_store_explicit(&request->access->store->active_expire, on, memory_order_relaxed);
    reply_ok(request);
}

/* ------------------------------------------------------------------------------------------------- the journal -- */

/* global, guarded by the gate: the reader of DEBUG JOURNAL; open while its journal is not NULL. */
static struct journal_reader journal_reader;

static void journal_start(struct request *request)
{
    if (journal_reader.journal != NULL) {
        reply_error(request, "ERR the journal is being read already");
        return;
    }
    journal_reader_open(&journal_reader, &request->worker->server->journal);
    reply_ok(request);
}

static void journal_stop(struct request *request)
{
    debug_teardown();
    reply_ok(request);
}

static void journal_read(struct request *request)
{
    struct buffer bytes = {0};
    struct journal_view view;

    if (journal_reader.journal == NULL) {
        reply_error(request, "ERR the journal is not being read: DEBUG JOURNAL START comes first");
        return;
    }
    while (journal_reader_next(&journal_reader, &view))
        journal_view_append(&view, &bytes);
    reply_bulk(request, buffer_slice(&bytes));
    buffer_fini(&bytes);
}

static void debug_journal(struct request *request)
{
    if (request_arg_is(request, 2, "start"))
        journal_start(request);
    else if (request_arg_is(request, 2, "read"))
        journal_read(request);
    else if (request_arg_is(request, 2, "stop"))
        journal_stop(request);
    else
        reply_syntax_error(request);
}

void debug_teardown(void)
{
    if (journal_reader.journal == NULL)
        return;
    journal_reader_close(&journal_reader);
    journal_reader.journal = NULL;
}

/* ------------------------------------------------------------------------------------------------- time, the end -- */

/* atomic: how often DEBUG RELEASE was called for each */
static _Atomic uint32_t busy_releases, hold_releases;

/* What is no number is no time; a day is the most. */
static int64_t parse_us(struct slice seconds_text)
{
    double seconds = 0;

    if (!number_parse_double(seconds_text, &seconds) || !(seconds > 0))
        return 0;
    return (int64_t)(MIN(seconds, 86400.0) * 1e6);
}

static void sleep_us(int64_t us)
{
    struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* Until the time is over or somebody calls DEBUG RELEASE. */
static void sleep_until_released(int64_t us, _Atomic uint32_t *releases)
{
    const uint32_t before = atomic_load(releases);

    for (; us > 0 && atomic_load(releases) == before; us -= RELEASE_STEP_US)
        sleep_us(MIN(us, RELEASE_STEP_US));
}

static void debug_release(struct request *request)
{
    if (request_arg_is(request, 2, "busy"))
        atomic_fetch_add(&busy_releases, 1);
    else if (request_arg_is(request, 2, "hold"))
        atomic_fetch_add(&hold_releases, 1);
    else
        return reply_syntax_error(request);
    reply_ok(request);
}

static void debug_sleep(struct request *request)
{
    sleep_us(parse_us(request_arg(request, 2)));
    reply_ok(request);
}

/* A long command on one key: its worker is inside the gate and serves nobody else meanwhile. */
static void debug_busy(struct request *request)
{
    sleep_until_released(parse_us(request_arg(request, 3)), &busy_releases);
    reply_ok(request);
}

/* A stripe that a background thread holds for a while; no worker is kept from its other clients. */
struct hold {
    struct mail mail; /* tells the client's worker that it is over */
    struct worker *worker;
    uint64_t client_id;
    struct stripe *stripe;
    int64_t us;
};

static void hold_over(struct worker *worker, struct mail *mail)
{
    struct hold *hold = container_of(mail, struct hold, mail);
    struct client *client = worker_find_client(worker, hold->client_id);

    if (client != NULL) { /* it may have left */
        resp_write_ok(&client->conn.output);
        client_unblock(client);
    }
    mem_free(hold);
}

static void hold_run(void *argument)
{
    struct hold *hold = argument;
    struct mail *mail = &hold->mail;

    spinlock_acquire(&hold->stripe->lock);
    sleep_until_released(hold->us, &hold_releases);
    stripe_release(hold->worker->server->store, hold->stripe);
    worker_post(hold->worker, &mail);
}

static void debug_hold(struct request *request)
{
    const struct key key = key_make(request_arg(request, 2));
    struct hold *hold;

    if (request->in_exec) {
        reply_error(request, "ERR DEBUG HOLD is not for transactions");
        return;
    }
    hold = mem_alloc_zero(sizeof(*hold));
    hold->mail.deliver = hold_over;
    hold->worker = request->worker;
    hold->client_id = request->client->id;
    hold->stripe = &request->worker->server->store->stripes[access_stripe_of(request->access, &key)];
    hold->us = parse_us(request_arg(request, 3));
    client_block(request->client);
    background_submit(BACKGROUND_OTHER, hold_run, hold);
}

static void debug_segfault(struct request *request)
{
    volatile char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)request;
    *page = 1;
}

static void debug_panic(struct request *request)
{
    (void)request;
    panic("DEBUG PANIC was called");
}

static void debug_assert_failure(struct request *request)
{
    assert(request->arg_count == 0); /* never so: the command asks for a failure */
}

/* ------------------------------------------------------------------------------------------------ text and types -- */

static void debug_stringmatch_len(struct request *request)
{
    reply_int(request, glob_match(request_arg(request, 2), request_arg(request, 3), false) ? 1 : 0);
}

static void debug_error(struct request *request)
{
    struct buffer text = {0};

    buffer_append_slice(&text, request_arg(request, 2));
    reply_error(request, buffer_text(&text));
    buffer_fini(&text);
}

static void debug_log(struct request *request)
{
    struct slice text = request_arg(request, 2);

    log_warning("DEBUG LOG: %.*s", (int)MIN(text.size, (size_t)LOG_MESSAGE_LIMIT_BYTES), text.data);
    reply_ok(request);
}

static void append_report(void *context, const char *text)
{
    buffer_append_text(context, text);
}

static void debug_jmap(struct request *request)
{
    struct buffer text = {0};

    mem_report(append_report, &text);
    reply_verbatim(request, "txt", buffer_slice(&text));
    buffer_fini(&text);
}

static void protocol_string(struct request *request) { reply_text(request, "Hello World"); }
static void protocol_integer(struct request *request) { reply_int(request, 12345); }
static void protocol_double(struct request *request)
{
    if (request->proto == 2)
        reply_text(request, "3.141");
    else
        resp_write_raw(request->out, SLICE(",3.141\r\n")); /* the shortest digits, whatever doubles look like else */
}
static void protocol_bignum(struct request *request)
{
    resp_write_bignum(request->out, request->proto, SLICE("1234567999999999999999999999999999999"));
}
static void protocol_null(struct request *request) { reply_null(request); }
static void protocol_numbers(struct request *request)
{
    for (int64_t i = 0; i < 3; i++)
        reply_int(request, i);
}
static void protocol_array(struct request *request)
{
    reply_array(request, 3);
    protocol_numbers(request);
}
static void protocol_set(struct request *request)
{
    reply_set(request, 3);
    protocol_numbers(request);
}
static void protocol_map(struct request *request)
{
    reply_map(request, 3);
    for (int64_t i = 0; i < 3; i++) {
        reply_int(request, i);
        reply_bool(request, i == 1);
    }
}
static void protocol_attrib(struct request *request)
{
    if (request->proto > 2) {
        resp_write_attribute(request->out, request->proto, 1);
        reply_text(request, "key-popularity");
        reply_array(request, 2);
        reply_text(request, "key:123");
        reply_int(request, 90);
    }
    reply_text(request, "Some real reply following the attribute");
}
static void protocol_push(struct request *request)
{
    if (request->proto == 2) {
        reply_error(request, "ERR RESP2 is not supported by this command");
        return;
    }
    resp_write_push(request->out, request->proto, 2);
    reply_text(request, "server-cpu-usage");
    reply_int(request, 42);
    reply_text(request, "Some real reply following the push reply");
}
static void protocol_verbatim(struct request *request)
{
    reply_verbatim(request, "txt", SLICE("This is a verbatim\nstring"));
}
static void protocol_true(struct request *request) { reply_bool(request, true); }
static void protocol_false(struct request *request) { reply_bool(request, false); }

static void debug_protocol(struct request *request)
{
    static const struct {
        const char *name;
        void (*reply)(struct request *request);
    } types[] = {
        {"string", protocol_string}, {"integer", protocol_integer}, {"double", protocol_double},
        {"bignum", protocol_bignum}, {"null", protocol_null},       {"array", protocol_array},
        {"set", protocol_set},       {"map", protocol_map},         {"attrib", protocol_attrib},
        {"push", protocol_push},     {"verbatim", protocol_verbatim}, {"true", protocol_true},
        {"false", protocol_false},
    };

    for (size_t i = 0; i < countof(types); i++) {
        if (request_arg_is(request, 2, types[i].name)) {
            types[i].reply(request);
            return;
        }
    }
    reply_error(request, "ERR Wrong protocol type name. Please use one of the following: "
                         "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false");
}

/* -------------------------------------------------------------------------------------------------- the command -- */

static void debug_help(struct request *request)
{
    static const char *const lines[] = {
        "ASSERT",
        "    Fail an assertion: the server ends.",
        "BUSY <key> <seconds>",
        "    Work that long, or until RELEASE, on <key>: a worker is kept from everything else.",
        "DIGEST",
        "    A fingerprint of all data, equal on servers that hold the same.",
        "DIGEST-VALUE <key> [<key> ...]",
        "    Fingerprints of the values of these keys.",
        "ERROR <string>",
        "    Reply with <string> as an error.",
        "HOLD <key> <seconds>",
        "    Hold the lock that guards <key> that long or until RELEASE: commands on it wait, no worker is kept.",
        "HTSTATS <dbid>",
        "    How full the hash tables of a database are.",
        "JMAP",
        "    The memory allocator's report.",
        "JOURNAL (START|READ|STOP)",
        "    Record the effects of commands, and return those since the last call.",
        "LOG <message>",
        "    Write <message> to the server log.",
        "OBJECT <key>",
        "    How the value of <key> is stored.",
        "PANIC",
        "    End the server as a broken invariant does.",
        "POPULATE <count> [<prefix>] [<size>]",
        "    Create <count> string keys <prefix>:<number> that are not there yet, only on this server.",
        "    The prefix is \"key\" if none is given; values have <size> bytes.",
        "PROTOCOL <type>",
        "    A sample reply of a type: string, integer, double, bignum, null, array, set, map, attrib, push,",
        "    verbatim, true, false.",
        "RELEASE (BUSY|HOLD)",
        "    End all that BUSY or HOLD do at the moment.",
        "SEGFAULT",
        "    End the server by an access to memory it must not touch.",
        "SET-ACTIVE-EXPIRE <0|1>",
        "    With 0, keys whose time is over stay until somebody asks for them.",
        "SLEEP <seconds>",
        "    Stop the whole server for a while. Decimals are allowed.",
        "STRINGMATCH-LEN <pattern> <string>",
        "    Whether the pattern, as KEYS understands it, fits the string.",
    };

    reply_help(request, lines, countof(lines));
}

static const struct debug_row rows[] = {
    /* name               run                    least       most  access            keys           */
    {"assert",            debug_assert_failure,  2, UINT32_MAX, ACCESS_FREE,      0, 0},
    {"busy",              debug_busy,            4,          4, ACCESS_STRIPED,   2, 2},
    {"digest",            debug_digest,          2,          2, ACCESS_EXCLUSIVE, 0, 0},
    {"digest-value",      debug_digest_value,    2, UINT32_MAX, ACCESS_STRIPED,   2, UINT32_MAX},
    {"error",             debug_error,           3,          3, ACCESS_FREE,      0, 0},
    {"help",              debug_help,            2,          2, ACCESS_FREE,      0, 0},
    {"hold",              debug_hold,            4,          4, ACCESS_FREE,      0, 0},
    {"htstats",           debug_htstats,         3,          3, ACCESS_EXCLUSIVE, 0, 0},
    {"jmap",              debug_jmap,            2,          2, ACCESS_FREE,      0, 0},
    {"journal",           debug_journal,         3,          3, ACCESS_EXCLUSIVE, 0, 0},
    {"log",               debug_log,             3,          3, ACCESS_FREE,      0, 0},
    {"object",            debug_object,          3,          3, ACCESS_STRIPED,   2, 2},
    {"panic",             debug_panic,           2, UINT32_MAX, ACCESS_FREE,      0, 0},
    {"populate",          debug_populate,        3,          5, ACCESS_EXCLUSIVE, 0, 0},
    {"protocol",          debug_protocol,        3,          3, ACCESS_FREE,      0, 0},
    {"release",           debug_release,         3,          3, ACCESS_FREE,      0, 0},
    {"segfault",          debug_segfault,        2, UINT32_MAX, ACCESS_FREE,      0, 0},
    {"set-active-expire", debug_set_active_expire, 3,        3, ACCESS_FREE,      0, 0},
    {"sleep",             debug_sleep,           3,          3, ACCESS_EXCLUSIVE, 0, 0},
    {"stringmatch-len",   debug_stringmatch_len, 4,          4, ACCESS_FREE,      0, 0},
};

static const struct debug_row *row_of(const struct slice *args, uint32_t arg_count)
{
    for (size_t i = 0; i < countof(rows); i++) {
        if (slice_equal_text_nocase(args[1], rows[i].name))
            return arg_count >= rows[i].least && arg_count <= rows[i].most ? &rows[i] : NULL;
    }
    return NULL;
}

enum access_class debug_access_of(const struct slice *args, uint32_t arg_count)
{
    const struct debug_row *row = row_of(args, arg_count);

    return row != NULL ? row->access : ACCESS_FREE;
}

bool debug_find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    const struct debug_row *row = row_of(args, arg_count);

    if (row == NULL || row->first_key == 0)
        return false;
    for (uint32_t i = row->first_key; i <= MIN(row->last_key, arg_count - 1); i++)
        key_positions_add(positions, i, KEY_RO | KEY_ACCESS);
    return true;
}

void cmd_debug(struct request *request)
{
    const struct debug_row *row = row_of(request->args, request->arg_count);
    struct slice word = request_arg(request, 1);

    if (row == NULL)
        reply_errorf(request,
                     "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try DEBUG HELP.",
                     (int)MIN(word.size, (size_t)128), word.data);
    else
        row->run(request);
}
