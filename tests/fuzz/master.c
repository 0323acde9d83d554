/* What a master says to its replica: handshake, header, snapshot. Properties:
 *  1. the meaning does not depend on the pieces in which the bytes arrive;
 *  2. with a length just so many bytes are the snapshot's, with a mark those before its first occurrence; what follows
 *     is not touched;
 *  3. an id has forty digits, an offset is not below zero, and an error is one printable line. */
#include "fuzz.h"
#include "replication/handshake.h"
#include "replication/transfer.h"

#include <stdlib.h>
#include <string.h>

enum { ONE_BY_ONE_BYTES_MOST = 3000 };

/* What one reading of the input has found. */
struct meaning {
    struct buffer requests, snapshot;
    enum handshake_result shaken;
    enum transfer_result received;
    struct handshake handshake;
    struct transfer transfer;
    size_t used;
};

/* Gives the next `step` bytes, as a connection does: behind those that were not taken. In a block of exactly their
 * size. */
struct pieces {
    struct slice input;
    size_t at, given, step; /* taken; known so far */
};

static bool next_piece(struct pieces *pieces, char **block, size_t *size)
{
    if (pieces->given == pieces->input.size)
        return false;
    pieces->given = MIN(pieces->given + pieces->step, pieces->input.size);
    *size = pieces->given - pieces->at;
    *block = malloc(*size);
    assert(*block != NULL);
    memcpy(*block, pieces->input.data + pieces->at, *size);
    return true;
}

static void give(struct slice bytes, void *context)
{
    struct meaning *meaning = context;

    assert(bytes.size != 0);
    buffer_append_slice(&meaning->snapshot, bytes);
}

static void check_text(const char *text)
{
    for (; *text != '\0'; text++)
        assert(*text >= ' ' && *text <= '~');
}

static void check_handshake(const struct meaning *meaning)
{
    const size_t size = strlen(meaning->handshake.id);

    check_text(meaning->handshake.id);
    if (meaning->shaken == HANDSHAKE_FAILED)
        check_text(meaning->handshake.error);
    if (meaning->shaken == HANDSHAKE_CONTINUES)
        assert(size == 0 || size == HISTORY_ID_SIZE);
    if (meaning->shaken == HANDSHAKE_FULL)
        assert(size == HISTORY_ID_SIZE && meaning->handshake.offset >= 0);
}

static void take(struct meaning *meaning, char *block, size_t size, size_t *used)
{
    size_t more = 0;

    *used = 0;
    if (meaning->shaken == HANDSHAKE_MORE)
        meaning->shaken = handshake_take(&meaning->handshake, block, size, used, &meaning->requests);
    if (meaning->shaken == HANDSHAKE_FULL && meaning->received == TRANSFER_MORE && *used < size)
        meaning->received = transfer_take(&meaning->transfer, block + *used, size - *used, &more, give, meaning);
    *used += more;
    assert(*used <= size);
}

static bool is_over(const struct meaning *meaning)
{
    return meaning->shaken == HANDSHAKE_FAILED || meaning->shaken == HANDSHAKE_CONTINUES ||
           meaning->shaken == HANDSHAKE_FRAMES || meaning->received != TRANSFER_MORE;
}

static void read_all(struct meaning *meaning, const struct handshake_facts *facts, struct slice input, size_t step)
{
    struct pieces pieces = {.input = input, .step = step};
    char *block;
    size_t size, used;

    *meaning = (struct meaning){.shaken = HANDSHAKE_MORE, .received = TRANSFER_MORE};
    handshake_begin(&meaning->handshake, facts, &meaning->requests);
    transfer_init(&meaning->transfer);
    while (!is_over(meaning) && next_piece(&pieces, &block, &size)) {
        take(meaning, block, size, &used);
        free(block);
        pieces.at += used;
    }
    meaning->used = pieces.at;
    check_handshake(meaning);
}

static void meaning_fini(struct meaning *meaning)
{
    handshake_fini(&meaning->handshake);
    buffer_fini(&meaning->requests);
    buffer_fini(&meaning->snapshot);
}

static void compare(const struct meaning *a, const struct meaning *b)
{
    assert(a->shaken == b->shaken && a->received == b->received);
    assert(slice_equal(buffer_slice(&a->requests), buffer_slice(&b->requests)));
    assert(slice_equal(buffer_slice(&a->snapshot), buffer_slice(&b->snapshot)));
    if (a->shaken == HANDSHAKE_FAILED)
        assert(strcmp(a->handshake.error, b->handshake.error) == 0);
    else if (a->received == TRANSFER_FAILED)
        assert(strcmp(a->transfer.error, b->transfer.error) == 0);
    else if (is_over(a))
        assert(a->used == b->used);
}

/* The whole snapshot, against a search in the whole input. */
static void check_snapshot(const struct meaning *meaning, struct slice input)
{
    const struct transfer *transfer = &meaning->transfer;
    const size_t size = meaning->snapshot.size, mark_size = transfer->total_bytes == 0 ? TRANSFER_MARK_BYTES : 0;
    const size_t begin = meaning->used - mark_size - size;
    const char *found;

    assert(meaning->used >= size + mark_size);
    assert(slice_equal(buffer_slice(&meaning->snapshot), slice_make(input.data + begin, size)));
    assert(transfer->given_bytes == size);
    if (mark_size == 0) {
        assert(size == transfer->total_bytes);
        return;
    }
    found = memmem(input.data + begin, input.size - begin, transfer->mark, TRANSFER_MARK_BYTES);
    assert(found == input.data + begin + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);
    const uint8_t steer = fuzz_take_byte(&input);
    const struct handshake_facts facts = {
        .user = (steer & 1) != 0 ? SLICE("joe") : SLICE_EMPTY,
        .password = (steer & 2) != 0 ? SLICE("secret") : SLICE_EMPTY,
        .announced_ip = (steer & 4) != 0 ? SLICE("1.2.3.4") : SLICE_EMPTY,
        .port = 6379,
        .uuid = (steer & 16) != 0 ? "8294aaaa-1111-4a5b-9c7d-0123456789ab" : NULL,
        .id = (steer & 8) != 0 ? "0123456789abcdef0123456789abcdef01234567" : NULL,
        .offset = 1000,
    };
    struct meaning whole, cut;

    read_all(&whole, &facts, input, MAX(input.size, 1));
    read_all(&cut, &facts, input, 1 + (steer >> 4) * 13);
    compare(&whole, &cut);
    meaning_fini(&cut);
    if (input.size <= ONE_BY_ONE_BYTES_MOST) {
        read_all(&cut, &facts, input, 1);
        compare(&whole, &cut);
        meaning_fini(&cut);
    }
    if (whole.received == TRANSFER_DONE)
        check_snapshot(&whole, input);
    meaning_fini(&whole);
    return 0;
}
