/* KEYDB.CRON: makes jobs. They are run by server/upkeep/cron_runner.c. */
#include "commands/shared/families.h"

#include "base/mem.h"
#include "base/number.h"
#include "data/cron.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/upkeep/cron_runner.h"

enum { ARG_NAME = 1, ARG_KIND = 2, ARG_TIME = 3 };

/* The parsed arguments: the times, and the position of the script. */
struct wish {
    struct cron_terms terms;
    bool has_start;
    uint32_t script_at;
    uint32_t words_at; /* of keys and arguments; arg_count: there are none */
};

static bool parse_kind(struct request *request, struct wish *wish)
{
    wish->terms.repeats = request_arg_is(request, ARG_KIND, "repeat");
    if (wish->terms.repeats || request_arg_is(request, ARG_KIND, "single"))
        return true;
    reply_syntax_error(request);
    return false;
}

/* [start] delay: a second number says that the first one is the start. */
static bool parse_times(struct request *request, struct wish *wish)
{
    struct cron_terms *terms = &wish->terms;
    int64_t second;

    if (!number_parse_i64(request_arg(request, ARG_TIME), &terms->interval_ms)) {
        reply_error(request, "ERR missing expire time");
        return false;
    }
    terms->start_ms = request->access->now_ms;
    wish->has_start = number_parse_i64(request_arg(request, ARG_TIME + 1), &second);
    if (wish->has_start) {
        terms->start_ms = terms->interval_ms;
        terms->interval_ms = second;
    }
    wish->script_at = ARG_TIME + 1 + wish->has_start;
    if (terms->interval_ms <= 0)
        reply_error(request, "ERR interval must be positive");
    else if (wish->script_at >= request->arg_count)
        reply_error(request, "ERR wrong number of arguments for 'keydb.cron' command");
    return terms->interval_ms > 0 && wish->script_at < request->arg_count;
}

static bool parse_keys(struct request *request, struct wish *wish)
{
    uint32_t count_at = wish->script_at + 1;
    int64_t count = 0;

    wish->words_at = MIN(count_at + 1, request->arg_count);
    if (count_at < request->arg_count && !request_arg_i64(request, count_at, &count))
        return false;
    if (count < 0)
        reply_error(request, "ERR Number of keys can't be negative");
    else if (count > (int64_t)(request->arg_count - wish->words_at))
        reply_error(request, "ERR Missing arguments or numkeys is too big");
    else
        wish->terms.key_count = (uint32_t)count;
    return count >= 0 && count <= (int64_t)(request->arg_count - wish->words_at);
}

/* Others are told the start, so that they have the same job. */
static void tell(struct request *request, const struct wish *wish)
{
    char start[NUMBER_I64_SPACE];
    struct slice *words;

    if (wish->has_start)
        return;
    words = mem_alloc((request->arg_count + 1) * sizeof(*words));
    for (uint32_t i = 0; i < request->arg_count; i++)
        words[i < ARG_TIME ? i : i + 1] = request_arg(request, i);
    words[ARG_TIME] = slice_make(start, number_format_i64(start, wish->terms.start_ms));
    effect_set(request, words, request->arg_count + 1);
    mem_free(words);
}

/* Jobs run with all permissions: users with fewer permissions may not create one. */
static bool may_make(struct request *request)
{
    const struct client *client = request->client;

    if (!cron_runner_is_allowed())
        reply_error(request, "ERR EVAL is disabled by rename-command, so jobs cannot run");
    else if (client != NULL && (client->flags & CLIENT_RESTRICTED) != 0)
        reply_error(request, "NOPERM A job runs with all permissions: only users with all permissions may create one");
    else
        return true;
    return false;
}

static void cmd_cron(struct request *request)
{
    struct wish wish = {.words_at = request->arg_count};
    struct change change;
    struct slice *words;
    uint32_t word_count;

    if (!parse_kind(request, &wish) || !parse_times(request, &wish) || !parse_keys(request, &wish) ||
        !may_make(request))
        return;
    word_count = 1 + request->arg_count - wish.words_at;
    words = mem_alloc(word_count * sizeof(*words));
    words[0] = request_arg(request, wish.script_at);
    for (uint32_t i = 1; i < word_count; i++)
        words[i] = request_arg(request, wish.words_at + i - 1);
    change_begin(&change, request->access, request->db, &request->keys[0]);
    change_put_value(&change, TYPE_CRON, cron_create(&wish.terms, words, word_count), EXPIRE_NEVER);
    change_end(&change, EVENT_GENERIC | EVENT_REPLACES, "keydb.cron");
    mem_free(words);
    tell(request, &wish);
    reply_ok(request);
}

/* clang-format off */
const struct command_row cron_commands[] = {
    {.name = "keydb.cron", .run = cmd_cron, .arity = -5, .access = ACCESS_STRIPED, .flags = "write denyoom",
     .categories = "@write @slow", .keys = "OW,UPDATE@index:1@range:0,1,0", .group = "generic", .since = "5.3.2",
     .summary = "Creates a job: a key with a script that runs at a time, or repeatedly.",
     .complexity = "O(N) for N keys and arguments",
     .syntax = "KEYDB.CRON key (SINGLE|REPEAT) [base-unix-time-milliseconds] delay-milliseconds script "
               "[numkeys [key ...] [arg ...]]"},
    {.name = NULL},
};
/* clang-format on */
