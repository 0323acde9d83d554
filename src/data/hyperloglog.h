/* HyperLogLog: how many different elements were there, within about 0.8 %, in at most 12 KiB. It lives in a string that
 * clients can read and write back, so its bytes are a public format:
 *
 *     "HYLL" | encoding 1 byte: 0 dense, 1 sparse | 3 bytes of no meaning | count 8 bytes, little-endian | registers
 *
 * The count is the last estimate; its highest bit says that registers have changed since. 16384 registers of 6 bits
 * hold ranks: 0, or how many trailing zeros (+ 1) the hash of an element of that register had at most. Dense: register
 * i begins at bit 6 * i, the lowest bit of a byte first. Sparse: runs of equal registers,
 *
 *     00cccccc            1 ... 64 registers that are 0 (c + 1)
 *     01cccccc cccccccc   1 ... 16384 registers that are 0 (c + 1)
 *     1rrrrrcc            1 ... 4 registers (c + 1) of rank 1 ... 32 (r + 1)
 *
 * A stranger may have written the bytes: hll_encoding_of looks at the header, hll_is_whole at the runs. Everything else
 * takes strings of which both have been asked, and is then safe whatever they hold. Pure functions, any thread. */
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
    HLL_RANK_MOST = 51,       /* of a hash of 64 bits */
    HLL_SPARSE_RANK_MOST = 32 /* a higher one makes it dense */
};

enum hll_encoding { HLL_NONE, HLL_SPARSE, HLL_DENSE };

enum hll_encoding hll_encoding_of(struct slice value); /* HLL_NONE: it is something else */
must_check bool hll_is_whole(struct slice value);      /* false: its runs are not 16384 registers */

/* --- the count it remembers --- */

must_check bool hll_remembered_count(struct slice value, uint64_t *count); /* false: registers changed since */
void hll_remember_count(char *value, uint64_t count);
void hll_forget_count(char *value);

/* --- registers --- */

struct hll_place {
    uint32_t index; /* of the register */
    uint32_t rank;
};
struct hll_place hll_place_of(struct slice element);

void hll_init(struct buffer *value); /* appends an empty one, sparse */
/* A register becomes at least `rank`; false: it was. A sparse one becomes dense when it would grow beyond the limit. */
bool hll_raise(struct buffer *value, struct hll_place place, size_t sparse_limit_bytes);
void hll_make_dense(struct buffer *value);

uint32_t hll_dense_rank(const char *value, uint32_t index);
bool hll_dense_raise(char *value, struct hll_place place); /* as hll_raise, in place */

/* --- many --- */

struct hll_registers {
    uint8_t ranks[HLL_REGISTER_COUNT];
};
void hll_registers_add(struct hll_registers *registers, struct slice value); /* each the higher of the two */
/* The other way: the value takes all in. It stays sparse if it is and the limit allows. */
void hll_raise_all(struct buffer *value, const struct hll_registers *registers, size_t sparse_limit_bytes);

uint64_t hll_estimate(struct slice value); /* from its registers */
uint64_t hll_registers_estimate(const struct hll_registers *registers);

void hll_describe_runs(struct slice value, struct buffer *text); /* "Z:12711 v:2,1 Z:3672"; it is sparse */
