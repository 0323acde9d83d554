/* Ranges in arguments: indexes of the first and last element, counted from 0, or negative from the end (-1 is the
 * last). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The part of a string of `size` bytes between both ends, inclusive. False: empty. Two negative ends in the wrong order
 * are an empty range, but an end before the beginning is the first byte: clients rely on both. */
bool range_of_bytes(int64_t start, int64_t end, size_t size, size_t *first, size_t *count);
/* The same without that exception: two negative ends before the beginning are the first byte in any order. */
bool range_of_any_ends(int64_t start, int64_t end, size_t size, size_t *first, size_t *count);
