#include "data/sample.h"

#include "base/compiler.h"
#include "base/mem.h"

#include <string.h>

enum { FEW = 3 }; /* up to a third of the items they are drawn one by one, beyond that all pass by */

static uint64_t random_bits(void *context)
{
    return random_u64(context);
}

void *sample_random(const struct table *table, struct random *random)
{
    return table_random(table, random_bits, random);
}

bool sample_pick(struct sample_picker *picker, struct random *random)
{
    bool picked = picker->wanted >= picker->left || random_below(random, picker->left) < picker->wanted;

    picker->left--;
    picker->wanted -= picked;
    return picked;
}

struct passing {
    struct sample_picker picker;
    struct random *random;
    table_item_fn fn;
    void *context;
};

static void pass(void *item, void *context)
{
    struct passing *passing = context;

    if (passing->picker.wanted > 0 && sample_pick(&passing->picker, passing->random))
        passing->fn(item, passing->context);
}

/* A set of addresses, open addressing, at most half full. */
static bool note_address(uintptr_t *seen, uint64_t mask, const void *item)
{
    uint64_t at = ((uintptr_t)item >> 3) * UINT64_C(0x9E3779B97F4A7C15) >> 20 & mask;

    while (seen[at] != 0) {
        if (seen[at] == (uintptr_t)item)
            return false;
        at = (at + 1) & mask;
    }
    seen[at] = (uintptr_t)item;
    return true;
}

static void draw(const struct table *table, struct random *random, uint64_t count, table_item_fn fn, void *context)
{
    uint64_t slots = 8;
    uintptr_t *seen;

    while (slots < 2 * count)
        slots *= 2;
    seen = mem_alloc_zero(slots * sizeof(*seen));
    while (count > 0) {
        void *item = sample_random(table, random);

        if (note_address(seen, slots - 1, item)) {
            fn(item, context);
            count--;
        }
    }
    mem_free(seen);
}

void sample_some(const struct table *table, struct random *random, uint64_t count, table_item_fn fn, void *context)
{
    uint64_t total = table_count(table);

    if (count <= total / FEW) {
        draw(table, random, count, fn, context);
    } else {
        struct passing passing = {{.left = total, .wanted = MIN(count, total)}, random, fn, context};

        table_each(table, pass, &passing);
    }
}

struct measured {
    uint64_t (*bytes)(const void *item);
    uint64_t sum, count;
};

static void measure(void *item, void *context)
{
    struct measured *measured = context;

    measured->sum += measured->bytes(item);
    measured->count++;
}

uint64_t sample_memory(const struct table *table, uint64_t samples, uint64_t (*bytes)(const void *item))
{
    struct measured measured = {.bytes = bytes};
    uint64_t position = 0, total = table_count(table);

    if (samples == 0 || samples >= total) {
        table_each(table, measure, &measured);
        return measured.sum;
    }
    do
        position = table_scan(table, position, samples - measured.count, measure, &measured);
    while (position != 0 && measured.count < samples);
    return measured.count != 0 ? (uint64_t)((double)measured.sum / (double)measured.count * (double)total) : 0;
}
