/* A walk from the root on. What it is in the midst of is a stack of frames: trees, of which the children up to a place
 * were met, as a table's scan meets them, and at the top maybe a list.
 *
 *     frames     root             "a"              "b"
 *     nodes      [given|to come]  [given|to come]  [given|to come]
 *
 * So of a node that changes, the way from the root tells whether it was given, is in the midst, or comes later.
 *
 *  1. Contents of the moment or before it (nested.born) that are replaced in the midst, or before they were given, are
 *     left to the formers that need them. They share them, and nobody changes them any more.
 *  2. A node whose contents were left has a record, by its address, until it is given. A node that is made later than
 *     the moment has none: the walk passes it by.
 *  3. A tree that gets children before it is given has a record, too: how many it had.
 *  4. A node that a record is of lives as long as the record: it is in the live tree, or in contents that were left to
 *     the same former.
 *
 * What was left and is large is freed with the former, under no lock; so it counts until then. */
#include "data/former_nested.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/nested_priv.h"

#include <stdatomic.h>

enum {
    MEET_MOST = 16,     /* children that the walk meets at once */
    FREED_EFFORT = 16,  /* what was left and takes less to free is freed as soon as it was given */
    MEMORY_SAMPLES = 5, /* to tell what contents take */
};

/* Contents that were replaced. */
struct left {
    _Atomic uint32_t references; /* atomic: formers of several threads give it up; acq_rel, before it is freed */
    uint64_t bytes;              /* const, likewise the rest */
    struct nested contents;
};

/* What a node was (invariants 2 and 3). */
struct kept {
    const struct nested *node;
    struct left *left; /* NULL: its contents are the same, but for new children */
    uint64_t count;    /* of children or texts */
};

/* A tree or a list, some of which was given. */
struct frame {
    const struct nested *node;
    const struct nested *contents; /* of the moment: its own, or those of `left` */
    struct left *left;             /* or NULL */
    uint64_t to_come;              /* children or texts of the moment that were not given yet */
    /* Of a tree: */
    uint64_t place;  /* children of lower places were met */
    bool is_scanned; /* all were met */
    struct {
        const struct nested **items;
        uint32_t count, capacity;
    } met;         /* the last ones that were met */
    uint32_t next; /* of them; those before it were given, or passed by */
};

struct nested_former {
    struct former former;
    struct nested_former *next; /* of the same tree */
    struct nested_tree *tree;   /* only while it is told of changes */
    uint64_t moment;
    bool is_begun;
    struct {
        struct frame *items;
        uint32_t count, capacity;
    } frames; /* begun and empty: all was given */
    struct table kept;
    struct {
        struct left **items;
        uint32_t count, capacity;
    } done; /* given, to be freed with the former */
};

static struct nested_former *nested_former_of(const struct former *former)
{
    return container_of((struct former *)(uintptr_t)former, struct nested_former, former);
}

/* -------------------------------------------------------------------------------------------------- what is left -- */

static struct left *left_create(struct nested *node)
{
    struct left *left = mem_alloc_zero(sizeof(*left));

    nested_move_contents(&left->contents, node);
    left->bytes = mem_usable(left) + nested_contents_bytes(&left->contents, MEMORY_SAMPLES);
    return left;
}

static void left_release(struct left *left)
{
    if (left == NULL || atomic_fetch_sub_explicit(&left->references, 1, memory_order_acq_rel) != 1)
        return;
    nested_free_contents(&left->contents);
    mem_free(left);
}

static struct left *left_acquire(struct nested_former *of, struct left *left)
{
    (void)atomic_fetch_add_explicit(&left->references, 1, memory_order_relaxed);
    of->former.bytes += left->bytes;
    return left;
}

/* It was given. */
static void left_done(struct nested_former *of, struct left *left)
{
    if (left == NULL)
        return;
    if (left->contents.effort <= FREED_EFFORT) {
        of->former.bytes -= left->bytes;
        left_release(left);
    } else {
        *ARRAY_PUSH(&of->done) = left;
    }
}

/* ------------------------------------------------------------------------------------------------------- records -- */

static uint64_t hash_of_node(const struct nested *node)
{
    return (uint64_t)(uintptr_t)node * UINT64_C(0x9E3779B97F4A7C15);
}

static uint64_t kept_hash(const void *item)
{
    return hash_of_node(((const struct kept *)item)->node);
}

static bool kept_matches(const void *item, const void *key)
{
    return ((const struct kept *)item)->node == key;
}

static uint64_t *find_kept(const struct nested_former *of, const struct nested *node)
{
    return table_find_slot(&of->kept, hash_of_node(node), kept_matches, node);
}

/* The record of a node that has none yet. */
static struct kept *keep_node(struct nested_former *of, const struct nested *node, uint64_t count)
{
    struct kept *kept = mem_alloc(sizeof(*kept));

    *kept = (struct kept){.node = node, .count = count};
    table_insert(&of->kept, kept_hash(kept), kept, kept_hash);
    of->former.bytes += mem_usable(kept) + sizeof(uint64_t);
    return kept;
}

/* Takes the record off; false: there is none. */
static bool take_kept(struct nested_former *of, const struct nested *node, struct kept *to)
{
    uint64_t *slot = find_kept(of, node);
    struct kept *kept;

    if (slot == NULL)
        return false;
    kept = table_remove(&of->kept, hash_of_node(node), slot);
    of->former.bytes -= mem_usable(kept) + sizeof(uint64_t);
    *to = *kept;
    mem_free(kept);
    return true;
}

/* ------------------------------------------------------------------------------------------------------- changes -- */

enum stage { STAGE_BEFORE, STAGE_MIDST, STAGE_OVER };

/* Of a child of the moment that is no frame itself. */
static enum stage stage_of_child(const struct frame *frame, const struct nested *node)
{
    const struct slice name = nested_child_name(node);

    assert(frame->contents->kind == NESTED_TREE);
    if (!frame->is_scanned && table_scan_place(hash_bytes(name.data, name.size)) >= frame->place)
        return STAGE_BEFORE;
    for (uint32_t i = frame->next; i < frame->met.count; i++) {
        if (frame->met.items[i] == node)
            return STAGE_BEFORE;
    }
    return STAGE_OVER;
}

/* Of nodes[depth], whose contents are of the moment: then all on the way to it were there. */
static enum stage stage_of(const struct nested_former *of, struct nested *const *nodes, unsigned depth)
{
    const struct frame *frames = of->frames.items;
    unsigned same = 0;

    if (!of->is_begun)
        return STAGE_BEFORE;
    if (of->frames.count == 0)
        return STAGE_OVER;
    while (same <= depth && same < of->frames.count && frames[same].node == nodes[same])
        same++;
    assert(same != 0); /* the root */
    return same > depth ? STAGE_MIDST : stage_of_child(&frames[same - 1], nodes[same]);
}

void nested_formers_note_child(struct nested_tree *tree, struct nested *const *nodes, unsigned depth)
{
    const struct nested *node = nodes[depth];

    for (struct nested_former *of = tree->formers; of != NULL; of = of->next) {
        if (node->born <= of->moment && find_kept(of, node) == NULL && stage_of(of, nodes, depth) == STAGE_BEFORE)
            (void)keep_node(of, node, nested_count(node));
    }
}

/* The contents that nodes[depth] had are left to it. */
static void leave_to(struct nested_former *of, struct nested *const *nodes, unsigned depth, enum stage stage,
                     struct left *left)
{
    const struct nested *node = nodes[depth];

    if (stage == STAGE_MIDST) {
        struct frame *frame = &of->frames.items[depth];

        assert(frame->left == NULL && frame->contents == node);
        frame->contents = &left->contents;
        frame->left = left_acquire(of, left);
    } else {
        const uint64_t *slot = find_kept(of, node);
        struct kept *kept = slot != NULL ? table_slot_item(slot) : keep_node(of, node, nested_count(&left->contents));

        assert(kept->left == NULL);
        kept->left = left_acquire(of, left);
    }
}

bool nested_formers_take(struct nested_tree *tree, struct nested *const *nodes, unsigned depth)
{
    const uint64_t born = nodes[depth]->born;
    struct left *left = NULL;

    for (struct nested_former *of = tree->formers; of != NULL; of = of->next) {
        const enum stage stage = born <= of->moment ? stage_of(of, nodes, depth) : STAGE_OVER;

        if (stage == STAGE_OVER)
            continue;
        if (left == NULL)
            left = left_create(nodes[depth]);
        leave_to(of, nodes, depth, stage, left);
    }
    return left != NULL;
}

/* -------------------------------------------------------------------------------------------------------- giving -- */

struct giving {
    struct nested_former *of;
    former_fn fn;
    void *context;
    uint64_t left, bytes_left;
};

static void spend(struct giving *giving, uint64_t bytes)
{
    giving->left -= MIN(giving->left, 1);
    giving->bytes_left -= MIN(giving->bytes_left, bytes);
}

static bool has_left(const struct giving *giving)
{
    return giving->left != 0 && giving->bytes_left != 0;
}

static void give_part(struct giving *giving, enum nested_part part, struct slice name, struct slice second)
{
    giving->fn(&(struct former_element){.first = name, .second = second, .part = part}, giving->context);
    spend(giving, name.size + second.size);
}

static void push_frame(struct nested_former *of, const struct frame *frame)
{
    const uint32_t capacity = of->frames.capacity;

    *ARRAY_PUSH(&of->frames) = *frame;
    of->former.bytes += (of->frames.capacity - capacity) * sizeof(*frame);
}

static void pop_frame(struct nested_former *of)
{
    struct frame *frame = &of->frames.items[--of->frames.count];

    of->former.bytes -= frame->met.capacity * sizeof(const struct nested *);
    ARRAY_FINI(&frame->met);
    left_done(of, frame->left);
}

/* What the node was. False: there was no such node. */
static bool look_back(struct nested_former *of, const struct nested *node, struct frame *frame)
{
    struct kept kept = {.left = NULL};

    *frame = (struct frame){.node = node, .contents = node};
    if (table_count(&of->kept) != 0 && take_kept(of, node, &kept)) {
        frame->left = kept.left;
        if (kept.left != NULL)
            frame->contents = &kept.left->contents;
        frame->to_come = kept.count;
        return true;
    }
    if (node->born > of->moment)
        return false;
    frame->to_come = nested_count(node);
    return true;
}

static void give_node(struct giving *giving, const struct frame *frame, struct slice name)
{
    struct nested_former *of = giving->of;
    const struct nested_part_head head = {frame->to_come};
    const enum nested_kind kind = nested_kind(frame->contents);

    if (kind == NESTED_TEXT) {
        give_part(giving, NESTED_PART_TEXT, name, nested_text(frame->contents, 0));
        left_done(of, frame->left);
        return;
    }
    give_part(giving, kind == NESTED_TREE ? NESTED_PART_TREE : NESTED_PART_LIST, name,
              slice_make((const char *)&head, sizeof(head)));
    push_frame(of, frame);
}

static void begin(struct giving *giving, const struct nested_tree *tree)
{
    struct frame frame;
    const bool was_there = look_back(giving->of, &tree->root, &frame);

    assert(was_there);
    giving->of->is_begun = true;
    give_node(giving, &frame, SLICE_EMPTY);
}

static void give_texts(struct giving *giving, struct frame *frame)
{
    for (; frame->to_come != 0 && has_left(giving); frame->to_come--)
        give_part(giving, NESTED_PART_ITEM, SLICE_EMPTY,
                  nested_text(frame->contents, frame->contents->texts.count - frame->to_come));
}

static void meet_child(void *item, void *context)
{
    const struct nested_child *child = item;
    struct frame *frame = context;

    *ARRAY_PUSH(&frame->met) = &child->node;
}

/* Children never go one by one, so the table never gets smaller, and none is met twice. */
static void meet_children(struct nested_former *of, struct frame *frame)
{
    const uint32_t capacity = frame->met.capacity;

    assert(!frame->is_scanned);
    frame->met.count = frame->next = 0;
    frame->place = table_scan(&frame->contents->children, frame->place, MEET_MOST, meet_child, frame);
    frame->is_scanned = frame->place == 0;
    of->former.bytes += (frame->met.capacity - capacity) * sizeof(const struct nested *);
}

/* Those that are texts; up to one that is not, which is the top of the stack then. */
static void give_children(struct giving *giving, uint32_t depth)
{
    struct nested_former *of = giving->of;
    struct frame *frame = &of->frames.items[depth], child;

    while (of->frames.count == depth + 1 && frame->to_come != 0 && has_left(giving)) {
        if (frame->next == frame->met.count) {
            meet_children(of, frame);
            continue;
        }
        if (!look_back(of, frame->met.items[frame->next++], &child)) {
            spend(giving, 0);
            continue;
        }
        frame->to_come--;
        give_node(giving, &child, nested_child_name(child.node)); /* the frames may move: then the loop ends */
    }
}

static void give_frame(struct giving *giving, uint32_t depth)
{
    const struct frame *frame = &giving->of->frames.items[depth];

    if (frame->to_come == 0) {
        pop_frame(giving->of);
        spend(giving, 0);
    } else if (frame->contents->kind == NESTED_TREE) {
        give_children(giving, depth);
    } else {
        give_texts(giving, &giving->of->frames.items[depth]);
    }
}

static bool give(struct former *former, struct value value, uint64_t most, former_fn fn, void *context)
{
    struct nested_former *of = nested_former_of(former);
    struct giving giving = {of, fn, context, most, FORMER_PIECE_BYTES};

    if (!of->is_begun)
        begin(&giving, value.data);
    while (of->frames.count != 0 && has_left(&giving))
        give_frame(&giving, of->frames.count - 1);
    assert(of->frames.count != 0 || table_count(&of->kept) == 0);
    return of->frames.count != 0;
}

/* --------------------------------------------------------------------------------------------------------- whole -- */

static struct former *create(struct value value)
{
    struct nested_former *of = mem_alloc_zero(sizeof(*of));
    struct nested_tree *tree = value.data;

    of->former = (struct former){.ops = &former_nested_ops, .count = tree->root.effort, .bytes = mem_usable(of)};
    of->tree = tree;
    of->moment = tree->moment++;
    of->next = tree->formers;
    tree->formers = of;
    return &of->former;
}

/* Changes are told as they are made. */
static void keep(struct former *former, struct value value, struct slice steps)
{
    (void)former;
    (void)value;
    assert(steps.size == 0);
}

static void detach(struct former *former)
{
    struct nested_former *of = nested_former_of(former), **at = &of->tree->formers;

    while (*at != of)
        at = &(*at)->next;
    *at = of->next;
}

static void free_kept(void *item, void *context)
{
    struct kept *kept = item;

    (void)context;
    left_release(kept->left);
    mem_free(kept);
}

static void destroy(struct former *former)
{
    struct nested_former *of = nested_former_of(former);

    for (uint32_t i = 0; i < of->frames.count; i++) {
        left_release(of->frames.items[i].left);
        ARRAY_FINI(&of->frames.items[i].met);
    }
    ARRAY_FINI(&of->frames);
    table_clear(&of->kept, free_kept, NULL);
    for (uint32_t i = 0; i < of->done.count; i++)
        left_release(of->done.items[i]);
    ARRAY_FINI(&of->done);
    mem_free(of);
}

const struct former_ops former_nested_ops = {.create = create,
                                             .keep = keep,
                                             .give = give,
                                             .detach = detach,
                                             .destroy = destroy};
