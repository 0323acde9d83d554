#include "server/run/blocked.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/panic.h"
#include "base/tick.h"
#include "net/loop.h"
#include "server/acl/acl_client.h"
#include "server/acl/acl_user.h"
#include "server/command/owned_args.h"
#include "server/core/client.h"
#include "server/core/deliveries.h"
#include "server/core/lifecycle.h"
#include "server/core/run_time.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/observe/command_log.h"
#include "server/observe/timing.h"
#include "server/pubsub/telling.h"
#include "server/run/dispatch.h"
#include "store/waiters.h"

#include <math.h>

struct blocked {
    struct mail mail;      /* takes the reply to the owner */
    struct list_node node; /* owner: in the list of those to be unlinked and freed */
    struct waiter waiter;
    struct owned_args words;
    const struct command *command;
    struct worker *worker; /* const: the owner */
    struct acl_user *user; /* const: a reference: its client's when it began to wait */
    struct client *client; /* guarded by the owner's roster lock: NULL when it waits no longer */
    bool is_served;        /* likewise: mail is under way */
    bool is_silent;        /* CLIENT REPLY OFF or SKIP */
    bool no_touch;
    uint8_t proto;
    unsigned db;
    bool (*can_serve)(const struct request *request, const struct entry *entry);
    struct loop_timer timer;     /* owner */
    uint64_t served_us;          /* how long that took; likewise */
    uint64_t written_offset;     /* the journal's offset behind its effect; 0: none; likewise */
    struct output reply;         /* of who serves it, then of the owner; so is: */
    struct acl_decision refusal; /* the reason of the reply */
};

/* ------------------------------------------------------------------------------------------------------- owner -- */

static struct output *output_of(const struct blocked *blocked)
{
    return blocked->is_silent ? &blocked->worker->sink : &blocked->client->conn.output;
}

/* A worker's own thread's. */
static struct state {
    struct list leaving; /* of struct blocked: to be unlinked */
} CACHE_ALIGNED states[WORKERS_MOST + 1];

/* Ends the client's wait. It is freed when no other thread can find it any more. */
static void leave(struct blocked *blocked)
{
    struct worker *worker = blocked->worker;

    worker_assert_self(worker);
    assert(blocked->client->blocked == blocked);
    blocked->client->blocked = NULL;
    if (loop_timer_is_running(&blocked->timer)) {
        loop_timer_stop(worker->loop, &blocked->timer);
        counter_add(&worker->stats.clients_in_timeout_table, UINT64_MAX); /* one less */
    }
    spinlock_acquire(&worker->roster_lock);
    blocked->client = NULL;
    spinlock_release(&worker->roster_lock);
    list_push_back(&states[worker->index].leaving, &blocked->node);
    worker_at_turn_end(worker);
}

static void go_on(struct client *client)
{
    output_clear(&client->worker->sink);
    client_unblock(client);
    client_check_output(client);
}

static void end_unserved(struct blocked *blocked, const char *error)
{
    struct client *client = blocked->client;

    if (error != NULL)
        resp_write_error_text(output_of(blocked), error);
    else
        resp_write_null_array(output_of(blocked), blocked->proto);
    leave(blocked);
    go_on(client);
}

static void on_unblock(struct client *client, const char *error)
{
    struct worker *worker = client->worker;

    timing_note_waited(worker, client->blocked->command, 0, error != NULL);
    if (error != NULL)
        worker_count_error(worker, slice_from_text(error));
    end_unserved(client->blocked, error);
}

static void on_timeout(struct loop *loop, struct loop_timer *timer)
{
    struct blocked *blocked = container_of(timer, struct blocked, timer);

    (void)loop;
    counter_add(&blocked->worker->stats.clients_in_timeout_table, UINT64_MAX); /* one less */
    if (client_end_wait(blocked->client, blocked->client->wait_count))         /* else somebody is about to answer it */
        end_unserved(blocked, NULL);
}

/* Its request was told of when it was blocked. */
static void log_served(struct worker *worker, const struct blocked *blocked)
{
    const struct request request = {.command = blocked->command,
                                    .args = blocked->words.args,
                                    .arg_count = blocked->words.arg_count,
                                    .client = blocked->client,
                                    .worker = worker};

    timing_tell(&request, blocked->served_us);
    command_log_tell_reply(&request, output_size(&blocked->reply));
}

static void deliver(struct worker *worker, struct mail *mail)
{
    struct blocked *blocked = container_of(mail, struct blocked, mail);
    struct client *client = blocked->client;

    assert(worker == blocked->worker && blocked->is_served);
    blocked->is_served = false; /* no other thread looks any more: it was claimed */
    if (client == NULL) {
        output_clear(&blocked->reply);
        return;
    }
    atomic_store(&client->card.wait, CLIENT_WAIT_NONE);
    if (UNLIKELY(blocked->refusal.verdict != ACL_ALLOWED))
        acl_note_refusal(client, blocked->refusal, ACL_CONTEXT_TOPLEVEL, blocked->command, blocked->command,
                         blocked->words.args);
    log_served(worker, blocked);
    if (blocked->written_offset != 0)
        client->written_offset = blocked->written_offset;
    output_splice(output_of(blocked), &blocked->reply);
    leave(blocked);
    go_on(client);
}

static void forget(struct client *client)
{
    if (client->blocked != NULL)
        leave(client->blocked);
}

static bool unlink_leaving(struct worker *worker)
{
    LIST_FOREACH_SAFE(link, &states[worker->index].leaving) {
        struct blocked *blocked = container_of(link, struct blocked, node);

        if (blocked->is_served) /* its mail comes yet */
            continue;
        if (!waiter_try_leave(&blocked->waiter, worker->server->store))
            return false;
        list_remove(link);
        owned_args_fini(&blocked->words);
        acl_user_release(&blocked->user);
        mem_free(blocked);
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------- blocking -- */

bool request_arg_timeout(struct request *request, uint32_t index, int64_t *timeout_ms)
{
    long double seconds;

    if (!number_parse_long_double(request_arg(request, index), &seconds)) {
        reply_error(request, "ERR timeout is not a float or out of range");
        return false;
    }
    if (seconds < 0) {
        reply_error(request, "ERR timeout is negative");
        return false;
    }
    if (seconds * 1000 > (long double)(INT64_MAX - request->access->now_ms)) {
        reply_error(request, "ERR timeout is out of range");
        return false;
    }
    *timeout_ms = (int64_t)ceill(seconds * 1000);
    return true;
}

static void start_timer(struct blocked *blocked, int64_t timeout_ms)
{
    struct loop *loop = blocked->worker->loop;
    int64_t late_us = clock_monotonic_us() - loop_now_us(loop); /* the loop's time is that of the turn */

    timeout_ms = MIN(timeout_ms, INT64_MAX / 2000);
    loop_timer_start(loop, &blocked->timer, timeout_ms * 1000 + MAX(late_us, 0), on_timeout);
    counter_add(&blocked->worker->stats.clients_in_timeout_table, 1);
}

void block_client(struct request *request, const struct block_wish *wish)
{
    struct client *client = request->client;
    struct blocked *blocked;

    assert(request->ready == NULL); /* there was something for it */
    worker_assert_inside(request->worker);
    if (request->in_exec) {
        reply_null_array(request);
        return;
    }
    client_assert_owned(client);
    assert(client->blocked == NULL && wish->key_count != 0);
    blocked = mem_alloc_zero(sizeof(*blocked));
    blocked->mail.deliver = deliver;
    blocked->worker = request->worker;
    blocked->client = client;
    blocked->user = acl_user_acquire(client->card.user);
    blocked->command = request->command;
    blocked->db = request->db;
    blocked->proto = (uint8_t)request->proto;
    blocked->is_silent = (client->flags & (CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP)) != 0;
    blocked->no_touch = (client->flags & CLIENT_NO_TOUCH) != 0;
    blocked->can_serve = wish->can_serve;
    owned_args_make(&blocked->words, wish->args != NULL ? wish->args : request->args, request->arg_count,
                    request->blobs, request->blob_count, NULL, 0);
    owned_args_find_keys(&blocked->words, request->command);
    blocked->waiter.type = wish->type;
    blocked->waiter.wants_losses = wish->wants_losses;
    blocked->waiter.has_target = wish->target != NULL;
    if (wish->target != NULL)
        blocked->waiter.target_stripe = access_stripe_of(request->access, wish->target);
    waiter_enter(&blocked->waiter, request->access, request->db, wish->keys, wish->key_count);
    request->blocked = true;
    client->blocked = blocked;
    client_block(client, on_unblock);
    if (wish->timeout_ms != 0)
        start_timer(blocked, wish->timeout_ms);
}

/* ----------------------------------------------------------------------------------------------------- serving -- */

/* From here on nobody else ends its wait. The owner's client may leave all the same; then the mail finds nobody. */
static bool claim(struct blocked *blocked)
{
    bool claimed;

    spinlock_acquire(&blocked->worker->roster_lock);
    claimed = blocked->client != NULL && client_card_claim(&blocked->client->card, CLIENT_WAIT_SERVED);
    if (claimed)
        blocked->is_served = true;
    spinlock_release(&blocked->worker->roster_lock);
    return claimed;
}

static const struct key *own_key(const struct owned_args *words, const struct registered_key *key)
{
    const struct slice name = {key->name, key->size};

    for (uint32_t i = 0; i < words->key_count; i++) {
        if (slice_equal(words->keys[i].name, name))
            return &words->keys[i];
    }
    panic("A key without waiters is ready");
}

static void run(struct blocked *blocked, struct request *request)
{
    struct access *access = request->access;
    struct worker *worker = request->worker;
    uint64_t dirty = access->dirty, start = tick_now(), span;

    request->command->run(request);
    if (access->dirty != dirty)
        counter_add(&access->counters->dirty, access->dirty - dirty);
    if (access->effects != NULL && access->dirty != dirty && request->effect == EFFECT_OWN_WORDS) {
        effects_add(access->effects, request->db, request->args, request->arg_count);
        effect_describe(request, request->args, request->arg_count);
    }
    if (access->effects != NULL)
        effects_end_command(access->effects, request->has_operations);
    access_forget_stored(access);
    span = tick_now() - start;
    timing_note_waited(worker, request->command, span, request->failed);
    counter_add(&worker->stats.command_ticks, span);
    blocked->written_offset = dispatch_journal(worker);
    blocked->served_us = tick_to_ns(span) / 1000;
}

/* False: it stays blocked. */
static bool serve(struct worker *worker, struct wait_node *node, const struct entry *entry)
{
    struct blocked *blocked = container_of(node->waiter, struct blocked, waiter);
    const struct owned_args *words = &blocked->words;
    struct access *access = &worker->run.access;
    struct request request;
    bool is_loss = entry == NULL || entry->type != (uint32_t)blocked->waiter.type, no_touch = access->no_touch;

    request_init(&request, worker, NULL, blocked->command, words->args, words->arg_count, &blocked->reply);
    request_set_keys(&request, words->keys, words->key_count);
    request_set_blobs(&request, words->blobs, words->blob_count);
    request.proto = blocked->proto;
    request.db = blocked->db;
    request.ready = own_key(words, node->key);
    if (is_loss ? !blocked->waiter.wants_losses : blocked->can_serve != NULL && !blocked->can_serve(&request, entry))
        return false;
    assert(!blocked->waiter.has_target || access_holds(access, blocked->waiter.target_stripe));
    if (!claim(blocked))
        return false;
    waiter_leave_node(access->store, node);
    output_init(&blocked->reply, NULL);
    access->no_touch = blocked->no_touch;
    telling_noted(worker); /* reports the change that filled it, and earlier ones */
    if (!acl_refuses_served(&request, blocked->user, &blocked->refusal))
        run(blocked, &request);
    access->no_touch = no_touch;
    deliveries_post_mail(worker, blocked->worker, &blocked->mail); /* from here on it is its owner's */
    return true;
}

static void serve_key(struct worker *worker, struct registered_key *ready)
{
    struct access *access = &worker->run.access;
    const struct key key = registered_key_key(ready);
    const struct entry *entry = access_probe(access, ready->db, &key);

    LIST_FOREACH_SAFE(link, &ready->nodes) {
        if (entry == NULL && ready->loss_count == 0)
            break;
        if (serve(worker, container_of(link, struct wait_node, node), entry))
            entry = access_probe(access, ready->db, &key);
    }
    access->found_key = NULL; /* it points at ours */
    waiters_settle(access, ready);
}

/* The command that waited begins now: the command that filled its key may have taken long, and the key may have
 * expired. */
void blocked_serve(struct worker *worker)
{
    struct registered_key *ready;

    worker_assert_inside(worker);
    access_advance(&worker->run.access, run_time_now(worker));
    while ((ready = waiters_take_ready(&worker->run.access)) != NULL)
        serve_key(worker, ready);
    (void)dispatch_journal(worker); /* a look at a key may have found that its time is over */
}

/* Inside the gate, like everything that touches a stripe: the owner of the gate walks the registries without locks. */
static void turn_end(struct worker *worker)
{
    if (list_is_empty(&states[worker->index].leaving))
        return;
    worker_at_turn_end(worker); /* of the next turn, if some are left; where the gate is closed its opening wakes us */
    if (!gate_enter(&worker->member))
        return;
    (void)unlink_leaving(worker);
    gate_leave(&worker->member);
}

static void init(struct worker *worker)
{
    list_init(&states[worker->index].leaving);
}

static void fini(struct worker *worker)
{
    if (!unlink_leaving(worker))
        panic("A stripe is held when the last worker ends");
}

const struct lifecycle blocked_lifecycle = {
    .worker_init = init,
    .worker_fini = fini,
    .worker_turn_end = turn_end,
    .client_withdraw = forget,
};
