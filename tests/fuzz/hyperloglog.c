/* A string that a client wrote as a HyperLogLog. Properties: a valid value decodes to the same registers in both
 * encodings, raising a register changes no other, and nothing is accessed outside of the bytes (which end where the
 * block does).
 *
 * Input: steering bytes (encoding, register 2, rank, limit), then the runs of a sparse one, or the registers of a dense
 * one, of which missing ones are zeros. */
#include "base/mem.h"
#include "data/hyperloglog.h"
#include "fuzz.h"

#include <string.h>

static void read_registers(struct hll_registers *registers, struct slice value)
{
    memset(registers, 0, sizeof(*registers));
    hll_registers_add(registers, value);
    assert(hll_registers_estimate(registers) == hll_estimate(value));
}

static void check_raise(struct buffer *value, struct hll_place place, size_t limit)
{
    static struct hll_registers before, after;
    uint64_t count;
    bool raised;

    read_registers(&before, buffer_slice(value));
    raised = hll_raise(value, place, limit);
    assert(raised == (before.ranks[place.index] < place.rank));
    assert(!raised || !hll_remembered_count(buffer_slice(value), &count));
    assert(hll_encoding_of(buffer_slice(value)) != HLL_NONE && hll_is_whole(buffer_slice(value)));
    if (raised)
        before.ranks[place.index] = (uint8_t)place.rank;
    read_registers(&after, buffer_slice(value));
    assert(memcmp(&before, &after, sizeof(before)) == 0);
    hll_make_dense(value);
    read_registers(&after, buffer_slice(value));
    assert(memcmp(&before, &after, sizeof(before)) == 0);
}

static void check_raise_all(struct buffer *value, size_t limit)
{
    static struct hll_registers before, after;
    struct buffer fresh = {NULL, 0, 0};

    read_registers(&before, buffer_slice(value));
    hll_init(&fresh);
    hll_raise_all(&fresh, &before, limit);
    read_registers(&after, buffer_slice(&fresh));
    assert(memcmp(&before, &after, sizeof(before)) == 0);
    buffer_fini(&fresh);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);
    bool dense = fuzz_take_byte(&input) % 4 == 0;
    struct hll_place place;
    struct buffer value = {NULL, 0, 0}, text = {NULL, 0, 0};
    size_t limit, registers = HLL_DENSE_BYTES - HLL_HEADER_BYTES;

    place.index = (fuzz_take_byte(&input) << 8 | fuzz_take_byte(&input)) % HLL_REGISTER_COUNT;
    place.rank = fuzz_take_byte(&input) % HLL_RANK_MOST + 1;
    limit = (size_t)fuzz_take_byte(&input) * 16;
    buffer_append(&value, dense ? "HYLL\0\0\0\0\0\0\0\0\0\0\0" : "HYLL\1\0\0\0\0\0\0\0\0\0\0", HLL_HEADER_BYTES);
    if (dense) {
        memset(buffer_reserve(&value, registers), 0, registers);
        if (input.size != 0)
            memcpy(value.data + value.size, input.data, MIN(input.size, registers));
        value.size += registers;
    } else {
        buffer_append_slice(&value, input);
    }
    buffer_shrink(&value);
    assert(hll_encoding_of(buffer_slice(&value)) == (dense ? HLL_DENSE : HLL_SPARSE));
    if (hll_is_whole(buffer_slice(&value))) {
        if (!dense)
            hll_describe_runs(buffer_slice(&value), &text);
        check_raise_all(&value, limit);
        check_raise(&value, place, limit);
    }
    buffer_fini(&value);
    buffer_fini(&text);
    return 0;
}
