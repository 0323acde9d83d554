/* A heap with the smallest sum first, and an index of it by hash: open addressing with linear probing, at most half
 * full.
 *
 *     slots[i] = place in the heap + 1, or 0          heap[place].slot = i
 *
 * 1. Each entry of the heap has one slot, which names it.
 * 2. Between the slot where a hash begins to look and the slot of its entry no slot is empty. */
#include "base/heavy_hitters.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "base/mem.h"

#include <stdbool.h>
#include <string.h>

struct place {
    struct heavy_hitter hitter;
    char *name; /* owned: the bytes of hitter.name */
    uint32_t slot;
};

struct heavy_hitters {
    uint32_t room, count; /* of the heap */
    uint32_t slot_mask;
    uint32_t *slots;
    struct place heap[];
};

struct heavy_hitters *heavy_hitters_create(uint32_t room)
{
    struct heavy_hitters *hitters;
    uint32_t slot_count = 2;

    assert(room != 0 && room <= HEAVY_HITTERS_ROOM_MOST);
    while (slot_count < 2 * room)
        slot_count *= 2;
    hitters = mem_alloc_zero(sizeof(*hitters) + room * sizeof(struct place));
    hitters->room = room;
    hitters->slot_mask = slot_count - 1;
    hitters->slots = mem_alloc_zero(slot_count * sizeof(*hitters->slots));
    return hitters;
}

void heavy_hitters_destroy(struct heavy_hitters **hitters)
{
    if (*hitters == NULL)
        return;
    for (uint32_t i = 0; i < (*hitters)->count; i++)
        mem_free((*hitters)->heap[i].name);
    mem_free((*hitters)->slots);
    mem_free(*hitters);
    *hitters = NULL;
}

/* -------------------------------------------------------------------------------------------------------- index -- */

static uint32_t next_slot(const struct heavy_hitters *hitters, uint32_t slot)
{
    return (slot + 1) & hitters->slot_mask;
}

static uint32_t home_of(const struct heavy_hitters *hitters, uint64_t hash)
{
    return (uint32_t)hash & hitters->slot_mask;
}

/* The slot of the name, or the empty one where it belongs. */
static uint32_t find_slot(const struct heavy_hitters *hitters, struct slice name, uint64_t hash)
{
    uint32_t slot = home_of(hitters, hash);

    for (; hitters->slots[slot] != 0; slot = next_slot(hitters, slot)) {
        const struct heavy_hitter *hitter = &hitters->heap[hitters->slots[slot] - 1].hitter;

        if (hitter->hash == hash && slice_equal(hitter->name, name))
            break;
    }
    return slot;
}

static void set_place(struct heavy_hitters *hitters, uint32_t index, struct place place)
{
    hitters->heap[index] = place;
    hitters->slots[place.slot] = index + 1;
}

/* Those behind it move up, so that invariant 2 holds. */
static void empty_slot(struct heavy_hitters *hitters, uint32_t empty)
{
    for (uint32_t slot = next_slot(hitters, empty); hitters->slots[slot] != 0; slot = next_slot(hitters, slot)) {
        struct place *place = &hitters->heap[hitters->slots[slot] - 1];
        const uint32_t home = home_of(hitters, place->hitter.hash);

        if (((slot - home) & hitters->slot_mask) < ((slot - empty) & hitters->slot_mask))
            continue; /* its home is behind the empty slot */
        hitters->slots[empty] = hitters->slots[slot];
        place->slot = empty;
        empty = slot;
    }
    hitters->slots[empty] = 0;
}

/* --------------------------------------------------------------------------------------------------------- heap -- */

static uint64_t sum_at(const struct heavy_hitters *hitters, uint32_t index)
{
    return hitters->heap[index].hitter.sum;
}

static void sift_up(struct heavy_hitters *hitters, uint32_t index)
{
    const struct place place = hitters->heap[index];

    while (index != 0 && sum_at(hitters, (index - 1) / 2) > place.hitter.sum) {
        set_place(hitters, index, hitters->heap[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    set_place(hitters, index, place);
}

static void sift_down(struct heavy_hitters *hitters, uint32_t index)
{
    const struct place place = hitters->heap[index];

    for (;;) {
        uint32_t child = 2 * index + 1;

        if (child + 1 < hitters->count && sum_at(hitters, child + 1) < sum_at(hitters, child))
            child++;
        if (child >= hitters->count || sum_at(hitters, child) >= place.hitter.sum)
            break;
        set_place(hitters, index, hitters->heap[child]);
        index = child;
    }
    set_place(hitters, index, place);
}

/* Makes room at the top of the heap; returns the sum that was there. */
static uint64_t drop_smallest(struct heavy_hitters *hitters)
{
    const uint64_t sum = sum_at(hitters, 0);

    empty_slot(hitters, hitters->heap[0].slot);
    mem_free(hitters->heap[0].name);
    return sum;
}

static void add_new(struct heavy_hitters *hitters, struct slice name, uint64_t hash, uint64_t amount)
{
    const bool is_full = hitters->count == hitters->room;
    const uint64_t error = is_full ? drop_smallest(hitters) : 0;
    const uint32_t index = is_full ? 0 : hitters->count++;
    struct place place = {.name = mem_alloc(name.size + 1), .slot = find_slot(hitters, name, hash)};

    if (name.size != 0)
        memcpy(place.name, name.data, name.size);
    place.hitter = (struct heavy_hitter){slice_make(place.name, name.size), hash, error + amount, error};
    set_place(hitters, index, place);
    if (is_full)
        sift_down(hitters, index);
    else
        sift_up(hitters, index);
}

void heavy_hitters_add(struct heavy_hitters *hitters, struct slice name, uint64_t hash, uint64_t amount)
{
    const uint32_t found = hitters->slots[find_slot(hitters, name, hash)];

    if (found == 0) {
        add_new(hitters, name, hash, amount);
        return;
    }
    hitters->heap[found - 1].hitter.sum += amount;
    sift_down(hitters, found - 1);
}

uint32_t heavy_hitters_count(const struct heavy_hitters *hitters)
{
    return hitters->count;
}

struct heavy_hitter heavy_hitters_at(const struct heavy_hitters *hitters, uint32_t index)
{
    assert(index < hitters->count);
    return hitters->heap[index].hitter;
}

void heavy_hitters_validate(const struct heavy_hitters *hitters)
{
    uint32_t used = 0;

    assert(hitters->count <= hitters->room);
    for (uint32_t i = 0; i < hitters->count; i++) {
        const struct place *place = &hitters->heap[i];

        assert(hitters->slots[place->slot] == i + 1);
        assert(find_slot(hitters, place->hitter.name, place->hitter.hash) == place->slot);
        assert(place->hitter.error <= place->hitter.sum);
        assert(i == 0 || sum_at(hitters, (i - 1) / 2) <= place->hitter.sum);
    }
    for (uint32_t slot = 0; slot <= hitters->slot_mask; slot++)
        used += hitters->slots[slot] != 0;
    assert(used == hitters->count);
}
