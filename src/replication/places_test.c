/* Which place a replica gets that returns, and that nobody loses what it needs. */
#include "replication/places.h"

#include "base/compiler.h"
#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct list places;

static void add(struct place *place, const char *ip, int port, uint64_t acked, uint64_t sent)
{
    *place = (struct place){.port = port, .acked = acked, .sent = sent};
    (void)snprintf(place->ip, sizeof(place->ip), "%s", ip);
    list_node_init(&place->node);
    list_push_back(&places, &place->node);
}

static struct place *choose(const char *ip, int port, uint64_t offset)
{
    return places_choose(&places, &(struct place_wish){.ip = ip, .port = port, .offset = offset});
}

static void its_own_address(void **state)
{
    struct place a, b;

    (void)state;
    list_init(&places);
    assert_null(choose("10.0.0.1", 6379, 100));
    add(&a, "10.0.0.1", 6379, 100, 200);
    add(&b, "10.0.0.2", 6379, 100, 200);
    assert_ptr_equal(choose("10.0.0.1", 6379, 150), &a);
    assert_ptr_equal(choose("10.0.0.2", 6379, 150), &b);
    assert_null(choose("10.0.0.2", 6380, 150)); /* another port: perhaps another replica */
    assert_null(choose("10.0.0.3", 6379, 150));
}

static void an_offset_that_it_cannot_have(void **state)
{
    struct place a, b;

    (void)state;
    list_init(&places);
    add(&a, "10.0.0.1", 6379, 100, 200);
    assert_ptr_equal(choose("10.0.0.1", 6379, 100), &a);
    assert_ptr_equal(choose("10.0.0.1", 6379, 200), &a);
    assert_null(choose("10.0.0.1", 6379, 99));
    assert_ptr_equal(choose("10.0.0.1", 6379, 5000), &a); /* after a full sync */
    assert_null(places_choose(&places, &(struct place_wish){"10.0.0.1", 6379, 5000, .is_shared = true}));
    assert_ptr_equal(places_choose(&places, &(struct place_wish){"10.0.0.1", 6379, 200, .is_shared = true}), &a);
    add(&b, "10.0.0.1", 6379, 300, 400);
    assert_null(choose("10.0.0.1", 6379, 5000));
    assert_null(choose("10.0.0.1", 6379, 250));
}

static void one_address_for_several(void **state)
{
    struct place a, b, c;

    (void)state;
    list_init(&places);
    add(&a, "10.0.0.1", 6379, 100, 200);
    add(&b, "10.0.0.1", 6379, 150, 250);
    assert_ptr_equal(choose("10.0.0.1", 6379, 120), &a);
    assert_ptr_equal(choose("10.0.0.1", 6379, 220), &b);
    assert_ptr_equal(choose("10.0.0.1", 6379, 180),
                     &b); /* also if it is the first: the second needs no less than 100 */

    /* Replicas have exchanged places: the one that asks with 180 left c, which was sent no more than 160. If a went,
     * the other, which comes with 110, would find nothing before 140. */
    list_init(&places);
    add(&a, "10.0.0.1", 6379, 100, 200);
    add(&c, "10.0.0.1", 6379, 140, 160);
    assert_ptr_equal(choose("10.0.0.1", 6379, 180), &c);
}

/* Replicas behind one address come and go; each that returns finds everything from its offset on. */
static void nobody_loses_what_it_needs(void **state)
{
    enum { REPLICAS = 6 };
    struct replica {
        struct place *place; /* while it is connected */
        uint64_t acked, applied, sent;
    } replicas[REPLICAS] = {0};
    struct random random = test_random("places_test");
    uint64_t end = 1000;

    (void)state;
    list_init(&places);
    for (int i = 0; i < REPLICAS; i++)
        replicas[i].place = calloc(1, sizeof(struct place));
    for (int step = 0; step < 20000; step++) {
        struct replica *replica = &replicas[random_below(&random, REPLICAS)];

        end += random_below(&random, 50);
        if (replica->place != NULL && random_below(&random, 3) != 0) { /* it gets on */
            replica->sent += random_below(&random, end - replica->sent + 1);
            replica->applied += random_below(&random, replica->sent - replica->applied + 1);
            replica->acked += random_below(&random, replica->applied - replica->acked + 1);
            replica->place->acked = replica->acked;
        } else if (replica->place != NULL) { /* it leaves */
            struct place *place = replica->place;

            add(place, "10.0.0.1", 6379, replica->acked, replica->sent);
            replica->place = NULL;
        } else { /* it returns */
            uint64_t retained = UINT64_MAX;
            struct place *place;

            LIST_FOREACH(node, &places)
                retained = MIN(retained, container_of(node, struct place, node)->acked);
            assert_true(retained <= replica->applied);
            place = places_choose(&places, &(struct place_wish){"10.0.0.1", 6379, replica->applied, .is_shared = true});
            if (place != NULL)
                list_remove(&place->node);
            else
                place = calloc(1, sizeof(struct place));
            replica->place = place;
            replica->acked = replica->sent = replica->applied;
        }
    }
    for (int i = 0; i < REPLICAS; i++)
        free(replicas[i].place);
    for (struct list_node *node; (node = list_pop_front(&places)) != NULL;)
        free(container_of(node, struct place, node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_own_address),
        cmocka_unit_test(an_offset_that_it_cannot_have),
        cmocka_unit_test(one_address_for_several),
        cmocka_unit_test(nobody_loses_what_it_needs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
