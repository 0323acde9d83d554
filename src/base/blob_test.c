#include "base/blob.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void life_of_a_blob(void **state)
{
    struct blob *blob = blob_create_copy(SLICE("hello"));
    struct blob *other;

    (void)state;
    assert_true(blob_is_exclusive(blob));
    assert_true(slice_equal(blob_slice(blob), SLICE("hello")));
    other = blob_acquire(blob);
    assert_false(blob_is_exclusive(blob));
    blob_release(&other);
    assert_null(other);
    assert_true(blob_is_exclusive(blob));
    assert_true(blob_try_grow(&blob, 1000));
    assert_int_equal(blob->capacity, 1000);
    assert_int_equal(blob->size, 5);
    assert_memory_equal(blob->data, "hello", 5);
    assert_true(blob_footprint(blob) >= 1000);
    assert_true(blob_try_grow(&blob, 3));
    assert_int_equal(blob->size, 3);
    blob_release(&blob);
    blob_release(&blob);
    blob = blob_create(0);
    assert_int_equal(blob->size, 0);
    blob_release(&blob);
}

static void trying_can_fail(void **state)
{
    struct blob *blob;

    (void)state;
    assert_null(blob_try_create(SIZE_MAX));
    assert_true(fault_arm(FAULT_MEMORY, 0));
    assert_null(blob_try_create(10));
    assert_true(fault_arm(FAULT_MEMORY, 1));
    blob = blob_try_create(10);
    assert_non_null(blob);
    assert_false(blob_try_grow(&blob, 100));
    assert_false(blob_try_grow(&blob, SIZE_MAX));
    assert_int_equal(blob->capacity, 10);
    fault_disarm();
    blob_release(&blob);
}

enum { TURNS = 20000 };

static void use_and_leave(void *argument)
{
    struct blob *blob = argument;
    unsigned sum = 0;

    for (unsigned i = 0; i < TURNS; i++) {
        struct blob *own = blob_acquire(blob);

        sum += (unsigned char)own->data[i % own->size];
        blob_release(&own);
    }
    assert_true(sum > 0);
    blob_release(&blob);
}

static void last_one_frees(void **state)
{
    size_t before = mem_used();
    struct thread threads[2] = {{0}};
    struct blob *blob = blob_create_copy(SLICE("shared bytes"));

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        thread_start(&threads[i], "blob", use_and_leave, blob_acquire(blob));
    blob_release(&blob);
    for (unsigned i = 0; i < 2; i++)
        thread_join(&threads[i]);
    assert_true(mem_used() < before + 100 * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(life_of_a_blob),
        cmocka_unit_test(trying_can_fail),
        cmocka_unit_test(last_one_frees),
    };
    mem_thread_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
