/* A worker: one thread with an event loop and the clients it owns, a member of the gate, with a mailbox.
 *
 * Threads: a worker's fields are its own thread's, except what says otherwise. */
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
enum { WORKER_OF_LOADER = WORKERS_MOST }; /* index of one that has no clients and is none of the server's: loading.c */

/* A message: delivered by the receiving worker in its own thread, outside the gate; `deliver` frees it. */
struct mail {
    struct mpsc_node node;
    void (*deliver)(struct worker *worker, struct mail *mail);
};

/* Counters of one worker, read by others (relaxed) and summed on demand. */
struct worker_stats {
    _Atomic uint64_t connections_received, rejected_connections, commands, errors, lock_waits;
    _Atomic uint64_t query_limit_closed, output_limit_closed, evicted_clients;
    _Atomic uint64_t net_in, net_out, reads, writes, turns;
    _Atomic uint64_t command_ticks;      /* that commands took */
    _Atomic uint64_t upkeep_ticks;       /* that took what is to be done at the ends of some turns */
    _Atomic uint64_t aof_ticks;          /* of these: that looking after the append-only file took */
    _Atomic uint64_t turn_commands_most; /* in one turn; CONFIG RESETSTAT, in any thread, sets it to 0 */
    uint64_t commands_before;            /* owner: the worker; when the turn before ended */
    _Atomic uint64_t expire_us, expire_cuts, auth_failures;
    _Atomic uint64_t denied_commands, denied_keys, denied_channels;
    _Atomic uint64_t parked_count;                /* commands that wait now */
    _Atomic uint64_t parked_retries;              /* tries to run one */
    _Atomic uint64_t parked_by_gate;              /* of many stripes, which they did not get all at once */
    _Atomic uint64_t parked_tries_most;           /* of one of these */
    _Atomic uint64_t prefetches, prefetched_keys; /* of groups */
    _Atomic uint64_t timed_waits;                 /* blocked clients with a time-out now */
    _Atomic uint64_t recent_input[RECENT_SECONDS], recent_output[RECENT_SECONDS]; /* largest buffers, by second */
    unsigned recent_index; /* owner: the worker; the current second's */
    _Atomic uint64_t client_count;
    struct command_times *times;    /* by command id */
    _Atomic uint64_t *failed_calls; /* by command id */
    _Atomic uint64_t *rejected_calls;
    _Atomic uint32_t error_code_count;
    struct error_count {
        char code[ERROR_CODE_BYTES]; /* const once error_code_count covers it */
        _Atomic uint64_t count;
    } error_codes[ERROR_CODES_MOST + 1]; /* the last is for all codes for which there is no room */
};

/* Why a command cannot run, whatever the state of its client. */
enum command_fault { FAULT_NONE, FAULT_UNKNOWN, FAULT_UNKNOWN_SUBCOMMAND, FAULT_ARITY, FAULT_NO_MEMORY };

/* One parsed command on its way to run. */
struct job {
    struct resp_command words;
    const struct command *command; /* NULL: unknown */
    enum command_fault fault;
    enum access_class access;
    uint32_t first_key, key_count; /* in the execution's keys */
    bool by_gate;                  /* takes the gate instead of stripes: parking.c */
    size_t end;                    /* where the next command begins in the bytes presented */
};

/* What the running command, or group, has. It is put aside as one while others are served from inside of a script. */
struct execution {
    struct access access;
    struct effects effects;
    const struct request *running; /* NULL: no command; for the crash report */
    struct resp_scratch scratch;
    struct job jobs[GROUP_MOST];
    struct key_list keys; /* of the jobs */
    struct {
        uint32_t *items, count, capacity;
    } stripes; /* to lock: ascending */
};

/* Commands that wait: parking.h. */
struct parking {
    struct list gate, paused;       /* of struct parked */
    struct list queues;             /* of struct parked_queue: one for each stripe that somebody waits for */
    struct parked_queue *by_stripe; /* NULL: nobody has ever waited */
    unsigned asked_count;           /* of those who have asked for the gate */
    uint64_t next_number;
};

/* What may let parked commands go on. */
enum parking_news {
    PARKING_STRIPE = 1 << 0, /* a stripe was released, and the worker's bit taken out of its wait mask */
    PARKING_GATE = 1 << 1,   /* it is open, or may be had */
    PARKING_PAUSE = 1 << 2,
    PARKING_BUSY = 1 << 3 /* a script runs for long: who waits for what it has is told so */
};

struct worker {
    unsigned index;          /* const */
    uint32_t thread_id;      /* spinlock_self_id of its thread: worker_adopt */
    uint32_t acl_generation; /* of the users that its clients have: see acl_client.h */
    struct server *server;   /* const */
    struct thread thread;
    struct loop *loop;
    struct gate_member member;
    struct mpsc mailbox;                        /* any thread pushes */
    _Atomic bool has_requests;                  /* atomic: a card of ours carries a request */
    _Atomic bool stop;                          /* atomic: leave the loop */
    struct spinlock roster_lock;                /* rank LOCK_ROSTER */
    struct list roster GUARDED_BY(roster_lock); /* of struct client_card */
    struct list clients;
    struct parking parking;
    struct stripe *busy_stripe;       /* that the last command was not to have */
    _Atomic uint32_t parking_news;    /* atomic: enum parking_news, not looked at yet */
    struct list leaving_watches;      /* of struct watch_set: to be unlinked */
    struct list held;                 /* clients that published faster than others deliver: see deliveries.h */
    uint64_t mailed;                  /* bit i: worker i, or this one, has mail of ours and was not woken yet */
    uint64_t slow_workers;            /* bit i: worker i was found far behind with its mail */
    uint64_t turn_mail_bytes;         /* delivered in this turn */
    _Atomic uint64_t backlog_bytes;   /* atomic, seq_cst: mail for this worker that counts, not delivered yet */
    _Atomic uint64_t waiting_workers; /* atomic, seq_cst: bit i: worker i is to be woken when that has become less */
    bool has_deferred;                /* something was put off until no lock is held: worker_run_deferred */
    bool turn_end_due;                /* see worker_at_turn_end */
    bool has_journaled;               /* in this turn */
    bool may_own_gate;                /* it stands in the gate's queue, for a parked command or a wish */
    unsigned gate_wishes;             /* enum gate_wish: what it asks the gate for by itself */
    bool reentrant;                   /* serves other clients from inside of a script: reentrant.h */
    bool escalated;                   /* the running command is alone since dispatch_escalate */
    struct store_counters counters;
    struct worker_stats stats;
    struct execution run;
    struct resp_limits limits, limits_unauthenticated;
    struct output sink;            /* replies nobody wants */
    int64_t now_ms;                /* wall clock, read at time_tick; the next millisecond begins time_span later */
    uint64_t time_tick, time_span; /* ticks; see worker_time_at */
    struct loop_timer second_timer, rate_timer;
};

/* The worker whose thread this is; NULL in other threads. */
struct worker *worker_self(void);
/* A worker's thread, and its loop's, is the one that made it, then the one that runs it (or, without a loop that turns,
 * uses it), then the one that ends it. Each takes it over when the one before has let go. */
void worker_adopt(struct worker *worker);

static inline bool worker_is_mine(const struct worker *worker) /* is this its thread? */
{
    return worker->thread_id == spinlock_self;
}
static inline void worker_assert_self(const struct worker *worker)
{
    assert(worker_is_mine(worker));
}
static inline void worker_assert_zero(const struct worker *worker) /* this is its thread, and it is worker 0 */
{
    assert(worker->index == 0);
    worker_assert_self(worker);
}
/* Its thread, and the worker has nothing of what is shared: it is outside of the gate and holds no lock; or it serves
 * others from inside of a script. */
static inline void worker_assert_outside(const struct worker *worker)
{
    worker_assert_self(worker);
    assert(worker->reentrant || (!gate_is_inside(&worker->member) && spinlock_held_count == 0));
}
/* Its thread, and inside of the gate, or alone. */
static inline void worker_assert_inside(const struct worker *worker)
{
    worker_assert_self(worker);
    assert(gate_is_inside(&worker->member) || gate_is_alone());
}

/* Carries out what others have asked of its clients (enum client_request_flag). Its thread. */
void worker_serve_requests(struct worker *worker);

void worker_init(struct worker *worker, struct server *server, unsigned index);
void worker_fini(struct worker *worker);      /* its thread has ended, or is this one */
void worker_run(void *argument);              /* a thread_fn: until worker->stop */
bool worker_open_loop(struct worker *worker); /* false: the system refuses; errno */
/* Counts an error reply under its code: the first of several words, ERR if there is but one or if it is very long. */
void worker_count_error(struct worker *worker, struct slice text);
void worker_wake(struct worker *worker); /* any thread; no lock is held, or it is the worker's own */
void worker_wake_parked(struct worker *worker, enum parking_news news); /* the same, with that for what is parked */
void worker_note_parked(struct worker *worker, enum parking_news news); /* any thread: to be woken by the caller */
struct client *worker_find_client(struct worker *worker, uint64_t id);  /* its thread; NULL: it has gone */
/* Any thread. Hands the mail over: *mail is NULL afterwards. */
void worker_post(struct worker *worker, struct mail **mail);
void worker_post_quietly(struct worker *worker, struct mail *mail); /* without waking it; also under locks */
/* Its thread, no lock held, outside the gate: delivers what is there, until mail that counts `most_bytes` was. */
void worker_read_mail(struct worker *worker, uint64_t most_bytes);
/* Likewise: all that was posted before the mail that sets `reached`. */
void worker_read_mail_until(struct worker *worker, const bool *reached);
/* Likewise: until deliveries (deliveries.h) of that many bytes were read or none counts any more; waits for those that
 * are just being put into the mailbox. */
void worker_read_deliveries(struct worker *worker, uint64_t bytes);
/* Likewise: at least all deliveries that count so far. */
static inline void worker_read_mail_so_far(struct worker *worker)
{
    uint64_t bytes = atomic_load(&worker->backlog_bytes);

    if (UNLIKELY(bytes != 0))
        worker_read_deliveries(worker, bytes);
}

/* Its thread. The worker_turn_end hooks are called at the end of this turn. */
static inline void worker_at_turn_end(struct worker *worker)
{
    worker_assert_self(worker);
    worker->turn_end_due = true;
}
/* Its thread, no lock held. Carries out what was put off until then (worker->has_deferred), and wakes workers that got
 * mail. */
void worker_run_deferred(struct worker *worker);

/* The wall clock in ms. It is read at most once a millisecond: in between the ticks tell that the last reading still
 * holds. Its jumps are seen within a millisecond, and are not smoothed: deadlines are times of the wall clock. */
int64_t worker_sample_time(struct worker *worker);
/* At `tick`, a reading of tick_now in this thread, as commands get theirs; never a time before it. */
static ALWAYS_INLINE int64_t worker_time_at(struct worker *worker, uint64_t tick)
{
    /* A tick before the last reading is far beyond the span, too. */
    return LIKELY(tick - worker->time_tick < worker->time_span) ? worker->now_ms : worker_sample_time(worker);
}
static inline int64_t worker_now_ms(struct worker *worker)
{
    return worker_time_at(worker, tick_now());
}
