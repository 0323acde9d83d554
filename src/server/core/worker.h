/* A worker: a thread with an event loop, the clients it owns, and a mailbox. It is a member of the gate.
 *
 * Threads: a worker's fields are its own thread's, except where a comment says otherwise. */
#pragma once

#include "base/gate.h"
#include "base/list.h"
#include "base/mpsc.h"
#include "base/thread.h"
#include "base/tick.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/resp.h"
#include "server/command/key_list.h"
#include "server/core/stats.h"
#include "store/access.h"
#include "store/changed.h"
#include "store/effects.h"
#include "store/eviction.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct client;
struct cron_runner;
struct request;
struct server;
struct worker;

enum { WORKERS_MOST = 64, GROUP_MOST = 8 };
/* Index of the loader's worker, which has no clients and is not one of the server's: loading.c. */
enum { WORKER_OF_LOADER = WORKERS_MOST };

/* A message. The receiving worker calls `deliver` in its own thread, outside the gate; `deliver` frees the message. */
struct mail {
    struct mpsc_node node;
    void (*deliver)(struct worker *worker, struct mail *mail);
};

/* Counters of one worker. Other threads read them (relaxed) and add them up on demand. */
struct worker_stats {
#define COUNTER(name) _Atomic uint64_t name;
    WORKER_COUNTERS(COUNTER)
    WORKER_GAUGES(COUNTER)
#undef COUNTER
    _Atomic uint64_t command_ticks;      /* time of commands */
    _Atomic uint64_t upkeep_ticks;       /* time of work at the end of turns */
    _Atomic uint64_t aof_ticks;          /* the part of this time for the append-only file */
    _Atomic uint64_t turn_commands_most; /* most commands in one turn; CONFIG RESETSTAT, in any thread, sets it to 0 */
    uint64_t commands_before;            /* owner: the worker; commands at the end of the turn before */
    _Atomic uint64_t parked_tries_most;  /* most attempts of one command with many stripes */
    _Atomic uint64_t recent_input[RECENT_SECONDS], recent_output[RECENT_SECONDS]; /* largest buffers, by second */
    unsigned recent_index; /* owner: the worker; index of the current second */
    _Atomic uint64_t client_count;
    struct command_times *times;    /* by command id */
    _Atomic uint64_t *failed_calls; /* by command id */
    _Atomic uint64_t *rejected_calls;
    _Atomic uint32_t error_code_count;
    struct error_count {
        char code[ERROR_CODE_BYTES]; /* const once error_code_count covers it */
        _Atomic uint64_t count;
    } error_codes[ERROR_CODES_MOST + 1]; /* the last one counts all codes without a place */
};

/* Errors of a command that do not depend on the client's state. */
enum command_fault { FAULT_NONE, FAULT_UNKNOWN, FAULT_UNKNOWN_SUBCOMMAND, FAULT_ARITY, FAULT_NO_MEMORY };

/* A parsed command that is about to run. */
struct job {
    struct resp_command words;
    const struct command *command; /* NULL: unknown */
    enum command_fault fault;
    enum access_class access;
    uint32_t first_key, key_count; /* in execution.keys */
    bool by_gate;                  /* takes the gate instead of its stripes: parking.c */
    size_t end;                    /* end of the command in the given bytes */
};

/* State of the running command or group. It is put aside as a whole while other clients are served inside a script. */
struct execution {
    struct access access;
    struct effects effects;
    struct changed changed;        /* beside the effects, while the journal stamps */
    const struct request *running; /* NULL: no command; for the crash report */
    struct resp_scratch scratch;
    struct job jobs[GROUP_MOST];
    struct key_list keys; /* keys of the jobs */
    struct {
        uint32_t *items, count, capacity;
    } stripes; /* stripes to lock, ascending */
};

/* Parked commands: parking.h. */
struct parking {
    struct list gate, paused;       /* of struct parked */
    struct list queues;             /* of struct parked_queue: one for each stripe with parked commands */
    struct parked_queue *by_stripe; /* NULL: no command was ever parked */
    unsigned asked_count;           /* number of parked commands that have asked for the gate */
    uint64_t next_number;
};

/* Events after which parked commands may continue. */
enum parking_news {
    PARKING_STRIPE = 1 << 0, /* a stripe was released, and this worker's bit was removed from its wait mask */
    PARKING_GATE = 1 << 1,   /* the gate is open, or may be owned */
    PARKING_PAUSE = 1 << 2,
    PARKING_BUSY = 1 << 3 /* a script runs for long: commands that need its keys get an error */
};

struct worker {
    unsigned index;          /* const */
    uint32_t thread_id;      /* spinlock_self_id of its thread: worker_adopt */
    uint32_t acl_generation; /* version of the users that its clients have: acl_client.h */
    struct server *server;   /* const */
    struct thread thread;
    struct loop *loop;
    struct gate_member member;
    struct mpsc mailbox;                        /* any thread posts */
    _Atomic bool has_requests;                  /* atomic: one of its cards has a request */
    _Atomic bool stop;                          /* atomic: the thread leaves the loop */
    struct spinlock roster_lock;                /* rank LOCK_ROSTER */
    struct list roster GUARDED_BY(roster_lock); /* of struct client_card */
    struct list clients;
    struct parking parking;
    struct stripe *busy_stripe;    /* the stripe that the last command could not lock; script_turn.alone: the turn */
    bool is_outnumbered;           /* the last one did not have the turn to be alone, since scripts shared it */
    uint32_t checked_changes;      /* command_block_changes when the commands were checked that run next */
    _Atomic uint32_t parking_news; /* atomic: enum parking_news, not yet handled */
    struct list leaving_watches;   /* of struct watch_set: sets to be unlinked */
    struct list held;              /* clients that wait because a receiver is behind: deliveries.h */
    uint64_t mailed;          /* bit i: worker i, or this one, has got mail from this worker and was not woken yet */
    uint64_t slow_workers;    /* bit i: worker i was found far behind with its mail */
    uint64_t turn_mail_bytes; /* bytes delivered in this turn */
    _Atomic uint64_t backlog_bytes; /* atomic: seq_cst; bytes of counted mail for this worker that are not delivered */
    _Atomic uint64_t waiting_workers; /* atomic: seq_cst; bit i: wake worker i when the backlog has become smaller */
    bool has_deferred;                /* work was deferred until no lock is held: worker_run_deferred */
    bool turn_end_due;                /* see worker_at_turn_end */
    bool has_journaled;               /* in this turn a command was journaled */
    bool may_own_gate;                /* it is in the gate's queue, for a parked command or a wish */
    unsigned gate_wishes;             /* enum gate_wish: reasons of its own to ask for the gate */
    bool reentrant;                   /* serves other clients inside a script: reentrant.h */
    bool escalated;                   /* the running command is alone since dispatch_escalate */
    struct store_counters counters;
    struct worker_stats stats;
    struct execution run;
    struct resp_limits limits, limits_unauthenticated;
    struct output sink;            /* replies that are discarded */
    int64_t now_ms;                /* wall clock, read at time_tick; the next millisecond begins time_span later */
    uint64_t time_tick, time_span; /* ticks; see worker_time_at */
    _Atomic int64_t run_time_ms;   /* atomic: see run_time.h; commands that run use no time below it */
    struct loop_timer second_timer, rate_timer;
};

/* The worker of the calling thread; NULL in other threads. */
struct worker *worker_self(void);
/* A worker's thread, and its loop's, is first the thread that creates it, then the one that runs it (or uses it without
 * turning the loop), then the one that ends it. Each thread adopts the worker after the one before has stopped using
 * it. */
void worker_adopt(struct worker *worker);

static inline bool worker_is_mine(const struct worker *worker) /* whether the caller is its thread */
{
    return worker->thread_id == spinlock_self;
}
static inline void worker_assert_self(const struct worker *worker)
{
    assert(worker_is_mine(worker));
}
static inline void worker_assert_zero(const struct worker *worker) /* asserts its thread, and that it is worker 0 */
{
    assert(worker->index == 0);
    worker_assert_self(worker);
}
/* Asserts the worker's thread, and that it holds nothing shared: it is outside of the gate and holds no lock, or it
 * serves other clients inside a script. */
static inline void worker_assert_outside(const struct worker *worker)
{
    worker_assert_self(worker);
    assert(worker->reentrant || (!gate_is_inside(&worker->member) && spinlock_held_count == 0));
}
/* Asserts the worker's thread, and that it is inside of the gate, or alone. */
static inline void worker_assert_inside(const struct worker *worker)
{
    worker_assert_self(worker);
    assert(gate_is_inside(&worker->member) || gate_is_alone());
}

/* Serves requests on the cards of its clients (enum client_request_flag). Its thread. */
void worker_serve_requests(struct worker *worker);

void worker_init(struct worker *worker, struct server *server, unsigned index);
void worker_fini(struct worker *worker);      /* after its thread has ended, or in its thread */
void worker_run(void *argument);              /* a thread_fn: runs until worker->stop */
bool worker_open_loop(struct worker *worker); /* false: the system refuses it; see errno */
/* Counts an error reply under its code: the first of several words, or ERR if there is one word or it is very long. */
void worker_count_error(struct worker *worker, struct slice text);
void worker_wake(struct worker *worker); /* any thread; no lock is held, or it is the worker's own */
void worker_wake_parked(struct worker *worker, enum parking_news news); /* the same, with news for parked commands */
void worker_note_parked(struct worker *worker, enum parking_news news); /* any thread; the caller wakes the worker */
struct client *worker_find_client(struct worker *worker, uint64_t id);  /* its thread; NULL: there is no such client */
/* Any thread. Takes the mail over: *mail is NULL afterwards. */
void worker_post(struct worker *worker, struct mail **mail);
void worker_post_quietly(struct worker *worker, struct mail *mail); /* does not wake the worker; also under locks */
/* Its thread, no lock held, outside the gate: delivers mail until `most_bytes` of counted mail were delivered. */
void worker_read_mail(struct worker *worker, uint64_t most_bytes);
/* Likewise: delivers all mail posted before the mail that sets `reached`. */
void worker_read_mail_until(struct worker *worker, const bool *reached);
/* Likewise: delivers until deliveries (deliveries.h) of that many bytes were read or none is left; waits for deliveries
 * that are just being posted. */
void worker_read_deliveries(struct worker *worker, uint64_t bytes);
/* Likewise: delivers at least all deliveries counted so far. */
static inline void worker_read_mail_so_far(struct worker *worker)
{
    uint64_t bytes = atomic_load(&worker->backlog_bytes);

    if (UNLIKELY(bytes != 0))
        worker_read_deliveries(worker, bytes);
}

/* Its thread. The worker_turn_end hooks will be called at the end of this turn. */
static inline void worker_at_turn_end(struct worker *worker)
{
    worker_assert_self(worker);
    worker->turn_end_due = true;
}
/* Its thread, no lock held. Does deferred work (worker->has_deferred), and wakes workers that got mail. */
void worker_run_deferred(struct worker *worker);

/* The wall clock in ms. It is read at most once a millisecond; between readings ticks tell whether the last reading
 * still holds. Jumps of the clock are seen within a millisecond and are not smoothed: deadlines are times of the wall
 * clock. */
int64_t worker_sample_time(struct worker *worker);
/* The wall clock in ms at `tick`, a reading of tick_now in this thread; never a time before the tick. */
static ALWAYS_INLINE int64_t worker_time_at(struct worker *worker, uint64_t tick)
{
    /* A tick before the last reading is far beyond the span, too. */
    return LIKELY(tick - worker->time_tick < worker->time_span) ? worker->now_ms : worker_sample_time(worker);
}
static inline int64_t worker_now_ms(struct worker *worker)
{
    return worker_time_at(worker, tick_now());
}
