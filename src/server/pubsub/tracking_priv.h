/* For the files of tracking. */
#pragma once

#include "server/pubsub/tracking.h"

struct blob;

/* The client is told that keys have changed: an array of names; body NULL: all have. Its worker; it tracks. */
void tracking_tell(struct client *client, struct blob *body);
