/* Numbers as text, whatever the locale. Parsing takes the whole slice or nothing: no blanks, no plus, no trailing
 * bytes. On false the output is untouched. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMBER_I64_SPACE 21                       /* "-9223372036854775808" and a zero byte */
#define NUMBER_DOUBLE_SPACE 32                    /* any number_format_double */
#define NUMBER_LONG_DOUBLE_HUMAN_SPACE (5 * 1024) /* any number_format_long_double_human */

/* Exactly what number_format_i64 would print: no leading zeros, no "-0". */
must_check bool number_parse_i64(struct slice text, int64_t *number);
must_check bool number_parse_u64(struct slice text, uint64_t *number);

unsigned number_digits(uint64_t number); /* decimal digits; 1 for 0 */

/* Returns the length; a zero byte follows it. */
size_t number_format_i64(char *out, int64_t number); /* room: NUMBER_I64_SPACE */
size_t number_format_u64(char *out, uint64_t number);

/* Decimal, exponent, hexadecimal (0x), inf, infinity, in any case and with a sign (a plus too). Refused: nan, leading
 * blanks, what overflows to infinity without saying so, and what underflows to zero. Subnormal numbers are fine. */
must_check bool number_parse_double(struct slice text, double *number);
/* Less strict: blanks may precede, and what overflows or underflows is infinite or zero. */
must_check bool number_parse_double_clamped(struct slice text, double *number);
/* As strict as number_parse_double. */
must_check bool number_parse_long_double(struct slice text, long double *number);

/* %.17g, and "inf", "-inf", "nan". Whole numbers below 2^52 are fast. */
size_t number_format_double(char out[NUMBER_DOUBLE_SPACE], double number);

/* As few digits as tell the number from all others: 99.9. */
size_t number_format_double_short(char out[NUMBER_DOUBLE_SPACE], double number);
/* RESP3 has its own name, should the two ever differ: today they do not. */
static inline size_t number_format_double_resp3(char out[NUMBER_DOUBLE_SPACE], double number)
{
    return number_format_double(out, number);
}

/* 17 digits after the point, zeros at the end cut, never an exponent: what INCRBYFLOAT prints. */
size_t number_format_long_double_human(char out[NUMBER_LONG_DOUBLE_HUMAN_SPACE], long double number);

/* "100", "100b", "10k" (1000), "10kb" (1024), m, mb, g, gb in any case. False also when it overflows 64 bits. */
must_check bool number_parse_memory(struct slice text, uint64_t *bytes);
/* The reverse, shortest exact unit of 1024: "1gb", "100mb", "1000"; as CONFIG REWRITE writes it. */
size_t number_format_memory(char out[NUMBER_DOUBLE_SPACE], uint64_t bytes);
/* For people: "1.50M", "832.00K", "12B"; INFO's *_human. */
size_t number_format_bytes_human(char out[NUMBER_DOUBLE_SPACE], uint64_t bytes);
