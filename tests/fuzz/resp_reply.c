/* Replies as our client side reads them. Properties:
 *  1. trees and errors do not depend on the pieces in which the bytes come;
 *  2. a tree that is written with the server's writers (RESP3) and read again is the same tree;
 *  3. no tree is deeper than RESP_REPLY_DEPTH_MAX. */
#include "fuzz.h"
#include "net/resp.h"

#include <math.h>
#include <stdlib.h>

enum { ONE_BY_ONE_BYTES_MOST = 600 };

/* `texts`: also the bytes of numbers as they were sent. */
static void describe(const struct resp_reply *reply, unsigned depth, bool texts, struct buffer *out)
{
    assert(depth <= RESP_REPLY_DEPTH_MAX + 1);
    if (reply->attribute != NULL)
        describe(reply->attribute, depth + 1, texts, out);
    buffer_append_char(out, (char)reply->type);
    if (texts)
        buffer_append_char(out, (char)reply->was);
    switch (reply->type) {
    case RESP_TYPE_INT:
    case RESP_TYPE_BOOL:
        buffer_append_i64(out, reply->integer);
        break;
    case RESP_TYPE_DOUBLE:
        if (isnan(reply->number)) /* it has no sign worth keeping */
            buffer_append_text(out, "nan");
        else
            buffer_printf(out, "%a", reply->number);
        break;
    case RESP_TYPE_VERBATIM:
        buffer_append(out, reply->format, 3);
        break;
    default:
        break;
    }
    if (reply->text != NULL && (texts || (reply->type != RESP_TYPE_INT && reply->type != RESP_TYPE_DOUBLE))) {
        assert(reply->text[reply->size] == '\0');
        buffer_append_u64(out, reply->size);
        buffer_append_char(out, ':');
        buffer_append(out, reply->text, reply->size);
    }
    if (reply->element_count != 0 || reply->elements != NULL)
        buffer_printf(out, "{%zu", reply->element_count);
    for (size_t i = 0; i < reply->element_count; i++)
        describe(reply->elements[i], depth + 1, texts, out);
    buffer_append_char(out, ';');
}

static bool is_one_line(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\r' || text.data[i] == '\n')
            return false;
    }
    return true;
}

/* False: a type that the server never writes, or a text it would not write. */
static bool write_reply(const struct resp_reply *reply, struct output *output)
{
    struct slice text = slice_make(reply->text, reply->size);

    if (reply->attribute != NULL) {
        resp_write_attribute(output, 3, reply->attribute->element_count / 2);
        for (size_t i = 0; i < reply->attribute->element_count; i++) {
            if (!write_reply(reply->attribute->elements[i], output))
                return false;
        }
    }
    switch (reply->type) {
    case RESP_TYPE_STATUS:
        resp_write_status(output, text);
        return is_one_line(text);
    case RESP_TYPE_ERROR:
        resp_write_error(output, text);
        return is_one_line(text);
    case RESP_TYPE_INT:
        resp_write_int(output, reply->integer);
        return true;
    case RESP_TYPE_BULK:
        resp_write_bulk(output, text);
        return true;
    case RESP_TYPE_NULL:
        resp_write_null(output, 3);
        return true;
    case RESP_TYPE_BOOL:
        resp_write_bool(output, 3, reply->integer != 0);
        return true;
    case RESP_TYPE_DOUBLE:
        resp_write_double(output, 3, reply->number);
        return true;
    case RESP_TYPE_BIGNUM:
        resp_write_bignum(output, 3, text);
        return true;
    case RESP_TYPE_VERBATIM:
        resp_write_verbatim(output, 3, reply->format, text);
        return true;
    case RESP_TYPE_ARRAY:
        resp_write_array(output, 3, reply->element_count);
        break;
    case RESP_TYPE_MAP:
        resp_write_map(output, 3, reply->element_count / 2);
        break;
    case RESP_TYPE_SET:
        resp_write_set(output, 3, reply->element_count);
        break;
    case RESP_TYPE_PUSH:
        resp_write_push(output, 3, reply->element_count);
        break;
    case RESP_TYPE_BULK_ERROR:
    case RESP_TYPE_ATTRIBUTE:
        return false;
    }
    for (size_t i = 0; i < reply->element_count; i++) {
        if (!write_reply(reply->elements[i], output))
            return false;
    }
    return true;
}

static void check_again(const struct resp_reply *reply)
{
    struct resp_reply_parser parser;
    struct resp_reply *again = NULL;
    struct buffer wire = {0}, before = {0}, after = {0};
    struct output output;
    size_t consumed = 0, at = 0;
    enum resp_reply_result result;

    output_init(&output, NULL);
    if (write_reply(reply, &output)) {
        output_to_buffer(&output, &wire);
        resp_reply_parser_init(&parser);
        do {
            result = resp_reply_parse(&parser, wire.data + at, wire.size - at, &consumed, &again);
            at += consumed;
        } while (result == RESP_REPLY_MORE && consumed != 0);
        assert(result == RESP_REPLY_READY);
        assert(at == wire.size);
        describe(reply, 0, false, &before);
        describe(again, 0, false, &after);
        assert(slice_equal(buffer_slice(&before), buffer_slice(&after)));
        resp_reply_destroy(&again);
        resp_reply_parser_fini(&parser);
    }
    output_clear(&output);
    buffer_fini(&wire);
    buffer_fini(&before);
    buffer_fini(&after);
}

static void read_stream(struct slice stream, struct random *random, size_t piece_most, struct buffer *meaning)
{
    struct resp_reply_parser parser;
    struct buffer kept = {0};
    bool ended = false;

    resp_reply_parser_init(&parser);
    while (!ended && stream.size != 0) {
        size_t wanted = piece_most == 0 ? stream.size : 1 + (size_t)random_below(random, piece_most);
        size_t piece = MIN(stream.size, wanted);
        enum resp_reply_result result = RESP_REPLY_READY;

        buffer_append(&kept, stream.data, piece);
        stream = slice_skip(stream, piece);
        while (!ended && kept.size != 0 && result == RESP_REPLY_READY) {
            struct resp_reply *reply = NULL;
            size_t consumed = 0;
            char *block = malloc(kept.size);

            assert(block != NULL);
            memcpy(block, kept.data, kept.size);
            result = resp_reply_parse(&parser, block, kept.size, &consumed, &reply);
            free(block);
            assert(consumed <= kept.size);
            buffer_consume(&kept, consumed);
            if (result == RESP_REPLY_READY) {
                describe(reply, 0, true, meaning);
                check_again(reply);
                buffer_append_char(meaning, '\n');
            } else if (result == RESP_REPLY_ERROR) {
                assert(parser.error[0] != '\0');
                buffer_append_text(meaning, parser.error);
                ended = true;
            }
            assert((reply != NULL) == (result == RESP_REPLY_READY));
            resp_reply_destroy(&reply);
        }
    }
    buffer_printf(meaning, "(%u open)", parser.frames.count);
    resp_reply_parser_fini(&parser);
    buffer_fini(&kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);
    struct buffer whole = {0}, pieces = {0};
    struct random random;

    random_seed(&random, fuzz_take_byte(&input));
    read_stream(input, &random, 0, &whole);
    read_stream(input, &random, 1 + input.size / 3, &pieces);
    assert(slice_equal(buffer_slice(&whole), buffer_slice(&pieces)));
    if (input.size <= ONE_BY_ONE_BYTES_MOST) {
        buffer_clear(&pieces);
        read_stream(input, &random, 1, &pieces);
        assert(slice_equal(buffer_slice(&whole), buffer_slice(&pieces)));
    }
    buffer_fini(&whole);
    buffer_fini(&pieces);
    return 0;
}
