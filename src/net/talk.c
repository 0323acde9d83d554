#include "net/talk.h"

#include "base/clock.h"
#include "net/loop_priv.h"
#include "net/tls_priv.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { WAIT_MS = 100, PIECES_MOST = 64, FLUSH_MOST_MS = 60 * 1000 };

bool conn_may_talk(const struct conn *conn)
{
    return conn->loop->backend == &loop_backend_epoll && (conn->flags & (CONN_HANDSHAKE | CONN_CLOSING)) == 0 &&
           ((conn->flags & CONN_TLS) == 0 || conn->tls->in_size == 0);
}

/* False: given up. */
static bool wait_for(const struct conn *conn, short events, conn_talk_fn go_on, void *context)
{
    struct pollfd entry = {.fd = conn->fd, .events = events};
    int count;

    do {
        if (!go_on(context))
            return false;
        count = poll(&entry, 1, WAIT_MS);
    } while (count == 0 || (count < 0 && errno == EINTR));
    return count > 0;
}

static bool send_output(struct conn *conn, struct output *output, conn_talk_fn go_on, void *context)
{
    const uint64_t last_ms = clock_monotonic_ms() + FLUSH_MOST_MS;
    struct iovec pieces[PIECES_MOST];

    while (!output_is_empty(output)) {
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = output_iovec(output, pieces, PIECES_MOST)};
        ssize_t sent = sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent > 0)
            output_consume(output, (size_t)sent);
        else if (errno != EAGAIN && errno != EINTR)
            return false;
        else if (clock_monotonic_ms() > last_ms || !wait_for(conn, POLLOUT, go_on, context))
            return false;
    }
    return true;
}

static void assert_in_command(const struct conn *conn)
{
    loop_assert_self(conn->loop);
    assert((conn->flags & (CONN_IN_DATA | CONN_PAUSED)) != 0); /* paused: its command was parked before it ran */
}

bool conn_talk_flush(struct conn *conn, conn_talk_fn go_on, void *context)
{
    assert_in_command(conn);
    if ((conn->flags & CONN_TLS) == 0)
        return send_output(conn, &conn->output, go_on, context);
    while (!output_is_empty(&conn->output) || !output_is_empty(tls_session_wire(conn->tls))) {
        if (!output_is_empty(&conn->output))
            tls_encrypt(conn);
        if ((conn->flags & CONN_CLOSING) != 0 || !send_output(conn, tls_session_wire(conn->tls), go_on, context))
            return false;
    }
    return true;
}

size_t conn_talk_receive(struct conn *conn, char *data, size_t room, conn_talk_fn go_on, void *context)
{
    char cipher[CONN_TALK_ROOM];
    const bool is_tls = (conn->flags & CONN_TLS) != 0;

    assert_in_command(conn);
    assert(room >= CONN_TALK_ROOM);
    for (;;) {
        ssize_t got;
        size_t size;

        if (!wait_for(conn, POLLIN, go_on, context))
            return 0;
        got = recv(conn->fd, is_tls ? cipher : data, is_tls ? sizeof(cipher) : room, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got <= 0)
            return 0;
        if (!is_tls)
            return (size_t)got;
        if (!tls_decrypt_aside(conn, (struct slice){cipher, (size_t)got}, data, room, &size))
            return 0;
        if (size != 0)
            return size;
    }
}

void conn_leave(struct conn *conn)
{
    assert_in_command(conn);
    output_clear(&conn->output);
    conn_close_for(conn, CONN_CLOSED_PEER, 0);
}
