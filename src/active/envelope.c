#include "active/envelope.h"

#include "active/mvcc.h"
#include "base/assert.h"
#include "base/number.h"
#include "net/resp.h"

#include <stdio.h>

enum { WORDS_LEAST = 3, WORDS_WRITTEN = 5 };

bool envelope_is(const struct slice *words, uint32_t word_count)
{
    return word_count != 0 && slice_equal_text_nocase(words[0], "rreplay");
}

/* Its begin, without control characters. */
static bool fail(char error[ENVELOPE_ERROR_BYTES], const char *what, struct slice word)
{
    char quoted[48];
    const size_t size = MIN(word.size, sizeof(quoted) - 1);

    for (size_t i = 0; i < size; i++)
        quoted[i] = word.data[i] >= ' ' && word.data[i] <= '~' ? word.data[i] : '?';
    quoted[size] = '\0';
    (void)snprintf(error, ENVELOPE_ERROR_BYTES, "RREPLAY: %s: '%s'", what, quoted);
    return false;
}

bool envelope_read(const struct slice *words, uint32_t word_count, unsigned db_count, struct envelope *envelope,
                   char error[ENVELOPE_ERROR_BYTES])
{
    uint64_t number;

    assert(envelope_is(words, word_count));
    *envelope = (struct envelope){.payload = SLICE_EMPTY};
    if (word_count < WORDS_LEAST)
        return fail(error, "the uuid or the payload is missing behind", words[word_count - 1]);
    if (!uuid_parse(words[1], &envelope->uuid))
        return fail(error, "the first argument is not a uuid", words[1]);
    envelope->payload = words[2];
    if (word_count > 3) {
        if (!number_parse_u64(words[3], &number) || number >= db_count)
            return fail(error, "there is no such database", words[3]);
        envelope->db = (unsigned)number;
        envelope->has_db = true;
    }
    if (word_count > 4 &&
        (!number_parse_u64(words[4], &envelope->mvcc) || (envelope->mvcc != 0 && !mvcc_is_possible(envelope->mvcc))))
        return fail(error, "no clock gives this mvcc", words[4]);
    return true;
}

static void append_header(struct buffer *out, char type, size_t number)
{
    char *at = buffer_reserve(out, RESP_HEADER_BYTES);

    out->size += (size_t)(resp_encode_header(at, type, (int64_t)number) - at);
}

static void append_bulk(struct buffer *out, struct slice word)
{
    append_header(out, '$', word.size);
    buffer_append_slice(out, word);
    buffer_append(out, "\r\n", 2);
}

static void append_number(struct buffer *out, uint64_t number)
{
    char text[NUMBER_I64_SPACE];

    append_bulk(out, slice_make(text, number_format_u64(text, number)));
}

void envelope_write_head(struct buffer *out, const struct uuid *uuid, size_t payload_bytes)
{
    char text[UUID_TEXT_BYTES + 1];

    uuid_format(uuid, text);
    append_header(out, '*', WORDS_WRITTEN);
    append_bulk(out, SLICE("RREPLAY"));
    append_bulk(out, slice_make(text, UUID_TEXT_BYTES));
    append_header(out, '$', payload_bytes);
}

void envelope_write_tail(struct buffer *out, unsigned db, uint64_t mvcc)
{
    buffer_append(out, "\r\n", 2);
    append_number(out, db);
    append_number(out, mvcc);
}

void envelope_write(struct buffer *out, const struct envelope *envelope)
{
    envelope_write_head(out, &envelope->uuid, envelope->payload.size);
    buffer_append_slice(out, envelope->payload);
    envelope_write_tail(out, envelope->db, envelope->mvcc);
}

void envelope_add_command(struct buffer *payload, const struct slice *words, uint32_t word_count)
{
    append_header(payload, '*', word_count);
    for (uint32_t i = 0; i < word_count; i++)
        append_bulk(payload, words[i]);
}
