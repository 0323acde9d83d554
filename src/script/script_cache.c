#include "script/script_cache.h"

#include "base/assert.h"
#include "base/gate.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "base/table.h"
#include "base/words.h"
#include "script/script_keys.h"
#include "server/command/command.h"

#include <stdio.h>

static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY */
    struct table scripts GUARDED_BY(lock);
    struct list recent GUARDED_BY(lock); /* scripts of EVAL; the most recently used one is last */
    uint64_t recent_count GUARDED_BY(lock);
    _Atomic uint64_t bytes, evicted; /* atomic, relaxed */
} cache;

/* ----------------------------------------------------------------------------------------------------- shebangs -- */

const char *script_flag_name(unsigned index)
{
    static const char *const names[] = {"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"};

    return index < countof(names) ? names[index] : NULL;
}

uint32_t script_command_flags(uint32_t command_flags, uint32_t script_flags)
{
    if ((script_flags & SCRIPT_UNDECLARED) != 0)
        return command_flags; /* its commands are checked one by one */
    command_flags &= ~(uint32_t)(COMMAND_STALE | COMMAND_DENYOOM | COMMAND_WRITE | COMMAND_MAY_REPLICATE);
    if ((script_flags & SCRIPT_NO_WRITES) == 0)
        command_flags |= COMMAND_WRITE;
    if ((script_flags & (SCRIPT_NO_WRITES | SCRIPT_ALLOW_OOM)) == 0)
        command_flags |= COMMAND_DENYOOM;
    if ((script_flags & SCRIPT_ALLOW_STALE) != 0)
        command_flags |= COMMAND_STALE;
    return command_flags;
}

static bool read_flag(struct slice word, uint32_t *flags)
{
    for (unsigned i = 0; script_flag_name(i) != NULL; i++) {
        if (slice_equal(word, slice_from_text(script_flag_name(i)))) {
            *flags |= 1U << i;
            return true;
        }
    }
    return false;
}

static bool read_flags(struct slice list, uint32_t *flags, char *error, size_t error_size)
{
    bool more = list.size != 0;

    while (more) {
        const char *comma = memchr(list.data, ',', list.size);
        size_t size = comma != NULL ? (size_t)(comma - list.data) : list.size;

        more = comma != NULL;
        if (!read_flag(slice_make(list.data, size), flags)) {
            snprintf(error, error_size, "ERR Unexpected flag in script shebang: %.*s", (int)MIN(size, (size_t)128),
                     list.data);
            return false;
        }
        list = slice_skip(list, MIN(size + 1, list.size));
    }
    return true;
}

static bool read_shebang_words(const struct words *words, uint32_t *flags, char *error, size_t error_size)
{
    static const struct slice prefix = {"flags=", 6};

    if (words->count == 0 || !slice_equal(words->items[0], SLICE("#!lua"))) {
        snprintf(error, error_size, "ERR Unexpected engine in script shebang: %.*s",
                 words->count == 0 ? 2 : (int)MIN(words->items[0].size, (size_t)128),
                 words->count == 0 ? "#!" : words->items[0].data);
        return false;
    }
    for (size_t i = 1; i < words->count; i++) {
        struct slice word = words->items[i];

        if (word.size < prefix.size || memcmp(word.data, prefix.data, prefix.size) != 0) {
            snprintf(error, error_size, "ERR Unknown lua shebang option: %.*s", (int)MIN(word.size, (size_t)128),
                     word.data);
            return false;
        }
        if (!read_flags(slice_skip(word, prefix.size), flags, error, error_size))
            return false;
    }
    return true;
}

bool script_read_shebang(struct slice source, uint32_t *flags, struct slice *body, char *error, size_t error_size)
{
    struct words words = {0};
    const char *end;
    bool fine;

    *flags = SCRIPT_UNDECLARED;
    *body = source;
    if (source.size < 2 || memcmp(source.data, "#!", 2) != 0)
        return true;
    *flags = 0;
    end = memchr(source.data, '\n', source.size);
    if (end == NULL) {
        snprintf(error, error_size, "ERR Invalid script shebang");
        return false;
    }
    *body = slice_skip(source, (size_t)(end - source.data)); /* from the line break on: lines keep their numbers */
    fine = words_split(slice_make(source.data, (size_t)(end - source.data)), &words);
    if (!fine)
        snprintf(error, error_size, "ERR Invalid engine in script shebang");
    else
        fine = read_shebang_words(&words, flags, error, error_size);
    words_fini(&words);
    return fine;
}

/* -------------------------------------------------------------------------------------------------------- cache -- */

static uint64_t hash_of(const void *item)
{
    return ((const struct script *)item)->hash;
}

static bool has_sha(const void *item, const void *key)
{
    return memcmp(((const struct script *)item)->sha, key, SCRIPT_SHA_DIGITS) == 0;
}

static uint64_t script_bytes(const struct script *script)
{
    return sizeof(*script) + script->source_size + 1;
}

void script_cache_setup(void)
{
    gate_assert_main_alone();
    spinlock_init(&cache.lock, LOCK_REGISTRY);
    list_init(&cache.recent);
}

void script_cache_teardown(void)
{
    gate_assert_main_alone();
    script_cache_flush();
}

void script_release(struct script **script)
{
    struct script *last = *script;
    uint32_t references;

    *script = NULL;
    if (last == NULL)
        return;
    references = atomic_fetch_sub_explicit(&last->references, 1, memory_order_acq_rel);
    assert(references != 0);
    if (references != 1)
        return;
    mem_free(last->source);
    mem_free(last);
}

static struct script *acquire(struct script *script)
{
    if (script != NULL)
        atomic_fetch_add_explicit(&script->references, 1, memory_order_relaxed);
    return script;
}

/* Was used just now. */
static void touch_locked(struct script *script)
{
    spinlock_assert_held(&cache.lock);
    if (!script->stays) {
        list_remove(&script->node);
        list_push_back(&cache.recent, &script->node);
    }
}

struct script *script_cache_find(struct slice sha)
{
    char lower[SCRIPT_SHA_DIGITS];
    struct script *script;

    if (sha.size != SCRIPT_SHA_DIGITS)
        return NULL;
    for (size_t i = 0; i < SCRIPT_SHA_DIGITS; i++)
        lower[i] = slice_lower(sha.data[i]);
    spinlock_acquire(&cache.lock);
    script = acquire(table_find(&cache.scripts, hash_bytes(lower, sizeof(lower)), has_sha, lower));
    if (script != NULL)
        touch_locked(script);
    spinlock_release(&cache.lock);
    return script;
}

static void drop_locked(struct script *script)
{
    spinlock_assert_held(&cache.lock);
    table_remove(&cache.scripts, script->hash, table_find_slot(&cache.scripts, script->hash, has_sha, script->sha));
    if (!script->stays) {
        assert(cache.recent_count != 0);
        list_remove(&script->node);
        cache.recent_count--;
    }
    atomic_store_explicit(&script->dropped, true, memory_order_release);
    atomic_fetch_sub_explicit(&cache.bytes, script_bytes(script), memory_order_relaxed);
}

/* Returns the least recently used script if there are too many; the caller releases it. */
static struct script *evict_locked(void)
{
    struct script *oldest;

    spinlock_assert_held(&cache.lock);
    if (cache.recent_count <= CACHE_EVAL_MOST)
        return NULL;
    oldest = container_of(list_first(&cache.recent), struct script, node);
    for (uint64_t i = 0; i < cache.recent_count && atomic_exchange_explicit(&oldest->used, false, memory_order_relaxed);
         i++) {
        touch_locked(oldest); /* in use: it gets a second turn */
        oldest = container_of(list_first(&cache.recent), struct script, node);
    }
    drop_locked(oldest);
    atomic_fetch_add_explicit(&cache.evicted, 1, memory_order_relaxed);
    return oldest;
}

bool script_keeps_to_keys(struct slice source)
{
    struct slice body;
    uint32_t flags;
    char error[256];

    return script_read_shebang(source, &flags, &body, error, sizeof(error)) && script_keys_are_declared(body);
}

static struct script *create(struct slice sha, struct slice source, uint32_t flags, bool stays)
{
    struct script *script = mem_alloc_zero(sizeof(*script));

    assert(sha.size == SCRIPT_SHA_DIGITS);
    memcpy(script->sha, sha.data, SCRIPT_SHA_DIGITS);
    script->hash = hash_bytes(script->sha, SCRIPT_SHA_DIGITS);
    script->flags = flags;
    script->keeps_to_keys = script_keeps_to_keys(source);
    script->source = mem_copy(source.data, source.size);
    script->source_size = source.size;
    script->stays = stays;
    atomic_init(&script->references, 2); /* the cache's and the caller's */
    return script;
}

struct script *script_cache_add(struct slice sha, struct slice source, uint32_t flags, bool stays)
{
    struct script *fresh = create(sha, source, flags, stays), *script, *evicted = NULL, *unused = NULL;

    spinlock_acquire(&cache.lock);
    script = acquire(table_find(&cache.scripts, fresh->hash, has_sha, fresh->sha));
    if (script != NULL) {
        unused = fresh;
        if (stays && !script->stays) {
            list_remove(&script->node);
            cache.recent_count--;
            script->stays = true;
        }
    } else {
        script = fresh;
        table_insert(&cache.scripts, script->hash, script, hash_of);
        atomic_fetch_add_explicit(&cache.bytes, script_bytes(script), memory_order_relaxed);
        if (!stays) {
            list_push_back(&cache.recent, &script->node);
            cache.recent_count++;
            evicted = evict_locked();
        }
    }
    spinlock_release(&cache.lock);
    if (unused != NULL) {
        atomic_store_explicit(&unused->references, 1, memory_order_relaxed);
        script_release(&unused);
    }
    script_release(&evicted);
    return script;
}

static void release_item(void *item, void *context)
{
    struct script *script = item;

    (void)context;
    atomic_store_explicit(&script->dropped, true, memory_order_release);
    script_release(&script);
}

void script_cache_flush(void)
{
    struct table scripts;

    spinlock_acquire(&cache.lock);
    table_move(&scripts, &cache.scripts);
    list_init(&cache.recent);
    cache.recent_count = 0;
    atomic_store_explicit(&cache.bytes, 0, memory_order_relaxed);
    spinlock_release(&cache.lock);
    table_clear(&scripts, release_item, NULL);
}

void script_cache_facts(struct script_cache_facts *facts)
{
    spinlock_acquire(&cache.lock);
    facts->count = table_count(&cache.scripts);
    spinlock_release(&cache.lock);
    facts->bytes = atomic_load_explicit(&cache.bytes, memory_order_relaxed);
    facts->evicted = atomic_load_explicit(&cache.evicted, memory_order_relaxed);
}
