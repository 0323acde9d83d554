/* Compiler hints, checks and annotations beyond standard C, for gcc 12 and clang 14. No code. */
#pragma once

#include <stddef.h>

#define CACHE_LINE_BYTES 64

#define must_check __attribute__((warn_unused_result))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NORETURN __attribute__((noreturn))
#define PRINTF_LIKE(format_index, first_index) __attribute__((format(printf, format_index, first_index)))
#define NOINLINE __attribute__((noinline))
#define COLD __attribute__((cold, noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define CACHE_ALIGNED __attribute__((aligned(CACHE_LINE_BYTES)))
#define FALLTHROUGH __attribute__((fallthrough))
#define UNUSED __attribute__((unused))
/* For thread-local variables that several files use. Nothing outside of the program uses them, so reading one takes one
 * instruction. */
#define THREAD_LOCAL __attribute__((visibility("hidden"), tls_model("local-exec"))) _Thread_local

#define countof(array) (sizeof(array) / sizeof((array)[0]))
#define container_of(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))
/* Each argument is evaluated once: it may be the load of an atomic, or a clock. */
#define MIN(a, b) PICK(<, a, b, __COUNTER__)
#define MAX(a, b) PICK(>, a, b, __COUNTER__)
#define PICK(than, a, b, number) PICK_NUMBERED(than, a, b, number)
#define PICK_NUMBERED(than, a, b, number) PICK_NAMED(than, a, b, pick_a_##number, pick_b_##number)
#define PICK_NAMED(than, a, b, name_a, name_b) \
    __extension__({                            \
        const __auto_type name_a = (a);        \
        const __auto_type name_b = (b);        \
        name_a than name_b ? name_a : name_b;  \
    })

/* Thread-safety annotations. clang checks REQUIRES on calls. GUARDED_BY on a field only informs the reader. */
#ifdef __clang__
#define CAPABILITY(name) __attribute__((capability(name)))
#define REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define ACQUIRES(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define RELEASES(...) __attribute__((release_capability(__VA_ARGS__)))
#define NO_THREAD_SAFETY_ANALYSIS __attribute__((no_thread_safety_analysis))
#else
#define CAPABILITY(name)
#define REQUIRES(...)
#define ACQUIRES(...)
#define RELEASES(...)
#define NO_THREAD_SAFETY_ANALYSIS
#endif
#define GUARDED_BY(lock)

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif
#ifndef THREAD_SANITIZER
#define THREAD_SANITIZER 0
#endif
