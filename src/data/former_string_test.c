#include "data/former_string.h"

#include "base/mem.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { PIECE = FORMER_STRING_PIECE_BYTES, PAGE = FORMER_PAGE_BYTES };
enum { MOST = 6 * PIECE, ROOM = MOST + PIECE, FORMERS = 3 };

/* The string now, and each of its moments. */
struct model {
    char *bytes; /* moves */
    size_t size;
    struct former_string formers[FORMERS];
    char *then[FORMERS];
    struct buffer given[FORMERS];
    bool is_given[FORMERS];
    struct random random;
};

static size_t below(struct model *model, size_t bound)
{
    return (size_t)random_below(&model->random, bound);
}

static void begin(struct model *model, unsigned i)
{
    former_string_init(&model->formers[i], model->size);
    model->then[i] = mem_alloc(model->size + 1);
    memcpy(model->then[i], model->bytes, model->size);
    buffer_clear(&model->given[i]);
    model->is_given[i] = false;
}

static void end(struct model *model, unsigned i)
{
    const struct former_string *former = &model->formers[i];

    assert_true(!model->is_given[i] || former->kept_bytes <= (former->size / PAGE + 1) * sizeof(char *));
    former_string_fini(&model->formers[i]);
    mem_free(model->then[i]);
}

static void give(struct model *model, unsigned i)
{
    const size_t before = model->given[i].size;

    if (model->is_given[i])
        return;
    model->is_given[i] = !former_string_give(&model->formers[i], model->bytes, &model->given[i]);
    assert_true(model->given[i].size - before == (size_t)PIECE || model->is_given[i]);
    assert_memory_equal(model->given[i].data + before, model->then[i] + before, model->given[i].size - before);
    if (model->is_given[i])
        assert_int_equal(model->given[i].size, model->formers[i].size);
}

/* Writes to the bytes, and says so before. */
static void write_to(struct model *model, size_t offset, size_t size)
{
    for (unsigned i = 0; i < FORMERS; i++)
        former_string_keep(&model->formers[i], model->bytes, offset, size);
    memset(model->bytes + offset, (int)below(model, 256), size);
}

static void resize(struct model *model, size_t size)
{
    if (size > model->size)
        write_to(model, model->size, size - model->size);
    model->size = size;
}

static void move(struct model *model)
{
    char *moved = mem_alloc(ROOM);

    memcpy(moved, model->bytes, ROOM);
    memset(model->bytes, '?', ROOM);
    mem_free(model->bytes);
    model->bytes = moved;
}

/* A few bytes, bytes at the borders of pages, much. */
static void write_anywhere(struct model *model)
{
    size_t offset = below(model, model->size + 1);

    if (below(model, 2) == 0)
        offset = MIN(offset / PAGE * PAGE + below(model, 3), model->size);
    write_to(model, offset, MIN(model->size - offset, below(model, below(model, 8) == 0 ? (size_t)MOST : 100)));
}

static void step(struct model *model)
{
    const unsigned i = (unsigned)below(model, FORMERS);

    switch (below(model, 20)) {
    case 0:
        end(model, i);
        begin(model, i);
        break;
    case 1:
    case 2:
        give(model, i);
        break;
    case 3:
        resize(model, below(model, 3) == 0 ? below(model, MOST) : model->size - MIN(model->size, below(model, 50)));
        break;
    case 4:
        resize(model, MIN(model->size + below(model, PIECE), (size_t)MOST));
        break;
    case 5:
        move(model);
        break;
    default:
        write_anywhere(model);
    }
}

static void a_string_is_given_as_it_was(void **state)
{
    static const size_t sizes[] = {0, 1, PAGE - 1, PAGE, PAGE + 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, MOST};
    struct model model = {.size = 0};

    (void)state;
    model.random = test_random("a_string_is_given_as_it_was");
    model.bytes = mem_alloc_zero(ROOM);
    for (unsigned round = 0; round < 4 * countof(sizes); round++) {
        resize(&model, sizes[round % countof(sizes)]);
        for (unsigned i = 0; i < FORMERS; i++)
            begin(&model, i);
        for (unsigned n = 0; n < 200; n++)
            step(&model);
        for (unsigned i = 0; i < FORMERS; i++) {
            while (below(&model, 20) != 0 && !model.is_given[i])
                give(&model, i);
            end(&model, i);
        }
    }
    for (unsigned i = 0; i < FORMERS; i++)
        buffer_fini(&model.given[i]);
    mem_free(model.bytes);
}

static void only_pages_that_are_not_given_are_kept(void **state)
{
    struct former_string former;
    struct buffer given = {0};
    char *bytes = mem_alloc_zero(MOST);
    size_t bare;

    (void)state;
    former_string_init(&former, MOST - 1);
    former_string_keep(&former, bytes, MOST - 1, 1000); /* an append */
    assert_int_equal(former.kept_bytes, 0);
    assert_true(former_string_give(&former, bytes, &given));
    former_string_keep(&former, bytes, 0, PIECE);
    assert_int_equal(former.kept_bytes, 0);
    former_string_keep(&former, bytes, PIECE, 0);
    assert_int_equal(former.kept_bytes, 0);
    former_string_keep(&former, bytes, PIECE - 1, 2);
    bare = former.kept_bytes - PAGE;
    assert_true(bare < PAGE);
    former_string_keep(&former, bytes, PIECE + 5, 9);
    assert_int_equal(former.kept_bytes, bare + PAGE);
    former_string_keep(&former, bytes, PIECE + PAGE - 1, 2);
    assert_int_equal(former.kept_bytes, bare + 2 * PAGE);
    former_string_keep(&former, bytes, MOST - 2, SIZE_MAX - MOST);
    assert_int_equal(former.kept_bytes, bare + 3 * PAGE - 1);
    assert_true(former_string_give(&former, bytes, &given));
    assert_int_equal(former.kept_bytes, bare + PAGE - 1);
    former_string_fini(&former);
    buffer_fini(&given);
    mem_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_string_is_given_as_it_was),
        cmocka_unit_test(only_pages_that_are_not_given_are_kept),
    };

    return cmocka_run_group_tests_name("former_string", tests, NULL, NULL);
}
