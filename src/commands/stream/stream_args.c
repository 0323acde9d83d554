#include "commands/stream/stream_args.h"

#include "base/buffer.h"

/* ---------------------------------------------------------------------------------------------------------- ids -- */

enum { ID_ARGUMENT_BYTES = 127 }; /* with blanks and zeros before the numbers */

/* Parses a number like strtoull(3), but without a minus: leading blanks, a plus sign and zeros are allowed. */
static bool parse_part(const char *at, const char *end, uint64_t *number)
{
    uint64_t value = 0;

    while (at != end && (*at == ' ' || (*at >= '\t' && *at <= '\r')))
        at++;
    at += at != end && *at == '+';
    if (at == end)
        return false;
    for (; at != end; at++) {
        unsigned digit = (unsigned)(unsigned char)*at - '0';

        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *number = value;
    return true;
}

bool stream_id_parse(struct slice text, uint64_t missing_seq, struct stream_id *id)
{
    size_t size = text.size != 0 ? strnlen(text.data, text.size) : 0; /* a zero byte ends it */
    const char *end = text.data + size, *minus = size != 0 ? memchr(text.data, '-', size) : NULL;
    struct stream_id parsed = {0, missing_seq};

    if (size == 0 || text.size > ID_ARGUMENT_BYTES || !parse_part(text.data, minus != NULL ? minus : end, &parsed.ms) ||
        (minus != NULL && !parse_part(minus + 1, end, &parsed.seq)))
        return false;
    *id = parsed;
    return true;
}

struct slice stream_id_format(struct stream_id id, char room[STREAM_ID_TEXT_BYTES])
{
    size_t size = number_format_u64(room, id.ms);

    room[size++] = '-';
    return slice_make(room, size + number_format_u64(room + size, id.seq));
}

static bool invalid_id(struct request *request)
{
    reply_error(request, "ERR Invalid stream ID specified as stream command argument");
    return false;
}

bool stream_arg_id(struct request *request, uint32_t index, uint64_t missing_seq, struct stream_id *id)
{
    return stream_id_parse(request_arg(request, index), missing_seq, id) || invalid_id(request);
}

/* An end of an interval without "("; text without it. */
static bool parse_end(struct slice text, uint64_t missing_seq, struct stream_id *id)
{
    if (slice_equal(text, SLICE("-")))
        *id = STREAM_ID_LEAST;
    else if (slice_equal(text, SLICE("+")))
        *id = STREAM_ID_MOST;
    else
        return stream_id_parse(text, missing_seq, id);
    return true;
}

static bool is_exclusive(struct slice text)
{
    return text.size > 1 && text.data[0] == '(';
}

bool stream_arg_start(struct request *request, uint32_t index, struct stream_id *id)
{
    struct slice text = request_arg(request, index);

    if (!is_exclusive(text))
        return parse_end(text, 0, id) || invalid_id(request);
    if (!stream_id_parse(slice_make(text.data + 1, text.size - 1), 0, id))
        return invalid_id(request);
    if (stream_id_increment(id))
        return true;
    reply_error(request, "ERR invalid start ID for the interval");
    return false;
}

bool stream_arg_end(struct request *request, uint32_t index, struct stream_id *id)
{
    struct slice text = request_arg(request, index);

    if (!is_exclusive(text))
        return parse_end(text, UINT64_MAX, id) || invalid_id(request);
    if (!stream_id_parse(slice_make(text.data + 1, text.size - 1), UINT64_MAX, id))
        return invalid_id(request);
    if (stream_id_decrement(id))
        return true;
    reply_error(request, "ERR invalid end ID for the interval");
    return false;
}

bool stream_read_arg(struct request *request, const struct key *key, const struct stream **stream)
{
    struct value value;

    if (!typed_read(request, key, TYPE_STREAM, &value))
        return false;
    *stream = value.data;
    return true;
}

/* ------------------------------------------------------------------------------------------------------ replies -- */

void reply_error_about(struct request *request, const char *text, const struct slice *names)
{
    struct buffer error = {0};

    for (; *text != '\0'; text++) {
        if (*text == '@') {
            buffer_append(&error, names->data, strnlen(names->size != 0 ? names->data : "", names->size));
            names++;
        } else {
            buffer_append_char(&error, *text);
        }
    }
    reply_error(request, buffer_text(&error));
    buffer_fini(&error);
}

void reply_stream_id(struct request *request, struct stream_id id)
{
    char room[STREAM_ID_TEXT_BYTES];

    reply_bulk(request, stream_id_format(id, room));
}

void reply_stream_entry_parts(struct request *request, struct stream_iter *iter, struct stream_id id,
                              uint64_t field_count)
{
    struct slice field, value;

    reply_stream_id(request, id);
    reply_array(request, 2 * field_count);
    while (field_count-- > 0) {
        stream_iter_pair(iter, &field, &value);
        reply_bulk(request, field);
        reply_bulk(request, value);
    }
}

void reply_stream_entry(struct request *request, struct stream_iter *iter, struct stream_id id, uint64_t field_count)
{
    reply_array(request, 2);
    reply_stream_entry_parts(request, iter, id, field_count);
}

bool reply_stream_entry_at(struct request *request, const struct stream *stream, struct stream_id id)
{
    struct stream_iter iter;
    uint64_t field_count;
    bool found;

    stream_iter_init(&iter, stream, id, id);
    found = stream_iter_next(&iter, &id, &field_count);
    if (found)
        reply_stream_entry(request, &iter, id, field_count);
    stream_iter_fini(&iter);
    return found;
}

void reply_stream_entries(struct request *request, struct stream_iter *iter, uint64_t most)
{
    struct resp_deferred head = resp_begin_deferred(request->out);
    uint64_t count = 0, field_count;
    struct stream_id id;

    for (; count < most && stream_iter_next(iter, &id, &field_count); count++)
        reply_stream_entry(request, iter, id, field_count);
    stream_iter_fini(iter);
    resp_end_deferred(request->out, request->proto, head, RESP_ARRAY, count);
}
