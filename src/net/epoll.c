#include "net/loop_priv.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

/* The epoll backend: level-triggered, with one receive for each readiness event. A short receive has emptied the
 * socket, a full one leaves the descriptor ready for the next turn, so a busy connection cannot starve the others.
 *
 * A pause does not change the descriptor's registration: most pauses are over before more bytes arrive. Only if bytes
 * do arrive is reading disarmed, and armed again by the resume (CONN_POLL_IN has the state). A paused descriptor whose
 * peer has closed both directions would be reported for ever, since errors cannot be masked: it is removed
 * (CONN_POLLED).
 *
 * Event data is the connection's address, or for watches 1 | tag << 1 | generation << 32. Connections live until the
 * end of the turn, so an address is never stale; watches are looked up. */

enum {
    EVENTS_MAX = 256,
    EVENTS_LEAST = 4,
    TURN_BYTES = 512 * 1024,
    EVENTS_INSIDE_MAX = 32,
    PIECES_MAX = 64,
    SENDS_MAX = 4
};

struct epoll_state {
    int fd;
    int next_events; /* the next turn takes so many events at most */
    struct epoll_event events[EVENTS_MAX];
};

static struct epoll_state *state_of(struct loop *loop)
{
    return loop->backend_state;
}

static bool epoll_setup(struct loop *loop)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_state *state = NULL;

    if (fd < 0)
        return false;
    state = mem_alloc(sizeof(*state));
    state->fd = fd;
    state->next_events = EVENTS_MAX;
    loop->backend_state = state;
    return true;
}

static int epoll_events_fd(const struct loop *loop)
{
    return ((const struct epoll_state *)loop->backend_state)->fd;
}

static void epoll_teardown(struct loop *loop)
{
    close(state_of(loop)->fd);
    mem_free(loop->backend_state);
}

/* ------------------------------------------------------------------------------------------- registration -- */

static uint32_t conn_events(const struct conn *conn)
{
    uint32_t events = 0;

    if ((conn->flags & CONN_POLL_IN) != 0)
        events |= EPOLLIN | EPOLLRDHUP;
    if (conn_wants_hangup(conn))
        events |= EPOLLRDHUP;
    if ((conn->flags & (CONN_POLL_OUT | CONN_CONNECTING)) != 0)
        events |= EPOLLOUT;
    return events;
}

static bool epoll_register(struct conn *conn)
{
    int operation = (conn->flags & CONN_POLLED) != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    struct epoll_event event = {.events = conn_events(conn), .data.ptr = conn};

    if (epoll_ctl(state_of(conn->loop)->fd, operation, conn->fd, &event) != 0)
        return false;
    conn->flags |= CONN_POLLED;
    return true;
}

static void epoll_unregister(struct conn *conn)
{
    if ((conn->flags & CONN_POLLED) != 0)
        epoll_ctl(state_of(conn->loop)->fd, EPOLL_CTL_DEL, conn->fd, NULL);
    conn->flags &= ~(uint32_t)(CONN_POLLED | CONN_POLL_IN | CONN_POLL_OUT);
}

static void epoll_rearm(struct conn *conn)
{
    if (!epoll_register(conn))
        conn_fail(conn, errno);
}

static bool epoll_conn_add(struct conn *conn)
{
    if (conn_wants_input(conn))
        conn->flags |= CONN_POLL_IN;
    return epoll_register(conn);
}

static void epoll_conn_update(struct conn *conn)
{
    const uint32_t armed = CONN_POLL_IN | CONN_POLLED;

    if ((conn->flags & armed) == armed) /* hang-ups are reported as well then */
        return;
    if (conn_wants_input(conn))
        conn->flags |= CONN_POLL_IN;
    else if (!conn_wants_hangup(conn))
        return;
    epoll_rearm(conn);
}

/* Explicitly, not by close(): a forked child may hold the same socket, which would keep it registered. */
static bool epoll_conn_remove(struct conn *conn)
{
    epoll_unregister(conn);
    return true;
}

static bool epoll_watch_add(struct loop *loop, struct loop_watch *watch)
{
    struct epoll_event event = {.events = EPOLLIN | (watch->is_shared ? (uint32_t)EPOLLEXCLUSIVE : 0),
                                .data.u64 = (uint64_t)watch->generation << 32 | (uint64_t)watch->tag << 1 | 1};

    return epoll_ctl(state_of(loop)->fd, EPOLL_CTL_ADD, watch->fd, &event) == 0;
}

static void epoll_watch_remove(struct loop *loop, struct loop_watch *watch)
{
    epoll_ctl(state_of(loop)->fd, EPOLL_CTL_DEL, watch->fd, NULL);
}

/* ----------------------------------------------------------------------------------------------- receiving -- */

static bool receive_failed(struct conn *conn, ssize_t got)
{
    if (LIKELY(got > 0))
        return false;
    if (got == 0)
        conn_got_end(conn);
    else if (errno != EAGAIN && errno != EINTR)
        conn_fail(conn, errno);
    return true;
}

static void epoll_receive_cipher(struct conn *conn)
{
    struct loop *loop = conn->loop;
    ssize_t got = recv(conn->fd, loop->cipher, LOOP_CIPHER_BYTES, 0);

    if (!receive_failed(conn, got))
        conn_got_cipher(conn, loop->cipher, (size_t)got);
}

static void epoll_receive_direct(struct conn *conn)
{
    size_t room = 0;
    char *window = conn_window(conn, &room);
    struct iovec pieces[2] = {{conn->direct, conn->direct_size}, {window, room}};
    ssize_t got = readv(conn->fd, pieces, 2);

    if (!receive_failed(conn, got))
        conn_got_direct(conn, window, (size_t)got);
}

static void epoll_receive(struct conn *conn)
{
    size_t room = 0;
    char *window = NULL;
    ssize_t got = 0;

    conn->loop->stats.reads++;
    if (UNLIKELY((conn->flags & CONN_TLS) != 0)) {
        epoll_receive_cipher(conn);
        return;
    }
    if (UNLIKELY(conn->direct_size != 0)) {
        epoll_receive_direct(conn);
        return;
    }
    window = conn_window(conn, &room);
    got = recv(conn->fd, window, room, 0);
    if (!receive_failed(conn, got))
        conn_got(conn, window, (size_t)got);
}

/* ------------------------------------------------------------------------------------------------- sending -- */

/* Writing stays armed from the first full socket until everything is sent. */
static void epoll_block_output(struct conn *conn)
{
    conn->flags |= CONN_BLOCKED_OUT | CONN_DRAIN_DUE;
    if ((conn->flags & CONN_POLL_OUT) != 0)
        return;
    conn->flags |= CONN_POLL_OUT;
    epoll_rearm(conn);
}

static void epoll_rest_output(struct conn *conn)
{
    if (UNLIKELY((conn->flags & CONN_POLL_OUT) != 0)) {
        conn->flags &= ~(uint32_t)CONN_POLL_OUT;
        epoll_rearm(conn);
    }
}

static void epoll_output_done(struct conn *conn)
{
    epoll_rest_output(conn);
    conn_sent_all(conn);
}

static unsigned wire_pieces(const struct conn *conn, const struct output *wire, struct iovec *pieces)
{
    return LIKELY(wire == &conn->output) ? conn_pieces(conn, pieces, PIECES_MAX)
                                         : output_iovec(wire, pieces, PIECES_MAX);
}

static void epoll_conn_send(struct conn *conn)
{
    struct output *wire = conn_wire(conn);

    for (int round = 0; round < SENDS_MAX; round++) {
        struct iovec pieces[PIECES_MAX];
        unsigned count = wire_pieces(conn, wire, pieces);
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
        size_t size = pieces[0].iov_len;
        ssize_t sent = 0;

        if (LIKELY(count == 1)) {
            sent = send(conn->fd, pieces[0].iov_base, size, MSG_NOSIGNAL);
        } else {
            for (unsigned i = 1; i < count; i++)
                size += pieces[i].iov_len;
            sent = sendmsg(conn->fd, &message, MSG_NOSIGNAL);
        }
        conn->loop->stats.writes++;
        if (UNLIKELY(sent < 0)) {
            if (errno == EINTR)
                continue;
            if (errno == EAGAIN)
                epoll_block_output(conn);
            else
                conn_fail(conn, errno);
            return;
        }
        conn_sent(conn, (size_t)sent);
        if (LIKELY(output_is_empty(wire))) {
            epoll_output_done(conn);
            return;
        }
        if ((size_t)sent < size) {
            epoll_block_output(conn);
            return;
        }
        if (UNLIKELY(conn_is_all_held(conn))) {
            epoll_rest_output(conn);
            return;
        }
    }
    conn_write_pending(conn); /* a fast reader: the others first */
}

/* -------------------------------------------------------------------------------------------------- events -- */

static void epoll_connect_event(struct conn *conn)
{
    int error = 0;
    socklen_t size = sizeof(error);

    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    conn_connected(conn, error);
    if ((conn->flags & CONN_CLOSING) != 0)
        return;
    if (conn_wants_input(conn))
        conn->flags |= CONN_POLL_IN;
    epoll_rearm(conn);
}

/* Bytes, an end or an error, while the connection wants no input. */
static void epoll_unwanted_event(struct conn *conn, uint32_t events)
{
    bool ended = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;

    if (ended && (conn->flags & CONN_WATCH_HANGUP) != 0) {
        conn_got_hangup(conn);
        return;
    }
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
        epoll_unregister(conn);
        return;
    }
    conn->flags &= ~(uint32_t)CONN_POLL_IN;
    epoll_rearm(conn);
}

static void epoll_conn_event(struct conn *conn, uint32_t events)
{
    if (UNLIKELY((conn->flags & (CONN_CLOSING | CONN_CONNECTING)) != 0)) {
        if ((conn->flags & CONN_CLOSING) == 0)
            epoll_connect_event(conn);
        return;
    }
    if (UNLIKELY((conn->flags & CONN_POLL_OUT) != 0 && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0)) {
        conn->flags &= ~(uint32_t)CONN_BLOCKED_OUT;
        conn_write_pending(conn); /* with the others: at the end of the turn it is known which bytes may be sent */
        if ((events & ~(uint32_t)EPOLLOUT) == 0)
            return;
    }
    if (LIKELY(conn_wants_input(conn)))
        epoll_receive(conn);
    else
        epoll_unwanted_event(conn, events);
}

/* Milliseconds, rounded up: early turns would spin until a timer is due. */
static int wait_ms(int64_t timeout_us)
{
    if (timeout_us < 0)
        return -1;
    return (int)MIN((timeout_us + 999) / 1000, (int64_t)3600 * 1000);
}

/* Watches first: of a shared descriptor perhaps no other loop was told, and what connections ask for may take long. */
static void epoll_serve(struct loop *loop, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t data = events[i].data.u64;

        if (UNLIKELY((data & 1) != 0))
            loop_watch_fire(loop, (uint32_t)data >> 1, (uint32_t)(data >> 32));
    }
    for (int i = 0; i < count; i++)
        if (LIKELY((events[i].data.u64 & 1) == 0))
            epoll_conn_event(events[i].data.ptr, events[i].events);
}

/* With large values on many connections a turn would take in megabytes before the first reply, or what replicas get, is
 * sent. So a turn that took in more than TURN_BYTES makes the next ones shorter. The kernel puts what it has reported
 * behind what it has not, so all have their turn. */
static void bound_next_turn(struct epoll_state *state, int count, uint64_t taken)
{
    if (LIKELY(taken <= TURN_BYTES)) {
        state->next_events = EVENTS_MAX;
        return;
    }
    state->next_events = MAX((int)((uint64_t)count * TURN_BYTES / taken), EVENTS_LEAST);
}

static int take_events(struct loop *loop, int64_t timeout_us)
{
    struct epoll_state *state = state_of(loop);
    int count = 0;

    while (timeout_us != 0 && count == 0 && loop_spins(loop))
        count = epoll_wait(state->fd, state->events, state->next_events, 0);
    return count != 0 ? count : epoll_wait(state->fd, state->events, state->next_events, wait_ms(timeout_us));
}

static void epoll_turn(struct loop *loop, int64_t timeout_us)
{
    struct epoll_state *state = state_of(loop);
    const uint64_t before = loop->stats.bytes_in;
    int count = take_events(loop, timeout_us);

    loop_wait_over(loop);
    epoll_serve(loop, state->events, count);
    bound_next_turn(state, count, loop->stats.bytes_in - before);
}

/* The outer turn continues with its own events: these may have been served already, which does no harm. */
static void epoll_serve_reentrant(struct loop *loop)
{
    struct epoll_event events[EVENTS_INSIDE_MAX];
    int count = epoll_wait(state_of(loop)->fd, events, EVENTS_INSIDE_MAX, 0);

    loop_update_time(loop);
    epoll_serve(loop, events, count);
}

const struct loop_backend loop_backend_epoll = {
    .name = "epoll",
    .setup = epoll_setup,
    .teardown = epoll_teardown,
    .wait = epoll_turn,
    .events_fd = epoll_events_fd,
    .serve_reentrant = epoll_serve_reentrant,
    .conn_add = epoll_conn_add,
    .conn_update = epoll_conn_update,
    .conn_remove = epoll_conn_remove,
    .conn_send = epoll_conn_send,
    .watch_add = epoll_watch_add,
    .watch_remove = epoll_watch_remove,
};
