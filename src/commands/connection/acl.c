/* ACL: users, their permissions, and refusals. Free of stripes and gate: users are versions that never change
 * (server/acl/acl.h), and a client notices a changed user before its next command. */
#include "base/mem.h"
#include "commands/shared/families.h"

#include "base/buffer.h"
#include "base/number.h"
#include "base/random.h"
#include "server/acl/acl.h"
#include "server/acl/acl_check.h"
#include "server/acl/acl_client.h"
#include "server/acl/acl_file.h"
#include "server/acl/acl_log.h"
#include "server/acl/acl_options.h"
#include "server/acl/acl_user.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/run/rendezvous.h"

#include <stdio.h>

enum { WORD_BYTES_SHOWN = 128, NAME_BYTES_SHOWN = 512, LOG_SHOWN_BY_DEFAULT = 10 };
enum { PASSWORD_BITS = 256, PASSWORD_BITS_MOST = 4096 };

/* Behind the reply no command runs with the old rights. */
static void spread(struct client *client)
{
    acl_client_apply(client);
    rendezvous_begin(client, RENDEZVOUS_ALL, RENDEZVOUS_COMMANDS);
}

/* How much of a word of the client is repeated in an error. */
static int shown_size(struct slice word)
{
    return (int)MIN(word.size, (size_t)WORD_BYTES_SHOWN);
}

/* ------------------------------------------------------------------------------------------------------ changing -- */

struct edit_rules {
    const struct slice *words;
    size_t count;
    enum acl_error error;
    char rule[512]; /* which is wrong */
};

static bool apply_rules(struct acl_user *draft, void *context)
{
    struct edit_rules *edit = context;
    struct acl_rule_reader rules = {.words = edit->words, .count = edit->count};
    struct slice rule;

    while (acl_rule_next(&rules, &rule)) {
        enum acl_error error = edit->error == ACL_FINE ? acl_user_apply(draft, rule) : ACL_FINE;

        if (error == ACL_FINE)
            continue;
        edit->error = error;
        (void)snprintf(edit->rule, sizeof(edit->rule), "%.*s", (int)MIN(rule.size, sizeof(edit->rule) - 1), rule.data);
    }
    return edit->error == ACL_FINE;
}

static void cmd_acl_setuser(struct request *request)
{
    struct slice name = request_arg(request, 2);
    struct edit_rules edit = {.words = request->args + 3, .count = request->arg_count - 3};
    const struct slice *unmatched;

    for (uint32_t i = 2; i < request->arg_count; i++)
        request_redact(request, i);
    if (!acl_name_is_fine(name)) {
        reply_error(request, "ERR Usernames can't contain spaces or null characters");
        return;
    }
    unmatched = acl_rules_unmatched(edit.words, edit.count);
    if (unmatched != NULL) {
        reply_errorf(request, "ERR Unmatched parenthesis in acl selector starting at '%.*s'.", shown_size(*unmatched),
                     unmatched->data);
    } else if (acl_edit(name, apply_rules, &edit)) {
        reply_ok(request);
        spread(request->client);
    } else {
        reply_errorf(request, "ERR Error in ACL SETUSER modifier '%s': %s", edit.rule, acl_error_text(edit.error));
    }
}

static void cmd_acl_deluser(struct request *request)
{
    int64_t count = 0;

    for (uint32_t i = 2; i < request->arg_count; i++) {
        if (slice_equal_text(request_arg(request, i), "default")) {
            reply_error(request, "ERR The 'default' user cannot be removed");
            return;
        }
    }
    for (uint32_t i = 2; i < request->arg_count; i++)
        count += acl_delete(request_arg(request, i));
    reply_int(request, count);
    if (count != 0)
        spread(request->client);
}

static bool has_file(struct request *request)
{
    if (option_aclfile.size != 0)
        return true;
    reply_error(request, "ERR This KeyDB instance is not configured to use an ACL file. You may want to specify users "
                         "via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a KeyDB "
                         "configuration file set) in order to store users in the KeyDB configuration.");
    return false;
}

static void cmd_acl_load(struct request *request)
{
    struct buffer errors = {0};

    if (!has_file(request))
        return;
    if (acl_load(&errors)) {
        reply_ok(request);
        spread(request->client);
    } else {
        struct buffer reply = {0};

        buffer_append_text(&reply, "ERR ");
        buffer_append_slice(&reply, buffer_slice(&errors));
        reply_error(request, buffer_text(&reply));
        buffer_fini(&reply);
    }
    buffer_fini(&errors);
}

static void cmd_acl_save(struct request *request)
{
    if (!has_file(request))
        return;
    if (acl_save())
        reply_ok(request);
    else
        reply_error(request, "ERR There was an error trying to save the ACLs. Please check the server logs for more "
                             "information");
}

/* ------------------------------------------------------------------------------------------------------- telling -- */

static void reply_buffer(struct request *request, struct buffer *buffer)
{
    reply_bulk(request, buffer_slice(buffer));
    buffer_fini(buffer);
}

static void reply_flags(struct request *request, const struct acl_user *user)
{
    static const struct {
        uint32_t flag;
        const char *name;
    } flags[] = {{ACL_NOPASS, "nopass"},
                 {ACL_SANITIZE, "sanitize-payload"},
                 {ACL_SKIP_SANITIZE, "skip-sanitize-payload"}};

    reply_set(request, 1 + (uint64_t)__builtin_popcount(user->flags & ~(uint32_t)ACL_ON));
    reply_text(request, (user->flags & ACL_ON) != 0 ? "on" : "off");
    for (size_t i = 0; i < countof(flags); i++) {
        if ((user->flags & flags[i].flag) != 0)
            reply_text(request, flags[i].name);
    }
}

static void reply_passwords(struct request *request, const struct acl_user *user)
{
    reply_array(request, user->hashes.count);
    for (uint32_t i = 0; i < user->hashes.count; i++) {
        char text[ACL_HASH_TEXT_BYTES];

        acl_hash_print(user->hashes.items[i], text);
        reply_bulk(request, slice_make(text, sizeof(text)));
    }
}

static void reply_databases(struct request *request, const struct acl_selector *selector)
{
    struct buffer databases = {0};

    acl_selector_print_databases(selector, &databases);
    reply_text(request, "databases");
    reply_buffer(request, &databases);
}

/* Three pairs of a map. */
static void reply_selector(struct request *request, const struct acl_selector *selector)
{
    struct buffer commands = {0}, keys = {0}, channels = {0};

    acl_selector_print_commands(selector, &commands);
    acl_selector_print_keys(selector, &keys);
    acl_selector_print_channels(selector, &channels);
    reply_text(request, "commands");
    reply_buffer(request, &commands);
    reply_text(request, "keys");
    reply_buffer(request, &keys);
    reply_text(request, "channels");
    reply_buffer(request, &channels);
}

static void cmd_acl_getuser(struct request *request)
{
    struct acl_user *user = acl_find(request_arg(request, 2));

    if (user == NULL) {
        reply_null(request);
        return;
    }
    reply_map(request, 7);
    reply_text(request, "flags");
    reply_flags(request, user);
    reply_text(request, "passwords");
    reply_passwords(request, user);
    reply_selector(request, &user->selectors[0]);
    reply_text(request, "selectors");
    reply_array(request, user->selector_count - 1);
    for (uint32_t i = 1; i < user->selector_count; i++) {
        reply_map(request, 4);
        reply_selector(request, &user->selectors[i]);
        reply_databases(request, &user->selectors[i]);
    }
    reply_databases(request, &user->selectors[0]); /* last: what came before it stays where old clients look */
    acl_user_release(&user);
}

static void cmd_acl_list(struct request *request)
{
    size_t count;
    struct acl_user **users = acl_list(&count);

    reply_array(request, count);
    for (size_t i = 0; i < count; i++) {
        struct buffer text = {0};

        buffer_append_text(&text, "user ");
        buffer_append_slice(&text, users[i]->name);
        buffer_append_char(&text, ' ');
        acl_user_print_rules(users[i], &text);
        reply_buffer(request, &text);
    }
    acl_list_release(users, count);
}

static void cmd_acl_users(struct request *request)
{
    size_t count;
    struct acl_user **users = acl_list(&count);

    reply_array(request, count);
    for (size_t i = 0; i < count; i++)
        reply_bulk(request, users[i]->name);
    acl_list_release(users, count);
}

static void cmd_acl_whoami(struct request *request)
{
    reply_bulk(request, acl_client_name(request->client));
}

static void reply_categories(struct request *request)
{
    unsigned count = 0;

    while (command_category_name(count) != NULL)
        count++;
    reply_array(request, count);
    for (unsigned bit = 0; bit < count; bit++)
        reply_text(request, command_category_name(bit));
}

static uint64_t category_of(struct slice name)
{
    for (unsigned bit = 0; command_category_name(bit) != NULL; bit++) {
        if (slice_equal_text_nocase(name, command_category_name(bit)))
            return UINT64_C(1) << bit;
    }
    return 0;
}

static void cmd_acl_cat(struct request *request)
{
    struct resp_deferred head;
    uint64_t category, count = 0;

    if (request->arg_count > 3) {
        reply_subcommand_syntax_error(request);
        return;
    }
    if (request->arg_count == 2) {
        reply_categories(request);
        return;
    }
    category = category_of(request_arg(request, 2));
    if (category == 0) {
        reply_errorf(request, "ERR Unknown category '%.*s'", shown_size(request_arg(request, 2)),
                     request_arg(request, 2).data);
        return;
    }
    head = resp_begin_deferred(request->out);
    for (uint32_t id = 0; id < command_count(); id++) {
        if ((command_at(id)->categories & category) == 0 ||
            (command_at(id)->flags & (COMMAND_ABSENT | COMMAND_OPERATION)) != 0)
            continue;
        reply_bulk(request, command_at(id)->full_name);
        count++;
    }
    resp_end_deferred(request->out, request->proto, head, RESP_ARRAY, count);
}

static void cmd_acl_genpass(struct request *request)
{
    int64_t bits = PASSWORD_BITS;
    char text[PASSWORD_BITS_MOST / 4];
    size_t size;

    if (request->arg_count > 3) {
        reply_subcommand_syntax_error(request);
        return;
    }
    if (request->arg_count == 3 && !request_arg_i64(request, 2, &bits))
        return;
    if (bits < 1 || bits > PASSWORD_BITS_MOST) {
        reply_errorf(request,
                     "ERR ACL GENPASS argument must be the number of bits for the output password, a positive "
                     "number up to %d",
                     PASSWORD_BITS_MOST);
        return;
    }
    size = (size_t)(bits + 3) / 4; /* a hex digit holds four */
    random_hex(text, size);
    reply_bulk(request, slice_make(text, size));
}

/* -------------------------------------------------------------------------------------------------------- DRYRUN -- */

static void reply_decision(struct request *request, const struct acl_user *user, struct acl_decision decision,
                           const struct command *command, const struct slice *args)
{
    static const struct {
        const char *before, *after;
    } texts[] = {
        [ACL_DENIED_DATABASE] = {" has no permissions to access database ", ""},
        [ACL_DENIED_COMMAND] = {" has no permissions to run the '", "' command"},
        [ACL_DENIED_KEY] = {" has no permissions to access the '", "' key"},
        [ACL_DENIED_CHANNEL] = {" has no permissions to access the '", "' channel"},
    };
    struct buffer text = {0};

    if (decision.verdict == ACL_ALLOWED) {
        reply_ok(request);
        return;
    }
    buffer_append_text(&text, "User ");
    buffer_append_slice(&text, user->name);
    buffer_append_text(&text, texts[decision.verdict].before);
    buffer_append_slice(&text, decision.verdict == ACL_DENIED_COMMAND ? command->full_name : args[decision.arg_index]);
    buffer_append_text(&text, texts[decision.verdict].after);
    reply_buffer(request, &text);
}

/* The command that these words would run; NULL: there is none. */
static const struct command *find_command(const struct slice *words, uint32_t count)
{
    const struct command *command = command_find(words[0]);

    if (command != NULL && command->subcommand_count != 0 && count > 1)
        command = command_find_subcommand(command, words[1]);
    return command;
}

static void cmd_acl_dryrun(struct request *request)
{
    const struct slice *words = request->args + 3;
    const uint32_t count = request->arg_count - 3;
    struct acl_user *user = acl_find(request_arg(request, 2));
    const struct command *command = find_command(words, count);

    if (user == NULL)
        reply_errorf(request, "ERR User '%.*s' not found", shown_size(request_arg(request, 2)),
                     request_arg(request, 2).data);
    else if (command == NULL)
        reply_errorf(request, "ERR Command '%.*s' not found", (int)MIN(words[0].size, (size_t)NAME_BYTES_SHOWN),
                     words[0].data);
    else if (!command_arity_fits(command, count))
        reply_errorf(request, "ERR wrong number of arguments for '%.*s' command", (int)command->full_name.size,
                     command->full_name.data);
    else
        reply_decision(request, user, acl_check(user, request->db, command, words, count), command, words);
    acl_user_release(&user);
}

/* ----------------------------------------------------------------------------------------------------------- LOG -- */

static void reply_log_entry(struct request *request, const struct acl_log_entry *entry, int64_t now_ms)
{
    reply_map(request, 10);
    reply_text(request, "count");
    reply_int(request, (int64_t)entry->count);
    reply_text(request, "reason");
    reply_text(request, acl_reason_name(entry->reason));
    reply_text(request, "context");
    reply_text(request, acl_context_name(entry->context));
    reply_text(request, "object");
    reply_bulk(request, slice_make(entry->object, entry->object_size));
    reply_text(request, "username");
    reply_bulk(request, slice_make(entry->user, entry->user_size));
    reply_text(request, "age-seconds");
    resp_write_double(request->out, request->proto, (double)MAX(now_ms - entry->created_ms, 0) / 1000);
    reply_text(request, "client-info");
    reply_bulk(request, slice_make(entry->client, entry->client_size));
    reply_text(request, "entry-id");
    reply_int(request, (int64_t)entry->id);
    reply_text(request, "timestamp-created");
    reply_int(request, entry->created_ms);
    reply_text(request, "timestamp-last-updated");
    reply_int(request, entry->updated_ms);
}

static void cmd_acl_log(struct request *request)
{
    int64_t most = LOG_SHOWN_BY_DEFAULT;
    struct acl_log_entry *entries;
    size_t count;

    if (request->arg_count > 3) {
        reply_subcommand_syntax_error(request);
        return;
    }
    if (request->arg_count == 3 && request_arg_is(request, 2, "reset")) {
        acl_log_reset();
        reply_ok(request);
        return;
    }
    if (request->arg_count == 3 && !request_arg_i64(request, 2, &most))
        return;
    entries = acl_log_get((size_t)MAX(most, 0), &count);
    reply_array(request, count);
    for (size_t i = 0; i < count; i++)
        reply_log_entry(request, &entries[i], request->access->now_ms);
    acl_log_release(entries, count);
}

/* ---------------------------------------------------------------------------------------------------------- rows -- */

static void cmd_acl_help(struct request *request)
{
    static const char *const lines[] = {
        "CAT [<category>]",
        "    Return the categories of commands, or the commands of one category.",
        "DELUSER <username> [<username> ...]",
        "    Delete users, and close their connections.",
        "DRYRUN <username> <command> [<arg> ...]",
        "    Check whether the user may run this command, without running it.",
        "GENPASS [<bits>]",
        "    Return a random password of <bits> bits (default: 256) in hexadecimal digits.",
        "GETUSER <username>",
        "    Return the rules of a user.",
        "LIST",
        "    Return one line for each user, as in the ACL file.",
        "LOAD",
        "    Load the users from the ACL file. If it has an error, no user changes.",
        "LOG [<count> | RESET]",
        "    Return the recent refusals, newest first, or delete them.",
        "SAVE",
        "    Save the users to the ACL file.",
        "SETUSER <username> [<rule> ...]",
        "    Create a user, or change one, by these rules in order.",
        "USERS",
        "    Return the names of all users.",
        "WHOAMI",
        "    Return the name of this connection's user.",
    };

    reply_help(request, lines, countof(lines));
}

static void cmd_acl(struct request *request)
{
    reply_subcommand_error(request);
}

#define ACL_ROW \
    .access = ACCESS_FREE, .flags = "noscript loading stale sentinel", .categories = "@slow", .group = "server"
#define ACL_ROW_ADMIN                                                                                                 \
    .access = ACCESS_FREE, .flags = "admin noscript loading stale sentinel", .categories = "@admin @slow @dangerous", \
    .group = "server"

/* clang-format off */
static const struct command_row acl_subcommands[] = {
    {.name = "cat", .run = cmd_acl_cat, .arity = -2, ACL_ROW, .since = "6.0.0",
     .summary = "Returns the ACL categories, or the commands in a category.",
     .complexity = "O(1), as there is a fixed number of commands", .syntax = "ACL CAT [categoryname]"},
    {.name = "deluser", .run = cmd_acl_deluser, .arity = -3, ACL_ROW_ADMIN, .since = "6.0.0",
     .summary = "Deletes users and closes their connections.",
     .complexity = "O(1) for each user and its connections", .syntax = "ACL DELUSER username [username ...]",
     .tips = "request_policy:all_nodes response_policy:all_succeeded"},
    {.name = "dryrun", .run = cmd_acl_dryrun, .arity = -4, ACL_ROW_ADMIN, .since = "7.0.0",
     .summary = "Checks whether a user may run a command, without running it.", .complexity = "O(1)",
     .syntax = "ACL DRYRUN username command [arg ...]"},
    {.name = "genpass", .run = cmd_acl_genpass, .arity = -2, ACL_ROW, .since = "6.0.0",
     .summary = "Returns a random password.", .complexity = "O(1)", .syntax = "ACL GENPASS [bits]"},
    {.name = "getuser", .run = cmd_acl_getuser, .arity = 3, ACL_ROW_ADMIN, .since = "6.0.0",
     .summary = "Returns the rules of a user.", .complexity = "O(N), N rules and passwords",
     .syntax = "ACL GETUSER username",
     .history = "6.2.0=The patterns of channels.|7.0.0=Selectors; keys and channels as text."},
    {.name = "help", .run = cmd_acl_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale sentinel",
     .categories = "@slow", .group = "server", .since = "6.0.0", .summary = "Explains the subcommands.",
     .complexity = "O(1)", .syntax = "ACL HELP"},
    {.name = "list", .run = cmd_acl_list, .arity = 2, ACL_ROW_ADMIN, .since = "6.0.0",
     .summary = "Returns all users with their rules, as in an ACL file.", .complexity = "O(N), N users",
     .syntax = "ACL LIST"},
    {.name = "load", .run = cmd_acl_load, .arity = 2, ACL_ROW_ADMIN, .since = "6.0.0",
     .summary = "Loads the users from the ACL file.", .complexity = "O(N), N users", .syntax = "ACL LOAD"},
    {.name = "log", .run = cmd_acl_log, .arity = -2, ACL_ROW_ADMIN, .since = "6.0.0",
     .summary = "Returns the recent denials of access, or clears their log.", .complexity = "O(N), N entries returned",
     .syntax = "ACL LOG [count|RESET]", .history = "7.2.0=The id of an entry, and when it was made and last changed."},
    {.name = "save", .run = cmd_acl_save, .arity = 2, ACL_ROW_ADMIN, .since = "6.0.0",
     .summary = "Saves the users to the ACL file.", .complexity = "O(N), N users", .syntax = "ACL SAVE",
     .tips = "request_policy:all_nodes response_policy:all_succeeded"},
    {.name = "setuser", .run = cmd_acl_setuser, .arity = -3, ACL_ROW_ADMIN, .since = "6.0.0",
     .summary = "Creates a user, or changes its rules.", .complexity = "O(N), N rules",
     .syntax = "ACL SETUSER username [rule ...]",
     .history = "6.2.0=Patterns of channels.|7.0.0=Selectors, and patterns of keys to be read or written.",
     .tips = "request_policy:all_nodes response_policy:all_succeeded"},
    {.name = "users", .run = cmd_acl_users, .arity = 2, ACL_ROW_ADMIN, .since = "6.0.0",
     .summary = "Returns the names of all users.", .complexity = "O(N), N users", .syntax = "ACL USERS"},
    {.name = "whoami", .run = cmd_acl_whoami, .arity = 2, ACL_ROW, .since = "6.0.0",
     .summary = "Returns the name of the connection's user.", .complexity = "O(1)", .syntax = "ACL WHOAMI"},
    {0},
};
/* clang-format on */

/* clang-format off */
const struct command_row acl_commands[] = {
    {.name = "acl", .run = cmd_acl, .arity = -2, .access = ACCESS_FREE, .flags = "sentinel", .categories = "@slow",
     .group = "server", .since = "6.0.0", .summary = "Container for commands that manage users.",
     .complexity = "Depends on the subcommand.", .syntax = "ACL subcommand [arg ...]", .subcommands = acl_subcommands},
    {0},
};
/* clang-format on */
