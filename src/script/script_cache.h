/* The script cache of all workers, by the SHA-1 of the text. Scripts of SCRIPT LOAD stay until SCRIPT FLUSH. Of the
 * scripts of EVAL, the CACHE_EVAL_MOST most recently used stay, so that clients which generate a new script for each
 * call do not fill the memory. Each worker compiles for itself (script_host.h). Any thread; one lock (LOCK_REGISTRY, a
 * leaf). */
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
    SCRIPT_UNDECLARED = 1 << 5 /* no first line with flags: the rules of older versions apply */
};
const char *script_flag_name(unsigned index); /* "no-writes"; NULL: no more flags; bit `index` of script_flag */

/* Enum command_flag: those of a command that runs a script with these flags (enum script_flag). */
uint32_t script_command_flags(uint32_t command_flags, uint32_t script_flags);

struct script {
    char sha[SCRIPT_SHA_DIGITS + 1]; /* const, as all fields except the atomics and those that the cache guards */
    uint64_t hash;                   /* hash of the sha */
    uint32_t flags;                  /* enum script_flag */
    bool keeps_to_keys;              /* script_keys.h */
    char *source;
    size_t source_size;
    _Atomic uint32_t references; /* atomic */
    _Atomic bool dropped;        /* atomic: no longer in the cache */
    _Atomic bool used;           /* atomic: relaxed; used since it was last examined for eviction */
    bool stays;                  /* guarded by the cache's lock: from SCRIPT LOAD */
    struct list_node node;       /* guarded by the cache's lock: in the list of scripts of EVAL, by last use */
};

/* Parses the first line "#!lua flags=...". False: `error` has the reply. *body is the text to compile. */
must_check bool script_read_shebang(struct slice source, uint32_t *flags, struct slice *body, char *error,
                                    size_t error_size);

/* True if the text shows that the script keeps to the keys it is given: script_keys.h. */
bool script_keeps_to_keys(struct slice source);

void script_cache_setup(void);
void script_cache_teardown(void);
struct script *script_cache_find(struct slice sha); /* acquired; NULL: none; case-insensitive */
/* Returns the existing script or a new one, acquired. */
struct script *script_cache_add(struct slice sha, struct slice source, uint32_t flags, bool stays);
void script_release(struct script **script);
void script_cache_flush(void);

struct script_cache_facts {
    uint64_t count, bytes, evicted;
};
void script_cache_facts(struct script_cache_facts *facts);

/* Call it when a worker runs a compiled script without a lookup in the cache. */
static inline void script_mark_used(struct script *script)
{
    if (!atomic_load_explicit(&script->used, memory_order_relaxed))
        atomic_store_explicit(&script->used, true, memory_order_relaxed);
}
static inline bool script_is_dropped(const struct script *script)
{
    return atomic_load_explicit(&script->dropped, memory_order_acquire);
}
