/* Applying a master's stream: its bytes are cut into commands, which are applied in batches and appended to the journal
 * as they were received.
 *
 * Clients see prefixes of the master's history. A batch has about FOLLOW_BATCH_COMMANDS commands; the stripes of all
 * its keys are locked before its first command runs, or the gate is owned if there are many, or if a command needs it.
 * They are released when the last one has run and the journal has all of them. MULTI to EXEC is never cut.
 *
 * Commands are obeyed: without ACL, without limits of memory; no key expires until a command says so. A command that
 * replies an error is counted and logged, and the stream continues.
 *
 *     follow_take(follow, data, size, &used) -> FOLLOW_DONE: everything was applied, except an incomplete command or
 *                                                            transaction at the end
 *                                               FOLLOW_WAIT: something is not free: call follow_go_on after a wake (the
 *                                                            worker_wake hook) before more is given
 *                                               FOLLOW_BROKEN, FOLLOW_OVER: the stream has ended here
 *
 * One thread, that of its worker, calls everything here, outside of the gate and with no lock held. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct follow;
struct slice;
struct worker;

enum { FOLLOW_BATCH_COMMANDS = 1024, FOLLOW_BATCH_BYTES = 1 << 20 };

enum follow_result {
    FOLLOW_DONE,
    FOLLOW_WAIT,
    FOLLOW_BROKEN, /* no command, or one that cannot be skipped: follow_error has the reason */
    FOLLOW_OVER    /* is_current said no: nothing of the batch was applied */
};

struct follow_options {
    unsigned db;         /* in which the stream begins */
    const char *address; /* the master's, for monitors; copied */
    /* Called inside the gate before a batch is applied; false: the stream is not wanted any more. */
    bool (*is_current)(void *context);
    /* A command has replied an error. `offset`: bytes of the stream before it. Also called by other workers' threads,
     * several at a time; the gate may be owned. May be NULL. */
    void (*on_error)(struct slice name, struct slice reply, uint64_t offset, void *context);
    /* The server ends in the middle of a script that has written: its command counts as not applied, so the data is
     * that of no offset. Called with the gate owned; then the stream is FOLLOW_BROKEN. May be NULL. */
    void (*on_torn)(void *context);
    void *context;
    /* What it does here is this server's own, as what clients do: it is stamped, keys expire, and the journal gets what
     * it has changed instead of the bytes. For an active server, which may have masters of other kinds. */
    bool is_own;
};

struct follow *follow_create(struct worker *worker, const struct follow_options *options);
void follow_destroy(struct follow **follow); /* what was not applied is forgotten */

/* The first `*used` bytes are done or copied. The others begin a command: they are given again, with more behind
 * them. */
must_check enum follow_result follow_take(struct follow *follow, char *data, size_t size, size_t *used);
must_check enum follow_result follow_go_on(struct follow *follow);
bool follow_waits(const struct follow *follow); /* the last result was FOLLOW_WAIT */

uint64_t follow_applied_bytes(const struct follow *follow); /* of the stream since follow_create: whole commands */
unsigned follow_db(const struct follow *follow);            /* selected behind what was applied */
bool follow_wants_ack(struct follow *follow);               /* REPLCONF GETACK was among what was applied; forgets it */
const char *follow_error(const struct follow *follow);
