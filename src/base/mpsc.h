/* A queue that many threads push to and one pops from. Intrusive, unbounded, never blocks; order of one producer is
 * kept. Pushing is one exchange; the consumer sees a node once its producer has linked it, so a pop may answer NULL
 * while a push is half done: the producer then wakes the consumer after its push, as always. After the intrusive
 * multi-producer queue described by Dmitry Vyukov. */
#pragma once

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mpsc_node {
    _Atomic(struct mpsc_node *) next;
};

struct mpsc {
    CACHE_ALIGNED _Atomic(struct mpsc_node *) tail; /* producers */
    CACHE_ALIGNED struct mpsc_node *head;           /* owner: the consumer */
    struct mpsc_node sentinel;
};

void mpsc_init(struct mpsc *queue);
void mpsc_push(struct mpsc *queue, struct mpsc_node *node); /* any thread */
struct mpsc_node *mpsc_pop(struct mpsc *queue);             /* the consumer; NULL: nothing complete is there */
bool mpsc_is_empty(const struct mpsc *queue);               /* the consumer; true only if no push has begun */
