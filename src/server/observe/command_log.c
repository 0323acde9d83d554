#include "server/observe/command_log.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "server/config/config.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/worker.h"

#include <stdio.h>
#include <string.h>

enum { REMARK_BYTES = 64 };

_Atomic uint64_t command_log_attention = UINT64_MAX;      /* global: see command_log.h */
static _Atomic int64_t option_request_larger_than;        /* global: option storage; -1 is UINT64_MAX */
static _Atomic int64_t option_reply_larger_than;          /* global: likewise */
static _Atomic int64_t option_max_len[COMMAND_LOG_KINDS]; /* global: option storage */
static _Atomic int64_t option_entry_max_argc;             /* global: option storage */
static _Atomic int64_t option_entry_max_string_len;       /* global: option storage */

struct entries {
    struct command_log_entry *newest;
    size_t size;
    uint64_t next_id;
};

/* Since start or CONFIG RESETSTAT. */
struct slow_sums {
    uint64_t count, sum_us, most_us;
};

static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY */
    struct slow_sums slow GUARDED_BY(lock);
    struct entries entries[COMMAND_LOG_KINDS] GUARDED_BY(lock);
    int sizes_wanted_by GUARDED_BY(lock); /* number of parties */
} command_log;

/* ------------------------------------------------------------------------------------------------ making entries -- */

/* How many arguments of how many bytes an entry shows. */
struct limits {
    uint32_t args;
    size_t bytes;
};

struct shown {
    struct slice bytes;
    char remark[REMARK_BYTES]; /* behind the bytes */
};

static struct limits limits_now(void)
{
    return (struct limits){(uint32_t)OPTION_GET(option_entry_max_argc),
                           (size_t)OPTION_GET(option_entry_max_string_len)};
}

static void show_arg(const struct request *request, uint32_t index, struct limits limits, struct shown *shown)
{
    struct slice arg = request->args[index];

    assert(index < request->arg_count);
    shown->remark[0] = '\0';
    if (index == limits.args - 1 && request->arg_count > limits.args) {
        arg.size = 0;
        snprintf(shown->remark, REMARK_BYTES, "... (%u more arguments)", request->arg_count - index);
    } else if (request_is_redacted(request, index)) {
        arg = SLICE("(redacted)");
    } else if (arg.size > limits.bytes) {
        snprintf(shown->remark, REMARK_BYTES, "... (%zu more bytes)", arg.size - limits.bytes);
        arg.size = limits.bytes;
    }
    shown->bytes = arg;
}

static char *put(char **at, struct slice bytes)
{
    char *begin = *at;

    if (bytes.size != 0)
        memcpy(begin, bytes.data, bytes.size);
    *at = begin + bytes.size;
    return begin;
}

static size_t shown_bytes(const struct request *request, uint32_t count, struct limits limits)
{
    struct shown shown;
    size_t size = 0;

    for (uint32_t i = 0; i < count; i++) {
        show_arg(request, i, limits, &shown);
        size += shown.bytes.size + strlen(shown.remark);
    }
    return size;
}

static struct command_log_entry *entry_make(const struct request *request, uint64_t value)
{
    const struct client_card *card = &request->client->card;
    const struct limits limits = limits_now();
    const uint32_t count = MIN(request->arg_count, limits.args);
    const struct slice address = {card->address, strlen(card->address) + 1};
    const struct slice name = slice_from_text(card->name != NULL ? card->name : "");
    const size_t size = shown_bytes(request, count, limits) + address.size + name.size + 1;
    struct command_log_entry *entry = mem_alloc(sizeof(*entry) + count * sizeof(struct slice) + size);
    char *at = (char *)&entry->args[count];

    *entry =
        (struct command_log_entry){.refs = 1, .time_s = clock_wall_us() / 1000000, .value = value, .arg_count = count};
    for (uint32_t i = 0; i < count; i++) {
        struct shown shown;
        char *begin;

        show_arg(request, i, limits, &shown);
        begin = put(&at, shown.bytes);
        put(&at, slice_from_text(shown.remark));
        entry->args[i] = slice_make(begin, (size_t)(at - begin));
    }
    entry->address = put(&at, address);
    entry->name = put(&at, name);
    *at = '\0';
    assert(at + 1 == (char *)&entry->args[count] + size);
    return entry;
}

/* ------------------------------------------------------------------------------------------------------ the log -- */

void command_log_release(struct command_log_entry *entry)
{
    uint32_t before = atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel);

    assert(before != 0);
    if (before == 1)
        mem_free(entry);
}

static void release_chain(struct command_log_entry *entry)
{
    while (entry != NULL) {
        struct command_log_entry *older = entry->older;

        command_log_release(entry);
        entry = older;
    }
}

/* Removes the entries beyond the limit. The lock is held. */
static struct command_log_entry *cut_locked(struct entries *entries, size_t most) REQUIRES(command_log.lock)
{
    struct command_log_entry **link = &entries->newest, *rest;

    spinlock_assert_held(&command_log.lock);
    if (entries->size <= most)
        return NULL;
    for (size_t i = 0; i < most; i++)
        link = &(*link)->older;
    rest = *link;
    assert(rest != NULL);
    *link = NULL;
    entries->size = most;
    return rest;
}

static void add_slow_locked(uint64_t duration_us) REQUIRES(command_log.lock)
{
    spinlock_assert_held(&command_log.lock);
    command_log.slow.count++;
    command_log.slow.sum_us += duration_us;
    command_log.slow.most_us = MAX(command_log.slow.most_us, duration_us);
}

void command_log_add(enum command_log_kind kind, const struct request *request, uint64_t value)
{
    struct command_log_entry *entry, *rest;
    struct entries *entries = &command_log.entries[kind];
    const size_t most = (size_t)OPTION_GET(option_max_len[kind]);

    worker_assert_self(request->worker);
    entry = entry_make(request, value);
    spinlock_acquire(&command_log.lock);
    if (kind == COMMAND_LOG_SLOW)
        add_slow_locked(value);
    entry->id = entries->next_id++;
    entry->older = entries->newest;
    entries->newest = entry;
    entries->size++;
    rest = cut_locked(entries, most);
    spinlock_release(&command_log.lock);
    release_chain(rest);
}

uint64_t command_log_request_bytes(const struct request *request)
{
    char header[RESP_HEADER_BYTES];
    uint64_t bytes = (uint64_t)(resp_encode_header(header, '*', request->arg_count) - header);

    for (uint32_t i = 0; i < request->arg_count; i++) {
        const size_t size = request->args[i].size;

        bytes += (uint64_t)(resp_encode_header(header, '$', (int64_t)size) - header) + size + 2;
    }
    return bytes;
}

static void tell(enum command_log_kind kind, const struct request *request, uint64_t bytes, int64_t least)
{
    if (bytes >= (uint64_t)least && (request->command->flags & COMMAND_SKIP_SLOWLOG) == 0)
        command_log_add(kind, request, bytes);
}

void command_log_tell_request(const struct request *request)
{
    worker_assert_self(request->worker);
    tell(COMMAND_LOG_LARGE_REQUEST, request, command_log_request_bytes(request),
         OPTION_GET(option_request_larger_than));
}

void command_log_tell_reply(const struct request *request, uint64_t bytes)
{
    worker_assert_self(request->worker);
    tell(COMMAND_LOG_LARGE_REPLY, request, bytes, OPTION_GET(option_reply_larger_than));
}

struct command_log_entry **command_log_get(enum command_log_kind kind, size_t most, size_t *count)
{
    size_t room = MIN(most, command_log_size(kind));
    struct command_log_entry **entries = mem_alloc((room + 1) * sizeof(struct command_log_entry *)), *entry;

    *count = 0;
    spinlock_acquire(&command_log.lock);
    for (entry = command_log.entries[kind].newest; entry != NULL && *count < room; entry = entry->older) {
        atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
        entries[(*count)++] = entry;
    }
    spinlock_release(&command_log.lock);
    return entries;
}

size_t command_log_size(enum command_log_kind kind)
{
    size_t size;

    spinlock_acquire(&command_log.lock);
    size = command_log.entries[kind].size;
    spinlock_release(&command_log.lock);
    return size;
}

static void cut_to(enum command_log_kind kind, size_t most)
{
    struct command_log_entry *rest;

    spinlock_acquire(&command_log.lock);
    rest = cut_locked(&command_log.entries[kind], most);
    spinlock_release(&command_log.lock);
    release_chain(rest);
}

void command_log_reset(enum command_log_kind kind)
{
    cut_to(kind, 0);
}

/* After a change of what command_log_attention depends on. The lock is held. */
static void apply_attention_locked(void) REQUIRES(command_log.lock)
{
    spinlock_assert_held(&command_log.lock);
    atomic_store_explicit(&command_log_attention,
                          command_log.sizes_wanted_by != 0 ? 0
                                                           : MIN(OPTION_GET_U64(option_request_larger_than),
                                                                 OPTION_GET_U64(option_reply_larger_than)),
                          memory_order_relaxed);
}

void command_log_want_sizes(int change)
{
    assert(change == 1 || change == -1);
    spinlock_acquire(&command_log.lock);
    command_log.sizes_wanted_by += change;
    assert(command_log.sizes_wanted_by >= 0);
    apply_attention_locked();
    spinlock_release(&command_log.lock);
}

void command_log_begin(void)
{
    spinlock_acquire(&command_log.lock);
    apply_attention_locked();
    spinlock_release(&command_log.lock);
}

/* ------------------------------------------------------------------------------------------------------ options -- */

static const char *apply_larger_than(const struct option_row *row)
{
    gate_assert_alone();
    (void)row;
    command_log_begin();
    return NULL;
}

static const char *apply_max_len(const struct option_row *row)
{
    gate_assert_alone();
    (void)row;
    for (enum command_log_kind kind = 0; kind < COMMAND_LOG_KINDS; kind++)
        cut_to(kind, (size_t)OPTION_GET(option_max_len[kind]));
    return NULL;
}

static const struct option_row rows[] = {
    ROW_INT("slowlog-max-len", &option_max_len[COMMAND_LOG_SLOW], 128, 0, INT64_MAX, OPTION_MUTABLE,
            "Largest number of entries in the slow log.", .apply = apply_max_len,
            .alias = "commandlog-slow-execution-max-len"),
    ROW_INT("commandlog-request-larger-than", &option_request_larger_than, 1048576, -1, INT64_MAX, OPTION_MUTABLE,
            "Bytes from which on a request enters the log of large ones; -1: never.", .apply = apply_larger_than),
    ROW_INT("commandlog-large-request-max-len", &option_max_len[COMMAND_LOG_LARGE_REQUEST], 128, 0, INT64_MAX,
            OPTION_MUTABLE, "Largest number of entries in the log of large requests.", .apply = apply_max_len),
    ROW_INT("commandlog-reply-larger-than", &option_reply_larger_than, 1048576, -1, INT64_MAX, OPTION_MUTABLE,
            "Bytes from which on a reply enters the log of large ones; -1: never.", .apply = apply_larger_than),
    ROW_INT("commandlog-large-reply-max-len", &option_max_len[COMMAND_LOG_LARGE_REPLY], 128, 0, INT64_MAX,
            OPTION_MUTABLE, "Largest number of entries in the log of large replies.", .apply = apply_max_len),
    ROW_INT("slowlog-entry-max-argc", &option_entry_max_argc, 32, 1, INT32_MAX, OPTION_MUTABLE,
            "Arguments that an entry of these logs shows; the last one says how many more there are."),
    ROW_INT("slowlog-entry-max-string-len", &option_entry_max_string_len, 128, 0, INT32_MAX, OPTION_MUTABLE,
            "Bytes of an argument that an entry of these logs shows."),
};

static void reset_stat(void)
{
    gate_assert_alone();
    spinlock_acquire(&command_log.lock);
    command_log.slow = (struct slow_sums){0};
    spinlock_release(&command_log.lock);
}

void command_log_setup(void)
{
    gate_assert_main_alone();
    config_on_reset_stat(reset_stat);
    spinlock_init(&command_log.lock, LOCK_REGISTRY);
    config_add_rows(rows, countof(rows));
}

void command_log_teardown(void)
{
    gate_assert_main_alone();
    for (enum command_log_kind kind = 0; kind < COMMAND_LOG_KINDS; kind++)
        command_log_reset(kind);
}

/* --------------------------------------------------------------------------------------------------------- INFO -- */

static void take(void *picture, const struct info_moment *moment)
{
    struct slow_sums *sums = picture;

    (void)moment;
    spinlock_acquire(&command_log.lock);
    *sums = command_log.slow;
    spinlock_release(&command_log.lock);
}

static const struct info_source source = {sizeof(struct slow_sums), .take = take};

const struct info_row command_log_info[] = {
    INFO_FIELD("slowlog_commands_count", &source, struct slow_sums, count),
    INFO_MS("slowlog_commands_time_ms_sum", &source, struct slow_sums, sum_us),
    INFO_MS("slowlog_commands_time_ms_max", &source, struct slow_sums, most_us),
    {0},
};
