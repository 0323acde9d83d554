/* A blocking conversation with one peer, while all other connections of this loop wait: for sessions in which a person
 * steps through a script. Call these functions from the connection's on_data only, or while its input is paused, and
 * only on loops with epoll (io_uring may have read bytes already). */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

struct conn;

bool conn_may_talk(const struct conn *conn);

/* Called again and again while waiting; false: give up. */
typedef bool (*conn_talk_fn)(void *context);

/* Sends all of conn->output. False: the peer has closed the connection, or has not read for too long. */
must_check bool conn_talk_flush(struct conn *conn, conn_talk_fn go_on, void *context);
/* Waits for bytes and returns their count. 0: the peer has closed the connection, or go_on returned false. `room` is at
 * least CONN_TALK_ROOM bytes. */
enum { CONN_TALK_ROOM = 17 * 1024 };
must_check size_t conn_talk_receive(struct conn *conn, char *data, size_t room, conn_talk_fn go_on, void *context);

/* Another process owns the stream from now on: closes our descriptor; the peer does not notice. */
void conn_leave(struct conn *conn);
