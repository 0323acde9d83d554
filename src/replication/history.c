#include "replication/history.h"

#include "base/assert.h"
#include "base/gate.h"
#include "base/random.h"
#include "base/spinlock.h"
#include "base/thread.h"
#include "store/journal.h"

#include <stdatomic.h>
#include <string.h>
#include <strings.h>

static const char no_id[HISTORY_ID_SIZE + 1] = "0000000000000000000000000000000000000000";

static struct {
    struct journal *journal; /* const after setup */
    struct spinlock lock;    /* rank LOCK_REGISTRY; the fields below change with the gate owned and under the lock */
    char id[HISTORY_ID_SIZE + 1], id2[HISTORY_ID_SIZE + 1];
    int64_t second_offset;
    int64_t begin;
    _Atomic int64_t base; /* atomic: relaxed; the history's offset minus the journal's */
} history;

static void make_id(char *id)
{
    random_hex(id, HISTORY_ID_SIZE);
    id[HISTORY_ID_SIZE] = '\0';
}

static void copy_id(char *to, const char *id)
{
    assert(strlen(id) == HISTORY_ID_SIZE);
    memcpy(to, id, HISTORY_ID_SIZE + 1);
}

static int64_t base_now(void)
{
    return atomic_load_explicit(&history.base, memory_order_relaxed);
}

static int64_t offset_locked(void)
{
    spinlock_assert_held(&history.lock);
    return (int64_t)journal_end_offset(history.journal) + base_now();
}

static void forget_second_locked(void)
{
    spinlock_assert_held(&history.lock);
    copy_id(history.id2, no_id);
    history.second_offset = -1;
}

/* The present id is valid up to here. */
static void keep_as_second_locked(void)
{
    spinlock_assert_held(&history.lock);
    copy_id(history.id2, history.id);
    history.second_offset = offset_locked() + 1;
}

static void move_locked(int64_t offset)
{
    assert(offset >= 0);
    atomic_store_explicit(&history.base, base_now() + offset - offset_locked(), memory_order_relaxed);
    history.begin = offset;
}

void history_setup(struct journal *journal)
{
    thread_assert_main();
    history.journal = journal;
    spinlock_init(&history.lock, LOCK_REGISTRY);
    spinlock_acquire(&history.lock);
    make_id(history.id);
    forget_second_locked();
    atomic_store_explicit(&history.base, 0, memory_order_relaxed);
    history.begin = offset_locked();
    spinlock_release(&history.lock);
}

void history_facts(struct history_facts *facts)
{
    spinlock_acquire(&history.lock);
    copy_id(facts->id, history.id);
    copy_id(facts->id2, history.id2);
    facts->offset = offset_locked();
    facts->second_offset = history.second_offset;
    facts->begin = history.begin;
    spinlock_release(&history.lock);
}

int64_t history_offset(void)
{
    int64_t offset;

    spinlock_acquire(&history.lock);
    offset = offset_locked();
    spinlock_release(&history.lock);
    return offset;
}

int64_t history_of_journal(uint64_t offset)
{
    return (int64_t)offset + base_now();
}

uint64_t history_to_journal(int64_t offset)
{
    return (uint64_t)(offset - base_now());
}

bool history_continues(const char *id, int64_t offset)
{
    struct history_facts facts;

    history_facts(&facts);
    if (offset < facts.begin || offset > facts.offset)
        return false;
    if (strcasecmp(id, facts.id) == 0)
        return true;
    return facts.second_offset >= 0 && strcasecmp(id, facts.id2) == 0 && offset < facts.second_offset;
}

void history_begin(void)
{
    gate_assert_alone();
    spinlock_acquire(&history.lock);
    make_id(history.id);
    forget_second_locked();
    history.begin = offset_locked();
    spinlock_release(&history.lock);
}

void history_fork(void)
{
    gate_assert_alone();
    spinlock_acquire(&history.lock);
    keep_as_second_locked();
    make_id(history.id);
    spinlock_release(&history.lock);
}

void history_adopt(const char *id, int64_t offset)
{
    gate_assert_alone();
    spinlock_acquire(&history.lock);
    copy_id(history.id, id);
    forget_second_locked();
    move_locked(offset);
    spinlock_release(&history.lock);
}

void history_rename(const char *id)
{
    gate_assert_alone();
    spinlock_acquire(&history.lock);
    keep_as_second_locked();
    copy_id(history.id, id);
    spinlock_release(&history.lock);
}

void history_restore(const char *id, int64_t offset, bool is_replica)
{
    gate_assert_alone();
    spinlock_acquire(&history.lock);
    move_locked(offset);
    copy_id(history.id, id);
    if (is_replica) {
        forget_second_locked();
    } else {
        keep_as_second_locked();
        make_id(history.id);
    }
    spinlock_release(&history.lock);
}
