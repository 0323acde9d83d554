#include "data/listpack.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The model: an array of texts. */
enum { MODEL_MOST = 300 };

struct model {
    char *texts[MODEL_MOST];
    size_t sizes[MODEL_MOST];
    unsigned count;
};

static void model_insert(struct model *model, unsigned index, struct slice text)
{
    memmove(&model->texts[index + 1], &model->texts[index], (model->count - index) * sizeof(model->texts[0]));
    memmove(&model->sizes[index + 1], &model->sizes[index], (model->count - index) * sizeof(model->sizes[0]));
    model->texts[index] = mem_copy(text.data, text.size);
    model->sizes[index] = text.size;
    model->count++;
}

static void model_remove(struct model *model, unsigned index)
{
    mem_free(model->texts[index]);
    model->count--;
    memmove(&model->texts[index], &model->texts[index + 1], (model->count - index) * sizeof(model->texts[0]));
    memmove(&model->sizes[index], &model->sizes[index + 1], (model->count - index) * sizeof(model->sizes[0]));
}

static struct slice model_at(const struct model *model, unsigned index)
{
    return slice_make(model->texts[index], model->sizes[index]);
}

static struct slice random_text(struct random *random, char *room)
{
    static const int64_t edges[] = {0, 127, 128, 4095, 4096, 32767, 32768, 8388607, 8388608, INT32_MAX, INT64_MAX};
    static const unsigned sizes[] = {0, 1, 20, 62, 63, 64, 120, 126, 127, 300, 4095, 4096, 16380, 16384, 20000};

    if (random_below(random, 3) == 0) {
        int64_t number = edges[random_below(random, countof(edges))] - (int64_t)random_below(random, 2);

        return slice_make(room, number_format_i64(room, random_below(random, 2) ? number : -number));
    } else {
        size_t size = sizes[random_below(random, random_below(random, 20) == 0 ? countof(sizes) : 7)];

        for (size_t i = 0; i < size; i++)
            room[i] = (char)random_u64(random);
        return slice_make(room, size);
    }
}

static void same(const struct listpack *list, const struct model *model)
{
    char scratch[NUMBER_I64_SPACE];
    listpack_at at = listpack_first(list), last = listpack_last(list);

    listpack_validate(list);
    assert_int_equal(listpack_count(list), model->count);
    for (unsigned i = 0; i < model->count; i++, at = listpack_next(list, at)) {
        assert_int_not_equal(at, LISTPACK_NONE);
        assert_true(slice_equal(listpack_text(list, at, scratch), model_at(model, i)));
        assert_true(listpack_equals(list, at, model_at(model, i)));
    }
    assert_int_equal(at, LISTPACK_NONE);
    for (unsigned i = model->count; i-- > 0; last = listpack_previous(list, last))
        assert_true(slice_equal(listpack_text(list, last, scratch), model_at(model, i)));
    assert_int_equal(last, LISTPACK_NONE);
}

static void looks_like_model(struct random *random, const struct listpack *list, const struct model *model)
{
    int64_t index = (int64_t)random_below(random, model->count + 2u);
    bool inside = index < model->count;
    unsigned skip = (unsigned)random_below(random, 3), first;
    char scratch[NUMBER_I64_SPACE];
    listpack_at at = listpack_seek(list, index), found;

    assert_int_equal(at != LISTPACK_NONE, inside);
    assert_int_equal(listpack_seek(list, -1 - (int64_t)model->count), LISTPACK_NONE);
    if (!inside)
        return;
    assert_int_equal(listpack_seek(list, index - model->count), at);
    assert_true(slice_equal(listpack_text(list, at, scratch), model_at(model, (unsigned)index)));
    found = listpack_find(list, listpack_first(list), model_at(model, (unsigned)index), skip);
    for (first = 0; first < model->count; first += skip + 1)
        if (slice_equal(model_at(model, first), model_at(model, (unsigned)index)))
            break;
    assert_int_equal(found, first < model->count ? listpack_seek(list, first) : LISTPACK_NONE);
}

static void step(struct random *random, struct listpack **list, struct model *model, char *room)
{
    unsigned index = (unsigned)random_below(random, model->count + 1u);
    listpack_at at = index < model->count ? listpack_seek(*list, index) : LISTPACK_NONE;

    switch (random_below(random, model->count + 1 >= MODEL_MOST ? 2 : 6)) {
    case 0: {
        uint32_t count = (uint32_t)random_below(random, 4);

        if (at == LISTPACK_NONE)
            break;
        at = listpack_remove(list, at, count);
        for (uint32_t i = 0; i < count && index < model->count; i++)
            model_remove(model, index);
        assert_int_equal(at, count == 0 ? LISTPACK_NONE : listpack_seek(*list, index));
        break;
    }
    case 1:
        if (at == LISTPACK_NONE)
            break;
        model_remove(model, index);
        model_insert(model, index, random_text(random, room));
        listpack_replace(list, at, model_at(model, index));
        break;
    default:
        model_insert(model, index, random_text(random, room));
        at = listpack_insert(list, at, model_at(model, index));
        assert_int_equal(at, listpack_seek(*list, index));
        break;
    }
}

static void behaves_like_an_array(void **state)
{
    struct random random = test_random("listpack");
    struct model model = {.count = 0};
    struct listpack *list = listpack_create();
    char *room = mem_alloc(32768);

    (void)state;
    for (int i = 0; i < 20000; i++) {
        step(&random, &list, &model, room);
        if (i % 16 == 0)
            same(list, &model);
        looks_like_model(&random, list, &model);
        if (random_below(&random, 500) == 0)
            while (model.count > 3) {
                model_remove(&model, 0);
                listpack_remove(&list, listpack_first(list), 1);
            }
    }
    same(list, &model);
    while (model.count > 0)
        model_remove(&model, 0);
    listpack_clear(&list);
    same(list, &model);
    listpack_destroy(&list);
    mem_free(room);
}

/* --- room in front --- */

static void same_bytes(const struct listpack *list, uint32_t room, const struct listpack *plain)
{
    listpack_validate_with_room(list, room);
    assert_true(slice_equal(listpack_as_bytes(list), listpack_as_bytes(plain)));
}

static void step_at_an_end(struct random *random, struct listpack **list, uint32_t *room, struct listpack **plain,
                           bool is_drop)
{
    const bool is_first = random_below(random, 3) != 0;
    char bytes[20000];
    struct slice text;

    if (is_drop && listpack_count(*plain) != 0) {
        (is_first ? listpack_drop_first : listpack_drop_last)(list, room);
        (void)listpack_remove(plain, is_first ? listpack_first(*plain) : listpack_last(*plain), 1);
    } else {
        text = random_text(random, bytes);
        (is_first ? listpack_push_first : listpack_push_last)(list, room, text);
        (void)listpack_insert(plain, is_first ? listpack_first(*plain) : LISTPACK_NONE, text);
    }
}

/* It grows and shrinks in turn, at both ends. */
static void with_room_in_front_the_bytes_are_the_same(void **state)
{
    struct random random = test_random("listpack with room");
    struct listpack *list = listpack_create(), *plain = listpack_create();
    uint32_t room = 0, drops = 3;
    size_t most;

    (void)state;
    for (int i = 0; i < 30000; i++) {
        if (i % 300 == 0)
            drops = (uint32_t)random_below(&random, 10);
        step_at_an_end(&random, &list, &room, &plain, random_below(&random, 10) < drops);
        same_bytes(list, room, plain);
        most = MAX((size_t)1024, 5 * mem_good_size(listpack_bytes(list)));
        assert_true(mem_usable(listpack_block(list, room)) <= most);
        if (random_below(&random, 50) == 0)
            listpack_close_room(&list, &room);
    }
    mem_free(listpack_block(list, room));
    listpack_destroy(&plain);
}

static unsigned pushes_that_move(struct listpack **list, uint32_t *room, unsigned pushes)
{
    unsigned moves = 0;

    for (unsigned i = 0; i < pushes; i++) {
        const char *end = (const char *)*list + listpack_bytes(*list);

        listpack_push_first(list, room, SLICE("twenty bytes of text"));
        moves += (const char *)*list + listpack_bytes(*list) != end;
    }
    return moves;
}

/* The sizes of blocks are eighths or quarters apart (MEM_LIBC: less), and a step moves it at most twice. */
static void few_pushes_move_what_is_there(void **state)
{
    struct listpack *list = listpack_create();
    uint32_t room = 0;
    unsigned moves;

    (void)state;
    (void)pushes_that_move(&list, &room, 50);
    moves = pushes_that_move(&list, &room, 300);
    if (mem_good_size(1025) > 1025 + 64)
        assert_in_range(moves, 1, 30);
    for (unsigned i = 0; i < 200; i++) {
        const char *last = (const char *)list + listpack_last(list);

        listpack_drop_first(&list, &room);
        if (i < 100)
            assert_ptr_equal((const char *)list + listpack_last(list), last);
    }
    listpack_validate_with_room(list, room);
    mem_free(listpack_block(list, room));
}

static void numbers_take_the_smallest_form(void **state)
{
    static const struct {
        const char *text;
        unsigned bytes; /* of the element with its backward size */
    } cases[] = {{"0", 2},
                 {"127", 2},
                 {"-1", 3},
                 {"128", 3},
                 {"4095", 3},
                 {"-4096", 3},
                 {"4096", 4},
                 {"-32768", 4},
                 {"32768", 5},
                 {"-8388608", 5},
                 {"8388608", 6},
                 {"2147483648", 10},
                 {"-9223372036854775808", 10},
                 {"00", 4},
                 {"-0", 4},
                 {"+1", 4},
                 {"9223372036854775808", 21},
                 {"", 2}};

    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct listpack *list = listpack_create();
        char scratch[NUMBER_I64_SPACE];

        listpack_append(&list, slice_from_text(cases[i].text));
        assert_int_equal(listpack_bytes(list), 7 + cases[i].bytes);
        assert_true(slice_equal_text(listpack_text(list, listpack_first(list), scratch), cases[i].text));
        listpack_destroy(&list);
    }
}

static void an_empty_text_is_found(void **state)
{
    struct listpack *list = listpack_create();

    (void)state;
    listpack_append(&list, SLICE("a"));
    listpack_append(&list, SLICE_EMPTY);
    assert_int_equal(listpack_find(list, listpack_first(list), SLICE_EMPTY, 0), listpack_seek(list, 1));
    listpack_destroy(&list);
}

static void known_bytes(void **state)
{
    static const char expected[] = "\x0C\x00\x00\x00\x02\x00\x81\x61\x02\x05\x01\xFF";
    struct listpack *list = listpack_create();

    (void)state;
    listpack_append(&list, SLICE("a"));
    listpack_append_int(&list, 5);
    assert_true(slice_equal(listpack_as_bytes(list), slice_make(expected, 12)));
    listpack_destroy(&list);
}

static void more_elements_than_the_head_can_count(void **state)
{
    struct listpack *list = listpack_create(), *tail = listpack_create();

    (void)state;
    for (int i = 0; i < 65600; i++)
        listpack_append_int(&list, i % 100);
    assert_int_equal(listpack_count(list), 65600);
    assert_int_equal(listpack_get(list, listpack_seek(list, -1)).number, 65599 % 100);
    assert_int_equal(listpack_get(list, listpack_seek(list, 65534)).number, 65534 % 100);
    assert_int_equal(listpack_seek(list, 65600), LISTPACK_NONE);
    listpack_append_list(&tail, list, listpack_seek(list, 65590));
    assert_int_equal(listpack_count(tail), 10);
    listpack_append_list(&tail, list, listpack_first(list));
    assert_int_equal(listpack_count(tail), 65610);
    listpack_validate(tail);
    listpack_remove(&list, listpack_first(list), 65599);
    assert_int_equal(listpack_count(list), 1);
    listpack_destroy(&list);
    listpack_destroy(&tail);
}

static void damaged_bytes_are_refused(void **state)
{
    struct random random = test_random("listpack damage");
    struct listpack *list = listpack_create();
    char *room = mem_alloc(32768);

    (void)state;
    for (int i = 0; i < 60; i++)
        listpack_append(&list, random_text(&random, room));
    for (uint32_t size = 0; size < listpack_bytes(list); size++)
        assert_false(listpack_check(slice_make((const char *)list, size)));
    for (int i = 0; i < 20000; i++) {
        uint32_t bytes = listpack_bytes(list);
        char *copy = mem_copy(list, bytes);

        copy[random_below(&random, bytes)] ^= (char)(1 << random_below(&random, 8));
        if (listpack_check(slice_make(copy, bytes))) /* fine: then everything can be walked */
            for (listpack_at at = listpack_first((struct listpack *)(void *)copy); at != LISTPACK_NONE;
                 at = listpack_next((struct listpack *)(void *)copy, at))
                assert_true(at < bytes);
        mem_free(copy);
    }
    listpack_destroy(&list);
    mem_free(room);
}

/* Strangers may spend more bytes on a short text than we would. */
static void short_texts_are_found_in_every_encoding(void **state)
{
    static const unsigned char bytes[] = {27,   0,   0,   0,   3,   0, /* head */
                                          0x83, 'a', 'b', 'x', 4,      /* one byte tells the size */
                                          0xE0, 3,   'a', 'b', 'c', 5, /* two */
                                          0xF0, 3,   0,   0,   0,   'a', 'b', 'd', 8 /* five */, 0xFF};
    struct listpack *list = mem_copy(bytes, sizeof(bytes));

    (void)state;
    assert_int_equal(listpack_find(list, listpack_first(list), SLICE("abx"), 0), 6);
    assert_int_equal(listpack_find(list, listpack_first(list), SLICE("abc"), 0), 11);
    assert_int_equal(listpack_find(list, listpack_first(list), SLICE("abd"), 0), 17);
    assert_int_equal(listpack_find(list, listpack_first(list), SLICE("abd"), 1), 17);
    assert_int_equal(listpack_find(list, listpack_first(list), SLICE("abc"), 1), LISTPACK_NONE);
    assert_int_equal(listpack_find(list, listpack_first(list), SLICE("aby"), 0), LISTPACK_NONE);
    listpack_destroy(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_texts_are_found_in_every_encoding),
        cmocka_unit_test(behaves_like_an_array),
        cmocka_unit_test(with_room_in_front_the_bytes_are_the_same),
        cmocka_unit_test(few_pushes_move_what_is_there),
        cmocka_unit_test(numbers_take_the_smallest_form),
        cmocka_unit_test(an_empty_text_is_found),
        cmocka_unit_test(known_bytes),
        cmocka_unit_test(more_elements_than_the_head_can_count),
        cmocka_unit_test(damaged_bytes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
