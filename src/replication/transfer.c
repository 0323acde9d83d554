#include "replication/transfer.h"

#include "base/assert.h"
#include "base/number.h"
#include "replication/handshake.h"

#include <stdio.h>
#include <string.h>

void transfer_init(struct transfer *transfer)
{
    *transfer = (struct transfer){.state = TRANSFER_HEADER};
}

static enum transfer_result fail(struct transfer *transfer, const char *what, struct slice line)
{
    char quoted[TRANSFER_ERROR_BYTES / 2];

    handshake_quote(line, quoted, sizeof(quoted));
    (void)snprintf(transfer->error, sizeof(transfer->error), "%s: '%s'", what, quoted);
    return TRANSFER_FAILED;
}

static enum transfer_result take_header_line(struct transfer *transfer, struct slice line)
{
    uint64_t size;

    if (line.data[0] == '-')
        return fail(transfer, "the master ended the sync", line);
    if (slice_starts_with(line, SLICE("$EOF:")) && line.size == 5 + TRANSFER_MARK_BYTES) {
        memcpy(transfer->mark, line.data + 5, TRANSFER_MARK_BYTES);
        transfer->state = TRANSFER_MARKED;
        return TRANSFER_MORE;
    }
    if (line.data[0] != '$' || !number_parse_u64(slice_skip(line, 1), &size) || size == 0 || size > INT64_MAX)
        return fail(transfer, "no snapshot begins with this", line);
    transfer->total_bytes = size;
    transfer->state = TRANSFER_SIZED;
    return TRANSFER_MORE;
}

static enum transfer_result take_header(struct transfer *transfer, struct slice left, size_t *used)
{
    const char *end = memchr(left.data, '\n', left.size);
    struct slice line = slice_make(left.data, end != NULL ? (size_t)(end - left.data) : left.size);

    *used = 0;
    if (line.size > TRANSFER_LINE_MOST_BYTES)
        return fail(transfer, "the line before the snapshot is too long", slice_make(line.data, 40));
    if (end == NULL)
        return TRANSFER_MORE;
    *used = line.size + 1;
    if (line.size != 0 && line.data[line.size - 1] == '\r')
        line.size--;
    return line.size != 0 ? take_header_line(transfer, line) : TRANSFER_MORE;
}

static void give_bytes(struct transfer *transfer, const char *data, size_t size,
                       void (*give)(struct slice bytes, void *context), void *context)
{
    if (size == 0)
        return;
    transfer->given_bytes += size;
    give(slice_make(data, size), context);
}

static enum transfer_result take_sized(struct transfer *transfer, struct slice left, size_t *used,
                                       void (*give)(struct slice bytes, void *context), void *context)
{
    *used = (size_t)MIN((uint64_t)left.size, transfer->total_bytes - transfer->given_bytes);
    give_bytes(transfer, left.data, *used, give, context);
    if (transfer->given_bytes != transfer->total_bytes)
        return TRANSFER_MORE;
    transfer->state = TRANSFER_ENDED;
    return TRANSFER_DONE;
}

/* Looks for a mark that begins in the held bytes. */
static bool mark_begins_before(struct transfer *transfer, struct slice left, size_t *used,
                               void (*give)(struct slice bytes, void *context), void *context)
{
    char joint[2 * TRANSFER_MARK_BYTES];
    size_t more = MIN(left.size, (size_t)TRANSFER_MARK_BYTES - 1), size = transfer->held_size + more, before;
    const char *found;

    memcpy(joint, transfer->held, transfer->held_size);
    memcpy(joint + transfer->held_size, left.data, more);
    found = memmem(joint, size, transfer->mark, TRANSFER_MARK_BYTES);
    if (found != NULL) {
        before = (size_t)(found - joint);
        *used = before + TRANSFER_MARK_BYTES - transfer->held_size;
        give_bytes(transfer, joint, before, give, context);
        return true;
    }
    if (more == left.size) { /* all bytes are in `joint`: the last ones stay */
        before = size > TRANSFER_MARK_BYTES - 1 ? size - (TRANSFER_MARK_BYTES - 1) : 0;
        give_bytes(transfer, joint, before, give, context);
        transfer->held_size = size - before;
        memcpy(transfer->held, joint + before, transfer->held_size);
        *used = left.size;
        return false;
    }
    give_bytes(transfer, transfer->held, transfer->held_size, give, context);
    transfer->held_size = 0;
    *used = 0;
    return false;
}

static enum transfer_result take_marked(struct transfer *transfer, struct slice left, size_t *used,
                                        void (*give)(struct slice bytes, void *context), void *context)
{
    const char *found;
    size_t before;

    if (mark_begins_before(transfer, left, used, give, context)) {
        transfer->state = TRANSFER_ENDED;
        return TRANSFER_DONE;
    }
    if (*used == left.size)
        return TRANSFER_MORE;
    found = memmem(left.data, left.size, transfer->mark, TRANSFER_MARK_BYTES);
    before = found != NULL ? (size_t)(found - left.data) : left.size - (TRANSFER_MARK_BYTES - 1);
    give_bytes(transfer, left.data, before, give, context);
    if (found != NULL) {
        *used = before + TRANSFER_MARK_BYTES;
        transfer->state = TRANSFER_ENDED;
        return TRANSFER_DONE;
    }
    transfer->held_size = TRANSFER_MARK_BYTES - 1;
    memcpy(transfer->held, left.data + before, transfer->held_size);
    *used = left.size;
    return TRANSFER_MORE;
}

enum transfer_result transfer_take(struct transfer *transfer, const char *data, size_t size, size_t *used,
                                   void (*give)(struct slice bytes, void *context), void *context)
{
    enum transfer_result result = TRANSFER_MORE;

    assert(transfer->state != TRANSFER_ENDED);
    *used = 0;
    while (result == TRANSFER_MORE && *used < size) {
        const struct slice left = slice_make(data + *used, size - *used);
        const bool is_header = transfer->state == TRANSFER_HEADER;
        size_t step;

        if (is_header)
            result = take_header(transfer, left, &step);
        else if (transfer->state == TRANSFER_SIZED)
            result = take_sized(transfer, left, &step, give, context);
        else
            result = take_marked(transfer, left, &step, give, context);
        *used += step;
        if (step == 0)
            break;
    }
    return result;
}
