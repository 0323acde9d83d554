#include "merge/asks.h"

#include "base/array.h"
#include "merge/broken.h"

void merge_asks_fini(struct merge_asks *asks)
{
    mem_free(asks->items);
    *asks = (struct merge_asks){0};
}

static struct merge_ask *find(const struct merge_asks *asks, uint64_t origin)
{
    for (uint32_t i = 0; i < asks->count; i++) {
        if (asks->items[i].origin == origin)
            return &asks->items[i];
    }
    return NULL;
}

/* Has this link had more before, and nothing has come since? */
static bool stands_still(struct merge_ask *ask, uint32_t link, uint64_t offered, uint64_t have)
{
    if (offered <= have || merge_broken(MERGE_BREAK_ASK_ONCE))
        return false;
    if (ask->ahead == link && ask->ahead_have == have)
        return true;
    if (ask->ahead == MERGE_LINK_NONE || ask->ahead_have != have) {
        ask->ahead = link;
        ask->ahead_have = have;
    }
    return false;
}

enum merge_ask_answer merge_asks_offered(struct merge_asks *asks, uint32_t link, struct merge_vector_item offer,
                                         bool direct, uint64_t have, uint32_t *other)
{
    struct merge_ask *ask = find(asks, offer.id);

    if (ask == NULL) {
        *ARRAY_PUSH(asks) = (struct merge_ask){offer.id, link, MERGE_LINK_NONE, false, direct, MERGE_LINK_NONE, 0};
        return MERGE_ASK_WANT;
    }
    if (ask->link == link || (!direct && (ask->direct || !stands_still(ask, link, offer.stamp, have))))
        return MERGE_ASK_NOTHING;
    ask->next = link;
    ask->direct = direct;
    if (ask->stopping)
        return MERGE_ASK_NOTHING;
    ask->stopping = true;
    *other = ask->link;
    return MERGE_ASK_STOP;
}

uint32_t merge_asks_stopped(struct merge_asks *asks, uint32_t link, uint64_t origin)
{
    struct merge_ask *ask = find(asks, origin);

    if (ask == NULL || ask->link != link || !ask->stopping)
        return MERGE_LINK_NONE;
    ask->stopping = false;
    ask->link = ask->next;
    ask->next = MERGE_LINK_NONE;
    ask->ahead = MERGE_LINK_NONE;
    if (ask->link == MERGE_LINK_NONE) {
        *ask = asks->items[--asks->count];
        return MERGE_LINK_NONE;
    }
    return ask->link;
}

void merge_asks_release(struct merge_asks *asks, uint32_t link, uint64_t origin)
{
    struct merge_ask *ask = find(asks, origin);

    if (ask != NULL && ask->link == link)
        *ask = asks->items[--asks->count];
}

void merge_asks_down(struct merge_asks *asks, uint32_t link)
{
    for (uint32_t i = asks->count; i-- != 0;) {
        struct merge_ask *ask = &asks->items[i];

        if (ask->ahead == link)
            ask->ahead = MERGE_LINK_NONE;
        if (ask->next == link) {
            ask->next = MERGE_LINK_NONE;
            ask->direct = false;
        }
        if (ask->link == link)
            *ask = asks->items[--asks->count];
    }
}

bool merge_asks_has(const struct merge_asks *asks, uint32_t link, uint64_t origin)
{
    const struct merge_ask *ask = find(asks, origin);

    return ask != NULL && ask->link == link;
}
