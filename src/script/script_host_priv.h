/* Internals of script_host.c, script_api.c, script_busy.c and function_host.c. */
#pragma once

#include "base/assert.h"
#include "script/script_host.h"
#include "script/script_settings.h"
#include "server/command/key_list.h"

struct compiled;
struct debug_session;

/* Memory for the commands that a script calls, used again and again. */
struct script_calls {
    struct slice *words;
    char (*numbers)[32]; /* texts of numbers among the words */
    uint32_t capacity;
    struct key_list keys; /* keys of the called command */
    struct buffer text;   /* a contiguous reply; a message */
};
void script_calls_fini(struct script_calls *calls);

struct script_host {
    struct worker *worker;  /* const; NULL: see script_host_open_alone */
    struct lua_vm *vm;      /* const pointer */
    struct table compiled;  /* of struct compiled, by SHA-1 */
    struct compiled *last;  /* the script found last, for a fast lookup; NULL: none */
    struct script_run *run; /* NULL: no script runs */
    struct script_calls calls;
    struct script_settings settings;
    struct debug_session *debug; /* the debugger of the running script; NULL: none */
    struct {
        int environment, metatable; /* references; 0: not made yet. The guard that libraries have as globals */
        int calling, loading;       /* references: the tables behind it */
        struct {
            struct loaded **items;
            uint32_t count, capacity;
        } libraries;
    } functions;
    int call_script, note_error, describe_error; /* references */
};

static inline void script_host_assert_here(const struct script_host *host) /* asserts that the caller is its thread */
{
    assert(host == script_host_of_thread());
}
/* For a thread that has no worker and runs no scripts, but loads libraries. NULL: no memory. */
struct script_host *script_host_open_alone(void);
void script_host_close_alone(struct script_host **host);

struct loaded;
bool function_host_is_loading(uint64_t *spent_ms); /* true while this thread loads a library */
void function_host_fini(struct script_host *host);
