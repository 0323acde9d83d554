#include "server/acl/acl_log.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/gate.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "server/acl/acl_options.h"
#include "server/core/client.h"

#include <string.h>

enum { SAME_WITHIN_MS = 60000, LOOKED_AT_MOST = 10, OBJECT_BYTES_MOST = 1024 };

struct logged {
    struct list_node node;
    struct acl_log_entry entry;
};

static struct {
    struct spinlock lock;                 /* rank LOCK_REGISTRY */
    struct list entries GUARDED_BY(lock); /* the latest first */
    size_t count GUARDED_BY(lock);
    uint64_t next_id GUARDED_BY(lock);
} acl_log;

const char *acl_reason_name(enum acl_reason reason)
{
    static const char *const names[] = {"command", "key", "channel", "database", "auth", "tls-cert"};

    assert(reason < countof(names));
    return names[reason];
}

const char *acl_context_name(enum acl_context context)
{
    static const char *const names[] = {"toplevel", "multi", "lua"};

    assert(context < countof(names));
    return names[context];
}

void acl_log_setup(void)
{
    gate_assert_main_alone();
    spinlock_init(&acl_log.lock, LOCK_REGISTRY);
    list_init(&acl_log.entries);
}

void acl_log_teardown(void)
{
    gate_assert_main_alone();
    acl_log_reset();
}

/* ------------------------------------------------------------------------------------------------------- entries -- */

static void entry_fini(struct acl_log_entry *entry)
{
    mem_free(entry->object);
    mem_free(entry->user);
    mem_free(entry->client);
}

static struct acl_log_entry entry_copy(const struct acl_log_entry *from)
{
    struct acl_log_entry entry = *from;

    entry.object = mem_copy(from->object, from->object_size);
    entry.user = mem_copy(from->user, from->user_size);
    entry.client = mem_copy(from->client, from->client_size);
    return entry;
}

static bool is_same(const struct acl_log_entry *a, const struct acl_log_entry *b)
{
    return a->reason == b->reason && a->context == b->context && b->created_ms - a->updated_ms <= SAME_WITHIN_MS &&
           slice_equal(slice_make(a->object, a->object_size), slice_make(b->object, b->object_size)) &&
           slice_equal(slice_make(a->user, a->user_size), slice_make(b->user, b->user_size));
}

static struct logged *find_same_locked(const struct acl_log_entry *entry) REQUIRES(acl_log.lock)
{
    unsigned looked_at = 0;

    spinlock_assert_held(&acl_log.lock);
    LIST_FOREACH(node, &acl_log.entries) {
        struct logged *logged = container_of(node, struct logged, node);

        if (is_same(&logged->entry, entry))
            return logged;
        if (++looked_at == LOOKED_AT_MOST)
            break;
    }
    return NULL;
}

static void release_all(struct list *list)
{
    struct list_node *node;

    while ((node = list_pop_front(list)) != NULL) {
        struct logged *logged = container_of(node, struct logged, node);

        entry_fini(&logged->entry);
        mem_free(logged);
    }
}

static void cut_locked(size_t most, struct list *rest) REQUIRES(acl_log.lock)
{
    spinlock_assert_held(&acl_log.lock);
    while (acl_log.count > most) {
        struct list_node *node = list_last(&acl_log.entries);

        assert(node != NULL);
        list_remove(node);
        list_push_back(rest, node);
        acl_log.count--;
    }
}

static void cut_to(size_t most)
{
    struct list rest;

    list_init(&rest);
    spinlock_acquire(&acl_log.lock);
    cut_locked(most, &rest);
    spinlock_release(&acl_log.lock);
    release_all(&rest);
}

/* ------------------------------------------------------------------------------------------------------- the log -- */

/* Adds the entry, or counts up an existing one, which gets the client of this refusal. */
static void put_locked(struct logged *fresh, struct list *rest) REQUIRES(acl_log.lock)
{
    struct logged *same = find_same_locked(&fresh->entry);
    char *client;

    spinlock_assert_held(&acl_log.lock);
    if (same == NULL) {
        fresh->entry.id = acl_log.next_id++;
        list_push_front(&acl_log.entries, &fresh->node);
        acl_log.count++;
        cut_locked((size_t)OPTION_GET(option_acllog_max_len), rest);
        return;
    }
    same->entry.count++;
    same->entry.updated_ms = fresh->entry.updated_ms;
    client = same->entry.client;
    same->entry.client = fresh->entry.client;
    same->entry.client_size = fresh->entry.client_size;
    fresh->entry.client = client;
    list_remove(&same->node);
    list_push_front(&acl_log.entries, &same->node);
    list_push_back(rest, &fresh->node);
}

void acl_log_add(enum acl_reason reason, enum acl_context context, struct slice object, struct slice user,
                 const struct client *client, int64_t now_ms)
{
    struct logged *fresh = mem_alloc(sizeof(*fresh));
    struct buffer text = {0};
    struct list rest;

    client_assert_owned(client); /* its card is shown */
    object.size = MIN(object.size, (size_t)OBJECT_BYTES_MOST);
    user.size = MIN(user.size, (size_t)OBJECT_BYTES_MOST);
    client_card_print(&client->card, &text);
    list_node_init(&fresh->node);
    fresh->entry = (struct acl_log_entry){.count = 1,
                                          .reason = reason,
                                          .context = context,
                                          .created_ms = now_ms,
                                          .updated_ms = now_ms,
                                          .object = mem_copy(object.data, object.size),
                                          .object_size = object.size,
                                          .user = mem_copy(user.data, user.size),
                                          .user_size = user.size};
    fresh->entry.client = buffer_take(&text, &fresh->entry.client_size);
    list_init(&rest);
    spinlock_acquire(&acl_log.lock);
    put_locked(fresh, &rest);
    spinlock_release(&acl_log.lock);
    release_all(&rest);
}

struct acl_log_entry *acl_log_get(size_t most, size_t *count)
{
    struct acl_log_entry *entries;

    *count = 0;
    spinlock_acquire(&acl_log.lock);
    entries = mem_alloc((MIN(most, acl_log.count) + 1) * sizeof(*entries));
    LIST_FOREACH(node, &acl_log.entries) {
        if (*count >= most)
            break;
        assert(*count < acl_log.count);
        entries[(*count)++] = entry_copy(&container_of(node, struct logged, node)->entry);
    }
    spinlock_release(&acl_log.lock);
    return entries;
}

void acl_log_release(struct acl_log_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        entry_fini(&entries[i]);
    mem_free(entries);
}

void acl_log_reset(void)
{
    cut_to(0);
}

const char *acl_log_apply(const struct option_row *row)
{
    gate_assert_alone();
    (void)row;
    cut_to((size_t)OPTION_GET(option_acllog_max_len));
    return NULL;
}
