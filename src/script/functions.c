#include "script/functions.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/gate.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "base/table.h"
#include "base/words.h"
#include "server/core/worker.h"

#include <stdio.h>

enum { FOLDED_MOST = 512 };

static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY */
    struct library **libraries GUARDED_BY(lock);
    uint32_t count GUARDED_BY(lock);
    struct table functions GUARDED_BY(lock); /* of struct function, by name in any case */
    _Atomic uint64_t bytes;                  /* atomic, relaxed */
} set;

/* ---------------------------------------------------------------------------------------------------- libraries -- */

bool library_name_is_fine(struct slice name)
{
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];

        if (!((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9') && c != '_')
            return false;
    }
    return name.size != 0;
}

/* Engine and name=... in the words of the first line. */
static bool read_words(const struct words *words, struct slice *name, struct buffer *error)
{
    bool named = false;

    for (size_t i = 1; i < words->count; i++) {
        struct slice word = words->items[i];

        if (word.size < 5 || !slice_equal_nocase(slice_make(word.data, 5), SLICE("name="))) {
            buffer_printf(error, "ERR Invalid metadata value given: %.*s", (int)MIN(word.size, (size_t)128), word.data);
            return false;
        }
        if (named) {
            buffer_append_text(error, "ERR Invalid metadata value, name argument was given multiple times");
            return false;
        }
        named = true;
        *name = slice_skip(word, 5);
    }
    if (!named)
        buffer_append_text(error, "ERR Library name was not given");
    else if (!library_name_is_fine(*name))
        buffer_append_text(error, "ERR Library names can only contain letters, numbers, or underscores(_) and must be "
                                  "at least one character long");
    else if (!slice_equal_nocase(words->items[0], SLICE("#!lua")))
        buffer_printf(error, "ERR Engine '%.*s' not found", (int)MIN(words->items[0].size - 2, (size_t)128),
                      words->items[0].data + 2);
    else
        return true;
    return false;
}

bool library_read_head(struct slice code, char **name, struct slice *body, struct buffer *error)
{
    const char *end = code.size == 0 ? NULL : memchr(code.data, '\n', code.size);
    struct words words = {0};
    struct slice found = SLICE_EMPTY;
    bool fine = false;

    if (code.size < 2 || memcmp(code.data, "#!", 2) != 0)
        buffer_append_text(error, "ERR Missing library metadata");
    else if (end == NULL || !words_split(slice_make(code.data, (size_t)(end - code.data)), &words) || words.count == 0)
        buffer_append_text(error, "ERR Invalid library metadata");
    else
        fine = read_words(&words, &found, error);
    if (fine) {
        *name = mem_copy(found.data, found.size);
        *body = slice_skip(code, (size_t)(end - code.data)); /* from the line break on: lines keep their numbers */
    }
    words_fini(&words);
    return fine;
}

struct library *library_create(struct slice name, struct slice code)
{
    struct library *library = mem_alloc_zero(sizeof(*library));

    library->name = mem_copy(name.data, name.size);
    library->code = slice_make(mem_copy(code.data, code.size), code.size);
    atomic_init(&library->references, 1);
    return library;
}

static uint64_t hash_name(struct slice name)
{
    char folded[FOLDED_MOST];
    size_t size = MIN(name.size, sizeof(folded));

    for (size_t i = 0; i < size; i++)
        folded[i] = slice_lower(name.data[i]);
    return hash_bytes(folded, size);
}

bool library_add_function(struct library *library, struct slice name, const char *description, uint32_t flags)
{
    uint32_t index = library->functions.count;
    struct function *function;

    for (uint32_t i = 0; i < library->functions.count; i++) {
        if (slice_equal_nocase(slice_from_text(library->functions.items[i].name), name))
            return false;
    }
    function = ARRAY_PUSH(&library->functions);
    *function = (struct function){.library = library, .index = index, .flags = flags};
    function->name = mem_copy(name.data, name.size);
    function->description = description != NULL ? mem_copy_text(description) : NULL;
    function->hash = hash_name(name);
    return true;
}

void library_release(struct library **library)
{
    struct library *last = *library;
    uint32_t references;

    *library = NULL;
    if (last == NULL)
        return;
    references = atomic_fetch_sub_explicit(&last->references, 1, memory_order_acq_rel);
    assert(references != 0);
    if (references != 1)
        return;
    for (uint32_t i = 0; i < last->functions.count; i++) {
        mem_free(last->functions.items[i].name);
        mem_free(last->functions.items[i].description);
    }
    ARRAY_FINI(&last->functions);
    mem_free((char *)(uintptr_t)last->code.data);
    mem_free(last->name);
    mem_free(last);
}

static void library_acquire(struct library *library)
{
    atomic_fetch_add_explicit(&library->references, 1, memory_order_relaxed);
}

static uint64_t library_bytes(const struct library *library)
{
    return sizeof(*library) + library->code.size + library->functions.count * sizeof(struct function);
}

/* ------------------------------------------------------------------------------------------------------ the set -- */

static uint64_t hash_of(const void *item)
{
    return ((const struct function *)item)->hash;
}

static bool has_name(const void *item, const void *key)
{
    return slice_equal_nocase(slice_from_text(((const struct function *)item)->name), *(const struct slice *)key);
}

void functions_setup(void)
{
    gate_assert_main_alone();
    spinlock_init(&set.lock, LOCK_REGISTRY);
}

void functions_teardown(void)
{
    gate_assert_main_alone();
    functions_flush();
}

/* A new set: built beside the current one, and replaces it if all names are free. */
struct draft {
    struct library **libraries;
    uint32_t count;
    struct table functions;
};

static bool draft_add(struct draft *draft, struct library *library, bool shares, struct buffer *error)
{
    for (uint32_t i = 0; i < library->functions.count; i++) {
        struct function *function = &library->functions.items[i];
        struct slice name = slice_from_text(function->name);
        uint64_t *slot = table_find_slot(&draft->functions, function->hash, has_name, &name);

        if (slot == NULL) {
            table_insert(&draft->functions, function->hash, function, hash_of);
        } else if (!shares) {
            buffer_printf(error, "ERR Function %s already exists", function->name);
            return false;
        } else if (strcmp(library->name, ((struct function *)table_slot_item(slot))->library->name) < 0) {
            table_slot_replace(slot, function);
        }
    }
    draft->libraries[draft->count++] = library;
    return true;
}

static struct library *find_in(struct library **libraries, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(libraries[i]->name, name) == 0)
            return libraries[i];
    }
    return NULL;
}

/* The draft becomes the set; libraries that are not in it are dropped. Only an exclusive section changes the set, so
 * reading it here needs no lock. */
static void draft_install(struct draft *draft) NO_THREAD_SAFETY_ANALYSIS
{
    struct library **old = set.libraries;
    uint32_t old_count = set.count;
    struct table functions;
    uint64_t bytes = 0;

    gate_assert_alone();
    for (uint32_t i = 0; i < draft->count; i++) {
        bytes += library_bytes(draft->libraries[i]);
        library_acquire(draft->libraries[i]);
    }
    spinlock_acquire(&set.lock);
    table_move(&functions, &set.functions);
    table_move(&set.functions, &draft->functions);
    set.libraries = draft->libraries;
    set.count = draft->count;
    spinlock_release(&set.lock);
    atomic_store_explicit(&set.bytes, bytes, memory_order_relaxed);
    for (uint32_t i = 0; i < old_count; i++) {
        if (find_in(set.libraries, set.count, old[i]->name) != old[i])
            atomic_store_explicit(&old[i]->dropped, true, memory_order_release);
        library_release(&old[i]);
    }
    mem_free(old);
    table_clear(&functions, NULL, NULL);
}

static bool draft_fill(struct draft *draft, struct library **libraries, uint32_t count, enum functions_policy policy,
                       bool shares, struct buffer *error) NO_THREAD_SAFETY_ANALYSIS
{
    for (uint32_t i = 0; i < set.count && policy != FUNCTIONS_FLUSH; i++) {
        bool replaced = find_in(libraries, count, set.libraries[i]->name) != NULL;

        if (replaced && policy == FUNCTIONS_APPEND) {
            buffer_printf(error, "ERR Library %s already exists", set.libraries[i]->name);
            return false;
        }
        if (!replaced && !draft_add(draft, set.libraries[i], true, error))
            return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!draft_add(draft, libraries[i], shares, error))
            return false;
    }
    return true;
}

bool functions_add(struct library **libraries, uint32_t count, enum functions_policy policy, bool shares,
                   struct buffer *error) NO_THREAD_SAFETY_ANALYSIS
{
    struct draft draft = {.libraries = mem_alloc((set.count + count + 1) * sizeof(struct library *))};

    gate_assert_alone();
    if (draft_fill(&draft, libraries, count, policy, shares, error)) {
        draft_install(&draft);
        return true;
    }
    table_clear(&draft.functions, NULL, NULL);
    mem_free(draft.libraries);
    return false;
}

bool functions_delete(struct slice library_name) NO_THREAD_SAFETY_ANALYSIS
{
    struct draft draft = {.libraries = mem_alloc((set.count + 1) * sizeof(struct library *))};
    struct buffer error = {0};
    bool found = false;

    gate_assert_alone();
    for (uint32_t i = 0; i < set.count; i++) {
        if (slice_equal(slice_from_text(set.libraries[i]->name), library_name))
            found = true;
        else
            (void)draft_add(&draft, set.libraries[i], true, &error);
    }
    draft_install(&draft);
    buffer_fini(&error);
    return found;
}

void functions_flush(void)
{
    struct draft draft = {.libraries = mem_alloc(sizeof(struct library *))};

    gate_assert_alone();
    draft_install(&draft);
}

void functions_assert_steady(void)
{
    const struct worker *worker = worker_self();

    assert(gate_is_alone() || (worker != NULL && gate_is_inside(&worker->member)));
}

bool functions_has_library(struct slice name)
{
    bool found = false;

    spinlock_acquire(&set.lock);
    for (uint32_t i = 0; i < set.count; i++)
        found = found || slice_equal(slice_from_text(set.libraries[i]->name), name);
    spinlock_release(&set.lock);
    return found;
}

bool functions_find_source(struct slice name, struct slice *source) NO_THREAD_SAFETY_ANALYSIS
{
    functions_assert_steady();
    for (uint32_t i = 0; i < set.count; i++) {
        if (slice_equal(slice_from_text(set.libraries[i]->name), name)) {
            *source = set.libraries[i]->code;
            return true;
        }
    }
    return false;
}

struct function *functions_find(struct slice name)
{
    struct function *function;

    spinlock_acquire(&set.lock);
    function = table_find(&set.functions, hash_name(name), has_name, &name);
    if (function != NULL)
        library_acquire(function->library);
    spinlock_release(&set.lock);
    return function;
}

void functions_each(void (*visit)(const struct library *library, void *context), void *context)
{
    spinlock_acquire(&set.lock);
    for (uint32_t i = 0; i < set.count; i++)
        visit(set.libraries[i], context);
    spinlock_release(&set.lock);
}

void functions_each_source(void (*visit)(struct slice source, void *context), void *context) NO_THREAD_SAFETY_ANALYSIS
{
    functions_assert_steady();
    for (uint32_t i = 0; i < set.count; i++)
        visit(set.libraries[i]->code, context);
}

void functions_each_name(void (*visit)(struct slice name, void *context), void *context) NO_THREAD_SAFETY_ANALYSIS
{
    functions_assert_steady();
    for (uint32_t i = 0; i < set.count; i++)
        visit(slice_from_text(set.libraries[i]->name), context);
}

void functions_facts(struct functions_facts *facts)
{
    spinlock_acquire(&set.lock);
    facts->libraries = set.count;
    facts->functions = table_count(&set.functions);
    spinlock_release(&set.lock);
    facts->bytes = atomic_load_explicit(&set.bytes, memory_order_relaxed);
}
