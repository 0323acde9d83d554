/* From bytes to commands to replies: parses what a client sent, checks each command, takes what it needs (stripes or
 * the gate), runs it, journals its effect. What cannot have what it needs is parked, and its worker goes on. All in the
 * worker's thread. */
#pragma once

#include "server/core/lifecycle.h"
#include "server/core/request.h"
#include "server/core/worker.h"

extern const struct lifecycle dispatch_lifecycle;

struct client;


/* Runs one command with what is held, as part of EXEC (or a script): no access of its own, the reply into `out`. */
void dispatch_run_nested(struct request *outer, const struct command *command, const struct slice *args,
                         uint32_t arg_count, const struct key *keys, uint32_t key_count,
                         const struct resp_blob_arg *blobs, uint32_t blob_count);

/* A command that a script calls (or a job, its script): with what the script holds, as the script's client stands
 * now. */
struct nested_call {
    const struct command *command;
    const struct slice *args;
    uint32_t arg_count;
    const struct key *keys;
    uint32_t key_count;
    struct output *out;
    bool by_script;
};
void dispatch_call(struct request *outer, const struct nested_call *call);
/* The running command, which is of those that take the scripts' turn, needs more than it holds: from here on, to its
 * end, this worker is alone. */
void dispatch_escalate(struct worker *worker);

/* Bytes of input that the running command took; 0 if it does not come from there: of EXEC, or parked meanwhile. */
size_t dispatch_query_bytes(const struct request *request);

/* Appends what worker->run.effects holds to the journal; the stripes are held: inside the gate, or alone. */
void dispatch_journal(struct worker *worker);
/* The same, of the access' worker; then those are served who wait for what has changed, and told who listen. */
void dispatch_settle_access(struct access *access);

/* Runs `body` as a script that nobody sent: with the scripts' turn and these keys' stripes, to which it may add by
 * dispatch_escalate. What it did to the data is journaled and served in one piece. False: something is in the way, ask
 * again after a wake. The worker's thread, outside of the gate. */
must_check bool dispatch_run_unasked(struct worker *worker, const struct key *keys, uint32_t key_count,
                                     void (*body)(struct worker *worker, void *context), void *context);
