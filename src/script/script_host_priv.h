/* For script_host.c, script_api.c, script_busy.c and function_host.c alone. */
#pragma once

#include "base/assert.h"
#include "script/script_host.h"
#include "script/script_settings.h"
#include "server/command/key_list.h"

struct compiled;
struct debug_session;

/* Room for the commands a script calls, used again and again. */
struct script_calls {
    struct slice *words;
    char (*numbers)[32]; /* the text of numbers among the words */
    uint32_t capacity;
    struct key_list keys; /* of the command that is called */
    struct buffer text;   /* a reply in one piece; a message */
};
void script_calls_fini(struct script_calls *calls);

struct script_host {
    struct worker *worker;  /* const; NULL: see script_host_open_alone */
    struct lua_vm *vm;      /* const pointer */
    struct table compiled;  /* of struct compiled, by SHA-1 */
    struct compiled *last;  /* the one found last, so that it is found at once; NULL: none */
    struct script_run *run; /* NULL: none runs */
    struct script_calls calls;
    struct script_settings settings;
    struct debug_session *debug; /* of the script that runs; NULL: nobody steps through it */
    struct {
        int environment, metatable; /* references; 0: not made yet. The guard libraries have as globals */
        int calling, loading;       /* references: what stands behind it */
        struct {
            struct loaded **items;
            uint32_t count, capacity;
        } libraries;
    } functions;
    int call_script, note_error, describe_error; /* references */
};

struct script_host *script_host_of_thread(void);
static inline void script_host_assert_here(const struct script_host *host) /* this is its thread */
{
    assert(host == script_host_of_thread());
}
/* For a thread that is no worker's and runs no scripts, but loads libraries. NULL: no memory. */
struct script_host *script_host_open_alone(void);
void script_host_close_alone(struct script_host **host);

struct loaded;
bool function_host_is_loading(uint64_t *spent_ms); /* a library, in this thread */
void function_host_fini(struct script_host *host);
