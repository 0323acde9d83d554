#include "server/acl/acl_file.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "server/acl/acl.h"
#include "server/acl/acl_options.h"
#include "server/acl/acl_user.h"

#include <errno.h>
#include <string.h>

enum { FILE_SIZE_MOST = 1 << 30, SHOWN_BYTES_MOST = 128 };

/* -------------------------------------------------------------------------------------------------------- a line -- */

/* Words between single blanks; nothing is quoted in this file, and rules hold no blanks. */
struct line_words {
    struct slice *items;
    size_t count, capacity;
};

static void split(struct slice line, struct line_words *words)
{
    words->count = 0;
    for (;;) {
        const char *blank = line.size == 0 ? NULL : memchr(line.data, ' ', line.size);
        size_t size = blank != NULL ? (size_t)(blank - line.data) : line.size;

        if (size != 0)
            *ARRAY_PUSH(words) = slice_make(line.data, size);
        if (blank == NULL)
            return;
        line = slice_skip(line, size + 1);
    }
}

static struct slice trim(struct slice line)
{
    while (line.size != 0 && strchr(" \t\r\n", line.data[0]) != NULL && line.data[0] != '\0')
        line = slice_skip(line, 1);
    while (line.size != 0 && strchr(" \t\r\n", line.data[line.size - 1]) != NULL && line.data[line.size - 1] != '\0')
        line.size--;
    return line;
}

/* ------------------------------------------------------------------------------------------------------- reading -- */

struct reader {
    struct {
        struct acl_user **items;
        size_t count, capacity;
    } users;
    struct table names; /* of struct acl_user */
    struct line_words words;
    struct buffer *errors;
    unsigned line_number;
    bool has_default;
};

static uint64_t hash_of_user(const void *item)
{
    return hash_bytes(((const struct acl_user *)item)->name.data, ((const struct acl_user *)item)->name.size);
}

static bool has_name(const void *item, const void *name)
{
    return slice_equal(((const struct acl_user *)item)->name, *(const struct slice *)name);
}

static void add_user(struct reader *reader, struct acl_user *user)
{
    assert(table_find(&reader->names, hash_of_user(user), has_name, &user->name) == NULL);
    *ARRAY_PUSH(&reader->users) = user;
    table_insert(&reader->names, hash_of_user(user), user, hash_of_user);
    reader->has_default = reader->has_default || slice_equal_text(user->name, "default");
}

static void say_where(struct reader *reader)
{
    buffer_printf(reader->errors, "%s:%u", option_aclfile.size != 0 ? option_aclfile.data : "", reader->line_number);
}

static void say_wrong_rule(struct reader *reader, enum acl_error error, struct slice rule)
{
    say_where(reader);
    if (error == ACL_UNKNOWN_COMMAND)
        buffer_printf(reader->errors, ": Error in applying operation '%.*s': %s. ",
                      (int)MIN(rule.size, (size_t)SHOWN_BYTES_MOST), rule.data, acl_error_text(error));
    else
        buffer_printf(reader->errors, ": %s. ", acl_error_text(error));
}

static void read_rules(struct reader *reader, struct acl_user *user, const struct slice *words, size_t count)
{
    struct acl_rule_reader rules = {.words = words, .count = count};
    bool said = false; /* errors that do not concern a name are reported once for each line */
    struct slice rule;

    if (acl_rules_unmatched(words, count) != NULL) {
        say_where(reader);
        buffer_append_text(reader->errors, ": Unmatched parenthesis in selector definition. ");
        return;
    }
    while (acl_rule_next(&rules, &rule)) {
        enum acl_error error = acl_user_apply(user, rule);

        if (error == ACL_FINE || (said && error != ACL_UNKNOWN_COMMAND))
            continue;
        say_wrong_rule(reader, error, rule);
        said = said || error != ACL_UNKNOWN_COMMAND;
    }
}

static void read_line(struct reader *reader, struct slice line)
{
    const struct line_words *words = &reader->words;
    struct acl_user *user;

    split(line, &reader->words);
    if (words->count == 0)
        return;
    if (!slice_equal_text(words->items[0], "user") || words->count < 2) {
        say_where(reader);
        buffer_append_text(reader->errors, " should start with user keyword followed by the username. ");
        return;
    }
    if (!acl_name_is_fine(words->items[1])) {
        buffer_printf(reader->errors, "'%s:%u: username '%.*s' contains invalid characters. ",
                      option_aclfile.size != 0 ? option_aclfile.data : "", reader->line_number,
                      (int)MIN(words->items[1].size, (size_t)SHOWN_BYTES_MOST), words->items[1].data);
        return;
    }
    user = acl_user_create(words->items[1]);
    if (table_find(&reader->names, hash_of_user(user), has_name, &user->name) != NULL) {
        buffer_printf(reader->errors, "WARNING: Duplicate user '%.*s' found on line %u. ",
                      (int)MIN(user->name.size, (size_t)SHOWN_BYTES_MOST), user->name.data, reader->line_number);
        acl_user_release(&user);
        return;
    }
    read_rules(reader, user, words->items + 2, words->count - 2);
    acl_user_seal(user);
    add_user(reader, user);
}

static void read_text(struct reader *reader, struct slice text)
{
    while (text.size != 0) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t size = end != NULL ? (size_t)(end - text.data) : text.size;

        reader->line_number++;
        read_line(reader, trim(slice_make(text.data, size)));
        text = slice_skip(text, end != NULL ? size + 1 : size);
    }
    if (!reader->has_default)
        add_user(reader, acl_user_create_default());
}

static void release_users(struct acl_user **users, size_t count)
{
    for (size_t i = 0; i < count; i++)
        acl_user_release(&users[i]);
}

bool acl_load_text(struct slice text, struct buffer *errors)
{
    struct reader reader = {.errors = errors};
    size_t start = errors->size;
    bool done;

    read_text(&reader, text);
    done = errors->size == start;
    if (done)
        acl_replace_all(reader.users.items, reader.users.count);
    else
        release_users(reader.users.items, reader.users.count);
    if (!done)
        buffer_append_text(errors, "WARNING: ACL errors detected, no change to the previously active ACL rules was "
                                   "performed");
    table_clear(&reader.names, NULL, NULL);
    ARRAY_FINI(&reader.users);
    ARRAY_FINI(&reader.words);
    return done;
}

bool acl_load(struct buffer *errors)
{
    size_t size = 0;
    char *text = NULL;
    bool done;

    assert(option_aclfile.size != 0);
    if (file_load(option_aclfile.data, FILE_SIZE_MOST, &text, &size) != STATUS_OK) {
        buffer_printf(errors, "Error loading ACLs, opening file '%s': %s", option_aclfile.data, strerror(errno));
        return false;
    }
    done = acl_load_text(slice_make(text, size), errors);
    mem_free(text);
    return done;
}

/* ------------------------------------------------------------------------------------------------------- writing -- */

bool acl_save(void)
{
    struct buffer text = {0};
    size_t count;
    struct acl_user **users = acl_list(&count);
    bool done;

    assert(option_aclfile.size != 0);
    for (size_t i = 0; i < count; i++) {
        buffer_append_text(&text, "user ");
        buffer_append_slice(&text, users[i]->name);
        buffer_append_char(&text, ' ');
        acl_user_print_rules(users[i], &text);
        buffer_append_char(&text, '\n');
    }
    acl_list_release(users, count);
    done = file_store(option_aclfile.data, buffer_slice(&text)) == STATUS_OK;
    if (!done)
        log_warning("Can't save the users to the ACL file '%s': %s", option_aclfile.data, strerror(errno));
    buffer_fini(&text);
    return done;
}
