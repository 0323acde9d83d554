#include "commands/shared/scan_options.h"

#include "base/assert.h"
#include "base/glob.h"
#include "base/number.h"

#include <stdio.h>

enum { CURSOR_TEXT_BYTES = 2 * NUMBER_I64_SPACE + 8, COUNT_DEFAULT = 10 };

/* As clients write it: also with a sign, with zeros before it, or nothing at all. A zero byte ends it. */
static bool parse_cursor(struct slice text, uint64_t *cursor)
{
    bool negative = text.size != 0 && text.data[0] == '-';
    uint64_t number = 0;

    if (text.size != 0 && (text.data[0] == '-' || text.data[0] == '+')) {
        text = slice_skip(text, 1);
        if (text.size == 0 || text.data[0] == '\0')
            return false;
    }
    for (size_t i = 0; i < text.size && text.data[i] != '\0'; i++) {
        unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';

        if (digit > 9 || __builtin_mul_overflow(number, UINT64_C(10), &number) ||
            __builtin_add_overflow(number, (uint64_t)digit, &number))
            return false;
    }
    *cursor = negative ? -number : number;
    return true;
}

bool scan_parse_cursor(struct request *request, uint32_t index, uint64_t *cursor)
{
    assert(index < request->arg_count);
    if (parse_cursor(request_arg(request, index), cursor))
        return true;
    reply_error(request, "ERR invalid cursor");
    return false;
}

/* "*" asks for everything. */
static struct slice pattern_of(struct slice text)
{
    return slice_equal_text(text, "*") ? SLICE_EMPTY : text;
}

/* A word without an argument. False: it is none, or not of this command, which was replied. */
static bool parse_word(struct request *request, uint32_t index, unsigned allowed, struct scan_options *options)
{
    if (request_arg_is(request, index, "NOVALUES")) {
        options->no_values = (allowed & SCAN_NOVALUES) != 0;
        if (!options->no_values)
            reply_error(request, "ERR NOVALUES option can only be used in HSCAN");
        return options->no_values;
    }
    if (request_arg_is(request, index, "NOSCORES")) {
        options->no_scores = (allowed & SCAN_NOSCORES) != 0;
        if (!options->no_scores)
            reply_error(request, "ERR NOSCORES option can only be used in ZSCAN");
        return options->no_scores;
    }
    reply_syntax_error(request);
    return false;
}

/* Parses one option with its argument. False: an error was replied. */
static bool parse_option(struct request *request, uint32_t *index, unsigned allowed, struct scan_options *options)
{
    bool has_value = *index + 1 < request->arg_count;

    if (has_value && request_arg_is(request, *index, "COUNT")) {
        if (!request_arg_i64(request, *index + 1, &options->want))
            return false;
    } else if (has_value && request_arg_is(request, *index, "MATCH")) {
        options->pattern = pattern_of(request_arg(request, *index + 1));
    } else if (has_value && (allowed & SCAN_TYPE) != 0 && request_arg_is(request, *index, "TYPE")) {
        options->type_name = request_arg(request, *index + 1);
    } else {
        *index += 1;
        return parse_word(request, *index - 1, allowed, options);
    }
    *index += 2;
    if (options->want >= 1)
        return true;
    reply_syntax_error(request);
    return false;
}

bool scan_parse_options(struct request *request, uint32_t index, unsigned allowed, struct scan_options *options)
{
    assert(index <= request->arg_count);
    *options = (struct scan_options){.want = COUNT_DEFAULT};
    while (index < request->arg_count) {
        if (!parse_option(request, &index, allowed, options))
            return false;
    }
    return true;
}

bool scan_wants(const struct scan_options *options, struct slice text)
{
    return options->pattern.data == NULL || glob_match(options->pattern, text, false);
}

struct scan_reply scan_reply_begin(struct request *request)
{
    struct scan_reply reply;

    reply_array(request, 2);
    reply.cursor = output_gap_open(request->out, CURSOR_TEXT_BYTES);
    reply.elements = resp_begin_deferred(request->out);
    return reply;
}

void scan_reply_end(struct request *request, struct scan_reply reply, uint64_t cursor, uint64_t element_count)
{
    char text[CURSOR_TEXT_BYTES], digits[NUMBER_I64_SPACE];
    int size;

    resp_end_deferred(request->out, request->proto, reply.elements, RESP_ARRAY, element_count);
    size = snprintf(text, sizeof(text), "$%zu\r\n%s\r\n", number_format_u64(digits, cursor), digits);
    output_gap_close(request->out, reply.cursor, text, (size_t)size);
}

void scan_reply_nothing(struct request *request)
{
    reply_array(request, 2);
    reply_text(request, "0");
    reply_array(request, 0);
}
