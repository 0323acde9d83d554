/* Against facts that redis-server 7.0 told (PFADD, then GET, PFCOUNT and PFDEBUG DECODE), and against a dumb model. */
#include "data/hyperloglog.h"

#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { LIMIT = 3000 };

static void elements_go_where_they_always_went(void **state)
{
    static const struct hll_place places[] = {
        {5938, 2},  {12711, 2}, {719, 1},   {9474, 1},  {11070, 8}, {3726, 4}, {13647, 2}, {5634, 2}, {1383, 1},
        {6903, 1},  {12228, 1}, {14121, 1}, {9695, 5},  {9157, 1},  {5697, 2}, {12377, 4}, {9328, 1}, {4271, 1},
        {14275, 2}, {11774, 1}, {2760, 4},  {15146, 1}, {5651, 3},  {6943, 1}, {2894, 1},  {1311, 1},
    };

    (void)state;
    for (size_t size = 0; size < countof(places); size++) {
        struct hll_place place = hll_place_of(slice_make("abcdefghijklmnopqrstuvwxyz", size));

        assert_int_equal(place.index, places[size].index);
        assert_int_equal(place.rank, places[size].rank);
    }
}

/* The sum known as CRC-32: a short fact about many bytes. */
static uint32_t checksum(struct slice bytes)
{
    uint32_t sum = UINT32_MAX;

    for (size_t i = 0; i < bytes.size; i++) {
        sum ^= (unsigned char)bytes.data[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (0xedb88320U & -(sum & 1));
    }
    return ~sum;
}

static void a_million_elements_give_the_known_bytes_and_counts(void **state)
{
    static const struct {
        int elements;
        uint64_t count;
        size_t size;
        uint32_t sum; /* of the registers' bytes */
    } facts[] = {
        {1, 1, 21, 0x8f503602U},
        {2, 2, 24, 0xfad07e1dU},
        {3, 3, 27, 0xb0884d5dU},
        {5, 5, 33, 0xdc5155bcU},
        {10, 10, 48, 0xf0846d59U},
        {50, 50, 158, 0x6d5d9fbfU},
        {100, 99, 285, 0x52f2d7f8U},
        {500, 502, 1050, 0x66048da8U},
        {1000, 997, 1897, 0xdad77151U},
        {2000, 2004, 12304, 0xef328eacU},
        {5000, 5005, 12304, 0x12ae6c83U},
        {10000, 10017, 12304, 0xbb977913U},
        {20000, 19986, 12304, 0xe0a83a14U},
        {40000, 39605, 12304, 0x5e068978U},
        {65536, 65010, 12304, 0x14a084a0U},
        {100000, 100039, 12304, 0x9f0ce13aU},
        {300000, 298112, 12304, 0x6bb04615U},
        {1000000, 1010357, 12304, 0x76de92d1U},
    };
    static struct hll_registers registers;
    struct buffer value = {NULL, 0, 0};
    char element[32];
    int added = 0;

    (void)state;
    hll_init(&value);
    for (size_t i = 0; i < countof(facts); i++) {
        uint64_t count;

        for (; added < facts[i].elements; added++) {
            int size = snprintf(element, sizeof(element), "element:%d", added);

            (void)hll_raise(&value, hll_place_of(slice_make(element, (size_t)size)), LIMIT);
        }
        assert_int_equal(hll_encoding_of(buffer_slice(&value)), value.size == 12304 ? HLL_DENSE : HLL_SPARSE);
        assert_int_equal(value.size, facts[i].size);
        assert_int_equal(checksum(slice_skip(buffer_slice(&value), HLL_HEADER_BYTES)), facts[i].sum);
        assert_int_equal(hll_estimate(buffer_slice(&value)), facts[i].count);
        hll_registers_add(&registers, buffer_slice(&value));
        assert_int_equal(hll_registers_estimate(&registers), facts[i].count);
        assert_false(hll_remembered_count(buffer_slice(&value), &count));
        hll_remember_count(value.data, facts[i].count);
        assert_true(hll_remembered_count(buffer_slice(&value), &count));
        assert_int_equal(count, facts[i].count);
    }
    buffer_fini(&value);
}

/* Registers of any rank, as nobody's elements would make them. */
static void known_registers_give_known_counts(void **state)
{
    static const struct {
        uint32_t factor, modulus, least;
        uint64_t count;
    } facts[] = {
        {1, 52, 0, 303516},     {7919, 64, 0, 375261}, {1, 12, 40, UINT64_C(77958882119883296)},
        {1, 20, 12, 483653170}, {1, 1, 51, INT64_MAX}, {1, 1, 63, INT64_MAX}, /* nothing is left to divide by */
    };

    (void)state;
    for (size_t i = 0; i < countof(facts); i++) {
        struct buffer value = {NULL, 0, 0};

        hll_init(&value);
        hll_make_dense(&value);
        for (uint32_t index = 0; index < HLL_REGISTER_COUNT; index++) {
            uint32_t rank = index * facts[i].factor % facts[i].modulus + facts[i].least;

            assert_int_equal(hll_dense_raise(value.data, (struct hll_place){index, rank}), rank != 0);
        }
        assert_int_equal(hll_estimate(buffer_slice(&value)), facts[i].count);
        buffer_fini(&value);
    }
}

/* Run texts as the decoder prints them, back into bytes. */
static void append_runs(struct buffer *value, const char *text)
{
    buffer_append(value, "HYLL\1\0\0\0\0\0\0\0\0\0\0", HLL_HEADER_BYTES);
    while (*text != '\0') {
        unsigned first, second = 0;
        char kind;

        if (sscanf(text, "%c:%u,%u", &kind, &first, &second) < 2)
            fail();
        if (kind == 'v')
            buffer_append_char(value, (char)(0x80 | (first - 1) << 2 | (second - 1)));
        else if (kind == 'z')
            buffer_append_char(value, (char)(first - 1));
        else
            buffer_append(value, (char[]){(char)(0x40 | (first - 1) >> 8), (char)(first - 1)}, 2);
        text += strcspn(text, " ");
        text += *text == ' ';
    }
}

static void check_runs(struct buffer *value, const char *expected)
{
    struct buffer text = {NULL, 0, 0};

    assert_true(hll_is_whole(buffer_slice(value)));
    hll_describe_runs(buffer_slice(value), &text);
    assert_string_equal(buffer_text(&text), expected);
    buffer_fini(&text);
}

static void runs_are_split_and_joined_as_they_always_were(void **state)
{
    static const struct {
        const char *before;
        struct hll_place place;
        const char *after;
    } facts[] = {
        {"Z:16384", {10, 1}, "z:10 v:1,1 Z:16373"},
        {"Z:16384", {0, 1}, "v:1,1 Z:16383"},
        {"Z:16384", {16383, 1}, "Z:16383 v:1,1"},
        {"Z:16384", {64, 1}, "z:64 v:1,1 Z:16319"},
        {"Z:16384", {65, 1}, "Z:65 v:1,1 Z:16318"},
        {"Z:16384", {16319, 32}, "Z:16319 v:32,1 z:64"},
        {"z:10 v:1,1 z:1 v:1,1 Z:16371", {11, 1}, "z:10 v:1,3 Z:16371"},
        {"z:11 v:1,4 Z:16369", {10, 1}, "z:10 v:1,1 v:1,4 Z:16369"},
        {"z:10 v:1,4 v:1,2 Z:16368", {12, 2}, "z:10 v:1,2 v:2,1 v:1,3 Z:16368"},
        {"v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 Z:16374",
         {0, 2},
         "v:2,1 v:1,4 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 Z:16374"},
        {"v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 Z:16374",
         {4, 2},
         "v:1,1 v:1,1 v:1,1 v:1,1 v:2,1 v:1,4 v:1,1 Z:16374"},
        {"v:1,2 v:1,2 v:1,2 v:1,2 v:1,2 Z:16374", {4, 2}, "v:1,2 v:1,2 v:2,1 v:1,3 v:1,2 Z:16374"},
        {"v:1,2 v:1,2 v:1,2 v:1,2 v:1,2 Z:16374", {5, 2}, "v:1,2 v:1,3 v:2,1 v:1,4 Z:16374"},
        {"v:1,1 v:1,1 v:1,1 v:1,1 z:1 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 Z:16373",
         {4, 1},
         "v:1,1 v:1,1 v:1,1 v:1,4 v:1,2 v:1,1 v:1,1 Z:16373"},
        {"v:1,1 v:1,1 v:1,1 v:1,1 z:2 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 Z:16372",
         {4, 1},
         "v:1,1 v:1,1 v:1,1 v:1,2 z:1 v:1,3 v:1,1 v:1,1 v:1,1 Z:16372"},
        {"v:1,1 v:1,1 v:1,1 v:1,1 v:2,3 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 v:1,1 Z:16371",
         {5, 3},
         "v:1,1 v:1,1 v:1,1 v:1,1 v:2,1 v:3,1 v:2,1 v:1,2 v:1,1 v:1,1 v:1,1 v:1,1 Z:16371"},
        {"Z:1 Z:1 Z:1 Z:16381", {1, 1}, "Z:1 v:1,1 Z:1 Z:16381"},
        {"Z:5 Z:30 Z:16349", {2, 1}, "z:2 v:1,1 z:2 Z:30 Z:16349"},
        {"v:1,1 v:1,1 v:1,4 v:1,3 v:1,1 Z:16374", {3, 3}, "v:1,1 v:1,2 v:3,1 v:1,2 v:1,4 Z:16374"},
        {"v:2,1 v:2,1 v:2,1 Z:16381", {1, 2}, "v:2,1 v:2,1 v:2,1 Z:16381"}, /* nothing to raise */
    };

    (void)state;
    for (size_t i = 0; i < countof(facts); i++) {
        struct buffer value = {NULL, 0, 0};
        uint64_t count;
        bool raised;

        append_runs(&value, facts[i].before);
        assert_true(hll_remembered_count(buffer_slice(&value), &count));
        raised = hll_raise(&value, facts[i].place, LIMIT);
        assert_int_equal(raised, strcmp(facts[i].before, facts[i].after) != 0);
        assert_int_equal(hll_remembered_count(buffer_slice(&value), &count), !raised);
        check_runs(&value, facts[i].after);
        buffer_fini(&value);
    }
}

static void growing_beyond_the_limit_makes_it_dense(void **state)
{
    static const struct {
        const char *before;
        struct hll_place place;
        size_t needs;
    } facts[] = {
        {"z:10 v:1,4 Z:16370", {11, 2}, 22}, {"z:10 v:1,4 Z:16370", {10, 2}, 21},
        {"z:10 v:1,4 Z:16370", {13, 2}, 21}, {"z:10 v:1,4 Z:16370", {14, 1}, 21},
        {"z:10 v:1,4 Z:16370", {9, 1}, 21},  {"z:10 v:1,1 Z:16373", {10, 2}, 0}, /* it does not grow */
        {"Z:1 Z:1 Z:1 Z:16381", {1, 2}, 0},  {"z:10 v:1,4 Z:16370", {9, 33}, SIZE_MAX},
    };

    (void)state;
    for (size_t i = 0; i < countof(facts); i++) {
        for (size_t limit = 0; limit < 30; limit++) {
            struct buffer value = {NULL, 0, 0};

            append_runs(&value, facts[i].before);
            assert_true(hll_raise(&value, facts[i].place, limit));
            assert_int_equal(hll_encoding_of(buffer_slice(&value)), limit < facts[i].needs ? HLL_DENSE : HLL_SPARSE);
            if (limit < facts[i].needs)
                assert_int_equal(hll_dense_rank(value.data, facts[i].place.index), facts[i].place.rank);
            buffer_fini(&value);
        }
    }
}

/* --- random sequences beside an array --- */

static void check_against(struct buffer *value, const struct hll_registers *model)
{
    static struct hll_registers read;

    assert_true(hll_is_whole(buffer_slice(value)));
    memset(&read, 0, sizeof(read));
    hll_registers_add(&read, buffer_slice(value));
    assert_memory_equal(read.ranks, model->ranks, sizeof(read.ranks));
    assert_int_equal(hll_estimate(buffer_slice(value)), hll_registers_estimate(model));
}

static void random_raises_agree_with_an_array(void **state)
{
    struct random random = test_random("raises");
    static struct hll_registers model;

    (void)state;
    for (int turn = 0; turn < 60; turn++) {
        uint32_t window = (uint32_t)random_below(&random, 2) == 0 ? 80 : HLL_REGISTER_COUNT;
        uint32_t base = (uint32_t)random_below(&random, HLL_REGISTER_COUNT - window + 1);
        size_t limit = (size_t)random_below(&random, 2) == 0 ? 100000 : (size_t)random_below(&random, 1500);
        uint32_t ranks = (uint32_t)random_below(&random, turn % 5 == 0 ? HLL_RANK_MOST : 4) + 1;
        struct buffer value = {NULL, 0, 0};

        memset(&model, 0, sizeof(model));
        hll_init(&value);
        for (int i = 0; i < 1000; i++) {
            struct hll_place place = {base + (uint32_t)random_below(&random, window),
                                      (uint32_t)random_below(&random, ranks) + 1};

            assert_int_equal(hll_raise(&value, place, limit), model.ranks[place.index] < place.rank);
            model.ranks[place.index] = MAX(model.ranks[place.index], (uint8_t)place.rank);
            if (i % 50 == 0)
                check_against(&value, &model);
        }
        check_against(&value, &model);
        hll_make_dense(&value);
        assert_int_equal(value.size, HLL_DENSE_BYTES);
        check_against(&value, &model);
        for (uint32_t index = 0; index < HLL_REGISTER_COUNT; index++)
            assert_int_equal(hll_dense_rank(value.data, index), model.ranks[index]);
        buffer_fini(&value);
    }
}

/* Byte for byte: a walk that goes on where it was is no other than one from the beginning each time. */
static void raising_all_is_raising_one_after_the_other(void **state)
{
    struct random random = test_random("raise all");
    static struct hll_registers model;

    (void)state;
    for (int turn = 0; turn < 500; turn++) {
        size_t limit = (size_t)random_below(&random, 4) == 0 ? (size_t)random_below(&random, 1500) : 100000;
        uint32_t ranks = (uint32_t)random_below(&random, 3) + 1, density = (uint32_t)random_below(&random, 100) + 1;
        struct buffer one = {NULL, 0, 0}, all = {NULL, 0, 0};

        hll_init(&one);
        for (int i = 0; i < 300; i++)
            (void)hll_raise(&one,
                            (struct hll_place){(uint32_t)random_below(&random, 400),
                                               (uint32_t)random_below(&random, 2) + 1},
                            limit);
        buffer_append_slice(&all, buffer_slice(&one));
        for (uint32_t index = 0; index < HLL_REGISTER_COUNT; index++) {
            bool used = index < 1500 && random_below(&random, 100) < density;

            model.ranks[index] = used ? (uint8_t)(random_below(&random, ranks) + 1) : 0;
            if (used)
                (void)hll_raise(&one, (struct hll_place){index, model.ranks[index]}, limit);
        }
        hll_raise_all(&all, &model, limit);
        assert_int_equal(one.size, all.size);
        assert_memory_equal(one.data, all.data, one.size);
        buffer_fini(&one);
        buffer_fini(&all);
    }
}

/* --- what strangers write --- */

static void headers_are_looked_at(void **state)
{
    char dense[HLL_DENSE_BYTES + 1] = "HYLL";

    (void)state;
    assert_int_equal(hll_encoding_of(SLICE_EMPTY), HLL_NONE);
    assert_int_equal(hll_encoding_of(slice_make("HYLL\1\0\0\0\0\0\0\0\0\0\0\0", 16)), HLL_SPARSE);
    assert_int_equal(hll_encoding_of(slice_make("HYLL\1\0\0\0\0\0\0\0\0\0\0\0", 15)), HLL_NONE);
    assert_int_equal(hll_encoding_of(slice_make("HYLL\2\0\0\0\0\0\0\0\0\0\0\0", 16)), HLL_NONE);
    assert_int_equal(hll_encoding_of(slice_make("hyll\1\0\0\0\0\0\0\0\0\0\0\0", 16)), HLL_NONE);
    assert_int_equal(hll_encoding_of(slice_make("HYLL\0\0\0\0\0\0\0\0\0\0\0\0", 16)), HLL_NONE);
    assert_int_equal(hll_encoding_of(slice_make(dense, HLL_DENSE_BYTES)), HLL_DENSE);
    assert_int_equal(hll_encoding_of(slice_make(dense, HLL_DENSE_BYTES + 1)), HLL_NONE);
    assert_int_equal(hll_encoding_of(slice_make(dense, HLL_DENSE_BYTES - 1)), HLL_NONE);
}

static bool is_whole(const char *runs, size_t size)
{
    struct buffer value = {NULL, 0, 0};
    bool whole;

    append_runs(&value, "");
    buffer_append(&value, runs, size);
    whole = hll_is_whole(buffer_slice(&value));
    buffer_fini(&value);
    return whole;
}

static void runs_have_to_add_up(void **state)
{
    char many[4096];

    (void)state;
    assert_true(is_whole("\x7f\xff", 2));
    assert_false(is_whole("", 0));
    assert_false(is_whole("\x7f", 1));         /* cut */
    assert_false(is_whole("\x7f\xfe", 2));     /* one too few */
    assert_false(is_whole("\x7f\xff\x00", 3)); /* one too many */
    assert_false(is_whole("\x7f\xff\x80", 3));
    assert_false(is_whole("\x7f\xff\x40", 3));
    memset(many, 0x83, sizeof(many));
    assert_true(is_whole(many, 4096));
    assert_false(is_whole(many, 4095));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_go_where_they_always_went),
        cmocka_unit_test(a_million_elements_give_the_known_bytes_and_counts),
        cmocka_unit_test(known_registers_give_known_counts),
        cmocka_unit_test(runs_are_split_and_joined_as_they_always_were),
        cmocka_unit_test(growing_beyond_the_limit_makes_it_dense),
        cmocka_unit_test(random_raises_agree_with_an_array),
        cmocka_unit_test(raising_all_is_raising_one_after_the_other),
        cmocka_unit_test(headers_are_looked_at),
        cmocka_unit_test(runs_have_to_add_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
