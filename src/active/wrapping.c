#include "active/wrapping.h"

#include "active/envelope.h"
#include "active/mvcc.h"
#include "active/node.h"
#include "active/uuids.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/spinlock.h"
#include "base/thread.h"
#include "net/output.h"
#include "replication/history.h"
#include "replication/replica_link.h"
#include "store/journal.h"

#include <stdio.h>
#include <string.h>

enum {
    MARK_BYTES = 4096,
    LEFT_MOST = 64,
    IDLE_BYTES = 1 << 20,
    FOR_FILES_ALONE = JOURNAL_AOF_ONLY | JOURNAL_NOT_FOR_PEERS
};

/* An operation whose effect is in a correction behind it, in bytes of `operations`. */
struct operation {
    size_t at, size, key_at, key_size;
    uint64_t origin, stamp;
    unsigned db;
};

/* So many bytes of the stream are what is before this offset of the journal. */
struct mark {
    uint64_t sent, journal_offset;
};

/* Owner: the link's worker, or the lock while it is left. */
struct replica_wrap {
    struct list_node node;   /* while it is left */
    struct uuid uuid;        /* of the server; nil: it has not said it */
    uint64_t id;             /* likewise; 0 */
    int64_t base;            /* the offset at which the stream began */
    uint64_t sent;           /* since then */
    uint64_t to_skip;        /* bytes that are made again, and are there */
    uint64_t journal_offset; /* behind the last group */
    struct {
        struct mark *items;
        uint32_t count, capacity;
    } marks; /* ascending; the first one is acknowledged */
    /* The group that is being put together: */
    struct buffer payload, envelope;
    struct journal_stamp stamp;
    unsigned db, payload_db;
    uint32_t commands;
    bool has_stamp, is_open, is_wanted;
    /* What was placed together, with corrections behind it: */
    bool is_corrected;
    struct journal_stamp sent_stamp; /* of the last effects */
    struct buffer operations;
    struct {
        struct operation *items;
        uint32_t count, capacity;
    } placed;
};

static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY */
    struct list items GUARDED_BY(lock);
    uint32_t count GUARDED_BY(lock);
} left = {.lock = {.rank = LOCK_REGISTRY}};

/* ----------------------------------------------------------------------------------------------- begin and end -- */

static void destroy(struct replica_wrap *wrap)
{
    ARRAY_FINI(&wrap->marks);
    ARRAY_FINI(&wrap->placed);
    buffer_fini(&wrap->operations);
    buffer_fini(&wrap->payload);
    buffer_fini(&wrap->envelope);
    mem_free(wrap);
}

static struct replica_wrap *take_left(const struct uuid *uuid)
{
    struct replica_wrap *found = NULL;

    spinlock_acquire(&left.lock);
    LIST_FOREACH(node, &left.items) {
        struct replica_wrap *wrap = container_of(node, struct replica_wrap, node);

        if (uuid_equal(&wrap->uuid, uuid))
            found = wrap;
    }
    if (found != NULL) {
        list_remove(&found->node);
        left.count--;
    }
    spinlock_release(&left.lock);
    return found;
}

static struct replica_wrap *wrapping_open(struct slice text)
{
    struct replica_wrap *wrap;
    struct uuid uuid = {{0}};

    if (!active_is_on())
        return NULL;
    if (uuid_parse(text, &uuid) && (wrap = take_left(&uuid)) != NULL)
        return wrap;
    wrap = mem_alloc_zero(sizeof(*wrap));
    list_node_init(&wrap->node);
    wrap->uuid = uuid;
    wrap->id = uuid_is_nil(&uuid) ? 0 : uuid_id(&uuid);
    return wrap;
}

static void clear_group(struct replica_wrap *wrap)
{
    buffer_clear(&wrap->payload);
    if (wrap->payload.capacity > (size_t)IDLE_BYTES)
        buffer_fini(&wrap->payload);
    wrap->commands = 0;
    wrap->has_stamp = wrap->is_open = wrap->is_wanted = false;
}

static void set_corrected(struct replica_wrap *wrap, bool is_corrected)
{
    wrap->is_corrected = is_corrected;
    wrap->sent_stamp = (struct journal_stamp){0};
    wrap->placed.count = 0;
    buffer_clear(&wrap->operations);
    if (wrap->operations.capacity > (size_t)IDLE_BYTES)
        buffer_fini(&wrap->operations);
}

static void restart(struct replica_wrap *wrap)
{
    clear_group(wrap);
    set_corrected(wrap, false);
}

static struct replica_wrap *pop_locked(void) REQUIRES(left.lock)
{
    struct list_node *node = list_pop_front(&left.items);

    spinlock_assert_held(&left.lock);
    if (node == NULL)
        return NULL;
    left.count--;
    return container_of(node, struct replica_wrap, node);
}

static void wrapping_leave(struct replica_wrap **handle)
{
    struct replica_wrap *wrap = *handle, *oldest = NULL;

    *handle = NULL;
    if (wrap == NULL)
        return;
    restart(wrap);
    if (wrap->id == 0 || wrap->marks.count == 0) {
        destroy(wrap);
        return;
    }
    spinlock_acquire(&left.lock);
    if (left.count == LEFT_MOST) {
        oldest = pop_locked();
    }
    list_push_back(&left.items, &wrap->node);
    left.count++;
    spinlock_release(&left.lock);
    if (oldest != NULL)
        destroy(oldest);
}

static void wrapping_begin(struct replica_wrap *wrap, uint64_t journal_offset)
{
    wrap->base = history_of_journal(journal_offset);
    wrap->sent = wrap->to_skip = 0;
    wrap->journal_offset = journal_offset;
    wrap->marks.count = 0;
    *ARRAY_PUSH(&wrap->marks) = (struct mark){0, journal_offset};
    restart(wrap);
}

/* The last mark that is not behind `sent`. */
static uint32_t mark_of(const struct replica_wrap *wrap, uint64_t sent)
{
    uint32_t low = 0, high = wrap->marks.count;

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if (wrap->marks.items[middle].sent <= sent)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool wrapping_resume(struct replica_wrap *wrap, int64_t offset, uint64_t *journal_offset)
{
    const uint64_t sent = (uint64_t)(offset - wrap->base);
    uint32_t at;

    if (wrap->marks.count == 0 || offset < wrap->base || sent < wrap->marks.items[0].sent || sent > wrap->sent)
        return false;
    at = mark_of(wrap, sent);
    *journal_offset = wrap->marks.items[at].journal_offset;
    wrap->sent = wrap->marks.items[at].sent;
    wrap->to_skip = sent - wrap->sent;
    wrap->journal_offset = *journal_offset;
    wrap->marks.count = at + 1;
    restart(wrap);
    return true;
}

static int64_t wrapping_applied(struct replica_wrap *wrap, int64_t offset)
{
    const uint64_t sent = (uint64_t)MAX(offset - wrap->base, 0);
    uint32_t at;

    if (wrap->marks.count == 0 || sent > wrap->sent)
        return -1;
    if (sent == wrap->sent && !wrap->is_corrected) {
        wrap->marks.items[0] = (struct mark){sent, wrap->journal_offset};
        wrap->marks.count = 1;
    }
    at = mark_of(wrap, sent);
    if (at != 0) {
        wrap->marks.count -= at;
        memmove(wrap->marks.items, wrap->marks.items + at, wrap->marks.count * sizeof(*wrap->marks.items));
    }
    return history_of_journal(wrap->marks.items[0].journal_offset);
}

/* ------------------------------------------------------------------------------------------------------- words -- */

struct words {
    struct slice *items;
    uint32_t count, capacity;
};

static const char *read_number(const char *at, size_t *number)
{
    *number = 0;
    for (at++; *at != '\r'; at++)
        *number = *number * 10 + (size_t)(*at - '0');
    return at + 2;
}

/* The bytes are our own. */
static void split(struct slice bytes, struct words *words)
{
    const char *at = bytes.data;
    size_t count, size;

    at = read_number(at, &count);
    for (size_t i = 0; i < count; i++) {
        at = read_number(at, &size);
        *ARRAY_PUSH(words) = slice_make(at, size);
        at += size + 2;
    }
}

static struct slice word_of(struct slice bytes, uint32_t index)
{
    const char *at = bytes.data;
    size_t size;

    at = read_number(at, &size);
    at = read_number(at, &size);
    for (; index != 0; index--)
        at = read_number(at + size + 2, &size);
    return slice_make(at, size);
}

static struct slice name_of(struct slice bytes)
{
    return word_of(bytes, 0);
}

static void add_command(struct replica_wrap *wrap, const struct slice *words, uint32_t count)
{
    envelope_add_command(&wrap->payload, words, count);
    wrap->commands++;
}

/* Deadlines of fields: KEY TIME FIELDS n FIELD ... */
static void tell_deadlines(struct replica_wrap *wrap, const struct words *from)
{
    for (uint32_t i = 5; i < from->count; i++) {
        const struct slice words[] = {SLICE("PEXPIREMEMBERAT"), from->items[1], from->items[i], from->items[2]};

        add_command(wrap, words, countof(words));
    }
}

/* KEY FIELDS n FIELD ... */
static void tell_no_deadlines(struct replica_wrap *wrap, const struct words *from)
{
    for (uint32_t i = 4; i < from->count; i++) {
        const struct slice words[] = {SLICE("PERSIST"), from->items[1], from->items[i]};

        add_command(wrap, words, countof(words));
    }
}

/* KEY LEFT|RIGHT ELEMENT ... */
static void tell_pops(struct replica_wrap *wrap, const struct words *from)
{
    const struct slice count = slice_equal_text_nocase(from->items[2], "left") ? SLICE("1") : SLICE("-1");

    for (uint32_t i = 3; i < from->count; i++) {
        const struct slice words[] = {SLICE("LREM"), from->items[1], count, from->items[i]};

        add_command(wrap, words, countof(words));
    }
}

static void tell_entry(struct replica_wrap *wrap, const struct words *from)
{
    from->items[0] = SLICE("XADD");
    add_command(wrap, from->items, from->count);
}

static const struct foreign_word {
    const char *name;
    void (*tell)(struct replica_wrap *wrap, const struct words *words); /* NULL: it is left out */
} foreign_words[] = {
    {"hpexpireat", tell_deadlines}, {"hpersist", tell_no_deadlines}, {"function", NULL},
    {"keydb.op.pop", tell_pops},    {"keydb.op.xadd", tell_entry},   {"keydb.op.deliver", NULL},
    {"keydb.op.flushed", NULL},     {"keydb.op.xidmp", NULL},        {"xcfgset", NULL},
};

static const struct foreign_word *find_foreign_word(struct slice name)
{
    for (size_t i = 0; i < countof(foreign_words); i++) {
        if (slice_equal_text_nocase(name, foreign_words[i].name))
            return &foreign_words[i];
    }
    return NULL;
}

/* What was added behind `at` is told in KeyDB's words, or not at all. */
static void translate(struct replica_wrap *wrap, size_t at)
{
    const struct slice bytes = slice_make(wrap->payload.data + at, wrap->payload.size - at);
    const struct foreign_word *foreign = find_foreign_word(name_of(bytes));
    struct words words = {0};
    struct buffer copy = {0};

    if (LIKELY(foreign == NULL)) {
        wrap->commands++;
        return;
    }
    buffer_append_slice(&copy, bytes);
    wrap->payload.size = at;
    if (foreign->tell != NULL) {
        split(buffer_slice(&copy), &words);
        foreign->tell(wrap, &words);
    }
    ARRAY_FINI(&words);
    buffer_fini(&copy);
}

/* ------------------------------------------------------------------------------------------------------ groups -- */

static void select_db(struct replica_wrap *wrap, unsigned db)
{
    char digits[NUMBER_I64_SPACE];
    const struct slice words[] = {SLICE("SELECT"), slice_make(digits, number_format_u64(digits, db))};

    if (wrap->commands == 0)
        wrap->db = db;
    else if (db != wrap->payload_db)
        envelope_add_command(&wrap->payload, words, countof(words));
    wrap->payload_db = db;
}

static bool is_correction(const struct journal_view *view)
{
    return (view->flags & JOURNAL_CORRECTS) != 0;
}

static void add_record(struct replica_wrap *wrap, const struct journal_view *view)
{
    const size_t at = wrap->payload.size;

    select_db(wrap, view->db);
    journal_view_append(view, &wrap->payload);
    translate(wrap, at);
}

static void add_effect(struct replica_wrap *wrap, const struct journal_view *view)
{
    wrap->is_wanted = wrap->is_wanted || (view->flags & JOURNAL_MESSAGE) != 0;
    if (view->stamp != NULL && !wrap->has_stamp) {
        wrap->stamp = wrap->sent_stamp = *view->stamp;
        wrap->has_stamp = wrap->is_wanted = true;
    }
    add_record(wrap, view);
}

static bool is_of(const struct replica_wrap *wrap, const struct journal_stamp *stamp)
{
    return wrap->id != 0 && uuids_came_from(stamp->origin, wrap->id);
}

/* Its effect may be in a correction that the server does not get. */
static void note_operation(struct replica_wrap *wrap, const struct journal_view *view)
{
    const unsigned key_index = journal_view_key_index(view);
    struct operation operation = {.at = wrap->operations.size, .db = view->db};
    struct slice key;

    if (key_index == 0 || is_of(wrap, view->stamp) ||
        (wrap->sent_stamp.stamp == view->stamp->stamp && wrap->sent_stamp.origin == view->stamp->origin))
        return;
    operation.origin = view->stamp->origin;
    operation.stamp = view->stamp->stamp;
    journal_view_append(view, &wrap->operations);
    operation.size = wrap->operations.size - operation.at;
    key = word_of(slice_make(wrap->operations.data + operation.at, operation.size), key_index);
    operation.key_at = (size_t)(key.data - wrap->operations.data);
    operation.key_size = key.size;
    *ARRAY_PUSH(&wrap->placed) = operation;
}

/* The server changes this key, and is further than the value: it gets what others did to it, in this order. */
static void add_operations(struct replica_wrap *wrap, unsigned db, struct slice key)
{
    for (uint32_t i = 0; i < wrap->placed.count; i++) {
        const struct operation *operation = &wrap->placed.items[i];
        const char *bytes = wrap->operations.data;
        const size_t at = wrap->payload.size;

        if (operation->db != db || !slice_equal(slice_make(bytes + operation->key_at, operation->key_size), key))
            continue;
        select_db(wrap, db);
        buffer_append(&wrap->payload, bytes + operation->at, operation->size);
        translate(wrap, at);
    }
}

/* SET, RESTORE or DEL. */
static void add_correction(struct replica_wrap *wrap, const struct journal_view *view)
{
    wrap->is_wanted = true;
    if (is_of(wrap, view->stamp))
        add_operations(wrap, view->db, word_of(view->bytes, 1)); /* its key, which is before any blob */
    else
        add_record(wrap, view);
}

static void make_envelope(struct replica_wrap *wrap)
{
    static const char multi[] = "*1\r\n$5\r\nMULTI\r\n", exec[] = "*1\r\n$4\r\nEXEC\r\n";
    const bool is_transaction = wrap->commands > 1;
    const size_t size = wrap->payload.size + (is_transaction ? sizeof(multi) - 1 + sizeof(exec) - 1 : 0);
    const struct uuid uuid = uuids_find(wrap->has_stamp ? wrap->stamp.origin : node_origin());
    const uint64_t mvcc = !wrap->has_stamp        ? 0
                          : wrap->stamp.mvcc != 0 ? wrap->stamp.mvcc
                                                  : mvcc_of_stamp(wrap->stamp.stamp);

    buffer_clear(&wrap->envelope);
    envelope_write_head(&wrap->envelope, &uuid, size);
    if (is_transaction)
        buffer_append(&wrap->envelope, multi, sizeof(multi) - 1);
    buffer_append_slice(&wrap->envelope, buffer_slice(&wrap->payload));
    if (is_transaction)
        buffer_append(&wrap->envelope, exec, sizeof(exec) - 1);
    envelope_write_tail(&wrap->envelope, wrap->db, mvcc);
}

static size_t send_envelope(struct replica_wrap *wrap, struct output *output)
{
    const size_t skipped = (size_t)MIN(wrap->to_skip, (uint64_t)wrap->envelope.size);
    const size_t size = wrap->envelope.size - skipped;

    output_append(output, wrap->envelope.data + skipped, size);
    wrap->to_skip -= skipped;
    wrap->sent += wrap->envelope.size;
    if (wrap->envelope.capacity > (size_t)IDLE_BYTES)
        buffer_fini(&wrap->envelope);
    return size;
}

static void note_mark(struct replica_wrap *wrap, uint64_t journal_offset)
{
    const struct mark *last = &wrap->marks.items[wrap->marks.count - 1];

    if (wrap->sent - last->sent >= MARK_BYTES && !wrap->is_corrected)
        *ARRAY_PUSH(&wrap->marks) = (struct mark){wrap->sent, journal_offset};
}

static bool is_exec(const struct journal_view *view)
{
    return (view->flags & JOURNAL_ENDS) != 0 && view->blob_count == 0 &&
           slice_equal_text_nocase(name_of(view->bytes), "exec");
}

/* Not of the stream: operations, and what only files get, such as MULTI before and EXEC behind what is corrected. */
static void take_hidden(struct replica_wrap *wrap, const struct journal_view *view)
{
    if ((view->flags & JOURNAL_OPERATION) == JOURNAL_OPERATION) {
        if (wrap->is_corrected && view->stamp != NULL)
            note_operation(wrap, view);
    } else if ((view->flags & FOR_FILES_ALONE) == FOR_FILES_ALONE &&
               ((view->flags & JOURNAL_BEGINS) != 0 || is_exec(view))) {
        set_corrected(wrap, (view->flags & JOURNAL_BEGINS) != 0);
    }
}

/* What stands between MULTI and EXEC is a group, else each record is one; some of its effects may be for others. */
static size_t wrapping_write(struct replica_wrap *wrap, const struct journal_view *view, uint64_t journal_offset,
                             struct output *output)
{
    const bool ends = is_exec(view);
    size_t size = 0;

    assert(wrap->marks.count != 0);
    if ((view->flags & JOURNAL_AOF_ONLY) != 0) {
        take_hidden(wrap, view);
        return 0;
    }
    if ((view->flags & JOURNAL_BEGINS) != 0) {
        wrap->is_open = true;
        return 0;
    }
    if (is_correction(view))
        add_correction(wrap, view);
    else if (!wrap->is_open || !ends)
        add_effect(wrap, view);
    if (wrap->is_open && !ends)
        return 0;
    if (wrap->is_wanted && wrap->commands != 0 && !(wrap->has_stamp && is_of(wrap, &wrap->stamp))) {
        make_envelope(wrap);
        size = send_envelope(wrap, output);
        note_mark(wrap, journal_offset);
    }
    wrap->journal_offset = journal_offset;
    clear_group(wrap);
    return size;
}

static const struct replica_wrapping wrapping = {
    .open = wrapping_open,
    .leave = wrapping_leave,
    .begin = wrapping_begin,
    .resume = wrapping_resume,
    .applied = wrapping_applied,
    .write = wrapping_write,
};

void wrapping_setup(void)
{
    thread_assert_main();
    list_init(&left.items);
    replica_link_set_wrapping(&wrapping);
}

void wrapping_end(void)
{
    struct replica_wrap *wrap;

    thread_assert_main();
    do {
        spinlock_acquire(&left.lock);
        wrap = pop_locked();
        spinlock_release(&left.lock);
        if (wrap != NULL)
            destroy(wrap);
    } while (wrap != NULL);
}
