/* The UUIDs of servers of other kinds, by their ids: they cannot be had back from these (uuid.h), and whoever sends
 * operations on to another KeyDB server names the one where they ran. Those of the last UUIDS_MOST such servers are
 * kept, in memory: it is as long as the history is that may be sent.
 *
 * Any thread, also under stripes. */
#pragma once

#include "active/uuid.h"

enum { UUIDS_MOST = 1024 };

void uuids_keep(const struct uuid *uuid); /* does nothing for one of ours */
bool uuids_are_kept(void);                /* there are some */
struct uuid uuids_find(uint64_t id);      /* one that has this id, if the real one is not known */
/* What a link brings in as operations of an origin of its own came from this server. */
void uuids_keep_source(uint64_t origin, const struct uuid *server);
bool uuids_came_from(uint64_t origin, uint64_t server_id); /* they ran there, or were brought in from there */
