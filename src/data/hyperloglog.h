/* HyperLogLog: estimates how many different elements were added, within about 0.8 %, in at most 12 KiB. The value is a
 * string that clients can read and write back, so its bytes are a public format:
 *
 *     "HYLL" | encoding 1 byte: 0 dense, 1 sparse | 3 unused bytes | count 8 bytes, little-endian | registers
 *
 * The count is the last estimate; its highest bit is set if registers have changed since. Each of the 16384 registers
 * of 6 bits holds a rank: 0, or 1 + the largest number of trailing zeros in the hash of an element of that register.
 * Dense: register i begins at bit 6 * i, with the lowest bit of a byte first. Sparse: runs of equal registers,
 *
 *     00cccccc            1 ... 64 registers that are 0 (c + 1)
 *     01cccccc cccccccc   1 ... 16384 registers that are 0 (c + 1)
 *     1rrrrrcc            1 ... 4 registers (c + 1) of rank 1 ... 32 (r + 1)
 *
 * A client may have written the bytes: check the header with hll_encoding_of and the runs with hll_is_whole. All other
 * functions require that both checks succeeded, and are then safe with any bytes. Pure functions, for any thread. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HLL_REGISTER_COUNT = 16384,
    HLL_HEADER_BYTES = 16,
    HLL_DENSE_BYTES = HLL_HEADER_BYTES + HLL_REGISTER_COUNT * 6 / 8,
    HLL_RANK_MOST = 51,       /* for a hash of 64 bits */
    HLL_SPARSE_RANK_MOST = 32 /* a higher rank makes the value dense */
};

enum hll_encoding { HLL_NONE, HLL_SPARSE, HLL_DENSE };

enum hll_encoding hll_encoding_of(struct slice value); /* HLL_NONE: not a HyperLogLog */
must_check bool hll_is_whole(struct slice value);      /* false: the runs are not 16384 registers */

/* --- the stored count --- */

must_check bool hll_remembered_count(struct slice value, uint64_t *count); /* false: registers have changed since */
void hll_remember_count(char *value, uint64_t count);
void hll_forget_count(char *value);

/* --- registers --- */

struct hll_place {
    uint32_t index; /* index of the register */
    uint32_t rank;
};
struct hll_place hll_place_of(struct slice element);

void hll_init(struct buffer *value); /* appends an empty sparse value */
/* Raises a register to `rank`. False: it was at least `rank` already. A sparse value becomes dense if it would grow
 * beyond the limit. */
bool hll_raise(struct buffer *value, struct hll_place place, size_t sparse_limit_bytes);
void hll_make_dense(struct buffer *value);

uint32_t hll_dense_rank(const char *value, uint32_t index);
bool hll_dense_raise(char *value, struct hll_place place); /* like hll_raise, in place */

/* --- all registers --- */

struct hll_registers {
    uint8_t ranks[HLL_REGISTER_COUNT];
};
/* Each register becomes the higher of the two. */
void hll_registers_add(struct hll_registers *registers, struct slice value);
/* The reverse: raises the value's registers to those given. A sparse value stays sparse if the limit allows. */
void hll_raise_all(struct buffer *value, const struct hll_registers *registers, size_t sparse_limit_bytes);

uint64_t hll_estimate(struct slice value); /* computed from the registers */
uint64_t hll_registers_estimate(const struct hll_registers *registers);

/* Appends "Z:12711 v:2,1 Z:3672"; only for a sparse value. */
void hll_describe_runs(struct slice value, struct buffer *text);
