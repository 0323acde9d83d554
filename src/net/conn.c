#include "net/conn.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/loop_priv.h"
#include "net/tls.h"
#include "net/tls_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* Layout of input in memory. Usually nothing is kept and bytes arrive in the loop's buffer:
 *
 *     loop->input  | headroom 16 KiB |##### new bytes #####              |
 *
 * Bytes that the handler does not consume are copied to conn->kept. Next time, if they fit the headroom, they are
 * copied in front of the new bytes, so that the handler sees one range. Otherwise new bytes are received behind them in
 * the kept buffer, which doubles. So a byte is copied a bounded number of times however slowly a request arrives. */

enum {
    KEPT_MIN_BYTES = 256,
    KEPT_ROOM_BYTES = 32 * 1024,   /* at least so much is received at a time into a kept buffer */
    KEPT_SHRINK_BYTES = 64 * 1024, /* a larger buffer that is mostly empty is given back */
};

/* -------------------------------------------------------------------------------------------- open and close -- */

static void conn_setup(struct loop *loop, struct conn *conn, int fd, const struct conn_handler *handler)
{
    *conn = (struct conn){.fd = fd, .loop = loop, .handler = handler, .active_us = loop->now_us};
    output_init(&conn->output, &loop->pool);
}

static bool conn_start_tls(struct conn *conn, struct tls_context *tls, bool client, const char *server_name)
{
    struct loop *loop = conn->loop;

    conn->tls = tls_session_create(tls, conn, client, server_name);
    if (conn->tls == NULL) {
        errno = ENOMEM;
        return false;
    }
    if (loop->cipher == NULL)
        loop->cipher = mem_alloc(LOOP_CIPHER_BYTES + LOOP_GATHER_BYTES);
    conn->flags |= CONN_TLS | CONN_HANDSHAKE;
    return true;
}

static bool conn_register(struct conn *conn)
{
    struct loop *loop = conn->loop;

    if (!loop->backend->conn_add(conn)) {
        tls_session_destroy(&conn->tls);
        return false;
    }
    conn->all_next = loop->conns;
    if (loop->conns != NULL)
        loop->conns->all_previous = conn;
    loop->conns = conn;
    return true;
}

static void set_no_delay(int fd)
{
    int one = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* refused by unix sockets, which need none */
}

bool conn_open(struct loop *loop, struct conn *conn, int fd, const struct conn_handler *handler,
               struct tls_context *tls)
{
    loop_assert_self(loop);
    conn_setup(loop, conn, fd, handler);
    if (tls != NULL && !conn_start_tls(conn, tls, false, NULL))
        return false;
    return conn_register(conn);
}

bool conn_connect(struct loop *loop, struct conn *conn, const struct sockaddr *address, socklen_t size,
                  const struct sockaddr *bind_address, socklen_t bind_size, const struct conn_handler *handler,
                  struct tls_context *tls, const char *server_name)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error = 0;

    loop_assert_self(loop);
    if (fd < 0)
        return false;
    set_no_delay(fd);
    if (bind_address != NULL && bind(fd, bind_address, bind_size) != 0)
        goto fail;
    if (connect(fd, address, size) != 0 && errno != EINPROGRESS)
        goto fail;
    conn_setup(loop, conn, fd, handler);
    conn->flags |= CONN_CLIENT | CONN_CONNECTING;
    if (tls != NULL && !conn_start_tls(conn, tls, true, server_name))
        goto fail;
    if (conn_register(conn))
        return true;
fail:
    error = errno;
    close(fd);
    errno = error;
    return false;
}

void conn_open_done(struct conn *conn)
{
    conn->flags &= ~(uint32_t)CONN_HANDSHAKE;
    if (conn->handler->on_open != NULL)
        conn->handler->on_open(conn);
    if (!output_is_empty(&conn->output))
        conn_write_pending(conn);
}

void conn_connected(struct conn *conn, int error)
{
    if (error != 0) {
        conn_fail(conn, error);
        return;
    }
    conn->flags &= ~(uint32_t)CONN_CONNECTING;
    conn->active_us = conn->loop->now_us;
    if ((conn->flags & CONN_TLS) != 0) {
        tls_start(conn);
        conn_write_pending(conn);
    } else {
        conn_open_done(conn);
    }
}

/* Sends the TLS close or alert message, if the socket accepts it at once. */
static void conn_send_farewell(struct conn *conn)
{
    if ((conn->flags & (CONN_CONNECTING | CONN_BLOCKED_OUT)) != 0)
        return;
    if ((conn->flags & CONN_HANDSHAKE) == 0 && conn->close_reason == CONN_CLOSED_LOCAL)
        tls_say_goodbye(conn);
    if (!output_is_empty(conn_wire(conn)))
        conn->loop->backend->conn_send(conn);
}

void conn_close_for(struct conn *conn, enum conn_close_reason reason, int error)
{
    loop_assert_self(conn->loop);
    if ((conn->flags & CONN_CLOSING) != 0)
        return;
    conn->close_reason = reason;
    conn->close_errno = error;
    conn->flags |= CONN_CLOSING;
    conn_queue_add(&conn->loop->closing, conn, &conn->closing_next);
    if ((conn->flags & CONN_TLS) != 0 && (reason == CONN_CLOSED_LOCAL || reason == CONN_CLOSED_HANDSHAKE))
        conn_send_farewell(conn);
    if (reason == CONN_CLOSED_HANDSHAKE)
        conn->flags |= CONN_LINGER; /* a refused client often has sent its first request after the certificate */
}

void conn_fail(struct conn *conn, int error)
{
    conn_close_for(conn, CONN_CLOSED_ERROR, error);
}

void conn_close(struct conn *conn)
{
    conn_close_for(conn, CONN_CLOSED_LOCAL, 0);
}

void conn_close_after_flush(struct conn *conn)
{
    loop_assert_self(conn->loop);
    if ((conn->flags & (CONN_CLOSING | CONN_CLOSE_AFTER)) != 0)
        return;
    if ((conn->flags & (CONN_HANDSHAKE | CONN_CONNECTING)) != 0) {
        conn_close(conn); /* nobody is there to read it */
        return;
    }
    conn->flags |= CONN_CLOSE_AFTER;
    conn_write_pending(conn); /* the flush closes, once all is sent */
}

static void conn_drop_kept(struct conn *conn)
{
    mem_free(conn->kept);
    conn->kept = NULL;
    conn->kept_size = conn->kept_capacity = 0;
}

bool conn_finish(struct conn *conn)
{
    struct loop *loop = conn->loop;
    enum conn_close_reason reason = (enum conn_close_reason)conn->close_reason;
    char detail[256];

    assert((conn->flags & CONN_CLOSING) != 0);
    assert(conn->fd >= 0);
    if (!loop->backend->conn_remove(conn))
        return false;
    if (conn->close_errno != 0)
        snprintf(detail, sizeof(detail), "%s", strerror(conn->close_errno));
    else
        snprintf(detail, sizeof(detail), "%s", conn->tls != NULL ? tls_session_error(conn->tls) : "");
    if (reason == CONN_CLOSED_HANDSHAKE) {
        char peer[CONN_ADDRESS_TEXT_BYTES];

        conn_peer_text(conn, peer);
        log_verbose("Error accepting a client connection: %s (conn: %s)", detail, peer);
    }
    if (conn->all_previous != NULL)
        conn->all_previous->all_next = conn->all_next;
    else
        loop->conns = conn->all_next;
    if (conn->all_next != NULL)
        conn->all_next->all_previous = conn->all_previous;
    output_give_back(&conn->output); /* much, if it was cut for that: nobody else needs so many blocks */
    tls_session_destroy(&conn->tls);
    conn->flags &= ~(uint32_t)CONN_TLS;
    conn_drop_kept(conn);
    if ((conn->flags & CONN_LINGER) != 0)
        loop_linger(loop, conn->fd);
    else
        close(conn->fd);
    conn->fd = -1;
    conn->handler->on_closed(conn, reason, detail);
    return true;
}

/* -------------------------------------------------------------------------------------------------- input -- */

static void kept_reserve(struct conn *conn, size_t capacity)
{
    if (capacity <= conn->kept_capacity)
        return;
    capacity = mem_good_size(MAX(capacity, (size_t)KEPT_MIN_BYTES));
    conn->kept = mem_realloc(conn->kept, capacity);
    conn->kept_capacity = capacity;
}

/* Makes `data` the kept input, wherever it is in memory. */
static void conn_keep(struct conn *conn, const char *data, size_t size)
{
    if (size == 0 || (conn->flags & (CONN_CLOSING | CONN_CLOSE_AFTER)) != 0) {
        conn_drop_kept(conn);
        return;
    }
    if (conn->kept != NULL && data >= conn->kept && data < conn->kept + conn->kept_capacity) {
        if (data != conn->kept)
            memmove(conn->kept, data, size);
        if (conn->kept_capacity > KEPT_SHRINK_BYTES && size < conn->kept_capacity / 8) {
            conn->kept_capacity = mem_good_size(size);
            conn->kept = mem_realloc(conn->kept, conn->kept_capacity);
        }
    } else {
        kept_reserve(conn, size);
        memcpy(conn->kept, data, size);
    }
    conn->kept_size = size;
}

static void conn_keep_and_tell(struct conn *conn, const char *data, size_t size)
{
    conn_keep(conn, data, size);
    if (conn->handler->on_kept != NULL && (conn->flags & CONN_CLOSING) == 0)
        conn->handler->on_kept(conn);
}

/* Gives a range to the handler and keeps the rest. */
static void conn_present(struct conn *conn, char *data, size_t size)
{
    struct loop *loop = conn->loop;
    size_t used = 0;

    assert((conn->flags & (CONN_IN_DATA | CONN_CLOSING)) == 0);
    loop->direct_taken = 0;
    conn->flags |= CONN_IN_DATA;
    used = conn->handler->on_data(conn, data, size);
    conn->flags &= ~(uint32_t)CONN_IN_DATA;
    assert(used + loop->direct_taken <= size);
    if (LIKELY(used == size && conn->kept == NULL))
        return;
    conn_keep_and_tell(conn, data + used, size - used - loop->direct_taken);
}

char *conn_window(struct conn *conn, size_t *room)
{
    char *window = conn->loop->input + LOOP_HEADROOM_BYTES;

    if (LIKELY(conn->kept_size == 0)) {
        *room = LOOP_INPUT_BYTES;
        return window;
    }
    if (conn->kept_size <= LOOP_HEADROOM_BYTES) {
        memcpy(window - conn->kept_size, conn->kept, conn->kept_size);
        *room = LOOP_INPUT_BYTES;
        return window;
    }
    if (conn->kept_capacity - conn->kept_size < KEPT_ROOM_BYTES)
        kept_reserve(conn, MAX(conn->kept_size + KEPT_ROOM_BYTES, conn->kept_size * 2));
    *room = conn->kept_capacity - conn->kept_size;
    return conn->kept + conn->kept_size;
}

/* Kept and new bytes are one range, in both of conn_window()'s places. */
static void conn_window_filled(struct conn *conn, char *window, size_t size)
{
    char *data = window - conn->kept_size;

    size += conn->kept_size;
    if (LIKELY(conn_wants_input(conn)))
        conn_present(conn, data, size);
    else
        conn_keep_and_tell(conn, data, size); /* paused meanwhile, or by the other half of a direct receive */
}

static void conn_count_in(struct conn *conn, size_t size)
{
    conn->bytes_in += size;
    conn->reads++;
    conn->loop->stats.bytes_in += size;
    conn->active_us = conn->loop->now_us;
}

/* The direct memory is full. Further bytes go to more direct memory if the handler provides it, otherwise they are
 * ordinary input. */
static void conn_direct_done(struct conn *conn, char *window, size_t rest)
{
    char *from = window;

    assert((conn->flags & CONN_CLOSING) == 0);
    for (;;) {
        size_t part;

        conn->direct = NULL;
        conn->handler->on_direct_done(conn);
        if (rest == 0 || (conn->flags & CONN_CLOSING) != 0)
            return;
        if (conn->direct_size == 0)
            break;
        part = MIN(rest, conn->direct_size);
        memcpy(conn->direct, from, part);
        conn->direct += part;
        conn->direct_size -= part;
        from += part;
        rest -= part;
        if (conn->direct_size != 0)
            return;
    }
    if (from != window)
        memmove(window, from, rest);
    conn_window_filled(conn, window, rest);
}

static void conn_plain_direct(struct conn *conn, char *window, size_t size)
{
    size_t part = MIN(size, conn->direct_size);

    conn->direct += part;
    conn->direct_size -= part;
    if (conn->direct_size == 0)
        conn_direct_done(conn, window, size - part);
}

void conn_got(struct conn *conn, char *window, size_t size)
{
    if ((conn->flags & CONN_TLS) == 0)
        conn_count_in(conn, size);
    conn_window_filled(conn, window, size);
}

void conn_got_direct(struct conn *conn, char *window, size_t size)
{
    if ((conn->flags & CONN_TLS) == 0)
        conn_count_in(conn, size);
    conn_plain_direct(conn, window, size);
}

/* Bytes in memory of the backend: given to the handler there if no kept input precedes them. */
void conn_got_bytes(struct conn *conn, char *data, size_t size)
{
    conn_count_in(conn, size);
    if (LIKELY(conn->kept_size == 0 && conn->direct_size == 0 && conn_wants_input(conn))) {
        conn_present(conn, data, size);
        return;
    }
    while (size > 0 && (conn->flags & (CONN_CLOSING | CONN_CLOSE_AFTER)) == 0) {
        size_t part = 0;

        if (conn->direct_size > 0) {
            part = MIN(size, conn->direct_size);
            memcpy(conn->direct, data, part);
            conn_plain_direct(conn, NULL, part);
        } else {
            size_t room = 0;
            char *window = conn_window(conn, &room);

            part = MIN(size, room);
            memcpy(window, data, part);
            conn_window_filled(conn, window, part);
        }
        data += part;
        size -= part;
    }
}

void conn_got_cipher(struct conn *conn, char *data, size_t size)
{
    conn_count_in(conn, size);
    tls_got_cipher(conn, data, size);
}

bool conn_feed_held(struct conn *conn)
{
    tls_feed_held(conn);
    return (conn->flags & CONN_CLOSING) == 0;
}

/* A peer that ends its stream may read on: what is for it is sent first, also what is held now. */
void conn_got_end(struct conn *conn)
{
    bool pending = false;

    if (UNLIKELY((conn->flags & CONN_HANDSHAKE) != 0) && !conn_feed_held(conn))
        return;
    pending = !output_is_empty(&conn->output) || !output_is_empty(conn_wire(conn));
    conn->flags |= CONN_ENDED;
    if ((conn->flags & CONN_HANDSHAKE) != 0)
        conn_close_for(conn, CONN_CLOSED_HANDSHAKE, 0);
    else if (pending && (conn->flags & CONN_WATCH_HANGUP) == 0)
        conn_close_after_flush(conn);
    else
        conn_close_for(conn, CONN_CLOSED_PEER, 0);
}

void conn_got_hangup(struct conn *conn)
{
    conn_close_for(conn, CONN_CLOSED_PEER, 0);
}

void conn_receive_direct(struct conn *conn, char *memory, size_t size, size_t taken)
{
    loop_assert_self(conn->loop);
    assert((conn->flags & CONN_IN_DATA) != 0);
    assert(conn->direct_size == 0);
    assert(size > 0);
    conn->direct = memory;
    conn->direct_size = size;
    conn->loop->direct_taken = taken;
}

void conn_receive_direct_more(struct conn *conn, char *memory, size_t size)
{
    assert(conn->direct == NULL && conn->direct_size == 0);
    assert(size > 0);
    conn->direct = memory;
    conn->direct_size = size;
}

void conn_pause(struct conn *conn)
{
    loop_assert_self(conn->loop);
    conn->flags |= CONN_PAUSED;
}

void conn_pause_blocked(struct conn *conn)
{
    loop_assert_self(conn->loop);
    conn->flags |= CONN_PAUSED | CONN_WATCH_HANGUP;
    if ((conn->flags & (CONN_CLOSING | CONN_POLL_IN)) == 0)
        conn->loop->backend->conn_update(conn);
}

static void conn_queue_ready(struct conn *conn)
{
    if ((conn->flags & (CONN_READY | CONN_CLOSING)) != 0)
        return;
    conn->flags |= CONN_READY;
    conn_queue_add(&conn->loop->ready, conn, &conn->ready_next);
}

void conn_resume(struct conn *conn)
{
    loop_assert_self(conn->loop);
    if ((conn->flags & CONN_CLOSING) != 0)
        return;
    conn->flags &= ~(uint32_t)(CONN_PAUSED | CONN_WATCH_HANGUP);
    /* Inside on_data what will be kept is not known yet. */
    if (conn->kept_size > 0 || (conn->flags & (CONN_ENDED | CONN_IN_DATA)) != 0)
        conn_queue_ready(conn);
    if ((conn->flags & CONN_ENDED) == 0)
        conn->loop->backend->conn_update(conn);
}

void conn_run_ready(struct conn *conn)
{
    conn->flags &= ~(uint32_t)CONN_READY;
    if ((conn->flags & (CONN_CLOSING | CONN_CLOSE_AFTER | CONN_PAUSED)) != 0)
        return;
    if (conn->kept_size > 0 && conn->direct_size == 0)
        conn_present(conn, conn->kept, conn->kept_size);
    /* The end comes after everything that came before it was served. */
    if ((conn->flags & CONN_ENDED) != 0 && (conn->flags & (CONN_CLOSING | CONN_PAUSED | CONN_READY)) == 0)
        conn_got_end(conn);
}

/* ------------------------------------------------------------------------------------------------- output -- */

struct output *conn_wire(struct conn *conn)
{
    return LIKELY((conn->flags & CONN_TLS) == 0) ? &conn->output : tls_session_wire(conn->tls);
}

void conn_write_pending_slow(struct conn *conn)
{
    conn->flags |= CONN_DIRTY;
    conn_queue_add(&conn->loop->dirty, conn, &conn->dirty_next);
}

static void conn_close_if_drained(struct conn *conn)
{
    enum conn_close_reason reason = (conn->flags & CONN_ENDED) != 0 ? CONN_CLOSED_PEER : CONN_CLOSED_LOCAL;

    if ((conn->flags & CONN_CLOSE_AFTER) == 0 || !output_is_empty(&conn->output))
        return;
    if (reason == CONN_CLOSED_LOCAL)
        conn->flags |= CONN_LINGER;
    conn_close_for(conn, reason, 0);
}

void conn_hold(struct conn *conn)
{
    loop_assert_self(conn->loop);
    assert((conn->flags & CONN_HELD) == 0);
    conn->flags |= CONN_HELD;
    conn->clear_bytes = 0;
}

void conn_clear(struct conn *conn, size_t size)
{
    loop_assert_self(conn->loop);
    assert((conn->flags & CONN_HELD) != 0);
    conn->clear_bytes += size;
    assert(conn->clear_bytes <= output_size(&conn->output));
    conn_write_pending(conn);
}

void conn_unhold(struct conn *conn)
{
    loop_assert_self(conn->loop);
    conn->flags &= ~(uint32_t)CONN_HELD;
    conn_write_pending(conn);
}

/* The plain output that may be sent: the part in front of the held bytes. */
unsigned conn_pieces(const struct conn *conn, struct iovec *pieces, unsigned max)
{
    unsigned count = output_iovec(&conn->output, pieces, max);
    size_t left = conn->clear_bytes;

    if (LIKELY((conn->flags & CONN_HELD) == 0))
        return count;
    for (unsigned i = 0; i < count; i++) {
        if (left == 0)
            return i;
        pieces[i].iov_len = MIN(pieces[i].iov_len, left);
        left -= pieces[i].iov_len;
    }
    return count;
}

void conn_consume(struct conn *conn, size_t size)
{
    if (UNLIKELY((conn->flags & CONN_HELD) != 0))
        conn->clear_bytes -= size;
    output_consume(&conn->output, size);
}

void conn_flush_now(struct conn *conn)
{
    if (UNLIKELY((conn->flags & (CONN_CLOSING | CONN_CONNECTING | CONN_BLOCKED_OUT)) != 0))
        return;
    if (UNLIKELY((conn->flags & (CONN_TLS | CONN_HANDSHAKE)) == CONN_TLS))
        tls_encrypt(conn);
    if (UNLIKELY(conn_is_all_held(conn)))
        return;
    if (LIKELY(!output_is_empty(conn_wire(conn))))
        conn->loop->backend->conn_send(conn);
    else
        conn_close_if_drained(conn);
}

void conn_want_drained(struct conn *conn)
{
    conn->flags |= CONN_DRAIN_DUE;
}

void conn_flush(struct conn *conn)
{
    conn->flags &= ~(uint32_t)CONN_DIRTY;
    conn_flush_now(conn);
}

void conn_sent(struct conn *conn, size_t size)
{
    struct loop *loop = conn->loop;

    conn->bytes_out += size;
    loop->stats.bytes_out += size;
    conn->active_us = loop->now_us;
    if (LIKELY((conn->flags & CONN_TLS) == 0))
        conn_consume(conn, size);
    else
        output_consume(conn_wire(conn), size);
}

void conn_sent_all(struct conn *conn)
{
    if (LIKELY((conn->flags & (CONN_TLS | CONN_CLOSE_AFTER | CONN_DRAIN_DUE)) == 0))
        return;
    if (!output_is_empty(&conn->output)) {
        conn_write_pending(conn); /* TLS: more is to be encrypted */
        return;
    }
    conn_close_if_drained(conn);
    if ((conn->flags & (CONN_DRAIN_DUE | CONN_CLOSING)) == CONN_DRAIN_DUE) {
        conn->flags &= ~(uint32_t)CONN_DRAIN_DUE;
        if (conn->handler->on_drained != NULL)
            conn->handler->on_drained(conn);
    }
}

size_t conn_output_size(const struct conn *conn)
{
    size_t size = output_size(&conn->output);

    if ((conn->flags & CONN_TLS) != 0)
        size += output_size(tls_session_wire(conn->tls));
    return size;
}

size_t conn_memory_bytes(const struct conn *conn)
{
    size_t size = conn->kept_capacity + output_memory_bytes(&conn->output);

    if ((conn->flags & CONN_TLS) != 0)
        size += tls_session_memory_bytes(conn->tls);
    return size;
}

/* -------------------------------------------------------------------------------------------------- facts -- */

static bool sockaddr_ip(const struct sockaddr *address, char *ip, size_t ip_size, int *port)
{
    const void *in4 = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    const void *in6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

    *port = 0;
    ip[0] = '\0';
    if (address->sa_family == AF_INET) {
        *port = ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
        return inet_ntop(AF_INET, in4, ip, (socklen_t)ip_size) != NULL;
    }
    if (address->sa_family == AF_INET6) {
        *port = ntohs(((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
        return inet_ntop(AF_INET6, in6, ip, (socklen_t)ip_size) != NULL;
    }
    return false;
}

size_t conn_sockaddr_text(const struct sockaddr *address, socklen_t size, char text[CONN_ADDRESS_TEXT_BYTES])
{
    char ip[INET6_ADDRSTRLEN];
    int port = 0;
    int length = 0;

    if (address->sa_family == AF_UNIX) {
        const struct sockaddr_un *local = (const struct sockaddr_un *)(const void *)address;
        size_t path_size = size > offsetof(struct sockaddr_un, sun_path)
                               ? strnlen(local->sun_path, size - offsetof(struct sockaddr_un, sun_path))
                               : 0;

        length = snprintf(text, CONN_ADDRESS_TEXT_BYTES, "%.*s:0", (int)path_size, local->sun_path);
    } else if (sockaddr_ip(address, ip, sizeof(ip), &port)) {
        length = snprintf(text, CONN_ADDRESS_TEXT_BYTES, strchr(ip, ':') != NULL ? "[%s]:%d" : "%s:%d", ip, port);
    } else {
        length = snprintf(text, CONN_ADDRESS_TEXT_BYTES, "?:0");
    }
    return (size_t)length;
}

/* The address of one side. A unix client has none: both sides are the path it connected to. */
static bool conn_address(const struct conn *conn, bool peer, struct sockaddr_storage *address, socklen_t *size)
{
    struct sockaddr *to = (struct sockaddr *)address;

    *size = sizeof(*address);
    if ((peer ? getpeername : getsockname)(conn->fd, to, size) != 0)
        return false;
    if (to->sa_family != AF_UNIX || *size > offsetof(struct sockaddr_un, sun_path))
        return true;
    *size = sizeof(*address);
    return (peer ? getsockname : getpeername)(conn->fd, to, size) == 0;
}

static size_t conn_text(const struct conn *conn, bool peer, char text[CONN_ADDRESS_TEXT_BYTES])
{
    struct sockaddr_storage address;
    socklen_t size = 0;

    if (!conn_address(conn, peer, &address, &size))
        return (size_t)snprintf(text, CONN_ADDRESS_TEXT_BYTES, "?:0");
    return conn_sockaddr_text((const struct sockaddr *)&address, size, text);
}

size_t conn_peer_text(const struct conn *conn, char text[CONN_ADDRESS_TEXT_BYTES])
{
    return conn_text(conn, true, text);
}

size_t conn_local_text(const struct conn *conn, char text[CONN_ADDRESS_TEXT_BYTES])
{
    return conn_text(conn, false, text);
}

bool conn_peer_ip(const struct conn *conn, char *ip, size_t ip_size, int *port)
{
    struct sockaddr_storage address = {0};
    socklen_t size = 0;

    if (!conn_address(conn, true, &address, &size))
        address.ss_family = AF_UNSPEC;
    return sockaddr_ip((const struct sockaddr *)&address, ip, ip_size, port);
}

bool conn_local_ip(const struct conn *conn, char *ip, size_t ip_size, int *port)
{
    struct sockaddr_storage address = {0};
    socklen_t size = 0;

    if (!conn_address(conn, false, &address, &size))
        address.ss_family = AF_UNSPEC;
    return sockaddr_ip((const struct sockaddr *)&address, ip, ip_size, port);
}

bool conn_set_keepalive(struct conn *conn, int seconds)
{
    int on = seconds > 0;
    int interval = MAX(seconds / 3, 1);
    int count = 3;

    if (setsockopt(conn->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) != 0)
        return false;
    if (!on)
        return true;
    return setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds)) == 0 &&
           setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval)) == 0 &&
           setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count)) == 0;
}
