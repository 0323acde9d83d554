#include "replication/sync_pipe.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/mutex.h"

#include <pthread.h>
#include <string.h>

enum { FULL_BYTES = 4 * 1024 * 1024, ROOM_BYTES = 1024 * 1024 };

struct piece {
    struct list_node node;
    size_t size, taken;
    char bytes[];
};

struct sync_pipe {
    struct byte_source source;
    void (*on_room)(void);
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct list pieces GUARDED_BY(lock);
    size_t waiting_bytes GUARDED_BY(lock);
    bool was_full GUARDED_BY(lock); /* on_room is due */
    bool ended GUARDED_BY(lock);
    enum status status GUARDED_BY(lock);
};

static struct sync_pipe *of_source(struct byte_source *source)
{
    return container_of(source, struct sync_pipe, source);
}

/* Takes from the first piece. */
static size_t take_locked(struct sync_pipe *pipe, char *to, size_t size)
{
    struct piece *piece = container_of(list_first(&pipe->pieces), struct piece, node);
    size_t count = MIN(size, piece->size - piece->taken);

    memcpy(to, piece->bytes + piece->taken, count);
    piece->taken += count;
    pipe->waiting_bytes -= count;
    if (piece->taken == piece->size) {
        list_remove(&piece->node);
        mem_free(piece);
    }
    return count;
}

static must_check enum status read_pipe(struct byte_source *source, void *data, size_t size, size_t *got)
{
    struct sync_pipe *pipe = of_source(source);
    enum status status;
    bool has_room;

    *got = 0;
    mutex_lock(&pipe->lock);
    while (list_is_empty(&pipe->pieces) && !pipe->ended)
        pthread_cond_wait(&pipe->changed, &pipe->lock);
    status = pipe->status;
    while (status == STATUS_OK && *got < size && !list_is_empty(&pipe->pieces))
        *got += take_locked(pipe, (char *)data + *got, size - *got);
    has_room = pipe->was_full && pipe->waiting_bytes <= ROOM_BYTES;
    if (has_room)
        pipe->was_full = false;
    mutex_unlock(&pipe->lock);
    if (has_room)
        pipe->on_room();
    return status;
}

struct sync_pipe *sync_pipe_create(void (*on_room)(void))
{
    struct sync_pipe *pipe = mem_alloc_zero(sizeof(*pipe));

    pipe->source = (struct byte_source){.read = read_pipe, .size = BYTES_UNKNOWN};
    pipe->on_room = on_room;
    pthread_mutex_init(&pipe->lock, NULL);
    pthread_cond_init(&pipe->changed, NULL);
    list_init(&pipe->pieces);
    pipe->status = STATUS_OK;
    return pipe;
}

void sync_pipe_destroy(struct sync_pipe **handle)
{
    struct sync_pipe *pipe = *handle;

    if (pipe == NULL)
        return;
    LIST_FOREACH_SAFE(node, &pipe->pieces)
        mem_free(container_of(node, struct piece, node));
    pthread_cond_destroy(&pipe->changed);
    pthread_mutex_destroy(&pipe->lock);
    mem_free(pipe);
    *handle = NULL;
}

void sync_pipe_add(struct sync_pipe *pipe, struct slice bytes)
{
    struct piece *piece;

    if (bytes.size == 0)
        return;
    piece = mem_alloc(sizeof(*piece) + bytes.size);
    list_node_init(&piece->node);
    piece->size = bytes.size;
    piece->taken = 0;
    memcpy(piece->bytes, bytes.data, bytes.size);
    mutex_lock(&pipe->lock);
    assert(!pipe->ended || pipe->status != STATUS_OK);
    list_push_back(&pipe->pieces, &piece->node);
    pipe->waiting_bytes += bytes.size;
    pthread_cond_signal(&pipe->changed);
    mutex_unlock(&pipe->lock);
}

bool sync_pipe_is_full(struct sync_pipe *pipe)
{
    bool is_full;

    mutex_lock(&pipe->lock);
    is_full = !pipe->ended && pipe->waiting_bytes >= FULL_BYTES;
    if (is_full)
        pipe->was_full = true;
    mutex_unlock(&pipe->lock);
    return is_full;
}

void sync_pipe_end(struct sync_pipe *pipe, enum status status)
{
    mutex_lock(&pipe->lock);
    if (!pipe->ended) {
        pipe->ended = true;
        pipe->status = status;
        pthread_cond_signal(&pipe->changed);
    }
    mutex_unlock(&pipe->lock);
}

struct byte_source *sync_pipe_source(struct sync_pipe *pipe)
{
    return &pipe->source;
}

bool sync_pipe_would_wait(struct byte_source *source)
{
    struct sync_pipe *pipe = of_source(source);
    bool waits;

    mutex_lock(&pipe->lock);
    waits = list_is_empty(&pipe->pieces) && !pipe->ended;
    mutex_unlock(&pipe->lock);
    return waits;
}
