#include "active/place_priv.h"

#include "base/hash.h"
#include "base/number.h"
#include "data/hash.h"
#include "data/list.h"
#include "server/command/operation.h"
#include "server/core/server.h"
#include "store/undo.h"

bool target_has(const struct target *target, const struct frame_op *op)
{
    return place_has_key(op) && op->db == target->db && slice_equal(op->words[op->key_index], target->key.name);
}

void target_add_operation(struct target *target, const struct frame_op *op)
{
    target->overwrites = target->overwrites || op->overwrites;
    if (op->evicts) {
        target->evicts = true;
        target->at = merge_place_behind(op->seen);
    }
}

void target_base(const struct target *target, struct merge_record *base)
{
    const struct entry *found = target_look(target);

    window_base(place_access(target->place), target->db, found != NULL, found != NULL ? entry_version(found) : 0, base);
}

/* All that the entry does to the key. The caller releases the operation's entry. */
struct slice target_words(const struct target *target)
{
    const struct frame_entry *entry = target->entry;
    struct buffer *words = &target->place->step_words;

    buffer_clear(words);
    for (uint32_t i = target->first; i < entry->op_count; i++) {
        if (target_has(target, &entry->ops[i]))
            effects_append_words(words, entry->ops[i].words, entry->ops[i].word_count);
    }
    return buffer_slice(words);
}

struct merge_op *target_op(const struct target *target)
{
    const struct frame_entry *entry = target->entry;
    const struct merge_item item = {.words = target_words(target),
                                    .overwrites = target->overwrites,
                                    .evicts = target->evicts,
                                    .seen = target->at.stamp};

    return &merge_entry_create(entry->origin, entry->stamp, entry->prev, entry->wall, false, &item, 1)->ops[0];
}

static unsigned number_of(struct place *place, uint64_t origin)
{
    struct origins *origins = &place->worker->server->store->origins;

    if (place->known_origin != origin || origins_id(origins, place->known_number) != origin) {
        place->known_number = origins_number(origins, origin);
        place->known_origin = origin;
    }
    return place->known_number;
}

bool target_set_version(const struct target *target, struct merge_place last, bool overwrote)
{
    struct place *place = target->place;
    const unsigned number = last.origin >= MERGE_ORIGIN_FLOOR ? (unsigned)ORIGINS_UNKNOWN
                                                              : number_of(place, last.origin);
    /* Else of a key from the time before. */
    const uint64_t version = last.stamp >= stamp_at(0) ? version_make(last.stamp, overwrote, number) : 0;

    /* Whatever its deadline says. */
    return access_set_version(place_access(place), target->db, &target->key, target->has_spot ? &target->spot : NULL,
                              version);
}

/* The clock of this node is at least there. */
struct merge_place target_mark(const struct target *target)
{
    const uint64_t clock = journal_clock(&target->place->worker->server->journal);

    return (struct merge_place){MAX(clock, target->entry->stamp), 0};
}

void target_inform(const struct target *target)
{
    struct access *access = place_access(target->place);
    struct change change;

    place_run_begin(target->place, target->entry->wall, false);
    change_begin(&change, access, target->db, &target->key);
    change_end(&change, EVENT_GENERIC, NULL);
    place_run_end(target->place);
}

void target_tell(const struct target *target)
{
    target_inform(target);
    target_correct(target);
}

/* What the record says now goes into the key's version and the window. */
void target_write_down(const struct target *target, struct window_key *known)
{
    if (known->record.value != NULL)
        (void)target_set_version(target, merge_record_last(&known->record),
                                 known->record.count == 0 && known->record.base_overwrote);
    window_changed(place_access(target->place), &known);
}

/* ---------------------------------------------------------------------------------------------- the real model -- */

static const struct target *target_of(const struct merge_model *model)
{
    return ((const struct place_model *)model)->target;
}

const char *place_read_words(struct place *place, const char *at)
{
    const uint64_t count = operation_next_count(&at);

    place->args.count = 0;
    for (uint64_t i = 0; i < count; i++)
        *ARRAY_PUSH(&place->args) = operation_next_word(&at);
    return at;
}

static void run_stored(const struct target *target, const struct merge_op *op)
{
    struct place *place = target->place;
    const char *at = op->words.data, *end = at + op->words.size;

    while (at < end) {
        struct place_run run = {.db = target->db, .wall = op->entry->wall};

        at = place_read_words(place, at);
        run.words = place->args.items;
        run.word_count = place->args.count;
        (void)place_run_words(place, &run);
    }
}

static struct merge_value *model_apply(const struct merge_model *model, struct merge_value *value,
                                       const struct merge_op *op, struct merge_undo **undo)
{
    struct place_model *place_model = (struct place_model *)(uintptr_t)model;
    const struct target *target = place_model->target;
    struct access *access = place_access(target->place);

    assert((value != NULL) == (target_look(target) != NULL));
    if (undo != NULL)
        undo_begin(access);
    if (place_model->tells) {
        place_model->tells = false;
        place_model->has_told = true;
        target_run_told(target);
    } else {
        run_stored(target, op);
    }
    if (undo != NULL) {
        *undo = (struct merge_undo *)undo_take(access, target->db, &target->key);
        undo_end(access);
    }
    return target_value(target);
}

static struct merge_value *model_apply_behind(const struct merge_model *model, struct merge_value *value,
                                              const struct merge_op *op, uint64_t behind, struct merge_undo **undo)
{
    struct place_model *place_model = (struct place_model *)(uintptr_t)model;
    const struct target *target = place_model->target;
    struct access *access = place_access(target->place);
    const bool is_first = operation_touch_of(op->words).kind == OPERATION_PUSHES_FIRST;
    struct change change;
    struct value list;

    (void)value;
    (void)place_read_words(target->place, op->words.data);
    place_run_begin(target->place, op->entry->wall, false);
    undo_begin(access);
    change_begin(&change, access, target->db, &target->key);
    list = entry_value(target_look(target));
    for (uint32_t i = 2; i < target->place->args.count; i++)
        quicklist_push_behind(list_of(list), is_first ? QUICKLIST_HEAD : QUICKLIST_TAIL, behind,
                              target->place->args.items[i]);
    change_keep_value(&change, list);
    change_end(&change, EVENT_LIST, NULL);
    *undo = (struct merge_undo *)undo_take(access, target->db, &target->key);
    undo_end(access);
    place_run_end(target->place);
    place_model->pushed.count = target->place->args.count - 2;
    place_model->pushed.behind = behind;
    place_model->pushed.is_first = is_first;
    return target_value(target);
}

static struct merge_touch touch_of(struct slice words)
{
    static const uint8_t kinds[] = {
        [OPERATION_TOUCHES_ALL] = MERGE_TOUCHES_ALL,   [OPERATION_WRITES] = MERGE_WRITES,
        [OPERATION_REMOVES] = MERGE_REMOVES,           [OPERATION_ADDS] = MERGE_ADDS,
        [OPERATION_PUSHES_FIRST] = MERGE_PUSHES_FIRST, [OPERATION_PUSHES_LAST] = MERGE_PUSHES_LAST};
    const struct operation_touch touch = operation_touch_of(words);
    const uint64_t hash = touch.member.data != NULL ? hash_bytes(touch.member.data, touch.member.size) : 0;

    return (struct merge_touch){touch.count != 0 ? touch.count : (uint32_t)hash, kinds[touch.kind]};
}

static struct merge_touch model_touch(const struct merge_model *model, const struct merge_op *op)
{
    (void)model;
    return touch_of(op->words);
}

void place_teach_window(void)
{
    gate_assert_alone();
    window_set_touch(touch_of);
}

/* No order of this many small additions would meet a limit. */
static bool has_room(int64_t number)
{
    static_assert(OPERATION_ADDS_MOST <= INT64_MAX / 4 / MERGE_PASSED_MOST, "as many do not add up to a quarter");
    return number > INT64_MIN / 4 && number < INT64_MAX / 4;
}

static bool suits_string(const struct entry *entry)
{
    return entry->type == TYPE_STRING && entry_is_int(entry) && has_room(entry_int(entry));
}

static bool suits_field(const struct entry *entry, struct slice field)
{
    char scratch[NUMBER_I64_SPACE];
    struct slice text;
    int64_t number = 0;

    if (entry->type != TYPE_HASH)
        return false;
    return hash_get(entry_value(entry), field, scratch, &text) && number_parse_i64(text, &number) && has_room(number);
}

static bool suits_member(const struct access *access, const struct entry *entry, uint64_t removed)
{
    const struct value_ops *ops = access->store->types[entry->type].ops;

    if (entry->type != TYPE_HASH && entry->type != TYPE_SET && entry->type != TYPE_ZSET)
        return false;
    return ops->count(entry_value(entry)) > removed;
}

static bool is_fit(const struct target *target, const struct merge_op *op, uint32_t younger, uint32_t again)
{
    const struct operation_touch touch = operation_touch_of(op->words);
    const struct entry *entry = target_look(target);
    bool suits;

    if ((entry->flags & ENTRY_MEMBERS) != 0 ||
        (entry_expire_ms(entry) != EXPIRE_NEVER && entry_expire_ms(entry) <= op->entry->wall))
        return false;
    if (touch.kind == OPERATION_PUSHES_FIRST || touch.kind == OPERATION_PUSHES_LAST)
        suits = entry->type == TYPE_LIST;
    else if (touch.kind != OPERATION_ADDS)
        suits = true;
    else if (touch.member.data == NULL)
        suits = suits_string(entry);
    else
        suits = suits_field(entry, touch.member);
    if (suits && touch.member.data != NULL)
        suits = suits_member(place_access(target->place), entry,
                             touch.kind == OPERATION_REMOVES ? (uint64_t)younger + 1
                             : again != 0                    ? again + 1
                                                             : 0);
    return suits;
}

static bool model_suits(const struct merge_model *model, const struct merge_value *value, const struct merge_op *op,
                        uint32_t younger, uint32_t again)
{
    const bool suits = is_fit(target_of(model), op, younger, again);

    (void)value;
    /* It runs next. What it does to readers of the plain stream is not all if others run behind it. */
    ((struct place_model *)(uintptr_t)model)->tells = suits && again == 0;
    return suits;
}

static bool model_suits_joined(const struct merge_model *model, const struct merge_value *value,
                               const struct merge_op *op, uint32_t others)
{
    static_assert(WINDOW_JOINED_MOST < OPERATION_ADDS_MOST + 1, "joined additions count as one");
    (void)value;
    (void)others; /* has_room has enough for all */
    return is_fit(target_of(model), op, 0, 0);
}

static struct merge_value *model_undo(const struct merge_model *model, struct merge_value *value,
                                      const struct merge_undo *undo)
{
    const struct target *target = target_of(model);
    struct access *access = place_access(target->place);

    (void)value;
    access->found_key = NULL;
    undo_apply(access, target->db, &target->key, (struct key_undo *)(uintptr_t)undo);
    return target_value(target);
}

void place_model_destroy(const struct merge_model *model, struct merge_value *value)
{
    const struct target *target = target_of(model);
    struct access *access = place_access(target->place);
    struct change change;

    if (value == NULL)
        return;
    place_run_begin(target->place, target->entry->wall, false);
    access->unasked = true; /* it goes also if its deadline is below this wall time */
    change_begin(&change, access, target->db, &target->key);
    change_delete_for(&change, FREE_SERVER_DEL);
    change_end(&change, EVENT_GENERIC, NULL);
    access->unasked = false;
    place_run_end(target->place);
}

void place_model_init(struct place_model *model, const struct target *target)
{
    window_model_init(&model->window, place_access(target->place));
    model->window.model.apply = model_apply;
    model->window.model.undo = model_undo;
    model->window.model.touch = model_touch;
    model->window.model.suits = model_suits;
    model->window.model.suits_joined = model_suits_joined;
    model->window.model.apply_behind = model_apply_behind;
    model->window.model.destroy = place_model_destroy;
    model->target = target;
    model->tells = model->has_told = false;
    model->pushed.count = 0;
}
