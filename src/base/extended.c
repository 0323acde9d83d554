#include "base/extended.h"

#if LDBL_MANT_DIG == 113 || defined(__SIZEOF_FLOAT128__)

#include "base/assert.h"

#include <string.h>

/* The bits of a number ascend with its magnitude, through all exponents to infinity. */
typedef unsigned __int128 wide_bits;
static_assert(sizeof(extended_wide) == sizeof(wide_bits), "sign, 15 bits of exponent, 112 of mantissa");

enum { MANTISSA_BITS = 112, EXPONENT_MOST = 0x7fff, CUT_BITS = 49 };

static wide_bits bits_of(extended_wide number)
{
    wide_bits bits;

    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

static extended_wide number_of(wide_bits bits)
{
    extended_wide number;

    memcpy(&number, &bits, sizeof(number));
    return number;
}

static bool is_finite(wide_bits bits)
{
    return (bits >> MANTISSA_BITS & EXPONENT_MOST) != EXPONENT_MOST;
}

/* To the nearest one, of two to the even one. What was cut off before is told by the last bit. */
static extended_wide narrow(wide_bits bits)
{
    const wide_bits unit = (wide_bits)1 << CUT_BITS;

    if (is_finite(bits))
        bits = (bits + unit / 2 - 1 + (bits >> CUT_BITS & 1)) & ~(unit - 1);
    return number_of(bits);
}

static wide_bits magnitude(wide_bits bits)
{
    return bits & ~((wide_bits)1 << 127);
}

bool extended_between(extended_wide below, extended_wide above, extended_wide *number)
{
    const wide_bits low = bits_of(below), high = bits_of(above);
    wide_bits bits = magnitude(low) < magnitude(high) ? low : high;

    if (low != high)
        bits |= 1;
    *number = narrow(bits);
    return (is_finite(bits_of(*number)) || !is_finite(bits)) && (*number != 0 || magnitude(bits) == 0);
}

extended_wide extended_add(extended_wide a, extended_wide b)
{
    const extended_wide sum = a + b, of_b = sum - a, rest = (a - (sum - of_b)) + (b - of_b); /* the sum and it: exact */
    wide_bits bits = bits_of(sum);

    if (!is_finite(bits) || rest == 0)
        return narrow(bits);
    if ((rest < 0) != (sum < 0))
        bits--;
    return narrow(bits | 1);
}

#endif
