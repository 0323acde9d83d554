#include "base/mem_control.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#ifndef MEM_LIBC
#include <jemalloc/jemalloc.h>
#endif

#ifdef MEM_LIBC

void mem_control_run_inside(void (*run)(void))
{
    run();
}

int mem_control_number(const char *name, uint64_t *value)
{
    (void)name;
    (void)value;
    return ENOENT;
}

int mem_control_set_number(const char *name, uint64_t value)
{
    (void)name;
    (void)value;
    return ENOENT;
}

int mem_control_text(const char *name, const char **value)
{
    (void)name;
    (void)value;
    return ENOENT;
}

int mem_control_set_text(const char *name, const char *value)
{
    (void)name;
    (void)value;
    return ENOENT;
}

int mem_control_act(const char *name)
{
    (void)name;
    return ENOENT;
}

#else

static void (*run_inside)(void); /* global: for tests, by one thread */

static void *run_for_pages(extent_hooks_t *hooks, void *address, size_t size, size_t alignment, bool *zero,
                           bool *commit, unsigned arena)
{
    (void)hooks;
    (void)address;
    (void)size;
    (void)alignment;
    (void)zero;
    (void)commit;
    (void)arena;
    run_inside();
    return NULL;
}

/* A new arena needs pages for itself. */
void mem_control_run_inside(void (*run)(void))
{
    static extent_hooks_t hooks = {.alloc = run_for_pages}; /* jemalloc keeps the pointer */
    extent_hooks_t *chosen = &hooks;
    unsigned arena;
    size_t size = sizeof(arena);

    run_inside = run;
    (void)mallctl("arenas.create", &arena, &size, &chosen, sizeof(chosen));
}

/* The allocator reveals sizes only by refusing others. Texts are pointers, as long as the longest numbers. So texts are
 * recognised by name, to keep pointers and numbers apart. */
static bool is_text(const char *name)
{
    static const char *const texts[] = {
        "version",
        "config.malloc_conf",
        "opt.metadata_thp",
        "opt.dss",
        "opt.percpu_arena",
        "opt.junk",
        "opt.prof_prefix",
        "opt.stats_print_opts",
        "opt.stats_interval_opts",
        "opt.zero_realloc",
        "opt.thp",
        "thread.prof.name",
    };
    size_t size = strlen(name);

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(name, texts[i]) == 0)
            return true;
    }
    return strncmp(name, "arena.", 6) == 0 && size > 4 && strcmp(name + size - 4, ".dss") == 0;
}

/* Names whose values are neither: commands, lists, functions. */
static bool is_number(const char *name)
{
    return !is_text(name) && strncmp(name, "experimental.", 13) != 0 && strstr(name, "extent_hooks") == NULL;
}

/* A number in as many bytes as the allocator wants. */
union number {
    uint64_t u64;
    uint32_t u32;
    bool truth;
};

static const size_t sizes[] = {sizeof(uint64_t), sizeof(uint32_t), sizeof(bool)};

static uint64_t number_of(union number number, size_t size)
{
    return size == sizeof(uint64_t) ? number.u64 : size == sizeof(uint32_t) ? number.u32 : number.truth;
}

static union number number_in(uint64_t value, size_t size)
{
    union number number = {.u64 = value};

    if (size == sizeof(uint32_t))
        number.u32 = (uint32_t)value;
    else if (size == sizeof(bool))
        number.truth = value != 0;
    return number;
}

int mem_control_number(const char *name, uint64_t *value)
{
    int error = EINVAL;

    if (!is_number(name))
        return EINVAL;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && error == EINVAL; i++) {
        union number number = {0};
        size_t size = sizes[i];

        error = mallctl(name, &number, &size, NULL, 0);
        if (error == 0)
            *value = number_of(number, size);
    }
    return error;
}

int mem_control_set_number(const char *name, uint64_t value)
{
    int error = EINVAL;

    if (!is_number(name))
        return EINVAL;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && error == EINVAL; i++) {
        union number number = number_in(value, sizes[i]);

        error = mallctl(name, NULL, NULL, &number, sizes[i]);
    }
    return error;
}

int mem_control_text(const char *name, const char **value)
{
    size_t size = sizeof(*value);

    if (!is_text(name)) { /* not there, or not a text? */
        size_t mib[16], length = sizeof(mib) / sizeof(mib[0]);
        int error = mallctlnametomib(name, mib, &length);

        return error != 0 ? error : EINVAL;
    }
    return mallctl(name, value, &size, NULL, 0);
}

int mem_control_set_text(const char *name, const char *value)
{
    if (!is_text(name))
        return EINVAL;
    return mallctl(name, NULL, NULL, &value, sizeof(value));
}

static bool ends_with(const char *name, const char *end)
{
    size_t size = strlen(name), end_size = strlen(end);

    return size >= end_size && strcmp(name + size - end_size, end) == 0;
}

/* Resetting or destroying an arena frees memory that is in use. */
int mem_control_act(const char *name)
{
    if (ends_with(name, ".reset") || ends_with(name, ".destroy"))
        return EPERM;
    return mallctl(name, NULL, NULL, NULL, 0);
}

#endif
