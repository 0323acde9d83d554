/* Inline requests. Properties:
 *  1. the words are those of words_split, whichever of its two ways the parser takes, and the same in every cut;
 *  2. words that are quoted and joined by blanks come back as they were. */
#include "base/words.h"
#include "fuzz.h"
#include "net/resp.h"

#include <stdlib.h>

static const struct resp_limits limits = {.bulk_max_bytes = 1 << 20, .authenticated = true};

/* The request at the start of the line: presented up to `cut`, then whole, each time in a block of its own size. */
static enum resp_result parse_line(struct resp_parser *parser, struct slice line, size_t cut, char **block,
                                   struct resp_command *command)
{
    enum resp_result result;

    if (cut != 0 && cut < line.size) {
        char *part = malloc(cut);

        assert(part != NULL);
        memcpy(part, line.data, cut);
        result = resp_parse(parser, part, cut, command);
        free(part);
        assert(result == RESP_MORE);
    }
    *block = malloc(line.size);
    assert(*block != NULL);
    memcpy(*block, line.data, line.size);
    return resp_parse(parser, *block, line.size, command);
}

static void check_words(const struct slice *found, size_t found_count, const struct slice *expected, size_t count)
{
    assert(found_count == count);
    for (size_t i = 0; i < count; i++)
        assert(slice_equal(found[i], expected[i]));
}

/* `line` ends with its newline; `words` are its words, or it is unbalanced. */
static void check_line(struct slice line, size_t cut, bool balanced, const struct slice *words, size_t count)
{
    struct resp_scratch scratch = {0};
    struct resp_parser parser;
    struct resp_command command;
    char *block;
    enum resp_result result;

    resp_parser_init(&parser, &limits, &scratch);
    result = parse_line(&parser, line, cut, &block, &command);
    if (!balanced) {
        assert(result == RESP_ERROR);
    } else if (count == 0) {
        assert(result == RESP_EMPTY);
        assert(command.consumed == line.size);
    } else {
        assert(result == RESP_COMMAND);
        assert(command.consumed == line.size);
        check_words(command.args, command.arg_count, words, count);
        resp_command_fini(&command);
    }
    assert(resp_parser_is_idle(&parser));
    resp_parser_fini(&parser);
    resp_scratch_fini(&scratch);
    free(block);
}

static void check_quoted(const struct slice *words, size_t count, size_t cut)
{
    struct buffer line = {0};

    for (size_t i = 0; i < count; i++) {
        if (i != 0)
            buffer_append_char(&line, ' ');
        words_quote(&line, words[i]);
    }
    buffer_append_text(&line, "\r\n");
    if (line.size <= RESP_INLINE_MAX_BYTES)
        check_line(buffer_slice(&line), cut, true, words, count);
    buffer_fini(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);
    size_t cut = fuzz_take_byte(&input);
    struct buffer line = {0};
    struct words words = {0};
    const char *end = input.size == 0 ? NULL : memchr(input.data, '\n', input.size);
    struct slice text = slice_make(input.data, end == NULL ? input.size : (size_t)(end - input.data));
    bool balanced;

    if (text.size == 0 || text.data[0] == '*' || text.size > RESP_INLINE_MAX_BYTES / 8)
        return 0;
    buffer_append_slice(&line, text);
    buffer_append_char(&line, '\n');
    if (text.data[text.size - 1] == '\r')
        text.size--;
    balanced = words_split(text, &words);
    check_line(buffer_slice(&line), cut, balanced, words.items, words.count);
    if (words.count != 0)
        check_quoted(words.items, words.count, cut);
    words_fini(&words);
    buffer_fini(&line);
    return 0;
}
