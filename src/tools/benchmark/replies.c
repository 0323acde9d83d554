#include "tools/benchmark/replies.h"

#include "base/assert.h"

#include <string.h>

enum { SHORT_LINE_BYTES = 18 /* so many digits are no overflow */ };

#define NUMBER_MOST (UINT64_C(1) << 40) /* larger than any reply */

/* A value is over, or a line announces others. False: it is none that a server sends. */
static bool end_line(struct replies *replies)
{
    const bool is_null = replies->is_negative;
    const uint64_t number = replies->number;

    switch (replies->type) {
    case '+':
    case '-':
    case ':':
    case '_':
    case '#':
    case ',':
    case '(':
        replies->values--;
        return true;
    case '$':
    case '=':
    case '!':
        replies->skip = is_null ? 0 : number + 2;
        replies->values -= is_null;
        return true;
    case '*':
    case '~':
    case '>':
        replies->values += is_null ? UINT64_MAX : number - 1;
        return true;
    case '%':
        replies->values += 2 * number - 1;
        return true;
    case '|': /* attributes stand before a value */
        replies->values += 2 * number;
        return true;
    default:
        return false;
    }
}

/* Attributes stand before the value that says what the reply is. */
static void begin_line(struct replies *replies, char type)
{
    if (replies->values == 0 || (replies->has_attributes && replies->values == 1)) {
        replies->values = 1;
        replies->has_attributes = type == '|';
        replies->is_push = type == '>';
        replies->is_error = type == '-' || type == '!';
        replies->error_size = 0;
    }
    replies->type = type;
    replies->number = 0;
    replies->is_negative = false;
    replies->in_line = true;
}

static void keep_error(struct replies *replies, const char *data, size_t size)
{
    const size_t room = REPLIES_ERROR_BYTES - 1 - replies->error_size, kept = MIN(room, size);

    memcpy(replies->error + replies->error_size, data, kept);
    replies->error_size += (unsigned)kept;
    replies->error[replies->error_size] = '\0';
    replies->error[strcspn(replies->error, "\r\n")] = '\0';
}

static bool has_number(char type)
{
    return strchr("$=!*~>%|", type) != NULL;
}

/* The rest of a line, or what is there of it. */
static bool take_line(struct replies *replies, struct slice *input)
{
    const char *end = memchr(input->data, '\n', input->size);
    const size_t size = end != NULL ? (size_t)(end - input->data) + 1 : input->size;

    if (has_number(replies->type)) {
        for (size_t i = 0; i < size; i++) {
            const char c = input->data[i];

            if (c >= '0' && c <= '9' && replies->number < NUMBER_MOST)
                replies->number = replies->number * 10 + (uint64_t)(c - '0');
            else if (c == '-' && replies->number == 0)
                replies->is_negative = true;
            else if (c != '\r' && c != '\n' && !(c == '+' && replies->number == 0))
                return false;
        }
    } else if (replies->is_error) {
        keep_error(replies, input->data, size);
    }
    *input = slice_skip(*input, size);
    replies->in_line = end == NULL;
    return replies->in_line || end_line(replies);
}

static void take_text(struct replies *replies, struct slice *input)
{
    const size_t size = (size_t)MIN(replies->skip, (uint64_t)input->size);

    if (replies->is_error)
        keep_error(replies, input->data, size);
    *input = slice_skip(*input, size);
    replies->skip -= size;
    replies->values -= replies->skip == 0;
}

/* The number of a whole line ":12" or "$12" without a sign; returns the size of the line, or 0: look closer. */
static ALWAYS_INLINE size_t short_line(struct slice input, uint64_t *number)
{
    *number = 0;
    for (size_t i = 1; i + 1 < input.size && i < SHORT_LINE_BYTES; i++) {
        const char c = input.data[i];

        if (c == '\r' && i > 1)
            return input.data[i + 1] == '\n' ? i + 2 : 0;
        if (c < '0' || c > '9')
            return 0;
        *number = *number * 10 + (uint64_t)(c - '0');
    }
    return 0;
}

/* Most replies by far are whole and simple: these need no more than a look. */
static ALWAYS_INLINE bool take_simple(struct replies *replies, struct slice *input)
{
    size_t size;
    uint64_t number;

    if (replies->skip != 0 || replies->in_line || replies->values != 0 || input->size < 4)
        return false;
    if (input->size >= 5 && memcmp(input->data, "+OK\r\n", 5) == 0) {
        *input = slice_skip(*input, 5);
        return true;
    }
    if (input->data[0] != ':' && input->data[0] != '$')
        return false;
    size = short_line(*input, &number);
    if (size == 0)
        return false;
    if (input->data[0] == '$') {
        if (input->size - size < number + 2)
            return false;
        size += (size_t)number + 2;
    }
    *input = slice_skip(*input, size);
    return true;
}

enum replies_result replies_next(struct replies *replies, struct slice *input)
{
    if (LIKELY(take_simple(replies, input)))
        return REPLIES_GOOD;
    while (input->size != 0) {
        if (replies->skip != 0) {
            take_text(replies, input);
        } else {
            if (!replies->in_line) {
                begin_line(replies, input->data[0]);
                *input = slice_skip(*input, 1);
                if (input->size == 0)
                    return REPLIES_MORE;
            }
            if (!take_line(replies, input))
                return REPLIES_BROKEN;
        }
        if (replies->values == 0 && !replies->in_line && !replies->is_push)
            return replies->is_error ? REPLIES_ERROR : REPLIES_GOOD;
    }
    return REPLIES_MORE;
}
