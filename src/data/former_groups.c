#include "data/former_groups.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/mem.h"
#include "base/panic.h"
#include "data/stream_priv.h"

#include <stdatomic.h>
#include <string.h>

/* A consumer with fewer records is not left to formers when it is removed: each record is kept. So formers have few
 * trees to look into. */
enum { CONSUMER_LEFT_LEAST = 1024, LEFT_SAMPLES = 16 };

/* A group or a consumer that was removed; nobody changes it any more. */
struct left {
    _Atomic uint32_t references;      /* atomic: formers of several threads give it up; acq_rel, before it is freed */
    struct stream_group *group;       /* const */
    struct stream_consumer *consumer; /* const; one of both */
    uint64_t bytes;                   /* const */
};

/* A consumer of the moment. */
struct owner {
    int64_t seen_ms, active_ms;
    uint64_t pending_count;
    uint64_t gathered; /* ids that have gone by */
    char *ids;         /* room for all of them; NULL: none has gone by */
    size_t name_size;
    char name[];
};

struct kept {            /* what an entry was */
    struct owner *owner; /* NULL: it was not pending */
    int64_t delivery_ms;
    uint64_t delivery_count;
};

struct group_former {
    struct former_groups *all;
    struct group_former *next;  /* of the same group */
    struct stream_group *group; /* NULL: it was removed, and is not needed any more */
    struct left *left;          /* the group, if it was removed; else NULL */
    struct slice name;          /* a copy */
    struct stream_part_group head;
    struct owner **owners; /* in the order of their names */
    uint64_t consumer_count;
    struct radix *kept; /* id -> kept; NULL: none. These go before what consumers that were removed have */
    struct {
        struct left **items;
        uint32_t count, capacity;
    } consumers; /* that were removed, in this order: what an earlier one has goes before what later ones have */
    struct stream_id next_id;
    struct stream_id last_id; /* the last one that was pending at the moment */
    uint64_t given;
    bool has_walked; /* all that was pending is given */
};

struct former_groups {
    uint64_t bytes;
    bool has_ids;   /* they were given */
    uint64_t group; /* the one that is being given */
    bool has_head;  /* its head was given */
    bool has_count; /* of its consumers, likewise, behind what is pending */
    uint64_t owner; /* of its consumers, the one that is being given */
    bool has_owner; /* its head was given */
    uint64_t owned; /* so many of its ids were given */
    uint64_t count; /* of groups */
    struct group_former *items[];
};

/* ----------------------------------------------------------------------------------------------- what is removed -- */

static struct left *left_create(struct stream_group *group, struct stream_consumer *consumer)
{
    struct left *left = mem_alloc(sizeof(*left));

    *left = (struct left){.group = group, .consumer = consumer};
    left->bytes = group != NULL ? stream_group_memory_bytes(group, LEFT_SAMPLES)
                                : radix_memory_bytes(consumer->pending) +
                                      radix_count(consumer->pending) * mem_good_size(sizeof(struct stream_pending));
    return left;
}

static struct left *left_acquire(struct left *left)
{
    (void)atomic_fetch_add_explicit(&left->references, 1, memory_order_relaxed);
    return left;
}

static void left_release(struct left *left)
{
    if (left == NULL || atomic_fetch_sub_explicit(&left->references, 1, memory_order_acq_rel) != 1)
        return;
    if (left->group != NULL)
        stream_group_free(left->group);
    if (left->consumer != NULL)
        radix_destroy(&left->consumer->pending, mem_free);
    mem_free(left->consumer);
    mem_free(left);
}

/* ------------------------------------------------------------------------------------------------------- keeping -- */

static struct slice owner_name(const struct owner *owner)
{
    return slice_make(owner->name, owner->name_size);
}

static struct owner *find_owner(const struct group_former *of, struct slice name)
{
    uint64_t low = 0, high = of->consumer_count;

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        const int order = slice_compare(owner_name(of->owners[middle]), name);

        if (order == 0)
            return of->owners[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    panic("Something was pending for a consumer that was not there");
}

/* It is given already, or was not pending. */
static bool is_out_of_way(const struct group_former *of, struct stream_id id)
{
    return of->has_walked || stream_id_compare(id, of->next_id) < 0 || stream_id_compare(id, of->last_id) > 0;
}

static bool is_known(const struct group_former *of, struct slice key)
{
    if (of->kept != NULL && radix_find(of->kept, key, NULL))
        return true;
    for (uint32_t i = 0; i < of->consumers.count; i++) {
        if (radix_find(of->consumers.items[i]->consumer->pending, key, NULL))
            return true;
    }
    return false;
}

static void keep(struct group_former *of, struct slice key, const struct stream_pending *pending)
{
    struct kept *kept;
    uint64_t before;

    if (is_out_of_way(of, stream_id_decode(key.data)) || is_known(of, key))
        return;
    kept = mem_alloc_zero(sizeof(*kept));
    if (pending != NULL)
        *kept = (struct kept){find_owner(of, stream_consumer_name(pending->consumer)), pending->delivery_ms,
                              pending->delivery_count};
    before = of->kept != NULL ? radix_memory_bytes(of->kept) : 0;
    if (of->kept == NULL)
        of->kept = radix_create();
    radix_set(of->kept, key, kept, NULL);
    of->all->bytes += mem_usable(kept) + radix_memory_bytes(of->kept) - before;
}

void group_formers_keep(struct group_former *formers, struct slice id, const struct stream_pending *pending)
{
    for (struct group_former *of = formers; of != NULL; of = of->next)
        keep(of, id, pending);
}

static void keep_all(struct group_former *formers, const struct stream_consumer *consumer)
{
    struct radix_iter iter;

    radix_iter_init(&iter, consumer->pending);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter))
        group_formers_keep(formers, radix_iter_key(&iter), iter.value);
    radix_iter_fini(&iter);
}

bool group_formers_take_consumer(struct group_former *formers, struct stream_consumer *consumer)
{
    struct left *left = NULL;

    if (radix_count(consumer->pending) < CONSUMER_LEFT_LEAST) {
        keep_all(formers, consumer);
        return false;
    }
    for (struct group_former *of = formers; of != NULL; of = of->next) {
        if (of->has_walked)
            continue;
        if (left == NULL)
            left = left_create(NULL, consumer);
        *ARRAY_PUSH(&of->consumers) = left_acquire(left);
        of->all->bytes += left->bytes;
    }
    return left != NULL;
}

bool group_formers_take_group(struct group_former *formers, struct stream_group *group)
{
    struct left *left = NULL;

    for (struct group_former *of = formers; of != NULL; of = of->next) {
        assert(of->group == group);
        if (of->has_walked) {
            of->group = NULL;
            continue;
        }
        if (left == NULL)
            left = left_create(group, NULL);
        of->left = left_acquire(left);
        of->all->bytes += left->bytes;
    }
    return left != NULL;
}

/* ------------------------------------------------------------------------------------------------- pending -- */

struct giving {
    struct former_groups *groups;
    former_fn fn;
    void *context;
    uint64_t *most, *bytes;
};

static bool has_room(const struct giving *giving)
{
    return *giving->most != 0 && *giving->bytes != 0;
}

static void give_part(struct giving *giving, enum stream_part part, struct slice first, struct slice second)
{
    giving->fn(&(struct former_element){.first = first, .second = second, .part = part}, giving->context);
    --*giving->most;
    *giving->bytes -= MIN(*giving->bytes, first.size + second.size);
}

/* Trees in which an entry may be: what was kept, removed consumers, the group; the first one that has it counts. */
struct source {
    struct radix_iter iter;
    bool has;
};

struct sources {
    struct source *items;
    uint32_t count;
};

static void source_init(struct source *source, const struct radix *tree, struct stream_id from)
{
    if (tree == NULL)
        return;
    radix_iter_init(&source->iter, tree);
    source->has = stream_pending_seek(&source->iter, from);
}

static void sources_init(struct sources *sources, const struct group_former *of)
{
    sources->count = 2 + of->consumers.count;
    sources->items = mem_alloc_zero(sources->count * sizeof(*sources->items));
    source_init(&sources->items[0], of->kept, of->next_id);
    for (uint32_t i = 0; i < of->consumers.count; i++)
        source_init(&sources->items[1 + i], of->consumers.items[i]->consumer->pending, of->next_id);
    source_init(&sources->items[sources->count - 1], of->group->pending, of->next_id);
}

static void sources_fini(struct sources *sources)
{
    for (uint32_t i = 0; i < sources->count; i++) {
        if (sources->items[i].iter.tree != NULL)
            radix_iter_fini(&sources->items[i].iter);
    }
    mem_free(sources->items);
}

static struct source *least(const struct sources *sources)
{
    struct source *found = NULL;

    for (uint32_t i = 0; i < sources->count; i++) {
        struct source *each = &sources->items[i];

        if (each->has && (found == NULL || memcmp(each->iter.key, found->iter.key, STREAM_ID_BYTES) < 0))
            found = each;
    }
    assert(found != NULL); /* the last one of the moment is somewhere */
    return found;
}

static void pass(struct sources *sources, struct slice key)
{
    for (uint32_t i = 0; i < sources->count; i++) {
        struct source *each = &sources->items[i];

        if (each->has && memcmp(each->iter.key, key.data, STREAM_ID_BYTES) == 0)
            each->has = radix_next(&each->iter);
    }
}

static void gather(struct group_former *of, struct owner *owner, struct slice key)
{
    if (owner->ids == NULL) {
        owner->ids = mem_alloc(owner->pending_count * STREAM_ID_BYTES);
        of->all->bytes += mem_usable(owner->ids);
    }
    assert(owner->gathered < owner->pending_count);
    memcpy(owner->ids + owner->gathered++ * STREAM_ID_BYTES, key.data, STREAM_ID_BYTES);
}

static void give_one(struct giving *giving, struct group_former *of, struct slice key, const struct kept *kept)
{
    const struct stream_part_pending part = {kept->delivery_ms, kept->delivery_count};

    if (kept->owner == NULL)
        return;
    gather(of, kept->owner, key);
    of->given++;
    give_part(giving, STREAM_PART_PENDING, key, slice_make((const char *)&part, sizeof(part)));
}

static void forget_kept(struct group_former *of, struct slice key)
{
    const uint64_t before = radix_memory_bytes(of->kept);
    void *kept = NULL;

    (void)radix_remove(of->kept, key, &kept);
    of->all->bytes -= mem_usable(kept) + before - radix_memory_bytes(of->kept);
    mem_free(kept);
}

static void give_next(struct giving *giving, struct group_former *of, struct sources *sources)
{
    struct source *source = least(sources);
    const bool is_kept = source == &sources->items[0];
    char room[STREAM_ID_BYTES];
    struct slice key = slice_make(room, STREAM_ID_BYTES);

    memcpy(room, source->iter.key, STREAM_ID_BYTES);
    if (is_kept) {
        give_one(giving, of, key, source->iter.value);
    } else {
        const struct stream_pending *pending = source->iter.value;
        const struct kept kept = {find_owner(of, stream_consumer_name(pending->consumer)), pending->delivery_ms,
                                  pending->delivery_count};

        give_one(giving, of, key, &kept);
    }
    pass(sources, key);
    if (is_kept)
        forget_kept(of, key);
    of->next_id = stream_id_decode(room);
    of->has_walked = stream_id_compare(of->next_id, of->last_id) == 0 || !stream_id_increment(&of->next_id);
}

static void give_pending(struct giving *giving, struct group_former *of)
{
    uint64_t looks = *giving->most; /* entries that were not pending cost time, too */
    struct sources sources;

    sources_init(&sources, of);
    for (; !of->has_walked && has_room(giving) && looks != 0; looks--)
        give_next(giving, of, &sources);
    if (looks == 0)
        *giving->most = 0;
    sources_fini(&sources);
    assert(!of->has_walked || of->given == of->head.pending_count);
}

/* ------------------------------------------------------------------------------------------------------ giving -- */

static void give_owner(struct giving *giving, const struct owner *owner)
{
    const struct stream_part_consumer part = {owner->seen_ms, owner->active_ms, owner->pending_count};

    assert(owner->gathered == owner->pending_count);
    give_part(giving, STREAM_PART_CONSUMER, owner_name(owner), slice_make((const char *)&part, sizeof(part)));
}

static void give_owned(struct giving *giving, const struct owner *owner)
{
    struct former_groups *groups = giving->groups;
    const uint64_t count = MIN(owner->pending_count - groups->owned, *giving->bytes / STREAM_ID_BYTES + 1);

    give_part(giving, STREAM_PART_OWNED,
              slice_make(owner->ids + groups->owned * STREAM_ID_BYTES, count * STREAM_ID_BYTES), SLICE_EMPTY);
    groups->owned += count;
}

/* The next part of this consumer. */
static void give_of_owner(struct giving *giving, const struct owner *owner)
{
    struct former_groups *groups = giving->groups;

    if (!groups->has_owner)
        give_owner(giving, owner);
    else
        give_owned(giving, owner);
    groups->has_owner = groups->owned != owner->pending_count;
    if (groups->has_owner)
        return;
    groups->owned = 0;
    groups->owner++;
}

/* The next part of this group, or of what is pending in it. */
static void give_of_group(struct giving *giving, struct group_former *of)
{
    const struct stream_part_consumers part = {of->consumer_count};
    struct former_groups *groups = giving->groups;

    if (!groups->has_head) {
        give_part(giving, STREAM_PART_GROUP, of->name, slice_make((const char *)&of->head, sizeof(of->head)));
        groups->has_head = true;
    } else if (!of->has_walked) {
        give_pending(giving, of);
    } else if (!groups->has_count) {
        give_part(giving, STREAM_PART_CONSUMERS, SLICE_EMPTY, slice_make((const char *)&part, sizeof(part)));
        groups->has_count = true;
    } else {
        give_of_owner(giving, of->owners[groups->owner]);
    }
    if (!groups->has_count || groups->owner != of->consumer_count)
        return;
    groups->has_head = groups->has_count = false;
    groups->owner = 0;
    groups->group++;
}

bool former_groups_give(struct former_groups *groups, uint64_t *most, uint64_t *bytes, former_fn fn, void *context)
{
    struct giving giving = {groups, fn, context, most, bytes};

    if (!groups->has_ids && has_room(&giving)) {
        give_part(&giving, STREAM_PART_IDS, SLICE_EMPTY, SLICE_EMPTY);
        groups->has_ids = true;
    }
    while (groups->group != groups->count && has_room(&giving))
        give_of_group(&giving, groups->items[groups->group]);
    return !groups->has_ids || groups->group != groups->count;
}

/* -------------------------------------------------------------------------------------------------------- whole -- */

static struct owner *owner_create(const struct stream_consumer *consumer)
{
    struct owner *owner = mem_alloc(sizeof(*owner) + consumer->name_size);

    *owner = (struct owner){.seen_ms = consumer->seen_ms,
                            .active_ms = consumer->active_ms,
                            .pending_count = radix_count(consumer->pending),
                            .name_size = consumer->name_size};
    memcpy(owner->name, consumer->name, consumer->name_size);
    return owner;
}

static void take_owners(struct group_former *of)
{
    struct radix_iter iter;
    uint64_t count = 0;

    of->owners = mem_alloc(of->consumer_count * sizeof(struct owner *));
    of->all->bytes += mem_usable(of->owners);
    radix_iter_init(&iter, of->group->consumers);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        of->owners[count] = owner_create(iter.value);
        of->all->bytes += mem_usable(of->owners[count++]);
    }
    radix_iter_fini(&iter);
    assert(count == of->consumer_count);
}

static struct group_former *group_former_create(struct former_groups *all, struct stream_group *group,
                                                struct slice name)
{
    struct group_former *of = mem_alloc_zero(sizeof(*of));
    struct radix_iter iter;

    of->all = all;
    of->group = group;
    of->name = slice_make(mem_copy(name.data, name.size), name.size);
    of->head = (struct stream_part_group){group->last_id, group->entries_read, radix_count(group->pending)};
    of->consumer_count = radix_count(group->consumers);
    radix_iter_init(&iter, group->pending);
    of->has_walked = !radix_seek(&iter, RADIX_LAST, SLICE_EMPTY);
    if (!of->has_walked)
        of->last_id = stream_pending_id(&iter);
    radix_iter_fini(&iter);
    all->bytes += mem_usable(of) + mem_usable(of->name.data);
    take_owners(of);
    of->next = group->formers;
    group->formers = of;
    return of;
}

struct former_groups *former_groups_create(const struct stream *stream, struct stream *rest)
{
    const uint64_t count = radix_count(stream->groups);
    struct former_groups *groups = mem_alloc_zero(sizeof(*groups) + count * sizeof(groups->items[0]));
    struct radix_iter iter;

    groups->bytes = mem_usable(groups);
    radix_iter_init(&iter, stream->groups);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        struct stream_group *group = iter.value;

        groups->items[groups->count++] = group_former_create(groups, group, radix_iter_key(&iter));
        (void)stream_group_create(rest, radix_iter_key(&iter), group->last_id, group->entries_read);
    }
    radix_iter_fini(&iter);
    assert(groups->count == count);
    return groups;
}

static void detach(struct group_former *of)
{
    struct group_former **at = &of->group->formers;

    while (*at != of)
        at = &(*at)->next;
    *at = of->next;
}

void former_groups_detach(struct former_groups *groups)
{
    for (uint64_t i = 0; i < groups->count; i++) {
        if (groups->items[i]->group != NULL && groups->items[i]->left == NULL)
            detach(groups->items[i]);
    }
}

static void group_former_destroy(struct group_former *of)
{
    left_release(of->left);
    for (uint32_t i = 0; i < of->consumers.count; i++)
        left_release(of->consumers.items[i]);
    ARRAY_FINI(&of->consumers);
    radix_destroy(&of->kept, mem_free);
    for (uint64_t i = 0; i < of->consumer_count; i++) {
        mem_free(of->owners[i]->ids);
        mem_free(of->owners[i]);
    }
    mem_free(of->owners);
    mem_free((char *)(uintptr_t)of->name.data);
    mem_free(of);
}

void former_groups_destroy(struct former_groups **handle)
{
    struct former_groups *groups = *handle;

    *handle = NULL;
    for (uint64_t i = 0; i < groups->count; i++)
        group_former_destroy(groups->items[i]);
    mem_free(groups);
}

uint64_t former_groups_bytes(const struct former_groups *groups)
{
    return groups->bytes;
}
