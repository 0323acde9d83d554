#include "commands/keys/sort_order.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "base/number.h"
#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* The model: everything in order, by insertion, which is stable. Elements point to texts that repeat. */
enum { MOST = 3000, TEXTS = 40 };

static char texts[TEXTS][NUMBER_I64_SPACE];
static size_t sizes[TEXTS];
static struct sort_element elements[MOST];
static struct sort_item items[MOST], model[MOST];
static struct random dice;

static int compare(const struct sort_item *a, const struct sort_item *b, enum sort_rule rule)
{
    struct slice one = a->element->weight, two = b->element->weight;

    if (rule == SORT_BY_NUMBER && a->element->number != b->element->number)
        return a->element->number > b->element->number ? 1 : -1;
    if (rule == SORT_BY_NUMBER)
        return slice_compare(a->element->text, b->element->text);
    if (one.data == NULL || two.data == NULL)
        return (one.data != NULL) - (two.data != NULL);
    return rule == SORT_BY_BYTES ? slice_compare(one, two) : strcmp(one.data, two.data);
}

static void sort_model(size_t count, enum sort_rule rule, bool descending)
{
    int sign = descending ? -1 : 1;

    for (size_t i = 1; i < count; i++) {
        struct sort_item item = model[i];
        size_t place = i;

        for (; place > 0 && sign * compare(&item, &model[place - 1], rule) < 0; place--)
            model[place] = model[place - 1];
        model[place] = item;
    }
}

static struct slice draw_text(void)
{
    size_t index = random_below(&dice, TEXTS);

    return slice_make(texts[index], sizes[index]);
}

static void set(size_t index, struct sort_element element)
{
    elements[index] = element;
    items[index] = model[index] = (struct sort_item){.element = &elements[index]};
}

/* Few kinds: most weights are equal. */
static void draw(size_t count, enum sort_rule rule, uint64_t kinds)
{
    for (size_t i = 0; i < count; i++) {
        struct sort_element element = {.text = draw_text()};

        if (rule == SORT_BY_NUMBER)
            element.number = ((double)random_below(&dice, kinds) - 5) / 3;
        else
            element.weight = random_below(&dice, 8) != 0 ? draw_text() : SLICE_EMPTY;
        set(i, element);
    }
}

static void check(size_t count, size_t from, size_t to, enum sort_rule rule, bool descending)
{
    sort_model(count, rule, descending);
    sort_order(items, count, from, to, rule, descending);
    for (size_t i = from; i < to; i++)
        assert(items[i].element == model[i].element);
}

static void make_texts(void)
{
    dice = test_random("sort_order");
    for (size_t i = 0; i < TEXTS; i++) {
        sizes[i] = number_format_i64(texts[i], (int64_t)(i / 2 * 7));
        if (i % 2 == 1)
            texts[i][sizes[i] / 2] = '\0'; /* some end there for who goes by the locale */
    }
}

static void windows_hold_what_belongs_there(void **state)
{
    static const enum sort_rule rules[] = {SORT_BY_NUMBER, SORT_BY_COLLATION, SORT_BY_BYTES};

    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        size_t count = random_below(&dice, round % 50 == 0 ? MOST : 130);
        size_t from = random_below(&dice, count + 1), to = from + random_below(&dice, count - from + 1);

        draw(count, rules[round % countof(rules)], random_below(&dice, 2) != 0 ? 3 : 100000);
        check(count, round % 4 == 0 ? 0 : from, round % 4 == 0 ? count : to, rules[round % countof(rules)],
              random_below(&dice, 2) != 0);
    }
}

static void draw_rising(bool numbers)
{
    for (size_t i = 0; i < MOST; i++) {
        struct sort_element element = {SLICE("same"), {SLICE("the same")}};

        if (numbers)
            element.number = (double)(i / 100);
        set(i, element);
    }
}

static void equal_ones_stay_in_order(void **state)
{
    (void)state;
    for (unsigned descending = 0; descending < 2; descending++) {
        draw_rising(true);
        check(MOST, 0, MOST, SORT_BY_NUMBER, descending != 0);
        draw_rising(false);
        check(MOST, 0, MOST, SORT_BY_BYTES, descending != 0);
    }
}

static void numbers_have_their_order(void **state)
{
    const double inf = __builtin_inf();
    const double rising[] = {-inf, -1e308, -2, -1.5, -1e-300, -5e-324, 0, 5e-324, 1e-300, 1, 1.5, 2, 1e308, inf};

    (void)state;
    for (size_t i = 0; i < countof(rising); i++)
        set(i, (struct sort_element){SLICE("same"), {.number = rising[(i * 5) % countof(rising)]}});
    sort_order(items, countof(rising), 0, countof(rising), SORT_BY_NUMBER, false);
    for (size_t i = 0; i < countof(rising); i++)
        assert(items[i].element->number == rising[i]);
}

static void both_zeros_are_one(void **state)
{
    (void)state;
    for (unsigned descending = 0; descending < 2; descending++) {
        set(0, (struct sort_element){SLICE("b"), {.number = -0.0}});
        set(1, (struct sort_element){SLICE("a"), {.number = 0.0}});
        set(2, (struct sort_element){SLICE("c"), {.number = 0.0}});
        check(3, 0, 3, SORT_BY_NUMBER, descending != 0);
    }
}

/* Texts with equal first eight bytes, and shorter texts. */
static void texts_have_their_order(void **state)
{
    const char *const rising[] = {"", "a", "abcdefg", "abcdefgh", "abcdefgha", "abcdefghb", "abcdefgi", "b", "\xff"};

    (void)state;
    for (enum sort_rule rule = SORT_BY_COLLATION; rule <= SORT_BY_BYTES; rule++) {
        for (size_t i = 0; i < countof(rising); i++)
            set(i, (struct sort_element){SLICE("same"), {slice_from_text(rising[(i * 5) % countof(rising)])}});
        sort_order(items, countof(rising), 0, countof(rising), rule, false);
        for (size_t i = 0; i < countof(rising); i++)
            assert(slice_equal_text(items[i].element->weight, rising[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_hold_what_belongs_there), cmocka_unit_test(equal_ones_stay_in_order),
        cmocka_unit_test(numbers_have_their_order),        cmocka_unit_test(both_zeros_are_one),
        cmocka_unit_test(texts_have_their_order),
    };

    make_texts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
