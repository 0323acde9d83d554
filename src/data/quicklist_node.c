#include "data/quicklist_priv.h"

#include "base/assert.h"
#include "base/mem.h"

#include <lzf.h>

#define NEW_INNER_MOST 2                      /* at each end, by one change of the chain */
#define COMPRESS_MOST_BYTES ((size_t)1 << 30) /* the library counts in 32 bits */

/* --- alone --- */

static struct quicklist_node *node_create(void *data, uint32_t count)
{
    struct quicklist_node *node = mem_alloc_zero(sizeof(*node));

    node->data = data;
    node->count = count;
    return node;
}

static struct quicklist_node *create_plain(struct slice text)
{
    struct quicklist_node *node = node_create(memcpy(mem_alloc(text.size), text.data, text.size), 1);

    node->is_plain = true;
    node->raw_bytes = text.size;
    return node;
}

struct quicklist_node *quicklist_node_create_packed(struct listpack *pack, uint32_t count)
{
    return node_create(pack, count);
}

struct quicklist_node *quicklist_node_create(const struct quicklist *list, struct slice text)
{
    struct listpack *pack;

    if (quicklist_is_plain_text(list, text))
        return create_plain(text);
    pack = listpack_create();
    listpack_append(&pack, text);
    return node_create(pack, 1);
}

static size_t stored_bytes(const struct quicklist_node *node)
{
    return node->is_compressed ? node->stored_bytes : quicklist_node_size_bytes(node);
}

struct quicklist_node *quicklist_node_copy(const struct quicklist_node *node)
{
    struct quicklist_node *copy = mem_copy(node, sizeof(*node));
    size_t bytes = stored_bytes(node);

    list_node_init(&copy->link);
    copy->data = memcpy(mem_alloc(bytes), node->data, bytes);
    if (!node->is_compressed)
        copy->room_bytes = 0;
    return copy;
}

void *quicklist_node_block(const struct quicklist_node *node)
{
    return node->is_compressed ? node->data : listpack_block(node->data, node->room_bytes);
}

void quicklist_node_destroy(struct quicklist_node *node)
{
    mem_free(quicklist_node_block(node));
    mem_free(node);
}

bool quicklist_node_is_plain(const struct quicklist_node *node)
{
    return node->is_plain;
}

uint32_t quicklist_node_elements(const struct quicklist_node *node)
{
    return node->count;
}

size_t quicklist_node_size_bytes(const struct quicklist_node *node)
{
    return node->is_plain || node->is_compressed ? node->raw_bytes : listpack_bytes(node->pack);
}

/* --- compression --- */

static void uncompress_into(const struct quicklist_node *node, void *to)
{
    unsigned bytes = lzf_decompress(node->data, node->stored_bytes, to, (unsigned)node->raw_bytes);

    assert(bytes == node->raw_bytes); /* we compressed it ourselves */
}

void *quicklist_node_uncompress(const struct quicklist_node *node)
{
    void *block = mem_alloc(node->raw_bytes);

    uncompress_into(node, block);
    return block;
}

struct slice quicklist_node_bytes(const struct quicklist_node *node, struct buffer *scratch)
{
    if (!node->is_compressed)
        return slice_make(node->data, quicklist_node_size_bytes(node));
    buffer_clear(scratch);
    uncompress_into(node, buffer_reserve(scratch, node->raw_bytes));
    scratch->size += node->raw_bytes;
    return buffer_slice(scratch);
}

bool quicklist_node_compressed(const struct quicklist_node *node, struct slice *bytes)
{
    if (node->is_compressed)
        *bytes = slice_make(node->data, node->stored_bytes);
    return node->is_compressed;
}

void quicklist_node_set_open(struct quicklist_node *node, void *data)
{
    assert(node->is_compressed);
    mem_free(node->data);
    node->data = data;
    node->room_bytes = 0;
    node->is_compressed = false;
}

static void open_node(struct quicklist_node *node)
{
    void *data;

    if (!node->is_compressed)
        return;
    data = quicklist_node_uncompress(node);
    quicklist_node_set_open(node, data);
}

struct listpack **quicklist_node_open_end(struct quicklist_node *node)
{
    assert(!node->is_plain);
    open_node(node);
    node->is_stubborn = false;
    node->sketch = 0;
    return &node->pack;
}

struct listpack **quicklist_node_open(struct quicklist_node *node)
{
    struct listpack **pack = quicklist_node_open_end(node);

    listpack_close_room(pack, &node->room_bytes);
    return pack;
}

static void compress_node(struct quicklist_node *node)
{
    size_t raw = quicklist_node_size_bytes(node);
    unsigned most, bytes;
    void *data;

    if (node->is_compressed || node->is_stubborn || raw < QUICKLIST_COMPRESS_LEAST_BYTES)
        return;
    if (raw > COMPRESS_MOST_BYTES) {
        node->is_stubborn = true;
        return;
    }
    most = (unsigned)(raw - MAX(raw / 16, (size_t)QUICKLIST_COMPRESS_LEAST_GAIN_BYTES));
    data = mem_alloc(most);
    bytes = lzf_compress(node->data, (unsigned)raw, data, most);
    if (bytes == 0) {
        node->is_stubborn = true;
        mem_free(data);
        return;
    }
    mem_free(quicklist_node_block(node));
    node->data = mem_realloc(data, bytes);
    node->raw_bytes = raw;
    node->stored_bytes = bytes;
    node->is_compressed = true;
}

/* Opens the nodes at one end, and compresses those behind that may have come from there. */
static void settle_end(struct quicklist *list, enum quicklist_end end)
{
    enum quicklist_direction inwards = end == QUICKLIST_HEAD ? QUICKLIST_FORWARD : QUICKLIST_BACKWARD;
    struct quicklist_node *node = end_node(list, end);
    uint64_t inner_count = list->node_count > 2 * (uint64_t)list->compress
                               ? list->node_count - 2 * (uint64_t)list->compress
                               : 0;

    for (uint32_t i = 0; i < list->compress && node != NULL; i++, node = neighbour(list, node, inwards))
        open_node(node);
    for (uint64_t i = 0; i < MIN(inner_count, NEW_INNER_MOST); i++, node = neighbour(list, node, inwards))
        compress_node(node);
}

void quicklist_settle_ends(struct quicklist *list)
{
    if (list->compress == 0)
        return;
    settle_end(list, QUICKLIST_HEAD);
    settle_end(list, QUICKLIST_TAIL);
}

static bool is_near(const struct quicklist *list, enum quicklist_end end, const struct quicklist_node *sought)
{
    enum quicklist_direction inwards = end == QUICKLIST_HEAD ? QUICKLIST_FORWARD : QUICKLIST_BACKWARD;
    const struct quicklist_node *node = end_node(list, end);

    for (uint32_t i = 0; i < list->compress && node != NULL; i++, node = neighbour(list, node, inwards)) {
        if (node == sought)
            return true;
    }
    return false;
}

void quicklist_settle_node(struct quicklist *list, struct quicklist_node *node)
{
    if (list->compress != 0 && node != NULL && !is_near(list, QUICKLIST_HEAD, node) &&
        !is_near(list, QUICKLIST_TAIL, node))
        compress_node(node);
}

/* --- in a list --- */

void quicklist_link(struct quicklist *list, struct quicklist_node *place, enum quicklist_direction direction,
                    struct quicklist_node *node)
{
    if (place == NULL)
        list_push_back(&list->nodes, &node->link);
    else if (direction == QUICKLIST_FORWARD)
        list_insert_after(&place->link, &node->link);
    else
        list_insert_before(&place->link, &node->link);
    list->node_count++;
    list->count += node->count;
    if (list->node_count > 1 || node->is_plain || quicklist_node_size_bytes(node) > node_bytes_most(list))
        list->is_long = 1;
}

void quicklist_note_shrunk_slow(struct quicklist *list)
{
    const struct quicklist_node *node = end_node(list, QUICKLIST_HEAD);

    assert(node != NULL);
    if (!node->is_plain && quicklist_node_size_bytes(node) <= node_bytes_most(list) / 2 &&
        (list->node_count_most == QUICKLIST_COUNT_UNLIMITED || node->count <= list->node_count_most / 2))
        list->is_long = 0;
}

void quicklist_unlink(struct quicklist *list, struct quicklist_node *node)
{
    if (UNLIKELY(list->mark == node))
        list->mark = neighbour(list, node, QUICKLIST_FORWARD);
    list_remove(&node->link);
    list->node_count--;
    list->count -= node->count;
    quicklist_node_destroy(node);
}

bool quicklist_accepts(const struct quicklist *list, const struct quicklist_node *node, struct slice text)
{
    return node != NULL && !node->is_plain && node->count < list->node_count_most &&
           quicklist_node_size_bytes(node) + quicklist_element_bytes_most(text) <= node_bytes_most(list);
}

struct quicklist_node *quicklist_split(struct quicklist *list, struct quicklist_node *node, listpack_at at)
{
    struct listpack **pack = quicklist_node_open(node), *rest = listpack_create();
    struct quicklist_node *right;

    listpack_append_list(&rest, *pack, at);
    right = quicklist_node_create_packed(rest, listpack_count(rest));
    (void)listpack_remove(pack, at, right->count);
    assert(node->count > right->count && right->count != 0);
    node->count -= right->count;
    list->count -= right->count;
    quicklist_link(list, node, QUICKLIST_FORWARD, right);
    return right;
}

bool quicklist_join(struct quicklist *list, struct quicklist_node *left, struct quicklist_node *right)
{
    uint32_t count;

    if (left == NULL || right == NULL || left->is_plain || right->is_plain ||
        (uint64_t)left->count + right->count > list->node_count_most ||
        quicklist_node_size_bytes(left) + quicklist_node_size_bytes(right) > node_bytes_most(list))
        return false;
    listpack_append_list(quicklist_node_open(left), *quicklist_node_open(right), LISTPACK_HEAD_BYTES);
    count = right->count;
    quicklist_unlink(list, right);
    left->count += count;
    list->count += count;
    return true;
}

struct quicklist_node *quicklist_join_around(struct quicklist *list, struct quicklist_node *node)
{
    struct quicklist_node *before = neighbour(list, node, QUICKLIST_BACKWARD);

    if (quicklist_join(list, before, node))
        node = before;
    (void)quicklist_join(list, node, neighbour(list, node, QUICKLIST_FORWARD));
    return node;
}

/* `index` counts in the direction from that end; *inner_index likewise. */
static struct quicklist_node *locate_from(const struct quicklist *list, enum quicklist_end end, uint64_t index,
                                          uint32_t *inner_index)
{
    enum quicklist_direction inwards = end == QUICKLIST_HEAD ? QUICKLIST_FORWARD : QUICKLIST_BACKWARD;
    struct quicklist_node *node = end_node(list, end);

    while (node != NULL && index >= node->count) {
        index -= node->count;
        node = neighbour(list, node, inwards);
    }
    assert(node != NULL);
    *inner_index = (uint32_t)index;
    return node;
}

struct quicklist_node *quicklist_locate(const struct quicklist *list, uint64_t index, uint32_t *inner_index)
{
    struct quicklist_node *node;

    assert(index < list->count);
    if (index < list->count / 2)
        return locate_from(list, QUICKLIST_HEAD, index, inner_index);
    node = locate_from(list, QUICKLIST_TAIL, list->count - 1 - index, inner_index);
    *inner_index = node->count - 1 - *inner_index;
    return node;
}
