/* KeyDB sends commands that may be on several keys, and depend on other keys than those they change. They run once, on
 * what is there: so it is known which operations they are. These are taken back, and then placed as those of any entry.
 * A command that is a function of one key is an operation as it is. */
#include "active/place_priv.h"

#include "active/mvcc.h"
#include "base/number.h"
#include "server/command/operation.h"
#include "server/core/server.h"
#include "store/undo.h"

void place_raw_fini(struct place *place)
{
    effects_fini(&place->raw.capture.effects);
    changed_fini(&place->raw.capture.changed);
    buffer_fini(&place->raw.bytes);
    ARRAY_FINI(&place->raw.ops);
    ARRAY_FINI(&place->raw.words);
}

uint64_t place_last_stamp(struct access *access, unsigned db, const struct key *key)
{
    const struct window_key *known = window_find(access, db, key);
    const struct entry *entry = access_look(access, db, key);

    access_assert_holds(access, access_stripe_of(access, key));
    if (known != NULL)
        return merge_record_last(&known->record).stamp;
    return entry == NULL || entry_version(entry) == 0 ? 0 : version_stamp(entry_version(entry));
}

void place_describe_raw(struct frame_entry *entry)
{
    for (uint32_t i = 0; i < entry->op_count; i++)
        entry->flush = entry->flush || operation_flushes_words(entry->ops[i].words, entry->ops[i].word_count);
}

bool place_raw_keys(const struct frame_entry *entry, struct key_list *keys)
{
    for (uint32_t i = 0; i < entry->op_count; i++) {
        const struct frame_op *op = &entry->ops[i];
        const struct command *command = place_command(op->words, op->word_count);
        enum access_class access;

        if (command == NULL)
            continue;
        access = command_access(command, op->words, op->word_count);
        if ((access != ACCESS_STRIPED && access != ACCESS_GATED) || (command->flags & COMMAND_SCRIPT) != 0)
            return false;
        (void)key_list_add(keys, command, op->words, op->word_count);
    }
    return !entry->flush;
}

static bool is_named(const struct command *command, const char *name)
{
    return slice_equal_text(command->full_name, name);
}

/* It is a function of one key, or of none. */
static bool is_operation(struct place *place, const struct frame_op *op)
{
    const struct command *command = place_command(op->words, op->word_count);
    const unsigned key_index = command != NULL ? operation_key_index(command) : 0;
    uint32_t count;

    if (command == NULL)
        return true; /* it is unknown here, and passed on */
    if ((command->flags & COMMAND_SCRIPT) != 0 || is_named(command, "move") || is_named(command, "copy") ||
        is_named(command, "keydb.mvccrestore"))
        return false;
    place->keys.count = 0;
    count = key_list_add(&place->keys, command, op->words, op->word_count);
    return count == 0 || (count == 1 && key_index != 0 && key_index < op->word_count &&
                          slice_equal(place->keys.items[0].name, op->words[key_index]));
}

static void describe_op(struct frame_op *op)
{
    const struct command *command = place_command(op->words, op->word_count);

    if (command == NULL)
        return;
    op->key_index = operation_key_index(command);
    op->overwrites = operation_overwrites(command, op->words, op->word_count);
}

/* A key that a server passes on with all data of another one: it is older here, or has been told. */
static bool is_passed(const struct place *place, const struct frame_op *op)
{
    const struct command *command = place_command(op->words, op->word_count);
    uint64_t mvcc, last;
    struct key key;

    if (command == NULL || !is_named(command, "keydb.mvccrestore") || !number_parse_u64(op->words[2], &mvcc))
        return false;
    key = key_make(op->words[1]);
    last = place_last_stamp(place_access(place), op->db, &key);
    return last != 0 && mvcc_of_stamp(last) >= mvcc; /* what it has loaded from a file has the mvcc 0 */
}

/* Of a bulk string or an array: the words are our own. */
static const char *read_number(const char *at, size_t *number)
{
    *number = 0;
    for (at++; *at != '\r'; at++)
        *number = *number * 10 + (size_t)(*at - '0');
    return at + 2;
}

static void keep_op(struct place *place, const char *at, unsigned db)
{
    size_t count, size;

    at = read_number(at, &count);
    *ARRAY_PUSH(&place->raw.ops) = (struct frame_op){.word_count = (uint32_t)count, .db = db};
    for (size_t i = 0; i < count; i++) {
        at = read_number(at, &size);
        *ARRAY_PUSH(&place->raw.words) = slice_make(at, size);
        at += size + 2;
    }
}

static size_t bytes_of(const struct effects *effects, const struct effect *effect)
{
    size_t size = effect->size;

    for (uint32_t i = 0; i < effect->blob_count; i++)
        size += effects->blobs.items[effect->first_blob + i].blob->size;
    return size;
}

/* All words are there and move no more. */
static void set_pointers(struct place *place)
{
    const struct slice *words = place->raw.words.items;

    for (uint32_t i = 0; i < place->raw.ops.count; i++) {
        place->raw.ops.items[i].words = words;
        words += place->raw.ops.items[i].word_count;
        describe_op(&place->raw.ops.items[i]);
    }
}

static void keep_ops(struct place *place)
{
    const struct effects *effects = &place->raw.capture.effects;
    size_t at = 0;

    for (uint32_t i = 0; i < effects->count; i++)
        effects_append_bytes(effects, &effects->items[i], &place->raw.bytes);
    for (uint32_t i = 0; i < effects->count; i++) {
        if ((effects->items[i].hidden_from & EFFECT_PEERS) == 0)
            keep_op(place, place->raw.bytes.data + at, effects->items[i].db);
        at += bytes_of(effects, &effects->items[i]);
    }
    assert(at == place->raw.bytes.size);
    set_pointers(place);
}

static void take_back_ops(struct place *place)
{
    struct access *access = place_access(place);

    for (uint32_t i = 0; i < place->raw.ops.count; i++) {
        const struct frame_op *op = &place->raw.ops.items[i];
        struct key_undo *undo;
        struct key key;

        if (!place_has_key(op))
            continue;
        key = key_make(op->words[op->key_index]);
        undo = undo_take(access, op->db, &key);
        access->found_key = NULL;
        if (undo != NULL)
            undo_apply(access, op->db, &key, undo);
        key_undo_release(access, &undo);
    }
}

/* A key that had gone is back without its version. */
static void restore_versions(struct place *place)
{
    const struct changed *changed = &place->raw.capture.changed;

    for (uint32_t i = changed->count; i-- != 0;) {
        const struct changed_item *item = &changed->items[i];
        const struct key key = changed_key(changed, item);
        struct change change;

        change_find(&change, place_access(place), item->db, &key);
        if (change.slot != NULL && item->existed)
            change_set_version(&change, item->version);
    }
}

static void capture_ops(struct place *place, const struct frame_entry *entry)
{
    undo_begin(place_access(place));
    for (uint32_t i = 0; i < entry->op_count; i++) {
        const struct frame_op *op = &entry->ops[i];
        const struct place_run run = {.words = op->words,
                                      .word_count = op->word_count,
                                      .db = op->db,
                                      .wall = entry->wall,
                                      .captured = &place->raw.capture};

        if (op->db < place->worker->server->store->database_count && !is_passed(place, op))
            (void)place_run_words(place, &run);
    }
    keep_ops(place);
    take_back_ops(place);
    restore_versions(place);
    undo_end(place_access(place));
    effects_clear(&place->raw.capture.effects);
    changed_clear(&place->raw.capture.changed, place_access(place));
}

/* Nothing is to be done, but the stamp is in the history. */
static void keep_nothing(struct place *place)
{
    *ARRAY_PUSH(&place->raw.words) = SLICE("PING");
    *ARRAY_PUSH(&place->raw.ops) = (struct frame_op){.words = place->raw.words.items, .word_count = 1};
}

void place_raw_tell(struct place *place, struct frame_entry *entry)
{
    bool are_operations = true;

    place->raw.ops.count = place->raw.words.count = 0;
    buffer_clear(&place->raw.bytes);
    for (uint32_t i = 0; i < entry->op_count && are_operations; i++)
        are_operations = is_operation(place, &entry->ops[i]);
    if (are_operations || entry->flush) {
        for (uint32_t i = 0; i < entry->op_count; i++) {
            *ARRAY_PUSH(&place->raw.ops) = entry->ops[i];
            describe_op(&place->raw.ops.items[i]);
        }
    } else {
        capture_ops(place, entry);
    }
    if (place->raw.ops.count == 0)
        keep_nothing(place);
    entry->ops = place->raw.ops.items;
    entry->op_count = place->raw.ops.count;
    entry->is_raw = false;
}
