/* Admission: which connections are accepted when maxclients is near, and which clients are closed under overload. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct worker;

/* True if the peer is on this machine: a loopback address or a unix socket. A pure function. */
bool admission_is_local(const struct sockaddr_storage *peer);

/* The number of connections below which one more is accepted. The last maxclients-reserved of maxclients are for
 * connections from this machine, so that an administrator can still connect. A pure function. */
uint64_t admission_limit(uint64_t most, uint64_t reserved, bool is_local);

/* Overload protection. Every 10 s the processor time of the process is compared with overload-protect-percent of one
 * processor for each worker. If it was more, clients are closed every second of the next 10 s, as long as the second
 * before was too much as well: at most a tenth of a worker's clients and at most OVERLOAD_CLOSES in all, chosen at
 * random. Some clients are never closed: those with a blocked or parked command, with unsent output, with MONITOR or
 * with CLIENT NO-EVICT. */
enum { OVERLOAD_SPAN_US = 10 * 1000 * 1000, OVERLOAD_CLOSES = 100 };

struct overload {          /* owner: worker 0's thread, except for the atomic fields */
    int64_t span_began_us; /* 0: overload protection is off */
    uint64_t span_cpu_us;  /* processor time at that moment */
    int64_t looked_us;
    uint64_t looked_cpu_us;
    bool is_over;            /* the last complete span was above the limit */
    _Atomic bool is_closing; /* atomic: relaxed; workers close clients */
    _Atomic uint64_t closed; /* atomic: relaxed; number of clients closed */
};

/* Call it about once a second. percent 0: there is no limit, and the state is reset. Returns true if a span above the
 * limit ended, and the span before was not above it or did not exist. Changes only the struct. */
bool overload_look(struct overload *overload, uint64_t percent, unsigned threads, int64_t now_us, uint64_t cpu_us);

/* Each second, in the worker's thread. Worker 0 measures; each worker closes its share of clients. */
void overload_tick(struct worker *worker);
