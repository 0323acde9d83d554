/* link_priv.h: the session of TLS of a link. It reads and writes the link's socket, which does not block. */
#pragma once

#include "base/compiler.h"
#include "base/status.h"
#include "tools/link/link.h"

#include <stddef.h>

struct link_session;

enum link_wish { LINK_WISH_NONE, LINK_WISH_READ, LINK_WISH_WRITE }; /* what to poll the socket for */

/* NULL: `error` says why. Does nothing on the socket yet. */
struct link_session *link_session_create(const struct link_tls *options, int socket, char *error, size_t error_room);
void link_session_destroy(struct link_session **handle); /* says goodbye if it can; accepts NULL */

/* STATUS_OK, or STATUS_AGAIN with the wish, or an error. */
must_check enum status link_session_shake(struct link_session *session, enum link_wish *wish, char *error,
                                          size_t error_room);
must_check enum status link_session_read(struct link_session *session, char *data, size_t room, size_t *size,
                                         enum link_wish *wish, char *error, size_t error_room);
must_check enum status link_session_write(struct link_session *session, const char *data, size_t size, size_t *written,
                                          enum link_wish *wish, char *error, size_t error_room);
