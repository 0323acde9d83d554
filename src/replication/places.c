#include "replication/places.h"

#include <string.h>

static bool has_address(const struct place *place, const struct place_wish *wish)
{
    return place->port == wish->port && strcmp(place->ip, wish->ip) == 0;
}

static bool covers(const struct place *place, uint64_t offset)
{
    return place->acked <= offset && offset <= place->sent;
}

struct place *places_choose(const struct list *places, const struct place_wish *wish)
{
    struct place *best = NULL, *last = NULL;
    unsigned count = 0;

    LIST_FOREACH(node, places) {
        struct place *place = container_of(node, struct place, node);

        if (!has_address(place, wish))
            continue;
        count++;
        last = place;
        if (covers(place, wish->offset) && (best == NULL || place->acked > best->acked))
            best = place;
    }
    if (best != NULL)
        return best;
    return count == 1 && !wish->is_shared && last->acked <= wish->offset ? last : NULL;
}
