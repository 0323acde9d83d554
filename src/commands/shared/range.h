/* Ranges as clients name them: first and last element, counted from 0, or from the end with -1 as the last one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What of a string of `size` bytes lies between the two, ends included. False: nothing. Two negative ends in the wrong
 * order are an empty range, but an end before the beginning is the first byte: clients rely on either. */
bool range_of_bytes(int64_t start, int64_t end, size_t size, size_t *first, size_t *count);
/* The same without that exception: two negative ends before the beginning are the first byte in any order. */
bool range_of_any_ends(int64_t start, int64_t end, size_t size, size_t *first, size_t *count);
