/* conn.h: a stream connection of a loop, plain or TLS, over TCP or a unix socket.
 *
 * The owner's struct has `struct conn` as its first member. Bytes that arrive are given to on_data in the loop's
 * buffer. Bytes that the handler does not consume are kept in a buffer of the connection, and given to on_data again in
 * front of the next bytes. Output is written into conn->output and sent at the end of the turn. An idle connection owns
 * neither input nor output memory.
 *
 *      open --> [connecting] --> [handshake] --> live <--> paused          closing --> on_closed, then gone
 *                    any state --conn_close(), error, end of stream--------^
 *
 *  1. on_closed is the last call. It is called exactly once for each conn_open(), at the end of the turn, never inside
 *     conn_close() or another function here. So handlers may use the connection until they return. The handler frees
 *     the connection in on_closed.
 *  2. After conn_close() no other handler is called.
 *  3. on_data is never entered twice at a time for one connection. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "net/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct conn;
struct loop;
struct tls_context;
struct tls_session;

enum conn_close_reason {
    CONN_CLOSED_LOCAL,     /* conn_close(), conn_close_after_flush() */
    CONN_CLOSED_PEER,      /* the peer closed the stream */
    CONN_CLOSED_ERROR,     /* the system reported an error; `detail` has its text */
    CONN_CLOSED_HANDSHAKE, /* the TLS handshake failed, or TLS failed later; `detail` has the reason */
};

struct conn_handler {
    /* Called when bytes have arrived. Returns how many bytes are consumed; the rest is given again with more bytes
     * behind it. A handler that stops early calls conn_resume() to be called again without new bytes. The handler may
     * change the bytes in place. */
    size_t (*on_data)(struct conn *conn, char *data, size_t size);
    /* Called after on_data, if input was kept before it or is kept now: inside on_data the size of kept input is not
     * known yet. May be NULL. */
    void (*on_kept)(struct conn *conn);
    /* Called when a direct receive is complete. Afterwards on_data continues with kept and new bytes. NULL if direct
     * receives are not used. */
    void (*on_direct_done)(struct conn *conn);
    /* Called when the connection (and its TLS handshake) is established; not for accepted connections without TLS. May
     * be NULL. */
    void (*on_open)(struct conn *conn);
    /* Called when all output was sent after a part of it had to wait for the peer. May be NULL. */
    void (*on_drained)(struct conn *conn);
    /* The last call. `detail` is "Connection reset by peer" and the like, or "". */
    void (*on_closed)(struct conn *conn, enum conn_close_reason reason, const char *detail);
};

enum conn_flag {
    CONN_TLS = 1 << 0,
    CONN_CONNECTING = 1 << 1, /* our own connect() is in progress */
    CONN_HANDSHAKE = 1 << 2,
    CONN_PAUSED = 1 << 3,
    CONN_WATCH_HANGUP = 1 << 4, /* paused; closed at once if the peer closes */
    CONN_DIRTY = 1 << 5,        /* on the loop's list of connections to flush */
    CONN_READY = 1 << 6,        /* on the loop's list of connections to call again */
    CONN_BLOCKED_OUT = 1 << 7,  /* the socket's buffer is full: waiting until it is writable */
    CONN_CLOSE_AFTER = 1 << 8,  /* close when all output is sent; input is ignored */
    CONN_CLOSING = 1 << 9,
    CONN_IN_DATA = 1 << 10, /* on_data is running */
    CONN_CLIENT = 1 << 11,  /* this side connected */
    CONN_UNIX = 1 << 12,
    CONN_POLL_IN = 1 << 13,   /* backend: waits for readable */
    CONN_POLL_OUT = 1 << 14,  /* backend: waits for writable */
    CONN_POLLED = 1 << 15,    /* backend: the descriptor is registered */
    CONN_ENDED = 1 << 16,     /* the peer ended the stream: told on resume, or when all for it is sent */
    CONN_DRAIN_DUE = 1 << 17, /* output had to wait: on_drained will be called */
    CONN_HELD = 1 << 19,      /* only the first clear_bytes of output may be sent */
    /* Closing: the peer should still receive the last output, even if it goes on sending (linger.h). */
    CONN_LINGER = 1 << 18,
};

/* Only net/ writes the fields, in the loop's thread; all functions here are called in that thread. The owner reads fd,
 * loop, flags, bytes_in, bytes_out, reads and active_us. It writes into output, and then calls conn_write_pending(). */
struct conn {
    int fd;
    uint32_t flags;
    struct loop *loop;
    const struct conn_handler *handler;
    struct output output;
    size_t clear_bytes; /* CONN_HELD: bytes of output that may be sent */
    uint64_t bytes_in;  /* bytes received, encrypted ones with TLS */
    uint64_t bytes_out;
    uint64_t reads;    /* how often bytes were received */
    int64_t active_us; /* loop time of the last bytes received or sent */

    char *kept; /* input that waits for more bytes; NULL: none */
    size_t kept_size;
    size_t kept_capacity;
    char *direct; /* memory for the next direct_size bytes */
    size_t direct_size;
    struct tls_session *tls;

    struct conn *dirty_next;
    struct conn *ready_next;
    struct conn *closing_next;
    struct conn *all_next; /* all connections of the loop */
    struct conn *all_previous;
    uint32_t close_reason;
    int close_errno;
    uint32_t in_flight;  /* backend: operations in progress that use this struct or its buffers */
    uint32_t bulk_reads; /* backend: number of receives that are still done one at a time */
};

/* Takes over a connected non-blocking descriptor. With `tls`, a server-side handshake comes first. The struct may be
 * uninitialized. False: the system refuses to watch the descriptor; see errno; the caller still owns fd. */
must_check bool conn_open(struct loop *loop, struct conn *conn, int fd, const struct conn_handler *handler,
                          struct tls_context *tls);

/* Connects to an address. on_open reports success, with TLS after the handshake; server_name is for SNI and may be
 * NULL. An immediate failure returns false with errno; a later one is reported by on_closed. bind_address may be
 * NULL. */
must_check bool conn_connect(struct loop *loop, struct conn *conn, const struct sockaddr *address, socklen_t size,
                             const struct sockaddr *bind_address, socklen_t bind_size,
                             const struct conn_handler *handler, struct tls_context *tls, const char *server_name);

/* Input. */

/* Call it from on_data. It takes bytes out of the stream: the last `taken` bytes of the range just given, which the
 * caller has copied, and the next `size` bytes to arrive. These are received into `memory`, which must stay valid until
 * on_direct_done or on_closed. Bytes between on_data's return value and the taken ones are kept. */
void conn_receive_direct(struct conn *conn, char *memory, size_t size, size_t taken);

/* Call it from on_direct_done: receives the next `size` bytes into `memory`; on_direct_done is called again after
 * them. */
void conn_receive_direct_more(struct conn *conn, char *memory, size_t size);

void conn_pause(struct conn *conn);         /* stops input; a peer that closes is not noticed */
void conn_pause_blocked(struct conn *conn); /* stops input, but closes the connection when the peer closes */
void conn_resume(struct conn *conn); /* continues input; kept bytes are given to on_data in this or the next turn */

static inline size_t conn_kept_size(const struct conn *conn)
{
    return conn->kept_size;
}
static inline size_t conn_kept_capacity(const struct conn *conn)
{
    return conn->kept_capacity;
}

/* Output. */

void conn_write_pending_slow(struct conn *conn);

/* Call it after writing into conn->output: the output is sent at the end of the turn. */
static ALWAYS_INLINE void conn_write_pending(struct conn *conn)
{
    if ((conn->flags & (CONN_DIRTY | CONN_CLOSING)) == 0)
        conn_write_pending_slow(conn);
}

void conn_flush_now(struct conn *conn);

/* Holding output back, for replies that have to wait for something else. The order of output stays. */
void conn_hold(struct conn *conn);               /* present and later output is not sent */
void conn_clear(struct conn *conn, size_t size); /* except the next `size` bytes, which may be sent now */
void conn_unhold(struct conn *conn);             /* all output may be sent */
static inline size_t conn_held_size(const struct conn *conn)
{
    return (conn->flags & CONN_HELD) != 0 ? output_size(&conn->output) - conn->clear_bytes : 0;
}
void conn_want_drained(struct conn *conn); /* calls on_drained when all output is sent, even if nothing had to wait */
size_t conn_output_size(const struct conn *conn); /* unsent bytes; with TLS, encrypted ones count, too */
/* Memory of input, output and TLS buffers; the TLS library's own memory is not known. */
size_t conn_memory_bytes(const struct conn *conn);

/* Closing. */

void conn_close(struct conn *conn);             /* closes now: unsent output is lost */
void conn_close_after_flush(struct conn *conn); /* closes when all output is sent, then lingers; input is ignored */
static inline bool conn_is_closing(const struct conn *conn)
{
    return (conn->flags & (CONN_CLOSING | CONN_CLOSE_AFTER)) != 0;
}

/* Facts. */

#define CONN_ADDRESS_TEXT_BYTES 160 /* room for each address text with its zero byte */

/* Writes "127.0.0.1:6379", "[::1]:6379", "/run/keydb.sock:0", or "?:0" if unknown. Returns the length. */
size_t conn_peer_text(const struct conn *conn, char text[CONN_ADDRESS_TEXT_BYTES]);
size_t conn_local_text(const struct conn *conn, char text[CONN_ADDRESS_TEXT_BYTES]);
size_t conn_sockaddr_text(const struct sockaddr *address, socklen_t size, char text[CONN_ADDRESS_TEXT_BYTES]);
/* Writes the IP alone (no brackets, no port) and the port, of the peer or of this side; "" and 0 if there is none. */
bool conn_peer_ip(const struct conn *conn, char *ip, size_t ip_size, int *port);
bool conn_local_ip(const struct conn *conn, char *ip, size_t ip_size, int *port);

/* Sends TCP keepalive probes after `seconds` of silence, then each third of `seconds`, 3 in all; 0: no probes. */
bool conn_set_keepalive(struct conn *conn, int seconds);
