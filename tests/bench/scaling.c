/* What a command costs when more threads run commands: the whole server in this process, without a network. In each
 * worker's thread a client's input is given to dispatch, as the event loop does, in batches of 1 or of 32 requests, and
 * its replies are dropped. One turn of the loop has TURN_REQUESTS of them. See usage() for the options.
 *
 * What a machine takes from a thread when its other processors work, too (shared cores, caches and memory, a lower
 * clock) is not the program's doing. So beside n threads of one server stand n servers of one thread each, which share
 * nothing: "apart". Printed are medians of rounds in which one thread, n apart and n together take turns:
 *
 *     ns         processor time a command of the workers' threads, without what writing the requests took. It is of
 *                the median turn of the loop, of those in which no thread lost its processor and all of them ran: so
 *                other work of the machine does little harm. nan: there were too few, as it has too much
 *     x          n together against n apart: the median of the rounds' ratios. 1: threads cost each other nothing
 *     M/s        million commands a second of all threads of this server
 *     stripe     stripes found held by another thread, in 100 commands
 *     journal    the journal's lock found held, in 100 commands
 *     parked     commands that were parked, in a million
 *     others ns  processor time a command of all other threads: with the journal, of the one that writes the file
 *
 * The model (--model). A cycle is a group of g commands that hold their stripes together: g = min(batch, 8). T(n) is
 * its time with n threads, each on a processor of its own; its parts:
 *
 *     T(n) = T(1) + L (n - 1)/n + W(n)         T(1): as measured apart
 *
 *     L      moving cache lines that all threads write: a line was last written by another thread with probability
 *            (n - 1)/n. Nothing more than that depends on n.
 *     W(n)   waiting, for the journal's lock and for stripes. Station k is visited v(k) times a cycle and held for s(k)
 *            each time. Visitors find others there in proportion to the time that these spend there (Bard and
 *            Schweitzer's approximation of a closed network of queues), which is solved by repetition:
 *
 *                R(k) = s(k) (1 + (n - 1)/n Q(k))
 *                Q(k) = min(n, n v(k) R(k) / T(n))
 *                W(n) = sum v(k) (R(k) - s(k))
 *
 *            The journal: v = 1, s = s_j, one reservation for a group. A stripe that holds the share p of what is asked
 *            for: v = 1 - (1 - p)^g, s = h + the wait for the journal, since it is appended to under the stripes.
 *
 * It is fitted to one and two threads: of two, one finds a station held in proportion to the time for which the other
 * one holds it. So s_j = T(2) x (times found held, a cycle), h = T(2) x (likewise of stripes) / sum v(k)^2, and L is
 * what is left of T(2) - T(1). Each of the three is at least 0.
 *
 * Not in it: memory that is too slow for all of them, a second socket (lines move several times as slowly), processors
 * that share a core, and that a lock is handed over more slowly the more threads look at it: where the model says that
 * a lock is the limit, less than that limit will come. A thread that has waited for long serves other clients; here it
 * has none. So then M/s counts, and ns is an upper bound. The file has a limit of its own, as one thread writes it: its
 * "others ns" a command. Beyond it writers wait (aof-lag-limit). */
#define main server_main
int server_main(int argc, char **argv);
#include "main.c" /* so that nothing of how it is put together is said twice */
#undef main

#include "base/random.h"
#include "server/core/client.h"
#include "server/durable/aof_writer.h"

#include <err.h>
#include <fnmatch.h>
#include <ftw.h>
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

enum {
    TURN_REQUESTS = 1024,
    REQUEST_BYTES_MOST = 160,
    VALUE_BYTES = 64,
    NUMBER_DIGITS = 12,
    DRAWS = 1 << 20, /* a worker's, in turn */
    FIELDS = 1000,   /* of the one hash */
    ROUNDS_MOST = 1001,
    TURNS_MOST = 1 << 15, /* of a worker in a round; later ones are not noted */
    TURNS_LEAST = 20,
    TURNS_FEW = 6,   /* a round with fewer that count does not */
    WARM_SHARE = 4,  /* the first part of a round fills the caches */
    COUNTS_MOST = 8, /* 1, 2, 4, ... 64 threads */
    PATIENCE_MS = 60000
};

/* ---------------------------------------------------------------------------------------------------- workloads -- */

enum spread { SPREAD_OWN, SPREAD_UNIFORM, SPREAD_ZIPF, SPREAD_KEY, SPREAD_HASH, SPREAD_COUNT };

struct workload {
    bool writes;
    enum spread spread;
    unsigned batch;
    bool journals;
};

static const char *const spread_names[SPREAD_COUNT] = {"own", "uniform", "zipf", "key", "hash"};

static void workload_name(const struct workload *workload, char *text, size_t size)
{
    snprintf(text, size, "%s %s %u %s", workload->writes ? "set" : "get", spread_names[workload->spread],
             workload->batch, workload->journals ? "journal" : "plain");
}

static struct {
    const char *folder, *pattern;
    uint64_t keys, rounds, round_ms, threads;
    bool model;
} options = {.folder = "/tmp", .pattern = "*", .keys = 1000000, .rounds = 5, .round_ms = 150};

static void usage(void)
{
    fprintf(
        stderr,
        "usage: scaling [OPTION VALUE]... [--model]\n"
        "  --only PATTERN   workloads, such as \"set zipf 32 journal\": get or set; own (a part of the stripes for\n"
        "                   each thread), uniform, zipf (0.99), key (one), hash (HGET and HSET in one, of %d\n"
        "                   fields); batches of 1 or 32; plain, or journal (with an append-only file). With *\n"
        "                   and ?; default: all\n"
        "  --threads N      at most so many (default: as many as there are processors)\n"
        "  --rounds N       of each number of threads (5; at most %d)\n"
        "  --ms N           length of a round (150)\n"
        "  --keys N         (1000000)\n"
        "  --dir FOLDER     for the append-only file, some GB (/tmp)\n"
        "  --model          also what the model predicts for 8, 16 and 64 threads\n",
        FIELDS, ROUNDS_MOST);
    exit(2);
}

/* A request with a number in it. */
struct form {
    char text[REQUEST_BYTES_MOST];
    size_t size, digits; /* the place of the number's last digit */
};

static void form_init(struct form *form, bool writes, bool of_hash)
{
    static const char *const commands[2][2] = {{"*2\r\n$3\r\nGET\r\n", "*3\r\n$3\r\nSET\r\n"},
                                               {"*3\r\n$4\r\nHGET\r\n$4\r\nhash\r\n",
                                                "*4\r\n$4\r\nHSET\r\n$4\r\nhash\r\n"}};
    char value[VALUE_BYTES + 1];

    memset(value, 'v', VALUE_BYTES);
    value[VALUE_BYTES] = '\0';
    form->size = (size_t)snprintf(form->text, sizeof(form->text), "%s$16\r\nkey:%012d\r\n", commands[of_hash][writes],
                                  0);
    form->digits = form->size - 3;
    if (writes)
        form->size += (size_t)snprintf(form->text + form->size, sizeof(form->text) - form->size, "$%d\r\n%s\r\n",
                                       VALUE_BYTES, value);
    assert(form->size < sizeof(form->text));
}

static void form_write(const struct form *form, char *to, uint64_t number)
{
    memcpy(to, form->text, form->size);
    for (char *digit = to + form->digits; number != 0; number /= 10)
        *digit-- = (char)('0' + number % 10);
}

/* ----------------------------------------------------------------------------------------------- in the workers -- */

/* One round: workers 0 to count - 1 run until they are told to stop, or have run `limit` requests. */
struct round {
    _Atomic unsigned arrived, ended; /* atomic: workers count themselves */
    _Atomic bool stop;               /* atomic: the driving thread sets it */
    unsigned count;                  /* these are const while it runs */
    struct form form;
    unsigned batch;
    bool in_order;  /* keys one after the other, instead of those that were drawn */
    uint64_t limit; /* 0: none */
};

/* What a worker has done in a round; the worker's while it runs. */
struct measure {
    uint64_t thread_ns; /* all of the thread's */
    uint64_t wall_ns, commands;
};

/* One turn of the loop. */
struct turn {
    uint64_t from_ns, to_ns; /* of the monotonic clock */
    uint64_t cpu_ns, stripe_waits, journal_waits;
    uint64_t losses; /* of its processor: to somebody else, or it slept as its client was parked */
};

/* Owner: the worker's thread while a round runs, else the driving thread. */
struct runner {
    CACHE_ALIGNED struct mail mail;
    struct client *client;
    struct round *round;
    uint32_t *draws;
    uint64_t next;
    char *input;        /* requests of this turn */
    size_t given, size; /* of it: bytes that dispatch has taken; all */
    bool has_begun;
    struct turn *turns;
    unsigned turn_count;
    struct turn now; /* with the counts where it began; from_ns 0: it does not count */
    uint64_t entered_cpu_ns, began_wall_ns;
    struct measure done;
};

static struct {
    struct runner *runners;
    struct round round;
    unsigned thread_count;
    unsigned processor; /* of its first thread; above 0 it is a neighbour, of one thread */
} bench;

/* What the processes share. */
static struct {
    _Atomic unsigned ready;   /* atomic: servers that are filled */
    _Atomic unsigned wanted;  /* atomic: so many neighbours are to work */
    _Atomic unsigned working; /* atomic: so many do */
} * neighbourhood;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void nap(void)
{
    usleep(50);
}

/* All begin together. */
static void begin(struct runner *runner)
{
    struct round *round = runner->round;

    runner->entered_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    runner->done = (struct measure){0};
    runner->given = runner->size = 0;
    runner->turn_count = 0;
    runner->now.from_ns = 0;
    runner->has_begun = true;
    atomic_fetch_add(&round->arrived, 1);
    while (atomic_load(&round->arrived) != round->count)
        sched_yield();
    runner->began_wall_ns = clock_ns(CLOCK_MONOTONIC);
}

static void end(struct runner *runner)
{
    struct measure *done = &runner->done;

    done->thread_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - runner->entered_cpu_ns;
    done->wall_ns += clock_ns(CLOCK_MONOTONIC) - runner->began_wall_ns;
    runner->has_begun = false;
    atomic_fetch_add(&runner->round->ended, 1);
}

/* Requests for a turn. What it takes is not counted. */
static void write_requests(struct runner *runner)
{
    const struct round *round = runner->round;
    const uint64_t wall_ns = clock_ns(CLOCK_MONOTONIC);

    for (unsigned i = 0; i < TURN_REQUESTS; i++) {
        const uint64_t number = runner->next++;

        form_write(&round->form, runner->input + i * round->form.size,
                   round->in_order ? number % options.keys : runner->draws[number % DRAWS]);
    }
    runner->given = 0;
    runner->size = TURN_REQUESTS * round->form.size;
    runner->done.wall_ns -= clock_ns(CLOCK_MONOTONIC) - wall_ns;
}

/* As the loop does with what a socket had. A client that waits takes nothing more. */
static void give_requests(struct runner *runner)
{
    struct conn *conn = &runner->client->conn;
    const struct round *round = runner->round;
    const size_t batch_bytes = round->batch * round->form.size;

    while (runner->given < runner->size && runner->client->parked == NULL) {
        const size_t before = runner->given, batch_end = before - before % batch_bytes + batch_bytes;

        runner->given += conn->handler->on_data(conn, runner->input + before, batch_end - before);
        runner->done.commands += (runner->given - before) / round->form.size;
        if (LIKELY(runner->client->held_output == NULL)) /* else it counts what is there */
            output_clear(&conn->output);
    }
}

/* The counts at this moment. */
static struct turn look(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return (struct turn){.from_ns = clock_ns(CLOCK_MONOTONIC),
                         .cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID),
                         .stripe_waits = spinlock_waits[LOCK_STRIPE],
                         .journal_waits = spinlock_waits[LOCK_JOURNAL],
                         .losses = (uint64_t)(usage.ru_nivcsw + usage.ru_nvcsw)};
}

/* The turn before is over, with all that the loop does at its end. */
static void note_turn(struct runner *runner)
{
    const struct turn *before = &runner->now, after = look();

    if (before->from_ns != 0 && runner->turn_count < TURNS_MOST)
        runner->turns[runner->turn_count++] = (struct turn){.from_ns = before->from_ns,
                                                            .to_ns = after.from_ns,
                                                            .cpu_ns = after.cpu_ns - before->cpu_ns,
                                                            .stripe_waits = after.stripe_waits - before->stripe_waits,
                                                            .journal_waits = after.journal_waits -
                                                                             before->journal_waits,
                                                            .losses = after.losses - before->losses};
}

static bool is_warm(const struct runner *runner)
{
    return clock_ns(CLOCK_MONOTONIC) - runner->began_wall_ns >= options.round_ms * 1000000 / WARM_SHARE;
}

static void turn(struct worker *worker, struct mail *mail)
{
    struct runner *runner = container_of(mail, struct runner, mail);
    const struct round *round = runner->round;

    if (!runner->has_begun)
        begin(runner);
    if (runner->given == runner->size) {
        note_turn(runner);
        write_requests(runner);
        runner->now = is_warm(runner) ? look() : (struct turn){0};
    }
    give_requests(runner);
    if (UNLIKELY(runner->client->parked != NULL))
        nap(); /* as a worker sleeps that has no other client */
    if (runner->client->parked == NULL && runner->given == runner->size &&
        ((runner->turn_count >= TURNS_LEAST && atomic_load_explicit(&round->stop, memory_order_relaxed)) ||
         (round->limit != 0 && runner->done.commands >= round->limit)))
        end(runner);
    else
        worker_post(worker, &mail);
    worker->turn_mail_bytes = UINT64_MAX / 2; /* more than a turn reads: the next mail is for the next turn */
}

static void find_client(struct worker *worker, struct mail *mail)
{
    struct runner *runner = container_of(mail, struct runner, mail);

    runner->client = container_of(list_first(&worker->clients), struct client, node);
    atomic_fetch_add(&runner->round->ended, 1);
}

/* -------------------------------------------------------------------------------------------------- beside them -- */

/* Posts to the first workers, and waits until they are done. */
static void run_round(void (*deliver)(struct worker *worker, struct mail *mail), unsigned count, uint64_t ms)
{
    struct round *round = &bench.round;
    uint64_t deadline;

    round->count = count;
    atomic_store(&round->arrived, 0);
    atomic_store(&round->ended, 0);
    atomic_store(&round->stop, false);
    for (unsigned i = 0; i < count; i++) {
        struct mail *mail = &bench.runners[i].mail;

        bench.runners[i].round = round;
        mail->deliver = deliver;
        worker_post(&server_instance()->workers[i], &mail);
    }
    if (ms != 0) {
        usleep((unsigned)ms * 1000);
        atomic_store(&round->stop, true);
    }
    deadline = clock_ns(CLOCK_MONOTONIC) + PATIENCE_MS * UINT64_C(1000000);
    while (atomic_load(&round->ended) != count) {
        nap();
        if (clock_ns(CLOCK_MONOTONIC) > deadline)
            errx(1, "a worker does not end its round");
    }
}

static char folder[80], socket_path[sizeof(folder) + 16];

static void run_server(bool journals)
{
    static char words[][sizeof(socket_path) + 16] = {"keydb-server",
                                                     "--unixsocket",
                                                     "",
                                                     "--dir",
                                                     "",
                                                     "--server-threads",
                                                     "",
                                                     "--appendonly",
                                                     "",
                                                     "--server-thread-affinity",
                                                     "",
                                                     "--port 0",
                                                     "--save \"\"",
                                                     "--loglevel warning",
                                                     "--logfile log",
                                                     "--appendfsync no",
                                                     "--auto-aof-rewrite-percentage 0",
                                                     "--aof-lag-limit 0",
                                                     "--journal-memory-limit 0"};
    static char *args[countof(words) + 1];

    snprintf(words[2], sizeof(words[2]), "%s", socket_path);
    snprintf(words[4], sizeof(words[4]), "%s", folder);
    snprintf(words[6], sizeof(words[6]), "%u", bench.thread_count);
    snprintf(words[8], sizeof(words[8]), "%s", journals ? "yes" : "no");
    snprintf(words[10], sizeof(words[10]), "%u", bench.processor + 1);
    for (size_t i = 0; i < countof(words); i++)
        args[i] = words[i];
    (void)server_main(countof(words), args);
}

static int connect_to_server(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
    for (int tries = 0; connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0; tries++) {
        if (tries == PATIENCE_MS)
            errx(1, "the server does not start: %s/log", folder);
        usleep(1000);
    }
    return fd;
}

static void send_text(int fd, const char *text)
{
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
        err(1, "send");
}

/* Connects until each worker has a client; the clients say nothing. */
static void connect_clients(void)
{
    for (unsigned i = 0; i < bench.thread_count; i++) {
        (void)connect_to_server();
        while (atomic_load(&server_instance()->client_count) <= i)
            nap();
    }
    for (unsigned i = 0; i < bench.thread_count; i++) {
        while (atomic_load(&server_instance()->workers[i].stats.client_count) == 0)
            nap();
    }
    run_round(find_client, bench.thread_count, 0);
}

/* Shares of the keys that are asked for, rank by rank, added up. */
static double *zipf_sums(void)
{
    double *sums = malloc(options.keys * sizeof(*sums)), sum = 0;

    for (uint64_t i = 0; i < options.keys; i++)
        sums[i] = sum += pow((double)(i + 1), -0.99);
    for (uint64_t i = 0; i < options.keys; i++)
        sums[i] /= sum;
    return sums;
}

static uint64_t zipf_draw(const double *sums, double at)
{
    uint64_t low = 0, high = options.keys - 1;

    while (low < high) {
        const uint64_t middle = (low + high) / 2;

        if (sums[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t spread_size(enum spread spread)
{
    return spread == SPREAD_KEY ? 1 : spread == SPREAD_HASH ? FIELDS : options.keys;
}

static uint32_t stripe_of(uint64_t number)
{
    char name[32];
    struct key key;

    snprintf(name, sizeof(name), "key:%012llu", (unsigned long long)number);
    key = key_make(slice_from_text(name));
    return (uint32_t)key.hash & server_instance()->store->stripe_mask;
}

static uint32_t draw(enum spread spread, const double *zipf, struct random *random, unsigned index)
{
    uint32_t number;

    if (spread == SPREAD_ZIPF)
        return (uint32_t)zipf_draw(zipf, (double)random_u64(random) / 18446744073709551616.0);
    do {
        number = (uint32_t)random_below(random, spread_size(spread));
    } while (spread == SPREAD_OWN && stripe_of(number) % bench.thread_count != index);
    return number;
}

static void make_runners(void)
{
    bench.runners = aligned_alloc(CACHE_LINE_BYTES, bench.thread_count * sizeof(struct runner));
    memset(bench.runners, 0, bench.thread_count * sizeof(struct runner));
    for (unsigned i = 0; i < bench.thread_count; i++) {
        bench.runners[i].draws = malloc(DRAWS * sizeof(uint32_t));
        bench.runners[i].turns = malloc(TURNS_MOST * sizeof(struct turn));
        bench.runners[i].input = malloc((size_t)TURN_REQUESTS * REQUEST_BYTES_MOST);
    }
}

static void draw_keys(enum spread spread, const double *zipf)
{
    for (unsigned i = 0; i < bench.thread_count; i++) {
        struct random random;

        random_seed(&random, bench.processor * 1000 + i + 1);
        for (unsigned k = 0; k < DRAWS; k++)
            bench.runners[i].draws[k] = draw(spread, zipf, &random, i);
    }
}

/* All keys, in order. */
static void fill(const struct workload *workload)
{
    form_init(&bench.round.form, true, workload->spread == SPREAD_HASH);
    bench.round.batch = 32;
    bench.round.in_order = true;
    bench.round.limit = options.keys + TURN_REQUESTS;
    run_round(turn, 1, 0);
    bench.round.in_order = false;
    bench.round.limit = 0;
    form_init(&bench.round.form, workload->writes, workload->spread == SPREAD_HASH);
    bench.round.batch = workload->batch;
}

/* ------------------------------------------------------------------------------------------------------ results -- */

/* A number of threads: by command. */
struct figures {
    double ns, share, million_a_second, stripe_waits, journal_waits, parked, others_ns;
};

static uint64_t parked_commands(void)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < bench.thread_count; i++)
        sum += atomic_load(&server_instance()->workers[i].stats.lock_waits);
    return sum;
}

/* Its writer may be behind; what it takes counts, too. */
static void wait_for_file(void)
{
    struct aof_writer_stats stats = {0};

    if (!aof_writer_runs())
        return;
    do {
        nap();
        aof_writer_stats(&stats);
    } while (stats.waiting_bytes != 0);
}

static int compare_doubles(const void *a, const void *b)
{
    const double first = *(const double *)a, second = *(const double *)b;

    return (first > second) - (first < second);
}

/* Of a turn, the share in which this worker ran, too, and did not lose its processor. *at: where to look, in order. */
static double covered(const struct turn *turn, const struct runner *runner, unsigned *at)
{
    uint64_t sum = 0;

    while (*at < runner->turn_count && runner->turns[*at].to_ns <= turn->from_ns)
        ++*at;
    for (unsigned i = *at; i < runner->turn_count && runner->turns[i].from_ns < turn->to_ns; i++) {
        if (runner->turns[i].losses == 0)
            sum += MIN(turn->to_ns, runner->turns[i].to_ns) - MAX(turn->from_ns, runner->turns[i].from_ns);
    }
    return (double)sum / (double)(turn->to_ns - turn->from_ns);
}

/* Turns in which nobody lost its processor to somebody else, and all others ran. */
static void look_at_turns(struct figures *figures, unsigned count)
{
    static double times[WORKERS_MOST * TURNS_MOST];
    size_t length = 0;

    for (unsigned i = 0; i < count; i++) {
        unsigned at[WORKERS_MOST] = {0};

        for (unsigned k = 0; k < bench.runners[i].turn_count; k++) {
            const struct turn *turn = &bench.runners[i].turns[k];
            bool counts = turn->losses == 0;

            for (unsigned other = 0; other < count && counts; other++)
                counts = other == i || covered(turn, &bench.runners[other], &at[other]) > 0.7;
            if (!counts)
                continue;
            times[length++] = (double)turn->cpu_ns / TURN_REQUESTS;
            figures->stripe_waits += (double)turn->stripe_waits / TURN_REQUESTS;
            figures->journal_waits += (double)turn->journal_waits / TURN_REQUESTS;
        }
    }
    qsort(times, length, sizeof(double), compare_doubles);
    figures->ns = length >= TURNS_FEW ? times[length / 2] : NAN;
    figures->stripe_waits /= (double)MAX(length, 1U);
    figures->journal_waits /= (double)MAX(length, 1U);
}

static struct figures measure_round(unsigned count)
{
    const uint64_t process_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID), parked = parked_commands();
    struct figures figures = {0};
    double commands = 0, others_ns;

    run_round(turn, count, options.round_ms);
    wait_for_file();
    others_ns = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - process_ns);
    for (unsigned i = 0; i < count; i++) {
        const struct measure *done = &bench.runners[i].done;

        commands += (double)done->commands;
        others_ns -= (double)done->thread_ns;
        figures.million_a_second += (double)done->commands / (double)done->wall_ns * 1000;
    }
    figures.parked = (double)(parked_commands() - parked) / commands;
    look_at_turns(&figures, count);
    figures.others_ns = others_ns / commands;
    return figures;
}

/* Of each figure for itself; of rounds that count. */
static struct figures median(const struct figures *rounds, unsigned count)
{
    struct figures result;
    double column[ROUNDS_MOST];

    for (size_t at = 0; at < sizeof(result); at += sizeof(double)) {
        unsigned length = 0;

        for (unsigned i = 0; i < count; i++) {
            memcpy(&column[length], (const char *)&rounds[i] + at, sizeof(double));
            length += !isnan(rounds[i].share);
        }
        qsort(column, length, sizeof(double), compare_doubles);
        if (length == 0)
            column[0] = NAN;
        memcpy((char *)&result + at, &column[length / 2], sizeof(double));
    }
    return result;
}

/* -------------------------------------------------------------------------------------------------------- model -- */

struct model {
    double group;           /* g */
    double cycle, moves;    /* T(1) and L, ns */
    double journal, stripe; /* s_j and h, ns */
    double *visits;         /* of each stripe, a cycle: v */
    uint32_t stripe_count;
};

/* The shares of the stripes, from those of the keys. */
static void model_visits(struct model *model, const struct workload *workload, const double *zipf)
{
    const uint64_t count = workload->spread == SPREAD_HASH ? 1 : spread_size(workload->spread);

    model->stripe_count = server_instance()->store->stripe_mask + 1;
    model->visits = calloc(model->stripe_count, sizeof(double));
    for (uint64_t i = 0; i < count; i++)
        model->visits[stripe_of(i)] += workload->spread == SPREAD_ZIPF ? zipf[i] - (i != 0 ? zipf[i - 1] : 0)
                                                                       : 1 / (double)count;
    for (uint32_t k = 0; k < model->stripe_count; k++)
        model->visits[k] = 1 - pow(1 - model->visits[k], model->group);
}

/* What one visit takes: its own time, and that of those it finds there, who spend `there` a cycle. */
static double residence(double held, double there, double n, double cycle)
{
    const double others = MIN(n * there / cycle, n);

    return held * (1 + (n - 1) / n * others);
}

/* T(n) */
static double model_cycle(const struct model *model, double n)
{
    double cycle = model->cycle, *spent = calloc(model->stripe_count, sizeof(double)), at_journal = 0;

    for (int step = 0; step < 2000; step++) {
        double next = model->cycle + model->moves * (n - 1) / n, held;

        at_journal = residence(model->journal, at_journal, n, cycle);
        next += at_journal - model->journal;
        held = model->stripe + at_journal - model->journal;
        for (uint32_t k = 0; k < model->stripe_count; k++) {
            if (model->visits[k] == 0)
                continue;
            spent[k] = model->visits[k] * residence(held, spent[k], n, cycle);
            next += spent[k] - model->visits[k] * held;
        }
        cycle = 0.9 * cycle + 0.1 * next; /* slowly: else it swings */
    }
    free(spent);
    return cycle;
}

static void model_fit(struct model *model, const struct figures *one, const struct figures *two)
{
    const double cycle = two->ns * model->group;
    double squares = 0;

    for (uint32_t k = 0; k < model->stripe_count; k++)
        squares += model->visits[k] * model->visits[k];
    model->cycle = one->ns * model->group;
    model->journal = MIN(two->journal_waits * model->group, 1) * cycle;
    model->stripe = MIN(two->stripe_waits * model->group / squares, 1) * cycle;
    model->moves = 0;
    model->moves = MAX(2 * (cycle - model_cycle(model, 2)), 0);
}

/* --------------------------------------------------------------------------------------------------------- rows -- */

static void print_figures(const char *name, unsigned count, bool apart, const struct figures *figures)
{
    printf("%-22s %3u %-5s %8.1f ns  %6.3f x  %8.2f M/s   stripe %6.2f  journal %6.2f  parked %7.1f  others %6.1f ns\n",
           name, count, apart ? "apart" : "", figures->ns, figures->share, figures->million_a_second,
           figures->stripe_waits * 100, figures->journal_waits * 100, figures->parked * 1e6, figures->others_ns);
    fflush(stdout);
}

static void print_model(const struct model *model, const char *name, const unsigned *counts, unsigned count_count)
{
    printf("%-22s           model: a cycle of %.0f takes %.0f ns, holds the journal %.0f, a stripe %.0f; lines %.0f\n",
           name, model->group, model->cycle, model->journal, model->stripe, model->moves);
    for (unsigned i = 0; i < count_count; i++) {
        const double cycle = model_cycle(model, counts[i]);

        printf("%-22s %3u       %8.1f ns  %6.3f x  %8.2f M/s   predicted\n", name, counts[i], cycle / model->group,
               cycle / model->cycle, counts[i] * model->group / cycle * 1000);
    }
    fflush(stdout);
}

static void model_show(const struct workload *workload, const char *name, const double *zipf, const struct figures *one,
                       const struct figures *two)
{
    static const unsigned counts[] = {2, 4, 8, 16, 32, 64};
    struct model model = {.group = workload->batch < GROUP_MOST ? workload->batch : GROUP_MOST};

    model_visits(&model, workload, zipf);
    model_fit(&model, one, two);
    print_model(&model, name, counts, countof(counts));
    free(model.visits);
}

/* 1, 2, 4, ... and all: returns how many numbers these are. */
static unsigned list_counts(unsigned *counts)
{
    unsigned length = 0;

    for (unsigned count = 1; count < bench.thread_count; count *= 2)
        counts[length++] = count;
    counts[length++] = bench.thread_count;
    return length;
}

/* One thread here, while so many other servers are at work. */
static struct figures measure_apart(unsigned neighbours)
{
    struct figures figures;

    atomic_store(&neighbourhood->wanted, neighbours);
    while (atomic_load(&neighbourhood->working) != neighbours)
        nap();
    figures = measure_round(1);
    atomic_store(&neighbourhood->wanted, 0);
    while (atomic_load(&neighbourhood->working) != 0)
        nap();
    return figures;
}

static void measure(const struct workload *workload, const double *zipf)
{
    static struct figures apart[COUNTS_MOST][ROUNDS_MOST], together[COUNTS_MOST][ROUNDS_MOST];
    struct figures alone, one = {0}, two = {0};
    unsigned counts[COUNTS_MOST], length = list_counts(counts);
    char name[64];

    workload_name(workload, name, sizeof(name));
    (void)measure_round(bench.thread_count); /* warm */
    for (unsigned i = 0; i < options.rounds; i++) {
        for (unsigned k = 0; k < length; k++) {
            apart[k][i] = measure_apart(counts[k] - 1);
            together[k][i] = measure_round(counts[k]);
            together[k][i].share = together[k][i].ns / apart[k][i].ns;
            apart[k][i].share = apart[k][i].ns / apart[k][i].ns; /* 1, if it counts */
        }
    }
    for (unsigned k = 0; k < length; k++) {
        alone = median(apart[k], (unsigned)options.rounds);
        print_figures(name, counts[k], counts[k] != 1, &alone);
        if (counts[k] == 1)
            continue;
        two = median(together[k], (unsigned)options.rounds);
        print_figures(name, counts[k], false, &two);
        if (counts[k] != 2)
            continue;
        one = alone;
        one.ns = two.ns / two.share;
        if (options.model)
            model_show(workload, name, zipf, &one, &two);
    }
}

/* A server of one thread that works while it is wanted. */
static void be_neighbour(unsigned index)
{
    for (;;) {
        if (atomic_load(&neighbourhood->wanted) <= index) {
            usleep(3000); /* rarely: it would cost the others their processor */
            continue;
        }
        atomic_fetch_add(&neighbourhood->working, 1);
        while (atomic_load(&neighbourhood->wanted) > index)
            run_round(turn, 1, 20);
        atomic_fetch_sub(&neighbourhood->working, 1);
    }
}

/* Beside the server: this thread has nothing of ours but the clock and the mail that it posts. */
static void *drive(void *context)
{
    const struct workload *workload = context;
    double *zipf = NULL;
    int fd;

    if (workload->spread == SPREAD_ZIPF)
        zipf = zipf_sums();
    make_runners();
    fd = connect_to_server();
    send_text(fd, "PING\r\n");
    if (read(fd, (char[16]){0}, 16) != 7)
        errx(1, "the server does not answer: %s/log", folder);
    close(fd);
    while (atomic_load(&server_instance()->client_count) != 0)
        nap();
    connect_clients();
    draw_keys(workload->spread, zipf);
    fill(workload);
    atomic_fetch_add(&neighbourhood->ready, 1);
    if (bench.processor != 0)
        be_neighbour(bench.processor - 1);
    while (atomic_load(&neighbourhood->ready) != bench.thread_count)
        nap();
    measure(workload, zipf);
    _exit(0);
}

/* In a process of its own: a server starts once. */
static void run_workload(struct workload *workload)
{
    pthread_t driver;

    if (pthread_create(&driver, NULL, drive, workload) != 0)
        errx(1, "pthread_create");
    run_server(workload->journals);
    errx(1, "the server has ended: %s/log", folder);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

/* In a folder of its own. */
static pid_t start_server(struct workload *workload, const char *parent, unsigned processor)
{
    pid_t pid;

    snprintf(folder, sizeof(folder), "%s/%u", parent, processor);
    snprintf(socket_path, sizeof(socket_path), "%s/socket", folder);
    if (mkdir(folder, 0700) != 0)
        err(1, "%s", folder);
    pid = fork();
    if (pid < 0)
        err(1, "fork");
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench.processor = processor;
    if (processor != 0)
        bench.thread_count = 1;
    run_workload(workload);
    return 0;
}

static void start_workload(struct workload *workload)
{
    pid_t servers[WORKERS_MOST];
    char name[64], parent[64];
    int status;

    workload_name(workload, name, sizeof(name));
    if (fnmatch(options.pattern, name, 0) != 0 || (workload->journals && !workload->writes))
        return;
    snprintf(parent, sizeof(parent), "%s/keydb-scaling-XXXXXX", options.folder);
    if (mkdtemp(parent) == NULL)
        err(1, "%s", parent);
    memset(neighbourhood, 0, sizeof(*neighbourhood));
    for (unsigned i = 0; i < bench.thread_count; i++)
        servers[i] = start_server(workload, parent, i);
    if (waitpid(servers[0], &status, 0) != servers[0] || status != 0)
        errx(1, "%s: it has failed; its log is in %s", name, parent);
    for (unsigned i = 1; i < bench.thread_count; i++) {
        kill(servers[i], SIGKILL);
        (void)waitpid(servers[i], NULL, 0);
    }
    nftw(parent, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void read_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"only", required_argument, NULL, 'o'},   {"threads", required_argument, NULL, 't'},
        {"rounds", required_argument, NULL, 'r'}, {"ms", required_argument, NULL, 'm'},
        {"keys", required_argument, NULL, 'k'},   {"dir", required_argument, NULL, 'd'},
        {"model", no_argument, NULL, 'M'},        {0}};

    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        uint64_t *number = option == 't'   ? &options.threads
                           : option == 'r' ? &options.rounds
                           : option == 'm' ? &options.round_ms
                           : option == 'k' ? &options.keys
                                           : NULL;

        if (number != NULL)
            *number = strtoull(optarg, NULL, 10);
        else if (option == 'o')
            options.pattern = optarg;
        else if (option == 'd')
            options.folder = optarg;
        else if (option == 'M')
            options.model = true;
        else
            usage();
    }
    if (optind != argc || options.rounds == 0 || options.rounds > ROUNDS_MOST || options.round_ms == 0 ||
        options.keys < FIELDS || options.keys > UINT32_MAX)
        usage();
}

int main(int argc, char **argv)
{
    cpu_set_t processors;

    read_options(argc, argv);
    CPU_ZERO(&processors);
    sched_getaffinity(0, sizeof(processors), &processors);
    bench.thread_count = (unsigned)CPU_COUNT(&processors);
    if (options.threads != 0 && options.threads < bench.thread_count)
        bench.thread_count = (unsigned)options.threads;
    bench.thread_count = MIN(bench.thread_count, (unsigned)WORKERS_MOST);
    neighbourhood = mmap(NULL, sizeof(*neighbourhood), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (neighbourhood == MAP_FAILED)
        err(1, "mmap");
    for (int journals = 0; journals < 2; journals++) {
        for (unsigned spread = 0; spread < SPREAD_COUNT; spread++) {
            for (int writes = 0; writes < 2; writes++) {
                start_workload(&(struct workload){writes, (enum spread)spread, 1, journals});
                start_workload(&(struct workload){writes, (enum spread)spread, 32, journals});
            }
        }
    }
    return 0;
}
