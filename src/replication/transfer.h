/* Where a snapshot begins and ends in what the master sends. It knows no connection.
 *
 *     newlines, as signs of life
 *     $LENGTH \r\n  LENGTH bytes             a file of known length
 *     $EOF:MARK \r\n  bytes  MARK            forty bytes that end it
 */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

enum { TRANSFER_MARK_BYTES = 40, TRANSFER_LINE_MOST_BYTES = 1024, TRANSFER_ERROR_BYTES = 200 };

enum transfer_result {
    TRANSFER_MORE,  /* needs the next bytes */
    TRANSFER_DONE,  /* all bytes of the snapshot were given */
    TRANSFER_FAILED /* `error` has the reason */
};

struct transfer {
    enum { TRANSFER_HEADER, TRANSFER_SIZED, TRANSFER_MARKED, TRANSFER_ENDED } state;
    uint64_t total_bytes; /* TRANSFER_SIZED */
    uint64_t given_bytes;
    char mark[TRANSFER_MARK_BYTES];
    char held[TRANSFER_MARK_BYTES]; /* the last bytes, which may begin the mark */
    size_t held_size;
    char error[TRANSFER_ERROR_BYTES];
};

void transfer_init(struct transfer *transfer);
/* Calls `give` for the snapshot's bytes. *used is the number of bytes that were taken: all of them unless it is done or
 * has failed, or the header is not complete. Bytes behind them are not the snapshot's. */
must_check enum transfer_result transfer_take(struct transfer *transfer, const char *data, size_t size, size_t *used,
                                              void (*give)(struct slice bytes, void *context), void *context);
