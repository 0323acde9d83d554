/* loop_priv.h: for the files of net/ that together make a loop: loop.c (turns, timers, waking), conn.c (what a
 * connection does with bytes), tls.c, and the backends (how bytes come and go). */
#pragma once

#include "base/spinlock.h"
#include "net/conn.h"
#include "net/linger.h"
#include "net/loop.h"
#include "net/output.h"

#include <stdatomic.h>
#include <sys/socket.h>

/* The receive buffer: kept input of up to LOOP_HEADROOM_BYTES is copied in front of where new bytes arrive. */
#define LOOP_HEADROOM_BYTES (16 * 1024)
#define LOOP_INPUT_BYTES (64 * 1024)
#define LOOP_CIPHER_BYTES (64 * 1024)
#define LOOP_GATHER_BYTES (16 * 1024) /* where tls.c puts small pieces together */

struct loop_backend {
    const char *name;
    bool (*setup)(struct loop *loop); /* false: not available here */
    void (*teardown)(struct loop *loop);
    void (*wait)(struct loop *loop, int64_t timeout_us); /* waits, then serves what happened */
    void (*serve_reentrant)(struct loop *loop);          /* from a handler: serves what is there; NULL: cannot */
    bool (*conn_add)(struct conn *conn);
    void (*conn_update)(struct conn *conn); /* conn_wants_input() or conn_wants_hangup() may have changed */
    bool (*conn_remove)(struct conn *conn); /* false: not yet, ask again next turn */
    void (*conn_send)(struct conn *conn);   /* sends from conn_wire(), which is not empty */
    bool (*watch_add)(struct loop *loop, struct loop_watch *watch);
    void (*watch_remove)(struct loop *loop, struct loop_watch *watch);
};

extern const struct loop_backend loop_backend_epoll;
#ifdef HAVE_LIBURING
extern const struct loop_backend loop_backend_io_uring;
#endif

/* A queue through one of the *_next fields of struct conn: in order, each connection at most once. */
struct conn_queue {
    struct conn *first;
    struct conn *last;
};

/* tls.c: sessions that hold record buffers, the longest silent first. */
struct tls_warm {
    struct tls_session *first;
    struct tls_session *last;
    unsigned count;
    struct loop_timer timer;
};

/* tls.c: handshakes of which something has arrived, in its order. */
struct tls_waiting {
    struct tls_session *first;
    struct tls_session *last;
    int64_t spent_us; /* on handshakes in this turn */
};

struct watch_slot {
    struct loop_watch *watch; /* NULL: free */
    uint32_t generation;
};

/* owner: the loop's thread, but wake_state, wake_fd and what is atomic */
struct loop {
    const struct loop_backend *backend;
    void *backend_state;
    uint32_t thread_id; /* spinlock_self_id of its thread */
    int64_t now_us;
    int64_t clock_us;                            /* what the clock said when it was last asked, */
    uint64_t clock_tick;                         /* at this reading of the counter; */
    uint64_t clock_span;                         /* for so many ticks from there it need not be asked again */
    _Atomic int64_t serving_since_us;            /* atomic, relaxed: others look; 0: it waits */
    uint64_t served_from;                        /* ticks: when this turn's wait was over */
    _Atomic uint64_t serving_ticks, timer_ticks; /* atomic, relaxed: others look */
    _Atomic uint64_t longest_ticks;              /* likewise; others set it to 0 */
    char *input;                                 /* LOOP_HEADROOM_BYTES + LOOP_INPUT_BYTES */
    char *cipher;        /* LOOP_CIPHER_BYTES + LOOP_GATHER_BYTES, at the first TLS connection */
    size_t direct_taken; /* said by conn_receive_direct() during on_data */
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
    } timers; /* a heap: the next one first */
    struct {
        struct watch_slot *items;
        uint32_t count, capacity;
    } watches;
    struct loop_watch wake_watch;
    struct loop_options options;
    struct loop_stats stats;
    int wake_fd; /* const after create */
    /* atomic, seq_cst: WAKE_* of loop.c. The caller sets PENDING and looks for SLEEPING, the loop sets SLEEPING only
     * if there is no PENDING: one of the two sees the other. */
    _Atomic uint32_t wake_state CACHE_ALIGNED;
};

static inline void loop_assert_self(const struct loop *loop) /* this is its thread */
{
    assert(loop->thread_id == spinlock_self);
}

/* loop.c */
void loop_wait_over(struct loop *loop); /* a turn's wait: takes the time, and says that the loop serves now */
void loop_watch_fire(struct loop *loop, uint32_t tag, uint32_t generation);

/* conn.c, for backends. Each may close the connection; look at its flags afterwards. */
char *conn_window(struct conn *conn, size_t *room);                 /* where the next plain bytes should go */
void conn_got(struct conn *conn, char *window, size_t size);        /* they came, at the window of conn_window() */
void conn_got_bytes(struct conn *conn, char *data, size_t size);    /* they came somewhere else */
void conn_got_direct(struct conn *conn, char *window, size_t size); /* readv of the direct memory, then the window */
void conn_got_cipher(struct conn *conn, char *data, size_t size);
void conn_got_end(struct conn *conn);
void conn_got_hangup(struct conn *conn); /* while paused: the peer ended its side */
void conn_connected(struct conn *conn, int error);
void conn_sent(struct conn *conn, size_t size); /* size bytes of conn_wire() went out */
void conn_sent_all(struct conn *conn);          /* ... and conn_wire() is empty now */
void conn_fail(struct conn *conn, int error);
void conn_close_for(struct conn *conn, enum conn_close_reason reason, int error);
void conn_open_done(struct conn *conn); /* TLS: the handshake is complete */

/* conn.c, for loop.c */
void conn_flush(struct conn *conn);
void conn_run_ready(struct conn *conn);
bool conn_finish(struct conn *conn); /* false: its backend still needs it */

struct output *conn_wire(struct conn *conn);
struct iovec;
unsigned conn_pieces(const struct conn *conn, struct iovec *pieces, unsigned max); /* of the plain output */
void conn_consume(struct conn *conn, size_t size); /* plain bytes were sent, or encrypted */

/* Nothing of the wire's bytes may be sent now. (With TLS they have been let through when they were encrypted.) */
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
