#include "base/array.h"
#include "net/resp.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Replies become a tree without recursion: open aggregates are on a stack of frames, bounded by RESP_REPLY_DEPTH_MAX.
 * Every scalar and every header of an aggregate is consumed as soon as it is complete, so only the incomplete piece is
 * given again. Announced counts are not trusted: arrays of elements grow as elements arrive. */

enum { BULK_MAX_BYTES = 512 * 1024 * 1024, LINE_MAX_BYTES = 64 * 1024 };

struct resp_reply_frame {
    struct resp_reply *reply;
    struct resp_reply *attribute; /* of the next element */
    size_t expected;              /* elements in all */
    size_t capacity;
};

/* The result of one step of parsing. */
enum piece {
    PIECE_MORE,
    PIECE_ERROR,
    PIECE_SCALAR,
    PIECE_AGGREGATE, /* `count` elements follow */
};

static struct resp_reply *reply_create(char type)
{
    struct resp_reply *reply = mem_alloc_zero(sizeof(*reply));

    reply->type = (enum resp_type)type;
    reply->was = (enum resp_type)type;
    return reply;
}

/* Replies hang together at most RESP_REPLY_DEPTH_MAX deep, so recursion is bounded. */
void resp_reply_destroy(struct resp_reply **handle)
{
    struct resp_reply *reply = *handle;

    *handle = NULL;
    if (reply == NULL)
        return;
    for (size_t i = 0; i < reply->element_count; i++)
        resp_reply_destroy(&reply->elements[i]);
    resp_reply_destroy(&reply->attribute);
    mem_free(reply->elements);
    mem_free(reply->text);
    mem_free(reply);
}

void resp_reply_parser_init(struct resp_reply_parser *parser)
{
    *parser = (struct resp_reply_parser){.bulk_max_bytes = BULK_MAX_BYTES};
}

void resp_reply_parser_fini(struct resp_reply_parser *parser)
{
    for (uint32_t i = 0; i < parser->frames.count; i++) {
        resp_reply_destroy(&parser->frames.items[i].reply);
        resp_reply_destroy(&parser->frames.items[i].attribute);
    }
    resp_reply_destroy(&parser->attribute);
    ARRAY_FINI(&parser->frames);
    parser->scanned = 0;
}

static bool fail(struct resp_reply_parser *parser, const char *what)
{
    snprintf(parser->error, sizeof(parser->error), "Protocol error: %s", what);
    return false;
}

static bool set_text(struct resp_reply_parser *parser, struct resp_reply *reply, const char *data, size_t size)
{
    reply->text = mem_try_alloc(size + 1);
    if (reply->text == NULL)
        return fail(parser, "out of memory");
    if (size != 0)
        memcpy(reply->text, data, size);
    reply->text[size] = '\0';
    reply->size = size;
    return true;
}

static bool parse_count(struct slice line, int64_t *number)
{
    if (line.size > 1 && line.data[0] == '+')
        line = slice_skip(line, 1);
    return number_parse_i64(line, number);
}

static bool parse_double(struct slice line, double *number)
{
    if (slice_equal_text_nocase(line, "nan") || slice_equal_text_nocase(line, "-nan")) {
        *number = NAN;
        return true;
    }
    return number_parse_double(line, number);
}

static bool is_bignum(struct slice line)
{
    size_t i = line.size > 0 && (line.data[0] == '-' || line.data[0] == '+');

    if (i == line.size)
        return false;
    for (; i < line.size; i++)
        if (line.data[i] < '0' || line.data[i] > '9')
            return false;
    return true;
}

/* The line behind a type byte, when it is one value by itself. */
static bool set_line(struct resp_reply_parser *parser, struct resp_reply *reply, struct slice line)
{
    switch (reply->type) {
    case RESP_TYPE_STATUS:
    case RESP_TYPE_ERROR:
        break;
    case RESP_TYPE_INT:
        if (!parse_count(line, &reply->integer))
            return fail(parser, "bad integer");
        break;
    case RESP_TYPE_DOUBLE:
        if (!parse_double(line, &reply->number))
            return fail(parser, "bad double");
        break;
    case RESP_TYPE_BIGNUM:
        if (!is_bignum(line))
            return fail(parser, "bad big number");
        break;
    case RESP_TYPE_BOOL:
        if (line.size != 1 || (line.data[0] != 't' && line.data[0] != 'f'))
            return fail(parser, "bad boolean");
        reply->integer = line.data[0] == 't';
        break;
    default:
        assert(reply->type == RESP_TYPE_NULL);
        if (line.size != 0)
            return fail(parser, "bad null");
        return true;
    }
    return set_text(parser, reply, line.data, line.size);
}

/* Bulk, bulk error or verbatim of `size` bytes, of which all are there. */
static bool set_bulk(struct resp_reply_parser *parser, struct resp_reply *reply, const char *data, size_t size)
{
    if (data[size] != '\r' || data[size + 1] != '\n')
        return fail(parser, "bulk does not end in CR LF");
    if (reply->type == RESP_TYPE_VERBATIM) {
        if (size < 4 || data[3] != ':')
            return fail(parser, "bad verbatim string");
        memcpy(reply->format, data, 3);
        data += 4;
        size -= 4;
    }
    return set_text(parser, reply, data, size);
}

static bool is_aggregate(char type)
{
    return type == '*' || type == '%' || type == '~' || type == '>' || type == '|';
}

static bool is_bulk(char type)
{
    return type == '$' || type == '!' || type == '=';
}

static enum piece read_counted(struct resp_reply_parser *parser, const char *data, size_t size, struct slice line,
                               struct resp_reply **out, size_t *used, size_t *count)
{
    char type = data[0];
    size_t head = line.size + 3;
    int64_t number = 0;
    struct resp_reply *reply = NULL;

    if (!parse_count(line, &number) || number < -1 || (number == -1 && type != '$' && type != '*')) {
        fail(parser, is_bulk(type) ? "bad bulk length" : "bad element count");
        return PIECE_ERROR;
    }
    if (number == -1) {
        *out = reply_create(type);
        (*out)->type = RESP_TYPE_NULL;
        *used = head;
        return PIECE_SCALAR;
    }
    if (is_aggregate(type)) {
        if (number > INT32_MAX) {
            fail(parser, "bad element count");
            return PIECE_ERROR;
        }
        *out = reply_create(type);
        *used = head;
        *count = type == '%' || type == '|' ? (size_t)number * 2 : (size_t)number;
        return PIECE_AGGREGATE;
    }
    if ((uint64_t)number > parser->bulk_max_bytes) {
        fail(parser, "bulk too long");
        return PIECE_ERROR;
    }
    if (size - head < (size_t)number + 2)
        return PIECE_MORE;
    reply = reply_create(type);
    if (!set_bulk(parser, reply, data + head, (size_t)number)) {
        resp_reply_destroy(&reply);
        return PIECE_ERROR;
    }
    *out = reply;
    *used = head + (size_t)number + 2;
    return PIECE_SCALAR;
}

static enum piece read_piece(struct resp_reply_parser *parser, const char *data, size_t size, struct resp_reply **out,
                             size_t *used, size_t *count)
{
    struct slice line = SLICE_EMPTY;
    const char *end = NULL;
    struct resp_reply *reply = NULL;

    if (size == 0)
        return PIECE_MORE;
    if (strchr("+-:$*_#,(!=%~>|", data[0]) == NULL || data[0] == '\0') {
        snprintf(parser->error, sizeof(parser->error), "Protocol error: unknown reply type byte 0x%02x",
                 (unsigned)(unsigned char)data[0]);
        return PIECE_ERROR;
    }
    end = parser->scanned < size ? memchr(data + parser->scanned, '\n', size - parser->scanned) : NULL;
    if (end == NULL) {
        parser->scanned = size;
        if (size > LINE_MAX_BYTES && data[0] != '+' && data[0] != '-' && data[0] != '(') {
            fail(parser, "line too long");
            return PIECE_ERROR;
        }
        if (size > parser->bulk_max_bytes) {
            fail(parser, "line too long");
            return PIECE_ERROR;
        }
        return PIECE_MORE;
    }
    if (end == data || end[-1] != '\r' || end - data < 2) {
        fail(parser, "line does not end in CR LF");
        return PIECE_ERROR;
    }
    line = slice_make(data + 1, (size_t)(end - data) - 2);
    parser->scanned = (size_t)(end - data);
    if (is_bulk(data[0]) || is_aggregate(data[0]))
        return read_counted(parser, data, size, line, out, used, count);
    reply = reply_create(data[0]);
    if (!set_line(parser, reply, line)) {
        resp_reply_destroy(&reply);
        return PIECE_ERROR;
    }
    *out = reply;
    *used = line.size + 3;
    return PIECE_SCALAR;
}

static bool push_frame(struct resp_reply_parser *parser, struct resp_reply *reply, size_t expected)
{
    if (parser->frames.count == RESP_REPLY_DEPTH_MAX)
        return fail(parser, "nested too deep");
    *ARRAY_PUSH(&parser->frames) = (struct resp_reply_frame){.reply = reply, .expected = expected};
    return true;
}

static void frame_add(struct resp_reply_frame *frame, struct resp_reply *element)
{
    struct resp_reply *reply = frame->reply;

    if (reply->element_count == frame->capacity) {
        frame->capacity = MIN(frame->expected, MAX(frame->capacity * 2, (size_t)8));
        reply->elements = mem_realloc(reply->elements, frame->capacity * sizeof(struct resp_reply *));
    }
    reply->elements[reply->element_count++] = element;
}

/* NULL: none is open. */
static struct resp_reply_frame *innermost(struct resp_reply_parser *parser)
{
    return parser->frames.count > 0 ? &parser->frames.items[parser->frames.count - 1] : NULL;
}

/* A value is complete: adds it to the innermost open aggregate, or it is the whole reply. Closes aggregates that are
 * full. */
static struct resp_reply *place(struct resp_reply_parser *parser, struct resp_reply *reply)
{
    for (;;) {
        struct resp_reply_frame *frame = innermost(parser);
        struct resp_reply **attribute = frame != NULL ? &frame->attribute : &parser->attribute;

        if (reply->type == RESP_TYPE_ATTRIBUTE) {
            resp_reply_destroy(attribute); /* of several only the last one counts */
            *attribute = reply;
            return NULL;
        }
        reply->attribute = *attribute;
        *attribute = NULL;
        if (frame == NULL)
            return reply;
        frame_add(frame, reply);
        if (frame->reply->element_count < frame->expected)
            return NULL;
        reply = frame->reply;
        parser->frames.count--;
    }
}

enum resp_reply_result resp_reply_parse(struct resp_reply_parser *parser, const char *data, size_t size,
                                        size_t *consumed, struct resp_reply **reply)
{
    *consumed = 0;
    *reply = NULL;
    for (;;) {
        struct resp_reply *piece = NULL;
        size_t used = 0;
        size_t count = 0;
        enum piece kind = read_piece(parser, data + *consumed, size - *consumed, &piece, &used, &count);

        if (kind == PIECE_MORE)
            return RESP_REPLY_MORE;
        if (kind == PIECE_ERROR)
            return RESP_REPLY_ERROR;
        *consumed += used;
        parser->scanned = 0;
        if (kind == PIECE_AGGREGATE && count > 0) {
            if (!push_frame(parser, piece, count)) {
                resp_reply_destroy(&piece);
                return RESP_REPLY_ERROR;
            }
            continue;
        }
        *reply = place(parser, piece);
        if (*reply != NULL)
            return RESP_REPLY_READY;
    }
}
