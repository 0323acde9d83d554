#include "active/keydb_entries.h"

#include "active/frame.h"
#include "active/node.h"
#include "active/place.h"
#include "active/uuids.h"
#include "base/array.h"
#include "base/clock.h"
#include "merge/place.h"

enum { IDLE_BYTES = 1 << 20 };

bool keydb_entries_is_about_link(const struct envelope_command *command)
{
    return slice_equal_text_nocase(command->words[0], "ping") || slice_equal_text_nocase(command->words[0], "replconf");
}

void keydb_entries_note_link(struct keydb_entries *entries, const struct envelope_command *command)
{
    if (command->word_count >= 2 && slice_equal_text_nocase(command->words[1], "getack"))
        entries->wants_ack = true;
}

static bool is_state(const struct envelope_entry *entry)
{
    return entry->command_count == 1 && slice_equal_text_nocase(entry->commands[0].words[0], "keydb.mvccrestore");
}

/* What is here of the origin, behind the entries that wait. */
static uint64_t here_of(const struct keydb_entries *entries, uint64_t origin)
{
    for (uint32_t i = entries->count; i-- != 0;) {
        if (entries->items[i].origin == origin)
            return entries->items[i].stamp;
    }
    return node_have(origin);
}

/* A key that a server has got with all data of another one, and passes on with the time of its last change, and what
 * has no time at all, become operations of this node's: others decide for themselves. False: it is not for us. */
static bool name_entry(struct keydb_entries *entries, const struct envelope_entry *from, struct frame_entry *entry)
{
    if (is_state(from) || from->stamp == 0) {
        adoption_name(entries->origin, from->stamp != 0 ? from->stamp : stamp_at(clock_wall_ms()), entry);
        return true;
    }
    entry->uuid = from->uuid;
    entry->origin = uuid_id(&from->uuid);
    entry->stamp = from->stamp;
    entry->mvcc = from->mvcc;
    entry->wall = mvcc_wall_ms(from->mvcc);
    if (uuid_is_ours(&from->uuid)) {
        if (node_knows(entry->origin))
            return false;
        entry->origin |= MERGE_ORIGIN_FOREIGN; /* it is not of our group: nobody says its beats */
        entry->uuid = uuid_of_id(entry->origin);
    }
    uuids_keep(&entry->uuid);
    return true;
}

static void keep_command(struct keydb_entries *entries, const struct envelope_command *command)
{
    *ARRAY_PUSH(&entries->parts) = (struct keydb_op_part){entries->word_parts.count, command->word_count, command->db};
    for (uint32_t i = 0; i < command->word_count; i++) {
        *ARRAY_PUSH(&entries->word_parts) = (struct keydb_word_part){entries->texts.size, command->words[i].size};
        buffer_append_slice(&entries->texts, command->words[i]);
    }
}

void keydb_entries_take(void *context, const struct envelope_entry *from)
{
    struct keydb_entries *entries = context;
    struct frame_entry entry = {.is_raw = true};
    const uint32_t first = entries->parts.count;

    for (uint32_t i = 0; i < from->command_count; i++) {
        if (keydb_entries_is_about_link(&from->commands[i]))
            keydb_entries_note_link(entries, &from->commands[i]);
    }
    if (from->command_count == 1 && keydb_entries_is_about_link(&from->commands[0]))
        return;
    if (!name_entry(entries, from, &entry))
        return;
    entry.prev = here_of(entries, entry.origin);
    if (entry.stamp <= entry.prev)
        return; /* it came by another way */
    for (uint32_t i = 0; i < from->command_count; i++) {
        if (!keydb_entries_is_about_link(&from->commands[i]))
            keep_command(entries, &from->commands[i]);
    }
    entry.op_count = entries->parts.count - first;
    *ARRAY_PUSH(entries) = entry;
}

/* All is there and moves no more. */
void keydb_entries_finish(struct keydb_entries *entries)
{
    const struct slice *words;
    const struct frame_op *ops;

    entries->words.count = entries->ops.count = 0;
    for (uint32_t i = 0; i < entries->word_parts.count; i++)
        *ARRAY_PUSH(&entries->words) = slice_make(entries->texts.data + entries->word_parts.items[i].at,
                                                  entries->word_parts.items[i].size);
    words = entries->words.items;
    for (uint32_t i = 0; i < entries->parts.count; i++) {
        const struct keydb_op_part *part = &entries->parts.items[i];

        *ARRAY_PUSH(&entries->ops) = (struct frame_op){.words = words + part->first_word,
                                                       .word_count = part->word_count,
                                                       .db = part->db};
    }
    ops = entries->ops.items;
    for (uint32_t i = 0; i < entries->count; i++) {
        entries->items[i].ops = ops;
        ops += entries->items[i].op_count;
        place_describe_raw(&entries->items[i]);
    }
}

void keydb_entries_clear(struct keydb_entries *entries)
{
    entries->count = entries->parts.count = entries->word_parts.count = 0;
    buffer_clear(&entries->texts);
    if (entries->texts.capacity > (size_t)IDLE_BYTES)
        buffer_fini(&entries->texts);
}

void keydb_entries_fini(struct keydb_entries *entries)
{
    buffer_fini(&entries->texts);
    ARRAY_FINI(entries);
    ARRAY_FINI(&entries->parts);
    ARRAY_FINI(&entries->word_parts);
    ARRAY_FINI(&entries->ops);
    ARRAY_FINI(&entries->words);
}
