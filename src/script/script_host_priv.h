/* For script_host.c and script_api.c alone. */
#pragma once

#include "script/script_host.h"

/* Room for the commands a script calls, used again and again. */
struct script_calls {
    struct slice *words;
    char (*numbers)[32]; /* the text of numbers among the words */
    uint32_t capacity;
    struct key_positions positions;
    struct key *keys;
    uint32_t key_capacity;
    struct buffer text;  /* a reply in one piece; a message */
};
void script_calls_fini(struct script_calls *calls);

struct script_host {
    struct worker *worker;     /* const */
    struct lua_vm *vm;         /* const pointer */
    struct table compiled;     /* of struct compiled, by SHA-1 */
    struct script_run *run;    /* NULL: none runs */
    struct script_calls calls;
    int call_script, note_error, describe_error; /* references */
};

struct script_host *script_host_of_thread(void);
