/* Reads and sets controls of the memory allocator by jemalloc's names ("arenas.dirty_decay_ms"), for administrators and
 * diagnosis. The program itself uses mem.h. A result is 0 or an errno: ENOENT: there is no such name (without jemalloc
 * there is none); EPERM: the value cannot be changed; EINVAL: the value is not a number or not a text. Any thread may
 * call these functions. */
#pragma once

#include "base/compiler.h"

#include <stdint.h>

must_check int mem_control_number(const char *name, uint64_t *value); /* a number of up to 64 bits, or a truth value */
must_check int mem_control_set_number(const char *name, uint64_t value);
/* The text is constant until the value is changed. */
must_check int mem_control_text(const char *name, const char **value);
must_check int mem_control_set_text(const char *name, const char *value);
/* For names that stand for an action; EPERM: the name stands for a value. */
must_check int mem_control_act(const char *name);

/* For tests: calls `run` while the allocator asks for pages and holds locks of its own. `run` must not return. Without
 * jemalloc `run` is called directly. */
void mem_control_run_inside(void (*run)(void));
