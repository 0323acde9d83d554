/* For builds with AddressSanitizer; does nothing in others.
 *
 * That sanitizer's runtime does not take its own locks when the process forks: one that another thread holds just then
 * is never released in the child, which would wait for it for ever. It holds them while it allocates or frees, and
 * while a thread begins or ends. So a fork waits until no thread does so by functions of ours (base/mem.h,
 * base/thread.h); what libraries allocate by themselves is not known here. Any thread. With gcc alone: clang does not
 * define the macro. */
#pragma once

#include "base/compiler.h"

#ifdef __SANITIZE_ADDRESS__
/* Around each call of the allocator, and of pthread_create. They do not nest. */
void fork_guard_enter(void);
void fork_guard_leave(void);
void fork_guard_thread_begun(void); /* by the new thread, first */
void fork_guard_thread_ends(void);  /* likewise, last */
#else
static inline void fork_guard_enter(void)
{
}
static inline void fork_guard_leave(void)
{
}
static inline void fork_guard_thread_begun(void)
{
}
static inline void fork_guard_thread_ends(void)
{
}
#endif
