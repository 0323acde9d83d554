/* loop_priv.h: internals of a loop, for loop.c (turns, timers, waking), conn.c (bytes of a connection), tls.c, and the
 * backends (receiving and sending). */
#pragma once

#include "base/spinlock.h"
#include "base/tick.h"
#include "net/conn.h"
#include "net/linger.h"
#include "net/loop.h"
#include "net/output.h"

#include <stdatomic.h>
#include <sys/socket.h>

/* The receive buffer. Kept input of up to LOOP_HEADROOM_BYTES is copied in front of the place for new bytes. */
#define LOOP_HEADROOM_BYTES (16 * 1024)
#define LOOP_INPUT_BYTES (64 * 1024)
#define LOOP_CIPHER_BYTES (64 * 1024)
#define LOOP_GATHER_BYTES (16 * 1024) /* buffer in which tls.c collects small pieces */

struct loop_backend {
    const char *name;
    bool (*setup)(struct loop *loop); /* false: not available here */
    void (*teardown)(struct loop *loop);
    void (*wait)(struct loop *loop, int64_t timeout_us); /* waits, then serves the events */
    int (*events_fd)(const struct loop *loop);           /* readable while there are events */
    void (*serve_reentrant)(struct loop *loop);          /* serves events from inside a handler; NULL: not supported */
    bool (*conn_add)(struct conn *conn);
    void (*conn_update)(struct conn *conn); /* conn_wants_input() or conn_wants_hangup() may have changed */
    bool (*conn_remove)(struct conn *conn); /* false: not yet removed; call it again in the next turn */
    void (*conn_send)(struct conn *conn);   /* sends from conn_wire(), which is not empty */
    bool (*watch_add)(struct loop *loop, struct loop_watch *watch);
    void (*watch_remove)(struct loop *loop, struct loop_watch *watch);
};

extern const struct loop_backend loop_backend_epoll;
#ifdef HAVE_LIBURING
extern const struct loop_backend loop_backend_io_uring;
#endif

/* A queue through one of the *_next fields of struct conn, in order. Each connection is in it at most once. */
struct conn_queue {
    struct conn *first;
    struct conn *last;
};

/* tls.c: sessions that hold record buffers; the one idle for the longest time is first. */
struct tls_warm {
    struct tls_session *first;
    struct tls_session *last;
    unsigned count;
    struct loop_timer timer;
};

/* tls.c: handshakes whose input has arrived, in the order of arrival. */
struct tls_waiting {
    struct tls_session *first;
    struct tls_session *last;
    int64_t spent_us; /* time spent on handshakes at the end of this turn */
    bool stepped;     /* since on_turn_end; what steps have brought may have left work for it */
};

struct watch_slot {
    struct loop_watch *watch; /* NULL: free */
    uint32_t generation;
};

/* owner: the loop's thread, except wake_state, wake_fd and the atomic fields */
struct loop {
    const struct loop_backend *backend;
    void *backend_state;
    uint32_t thread_id; /* spinlock_self_id of its thread */
    int64_t now_us;
    int64_t clock_us;                 /* last reading of the clock */
    uint64_t clock_tick;              /* the time stamp counter at that reading */
    uint64_t clock_span;              /* for this many ticks after it the clock need not be read again */
    _Atomic int64_t serving_since_us; /* atomic: relaxed; the loop's thread writes, others read; 0: the loop waits */
    uint64_t served_from;             /* ticks at the end of this turn's wait */
    uint64_t spin_ticks, spin_until;  /* how long it looks for events before it sleeps; in this wait until then, or 0 */
    int spin_score;                   /* how often that was worth it lately, see judge_wait */
    _Atomic uint64_t serving_ticks, timer_ticks; /* atomic: relaxed; the loop's thread writes, others read */
    _Atomic uint64_t longest_ticks;              /* atomic: likewise; other threads set it to 0 */
    char *input;                                 /* LOOP_HEADROOM_BYTES + LOOP_INPUT_BYTES */
    char *cipher;        /* LOOP_CIPHER_BYTES + LOOP_GATHER_BYTES; allocated for the first TLS connection */
    size_t direct_taken; /* set by conn_receive_direct() during on_data */
    struct conn_queue dirty;
    struct conn_queue ready;
    struct conn_queue closing;
    struct conn *conns;
    struct output_pool pool;
    struct tls_warm warm;
    struct tls_waiting handshakes;
    struct lingers lingers;
    struct {
        struct loop_timer **items;
        uint32_t count, capacity;
    } timers; /* a heap; the next timer to run is first */
    struct {
        struct watch_slot *items;
        uint32_t count, capacity;
    } watches;
    struct loop_watch wake_watch;
    struct loop_options options;
    struct loop_stats stats;
    int wake_fd; /* const after create */
    /* atomic: seq_cst; WAKE_* of loop.c. The caller sets PENDING and then reads SLEEPING; the loop sets SLEEPING only
     * if PENDING is not set. So one of the two sees the other's flag. */
    _Atomic uint32_t wake_state CACHE_ALIGNED;
};

static inline void loop_assert_self(const struct loop *loop) /* asserts that the caller is the loop's thread */
{
    assert(loop->thread_id == spinlock_self);
}

/* For backends: whether a wait that may sleep is to look for events, once more, first. */
static inline bool loop_spins(const struct loop *loop)
{
    return loop->spin_until != 0 && (int64_t)(loop->spin_until - tick_now()) > 0;
}

/* loop.c */
void loop_wait_over(struct loop *loop); /* the end of a turn's wait: reads the time and marks the loop as serving */
void loop_watch_fire(struct loop *loop, uint32_t tag, uint32_t generation);

/* conn.c, for backends. Each function may close the connection; check its flags afterwards. */
char *conn_window(struct conn *conn, size_t *room);          /* where the next plain bytes should be received */
void conn_got(struct conn *conn, char *window, size_t size); /* bytes were received at the address of conn_window() */
void conn_got_bytes(struct conn *conn, char *data, size_t size); /* bytes were received at another address */
/* Bytes were received into the direct memory and then the window (readv). */
void conn_got_direct(struct conn *conn, char *window, size_t size);
void conn_got_cipher(struct conn *conn, char *data, size_t size);
void conn_got_end(struct conn *conn);
/* The end of a TLS handshake, and what the peer asked for right after, may wait for their turn when the end of its
 * stream is seen: they come first. False: the connection is closed now. */
bool conn_feed_held(struct conn *conn);
void conn_got_hangup(struct conn *conn); /* while paused: the peer ended the stream */
void conn_connected(struct conn *conn, int error);
void conn_sent(struct conn *conn, size_t size); /* `size` bytes of conn_wire() were sent */
void conn_sent_all(struct conn *conn);          /* all bytes of conn_wire() were sent */
void conn_fail(struct conn *conn, int error);
void conn_close_for(struct conn *conn, enum conn_close_reason reason, int error);
void conn_open_done(struct conn *conn); /* TLS: the handshake is complete */

/* conn.c, for loop.c */
void conn_flush(struct conn *conn);
void conn_run_ready(struct conn *conn);
bool conn_finish(struct conn *conn); /* false: the backend still needs it */

struct output *conn_wire(struct conn *conn);
struct iovec;
unsigned conn_pieces(const struct conn *conn, struct iovec *pieces, unsigned max); /* pieces of the plain output */
void conn_consume(struct conn *conn, size_t size); /* plain bytes were sent or encrypted */

/* True if no byte of the wire may be sent now. With TLS, bytes are let through when they are encrypted. */
static inline bool conn_is_all_held(const struct conn *conn)
{
    return (conn->flags & (CONN_HELD | CONN_TLS)) == CONN_HELD && conn->clear_bytes == 0;
}

static inline bool conn_wants_input(const struct conn *conn)
{
    return (conn->flags & (CONN_PAUSED | CONN_CLOSE_AFTER | CONN_CLOSING | CONN_CONNECTING | CONN_ENDED)) == 0;
}

static inline bool conn_wants_hangup(const struct conn *conn)
{
    return (conn->flags & (CONN_PAUSED | CONN_WATCH_HANGUP | CONN_CLOSE_AFTER | CONN_CLOSING)) ==
           (CONN_PAUSED | CONN_WATCH_HANGUP);
}

static inline void conn_queue_add(struct conn_queue *queue, struct conn *conn, struct conn **next)
{
    size_t field = (size_t)((char *)next - (char *)conn);

    *next = NULL;
    if (queue->first == NULL)
        queue->first = conn;
    else
        *(struct conn **)(void *)((char *)queue->last + field) = conn;
    queue->last = conn;
}
