/* The libraries of functions that all workers share: FUNCTION LOAD adds them, FCALL runs their functions. This module
 * has only their texts and the declarations of their functions. Each worker loads a library into its own Lua state when
 * it first needs one of its functions (function_host.h). So each worker has its own copy of a library's local
 * variables.
 *
 * The set changes in exclusive sections only; reading takes the lock (LOCK_REGISTRY, a leaf). */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct library;

struct function {
    struct library *library;
    uint32_t index; /* in the library */
    char *name;
    char *description; /* NULL: none */
    uint32_t flags;    /* enum script_flag */
    uint64_t hash;
};

struct library { /* const once it is in the set, except the atomics */
    char *name;
    struct slice code; /* the whole text; owned */
    struct {
        struct function *items;
        uint32_t count, capacity;
    } functions;
    _Atomic uint32_t references; /* atomic */
    _Atomic bool dropped;        /* atomic: no longer in the set */
};

/* Parses the first line. False: `error` has the reply. The caller frees *name. */
must_check bool library_read_head(struct slice code, char **name, struct slice *body, struct buffer *error);
bool library_name_is_fine(struct slice name);

struct library *library_create(struct slice name, struct slice code); /* without functions; one reference */
/* False: it has a function with this name. */
must_check bool library_add_function(struct library *library, struct slice name, const char *description,
                                     uint32_t flags);
void library_release(struct library **library);

void functions_setup(void);    /* main thread, before the workers start */
void functions_teardown(void); /* likewise, after the workers have ended */

/* What happens to the existing libraries. */
enum functions_policy { FUNCTIONS_APPEND, FUNCTIONS_REPLACE, FUNCTIONS_FLUSH };
/* Adds all libraries or none; the caller keeps its references. False: a name is taken; `error` has the reply. `shares`:
 * two libraries may have a function of the same name, as two nodes may have loaded them at the same time: the function
 * is that of the library whose name comes first, whichever was there before. Exclusive. */
must_check bool functions_add(struct library **libraries, uint32_t count, enum functions_policy policy, bool shares,
                              struct buffer *error);
bool functions_delete(struct slice library_name); /* false: there is no such library. Exclusive */
void functions_flush(void);                       /* exclusive */

/* Asserts that the set cannot change now: inside the gate, alone, or in a child of such a thread. */
void functions_assert_steady(void);

bool functions_has_library(struct slice name);
bool functions_find_source(struct slice name, struct slice *source); /* inside the gate: it stays as long */
struct function *functions_find(struct slice name);                  /* acquires its library; NULL: none */
/* Visits every library under the lock: `visit` must not call functions of this header. */
void functions_each(void (*visit)(const struct library *library, void *context), void *context);
/* Visits the source of each library in the order of loading. Inside the gate, or in a child forked by a thread that was
 * alone: nothing is locked. */
void functions_each_source(void (*visit)(struct slice source, void *context), void *context);

void functions_each_name(void (*visit)(struct slice name, void *context), void *context); /* inside the gate */

struct functions_facts {
    uint64_t libraries, functions, bytes;
};
void functions_facts(struct functions_facts *facts);

static inline bool library_is_dropped(const struct library *library)
{
    return atomic_load_explicit(&library->dropped, memory_order_acquire);
}
