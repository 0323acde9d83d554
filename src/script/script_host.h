/* Where a worker runs scripts: its Lua state, what it has compiled, and the script that runs. A host belongs to its
 * worker's thread; it is made when the worker runs its first script.
 *
 * A script runs with what its command holds: the stripes of the keys it declares, or the gate. Where it touches another
 * key, or a command of another class, the host escalates: from there on the worker is alone (dispatch.h). */
#pragma once

#include "base/buffer.h"
#include "base/table.h"
#include "script/lua_vm.h"
#include "script/script_cache.h"
#include "server/core/request.h"

struct script_host;
struct script_host *script_host_here(struct worker *worker); /* this worker's; NULL: no memory for a Lua state */
void script_host_leave(void);    /* of the thread that loads data: it runs no more scripts */
void script_host_teardown(void); /* main thread; all; after the workers have gone */

enum script_repl { REPL_NONE = 0, REPL_AOF = 1, REPL_REPLICA = 2, REPL_ALL = 3 };

/* One run. */
struct script_run {
    struct request *request;
    const char *name;  /* the SHA-1, or the function's name; for messages */
    const char *place; /* "user_script", "user_function" */
    uint32_t flags;    /* enum script_flag */
    bool read_only;    /* EVAL_RO and its like */
    bool is_function;
    int function; /* reference to what to call */
    const struct slice *keys, *args;
    uint32_t key_count, arg_count;
    /* While it runs. */
    struct output out; /* the reply */
    unsigned db;
    int proto;     /* setresp */
    uint32_t repl; /* enum script_repl */
    bool wrote, memory_short, failed;
    uint64_t served_us; /* monotonic: when others were served inside it */
    bool paused;        /* its client's connection, for that */
    bool is_slow;       /* runs for longer than busy-reply-threshold: script_busy.h */
    uint64_t started_tick;
    int error_line;
};

/* Checks what stands against running it, runs it, replies. In the thread of the host, inside the gate. */
void script_host_run(struct script_host *host, struct script_run *run);

/* Compiles (if it has not yet) and runs one of the cache. `script` stays the caller's. */
void script_host_run_script(struct script_host *host, struct request *request, struct script *script, bool read_only,
                            uint32_t key_count);
/* Is there such a script compiled here? NULL: no; not acquired: valid until the host runs something. */
struct script *script_host_find(struct script_host *host, struct slice sha);
/* False: it is no Lua; `error` has the reply. */
must_check bool script_host_check(struct script_host *host, struct slice body, struct buffer *error);

void script_sha(struct slice source, char sha[SCRIPT_SHA_DIGITS + 1]);

struct lua_vm *script_host_vm(struct script_host *host);
struct script_run *script_host_running(void); /* what this thread runs now; NULL: nothing */
uint64_t script_vms_bytes(void);              /* of all workers */
