/* XDELEX and XACKDEL, and trimming by the same policies.
 *
 * Files, replicas and peers are told what redis-server 7.0 knows: XDEL of the entries that went, and XACK of what is
 * not pending any more in a group. */
#include "commands/stream/references.h"

#include "base/array.h"
#include "commands/shared/families.h"
#include "commands/shared/typed.h"

enum { TOLD_IDS = 128, TOLD_WORDS = 3 }; /* ids in one effect, and words before them */

/* ------------------------------------------------------------------------------------------------------ telling -- */

/* "XDEL key id ..." or "XACK key group id ...", in pieces. */
struct told {
    struct request *request;
    bool are_operations; /* peers are told apart, as the command has other operations, too */
    uint32_t first;      /* of the ids among the words */
    uint32_t count;      /* of words */
    struct slice words[TOLD_WORDS + TOLD_IDS];
    char texts[TOLD_IDS][STREAM_ID_TEXT_BYTES];
};

static void told_begin(struct told *told, struct request *request, struct slice name, bool are_operations)
{
    told->request = request;
    told->are_operations = are_operations;
    told->words[0] = name;
    told->words[1] = request->keys[0].name;
    told->first = told->count = 2;
}

static void told_end(struct told *told)
{
    if (told->count == told->first)
        return;
    effect_set(told->request, told->words, told->count);
    if (told->are_operations)
        operation_add(told->request, told->words, told->count);
    told->count = told->first;
}

static void told_add(struct told *told, struct stream_id id)
{
    uint32_t index = told->count - told->first;

    told->words[told->count++] = stream_id_format(id, told->texts[index]);
    if (index + 1 == TOLD_IDS)
        told_end(told);
}

static void begin_deleted(struct told *told, struct request *request, bool are_operations)
{
    told_begin(told, request, SLICE("XDEL"), are_operations);
}

static void begin_acknowledged(struct told *told, struct request *request, struct slice group, bool are_operations)
{
    told_begin(told, request, SLICE("XACK"), are_operations);
    told->words[2] = group;
    told->first = told->count = 3;
}

/* --------------------------------------------------------------------------------------------------- references -- */

bool reference_policy_parse(struct slice word, enum reference_policy *policy)
{
    if (word.size < 5) /* as most words here: "*", and thresholds */
        return false;
    if (slice_equal_text_nocase(word, "KEEPREF"))
        *policy = REFERENCES_KEPT;
    else if (slice_equal_text_nocase(word, "DELREF"))
        *policy = REFERENCES_DELETED;
    else if (slice_equal_text_nocase(word, "ACKED"))
        *policy = REFERENCES_RESPECTED;
    else
        return false;
    return true;
}

/* The groups of a stream, for asking about many entries. They are only read: who looks them up by stream_group_find may
 * change them. */
struct groups {
    const struct stream_group **items;
    uint64_t count, capacity;
};

static void groups_init(struct groups *groups, const struct stream *stream)
{
    struct radix_iter iter;

    *groups = (struct groups){0};
    radix_iter_init(&iter, stream_groups(stream));
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter))
        *ARRAY_PUSH(groups) = iter.value;
    radix_iter_fini(&iter);
}

static void groups_fini(struct groups *groups)
{
    ARRAY_FINI(groups);
}

static bool refers(const struct stream_group *group, struct stream_id id)
{
    return stream_id_compare(group->last_id, id) < 0 ||
           (radix_count(group->pending) != 0 && stream_pending_find(group, id) != NULL);
}

/* The group that refers to it is asked first about the next one: often much is pending in one group. */
static bool is_referenced(struct groups *groups, struct stream_id id)
{
    for (uint64_t i = 0; i < groups->count; i++) {
        const struct stream_group *group = groups->items[i];

        if (!refers(group, id))
            continue;
        groups->items[i] = groups->items[0];
        groups->items[0] = group;
        return true;
    }
    return false;
}

/* These are not pending in any group any more. Returns true if one was. */
static bool forget_ids(struct request *request, const struct stream *stream, const struct stream_id *ids,
                       uint32_t count)
{
    struct radix_iter groups;
    bool any = false;

    radix_iter_init(&groups, stream_groups(stream));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        const struct stream_group *read = groups.value;
        struct stream_group *group = NULL; /* looked up when it has to change */
        struct told told;

        if (radix_count(read->pending) == 0)
            continue;
        begin_acknowledged(&told, request, radix_iter_key(&groups), false);
        for (uint32_t i = 0; i < count; i++) {
            if (stream_pending_find(read, ids[i]) == NULL)
                continue;
            if (group == NULL)
                group = stream_group_find(stream, radix_iter_key(&groups));
            (void)stream_pending_remove(group, ids[i]);
            told_add(&told, ids[i]);
        }
        told_end(&told);
        any |= group != NULL;
    }
    radix_iter_fini(&groups);
    return any;
}

/* Moves to what is pending for an entry, up to `last`. False: nothing is. */
static bool next_entry_pending(struct radix_iter *pending, struct stream_iter *entries, bool more,
                               struct stream_id last)
{
    uint64_t field_count;

    while (more && stream_id_compare(stream_pending_id(pending), last) <= 0) {
        if (stream_iter_find(entries, stream_pending_id(pending), &field_count))
            return true;
        more = radix_next(pending);
    }
    return false;
}

/* Of one group, the entries up to this one: not what is pending though its entry has long gone. */
static void forget_until(struct request *request, const struct stream *stream, const struct radix_iter *at,
                         struct stream_id last)
{
    const struct stream_group *read = at->value;
    struct stream_group *group = NULL;
    struct radix_iter pending;
    struct stream_iter entries;
    struct told told;
    bool more;

    stream_iter_init_find(&entries, stream);
    radix_iter_init(&pending, read->pending);
    begin_acknowledged(&told, request, radix_iter_key(at), true);
    more = next_entry_pending(&pending, &entries, stream_pending_seek(&pending, stream_first_id(stream)), last);
    while (more) {
        struct stream_id id = stream_pending_id(&pending);

        if (group == NULL)
            group = stream_group_find(stream, radix_iter_key(at));
        (void)stream_pending_remove(group, id);
        told_add(&told, id);
        more = next_entry_pending(&pending, &entries, radix_next(&pending), last);
    }
    told_end(&told);
    radix_iter_fini(&pending);
    stream_iter_fini(&entries);
}

/* ----------------------------------------------------------------------------------------------------- trimming -- */

static uint64_t trim_deleting(struct request *request, struct stream *stream, const struct stream_trim *limits)
{
    struct radix_iter groups;
    struct stream_id last;

    if (!stream_trim_last(stream, limits, &last))
        return 0;
    radix_iter_init(&groups, stream_groups(stream));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups))
        if (radix_count(((const struct stream_group *)groups.value)->pending) != 0)
            forget_until(request, stream, &groups, last);
    radix_iter_fini(&groups);
    return stream_trim(stream, limits);
}

/* Is nothing pending from the first entry to `last`? */
static bool has_done_with(const struct stream *stream, const struct stream_group *group, struct stream_id last)
{
    struct radix_iter pending;
    bool is_pending;

    if (stream_id_compare(group->last_id, last) < 0)
        return false;
    radix_iter_init(&pending, group->pending);
    is_pending = stream_pending_seek(&pending, stream_first_id(stream)) &&
                 stream_id_compare(stream_pending_id(&pending), last) <= 0;
    radix_iter_fini(&pending);
    return !is_pending;
}

/* Has each group done with all entries up to `last`? *given: what each group has been given, at least. */
static bool all_have_done_with(const struct stream *stream, struct stream_id last, struct stream_id *given)
{
    struct radix_iter groups;
    bool done = true;

    *given = STREAM_ID_MOST;
    radix_iter_init(&groups, stream_groups(stream));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        const struct stream_group *group = groups.value;

        if (stream_id_compare(group->last_id, *given) < 0)
            *given = group->last_id;
        done &= has_done_with(stream, group, last);
    }
    radix_iter_fini(&groups);
    return done;
}

/* The entries up to `last`, at most `most`, that no group refers to. */
static void find_unreferenced(const struct stream *stream, struct stream_id last, uint64_t most,
                              struct reference_trim *trim)
{
    struct stream_iter iter;
    struct groups groups;
    uint64_t field_count;
    struct stream_id id;

    groups_init(&groups, stream);
    stream_iter_init(&iter, stream, STREAM_ID_LEAST, last);
    while (trim->gone.count < most && stream_iter_next(&iter, &id, &field_count))
        if (!is_referenced(&groups, id))
            *ARRAY_PUSH(&trim->gone) = id;
    stream_iter_fini(&iter);
    groups_fini(&groups);
}

static uint64_t trim_respecting(const struct request *request, struct stream *stream, const struct stream_trim *limits,
                                struct reference_trim *trim)
{
    struct stream_id last, given;
    uint64_t most = UINT64_MAX;

    if (!stream_trim_last(stream, limits, &last))
        return 0;
    /* A peer may have an entry before the last one that a group there has yet to be given. */
    if (all_have_done_with(stream, last, &given) && !operations_are_wanted(request))
        return stream_trim(stream, limits);
    trim->is_apart = true;
    if (limits->by == STREAM_TRIM_LENGTH && !limits->whole_nodes) { /* later ones go in the place of those that stay */
        most = stream_length(stream) - limits->length;
        last = STREAM_ID_MOST;
    }
    find_unreferenced(stream, stream_id_compare(given, last) < 0 ? given : last, most, trim);
    for (uint64_t i = 0; i < trim->gone.count; i++)
        (void)stream_delete(stream, trim->gone.items[i]);
    return trim->gone.count;
}

uint64_t reference_trim(struct request *request, struct stream *stream, const struct stream_trim *limits,
                        enum reference_policy policy, struct reference_trim *trim)
{
    assert(policy != REFERENCES_KEPT);
    return policy == REFERENCES_DELETED ? trim_deleting(request, stream, limits)
                                        : trim_respecting(request, stream, limits, trim);
}

void reference_trim_end(struct request *request, struct reference_trim *trim)
{
    struct told told;

    begin_deleted(&told, request, true);
    for (uint64_t i = 0; i < trim->gone.count; i++)
        told_add(&told, trim->gone.items[i]);
    told_end(&told);
    ARRAY_FINI(&trim->gone);
}

/* ---------------------------------------------------------------------------------------------- XDELEX, XACKDEL -- */

enum outcome { OUTCOME_MISSING = -1, OUTCOME_DELETED = 1, OUTCOME_REFERENCED = 2 };

struct deletion {
    enum reference_policy policy;
    uint32_t first_id; /* the argument; ids are the last ones */
    struct stream_id *ids;
    uint32_t id_count;
    struct groups groups; /* who is asked; empty without REFERENCES_RESPECTED */
};

/* Argument `index` is the number of ids, which follow. False: an error was replied. */
static bool parse_ids_block(struct request *request, uint32_t index, struct deletion *deletion)
{
    int64_t count;

    if (!request_arg_range(request, index, 1, INT64_MAX, &count, "ERR Number of IDs must be a positive integer"))
        return false;
    if (count > (int64_t)request->arg_count - index - 1) {
        reply_error(request, "ERR The `numids` parameter must match the number of arguments");
        return false;
    }
    deletion->first_id = index + 1;
    deletion->id_count = (uint32_t)count;
    return true;
}

/* From argument `from` on, in any order: [KEEPREF|DELREF|ACKED] IDS numids id [id ...]. Of two blocks of ids the last
 * one counts. The arity leaves no room to go without one. False: an error was replied. */
static bool parse_deletion(struct request *request, uint32_t from, struct deletion *deletion)
{
    bool has_policy = false;

    *deletion = (struct deletion){.policy = REFERENCES_KEPT};
    for (uint32_t i = from; i < request->arg_count; i++) {
        if (request_arg_is(request, i, "IDS") && i + 1 < request->arg_count) {
            if (!parse_ids_block(request, i + 1, deletion))
                return false;
            i = deletion->first_id + deletion->id_count - 1;
        } else if (!has_policy && reference_policy_parse(request_arg(request, i), &deletion->policy)) {
            has_policy = true;
        } else {
            reply_syntax_error(request);
            return false;
        }
    }
    assert(deletion->id_count != 0);
    return true;
}

/* All must be ids before any goes; nobody looks at them where there is nothing to delete them from. */
static bool read_ids(struct request *request, struct deletion *deletion)
{
    deletion->ids = mem_alloc(deletion->id_count * sizeof(*deletion->ids));
    for (uint32_t i = 0; i < deletion->id_count; i++) {
        if (stream_arg_id(request, deletion->first_id + i, 0, &deletion->ids[i]))
            continue;
        mem_free(deletion->ids);
        return false;
    }
    return true;
}

static void ask_groups(struct deletion *deletion, const struct stream *stream)
{
    if (deletion->policy == REFERENCES_RESPECTED)
        groups_init(&deletion->groups, stream);
}

static void deletion_fini(struct deletion *deletion)
{
    groups_fini(&deletion->groups);
    mem_free(deletion->ids);
}

static enum outcome delete_entry(struct deletion *deletion, struct stream *stream, struct stream_id id)
{
    if (is_referenced(&deletion->groups, id))
        return stream_has(stream, id) ? OUTCOME_REFERENCED : OUTCOME_MISSING;
    return stream_delete(stream, id) ? OUTCOME_DELETED : OUTCOME_MISSING;
}

static void reply_missing(struct request *request, uint32_t count)
{
    reply_array(request, count);
    while (count-- > 0)
        reply_int(request, OUTCOME_MISSING);
}

static void delete_entries(struct request *request, struct deletion *deletion, struct edit *edit)
{
    bool any_deleted = false, any_forgotten = false;
    struct stream *stream = stream_of(edit->value);
    struct told deleted;

    ask_groups(deletion, stream);
    begin_deleted(&deleted, request, false);
    reply_array(request, deletion->id_count);
    for (uint32_t i = 0; i < deletion->id_count; i++) {
        enum outcome outcome = delete_entry(deletion, stream, deletion->ids[i]);

        if (outcome == OUTCOME_DELETED) {
            told_add(&deleted, deletion->ids[i]);
            any_deleted = true;
        }
        reply_int(request, outcome);
    }
    told_end(&deleted);
    if (deletion->policy == REFERENCES_DELETED)
        any_forgotten = forget_ids(request, stream, deletion->ids, deletion->id_count);
    if (any_deleted || any_forgotten)
        edit_end(edit, EVENT_STREAM, any_deleted ? "xdel" : NULL);
}

static void cmd_xdelex(struct request *request)
{
    struct deletion deletion;
    struct edit edit;

    if (!edit_begin(&edit, request, &request->keys[0], TYPE_STREAM) || !parse_deletion(request, 2, &deletion))
        return;
    if (edit.is_new) {
        reply_missing(request, deletion.id_count);
    } else if (read_ids(request, &deletion)) {
        delete_entries(request, &deletion, &edit);
        deletion_fini(&deletion);
    }
}

/* Deletes what was pending in the group; the other ids are left out of the list. */
static bool acknowledge_entries(struct request *request, struct deletion *deletion, struct stream *stream,
                                struct stream_group *group)
{
    struct told acknowledged, deleted;
    uint32_t count = 0;
    bool any_deleted = false;

    ask_groups(deletion, stream);
    begin_acknowledged(&acknowledged, request, request_arg(request, 2), false);
    begin_deleted(&deleted, request, false);
    for (uint32_t i = 0; i < deletion->id_count; i++) {
        struct stream_id id = deletion->ids[i];
        enum outcome outcome;

        if (!stream_pending_remove(group, id)) {
            reply_int(request, OUTCOME_MISSING);
            continue;
        }
        told_add(&acknowledged, id);
        deletion->ids[count++] = id;
        outcome = delete_entry(deletion, stream, id);
        if (outcome == OUTCOME_DELETED) {
            told_add(&deleted, id);
            any_deleted = true;
        }
        reply_int(request, outcome == OUTCOME_REFERENCED ? OUTCOME_REFERENCED : OUTCOME_DELETED);
    }
    told_end(&acknowledged);
    told_end(&deleted);
    deletion->id_count = count;
    return any_deleted;
}

static void acknowledge_and_delete(struct request *request, struct deletion *deletion, struct edit *edit,
                                   struct stream_group *group)
{
    struct stream *stream = stream_of(edit->value);
    bool any_deleted;

    reply_array(request, deletion->id_count);
    any_deleted = acknowledge_entries(request, deletion, stream, group);
    if (deletion->policy == REFERENCES_DELETED)
        (void)forget_ids(request, stream, deletion->ids, deletion->id_count);
    if (deletion->id_count != 0)
        edit_end(edit, EVENT_STREAM, any_deleted ? "xdel" : NULL);
}

static void cmd_xackdel(struct request *request)
{
    struct stream_group *group = NULL;
    struct deletion deletion;
    struct edit edit;

    if (!edit_begin_read(&edit, request, &request->keys[0], TYPE_STREAM) || !parse_deletion(request, 3, &deletion))
        return;
    if (!edit.is_new)
        group = stream_group_find(stream_of(edit.value), request_arg(request, 2));
    if (group == NULL) {
        reply_missing(request, deletion.id_count);
    } else if (read_ids(request, &deletion)) {
        acknowledge_and_delete(request, &deletion, &edit, group);
        deletion_fini(&deletion);
    }
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row stream_reference_commands[] = {
    {.name = "xdelex", .run = cmd_xdelex, .arity = -5, .access = ACCESS_STRIPED, .flags = "write fast",
     .categories = "@write @stream @fast", .keys = "RW,DELETE@index:1@range:0,1,0", .group = "stream",
     .since = "8.2.0", .summary = "Deletes entries of a stream, with a policy for the groups that refer to them.",
     .complexity = "O(N) for N ids, times the groups with a policy other than KEEPREF",
     .syntax = "XDELEX key [KEEPREF|DELREF|ACKED] IDS numids id [id ...]"},
    {.name = "xackdel", .run = cmd_xackdel, .arity = -6, .access = ACCESS_STRIPED, .flags = "write fast",
     .categories = "@write @stream @fast", .keys = "RW,UPDATE,DELETE@index:1@range:0,1,0", .group = "stream",
     .since = "8.2.0",
     .summary = "Acknowledges entries in a group and deletes them, with a policy for the other groups.",
     .complexity = "O(N) for N ids, times the groups with a policy other than KEEPREF",
     .syntax = "XACKDEL key group [KEEPREF|DELREF|ACKED] IDS numids id [id ...]"},
    {.name = NULL},
};
/* clang-format on */
