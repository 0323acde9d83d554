/* Streams as they were. They are given node by node, in the order of ids: those that have changed since, from here, and
 * the others from the live stream. What is kept of a node is its state before its first change; so what a later change
 * takes back is not looked at. Nodes behind the last one of the moment are no concern of ours.
 *
 * Behind the nodes come the groups (former_groups.h). */
#include "base/assert.h"
#include "base/mem.h"
#include "data/former.h"
#include "data/former_groups.h"
#include "data/stream_kept.h"
#include "data/stream_node.h"
#include "data/stream_priv.h"
#include "data/stream_value.h"

struct was {               /* a node that has changed */
    struct listpack *node; /* NULL: it was not there */
    uint64_t call;         /* of former_keep, the one that made it */
};

struct stream_former {
    struct former former;
    struct stream
        *rest; /* without nodes, but with the length of the moment; at most one group (former_groups_survey) */
    struct former_groups *groups;
    struct radix *kept;    /* id -> was; of nodes at `next` ... `last` */
    struct stream_id next; /* nodes before it were given */
    struct stream_id last; /* the last node of the moment */
    uint64_t call;
    uint64_t own_bytes, node_bytes; /* memory: of this and the rest, of the kept nodes */
    bool has_nodes;                 /* all were given */
};

static struct stream_former *stream_former_of(const struct former *former)
{
    return container_of((struct former *)(uintptr_t)former, struct stream_former, former);
}

static void count_bytes(struct stream_former *of)
{
    of->former.bytes = of->own_bytes + of->node_bytes + former_groups_bytes(of->groups) + radix_memory_bytes(of->kept) +
                       radix_count(of->kept) * mem_good_size(sizeof(struct was));
}

/* ------------------------------------------------------------------------------------------------------ keeping -- */

/* Where the state before a change goes. NULL: the node was given, or what it was is known from an earlier call. */
static struct was *was_of(struct stream_former *of, struct slice key)
{
    const struct stream_id id = stream_id_decode(key.data);
    struct was *was;
    void *known;

    if (of->has_nodes || stream_id_compare(id, of->next) < 0 || stream_id_compare(id, of->last) > 0)
        return NULL;
    if (radix_find(of->kept, key, &known)) {
        was = known;
        return was->call == of->call ? was : NULL;
    }
    was = mem_alloc(sizeof(*was));
    *was = (struct was){NULL, of->call};
    radix_set(of->kept, key, was, NULL);
    return was;
}

static void keep_node(struct stream_former *of, const struct value_step *step)
{
    struct was *was = was_of(of, step->first);

    if (was == NULL)
        return;
    of->node_bytes -= mem_usable(was->node);
    listpack_destroy(&was->node);
    if (step->a != 0)
        was->node = listpack_from_bytes(step->second);
    of->node_bytes += mem_usable(was->node);
}

static struct listpack *copy_live(const struct stream *stream, struct slice key)
{
    struct listpack *own, *node;
    void *kept = NULL;
    const bool is_there = radix_find(stream->nodes, key, &kept);

    assert(is_there);
    node = listpack_copy(stream_kept_read(kept, &own));
    listpack_destroy(&own);
    return node;
}

static void keep_appended(struct stream_former *of, const struct stream *stream, struct slice key)
{
    struct was *was = was_of(of, key);

    if (was == NULL)
        return;
    of->node_bytes -= mem_usable(was->node);
    if (was->node == NULL) /* it has not changed since: an entry is never appended to a node that is not there */
        was->node = copy_live(stream, key);
    stream_node_cut_last(&was->node);
    of->node_bytes += mem_usable(was->node);
}

/* The newest step comes first: so in one call the state that comes last is the oldest one. */
static void keep(struct former *former, struct value value, struct slice steps)
{
    struct stream_former *of = stream_former_of(former);
    struct value_step step;

    of->call++;
    while (value_steps_take(&steps, &step)) {
        if (step.kind == STREAM_STEP_NODE)
            keep_node(of, &step);
        else if (step.kind == STREAM_STEP_APPENDED)
            keep_appended(of, stream_of(value), step.first);
    }
    count_bytes(of);
}

/* ------------------------------------------------------------------------------------------------------- giving -- */

struct giving {
    struct stream_former *of;
    former_fn fn;
    void *context;
    uint64_t left, bytes_left;
    struct radix_iter live;
    bool has_live;
};

static void give_node(struct giving *giving, struct slice key, const struct listpack *node)
{
    const struct former_element element = {.first = key, .second = listpack_as_bytes(node)};

    giving->fn(&element, giving->context);
    giving->bytes_left -= MIN(giving->bytes_left, element.second.size);
}

static void find_live(struct giving *giving, const struct stream *stream)
{
    char room[STREAM_ID_BYTES];

    radix_iter_init(&giving->live, stream->nodes);
    giving->has_live = radix_seek(&giving->live, RADIX_AT_LEAST, stream_id_encode(giving->of->next, room));
}

static void give_live(struct giving *giving)
{
    struct listpack *own;
    const struct listpack *node = stream_kept_read(giving->live.value, &own);

    give_node(giving, radix_iter_key(&giving->live), node);
    listpack_destroy(&own);
}

static void forget(struct stream_former *of, struct slice key)
{
    void *removed = NULL;
    struct was *was;

    (void)radix_remove(of->kept, key, &removed);
    was = removed;
    of->node_bytes -= mem_usable(was->node);
    listpack_destroy(&was->node);
    mem_free(was);
}

static void pass(struct stream_former *of, struct stream_id id)
{
    of->next = id;
    of->has_nodes = stream_id_compare(id, of->last) == 0 || !stream_id_increment(&of->next);
}

/* The next node that was kept, or that is live and was not kept. */
static void give_next(struct giving *giving)
{
    struct stream_former *of = giving->of;
    struct radix_iter kept;
    int order = -1; /* of the kept one and the live one */

    radix_iter_init(&kept, of->kept);
    if (!radix_seek(&kept, RADIX_FIRST, SLICE_EMPTY))
        order = 1;
    else if (giving->has_live)
        order = memcmp(kept.key, giving->live.key, STREAM_ID_BYTES);
    if (order <= 0) {
        const struct was *was = kept.value;

        if (was->node != NULL)
            give_node(giving, radix_iter_key(&kept), was->node);
        pass(of, stream_id_decode(kept.key));
        forget(of, radix_iter_key(&kept));
    } else {
        assert(giving->has_live); /* the last node of the moment is one or the other */
        give_live(giving);
        pass(of, stream_id_decode(giving->live.key));
    }
    if (order >= 0)
        giving->has_live = radix_next(&giving->live);
    radix_iter_fini(&kept);
}

static void give_nodes(struct giving *giving, const struct stream *stream)
{
    find_live(giving, stream);
    for (; !giving->of->has_nodes && giving->left != 0 && giving->bytes_left != 0; giving->left--)
        give_next(giving);
    radix_iter_fini(&giving->live);
}

static bool give(struct former *former, struct value value, uint64_t most, former_fn fn, void *context)
{
    struct stream_former *of = stream_former_of(former);
    struct giving giving = {.of = of, .fn = fn, .context = context, .left = most, .bytes_left = FORMER_PIECE_BYTES};
    bool more = true;

    if (!of->has_nodes)
        give_nodes(&giving, stream_of(value));
    if (of->has_nodes)
        more = former_groups_give(of->groups, &giving.left, &giving.bytes_left, fn, context);
    count_bytes(of);
    return more;
}

/* -------------------------------------------------------------------------------------------------------- whole -- */

static struct stream *copy_rest(const struct stream *stream)
{
    struct stream *rest = mem_copy(stream, sizeof(*stream));

    rest->nodes = radix_create();
    rest->node_bytes = 0;
    rest->groups = radix_create();
    rest->formers = NULL;
    rest->idmp = stream_idmp_copy(stream->idmp);
    return rest;
}

static struct former *create(struct value value)
{
    struct stream *stream = stream_of(value);
    struct stream_former *of = mem_alloc_zero(sizeof(*of));
    struct radix_iter nodes;

    of->former.ops = &stream_former;
    of->former.count = stream_node_count(stream);
    of->rest = copy_rest(stream);
    of->groups = former_groups_create(stream, &of->former);
    of->own_bytes = mem_usable(of) + stream_memory_bytes(of->rest, 0);
    of->kept = radix_create();
    radix_iter_init(&nodes, stream->nodes);
    of->has_nodes = !radix_seek(&nodes, RADIX_LAST, SLICE_EMPTY);
    if (!of->has_nodes)
        of->last = stream_id_decode(nodes.key);
    radix_iter_fini(&nodes);
    count_bytes(of);
    return &of->former;
}

static struct value rest(const struct former *former)
{
    return stream_value(stream_former_of(former)->rest);
}

static bool prepare(struct former *former, struct value value, uint64_t most)
{
    struct stream_former *of = stream_former_of(former);
    const bool more = former_groups_survey(of->groups, of->rest, most);

    (void)value; /* its groups are looked at */
    of->own_bytes = mem_usable(of) + stream_memory_bytes(of->rest, 0);
    count_bytes(of);
    return more;
}

static void was_free(void *value)
{
    struct was *was = value;

    listpack_destroy(&was->node);
    mem_free(was);
}

static void detach(struct former *former)
{
    former_groups_detach(stream_former_of(former)->groups);
}

static void destroy(struct former *former)
{
    struct stream_former *of = stream_former_of(former);

    radix_destroy(&of->kept, was_free);
    former_groups_destroy(&of->groups);
    stream_destroy(&of->rest);
    mem_free(of);
}

const struct former_ops stream_former = {.create = create,
                                         .keep = keep,
                                         .prepare = prepare,
                                         .give = give,
                                         .rest = rest,
                                         .detach = detach,
                                         .destroy = destroy,
                                         .ignored = 1U << STREAM_STEP_IDS | 1U << STREAM_STEP_GROUP |
                                                    1U << STREAM_STEP_IDMP | 1U << STREAM_STEP_IDMP_PAIR};
