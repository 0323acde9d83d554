/* Large arguments: received into the blob that becomes the value, without a copy in the input. All in the worker's
 * thread of the client. */
#pragma once

#include "net/resp.h"
#include "server/core/lifecycle.h"

extern const struct lifecycle large_bulk_lifecycle;

struct client;

/* The bytes of a large argument that are here are copied, the rest is received behind them. Memory is taken as bytes
 * come, not as they are announced. If there is no memory for it the command is refused (OOM); the connection stays. */
void large_bulk_begin(struct client *client, const struct resp_command *words, char *data, size_t size);
void large_bulk_done(struct client *client);   /* the on_direct_done of clients */
void large_bulk_forget(struct client *client); /* it is closed */
