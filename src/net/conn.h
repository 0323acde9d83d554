/* conn.h: one stream connection of a loop, plain or TLS, TCP or unix.
 *
 * `struct conn` is embedded first in the owner's struct. Bytes that arrive are presented to on_data in the loop's
 * buffer; what the handler does not consume is kept in a buffer of the connection and presented again in front of
 * the next bytes. Output is written into conn->output and sent at the end of the turn. An idle connection owns
 * neither input nor output memory.
 *
 *      open --> [connecting] --> [handshake] --> live <--> paused          closing --> on_closed, then gone
 *                    any state --conn_close(), error, end of stream--------^
 *
 * 1. on_closed is the last call, exactly one for each conn_open(), never from inside conn_close() or another call
 *    here, but at the end of the turn: handlers may use the connection until they return. The handler frees it there.
 * 2. After conn_close() no other handler is called.
 * 3. on_data is never entered twice at a time for one connection. */
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
    CONN_CLOSED_PEER,      /* the peer ended the stream */
    CONN_CLOSED_ERROR,     /* the system reported an error: detail */
    CONN_CLOSED_HANDSHAKE, /* TLS could not agree, or broke later: detail */
};

struct conn_handler {
    /* Bytes are there. Returns how many are done with; the rest comes again with more behind it. A handler that
     * stops early for reasons of its own calls conn_resume() to be called again without new bytes.
     * The bytes may be changed in place. */
    size_t (*on_data)(struct conn *conn, char *data, size_t size);
    /* Behind on_data, if input waited before it or waits now: how much was not known inside. May be NULL. */
    void (*on_kept)(struct conn *conn);
    /* A direct receive is complete. Afterwards on_data goes on with kept and new bytes. NULL if never used. */
    void (*on_direct_done)(struct conn *conn);
    /* The connection (and its TLS handshake) stands. May be NULL. Plain accepted connections: not called. */
    void (*on_open)(struct conn *conn);
    /* All output was sent, after some of it had to wait for the peer. May be NULL. */
    void (*on_drained)(struct conn *conn);
    /* The last call. detail: "Connection reset by peer", ... or "". */
    void (*on_closed)(struct conn *conn, enum conn_close_reason reason, const char *detail);
};

enum conn_flag {
    CONN_TLS = 1 << 0,
    CONN_CONNECTING = 1 << 1, /* a connect() of ours is under way */
    CONN_HANDSHAKE = 1 << 2,
    CONN_PAUSED = 1 << 3,
    CONN_WATCH_HANGUP = 1 << 4, /* paused, and closed at once if the peer goes */
    CONN_DIRTY = 1 << 5,        /* on the loop's list of connections to flush */
    CONN_READY = 1 << 6,        /* on the loop's list of connections to call again */
    CONN_BLOCKED_OUT = 1 << 7,  /* the socket is full: waiting for it */
    CONN_CLOSE_AFTER = 1 << 8,  /* close once all output was sent; input is ignored */
    CONN_CLOSING = 1 << 9,
    CONN_IN_DATA = 1 << 10, /* on_data is running */
    CONN_CLIENT = 1 << 11,  /* we connected */
    CONN_UNIX = 1 << 12,
    CONN_POLL_IN = 1 << 13,   /* backend: reading is armed */
    CONN_POLL_OUT = 1 << 14,  /* backend: writing is armed */
    CONN_POLLED = 1 << 15,    /* backend: the descriptor is registered */
    CONN_ENDED = 1 << 16,     /* the peer ended its side while we did not listen; told when resumed */
    CONN_DRAIN_DUE = 1 << 17, /* output had to wait: on_drained is owed */
    CONN_HELD = 1 << 19,      /* only the first clear_bytes of output may be sent */
    CONN_LINGER = 1 << 18,    /* closing: what was sent last is to be read, also by a peer that still sends */
};

/* All fields are written by net/ only, in the loop's thread, where all calls here are made. The owner reads fd, loop,
 * flags, bytes_in, bytes_out, active_us, and writes into output followed by conn_write_pending(). */
struct conn {
    int fd;
    uint32_t flags;
    struct loop *loop;
    const struct conn_handler *handler;
    struct output output;
    size_t clear_bytes; /* CONN_HELD: see there */
    uint64_t bytes_in;  /* on the wire */
    uint64_t bytes_out;
    int64_t active_us; /* loop time of the last bytes in or out */

    char *kept; /* input that waits for more; NULL: none */
    size_t kept_size;
    size_t kept_capacity;
    char *direct; /* where the next direct_size bytes go */
    size_t direct_size;
    struct tls_session *tls;

    struct conn *dirty_next;
    struct conn *ready_next;
    struct conn *closing_next;
    struct conn *all_next; /* all connections of the loop */
    struct conn *all_previous;
    uint32_t close_reason;
    int close_errno;
    uint32_t in_flight;  /* backend: operations that use this struct or its buffers */
    uint32_t bulk_reads; /* backend: receives left to be done one at a time */
};

/* Takes over a connected non-blocking descriptor. tls: a server-side handshake comes first. The struct may be
 * uninitialized. Fails only when the system refuses to watch the descriptor (false; errno; fd still the caller's). */
must_check bool conn_open(struct loop *loop, struct conn *conn, int fd, const struct conn_handler *handler,
                          struct tls_context *tls);

/* Connects to an address; on_open tells when it stands (with TLS: after the handshake; server_name for SNI, may be
 * NULL). Failures at once return false with errno, later ones come as on_closed. bind_address may be NULL. */
must_check bool conn_connect(struct loop *loop, struct conn *conn, const struct sockaddr *address, socklen_t size,
                             const struct sockaddr *bind_address, socklen_t bind_size,
                             const struct conn_handler *handler, struct tls_context *tls, const char *server_name);

/* Input. */

/* From inside on_data: the last `taken` bytes of the range just presented, and the next `size` bytes that arrive, are
 * out of the stream: the caller copied the former, the latter go to `memory`, which must stay until
 * on_direct_done or on_closed. Bytes between on_data's return value and the taken ones are kept. */
void conn_receive_direct(struct conn *conn, char *memory, size_t size, size_t taken);

/* From inside on_direct_done: the next `size` bytes go to `memory`, and on_direct_done is called again after them. */
void conn_receive_direct_more(struct conn *conn, char *memory, size_t size);

void conn_pause(struct conn *conn);         /* no more input, and no notice of a peer that leaves */
void conn_pause_blocked(struct conn *conn); /* no more input, but close when the peer leaves */
void conn_resume(struct conn *conn);        /* input goes on; kept bytes are presented in this or the next turn */

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

/* After writing into conn->output: it will be sent at the end of the turn. */
static ALWAYS_INLINE void conn_write_pending(struct conn *conn)
{
    if ((conn->flags & (CONN_DIRTY | CONN_CLOSING)) == 0)
        conn_write_pending_slow(conn);
}

void conn_flush_now(struct conn *conn);

/* Output that has to wait for something else, in the order in which it was written. */
void conn_hold(struct conn *conn);               /* what is in the output, and what will be, is not sent */
void conn_clear(struct conn *conn, size_t size); /* but now the next so many bytes */
void conn_unhold(struct conn *conn);             /* everything may be sent */
static inline size_t conn_held_size(const struct conn *conn)
{
    return (conn->flags & CONN_HELD) != 0 ? output_size(&conn->output) - conn->clear_bytes : 0;
}
void conn_want_drained(struct conn *conn);         /* on_drained when all is sent, also if nothing had to wait */
size_t conn_output_size(const struct conn *conn);  /* unsent bytes, with TLS also encrypted ones */
size_t conn_memory_bytes(const struct conn *conn); /* input, output and TLS buffers known to us */

/* Closing. */

void conn_close(struct conn *conn);             /* now: unsent output is lost */
void conn_close_after_flush(struct conn *conn); /* when all output is sent, then lingers; input is ignored */
static inline bool conn_is_closing(const struct conn *conn)
{
    return (conn->flags & (CONN_CLOSING | CONN_CLOSE_AFTER)) != 0;
}

/* Facts. */

#define CONN_ADDRESS_TEXT_BYTES 160 /* fits every address text with its NUL */

/* "127.0.0.1:6379", "[::1]:6379", "/run/keydb.sock:0"; "?:0" when unknown. Return the text's length. */
size_t conn_peer_text(const struct conn *conn, char text[CONN_ADDRESS_TEXT_BYTES]);
size_t conn_local_text(const struct conn *conn, char text[CONN_ADDRESS_TEXT_BYTES]);
size_t conn_sockaddr_text(const struct sockaddr *address, socklen_t size, char text[CONN_ADDRESS_TEXT_BYTES]);
/* The IP alone (no brackets, no port) and the port, of the peer or of our side; "" and 0 when there is none. */
bool conn_peer_ip(const struct conn *conn, char *ip, size_t ip_size, int *port);
bool conn_local_ip(const struct conn *conn, char *ip, size_t ip_size, int *port);

/* Probes from `seconds` of silence on, every third of it, 3 times; 0 turns probing off. */
bool conn_set_keepalive(struct conn *conn, int seconds);
