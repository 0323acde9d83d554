#include "replication/places.h"

#include <string.h>

static bool has_address(const struct place *place, const struct place_wish *wish)
{
    return place->port == wish->port && strcmp(place->ip, wish->ip) == 0;
}

struct place *places_choose(const struct list *places, const struct place_wish *wish)
{
    struct place *best = NULL, *last = NULL;
    unsigned count = 0;
    bool is_covered = false;

    LIST_FOREACH(node, places) {
        struct place *place = container_of(node, struct place, node);

        if (!has_address(place, wish))
            continue;
        count++;
        last = place;
        if (place->acked > wish->offset)
            continue;
        is_covered = is_covered || wish->offset <= place->sent;
        if (best == NULL || place->acked > best->acked)
            best = place;
    }
    if (is_covered)
        return best;
    return count == 1 && !wish->is_shared && last->acked <= wish->offset ? last : NULL;
}
