/* Splitting a line into words and quoting them. Properties:
 *  1. any bytes, quoted, are one word: those bytes;
 *  2. the words of a line, quoted (or unquoted where they need no quotes), give the same words again;
 *  3. bytes behind a zero byte do not matter. */
#include "base/words.h"
#include "fuzz.h"

#include <stdlib.h>

static void check_one(struct slice word)
{
    struct buffer line = {0};
    struct words words = {0};

    words_quote(&line, word);
    assert(words_split(buffer_slice(&line), &words));
    assert(words.count == 1);
    assert(slice_equal(words.items[0], word));
    assert(words.items[0].data[word.size] == '\0');
    words_fini(&words);
    buffer_fini(&line);
}

static void check_again(const struct words *words)
{
    struct buffer line = {0};
    struct words again = {0};

    for (size_t i = 0; i < words->count; i++) {
        if (words_needs_quote(words->items[i]))
            words_quote(&line, words->items[i]);
        else
            buffer_append_slice(&line, words->items[i]);
        buffer_append_text(&line, i % 2 == 0 ? " " : "\t ");
    }
    assert(words_split(buffer_slice(&line), &again));
    assert(again.count == words->count);
    for (size_t i = 0; i < again.count; i++)
        assert(slice_equal(again.items[i], words->items[i]));
    words_fini(&again);
    buffer_fini(&line);
}

static void check_behind_zero(struct slice line, const struct words *words, bool balanced)
{
    struct slice text = fuzz_take_text(&line);
    struct words again = {0};

    assert(words_split(text, &again) == balanced);
    assert(again.count == words->count);
    for (size_t i = 0; i < again.count; i++)
        assert(slice_equal(again.items[i], words->items[i]));
    words_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice line = slice_make(bytes, size);
    struct words words = {0};
    bool balanced = words_split(line, &words);

    assert(balanced || words.count == 0);
    for (size_t i = 0; i < words.count; i++)
        assert(words.items[i].data[words.items[i].size] == '\0');
    check_one(line);
    check_again(&words);
    check_behind_zero(line, &words, balanced);
    words_fini(&words);
    return 0;
}
