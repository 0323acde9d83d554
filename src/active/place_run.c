#include "active/place_priv.h"
#include "active/uuids.h"
#include "base/clock.h"
#include "base/number.h"
#include "data/list.h"
#include "server/command/operation.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/durable/aof.h"
#include "server/durable/value_words.h"
#include "server/run/dispatch.h"
#include "server/run/obeyed.h"

/* Elements of a list, and bytes of them, that the plain stream has once more rather than a copy of the list. */
enum { AGAIN_MOST = 256, AGAIN_MOST_BYTES = 16 * 1024 };
enum { NAME_LEAST = 3, NAME_MOST = 8 }; /* bytes of the name of a command that is kept */
enum { SINK_BYTES = 8192 }; /* of replies that nobody reads, until they are dropped: a block of the output */

/* NULL: this server has no such operation. */
const struct command *place_command(const struct slice *words, uint32_t word_count)
{
    const struct command *command = operation_find(words, word_count);

    if (command == NULL || !command_arity_fits(command, word_count) || !obeyed_belongs(command))
        return NULL;
    return command;
}

/* Together with its size it is the name: two words of three or four bytes, which overlap. */
static ALWAYS_INLINE uint64_t name_word(struct slice name)
{
    uint32_t first = 0, last = 0;

    if (UNLIKELY(name.size < sizeof(first))) {
        memcpy(&first, name.data, NAME_LEAST);
    } else {
        memcpy(&first, name.data, sizeof(first));
        memcpy(&last, name.data + name.size - sizeof(last), sizeof(last));
    }
    return (uint64_t)last << 32 | first;
}

static void keep_command(struct place *place, const struct command *command, struct slice name)
{
    place->known.command = NULL;
    if (command == NULL || command->container != NULL || command->subcommand_count != 0 || name.size < NAME_LEAST ||
        name.size > NAME_MOST)
        return;
    place->known.name = name_word(name);
    place->known.name_size = name.size;
    place->known.command = command;
}

static NOINLINE const struct command *find_other_command(struct place *place, const struct frame_op *op)
{
    const struct command *command = place_command(op->words, op->word_count);

    keep_command(place, command, op->words[0]);
    return command;
}

/* place_command. Most operations are of the same one as that before. */
static ALWAYS_INLINE const struct command *find_command(struct place *place, const struct frame_op *op)
{
    const struct command *command = place->known.command;

    if (LIKELY(command != NULL && command_arity_fits(command, op->word_count) &&
               op->words[0].size == place->known.name_size && name_word(op->words[0]) == place->known.name))
        return command;
    return find_other_command(place, op);
}

/* What happens in here is not this server's own. */
void place_run_begin(const struct place *place, int64_t wall, bool is_told)
{
    struct access *access = &place->worker->run.access;

    if (LIKELY(access->now_ms == wall && access->due_ms == wall && access->exclusive == place->exclusive)) {
        access->dirty = 0;
        access->found_key = NULL;
    } else {
        access_begin(access, wall, place->exclusive);
    }
    access->no_touch = false;
    access->changed = NULL;
    access->is_silent = !is_told;
    access->effects = is_told ? &place->worker->run.effects : NULL;
}

void place_run_end(const struct place *place)
{
    struct access *access = &place->worker->run.access;

    access->changed = &place->worker->run.changed;
    access->is_silent = false;
    access->effects = &place->worker->run.effects;
    if (access->dirty != 0)
        counter_add(&access->counters->dirty, access->dirty);
}

static NOINLINE void search_keys(struct place *place, const struct place_run *run, const struct command *command,
                                 struct request *request)
{
    place->keys.count = 0;
    (void)key_list_add(&place->keys, command, run->words, run->word_count);
    request_set_keys(request, place->keys.items, place->keys.count);
}

static ALWAYS_INLINE void set_keys(struct place *place, const struct place_run *run, const struct command *command,
                                   struct request *request)
{
    const bool has_one = command->simple_keys && command->first_key != 0 && command->first_key == command->last_key;

    if (LIKELY(has_one && run->key != NULL && run->key->name.data == run->words[command->first_key].data))
        request_set_keys(request, run->key, 1);
    else
        search_keys(place, run, command, request);
}

/* Where it was found, without anything that is due. */
static bool is_where_it_was(const struct place *place, const struct place_run *run, const struct request *request)
{
    return run->spot != NULL && request->keys == run->key &&
           access_find_at(place_access(place), run->db, run->key, run->spot);
}

static void expire_for_good(const struct request *request)
{
    for (uint32_t i = 0; i < request->key_count; i++)
        access_expire_for_good(request->access, request->db, &request->keys[i]);
}

static ALWAYS_INLINE enum place_ran run_words(struct place *place, const struct place_run *run)
{
    const struct command *command = run->command != NULL ? run->command : place_command(run->words, run->word_count);
    struct worker *worker = place->worker;
    const uint32_t effects_before = worker->run.effects.count;
    struct request request;
    bool own_words;

    if (UNLIKELY(command == NULL)) {
        place->counts.unknown++;
        return RAN_NOTHING;
    }
    place_run_begin(place, run->wall, run->is_told);
    if (UNLIKELY(run->captured != NULL)) {
        worker->run.access.effects = &run->captured->effects;
        worker->run.access.changed = &run->captured->changed;
    }
    request_init(&request, worker, place->client, command, run->words, run->word_count, &worker->sink);
    set_keys(place, run, command, &request);
    request_set_blobs(&request, run->blobs, run->blob_count);
    request.db = run->db;
    request.in_exec = true;
    if (UNLIKELY(!is_where_it_was(place, run, &request)) && run->captured == NULL)
        expire_for_good(&request);
    dispatch_run_obeyed(&request);
    place->counts.refused += request.failed && run->is_told;
    if (UNLIKELY(output_size(&worker->sink) >= SINK_BYTES))
        output_clear(&worker->sink);
    own_words = worker->run.access.dirty != 0 && request.effect == EFFECT_OWN_WORDS;
    place_run_end(place);
    if (!run->is_told || worker->run.effects.count == effects_before)
        return RAN_NOTHING;
    return own_words ? RAN_OWN_WORDS : RAN_OTHER_WORDS;
}

enum place_ran place_run_words(struct place *place, const struct place_run *run)
{
    return run_words(place, run);
}

/* --------------------------------------------------------------------------------------------- for the journal -- */

static struct blob *blob_of_op(const void *context, struct slice arg)
{
    const struct frame_op *op = context;

    for (uint32_t i = 0; i < op->blob_count; i++) {
        if (op->words[op->blobs[i].arg_index].data == arg.data)
            return op->blobs[i].blob;
    }
    return NULL;
}

bool place_is_flush(const struct frame_entry *entry, const struct frame_op *op)
{
    return UNLIKELY(entry->flush) && operation_flushes_words(op->words, op->word_count);
}

/* Other peers get it as it came. */
void place_add_operation(struct place *place, const struct frame_entry *entry, const struct frame_op *op, bool is_there)
{
    struct effects *effects = &place->worker->run.effects;
    const unsigned flags = (op->overwrites ? EFFECT_OVERWRITES : 0U) | (op->evicts ? EFFECT_EVICTS : 0U) |
                           (place_is_flush(entry, op) ? EFFECT_FLUSH : 0U);

    if (!is_there) {
        effects_add_with_blobs(effects, op->db, op->words, op->word_count, blob_of_op, op);
        effects->items[effects->count - 1].hidden_from = EFFECT_PLAIN;
    }
    effects_describe(effects, op->key_index, flags);
}

/* Effects of operations are not for peers, who get the operations themselves. */
static void hide_from_peers(struct place *place, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        place->worker->run.effects.items[i].hidden_from |= EFFECT_PEERS;
}

static ALWAYS_INLINE bool run_told(struct place *place, const struct frame_entry *entry, const struct frame_op *op,
                                   const struct target *target)
{
    const struct command *command = find_command(place, op);
    const struct place_run run = {.words = op->words,
                                  .word_count = op->word_count,
                                  .blobs = op->blobs,
                                  .blob_count = op->blob_count,
                                  .db = op->db,
                                  .wall = entry->wall,
                                  .command = command,
                                  .key = target != NULL ? &target->key : NULL,
                                  .spot = target != NULL && target->has_spot ? &target->spot : NULL,
                                  .is_told = true};
    struct effects *effects = &place->worker->run.effects;
    const uint32_t first = effects->count;
    const bool is_there = run_words(place, &run) == RAN_OWN_WORDS;
    const bool is_plain = !is_there || (command->flags & COMMAND_OPERATION) == 0;

    if (UNLIKELY(!is_plain))
        effects->items[effects->count - 1].hidden_from = EFFECT_PLAIN;
    hide_from_peers(place, first, effects->count - is_there);
    if (LIKELY(is_there && entry->is_of_one_key)) {
        effects->items[effects->count - 1].key_index = (uint8_t)op->key_index;
        effects->items[effects->count - 1].flags = op->overwrites ? EFFECT_OVERWRITES : 0;
    } else {
        place_add_operation(place, entry, op, is_there);
    }
    return is_plain;
}

/* Returns false if readers of the plain stream do not know these words. */
bool place_run_told(struct place *place, const struct frame_entry *entry, const struct frame_op *op,
                    const struct target *target)
{
    return run_told(place, entry, op, target);
}

/* Who begins to read it gets all data first, with the gate owned. */
static bool is_read(struct place *place)
{
    if (place->plain == PLAIN_UNKNOWN)
        place->plain = aof_is_on() || journal_has_plain(&place->worker->server->journal) ? PLAIN_READ : PLAIN_UNREAD;
    return place->plain == PLAIN_READ;
}

static bool is_corrected(const struct target *target)
{
    const struct place *place = target->place;

    for (uint32_t i = 0; i < place->corrections.count; i++) {
        const struct place_correction *other = &place->corrections.items[i];

        if (other->hash == target->key.hash && other->db == target->db &&
            slice_equal(slice_make(place->words.data + other->name_at, other->name_size), target->key.name))
            return true;
    }
    return false;
}

/* Readers of the plain stream get the value as it is at the end of the batch. */
void target_correct(const struct target *target)
{
    struct place *place = target->place;

    if (!is_read(place))
        return;
    if (!place->flush_corrects && is_corrected(target))
        return;
    *ARRAY_PUSH(&place->corrections) = (struct place_correction){target->key.hash, place->words.size,
                                                                 target->key.name.size, target->db};
    buffer_append_slice(&place->words, target->key.name);
}

/* The words that push the elements at this end of the list, which are there, on a list that lacks them. */
static void gather_pushed(const struct target *target, bool is_first, uint64_t count, struct buffer *texts)
{
    const struct value list = entry_value(target_look(target));
    struct place *place = target->place;
    struct listpack_value value;
    struct quicklist_iter iter;

    quicklist_iter_init(&iter, list_of(list), is_first ? (int64_t)count - 1 : -(int64_t)count,
                        is_first ? QUICKLIST_BACKWARD : QUICKLIST_FORWARD);
    for (; count != 0 && quicklist_iter_next(&iter, &value); count--) {
        char scratch[NUMBER_I64_SPACE];
        const struct slice text = value.text.data != NULL
                                      ? value.text
                                      : slice_make(scratch, number_format_i64(scratch, value.number));

        *ARRAY_PUSH(&place->args) = slice_make(NULL, text.size);
        buffer_append_slice(texts, text);
    }
    quicklist_iter_fini(&iter);
}

static void add_pushed(const struct target *target, bool is_first, uint64_t count, uint64_t behind,
                       const struct buffer *texts)
{
    struct place *place = target->place;
    struct effects *effects = &place->worker->run.effects;
    const uint32_t first = effects->count;
    const char *at = texts->data;
    char from[NUMBER_I64_SPACE], to[NUMBER_I64_SPACE];
    const struct slice trim[] = {SLICE("LTRIM"), target->key.name,
                                 slice_make(from, number_format_i64(from, is_first ? (int64_t)behind : 0)),
                                 slice_make(to, number_format_i64(to, is_first ? -1 : -1 - (int64_t)behind))};

    for (uint32_t i = 2; i < place->args.count; i++) {
        place->args.items[i].data = at;
        at += place->args.items[i].size;
    }
    assert(place->args.count == count + 2);
    effects_add_unshared(effects, target->db, trim, countof(trim));
    effects_add_unshared(effects, target->db, place->args.items, place->args.count);
    for (uint32_t i = first; i < effects->count; i++)
        effects->items[i].hidden_from |= EFFECT_PEERS;
}

void target_correct_push(const struct target *target, bool is_first, uint64_t count, uint64_t behind)
{
    struct place *place = target->place;
    struct buffer texts = {0};

    if (!is_read(place) || is_corrected(target))
        return;
    if (behind + count > AGAIN_MOST || uuids_are_kept()) {
        target_correct(target);
        return;
    }
    place->args.count = 0;
    *ARRAY_PUSH(&place->args) = is_first ? SLICE("LPUSH") : SLICE("RPUSH");
    *ARRAY_PUSH(&place->args) = target->key.name;
    gather_pushed(target, is_first, behind + count, &texts);
    if (texts.size > AGAIN_MOST_BYTES)
        target_correct(target);
    else
        add_pushed(target, is_first, behind + count, behind, &texts);
    buffer_fini(&texts);
}

void target_run_told(const struct target *target)
{
    const struct frame_entry *entry = target->entry;
    bool is_plain = run_told(target->place, entry, &entry->ops[target->first], target);

    for (uint32_t i = target->first + 1; i < entry->op_count; i++) {
        if (target_has(target, &entry->ops[i]))
            is_plain = place_run_told(target->place, entry, &entry->ops[i], target) && is_plain;
    }
    if (!is_plain)
        target_correct(target);
}

struct value_effect {
    struct effects *effects;
    unsigned db;
};

static void add_value_words(const struct slice *words, uint32_t count, struct blob *value, void *context)
{
    const struct value_effect *to = context;

    effects_add_value(to->effects, to->db, words, count, value, EFFECT_PEERS);
}

/* A server of another kind that has changed the key of late. */
static uint64_t foreign_origin(struct place *place, unsigned db, const struct key *key)
{
    struct access *access = place_access(place);
    const struct window_key *known = uuids_are_kept() ? window_find(access, db, key) : NULL;

    if (known == NULL)
        return MERGE_ORIGIN_FLOOR;
    for (uint32_t i = known->record.count; i-- != 0;) {
        const uint64_t origin = known->record.steps[i].op->entry->origin;

        if (merge_origin_is_foreign(origin))
            return origin;
    }
    return merge_origin_is_foreign(known->record.base_place.origin) ? known->record.base_place.origin
                                                                    : MERGE_ORIGIN_FLOOR;
}

/* Files say so before the value: it is no operation. */
static void describe_correction(struct place *place, uint64_t foreign)
{
    const struct effect_stamp stamp = {.stamp = stamp_at(0), .origin = foreign, .key_position = JOURNAL_NOWHERE};

    effects_describe(&place->worker->run.effects, 0, EFFECT_CORRECTS);
    place_describe_stamps(place, &stamp);
}

static void add_corrections(struct place *place)
{
    struct effects *effects = &place->worker->run.effects;

    for (uint32_t i = 0; i < place->corrections.count; i++) {
        const struct place_correction *correction = &place->corrections.items[i];
        const struct key key = {slice_make(place->words.data + correction->name_at, correction->name_size),
                                correction->hash};
        struct value_effect to = {effects, correction->db};

        value_words(place_access(place), correction->db, &key, add_value_words, &to);
        effects_end_group(effects);
        describe_correction(place, foreign_origin(place, correction->db, &key));
    }
    place->corrections.count = 0;
    buffer_clear(&place->words);
}

void place_append_to_journal(struct place *place)
{
    struct worker *worker = place->worker;
    struct effects *effects = &worker->run.effects;
    const bool has_corrections = place->corrections.count != 0;

    if (UNLIKELY(place->is_journaled)) {
        place->corrections.count = 0;
        buffer_clear(&place->words);
        effects_clear(effects);
        place->stamps.count = 0;
        return;
    }
    if (UNLIKELY(has_corrections)) {
        const uint64_t begin_us = clock_monotonic_us();

        add_corrections(place);
        place->correcting_us = clock_monotonic_us() - begin_us;
    }
    if (effects->count == 0)
        return;
    assert(place->stamps.count == effects->count);
    if (UNLIKELY(has_corrections)) /* what the entries did is true in files only with the values behind them */
        (void)journal_append_whole(&worker->server->journal, effects, place->stamps.items);
    else
        (void)journal_append_stamped(&worker->server->journal, effects, false, place->stamps.items);
    worker->has_journaled = true;
    worker_at_turn_end(worker);
    effects_clear(effects);
    place->stamps.count = 0;
}
