#include "tools/cli/docs.h"

#include "base/compiler.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A reply in RESP2, written without the sizes: words in brackets. */
static struct resp_reply *text_reply(const char *text, size_t size)
{
    struct resp_reply *reply = mem_alloc_zero(sizeof(*reply));

    reply->type = RESP_TYPE_BULK;
    reply->text = mem_copy(text, size);
    reply->size = size;
    return reply;
}

static struct resp_reply *read_reply(const char **at)
{
    struct resp_reply *reply;
    size_t size;

    *at += strspn(*at, " ");
    if (**at != '[') {
        size = strcspn(*at, " ]");
        reply = text_reply(*at, size);
        *at += size;
        return reply;
    }
    ++*at;
    reply = mem_alloc_zero(sizeof(*reply));
    reply->type = RESP_TYPE_ARRAY;
    for (;;) {
        *at += strspn(*at, " ");
        if (**at == ']')
            break;
        reply->elements = mem_realloc(reply->elements, (reply->element_count + 1) * sizeof(struct resp_reply *));
        reply->elements[reply->element_count++] = read_reply(at);
    }
    ++*at;
    return reply;
}

static void load(struct docs *docs, const char *text)
{
    struct resp_reply *reply = read_reply(&text);

    docs_load(docs, reply);
    resp_reply_destroy(&reply);
}

static const char known[] =
    "[get [summary Reads since 1.0 group string arguments [[name key type key]]]"
    " set [summary Writes since 1.0 group string arguments [[name key type key] [name value type string]"
    "  [name condition type oneof flags [optional] arguments [[name nx type pure-token token NX]"
    "  [name xx type pure-token token XX]]]"
    "  [name seconds type integer token EX flags [optional]]]]"
    " mset [summary Many since 1.0 group string arguments [[name data type block flags [multiple]"
    "  arguments [[name key type key] [name value type string]]]]]"
    " track [summary T since 1.0 group x arguments [[name prefix type string token PREFIX"
    "  flags [optional multiple multiple_token]] [name id type integer token IDS flags [multiple]]]]"
    " config [summary C since 2.0 group server subcommands [config|get [summary G since 2.0 group server"
    "  arguments [[name parameter type string flags [multiple]]]] config|set [summary S since 2.0 group server]]]]";

static void expect_arguments(const struct docs *docs, const char *name, const char *wanted)
{
    struct slice words[] = {slice_from_text(name)};
    const struct doc *doc = docs_find(docs, words, 1);

    assert_non_null(doc);
    assert_string_equal(doc->arguments, wanted);
}

static void syntax_is_made_of_the_arguments(void **state)
{
    struct docs docs = {0};

    (void)state;
    load(&docs, known);
    assert_int_equal(docs.count, 7);
    expect_arguments(&docs, "GET", "key");
    expect_arguments(&docs, "set", "key value [NX|XX] [EX seconds]");
    expect_arguments(&docs, "mset", "key value [key value ...]");
    expect_arguments(&docs, "track", "[PREFIX prefix [PREFIX prefix ...]] IDS id [id ...]");
    docs_fini(&docs);
}

static void expect_hint(const struct docs *docs, const char *line, const char *wanted)
{
    struct buffer hint = {0};

    docs_hint(docs, slice_from_text(line), &hint);
    assert_string_equal(buffer_text(&hint), wanted);
    buffer_fini(&hint);
}

static void hints_are_what_is_left(void **state)
{
    struct docs docs = {0};

    (void)state;
    load(&docs, known);
    expect_hint(&docs, "", "");
    expect_hint(&docs, "ge", "");
    expect_hint(&docs, "get", " key");
    expect_hint(&docs, "get ", "key");
    expect_hint(&docs, "get a", "");
    expect_hint(&docs, "get a b c", "");
    expect_hint(&docs, "set 'a b' ", "value [NX|XX] [EX seconds]");
    expect_hint(&docs, "set a b EX", " [NX|XX] [EX seconds]");
    expect_hint(&docs, "set \"a", "");
    expect_hint(&docs, "Config  Get x ", "[parameter ...]");
    expect_hint(&docs, "config ", "");
    expect_hint(&docs, "config nothing", "");
    docs_fini(&docs);
}

static void expect_completion(const struct docs *docs, const char *line, uint32_t index, const char *wanted)
{
    char *found = docs_complete(docs, line, index);

    if (wanted == NULL)
        assert_null(found);
    else
        assert_string_equal(found, wanted);
    mem_free(found);
}

static void completions_come_in_order(void **state)
{
    struct docs docs = {0};

    (void)state;
    load(&docs, known);
    expect_completion(&docs, "c", 0, "CONFIG");
    expect_completion(&docs, "c", 1, "CONFIG GET");
    expect_completion(&docs, "config s", 0, "CONFIG SET");
    expect_completion(&docs, "config s", 1, NULL);
    expect_completion(&docs, "x", 0, NULL);
    expect_completion(&docs, "help g", 0, "help GET");
    expect_completion(&docs, "help @l", 0, "help @list");
    expect_completion(&docs, "help @l", 1, NULL);
    docs_fini(&docs);
}

static void help_is_for_commands_and_groups(void **state)
{
    const struct slice get = SLICE("get"), group = SLICE("@string"), config = SLICE("config"), none = SLICE("no");
    struct docs docs = {0};
    struct buffer text = {0};

    (void)state;
    load(&docs, known);
    assert_true(docs_help(&docs, &get, 1, &text));
    assert_string_equal(buffer_text(&text), "\r\n  \x1b[1mGET\x1b[0m \x1b[90mkey\x1b[0m\r\n"
                                            "  \x1b[33msummary:\x1b[0m Reads\r\n  \x1b[33msince:\x1b[0m 1.0\r\n"
                                            "  \x1b[33mgroup:\x1b[0m string\r\n");
    buffer_clear(&text);
    assert_true(docs_help(&docs, &group, 1, &text));
    assert_non_null(strstr(buffer_text(&text), "MSET"));
    assert_null(strstr(buffer_text(&text), "group:"));
    buffer_clear(&text);
    assert_true(docs_help(&docs, &config, 1, &text));
    assert_non_null(strstr(buffer_text(&text), "CONFIG SET"));
    assert_false(docs_help(&docs, &none, 1, &text));
    buffer_fini(&text);
    docs_fini(&docs);
}

static void what_makes_no_sense_is_left_out(void **state)
{
    static const char *const texts[] = {"x",
                                        "[]",
                                        "[x]",
                                        "[x y]",
                                        "[[] []]",
                                        "[x [arguments y]]",
                                        "[x [arguments [y]]]",
                                        "[x [arguments [[flags y]]]]",
                                        "[x [subcommands [y]]]",
                                        "[x [subcommands [y z]]]",
                                        "[x [arguments [[type oneof arguments [[] x]]]]]"};
    const struct slice word = SLICE("x");

    (void)state;
    for (size_t i = 0; i < countof(texts); i++) {
        struct docs docs = {0};
        struct buffer text = {0};

        load(&docs, texts[i]);
        (void)docs_find(&docs, &word, 1);
        docs_hint(&docs, SLICE("x y"), &text);
        buffer_fini(&text);
        docs_fini(&docs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(syntax_is_made_of_the_arguments), cmocka_unit_test(hints_are_what_is_left),
        cmocka_unit_test(completions_come_in_order),       cmocka_unit_test(help_is_for_commands_and_groups),
        cmocka_unit_test(what_makes_no_sense_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
