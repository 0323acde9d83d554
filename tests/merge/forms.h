/* Compares the cheap form of a key's record (merge/record.h) with the plainest one, over random sequences. */
#pragma once

#include <stdint.h>

/* Runs so many sequences. Adds to *failed, returns how many passed. */
unsigned forms_run(uint64_t first_seed, uint64_t count, unsigned *failed);

/* Breaks a rule. Returns how many sequences it took to find a difference, 0: none of so many did. */
uint64_t forms_find(unsigned rule, uint64_t most);
