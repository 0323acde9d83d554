/* Loads the append-only file: a manifest, its base (RDB or commands) and its increments, in order.
 *
 * Commands run as if a client that is always obeyed had sent them: without ACL, without limits of memory, and not
 * journaled. Nothing expires until a command says so. Commands between MULTI and EXEC run when the EXEC was read. An
 * incomplete transaction or command at the end of the last file is cut off (aof-load-truncated). All other errors are
 * reported in one line of the log, and the files are not changed. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "persist/aof_manifest.h"

#include <stdbool.h>
#include <stdint.h>

struct apply;
struct applied;
struct command;
struct data_order_found;
struct worker;

/* The functions that run the commands. A part of the server above this one provides them (run/apply.h). They are called
 * in the thread of the worker, which owns the gate. */
enum apply_verdict { APPLY_FINE, APPLY_UNKNOWN, APPLY_ARITY, APPLY_FOREIGN /* not in files of this server */ };

struct applied {
    const struct slice *args; /* set it again before `run` if the array has moved; its texts must not move */
    uint32_t arg_count;
    const struct command *command;
    uint32_t first_key, key_count; /* in the applier's list of keys */
};

typedef void (*applied_fn)(const struct applied *applied, struct slice reply, void *context);

struct applier {
    struct apply *(*create)(struct worker *worker);
    void (*destroy)(struct apply **apply);
    /* Begins a new stream, with database 0. on_error is called for each command that replies an error. */
    void (*begin)(struct apply *apply, applied_fn on_error, void *context);
    void (*forget)(struct apply *apply); /* forgets all prepared commands */
    enum apply_verdict (*prepare)(struct apply *apply, const struct slice *args, uint32_t arg_count,
                                  struct applied *applied);
    /* Runs the commands prepared since `forget`, in order. Returns how many were run: fewer than all if the next one
     * cannot be skipped, such as SELECT of a database that does not exist. */
    uint32_t (*run)(struct apply *apply, const struct applied *applied, uint32_t count);
    uint64_t (*count)(const struct apply *apply); /* number of commands run so far */
};

/* Once, before anything is loaded; the caller keeps the struct valid. */
void aof_load_provide(const struct applier *provided);

struct aof_load_request {
    struct worker *worker; /* its thread calls aof_load_run and owns the gate; the loading thread has its own worker */
    /* Called now and then; other threads may use the data meanwhile. False: stop. NULL: never called. */
    bool (*pause)(uint64_t bytes, uint64_t keys);
    void (*aux)(struct slice name, struct slice value, void *context); /* facts about an RDB base; may be NULL */
    struct data_order_found *order;                                    /* gets what an RDB base has of it */
    uint64_t pause_bytes;
    bool at_start; /* for the texts of the log: otherwise the server continues after a failure */
};

struct aof_load_result {
    uint64_t keys; /* keys of an RDB base */
    uint64_t commands;
    uint64_t errors; /* commands that replied an error: the first few are in the log */
    bool interrupted;
};

/* The worker's thread; the gate is owned. False: interrupted, or the log has the reason; part of the data is in the
 * store. */
must_check bool aof_load_run(const struct aof_manifest *manifest, const struct aof_load_request *request,
                             struct aof_load_result *result);

/* DEBUG LOADAOF: replaces the data by the contents of the files. The gate is owned. False: the log has the reason. */
must_check bool aof_load_again(struct worker *worker);
