#include "base/fence.h"

#include "base/spinlock.h"
#include "base/thread.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

bool fence_is_asymmetric; /* global: see the header */

static long membarrier_call(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

void fence_setup(void)
{
    long supported = membarrier_call(MEMBARRIER_CMD_QUERY);

    thread_assert_only();
    fence_is_asymmetric = supported > 0 && (supported & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
                          membarrier_call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void fence_heavy(void)
{
    spinlock_assert_may_sleep();
    fence_full();
    if (fence_is_asymmetric)
        membarrier_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}
