/* Knobs and figures of the memory allocator, by the names jemalloc gives them ("arenas.dirty_decay_ms"). For people who
 * look into a server; the program's own needs are in mem.h. Results are 0 or an errno: ENOENT for a name that is not
 * there (all of them, without jemalloc), EPERM for what cannot be changed, EINVAL for what is no number or no text. Any
 * thread. */
#pragma once

#include "base/compiler.h"

#include <stdint.h>

must_check int mem_control_number(const char *name, uint64_t *value); /* up to 64 bits, also a truth value */
must_check int mem_control_set_number(const char *name, uint64_t value);
must_check int mem_control_text(const char *name, const char **value); /* constant as long as it is not changed */
must_check int mem_control_set_text(const char *name, const char *value);
must_check int mem_control_act(const char *name); /* a name that stands for something to do; EPERM: not that */

/* For tests: `run` is called while the allocator asks for pages, with locks of its own held, and must not return;
 * without jemalloc it is called as it is. */
void mem_control_run_inside(void (*run)(void));
