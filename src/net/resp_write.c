#include "net/resp.h"

#include "base/assert.h"
#include "base/blob.h"
#include "base/number.h"

#include <string.h>

/* A reply is short in most cases: it is written into the room of one output_reserve(). Texts from outside (errors quote
 * the client's words) are copied piecewise, and bytes that would end the line become blanks. */

enum { TEXT_PIECE_BYTES = 256 };

char *resp_encode_header_slow(char *at, char type, int64_t number)
{
    *at++ = type;
    at += number_format_i64(at, number);
    at[0] = '\r';
    at[1] = '\n';
    return at + 2;
}

static void write_line_end(struct output *output)
{
    output_append(output, "\r\n", 2);
}

void resp_write_bulk_slow(struct output *output, struct slice bytes)
{
    resp_write_header(output, '$', (int64_t)bytes.size);
    output_append(output, bytes.data, bytes.size);
    write_line_end(output);
}

void resp_write_bulk_blob(struct output *output, struct blob *blob, size_t offset, size_t size)
{
    assert(offset <= blob->size);
    assert(size <= blob->size - offset);
    if (size < RESP_BY_REFERENCE_BYTES) {
        resp_write_bulk(output, slice_make(blob->data + offset, size));
        return;
    }
    resp_write_header(output, '$', (int64_t)size);
    output_append_blob(output, blob, offset, size);
    write_line_end(output);
}

void resp_write_bulk_int(struct output *output, int64_t number)
{
    char digits[NUMBER_I64_SPACE];

    resp_write_bulk(output, slice_make(digits, number_format_i64(digits, number)));
}

static char *put_on_line(char *at, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (char)(text[i] == '\r' || text[i] == '\n' ? ' ' : text[i]);
    return at + size;
}

/* "<type><text>\r\n" with a text of any size that must stay on its line. */
static void write_text_line(struct output *output, char type, struct slice text)
{
    size_t part = MIN(text.size, (size_t)TEXT_PIECE_BYTES);
    char *at = output_reserve(output, 1 + part + 2);

    *at++ = type;
    at = put_on_line(at, text.data, part);
    while (UNLIKELY(part < text.size)) {
        output_commit(output, at);
        text = slice_skip(text, part);
        part = MIN(text.size, (size_t)TEXT_PIECE_BYTES);
        at = put_on_line(output_reserve(output, part + 2), text.data, part);
    }
    at[0] = '\r';
    at[1] = '\n';
    output_commit(output, at + 2);
}

void resp_write_status(struct output *output, struct slice text)
{
    write_text_line(output, '+', text);
}

void resp_write_error(struct output *output, struct slice text)
{
    write_text_line(output, '-', text);
}

void resp_write_error_text(struct output *output, const char *text)
{
    write_text_line(output, '-', slice_from_text(text));
}

void resp_write_map(struct output *output, int proto, uint64_t pair_count)
{
    if (proto == 2)
        resp_write_header(output, '*', (int64_t)(pair_count * 2));
    else
        resp_write_header(output, '%', (int64_t)pair_count);
}

void resp_write_set(struct output *output, int proto, uint64_t count)
{
    resp_write_header(output, proto == 2 ? '*' : '~', (int64_t)count);
}

void resp_write_push(struct output *output, int proto, uint64_t count)
{
    resp_write_header(output, proto == 2 ? '*' : '>', (int64_t)count);
}

void resp_write_attribute(struct output *output, int proto, uint64_t pair_count)
{
    assert(proto == 3);
    resp_write_header(output, '|', (int64_t)pair_count);
}

void resp_write_double(struct output *output, int proto, double number)
{
    char digits[NUMBER_DOUBLE_SPACE];
    size_t size = 0;

    if (proto == 2) {
        size = number_format_double(digits, number);
        resp_write_bulk(output, slice_make(digits, size));
        return;
    }
    size = number_format_double_resp3(digits, number);
    write_text_line(output, ',', slice_make(digits, size));
}

void resp_write_bool(struct output *output, int proto, bool value)
{
    if (proto == 2)
        resp_write_int(output, value);
    else
        output_append(output, value ? "#t\r\n" : "#f\r\n", 4);
}

void resp_write_double_text(struct output *output, int proto, struct slice digits)
{
    if (proto == 2)
        resp_write_bulk(output, digits);
    else
        write_text_line(output, ',', digits);
}

void resp_write_bignum(struct output *output, int proto, struct slice digits)
{
    if (proto == 2)
        resp_write_bulk(output, digits);
    else
        write_text_line(output, '(', digits);
}

void resp_write_verbatim(struct output *output, int proto, const char format[3], struct slice text)
{
    if (proto == 2) {
        resp_write_bulk(output, text);
        return;
    }
    resp_write_header(output, '=', (int64_t)text.size + 4);
    output_append(output, format, 3);
    output_append(output, ":", 1);
    output_append(output, text.data, text.size);
    write_line_end(output);
}

struct resp_deferred resp_begin_deferred(struct output *output)
{
    return (struct resp_deferred){.gap = output_gap_open(output, RESP_HEADER_BYTES)};
}

void resp_end_deferred(struct output *output, int proto, struct resp_deferred deferred, enum resp_aggregate type,
                       uint64_t count)
{
    static const char types[] = {[RESP_ARRAY] = '*', [RESP_MAP] = '%', [RESP_SET] = '~', [RESP_PUSH] = '>'};
    char header[RESP_HEADER_BYTES];
    char *end = NULL;

    if (proto == 2)
        end = resp_encode_header(header, '*', (int64_t)(type == RESP_MAP ? count * 2 : count));
    else
        end = resp_encode_header(header, types[type], (int64_t)count);
    output_gap_close(output, deferred.gap, header, (size_t)(end - header));
}

void resp_write_command(struct output *output, const struct slice *args, size_t arg_count)
{
    resp_write_header(output, '*', (int64_t)arg_count);
    for (size_t i = 0; i < arg_count; i++)
        resp_write_bulk(output, args[i]);
}
