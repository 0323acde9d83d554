/* rdb-key-save-delay: sleeps for each key that is written, for tests. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* Sleeps for so many keys: `delay_us` for each; below zero: one microsecond for so many. In short pieces, between which
 * go_on is called: false: no more. False: it has not slept, as they are too few. Under no lock. */
bool key_delay_sleep(int64_t delay_us, uint64_t keys, bool (*go_on)(void *context), void *context);
