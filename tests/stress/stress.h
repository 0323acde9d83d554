/* Functions that the parts share: counting checks, random numbers, time, a server under test.
 *
 * A part runs in the main thread and starts threads of its own. Checks are counted by the main thread only; any thread
 * may complain(), which prints and counts, and the part then checks that no thread did. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PRINTF(text, values) __attribute__((format(printf, text, values)))
#define COUNTOF(array) (sizeof(array) / sizeof((array)[0]))

/* The options of the command line. */
struct options {
    const char *server;
    const char *folder;
    double seconds;
    uint64_t seed;
    int server_threads;
    const char *preload; /* a library for the server; NULL: none */
    const char *dir;     /* where the server keeps its files; NULL: it has none */
    bool strict;         /* times are checked, too: a long run */
};

/* Each part runs for about so many seconds. */
void part_linear(const struct options *options, double seconds);
void part_invariants(const struct options *options, double seconds);
void part_replica(const struct options *options, double seconds);
void part_follower(const struct options *options, double seconds);
void part_parking(const struct options *options, double seconds);
void part_gate(const struct options *options, double seconds);
void part_waiting(const struct options *options, double seconds);
void part_messages(const struct options *options, double seconds);
void part_told(const struct options *options, double seconds);
void part_leaks(const struct options *options, double seconds);
void part_lifetimes(const struct options *options, double seconds);
void part_switches(const struct options *options, double seconds);

/* --- results --- */

void check(bool ok, const char *format, ...) PRINTF(2, 3); /* counts one test and prints it */
void say(const char *format, ...) PRINTF(1, 2);
void complain(const char *format, ...) PRINTF(1, 2);      /* any thread: something is wrong */
uint64_t complaints(void);                                /* how many since the last call; any thread */
_Noreturn void die(const char *format, ...) PRINTF(1, 2); /* the test itself cannot go on */

/* --- time and chance --- */

uint64_t now_ns(void);
void sleep_ms(double ms);

struct chance {
    uint64_t state;
};
struct chance chance_make(uint64_t seed, uint64_t stream);
uint64_t chance_next(struct chance *chance);
uint32_t chance_below(struct chance *chance, uint32_t limit);

/* --- a server under test --- */

struct server {
    pid_t pid;
    int port;
    char log_path[512];
    struct server *outer; /* started before it, stopped after it */
};

void server_start(struct server *server, const struct options *options, int threads);
/* SHUTDOWN; checks that it left with exit code 0. */
void server_stop(struct server *server, const char *part);
bool server_is_alive(struct server *server);

/* --- threads --- */

typedef void thread_fn(void *context, unsigned index);
/* Runs so many at once and waits for all. */
void threads_run(unsigned count, thread_fn *run, void *context);
