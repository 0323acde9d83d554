/* Talking to one peer while everything else of this loop waits: for sessions in which a person steps through a script.
 * Only from inside of the connection's on_data, and only on loops of epoll, which read nothing behind our back. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

struct conn;

bool conn_may_talk(const struct conn *conn);

/* Asked again and again while nothing happens; false: give up. */
typedef bool (*conn_talk_fn)(void *context);

/* Sends what waits in conn->output, all of it. False: the peer has gone, or has not taken it for too long. */
must_check bool conn_talk_flush(struct conn *conn, conn_talk_fn go_on, void *context);
/* Waits for bytes; 0: the peer has gone, or go_on gave up. At least CONN_TALK_ROOM bytes of room. */
enum { CONN_TALK_ROOM = 17 * 1024 };
must_check size_t conn_talk_receive(struct conn *conn, char *data, size_t room, conn_talk_fn go_on, void *context);

/* The stream belongs to another process from now on: our descriptor is closed, and the peer hears nothing of it. */
void conn_leave(struct conn *conn);
