#include "merge/waits.h"

#include "base/array.h"

static struct merge_wait *wait_of(const struct merge_waits *waits, uint64_t name)
{
    for (uint32_t i = 0; i < waits->count; i++) {
        if (waits->items[i].name == name)
            return &waits->items[i];
    }
    return NULL;
}

/* Something of what it lacked is where it was. */
static bool stands(const struct merge_wait *wait, const struct merge_vector *vector)
{
    for (uint32_t i = 0; i < wait->lacks.count; i++) {
        if (merge_vector_get(vector, wait->lacks.items[i].id) == wait->lacks.items[i].stamp)
            return true;
    }
    return false;
}

enum merge_waited merge_waits_look(const struct merge_waits *waits, const struct merge_state *state,
                                   const struct merge_hello *hello, uint64_t now_ms)
{
    const struct merge_wait *wait = wait_of(waits, hello->name);
    const uint64_t waited_ms = wait != NULL ? now_ms - wait->since_ms : 0;

    if (waited_ms < MERGE_WAITS_MS || waited_ms >= MERGE_WAITS_MOST_MS || !stands(wait, &state->vector))
        return MERGE_WAITED_NOT;
    return waited_ms < MERGE_WAITS_LONG_MS ? MERGE_WAITED_IN_VAIN : MERGE_WAITED_LONG_IN_VAIN;
}

static void begin(struct merge_waits *waits, const struct merge_vector *vector, const struct merge_hello *hello,
                  uint64_t now_ms)
{
    struct merge_wait *wait = ARRAY_PUSH(waits);

    *wait = (struct merge_wait){.name = hello->name, .since_ms = now_ms};
    for (uint32_t i = 0; i < hello->deeds.count; i++) {
        const struct merge_vector_item *deed = &hello->deeds.items[i];
        const uint64_t here = merge_vector_get(vector, deed->id);

        if (deed->stamp > here)
            merge_vector_set(&wait->lacks, deed->id, here);
    }
}

void merge_waits_note(struct merge_waits *waits, const struct merge_state *state, const struct merge_hello *hello,
                      enum merge_offer offer, uint64_t now_ms)
{
    struct merge_wait *wait = wait_of(waits, hello->name);
    const bool is_over = wait != NULL && (offer != MERGE_OFFER_WAIT || !stands(wait, &state->vector) ||
                                          now_ms - wait->since_ms >= MERGE_WAITS_MOST_MS);

    if (is_over) {
        merge_vector_fini(&wait->lacks);
        *wait = waits->items[--waits->count];
    }
    if ((wait == NULL || is_over) && offer == MERGE_OFFER_WAIT)
        begin(waits, &state->vector, hello, now_ms);
}

void merge_waits_fini(struct merge_waits *waits)
{
    for (uint32_t i = 0; i < waits->count; i++)
        merge_vector_fini(&waits->items[i].lacks);
    ARRAY_FINI(waits);
}
