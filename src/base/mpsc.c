#include "base/mpsc.h"

void mpsc_init(struct mpsc *queue)
{
    atomic_init(&queue->sentinel.next, NULL);
    atomic_init(&queue->tail, &queue->sentinel);
    queue->head = &queue->sentinel;
}

void mpsc_push(struct mpsc *queue, struct mpsc_node *node)
{
    struct mpsc_node *before;

    atomic_store_explicit(&node->next, NULL, memory_order_relaxed);
    before = atomic_exchange_explicit(&queue->tail, node, memory_order_acq_rel);
    atomic_store_explicit(&before->next, node, memory_order_release);
}

struct mpsc_node *mpsc_pop(struct mpsc *queue)
{
    struct mpsc_node *head = queue->head;
    struct mpsc_node *next = atomic_load_explicit(&head->next, memory_order_acquire);

    if (head == &queue->sentinel) {
        if (next == NULL)
            return NULL;
        queue->head = head = next;
        next = atomic_load_explicit(&head->next, memory_order_acquire);
    }
    if (next == NULL) {
        /* The last node can be removed only when the sentinel follows it. */
        if (atomic_load_explicit(&queue->tail, memory_order_acquire) != head)
            return NULL; /* somebody is between exchange and link */
        mpsc_push(queue, &queue->sentinel);
        next = atomic_load_explicit(&head->next, memory_order_acquire);
        if (next == NULL)
            return NULL;
    }
    queue->head = next;
    return head;
}

bool mpsc_is_empty(const struct mpsc *queue)
{
    return queue->head == &queue->sentinel &&
           atomic_load_explicit(&queue->tail, memory_order_acquire) == &queue->sentinel;
}
