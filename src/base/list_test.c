#include "base/list.h"
#include "base/test_dies.h"
#include "base/test_seed.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct item {
    unsigned number;
    struct list_node node;
};

#define ITEM_COUNT 12

static void check_same(const struct list *list, const unsigned *model, unsigned count)
{
    unsigned i = 0;

    list_validate(list);
    assert_int_equal(list_count(list), count);
    assert_int_equal(list_is_empty(list), count == 0);
    LIST_FOREACH(node, list)
        assert_int_equal(container_of(node, struct item, node)->number, model[i++]);
    for (struct list_node *node = list_last(list); node != NULL; node = list_previous(list, node))
        assert_int_equal(container_of(node, struct item, node)->number, model[--i]);
}

static void agrees_with_an_array(void **state)
{
    struct random random = test_random("agrees_with_an_array");
    struct item items[ITEM_COUNT];
    unsigned model[ITEM_COUNT];
    unsigned count = 0;
    struct list list;

    (void)state;
    list_init(&list);
    for (unsigned i = 0; i < ITEM_COUNT; i++) {
        items[i].number = i;
        list_node_init(&items[i].node);
    }
    for (unsigned round = 0; round < 20000; round++) {
        struct item *item = &items[random_below(&random, ITEM_COUNT)];
        unsigned at = 0;

        if (list_node_is_linked(&item->node)) {
            while (model[at] != item->number)
                at++;
            list_remove(&item->node);
            memmove(model + at, model + at + 1, (--count - at) * sizeof(*model));
        } else if (random_below(&random, 3) == 0 && count > 0) {
            at = (unsigned)random_below(&random, count);
            list_insert_before(&items[model[at]].node, &item->node);
            memmove(model + at + 1, model + at, (count++ - at) * sizeof(*model));
            model[at] = item->number;
        } else if (random_below(&random, 2) == 0) {
            list_push_back(&list, &item->node);
            model[count++] = item->number;
        } else {
            list_push_front(&list, &item->node);
            memmove(model + 1, model, count++ * sizeof(*model));
            model[0] = item->number;
        }
        check_same(&list, model, count);
    }
}

static void foreach_safe_and_splice(void **state)
{
    struct item items[6] = {0};
    struct list a, b;

    (void)state;
    list_init(&a);
    list_init(&b);
    list_splice_back(&a, &b);
    assert_true(list_is_empty(&a));
    for (unsigned i = 0; i < 6; i++) {
        items[i].number = i;
        list_push_back(i < 3 ? &a : &b, &items[i].node);
    }
    list_splice_back(&a, &b);
    check_same(&a, (unsigned[]){0, 1, 2, 3, 4, 5}, 6);
    check_same(&b, NULL, 0);
    LIST_FOREACH_SAFE(node, &a) {
        if (container_of(node, struct item, node)->number % 2 == 0) {
            list_remove(node);
            memset(node, 0xee, sizeof(*node)); /* as if it were freed */
        }
    }
    check_same(&a, (unsigned[]){1, 3, 5}, 3);
    assert_ptr_equal(list_pop_front(&a), &items[1].node);
    assert_ptr_equal(list_next(&a, &items[3].node), &items[5].node);
    assert_null(list_next(&a, &items[5].node));
}

static void moved_nodes_are_found_by_their_neighbours(void **state)
{
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}}, elsewhere[3] = {0};
    const unsigned model[] = {0, 1, 2};
    struct list list, list_elsewhere;

    (void)state;
    list_init(&list);
    for (unsigned i = 0; i < 3; i++)
        list_push_back(&list, &items[i].node);
    for (unsigned i = 0; i < 3; i++) {
        elsewhere[i] = items[i];
        list_node_moved(&elsewhere[i].node);
        check_same(&list, model, 3);
    }
    memset(items, 0, sizeof(items));
    list_elsewhere = list;
    list_node_moved(&list_elsewhere.head);
    memset(&list, 0, sizeof(list));
    check_same(&list_elsewhere, model, 3);
}

static struct list one;
static struct item item;

static void link_twice(void)
{
    list_push_back(&one, &item.node);
    list_push_back(&one, &item.node);
}

static void remove_twice(void)
{
    list_push_back(&one, &item.node);
    list_remove(&item.node);
    list_remove(&item.node);
}

static void link_and_remove_again(void)
{
    for (unsigned i = 0; i < 2; i++) {
        list_push_back(&one, &item.node);
        list_remove(&item.node);
    }
}

static void a_node_is_in_one_list(void **state)
{
    (void)state;
    list_init(&one);
    assert_true(dies(link_twice));
    assert_true(dies(remove_twice));
    assert_false(dies(link_and_remove_again));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_an_array),
        cmocka_unit_test(moved_nodes_are_found_by_their_neighbours),
        cmocka_unit_test(a_node_is_in_one_list),
        cmocka_unit_test(foreach_safe_and_splice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
