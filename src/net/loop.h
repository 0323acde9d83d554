/* loop.h: the event loop of one thread. It waits for connections, listeners, timers and mail, and sends output.
 *
 * A turn has these steps: it waits; serves connections with data (conn.h), accepts (listener.h) and runs timers; calls
 * on_wake if another thread called loop_wake; serves connections that were resumed meanwhile; calls on_turn_end; sends
 * the output written in this turn, with one send for each connection; takes closed connections down (on_closed). The
 * loop never polls with a short timeout, except for some microseconds (spin_us) while events come at that pace.
 *
 * There are two backends with one interface: epoll, and io_uring where it was compiled in and the kernel allows it.
 * Everything of a loop is used by its own thread, the one that created or adopted it, except where a function says
 * otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct loop;

enum loop_kind { LOOP_AUTO, LOOP_EPOLL, LOOP_IO_URING };

struct loop_options {
    enum loop_kind kind;                    /* LOOP_IO_URING falls back to epoll if io_uring does not work */
    uint32_t spin_us;                       /* it looks for events that long before it sleeps, see loop.c; 0: never */
    void (*on_wake)(struct loop *loop);     /* another thread called loop_wake(): read the mailbox. May be NULL */
    void (*on_turn_end)(struct loop *loop); /* called after all events are served, before output is sent. May be NULL */
    void *user;                             /* returned by loop_user() */
};

struct loop *loop_create(const struct loop_options *options); /* NULL: the system refuses descriptors; see errno */

/* Closes all connections that are open, with on_closed(CONN_CLOSED_LOCAL). Detach its listeners first. Accepts NULL;
 * leaves NULL. */
void loop_destroy(struct loop **handle);
/* The calling thread becomes the loop's own thread. The previous thread must not use the loop any more. */
void loop_adopt(struct loop *loop);

void *loop_user(const struct loop *loop);            /* any thread */
const char *loop_kind_name(const struct loop *loop); /* any thread; "epoll", "io_uring" */

/* Runs one turn. Waits at most timeout_us for an event (negative: without limit, 0: not at all). */
void loop_turn(struct loop *loop, int64_t timeout_us);

/* From a handler that may run for a while: whether another turn would find something to do. Costs a system call. */
bool loop_has_events(const struct loop *loop);

/* Call it from a handler that runs very long. Serves events of other connections and sends output; runs no timers and
 * no on_wake, and takes no connection down. The handler's connection must be paused. Does nothing if the backend does
 * not support it. */
void loop_serve_reentrant(struct loop *loop);

/* Any thread: makes the loop run on_wake soon. Several calls count as one. Costs one atomic operation unless the loop
 * sleeps. */
void loop_wake(struct loop *loop);

/* Any thread: the time since the loop's last wait, in microseconds; 0 while it waits. */
int64_t loop_serving_us(const struct loop *loop);

/* The time of this turn: monotonic, read once after the wait, never ahead of the clock. loop_update_time() reads it
 * again. tick_setup() must have been called. */
int64_t loop_now_us(const struct loop *loop);
int64_t loop_update_time(struct loop *loop);

/* Timers, embedded in their owner. `fn` runs once, at least after_us after the turn's time, and may start the timer
 * again. Starting a running timer moves it. Zeroed memory is a stopped timer. */
struct loop_timer {
    int64_t due_us;
    uint32_t heap_index; /* index + 1; 0: stopped */
    void (*fn)(struct loop *loop, struct loop_timer *timer);
};

void loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t after_us,
                      void (*fn)(struct loop *loop, struct loop_timer *timer));
void loop_timer_stop(struct loop *loop, struct loop_timer *timer); /* does nothing if the timer is stopped */
static inline bool loop_timer_is_running(const struct loop_timer *timer)
{
    return timer->heap_index != 0;
}

/* Closes a socket whose last output the peer should still receive, even if it goes on sending (linger.h). The loop owns
 * the descriptor from here on. */
void loop_linger(struct loop *loop, int fd);

/* Call it from on_turn_end: visits the connections with output to send now. */
void loop_each_written(struct loop *loop, void (*visit)(struct conn *conn, void *context), void *context);

/* The pool for outputs that this loop's thread uses. Any thread may read its output_pool_transient_bytes. */
struct output_pool *loop_output_pool(struct loop *loop);

/* Watches another descriptor (a pipe of a child, for example): on_ready is called in each turn while it is readable. */
struct loop_watch {
    int fd;
    void (*on_ready)(struct loop *loop, struct loop_watch *watch);
    bool is_shared; /* for the loop only, as the two members below */
    uint32_t tag;
    uint32_t generation;
};

bool loop_watch_start(struct loop *loop, struct loop_watch *watch, int fd,
                      void (*on_ready)(struct loop *loop, struct loop_watch *watch)); /* false: see errno */
/* For a descriptor that several loops watch: an event wakes at least one of the waiting loops, not always all. */
bool loop_watch_shared(struct loop *loop, struct loop_watch *watch, int fd,
                       void (*on_ready)(struct loop *loop, struct loop_watch *watch));
/* Does not close fd; does nothing if the watch is stopped. */
void loop_watch_stop(struct loop *loop, struct loop_watch *watch);

/* Counters of the loop, for INFO. Its own thread reads them. */
struct loop_stats {
    uint64_t turns;
    uint64_t waits;    /* waits that were allowed to sleep */
    uint64_t spins;    /* those that looked for events first (loop_options.spin_us) */
    uint64_t bytes_in; /* bytes received, encrypted ones with TLS */
    uint64_t bytes_out;
    uint64_t reads;  /* receive operations */
    uint64_t writes; /* send operations */
    uint64_t accepted;
    uint64_t wakes;
};
const struct loop_stats *loop_stats(const struct loop *loop);

/* The duration of finished turns without their waits, in ticks (base/tick.h). Any thread. */
struct loop_times {
    uint64_t serving; /* all of it */
    uint64_t timers;  /* the part of `serving` that ran timers */
    uint64_t longest; /* the longest turn since loop_forget_longest() */
};
void loop_times(const struct loop *loop, struct loop_times *times);
void loop_forget_longest(struct loop *loop);
