/* Who is let in when places are short, and when there is more to do than the processors can: who has to leave. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct worker;

/* Does the peer speak from this machine: a loopback address or a unix socket? Pure. */
bool admission_is_local(const struct sockaddr_storage *peer);

/* How many connections there may be for one more to be let in: the last maxclients-reserved of maxclients are for
 * connections from this machine, so that an administrator gets in when all others' places are taken. Pure. */
uint64_t admission_limit(uint64_t most, uint64_t reserved, bool is_local);

/* Overload: every 10 s the processor time of the process is compared with overload-protect-percent of one processor a
 * worker. If it took more, clients are closed during the next 10 s, every second and as long as the second before was
 * too much as well: at most a tenth of a worker's clients and at most OVERLOAD_CLOSES of all, chosen by chance. Never
 * those who wait for us (blocked, parked), to whom we still owe bytes, who watch (MONITOR) or asked for NO-EVICT. */
enum { OVERLOAD_SPAN_US = 10 * 1000 * 1000, OVERLOAD_CLOSES = 100 };

struct overload {          /* owner: worker 0's thread, but for the atomic ones */
    int64_t span_began_us; /* 0: not looking */
    uint64_t span_cpu_us;  /* processor time then */
    int64_t looked_us;
    uint64_t looked_cpu_us;
    bool is_over;            /* the last whole span was too much */
    _Atomic bool is_closing; /* atomic, relaxed: workers close clients */
    _Atomic uint64_t closed; /* atomic, relaxed: by them */
};

/* Takes a look, about once a second. percent 0: there is no limit, all is forgotten. True: a span ended too high that
 * followed one which did not, or the first. Pure but for the struct. */
bool overload_look(struct overload *overload, uint64_t percent, unsigned threads, int64_t now_us, uint64_t cpu_us);

/* Each second, in the worker's thread. Worker 0 looks; each closes its share. */
void overload_tick(struct worker *worker);
