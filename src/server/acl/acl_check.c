#include "server/acl/acl_check.h"

#include "base/assert.h"
#include "base/glob.h"
#include "base/number.h"
#include "server/acl/acl_user.h"
#include "server/command/command.h"
#include "server/config/options.h"

static bool has_command(const struct acl_selector *selector, const struct command *command, const struct slice *args,
                        uint32_t arg_count)
{
    if ((selector->commands[command->id / 64] >> (command->id % 64) & 1) != 0)
        return true;
    for (uint32_t i = 0; i < selector->first_args.count && arg_count > 1; i++) {
        if (selector->first_args.items[i].command_id == command->id &&
            slice_equal_nocase(selector->first_args.items[i].text, args[1]))
            return true;
    }
    return false;
}

static bool has_key(const struct acl_selector *selector, struct slice key, uint32_t permissions)
{
    for (uint32_t i = 0; i < selector->keys.count; i++) {
        const struct acl_key_pattern *pattern = &selector->keys.items[i];

        if ((pattern->permissions & permissions) == permissions && glob_match(pattern->text, key, false))
            return true;
    }
    return selector->has_all_keys;
}

static bool has_database(const struct acl_selector *selector, int64_t db)
{
    for (uint32_t i = 0; i < selector->databases.count; i++) {
        if (selector->databases.items[i] == db)
            return true;
    }
    return selector->has_all_databases;
}

static bool has_channel(const struct acl_selector *selector, struct slice channel, bool is_pattern)
{
    for (uint32_t i = 0; i < selector->channels.count; i++) {
        struct slice allowed = selector->channels.items[i];

        if (is_pattern ? slice_equal(allowed, channel) : glob_match(allowed, channel, false))
            return true;
    }
    return selector->has_all_channels;
}

/* The permissions that a command needs for a key's contents. A command that only checks whether the key exists needs
 * none. */
static uint32_t permissions_of(uint32_t key_flags)
{
    return ((key_flags & KEY_ACCESS) != 0 ? (uint32_t)ACL_READ : 0) |
           ((key_flags & (KEY_UPDATE | KEY_INSERT | KEY_DELETE)) != 0 ? (uint32_t)ACL_WRITE : 0);
}

/* One question: the same for all selectors. */
struct question {
    unsigned db;
    const struct command *command;
    const struct slice *args;
    uint32_t arg_count;
    struct key_positions keys, databases; /* databases: arguments that are numbers of them */
    bool has_found_keys, has_found_databases;
};

static void question_fini(struct question *question)
{
    key_positions_fini(&question->keys);
    key_positions_fini(&question->databases);
}

static bool has_keys(const struct command *command)
{
    return command->key_spec_count != 0 || command->row->find_keys != NULL;
}

static struct acl_decision check_keys(const struct acl_selector *selector, struct question *question)
{
    if (!question->has_found_keys) {
        question->has_found_keys = true;
        if (!command_arity_fits(question->command, question->arg_count) ||
            !command_keys(question->command, question->args, question->arg_count, &question->keys))
            question->keys.count = 0;
    }
    for (uint32_t i = 0; i < question->keys.count; i++) {
        const struct key_position *position = &question->keys.items[i];

        if ((position->flags & KEY_NOT_KEY) == 0 &&
            !has_key(selector, key_position_name(question->args, *position), permissions_of(position->flags)))
            return (struct acl_decision){ACL_DENIED_KEY, position->arg_index};
    }
    return (struct acl_decision){ACL_ALLOWED, 0};
}

static struct acl_decision check_channels(const struct acl_selector *selector, const struct question *question)
{
    enum channel_args which = question->command->row->channels;
    uint32_t end = which == CHANNELS_FIRST ? MIN(question->arg_count, 2U) : question->arg_count;

    assert(which != CHANNELS_NONE);
    for (uint32_t i = 1; i < end; i++) {
        if (!has_channel(selector, question->args[i], which == CHANNELS_PATTERNS))
            return (struct acl_decision){ACL_DENIED_CHANNEL, i};
    }
    return (struct acl_decision){ACL_ALLOWED, 0};
}

static bool is_database(struct slice text, int64_t *db)
{
    return number_parse_i64(text, db) && *db >= 0 && *db < OPTION_GET(option_databases);
}

/* None if one of them is wrong: the command itself then says so. */
static void find_databases(struct question *question)
{
    const struct command *command = question->command;
    bool are_fine;

    question->has_found_databases = true;
    if (command->row->find_databases == NULL)
        return;
    are_fine = command_arity_fits(command, question->arg_count) &&
               command->row->find_databases(question->args, question->arg_count, &question->databases);
    for (uint32_t i = 0; i < question->databases.count && are_fine; i++) {
        int64_t db;

        are_fine = is_database(question->args[question->databases.items[i].arg_index], &db);
    }
    if (!are_fine)
        question->databases.count = 0;
}

static bool has_every_database(const struct acl_selector *selector)
{
    for (int64_t db = 0; db < OPTION_GET(option_databases); db++) {
        if (!has_database(selector, db))
            return false;
    }
    return true;
}

static struct acl_decision check_databases(const struct acl_selector *selector, struct question *question)
{
    const struct command *command = question->command;

    if (!question->has_found_databases)
        find_databases(question);
    for (uint32_t i = 0; i < question->databases.count; i++) {
        uint32_t index = question->databases.items[i].arg_index;
        int64_t db;

        if (is_database(question->args[index], &db) && !has_database(selector, db))
            return (struct acl_decision){ACL_DENIED_DATABASE, index};
    }
    if ((command->uses_own_database && !has_database(selector, question->db)) ||
        (command->row->databases == DATABASES_ALL && !has_every_database(selector)))
        return (struct acl_decision){ACL_DENIED_DATABASE, 0};
    return (struct acl_decision){ACL_ALLOWED, 0};
}

static struct acl_decision check_selector(const struct acl_selector *selector, struct question *question)
{
    const struct command *command = question->command;
    struct acl_decision decision = {ACL_ALLOWED, 0};

    if (!selector->has_all_databases)
        decision = check_databases(selector, question);
    if (decision.verdict != ACL_ALLOWED)
        return decision;
    if ((command->flags & COMMAND_NO_AUTH) == 0 && !has_command(selector, command, question->args, question->arg_count))
        return (struct acl_decision){ACL_DENIED_COMMAND, 0};
    if (!selector->has_all_keys && has_keys(command))
        decision = check_keys(selector, question);
    if (decision.verdict == ACL_ALLOWED && !selector->has_all_channels && command->row->channels != CHANNELS_NONE)
        decision = check_channels(selector, question);
    return decision;
}

static bool is_closer(struct acl_decision a, struct acl_decision b)
{
    return a.verdict > b.verdict || (a.verdict == b.verdict && a.arg_index > b.arg_index);
}

struct acl_decision acl_check(const struct acl_user *user, unsigned db, const struct command *command,
                              const struct slice *args, uint32_t arg_count)
{
    struct question question = {.db = db, .command = command, .args = args, .arg_count = arg_count};
    struct acl_decision closest = {ACL_ALLOWED, 0};

    assert(user->selector_count != 0);
    if (user->may_everything)
        return closest;
    for (uint32_t i = 0; i < user->selector_count; i++) {
        struct acl_decision decision = check_selector(&user->selectors[i], &question);

        if (decision.verdict == ACL_ALLOWED) {
            closest = decision;
            break;
        }
        if (is_closer(decision, closest))
            closest = decision;
    }
    question_fini(&question);
    return closest;
}

bool acl_may_key(const struct acl_user *user, struct slice key, uint32_t permissions)
{
    assert(permissions != 0);
    for (uint32_t i = 0; i < user->selector_count; i++) {
        if (has_key(&user->selectors[i], key, permissions))
            return true;
    }
    return false;
}

static bool has_all_keys(const struct acl_selector *selector, uint32_t permissions)
{
    for (uint32_t i = 0; i < selector->keys.count; i++) {
        if ((selector->keys.items[i].permissions & permissions) == permissions &&
            slice_equal_text(selector->keys.items[i].text, "*"))
            return true;
    }
    return selector->has_all_keys;
}

bool acl_may_all_keys(const struct acl_user *user, unsigned db, const struct command *command, const struct slice *args,
                      uint32_t arg_count, uint32_t permissions)
{
    struct question question = {.db = db, .command = command, .args = args, .arg_count = arg_count};
    bool may = false;

    assert(permissions != 0);
    for (uint32_t i = 0; i < user->selector_count && !may; i++)
        may = has_all_keys(&user->selectors[i], permissions) &&
              check_selector(&user->selectors[i], &question).verdict == ACL_ALLOWED;
    question_fini(&question);
    return may;
}

bool acl_may_channel(const struct acl_user *user, struct slice channel, bool is_pattern)
{
    for (uint32_t i = 0; i < user->selector_count; i++) {
        if (has_channel(&user->selectors[i], channel, is_pattern))
            return true;
    }
    return false;
}
