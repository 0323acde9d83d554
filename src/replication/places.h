/* Places: where replicas that have gone can continue. This module decides which one belongs to a replica that asks for
 * the stream; it knows no journal and no lock.
 *
 * A replica says nothing that names it but the address of its listener, which others may share: behind one address that
 * is translated, with the same announced port. What it asks for tells them apart: it has applied what it acknowledged
 * last, and no more than it was sent.
 *
 *  1. If a place with its address covers the offset, it gets one with this address: that with the greatest acknowledged
 *     offset that is not beyond the one asked for, even if that was another's, and even if less was sent there. What
 *     it left was acknowledged no further than what it takes, so the owner of that is served, too. (Only among those
 *     that cover the offset this would not hold: one that had another's place before may not be covered by it.)
 *  2. A place that does not cover the offset is taken only if nobody else has that address. The replica got its data
 *     elsewhere, and does not need the place any more.
 *  3. Else it gets a new place, and the old ones stay: a replica with another port leaves its old place to the time
 *     limit. */
#pragma once

#include "base/compiler.h"
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

enum { PLACE_IP_MOST = 255 };

struct place {
    struct list_node node;
    char ip[PLACE_IP_MOST + 1]; /* as REPLICA_IP_MOST */
    int port;
    uint64_t acked, sent; /* offsets of the journal, when it was left */
};

struct place_wish {
    const char *ip;
    int port;
    uint64_t offset; /* the first byte that it does not have */
    bool is_shared;  /* a connected replica has this address, too */
};

/* One of these (struct place), or NULL: a new place is needed. */
struct place *places_choose(const struct list *places, const struct place_wish *wish);
