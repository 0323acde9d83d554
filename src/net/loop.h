/* loop.h: one thread's event loop: waits for connections, listeners, timers and mail, and sends what was written.
 *
 * A turn is: wait; connections with data (conn.h), accepts (listener.h) and timers are served; on_wake if another
 * thread called; connections resumed meanwhile; on_turn_end; then everything written in this turn is sent, one send
 * a connection, and what was closed is taken down (on_closed). There is no timed wait anywhere.
 *
 * Two backends behind one interface: epoll, and io_uring where it was compiled in and the kernel allows it.
 * Everything of a loop is used by its thread, except where it says otherwise: the one that made it, or adopted it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct loop;

enum loop_kind { LOOP_AUTO, LOOP_EPOLL, LOOP_IO_URING };

struct loop_options {
    enum loop_kind kind;                    /* LOOP_IO_URING falls back to epoll where it does not work */
    void (*on_wake)(struct loop *loop);     /* somebody called loop_wake(): look at the mailbox. May be NULL */
    void (*on_turn_end)(struct loop *loop); /* after dispatch, before the flush. May be NULL */
    void *user;                             /* loop_user() */
};

struct loop *loop_create(const struct loop_options *options); /* NULL: the system refuses descriptors; see errno */

/* Closes what is still open: on_closed(CONN_CLOSED_LOCAL) is called for every connection. After its listeners were
 * detached. NULL is fine; leaves NULL. */
void loop_destroy(struct loop **handle);
/* The loop is this thread's from now on; the one before has let go of it. */
void loop_adopt(struct loop *loop);

void *loop_user(const struct loop *loop);            /* any thread, as the next one */
const char *loop_kind_name(const struct loop *loop); /* "epoll", "io_uring" */

/* One turn; waits at most timeout_us for something to happen (negative: for ever, 0: not at all). */
void loop_turn(struct loop *loop, int64_t timeout_us);

/* From inside a handler that takes very long: serves what has come for other connections and sends what was written; no
 * timers, no on_wake, nothing is taken down. The connection whose handler it is must be paused. Does nothing with a
 * backend that cannot. */
void loop_serve_reentrant(struct loop *loop);

/* From any thread: the loop runs on_wake soon. Calls coalesce; costs one atomic operation unless the loop sleeps. */
void loop_wake(struct loop *loop);

/* From any thread: for how long the loop has been serving, away from its wait. 0: it waits. */
int64_t loop_serving_us(const struct loop *loop);

/* The time of this turn: monotonic, taken once after the wait, never ahead of the clock. loop_update_time() takes it
 * anew. tick_setup() must have been called. */
int64_t loop_now_us(const struct loop *loop);
int64_t loop_update_time(struct loop *loop);

/* Timers, embedded in their owner. fn runs once, at least after_us from the turn's time; it may start itself again.
 * Starting a running timer moves it. Zeroed memory is a stopped timer. */
struct loop_timer {
    int64_t due_us;
    uint32_t heap_index; /* + 1; 0: stopped */
    void (*fn)(struct loop *loop, struct loop_timer *timer);
};

void loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t after_us,
                      void (*fn)(struct loop *loop, struct loop_timer *timer));
void loop_timer_stop(struct loop *loop, struct loop_timer *timer); /* a stopped one is fine */
static inline bool loop_timer_is_running(const struct loop_timer *timer)
{
    return timer->heap_index != 0;
}

/* Closes a socket to which last words were written: after those were read, if possible, also by a peer that is still
 * sending (linger.h). The descriptor is the loop's from here on. */
void loop_linger(struct loop *loop, int fd);

/* From on_turn_end: the connections that have output to be sent now. */
void loop_each_written(struct loop *loop, void (*visit)(struct conn *conn, void *context), void *context);

/* The pool for outputs of this loop's thread. */
struct output_pool *loop_output_pool(struct loop *loop);

/* Other descriptors (a pipe from a child, a DNS socket...): on_ready is called while it is readable (level). */
struct loop_watch {
    int fd;
    void (*on_ready)(struct loop *loop, struct loop_watch *watch);
    bool is_shared; /* the loop's, like those below */
    uint32_t tag;
    uint32_t generation;
};

bool loop_watch_start(struct loop *loop, struct loop_watch *watch, int fd,
                      void (*on_ready)(struct loop *loop, struct loop_watch *watch)); /* false: see errno */
/* A descriptor that several loops watch: what happens there wakes at least one of those that wait, not always all. */
bool loop_watch_shared(struct loop *loop, struct loop_watch *watch, int fd,
                       void (*on_ready)(struct loop *loop, struct loop_watch *watch));
void loop_watch_stop(struct loop *loop, struct loop_watch *watch); /* does not close fd; a stopped one is fine */

/* Counted by the loop, for INFO; readable by its thread. */
struct loop_stats {
    uint64_t turns;
    uint64_t waits;    /* waits that could sleep */
    uint64_t bytes_in; /* on the wire */
    uint64_t bytes_out;
    uint64_t reads;  /* receive operations */
    uint64_t writes; /* send operations */
    uint64_t accepted;
    uint64_t wakes;
};
const struct loop_stats *loop_stats(const struct loop *loop);

/* What its turns that have ended took, without their waits; in ticks (base/tick.h). From any thread. */
struct loop_times {
    uint64_t serving; /* all of it; */
    uint64_t timers;  /* of that */
    uint64_t longest; /* of one turn, since loop_forget_longest() */
};
void loop_times(const struct loop *loop, struct loop_times *times);
void loop_forget_longest(struct loop *loop);
