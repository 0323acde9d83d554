/* memtest_process runs in the ruins of a crashed process, over memory that the running code itself uses: while a page
 * is under test nothing is called and nothing is read but the page and our own stack. That is why the words are
 * volatile (no loop becomes a call of memcpy) and why the functions that touch pages are without stack protector. */
#include "base/memtest.h"

#include "base/clock.h"
#include "base/compiler.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, PAGE_WORDS = PAGE_BYTES / 8, STRETCH_PAGES = 256, LINE_SPACE = 512, TRIES = 3 };

#define UNPROTECTED __attribute__((noinline, no_stack_protector))
#if defined(__clang__) || __GNUC__ < 11
#undef UNPROTECTED
#define UNPROTECTED __attribute__((noinline))
#endif

/* A bijection of 64 bits that makes numbers look random. */
static inline uint64_t scramble(uint64_t number)
{
    number ^= number >> 32;
    number *= UINT64_C(0xd6e8feb86659fd93);
    number ^= number >> 32;
    number *= UINT64_C(0xd6e8feb86659fd93);
    return number ^ number >> 32;
}

enum pattern { PATTERN_ADDRESS, PATTERN_RANDOM, PATTERN_ZEROS, PATTERN_ONES, PATTERN_STRIPES, PATTERN_COUNT };

static inline uint64_t expected(enum pattern pattern, uint64_t index, uint64_t address, uint64_t pass)
{
    switch (pattern) {
    case PATTERN_ADDRESS:
        return address;
    case PATTERN_RANDOM:
        return scramble(index + pass * UINT64_C(0x9e3779b97f4a7c15));
    case PATTERN_ZEROS:
        return 0;
    case PATTERN_ONES:
        return UINT64_MAX;
    default:
        return (index + pass) % 2 == 0 ? UINT64_C(0x5555555555555555) : UINT64_C(0xaaaaaaaaaaaaaaaa);
    }
}

UNPROTECTED size_t memtest_run(volatile uint64_t *words, size_t count, uint64_t pass)
{
    size_t wrong = 0;

    for (int pattern = 0; pattern < PATTERN_COUNT; pattern++) {
        for (size_t i = 0; i < count; i++)
            words[i] = expected((enum pattern)pattern, i, (uint64_t)(uintptr_t)&words[i], pass);
        for (size_t i = 0; i < count; i++)
            wrong += words[i] != expected((enum pattern)pattern, i, (uint64_t)(uintptr_t)&words[i], pass);
    }
    return wrong;
}

/* A word that is wrong once may be the kernel's work: a receive that was under way. */
UNPROTECTED static size_t test_page(volatile uint64_t *page)
{
    volatile uint64_t saved[PAGE_WORDS];
    size_t wrong = 1;

    for (int i = 0; i < PAGE_WORDS; i++)
        saved[i] = page[i];
    for (uint64_t attempt = 0; wrong != 0 && attempt < TRIES; attempt++)
        wrong = memtest_run(page, PAGE_WORDS, attempt);
    for (int i = 0; i < PAGE_WORDS; i++)
        page[i] = saved[i];
    return wrong;
}

struct walk {
    struct memtest_result result;
    uintptr_t spared_from, spared_to;
    int64_t deadline_us;
};

static bool is_spared(const struct walk *walk, uintptr_t page)
{
    return page + PAGE_BYTES > walk->spared_from && page < walk->spared_to;
}

static void test_stretch(struct walk *walk, uintptr_t from, size_t page_count)
{
    unsigned char resident[STRETCH_PAGES];

    if (mincore((void *)from, page_count * PAGE_BYTES, resident) != 0)
        return;
    for (size_t i = 0; i < page_count; i++) {
        uintptr_t page = from + i * PAGE_BYTES;
        size_t wrong;

        if ((resident[i] & 1) == 0 || is_spared(walk, page))
            continue;
        wrong = test_page((volatile uint64_t *)page);
        walk->result.tested_bytes += PAGE_BYTES;
        if (wrong != 0 && walk->result.first_wrong == NULL)
            walk->result.first_wrong = (const void *)page;
        walk->result.wrong_words += wrong;
    }
}

static void test_mapping(struct walk *walk, uintptr_t from, uintptr_t to)
{
    while (from < to && walk->result.is_complete) {
        size_t page_count = MIN((to - from) / PAGE_BYTES, (uintptr_t)STRETCH_PAGES);

        test_stretch(walk, from, page_count);
        from += page_count * PAGE_BYTES;
        if ((int64_t)clock_monotonic_us() > walk->deadline_us)
            walk->result.is_complete = 0;
    }
}

static uintptr_t parse_hex(const char **at)
{
    uintptr_t number = 0;

    for (;; (*at)++) {
        char c = **at;

        if (c >= '0' && c <= '9')
            number = number << 4 | (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            number = number << 4 | (uintptr_t)(c - 'a' + 10);
        else
            return number;
    }
}

/* Parses "from-to rw-p ...". Shared memory and the kernel's own mappings are not tested. */
static void test_line(struct walk *walk, const char *line)
{
    const char *at = line;
    uintptr_t from = parse_hex(&at);
    uintptr_t to = *at == '-' ? (at++, parse_hex(&at)) : 0;

    if (to > from && strncmp(at, " rw-p", 5) == 0 && strstr(line, "[v") == NULL)
        test_mapping(walk, from, to);
}

struct memtest_result memtest_process(const void *spared, size_t spared_size, int64_t limit_ms)
{
    struct walk walk = {.result = {.is_complete = 1},
                        .spared_from = (uintptr_t)spared,
                        .spared_to = (uintptr_t)spared + spared_size,
                        .deadline_us = (int64_t)clock_monotonic_us() + limit_ms * 1000};
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    char line[LINE_SPACE], c;
    size_t size = 0;

    while (maps >= 0 && walk.result.is_complete && read(maps, &c, 1) == 1) {
        if (c != '\n') {
            if (size < sizeof(line) - 1)
                line[size++] = c;
            continue;
        }
        line[size] = '\0';
        size = 0;
        test_line(&walk, line);
    }
    if (maps >= 0)
        close(maps);
    return walk.result;
}
