#include "server/core/stats_since.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "server/command/command.h"
#include "server/config/config.h"

#include <stdio.h>
#include <string.h>

struct code_count {
    char code[ERROR_CODE_BYTES];
    uint64_t count;
};

struct code_list {
    struct code_count *items;
    size_t count, capacity;
};

/* INFO may run in several threads while the gate is closed for the reset: hence the lock. */
static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY; held for copies only */
    struct server_stats stats GUARDED_BY(lock);
    struct command_stats *commands GUARDED_BY(lock); /* by id; NULL: never reset */
    struct code_list codes GUARDED_BY(lock);
} base;

/* A sum over threads that are counting meanwhile may come out a little behind an earlier one. */
static uint64_t since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

void stats_since_setup(void)
{
    gate_assert_main_alone();
    spinlock_init(&base.lock, LOCK_REGISTRY);
    config_on_reset_stat(stats_since_reset);
}

void stats_since_teardown(void)
{
    gate_assert_main_alone();
    mem_free(base.commands);
    ARRAY_FINI(&base.codes);
    memset(&base, 0, sizeof(base));
}

static void note_code(void *context, const char *code, uint64_t count)
{
    struct code_list *list = context;
    struct code_count *one = ARRAY_PUSH(list);

    snprintf(one->code, ERROR_CODE_BYTES, "%s", code);
    one->count = count;
}

void stats_since_reset(void)
{
    struct server_stats *stats = mem_alloc_zero(sizeof(*stats));
    struct command_stats *commands = mem_alloc_zero((command_count() + 1) * sizeof(*commands)), *old;
    struct code_list list = {0}, old_codes;

    gate_assert_alone();
    server_stats_collect(stats);
    server_stats_forget_most();
    for (uint32_t id = 0; id < command_count(); id++)
        (void)server_command_stats(id, &commands[id]);
    server_error_stats(note_code, &list);

    spinlock_acquire(&base.lock);
    base.stats = *stats;
    old = base.commands;
    base.commands = commands;
    old_codes = base.codes;
    base.codes = list;
    spinlock_release(&base.lock);

    mem_free(old);
    mem_free(stats);
    ARRAY_FINI(&old_codes);
}

static void thread_since(struct thread_stats *now, const struct thread_stats *before)
{
#define SINCE(name) now->name = since(now->name, before->name);
    THREAD_COUNTERS(SINCE)
#undef SINCE
}

void stats_since_collect(struct server_stats *stats)
{
    server_stats_collect(stats);
    spinlock_acquire(&base.lock);
#define SINCE(name) stats->name = since(stats->name, base.stats.name);
    ALL_COUNTERS(SINCE)
#undef SINCE
    for (unsigned i = 0; i < stats->thread_count; i++)
        thread_since(&stats->threads[i], &base.stats.threads[i]);
    spinlock_release(&base.lock);
}

bool stats_since_command(uint32_t command_id, struct command_stats *stats)
{
    assert(command_id < command_count());
    if (!server_command_stats(command_id, stats))
        return false;
    spinlock_acquire(&base.lock);
    if (base.commands != NULL) {
        const struct command_stats *before = &base.commands[command_id];

        stats->rejected_calls = since(stats->rejected_calls, before->rejected_calls);
        stats->failed_calls = since(stats->failed_calls, before->failed_calls);
    }
    spinlock_release(&base.lock);
    return stats->failed_calls != 0 || stats->rejected_calls != 0;
}

struct visit {
    void (*visit)(void *context, const char *code, uint64_t count);
    void *context;
};

static void visit_code(void *context, const char *code, uint64_t count)
{
    const struct visit *visit = context;

    spinlock_acquire(&base.lock);
    for (size_t i = 0; i < base.codes.count; i++) {
        if (strcmp(base.codes.items[i].code, code) == 0)
            count = since(count, base.codes.items[i].count);
    }
    spinlock_release(&base.lock);
    if (count != 0)
        visit->visit(visit->context, code, count);
}

void stats_since_errors(void (*visit)(void *context, const char *code, uint64_t count), void *context)
{
    struct visit both = {visit, context};

    server_error_stats(visit_code, &both);
}
