/* Numbers with 64 bits of mantissa and 15 of exponent, as the long double of x86-64 has them, computed with 113 bits of
 * mantissa, as the long double of most other processors has them: so sums of floats are rounded alike everywhere.
 *
 * A number that is rounded twice may be wrong in the last place. So the first result is cut off, and its last bit is
 * set if something was cut: with 49 bits more than are left in the end, that bit cannot make a rounding wrong.
 *
 * Pure functions, for any thread. x86-64 needs none of them, but tests them against its processor. */
#pragma once

#include "base/compiler.h"

#include <float.h>
#include <stdbool.h>

#if LDBL_MANT_DIG == 113
typedef long double extended_wide;
#elif defined(__SIZEOF_FLOAT128__)
typedef __float128 extended_wide;
#endif

#if LDBL_MANT_DIG == 113 || defined(__SIZEOF_FLOAT128__)
/* A number that lies between these two neighbours, or is both. False: it is too large or too small. */
must_check bool extended_between(extended_wide below, extended_wide above, extended_wide *number);
extended_wide extended_add(extended_wide a, extended_wide b); /* both have 64 bits of mantissa */
#endif
