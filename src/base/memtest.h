/* Is the memory of this machine sound? Patterns are written and read back. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* All patterns once over the words; what they held is lost. `pass` varies the random ones. Returns how many words came
 * back different. */
size_t memtest_run(volatile uint64_t *words, size_t count, uint64_t pass);

/* Every resident page of the process that it may write, each set back at once. While nothing else runs: all other
 * threads are held, the caller stands on a stack within [spared, spared + spared_size), which is left out. Stops after
 * limit_ms. Async-signal-safe. */
struct memtest_result {
    uint64_t tested_bytes;
    uint64_t wrong_words;
    const void *first_wrong; /* NULL: none */
    int is_complete;         /* 0: time was over */
};
struct memtest_result memtest_process(const void *spared, size_t spared_size, int64_t limit_ms);
