/* Internals that the files of tracking share. */
#pragma once

#include "server/pubsub/tracking.h"

struct blob;

/* Sends an invalidation to the client: an array of names; body NULL: all keys. Its worker; the client tracks. */
void tracking_tell(struct client *client, struct blob *body);
