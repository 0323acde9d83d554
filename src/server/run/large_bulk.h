/* Large arguments: received directly into the blob that becomes the value, without a copy in the input buffer. All in
 * the worker's thread of the client. */
#pragma once

#include "net/resp.h"
#include "server/core/lifecycle.h"

extern const struct lifecycle large_bulk_lifecycle;

struct client;

/* Copies the bytes of a large argument that have arrived, and receives the rest behind them. Memory is allocated as
 * bytes arrive, not as announced. Without memory the command is refused (OOM); the connection stays open. */
void large_bulk_begin(struct client *client, const struct resp_command *words, char *data, size_t size);
void large_bulk_done(struct client *client);   /* the on_direct_done function of clients */
void large_bulk_forget(struct client *client); /* the client is closed */
