#include "tools/cli/format.h"

#include "base/number.h"

#include <stdio.h>
#include <string.h>

bool format_is_error(const struct resp_reply *reply)
{
    return reply->type == RESP_TYPE_ERROR || reply->type == RESP_TYPE_BULK_ERROR;
}

static struct slice text_of(const struct resp_reply *reply)
{
    return slice_make(reply->text, reply->size);
}

static bool is_aggregate(const struct resp_reply *reply)
{
    return reply->type == RESP_TYPE_ARRAY || reply->type == RESP_TYPE_MAP || reply->type == RESP_TYPE_SET ||
           reply->type == RESP_TYPE_PUSH || reply->type == RESP_TYPE_ATTRIBUTE;
}

static bool is_map(const struct resp_reply *reply)
{
    return reply->type == RESP_TYPE_MAP || reply->type == RESP_TYPE_ATTRIBUTE;
}

void format_quoted(struct buffer *out, struct slice bytes)
{
    buffer_append_char(out, '"');
    for (size_t i = 0; i < bytes.size; i++) {
        static const char escaped[] = "\\\"\n\r\t\a\b", letters[] = "\\\"nrtab";
        char c = bytes.data[i];
        const char *found = c != '\0' ? strchr(escaped, c) : NULL;

        if (found != NULL)
            buffer_printf(out, "\\%c", letters[found - escaped]);
        else if (c >= ' ' && c < 127)
            buffer_append_char(out, c);
        else
            buffer_printf(out, "\\x%02x", (unsigned)(unsigned char)c);
    }
    buffer_append_char(out, '"');
}

/* -------------------------------------------------------------------------------------------------- for people -- */

/* The lines of a nested reply begin with `prefix` blanks; the first one continues the line that is there. */
static void text_reply(struct buffer *out, const struct resp_reply *reply, size_t prefix);

static void blanks(struct buffer *out, size_t count)
{
    memset(buffer_reserve(out, count), ' ', count);
    out->size += count;
}

/* Has it several rows: elements, or one that has several? */
static bool has_rows(const struct resp_reply *reply)
{
    const size_t step = is_map(reply) ? 2 : 1;

    if (!is_aggregate(reply) || reply->element_count < step)
        return false;
    return reply->element_count > step || has_rows(reply->elements[step - 1]);
}

static void text_value_of_map(struct buffer *out, const struct resp_reply *value, size_t prefix)
{
    buffer_append_text(out, " => ");
    if (has_rows(value)) {
        buffer_append_char(out, '\n');
        blanks(out, prefix);
    }
    text_reply(out, value, prefix);
}

static void text_aggregate(struct buffer *out, const struct resp_reply *reply, size_t prefix)
{
    const char mark = is_map(reply) ? '#' : reply->type == RESP_TYPE_SET ? '~' : ')';
    const size_t step = is_map(reply) ? 2 : 1;
    const size_t count = reply->element_count / step;
    const unsigned width = number_digits(count);

    for (size_t i = 0; i < count; i++) {
        const struct resp_reply *element = reply->elements[i * step];
        size_t inner = prefix + width + 2;

        if (i > 0)
            blanks(out, prefix);
        blanks(out, width - number_digits(i + 1));
        buffer_append_u64(out, i + 1);
        buffer_append_char(out, mark);
        buffer_append_char(out, ' ');
        text_reply(out, element, inner);
        if (is_map(reply)) {
            buffer_truncate(out, out->size - 1); /* the key's line goes on */
            text_value_of_map(out, reply->elements[i * step + 1], inner);
        }
    }
}

static void text_reply(struct buffer *out, const struct resp_reply *reply, size_t prefix)
{
    switch (reply->type) {
    case RESP_TYPE_ERROR:
    case RESP_TYPE_BULK_ERROR:
        buffer_append_text(out, "(error) ");
        buffer_append_slice(out, text_of(reply));
        break;
    case RESP_TYPE_STATUS:
    case RESP_TYPE_VERBATIM:
        buffer_append_slice(out, text_of(reply));
        break;
    case RESP_TYPE_INT:
        buffer_printf(out, "(integer) %lld", (long long)reply->integer);
        break;
    case RESP_TYPE_DOUBLE:
        buffer_printf(out, "(double) %s", reply->text);
        break;
    case RESP_TYPE_BIGNUM:
        buffer_printf(out, "(big number) %s", reply->text);
        break;
    case RESP_TYPE_BULK:
        format_quoted(out, text_of(reply));
        break;
    case RESP_TYPE_NULL:
        buffer_append_text(out, "(nil)");
        break;
    case RESP_TYPE_BOOL:
        buffer_append_text(out, reply->integer ? "(true)" : "(false)");
        break;
    default:
        if (reply->element_count > 0) {
            text_aggregate(out, reply, prefix);
            return;
        }
        buffer_printf(out, "(empty %s)",
                      is_map(reply)                   ? "hash"
                      : reply->type == RESP_TYPE_SET  ? "set"
                      : reply->type == RESP_TYPE_PUSH ? "push"
                                                      : "array");
        break;
    }
    buffer_append_char(out, '\n');
}

/* --------------------------------------------------------------------------------------------------------- raw -- */

void format_raw(struct buffer *out, const struct resp_reply *reply, const char *bulk_delimiter)
{
    switch (reply->type) {
    case RESP_TYPE_NULL:
        return;
    case RESP_TYPE_ERROR:
    case RESP_TYPE_BULK_ERROR:
        buffer_append_slice(out, text_of(reply));
        buffer_append_char(out, '\n');
        return;
    case RESP_TYPE_INT:
        buffer_append_i64(out, reply->integer);
        return;
    case RESP_TYPE_BOOL:
        buffer_append_text(out, reply->integer ? "(true)" : "(false)");
        return;
    default:
        break;
    }
    if (!is_aggregate(reply)) {
        buffer_append_slice(out, text_of(reply));
        return;
    }
    for (size_t i = 0; i < reply->element_count; i++) {
        if (i > 0)
            buffer_append_text(out, is_map(reply) && i % 2 == 1 ? " " : bulk_delimiter);
        format_raw(out, reply->elements[i], bulk_delimiter);
    }
}

/* --------------------------------------------------------------------------------------------------------- CSV -- */

static void csv_reply(struct buffer *out, const struct resp_reply *reply)
{
    switch (reply->type) {
    case RESP_TYPE_ERROR:
    case RESP_TYPE_BULK_ERROR:
        buffer_append_text(out, "ERROR,");
        format_quoted(out, text_of(reply));
        return;
    case RESP_TYPE_STATUS:
    case RESP_TYPE_BULK:
    case RESP_TYPE_VERBATIM:
        format_quoted(out, text_of(reply));
        return;
    case RESP_TYPE_INT:
        buffer_append_i64(out, reply->integer);
        return;
    case RESP_TYPE_DOUBLE:
    case RESP_TYPE_BIGNUM:
        buffer_append_slice(out, text_of(reply));
        return;
    case RESP_TYPE_NULL:
        buffer_append_text(out, "NULL");
        return;
    case RESP_TYPE_BOOL:
        buffer_append_text(out, reply->integer ? "true" : "false");
        return;
    default:
        break;
    }
    for (size_t i = 0; i < reply->element_count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        csv_reply(out, reply->elements[i]);
    }
}

/* -------------------------------------------------------------------------------------------------------- JSON -- */

static void json_plain(struct buffer *out, struct slice bytes)
{
    buffer_append_char(out, '"');
    for (size_t i = 0; i < bytes.size; i++) {
        static const char escaped[] = "\\\"\n\r\t\f\b", letters[] = "\\\"nrtfb";
        char c = bytes.data[i];
        const char *found = c != '\0' ? strchr(escaped, c) : NULL;

        if (found != NULL)
            buffer_printf(out, "\\%c", letters[found - escaped]);
        else if ((unsigned char)c < ' ')
            buffer_printf(out, "\\u%04x", (unsigned)(unsigned char)c);
        else
            buffer_append_char(out, c);
    }
    buffer_append_char(out, '"');
}

/* The text that format_quoted shows, as a string of JSON. (redis-cli writes \\" for a quote, which ends the string.) */
static void json_quoted(struct buffer *out, struct slice bytes)
{
    struct buffer shown = {0};

    format_quoted(&shown, bytes);
    json_plain(out, slice_make(shown.data + 1, shown.size - 2));
    buffer_fini(&shown);
}

static void json_string(struct buffer *out, struct slice bytes, bool quoted)
{
    if (quoted)
        json_quoted(out, bytes);
    else
        json_plain(out, bytes);
}

/* Of keys that are maps or arrays, the text of which is a string. Each of them doubles the backslashes of those in it,
 * so the text of a few bytes from a server would fill any memory: deeper ones are "...". */
enum { JSON_KEYS_DEEP_MOST = 3 };

static void json_reply(struct buffer *out, const struct resp_reply *reply, bool quoted, unsigned keys);

static void json_key(struct buffer *out, const struct resp_reply *key, bool quoted, unsigned keys)
{
    struct buffer text = {0};

    if (keys == JSON_KEYS_DEEP_MOST && key->element_count != 0) {
        buffer_append_text(out, "\"...\"");
        return;
    }
    json_reply(&text, key, quoted, keys + 1);
    if (text.size > 0 && text.data[0] == '"')
        buffer_append_slice(out, buffer_slice(&text));
    else
        json_plain(out, buffer_slice(&text));
    buffer_fini(&text);
}

static void json_aggregate(struct buffer *out, const struct resp_reply *reply, bool quoted, unsigned keys)
{
    buffer_append_char(out, is_map(reply) ? '{' : '[');
    for (size_t i = 0; i < reply->element_count; i++) {
        bool is_value = is_map(reply) && i % 2 == 1;

        if (i > 0)
            buffer_append_char(out, is_value ? ':' : ',');
        if (is_map(reply) && !is_value)
            json_key(out, reply->elements[i], quoted, keys);
        else
            json_reply(out, reply->elements[i], quoted, keys);
    }
    buffer_append_char(out, is_map(reply) ? '}' : ']');
}

static void json_reply(struct buffer *out, const struct resp_reply *reply, bool quoted, unsigned keys)
{
    switch (reply->type) {
    case RESP_TYPE_ERROR:
    case RESP_TYPE_BULK_ERROR:
        buffer_append_text(out, "error:");
        json_string(out, text_of(reply), quoted);
        return;
    case RESP_TYPE_STATUS:
    case RESP_TYPE_BULK:
    case RESP_TYPE_VERBATIM:
        json_string(out, text_of(reply), quoted);
        return;
    case RESP_TYPE_INT:
        buffer_append_i64(out, reply->integer);
        return;
    case RESP_TYPE_DOUBLE:
    case RESP_TYPE_BIGNUM:
        buffer_append_slice(out, text_of(reply));
        return;
    case RESP_TYPE_NULL:
        buffer_append_text(out, "null");
        return;
    case RESP_TYPE_BOOL:
        buffer_append_text(out, reply->integer ? "true" : "false");
        return;
    default:
        json_aggregate(out, reply, quoted, keys);
        return;
    }
}

/* --------------------------------------------------------------------------------------------------------- any -- */

void format_reply(struct buffer *out, const struct resp_reply *reply, enum format format, const char *bulk_delimiter,
                  const char *reply_delimiter)
{
    switch (format) {
    case FORMAT_TEXT:
        text_reply(out, reply, 0);
        return;
    case FORMAT_RAW:
        format_raw(out, reply, bulk_delimiter);
        buffer_append_text(out, reply_delimiter);
        return;
    case FORMAT_CSV:
        csv_reply(out, reply);
        break;
    case FORMAT_JSON:
    case FORMAT_QUOTED_JSON:
        json_reply(out, reply, format == FORMAT_QUOTED_JSON, 0);
        break;
    }
    buffer_append_char(out, '\n');
}

/* Of client-side caching: the names of keys that changed. */
static bool is_invalidation(const struct resp_reply *push)
{
    return push->element_count == 2 && push->elements[0]->type == RESP_TYPE_BULK &&
           slice_equal_text(text_of(push->elements[0]), "invalidate") && push->elements[1]->type == RESP_TYPE_ARRAY;
}

void format_push(struct buffer *out, const struct resp_reply *push, enum format format, const char *bulk_delimiter,
                 const char *reply_delimiter)
{
    const struct resp_reply *keys;

    if (format != FORMAT_TEXT || !is_invalidation(push)) {
        format_reply(out, push, format, bulk_delimiter, reply_delimiter);
        return;
    }
    keys = push->elements[1];
    buffer_append_text(out, "-> invalidate: ");
    for (size_t i = 0; i < keys->element_count; i++) {
        buffer_append_text(out, i > 0 ? ", '" : "'");
        buffer_append_slice(out, text_of(keys->elements[i]));
        buffer_append_char(out, '\'');
    }
    buffer_append_char(out, '\n');
}
