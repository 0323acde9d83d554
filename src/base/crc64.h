/* The checksum of RDB files and DUMP payloads: CRC-64 with the polynomial ad93d23594c935a9 (Jones), bits reflected,
 * beginning with 0, nothing done at the end. "123456789" has e9c6d914c4b8d9ca. Any thread. */
#pragma once

#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

uint64_t crc64_update(uint64_t crc, const void *data, size_t size); /* crc 0: the first bytes */

/* The checksum of something with so many more bytes, all zero, behind it. As checksums are linear,
 * crc(A + B) = crc64_shift(crc(A), size of B) ^ crc(B): a change at the front of a file is made good without reading
 * the rest again. */
uint64_t crc64_shift(uint64_t crc, uint64_t size);
