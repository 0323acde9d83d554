#include "server/acl/acl_declared.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/words.h"
#include "server/acl/acl.h"
#include "server/acl/acl_file.h"
#include "server/acl/acl_options.h"
#include "server/acl/acl_user.h"
#include "server/config/config.h"
#include "server/config/options.h"

#include <stdio.h>

enum { SHOWN_BYTES_MOST = 128 };

/* A line: applied when all is known, for instance acl-pubsub-default. */
struct declared {
    struct declared *next;
    size_t count;
    struct slice words[]; /* the name, then rules */
};

static struct {
    struct declared *first, **end;
    char reason[512]; /* why the last one was refused */
} lines;              /* global: owner: the main thread, until the workers start */

/* ------------------------------------------------------------------------------------------------------- reading -- */

static const char *refuse(struct slice name, const char *reason)
{
    snprintf(lines.reason, sizeof(lines.reason), "Error in user declaration '%.*s': %s",
             (int)MIN(name.size, (size_t)SHOWN_BYTES_MOST), name.data, reason);
    return lines.reason;
}

static bool is_declared(struct slice name)
{
    for (const struct declared *line = lines.first; line != NULL; line = line->next) {
        if (slice_equal(line->words[0], name))
            return true;
    }
    return false;
}

/* The first that is wrong with the rules; all are tried. */
static enum acl_error apply_all(struct acl_user *user, const struct slice *words, size_t count)
{
    struct acl_rule_reader rules = {.words = words, .count = count};
    enum acl_error first = ACL_FINE;
    struct slice rule;

    while (acl_rule_next(&rules, &rule)) {
        enum acl_error error = acl_user_apply(user, rule);

        first = first == ACL_FINE ? error : first;
    }
    return first;
}

static enum acl_error try_rules(struct slice name, const struct slice *words, size_t count)
{
    struct acl_user *probe = acl_user_create(name);
    enum acl_error error = apply_all(probe, words, count);

    acl_user_release(&probe);
    return error;
}

static void keep_line(const struct slice *words, size_t count)
{
    struct declared *line = mem_alloc(sizeof(*line) + count * sizeof(*line->words));

    assert(count != 0);
    *line = (struct declared){.count = count};
    for (size_t i = 0; i < count; i++)
        line->words[i] = slice_make(mem_copy(words[i].size != 0 ? words[i].data : "", words[i].size), words[i].size);
    if (lines.end == NULL)
        lines.end = &lines.first;
    *lines.end = line;
    lines.end = &line->next;
}

static const char *read_line(const struct slice *words, size_t count)
{
    const struct slice *unmatched;
    enum acl_error error;
    struct slice name;
    char reason[SHOWN_BYTES_MOST + 80];

    gate_assert_main_alone();
    if (count < 2)
        return "Bad directive or wrong number of arguments";
    name = words[1];
    if (!acl_name_is_fine(name))
        return refuse(name, "Usernames can't contain spaces or null characters");
    if (is_declared(name))
        return refuse(name, "Duplicate user found. A user can only be defined once in config files");
    unmatched = acl_rules_unmatched(words + 2, count - 2);
    if (unmatched != NULL) {
        snprintf(reason, sizeof(reason), "Unmatched parenthesis in acl selector starting at '%.*s'.",
                 (int)MIN(unmatched->size, (size_t)SHOWN_BYTES_MOST), unmatched->data);
        return refuse(name, reason);
    }
    error = try_rules(name, words + 2, count - 2);
    if (error != ACL_FINE)
        return refuse(name, acl_error_text(error));
    keep_line(words + 1, count - 1);
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------- writing -- */

/* A default user as requirepass, or its absence, defines it needs no line. */
static bool is_plain_default(const struct acl_user *user)
{
    struct acl_user *plain;
    struct buffer a = {0}, b = {0};
    bool same;

    if (!slice_equal_text(user->name, "default"))
        return false;
    plain = acl_user_create_default();
    if (option_requirepass.size != 0)
        acl_user_set_password(plain, slice_make(option_requirepass.data, option_requirepass.size));
    acl_user_print_rules(plain, &a);
    acl_user_print_rules(user, &b);
    same = slice_equal(buffer_slice(&a), buffer_slice(&b));
    acl_user_release(&plain);
    buffer_fini(&a);
    buffer_fini(&b);
    return same;
}

static void append_word(struct buffer *out, struct slice word)
{
    buffer_append_char(out, ' ');
    if (words_needs_quote(word))
        words_quote(out, word);
    else
        buffer_append_slice(out, word);
}

static void append_user(const struct acl_user *user, struct buffer *out)
{
    struct buffer rules = {0};
    struct slice rest;

    buffer_append_text(out, "user");
    append_word(out, user->name);
    acl_user_print_rules(user, &rules);
    rest = buffer_slice(&rules);
    while (rest.size != 0) {
        const char *blank = memchr(rest.data, ' ', rest.size);
        size_t size = blank != NULL ? (size_t)(blank - rest.data) : rest.size;

        append_word(out, slice_make(rest.data, size));
        rest = slice_skip(rest, blank != NULL ? size + 1 : size);
    }
    buffer_append_char(out, '\n');
    buffer_fini(&rules);
}

/* With a file of their own users have no lines here. */
static void rewrite(struct buffer *out)
{
    size_t count;
    struct acl_user **users;

    gate_assert_alone();
    if (option_aclfile.size != 0)
        return;
    users = acl_list(&count);
    for (size_t i = 0; i < count; i++) {
        if (!is_plain_default(users[i]))
            append_user(users[i], out);
    }
    acl_list_release(users, count);
}

const struct config_directive acl_user_directive = {.name = "user", .run = read_line, .rewrite = rewrite};

/* --------------------------------------------------------------------------------------------------------- start -- */

static bool apply_line(struct acl_user *draft, void *context)
{
    const struct declared *line = context;
    enum acl_error error = ACL_FINE;

    if (slice_equal_text(draft->name, "default")) /* it is there already */
        error = acl_user_apply(draft, SLICE("reset"));
    assert(error == ACL_FINE);
    error = apply_all(draft, line->words + 1, line->count - 1);
    if (error != ACL_FINE)
        log_warning("Error in user declaration '%.*s': %s", (int)line->words[0].size, line->words[0].data,
                    acl_error_text(error));
    else if ((draft->flags & ACL_ON) == 0)
        log_notice("The user '%.*s' is disabled (there is no 'on' modifier in the user description). Make sure this is "
                   "not a configuration error.",
                   (int)line->words[0].size, line->words[0].data);
    return error == ACL_FINE;
}

static bool start_from_file(void)
{
    struct buffer errors = {0};
    bool done = acl_load(&errors);

    if (!done)
        log_warning("Aborting KeyDB startup because of ACL errors: %s", buffer_text(&errors));
    buffer_fini(&errors);
    return done;
}

bool acl_start(void)
{
    bool done = true;

    gate_assert_main_alone();
    if (option_requirepass.size != 0)
        acl_set_default_password(slice_make(option_requirepass.data, option_requirepass.size));
    if (option_aclfile.size != 0 && lines.first != NULL) {
        log_warning("Configuring KeyDB with users defined in keydb.conf and at the same setting an ACL file path is "
                    "invalid. This setup is very likely to lead to configuration errors and security holes, please "
                    "define either an ACL file or declare users directly in your keydb.conf, but not both.");
        return false;
    }
    if (option_aclfile.size != 0)
        return start_from_file();
    for (struct declared *line = lines.first; done && line != NULL; line = line->next)
        done = acl_edit(line->words[0], apply_line, line);
    return done;
}

void acl_declared_teardown(void)
{
    gate_assert_main_alone();
    while (lines.first != NULL) {
        struct declared *gone = lines.first;

        lines.first = gone->next;
        for (size_t i = 0; i < gone->count; i++)
            mem_free((void *)(uintptr_t)gone->words[i].data);
        mem_free(gone);
    }
    lines.end = NULL;
}
