#include "server/observe/slowlog.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/worker.h"

#include <stdio.h>
#include <string.h>

enum { ARGS_MOST = 32, ARG_BYTES_MOST = 128, REMARK_BYTES = 48 };

_Atomic int64_t option_slowlog_max_len; /* global: option storage */

static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY */
    struct slowlog_entry *newest GUARDED_BY(lock);
    size_t size GUARDED_BY(lock);
    uint64_t next_id GUARDED_BY(lock);
} slowlog;

/* ------------------------------------------------------------------------------------------------ making entries -- */

struct shown {
    struct slice bytes;
    char remark[REMARK_BYTES]; /* behind the bytes */
};

static void show_arg(const struct request *request, uint32_t index, struct shown *shown)
{
    struct slice arg = request->args[index];

    assert(index < request->arg_count);
    shown->remark[0] = '\0';
    if (request_is_redacted(request, index)) {
        arg = SLICE("(redacted)");
    } else if (arg.size > ARG_BYTES_MOST) {
        snprintf(shown->remark, REMARK_BYTES, "... (%zu more bytes)", arg.size - ARG_BYTES_MOST);
        arg.size = ARG_BYTES_MOST;
    }
    shown->bytes = arg;
}

static char *put(char **at, struct slice bytes)
{
    char *begin = *at;

    if (bytes.size != 0)
        memcpy(begin, bytes.data, bytes.size);
    *at = begin + bytes.size;
    return begin;
}

static struct slowlog_entry *entry_make(const struct request *request, uint64_t duration_us)
{
    const struct client_card *card = &request->client->card;
    uint32_t count = MIN(request->arg_count, (uint32_t)ARGS_MOST);
    struct shown shown[ARGS_MOST];
    struct slice address = {card->address, strlen(card->address) + 1};
    struct slice name = slice_from_text(card->name != NULL ? card->name : "");
    size_t size = address.size + name.size + 1;
    struct slowlog_entry *entry;
    char *at;

    for (uint32_t i = 0; i < count; i++) {
        show_arg(request, i, &shown[i]);
        if (i == count - 1 && request->arg_count > ARGS_MOST) {
            shown[i].bytes.size = 0;
            snprintf(shown[i].remark, REMARK_BYTES, "... (%u more arguments)", request->arg_count - ARGS_MOST + 1);
        }
        size += shown[i].bytes.size + strlen(shown[i].remark);
    }
    entry = mem_alloc(sizeof(*entry) + count * sizeof(struct slice) + size);
    *entry = (struct slowlog_entry){.refs = 1,
                                    .time_s = clock_wall_us() / 1000000,
                                    .duration_us = duration_us,
                                    .arg_count = count};
    at = (char *)&entry->args[count];
    for (uint32_t i = 0; i < count; i++) {
        char *begin = put(&at, shown[i].bytes);

        put(&at, slice_from_text(shown[i].remark));
        entry->args[i] = slice_make(begin, (size_t)(at - begin));
    }
    entry->address = put(&at, address);
    entry->name = put(&at, (struct slice){name.data, name.size});
    *at = '\0';
    assert(at + 1 == (char *)&entry->args[count] + size);
    return entry;
}

/* ------------------------------------------------------------------------------------------------------ the log -- */

void slowlog_setup(void)
{
    gate_assert_main_alone();
    spinlock_init(&slowlog.lock, LOCK_REGISTRY);
}

void slowlog_release(struct slowlog_entry *entry)
{
    uint32_t before = atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel);

    assert(before != 0);
    if (before == 1)
        mem_free(entry);
}

static void release_chain(struct slowlog_entry *entry)
{
    while (entry != NULL) {
        struct slowlog_entry *older = entry->older;

        slowlog_release(entry);
        entry = older;
    }
}

/* Removes the entries beyond the limit. The lock is held. */
static struct slowlog_entry *cut(size_t most)
{
    struct slowlog_entry **link = &slowlog.newest, *rest;

    spinlock_assert_held(&slowlog.lock);
    if (slowlog.size <= most)
        return NULL;
    for (size_t i = 0; i < most; i++)
        link = &(*link)->older;
    rest = *link;
    assert(rest != NULL);
    *link = NULL;
    slowlog.size = most;
    return rest;
}

void slowlog_add(const struct request *request, uint64_t duration_us)
{
    struct slowlog_entry *entry = entry_make(request, duration_us), *rest;

    worker_assert_self(request->worker);
    spinlock_acquire(&slowlog.lock);
    entry->id = slowlog.next_id++;
    entry->older = slowlog.newest;
    slowlog.newest = entry;
    slowlog.size++;
    rest = cut((size_t)OPTION_GET(option_slowlog_max_len));
    spinlock_release(&slowlog.lock);
    release_chain(rest);
}

struct slowlog_entry **slowlog_get(size_t most, size_t *count)
{
    size_t room = MIN(most, slowlog_size());
    struct slowlog_entry **entries = mem_alloc((room + 1) * sizeof(struct slowlog_entry *));

    *count = 0;
    spinlock_acquire(&slowlog.lock);
    for (struct slowlog_entry *entry = slowlog.newest; entry != NULL && *count < room; entry = entry->older) {
        atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
        entries[(*count)++] = entry;
    }
    spinlock_release(&slowlog.lock);
    return entries;
}

size_t slowlog_size(void)
{
    size_t size;

    spinlock_acquire(&slowlog.lock);
    size = slowlog.size;
    spinlock_release(&slowlog.lock);
    return size;
}

static void cut_to(size_t most)
{
    struct slowlog_entry *rest;

    spinlock_acquire(&slowlog.lock);
    rest = cut(most);
    spinlock_release(&slowlog.lock);
    release_chain(rest);
}

void slowlog_reset(void)
{
    cut_to(0);
}

const char *slowlog_apply(const struct option_row *row)
{
    gate_assert_alone();
    (void)row;
    cut_to((size_t)OPTION_GET(option_slowlog_max_len));
    return NULL;
}
