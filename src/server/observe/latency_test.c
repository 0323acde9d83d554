#include "server/observe/latency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct latency_history history;

static int begin(void **state)
{
    (void)state;
    latency_setup();
    for (unsigned event = 0; event < LATENCY_EVENT_COUNT; event++)
        (void)latency_reset((enum latency_event)event);
    latency_set_threshold(10);
    return 0;
}

static void the_threshold_decides(void **state)
{
    (void)state;
    latency_add(LATENCY_COMMAND, 9);
    latency_read(LATENCY_COMMAND, &history);
    assert_int_equal(history.count, 0);
    latency_add(LATENCY_COMMAND, 10);
    latency_read(LATENCY_COMMAND, &history);
    assert_int_equal(history.count, 1);
    assert_int_equal(history.samples[0].ms, 10);
    latency_set_threshold(0);
    latency_add(LATENCY_FAST_COMMAND, 1000);
    latency_read(LATENCY_FAST_COMMAND, &history);
    assert_int_equal(history.count, 0);
}

/* However many there were: one sample a second, the worst of it. */
static void a_second_keeps_its_worst(void **state)
{
    int64_t most = 0, seconds_before = -1;

    (void)state;
    for (int64_t ms = 10; ms < 1000; ms++) {
        latency_add(LATENCY_EXPIRE_CYCLE, ms);
        latency_add(LATENCY_EXPIRE_CYCLE, 10);
    }
    latency_read(LATENCY_EXPIRE_CYCLE, &history);
    assert_int_equal(history.worst_ms, 999);
    assert_true(history.count >= 1 && history.count < LATENCY_SAMPLES);
    for (size_t i = 0; i < history.count; i++) {
        assert_true(history.samples[i].time_s > seconds_before);
        assert_true(history.samples[i].ms >= most); /* they came in ascending order */
        seconds_before = history.samples[i].time_s;
        most = history.samples[i].ms;
    }
    assert_int_equal(most, 999);
}

static void reset_forgets_one_event(void **state)
{
    (void)state;
    latency_add(LATENCY_COMMAND, 20);
    latency_add(LATENCY_EVICTION_DEL, 30);
    assert_true(latency_reset(LATENCY_COMMAND));
    assert_false(latency_reset(LATENCY_COMMAND));
    latency_read(LATENCY_COMMAND, &history);
    assert_int_equal(history.count, 0);
    assert_int_equal(history.worst_ms, 0);
    latency_read(LATENCY_EVICTION_DEL, &history);
    assert_int_equal(history.worst_ms, 30);
}

static void events_are_found_by_their_names(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LATENCY_EVENT_COUNT; i++) {
        enum latency_event event = LATENCY_EVENT_COUNT;

        assert_true(latency_find_event(slice_from_text(latency_event_name((enum latency_event)i)), &event));
        assert_int_equal(event, i);
    }
    assert_false(latency_find_event(SLICE("no-such"), &(enum latency_event){0}));
    assert_false(latency_find_event(SLICE(""), &(enum latency_event){0}));
}

#define LATENCY_TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LATENCY_TEST(the_threshold_decides),
        LATENCY_TEST(a_second_keeps_its_worst),
        LATENCY_TEST(reset_forgets_one_event),
        LATENCY_TEST(events_are_found_by_their_names),
    };

    return cmocka_run_group_tests_name("latency", tests, NULL, NULL);
}
