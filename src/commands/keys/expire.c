#include "commands/keys/expire.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/number.h"
#include "commands/shared/families.h"
#include "commands/shared/operations.h"
#include "server/config/options.h"
#include "store/jobs.h"
#include "store/subkey_ttl.h"

enum { MS_A_SECOND = 1000 };

/* ----------------------------------------------------------------------------------------------- for all families */

static const struct {
    const char *word;
    size_t size;
    enum lifetime lifetime;
} lifetimes[] = {
    {"EX", 2, LIFETIME_SECONDS}, {"PX", 2, LIFETIME_MS},        {"EXAT", 4, LIFETIME_AT_SECONDS},
    {"PXAT", 4, LIFETIME_AT_MS}, {"KEEPTTL", 7, LIFETIME_KEEP}, {"PERSIST", 7, LIFETIME_PERSIST},
};

enum lifetime lifetime_of_word(struct slice word)
{
    for (size_t i = 0; i < countof(lifetimes); i++) {
        if (slice_equal_nocase(word, slice_make(lifetimes[i].word, lifetimes[i].size)))
            return lifetimes[i].lifetime;
    }
    return LIFETIME_NONE;
}

static bool is_seconds(enum lifetime lifetime)
{
    return lifetime == LIFETIME_SECONDS || lifetime == LIFETIME_AT_SECONDS;
}

static bool is_relative(enum lifetime lifetime)
{
    return lifetime == LIFETIME_SECONDS || lifetime == LIFETIME_MS;
}

static void reply_invalid_time(struct request *request)
{
    reply_errorf(request, "ERR invalid expire time in '%s' command", request->command->row->name);
}

/* False: it does not fit 64 bits. */
static bool deadline_of(const struct request *request, int64_t number, enum lifetime lifetime, int64_t *expire_ms)
{
    if (is_seconds(lifetime) && __builtin_mul_overflow(number, (int64_t)MS_A_SECOND, &number))
        return false;
    if (is_relative(lifetime) && __builtin_add_overflow(number, request->access->now_ms, &number))
        return false;
    *expire_ms = number;
    return true;
}

static bool expire_arg_from(struct request *request, uint32_t index, enum lifetime lifetime, int64_t least,
                            int64_t *expire_ms)
{
    int64_t number;

    if (!request_arg_i64(request, index, &number))
        return false;
    if (number < least || !deadline_of(request, number, lifetime, expire_ms)) {
        reply_invalid_time(request);
        return false;
    }
    return true;
}

bool expire_arg(struct request *request, uint32_t index, enum lifetime lifetime, int64_t *expire_ms)
{
    return expire_arg_from(request, index, lifetime, INT64_MIN, expire_ms);
}

bool expire_arg_positive(struct request *request, uint32_t index, enum lifetime lifetime, int64_t *expire_ms)
{
    return expire_arg_from(request, index, lifetime, 1, expire_ms);
}

void expire_delete(struct request *request, const struct key *key)
{
    const struct slice words[] = {OPTION_IS(option_lazyfree_lazy_expire) ? SLICE("UNLINK") : SLICE("DEL"), key->name};

    if (access_delete_for(request->access, request->db, key, FREE_EXPIRE))
        effect_set(request, words, countof(words));
}

void expire_set(struct request *request, const struct key *key, int64_t expire_ms)
{
    struct change change;

    change_begin(&change, request->access, request->db, key);
    change_expire(&change, expire_ms);
    change_end(&change, EVENT_GENERIC, "expire");
}

bool expire_remove(struct request *request, const struct key *key, const struct entry *entry)
{
    struct change change;

    assert(slice_equal(entry_key(entry), key->name));
    if (entry_expire_ms(entry) == EXPIRE_NEVER)
        return false;
    change_begin(&change, request->access, request->db, key);
    change_expire(&change, EXPIRE_NEVER);
    change_end(&change, EVENT_GENERIC, "persist");
    return true;
}

static bool member_expire_remove(struct request *request, const struct key *key, const struct entry *entry,
                                 struct slice member)
{
    struct change change;

    if (entry_member_expire_ms(entry, member) == EXPIRE_NEVER)
        return false;
    change_begin(&change, request->access, request->db, key);
    change_member_expire(&change, member, EXPIRE_NEVER);
    change_end(&change, EVENT_GENERIC, "persist");
    return true;
}

void expire_effect(struct request *request, int64_t expire_ms, uint32_t first_option)
{
    uint32_t option_count = request->arg_count - first_option;
    struct slice *words = mem_alloc((3 + option_count) * sizeof(struct slice));
    char text[NUMBER_I64_SPACE];

    assert(first_option >= 2 && first_option <= request->arg_count);
    words[0] = SLICE("PEXPIREAT");
    words[1] = request_arg(request, 1);
    words[2] = slice_make(text, number_format_i64(text, expire_ms));
    for (uint32_t i = 0; i < option_count; i++)
        words[3 + i] = request_arg(request, first_option + i);
    effect_set(request, words, 3 + option_count);
    mem_free(words);
}

/* ------------------------------------------------------------------------------------------------------- EXPIRE ... */

struct condition {
    bool nx, xx, gt, lt;
};

static bool parse_condition(struct request *request, struct condition *condition)
{
    *condition = (struct condition){false, false, false, false};
    for (uint32_t i = 3; i < request->arg_count; i++) {
        if (request_arg_is(request, i, "NX")) {
            condition->nx = true;
        } else if (request_arg_is(request, i, "XX")) {
            condition->xx = true;
        } else if (request_arg_is(request, i, "GT")) {
            condition->gt = true;
        } else if (request_arg_is(request, i, "LT")) {
            condition->lt = true;
        } else {
            struct slice word = request_arg(request, i);

            reply_errorf(request, "ERR Unsupported option %.*s", (int)MIN(word.size, (size_t)1024), word.data);
            return false;
        }
    }
    if (condition->nx && (condition->xx || condition->gt || condition->lt)) {
        reply_error(request, "ERR NX and XX, GT or LT options at the same time are not compatible");
        return false;
    }
    if (condition->gt && condition->lt) {
        reply_error(request, "ERR GT and LT options at the same time are not compatible");
        return false;
    }
    return true;
}

/* A key without deadline lives longer than any. */
static bool condition_holds(const struct condition *condition, int64_t current_ms, int64_t wanted_ms)
{
    bool expires = current_ms != EXPIRE_NEVER;

    if (condition->nx && expires)
        return false;
    if (condition->xx && !expires)
        return false;
    if (condition->gt && (!expires || wanted_ms <= current_ms))
        return false;
    return !(condition->lt && expires && wanted_ms >= current_ms);
}

/* The conditions were met here. */
static void operation_expire(struct request *request, int64_t expire_ms)
{
    char text[NUMBER_I64_SPACE];

    operation_add(request,
                  (const struct slice[]){SLICE("PEXPIREAT"), request_arg(request, 1),
                                         slice_make(text, number_format_i64(text, expire_ms))},
                  3);
}

static void expire_command(struct request *request, enum lifetime lifetime)
{
    const struct key *key = &request->keys[0];
    struct condition condition;
    const struct entry *entry;
    int64_t expire_ms;

    if (!parse_condition(request, &condition) || !expire_arg(request, 2, lifetime, &expire_ms))
        return;
    entry = access_find(request->access, request->db, key);
    if (entry == NULL || !condition_holds(&condition, entry_expire_ms(entry), expire_ms)) {
        reply_int(request, 0);
        return;
    }
    if (expire_ms <= request->access->due_ms) {
        expire_delete(request, key);
    } else {
        expire_set(request, key, expire_ms);
        if (lifetime != LIFETIME_AT_MS)
            expire_effect(request, expire_ms, 3);
        if (request->arg_count > 3)
            operation_expire(request, expire_ms);
    }
    reply_int(request, 1);
}

static void cmd_expire(struct request *request)
{
    expire_command(request, LIFETIME_SECONDS);
}

static void cmd_pexpire(struct request *request)
{
    expire_command(request, LIFETIME_MS);
}

static void cmd_expireat(struct request *request)
{
    expire_command(request, LIFETIME_AT_SECONDS);
}

static void cmd_pexpireat(struct request *request)
{
    expire_command(request, LIFETIME_AT_MS);
}

/* ------------------------------------------------------------------------------------------------- TTL, PERSIST ... */

static int64_t seconds_rounded(int64_t ms)
{
    return ms / MS_A_SECOND + (ms % MS_A_SECOND >= MS_A_SECOND / 2);
}

enum { REPLY_NO_KEY = -2, REPLY_NO_DEADLINE = -1 };

/* Reads the deadline, or replies if there is none. False: replied. */
static bool read_deadline(struct request *request, int64_t *expire_ms)
{
    const struct entry *entry = access_peek(request->access, request->db, &request->keys[0]);

    if (entry == NULL) {
        reply_int(request, REPLY_NO_KEY);
        return false;
    }
    if (request->arg_count > 3) {
        reply_error(request, "ERR Invalid arguments");
        return false;
    }
    if (request->arg_count == 3 && entry->type == TYPE_CRON && slice_equal(request_arg(request, 2), entry_key(entry))) {
        *expire_ms = entry_job_ms(entry); /* as KeyDB shows it */
        return true;
    }
    *expire_ms = request->arg_count == 3 ? entry_member_expire_ms(entry, request_arg(request, 2))
                                         : entry_expire_ms(entry);
    if (*expire_ms == EXPIRE_NEVER) {
        reply_int(request, REPLY_NO_DEADLINE);
        return false;
    }
    return true;
}

static int64_t remaining_ms(const struct request *request, int64_t expire_ms)
{
    return MAX(expire_ms - request->access->now_ms, 0);
}

static void cmd_ttl(struct request *request)
{
    int64_t expire_ms;

    if (read_deadline(request, &expire_ms))
        reply_int(request, seconds_rounded(remaining_ms(request, expire_ms)));
}

static void cmd_pttl(struct request *request)
{
    int64_t expire_ms;

    if (read_deadline(request, &expire_ms))
        reply_int(request, remaining_ms(request, expire_ms));
}

static void cmd_expiretime(struct request *request)
{
    int64_t expire_ms;

    if (read_deadline(request, &expire_ms))
        reply_int(request, seconds_rounded(expire_ms));
}

static void cmd_pexpiretime(struct request *request)
{
    int64_t expire_ms;

    if (read_deadline(request, &expire_ms))
        reply_int(request, expire_ms);
}

static void cmd_persist(struct request *request)
{
    const struct key *key = &request->keys[0];
    const struct entry *entry = access_find(request->access, request->db, key);

    if (entry != NULL && request->arg_count > 3) {
        reply_error(request, "ERR Invalid arguments");
        return;
    }
    if (request->arg_count == 3)
        reply_int(request, entry != NULL && member_expire_remove(request, key, entry, request_arg(request, 2)));
    else
        reply_int(request, entry != NULL && expire_remove(request, key, entry));
}

#define CONDITION_HISTORY "7.0.0=The conditions `NX`, `XX`, `GT` and `LT`."
#define EXPIRE_ROW(name_, run_, since_, argument_, summary_)                                                  \
    {                                                                                                         \
        .name = (name_), .run = (run_), .arity = -3, .access = ACCESS_STRIPED, .flags = "write fast",         \
        .categories = "@keyspace @write @fast", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "generic",  \
        .since = (since_), .summary = (summary_), .complexity = "O(1)", .syntax = argument_ " [NX|XX|GT|LT]", \
        .arg_since = "condition:7.0.0", .history = CONDITION_HISTORY                                          \
    }
#define TTL_ROW(name_, run_, arity_, since_, syntax_, summary_, ...)                                           \
    {                                                                                                          \
        .name = (name_), .run = (run_), .arity = (arity_), .access = ACCESS_STRIPED, .flags = "readonly fast", \
        .categories = "@keyspace @read @fast", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "generic",    \
        .since = (since_), .summary = (summary_), .complexity = "O(1)", .syntax = (syntax_), ##__VA_ARGS__     \
    }

/* clang-format off */
const struct command_row expire_commands[] = {
    EXPIRE_ROW("expire", cmd_expire, "1.0.0", "EXPIRE key seconds", "Sets the deadline of a key in seconds from now."),
    EXPIRE_ROW("pexpire", cmd_pexpire, "2.6.0", "PEXPIRE key milliseconds",
               "Sets the deadline of a key in milliseconds from now."),
    EXPIRE_ROW("expireat", cmd_expireat, "1.2.0", "EXPIREAT key unix-time-seconds",
               "Sets the deadline of a key as a Unix time in seconds."),
    EXPIRE_ROW("pexpireat", cmd_pexpireat, "2.6.0", "PEXPIREAT key unix-time-milliseconds",
               "Sets the deadline of a key as a Unix time in milliseconds."),
    TTL_ROW("ttl", cmd_ttl, -2, "1.0.0", "TTL key [member]", "Returns the time to live of a key in seconds.",
            .tips = "nondeterministic_output", .history = "2.8.0=A missing key is told by -2."),
    TTL_ROW("pttl", cmd_pttl, -2, "2.6.0", "PTTL key [member]", "Returns the time to live of a key in milliseconds.",
            .tips = "nondeterministic_output", .history = "2.8.0=A missing key is told by -2."),
    TTL_ROW("expiretime", cmd_expiretime, 2, "7.0.0", "EXPIRETIME key",
            "Returns the deadline of a key as a Unix time in seconds."),
    TTL_ROW("pexpiretime", cmd_pexpiretime, 2, "7.0.0", "PEXPIRETIME key",
            "Returns the deadline of a key as a Unix time in milliseconds."),
    {.name = "persist", .run = cmd_persist, .arity = -2, .access = ACCESS_STRIPED, .flags = "write fast",
     .categories = "@keyspace @write @fast", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "generic",
     .since = "2.2.0", .summary = "Removes the deadline of a key.", .complexity = "O(1)",
     .syntax = "PERSIST key [member]"},
    {.name = NULL},
};
/* clang-format on */
