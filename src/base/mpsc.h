/* A queue with many producers and one consumer. It is intrusive and unbounded, and never blocks. It keeps the order of
 * each producer. A push is one exchange; the consumer sees a node once its producer has linked it. So a pop may return
 * NULL while a push is half done; producers wake the consumer after each push, so it looks again. The algorithm is the
 * intrusive multi-producer single-consumer queue described by Dmitry Vyukov. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mpsc_node {
    _Atomic(struct mpsc_node *) next;
};

struct mpsc {
    CACHE_ALIGNED _Atomic(struct mpsc_node *) tail; /* atomic: producers exchange it */
    CACHE_ALIGNED struct mpsc_node *head;           /* owner: the consumer */
    struct mpsc_node sentinel;
};

void mpsc_init(struct mpsc *queue);
void mpsc_push(struct mpsc *queue, struct mpsc_node *node); /* any thread */
struct mpsc_node *mpsc_pop(struct mpsc *queue);             /* the consumer's thread; NULL: no linked node */
bool mpsc_is_empty(const struct mpsc *queue);               /* the consumer's thread; true only if no push has begun */
