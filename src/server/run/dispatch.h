/* From bytes to commands to replies: parses requests, checks each command, takes what it needs (stripes or the gate),
 * runs it, journals its effect. A command that cannot have what it needs is parked, and its worker continues with other
 * clients. All in the worker's thread. */
#pragma once

#include "base/info_row.h"
#include "server/core/lifecycle.h"
#include "server/core/request.h"
#include "server/core/worker.h"

extern const struct lifecycle dispatch_lifecycle;
extern const struct info_row dispatch_info[];

struct client;


/* Runs one command with what is held, as part of EXEC or a script: it takes no locks; the reply goes to outer->out. */
void dispatch_run_nested(struct request *outer, const struct command *command, const struct slice *args,
                         uint32_t arg_count, const struct key *keys, uint32_t key_count,
                         const struct resp_blob_arg *blobs, uint32_t blob_count);

/* A command that a script (or a job's script) calls: with what the script holds, and with the current database and
 * protocol of the script's client. */
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
/* Runs a command of a stream that is obeyed, with what its batch holds. The caller settles. */
void dispatch_run_obeyed(struct request *request);
/* Around commands of a stream whose changes are this server's own: before each of them, and behind a group of them,
 * which has one stamp; `is_alone`: it is the only one. Does what the caller would settle. */
void dispatch_begin_own(const struct request *request, bool is_alone);
void dispatch_end_own(struct worker *worker);
/* The running command is one that has the scripts' turn alone, or the gate, and needs more than it holds: from here to
 * its end, this worker is alone. */
void dispatch_escalate(struct worker *worker);

/* Bytes of input of the running command; 0 if it is not in the input: in EXEC, or after being parked. */
size_t dispatch_query_bytes(const struct request *request);

/* Appends worker->run.effects to the journal; the stripes are held: inside the gate, or alone. Returns the journal's
 * offset behind them; 0: there were none. */
uint64_t dispatch_journal(struct worker *worker);
/* The same for the worker of the access. Then serves clients that wait for changed keys, and informs listeners. */
void dispatch_settle_access(struct access *access);

/* Runs `body` like a script without a client: with the scripts' turn, alone, and these keys' stripes; dispatch_escalate
 * may add to them. Its effects are journaled in one piece. False: the stripes or the gate are not free, or data is
 * being loaded; call it again after a wake. The worker's thread, outside of the gate. */
must_check bool dispatch_run_unasked(struct worker *worker, const struct key *keys, uint32_t key_count,
                                     void (*body)(struct worker *worker, void *context), void *context);
/* The same for a body that runs no command, but lets clients be served that wait for the keys: scripts may run. */
must_check bool dispatch_serve_unasked(struct worker *worker, const struct key *keys, uint32_t key_count,
                                       void (*body)(struct worker *worker, void *context), void *context);
