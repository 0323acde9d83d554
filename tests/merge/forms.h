/* Compares the cheap form of a key's record (merge/record.h) with the plainest one, over random sequences. */
#pragma once

#include <stdint.h>

/* Runs so many sequences. Adds to *failed, returns how many passed. */
unsigned forms_run(uint64_t first_seed, uint64_t count, unsigned *failed);
