#include "data/list.h"

#include "base/mem.h"

struct value list_create(const struct quicklist_limits *limits)
{
    return (struct value){quicklist_create(limits), ENCODING_QUICKLIST};
}

static void destroy(struct value value)
{
    struct quicklist *list = list_of(value);

    quicklist_destroy(&list);
}

static struct value copy(struct value value)
{
    return (struct value){quicklist_copy(list_of(value)), ENCODING_QUICKLIST};
}

static uint64_t memory_bytes(struct value value, uint64_t samples)
{
    (void)samples; /* nodes are few */
    return quicklist_memory_bytes(list_of(value));
}

static uint64_t free_effort(struct value value)
{
    return quicklist_node_count(list_of(value));
}

static uint64_t relocate(struct value *value, uint64_t position, uint64_t most, struct mem_mover *mover)
{
    struct quicklist *list = list_of(*value);

    position = quicklist_relocate(&list, position, most, mover);
    value->data = list;
    return position;
}

static uint64_t count(struct value value)
{
    return quicklist_count(list_of(value));
}

static void undo(struct value *value, const struct value_step *step)
{
    quicklist_undo(list_of(*value), step);
}

static void validate(struct value value)
{
    quicklist_validate(list_of(value));
}

const struct value_ops list_ops = {.destroy = destroy,
                                   .copy = copy,
                                   .memory_bytes = memory_bytes,
                                   .free_effort = free_effort,
                                   .relocate = relocate,
                                   .count = count,
                                   .undo = undo,
                                   .validate = validate,
                                   .former = &quicklist_former};
