#include "replication/lookup.h"

#include "base/assert.h"
#include "base/background.h"
#include "base/mem.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct lookup {
    void (*on_done)(void);
    _Atomic unsigned uses; /* atomic: acq_rel; the owner, and the job */
    _Atomic bool is_done;  /* atomic: release; the fields below are set */
    _Atomic bool is_left;  /* atomic: relaxed; the owner is not interested any more */
    struct addrinfo *addresses;
    int error, system_error;
    char port[16];
    char host[];
};

static void look(struct lookup *lookup, int flags)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};

    lookup->addresses = NULL;
    lookup->error = getaddrinfo(lookup->host, lookup->port, &hints, &lookup->addresses);
    lookup->system_error = errno;
}

static void drop_use(struct lookup *lookup)
{
    if (atomic_fetch_sub_explicit(&lookup->uses, 1, memory_order_acq_rel) != 1)
        return;
    if (lookup->addresses != NULL)
        freeaddrinfo(lookup->addresses);
    mem_free(lookup);
}

static void run(void *argument)
{
    struct lookup *lookup = argument;

    look(lookup, 0);
    atomic_store_explicit(&lookup->is_done, true, memory_order_release);
    if (!atomic_load_explicit(&lookup->is_left, memory_order_relaxed))
        lookup->on_done();
    drop_use(lookup);
}

struct lookup *lookup_create(const char *host, int port, void (*on_done)(void))
{
    struct lookup *lookup = mem_alloc_zero(sizeof(*lookup) + strlen(host) + 1);

    lookup->on_done = on_done;
    memcpy(lookup->host, host, strlen(host) + 1);
    (void)snprintf(lookup->port, sizeof(lookup->port), "%d", port);
    atomic_init(&lookup->uses, 1);
    look(lookup, AI_NUMERICHOST);
    if (lookup->error != EAI_NONAME) {
        atomic_init(&lookup->is_done, true);
        return lookup;
    }
    atomic_store_explicit(&lookup->uses, 2, memory_order_relaxed);
    background_submit(BACKGROUND_OTHER, run, lookup);
    return lookup;
}

void lookup_release(struct lookup **handle)
{
    struct lookup *lookup = *handle;

    if (lookup == NULL)
        return;
    atomic_store_explicit(&lookup->is_left, true, memory_order_relaxed);
    drop_use(lookup);
    *handle = NULL;
}

bool lookup_is_done(const struct lookup *lookup)
{
    return atomic_load_explicit(&lookup->is_done, memory_order_acquire);
}

const struct addrinfo *lookup_addresses(const struct lookup *lookup, const char **error)
{
    assert(lookup_is_done(lookup));
    *error = lookup->error == 0            ? ""
             : lookup->error == EAI_SYSTEM ? strerror(lookup->system_error)
                                           : gai_strerror(lookup->error);
    return lookup->error == 0 ? lookup->addresses : NULL;
}
