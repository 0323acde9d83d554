#include "tools/benchmark/tests.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/words.h"

#include <stdio.h>
#include <string.h>

enum { WORDS_MOST = 24, YCSB_KEYS = 100000 };

#define KEY "key" TAG ":__rand_int__"
#define TAG "\1"   /* ":{tag}" in a cluster, else nothing */
#define SCORE "\2" /* a number where there are keys, else 0 */

/* A row with `only_named` is not one of those that run without -t. */
static const struct row {
    const char *name, *group, *title;
    bool only_named;
    const char *words[WORDS_MOST];
} rows[] = {
    {"ping_inline", "ping", "PING_INLINE", false, {NULL}},
    {"ping_mbulk", "ping", "PING_MBULK", false, {"PING"}},
    {"set", NULL, "SET", false, {"SET", KEY, "__data__"}},
    {"get", NULL, "GET", false, {"GET", KEY}},
    {"incr", NULL, "INCR", false, {"INCR", "counter" TAG ":__rand_int__"}},
    {"lpush", NULL, "LPUSH", false, {"LPUSH", "mylist" TAG, "__data__"}},
    {"rpush", NULL, "RPUSH", false, {"RPUSH", "mylist" TAG, "__data__"}},
    {"lpop", NULL, "LPOP", false, {"LPOP", "mylist" TAG}},
    {"rpop", NULL, "RPOP", false, {"RPOP", "mylist" TAG}},
    {"sadd", NULL, "SADD", false, {"SADD", "myset" TAG, "element:__rand_int__"}},
    {"hset", NULL, "HSET", false, {"HSET", "myhash" TAG, "element:__rand_int__", "__data__"}},
    {"spop", NULL, "SPOP", false, {"SPOP", "myset" TAG}},
    {"zadd", NULL, "ZADD", false, {"ZADD", "myzset" TAG, SCORE, "element:__rand_int__"}},
    {"zpopmin", NULL, "ZPOPMIN", false, {"ZPOPMIN", "myzset" TAG}},
    {"", "lrange", "LPUSH (needed to benchmark LRANGE)", false, {"LPUSH", "mylist" TAG, "__data__"}},
    {"lrange_100", "lrange", "LRANGE_100 (first 100 elements)", false, {"LRANGE", "mylist" TAG, "0", "99"}},
    {"lrange_300", "lrange", "LRANGE_300 (first 300 elements)", false, {"LRANGE", "mylist" TAG, "0", "299"}},
    {"lrange_500", "lrange", "LRANGE_500 (first 500 elements)", false, {"LRANGE", "mylist" TAG, "0", "499"}},
    {"lrange_600", "lrange", "LRANGE_600 (first 600 elements)", false, {"LRANGE", "mylist" TAG, "0", "599"}},
    {"mset", NULL, "MSET (10 keys)", false, {"MSET",     KEY, "__data__", KEY, "__data__", KEY, "__data__", KEY,
                                             "__data__", KEY, "__data__", KEY, "__data__", KEY, "__data__", KEY,
                                             "__data__", KEY, "__data__", KEY, "__data__"}},
    {"xadd", NULL, "XADD", true, {"XADD", "mystream" TAG, "*", "myfield", "__data__"}},
    {"mget", NULL, "MGET (10 keys)", true, {"MGET", KEY, KEY, KEY, KEY, KEY, KEY, KEY, KEY, KEY, KEY}},
    {"hmset", NULL, "HMSET", true, {"HMSET", "myhash" TAG, "element:__rand_int__", "__data__"}},
    {"hmget", NULL, "HMGET", true, {"HMGET", "myhash" TAG, "element:__rand_int__"}},
};

/* ----------------------------------------------------------------------------------------------------- adding -- */

static struct bench_test *add_test(const struct bench_options *options, struct slice payload,
                                   const struct distribution *keys, uint64_t key_count, const char *title,
                                   struct bench_tests *tests)
{
    struct bench_test *test = mem_alloc_zero(sizeof(*test));

    *ARRAY_PUSH(tests) = test;
    test->title = mem_copy_text(title);
    test->keys.kind = keys->kind;
    test->keys.parameter = keys->parameter;
    if (key_count != 0)
        distribution_begin(&test->keys, key_count);
    workload_init(&test->workload, key_count != 0 ? &test->keys : NULL, payload,
                  MIN((size_t)options->payload_least, payload.size));
    workload_set_key_sizes(&test->workload, (size_t)options->key_least, (size_t)options->key_most);
    return test;
}

/* The text with its marks replaced. */
static struct slice word_of(const struct bench_options *options, const char *text, struct buffer *to)
{
    for (; *text != '\0'; text++) {
        if (*text == TAG[0])
            buffer_append_text(to, options->cluster ? ":{tag}" : "");
        else if (*text == SCORE[0])
            buffer_append_text(to, options->keys != 0 ? "__rand_int__" : "0");
        else
            buffer_append_char(to, *text);
    }
    return buffer_slice(to);
}

static bool add_words(const struct bench_options *options, struct bench_test *test, uint32_t weight,
                      const char *const *texts)
{
    struct buffer buffers[WORDS_MOST] = {{0}};
    struct slice words[WORDS_MOST];
    size_t count = 0;
    bool good;

    for (; count < WORDS_MOST && texts[count] != NULL; count++)
        words[count] = word_of(options, texts[count], &buffers[count]);
    good = workload_add(&test->workload, weight, words, count);
    for (size_t i = 0; i < count; i++)
        buffer_fini(&buffers[i]);
    return good;
}

static void add_row(const struct bench_options *options, struct slice payload, const struct row *row,
                    struct bench_tests *tests)
{
    struct bench_test *test = add_test(options, payload, &options->distribution, (uint64_t)options->keys, row->title,
                                       tests);

    if (row->words[0] == NULL)
        workload_add_inline(&test->workload, "PING\r\n");
    else if (!add_words(options, test, 1, row->words))
        assert(false);
}

/* ------------------------------------------------------------------------------------------------ tests by name -- */

/* The list's next name; names end with a comma. */
static bool next_name(const char **list, struct slice *name)
{
    const size_t size = strcspn(*list, ",");

    *name = slice_make(*list, size);
    *list += size + ((*list)[size] == ',');
    return size != 0;
}

static bool is_named(struct slice name, const struct row *row)
{
    const struct slice group = slice_from_text(row->group != NULL ? row->group : "");

    if (row->name[0] == '\0') /* the others of the group need it */
        return slice_starts_with(name, group);
    return slice_equal_text(name, row->name) || (row->group != NULL && slice_equal(name, group));
}

bool bench_test_is_known(struct slice name)
{
    bool is_known = false;

    for (size_t i = 0; i < countof(rows) && !is_known; i++)
        is_known = rows[i].name[0] != '\0' && is_named(name, &rows[i]);
    return is_known;
}

static bool is_wanted(const struct bench_options *options, const struct row *row)
{
    const char *list = options->tests;
    struct slice name;

    if (list == NULL)
        return !row->only_named;
    while (*list != '\0') {
        if (next_name(&list, &name) && is_named(name, row))
            return true;
    }
    return false;
}

static bool add_rows(const struct bench_options *options, struct slice payload, struct bench_tests *tests,
                     struct buffer *error)
{
    const char *list = options->tests != NULL ? options->tests : "";
    struct slice name;

    while (*list != '\0') {
        if (next_name(&list, &name) && !bench_test_is_known(name)) {
            buffer_printf(error, "Unknown test \"%.*s\" for -t; see --help\n", (int)name.size, name.data);
            return false;
        }
    }
    for (size_t i = 0; i < countof(rows); i++) {
        if (is_wanted(options, &rows[i]))
            add_row(options, payload, &rows[i], tests);
    }
    return true;
}

/* --------------------------------------------------------------------------------------------- other workloads -- */

static bool add_command(const struct bench_options *options, struct slice payload, struct slice input,
                        struct bench_tests *tests)
{
    const size_t count = (size_t)options->word_count + options->last_word_from_input;
    struct slice *words = mem_alloc(count * sizeof(*words));
    struct buffer title = {0};
    struct bench_test *test;
    bool good;

    for (size_t i = 0; i < count; i++) {
        words[i] = i < (size_t)options->word_count ? slice_from_text(options->words[i]) : input;
        if (i < (size_t)options->word_count)
            buffer_printf(&title, "%s%s", i != 0 ? " " : "", options->words[i]);
    }
    test = add_test(options, payload, &options->distribution, (uint64_t)options->keys, buffer_text(&title), tests);
    good = workload_add(&test->workload, 1, words, count);
    assert(good);
    mem_free(words);
    buffer_fini(&title);
    return good;
}

static bool add_ratio(const struct bench_options *options, struct slice payload, struct bench_tests *tests,
                      struct buffer *error)
{
    static const char *const set[] = {"SET", KEY, "__data__", NULL}, *const get[] = {"GET", KEY, NULL};
    unsigned sets = 0, gets = 0;
    struct bench_test *test;
    char rest;

    if (sscanf(options->ratio, "%6u:%6u%c", &sets, &gets, &rest) != 2 || sets + gets == 0) {
        buffer_printf(error, "Invalid proportion \"%s\" for --ratio: it is SETS:GETS, as in 1:10\n", options->ratio);
        return false;
    }
    test = add_test(options, payload, &options->distribution, (uint64_t)options->keys, "SET and GET", tests);
    return (sets == 0 || add_words(options, test, sets, set)) && (gets == 0 || add_words(options, test, gets, get));
}

/* "N COMMAND" */
static bool add_share(struct bench_test *test, struct slice text, struct buffer *error)
{
    struct words words = {0};
    uint64_t weight = 0;
    bool good = words_split(text, &words) && words.count >= 2 && number_parse_u64(words.items[0], &weight) &&
                weight > 0 && weight <= UINT16_MAX;

    if (!good)
        buffer_printf(error, "Invalid part \"%.*s\" of --mix: it is a number above 0, and a command behind it\n",
                      (int)text.size, text.data);
    else if (!workload_add(&test->workload, (uint32_t)weight, words.items + 1, words.count - 1))
        buffer_printf(error, "--mix has more than %d commands\n", WORKLOAD_COMMANDS_MOST);
    good = good && error->size == 0;
    words_fini(&words);
    return good;
}

static bool add_mix(const struct bench_options *options, struct slice payload, struct bench_tests *tests,
                    struct buffer *error)
{
    struct bench_test *test = add_test(options, payload, &options->distribution, (uint64_t)options->keys, "mix", tests);
    const char *at = options->mix;

    while (*at != '\0') {
        const size_t size = strcspn(at, ";");

        if (strspn(at, " ") < size && !add_share(test, slice_make(at, size), error))
            return false;
        at += size + (at[size] == ';');
    }
    if (test->workload.count == 0)
        buffer_append_text(error, "--mix has no command\n");
    return test->workload.count != 0;
}

/* -------------------------------------------------------------------------------------------------------- YCSB -- */

#define RECORD "user" TAG "__rand_int__"
#define NEW_RECORD "user" TAG "__new_int__"
#define FIELDS                                                                                                    \
    "field0", "__data__", "field1", "__data__", "field2", "__data__", "field3", "__data__", "field4", "__data__", \
        "field5", "__data__", "field6", "__data__", "field7", "__data__", "field8", "__data__", "field9", "__data__"

static const char *const
    ycsb_read[] = {"HGETALL", RECORD, NULL},
    *const ycsb_update[] = {"HSET", RECORD, "field0", "__data__", NULL},
    *const ycsb_store[] = {"HSET", RECORD, FIELDS, NULL}, *const ycsb_insert[] = {"HSET", NEW_RECORD, FIELDS, NULL},
    *const ycsb_index[] = {"ZADD", "users" TAG, "0", "user__rand_int__", NULL},
    *const ycsb_index_new[] = {"ZADD", "users" TAG, "0", "user__new_int__", NULL},
    *const ycsb_scan[] = {"ZRANGEBYLEX", "users" TAG, "[user__rand_int__", "+", "LIMIT", "0", "50", NULL};

/* Shares of requests: F reads, and half of the time writes what it has read, so its reads are twice its writes. */
static const struct ycsb {
    const char *name;
    enum distribution_kind keys;
    struct {
        uint32_t weight;
        const char *const *words;
    } parts[2];
} ycsb_rows[] = {
    {"A", DISTRIBUTION_ZIPF, {{50, ycsb_read}, {50, ycsb_update}}},
    {"B", DISTRIBUTION_ZIPF, {{95, ycsb_read}, {5, ycsb_update}}},
    {"C", DISTRIBUTION_ZIPF, {{100, ycsb_read}, {0, NULL}}},
    {"D", DISTRIBUTION_LATEST, {{95, ycsb_read}, {5, ycsb_insert}}},
    {"E", DISTRIBUTION_ZIPF, {{95, ycsb_scan}, {5, ycsb_index_new}}},
    {"F", DISTRIBUTION_ZIPF, {{2, ycsb_read}, {1, ycsb_update}}},
};

static bool add_ycsb(const struct bench_options *options, struct slice payload, struct bench_tests *tests,
                     struct buffer *error)
{
    static const struct distribution in_turn = {.kind = DISTRIBUTION_SEQUENTIAL};
    const uint64_t keys = options->keys != 0 ? (uint64_t)options->keys : YCSB_KEYS;
    struct distribution distribution = {.kind = options->distribution.kind,
                                        .parameter = options->distribution.parameter};
    struct bench_test *test;
    char title[16];

    if (strcmp(options->ycsb, "load") == 0) {
        test = add_test(options, payload, &in_turn, keys, "YCSB load", tests);
        test->requests = keys;
        if (!add_words(options, test, 1, ycsb_store))
            return false;
        test = add_test(options, payload, &in_turn, keys, "YCSB load, index", tests);
        test->requests = keys;
        return add_words(options, test, 1, ycsb_index);
    }
    for (size_t i = 0; i < countof(ycsb_rows); i++) {
        const struct ycsb *row = &ycsb_rows[i];

        if (strcmp(options->ycsb, row->name) != 0)
            continue;
        if (distribution.kind == DISTRIBUTION_UNIFORM && !options->distribution_given)
            distribution.kind = row->keys;
        snprintf(title, sizeof(title), "YCSB %s", row->name);
        test = add_test(options, payload, &distribution, keys, title, tests);
        for (size_t part = 0; part < countof(row->parts); part++) {
            if (row->parts[part].weight != 0 &&
                !add_words(options, test, row->parts[part].weight, row->parts[part].words))
                return false;
        }
        return true;
    }
    buffer_printf(error, "Unknown workload \"%s\" for --ycsb: it is load or one of A to F\n", options->ycsb);
    return false;
}

bool bench_tests_make(const struct bench_options *options, struct slice payload, struct slice input,
                      struct bench_tests *tests, struct buffer *error)
{
    *tests = (struct bench_tests){0};
    if (options->word_count != 0)
        return add_command(options, payload, input, tests);
    if (options->ratio != NULL)
        return add_ratio(options, payload, tests, error);
    if (options->mix != NULL)
        return add_mix(options, payload, tests, error);
    if (options->ycsb != NULL)
        return add_ycsb(options, payload, tests, error);
    return add_rows(options, payload, tests, error);
}

void bench_tests_fini(struct bench_tests *tests)
{
    for (uint32_t i = 0; i < tests->count; i++) {
        workload_fini(&tests->items[i]->workload);
        mem_free(tests->items[i]->title);
        mem_free(tests->items[i]);
    }
    mem_free(tests->items);
    *tests = (struct bench_tests){0};
}
