#include "data/stream.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "base/mem_move.h"
#include "data/stream_kept.h"
#include "data/stream_node.h"
#include "data/stream_priv.h"

enum { END_ENTRIES = 8 }; /* of an open node: a reader's place is looked for from there */

/* --- ids --- */

bool stream_id_increment(struct stream_id *id)
{
    if (id->seq == UINT64_MAX && id->ms == UINT64_MAX)
        return false;
    id->ms += id->seq == UINT64_MAX;
    id->seq++;
    return true;
}

bool stream_id_decrement(struct stream_id *id)
{
    if (stream_id_is_zero(*id))
        return false;
    id->ms -= id->seq == 0;
    id->seq--;
    return true;
}

struct slice stream_id_encode(struct stream_id id, char room[STREAM_ID_BYTES])
{
    uint64_t words[2] = {__builtin_bswap64(id.ms), __builtin_bswap64(id.seq)};

    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as in the packed layouts");
    memcpy(room, words, sizeof(words));
    return slice_make(room, STREAM_ID_BYTES);
}

struct stream_id stream_id_decode(const char bytes[STREAM_ID_BYTES])
{
    uint64_t words[2];

    memcpy(words, bytes, sizeof(words));
    return (struct stream_id){__builtin_bswap64(words[0]), __builtin_bswap64(words[1])};
}

/* --- nodes --- */

static bool seek_id(struct radix_iter *nodes, enum radix_seek how, struct stream_id id)
{
    char room[STREAM_ID_BYTES];

    return radix_seek(nodes, how, stream_id_encode(id, room));
}

/* The node in which the id would be. */
static bool seek_node_of(struct radix_iter *nodes, struct stream_id id)
{
    return seek_id(nodes, RADIX_AT_MOST, id) || radix_seek(nodes, RADIX_FIRST, SLICE_EMPTY);
}

static void set_kept(struct stream *stream, struct slice key, struct stream_kept *kept)
{
    radix_set(stream->nodes, key, kept, NULL);
    stream->node_bytes += stream_kept_memory_bytes(kept);
}

static void set_node(struct stream *stream, struct slice key, struct listpack *node)
{
    set_kept(stream, key, stream_keep(node));
}

/* To change it: open, and not counted until it is set again. */
static struct listpack *take_node(struct stream *stream, struct stream_kept *kept)
{
    stream->node_bytes -= stream_kept_memory_bytes(kept);
    return stream_kept_open(kept);
}

static void remove_node(struct stream *stream, struct slice key, struct stream_kept *kept)
{
    stream->length -= stream_kept_live(kept);
    stream->node_bytes -= stream_kept_memory_bytes(kept);
    radix_remove(stream->nodes, key, NULL);
    stream_kept_destroy(&kept);
}

void stream_put_kept(struct stream *stream, struct slice key, struct stream_kept *kept)
{
    void *old = NULL;

    if (radix_find(stream->nodes, key, &old))
        remove_node(stream, key, old);
    if (kept == NULL)
        return;
    set_kept(stream, key, kept);
    stream->length += stream_kept_live(kept);
}

/* Called before a node is begun. The last node stays open for readers of new entries; the one before it is
 * compressed. */
static void pack_settled_node(struct stream *stream)
{
    struct radix_iter nodes;

    radix_iter_init(&nodes, stream->nodes);
    if (radix_seek(&nodes, RADIX_LAST, SLICE_EMPTY) && radix_previous(&nodes) && !stream_kept_is_packed(nodes.value)) {
        stream->node_bytes -= stream_kept_memory_bytes(nodes.value);
        set_kept(stream, radix_iter_key(&nodes), stream_kept_pack(nodes.value, stream_id_decode(nodes.key)));
    }
    radix_iter_fini(&nodes);
}

static void find_first_id(struct stream *stream)
{
    struct stream_iter iter;
    struct stream_id id;
    uint64_t field_count;

    stream_iter_init(&iter, stream, STREAM_ID_LEAST, STREAM_ID_MOST);
    stream->first_id = stream_iter_next(&iter, &id, &field_count) ? id : STREAM_ID_LEAST;
    stream_iter_fini(&iter);
}

/* --- the stream --- */

struct stream *stream_create(void)
{
    struct stream *stream = mem_alloc_zero(sizeof(*stream));

    stream->nodes = radix_create();
    stream->groups = radix_create();
    return stream;
}

struct stream *stream_copy(const struct stream *stream)
{
    struct stream *copy = mem_copy(stream, sizeof(*stream));
    struct radix_iter nodes;

    copy->nodes = radix_create();
    copy->node_bytes = 0;
    radix_iter_init(&nodes, stream->nodes);
    for (bool more = radix_seek(&nodes, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&nodes))
        set_kept(copy, radix_iter_key(&nodes), stream_kept_copy(nodes.value));
    radix_iter_fini(&nodes);
    copy->groups = stream_groups_copy(stream->groups);
    copy->formers = NULL;
    copy->idmp = stream_idmp_copy(stream->idmp);
    return copy;
}

static void free_node(void *value)
{
    struct stream_kept *kept = value;

    stream_kept_destroy(&kept);
}

void stream_destroy(struct stream **stream)
{
    struct stream *gone = *stream;

    *stream = NULL;
    if (gone == NULL)
        return;
    radix_destroy(&gone->nodes, free_node);
    stream_groups_destroy(&gone->groups);
    stream_idmp_destroy(&gone->idmp);
    mem_free(gone);
}

uint64_t stream_length(const struct stream *stream)
{
    return stream->length;
}

struct stream_id stream_first_id(const struct stream *stream)
{
    return stream->first_id;
}

struct stream_id stream_last_id(const struct stream *stream)
{
    return stream->last_id;
}

struct stream_id stream_top_id(const struct stream *stream)
{
    struct stream_id id = STREAM_ID_LEAST;
    struct stream_iter iter;
    uint64_t field_count;

    if (stream->length == 0)
        return id;
    stream_iter_init_backwards(&iter, stream, STREAM_ID_LEAST, STREAM_ID_MOST);
    (void)stream_iter_next(&iter, &id, &field_count);
    stream_iter_fini(&iter);
    return id;
}

struct stream_id stream_front_id(const struct stream *stream)
{
    struct stream_entry entry = {.id = STREAM_ID_LEAST};
    struct radix_iter nodes;

    radix_iter_init(&nodes, stream->nodes);
    if (radix_seek(&nodes, RADIX_FIRST, SLICE_EMPTY)) {
        struct listpack *own;
        const struct listpack *node = stream_kept_read(nodes.value, &own);

        (void)stream_node_read(node, stream_id_decode(nodes.key), stream_node_first_entry(node), &entry);
        listpack_destroy(&own);
    }
    radix_iter_fini(&nodes);
    return entry.id;
}

struct stream_id stream_tail_id(const struct stream *stream)
{
    struct stream_entry entry = {.id = STREAM_ID_LEAST};
    struct radix_iter nodes;

    radix_iter_init(&nodes, stream->nodes);
    if (radix_seek(&nodes, RADIX_LAST, SLICE_EMPTY)) {
        struct listpack *own;
        const struct listpack *node = stream_kept_read(nodes.value, &own);

        (void)stream_node_read(node, stream_id_decode(nodes.key), stream_node_entry_before(node, listpack_last(node)),
                               &entry);
        listpack_destroy(&own);
    }
    radix_iter_fini(&nodes);
    return entry.id;
}

struct stream_id stream_max_deleted_id(const struct stream *stream)
{
    return stream->max_deleted_id;
}

uint64_t stream_entries_added(const struct stream *stream)
{
    return stream->entries_added;
}

uint64_t stream_node_count(const struct stream *stream)
{
    return radix_count(stream->nodes);
}

uint64_t stream_tree_node_count(const struct stream *stream)
{
    return radix_node_count(stream->nodes) + 1;
}

uint64_t stream_memory_bytes(const struct stream *stream, uint64_t samples)
{
    return mem_usable(stream) + radix_memory_bytes(stream->nodes) + stream->node_bytes +
           stream_groups_memory_bytes(stream->groups, samples) + stream_idmp_memory_bytes(stream->idmp);
}

/* --- adding --- */

#define NUMBERS_BYTES (UINT64_C(6) * NUMBER_I64_SPACE) /* as text, at most */

/* The text of an entry and of the numbers beside it, at most. */
static uint64_t entry_bytes(const struct slice *pairs, size_t field_count)
{
    uint64_t bytes = NUMBERS_BYTES;

    for (size_t i = 0; i < 2 * field_count; i++)
        bytes += pairs[i].size;
    return bytes;
}

static bool node_takes(const struct listpack *node, uint64_t bytes, size_t field_count,
                       const struct stream_limits *limits)
{
    if (limits->node_bytes != 0 && listpack_bytes(node) + bytes - NUMBERS_BYTES >= limits->node_bytes)
        return false;
    if (limits->node_entries != 0 && stream_node_live(node) + stream_node_deleted(node) >= limits->node_entries)
        return false;
    return listpack_fits(node, bytes, 2 * (uint64_t)field_count + 6);
}

/* A new node with the fields of its first entry. NULL: that entry would not fit into any node. */
static struct listpack *node_create_for(const struct slice *pairs, size_t field_count, uint64_t bytes)
{
    struct listpack *node = listpack_create();
    bool fits = listpack_fits(node, 2 * bytes, 3 * (uint64_t)field_count + 12);

    listpack_destroy(&node);
    return fits ? stream_node_create(pairs, field_count) : NULL;
}

static NOINLINE void note_append(struct value_log *log, const struct stream *stream, struct stream_id node_id,
                                 bool begins_node)
{
    char room[STREAM_ID_BYTES];

    stream_note_ids(log, stream);
    if (begins_node)
        stream_note_node(log, stream_id_encode(node_id, room), NULL);
    else
        stream_note_append(log, stream_id_encode(node_id, room));
}

bool stream_append(struct stream *stream, struct stream_id id, const struct slice *pairs, size_t field_count,
                   const struct stream_limits *limits)
{
    uint64_t bytes = entry_bytes(pairs, field_count);
    struct stream_id node_id = id;
    struct value_log *log = value_log_of(stream);
    struct listpack *node = NULL;
    char room[STREAM_ID_BYTES];
    struct radix_iter nodes;
    bool begins_node;

    assert(stream_id_compare(id, stream->last_id) > 0);
    radix_iter_init(&nodes, stream->nodes);
    if (radix_seek(&nodes, RADIX_LAST, SLICE_EMPTY) && !stream_kept_is_packed(nodes.value) &&
        node_takes(nodes.value, bytes, field_count, limits)) {
        node = take_node(stream, nodes.value);
        node_id = stream_id_decode(nodes.key);
    }
    radix_iter_fini(&nodes);
    begins_node = node == NULL;
    if (begins_node) {
        node = node_create_for(pairs, field_count, bytes);
        if (node == NULL)
            return false;
        pack_settled_node(stream);
    }
    if (UNLIKELY(log != NULL))
        note_append(log, stream, node_id, begins_node);
    stream_node_append(&node, node_id, id, pairs, field_count);
    set_node(stream, stream_id_encode(node_id, room), node);
    if (stream->length++ == 0)
        stream->first_id = id;
    stream->last_id = id;
    stream->entries_added++;
    return true;
}

/* --- inserting --- */

/* What becomes of one node: more nodes, in order. */
struct rebuilding {
    const struct stream_limits *limits;
    struct {
        struct rebuilt {
            struct stream_id id;
            struct listpack *node;
        } * items;
        uint32_t count, capacity;
    } nodes;
    struct slice *pairs; /* of the entry that is copied */
    struct buffer texts; /* and their bytes */
};

/* False: it would not fit into any node. */
static bool rebuild_add(struct rebuilding *rebuilding, struct stream_id id, const struct slice *pairs,
                        size_t field_count, bool begins_node)
{
    const uint64_t bytes = entry_bytes(pairs, field_count);
    struct rebuilt *last = rebuilding->nodes.count != 0 ? &rebuilding->nodes.items[rebuilding->nodes.count - 1] : NULL;
    struct listpack *node;

    if (last == NULL || begins_node || !node_takes(last->node, bytes, field_count, rebuilding->limits)) {
        node = node_create_for(pairs, field_count, bytes);
        if (node == NULL)
            return false;
        last = ARRAY_PUSH(&rebuilding->nodes);
        *last = (struct rebuilt){id, node};
    }
    stream_node_append(&last->node, last->id, id, pairs, field_count);
    return true;
}

/* The entry at which the iterator is. */
static bool rebuild_copy(struct rebuilding *rebuilding, struct stream_iter *iter, struct stream_id id,
                         uint64_t field_count, bool begins_node)
{
    size_t *sizes = mem_alloc(2 * field_count * sizeof(*sizes));
    const char *at;
    bool done;

    rebuilding->texts.size = 0;
    for (uint64_t i = 0; i < field_count; i++) {
        struct slice field, value;

        stream_iter_pair(iter, &field, &value);
        sizes[2 * i] = field.size;
        sizes[2 * i + 1] = value.size;
        buffer_append_slice(&rebuilding->texts, field);
        buffer_append_slice(&rebuilding->texts, value);
    }
    rebuilding->pairs = mem_realloc(rebuilding->pairs, 2 * field_count * sizeof(*rebuilding->pairs));
    at = buffer_text(&rebuilding->texts);
    for (uint64_t i = 0; i < 2 * field_count; at += sizes[i++])
        rebuilding->pairs[i] = slice_make(at, sizes[i]);
    done = rebuild_add(rebuilding, id, rebuilding->pairs, field_count, begins_node);
    mem_free(sizes);
    return done;
}

/* The live entries of the node, and the new one among them; it begins a node if the old one has no room. */
static bool rebuild_node(struct rebuilding *rebuilding, const struct stream *stream, const struct radix_iter *at,
                         struct stream_id id, const struct slice *pairs, size_t field_count)
{
    const bool begins_node = stream_kept_is_packed(at->value) ||
                             !node_takes(at->value, entry_bytes(pairs, field_count), field_count, rebuilding->limits);
    uint64_t left = stream_kept_live(at->value), count;
    bool done = true, is_in = false;
    struct stream_iter iter;
    struct stream_id each;

    stream_iter_init(&iter, stream, stream_id_decode(at->key), STREAM_ID_MOST);
    for (; done && left != 0 && stream_iter_next(&iter, &each, &count); left--) {
        if (!is_in && stream_id_compare(each, id) > 0) {
            is_in = true;
            done = rebuild_add(rebuilding, id, pairs, field_count, begins_node);
        }
        done = done && rebuild_copy(rebuilding, &iter, each, count, false);
    }
    stream_iter_fini(&iter);
    return done && (is_in || rebuild_add(rebuilding, id, pairs, field_count, begins_node));
}

static void rebuilding_fini(struct rebuilding *rebuilding)
{
    for (uint32_t i = 0; i < rebuilding->nodes.count; i++)
        listpack_destroy(&rebuilding->nodes.items[i].node);
    ARRAY_FINI(&rebuilding->nodes);
    mem_free(rebuilding->pairs);
    buffer_fini(&rebuilding->texts);
}

/* What is deleted does not count: which nodes still have it is no fact of the stream. */
static bool has_id(const struct stream_kept *kept, struct stream_id node_id, struct stream_id id)
{
    struct stream_entry entry;
    struct listpack *own;
    const struct listpack *node = stream_kept_read(kept, &own);
    bool found = false;

    for (listpack_at at = stream_node_first_entry(node); !found && at != LISTPACK_NONE;) {
        at = stream_node_read(node, node_id, at, &entry);
        found = stream_id_compare(entry.id, id) == 0 && (entry.flags & STREAM_ENTRY_DELETED) == 0;
    }
    listpack_destroy(&own);
    return found;
}

/* What was new goes first when it is taken back, then the old node comes. */
static NOINLINE void note_rebuilding(struct value_log *log, const struct stream *stream, const struct radix_iter *at,
                                     const struct rebuilding *rebuilding)
{
    char room[STREAM_ID_BYTES];

    stream_note_ids(log, stream);
    stream_note_node(log, radix_iter_key(at), at->value);
    for (uint32_t i = 0; i < rebuilding->nodes.count; i++)
        stream_note_node(log, stream_id_encode(rebuilding->nodes.items[i].id, room), NULL);
}

/* `at`: the node in which the id's place is; it goes, and the new nodes come. */
static void replace_node(struct stream *stream, struct radix_iter *at, struct rebuilding *rebuilding)
{
    const uint64_t length = stream->length;
    struct value_log *log = value_log_of(stream);
    char room[STREAM_ID_BYTES];

    if (UNLIKELY(log != NULL))
        note_rebuilding(log, stream, at, rebuilding);
    remove_node(stream, radix_iter_key(at), at->value);
    for (uint32_t i = 0; i < rebuilding->nodes.count; i++) {
        struct rebuilt *rebuilt = &rebuilding->nodes.items[i];

        set_node(stream, stream_id_encode(rebuilt->id, room), rebuilt->node);
        rebuilt->node = NULL;
    }
    stream->length = length;
}

/* Into a node that there is. */
static bool insert_into(struct stream *stream, struct radix_iter *at, struct stream_id id, const struct slice *pairs,
                        size_t field_count, const struct stream_limits *limits)
{
    struct rebuilding rebuilding = {.limits = limits};
    bool done = !has_id(at->value, stream_id_decode(at->key), id) &&
                rebuild_node(&rebuilding, stream, at, id, pairs, field_count);

    if (done)
        replace_node(stream, at, &rebuilding);
    rebuilding_fini(&rebuilding);
    return done;
}

static bool insert_first(struct stream *stream, struct stream_id id, const struct slice *pairs, size_t field_count)
{
    struct listpack *node = node_create_for(pairs, field_count, entry_bytes(pairs, field_count));
    struct value_log *log = value_log_of(stream);
    char room[STREAM_ID_BYTES];

    if (node == NULL)
        return false;
    if (UNLIKELY(log != NULL)) {
        stream_note_ids(log, stream);
        stream_note_node(log, stream_id_encode(id, room), NULL);
    }
    stream_node_append(&node, id, id, pairs, field_count);
    set_node(stream, stream_id_encode(id, room), node);
    return true;
}

/* Rebuilds a node: what comes late is rare, and nodes are small. */
bool stream_insert(struct stream *stream, struct stream_id id, const struct slice *pairs, size_t field_count,
                   const struct stream_limits *limits)
{
    struct radix_iter nodes;
    bool done;

    if (stream_id_compare(id, stream->last_id) > 0)
        return stream_append(stream, id, pairs, field_count, limits);
    if (stream_id_compare(id, stream->max_deleted_id) == 0)
        return false;
    radix_iter_init(&nodes, stream->nodes);
    if (seek_id(&nodes, RADIX_AT_MOST, id))
        done = insert_into(stream, &nodes, id, pairs, field_count, limits);
    else
        done = insert_first(stream, id, pairs, field_count);
    radix_iter_fini(&nodes);
    if (!done)
        return false;
    if (stream->length++ == 0 || stream_id_compare(id, stream->first_id) < 0)
        stream->first_id = id;
    stream->entries_added++;
    stream_idle_is_back(stream, id);
    return true;
}

/* --- removing --- */

static bool find_in_node(const struct listpack *node, struct stream_id node_id, struct stream_id id,
                         struct stream_entry *entry)
{
    for (listpack_at at = stream_node_first_entry(node); at != LISTPACK_NONE;) {
        int order;

        at = stream_node_read(node, node_id, at, entry);
        order = stream_id_compare(entry->id, id);
        if (order >= 0)
            return order == 0 && (entry->flags & STREAM_ENTRY_DELETED) == 0;
    }
    return false;
}

/* Finds a live entry; leaves the iterator at its node. */
static bool find_entry(struct radix_iter *nodes, struct stream_id id, struct stream_entry *entry)
{
    struct listpack *own;
    bool found;

    if (!seek_id(nodes, RADIX_AT_MOST, id))
        return false;
    found = find_in_node(stream_kept_read(nodes->value, &own), stream_id_decode(nodes->key), id, entry);
    listpack_destroy(&own);
    return found;
}

bool stream_has(const struct stream *stream, struct stream_id id)
{
    struct stream_entry entry;
    struct radix_iter nodes;
    bool found;

    radix_iter_init(&nodes, stream->nodes);
    found = find_entry(&nodes, id, &entry);
    radix_iter_fini(&nodes);
    return found;
}

/* The node will change or go; `and_ids`: the ids, too. */
static void note_node(const struct stream *stream, const struct radix_iter *at, bool and_ids)
{
    struct value_log *log = value_log_of(stream);

    if (LIKELY(log == NULL))
        return;
    if (and_ids)
        stream_note_ids(log, stream);
    stream_note_node(log, radix_iter_key(at), at->value);
}

bool stream_delete(struct stream *stream, struct stream_id id)
{
    struct stream_entry entry;
    struct radix_iter nodes;
    bool found;

    radix_iter_init(&nodes, stream->nodes);
    found = find_entry(&nodes, id, &entry);
    if (found) {
        note_node(stream, &nodes, true);
        if (stream_kept_live(nodes.value) == 1) {
            remove_node(stream, radix_iter_key(&nodes), nodes.value);
        } else {
            struct listpack *node = take_node(stream, nodes.value);

            stream_node_mark(&node, &entry);
            stream_node_count_deleted(&node, 1);
            set_node(stream, radix_iter_key(&nodes), node);
            stream->length--;
        }
        if (stream_id_compare(id, stream->max_deleted_id) > 0)
            stream->max_deleted_id = id;
        if (stream_id_compare(id, stream->first_id) == 0)
            find_first_id(stream);
    }
    radix_iter_fini(&nodes);
    return found;
}

/* May the whole node go? `gone` entries went before, which `length`, that of the stream, does not count any more. */
static bool trim_takes_node(const struct stream_trim *trim, const struct stream_kept *kept, struct stream_id node_id,
                            uint64_t length, uint64_t gone)
{
    uint64_t live = stream_kept_live(kept);

    if (trim->removal_limit != 0 && gone + live > trim->removal_limit)
        return false;
    if (trim->by == STREAM_TRIM_LENGTH)
        return length >= trim->length && length - trim->length >= live;
    return stream_id_compare(stream_kept_last_live_id(kept, node_id), trim->id) < 0;
}

/* How many entries may go at most of the first node that does not go as a whole; see trim_takes_node. */
static uint64_t trim_inside_most(const struct stream_trim *trim, const struct stream_kept *kept, uint64_t length,
                                 uint64_t gone)
{
    uint64_t most = stream_kept_live(kept) - 1;

    if (trim->by == STREAM_TRIM_LENGTH)
        most = MIN(most, length - MIN(length, trim->length));
    if (trim->removal_limit != 0)
        most = MIN(most, trim->removal_limit - gone);
    return most;
}

/* Marks entries at the front of that node. */
static uint64_t trim_inside(struct stream *stream, const struct stream_trim *trim, struct slice key,
                            struct stream_kept *kept, uint64_t gone)
{
    uint64_t most = trim_inside_most(trim, kept, stream->length, gone), marked = 0;
    struct stream_id node_id = stream_id_decode(key.data);
    struct listpack *node = take_node(stream, kept);
    listpack_at at = stream_node_first_entry(node);

    while (marked < most) {
        struct stream_entry entry;

        at = stream_node_read(node, node_id, at, &entry);
        if (trim->by == STREAM_TRIM_ID && stream_id_compare(entry.id, trim->id) >= 0)
            break;
        if ((entry.flags & STREAM_ENTRY_DELETED) == 0) {
            stream_node_mark(&node, &entry);
            marked++;
        }
    }
    if (marked != 0)
        stream_node_count_deleted(&node, marked);
    set_node(stream, key, node);
    stream->length -= marked;
    return marked;
}

/* It shows without a node being opened. */
static bool trims_nothing(const struct stream *stream, const struct stream_trim *trim)
{
    return trim->by == STREAM_TRIM_LENGTH ? stream->length <= trim->length
                                          : stream_id_compare(stream->first_id, trim->id) >= 0;
}

uint64_t stream_trim(struct stream *stream, const struct stream_trim *trim)
{
    struct value_log *log = value_log_of(stream);
    struct radix_iter nodes;
    uint64_t gone = 0;
    bool more;

    if (trims_nothing(stream, trim))
        return 0;
    if (UNLIKELY(log != NULL))
        stream_note_ids(log, stream);
    radix_iter_init(&nodes, stream->nodes);
    more = radix_seek(&nodes, RADIX_FIRST, SLICE_EMPTY);
    while (more && trim_takes_node(trim, nodes.value, stream_id_decode(nodes.key), stream->length, gone)) {
        note_node(stream, &nodes, false);
        gone += stream_kept_live(nodes.value);
        remove_node(stream, radix_iter_key(&nodes), nodes.value);
        more = radix_next(&nodes);
    }
    if (more && !trim->whole_nodes) {
        note_node(stream, &nodes, false);
        gone += trim_inside(stream, trim, radix_iter_key(&nodes), nodes.value, gone);
    }
    radix_iter_fini(&nodes);
    if (gone != 0)
        find_first_id(stream);
    return gone;
}

/* The last of at most `most` entries from this node on that are due. False: none is. */
static bool trim_last_inside(const struct stream *stream, const struct stream_trim *trim, struct stream_id from,
                             uint64_t most, struct stream_id *last)
{
    struct stream_iter iter;
    uint64_t count = 0, field_count;
    struct stream_id id;

    stream_iter_init(&iter, stream, from, STREAM_ID_MOST);
    for (; count < most && stream_iter_next(&iter, &id, &field_count); count++) {
        if (trim->by == STREAM_TRIM_ID && stream_id_compare(id, trim->id) >= 0)
            break;
        *last = id;
    }
    stream_iter_fini(&iter);
    return count != 0;
}

bool stream_trim_last(const struct stream *stream, const struct stream_trim *trim, struct stream_id *last)
{
    struct radix_iter nodes;
    uint64_t gone = 0;
    bool more, found;

    if (trims_nothing(stream, trim))
        return false;
    radix_iter_init(&nodes, stream->nodes);
    more = radix_seek(&nodes, RADIX_FIRST, SLICE_EMPTY);
    while (more && trim_takes_node(trim, nodes.value, stream_id_decode(nodes.key), stream->length - gone, gone)) {
        gone += stream_kept_live(nodes.value);
        *last = stream_kept_last_live_id(nodes.value, stream_id_decode(nodes.key));
        more = radix_next(&nodes);
    }
    found = gone != 0;
    if (more && !trim->whole_nodes)
        found |= trim_last_inside(stream, trim, stream_id_decode(nodes.key),
                                  trim_inside_most(trim, nodes.value, stream->length - gone, gone), last);
    radix_iter_fini(&nodes);
    return found;
}

void stream_set_ids(struct stream *stream, struct stream_id last_id, struct stream_id max_deleted_id,
                    uint64_t entries_added)
{
    struct value_log *log = value_log_of(stream);

    assert(stream_id_compare(last_id, max_deleted_id) >= 0 && stream_id_compare(last_id, stream_tail_id(stream)) >= 0);
    assert(entries_added >= stream->length);
    if (UNLIKELY(log != NULL))
        stream_note_ids(log, stream);
    stream->last_id = last_id;
    stream->max_deleted_id = max_deleted_id;
    stream->entries_added = entries_added;
}

/* --- reading --- */

static void iter_leave_node(struct stream_iter *iter)
{
    if (iter->recent != NULL && !iter->backwards) {
        iter->recent->seen = iter->seen_id;
        iter->recent->next = iter->next_entry;
    }
    stream_recent_give(&iter->recent);
    listpack_destroy(&iter->opened);
    iter->node = NULL;
}

/* Readers of a stream's end ask for its last entries. False: it would have to go back too far. */
static bool iter_enter_at_end(struct stream_iter *iter, struct stream_id from)
{
    listpack_at next = LISTPACK_NONE, at = listpack_last(iter->node);
    struct stream_entry entry;

    for (unsigned i = 0; i < END_ENTRIES; i++) {
        at = stream_node_entry_before(iter->node, at);
        if (at == LISTPACK_NONE)
            return false;
        (void)stream_node_read(iter->node, iter->node_id, at, &entry);
        if (stream_id_compare(entry.id, from) < 0) {
            iter->seen_id = entry.id;
            iter->next_entry = next;
            return true;
        }
        next = at;
        at = listpack_previous(iter->node, at);
    }
    return false;
}

/* Forward: entries below `from` are not asked for. */
static void iter_enter_node(struct stream_iter *iter, struct stream_id from)
{
    const struct stream_kept *kept = iter->nodes.value;

    iter_leave_node(iter);
    iter->recent = stream_recent_take(kept);
    iter->node = iter->recent != NULL ? stream_recent_node(iter->recent) : stream_kept_read(kept, &iter->opened);
    iter->node_id = stream_id_decode(iter->nodes.key);
    if (iter->backwards) {
        iter->next_entry = listpack_last(iter->node);
    } else if (iter->recent != NULL && stream_id_compare(iter->recent->seen, from) < 0) {
        iter->seen_id = iter->recent->seen;
        iter->next_entry = iter->recent->next;
    } else if (stream_kept_is_packed(kept) || !iter_enter_at_end(iter, from)) {
        iter->seen_id = STREAM_ID_LEAST;
        iter->next_entry = stream_node_first_entry(iter->node);
    }
}

void stream_iter_init_find(struct stream_iter *iter, const struct stream *stream)
{
    iter->stream = stream;
    iter->start = STREAM_ID_LEAST;
    iter->end = STREAM_ID_MOST;
    iter->backwards = false;
    iter->node = NULL;
    iter->opened = NULL;
    iter->recent = NULL;
    iter->seen_id = STREAM_ID_LEAST;
    iter->next_entry = LISTPACK_NONE;
    radix_iter_init(&iter->nodes, stream->nodes);
}

static void iter_init(struct stream_iter *iter, const struct stream *stream, struct stream_id start,
                      struct stream_id end, bool backwards)
{
    stream_iter_init_find(iter, stream);
    iter->start = start;
    iter->end = end;
    iter->backwards = backwards;
    if (seek_node_of(&iter->nodes, backwards ? end : start))
        iter_enter_node(iter, start);
}

void stream_iter_init(struct stream_iter *iter, const struct stream *stream, struct stream_id start,
                      struct stream_id end)
{
    iter_init(iter, stream, start, end, false);
}

void stream_iter_init_backwards(struct stream_iter *iter, const struct stream *stream, struct stream_id start,
                                struct stream_id end)
{
    iter_init(iter, stream, start, end, true);
}

void stream_iter_fini(struct stream_iter *iter)
{
    radix_iter_fini(&iter->nodes);
    iter_leave_node(iter);
}

/* Steps over one entry in either direction, to the next node if need be; false: there is none. */
static bool iter_step(struct stream_iter *iter, struct stream_entry *entry)
{
    while (iter->node != NULL) {
        listpack_at at = iter->next_entry;

        if (at != LISTPACK_NONE && iter->backwards)
            at = stream_node_entry_before(iter->node, at);
        if (at != LISTPACK_NONE) {
            listpack_at next = stream_node_read(iter->node, iter->node_id, at, entry);

            iter->next_entry = iter->backwards ? listpack_previous(iter->node, at) : next;
            iter->seen_id = entry->id;
            return true;
        }
        iter_leave_node(iter);
        if (iter->backwards ? radix_previous(&iter->nodes) : radix_next(&iter->nodes))
            iter_enter_node(iter, STREAM_ID_LEAST);
    }
    return false;
}

static void iter_use_entry(struct stream_iter *iter, const struct stream_entry *entry)
{
    iter->fields_apart = (entry->flags & STREAM_ENTRY_SAME_FIELDS) != 0;
    iter->field = iter->fields_apart ? stream_node_first_field(iter->node) : entry->field_at;
    iter->value = entry->field_at;
}

bool stream_iter_next(struct stream_iter *iter, struct stream_id *id, uint64_t *field_count)
{
    struct stream_entry entry;

    while (iter_step(iter, &entry)) {
        bool before = stream_id_compare(entry.id, iter->start)<0, after = stream_id_compare(entry.id, iter->end)> 0;

        if (iter->backwards ? before : after) {
            iter_leave_node(iter);
            return false;
        }
        if (before || after || (entry.flags & STREAM_ENTRY_DELETED) != 0)
            continue;
        iter_use_entry(iter, &entry);
        *id = entry.id;
        *field_count = entry.field_count;
        return true;
    }
    return false;
}

/* To the beginning of the node in which the id would be; false: there is none. */
static bool iter_enter_node_of(struct stream_iter *iter, struct stream_id id)
{
    if (!seek_id(&iter->nodes, RADIX_AT_MOST, id))
        return false;
    if (iter->node != NULL && stream_id_compare(stream_id_decode(iter->nodes.key), iter->node_id) == 0) {
        iter->seen_id = STREAM_ID_LEAST;
        iter->next_entry = stream_node_first_entry(iter->node);
    } else {
        iter_enter_node(iter, id);
    }
    return true;
}

/* Continues in the node up to the id. True: there is an entry at or after the id. */
static bool iter_walk_to(struct stream_iter *iter, struct stream_id id, struct stream_entry *entry)
{
    while (iter->next_entry != LISTPACK_NONE) {
        iter->next_entry = stream_node_read(iter->node, iter->node_id, iter->next_entry, entry);
        iter->seen_id = entry->id;
        if (stream_id_compare(entry->id, id) >= 0)
            return true;
    }
    return false;
}

bool stream_iter_find(struct stream_iter *iter, struct stream_id id, uint64_t *field_count)
{
    bool is_ahead = iter->node != NULL && stream_id_compare(id, iter->seen_id) > 0;
    struct stream_entry entry;

    assert(!iter->backwards);
    if (!(is_ahead && iter_walk_to(iter, id, &entry)) &&
        !(iter_enter_node_of(iter, id) && iter_walk_to(iter, id, &entry)))
        return false;
    if (stream_id_compare(entry.id, id) != 0 || (entry.flags & STREAM_ENTRY_DELETED) != 0)
        return false;
    iter_use_entry(iter, &entry);
    *field_count = entry.field_count;
    return true;
}

void stream_iter_pair(struct stream_iter *iter, struct slice *field, struct slice *value)
{
    *field = listpack_text(iter->node, iter->field, iter->scratch[0]);
    if (!iter->fields_apart)
        iter->value = listpack_next(iter->node, iter->field);
    *value = listpack_text(iter->node, iter->value, iter->scratch[1]);
    if (iter->fields_apart) {
        iter->field = listpack_next(iter->node, iter->field);
        iter->value = listpack_next(iter->node, iter->value);
    } else {
        iter->field = listpack_next(iter->node, iter->value);
    }
}

uint64_t stream_iter_bytes(const struct stream_iter *iter, uint64_t field_count)
{
    listpack_at field = iter->field, value = iter->value;
    char scratch[NUMBER_I64_SPACE];
    uint64_t bytes = 0;

    for (; field_count != 0; field_count--) {
        if (!iter->fields_apart)
            value = listpack_next(iter->node, field);
        bytes += listpack_text(iter->node, field, scratch).size;
        bytes += listpack_text(iter->node, value, scratch).size;
        field = listpack_next(iter->node, iter->fields_apart ? field : value);
        if (iter->fields_apart)
            value = listpack_next(iter->node, value);
    }
    return bytes;
}

/* --- saving and loading nodes --- */

static void visit_node(const struct stream_kept *kept, struct stream_id id, stream_node_fn visit, void *context)
{
    struct listpack *own;

    visit(id, listpack_as_bytes(stream_kept_read(kept, &own)), context);
    listpack_destroy(&own);
}

void stream_each_node(const struct stream *stream, stream_node_fn visit, void *context)
{
    struct radix_iter nodes;

    radix_iter_init(&nodes, stream->nodes);
    for (bool more = radix_seek(&nodes, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&nodes))
        visit_node(nodes.value, stream_id_decode(nodes.key), visit, context);
    radix_iter_fini(&nodes);
}

bool stream_load_node(struct stream *stream, struct stream_id id, struct slice bytes)
{
    struct stream_node_info info;
    char room[STREAM_ID_BYTES];

    if (!stream_node_check(id, bytes, &info))
        return false;
    if (stream_id_compare(info.first, stream->last_id) <= 0 ||
        (stream->length != 0 && stream_id_compare(id, stream->last_id) <= 0))
        return false;
    pack_settled_node(stream);
    set_node(stream, stream_id_encode(id, room), listpack_from_bytes(bytes));
    if (stream->length == 0)
        stream->first_id = info.first_live;
    stream->length += info.live;
    stream->entries_added += info.live;
    stream->last_id = info.last;
    return true;
}

/* --- moving --- */

/* Positions are the first halves of ids: nodes that have one in common are moved in one call. */
uint64_t stream_relocate(struct stream **stream, uint64_t position, uint64_t most, struct mem_mover *mover)
{
    struct radix_iter nodes;
    uint64_t moved = 0;
    bool more;

    if (position == 0) {
        *stream = mem_move(mover, *stream, 0);
        (*stream)->nodes = mem_move(mover, (*stream)->nodes, 0);
    }
    radix_iter_init(&nodes, (*stream)->nodes);
    for (more = seek_id(&nodes, RADIX_AT_LEAST, (struct stream_id){position, 0}); more; more = radix_next(&nodes)) {
        uint64_t ms = stream_id_decode(nodes.key).ms;

        if (moved >= most && ms != position)
            break;
        position = ms;
        moved += stream_kept_live(nodes.value);
        (*stream)->node_bytes -= stream_kept_memory_bytes(nodes.value);
        set_kept(*stream, radix_iter_key(&nodes), stream_kept_move(nodes.value, mover));
        radix_relocate((*stream)->nodes, radix_iter_key(&nodes), mover);
    }
    position = more ? stream_id_decode(nodes.key).ms : 0;
    radix_iter_fini(&nodes);
    return position;
}

/* --- validation --- */

void stream_validate(const struct stream *stream)
{
    struct stream_id last = STREAM_ID_LEAST, first = STREAM_ID_LEAST;
    uint64_t length = 0, node_bytes = 0;
    struct radix_iter nodes;

    radix_validate(stream->nodes);
    radix_iter_init(&nodes, stream->nodes);
    for (bool more = radix_seek(&nodes, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&nodes)) {
        struct stream_id node_id = stream_id_decode(nodes.key);
        struct stream_node_info info;
        struct listpack *own;
        bool good;

        assert(nodes.key_size == STREAM_ID_BYTES);
        good = stream_node_check(node_id, listpack_as_bytes(stream_kept_read(nodes.value, &own)), &info);
        listpack_destroy(&own);
        assert(good);
        assert(stream_kept_live(nodes.value) == info.live);
        assert(stream_id_compare(stream_kept_last_live_id(nodes.value, node_id), info.last_live) == 0);
        assert(stream_id_compare(info.first, last) > 0);
        assert(length == 0 || stream_id_compare(node_id, last) > 0);
        if (length == 0)
            first = info.first_live;
        last = info.last;
        length += info.live;
        node_bytes += stream_kept_memory_bytes(nodes.value);
    }
    radix_iter_fini(&nodes);
    assert(length == stream->length);
    assert(node_bytes == stream->node_bytes);
    assert(stream_id_compare(first, stream->first_id) == 0);
    assert(length == 0 || stream_id_compare(last, stream->last_id) <= 0);
    stream_groups_validate(stream->groups);
    stream_idmp_validate(stream->idmp);
}
