/* The scripts of all workers, by the SHA-1 of their text. What SCRIPT LOAD brought stays until SCRIPT FLUSH; of what
 * came with EVAL the CACHE_EVAL_MOST used last stay, so that programs which write a new script for each call do not
 * fill memory. Each worker compiles for itself (script_host.h). Any thread; one lock (LOCK_REGISTRY, a leaf). */
#pragma once

#include "base/compiler.h"
#include "base/list.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SCRIPT_SHA_DIGITS = 40, CACHE_EVAL_MOST = 500 };

enum script_flag {
    SCRIPT_NO_WRITES = 1 << 0,
    SCRIPT_ALLOW_OOM = 1 << 1,
    SCRIPT_ALLOW_STALE = 1 << 2,
    SCRIPT_NO_CLUSTER = 1 << 3,
    SCRIPT_ALLOW_CROSS_SLOT = 1 << 4,
    SCRIPT_UNDECLARED = 1 << 5 /* no first line says what it does: rules are those of old */
};
const char *script_flag_name(unsigned index); /* "no-writes"; NULL: there are no more; bit `index` of script_flag */

struct script {
    char sha[SCRIPT_SHA_DIGITS + 1]; /* const, as all but the atomics and what the cache guards */
    uint64_t hash;                   /* of the sha */
    uint32_t flags;                  /* enum script_flag */
    char *source;
    size_t source_size;
    _Atomic uint32_t references; /* atomic */
    _Atomic bool dropped;        /* atomic: no longer in the cache */
    _Atomic bool used;           /* atomic, relaxed: since it was looked at for eviction */
    bool stays;                  /* guarded by the cache's lock: SCRIPT LOAD brought it */
    struct list_node node;       /* guarded by the cache's lock: of what EVAL brought, by last use */
};

/* What the first line "#!lua flags=..." says. False: `error` has the reply. *body is what there is to compile. */
must_check bool script_read_shebang(struct slice source, uint32_t *flags, struct slice *body, char *error,
                                    size_t error_size);

void script_cache_setup(void);
void script_cache_teardown(void);
struct script *script_cache_find(struct slice sha); /* acquired; NULL: none. Letters of any case */
/* Acquired: what is there already, or a new one. */
struct script *script_cache_add(struct slice sha, struct slice source, uint32_t flags, bool stays);
void script_release(struct script **script);
void script_cache_flush(void);

struct script_cache_facts {
    uint64_t count, bytes, evicted;
};
void script_cache_facts(struct script_cache_facts *facts);

/* A worker runs what it has compiled without asking the cache. */
static inline void script_mark_used(struct script *script)
{
    if (!atomic_load_explicit(&script->used, memory_order_relaxed))
        atomic_store_explicit(&script->used, true, memory_order_relaxed);
}
static inline bool script_is_dropped(const struct script *script)
{
    return atomic_load_explicit(&script->dropped, memory_order_acquire);
}
