#include "server/direct.h"

#include "server/client.h"
#include "server/dispatch_priv.h"
#include "server/options.h"

enum { DIRECT_FIRST_BYTES = 1 << 20 /* what a large argument gets at once */ };

/* How much memory a large argument gets when `wanted` would be right: never so much that it passes
 * client-query-buffer-limit unnoticed. */
static size_t direct_capacity(const struct client *client, size_t wanted)
{
    uint64_t limit = OPTION_GET_U64(option_client_query_buffer_limit);

    return MIN(client->direct_size, limit < wanted ? (size_t)limit + 1 : wanted);
}

void direct_begin(struct client *client, const struct resp_command *words, char *data, size_t size)
{
    size_t here = size - words->large_offset;
    struct blob *blob;

    client->direct_size = words->large_size;
    blob = blob_try_create(direct_capacity(client, MAX((size_t)DIRECT_FIRST_BYTES, here * 2)));
    if (blob == NULL) {
        dispatch_protocol_error(client, SLICE("Protocol error: invalid bulk length"));
        return;
    }
    memcpy(blob->data, data + words->large_offset, here);
    client->direct = blob;
    client->direct_bytes = blob->capacity;
    conn_receive_direct(&client->conn, blob->data + here, blob->capacity - here, here);
}

void direct_done(struct client *client)
{
    struct blob *blob = client->direct;
    size_t received = blob->capacity, more;

    if (received > OPTION_GET_U64(option_client_query_buffer_limit)) {
        client_close_for_query(client);
        return;
    }
    if (received < client->direct_size) {
        more = direct_capacity(client, received * 2);
        if (!blob_try_grow(&client->direct, more)) {
            dispatch_protocol_error(client, SLICE("Protocol error: invalid bulk length"));
            return;
        }
        client->direct_bytes = client->direct->capacity;
        conn_receive_direct_more(&client->conn, client->direct->data + received, more - received);
        client_update_card(client);
        return;
    }
    blob->size = client->direct_size;
    resp_parser_large_done(&client->parser, blob);
    blob_release(&client->direct);
    client_update_card(client);
}
