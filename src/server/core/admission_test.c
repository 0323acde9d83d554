#include "server/core/admission.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/un.h>

static bool is_local(const char *text)
{
    struct sockaddr_storage peer;
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&peer;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&peer;

    memset(&peer, 0, sizeof(peer));
    if (strchr(text, ':') != NULL) {
        peer.ss_family = AF_INET6;
        assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
    } else {
        peer.ss_family = AF_INET;
        assert_int_equal(inet_pton(AF_INET, text, &v4->sin_addr), 1);
    }
    return admission_is_local(&peer);
}

static void loopback_is_local(void **state)
{
    (void)state;
    assert_true(is_local("127.0.0.1"));
    assert_true(is_local("127.1.2.3"));
    assert_true(is_local("::1"));
    assert_true(is_local("::ffff:127.0.0.1"));
    assert_false(is_local("128.0.0.1"));
    assert_false(is_local("10.127.0.1"));
    assert_false(is_local("0.0.0.127"));
    assert_false(is_local("::2"));
    assert_false(is_local("::ffff:10.0.0.1"));
    assert_false(is_local("fe80::127.0.0.1"));
}

static void the_reserve_is_for_local_ones(void **state)
{
    (void)state;
    assert_int_equal(admission_limit(10, 0, false), 10);
    assert_int_equal(admission_limit(10, 3, false), 7);
    assert_int_equal(admission_limit(10, 3, true), 10);
    assert_int_equal(admission_limit(10, 10, false), 0);
    assert_int_equal(admission_limit(10, 11, false), 0); /* the larger reserve does not wrap */
    assert_int_equal(admission_limit(10, 11, true), 10);
}

enum { SECOND_US = 1000 * 1000, THREADS = 2, PERCENT = 50 };

/* Looks each second for `seconds`, in each of which the process took busy_percent of one processor. */
struct sample {
    struct overload overload;
    int64_t now_us;
    uint64_t cpu_us;
    unsigned begun;
};

static void pass(struct sample *sample, unsigned seconds, unsigned busy_percent)
{
    for (unsigned i = 0; i < seconds; i++) {
        sample->now_us += SECOND_US;
        sample->cpu_us += busy_percent * (SECOND_US / 100);
        sample->begun += overload_look(&sample->overload, PERCENT, THREADS, sample->now_us, sample->cpu_us);
    }
}

static void nobody_goes_before_a_whole_span_was_too_much(void **state)
{
    struct sample sample = {.now_us = 5};

    (void)state;
    pass(&sample, 1, 0);
    pass(&sample, 9, 200);
    assert_false(sample.overload.is_closing);
    pass(&sample, 1, 200);
    assert_true(sample.overload.is_closing);
    assert_int_equal(sample.begun, 1);
    pass(&sample, 10, 200);
    assert_true(sample.overload.is_closing);
    assert_int_equal(sample.begun, 1); /* still the same one */
}

static void the_limit_itself_is_not_too_much(void **state)
{
    struct sample sample = {.now_us = 5};

    (void)state;
    pass(&sample, 40, PERCENT * THREADS);
    assert_int_equal(sample.begun, 0);
    pass(&sample, 20, PERCENT * THREADS + 1);
    assert_int_equal(sample.begun, 1);
}

static void a_second_of_less_stops_it_at_once(void **state)
{
    struct sample sample = {.now_us = 5};

    (void)state;
    pass(&sample, 11, 200);
    assert_true(sample.overload.is_closing);
    pass(&sample, 1, 90);
    assert_false(sample.overload.is_closing);
    pass(&sample, 1, 110); /* of the same span */
    assert_true(sample.overload.is_closing);
    pass(&sample, 18, 10);
    assert_false(sample.overload.is_over);
    pass(&sample, 20, 200);
    assert_int_equal(sample.begun, 2);
}

static void without_a_limit_all_is_forgotten(void **state)
{
    struct sample sample = {.now_us = 5};

    (void)state;
    pass(&sample, 11, 200);
    assert_true(sample.overload.is_closing);
    assert_false(overload_look(&sample.overload, 0, THREADS, sample.now_us, sample.cpu_us));
    assert_false(sample.overload.is_closing);
    pass(&sample, 10, 200); /* the first of these begins a new span */
    assert_false(sample.overload.is_closing);
    pass(&sample, 1, 200);
    assert_true(sample.overload.is_closing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback_is_local),
        cmocka_unit_test(the_reserve_is_for_local_ones),
        cmocka_unit_test(nobody_goes_before_a_whole_span_was_too_much),
        cmocka_unit_test(the_limit_itself_is_not_too_much),
        cmocka_unit_test(a_second_of_less_stops_it_at_once),
        cmocka_unit_test(without_a_limit_all_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
