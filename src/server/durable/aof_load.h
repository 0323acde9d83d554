/* Loading the append only file: a manifest, the base it names (RDB or commands) and the increments, in order.
 *
 * Commands are run as if a client that must be obeyed had sent them: without ACL, without limits of memory, without an
 * echo in the journal; nothing expires until a command says so. What stands between MULTI and EXEC is run when the EXEC
 * is there: at the end of the last file an incomplete transaction, or command, is cut off (aof-load-truncated).
 * Whatever else is wrong is told in one line of the log, and the files are left as they are. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "persist/aof_manifest.h"

#include <stdbool.h>
#include <stdint.h>

struct apply;
struct applied;
struct command;
struct worker;

/* Who runs the commands: a part of the server above this one (run/apply.h), which provides these functions. All of them
 * in the thread of the worker, which owns the gate. */
enum apply_verdict { APPLY_FINE, APPLY_UNKNOWN, APPLY_ARITY, APPLY_FOREIGN /* no such file has it */ };

struct applied {
    const struct slice *args; /* to be set again before `run`, if they have moved; what they refer to has not */
    uint32_t arg_count;
    const struct command *command;
    uint32_t first_key, key_count; /* the applier's */
};

typedef void (*applied_fn)(const struct applied *applied, struct slice reply, void *context);

struct applier {
    struct apply *(*create)(struct worker *worker);
    void (*destroy)(struct apply **apply);
    /* Another stream begins, with database 0. on_error is called for each command that replies an error. */
    void (*begin)(struct apply *apply, applied_fn on_error, void *context);
    void (*forget)(struct apply *apply); /* all that was prepared */
    enum apply_verdict (*prepare)(struct apply *apply, const struct slice *args, uint32_t arg_count,
                                  struct applied *applied);
    /* Runs what was prepared since `forget`, in that order. Returns how many were run: fewer than all if the next one
     * cannot be left out, a SELECT of a database that is not there. */
    uint32_t (*run)(struct apply *apply, const struct applied *applied, uint32_t count);
    uint64_t (*count)(const struct apply *apply); /* commands run so far */
};

void aof_load_provide(const struct applier *provided); /* once, before anything is loaded; stays the caller's */

struct aof_load_request {
    struct worker *worker; /* in whose thread this is, and who owns the gate; of the loading thread: its own */
    /* Called now and then; others may use the data meanwhile. False: stop. NULL: never. */
    bool (*pause)(uint64_t bytes, uint64_t keys);
    void (*aux)(struct slice name, struct slice value, void *context); /* of an RDB base; may be NULL */
    uint64_t pause_bytes;
    bool at_start; /* else the server goes on if it fails: for the words of the log */
};

struct aof_load_result {
    uint64_t keys; /* of an RDB base */
    uint64_t commands;
    uint64_t errors; /* commands that replied an error: the log tells of the first few */
    bool interrupted;
};

/* False: interrupted, or the log says what is wrong; part of the data is in the store. */
must_check bool aof_load_run(const struct aof_manifest *manifest, const struct aof_load_request *request,
                             struct aof_load_result *result);

/* DEBUG LOADAOF: the data is what the files have. The gate is owned. False: the log says why not. */
must_check bool aof_load_again(struct worker *worker);
