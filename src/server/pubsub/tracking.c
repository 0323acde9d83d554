#include "server/pubsub/tracking.h"

#include "base/assert.h"
#include "base/blob.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/random.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/core/deliveries.h"
#include "server/core/lifecycle.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/pubsub/broadcast.h"
#include "server/pubsub/telling.h"
#include "server/pubsub/tracking_priv.h"
#include "server/pubsub/tracking_table.h"

#include <stdlib.h>
#include <string.h>

static _Atomic int64_t option_tracking_table_max_keys; /* global: option storage */

static struct spinlock count_lock = {.rank = LOCK_REGISTRY}; /* global: rank LOCK_REGISTRY */
static _Atomic uint64_t client_total; /* global: clients that track; changed under count_lock, read relaxed */

/* ------------------------------------------------------------------------------------------------------ clients -- */

static uint64_t client_count(void)
{
    return atomic_load_explicit(&client_total, memory_order_relaxed);
}

/* The store reports changes while a client tracks; when the last one stops, the table is emptied. */
static void count_clients(struct worker *worker, bool one_more)
{
    struct store *store = worker->server->store;
    uint64_t count;

    worker_assert_self(worker);
    spinlock_acquire(&count_lock);
    assert(one_more || client_count() != 0);
    count = client_count() + (one_more ? 1 : UINT64_MAX);
    atomic_store_explicit(&client_total, count, memory_order_relaxed);
    store_set_observed(store, OBSERVE_CHANGES, count != 0 ? OBSERVE_CHANGES : 0);
    spinlock_release(&count_lock);
    if (count == 0)
        worker->has_deferred = true;
}

/* A worker's; its own thread's. */
static struct state {
    struct list clients; /* of struct tracking */
    struct buffer notes; /* keys that changed in this moment, each a struct noted */
} CACHE_ALIGNED states[WORKERS_MOST + 1];

static struct state *of(const struct worker *worker)
{
    assert(worker->index <= WORKERS_MOST);
    return &states[worker->index];
}

static void show(struct client *client)
{
    const struct tracking *tracking = client->tracking;
    int64_t redirect = -1;

    if (tracking != NULL)
        redirect = tracking->redirect != NULL ? (int64_t)tracking->redirect->id : 0;
    atomic_store_explicit(&client->card.redirect, redirect, memory_order_relaxed);
    atomic_store_explicit(&client->card.flags, client->flags, memory_order_relaxed);
}

void tracking_enable(struct client *client, uint32_t mode, struct client_ref *redirect)
{
    struct tracking *tracking = client->tracking;

    client_assert_owned(client);
    if (tracking == NULL) {
        tracking = mem_alloc_zero(sizeof(*tracking));
        tracking->client = client;
        client->tracking = tracking;
        (void)client_ref_of(client);
        list_push_back(&of(client->worker)->clients, &tracking->node);
        count_clients(client->worker, true);
    }
    client_ref_release(&tracking->redirect);
    tracking->redirect = redirect;
    tracking->mode = mode | (tracking->mode & TRACKING_CACHING) | TRACKING_ON;
    client->flags &= ~(uint32_t)(CLIENT_TRACKING_BROKEN | CLIENT_TRACKING_BCAST);
    client->flags |= CLIENT_TRACKING | ((mode & TRACKING_BCAST) != 0 ? CLIENT_TRACKING_BCAST : 0);
    show(client);
}

void tracking_disable(struct client *client)
{
    struct tracking *tracking = client->tracking;

    client_assert_owned(client);
    if (tracking == NULL)
        return;
    assert(tracking->client == client);
    broadcast_leave(tracking);
    client_ref_release(&tracking->redirect);
    list_remove(&tracking->node);
    mem_free(tracking);
    client->tracking = NULL;
    client->flags &= ~(uint32_t)(CLIENT_TRACKING | CLIENT_TRACKING_BROKEN | CLIENT_TRACKING_BCAST);
    count_clients(client->worker, false);
    show(client);
}

/* ------------------------------------------------------------------------------------------------------- noting -- */

static bool is_over_limit(void)
{
    uint64_t most = OPTION_GET_U64(option_tracking_table_max_keys), count = tracking_table_key_count();

    return UNLIKELY(count != 0) && ((most != 0 && count > most) || client_count() == 0);
}

static bool remembers(const struct client *client)
{
    const uint32_t mode = client->tracking->mode;

    return (mode & TRACKING_BCAST) == 0 && (mode & (TRACKING_OPTIN | TRACKING_CACHING)) != TRACKING_OPTIN &&
           (mode & (TRACKING_OPTOUT | TRACKING_CACHING)) != (TRACKING_OPTOUT | TRACKING_CACHING);
}

static void remember_keys(const struct request *request)
{
    struct client *client = request->client;

    assert(client->card.ref != NULL);
    if (request->key_count != 0) /* DBSIZE and the like also run outside of the gate */
        worker_assert_inside(request->worker);
    for (uint32_t i = 0; i < request->key_count; i++) {
        const struct key *key = &request->keys[i];

        if (access_holds(request->access, access_stripe_of(request->access, key)))
            tracking_table_add(request->access, key, client->card.ref);
    }
    if (UNLIKELY(is_over_limit()))
        client->worker->has_deferred = true;
}

void tracking_note_read(const struct request *request)
{
    assert(request->client->tracking != NULL);
    client_assert_owned(request->client);
    if ((request->command->flags & (COMMAND_READONLY | COMMAND_SCRIPT)) == COMMAND_READONLY &&
        remembers(request->client))
        remember_keys(request);
}

void tracking_note_script_read(const struct request *script, const struct request *request)
{
    client_assert_owned(request->client);
    assert(script->client == request->client);
    if ((request->command->flags & COMMAND_READONLY) == 0 || !remembers(request->client))
        return;
    remember_keys(script);
    remember_keys(request);
}

void tracking_command_over(struct client *client, const struct command *command)
{
    struct tracking *tracking = client->tracking;

    client_assert_owned(client);
    if ((tracking->mode & TRACKING_CACHING) == 0 || client->transaction != NULL ||
        (command != NULL && command->container != NULL && strcmp(command->container->row->name, "client") == 0))
        return;
    tracking->mode &= ~(uint32_t)TRACKING_CACHING;
}

/* The client whose change is in progress, if it has NOLOOP; NULL: none. */
static struct client_ref *changing_silently(const struct worker *worker, const struct access *access)
{
    const struct client *client = worker->run.running != NULL && !access->unasked ? worker->run.running->client : NULL;

    if (client == NULL || client->tracking == NULL || (client->tracking->mode & TRACKING_NOLOOP) == 0)
        return NULL;
    return client->card.ref;
}

/* A note of a worker. tracked NULL: all keys. */
struct noted {
    struct tracked_key *tracked;
    struct client_ref *by; /* a reference, or NULL */
};

static void note(struct worker *worker, struct tracked_key *tracked, struct client_ref *by)
{
    const struct noted noted = {tracked, by != NULL ? client_ref_acquire(by) : NULL};

    worker_assert_inside(worker);
    buffer_append(&of(worker)->notes, &noted, sizeof(noted));
    telling_note(worker, of(worker)->notes.size);
}

static void note_change(struct store_observer *observer, const struct change *change)
{
    struct worker *worker = worker_self();
    struct tracked_key *tracked;
    struct client_ref *by;

    (void)observer;
    if ((store_observed(change->access->store) & OBSERVE_CHANGES) == 0 || worker == NULL)
        return;
    by = changing_silently(worker, change->access);
    tracked = tracking_table_take(change->access, change->key);
    if (tracked != NULL)
        note(worker, tracked, by);
    broadcast_note(worker, change->key->name, by);
}

static struct store_observer observer = {.after = note_change}; /* global: const after start */

void tracking_note_flush(struct worker *worker)
{
    gate_assert_alone();
    tracking_table_clear();
    if (client_count() != 0)
        note(worker, NULL, NULL);
}

/* ------------------------------------------------------------------------------------------------------ telling -- */

/* An invalidation, or one redirected, to one client. */
static void write_to(struct client *client, struct blob *body, bool redirected)
{
    struct output *out = &client->conn.output;

    client_assert_owned(client);
    if (client->proto == 3) {
        resp_write_raw(out, SLICE(">2\r\n$10\r\ninvalidate\r\n"));
    } else if (redirected && (client->flags & CLIENT_PUBSUB) != 0) {
        resp_write_raw(out, SLICE("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n"));
    } else {
        return; /* it could not know what that is */
    }
    if (body == NULL)
        resp_write_null(out, client->proto);
    else if (body->size > 4096)
        output_append_blob(out, body, 0, body->size);
    else
        resp_write_raw(out, blob_slice(body));
    client_sent_unasked(client);
}

static struct client *here(const struct client_ref *ref)
{
    return ref->client != NULL && !conn_is_closing(&ref->client->conn) ? ref->client : NULL;
}

static void tell_broken(struct client *client, uint64_t redirect_id)
{
    client->flags |= CLIENT_TRACKING_BROKEN;
    show(client);
    if (client->proto != 3)
        return;
    resp_write_raw(&client->conn.output, SLICE(">2\r\n$21\r\ntracking-redir-broken\r\n"));
    resp_write_int(&client->conn.output, (int64_t)redirect_id);
    client_sent_unasked(client);
}

/* Mail to the worker of the client that gets redirected invalidations, and back if it is gone. */
struct forward {
    struct delivery delivery;
    struct client_ref *from, *to;
    struct blob *body; /* a reference; NULL: everything */
};

static void forward_free(struct forward *forward)
{
    client_ref_release(&forward->from);
    client_ref_release(&forward->to);
    blob_release(&forward->body);
    mem_free(forward);
}

static void deliver_back(struct worker *worker, struct delivery *delivery)
{
    struct forward *forward = container_of(delivery, struct forward, delivery);
    struct client *client = here(forward->from);

    worker_assert_self(worker);
    assert(forward->from->worker_index == worker->index);
    if (client != NULL && client->tracking != NULL && client->tracking->redirect == forward->to)
        tell_broken(client, forward->to->id);
    forward_free(forward);
}

static void deliver_forward(struct worker *worker, struct delivery *delivery)
{
    struct forward *forward = container_of(delivery, struct forward, delivery);
    struct client *client = here(forward->to);

    worker_assert_self(worker);
    assert(forward->to->worker_index == worker->index);
    if (client == NULL) {
        blob_release(&forward->body);
        forward->delivery.deliver = deliver_back;
        delivery_post(worker, &worker->server->workers[forward->from->worker_index], &forward->delivery, 0);
        return;
    }
    write_to(client, forward->body, true);
    forward_free(forward);
}

void tracking_tell(struct client *client, struct blob *body)
{
    struct worker *worker = client->worker;
    struct client_ref *redirect = client->tracking->redirect;
    struct forward *forward;

    client_assert_owned(client);
    if (redirect == NULL) {
        write_to(client, body, false);
    } else if (redirect->worker_index == worker->index) {
        if (here(redirect) != NULL)
            write_to(here(redirect), body, true);
        else
            tell_broken(client, redirect->id);
    } else {
        forward = mem_alloc(sizeof(*forward));
        *forward = (struct forward){.delivery = {.deliver = deliver_forward},
                                    .from = client_ref_acquire(client->card.ref),
                                    .to = client_ref_acquire(redirect),
                                    .body = body != NULL ? blob_acquire(body) : NULL};
        delivery_post(worker, &worker->server->workers[redirect->worker_index], &forward->delivery,
                      body != NULL ? body->size : 0);
    }
}

/* ------------------------------------------------------------------------------------------------------ sending -- */

/* A key that has changed, on its way to those who read it; shared by the deliveries to all workers. */
struct invalidation {
    _Atomic uint32_t refs; /* atomic: deliveries */
    struct noted noted;
    struct blob *body; /* NULL: everything */
};

struct copy {
    struct delivery delivery;
    struct invalidation *invalidation;
};

static void invalidation_release(struct invalidation **invalidation)
{
    struct invalidation *gone = *invalidation;
    uint32_t before;

    *invalidation = NULL;
    before = atomic_fetch_sub_explicit(&gone->refs, 1, memory_order_acq_rel);
    assert(before != 0);
    if (before != 1)
        return;
    tracked_key_destroy(&gone->noted.tracked);
    client_ref_release(&gone->noted.by);
    blob_release(&gone->body);
    mem_free(gone);
}

static void tell_readers(const struct worker *worker, const struct invalidation *invalidation)
{
    const struct tracked_key *tracked = invalidation->noted.tracked;

    for (uint32_t i = 0; i < tracked->count; i++) {
        const struct client_ref *reader = tracked->readers[i];
        struct client *client;

        if (reader->worker_index != worker->index || reader == invalidation->noted.by)
            continue;
        client = here(reader);
        if (client != NULL && client->tracking != NULL && (client->tracking->mode & TRACKING_BCAST) == 0)
            tracking_tell(client, invalidation->body);
    }
}

static void deliver(struct worker *worker, struct delivery *delivery)
{
    struct copy *copy = container_of(delivery, struct copy, delivery);

    worker_assert_self(worker);
    if (copy->invalidation->noted.tracked != NULL) {
        tell_readers(worker, copy->invalidation);
    } else {
        LIST_FOREACH(node, &of(worker)->clients) {
            struct client *client = container_of(node, struct tracking, node)->client;

            if (!conn_is_closing(&client->conn))
                tracking_tell(client, NULL);
        }
    }
    invalidation_release(&copy->invalidation);
    mem_free(copy);
}

static uint64_t workers_of(const struct noted *noted)
{
    uint64_t workers = 0;

    for (uint32_t i = 0; i < noted->tracked->count; i++) {
        const struct client_ref *reader = noted->tracked->readers[i];

        if (reader != noted->by && !client_ref_is_gone(reader))
            workers |= UINT64_C(1) << reader->worker_index;
    }
    return workers;
}

static struct blob *body_of(const struct tracked_key *tracked)
{
    const struct slice name = slice_make(tracked->name, tracked->size);
    struct output out;
    struct buffer bytes = {0};
    struct blob *body;

    output_init(&out, NULL);
    resp_write_array(&out, 2, 1);
    resp_write_bulk(&out, name);
    output_to_buffer(&out, &bytes);
    output_clear(&out);
    body = blob_create_copy(buffer_slice(&bytes));
    buffer_fini(&bytes);
    return body;
}

static void tell_workers(struct worker *worker, const struct noted *noted)
{
    struct server *server = worker->server;
    struct invalidation *invalidation = mem_alloc(sizeof(*invalidation));
    uint64_t workers = noted->tracked != NULL ? workers_of(noted) : UINT64_MAX >> (64 - server->worker_count);

    assert((workers & ~(UINT64_MAX >> (64 - server->worker_count))) == 0);
    *invalidation = (struct invalidation){.noted = *noted};
    atomic_init(&invalidation->refs, 1);
    if (noted->tracked != NULL && workers != 0)
        invalidation->body = body_of(noted->tracked);
    for (; workers != 0; workers &= workers - 1) {
        struct copy *copy = mem_alloc(sizeof(*copy));

        atomic_fetch_add_explicit(&invalidation->refs, 1, memory_order_relaxed);
        *copy = (struct copy){.delivery = {.deliver = deliver}, .invalidation = invalidation};
        delivery_post(worker, &server->workers[__builtin_ctzll(workers)], &copy->delivery,
                      invalidation->body != NULL ? invalidation->body->size : 0);
    }
    invalidation_release(&invalidation);
}

/* The table is kept within tracking-table-max-keys: keys go at random, as if they had changed. A turn does a part. */
static bool shrink(struct worker *worker)
{
    enum { KEYS_A_TURN = 1000 };
    struct store *store = worker->server->store;
    uint32_t first = (uint32_t)random_u64(random_thread()), done = 0;

    worker_assert_self(worker);
    if (LIKELY(!is_over_limit()))
        return false;
    if (!gate_enter(&worker->member))
        return true;
    for (uint32_t i = 0; i <= store->stripe_mask && done < KEYS_A_TURN && is_over_limit(); i++) {
        struct stripe *stripe = &store->stripes[(first + i) & store->stripe_mask];
        struct tracked_key *tracked;

        if (!tracking_table_has_some(stripe->index) || !spinlock_try(&stripe->lock))
            continue;
        tracked = tracking_table_take_random(stripe->index);
        if (tracked != NULL)
            tell_workers(worker, &(struct noted){.tracked = tracked});
        stripe_release(store, stripe);
        done++;
    }
    gate_leave(&worker->member);
    if (!is_over_limit())
        return false;
    worker_wake(worker);
    return true;
}

void tracking_tell_noted(struct worker *worker)
{
    struct buffer invalidated = of(worker)->notes;

    if (LIKELY(invalidated.size == 0))
        return;
    worker_assert_inside(worker);
    assert(invalidated.size % sizeof(struct noted) == 0);
    buffer_init(&of(worker)->notes);
    for (size_t at = 0; at < invalidated.size; at += sizeof(struct noted)) {
        struct noted noted;

        memcpy(&noted, invalidated.data + at, sizeof(noted));
        tell_workers(worker, &noted);
    }
    buffer_fini(&invalidated);
}

/* ------------------------------------------------------------------------------------------------------- around -- */

static const char *apply(const struct option_row *row)
{
    struct worker *worker = worker_self();

    gate_assert_alone();
    (void)row;
    if (worker != NULL && is_over_limit())
        worker->has_deferred = true;
    return NULL;
}

void tracking_setup(void)
{
    static const struct option_row rows[] = {
        ROW_INT("tracking-table-max-keys", &option_tracking_table_max_keys, 1000000, 0, INT64_MAX, OPTION_MUTABLE,
                "Largest number of keys in the tracking table; 0: no limit.", .apply = apply),
    };

    gate_assert_main_alone();
    config_add_rows(rows, countof(rows));
}

static bool start(struct server *server)
{
    gate_assert_main_alone();
    tracking_table_setup(server->store);
    store_observe(server->store, &observer);
    return true;
}

static void end(struct server *server)
{
    gate_assert_main_alone();
    assert(client_count() == 0);
    (void)server;
    tracking_table_teardown();
}

static void init(struct worker *worker)
{
    list_init(&of(worker)->clients);
}

static void fini(struct worker *worker)
{
    assert(list_is_empty(&of(worker)->clients));
    buffer_fini(&of(worker)->notes);
}

const struct lifecycle tracking_lifecycle = {
    .worker_init = init,
    .worker_fini = fini,
    .server_start = start,
    .server_end = end,
    .worker_deferred = shrink,
    .client_withdraw = tracking_disable,
};
