/* cluster.h: the masters of a cluster, and for each of them tags whose slots are its own: with one of them in braces, a
 * key goes to that node. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "tools/benchmark/run.h"
#include "tools/link/link.h"

#include <stdbool.h>
#include <stdint.h>

struct cluster {
    struct cluster_master {
        char *host, *id;
        char **tags;
        uint32_t tag_count;
        struct run_node node; /* it points to the others */
    } * masters;              /* owned */
    uint32_t count, capacity;
};

/* Asks one node. False: `error` says why. Ended with cluster_fini in any case. */
must_check bool cluster_ask(const struct link_target *target, struct cluster *cluster, struct buffer *error);
void cluster_fini(struct cluster *cluster);
