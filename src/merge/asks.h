/* Which origins a node asks for by which link. Each origin comes by one link: its direct one, else the first that
 * offers it. So nothing comes twice on links that were asked. What a closed origin left is asked of all that have more
 * of it, as each may have another part; so closed origins are not in here.
 *
 * When the direct link comes up later, the other one is asked to stop, and only when it has said where it stopped, the
 * direct link is asked, with the vector as it is then. When a link goes down, what came by it is free to be asked of
 * the next that offers it.
 *
 * Nodes could ask each other in a ring for an origin that none of them has a way to. So an origin moves to another
 * link, too, when that one has offered more of it twice and nothing has come in between. */
#pragma once

#include "merge/vector.h"

#include <stdbool.h>
#include <stdint.h>

struct merge_ask {
    uint64_t origin;
    uint32_t link;
    uint32_t next; /* the link to ask when `link` has stopped; MERGE_LINK_NONE: it is not asked to stop */
    bool stopping;
    bool direct;
    uint32_t ahead; /* a link that had more, when only `ahead_have` was here */
    uint64_t ahead_have;
};

#define MERGE_LINK_NONE UINT32_MAX

struct merge_asks {
    struct merge_ask *items;
    uint32_t count, capacity;
};

enum merge_ask_answer {
    MERGE_ASK_NOTHING,
    MERGE_ASK_WANT, /* tell this link that the origin is wanted from the vector on */
    MERGE_ASK_STOP  /* tell the link in *other to stop sending it */
};

void merge_asks_fini(struct merge_asks *asks);
/* The link offers an origin, up to a stamp, that is neither closed nor the node's own; `direct`: it is the sender's
 * own; `have`: the stamp up to which it is here. Called with each heartbeat. */
enum merge_ask_answer merge_asks_offered(struct merge_asks *asks, uint32_t link, struct merge_vector_item offer,
                                         bool direct, uint64_t have, uint32_t *other);
/* The link has stopped sending the origin. Returns the link to ask now, or MERGE_LINK_NONE. */
uint32_t merge_asks_stopped(struct merge_asks *asks, uint32_t link, uint64_t origin);
void merge_asks_release(struct merge_asks *asks, uint32_t link, uint64_t origin); /* it cannot be asked there */
void merge_asks_down(struct merge_asks *asks, uint32_t link);
bool merge_asks_has(const struct merge_asks *asks, uint32_t link, uint64_t origin); /* it comes by this link */
