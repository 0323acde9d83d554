/* Iterators, and the changes that are made at one. */
#include "base/assert.h"
#include "base/mem.h"
#include "data/quicklist_priv.h"

/* --- walking --- */

static const struct listpack *pack_of(const struct quicklist_iter *iter)
{
    return iter->opened != NULL ? iter->opened : iter->node->pack;
}

static void close_node(struct quicklist_iter *iter)
{
    mem_free(iter->opened);
    iter->opened = NULL;
}

/* Moves to an element of a node (NULL: after the end), which is returned next. */
static void enter(struct quicklist_iter *iter, struct quicklist_node *node, int64_t inner_index)
{
    close_node(iter);
    iter->node = node;
    iter->at = LISTPACK_NONE;
    iter->is_fresh = true;
    if (node == NULL)
        return;
    if (node->is_compressed)
        iter->opened = quicklist_node_uncompress(node);
    if (!node->is_plain)
        iter->at = listpack_seek(pack_of(iter), inner_index);
}

static void enter_index(struct quicklist_iter *iter)
{
    struct quicklist_node *node = NULL;
    uint32_t inner_index = 0;

    if (iter->index < iter->list->count)
        node = quicklist_locate(iter->list, iter->index, &inner_index);
    enter(iter, node, inner_index);
}

void quicklist_iter_init(struct quicklist_iter *iter, const struct quicklist *list, int64_t index,
                         enum quicklist_direction direction)
{
    *iter = (struct quicklist_iter){.list = list, .direction = direction};
    /* An index before the head wraps around to one that no list has. */
    iter->index = index >= 0 ? (uint64_t)index : list->count + (uint64_t)index;
    enter_index(iter);
}

/* Leaves a place between two nodes for the node ahead. One of the two was changed, or a node between them was deleted:
 * they may now be small enough to be joined. */
static void leave_changed(struct quicklist_iter *iter, struct quicklist_node *left, struct quicklist_node *right)
{
    struct quicklist *list = iter->changed;
    bool forward = iter->direction == QUICKLIST_FORWARD;
    uint32_t left_count = left != NULL ? left->count : 0;

    if (quicklist_join(list, left, right)) {
        enter(iter, left, forward ? (int64_t)left_count : (int64_t)left_count - 1);
        return;
    }
    iter->changed = NULL;
    quicklist_settle_ends(list);
    quicklist_settle_node(list, forward ? left : right);
    enter(iter, forward ? right : left, forward ? 0 : -1);
}

static void leave(struct quicklist_iter *iter)
{
    struct quicklist_node *node = iter->node;
    struct quicklist_node *before = neighbour(iter->list, node, QUICKLIST_BACKWARD);
    struct quicklist_node *after = neighbour(iter->list, node, QUICKLIST_FORWARD);

    if (iter->changed == NULL) {
        if (iter->direction == QUICKLIST_FORWARD)
            enter(iter, after, 0);
        else
            enter(iter, before, -1);
    } else if (iter->direction == QUICKLIST_FORWARD) {
        leave_changed(iter, quicklist_join(iter->changed, before, node) ? before : node, after);
    } else {
        (void)quicklist_join(iter->changed, node, after);
        leave_changed(iter, before, node);
    }
}

static void advance(struct quicklist_iter *iter)
{
    listpack_at at = LISTPACK_NONE;

    if (iter->direction == QUICKLIST_FORWARD) {
        iter->index++;
        if (!iter->node->is_plain)
            at = listpack_next(pack_of(iter), iter->at);
    } else {
        iter->index--;
        if (!iter->node->is_plain)
            at = listpack_previous(pack_of(iter), iter->at);
    }
    if (at != LISTPACK_NONE)
        iter->at = at;
    else
        leave(iter);
}

/* The next element of a node that is walked forward. */
static inline bool next_within(struct quicklist_iter *iter, struct listpack_value *value)
{
    listpack_at at;

    if (iter->node == NULL || iter->is_fresh || iter->node->is_plain || iter->direction != QUICKLIST_FORWARD)
        return false;
    at = listpack_get_next(pack_of(iter), iter->at, value);
    if (at == LISTPACK_NONE)
        return false;
    iter->index++;
    iter->at = at;
    return true;
}

/* Into the node, on to another one, or backward. */
static NOINLINE bool next_anywhere(struct quicklist_iter *iter, struct listpack_value *value)
{
    if (iter->node != NULL && !iter->is_fresh)
        advance(iter);
    if (iter->node == NULL)
        return false;
    iter->is_fresh = false;
    if (iter->node->is_plain)
        *value = (struct listpack_value){
            .text = slice_make(iter->opened != NULL ? iter->opened : iter->node->data, iter->node->raw_bytes)};
    else
        *value = listpack_get(pack_of(iter), iter->at);
    return true;
}

bool quicklist_iter_next(struct quicklist_iter *iter, struct listpack_value *value)
{
    return LIKELY(next_within(iter, value)) || next_anywhere(iter, value);
}

void quicklist_iter_fini(struct quicklist_iter *iter)
{
    struct quicklist *list = iter->changed;

    close_node(iter);
    if (list != NULL) {
        struct quicklist_node *node = quicklist_join_around(list, iter->node);

        quicklist_settle_ends(list);
        quicklist_settle_node(list, node);
    }
    iter->node = NULL;
    iter->changed = NULL;
}

/* --- changing --- */

static void check_stand(const struct quicklist *list, const struct quicklist_iter *iter)
{
    assert(list == iter->list);
    assert(iter->node != NULL);
    assert(!iter->is_fresh);
}

/* Returns the listpack of the node for a change. A copy that the iterator has decompressed becomes the node's. */
static struct listpack **open_pack(struct quicklist_iter *iter)
{
    struct quicklist_node *node = iter->node;

    if (iter->opened != NULL) {
        quicklist_node_set_open(node, iter->opened);
        iter->opened = NULL;
    }
    return quicklist_node_open(node);
}

/* The element that next() returned last. */
static struct slice current_text(const struct quicklist_iter *iter, char scratch[NUMBER_I64_SPACE])
{
    if (iter->node->is_plain)
        return slice_make(iter->opened != NULL ? iter->opened : iter->node->data, iter->node->raw_bytes);
    return listpack_text(pack_of(iter), iter->at, scratch);
}

static NOINLINE void note_delete(struct value_log *log, const struct quicklist_iter *iter)
{
    char scratch[NUMBER_I64_SPACE];
    const struct slice text = current_text(iter, scratch);
    const uint64_t size = text.size;
    struct buffer texts = {0};

    buffer_append(&texts, &size, sizeof(size));
    buffer_append_slice(&texts, text);
    quicklist_note_index(log, QUICKLIST_STEP_DELETED, iter->index, buffer_slice(&texts));
    buffer_fini(&texts);
}

static NOINLINE void note_replace(struct value_log *log, const struct quicklist_iter *iter)
{
    char scratch[NUMBER_I64_SPACE];

    quicklist_note_index(log, QUICKLIST_STEP_REPLACED, iter->index, current_text(iter, scratch));
}

static void delete_current(struct quicklist *list, struct quicklist_iter *iter)
{
    bool forward = iter->direction == QUICKLIST_FORWARD;
    struct quicklist_node *node = iter->node;
    struct listpack **pack;
    listpack_at behind;

    check_stand(list, iter);
    iter->changed = list;
    iter->index -= forward ? 0 : 1;
    if (node->count == 1) {
        struct quicklist_node *before = neighbour(list, node, QUICKLIST_BACKWARD);
        struct quicklist_node *after = neighbour(list, node, QUICKLIST_FORWARD);

        quicklist_unlink(list, node);
        leave_changed(iter, before, after);
        quicklist_note_shrunk(list);
        return;
    }
    pack = open_pack(iter);
    behind = listpack_remove(pack, iter->at, 1);
    node->count--;
    list->count--;
    iter->is_fresh = true;
    if (forward)
        iter->at = behind;
    else
        iter->at = behind != LISTPACK_NONE ? listpack_previous(*pack, behind) : listpack_last(*pack);
    if (iter->at == LISTPACK_NONE)
        leave(iter);
    quicklist_note_shrunk(list);
}

void quicklist_delete(struct quicklist *list, struct quicklist_iter *iter)
{
    struct value_log *log = value_log_of(list);

    check_stand(list, iter);
    if (UNLIKELY(log != NULL))
        note_delete(log, iter);
    delete_current(list, iter);
}

static void insert_in_node(struct quicklist *list, struct quicklist_node *node, listpack_at at, struct slice text)
{
    (void)listpack_insert(quicklist_node_open(node), at, text);
    node->count++;
    list->count++;
}

/* Between two neighbours; one of them may be NULL. */
static void insert_between(struct quicklist *list, struct quicklist_node *left, struct quicklist_node *right,
                           struct slice text)
{
    bool plain = quicklist_is_plain_text(list, text);

    if (!plain && quicklist_accepts(list, left, text))
        insert_in_node(list, left, LISTPACK_NONE, text);
    else if (!plain && quicklist_accepts(list, right, text))
        insert_in_node(list, right, LISTPACK_HEAD_BYTES, text);
    else if (left != NULL)
        quicklist_link(list, left, QUICKLIST_FORWARD, quicklist_node_create(list, text));
    else
        quicklist_link(list, right, QUICKLIST_BACKWARD, quicklist_node_create(list, text));
}

/* After an insertion at a node (NULL: at the head): it may have been split, and a node put between. */
static void settle_from(struct quicklist *list, struct quicklist_node *node)
{
    node = node != NULL ? quicklist_join_around(list, node) : end_node(list, QUICKLIST_HEAD);
    for (unsigned i = 0; i < 3 && node != NULL; i++) {
        (void)quicklist_join(list, node, neighbour(list, node, QUICKLIST_FORWARD));
        quicklist_settle_node(list, node);
        node = neighbour(list, node, QUICKLIST_FORWARD);
    }
    quicklist_settle_ends(list);
}

/* `side`: the new element is inserted before or after the iterator's element. */
static void insert_beside(struct quicklist *list, struct quicklist_iter *iter, enum quicklist_direction side,
                          struct slice text)
{
    struct quicklist_node *left = iter->node, *right = iter->node;
    listpack_at at = iter->at;

    check_stand(list, iter);
    if (!left->is_plain && side == QUICKLIST_FORWARD)
        at = listpack_next(pack_of(iter), at);
    if (!quicklist_is_plain_text(list, text) && quicklist_accepts(list, left, text)) {
        (void)open_pack(iter);
        insert_in_node(list, left, at, text);
    } else {
        if (left->is_plain ? side == QUICKLIST_BACKWARD : at == LISTPACK_HEAD_BYTES) {
            left = neighbour(list, right, QUICKLIST_BACKWARD);
        } else if (left->is_plain || at == LISTPACK_NONE) {
            right = neighbour(list, left, QUICKLIST_FORWARD);
        } else {
            (void)open_pack(iter);
            right = quicklist_split(list, left, at);
        }
        insert_between(list, left, right, text);
    }
    settle_from(list, left);
    iter->changed = NULL;
    iter->index += side == QUICKLIST_BACKWARD ? 1 : 0;
    enter_index(iter);
    iter->is_fresh = false;
}

void quicklist_iter_insert_unnoted(struct quicklist *list, struct quicklist_iter *iter, struct slice text)
{
    insert_beside(list, iter, QUICKLIST_BACKWARD, text);
}

void quicklist_insert_before(struct quicklist *list, struct quicklist_iter *iter, struct slice text)
{
    struct value_log *log = value_log_of(list);

    if (UNLIKELY(log != NULL))
        quicklist_note_index(log, QUICKLIST_STEP_INSERTED, iter->index, SLICE_EMPTY);
    insert_beside(list, iter, QUICKLIST_BACKWARD, text);
}

void quicklist_insert_after(struct quicklist *list, struct quicklist_iter *iter, struct slice text)
{
    struct value_log *log = value_log_of(list);

    if (UNLIKELY(log != NULL))
        quicklist_note_index(log, QUICKLIST_STEP_INSERTED, iter->index + 1, SLICE_EMPTY);
    insert_beside(list, iter, QUICKLIST_FORWARD, text);
}

static bool fits_in_place(const struct quicklist *list, const struct quicklist_iter *iter, struct slice text)
{
    const struct listpack *pack = pack_of(iter);
    listpack_at behind;

    if (iter->node->is_plain || quicklist_is_plain_text(list, text))
        return false;
    behind = listpack_next(pack, iter->at);
    if (behind == LISTPACK_NONE)
        behind = listpack_bytes(pack) - 1;
    return listpack_bytes(pack) - (behind - iter->at) + quicklist_element_bytes_most(text) <= node_bytes_most(list);
}

void quicklist_replace(struct quicklist *list, struct quicklist_iter *iter, struct slice text)
{
    struct value_log *log = value_log_of(list);

    check_stand(list, iter);
    if (UNLIKELY(log != NULL))
        note_replace(log, iter);
    if (fits_in_place(list, iter, text)) {
        listpack_replace(open_pack(iter), iter->at, text);
        iter->changed = list;
        return;
    }
    insert_beside(list, iter, iter->direction, text); /* ahead; so that is where the deletion goes */
    delete_current(list, iter);
    iter->is_fresh = false;
}
