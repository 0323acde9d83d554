#include "data/stream_value.h"

#include "data/stream_idmp.h"

static void destroy(struct value value)
{
    struct stream *stream = stream_of(value);

    stream_destroy(&stream);
}

static struct value copy(struct value value)
{
    return stream_value(stream_copy(stream_of(value)));
}

static uint64_t memory_bytes(struct value value, uint64_t samples)
{
    return stream_memory_bytes(stream_of(value), samples);
}

/* Nobody asks whether it is more. */
enum { EFFORT_MOST = 1024 };

/* The nodes, and for each group its consumers and pending entries, until these are many. */
static uint64_t free_effort(struct value value)
{
    const struct stream *stream = stream_of(value);
    struct stream_idmp_facts idmp = {.pair_count = 0};
    uint64_t effort = stream_node_count(stream) + radix_count(stream_groups(stream));
    struct radix_iter groups;

    if (stream_idmp_facts(stream, &idmp))
        effort += idmp.pair_count;
    radix_iter_init(&groups, stream_groups(stream));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more && effort < EFFORT_MOST;
         more = radix_next(&groups)) {
        const struct stream_group *group = groups.value;

        effort += radix_count(group->consumers) + radix_count(group->pending);
    }
    radix_iter_fini(&groups);
    return effort;
}

static uint64_t relocate(struct value *value, uint64_t position, uint64_t most, struct mem_mover *mover)
{
    struct stream *stream = stream_of(*value);

    position = stream_relocate(&stream, position, most, mover);
    value->data = stream;
    return position;
}

static void undo(struct value *value, const struct value_step *step)
{
    stream_undo(stream_of(*value), step);
}

static void validate(struct value value)
{
    stream_validate(stream_of(value));
}

const struct value_ops stream_ops = {.destroy = destroy,
                                     .copy = copy,
                                     .memory_bytes = memory_bytes,
                                     .free_effort = free_effort,
                                     .relocate = relocate,
                                     .undo = undo,
                                     .validate = validate,
                                     .former = &stream_former};
