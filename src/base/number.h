/* Numbers as text, independent of the locale. Parsing accepts the whole slice or nothing: no blanks, no plus sign, no
 * trailing bytes. If a function returns false, its output is unchanged. Any thread may call these functions. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMBER_I64_SPACE 21    /* "-9223372036854775808" and a zero byte */
#define NUMBER_DOUBLE_SPACE 32 /* for any number_format_double */
#define NUMBER_LONG_DOUBLE_TEXT_BYTES (5 * 1024)
#define NUMBER_LONG_DOUBLE_HUMAN_SPACE (5 * 1024) /* for any number_format_long_double_human */

/* Accepts exactly the texts that number_format_i64 prints: no leading zeros, no "-0". */
must_check bool number_parse_i64(struct slice text, int64_t *number);
must_check bool number_parse_u64(struct slice text, uint64_t *number);

unsigned number_digits(uint64_t number); /* decimal digits; 1 for 0 */

/* Returns the length. A zero byte follows the text. */
size_t number_format_i64(char *out, int64_t number); /* room: NUMBER_I64_SPACE */
size_t number_format_u64(char *out, uint64_t number);

/* Accepts decimal numbers, exponents, hexadecimal (0x), inf and infinity, in any case and with a sign, also a plus
 * sign. Refuses nan, leading blanks, numbers that overflow to infinity, and numbers that underflow to zero. Subnormal
 * numbers are accepted. */
must_check bool number_parse_double(struct slice text, double *number);
/* Less strict: accepts leading blanks; numbers that overflow or underflow become infinity or zero. */
must_check bool number_parse_double_clamped(struct slice text, double *number);
/* As strict as number_parse_double. A long double has the 64 bits of mantissa of x86-64, also where the processor has
 * more: so texts and their sums are rounded alike everywhere. Texts of NUMBER_LONG_DOUBLE_TEXT_BYTES and more are no
 * numbers, as in Redis. */
must_check bool number_parse_long_double(struct slice text, long double *number);
long double number_add_long_double(long double a, long double b);

/* Writes %.17g, or "inf", "-inf", "nan". Whole numbers below 2^52 are fast. */
size_t number_format_double(char out[NUMBER_DOUBLE_SPACE], double number);

/* Writes the fewest digits that distinguish the number from all others: 99.9. */
size_t number_format_double_short(char out[NUMBER_DOUBLE_SPACE], double number);
/* The text of a double in RESP3. A name of its own, in case the two texts ever differ; today they do not. */
static inline size_t number_format_double_resp3(char out[NUMBER_DOUBLE_SPACE], double number)
{
    return number_format_double(out, number);
}

/* Writes 17 digits after the point, without zeros at the end and without an exponent. INCRBYFLOAT prints this. */
size_t number_format_long_double_human(char out[NUMBER_LONG_DOUBLE_HUMAN_SPACE], long double number);

/* Accepts "100", "100b", "10k" (1000), "10kb" (1024), m, mb, g, gb in any case. Also returns false if 64 bits
 * overflow. */
must_check bool number_parse_memory(struct slice text, uint64_t *bytes);
/* The reverse, with the largest unit of 1024 that is exact: "1gb", "100mb", "1000". CONFIG REWRITE writes this. */
size_t number_format_memory(char out[NUMBER_DOUBLE_SPACE], uint64_t bytes);
/* For people: "1.50M", "832.00K", "12B". Fields *_human of INFO have this form. */
size_t number_format_bytes_human(char out[NUMBER_DOUBLE_SPACE], uint64_t bytes);
