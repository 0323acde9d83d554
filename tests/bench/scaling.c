/* Scaling in process: threads run batches of parsed commands on the keyspace as dispatch does, without sockets, and
 * each tells how much CPU time a command took it. Prints "1 thread: N ns   2 threads: N ns   ratio N".
 *
 *     scaling [ROUNDS] [KEYS]          linked with the library; threads are bound to processors 0 and 1
 *
 * A batch: hash the keys, enter the gate, take the stripes in ascending order, prefetch, run each command (as many GETs
 * as SETs, keys drawn evenly), release, leave. Rounds with one and with two threads alternate; medians are compared. */
#include "base/fence.h"
#include "base/gate.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/thread.h"
#include "store/access.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    BATCH = 8,
    THREADS_MOST = 2,
    COMMANDS = 2000000, /* a thread and round */
    KEYS_DEFAULT = 1000000,
    ROUNDS_DEFAULT = 7,
    ROUNDS_MOST = 101,
    KEY_BYTES = 16,
    VALUE_BYTES = 64
};

struct bench {
    struct store *store;
    struct gate gate;
    uint64_t key_count;
};

struct runner {
    CACHE_ALIGNED struct bench *bench;
    struct gate_member member;
    struct access access;
    struct store_counters counters;
    struct random random;
    pthread_barrier_t *start;
    unsigned cpu;
    double command_ns; /* CPU time of this thread a command */
    uint64_t found;
};

static void no_wake(void *context)
{
    (void)context;
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* "key:000000012345": as redis-benchmark names them. */
static void key_name(char out[KEY_BYTES], uint64_t number)
{
    memcpy(out, "key:", 4);
    for (int i = KEY_BYTES - 1; i >= 4; i--) {
        out[i] = (char)('0' + number % 10);
        number /= 10;
    }
}

static unsigned arrange(uint32_t *stripes, unsigned count)
{
    unsigned kept = 0;

    for (unsigned i = 1; i < count; i++) {
        uint32_t stripe = stripes[i];
        unsigned k = i;

        for (; k > 0 && stripes[k - 1] > stripe; k--)
            stripes[k] = stripes[k - 1];
        stripes[k] = stripe;
    }
    for (unsigned i = 1; i < count; i++) {
        if (stripes[i] != stripes[kept])
            stripes[++kept] = stripes[i];
    }
    return kept + 1;
}

static void prefetch(const struct bench *bench, const struct access *access, const struct key *keys)
{
    const struct table *tables[BATCH];

    for (unsigned i = 0; i < BATCH; i++) {
        tables[i] = &bench->store->stripes[access_stripe_of(access, &keys[i])].first.keys;
        table_prefetch_directory(tables[i], keys[i].hash);
    }
    for (unsigned i = 0; i < BATCH; i++)
        table_prefetch_bucket(tables[i], keys[i].hash);
    for (unsigned i = 0; i < BATCH; i++)
        table_prefetch_item(tables[i], keys[i].hash);
}

static void run_get(struct runner *runner, const struct key *key)
{
    struct entry *entry = access_read(&runner->access, 0, key);
    char scratch[ENTRY_INT_TEXT_BYTES];

    if (entry != NULL)
        runner->found += entry_string(entry, scratch).size != 0;
}

static void run_set(struct runner *runner, const struct key *key)
{
    static const char value[VALUE_BYTES] = "a value like any other";
    struct change change;

    change_begin(&change, &runner->access, 0, key);
    change_put_string(&change, slice_make(value, sizeof(value)), EXPIRE_NEVER);
    change_end(&change, EVENT_STRING, "set");
}

static void run_batch(struct runner *runner, const struct key *keys, unsigned set_mask)
{
    struct access *access = &runner->access;
    uint32_t stripes[BATCH], busy;
    unsigned stripe_count;

    while (!gate_enter(&runner->member))
        fence_pause();
    for (unsigned i = 0; i < BATCH; i++)
        stripes[i] = access_stripe_of(access, &keys[i]);
    stripe_count = arrange(stripes, BATCH);
    while (!access_lock(access, stripes, stripe_count, &busy))
        fence_pause();
    prefetch(runner->bench, access, keys);
    for (unsigned i = 0; i < BATCH; i++) {
        access_begin(access, 1, false);
        if ((set_mask >> i & 1) != 0)
            run_set(runner, &keys[i]);
        else
            run_get(runner, &keys[i]);
    }
    access_unlock(access, stripes, stripe_count);
    gate_leave(&runner->member);
}

static void run_commands(struct runner *runner, uint64_t count)
{
    char names[BATCH][KEY_BYTES];
    struct key keys[BATCH];

    for (uint64_t done = 0; done < count; done += BATCH) {
        uint64_t dice = random_u64(&runner->random);

        for (unsigned i = 0; i < BATCH; i++)
            key_name(names[i], random_below(&runner->random, runner->bench->key_count));
        for (unsigned i = 0; i < BATCH; i++) {
            keys[i] = key_make(slice_make(names[i], KEY_BYTES));
            __builtin_prefetch(&runner->bench->store->stripes[access_stripe_of(&runner->access, &keys[i])], 1);
        }
        run_batch(runner, keys, (unsigned)dice & ((1U << BATCH) - 1));
    }
}

static void run(void *argument)
{
    struct runner *runner = argument;
    uint64_t before;

    if (!thread_set_affinity((int)runner->cpu))
        fprintf(stderr, "scaling: a thread could not be bound to processor %u\n", runner->cpu);
    access_init(&runner->access, runner->bench->store, &runner->counters);
    gate_join(&runner->bench->gate, &runner->member, no_wake, NULL);
    run_commands(runner, COMMANDS / 10);
    pthread_barrier_wait(runner->start);
    before = thread_cpu_ns();
    run_commands(runner, COMMANDS);
    runner->command_ns = (double)(thread_cpu_ns() - before) / COMMANDS;
    pthread_barrier_wait(runner->start);
    gate_part(&runner->member);
}

static double one_round(struct bench *bench, unsigned thread_count)
{
    static struct runner runners[THREADS_MOST];
    static struct thread threads[THREADS_MOST];
    pthread_barrier_t start;
    double sum = 0;

    pthread_barrier_init(&start, NULL, thread_count);
    memset(runners, 0, sizeof(runners));
    for (unsigned i = 0; i < thread_count; i++) {
        runners[i].bench = bench;
        runners[i].start = &start;
        runners[i].cpu = i;
        random_seed(&runners[i].random, i + 1);
        thread_start(&threads[i], "runner", run, &runners[i]);
    }
    for (unsigned i = 0; i < thread_count; i++) {
        thread_join(&threads[i]);
        sum += runners[i].command_ns;
        if (runners[i].found == 0)
            abort(); /* this is not the keyspace to measure with */
    }
    pthread_barrier_destroy(&start);
    return sum / thread_count;
}

static void fill(struct bench *bench)
{
    static struct runner runner;

    runner.bench = bench;
    access_init(&runner.access, bench->store, &runner.counters);
    gate_join(&bench->gate, &runner.member, no_wake, NULL);
    for (uint64_t i = 0; i < bench->key_count; i++) {
        char name[KEY_BYTES];
        struct key key;
        uint32_t stripe, busy;

        key_name(name, i);
        key = key_make(slice_make(name, KEY_BYTES));
        stripe = access_stripe_of(&runner.access, &key);
        if (!access_lock(&runner.access, &stripe, 1, &busy))
            abort(); /* nobody else is there */
        access_begin(&runner.access, 1, false);
        run_set(&runner, &key);
        access_unlock(&runner.access, &stripe, 1);
    }
    gate_part(&runner.member);
}

static int compare(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;

    return (first > second) - (first < second);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    static double times[THREADS_MOST][ROUNDS_MOST];
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : ROUNDS_DEFAULT;
    struct bench bench = {.key_count = argc > 2 ? strtoull(argv[2], NULL, 10) : KEYS_DEFAULT};
    double one, two;

    if (rounds == 0 || rounds > ROUNDS_MOST || bench.key_count == 0) {
        fprintf(stderr, "usage: scaling [ROUNDS (1 to %d)] [KEYS]\n", ROUNDS_MOST);
        return 2;
    }
    fence_setup();
    hash_setup();
    mem_thread_start();
    gate_init(&bench.gate);
    bench.store = store_create(STORE_STRIPES_DEFAULT, 1);
    fill(&bench);
    for (unsigned i = 0; i < rounds; i++) {
        times[0][i] = one_round(&bench, 1);
        times[1][i] = one_round(&bench, 2);
    }
    one = median(times[0], rounds);
    two = median(times[1], rounds);
    printf("1 thread: %.1f ns   2 threads: %.1f ns   ratio %.3f\n", one, two, two / one);
    store_destroy(&bench.store);
    gate_fini(&bench.gate);
    mem_thread_stop();
    return 0;
}
