#include "server/acl/acl_user.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "base/number.h"
#include "server/acl/acl_options.h"
#include "server/command/command.h"
#include "server/command/command_words.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

enum { DATABASES_PREFIX_BYTES = 3 };

const char *acl_error_text(enum acl_error error)
{
    static const char *const texts[] = {
        [ACL_FINE] = "",
        [ACL_SYNTAX] = "Syntax error",
        [ACL_UNKNOWN_COMMAND] = "Unknown command or category name in ACL",
        [ACL_NESTED_FIRST_ARG] = "Allowing first-arg of a subcommand is not supported",
        [ACL_ALL_KEYS_ALREADY] = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does "
                                 "not have any effect. Try 'resetkeys' to start with an empty list of patterns",
        [ACL_ALL_CHANNELS_ALREADY] = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid "
                                     "and does not have any effect. Try 'resetchannels' to start with an empty list "
                                     "of channels",
        [ACL_DATABASE_RANGE] = "The provided database ID is out of range",
        [ACL_NO_SUCH_PASSWORD] = "The password you are trying to remove from the user does not exist",
        [ACL_BAD_HASH] = "The password hash must be exactly 64 characters and contain only lowercase hexadecimal "
                         "characters",
    };

    assert(error < countof(texts));
    return texts[error];
}

/* ------------------------------------------------------------------------------------------------- small pieces -- */

static struct slice keep(struct slice text)
{
    return slice_make(mem_copy(text.size != 0 ? text.data : "", text.size), text.size);
}

static void forget(struct slice text)
{
    mem_free((void *)(uintptr_t)text.data);
}

static void texts_add(struct acl_texts *texts, struct slice text)
{
    *ARRAY_PUSH(texts) = keep(text);
}

static bool texts_have(const struct acl_texts *texts, struct slice text)
{
    for (uint32_t i = 0; i < texts->count; i++) {
        if (slice_equal(texts->items[i], text))
            return true;
    }
    return false;
}

static void texts_clear(struct acl_texts *texts)
{
    for (uint32_t i = 0; i < texts->count; i++)
        forget(texts->items[i]);
    mem_free(texts->items);
    *texts = (struct acl_texts){0};
}

static void texts_copy(struct acl_texts *to, const struct acl_texts *from)
{
    *to = (struct acl_texts){0};
    for (uint32_t i = 0; i < from->count; i++)
        texts_add(to, from->items[i]);
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool has_blanks(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (is_blank(text.data[i]) || text.data[i] == '\0')
            return true;
    }
    return false;
}

bool acl_name_is_fine(struct slice name)
{
    return !has_blanks(name);
}

/* ---------------------------------------------------------------------------------------------------- selectors -- */

static size_t bits_size(void)
{
    return (command_count() + 63) / 64 * sizeof(uint64_t);
}

static void selector_init(struct acl_selector *selector)
{
    *selector = (struct acl_selector){.commands = mem_alloc_zero(bits_size() + sizeof(uint64_t)),
                                      .has_all_channels = acl_channels_are_free(),
                                      .has_all_databases = true};
}

static void first_args_clear(struct acl_selector *selector)
{
    for (uint32_t i = 0; i < selector->first_args.count; i++)
        forget(selector->first_args.items[i].text);
    ARRAY_FINI(&selector->first_args);
}

static void keys_clear(struct acl_selector *selector)
{
    for (uint32_t i = 0; i < selector->keys.count; i++)
        forget(selector->keys.items[i].text);
    ARRAY_FINI(&selector->keys);
    selector->has_all_keys = false;
}

static void channels_clear(struct acl_selector *selector)
{
    texts_clear(&selector->channels);
    selector->has_all_channels = false;
}

static void databases_clear(struct acl_selector *selector)
{
    ARRAY_FINI(&selector->databases);
    selector->has_all_databases = false;
}

static void selector_fini(struct acl_selector *selector)
{
    first_args_clear(selector);
    keys_clear(selector);
    channels_clear(selector);
    databases_clear(selector);
    texts_clear(&selector->rules);
    mem_free(selector->commands);
}

static void add_key(struct acl_selector *selector, struct slice text, uint32_t permissions)
{
    *ARRAY_PUSH(&selector->keys) = (struct acl_key_pattern){keep(text), permissions};
}

static void add_first_arg(struct acl_selector *selector, uint32_t command_id, struct slice text)
{
    *ARRAY_PUSH(&selector->first_args) = (struct acl_first_arg){command_id, keep(text)};
}

static void selector_copy(struct acl_selector *to, const struct acl_selector *from)
{
    *to = (struct acl_selector){.has_all_commands = from->has_all_commands,
                                .has_all_keys = from->has_all_keys,
                                .has_all_channels = from->has_all_channels,
                                .has_all_databases = from->has_all_databases,
                                .begins_with_all = from->begins_with_all,
                                .commands = mem_copy(from->commands, bits_size())};
    for (uint32_t i = 0; i < from->first_args.count; i++)
        add_first_arg(to, from->first_args.items[i].command_id, from->first_args.items[i].text);
    for (uint32_t i = 0; i < from->keys.count; i++)
        add_key(to, from->keys.items[i].text, from->keys.items[i].permissions);
    texts_copy(&to->channels, &from->channels);
    for (uint32_t i = 0; i < from->databases.count; i++)
        *ARRAY_PUSH(&to->databases) = from->databases.items[i];
    texts_copy(&to->rules, &from->rules);
}

/* -------------------------------------------------------------------------------------------- rules on commands -- */

static struct slice rule_subject(struct slice rule)
{
    return slice_skip(rule, 1); /* the sign */
}

/* "config" covers "config|get". */
static bool covers(struct slice subject, struct slice other)
{
    return slice_starts_with(other, subject) && (other.size == subject.size || other.data[subject.size] == '|');
}

/* Appends the rule, and removes earlier rules for the same command or category. */
static void add_rule(struct acl_selector *selector, char sign, struct slice subject)
{
    struct acl_texts *rules = &selector->rules;
    struct buffer rule = {0};
    uint32_t kept = 0;

    for (uint32_t i = 0; i < rules->count; i++) {
        if (covers(subject, rule_subject(rules->items[i])))
            forget(rules->items[i]);
        else
            rules->items[kept++] = rules->items[i];
    }
    rules->count = kept;
    buffer_append_char(&rule, sign);
    buffer_append_slice(&rule, subject);
    texts_add(rules, buffer_slice(&rule));
    buffer_fini(&rule);
}

static void set_all_commands(struct acl_selector *selector, bool allowed)
{
    memset(selector->commands, allowed ? 0xff : 0, bits_size());
    first_args_clear(selector);
    texts_clear(&selector->rules);
    selector->begins_with_all = allowed;
}

static void forget_first_args_of(struct acl_selector *selector, uint32_t command_id)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < selector->first_args.count; i++) {
        if (selector->first_args.items[i].command_id == command_id)
            forget(selector->first_args.items[i].text);
        else
            selector->first_args.items[kept++] = selector->first_args.items[i];
    }
    selector->first_args.count = kept;
}

static void set_command(struct acl_selector *selector, const struct command *command, bool allowed)
{
    uint64_t bit = UINT64_C(1) << (command->id % 64);

    assert(command->id < command_count());
    if (allowed)
        selector->commands[command->id / 64] |= bit;
    else
        selector->commands[command->id / 64] &= ~bit;
    forget_first_args_of(selector, command->id);
    for (uint32_t i = 0; i < command->subcommand_count; i++)
        set_command(selector, &command->subcommands[i], allowed);
}

static enum acl_error apply_category(struct acl_selector *selector, struct slice name, bool allowed)
{
    char subject[32] = "@";
    uint64_t category;

    if (slice_equal_text_nocase(name, "all")) {
        set_all_commands(selector, allowed);
        return ACL_FINE;
    }
    category = command_category_of_word(name);
    if (category == 0 || name.size > sizeof(subject) - 2)
        return ACL_UNKNOWN_COMMAND;
    for (uint32_t id = 0; id < command_count(); id++) {
        const struct command *command = command_at(id);

        if ((command->categories & category) != 0) {
            uint64_t bit = UINT64_C(1) << (id % 64);

            selector->commands[id / 64] = allowed ? selector->commands[id / 64] | bit
                                                  : selector->commands[id / 64] & ~bit;
            forget_first_args_of(selector, id);
        }
    }
    memcpy(subject + 1, command_category_name((unsigned)__builtin_ctzll(category)), name.size);
    add_rule(selector, allowed ? '+' : '-', slice_make(subject, name.size + 1));
    return ACL_FINE;
}

/* By the name it has in the documentation, also when rename-command gave it another. */
static const struct command *find_command(struct slice name)
{
    const struct command *command = command_find_full(name);

    if (command != NULL && slice_equal_nocase(command->full_name, name))
        return command;
    for (uint32_t id = 0; id < command_count(); id++) {
        if (slice_equal_nocase(command_at(id)->full_name, name))
            return command_at(id);
    }
    return NULL;
}

/* "select|0", where "0" is no subcommand: the form is kept for old rules. */
static enum acl_error allow_first_arg(struct acl_selector *selector, struct slice name)
{
    struct slice parent = name, arg;
    const struct command *command;
    struct buffer subject = {0};

    while (parent.size != 0 && parent.data[parent.size - 1] != '|')
        parent.size--;
    if (parent.size == 0)
        return ACL_UNKNOWN_COMMAND;
    parent.size--;
    arg = slice_skip(name, parent.size + 1);
    command = find_command(parent);
    if (command == NULL)
        return ACL_UNKNOWN_COMMAND;
    if (arg.size == 0 || has_blanks(arg))
        return ACL_SYNTAX;
    if (command->container != NULL)
        return ACL_NESTED_FIRST_ARG;
    if (command->subcommand_count != 0)
        return ACL_UNKNOWN_COMMAND;
    for (uint32_t i = 0; i < selector->first_args.count; i++) {
        const struct acl_first_arg *one = &selector->first_args.items[i];

        if (one->command_id == command->id && slice_equal_nocase(one->text, arg))
            return ACL_FINE;
    }
    add_first_arg(selector, command->id, arg);
    buffer_append_slice(&subject, command->full_name);
    buffer_append_char(&subject, '|');
    buffer_append_slice(&subject, arg);
    add_rule(selector, '+', buffer_slice(&subject));
    buffer_fini(&subject);
    return ACL_FINE;
}

static enum acl_error apply_command(struct acl_selector *selector, struct slice name, bool allowed)
{
    const struct command *command;

    if (name.size != 0 && name.data[0] == '@')
        return apply_category(selector, slice_skip(name, 1), allowed);
    command = find_command(name);
    if (command == NULL)
        return allowed ? allow_first_arg(selector, name) : ACL_UNKNOWN_COMMAND;
    set_command(selector, command, allowed);
    add_rule(selector, allowed ? '+' : '-', command->full_name);
    return ACL_FINE;
}

/* ---------------------------------------------------------------------------------- rules on keys and channels -- */

static enum acl_error allow_all_keys(struct acl_selector *selector)
{
    keys_clear(selector);
    selector->has_all_keys = true;
    return ACL_FINE;
}

static enum acl_error apply_key(struct acl_selector *selector, struct slice pattern, uint32_t permissions)
{
    if (selector->has_all_keys)
        return ACL_ALL_KEYS_ALREADY;
    if (has_blanks(pattern))
        return ACL_SYNTAX;
    for (uint32_t i = 0; i < selector->keys.count; i++) {
        if (slice_equal(selector->keys.items[i].text, pattern)) {
            selector->keys.items[i].permissions |= permissions;
            return ACL_FINE;
        }
    }
    add_key(selector, pattern, permissions);
    return ACL_FINE;
}

/* "%R~pattern": letters, then the pattern. */
static enum acl_error apply_key_with_permissions(struct acl_selector *selector, struct slice rule)
{
    uint32_t permissions = 0;
    size_t at = 1;

    if (selector->has_all_keys)
        return ACL_ALL_KEYS_ALREADY;
    for (; at < rule.size && rule.data[at] != '~'; at++) {
        uint32_t permission = slice_lower(rule.data[at]) == 'r'   ? (uint32_t)ACL_READ
                              : slice_lower(rule.data[at]) == 'w' ? (uint32_t)ACL_WRITE
                                                                  : 0;

        if (permission == 0 || (permissions & permission) != 0)
            return ACL_SYNTAX;
        permissions |= permission;
    }
    if (permissions == 0)
        return ACL_SYNTAX;
    return apply_key(selector, slice_skip(rule, MIN(at + 1, rule.size)), permissions);
}

static enum acl_error apply_channel(struct acl_selector *selector, struct slice pattern)
{
    if (slice_equal_text(pattern, "*")) {
        channels_clear(selector);
        selector->has_all_channels = true;
        return ACL_FINE;
    }
    if (selector->has_all_channels)
        return ACL_ALL_CHANNELS_ALREADY;
    if (has_blanks(pattern))
        return ACL_SYNTAX;
    if (!texts_have(&selector->channels, pattern))
        texts_add(&selector->channels, pattern);
    return ACL_FINE;
}

static void allow_all_databases(struct acl_selector *selector)
{
    databases_clear(selector);
    selector->has_all_databases = true;
}

static int compare_databases(const void *a, const void *b)
{
    const uint32_t *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

/* Takes the next of the numbers, which commas separate. */
static enum acl_error take_database(struct slice *numbers, uint32_t *database)
{
    const char *comma = memchr(numbers->data, ',', numbers->size);
    struct slice text = slice_make(numbers->data, comma != NULL ? (size_t)(comma - numbers->data) : numbers->size);
    int64_t number;

    if (!number_parse_i64(text, &number))
        return ACL_SYNTAX;
    if (number < 0 || number > INT32_MAX)
        return ACL_DATABASE_RANGE;
    *database = (uint32_t)number;
    *numbers = slice_skip(*numbers, comma != NULL ? text.size + 1 : text.size);
    return comma != NULL && numbers->size == 0 ? ACL_SYNTAX : ACL_FINE;
}

/* "0,2": these instead of those there are. The server may have fewer: other files may say more then. */
static enum acl_error apply_databases(struct acl_selector *selector, struct slice numbers)
{
    struct acl_selector fresh = {0}; /* only its databases are used */
    enum acl_error error;
    uint32_t kept = 0;

    do {
        error = numbers.size == 0 ? ACL_SYNTAX : take_database(&numbers, ARRAY_PUSH(&fresh.databases));
    } while (error == ACL_FINE && numbers.size != 0);
    if (error != ACL_FINE) {
        databases_clear(&fresh);
        return error;
    }
    qsort(fresh.databases.items, fresh.databases.count, sizeof(uint32_t), compare_databases);
    for (uint32_t i = 0; i < fresh.databases.count; i++) {
        if (kept == 0 || fresh.databases.items[kept - 1] != fresh.databases.items[i])
            fresh.databases.items[kept++] = fresh.databases.items[i];
    }
    fresh.databases.count = kept;
    databases_clear(selector);
    selector->databases = fresh.databases;
    return ACL_FINE;
}

/* Applies rules that are also allowed inside "( ... )". */
static enum acl_error selector_apply(struct acl_selector *selector, struct slice rule)
{
    switch (rule.data[0]) {
    case '+':
        return apply_command(selector, slice_skip(rule, 1), true);
    case '-':
        return apply_command(selector, slice_skip(rule, 1), false);
    case '~':
        return slice_equal_text(rule, "~*") ? allow_all_keys(selector)
                                            : apply_key(selector, slice_skip(rule, 1), ACL_READ_WRITE);
    case '%':
        return apply_key_with_permissions(selector, rule);
    case '&':
        return apply_channel(selector, slice_skip(rule, 1));
    default:
        break;
    }
    if (slice_equal_text_nocase(rule, "allcommands"))
        set_all_commands(selector, true);
    else if (slice_equal_text_nocase(rule, "nocommands"))
        set_all_commands(selector, false);
    else if (slice_equal_text_nocase(rule, "allkeys"))
        return allow_all_keys(selector);
    else if (slice_equal_text_nocase(rule, "resetkeys"))
        keys_clear(selector);
    else if (slice_equal_text_nocase(rule, "allchannels"))
        return apply_channel(selector, SLICE("*"));
    else if (slice_equal_text_nocase(rule, "resetchannels"))
        channels_clear(selector);
    else if (slice_equal_text_nocase(slice_make(rule.data, MIN(rule.size, DATABASES_PREFIX_BYTES)), "db="))
        return apply_databases(selector, slice_skip(rule, DATABASES_PREFIX_BYTES));
    else if (slice_equal_text_nocase(rule, "resetdbs"))
        databases_clear(selector);
    else if (slice_equal_text_nocase(rule, "alldbs"))
        allow_all_databases(selector);
    else
        return ACL_SYNTAX;
    return ACL_FINE;
}

/* ---------------------------------------------------------------------------------------------------- passwords -- */

void acl_hash(struct slice password, unsigned char hash[ACL_HASH_BYTES])
{
    unsigned size = 0;
    int done = EVP_Digest(password.data, password.size, hash, &size, EVP_sha256(), NULL);

    assert(done == 1);
    assert(size == ACL_HASH_BYTES);
}

void acl_hash_print(const unsigned char hash[ACL_HASH_BYTES], char text[ACL_HASH_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < ACL_HASH_BYTES; i++) {
        text[2 * i] = digits[hash[i] >> 4];
        text[2 * i + 1] = digits[hash[i] & 15];
    }
}

static bool hash_parse(struct slice text, unsigned char hash[ACL_HASH_BYTES])
{
    if (text.size != ACL_HASH_TEXT_BYTES)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        unsigned value;

        if (c >= '0' && c <= '9')
            value = (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = (unsigned)(c - 'a') + 10;
        else
            return false;
        hash[i / 2] = (unsigned char)(i % 2 == 0 ? value << 4 : hash[i / 2] | value);
    }
    return true;
}

/* Looks at all of them, so that the time tells nothing. hash_count: none. */
static uint32_t find_hash(const struct acl_user *user, const unsigned char hash[ACL_HASH_BYTES])
{
    uint32_t found = user->hashes.count;

    for (uint32_t i = 0; i < user->hashes.count; i++) {
        if (CRYPTO_memcmp(user->hashes.items[i], hash, ACL_HASH_BYTES) == 0)
            found = i;
    }
    return found;
}

bool acl_user_knows(const struct acl_user *user, struct slice password)
{
    unsigned char hash[ACL_HASH_BYTES];

    acl_hash(password, hash);
    return find_hash(user, hash) != user->hashes.count;
}

/* Its maker's alone: not published yet. */
static void assert_is_draft(const struct acl_user *user)
{
    assert(atomic_load_explicit(&user->refs, memory_order_relaxed) == 1);
}

static void clear_hashes(struct acl_user *user)
{
    ARRAY_FINI(&user->hashes);
}

static void add_hash(struct acl_user *user, const unsigned char hash[ACL_HASH_BYTES])
{
    if (find_hash(user, hash) == user->hashes.count)
        memcpy(ARRAY_PUSH(&user->hashes), hash, ACL_HASH_BYTES);
    user->flags &= ~(uint32_t)ACL_NOPASS;
}

static enum acl_error remove_hash(struct acl_user *user, const unsigned char hash[ACL_HASH_BYTES])
{
    uint32_t index = find_hash(user, hash);

    if (index == user->hashes.count)
        return ACL_NO_SUCH_PASSWORD;
    user->hashes.count--;
    memmove(user->hashes.items[index], user->hashes.items[index + 1],
            (user->hashes.count - index) * sizeof(*user->hashes.items));
    return ACL_FINE;
}

static enum acl_error apply_password(struct acl_user *user, struct slice rule)
{
    struct slice text = slice_skip(rule, 1);
    unsigned char hash[ACL_HASH_BYTES];

    if (rule.data[0] == '>' || rule.data[0] == '<')
        acl_hash(text, hash);
    else if (!hash_parse(text, hash))
        return ACL_BAD_HASH;
    if (rule.data[0] == '<' || rule.data[0] == '!')
        return remove_hash(user, hash);
    add_hash(user, hash);
    return ACL_FINE;
}

void acl_user_set_password(struct acl_user *user, struct slice password)
{
    unsigned char hash[ACL_HASH_BYTES];

    assert_is_draft(user);
    clear_hashes(user);
    user->flags |= ACL_NOPASS;
    if (password.size == 0)
        return;
    acl_hash(password, hash);
    add_hash(user, hash);
}

/* -------------------------------------------------------------------------------------------------------- users -- */

struct acl_user *acl_user_create(struct slice name)
{
    struct acl_user *user = mem_alloc_zero(sizeof(*user));

    assert(command_count() != 0);
    atomic_init(&user->refs, 1);
    user->name = keep(name);
    user->selectors = mem_alloc(sizeof(*user->selectors));
    user->selector_count = 1;
    selector_init(&user->selectors[0]);
    acl_user_seal(user);
    return user;
}

struct acl_user *acl_user_create_default(void)
{
    static const char *const rules[] = {"on", "nopass", "allkeys", "allchannels", "allcommands"};
    struct acl_user *user = acl_user_create(SLICE("default"));

    for (size_t i = 0; i < countof(rules); i++) {
        enum acl_error error = acl_user_apply(user, slice_from_text(rules[i]));

        assert(error == ACL_FINE);
    }
    acl_user_seal(user);
    return user;
}

struct acl_user *acl_user_copy(const struct acl_user *user)
{
    struct acl_user *copy = mem_alloc_zero(sizeof(*copy));

    assert(user->selector_count != 0);
    atomic_init(&copy->refs, 1);
    copy->identity = user->identity;
    copy->name = keep(user->name);
    copy->flags = user->flags;
    copy->may_everything = user->may_everything;
    for (uint32_t i = 0; i < user->hashes.count; i++)
        memcpy(ARRAY_PUSH(&copy->hashes), user->hashes.items[i], ACL_HASH_BYTES);
    copy->selectors = mem_alloc(user->selector_count * sizeof(*copy->selectors));
    copy->selector_count = user->selector_count;
    for (uint32_t i = 0; i < user->selector_count; i++)
        selector_copy(&copy->selectors[i], &user->selectors[i]);
    return copy;
}

struct acl_user *acl_user_acquire(struct acl_user *user)
{
    uint32_t before = atomic_fetch_add_explicit(&user->refs, 1, memory_order_relaxed);

    assert(before != 0);
    return user;
}

void acl_user_release(struct acl_user **user)
{
    struct acl_user *gone = *user;
    uint32_t before;

    *user = NULL;
    if (gone == NULL)
        return;
    before = atomic_fetch_sub_explicit(&gone->refs, 1, memory_order_acq_rel);
    assert(before != 0);
    if (before != 1)
        return;
    for (uint32_t i = 0; i < gone->selector_count; i++)
        selector_fini(&gone->selectors[i]);
    mem_free(gone->selectors);
    ARRAY_FINI(&gone->hashes);
    forget(gone->name);
    mem_free(gone);
}

/* "%RW~*" is a pattern like others, but leaves nothing to be asked. */
static bool has_all_keys(const struct acl_selector *selector)
{
    for (uint32_t i = 0; i < selector->keys.count; i++) {
        const struct acl_key_pattern *key = &selector->keys.items[i];

        if (key->permissions == ACL_READ_WRITE && slice_equal_text(key->text, "*"))
            return true;
    }
    return selector->has_all_keys;
}

void acl_user_seal(struct acl_user *user)
{
    assert_is_draft(user);
    user->may_everything = false;
    for (uint32_t i = 0; i < user->selector_count; i++) {
        struct acl_selector *selector = &user->selectors[i];

        selector->has_all_commands = true;
        for (uint32_t id = 0; id < command_count(); id++)
            selector->has_all_commands = selector->has_all_commands &&
                                         (selector->commands[id / 64] >> (id % 64) & 1) != 0;
        user->may_everything = user->may_everything || (selector->has_all_commands && has_all_keys(selector) &&
                                                        selector->has_all_channels && selector->has_all_databases);
    }
}

static void clear_selectors(struct acl_user *user)
{
    assert(user->selector_count != 0);
    while (user->selector_count > 1)
        selector_fini(&user->selectors[--user->selector_count]);
}

static void reset(struct acl_user *user)
{
    clear_hashes(user);
    clear_selectors(user);
    selector_fini(&user->selectors[0]);
    selector_init(&user->selectors[0]);
    user->flags = ACL_SANITIZE;
}

/* "(~a +get)": rules between the parentheses, separated by blanks. */
static enum acl_error add_selector(struct acl_user *user, struct slice rule)
{
    struct slice rest = slice_make(rule.data + 1, rule.size - 2);
    struct acl_selector selector;
    enum acl_error error = ACL_FINE;

    selector_init(&selector);
    while (error == ACL_FINE && rest.size != 0) {
        const char *blank = memchr(rest.data, ' ', rest.size);
        struct slice word = slice_make(rest.data, blank != NULL ? (size_t)(blank - rest.data) : rest.size);

        /* A pattern that ends with a parenthesis would end the selector when it is read again. */
        if (word.size != 0)
            error = word.data[word.size - 1] == ')' ? ACL_SYNTAX : selector_apply(&selector, word);
        rest = slice_skip(rest, blank != NULL ? word.size + 1 : word.size);
    }
    if (error != ACL_FINE) {
        selector_fini(&selector);
        return error;
    }
    user->selectors = mem_realloc(user->selectors, (user->selector_count + 1) * sizeof(*user->selectors));
    user->selectors[user->selector_count++] = selector;
    return ACL_FINE;
}

static bool apply_flag(struct acl_user *user, struct slice rule)
{
    static const struct {
        const char *word;
        uint32_t set, cleared;
    } flags[] = {
        {"on", ACL_ON, 0},
        {"off", 0, ACL_ON},
        {"sanitize-payload", ACL_SANITIZE, ACL_SKIP_SANITIZE},
        {"skip-sanitize-payload", ACL_SKIP_SANITIZE, ACL_SANITIZE},
    };

    for (size_t i = 0; i < countof(flags); i++) {
        if (slice_equal_text_nocase(rule, flags[i].word)) {
            user->flags = (user->flags | flags[i].set) & ~flags[i].cleared;
            return true;
        }
    }
    return false;
}

enum acl_error acl_user_apply(struct acl_user *user, struct slice rule)
{
    assert_is_draft(user);
    if (rule.size == 0 || apply_flag(user, rule))
        return ACL_FINE;
    if (strchr("><#!", rule.data[0]) != NULL && rule.data[0] != '\0')
        return apply_password(user, rule);
    if (rule.data[0] == '(' && rule.size > 1 && rule.data[rule.size - 1] == ')')
        return add_selector(user, rule);
    if (slice_equal_text_nocase(rule, "nopass")) {
        clear_hashes(user);
        user->flags |= ACL_NOPASS;
    } else if (slice_equal_text_nocase(rule, "resetpass")) {
        clear_hashes(user);
        user->flags &= ~(uint32_t)ACL_NOPASS;
    } else if (slice_equal_text_nocase(rule, "clearselectors")) {
        clear_selectors(user);
    } else if (slice_equal_text_nocase(rule, "reset")) {
        reset(user);
    } else {
        return selector_apply(&user->selectors[0], rule);
    }
    return ACL_FINE;
}

/* -------------------------------------------------------------------------------------------------------- words -- */

static bool opens(struct slice word)
{
    return word.size != 0 && word.data[0] == '(';
}

static bool closes(struct slice word)
{
    return word.size != 0 && word.data[word.size - 1] == ')';
}

bool acl_rule_next(struct acl_rule_reader *reader, struct slice *rule)
{
    struct buffer joined = {0};
    size_t size;

    mem_free(reader->joined);
    reader->joined = NULL;
    assert(reader->at <= reader->count);
    if (reader->at == reader->count)
        return false;
    *rule = reader->words[reader->at++];
    if (!opens(*rule) || closes(*rule))
        return true;
    buffer_append_slice(&joined, *rule);
    while (reader->at < reader->count && !closes(*rule)) {
        *rule = reader->words[reader->at++];
        buffer_append_char(&joined, ' ');
        buffer_append_slice(&joined, *rule);
    }
    reader->joined = buffer_take(&joined, &size);
    *rule = slice_make(reader->joined, size);
    return true;
}

const struct slice *acl_rules_unmatched(const struct slice *words, size_t count)
{
    const struct slice *open = NULL;

    for (size_t i = 0; i < count; i++) {
        if (open == NULL && opens(words[i]))
            open = &words[i];
        if (open != NULL && closes(words[i]))
            open = NULL;
    }
    return open;
}

/* ----------------------------------------------------------------------------------------------------- printing -- */

static void print_word(struct buffer *buffer, const char *before, struct slice word, size_t start)
{
    if (buffer->size != start)
        buffer_append_char(buffer, ' ');
    buffer_append_text(buffer, before);
    buffer_append_slice(buffer, word);
}

void acl_selector_print_commands(const struct acl_selector *selector, struct buffer *buffer)
{
    buffer_append_text(buffer, selector->begins_with_all ? "+@all" : "-@all");
    for (uint32_t i = 0; i < selector->rules.count; i++)
        print_word(buffer, "", selector->rules.items[i], 0);
}

void acl_selector_print_keys(const struct acl_selector *selector, struct buffer *buffer)
{
    static const char *const signs[] = {[ACL_READ] = "%R~", [ACL_WRITE] = "%W~", [ACL_READ_WRITE] = "~"};
    size_t start = buffer->size;

    if (selector->has_all_keys)
        buffer_append_text(buffer, "~*");
    for (uint32_t i = 0; i < selector->keys.count; i++) {
        const struct acl_key_pattern *key = &selector->keys.items[i];
        bool is_star = key->permissions == ACL_READ_WRITE && slice_equal_text(key->text, "*");

        /* "~*" would be the rule after which no other pattern is allowed. */
        print_word(buffer, is_star ? "%RW~" : signs[key->permissions], key->text, start);
    }
}

void acl_selector_print_channels(const struct acl_selector *selector, struct buffer *buffer)
{
    size_t start = buffer->size;

    if (selector->has_all_channels)
        buffer_append_text(buffer, "&*");
    for (uint32_t i = 0; i < selector->channels.count; i++)
        print_word(buffer, "&", selector->channels.items[i], start);
}

void acl_selector_print_databases(const struct acl_selector *selector, struct buffer *buffer)
{
    if (selector->has_all_databases)
        buffer_append_text(buffer, "alldbs");
    for (uint32_t i = 0; i < selector->databases.count; i++) {
        buffer_append_text(buffer, i == 0 ? "db=" : ",");
        buffer_append_u64(buffer, selector->databases.items[i]);
    }
}

/* Nothing for all of them: servers that do not know these rules read it, too. */
static void print_database_rules(const struct acl_selector *selector, struct buffer *buffer)
{
    if (selector->has_all_databases)
        return;
    if (selector->databases.count == 0)
        buffer_append_text(buffer, "resetdbs");
    acl_selector_print_databases(selector, buffer);
    buffer_append_char(buffer, ' ');
}

static void print_selector(const struct acl_selector *selector, struct buffer *buffer)
{
    size_t start = buffer->size;

    acl_selector_print_keys(selector, buffer);
    if (buffer->size != start)
        buffer_append_char(buffer, ' ');
    if (!selector->has_all_channels)
        buffer_append_text(buffer, "resetchannels ");
    start = buffer->size;
    acl_selector_print_channels(selector, buffer);
    if (buffer->size != start)
        buffer_append_char(buffer, ' ');
    print_database_rules(selector, buffer);
    acl_selector_print_commands(selector, buffer);
}

void acl_user_print_rules(const struct acl_user *user, struct buffer *buffer)
{
    buffer_append_text(buffer, (user->flags & ACL_ON) != 0 ? "on " : "off ");
    if ((user->flags & ACL_NOPASS) != 0)
        buffer_append_text(buffer, "nopass ");
    if ((user->flags & ACL_SANITIZE) != 0)
        buffer_append_text(buffer, "sanitize-payload ");
    if ((user->flags & ACL_SKIP_SANITIZE) != 0)
        buffer_append_text(buffer, "skip-sanitize-payload ");
    for (uint32_t i = 0; i < user->hashes.count; i++) {
        char text[ACL_HASH_TEXT_BYTES];

        acl_hash_print(user->hashes.items[i], text);
        buffer_append_char(buffer, '#');
        buffer_append(buffer, text, sizeof(text));
        buffer_append_char(buffer, ' ');
    }
    print_selector(&user->selectors[0], buffer);
    for (uint32_t i = 1; i < user->selector_count; i++) {
        buffer_append_text(buffer, " (");
        print_selector(&user->selectors[i], buffer);
        buffer_append_char(buffer, ')');
    }
}
