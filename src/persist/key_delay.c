#include "persist/key_delay.h"

#include "base/spinlock.h"

#include <unistd.h>

enum { PIECE_US = 10 * 1000 };

bool key_delay_sleep(int64_t delay_us, uint64_t keys, bool (*go_on)(void *context), void *context)
{
    spinlock_assert_may_sleep();
    if (delay_us < 0) {
        if (keys < (uint64_t)-delay_us)
            return false;
        (void)usleep(1);
        return true;
    }
    for (uint64_t i = 0; i < keys; i++) {
        int64_t left_us = delay_us;

        do {
            (void)usleep((useconds_t)MIN(left_us, (int64_t)PIECE_US));
            left_us -= PIECE_US;
            if (!go_on(context))
                return true;
        } while (left_us > 0);
    }
    return true;
}
