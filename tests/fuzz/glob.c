/* Patterns, compared with a simple model that tries every way: tokens of the pattern on one side, positions of the text
 * on the other, a table of reachable states. */
#include "base/glob.h"
#include "fuzz.h"

#include <stdlib.h>

enum { TEXT_BYTES_MOST = 200 };

static unsigned char fold(unsigned char c, bool nocase)
{
    return (unsigned char)(nocase && c >= 'A' && c <= 'Z' ? c + 32 : c);
}

/* Which bytes one token takes; returns how long it is. */
static size_t token_set(struct slice pattern, bool nocase, bool set[256])
{
    const unsigned char *p = (const unsigned char *)pattern.data;
    size_t size = pattern.size, i = 1;
    bool named[256] = {false}, negated;

    if (p[0] == '?') {
        memset(set, true, 256);
        return 1;
    }
    if (p[0] != '[') {
        size_t escaped = p[0] == '\\' && size > 1;

        for (int c = 0; c < 256; c++)
            set[c] = fold((unsigned char)c, nocase) == fold(p[escaped], nocase);
        return 1 + escaped;
    }
    negated = size > 1 && p[1] == '^';
    i += negated;
    while (i < size && p[i] != ']') {
        if (p[i] == '\\' && i + 1 < size) {
            named[fold(p[i + 1], nocase)] = true;
            i += 2;
        } else if (i + 2 < size && p[i + 1] == '-') {
            unsigned a = fold(p[i], nocase), b = fold(p[i + 2], nocase);

            for (unsigned c = a < b ? a : b; c <= (a < b ? b : a); c++)
                named[c] = true;
            i += 3;
        } else {
            named[fold(p[i++], nocase)] = true;
        }
    }
    for (int c = 0; c < 256; c++)
        set[c] = named[fold((unsigned char)c, nocase)] != negated;
    return i < size ? i + 1 : i;
}

static bool model_match(struct slice pattern, struct slice text, bool nocase)
{
    bool reached[TEXT_BYTES_MOST + 1] = {true}; /* the tokens so far can take just this many bytes */

    while (pattern.size != 0) {
        bool set[256];
        size_t token_size;

        if (pattern.data[0] == '*') {
            for (size_t i = 0; i < text.size; i++)
                reached[i + 1] = reached[i + 1] || reached[i];
            pattern = slice_skip(pattern, 1);
            continue;
        }
        token_size = token_set(pattern, nocase, set);
        for (size_t i = text.size; i > 0; i--)
            reached[i] = reached[i - 1] && set[(unsigned char)text.data[i - 1]];
        reached[0] = false;
        pattern = slice_skip(pattern, token_size);
    }
    return reached[text.size];
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size), pattern, text;
    bool nocase = fuzz_take_byte(&input) & 1;

    pattern = fuzz_take_text(&input);
    text = slice_make(input.data, MIN(input.size, (size_t)TEXT_BYTES_MOST));
    assert(glob_match(pattern, text, nocase) == model_match(pattern, text, nocase));
    if (!glob_has_wildcard(pattern) && !nocase)
        assert(glob_match(pattern, text, false) == slice_equal(pattern, text));
    assert(glob_match(SLICE("*"), text, nocase));
    return 0;
}
