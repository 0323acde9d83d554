/* The checksum of RDB files and DUMP payloads: CRC-64 with the polynomial ad93d23594c935a9 (Jones), reflected bits,
 * initial value 0, no final xor. The checksum of "123456789" is e9c6d914c4b8d9ca. Any thread may call these
 * functions. */
#pragma once

#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

uint64_t crc64_update(uint64_t crc, const void *data, size_t size); /* use crc 0 for the first bytes */

/* Returns the checksum of the same bytes with `size` zero bytes appended. Checksums are linear: crc(A + B) =
 * crc64_shift(crc(A), size of B) ^ crc(B). So after a change at the front of a file, the checksum is corrected without
 * reading the rest again. */
uint64_t crc64_shift(uint64_t crc, uint64_t size);
