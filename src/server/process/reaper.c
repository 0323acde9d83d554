#include "server/process/reaper.h"

#include "base/assert.h"
#include "base/gate.h"
#include "base/spinlock.h"

#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

static struct {
    struct spinlock lock; /* rank LOCK_REGISTRY */
    pid_t pids[REAPER_MOST] GUARDED_BY(lock);
    size_t count GUARDED_BY(lock);
} reaper;

void reaper_setup(void)
{
    gate_assert_main_alone();
    spinlock_init(&reaper.lock, LOCK_REGISTRY);
}

bool reaper_has_room(void)
{
    bool room;

    spinlock_acquire(&reaper.lock);
    room = reaper.count < REAPER_MOST;
    spinlock_release(&reaper.lock);
    return room;
}

void reaper_add(pid_t pid)
{
    assert(pid > 0);
    spinlock_acquire(&reaper.lock);
    assert(reaper.count < REAPER_MOST);
    reaper.pids[reaper.count++] = pid;
    spinlock_release(&reaper.lock);
}

/* -1: there are no more. */
static pid_t pid_at(size_t index)
{
    pid_t pid;

    spinlock_acquire(&reaper.lock);
    assert(reaper.count <= REAPER_MOST);
    pid = index < reaper.count ? reaper.pids[index] : -1;
    spinlock_release(&reaper.lock);
    return pid;
}

static void forget(size_t index)
{
    spinlock_acquire(&reaper.lock);
    assert(index < reaper.count);
    reaper.pids[index] = reaper.pids[--reaper.count];
    spinlock_release(&reaper.lock);
}

void reaper_look(void)
{
    pid_t pid;

    spinlock_assert_may_sleep();
    for (size_t i = 0; (pid = pid_at(i)) > 0;) {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            forget(i);
        else
            i++;
    }
}

void reaper_teardown(void)
{
    pid_t pid;

    gate_assert_main_alone();
    while ((pid = pid_at(0)) > 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        forget(0);
    }
}
