#include "net/loop_priv.h"

#ifdef HAVE_LIBURING

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The io_uring backend. A connection has one multishot receive, which fills buffers of a ring shared by all connections
 * of the loop. Received bytes are given to the handler in that buffer, which then returns to the ring. Sends, cancels
 * and similar operations are only queued: one system call a turn submits all of them and waits.
 *
 *  1. A connection has at most one operation of each kind (OP_*); conn->in_flight has them. It is taken down only when
 *     there is none, so a completion never finds its connection gone.
 *  2. While a send is in flight its bytes stay at the front of the output; more may be added behind them.
 *  3. A pause itself does not stop receiving; the first bytes that arrive during it do. Bytes received until the
 *     cancellation is done are kept; their number is bounded by the socket's buffer.
 *  4. An end of stream may arrive in the same turn as the last request: the reply is sent first.
 *
 * A large direct receive cancels the multishot one and receives straight into the direct memory; a smaller one is
 * copied from the buffers. After that a connection receives one buffer at a time for a while: a multishot receive would
 * have filled dozens of buffers with the next large value before its length was known. The ring belongs to the thread
 * that turns the loop first (it is created disabled).
 *
 * An operation holds its socket open, and the kernel ends the operations of a dead process late: for a second or so the
 * ports of a killed server are still in use. A server that stops cleanly has cancelled them before. */

enum {
    QUEUE_ENTRIES = 1024,
    COMPLETION_ENTRIES = 8192,
    BUFFER_COUNT = 256, /* a power of two */
    BUFFER_BYTES = 16 * 1024,
    BUFFER_GROUP = 0,
    PIECES_MAX = 32,
    MESSAGE_COUNT = 128, /* sendmsg headers between two submits */
    DIRECT_MIN_BYTES = 64 * 1024,
    BULK_READS = 16,
};

/* Kinds of operations: bits of conn->in_flight, and with the address of the connection in the user data, which is
 * aligned to 8: the number of the bit. */
enum {
    OP_RECEIVE = 1 << 0,
    OP_DIRECT = 1 << 1, /* a receive into direct memory */
    OP_SEND = 1 << 2,
    OP_POLL = 1 << 3,   /* for a connect, or a hang-up */
    OP_CANCEL = 1 << 4, /* cancelling OP_RECEIVE, or everything */
};

enum { USER_RECEIVE, USER_DIRECT, USER_SEND, USER_POLL, USER_CANCEL, USER_IGNORE, USER_WATCH, USER_MASK = 7 };

struct message {
    struct msghdr header;
    struct iovec pieces[PIECES_MAX];
};

struct uring_state {
    struct io_uring ring;
    struct io_uring_buf_ring *buffer_ring;
    char *buffers;
    bool enabled;
    unsigned message_count;
    struct message messages[MESSAGE_COUNT];
};

static struct uring_state *state_of(struct loop *loop)
{
    return loop->backend_state;
}

/* --------------------------------------------------------------------------------------------------- queue -- */

/* The kernel copies the data of a sendmsg when it is submitted: then the messages are free again. */
static void uring_submit(struct uring_state *state)
{
    io_uring_submit(&state->ring);
    state->message_count = 0;
}

static struct io_uring_sqe *uring_entry(struct uring_state *state)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&state->ring);

    while (UNLIKELY(entry == NULL)) {
        uring_submit(state);
        entry = io_uring_get_sqe(&state->ring);
    }
    return entry;
}

static void entry_set(struct io_uring_sqe *entry, struct conn *conn, unsigned user)
{
    entry->user_data = (uint64_t)(uintptr_t)conn | user;
}

static char *buffer_address(struct uring_state *state, unsigned index)
{
    return state->buffers + (size_t)index * BUFFER_BYTES;
}

static void buffer_give_back(struct uring_state *state, unsigned index)
{
    io_uring_buf_ring_add(state->buffer_ring, buffer_address(state, index), BUFFER_BYTES, (unsigned short)index,
                          BUFFER_COUNT - 1, 0);
    io_uring_buf_ring_advance(state->buffer_ring, 1);
}

/* --------------------------------------------------------------------------------------------------- setup -- */

static bool ring_create(struct io_uring *ring, unsigned entries, unsigned flags)
{
    static const unsigned ways[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, IORING_SETUP_COOP_TASKRUN,
                                    0};
    int result = -EINVAL;

    for (size_t i = 0; i < countof(ways) && result == -EINVAL; i++) {
        struct io_uring_params params = {.flags = ways[i] | flags | IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL,
                                         .cq_entries = COMPLETION_ENTRIES};

        result = io_uring_queue_init_params(entries, ring, &params);
    }
    errno = -result;
    return result == 0;
}

static bool buffers_create(struct uring_state *state)
{
    struct io_uring_buf_reg request = {.ring_entries = BUFFER_COUNT, .bgid = BUFFER_GROUP};
    size_t ring_size = BUFFER_COUNT * sizeof(struct io_uring_buf);
    int result = 0;

    state->buffer_ring = mem_aligned_alloc(4096, ring_size);
    memset(state->buffer_ring, 0, ring_size);
    request.ring_addr = (uint64_t)(uintptr_t)state->buffer_ring;
    result = io_uring_register_buf_ring(&state->ring, &request, 0);
    if (result != 0) {
        mem_free(state->buffer_ring);
        errno = -result;
        return false;
    }
    state->buffers = mem_aligned_alloc(4096, (size_t)BUFFER_COUNT * BUFFER_BYTES);
    io_uring_buf_ring_init(state->buffer_ring);
    for (unsigned i = 0; i < BUFFER_COUNT; i++)
        buffer_give_back(state, i);
    return true;
}

static void buffers_destroy(struct uring_state *state)
{
    mem_free(state->buffer_ring);
    mem_free(state->buffers);
}

/* Does a multishot receive into provided buffers work here? Tried out, on a ring of its own: versions lie. */
static bool receive_works(struct uring_state *state)
{
    int pair[2];
    struct io_uring_sqe *entry = NULL;
    struct io_uring_cqe *completion = NULL;
    struct __kernel_timespec limit = {.tv_sec = 1};
    bool works = false;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    entry = uring_entry(state);
    io_uring_prep_recv_multishot(entry, pair[0], NULL, 0, 0);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = BUFFER_GROUP;
    if (write(pair[1], "x", 1) == 1 &&
        io_uring_submit_and_wait_timeout(&state->ring, &completion, 1, &limit, NULL) >= 0 && completion != NULL)
        works = completion->res == 1 && (completion->flags & IORING_CQE_F_BUFFER) != 0 &&
                (completion->flags & IORING_CQE_F_MORE) != 0;
    close(pair[0]);
    close(pair[1]);
    if (!works)
        errno = ENOSYS;
    return works;
}

static bool uring_is_usable(void)
{
    struct uring_state *state = mem_alloc_zero(sizeof(*state));
    bool usable = false;
    int error = 0;

    if (ring_create(&state->ring, 8, 0)) {
        if (buffers_create(state)) {
            usable = receive_works(state);
            error = errno;
            io_uring_queue_exit(&state->ring);
            buffers_destroy(state);
        } else {
            error = errno;
            io_uring_queue_exit(&state->ring);
        }
        errno = error;
    }
    mem_free(state);
    return usable;
}

static bool uring_setup(struct loop *loop)
{
    struct uring_state *state = NULL;
    int error = 0;

    if (!uring_is_usable())
        return false;
    state = mem_alloc_zero(sizeof(*state));
    if (ring_create(&state->ring, QUEUE_ENTRIES, IORING_SETUP_R_DISABLED)) {
        if (buffers_create(state)) {
            loop->backend_state = state;
            return true;
        }
        error = errno;
        io_uring_queue_exit(&state->ring);
        errno = error;
    }
    error = errno;
    mem_free(state);
    errno = error;
    return false;
}

static void uring_teardown(struct loop *loop)
{
    struct uring_state *state = state_of(loop);

    io_uring_queue_exit(&state->ring);
    buffers_destroy(state);
    mem_free(state);
}

/* ----------------------------------------------------------------------------------------------- receiving -- */

static void arm_direct(struct conn *conn)
{
    struct io_uring_sqe *entry = uring_entry(state_of(conn->loop));

    conn->bulk_reads = BULK_READS;
    io_uring_prep_recv(entry, conn->fd, conn->direct, conn->direct_size, 0);
    entry_set(entry, conn, USER_DIRECT);
    conn->in_flight |= OP_DIRECT;
}

static void arm_receive(struct conn *conn)
{
    struct io_uring_sqe *entry = uring_entry(state_of(conn->loop));

    if (UNLIKELY(conn->bulk_reads > 0)) {
        conn->bulk_reads--;
        io_uring_prep_recv(entry, conn->fd, NULL, BUFFER_BYTES, 0);
    } else {
        io_uring_prep_recv_multishot(entry, conn->fd, NULL, 0, 0);
    }
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = BUFFER_GROUP;
    entry_set(entry, conn, USER_RECEIVE);
    conn->in_flight |= OP_RECEIVE;
}

static bool wants_direct(const struct conn *conn)
{
    return conn->direct_size >= DIRECT_MIN_BYTES && (conn->flags & CONN_TLS) == 0;
}

static void cancel_receive(struct conn *conn)
{
    struct io_uring_sqe *entry = NULL;

    if ((conn->in_flight & OP_CANCEL) != 0)
        return;
    entry = uring_entry(state_of(conn->loop));
    io_uring_prep_cancel64(entry, (uint64_t)(uintptr_t)conn | USER_RECEIVE, 0);
    entry_set(entry, conn, USER_CANCEL);
    conn->in_flight |= OP_CANCEL;
}

static void arm_poll(struct conn *conn, unsigned events)
{
    struct io_uring_sqe *entry = uring_entry(state_of(conn->loop));

    io_uring_prep_poll_add(entry, conn->fd, events);
    entry_set(entry, conn, USER_POLL);
    conn->in_flight |= OP_POLL;
}

/* Starts and cancels operations according to the connection's state. */
static void uring_conn_update(struct conn *conn)
{
    bool receiving = (conn->in_flight & (OP_RECEIVE | OP_DIRECT)) != 0;

    if ((conn->flags & (CONN_CLOSING | CONN_ENDED)) != 0)
        return;
    if (conn_wants_input(conn)) {
        if ((conn->in_flight & OP_RECEIVE) != 0 && wants_direct(conn))
            cancel_receive(conn);
        else if (!receiving && wants_direct(conn))
            arm_direct(conn);
        else if (!receiving)
            arm_receive(conn);
    } else if (conn_wants_hangup(conn) && (conn->in_flight & (OP_RECEIVE | OP_DIRECT | OP_POLL)) == 0) {
        arm_poll(conn, POLLRDHUP);
    }
}

static bool uring_conn_add(struct conn *conn)
{
    if ((conn->flags & CONN_CONNECTING) != 0)
        arm_poll(conn, POLLOUT);
    else
        uring_conn_update(conn);
    return true;
}

static bool uring_conn_remove(struct conn *conn)
{
    struct io_uring_sqe *entry = NULL;

    if (conn->in_flight == 0)
        return true;
    if ((conn->flags & CONN_POLLED) == 0) { /* here: not cancelled yet */
        conn->flags |= CONN_POLLED;
        entry = uring_entry(state_of(conn->loop));
        io_uring_prep_cancel_fd(entry, conn->fd, IORING_ASYNC_CANCEL_ALL);
        entry->user_data = USER_IGNORE;
    }
    return false;
}

static void input_ended(struct conn *conn)
{
    if (UNLIKELY((conn->flags & CONN_HANDSHAKE) != 0) && !conn_feed_held(conn))
        return;
    conn->flags |= CONN_ENDED;
    if ((conn->flags & (CONN_WATCH_HANGUP | CONN_HANDSHAKE)) == 0 && (conn->flags & (CONN_PAUSED | CONN_READY)) != 0)
        return; /* told when resumed; kept requests are served first */
    conn_got_end(conn);
}

static void receive_failed(struct conn *conn, int result)
{
    if (result == 0)
        input_ended(conn);
    else if (result != -ENOBUFS && result != -ECANCELED && result != -EINTR && result != -EAGAIN)
        conn_fail(conn, -result);
}

static void on_receive(struct conn *conn, const struct io_uring_cqe *completion)
{
    struct uring_state *state = state_of(conn->loop);
    int result = completion->res;

    if ((completion->flags & IORING_CQE_F_MORE) == 0)
        conn->in_flight &= ~(uint32_t)OP_RECEIVE;
    conn->loop->stats.reads++;
    if (LIKELY((completion->flags & IORING_CQE_F_BUFFER) != 0)) {
        unsigned index = completion->flags >> IORING_CQE_BUFFER_SHIFT;

        if (LIKELY(result > 0 && (conn->flags & CONN_CLOSING) == 0)) {
            if (UNLIKELY((conn->flags & CONN_TLS) != 0))
                conn_got_cipher(conn, buffer_address(state, index), (size_t)result);
            else
                conn_got_bytes(conn, buffer_address(state, index), (size_t)result);
        }
        buffer_give_back(state, index);
    }
    if ((conn->flags & CONN_CLOSING) != 0)
        return;
    if (result <= 0)
        receive_failed(conn, result);
    if (UNLIKELY(!conn_wants_input(conn) && (conn->in_flight & OP_RECEIVE) != 0))
        cancel_receive(conn);
    else if (UNLIKELY((conn->in_flight & OP_RECEIVE) == 0 || wants_direct(conn)))
        uring_conn_update(conn);
}

static void on_direct(struct conn *conn, int result)
{
    conn->in_flight &= ~(uint32_t)OP_DIRECT;
    if ((conn->flags & CONN_CLOSING) != 0)
        return;
    conn->loop->stats.reads++;
    if (result > 0)
        conn_got_direct(conn, NULL, (size_t)result);
    else
        receive_failed(conn, result);
    uring_conn_update(conn);
}

static void on_poll(struct conn *conn, int result)
{
    int error = 0;
    socklen_t size = sizeof(error);

    conn->in_flight &= ~(uint32_t)OP_POLL;
    if ((conn->flags & CONN_CLOSING) != 0 || result == -ECANCELED)
        return;
    if ((conn->flags & CONN_CONNECTING) != 0) {
        if (result < 0)
            error = -result;
        else if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
            error = errno;
        conn_connected(conn, error);
        uring_conn_update(conn);
    } else if (conn_wants_hangup(conn)) {
        conn_got_hangup(conn);
    }
}

/* ------------------------------------------------------------------------------------------------- sending -- */

static void send_now(struct conn *conn, struct output *wire)
{
    struct iovec pieces[PIECES_MAX];
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = output_iovec(wire, pieces, PIECES_MAX)};

    (void)!sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void uring_conn_send(struct conn *conn)
{
    struct uring_state *state = state_of(conn->loop);
    struct output *wire = conn_wire(conn);
    struct io_uring_sqe *entry = NULL;
    struct message *message = NULL;
    unsigned count = 0;

    if ((conn->in_flight & OP_SEND) != 0) {
        conn->flags |= CONN_DRAIN_DUE; /* continues when that is done */
        return;
    }
    if (UNLIKELY((conn->flags & CONN_CLOSING) != 0)) {
        send_now(conn, wire);
        return;
    }
    if (UNLIKELY(conn_is_all_held(conn)))
        return;
    entry = uring_entry(state);
    if (UNLIKELY(state->message_count == MESSAGE_COUNT)) {
        /* The entry that was taken is submitted with nothing in it. */
        io_uring_prep_nop(entry);
        entry->user_data = USER_IGNORE;
        uring_submit(state);
        entry = uring_entry(state);
    }
    message = &state->messages[state->message_count];
    count = LIKELY(wire == &conn->output) ? conn_pieces(conn, message->pieces, PIECES_MAX)
                                          : output_iovec(wire, message->pieces, PIECES_MAX);
    if (LIKELY(count == 1)) {
        io_uring_prep_send(entry, conn->fd, message->pieces[0].iov_base, message->pieces[0].iov_len,
                           MSG_NOSIGNAL | MSG_WAITALL);
    } else {
        message->header = (struct msghdr){.msg_iov = message->pieces, .msg_iovlen = count};
        state->message_count++;
        io_uring_prep_sendmsg(entry, conn->fd, &message->header, MSG_NOSIGNAL | MSG_WAITALL);
    }
    entry_set(entry, conn, USER_SEND);
    conn->in_flight |= OP_SEND;
    conn->loop->stats.writes++;
}

static void on_send(struct conn *conn, int result)
{
    conn->in_flight &= ~(uint32_t)OP_SEND;
    if ((conn->flags & CONN_CLOSING) != 0)
        return;
    if (UNLIKELY(result < 0)) {
        if (result == -EAGAIN || result == -EINTR)
            conn_write_pending(conn);
        else
            conn_fail(conn, -result);
        return;
    }
    conn_sent(conn, (size_t)result);
    if (LIKELY(output_is_empty(conn_wire(conn))))
        conn_sent_all(conn);
    else
        conn_write_pending(conn);
}

/* ------------------------------------------------------------------------------------------------- watches -- */

static uint64_t watch_user_data(const struct loop_watch *watch)
{
    return (uint64_t)watch->generation << 32 | (uint64_t)watch->tag << 3 | USER_WATCH;
}

/* Once each time, armed again after it was served: so it reports as long as there is something. All loops that share a
 * descriptor are told: an exclusive poll counts a completion that nobody reads as a wake-up, also in a busy loop. */
static bool uring_watch_add(struct loop *loop, struct loop_watch *watch)
{
    struct io_uring_sqe *entry = uring_entry(state_of(loop));

    io_uring_prep_poll_add(entry, watch->fd, POLLIN);
    entry->user_data = watch_user_data(watch);
    return true;
}

static void uring_watch_remove(struct loop *loop, struct loop_watch *watch)
{
    struct uring_state *state = state_of(loop);
    struct io_uring_sqe *entry = uring_entry(state);

    io_uring_prep_poll_remove(entry, watch_user_data(watch));
    entry->user_data = USER_IGNORE;
    /* At once: until it is done a listening socket stays open after its close(). */
    if (state->enabled) {
        io_uring_submit_and_get_events(&state->ring);
        state->message_count = 0;
    }
}

static void on_watch(struct loop *loop, const struct io_uring_cqe *completion)
{
    uint32_t tag = (uint32_t)completion->user_data >> 3;
    uint32_t generation = (uint32_t)(completion->user_data >> 32);
    struct loop_watch *watch = NULL;

    if (completion->res == -ECANCELED)
        return;
    loop_watch_fire(loop, tag, generation);
    watch = tag < loop->watches.count ? loop->watches.items[tag].watch : NULL;
    if (watch != NULL && watch->generation == generation)
        uring_watch_add(loop, watch);
}

/* --------------------------------------------------------------------------------------------------- turns -- */

static void on_completion(struct loop *loop, const struct io_uring_cqe *completion)
{
    unsigned user = (unsigned)completion->user_data & USER_MASK;
    struct conn *conn = (struct conn *)(uintptr_t)(completion->user_data & ~(uint64_t)USER_MASK);

    switch (user) {
    case USER_RECEIVE:
        on_receive(conn, completion);
        break;
    case USER_SEND:
        on_send(conn, completion->res);
        break;
    case USER_DIRECT:
        on_direct(conn, completion->res);
        break;
    case USER_POLL:
        on_poll(conn, completion->res);
        break;
    case USER_CANCEL:
        conn->in_flight &= ~(uint32_t)OP_CANCEL;
        uring_conn_update(conn);
        break;
    case USER_WATCH:
        on_watch(loop, completion);
        break;
    default:
        break;
    }
}

/* True: something has come while it looked. */
static bool spin(struct loop *loop, struct uring_state *state, int64_t timeout_us)
{
    while (timeout_us != 0 && loop_spins(loop)) {
        io_uring_submit_and_get_events(&state->ring);
        if (io_uring_cq_ready(&state->ring) != 0)
            return true;
    }
    return false;
}

static void uring_turn(struct loop *loop, int64_t timeout_us)
{
    struct uring_state *state = state_of(loop);
    struct io_uring_cqe *completion = NULL;
    unsigned head = 0;
    unsigned count = 0;

    if (UNLIKELY(!state->enabled)) {
        /* The library's call for this is missing from some of its releases. */
        syscall(__NR_io_uring_register, state->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
        state->enabled = true;
    }
    if (spin(loop, state, timeout_us)) {
        /* they are there */
    } else if (timeout_us == 0) {
        io_uring_submit_and_get_events(&state->ring);
    } else if (timeout_us < 0) {
        io_uring_submit_and_wait(&state->ring, 1);
    } else {
        struct __kernel_timespec limit = {.tv_sec = timeout_us / 1000000, .tv_nsec = timeout_us % 1000000 * 1000};

        io_uring_submit_and_wait_timeout(&state->ring, &completion, 1, &limit, NULL);
    }
    state->message_count = 0;
    loop_wait_over(loop);
    io_uring_for_each_cqe(&state->ring, head, completion)
    {
        on_completion(loop, completion);
        count++;
    }
    io_uring_cq_advance(&state->ring, count);
}

static int uring_events_fd(const struct loop *loop)
{
    return ((const struct uring_state *)loop->backend_state)->ring.ring_fd;
}

const struct loop_backend loop_backend_io_uring = {
    .name = "io_uring",
    .setup = uring_setup,
    .teardown = uring_teardown,
    .wait = uring_turn,
    .events_fd = uring_events_fd,
    .conn_add = uring_conn_add,
    .conn_update = uring_conn_update,
    .conn_remove = uring_conn_remove,
    .conn_send = uring_conn_send,
    .watch_add = uring_watch_add,
    .watch_remove = uring_watch_remove,
};

#endif
