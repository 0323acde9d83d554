/* Parses the arguments of MIGRATE. server/run/migrate.h does the work. */
#include "commands/shared/families.h"

#include "base/mem.h"
#include "server/run/migrate.h"

enum { ARG_HOST = 1, ARG_PORT = 2, ARG_KEY = 3, ARG_DB = 4, ARG_TIMEOUT = 5, ARG_OPTIONS = 6, TIMEOUT_MS = 1000 };

/* The index of the word KEYS, behind which there are only keys; 0: there is none. */
static uint32_t find_keys_word(const struct slice *args, uint32_t arg_count)
{
    for (uint32_t i = ARG_OPTIONS; i < arg_count; i++) {
        if (slice_equal_text_nocase(args[i], "keys"))
            return i;
        if (slice_equal_text_nocase(args[i], "auth"))
            i++;
        else if (slice_equal_text_nocase(args[i], "auth2"))
            i += 2;
    }
    return 0;
}

static bool migrate_find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    const uint32_t flags = KEY_RW | KEY_ACCESS | KEY_DELETE;
    uint32_t word = find_keys_word(args, arg_count);

    if (word != 0 && args[ARG_KEY].size != 0) /* it is refused */
        return false;
    if (word == 0)
        key_positions_add(positions, ARG_KEY, flags);
    for (uint32_t i = word + 1; word != 0 && i < arg_count; i++)
        key_positions_add(positions, i, flags);
    return true;
}

/* One option, from args[*at] on. False: it is none, or a mistake, which was replied. */
static bool parse_option(struct request *request, struct migrate_wish *wish, uint32_t *at)
{
    uint32_t left = request->arg_count - *at - 1;

    if (request_arg_is(request, *at, "copy")) {
        wish->copies = true;
    } else if (request_arg_is(request, *at, "replace")) {
        wish->replaces = true;
    } else if (request_arg_is(request, *at, "auth") && left >= 1) {
        wish->user = (struct slice){0};
        wish->password = request_arg(request, *at + 1);
        request_redact(request, *at + 1);
        *at += 1;
    } else if (request_arg_is(request, *at, "auth2") && left >= 2) {
        wish->user = request_arg(request, *at + 1);
        wish->password = request_arg(request, *at + 2);
        request_redact(request, *at + 1);
        request_redact(request, *at + 2);
        *at += 2;
    } else {
        reply_syntax_error(request);
        return false;
    }
    return true;
}

static bool parse(struct request *request, struct migrate_wish *wish)
{
    int64_t timeout_ms;

    for (uint32_t i = ARG_OPTIONS; i < request->arg_count; i++) {
        if (request_arg_is(request, i, "keys")) {
            if (request_arg(request, ARG_KEY).size == 0)
                break;
            reply_error(request, "ERR When using MIGRATE KEYS option, the key argument must be set to the empty "
                                 "string");
            return false;
        }
        if (!parse_option(request, wish, &i))
            return false;
    }
    if (!request_arg_i64(request, ARG_TIMEOUT, &timeout_ms) || !request_arg_i64(request, ARG_DB, &wish->db))
        return false;
    wish->timeout_ms = timeout_ms > 0 ? (int)MIN(timeout_ms, (int64_t)INT32_MAX) : TIMEOUT_MS;
    return true;
}

static char *copy_text(struct slice text)
{
    char *copy = mem_alloc(text.size + 1);

    if (text.size != 0)
        memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    return copy;
}

static void cmd_migrate(struct request *request)
{
    struct migrate_wish wish = {0};

    if (!parse(request, &wish))
        return;
    wish.host = copy_text(request_arg(request, ARG_HOST));
    wish.port = copy_text(request_arg(request, ARG_PORT));
    migrate_run(request, &wish);
}

/* clang-format off */
const struct command_row migrate_commands[] = {
    {.name = "migrate", .run = cmd_migrate, .arity = -6, .access = ACCESS_STRIPED, .flags = "write alone",
     .categories = "@keyspace @write @slow @dangerous",
     .keys = "RW,ACCESS,DELETE@index:3@range:0,1,0 RW,ACCESS,DELETE,INCOMPLETE@keyword:KEYS,-2@range:-1,1,0",
     .find_keys = migrate_find_keys, .group = "generic", .since = "2.6.0",
     .summary = "Moves keys to another server.",
     .complexity = "O(N) for N bytes of values: they are written here, sent, and read there.",
     .syntax = "MIGRATE host port (key|\"\") destination-db timeout [COPY] [REPLACE] "
               "[[AUTH password]|[AUTH2 username password]] [KEYS key [key ...]]",
     .arg_since = "COPY:3.0.0 REPLACE:3.0.0 AUTH:4.0.7 AUTH2:6.0.0 KEYS:3.0.6",
     .history = "3.0.0=The words COPY and REPLACE.|3.0.6=The word KEYS.|4.0.7=The word AUTH.|6.0.0=The word AUTH2.",
     .tips = "nondeterministic_output"},
    {.name = NULL},
};
/* clang-format on */
