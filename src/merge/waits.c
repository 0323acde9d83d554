#include "merge/waits.h"

#include "base/array.h"
#include "base/compiler.h"

static struct merge_wait *wait_of(const struct merge_waits *waits, uint64_t name)
{
    for (uint32_t i = 0; i < waits->count; i++) {
        if (waits->items[i].name == name)
            return &waits->items[i];
    }
    return NULL;
}

/* Something has come of what was not here. */
static bool comes(const struct merge_wait *wait, const struct merge_vector *vector)
{
    for (uint32_t i = 0; i < wait->lacks.count; i++) {
        const struct merge_lack *lack = &wait->lacks.items[i];

        if (merge_vector_get(vector, lack->origin) > lack->here)
            return true;
    }
    return false;
}

static uint64_t since_last_ms(const struct merge_wait *wait, uint64_t now_ms)
{
    return now_ms > wait->last_ms ? now_ms - wait->last_ms : 0;
}

/* How long it has waited by now, with nothing that came. */
static uint64_t waited_ms(const struct merge_wait *wait, uint64_t now_ms)
{
    return wait->waited_ms + MIN(since_last_ms(wait, now_ms), (uint64_t)MERGE_WAITS_STEP_MS);
}

static bool was_away(const struct merge_wait *wait, uint64_t now_ms)
{
    return since_last_ms(wait, now_ms) >= MERGE_WAITS_AWAY_MS;
}

enum merge_waited merge_waits_look(const struct merge_waits *waits, const struct merge_state *state,
                                   const struct merge_hello *hello, uint64_t now_ms)
{
    const struct merge_wait *wait = wait_of(waits, hello->name);

    if (wait == NULL || was_away(wait, now_ms) || waited_ms(wait, now_ms) < MERGE_WAITS_MS ||
        comes(wait, &state->vector))
        return MERGE_WAITED_NOT;
    return waited_ms(wait, now_ms) < MERGE_WAITS_LONG_MS ? MERGE_WAITED_IN_VAIN : MERGE_WAITED_LONG_IN_VAIN;
}

/* What has come is not lacked any more, or is further. */
static void take_what_came(struct merge_lacks *lacks, const struct merge_vector *vector)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < lacks->count; i++) {
        struct merge_lack lack = lacks->items[i];

        lack.here = merge_vector_get(vector, lack.origin);
        if (lack.here < lack.end)
            lacks->items[kept++] = lack;
    }
    lacks->count = kept;
}

static void begin(struct merge_waits *waits, const struct merge_vector *vector, const struct merge_hello *hello,
                  uint64_t now_ms)
{
    struct merge_wait *wait = ARRAY_PUSH(waits);

    *wait = (struct merge_wait){.name = hello->name, .last_ms = now_ms};
    for (uint32_t i = 0; i < hello->deeds.count; i++) {
        const struct merge_vector_item *deed = &hello->deeds.items[i];
        const uint64_t here = merge_vector_get(vector, deed->id);

        if (deed->stamp > here)
            *ARRAY_PUSH(&wait->lacks) = (struct merge_lack){deed->id, here, deed->stamp};
    }
}

static void end(struct merge_waits *waits, struct merge_wait *wait)
{
    ARRAY_FINI(&wait->lacks);
    *wait = waits->items[--waits->count];
}

/* Who does not come again is forgotten. */
static void end_those_away(struct merge_waits *waits, uint64_t now_ms)
{
    for (uint32_t i = waits->count; i-- != 0;) {
        if (was_away(&waits->items[i], now_ms))
            end(waits, &waits->items[i]);
    }
}

void merge_waits_note(struct merge_waits *waits, const struct merge_state *state, const struct merge_hello *hello,
                      enum merge_offer offer, uint64_t now_ms)
{
    struct merge_wait *wait;

    end_those_away(waits, now_ms);
    wait = wait_of(waits, hello->name);
    if (wait != NULL) {
        wait->waited_ms = comes(wait, &state->vector) ? 0 : waited_ms(wait, now_ms);
        wait->last_ms = MAX(wait->last_ms, now_ms);
        take_what_came(&wait->lacks, &state->vector);
        if (offer != MERGE_OFFER_WAIT || wait->lacks.count == 0) {
            end(waits, wait);
            wait = NULL;
        }
    }
    if (wait == NULL && offer == MERGE_OFFER_WAIT)
        begin(waits, &state->vector, hello, now_ms);
}

void merge_waits_fini(struct merge_waits *waits)
{
    for (uint32_t i = 0; i < waits->count; i++)
        ARRAY_FINI(&waits->items[i].lacks);
    ARRAY_FINI(waits);
}
