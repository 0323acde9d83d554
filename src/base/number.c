#include "base/number.h"

#include "base/assert.h"
#include "base/extended.h"
#include "base/mem.h"

#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- integers --- */

bool number_parse_u64(struct slice text, uint64_t *number)
{
    uint64_t value = 0;

    if (text.size == 0 || text.size > 20)
        return false;
    if (text.data[0] == '0') {
        if (text.size != 1)
            return false;
        *number = 0;
        return true;
    }
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';

        if (digit > 9)
            return false;
        /* Only a 20th digit can overflow. */
        if (UNLIKELY(i == 19) && (value > UINT64_MAX / 10 || (value == UINT64_MAX / 10 && digit > UINT64_MAX % 10)))
            return false;
        value = value * 10 + digit;
    }
    *number = value;
    return true;
}

bool number_parse_i64(struct slice text, int64_t *number)
{
    uint64_t value;

    if (text.size != 0 && text.data[0] == '-') {
        if (!number_parse_u64(slice_skip(text, 1), &value) || value == 0 || value > (uint64_t)INT64_MAX + 1)
            return false;
        *number = (int64_t)(0 - value);
        return true;
    }
    if (!number_parse_u64(text, &value) || value > INT64_MAX)
        return false;
    *number = (int64_t)value;
    return true;
}

unsigned number_digits(uint64_t number)
{
    /* powers[d]: the least number with d + 1 digits. The bits say the digits to within one: 1233 / 4096 = log10(2). */
    static const uint64_t powers[20] = {
        0,
        UINT64_C(10),
        UINT64_C(100),
        UINT64_C(1000),
        UINT64_C(10000),
        UINT64_C(100000),
        UINT64_C(1000000),
        UINT64_C(10000000),
        UINT64_C(100000000),
        UINT64_C(1000000000),
        UINT64_C(10000000000),
        UINT64_C(100000000000),
        UINT64_C(1000000000000),
        UINT64_C(10000000000000),
        UINT64_C(100000000000000),
        UINT64_C(1000000000000000),
        UINT64_C(10000000000000000),
        UINT64_C(100000000000000000),
        UINT64_C(1000000000000000000),
        UINT64_C(10000000000000000000),
    };
    unsigned bits = 64 - (unsigned)__builtin_clzll(number | 1);
    unsigned guess = (bits * 1233) >> 12;

    return guess + (number >= powers[guess]);
}

static const char digit_pairs[201] = "00010203040506070809"
                                     "10111213141516171819"
                                     "20212223242526272829"
                                     "30313233343536373839"
                                     "40414243444546474849"
                                     "50515253545556575859"
                                     "60616263646566676869"
                                     "70717273747576777879"
                                     "80818283848586878889"
                                     "90919293949596979899";

size_t number_format_u64(char *out, uint64_t number)
{
    size_t size = number_digits(number);
    char *to = out + size;

    *to = '\0';
    while (number >= 100) {
        to -= 2;
        memcpy(to, digit_pairs + number % 100 * 2, 2);
        number /= 100;
    }
    if (number >= 10)
        memcpy(to - 2, digit_pairs + number * 2, 2);
    else
        to[-1] = (char)('0' + number);
    return size;
}

size_t number_format_i64(char *out, int64_t number)
{
    if (number >= 0)
        return number_format_u64(out, (uint64_t)number);
    out[0] = '-';
    return 1 + number_format_u64(out + 1, 0 - (uint64_t)number);
}

/* --- fractions --- */

static locale_t c_locale; /* const after the first use */
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    assert(c_locale != (locale_t)0);
}

/* Decimal numbers whose digits fit 53 bits and whose power of ten a double holds exactly: one multiplication or
 * division rounds correctly (Clinger, "How to Read Floating Point Numbers Accurately"). Most numbers are of this
 * kind. */
static bool parse_short_double(struct slice text, double *number)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                    1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
    bool is_negative = text.size != 0 && text.data[0] == '-';
    struct slice digits = is_negative ? slice_skip(text, 1) : text;
    uint64_t mantissa = 0;
    size_t point = digits.size; /* its position */
    size_t digit_count;
    double value;

    if (digits.size == 0 || digits.size > 16)
        return false;
    for (size_t i = 0; i < digits.size; i++) {
        unsigned digit = (unsigned)(unsigned char)digits.data[i] - '0';

        if (digits.data[i] == '.' && point == digits.size)
            point = i;
        else if (digit <= 9)
            mantissa = mantissa * 10 + digit;
        else
            return false;
    }
    digit_count = digits.size - (point != digits.size);
    if (digit_count == 0 || digit_count > 15)
        return false;
    value = (double)mantissa / powers[digit_count - point];
    *number = is_negative ? -value : value;
    return true;
}

/* strtod wants a zero byte after the text. Numbers of more than a few bytes are rare but legal. */
struct text_copy {
    char *text;
    char space[256];
};

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool text_copy_init(struct text_copy *copy, struct slice text)
{
    if (text.size == 0 || is_blank(text.data[0]))
        return false;
    copy->text = text.size < sizeof(copy->space) ? copy->space : mem_try_alloc(text.size + 1);
    if (copy->text == NULL)
        return false;
    memcpy(copy->text, text.data, text.size);
    copy->text[text.size] = '\0';
    return true;
}

static void text_copy_fini(struct text_copy *copy)
{
    if (copy->text != copy->space)
        mem_free(copy->text);
}

/* The whole of a text that needs strtod; *clamped: it was too large or too small, and is infinite or 0 then. */
static bool parse_whole_double(const char *text, size_t size, double *number, bool *clamped)
{
    double value;
    char *end;

    pthread_once(&c_locale_once, make_c_locale);
    errno = 0;
    value = strtod_l(text, &end, c_locale);
    *clamped = errno == ERANGE && (isinf(value) || value == 0.0);
    *number = value;
    return end == text + size && size != 0 && !isnan(value);
}

bool number_parse_double(struct slice text, double *number)
{
    struct text_copy copy;
    bool is_number, clamped;
    double value;

    if (parse_short_double(text, number))
        return true;
    if (!text_copy_init(&copy, text))
        return false;
    is_number = parse_whole_double(copy.text, text.size, &value, &clamped) && !clamped;
    text_copy_fini(&copy);
    if (is_number)
        *number = value;
    return is_number;
}

bool number_parse_double_clamped(struct slice text, double *number)
{
    struct text_copy copy;
    bool is_number, clamped;
    double value;

    while (text.size != 0 && is_blank(text.data[0]))
        text = slice_skip(text, 1);
    if (parse_short_double(text, number))
        return true;
    if (!text_copy_init(&copy, text))
        return false;
    is_number = parse_whole_double(copy.text, text.size, &value, &clamped);
    text_copy_fini(&copy);
    if (is_number)
        *number = value;
    return is_number;
}

#if LDBL_MANT_DIG == 113
/* False: it is out of range. */
static bool read_long_double(const char *text, char **end, long double *number)
{
    const int rounding = fegetround();
    long double below, above;

    fesetround(FE_DOWNWARD);
    below = strtold_l(text, end, c_locale);
    fesetround(FE_UPWARD);
    above = strtold_l(text, end, c_locale);
    fesetround(rounding);
    return extended_between(below, above, number);
}

long double number_add_long_double(long double a, long double b)
{
    return extended_add(a, b);
}
#else
static bool read_long_double(const char *text, char **end, long double *number)
{
    errno = 0;
    *number = strtold_l(text, end, c_locale);
    return errno != ERANGE || (!isinf(*number) && *number != 0.0L);
}

long double number_add_long_double(long double a, long double b)
{
    return a + b;
}
#endif

bool number_parse_long_double(struct slice text, long double *number)
{
    struct text_copy copy;
    long double value;
    char *end;
    bool is_number;

    if (text.size >= NUMBER_LONG_DOUBLE_TEXT_BYTES || !text_copy_init(&copy, text))
        return false;
    pthread_once(&c_locale_once, make_c_locale);
    is_number = read_long_double(copy.text, &end, &value) && end == copy.text + text.size && !isnan(value);
    text_copy_fini(&copy);
    if (is_number)
        *number = value;
    return is_number;
}

static size_t put_text(char *out, const char *text)
{
    size_t size = strlen(text);

    memcpy(out, text, size + 1);
    return size;
}

size_t number_format_double(char out[NUMBER_DOUBLE_SPACE], double number)
{
    locale_t before;
    int size;

    if (isnan(number))
        return put_text(out, "nan");
    if (isinf(number))
        return put_text(out, number < 0 ? "-inf" : "inf");
    if (number == 0 && signbit(number))
        return put_text(out, "-0");
    if (fabs(number) < 0x1p52 && number == (double)(int64_t)number)
        return number_format_i64(out, (int64_t)number);
    pthread_once(&c_locale_once, make_c_locale);
    before = uselocale(c_locale);
    size = snprintf(out, NUMBER_DOUBLE_SPACE, "%.17g", number);
    uselocale(before);
    assert(size > 0 && size < NUMBER_DOUBLE_SPACE);
    return (size_t)size;
}

size_t number_format_double_short(char out[NUMBER_DOUBLE_SPACE], double number)
{
    int size = 0;

    for (int digits = 15; digits <= 17; digits++) {
        size = snprintf(out, NUMBER_DOUBLE_SPACE, "%.*g", digits, number);
        if (strtod(out, NULL) == number)
            break;
    }
    return (size_t)size;
}

size_t number_format_long_double_human(char out[NUMBER_LONG_DOUBLE_HUMAN_SPACE], long double number)
{
    locale_t before;
    int printed;
    size_t size;

    if (isnan(number))
        return put_text(out, "nan");
    if (isinf(number))
        return put_text(out, number < 0 ? "-inf" : "inf");
    pthread_once(&c_locale_once, make_c_locale);
    before = uselocale(c_locale);
    printed = snprintf(out, NUMBER_LONG_DOUBLE_HUMAN_SPACE, "%.17Lf", number);
    uselocale(before);
    assert(printed > 0 && printed < NUMBER_LONG_DOUBLE_HUMAN_SPACE);
    size = (size_t)printed;
    while (out[size - 1] == '0')
        size--;
    if (out[size - 1] == '.')
        size--;
    out[size] = '\0';
    if (size == 2 && memcmp(out, "-0", 2) == 0)
        return put_text(out, "0");
    return size;
}

/* --- bytes --- */

struct unit {
    const char *name;
    uint64_t bytes;
};

/* clang-format off */
static const struct unit units[] = {
    {"", 1},         {"b", 1},           {"k", 1000},          {"kb", 1024}, {"m", 1000000}, {"mb", 1024 * 1024},
    {"g", 1000000000}, {"gb", 1024 * 1024 * 1024},
};
/* clang-format on */

bool number_parse_memory(struct slice text, uint64_t *bytes)
{
    uint64_t value = 0;
    size_t digits = 0;

    while (digits < text.size && text.data[digits] >= '0' && text.data[digits] <= '9') {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.data[digits] - '0'), &value))
            return false;
        digits++;
    }
    if (digits == 0)
        return false;
    for (size_t i = 0; i < countof(units); i++) {
        if (!slice_equal_text_nocase(slice_skip(text, digits), units[i].name))
            continue;
        if (__builtin_mul_overflow(value, units[i].bytes, &value))
            return false;
        *bytes = value;
        return true;
    }
    return false;
}

size_t number_format_memory(char out[NUMBER_DOUBLE_SPACE], uint64_t bytes)
{
    static const struct unit exact[] = {{"gb", 1 << 30}, {"mb", 1 << 20}, {"kb", 1 << 10}};
    size_t size;

    for (size_t i = 0; i < countof(exact); i++) {
        if (bytes != 0 && bytes % exact[i].bytes == 0) {
            size = number_format_u64(out, bytes / exact[i].bytes);
            return size + put_text(out + size, exact[i].name);
        }
    }
    return number_format_u64(out, bytes);
}

size_t number_format_bytes_human(char out[NUMBER_DOUBLE_SPACE], uint64_t bytes)
{
    static const char letters[] = "BKMGTPE";
    double value = (double)bytes;
    unsigned power = 0;
    locale_t before;
    int size;

    if (bytes < 1024)
        return number_format_u64(out, bytes) + put_text(out + number_digits(bytes), "B");
    for (uint64_t left = bytes; left >= 1024; left /= 1024)
        power++;
    value = ldexp(value, -10 * (int)power);
    pthread_once(&c_locale_once, make_c_locale);
    before = uselocale(c_locale);
    size = snprintf(out, NUMBER_DOUBLE_SPACE, "%.2f%c", value, letters[power]);
    uselocale(before);
    return (size_t)size;
}
