/* Replies as keydb-benchmark passes over them. Properties:
 *  1. what is found does not depend on the pieces in which the bytes come;
 *  2. as long as the parser of our client side finds replies, the same ones end at the same bytes; pushes are none. */
#include "fuzz.h"
#include "net/resp.h"
#include "tools/benchmark/replies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Letters for the results, and where each ends. */
static void pass_over(struct slice stream, struct random *random, size_t piece_most, struct buffer *meaning)
{
    struct replies replies = {0};
    size_t passed = 0;
    bool is_broken = false;

    while (stream.size != 0 && !is_broken) {
        const size_t wanted = piece_most == 0 ? stream.size : 1 + (size_t)random_below(random, piece_most);
        const size_t size = MIN(stream.size, wanted);
        char *block = malloc(size);
        struct slice piece = slice_make(block, size);

        assert(block != NULL);
        memcpy(block, stream.data, size);
        while (piece.size != 0 && !is_broken) {
            const enum replies_result result = replies_next(&replies, &piece);

            is_broken = result == REPLIES_BROKEN;
            if (result == REPLIES_ERROR)
                assert(strlen(replies.error) < REPLIES_ERROR_BYTES);
            if (result == REPLIES_GOOD || result == REPLIES_ERROR)
                buffer_printf(meaning, "%c%zu ", result == REPLIES_GOOD ? 'g' : 'e', passed + size - piece.size);
        }
        free(block);
        passed += size;
        stream = slice_skip(stream, size);
    }
    buffer_append_text(meaning, is_broken ? "broken" : "");
}

/* The same from the parser that makes trees; returns how many bytes it could read. */
static size_t parse(struct slice stream, struct buffer *meaning)
{
    struct resp_reply_parser parser;
    enum resp_reply_result result = RESP_REPLY_READY;
    size_t at = 0;

    resp_reply_parser_init(&parser);
    while (at < stream.size && result == RESP_REPLY_READY) {
        struct resp_reply *reply = NULL;
        size_t consumed = 0, used = 0;

        do {
            result = resp_reply_parse(&parser, stream.data + at + used, stream.size - at - used, &consumed, &reply);
            used += consumed;
        } while (result == RESP_REPLY_MORE && consumed != 0 && at + used < stream.size);
        if (result == RESP_REPLY_READY) {
            const bool is_error = reply->type == RESP_TYPE_ERROR || reply->type == RESP_TYPE_BULK_ERROR;

            at += used;
            if (reply->type != RESP_TYPE_PUSH)
                buffer_printf(meaning, "%c%zu ", is_error ? 'e' : 'g', at);
        }
        resp_reply_destroy(&reply);
    }
    resp_reply_parser_fini(&parser);
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);
    struct buffer whole = {0}, pieces = {0}, parsed = {0};
    struct random random;
    size_t readable;

    random_seed(&random, fuzz_take_byte(&input));
    pass_over(input, &random, 0, &whole);
    pass_over(input, &random, 1 + input.size / 3, &pieces);
    assert(slice_equal(buffer_slice(&whole), buffer_slice(&pieces)));
    buffer_clear(&pieces);
    pass_over(input, &random, 1, &pieces);
    assert(slice_equal(buffer_slice(&whole), buffer_slice(&pieces)));

    readable = parse(input, &parsed);
    buffer_clear(&whole);
    pass_over(slice_make(input.data, readable), &random, 0, &whole);
    assert(slice_equal(buffer_slice(&whole), buffer_slice(&parsed)));
    buffer_fini(&whole);
    buffer_fini(&pieces);
    buffer_fini(&parsed);
    return 0;
}
