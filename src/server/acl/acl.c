#include "server/acl/acl.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "server/acl/acl_check.h"
#include "server/acl/acl_log.h"
#include "server/acl/acl_user.h"

#include <stdlib.h>
#include <string.h>

_Atomic uint32_t acl_generation;    /* global: see acl.h */
_Atomic bool acl_default_is_nopass; /* global: see acl.h */

static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY */
    struct {
        struct acl_user **items;
        size_t count, capacity;
    } users GUARDED_BY(lock); /* by name */
    uint64_t next_identity GUARDED_BY(lock);
} registry;

/* ----------------------------------------------------------------------------------------------------- the list -- */

/* The index of that name, or its index if it were inserted. */
static bool find_locked(struct slice name, size_t *index) REQUIRES(registry.lock)
{
    size_t from = 0, to = registry.users.count;

    spinlock_assert_held(&registry.lock);
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = slice_compare(registry.users.items[middle]->name, name);

        if (order == 0) {
            *index = middle;
            return true;
        }
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    *index = from;
    return false;
}

static bool is_default(struct slice name)
{
    return slice_equal_text(name, "default");
}

/* A version is in its place from now on. */
static void show_locked(const struct acl_user *user) REQUIRES(registry.lock)
{
    spinlock_assert_held(&registry.lock);
    if (is_default(user->name))
        atomic_store_explicit(&acl_default_is_nopass, (user->flags & ACL_NOPASS) != 0, memory_order_relaxed);
}

static void outdate(struct acl_user *user)
{
    atomic_store_explicit(&user->is_outdated, true, memory_order_relaxed);
}

static void tell_change(void)
{
    atomic_fetch_add_explicit(&acl_generation, 1, memory_order_release);
}

struct acl_user *acl_find(struct slice name)
{
    struct acl_user *user = NULL;
    size_t index;

    spinlock_acquire(&registry.lock);
    if (find_locked(name, &index))
        user = acl_user_acquire(registry.users.items[index]);
    spinlock_release(&registry.lock);
    return user;
}

struct acl_user *acl_default(void)
{
    struct acl_user *user = acl_find(SLICE("default"));

    assert(user != NULL);
    return user;
}

struct acl_user **acl_list(size_t *count)
{
    struct acl_user **users;

    spinlock_acquire(&registry.lock);
    *count = registry.users.count;
    users = mem_alloc(registry.users.count * sizeof(*users));
    for (size_t i = 0; i < registry.users.count; i++)
        users[i] = acl_user_acquire(registry.users.items[i]);
    spinlock_release(&registry.lock);
    return users;
}

void acl_list_release(struct acl_user **users, size_t count)
{
    assert(users != NULL || count == 0);
    for (size_t i = 0; i < count; i++)
        acl_user_release(&users[i]);
    mem_free(users);
}

struct acl_user *acl_authenticate(struct slice name, struct slice password)
{
    struct acl_user *user = acl_find(name);

    if (user != NULL &&
        ((user->flags & ACL_ON) == 0 || ((user->flags & ACL_NOPASS) == 0 && !acl_user_knows(user, password))))
        acl_user_release(&user);
    return user;
}

/* ------------------------------------------------------------------------------------------------------ changes -- */

static void insert_locked(size_t index, struct acl_user *user) REQUIRES(registry.lock)
{
    spinlock_assert_held(&registry.lock);
    assert(index <= registry.users.count);
    ARRAY_RESERVE(&registry.users, 1);
    memmove(&registry.users.items[index + 1], &registry.users.items[index],
            (registry.users.count - index) * sizeof(*registry.users.items));
    registry.users.items[index] = user;
    registry.users.count++;
    user->identity = ++registry.next_identity;
    show_locked(user);
}

/* Puts the new version, handed over, into the place of `old` (NULL: there was no such user), unless that is not there
 * any more. */
static bool publish(struct acl_user *old, struct acl_user *user)
{
    size_t index;
    bool found, done;

    assert(old == NULL || slice_equal(old->name, user->name));
    spinlock_acquire(&registry.lock);
    found = find_locked(user->name, &index);
    done = found ? registry.users.items[index] == old : old == NULL;
    if (done && found) {
        outdate(old);
        registry.users.items[index] = user;
        show_locked(user);
    } else if (done) {
        insert_locked(index, user);
    }
    spinlock_release(&registry.lock);
    if (done && found)
        acl_user_release(&(struct acl_user *){old}); /* the registry's */
    return done;
}

bool acl_edit(struct slice name, acl_edit_fn edit, void *context)
{
    for (;;) {
        struct acl_user *old = acl_find(name);
        struct acl_user *draft = old != NULL ? acl_user_copy(old) : acl_user_create(name);
        bool wanted = edit(draft, context), done = false;

        if (wanted) {
            acl_user_seal(draft);
            done = publish(old, draft);
        }
        acl_user_release(&old);
        if (!done)
            acl_user_release(&draft);
        if (done)
            tell_change();
        if (done || !wanted)
            return wanted;
    }
}

bool acl_delete(struct slice name)
{
    struct acl_user *gone = NULL;
    size_t index;

    assert(!is_default(name));
    spinlock_acquire(&registry.lock);
    if (find_locked(name, &index)) {
        gone = registry.users.items[index];
        assert(gone->identity != 0);
        outdate(gone);
        registry.users.count--;
        memmove(&registry.users.items[index], &registry.users.items[index + 1],
                (registry.users.count - index) * sizeof(*registry.users.items));
    }
    spinlock_release(&registry.lock);
    if (gone == NULL)
        return false;
    acl_user_release(&gone);
    tell_change();
    return true;
}

static int compare_users(const void *a, const void *b)
{
    return slice_compare((*(struct acl_user *const *)a)->name, (*(struct acl_user *const *)b)->name);
}

void acl_replace_all(struct acl_user **users, size_t count)
{
    struct acl_user **fresh = mem_alloc(MAX(count, (size_t)1) * sizeof(*fresh)), **old;
    size_t old_count;
    bool has_default = false;

    memcpy(fresh, users, count * sizeof(*fresh));
    qsort(fresh, count, sizeof(*fresh), compare_users);
    for (size_t i = 0; i < count; i++) {
        assert(i == 0 || compare_users(&fresh[i - 1], &fresh[i]) < 0); /* different names */
        has_default = has_default || is_default(fresh[i]->name);
    }
    assert(has_default);
    spinlock_acquire(&registry.lock);
    for (size_t i = 0; i < count; i++) {
        size_t index;

        fresh[i]->identity = find_locked(fresh[i]->name, &index) ? registry.users.items[index]->identity
                                                                 : ++registry.next_identity;
        show_locked(fresh[i]);
    }
    old = registry.users.items;
    old_count = registry.users.count;
    for (size_t i = 0; i < old_count; i++)
        outdate(old[i]);
    registry.users.items = fresh;
    registry.users.count = registry.users.capacity = count;
    spinlock_release(&registry.lock);
    acl_list_release(old, old_count);
    tell_change();
}

static bool set_password(struct acl_user *draft, void *context)
{
    acl_user_set_password(draft, *(const struct slice *)context);
    return true;
}

void acl_set_default_password(struct slice password)
{
    bool done = acl_edit(SLICE("default"), set_password, &password);

    assert(done);
}

/* ------------------------------------------------------------------------------------------------ start and end -- */

void acl_setup(void)
{
    struct acl_user *user;
    bool done;

    gate_assert_main_alone();
    assert(registry.users.count == 0);
    spinlock_init(&registry.lock, LOCK_REGISTRY);
    acl_log_setup();
    user = acl_user_create_default();
    done = publish(NULL, user);
    assert(done);
}

void acl_teardown(void)
{
    gate_assert_main_alone();
    acl_list_release(registry.users.items, registry.users.count);
    registry.users.items = NULL;
    registry.users.count = registry.users.capacity = 0;
    acl_log_teardown();
}
