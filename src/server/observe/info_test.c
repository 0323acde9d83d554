#include "server/observe/info.h"

#include "base/compiler.h"
#include "server/observe/info_moment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct picture {
    uint64_t number, whole, none;
    int64_t negative;
    unsigned small;
    bool yes, no;
    double real;
    struct timeval time;
    const char *word;
};

static unsigned taken; /* how often */

static void take(void *into, const struct info_moment *moment)
{
    assert_true(moment == info_moment());
    taken++;
    *(struct picture *)into = (struct picture){.number = 1536,
                                               .whole = 2048,
                                               .negative = -5,
                                               .small = 7,
                                               .yes = true,
                                               .real = 2.5,
                                               .time = {3, 40},
                                               .word = "w"};
}

static const struct info_source source = {sizeof(struct picture), .take = take};

/* Made from the picture of the other source. */
static void take_derived(void *into, const struct info_moment *moment)
{
    const struct picture *picture = info_moment_picture(&source);

    (void)moment;
    *(uint64_t *)into = picture->number + 1;
}

static bool take_derived_safe(void *into, const struct info_moment *moment)
{
    assert_true(moment->monotonic_us != 0);
    *(uint64_t *)into = 4;
    return true;
}

static bool know_nothing(void *into, const struct info_moment *moment)
{
    (void)into;
    (void)moment;
    return false;
}

struct derived {
    uint64_t number;
};
static const struct info_source derived = {sizeof(struct derived), take_derived, take_derived_safe};
static const struct info_source unknown = {sizeof(struct derived), take_derived, know_nothing};

static uint64_t eleven(void)
{
    return 11;
}

static const char *hello(void)
{
    return "hello";
}

static void append_value(struct buffer *buffer, const void *picture)
{
    buffer_printf(buffer, "<%u>", ((const struct picture *)picture)->small);
}

static void append_lines(struct buffer *buffer, const void *picture)
{
    assert_null(picture);
    buffer_append_text(buffer, "a:1\r\nb:2\r\n");
}

static bool is_wanted(const void *picture)
{
    return ((const struct picture *)picture)->no;
}

static _Atomic int64_t option = 99;

#define FIELD(name, member, ...) INFO_FIELD(name, &source, struct picture, member, ##__VA_ARGS__)

static const struct info_row rows[] = {
    FIELD("u64", number),
    FIELD("i64", negative),
    FIELD("unsigned", small),
    FIELD("yes", yes),
    FIELD("no", no),
    FIELD("double", real),
    FIELD("time", time),
    FIELD("word", word),
    FIELD("unwanted", number, .wanted = is_wanted),
    INFO_OK("ok", &source, struct picture, yes),
    INFO_OK("err", &source, struct picture, no),
    INFO_HEX("hex", &source, struct picture, number),
    INFO_MS("ms", &source, struct picture, number),
    INFO_HUMAN("human", &source, struct picture, number),
    INFO_ROUNDED("rounded", &source, struct picture, real),
    INFO_RATIO("ratio", &source, struct picture, number, whole),
    INFO_RATIO("of_none", &source, struct picture, number, none),
    INFO_PERCENT("percent", &source, struct picture, number, whole),
    INFO_DIFFERENCE("difference", &source, struct picture, number, whole),
    INFO_VALUE("value", &source, append_value),
    {0},
};
static const struct info_row more[] = {
    INFO_TEXT("text", "t", INFO_SAFE),
    INFO_CALL("call", eleven, INFO_SAFE),
    INFO_CALL_TEXT("call_text", hello, INFO_SAFE),
    INFO_OPTION("option", option, INFO_SAFE),
    INFO_LINES("<lines>", NULL, append_lines),
    INFO_FIELD("derived", &derived, struct derived, number, INFO_SAFE),
    INFO_FIELD("unknown", &unknown, struct derived, number, INFO_SAFE),
    {0},
};
static const struct info_row *const tables[] = {more, rows};

static const char *const one_fields[] = {
    "u64", "i64", "unsigned", "yes",     "no",    "double",  "time",    "word",       "unwanted", "ok", "err",
    "hex", "ms",  "human",    "rounded", "ratio", "of_none", "percent", "difference", "value",    NULL,
};
static const char *const two_fields[] = {"option", "call", "call_text", "text", "<lines>", NULL};
static const char *const three_fields[] = {"unknown", "derived", NULL};
static const char *const no_fields[] = {NULL};

static const struct info_section sections[] = {
    {"one", "One", INFO_SHOWN_BY_DEFAULT, one_fields},
    {"two", "Two", INFO_SHOWN_BY_ALL, two_fields},
    {"none", "None", INFO_SHOWN_BY_DEFAULT, no_fields},
    {"three", "Three", INFO_SHOWN_BY_NAME, three_fields},
};

static char problem[200];

static int arrange(void **state)
{
    (void)state;
    assert_true(info_arrange(sections, countof(sections), tables, countof(tables), problem, sizeof(problem)));
    taken = 0;
    return 0;
}

static void assert_writes(const char *expected, const struct slice *words, size_t word_count)
{
    struct buffer text = {0};

    info_write(&text, words, word_count);
    assert_string_equal(expected, buffer_text(&text));
    buffer_fini(&text);
}

#define ONE                                                                                                           \
    "# "                                                                                                              \
    "One\r\nu64:1536\r\ni64:-5\r\nunsigned:7\r\nyes:1\r\nno:0\r\ndouble:2.50\r\ntime:3.000040\r\nword:w\r\nok:ok\r\n" \
    "err:err\r\nhex:600\r\nms:1\r\nhuman:1.50K\r\nrounded:3\r\nratio:0.75\r\nof_none:0.00\r\npercent:75.00%\r\n"      \
    "difference:-512\r\nvalue:<7>\r\n"
#define TWO "# Two\r\noption:99\r\ncall:11\r\ncall_text:hello\r\ntext:t\r\na:1\r\nb:2\r\n"
#define NONE "# None\r\n"
#define THREE "# Three\r\nunknown:1537\r\nderived:1537\r\n"

static void each_form_is_written(void **state)
{
    (void)state;
    assert_writes(ONE "\r\n" NONE, NULL, 0);
    assert_writes(ONE "\r\n" TWO "\r\n" NONE, &SLICE("all"), 1);
    assert_writes(TWO, &SLICE("TWO"), 1);
    assert_writes(NONE "\r\n" THREE, (struct slice[]){SLICE("three"), SLICE("nosuch"), SLICE("none")}, 3);
    assert_writes("", &SLICE(""), 1);
}

static void a_source_is_asked_once_and_only_when_needed(void **state)
{
    (void)state;
    assert_writes(TWO, &SLICE("two"), 1);
    assert_int_equal(0, taken);
    assert_writes(THREE, &SLICE("three"), 1);
    assert_int_equal(1, taken);
    assert_writes(ONE "\r\n" THREE, (struct slice[]){SLICE("one"), SLICE("three")}, 2);
    assert_int_equal(2, taken);
}

static char told[400];

static void tell(const char *name, const char *value)
{
    size_t size = strlen(told);

    snprintf(told + size, sizeof(told) - size, "%s=%s ", name, value);
}

static void tell_title(const char *title)
{
    tell("#", title);
}

static void a_crash_is_told_what_is_safe(void **state)
{
    (void)state;
    told[0] = '\0';
    info_tell_safe(tell_title, tell);
    assert_string_equal("#=Two option=99 call=11 call_text=hello text=t #=Three derived=4 ", told);
    assert_int_equal(0, taken);
}

static void assert_problem(const char *expected, const char *const *fields, const struct info_row *table)
{
    const struct info_section section = {"s", "S", INFO_SHOWN_BY_DEFAULT, fields};

    assert_false(info_arrange(&section, 1, &table, 1, problem, sizeof(problem)));
    assert_string_equal(expected, problem);
}

#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define TABLE(...) ((const struct info_row[]){__VA_ARGS__, {0}})

static void lists_and_rows_have_to_fit(void **state)
{
    (void)state;
    assert_problem("field 'b' of section s: no table has a row for it", FIELDS("a", "b"), TABLE(INFO_TEXT("a", "1")));
    assert_problem("row 'b': no section names it, or two rows have this name", FIELDS("a"),
                   TABLE(INFO_TEXT("a", "1"), INFO_TEXT("b", "1")));
    assert_problem("row 'a': no section names it, or two rows have this name", FIELDS("a"),
                   TABLE(INFO_TEXT("a", "1"), INFO_TEXT("a", "1")));
    assert_problem("field 'a' of section s: it is named twice", FIELDS("a", "a"), TABLE(INFO_TEXT("a", "1")));
    assert_problem("field 'a' of section s: the report of a crash cannot print it", FIELDS("a"),
                   TABLE(FIELD("a", number, INFO_SAFE)));
    assert_problem("field 'a' of section s: the report of a crash cannot print it", FIELDS("a"),
                   TABLE(INFO_LINES("a", NULL, append_lines, INFO_SAFE)));
}

static void every_list_of_the_server_is_without_doubles(void **state)
{
    (void)state;
    for (size_t i = 0; i < info_section_count; i++) {
        for (const char *const *field = info_sections[i].fields; *field != NULL; field++) {
            for (const char *const *other = info_sections[i].fields; other != field; other++)
                assert_string_not_equal(*field, *other);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_form_is_written, arrange),
        cmocka_unit_test_setup(a_source_is_asked_once_and_only_when_needed, arrange),
        cmocka_unit_test_setup(a_crash_is_told_what_is_safe, arrange),
        cmocka_unit_test(lists_and_rows_have_to_fit),
        cmocka_unit_test(every_list_of_the_server_is_without_doubles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
