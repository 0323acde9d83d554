/* Texts that are written in parts: they are read as they were, and are compressed where it pays. */
#include "persist/rdb_write.h"

#include "base/mem.h"
#include "base/test_seed.h"
#include "persist/rdb_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { PART = 256 << 10 };

static struct random random_;

/* Random bytes, or letters that repeat. */
static void fill(char *bytes, size_t size, bool is_random)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(is_random ? random_u64(&random_) : (uint64_t)'a' + i / 100 % 26);
}

static void write_parts(struct rdb_writer *writer, struct slice text, size_t part)
{
    rdb_write_text_begin(writer, text.size);
    for (size_t at = 0; at < text.size; at += part)
        rdb_write_text_part(writer, slice_make(text.data + at, MIN(part, text.size - at)));
    rdb_write_text_end(writer);
}

/* Returns the size of what was written. */
static size_t write_and_read(struct slice text, size_t part, bool compresses)
{
    const struct rdb_write_options options = {RDB_VERSION_MOST, RDB_VERSION_MOST, compresses, false};
    struct rdb_writer writer;
    struct rdb_reader reader;
    struct slice read;
    size_t size;

    rdb_writer_init(&writer, &options, NULL);
    rdb_write_text(&writer, SLICE("before"));
    write_parts(&writer, text, part);
    rdb_write_text(&writer, SLICE("behind"));
    rdb_reader_init_memory(&reader, buffer_slice(&writer.out));
    assert_true(rdb_read_text(&reader, &read) && slice_equal(read, SLICE("before")));
    assert_true(rdb_read_text(&reader, &read));
    assert_true(slice_equal(read, text));
    assert_true(rdb_read_text(&reader, &read) && slice_equal(read, SLICE("behind")));
    assert_int_equal(rdb_reader_left(&reader), 0);
    size = writer.out.size;
    rdb_reader_fini(&reader);
    rdb_writer_fini(&writer);
    return size;
}

static void texts_in_parts_come_back(void **state)
{
    static const size_t sizes[] = {1, 20, 21, 100, 5000, PART - 1, PART, PART + 1, 5 * PART + 7};
    char *bytes = mem_alloc(5 * PART + 7);

    (void)state;
    for (unsigned round = 0; round < 4 * countof(sizes); round++) {
        const size_t size = sizes[round % countof(sizes)], random_size = (size_t)random_below(&random_, size + 1);
        const size_t part = (size_t)random_below(&random_, PART) + 1;

        fill(bytes, random_size, true);
        fill(bytes + random_size, size - random_size, false);
        assert_true(write_and_read(slice_make(bytes, size), size > PART ? part : size, false) >= size);
        assert_true(write_and_read(slice_make(bytes, size), size > PART ? part : size, true) <= size + 30);
    }
    mem_free(bytes);
}

static void a_text_is_compressed_if_it_pays(void **state)
{
    enum { MUCH = RDB_PACKED_MOST_BYTES / 4 * 5 };
    char *bytes = mem_alloc(MUCH);

    (void)state;
    fill(bytes, MUCH, false);
    assert_true(write_and_read(slice_make(bytes, MUCH), PART, true) < MUCH / 10);
    fill(bytes, PART, true); /* alone it would be plain */
    assert_true(write_and_read(slice_make(bytes, MUCH), PART, true) < MUCH / 10 + 2 * PART);
    assert_true(write_and_read(slice_make(bytes, PART), PART, true) < PART + 30);
    fill(bytes, RDB_PACKED_MOST_BYTES, true); /* it would pay, but for the memory that it takes meanwhile */
    assert_true(write_and_read(slice_make(bytes, MUCH), PART, true) > MUCH);
    mem_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_in_parts_come_back),
        cmocka_unit_test(a_text_is_compressed_if_it_pays),
    };

    random_ = test_random("rdb_write");
    return cmocka_run_group_tests_name("rdb_write", tests, NULL, NULL);
}
