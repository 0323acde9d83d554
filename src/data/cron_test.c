#include "data/cron.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct value make(bool repeats, int64_t start_ms, int64_t interval_ms)
{
    const struct slice words[] = {SLICE("return 1"), SLICE("key"), SLICE(""), SLICE("argument")};
    const struct cron_terms terms = {repeats, start_ms, interval_ms, 2};

    return cron_create(&terms, words, countof(words));
}

static void cron_keeps_its_words(void **state)
{
    struct value one = make(true, 5, 10), two = cron_ops.copy(one);
    struct cron *clone = cron_clone(cron_of(one));

    (void)state;
    assert_true(cron_of(one)->id != cron_of(two)->id && cron_of(one)->id == clone->id);
    cron_ops.destroy(one);
    for (int i = 0; i < 2; i++) {
        const struct cron *cron = i == 0 ? clone : cron_of(two);

        assert_true(cron->word_count == 4 && cron->key_count == 2 && cron->repeats && !cron->fails);
        assert_true(slice_equal_text(cron->words[0], "return 1") && slice_equal_text(cron->words[1], "key"));
        assert_true(cron->words[2].size == 0 && slice_equal_text(cron->words[3], "argument"));
    }
    cron_free(&clone);
    cron_ops.destroy(two);
}

static int64_t after(int64_t start_ms, int64_t interval_ms, int64_t now_ms)
{
    struct value value = make(true, start_ms, interval_ms);
    int64_t next_ms;

    cron_of(value)->start_ms = cron_start_after(cron_of(value), now_ms);
    next_ms = cron_next_ms(cron_of(value));
    cron_ops.destroy(value);
    return next_ms;
}

static void cron_goes_on_where_it_should(void **state)
{
    struct value far = make(false, INT64_MAX - 5, 10);

    (void)state;
    assert_true(cron_next_ms(cron_of(far)) == INT64_MAX);
    cron_ops.destroy(far);
    assert_true(after(1000, 100, 1100) == 1200); /* on time */
    assert_true(after(1000, 100, 1199) == 1200); /* late, but within the interval */
    assert_true(after(1000, 100, 1200) == 1300); /* one was missed */
    assert_true(after(1000, 100, 1999) == 2000); /* many were */
    assert_true(after(1000, 100, 2000) == 2100);
    assert_true(after(0, 100, 5555) == 5655); /* nothing to keep to */
    assert_true(after(-1000, 300, 50) == 200);
    assert_true(after(INT64_MIN, 7, 100) > 100 && after(INT64_MIN, 7, 100) <= 107);
    assert_true(after(1, INT64_MAX, 5) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cron_keeps_its_words),
        cmocka_unit_test(cron_goes_on_where_it_should),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
