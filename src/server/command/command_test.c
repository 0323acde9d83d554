#include "base/buffer.h"
#include "base/random.h"
#include "base/test_seed.h"
#include "server/command/command.h"
#include "server/command/command_syntax.h"
#include "server/command/operation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void run_nothing(struct request *request)
{
    (void)request;
}

#define KEY1 "@index:1@range:0,1,0"

static bool find_two(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    if (arg_count < 3 || args[2].size == 0)
        return false;
    (void)key_positions_add(positions, 2, KEY_RO);
    return true;
}

/* clang-format off */
static const struct command_row subs[] = {
    {.name = "get", .run = run_nothing, .arity = 3, .flags = "readonly", .categories = "@keyspace",
     .keys = "RO@index:2@range:0,1,0"},
    {.name = "help", .run = run_nothing, .arity = 2, .flags = "loading stale", .categories = "@slow"},
    {0},
};
/* clang-format on */

/* clang-format off */
static const struct command_row rows[] = {
    {.name = "get", .run = run_nothing, .arity = 2, .flags = "readonly fast", .categories = "@string",
     .keys = "RO,ACCESS" KEY1},
    {.name = "set", .run = run_nothing, .arity = -3, .flags = "write denyoom", .categories = "@string",
     .keys = "RW,ACCESS,UPDATE,VARIABLE_FLAGS" KEY1, .find_keys = find_two},
    {.name = "del", .run = run_nothing, .arity = -2, .flags = "write", .keys = "RM,DELETE@index:1@range:-1,1,0"},
    {.name = "flushall", .run = run_nothing, .arity = -1, .flags = "write"},
    {.name = "mset", .run = run_nothing, .arity = -3, .flags = "write", .keys = "OW,UPDATE@index:1@range:-1,2,0"},
    {.name = "rename", .run = run_nothing, .arity = 3, .flags = "write",
     .keys = "RW,ACCESS,DELETE" KEY1 " OW,UPDATE@index:2@range:0,1,0"},
    {.name = "brpop", .run = run_nothing, .arity = -3, .flags = "write blocking",
     .keys = "RW,ACCESS,DELETE@index:1@range:-2,1,0"},
    {.name = "zunionstore", .run = run_nothing, .arity = -4, .flags = "write",
     .keys = "OW,UPDATE" KEY1 " RO,ACCESS@index:2@keynum:0,1,1"},
    {.name = "eval", .run = run_nothing, .arity = -3, .flags = "noscript no_mandatory_keys", .categories =
     "@scripting", .keys = "RW,ACCESS,UPDATE@index:2@keynum:0,1,1"},
    {.name = "xread", .run = run_nothing, .arity = -4, .flags = "readonly blocking", .categories = "@stream",
     .keys = "RO,ACCESS@keyword:STREAMS,1@range:-1,1,2"},
    {.name = "georadius", .run = run_nothing, .arity = -6, .flags = "write",
     .keys = "RO,ACCESS" KEY1 " OW,UPDATE@keyword:STORE,6@range:0,1,0 OW,UPDATE@keyword:STOREDIST,6@range:0,1,0"},
    {.name = "sort", .run = run_nothing, .arity = -2, .flags = "write", .keys = "RO,ACCESS" KEY1
     " RO,ACCESS@unknown OW,UPDATE@unknown", .find_keys = find_two},
    {.name = "sintercard", .run = run_nothing, .arity = -3, .flags = "readonly",
     .keys = "RO,ACCESS@index:1@keynum:0,1,1"},
    {.name = "georadiusbymember_ro", .run = run_nothing, .arity = -5, .flags = "readonly"},
    {.name = "georadiusbymember_rp", .run = run_nothing, .arity = -5, .flags = "readonly"},
    {.name = "ping", .run = run_nothing, .arity = -1, .flags = "fast", .categories = "@connection"},
    {.name = "shutdown", .run = run_nothing, .arity = -1, .flags = "admin noscript"},
    {.name = "object", .arity = -2, .categories = "@slow", .subcommands = subs},
    {0},
};
/* clang-format on */

static int setup(void **state)
{
    const struct command_row *const tables[] = {rows};

    (void)state;
    command_registry_setup(tables, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    command_registry_teardown();
    return 0;
}

static const struct command *find_text(const char *name)
{
    return command_find_full(slice_from_text(name));
}

static void names_are_found_in_any_case(void **state)
{
    (void)state;
    assert_ptr_equal(find_text("GeT"), command_top_at(0));
    assert_ptr_equal(find_text("GEORADIUSBYMEMBER_RO")->row, &rows[13]);
    assert_ptr_equal(find_text("GEORADIUSBYMEMBER_RP")->row, &rows[14]);
    assert_null(find_text("GEORADIUSBYMEMBER_RQ"));
    assert_null(find_text(""));
    assert_null(find_text("ge"));
    assert_null(find_text("gett"));
    assert_null(find_text("help")); /* a subcommand's word is no command */
    assert_null(command_find(slice_make("get\0", 4)));
    assert_null(command_find(SLICE("g@t")));
    assert_null(command_find(SLICE("\xc7"
                                   "et")));
    assert_string_equal(find_text("Object|Get")->full_name.data, "object|get");
    assert_null(find_text("object|set"));
    assert_null(find_text("get|get"));
    assert_null(find_text("|"));
    assert_int_equal(command_top_count(), 18);
    assert_int_equal(command_count(), 20);
    for (uint32_t id = 0; id < command_count(); id++) {
        assert_int_equal(command_at(id)->id, id);
        assert_ptr_equal(command_find_full(command_at(id)->full_name), command_at(id));
    }
}

/* Against a loop over all rows. */
static void random_names_agree_with_a_model(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (int round = 0; round < 200000; round++) {
        const struct command *expected = NULL;
        char name[64];
        size_t size;

        if (random_below(&random, 2) == 0) {
            const struct command *some = command_top_at((uint32_t)random_below(&random, command_top_count()));

            size = some->full_name.size;
            memcpy(name, some->full_name.data, size);
        } else {
            size = random_below(&random, 24);
            for (size_t i = 0; i < size; i++)
                name[i] = "getsmrn_@[`{"[random_below(&random, 12)];
        }
        for (uint64_t changes = random_below(&random, 4); size != 0 && changes > 0; changes--)
            name[random_below(&random, size)] ^= random_below(&random, 3) == 0 ? 1 : 0x20;
        for (uint32_t i = 0; i < command_top_count(); i++) {
            if (slice_equal_nocase(slice_make(name, size), command_top_at(i)->full_name))
                expected = command_top_at(i);
        }
        assert_ptr_equal(command_find(slice_make(name, size)), expected);
    }
}

static void check_range(const char *name, int first, int last, int step, bool simple, bool movable)
{
    const struct command *command = find_text(name);

    assert_int_equal(command->first_key, first);
    assert_int_equal(command->last_key, last);
    assert_int_equal(command->key_step, step);
    assert_int_equal(command->simple_keys, simple);
    assert_int_equal((command->flags & COMMAND_MOVABLE_KEYS) != 0, movable);
}

static void legacy_ranges(void **state)
{
    (void)state;
    check_range("get", 1, 1, 1, true, false);
    check_range("set", 1, 1, 1, true, false); /* find_keys tells flags only */
    check_range("mset", 1, -1, 2, true, false);
    check_range("rename", 1, 2, 1, true, false);
    check_range("brpop", 1, -2, 1, true, false);
    check_range("zunionstore", 1, 1, 1, false, true);
    check_range("eval", 0, 0, 0, false, true);
    check_range("sort", 1, 1, 1, false, true);
    check_range("ping", 0, 0, 0, false, false);
    check_range("object|get", 2, 2, 1, true, false);
}

static bool has_category(const char *command, const char *category)
{
    for (unsigned bit = 0; command_category_name(bit) != NULL; bit++) {
        if (strcmp(command_category_name(bit), category) == 0)
            return (find_text(command)->categories >> bit & 1) != 0;
    }
    return false;
}

static void flags_imply_categories(void **state)
{
    (void)state;
    assert_true(has_category("get", "read") && has_category("get", "fast") && !has_category("get", "slow"));
    assert_true(has_category("set", "write") && has_category("set", "slow") && has_category("set", "string"));
    assert_true(has_category("brpop", "blocking"));
    assert_true(has_category("shutdown", "admin") && has_category("shutdown", "dangerous"));
    assert_false(has_category("eval", "read"));
    assert_true(has_category("object|get", "keyspace") && has_category("object|get", "read"));
}

/* Words by blanks; the keys as "1,3", "-" for false. */
static void check_keys(const char *line, const char *expected)
{
    char copy[256], *rest = copy, *word;
    struct slice args[32];
    uint32_t count = 0;
    const struct command *command;
    struct key_positions positions = {0};
    struct buffer told = {0};

    snprintf(copy, sizeof(copy), "%s", line);
    while ((word = strsep(&rest, " ")) != NULL)
        args[count++] = slice_from_text(word);
    command = command_find(args[0]);
    if (command->subcommand_count != 0)
        command = command_find_subcommand(command, args[1]);
    if (!command_keys(command, args, count, &positions)) {
        buffer_append_text(&told, "-");
        assert_int_equal(positions.count, 0);
    }
    for (uint32_t i = 0; i < positions.count; i++)
        buffer_printf(&told, "%s%u", i == 0 ? "" : ",", positions.items[i].arg_index);
    assert_string_equal(buffer_text(&told), expected);
    buffer_fini(&told);
    key_positions_fini(&positions);
}

static void keys_of_arguments(void **state)
{
    (void)state;
    check_keys("get a", "1");
    check_keys("mset a 1 b 2", "1,3");
    check_keys("rename a b", "1,2");
    check_keys("brpop a b c 0", "1,2,3");
    check_keys("object get a", "2");
    check_keys("ping", "");
    check_keys("set a b", "2"); /* by find_keys */
    check_keys("zunionstore d 2 a b", "1,3,4");
    check_keys("zunionstore d 3 a b", "-");
    check_keys("zunionstore d 0 a", "-");
    check_keys("zunionstore d -1 a", "-");
    check_keys("zunionstore d x a", "-");
    check_keys("sintercard 99999999999999 a", "-");
    check_keys("sintercard 1 a LIMIT 1", "2");
    check_keys("eval s 0", "");
    check_keys("eval s 1 a", "3");
    check_keys("eval s 5 a", "");
    check_keys("xread COUNT 1 streams a b 0 0", "4,5");
    check_keys("xread COUNT 1 a b", "-");
    check_keys("georadius a 1 2 3 m", "1");
    check_keys("georadius a 1 2 3 m store x storedist y", "1,7,9");
}

/* What an operation is: the index of its key, enum effect_flag. */
static void check_operation(const char *line, unsigned key_index, unsigned flags)
{
    char copy[256], *rest = copy, *word;
    struct effects effects = {0};
    struct slice words[32];
    uint32_t count = 0;

    snprintf(copy, sizeof(copy), "%s", line);
    while ((word = strsep(&rest, " ")) != NULL)
        words[count++] = slice_from_text(word);
    effects_add(&effects, 0, words, count);
    operation_describe(&effects, words, count);
    assert_int_equal(effects.items[0].key_index, key_index);
    assert_int_equal(effects.items[0].flags, flags);
    effects_fini(&effects);
}

static void operations_are_described(void **state)
{
    (void)state;
    check_operation("SET a b", 1, EFFECT_OVERWRITES);
    check_operation("SET a b PXAT 1", 1, EFFECT_OVERWRITES);
    check_operation("SET a keepttl", 1, EFFECT_OVERWRITES);
    check_operation("SET a b KEEPTTL", 1, 0);
    check_operation("SET a b PX 1 nx", 1, 0);
    check_operation("DEL a", 1, EFFECT_OVERWRITES);
    check_operation("brpop a 0", 1, 0);
    check_operation("FLUSHALL", 0, EFFECT_OVERWRITES | EFFECT_FLUSH);
    check_operation("object get a", 2, 0);
    check_operation("object", 0, 0);
    check_operation("object nothing", 0, 0);
    check_operation("unknown a", 0, 0);
}

static void print_list(struct buffer *text, const struct syntax_list *list);

static void print_node(struct buffer *text, const struct syntax_node *node)
{
    buffer_append_text(text, node->name);
    buffer_printf(text, ":%s", syntax_type_name(node->type));
    if (node->key_spec_index >= 0)
        buffer_printf(text, "%d", node->key_spec_index);
    if (node->token != NULL)
        buffer_printf(text, "=%s", node->token);
    if (node->since.size != 0)
        buffer_printf(text, "@%.*s", (int)node->since.size, node->since.data);
    buffer_printf(text, "%s%s%s", node->optional ? "?" : "", node->multiple ? "*" : "",
                  node->multiple_token ? "t" : "");
    if (node->children.count != 0)
        print_list(text, &node->children);
}

static void print_list(struct buffer *text, const struct syntax_list *list)
{
    buffer_append_char(text, '(');
    for (size_t i = 0; i < list->count; i++) {
        buffer_append_text(text, i == 0 ? "" : " ");
        print_node(text, list->items[i]);
    }
    buffer_append_char(text, ')');
}

static void check_syntax(const char *keys, const char *arg_since, const char *syntax, const char *expected)
{
    struct command_row row = {.name = "x",
                              .run = run_nothing,
                              .arity = -1,
                              .flags = "",
                              .syntax = syntax,
                              .keys = keys,
                              .arg_since = arg_since};
    const struct command_row table[] = {row, {0}};
    const struct command_row *const tables[] = {table};
    struct syntax_list list;
    struct buffer text = {0};

    command_registry_teardown();
    command_registry_setup(tables, 1);
    syntax_parse(command_top_at(0), &list);
    print_list(&text, &list);
    assert_string_equal(buffer_text(&text), expected);
    syntax_release(&list);
    buffer_fini(&text);
    command_registry_teardown();
    (void)setup(NULL);
}

/* The arguments that Redis 7.0 shows for such commands, except for names that the notation does not have. */
static void syntax_becomes_a_tree(void **state)
{
    (void)state;
    check_syntax("", NULL, "X", "()");
    check_syntax("RO" KEY1, NULL, "X key", "(key:key0)");
    check_syntax("RW" KEY1, "condition:2.6.12 GET:6.2.0 PX:1.2.3",
                 "X key value [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT "
                 "unix-time-milliseconds|KEEPTTL]",
                 "(key:key0 value:string condition:oneof@2.6.12?(nx:pure-token=NX xx:pure-token=XX) "
                 "get:pure-token=GET@6.2.0? expiration:oneof?(seconds:integer=EX milliseconds:integer=PX@1.2.3 "
                 "unix-time-seconds:unix-time=EXAT unix-time-milliseconds:unix-time=PXAT keepttl:pure-token=KEEPTTL))");
    check_syntax("RO" KEY1 " RO@unknown OW@unknown", NULL,
                 "X key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [STORE destination]",
                 "(key:key0 pattern:pattern1=BY? offset_count:block=LIMIT?(offset:integer count:integer) "
                 "pattern:pattern1=GET?*t destination:key2=STORE?)");
    check_syntax("OW@index:1@range:-1,2,0", NULL, "X key value [key value ...]",
                 "(key_value:block*(key:key0 value:string))");
    check_syntax("", NULL, "X message [arg ...]", "(message:string arg:string?*)");
    check_syntax("", NULL, "X [COUNT count [ANY]]", "(count:block?(count:integer=COUNT any:pure-token=ANY?))");
    check_syntax("RO" KEY1, NULL, "X (LEFT|RIGHT) (LEFT|RIGHT)",
                 "(wherefrom:oneof(left:pure-token=LEFT right:pure-token=RIGHT) "
                 "whereto:oneof(left:pure-token=LEFT right:pure-token=RIGHT))");
    check_syntax("", NULL, "X [WEIGHTS weight [weight ...]] [AGGREGATE (SUM|MIN|MAX)]",
                 "(weight:integer=WEIGHTS?* aggregate:oneof=AGGREGATE?(sum:pure-token=SUM min:pure-token=MIN "
                 "max:pure-token=MAX))");
    check_syntax("RO" KEY1, NULL, "X (key|\"\")", "(key_or_empty_string:oneof(key:key0 empty_string:pure-token=))");
}

/* Nothing that a row could say by mistake may hang or touch foreign memory (run under the address sanitizer). */
static void random_syntax_is_survived(void **state)
{
    static const char *const pieces[] = {"[", "]", "(", ")", "|", " ", "...", "key", "KEY", "[key ...]", "a", "B"};
    struct random random = test_random(__func__);

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char syntax[256] = "X ";
        struct command_row row = {.name = "x", .run = run_nothing, .flags = "", .syntax = syntax};
        struct command command = {.row = &row};
        struct syntax_list list;

        for (uint64_t i = random_below(&random, 16); i > 0; i--)
            strcat(syntax, pieces[random_below(&random, sizeof(pieces) / sizeof(pieces[0]))]);
        syntax_parse(&command, &list);
        syntax_release(&list);
    }
}

static void commands_are_renamed(void **state)
{
    const struct command *get = find_text("get");
    char long_name[257];

    (void)state;
    assert_null(command_rename(SLICE("GET"), SLICE("fetch-what-is-there")));
    assert_null(find_text("get"));
    assert_ptr_equal(find_text("FETCH-what-is-there"), get);
    assert_null(find_text("fetch-what-is-thexx"));
    assert_string_equal(get->full_name.data, "get");
    assert_string_equal(command_rename(SLICE("get"), SLICE("g")), "No such command in rename-command");
    assert_string_equal(command_rename(SLICE("ping"), SLICE("fetch-what-is-there")),
                        "Target command name already exists");
    assert_null(command_rename(SLICE("ping"), SLICE("get"))); /* that name is free now */
    assert_ptr_not_equal(find_text("get"), get);
    assert_null(command_rename(SLICE("fetch-what-is-there"), SLICE("Fetch-what-is-there")));
    assert_null(command_rename(SLICE("shutdown"), SLICE("")));
    assert_null(find_text("shutdown"));
    assert_null(command_rename(SLICE("object"), SLICE("thing")));
    assert_null(find_text("object|get"));
    assert_string_equal(find_text("thing|get")->full_name.data, "object|get");
    memset(long_name, 'x', sizeof(long_name));
    assert_string_equal(command_rename(SLICE("thing"), slice_make(long_name, 256)), "Target command name is too long");
    assert_null(command_rename(SLICE("thing"), slice_make(long_name, 255)));
    assert_non_null(command_find(slice_make(long_name, 255)));
    assert_null(command_find(slice_make(long_name, 256)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_are_found_in_any_case, setup, teardown),
        cmocka_unit_test_setup_teardown(commands_are_renamed, setup, teardown),
        cmocka_unit_test_setup_teardown(random_names_agree_with_a_model, setup, teardown),
        cmocka_unit_test_setup_teardown(legacy_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(flags_imply_categories, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_of_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(operations_are_described, setup, teardown),
        cmocka_unit_test_setup_teardown(syntax_becomes_a_tree, setup, teardown),
        cmocka_unit_test(random_syntax_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
