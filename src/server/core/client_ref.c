#include "server/core/client_ref.h"

#include "base/mem.h"
#include "server/core/client.h"
#include "server/core/server.h"

/* The roster of the client's worker is locked: the first caller creates the reference. */
static struct client_ref *ref_locked(struct client *client)
{
    struct client_ref *ref = client->card.ref;

    spinlock_assert_held(&client->worker->roster_lock);
    if (ref == NULL) {
        ref = mem_alloc(sizeof(*ref));
        *ref = (struct client_ref){.worker_index = client->worker->index, .id = client->id, .client = client};
        atomic_init(&ref->refs, 1); /* the client's */
        client->card.ref = ref;
    }
    return ref;
}

struct client_ref *client_ref_of(struct client *client)
{
    struct client_ref *ref;

    client_assert_owned(client);
    spinlock_acquire(&client->worker->roster_lock);
    ref = ref_locked(client);
    spinlock_release(&client->worker->roster_lock);
    return ref;
}

static struct client_ref *find_in(struct worker *worker, uint64_t id)
{
    struct client_ref *ref = NULL;

    spinlock_acquire(&worker->roster_lock);
    LIST_FOREACH(node, &worker->roster) {
        struct client_card *card = container_of(node, struct client_card, node);

        if (card->id == id &&
            (atomic_load_explicit(&card->requests, memory_order_relaxed) & CLIENT_REQUEST_KILL) == 0) {
            ref = client_ref_acquire(ref_locked(container_of(card, struct client, card)));
            atomic_store_explicit(&card->is_told_for, true, memory_order_relaxed);
        }
    }
    spinlock_release(&worker->roster_lock);
    return ref;
}

struct client_ref *client_ref_find(struct server *server, uint64_t id)
{
    struct client_ref *ref = NULL;

    for (unsigned i = 0; ref == NULL && i < server->worker_count; i++)
        ref = find_in(&server->workers[i], id);
    return ref;
}

struct client_ref *client_ref_acquire(struct client_ref *ref)
{
    atomic_fetch_add_explicit(&ref->refs, 1, memory_order_relaxed);
    return ref;
}

void client_ref_release(struct client_ref **ref)
{
    struct client_ref *gone = *ref;

    *ref = NULL;
    if (gone != NULL && atomic_fetch_sub_explicit(&gone->refs, 1, memory_order_acq_rel) == 1)
        mem_free(gone);
}

void client_ref_leave(struct client *client)
{
    struct client_ref *ref = client->card.ref; /* its card is off the roster: nobody else finds it */

    client_assert_owned(client);
    if (ref == NULL)
        return;
    ref->client = NULL;
    atomic_store_explicit(&ref->gone, true, memory_order_relaxed);
    client_ref_release(&client->card.ref);
}
