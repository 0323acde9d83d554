/* Memory tests: they write patterns to memory and read them back. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Writes and checks all patterns once. The contents of the words are lost. `pass` varies the random patterns. Returns
 * the number of words that came back different. */
size_t memtest_run(volatile uint64_t *words, size_t count, uint64_t pass);

/* Tests every resident page that the process may write, and restores each page at once. Stop all other threads
 * first. The caller's stack must lie within [spared, spared + spared_size), which is not tested. Stops after
 * limit_ms. Async-signal-safe. */
struct memtest_result {
    uint64_t tested_bytes;
    uint64_t wrong_words;
    const void *first_wrong; /* NULL: none */
    int is_complete;         /* 0: limit_ms was reached */
};
struct memtest_result memtest_process(const void *spared, size_t spared_size, int64_t limit_ms);
