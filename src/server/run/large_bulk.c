#include "server/run/large_bulk.h"

#include "base/background.h"
#include "server/config/options.h"
#include "server/core/client.h"
#include "server/core/lifecycle.h"
#include "server/run/dispatch_priv.h"

/* A blob that has become too small is followed by one of two to four times its size. New bytes are received into the
 * new blob, behind the place for the old bytes, and the old bytes are copied in pieces, one for each piece received. So
 * no turn of the loop does more than that, however large the argument. The room behind is always at least the size to
 * be copied. If four times the size is sufficient for the whole argument, the next blob has that size. */
enum {
    DIRECT_FIRST_BYTES = 1 << 20, /* memory that a large argument gets at once */
    DIRECT_PIECE_BYTES = 1 << 20,
};

/* How much memory a large argument gets beyond `there`: never so much that it passes client-query-buffer-limit
 * unnoticed. */
/* A worker's: arguments for which there is no memory; written alone. */
static struct state {
    char discarded[16384];
} CACHE_ALIGNED states[WORKERS_MOST];

static struct state *of(const struct worker *worker)
{
    return &states[worker->index];
}

static size_t direct_capacity(const struct client *client, size_t there)
{
    uint64_t limit = OPTION_GET_U64(option_client_query_buffer_limit);
    size_t wanted = client->large_size / 4 <= there ? client->large_size : there * 2;

    return MIN(client->large_size, limit < wanted ? (size_t)limit + 1 : wanted);
}

static void release_blob(void *argument)
{
    struct blob *blob = argument;

    blob_release(&blob);
}

/* Giving much memory back to the system takes long. */
static void release_later(struct blob **blob)
{
    if (*blob != NULL && (*blob)->capacity > DIRECT_PIECE_BYTES)
        background_submit(BACKGROUND_FREE, release_blob, *blob);
    else
        blob_release(blob);
    *blob = NULL;
}

/* There is no memory: the memory so far is freed, and the rest of the argument is discarded. The command is refused
 * when it is complete; commands behind it are not affected. */
static void lose(struct client *client)
{
    large_bulk_forget(client);
    client->large_is_lost = true;
    client->large_bytes = 0;
}

/* How much the next piece of a lost argument takes. */
static size_t next_lost_piece(struct client *client)
{
    size_t size = MIN(client->large_size - client->large_received, sizeof(of(client->worker)->discarded));

    client->large_received += size;
    return size;
}

static void copy_piece(struct client *client, size_t most)
{
    struct blob *from = client->large_before;
    size_t size;

    if (from == NULL)
        return;
    size = MIN(from->capacity - client->large_copied, most);
    assert(client->large_copied + size <= client->large->capacity);
    memcpy(client->large->data + client->large_copied, from->data + client->large_copied, size);
    client->large_copied += size;
    if (client->large_copied == from->capacity) {
        release_later(&client->large_before);
        client->large_bytes = blob_footprint(client->large);
        client_update_card(client);
    }
}

/* How much of the room is for the next piece. */
static size_t next_piece(struct client *client)
{
    size_t size = MIN(client->large->capacity - client->large_received, (size_t)DIRECT_PIECE_BYTES);

    client->large_received += size;
    return size;
}

void large_bulk_begin(struct client *client, const struct resp_command *words, char *data, size_t size)
{
    size_t here = size - words->large_offset;
    struct blob *blob;

    client_assert_owned(client);
    assert(client->large == NULL && client->large_before == NULL && !client->large_is_lost);
    assert(words->large_offset <= size && here < words->large_size); /* the rest is to come */
    client->large_size = words->large_size;
    blob = blob_try_create(direct_capacity(client, MAX((size_t)DIRECT_FIRST_BYTES, here * 2)));
    client->large_received = here;
    if (blob == NULL) {
        lose(client);
        conn_receive_direct(&client->conn, of(client->worker)->discarded, next_lost_piece(client), here);
        return;
    }
    memcpy(blob->data, data + words->large_offset, here);
    client->large = blob;
    client->large_bytes = blob_footprint(blob);
    conn_receive_direct(&client->conn, blob->data + here, next_piece(client), here);
}

static bool is_too_much(const struct client *client)
{
    return client->large_received > OPTION_GET_U64(option_client_query_buffer_limit);
}

/* False: there is no memory for more. */
static bool grow(struct client *client)
{
    struct blob *larger;

    copy_piece(client, SIZE_MAX);
    larger = blob_try_create(direct_capacity(client, client->large_received));
    if (larger == NULL)
        return false;
    client->large_before = client->large;
    client->large = larger;
    client->large_copied = 0;
    client->large_bytes = blob_footprint(larger) + blob_footprint(client->large_before);
    client_update_card(client);
    return true;
}

static void lost_done(struct client *client)
{
    if (client->large_received == client->large_size) {
        client->large_is_lost = false;
        resp_parser_large_done(&client->parser, NULL);
        return;
    }
    conn_receive_direct_more(&client->conn, of(client->worker)->discarded, next_lost_piece(client));
}

void large_bulk_done(struct client *client)
{
    struct blob *blob = client->large;
    char *next;

    client_assert_owned(client);
    assert((blob == NULL) == client->large_is_lost && client->large_received <= client->large_size);
    if (client->large_is_lost) {
        lost_done(client);
        return;
    }
    copy_piece(client, DIRECT_PIECE_BYTES);
    if (client->large_received == client->large_size) {
        copy_piece(client, SIZE_MAX);
        if (is_too_much(client)) {
            client_close_for_query(client);
            return;
        }
        blob->size = client->large_size;
        client->large_bytes = 0; /* from now on the parser has it */
        resp_parser_large_done(&client->parser, blob);
        blob_release(&client->large);
        client_update_card(client);
        return;
    }
    if (client->large_received == blob->capacity && is_too_much(client)) {
        client_close_for_query(client);
        return;
    }
    if (client->large_received == blob->capacity && !grow(client)) {
        lose(client);
        client_update_card(client);
        conn_receive_direct_more(&client->conn, of(client->worker)->discarded, next_lost_piece(client));
        return;
    }
    next = client->large->data + client->large_received;
    conn_receive_direct_more(&client->conn, next, next_piece(client));
}

void large_bulk_forget(struct client *client)
{
    client_assert_owned(client);
    release_later(&client->large);
    release_later(&client->large_before);
}

const struct lifecycle large_bulk_lifecycle = {
    .client_close = large_bulk_forget,
};
