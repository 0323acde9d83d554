/* Numbers as text, compared with the C library and with themselves. Properties: exactly the documented texts are
 * accepted, and formatting gives back the text (integers) or the number (fractions, memory). */
#include "base/number.h"
#include "fuzz.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

static bool is_plain_integer(const char *text, bool may_be_negative)
{
    if (may_be_negative && text[0] == '-')
        text++;
    else
        may_be_negative = false;
    if (text[0] == '0')
        return text[1] == '\0' && !may_be_negative;
    if (text[0] == '\0')
        return false;
    return text[strspn(text, "0123456789")] == '\0';
}

static void check_integers(struct slice text, const char *copy)
{
    char out[NUMBER_I64_SPACE];
    int64_t number = 0;
    uint64_t natural = 0;
    bool expected;

    errno = 0;
    expected = strlen(copy) == text.size && is_plain_integer(copy, true) && (strtoll(copy, NULL, 10), errno == 0);
    assert(number_parse_i64(text, &number) == expected);
    if (expected) {
        assert(number == strtoll(copy, NULL, 10));
        assert(slice_equal(slice_make(out, number_format_i64(out, number)), text));
        assert(out[text.size] == '\0');
    }
    errno = 0;
    expected = strlen(copy) == text.size && is_plain_integer(copy, false) && (strtoull(copy, NULL, 10), errno == 0);
    assert(number_parse_u64(text, &natural) == expected);
    if (expected) {
        assert(natural == strtoull(copy, NULL, 10));
        assert(number_digits(natural) == text.size);
        assert(slice_equal(slice_make(out, number_format_u64(out, natural)), text));
    }
}

static void check_double(struct slice text, const char *copy)
{
    double number = 0, again = 0, expected;
    char out[NUMBER_DOUBLE_SPACE], *end;
    bool fine;

    errno = 0;
    expected = strtod(copy, &end);
    fine = text.size != 0 && strchr(" \t\n\v\f\r", copy[0]) == NULL && end == copy + text.size && !isnan(expected) &&
           !(errno == ERANGE && (isinf(expected) || expected == 0));
    assert(number_parse_double(text, &number) == fine);
    if (!fine)
        return;
    assert(number == expected && signbit(number) == signbit(expected));
    assert(number_parse_double(slice_make(out, number_format_double(out, number)), &again));
    assert(again == number && signbit(again) == signbit(number));
}

/* With few digits after the point the printed text is the number again. */
static void check_long_double(struct slice text)
{
    char out[NUMBER_LONG_DOUBLE_HUMAN_SPACE];
    long double number = 0, again = 0;
    size_t size;

    if (!number_parse_long_double(text, &number))
        return;
    size = number_format_long_double_human(out, number);
    assert(size < sizeof(out) && out[size] == '\0');
    assert(memchr(out, 'e', size) == NULL);
    if (!number_parse_long_double(slice_make(out, size), &again))
        assert(!"what we print ourselves");
    if (isinf(number))
        assert(again == number);
    else
        assert(fabsl(again - number) <= 1e-17L + fabsl(number) * LDBL_EPSILON);
}

static void check_memory(struct slice text)
{
    uint64_t bytes = 0, again = 0;
    char out[NUMBER_DOUBLE_SPACE];

    if (!number_parse_memory(text, &bytes))
        return;
    assert(number_parse_memory(slice_make(out, number_format_memory(out, bytes)), &again));
    assert(again == bytes);
    assert(number_format_bytes_human(out, bytes) < sizeof(out));
}

static void check_formats(uint64_t bits)
{
    char out[NUMBER_DOUBLE_SPACE];
    double number, again = 0;
    int64_t whole = 0;

    memcpy(&number, &bits, sizeof(number));
    if (!isnan(number)) {
        assert(number_parse_double(slice_make(out, number_format_double(out, number)), &again));
        assert(again == number && signbit(again) == signbit(number));
    }
    assert(number_parse_i64(slice_make(out, number_format_i64(out, (int64_t)bits)), &whole));
    assert(whole == (int64_t)bits);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice text = slice_make(bytes, size);
    uint64_t bits = 0;
    char *copy;

    if (size > 2000)
        return 0;
    copy = malloc(size + 1);
    assert(copy != NULL);
    if (size != 0)
        memcpy(copy, bytes, size);
    copy[size] = '\0';
    check_integers(text, copy);
    check_double(text, copy);
    check_long_double(text);
    check_memory(text);
    memcpy(&bits, copy, size < sizeof(bits) ? size : sizeof(bits));
    check_formats(bits);
    free(copy);
    return 0;
}
