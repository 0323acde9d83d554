#include "base/list.h"

size_t list_count(const struct list *list)
{
    size_t count = 0;

    LIST_FOREACH(node, list)
        count++;
    return count;
}

void list_validate(const struct list *list)
{
    const struct list_node *node = &list->head;

    do {
        assert(node->next != NULL);
        assert(node->next->before == node);
        node = node->next;
    } while (node != &list->head);
}
