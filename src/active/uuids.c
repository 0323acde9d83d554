#include "active/uuids.h"

#include "base/spinlock.h"
#include "merge/place.h"

#include <stdatomic.h>
#include <stdbool.h>

static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY */
    struct {
        uint64_t id, source; /* source: the server's id; 0: that is itself */
        struct uuid uuid;
    } items[UUIDS_MOST] GUARDED_BY(lock);
    uint32_t count GUARDED_BY(lock), next GUARDED_BY(lock); /* next: is replaced when all are taken */
    _Atomic bool are_kept;                                  /* atomic: relaxed; count is above 0 */
} uuids = {.lock = {.rank = LOCK_REGISTRY}};

/* The index, or `count`. */
static uint32_t find_locked(uint64_t id) REQUIRES(uuids.lock)
{
    uint32_t at = 0;

    spinlock_assert_held(&uuids.lock);
    while (at < uuids.count && uuids.items[at].id != id)
        at++;
    return at;
}

static void keep(uint64_t id, const struct uuid *uuid, uint64_t source)
{
    uint32_t at;

    spinlock_acquire(&uuids.lock);
    at = find_locked(id);
    if (at == uuids.count && uuids.count < UUIDS_MOST) {
        uuids.count++;
    } else if (at == uuids.count) {
        at = uuids.next;
        uuids.next = (uuids.next + 1) % UUIDS_MOST;
    }
    atomic_store_explicit(&uuids.are_kept, true, memory_order_relaxed);
    uuids.items[at].id = id;
    uuids.items[at].uuid = *uuid;
    uuids.items[at].source = source;
    spinlock_release(&uuids.lock);
}

void uuids_keep(const struct uuid *uuid)
{
    if (!uuid_is_ours(uuid))
        keep(uuid_id(uuid), uuid, 0);
}

void uuids_keep_source(uint64_t origin, const struct uuid *server)
{
    const struct uuid uuid = uuid_of_id(origin);

    keep(origin, &uuid, uuid_id(server));
}

bool uuids_came_from(uint64_t origin, uint64_t server_id)
{
    bool came = origin == server_id;
    uint32_t at;

    if (came || !merge_origin_is_foreign(origin))
        return came;
    spinlock_acquire(&uuids.lock);
    at = find_locked(origin);
    came = at != uuids.count && uuids.items[at].source == server_id;
    spinlock_release(&uuids.lock);
    return came;
}

bool uuids_are_kept(void)
{
    return atomic_load_explicit(&uuids.are_kept, memory_order_relaxed);
}

struct uuid uuids_find(uint64_t id)
{
    struct uuid uuid = uuid_of_id(id);
    uint32_t at;

    spinlock_acquire(&uuids.lock);
    at = find_locked(id);
    if (at != uuids.count)
        uuid = uuids.items[at].uuid;
    spinlock_release(&uuids.lock);
    return uuid;
}
