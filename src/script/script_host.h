/* A script host: a worker's Lua state, its compiled scripts, and the running script. A host belongs to its worker's
 * thread. It is created when the worker runs its first script.
 *
 * A script runs with what its command holds: the stripes of its declared keys, or the gate. When it uses another key,
 * or a command of another access class, the host escalates: from there on the worker is alone (dispatch.h). */
#pragma once

#include "base/buffer.h"
#include "base/table.h"
#include "script/lua_vm.h"
#include "script/script_cache.h"
#include "server/core/request.h"

struct script_host;
struct script_host *script_host_here(struct worker *worker); /* this worker's; NULL: no memory for a Lua state */
struct script_host *script_host_of_thread(void);             /* this thread's; NULL: it has none */
void script_host_leave(void);                                /* for the loading thread, when it runs no more scripts */
void script_host_teardown(void);                             /* main thread; all hosts; after the workers have ended */

enum script_repl { REPL_NONE = 0, REPL_AOF = 1, REPL_REPLICA = 2, REPL_ALL = 3 };

/* One run of a script. */
struct script_run {
    struct request *request;
    const char *name;  /* the SHA-1, or the function's name; for messages */
    const char *place; /* "user_script", "user_function" */
    uint32_t flags;    /* enum script_flag */
    bool read_only;    /* EVAL_RO and similar commands */
    bool is_function;
    int function; /* reference to the function to call */
    const struct slice *keys, *args;
    uint32_t key_count, arg_count;
    /* State while it runs. */
    struct output out; /* the reply */
    unsigned db;
    int proto;     /* setresp */
    uint32_t repl; /* enum script_repl */
    bool wrote, memory_short, failed;
    uint64_t served_us; /* monotonic time at which other clients were last served inside it */
    bool paused;        /* its client's connection is paused for that */
    bool is_slow;       /* runs for longer than busy-reply-threshold: script_busy.h */
    uint64_t started_tick;
    int error_line;
};

/* Checks whether the script may run, runs it, replies. In the thread of the host, inside the gate. */
void script_host_run(struct script_host *host, struct script_run *run);

/* Runs a script of the cache, and compiles it first if necessary. The caller keeps its reference. */
void script_host_run_script(struct script_host *host, struct request *request, struct script *script, bool read_only,
                            uint32_t key_count);
/* Finds a compiled script. NULL: there is none. Not acquired: valid until the host runs something. */
struct script *script_host_find(struct script_host *host, struct slice sha);
/* The same by its text. Fast for the one that was found last. */
struct script *script_host_find_source(struct script_host *host, struct slice source);
/* False: it does not compile; `error` has the reply. */
must_check bool script_host_check(struct script_host *host, struct slice body, struct buffer *error);

void script_sha(struct slice source, char sha[SCRIPT_SHA_DIGITS + 1]);

struct lua_vm *script_host_vm(struct script_host *host);
struct script_run *script_host_running(void); /* the running script of this thread; NULL: none */
uint64_t script_vms_bytes(void);              /* memory of all workers' Lua states */
