/* Counters of lookups and changes of keys. One thread counts; any thread reads (relaxed). */
#pragma once

#include <stdint.h>

/* The counters that INFO shows, since start or CONFIG RESETSTAT: a counter is one line here. */
#define STORE_COUNTERS(X) \
    X(keyspace_hits)      \
    X(keyspace_misses)    \
    X(expired_keys)       \
    X(expired_members)    \
    X(evicted_keys)

struct store_counters {
#define COUNTER(name) _Atomic uint64_t name;
    STORE_COUNTERS(COUNTER)
#undef COUNTER
    _Atomic uint64_t dirty; /* changes of keys */
};
