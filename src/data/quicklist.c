#include "data/quicklist.h"

#include "base/assert.h"
#include "base/mem.h"
#include "data/quicklist_priv.h"

/* --- the whole --- */

static void set_limits(struct quicklist *list, const struct quicklist_limits *limits)
{
    int fill = MAX(-5, MIN(limits->fill, QUICKLIST_FILL_MOST));

    list->compress = limits->compress & INT32_MAX;
    list->plain_from_bytes = (uint32_t)MIN(limits->plain_from_bytes, (size_t)LISTPACK_MOST_BYTES / 2);
    if (fill < 0) {
        list->node_kib_most = (uint16_t)(2u << -fill);
        list->node_count_most = QUICKLIST_COUNT_UNLIMITED;
    } else {
        list->node_kib_most = QUICKLIST_SAFE_NODE_BYTES / 1024;
        list->node_count_most = (uint16_t)MAX(fill, 1);
    }
}

struct quicklist *quicklist_create(const struct quicklist_limits *limits)
{
    struct quicklist *list = mem_alloc_zero(sizeof(*list));

    list_init(&list->nodes);
    set_limits(list, limits);
    return list;
}

struct quicklist_limits quicklist_limits(const struct quicklist *list)
{
    struct quicklist_limits limits = {.compress = list->compress, .plain_from_bytes = list->plain_from_bytes};

    if (list->node_count_most <= QUICKLIST_FILL_MOST)
        limits.fill = (int)list->node_count_most;
    else
        limits.fill = -(__builtin_ctz(list->node_kib_most) - __builtin_ctz(2));
    return limits;
}

struct quicklist *quicklist_copy(const struct quicklist *list)
{
    struct quicklist *copy = mem_copy(list, sizeof(*list));

    list_init(&copy->nodes);
    copy->mark = NULL;
    for (const struct quicklist_node *node = quicklist_first_node(list); node != NULL;
         node = quicklist_next_node(list, node))
        list_push_back(&copy->nodes, &quicklist_node_copy(node)->link);
    return copy;
}

void quicklist_destroy(struct quicklist **list)
{
    struct list_node *link;

    if (*list == NULL)
        return;
    while ((link = list_pop_front(&(*list)->nodes)) != NULL)
        quicklist_node_destroy(node_of(link));
    mem_free(*list);
    *list = NULL;
}

uint64_t quicklist_count(const struct quicklist *list)
{
    return list->count;
}

bool quicklist_is_long(const struct quicklist *list)
{
    return list->is_long != 0;
}

size_t quicklist_memory_bytes(const struct quicklist *list)
{
    size_t bytes = mem_usable(list);

    for (const struct quicklist_node *node = quicklist_first_node(list); node != NULL;
         node = quicklist_next_node(list, node))
        bytes += mem_usable(node) + mem_usable(quicklist_node_block(node));
    return bytes;
}

static struct quicklist *move_head(struct quicklist *list, struct mem_mover *mover)
{
    bool is_empty = list_is_empty(&list->nodes);

    list = mem_move(mover, list, 0);
    if (is_empty)
        list_init(&list->nodes);
    else
        list_node_moved(&list->nodes.head);
    return list;
}

static void move_data(struct quicklist_node *node, struct mem_mover *mover)
{
    char *block = quicklist_node_block(node);
    const ptrdiff_t room = (char *)node->data - block;

    block = mem_move(mover, block, 0);
    node->data = block + room;
}

uint64_t quicklist_relocate(struct quicklist **list, uint64_t position, uint64_t most, struct mem_mover *mover)
{
    struct quicklist_node *node;
    uint64_t looked = 0;

    if (position == 0) {
        *list = move_head(*list, mover);
        (*list)->mark = end_node(*list, QUICKLIST_HEAD);
    }
    for (node = (*list)->mark; node != NULL && looked < most; node = neighbour(*list, node, QUICKLIST_FORWARD)) {
        looked += node->count;
        node = mem_move(mover, node, 0);
        list_node_moved(&node->link);
        move_data(node, mover);
    }
    (*list)->mark = node;
    return node != NULL;
}

static void validate_node(const struct quicklist *list, const struct quicklist_node *node)
{
    void *opened = node->is_compressed ? quicklist_node_uncompress(node) : NULL;
    const struct listpack *pack = opened != NULL ? opened : node->data;

    assert(node->count != 0);
    if (node->is_plain) {
        assert(node->count == 1);
    } else {
        listpack_validate_with_room(pack, node->is_compressed ? 0 : node->room_bytes);
        assert(listpack_count(pack) == node->count);
        assert(listpack_bytes(pack) == quicklist_node_size_bytes(node));
        assert(node->count <= list->node_count_most);
        assert(node->count == 1 || listpack_bytes(pack) <= node_bytes_most(list));
    }
    mem_free(opened);
}

void quicklist_validate(const struct quicklist *list)
{
    uint64_t count = 0;
    uint32_t node_count = 0;
    bool has_mark = false;

    list_validate(&list->nodes);
    for (const struct quicklist_node *node = quicklist_first_node(list); node != NULL;
         node = quicklist_next_node(list, node)) {
        bool is_end = node_count < list->compress || list->node_count - node_count <= list->compress;

        validate_node(list, node);
        if (list->compress == 0 || is_end)
            assert(!node->is_compressed);
        else
            assert(node->is_compressed || node->is_stubborn ||
                   quicklist_node_size_bytes(node) < QUICKLIST_COMPRESS_LEAST_BYTES);
        count += node->count;
        node_count++;
        has_mark |= node == list->mark;
    }
    assert(count == list->count);
    assert(node_count == list->node_count);
    assert(has_mark || list->mark == NULL);
}

/* --- the ends --- */

static ALWAYS_INLINE void push(struct quicklist *list, enum quicklist_end end, struct slice text)
{
    struct quicklist_node *node = end_node(list, end);

    if (LIKELY(!quicklist_is_plain_text(list, text) && quicklist_accepts(list, node, text))) {
        struct listpack **pack = quicklist_node_open_end(node);

        if (end == QUICKLIST_HEAD)
            listpack_push_first(pack, &node->room_bytes, text);
        else
            listpack_push_last(pack, &node->room_bytes, text);
        node->count++;
        list->count++;
        return;
    }
    quicklist_link(list, node, end == QUICKLIST_HEAD ? QUICKLIST_BACKWARD : QUICKLIST_FORWARD,
                   quicklist_node_create(list, text));
    quicklist_settle_ends(list);
}

static NOINLINE void note_push(struct value_log *log, enum quicklist_end end, uint64_t behind, uint64_t count)
{
    value_log_extend(log, &(struct value_step){.a = count, .b = end | behind << 1, .kind = VALUE_STEP_PUSHED});
}

void quicklist_push(struct quicklist *list, enum quicklist_end end, struct slice text)
{
    struct value_log *log = value_log_of(list);

    if (UNLIKELY(log != NULL))
        note_push(log, end, 0, 1);
    push(list, end, text);
}

void quicklist_push_behind(struct quicklist *list, enum quicklist_end end, uint64_t behind, struct slice text)
{
    struct value_log *log = value_log_of(list);
    struct listpack_value value;
    struct quicklist_iter iter;
    uint64_t index;
    bool is_there;

    assert(behind <= list->count);
    if (UNLIKELY(log != NULL))
        note_push(log, end, behind, 1);
    index = end == QUICKLIST_HEAD ? behind : list->count - behind;
    if (index == list->count) {
        push(list, QUICKLIST_TAIL, text);
        return;
    }
    quicklist_iter_init(&iter, list, (int64_t)index, QUICKLIST_FORWARD);
    is_there = quicklist_iter_next(&iter, &value);
    assert(is_there);
    quicklist_iter_insert_unnoted(list, &iter, text);
    quicklist_iter_fini(&iter);
}

bool quicklist_peek(const struct quicklist *list, enum quicklist_end end, struct listpack_value *value)
{
    const struct quicklist_node *node = end_node(list, end);

    if (node == NULL)
        return false;
    if (node->is_plain)
        *value = (struct listpack_value){.text = slice_make(node->data, node->raw_bytes)};
    else
        *value = listpack_get(node->pack, end == QUICKLIST_HEAD ? LISTPACK_HEAD_BYTES : listpack_last(node->pack));
    return true;
}

static struct slice value_text(const struct listpack_value *value, char scratch[NUMBER_I64_SPACE])
{
    return value->text.data != NULL ? value->text : slice_make(scratch, number_format_i64(scratch, value->number));
}

static NOINLINE void note_drop(struct value_log *log, const struct quicklist *list, enum quicklist_end end)
{
    char scratch[NUMBER_I64_SPACE];
    struct listpack_value value;
    const bool is_there = quicklist_peek(list, end, &value);

    assert(is_there);
    value_log_note(log, &(struct value_step){.b = end,
                                             .first = value_text(&value, scratch),
                                             .kind = QUICKLIST_STEP_DROPPED});
}

void quicklist_drop(struct quicklist *list, enum quicklist_end end)
{
    struct quicklist_node *node = end_node(list, end);
    struct value_log *log = value_log_of(list);
    struct listpack **pack;

    assert(node != NULL);
    if (UNLIKELY(log != NULL))
        note_drop(log, list, end);
    if (node->count == 1) {
        quicklist_unlink(list, node);
        quicklist_settle_ends(list);
        quicklist_note_shrunk(list);
        return;
    }
    pack = quicklist_node_open_end(node);
    if (end == QUICKLIST_HEAD)
        listpack_drop_first(pack, &node->room_bytes);
    else
        listpack_drop_last(pack, &node->room_bytes);
    node->count--;
    list->count--;
    quicklist_note_shrunk(list);
}

/* --- ranges --- */

/* Removes up to `count` elements of one node from an index on; the whole node if that is all. Returns how many. */
static uint32_t delete_in_node(struct quicklist *list, struct quicklist_node *node, uint32_t first, uint64_t count)
{
    uint32_t deleted = (uint32_t)MIN(count, (uint64_t)node->count - first);
    struct listpack **pack;

    if (deleted == node->count) {
        quicklist_unlink(list, node);
        return deleted;
    }
    pack = quicklist_node_open(node);
    (void)listpack_remove(pack, listpack_seek(*pack, first), deleted);
    node->count -= deleted;
    list->count -= deleted;
    return deleted;
}

/* `left` is the node before a gap, NULL: the gap is at the head. */
static void close_gap(struct quicklist *list, struct quicklist_node *left)
{
    struct quicklist_node *right;

    if (left != NULL)
        left = quicklist_join_around(list, left);
    right = left != NULL ? neighbour(list, left, QUICKLIST_FORWARD) : end_node(list, QUICKLIST_HEAD);
    if (right != NULL)
        (void)quicklist_join(list, right, neighbour(list, right, QUICKLIST_FORWARD));
    quicklist_settle_ends(list);
    quicklist_settle_node(list, left);
    quicklist_settle_node(list, right);
}

static NOINLINE void note_range(struct value_log *log, const struct quicklist *list, uint64_t from, uint64_t count)
{
    char scratch[NUMBER_I64_SPACE];
    struct listpack_value value;
    struct buffer texts = {0};
    struct quicklist_iter iter;

    quicklist_iter_init(&iter, list, (int64_t)from, QUICKLIST_FORWARD);
    for (; count != 0 && quicklist_iter_next(&iter, &value); count--) {
        const struct slice text = value_text(&value, scratch);
        const uint64_t size = text.size;

        buffer_append(&texts, &size, sizeof(size));
        buffer_append_slice(&texts, text);
    }
    quicklist_iter_fini(&iter);
    quicklist_note_index(log, QUICKLIST_STEP_DELETED, from, buffer_slice(&texts));
    buffer_fini(&texts);
}

uint64_t quicklist_delete_range(struct quicklist *list, int64_t start, uint64_t count)
{
    struct value_log *log = value_log_of(list);
    uint64_t from = start >= 0 ? (uint64_t)start : list->count + (uint64_t)start, deleted = 0;
    struct quicklist_node *node, *left, *next;
    uint32_t inner;

    if (start < 0 && 0 - (uint64_t)start > list->count)
        return 0;
    if (from >= list->count || count == 0)
        return 0;
    if (UNLIKELY(log != NULL))
        note_range(log, list, from, count);
    node = quicklist_locate(list, from, &inner);
    left = inner != 0 ? node : neighbour(list, node, QUICKLIST_BACKWARD);
    for (; node != NULL && deleted < count; node = next) {
        next = neighbour(list, node, QUICKLIST_FORWARD);
        deleted += delete_in_node(list, node, inner, count - deleted);
        inner = 0;
    }
    close_gap(list, left);
    quicklist_note_shrunk(list);
    return deleted;
}

/* --- nodes --- */

uint32_t quicklist_node_count(const struct quicklist *list)
{
    return list->node_count;
}

struct quicklist_node *quicklist_first_node(const struct quicklist *list)
{
    return end_node(list, QUICKLIST_HEAD);
}

struct quicklist_node *quicklist_next_node(const struct quicklist *list, const struct quicklist_node *node)
{
    return neighbour(list, node, QUICKLIST_FORWARD);
}

static bool is_within_limits(const struct quicklist *list, const struct listpack *pack, uint32_t count)
{
    return list->plain_from_bytes == 0 && count <= list->node_count_most &&
           listpack_bytes(pack) <= node_bytes_most(list);
}

static void push_elements(struct quicklist *list, const struct listpack *pack)
{
    char scratch[NUMBER_I64_SPACE];

    for (listpack_at at = listpack_first(pack); at != LISTPACK_NONE; at = listpack_next(pack, at))
        quicklist_push(list, QUICKLIST_TAIL, listpack_text(pack, at, scratch));
}

void quicklist_append_listpack(struct quicklist *list, struct listpack **pack)
{
    struct quicklist_node *tail = end_node(list, QUICKLIST_TAIL), *node;
    uint32_t count = listpack_count(*pack), was_long;
    struct value_log *log = value_log_of(list);

    if (count == 0 || !is_within_limits(list, *pack, count)) {
        push_elements(list, *pack);
        listpack_destroy(pack);
        return;
    }
    node = quicklist_node_create_packed(*pack, count);
    *pack = NULL;
    was_long = list->is_long;
    if (UNLIKELY(log != NULL))
        note_push(log, QUICKLIST_TAIL, 0, count);
    quicklist_link(list, tail, QUICKLIST_FORWARD, node);
    if (quicklist_join(list, tail, node))
        list->is_long = was_long;
    quicklist_settle_ends(list);
}

/* --- taking back --- */

static void insert_range(struct quicklist *list, uint64_t index, struct slice texts)
{
    struct listpack_value value;
    struct quicklist_iter iter;
    bool is_there;

    if (index == list->count) {
        while (texts.size != 0)
            quicklist_push(list, QUICKLIST_TAIL, quicklist_step_next_text(&texts));
        return;
    }
    quicklist_iter_init(&iter, list, (int64_t)index, QUICKLIST_FORWARD);
    is_there = quicklist_iter_next(&iter, &value);
    assert(is_there);
    while (texts.size != 0)
        quicklist_insert_before(list, &iter, quicklist_step_next_text(&texts));
    quicklist_iter_fini(&iter);
}

static void replace_at(struct quicklist *list, uint64_t index, struct slice text)
{
    struct listpack_value value;
    struct quicklist_iter iter;
    bool is_there;

    quicklist_iter_init(&iter, list, (int64_t)index, QUICKLIST_FORWARD);
    is_there = quicklist_iter_next(&iter, &value);
    assert(is_there);
    quicklist_replace(list, &iter, text);
    quicklist_iter_fini(&iter);
}

void quicklist_undo(struct quicklist *list, const struct value_step *step)
{
    if (step->kind == VALUE_STEP_PUSHED) {
        const enum quicklist_end end = quicklist_step_end(step);

        if (step->a == 1)
            quicklist_drop(list, end);
        else
            (void)quicklist_delete_range(list, end == QUICKLIST_HEAD ? 0 : -(int64_t)step->a, step->a);
        return;
    }
    switch ((enum quicklist_step)step->kind) {
    case QUICKLIST_STEP_DROPPED:
        quicklist_push(list, (enum quicklist_end)step->b, step->first);
        break;
    case QUICKLIST_STEP_INSERTED:
        (void)quicklist_delete_range(list, (int64_t)step->a, 1);
        break;
    case QUICKLIST_STEP_DELETED:
        insert_range(list, step->a, step->first);
        break;
    case QUICKLIST_STEP_REPLACED:
        replace_at(list, step->a, step->first);
        break;
    }
}
