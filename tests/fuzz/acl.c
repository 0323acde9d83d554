/* ACL rules, and the ACL file. Properties: accepted rules are printed in words that are accepted again and mean the
 * same, and refused rules change nothing. */
#include "fuzz.h"
#include "server/acl/acl.h"
#include "server/acl/acl_check.h"
#include "server/acl/acl_file.h"
#include "server/acl/acl_user.h"
#include "server/command/command.h"

#include "base/hash.h"

static void run_nothing(struct request *request)
{
    (void)request;
}

static const struct command_row config_rows[] = {
    {.name = "get", .run = run_nothing, .arity = -3, .flags = "admin", .categories = "@admin @slow @dangerous"},
    {.name = "set", .run = run_nothing, .arity = -3, .flags = "admin", .categories = "@admin @slow @dangerous"},
    {0},
};

/* clang-format off */
static const struct command_row rows[] = {
    {.name = "get", .run = run_nothing, .arity = 2, .flags = "readonly fast", .categories = "@string",
     .keys = "RO,ACCESS@index:1@range:0,1,0"},
    {.name = "set", .run = run_nothing, .arity = -3, .flags = "write", .categories = "@string",
     .keys = "OW,UPDATE@index:1@range:0,1,0"},
    {.name = "publish", .run = run_nothing, .arity = 3, .channels = CHANNELS_FIRST, .flags = "pubsub fast",
     .categories = "@pubsub"},
    {.name = "config", .arity = -2, .categories = "@slow", .subcommands = config_rows},
    {0},
};
/* clang-format on */

static void setup(void)
{
    static const struct command_row *const tables[] = {rows};
    static bool done;

    if (done)
        return;
    done = true;
    hash_setup();
    command_registry_setup(tables, countof(tables));
    acl_setup();
}

/* The next of words separated by blanks. */
static bool next_word(struct slice *rest, struct slice *word)
{
    const char *blank = rest->size == 0 ? NULL : memchr(rest->data, ' ', rest->size);

    if (rest->size == 0)
        return false;
    word->data = rest->data;
    word->size = blank != NULL ? (size_t)(blank - rest->data) : rest->size;
    *rest = slice_skip(*rest, blank != NULL ? word->size + 1 : word->size);
    return true;
}

static void check_rules(struct slice input)
{
    struct acl_user *user = acl_user_create(SLICE("u"));
    struct slice words[64], rule;
    struct acl_rule_reader reader = {.words = words};

    while (reader.count < countof(words) && next_word(&input, &words[reader.count]))
        reader.count++;
    while (acl_rule_next(&reader, &rule)) {
        struct buffer before = {0}, after = {0};

        acl_user_print_rules(user, &before);
        if (acl_user_apply(user, rule) != ACL_FINE) {
            acl_user_print_rules(user, &after);
            assert(slice_equal(buffer_slice(&before), buffer_slice(&after)));
        }
        buffer_fini(&before);
        buffer_fini(&after);
    }
    acl_user_release(&user);
}

static void append_all(struct buffer *text)
{
    size_t count;
    struct acl_user **users = acl_list(&count);

    for (size_t i = 0; i < count; i++) {
        buffer_append_text(text, "user ");
        buffer_append_slice(text, users[i]->name);
        buffer_append_char(text, ' ');
        acl_user_print_rules(users[i], text);
        buffer_append_char(text, '\n');
        for (uint32_t id = 0; id < command_count(); id++) {
            const struct slice args[] = {command_at(id)->full_name, SLICE("a"), SLICE("b")};

            buffer_append_i64(text, acl_check(users[i], 0, command_at(id), args, countof(args)).verdict);
        }
        buffer_append_text(text, "\n");
    }
    acl_list_release(users, count);
}

/* Only the lines that a file has. */
static void drop_verdicts(struct buffer *from, struct buffer *to)
{
    struct slice rest = buffer_slice(from);

    for (bool is_rule = true; rest.size != 0; is_rule = !is_rule) {
        const char *end = memchr(rest.data, '\n', rest.size);
        size_t size = (size_t)(end + 1 - rest.data);

        if (is_rule)
            buffer_append(to, rest.data, size);
        rest = slice_skip(rest, size);
    }
}

static void check_file(struct slice input)
{
    struct buffer errors = {0}, before = {0}, after = {0}, text = {0};
    bool done;

    append_all(&before);
    done = acl_load_text(input, &errors);
    assert(done == (errors.size == 0));
    append_all(&after);
    if (!done) {
        assert(slice_equal(buffer_slice(&before), buffer_slice(&after)));
    } else {
        drop_verdicts(&after, &text);
        done = acl_load_text(buffer_slice(&text), &errors);
        assert(done);
        buffer_clear(&before);
        append_all(&before);
        assert(slice_equal(buffer_slice(&before), buffer_slice(&after)));
    }
    buffer_fini(&errors);
    buffer_fini(&before);
    buffer_fini(&after);
    buffer_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);

    setup();
    if ((fuzz_take_byte(&input) & 1) != 0)
        check_file(input);
    else
        check_rules(input);
    return 0;
}
