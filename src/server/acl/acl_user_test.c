#include "base/buffer.h"
#include "base/random.h"
#include "base/test_dies.h"
#include "base/test_seed.h"
#include "server/acl/acl_check.h"
#include "server/acl/acl_user.h"
#include "server/command/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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
    {.name = "incr", .run = run_nothing, .arity = 2, .flags = "write fast", .categories = "@string",
     .keys = "RW,ACCESS,UPDATE@index:1@range:0,1,0"},
    {.name = "exists", .run = run_nothing, .arity = -2, .flags = "readonly fast", .categories = "@keyspace",
     .keys = "RO@index:1@range:-1,1,0"},
    {.name = "publish", .run = run_nothing, .arity = 3, .channels = CHANNELS_FIRST, .flags = "pubsub fast",
     .categories = "@pubsub"},
    {.name = "select", .run = run_nothing, .arity = 2, .flags = "fast", .categories = "@connection"},
    {.name = "auth", .run = run_nothing, .arity = -2, .flags = "fast no_auth", .categories = "@connection"},
    {.name = "config", .arity = -2, .categories = "@slow", .subcommands = config_rows},
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

/* The effect of one rule on a command: 1, 0, or -1 for none. */
static int model_rule(struct slice rule, const struct command *command)
{
    struct slice subject = slice_skip(rule, 1);
    int says = rule.data[0] == '+';

    if (slice_equal_text(subject, "@all"))
        return says;
    if (subject.data[0] == '@') {
        for (unsigned bit = 0; command_category_name(bit) != NULL; bit++) {
            if (slice_equal_text(slice_skip(subject, 1), command_category_name(bit)))
                return (command->categories >> bit & 1) != 0 ? says : -1;
        }
    }
    if (slice_equal(subject, command->full_name) ||
        (command->container != NULL && slice_equal(subject, command->container->full_name)))
        return says;
    return -1;
}

static void check_bits(const struct acl_selector *selector, const struct slice *history, size_t count)
{
    for (uint32_t id = 0; id < command_count(); id++) {
        int allowed = 0;

        for (size_t i = 0; i < count; i++) {
            int says = model_rule(history[i], command_at(id));

            allowed = says == -1 ? allowed : says;
        }
        assert_int_equal(allowed, selector->commands[id / 64] >> (id % 64) & 1);
    }
}

static struct acl_user *copy_by_text(const struct acl_user *user)
{
    struct acl_user *copy = acl_user_create(user->name);
    struct buffer text = {0};
    struct slice rest;

    acl_user_print_rules(user, &text);
    for (rest = buffer_slice(&text); rest.size != 0;) {
        const char *blank = memchr(rest.data, ' ', rest.size);
        size_t size = blank != NULL ? (size_t)(blank - rest.data) : rest.size;

        assert_int_equal(ACL_FINE, acl_user_apply(copy, slice_make(rest.data, size)));
        rest = slice_skip(rest, blank != NULL ? size + 1 : size);
    }
    buffer_fini(&text);
    return copy;
}

static void check_same_text(const struct acl_user *a, const struct acl_user *b)
{
    struct buffer first = {0}, second = {0};

    acl_user_print_rules(a, &first);
    acl_user_print_rules(b, &second);
    assert_string_equal(buffer_text(&first), buffer_text(&second));
    buffer_fini(&first);
    buffer_fini(&second);
}

static void rules_on_commands_mean_what_they_say_in_turn(void **state)
{
    static const char *const choice[] = {"+get",        "-get",        "+set",    "-set",        "+incr",
                                         "-incr",       "+config",     "-config", "+config|get", "-config|get",
                                         "+config|set", "-config|set", "+@all",   "-@all",       "+@string",
                                         "-@string",    "+@fast",      "-@fast",  "+@admin",     "-@admin",
                                         "+@write",     "-@write",     "+@slow",  "-@slow",      "+@pubsub",
                                         "-@dangerous"};
    struct random random = test_random("rules on commands");

    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct acl_user *user = acl_user_create(SLICE("u")), *copy;
        struct slice history[12];
        size_t count = 1 + random_below(&random, 12);

        for (size_t i = 0; i < count; i++) {
            history[i] = slice_from_text(choice[random_below(&random, sizeof(choice) / sizeof(*choice))]);
            assert_int_equal(ACL_FINE, acl_user_apply(user, history[i]));
        }
        check_bits(&user->selectors[0], history, count);
        copy = copy_by_text(user);
        check_bits(&copy->selectors[0], history, count);
        check_same_text(user, copy);
        acl_user_release(&copy);
        copy = acl_user_copy(user);
        check_same_text(user, copy);
        acl_user_release(&copy);
        acl_user_release(&user);
    }
}

static enum acl_verdict verdict_of(const char *rules, const char *line)
{
    struct acl_user *user = acl_user_create(SLICE("u"));
    struct slice words[8], list[16];
    size_t counts[2] = {0, 0};
    const char *texts[2] = {rules, line};
    struct slice *lists[2] = {list, words};
    struct acl_rule_reader reader = {.words = list};
    struct acl_decision decision;
    struct slice rule;

    for (int which = 0; which < 2; which++) {
        for (const char *at = texts[which]; *at != '\0'; at += strspn(at, " ")) {
            size_t size = strcspn(at, " ");

            lists[which][counts[which]++] = slice_make(at, size);
            at += size;
        }
    }
    reader.count = counts[0];
    while (acl_rule_next(&reader, &rule))
        assert_int_equal(ACL_FINE, acl_user_apply(user, rule));
    acl_user_seal(user);
    decision = acl_check(user, 1, command_find(words[0]), words, (uint32_t)counts[1]);
    acl_user_release(&user);
    return decision.verdict;
}

static void checks(void **state)
{
    static const struct {
        const char *rules, *line;
        enum acl_verdict verdict;
    } cases[] = {
        {"", "get a", ACL_DENIED_COMMAND},
        {"", "auth a", ACL_ALLOWED},
        {"+get", "get a", ACL_DENIED_KEY},
        {"+get ~a", "get a", ACL_ALLOWED},
        {"+get ~a", "get ab", ACL_DENIED_KEY},
        {"+get %W~a", "get a", ACL_DENIED_KEY},
        {"+set %W~a", "set a 1", ACL_ALLOWED},
        {"+set %R~a", "set a 1", ACL_DENIED_KEY},
        {"+incr %R~a %W~a", "incr a", ACL_ALLOWED},
        {"+incr %R~a* %W~a", "incr a", ACL_DENIED_KEY}, /* one pattern has to allow both */
        {"+exists %W~a", "exists a", ACL_ALLOWED},
        {"+exists %W~a", "exists a b", ACL_DENIED_KEY},
        {"+publish", "publish c x", ACL_DENIED_CHANNEL},
        {"+publish &c*", "publish cc x", ACL_ALLOWED},
        {"+select|0", "select 0", ACL_ALLOWED},
        {"+select|0", "select 1", ACL_DENIED_COMMAND},
        {"+select|0 -select", "select 0", ACL_DENIED_COMMAND},
        {"+select|0 -@connection", "select 0", ACL_DENIED_COMMAND},
        {"+get ~a (+set ~b)", "set b 1", ACL_ALLOWED},
        {"+get ~a (+set ~b)", "set a 1", ACL_DENIED_KEY},
        {"+get ~a ( ~b +set )", "get b", ACL_DENIED_KEY},
        {"~* &* +@all", "set a 1", ACL_ALLOWED},
        {"%RW~* &* +@all", "set a 1", ACL_ALLOWED},
        {"%RW~* &* +@all db=1", "set a 1", ACL_ALLOWED},
        {"%RW~* &* +@all db=0,2", "set a 1", ACL_DENIED_DATABASE},
        {"%RW~* &* +@all resetdbs", "set a 1", ACL_DENIED_DATABASE},
        {"%RW~* &* +@all resetdbs", "publish a 1", ACL_ALLOWED},
        {"%RW~* &* +@all resetdbs", "auth a", ACL_ALLOWED},
        {"resetdbs", "get a", ACL_DENIED_DATABASE},
        {"resetdbs alldbs", "get a", ACL_DENIED_COMMAND},
        {"~* +get db=0 (~* +set db=1)", "set a 1", ACL_ALLOWED},
        {"~* +get db=0 (~* +set db=1)", "get a", ACL_DENIED_COMMAND},
        {"~b +get db=1 (~a +get db=0)", "get a", ACL_DENIED_KEY},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        if (verdict_of(cases[i].rules, cases[i].line) != cases[i].verdict)
            fail_msg("%s: %s", cases[i].rules, cases[i].line);
    }
}

static void check_databases(const char *rules, const char *shown, const char *line)
{
    struct acl_user *user = acl_user_create(SLICE("u")), *copy;
    struct buffer databases = {0}, text = {0};

    for (const char *at = rules; *at != '\0'; at += strspn(at, " ")) {
        assert_int_equal(ACL_FINE, acl_user_apply(user, slice_make(at, strcspn(at, " "))));
        at += strcspn(at, " ");
    }
    acl_selector_print_databases(&user->selectors[0], &databases);
    assert_string_equal(shown, buffer_text(&databases));
    acl_user_print_rules(user, &text);
    assert_string_equal(line, buffer_text(&text));
    copy = copy_by_text(user);
    check_same_text(user, copy);
    acl_user_release(&copy);
    copy = acl_user_copy(user);
    check_same_text(user, copy);
    acl_user_release(&copy);
    acl_user_release(&user);
    buffer_fini(&databases);
    buffer_fini(&text);
}

static void databases_are_those_of_the_last_rule(void **state)
{
    (void)state;
    check_databases("alldbs", "alldbs", "off resetchannels -@all");
    check_databases("db=0", "db=0", "off resetchannels db=0 -@all");
    check_databases("db=2,0,10,2", "db=0,2,10", "off resetchannels db=0,2,10 -@all");
    check_databases("db=1 DB=3,2", "db=2,3", "off resetchannels db=2,3 -@all");
    check_databases("db=2147483647 ResetDBs", "", "off resetchannels resetdbs -@all");
    check_databases("resetdbs db=7", "db=7", "off resetchannels db=7 -@all");
    check_databases("db=7 AllDBs", "alldbs", "off resetchannels -@all");
    check_databases("db=7 reset", "alldbs", "off sanitize-payload resetchannels -@all");
}

static void a_rule_that_is_wrong_changes_nothing(void **state)
{
    static const char *const wrong[] = {
        "bogus",     "~a b",          "&a\tb",          "%X~a",     "%",    "%~a",   "%RR~a",         "+nosuch",
        "-select|0", "+config|get|x", "+config|nosuch", "+select|", "#12",  "!zz",   "<nothing",      "(bogus)",
        "(+get",     "(~a",           "((+get))",       "(on)",     "+",    "+@",    "+@nosuch",      "+|",
        "db",        "db=",           "db=1,",          "db=,1",    "db=a", "db=-1", "db=2147483648", "db=0,a"};
    struct acl_user *user = acl_user_create(SLICE("u")), *before;

    (void)state;
    assert_int_equal(ACL_FINE, acl_user_apply(user, SLICE("+get")));
    assert_int_equal(ACL_FINE, acl_user_apply(user, SLICE("~x")));
    before = acl_user_copy(user);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        assert_int_not_equal(ACL_FINE, acl_user_apply(user, slice_from_text(wrong[i])));
        check_same_text(before, user);
    }
    acl_user_release(&before);
    acl_user_release(&user);
}

static void passwords(void **state)
{
    struct acl_user *user = acl_user_create(SLICE("u"));

    (void)state;
    assert_false(acl_user_knows(user, SLICE("")));
    assert_int_equal(ACL_FINE, acl_user_apply(user, SLICE(">a\0b")));
    assert_true(acl_user_knows(user, SLICE("a\0b")));
    assert_false(acl_user_knows(user, SLICE("a")));
    assert_int_equal(ACL_NO_SUCH_PASSWORD, acl_user_apply(user, SLICE("<a")));
    assert_int_equal(ACL_FINE, acl_user_apply(user, SLICE("<a\0b")));
    assert_false(acl_user_knows(user, SLICE("a\0b")));
    acl_user_set_password(user, SLICE("x"));
    assert_true(acl_user_knows(user, SLICE("x")) && (user->flags & ACL_NOPASS) == 0);
    acl_user_set_password(user, SLICE_EMPTY);
    assert_true(user->hashes.count == 0 && (user->flags & ACL_NOPASS) != 0);
    acl_user_release(&user);
}

static struct acl_user *shared;

static void change_it(void)
{
    (void)!acl_user_apply(shared, SLICE("on"));
}

static void a_user_that_others_have_is_not_changed(void **state)
{
    struct acl_user *other;

    (void)state;
    shared = acl_user_create(SLICE("u"));
    assert_false(dies(change_it));
    other = acl_user_acquire(shared);
    assert_true(dies(change_it));
    acl_user_release(&other);
    acl_user_release(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_on_commands_mean_what_they_say_in_turn),
        cmocka_unit_test(checks),
        cmocka_unit_test(a_rule_that_is_wrong_changes_nothing),
        cmocka_unit_test(passwords),
        cmocka_unit_test(a_user_that_others_have_is_not_changed),
        cmocka_unit_test(databases_are_those_of_the_last_rule),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
