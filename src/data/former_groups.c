#include "data/former_groups.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/mem.h"
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

struct owner { /* a consumer of the moment */
    int64_t seen_ms, active_ms;
    uint64_t pending_count;
    uint64_t gathered;  /* ids that have gone by */
    uint64_t given;     /* of them */
    char *ids;          /* room for all of them; NULL: none has gone by */
    struct owner *next; /* of those that are done with */
};

struct kept {            /* what an entry was */
    struct owner *owner; /* NULL: it was not pending */
    int64_t delivery_ms;
    uint64_t delivery_count;
};

/* How far a walk in the order of names has come: this name is behind it. */
struct place {
    bool is_begun; /* false: it is before the first name */
    struct buffer name;
};

/* Invariants, of names and ids that are still to come:
 *  1. A consumer that is not among the owners is in the group, and has not changed since the moment; an entry that is
 *     neither kept nor in a consumer that was removed likewise.
 *  2. Each consumer that had an entry of those that have gone by is among the owners. */
struct group_former {
    struct former_groups *all;
    struct group_former *next;  /* of the same group; or of those that are done with */
    struct stream_group *group; /* if it was removed, that of `left` */
    struct left *left;          /* the group, if it was removed; else NULL */
    struct stream_part_group head;
    uint64_t consumer_count;
    struct radix *owners; /* name -> owner; NULL as value: there was no such consumer; NULL as tree: none */
    struct radix *kept;   /* id -> kept; NULL: none. These go before what consumers that were removed have */
    struct {
        struct left **items;
        uint32_t count, capacity;
    } consumers; /* that were removed, in this order: what an earlier one has goes before what later ones have */
    struct stream_id next_id;
    struct stream_id last_id; /* the last one that was pending at the moment */
    uint64_t given;           /* entries */
    bool has_walked;          /* all that was pending is given */
    bool has_head;            /* it was given */
    bool has_count;           /* of its consumers, likewise, behind what is pending */
    struct place passed;      /* consumers */
    uint64_t consumers_passed;
    struct owner *owner; /* whose ids are being given, no longer among the owners; NULL: none */
};

/* A group that is to come and not among the kept ones is in the stream, and has not changed since the moment. */
struct former_groups {
    const struct former *former; /* const */
    struct stream *stream;       /* const */
    struct former_groups *next;  /* of the same stream */
    uint64_t bytes;
    uint64_t count; /* const: of groups at the moment */
    uint64_t given; /* of groups */
    bool has_ids;   /* they were given */
    struct place surveyed;
    struct place passed;
    struct radix *kept;        /* name -> group_former; NULL as value: there was no such group; NULL as tree: none */
    struct group_former *now;  /* the one that is being given, no longer among the kept ones; NULL: none */
    struct group_former *done; /* that have something which is freed under no lock */
    struct owner *done_owners; /* with many ids, likewise */
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

/* -------------------------------------------------------------------------------------------------- trees, names -- */

/* The tree is made when it is needed; its memory counts, what it has does not. */
static void put(struct former_groups *all, struct radix **tree, struct slice key, void *value)
{
    const uint64_t before = *tree != NULL ? radix_memory_bytes(*tree) : 0;

    if (*tree == NULL)
        *tree = radix_create();
    radix_set(*tree, key, value, NULL);
    all->bytes += radix_memory_bytes(*tree) - before;
}

/* What is there. */
static void *take(struct former_groups *all, struct radix *tree, struct slice key)
{
    const uint64_t before = radix_memory_bytes(tree);
    void *value = NULL;
    const bool was_there = radix_remove(tree, key, &value);

    assert(was_there);
    all->bytes -= before - radix_memory_bytes(tree);
    return value;
}

static bool has(const struct radix *tree, struct slice key)
{
    return tree != NULL && radix_find(tree, key, NULL);
}

static bool is_to_come(const struct place *place, struct slice name)
{
    return !place->is_begun || slice_compare(name, buffer_slice(&place->name)) > 0;
}

/* Returns its own copy of the name. */
static struct slice pass_by(struct place *place, struct slice name)
{
    place->is_begun = true;
    buffer_clear(&place->name);
    buffer_append_slice(&place->name, name);
    return buffer_slice(&place->name);
}

/* Trees that a walk goes through side by side. What one has of a key goes before what later ones have. */
struct source {
    struct radix_iter iter;
    bool has;
};

struct sources {
    struct source *items;
    uint32_t count;
};

enum { SOURCE_KEPT, SOURCE_LIVE, NAME_SOURCES }; /* of names */

static void source_init(struct source *source, const struct radix *tree, enum radix_seek how, struct slice key)
{
    source->has = false;
    source->iter.tree = NULL;
    if (tree == NULL)
        return;
    radix_iter_init(&source->iter, tree);
    source->has = radix_seek(&source->iter, how, key);
}

/* Names that are to come, of those that were kept and those that are there. */
static void sources_init(struct sources *sources, struct source items[NAME_SOURCES], const struct radix *kept,
                         const struct radix *live, const struct place *place)
{
    const enum radix_seek how = place->is_begun ? RADIX_ABOVE : RADIX_FIRST;

    *sources = (struct sources){items, NAME_SOURCES};
    source_init(&items[SOURCE_KEPT], kept, how, buffer_slice(&place->name));
    source_init(&items[SOURCE_LIVE], live, how, buffer_slice(&place->name));
}

static void sources_fini(struct sources *sources)
{
    for (uint32_t i = 0; i < sources->count; i++) {
        if (sources->items[i].iter.tree != NULL)
            radix_iter_fini(&sources->items[i].iter);
    }
}

/* NULL: that was all. */
static struct source *least(const struct sources *sources)
{
    struct source *found = NULL;

    for (uint32_t i = 0; i < sources->count; i++) {
        struct source *each = &sources->items[i];

        if (each->has &&
            (found == NULL || slice_compare(radix_iter_key(&each->iter), radix_iter_key(&found->iter)) < 0))
            found = each;
    }
    return found;
}

/* The key is none of an iterator. */
static void pass(struct sources *sources, struct slice key)
{
    for (uint32_t i = 0; i < sources->count; i++) {
        struct source *each = &sources->items[i];

        if (each->has && slice_equal(radix_iter_key(&each->iter), key))
            each->has = radix_next(&each->iter);
    }
}

/* ----------------------------------------------------------------------------------------------------- one group -- */

static void owner_free(void *value)
{
    struct owner *owner = value;

    if (owner != NULL)
        mem_free(owner->ids);
    mem_free(owner);
}

/* Accepts NULL. */
static void group_former_destroy(struct group_former *of)
{
    if (of == NULL)
        return;
    left_release(of->left);
    for (uint32_t i = 0; i < of->consumers.count; i++)
        left_release(of->consumers.items[i]);
    ARRAY_FINI(&of->consumers);
    radix_destroy(&of->kept, mem_free);
    radix_destroy(&of->owners, owner_free);
    owner_free(of->owner);
    buffer_fini(&of->passed.name);
    mem_free(of);
}

/* The group is as it was at the moment. */
static struct group_former *group_former_create(struct former_groups *all, struct stream_group *group)
{
    struct group_former *of = mem_alloc_zero(sizeof(*of));
    struct radix_iter iter;

    of->all = all;
    of->group = group;
    of->head = (struct stream_part_group){group->last_id, group->entries_read, radix_count(group->pending)};
    of->consumer_count = radix_count(group->consumers);
    radix_iter_init(&iter, group->pending);
    of->has_walked = !radix_seek(&iter, RADIX_LAST, SLICE_EMPTY);
    if (!of->has_walked)
        of->last_id = stream_pending_id(&iter);
    radix_iter_fini(&iter);
    all->bytes += mem_usable(of);
    if (all->former->is_taken)
        return of;
    of->next = group->formers;
    group->formers = of;
    return of;
}

static void detach(struct group_former *of)
{
    struct group_former **at = &of->group->formers;

    while (*at != of)
        at = &(*at)->next;
    *at = of->next;
}

/* Whether it has nothing that takes time to free. */
static bool is_plain(const struct group_former *of)
{
    return of->left == NULL && of->consumers.count == 0 && (of->owners == NULL || radix_count(of->owners) == 0);
}

static uint64_t own_bytes(const struct group_former *of)
{
    return mem_usable(of) + (of->owners != NULL ? radix_memory_bytes(of->owners) : 0) +
           (of->kept != NULL ? radix_memory_bytes(of->kept) : 0);
}

/* All of it was given. */
static void end_group(struct former_groups *all)
{
    struct group_former *of = all->now;

    assert(of->kept == NULL || radix_count(of->kept) == 0);
    all->now = NULL;
    all->given++;
    if (of->left == NULL && !all->former->is_taken)
        detach(of);
    if (is_plain(of)) {
        all->bytes -= own_bytes(of);
        group_former_destroy(of);
    } else {
        of->next = all->done;
        all->done = of;
    }
}

static struct owner *owner_create(struct former_groups *all, const struct stream_consumer *consumer)
{
    struct owner *owner = mem_alloc_zero(sizeof(*owner));

    owner->seen_ms = consumer->seen_ms;
    owner->active_ms = consumer->active_ms;
    owner->pending_count = radix_count(consumer->pending);
    all->bytes += mem_usable(owner);
    return owner;
}

/* Of a consumer of the moment. */
static struct owner *find_owner(struct group_former *of, const struct stream_consumer *consumer)
{
    const struct slice name = stream_consumer_name(consumer);
    void *known = NULL;
    struct owner *owner;

    if (of->owners != NULL && radix_find(of->owners, name, &known)) {
        assert(known != NULL);
        return known;
    }
    owner = owner_create(of->all, consumer);
    put(of->all, &of->owners, name, owner);
    return owner;
}

/* ------------------------------------------------------------------------------------------------------- keeping -- */

static void keep_group(struct former_groups *all, struct slice name, struct stream_group *group)
{
    if (all->given == all->count || !is_to_come(&all->passed, name) || has(all->kept, name))
        return;
    put(all, &all->kept, name, group != NULL ? group_former_create(all, group) : NULL);
}

void former_groups_keep(struct former_groups *formers, struct slice name, struct stream_group *group)
{
    for (struct former_groups *all = formers; all != NULL; all = all->next)
        keep_group(all, name, group);
}

static void keep_consumer(struct group_former *of, struct slice name, const struct stream_consumer *consumer)
{
    if (is_to_come(&of->passed, name) && !has(of->owners, name))
        put(of->all, &of->owners, name, consumer != NULL ? owner_create(of->all, consumer) : NULL);
}

void group_formers_keep_consumer(struct group_former *formers, struct slice name,
                                 const struct stream_consumer *consumer)
{
    for (struct group_former *of = formers; of != NULL; of = of->next)
        keep_consumer(of, name, consumer);
}

/* It is given already, or was not pending. */
static bool is_out_of_way(const struct group_former *of, struct stream_id id)
{
    return of->has_walked || stream_id_compare(id, of->next_id) < 0 || stream_id_compare(id, of->last_id) > 0;
}

static bool is_known(const struct group_former *of, struct slice key)
{
    if (has(of->kept, key))
        return true;
    for (uint32_t i = 0; i < of->consumers.count; i++) {
        if (has(of->consumers.items[i]->consumer->pending, key))
            return true;
    }
    return false;
}

static void keep(struct group_former *of, struct slice key, const struct stream_pending *pending)
{
    struct kept *kept;

    if (is_out_of_way(of, stream_id_decode(key.data)) || is_known(of, key))
        return;
    kept = mem_alloc_zero(sizeof(*kept));
    if (pending != NULL)
        *kept = (struct kept){find_owner(of, pending->consumer), pending->delivery_ms, pending->delivery_count};
    put(of->all, &of->kept, key, kept);
    of->all->bytes += mem_usable(kept);
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
        if (left == NULL)
            left = left_create(group, NULL);
        of->left = left_acquire(left);
        of->all->bytes += left->bytes;
    }
    return left != NULL;
}

/* ------------------------------------------------------------------------------------------------------- pending -- */

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

/* What was kept, removed consumers, the group. */
static struct sources pending_sources(const struct group_former *of)
{
    struct sources sources = {.count = 2 + of->consumers.count};
    char room[STREAM_ID_BYTES];
    const struct slice key = stream_id_encode(of->next_id, room);

    sources.items = mem_alloc(sources.count * sizeof(*sources.items));
    source_init(&sources.items[SOURCE_KEPT], of->kept, RADIX_AT_LEAST, key);
    for (uint32_t i = 0; i < of->consumers.count; i++)
        source_init(&sources.items[1 + i], of->consumers.items[i]->consumer->pending, RADIX_AT_LEAST, key);
    source_init(&sources.items[sources.count - 1], of->group->pending, RADIX_AT_LEAST, key);
    return sources;
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
    struct kept *kept = take(of->all, of->kept, key);

    of->all->bytes -= mem_usable(kept);
    mem_free(kept);
}

static void give_next(struct giving *giving, struct group_former *of, struct sources *sources)
{
    struct source *source = least(sources);
    const bool is_kept = source == &sources->items[SOURCE_KEPT];
    char room[STREAM_ID_BYTES];
    struct slice key = slice_make(room, STREAM_ID_BYTES);

    assert(source != NULL); /* the last one of the moment is somewhere */
    memcpy(room, source->iter.key, STREAM_ID_BYTES);
    if (is_kept) {
        give_one(giving, of, key, source->iter.value);
    } else {
        const struct stream_pending *pending = source->iter.value;
        const struct kept kept = {find_owner(of, pending->consumer), pending->delivery_ms, pending->delivery_count};

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
    struct sources sources = pending_sources(of);
    uint64_t looks = *giving->most; /* entries that were not pending cost time, too */

    for (; !of->has_walked && has_room(giving) && looks != 0; looks--)
        give_next(giving, of, &sources);
    if (looks == 0)
        *giving->most = 0;
    sources_fini(&sources);
    mem_free(sources.items);
    assert(!of->has_walked || of->given == of->head.pending_count);
}

/* ----------------------------------------------------------------------------------------------------- consumers -- */

static void give_owned(struct giving *giving, struct group_former *of)
{
    struct owner *owner = of->owner;
    const uint64_t count = MIN(owner->pending_count - owner->given, *giving->bytes / STREAM_ID_BYTES + 1);

    give_part(giving, STREAM_PART_OWNED,
              slice_make(owner->ids + owner->given * STREAM_ID_BYTES, count * STREAM_ID_BYTES), SLICE_EMPTY);
    owner->given += count;
}

/* Behind its head. */
static void end_owner(struct group_former *of)
{
    struct owner *owner = of->owner;

    if (owner->given != owner->pending_count)
        return;
    of->owner = NULL;
    if (mem_usable(owner->ids) > FORMER_PIECE_BYTES) { /* to free 4 MB took 0.8 ms */
        owner->next = of->all->done_owners;
        of->all->done_owners = owner;
    } else {
        of->all->bytes -= mem_usable(owner) + mem_usable(owner->ids);
        owner_free(owner);
    }
}

static void give_consumer_head(struct giving *giving, struct group_former *of, const struct stream_part_consumer *part)
{
    of->consumers_passed++;
    give_part(giving, STREAM_PART_CONSUMER, buffer_slice(&of->passed.name),
              slice_make((const char *)part, sizeof(*part)));
}

/* NULL: it was not there. */
static void give_owner(struct giving *giving, struct group_former *of, struct owner *owner)
{
    if (owner == NULL)
        return;
    assert(owner->gathered == owner->pending_count);
    of->owner = owner;
    give_consumer_head(giving, of,
                       &(struct stream_part_consumer){owner->seen_ms, owner->active_ms, owner->pending_count});
    end_owner(of);
}

static void give_consumer(struct giving *giving, struct group_former *of, struct sources *sources)
{
    const struct source *source = least(sources);
    const struct stream_consumer *consumer;
    struct slice name;

    assert(source != NULL); /* one of the moment is left */
    name = pass_by(&of->passed, radix_iter_key(&source->iter));
    if (source == &sources->items[SOURCE_KEPT]) {
        give_owner(giving, of, take(of->all, of->owners, name));
    } else {
        consumer = source->iter.value;
        assert(radix_count(consumer->pending) == 0); /* invariant 2 */
        give_consumer_head(giving, of, &(struct stream_part_consumer){consumer->seen_ms, consumer->active_ms, 0});
    }
    pass(sources, name);
}

static void give_consumers(struct giving *giving, struct group_former *of)
{
    uint64_t looks = *giving->most; /* consumers that were not there cost time, too */
    struct source items[NAME_SOURCES];
    struct sources sources;

    sources_init(&sources, items, of->owners, of->group->consumers, &of->passed);
    for (; of->owner == NULL && of->consumers_passed != of->consumer_count && has_room(giving) && looks != 0; looks--)
        give_consumer(giving, of, &sources);
    if (looks == 0)
        *giving->most = 0;
    sources_fini(&sources);
}

/* -------------------------------------------------------------------------------------------------------- groups -- */

static void give_head(struct giving *giving, struct group_former *of)
{
    give_part(giving, STREAM_PART_GROUP, buffer_slice(&of->all->passed.name),
              slice_make((const char *)&of->head, sizeof(of->head)));
    of->has_head = true;
}

static void give_count(struct giving *giving, struct group_former *of)
{
    const struct stream_part_consumers part = {of->consumer_count};

    give_part(giving, STREAM_PART_CONSUMERS, SLICE_EMPTY, slice_make((const char *)&part, sizeof(part)));
    of->has_count = true;
}

/* The next part of this group, or of what is pending in it, or of its consumers. */
static void give_of_group(struct giving *giving, struct group_former *of)
{
    if (!of->has_head) {
        give_head(giving, of);
    } else if (!of->has_walked) {
        give_pending(giving, of);
    } else if (!of->has_count) {
        give_count(giving, of);
    } else if (of->owner != NULL) {
        give_owned(giving, of);
        end_owner(of);
    } else {
        give_consumers(giving, of);
    }
    if (of->has_count && of->owner == NULL && of->consumers_passed == of->consumer_count)
        end_group(giving->groups);
}

/* To the next name, which may be of a group that was not there. */
static void enter_group(struct former_groups *groups)
{
    struct source items[NAME_SOURCES];
    const struct source *source;
    struct sources sources;
    struct slice name;

    sources_init(&sources, items, groups->kept, groups->stream->groups, &groups->passed);
    source = least(&sources);
    assert(source != NULL); /* one of the moment is left */
    name = pass_by(&groups->passed, radix_iter_key(&source->iter));
    if (source == &items[SOURCE_KEPT])
        groups->now = take(groups, groups->kept, name);
    else
        groups->now = group_former_create(groups, source->iter.value);
    sources_fini(&sources);
}

static void give_ids(struct giving *giving)
{
    const struct stream_part_ids part = {giving->groups->count};

    give_part(giving, STREAM_PART_IDS, SLICE_EMPTY, slice_make((const char *)&part, sizeof(part)));
    giving->groups->has_ids = true;
}

bool former_groups_give(struct former_groups *groups, uint64_t *most, uint64_t *bytes, former_fn fn, void *context)
{
    struct giving giving = {groups, fn, context, most, bytes};
    uint64_t looks = *most; /* groups that were not there cost time, too */

    if (!groups->has_ids && has_room(&giving))
        give_ids(&giving);
    while (groups->given != groups->count && has_room(&giving) && looks != 0) {
        if (groups->now != NULL) {
            give_of_group(&giving, groups->now);
        } else {
            enter_group(groups);
            looks--;
        }
    }
    return !groups->has_ids || groups->given != groups->count;
}

/* --------------------------------------------------------------------------------------------------------- whole -- */

struct former_groups *former_groups_create(struct stream *stream, const struct former *former)
{
    struct former_groups *groups = mem_alloc_zero(sizeof(*groups));

    groups->former = former;
    groups->stream = stream;
    groups->count = radix_count(stream->groups);
    groups->bytes = mem_usable(groups);
    groups->next = stream->formers;
    stream->formers = groups;
    return groups;
}

/* True: the rest has it. */
static bool survey_group(struct stream *rest, struct slice name, struct stream_id last_id, int64_t entries_read)
{
    return entries_read != stream_entries_up_to(rest, last_id) &&
           stream_group_create(rest, name, last_id, entries_read) != NULL;
}

static bool survey_next(struct former_groups *groups, struct stream *rest, struct sources *sources)
{
    const struct source *source = least(sources);
    bool is_found = false;
    struct slice name;

    if (source == NULL)
        return false;
    name = pass_by(&groups->surveyed, radix_iter_key(&source->iter));
    if (source == &sources->items[SOURCE_LIVE]) {
        const struct stream_group *group = source->iter.value;

        is_found = survey_group(rest, name, group->last_id, group->entries_read);
    } else if (source->iter.value != NULL) {
        const struct group_former *of = source->iter.value;

        is_found = survey_group(rest, name, of->head.last_id, of->head.entries_read);
    }
    pass(sources, name);
    return !is_found;
}

bool former_groups_survey(struct former_groups *groups, struct stream *rest, uint64_t most)
{
    struct source items[NAME_SOURCES];
    struct sources sources;
    bool more = true;

    assert(!groups->passed.is_begun); /* so the kept ones are all that have changed */
    if (groups->count == 0)
        return false; /* nor is any kept */
    sources_init(&sources, items, groups->kept, groups->stream->groups, &groups->surveyed);
    for (; more && most != 0; most--)
        more = survey_next(groups, rest, &sources);
    sources_fini(&sources);
    return more;
}

static void detach_kept(struct group_former *of)
{
    if (of != NULL && of->left == NULL)
        detach(of);
}

/* As many groups are looked at as have changed and were not given: none, if all were given. */
void former_groups_detach(struct former_groups *groups)
{
    struct former_groups **at = &groups->stream->formers;
    struct radix_iter iter;

    while (*at != groups)
        at = &(*at)->next;
    *at = groups->next;
    detach_kept(groups->now);
    if (groups->kept == NULL)
        return;
    radix_iter_init(&iter, groups->kept);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter))
        detach_kept(iter.value);
    radix_iter_fini(&iter);
}

static void group_former_free(void *value)
{
    group_former_destroy(value);
}

void former_groups_destroy(struct former_groups **handle)
{
    struct former_groups *groups = *handle;

    *handle = NULL;
    group_former_destroy(groups->now);
    for (struct group_former *of = groups->done, *next; of != NULL; of = next) {
        next = of->next;
        group_former_destroy(of);
    }
    for (struct owner *owner = groups->done_owners, *next; owner != NULL; owner = next) {
        next = owner->next;
        owner_free(owner);
    }
    radix_destroy(&groups->kept, group_former_free);
    buffer_fini(&groups->surveyed.name);
    buffer_fini(&groups->passed.name);
    mem_free(groups);
}

uint64_t former_groups_bytes(const struct former_groups *groups)
{
    return groups->bytes;
}
