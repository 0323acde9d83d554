/* A pattern is a row of tokens: star, any byte, set, byte. Everything but a star takes exactly one byte, whatever comes
 * before or after; so when a match fails it is enough to let the last star take one byte more, and earlier stars never
 * have to be looked at again.
 *
 * What odd patterns mean (agrees with Redis 7.0, compared over random ones): a backslash at the end is itself, also in
 * a set; a set that is not closed ends with the pattern; in [a-z] the ends may come in any order, and whatever byte
 * follows the dash is the other end, also a ]; [] matches nothing and [^] any byte.
 * Two differences remain, both on purpose: bytes are numbers from 0 to 255 (in a range of Redis on x86 those from 128
 * come before 0), and stars alone match the empty text too. */
#include "base/glob.h"

#include <stddef.h>

static unsigned char fold(char c, bool nocase)
{
    return (unsigned char)(nocase ? slice_lower(c) : c);
}

/* `set` begins behind the opening bracket. Moves *set behind the closing one. */
static bool set_has(struct slice *set, unsigned char byte, bool nocase)
{
    const char *at = set->data;
    const char *end = set->data + set->size;
    bool is_negated = at < end && *at == '^';
    bool found = false;

    at += is_negated;
    while (at < end && *at != ']') {
        if (*at == '\\' && end - at >= 2) {
            found |= fold(at[1], nocase) == byte;
            at += 2;
        } else if (end - at >= 3 && at[1] == '-') {
            unsigned char low = fold(at[0], nocase);
            unsigned char high = fold(at[2], nocase);

            found |= low <= high ? low <= byte && byte <= high : high <= byte && byte <= low;
            at += 3;
        } else {
            found |= fold(*at, nocase) == byte;
            at++;
        }
    }
    at += at < end;
    *set = slice_make(at, (size_t)(end - at));
    return found != is_negated;
}

/* The token at the head of `pattern`, which is not a star, against one byte. Moves *pattern behind it. */
static bool token_matches(struct slice *pattern, char c, bool nocase)
{
    unsigned char byte = fold(c, nocase);
    char token = pattern->data[0];

    *pattern = slice_skip(*pattern, 1);
    if (token == '?')
        return true;
    if (token == '[')
        return set_has(pattern, byte, nocase);
    if (token == '\\' && pattern->size != 0) {
        token = pattern->data[0];
        *pattern = slice_skip(*pattern, 1);
    }
    return fold(token, nocase) == byte;
}

bool glob_match(struct slice pattern, struct slice text, bool nocase)
{
    struct slice after_star = SLICE_EMPTY; /* the pattern behind the last star */
    struct slice star_text = SLICE_EMPTY;  /* the text that it faces now */
    bool has_star = false;

    for (;;) {
        if (pattern.size != 0 && pattern.data[0] == '*') {
            pattern = slice_skip(pattern, 1);
            if (pattern.size == 0)
                return true;
            after_star = pattern;
            star_text = text;
            has_star = true;
        } else if (pattern.size == 0 && text.size == 0) {
            return true;
        } else if (pattern.size != 0 && text.size != 0 && token_matches(&pattern, text.data[0], nocase)) {
            text = slice_skip(text, 1);
        } else {
            if (!has_star || star_text.size == 0)
                return false;
            star_text = slice_skip(star_text, 1);
            pattern = after_star;
            text = star_text;
        }
    }
}

bool glob_has_wildcard(struct slice pattern)
{
    for (size_t i = 0; i < pattern.size; i++) {
        if (memchr("*?[\\", pattern.data[i], 4) != NULL)
            return true;
    }
    return false;
}
