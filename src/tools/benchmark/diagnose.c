#include "tools/benchmark/diagnose.h"

#include "base/mem.h"
#include "base/status.h"
#include "base/thread.h"
#include "net/resp.h"
#include "tools/benchmark/report.h"
#include "tools/benchmark/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_MS = 2000, STEPS_MOST = 16, KEYS = 100000, THREADS_MOST_HERE = 16 };

#define BUSY 0.9   /* of the time: there is no more to be had */
#define GAIN 1.1   /* a step that brings less brings nothing */
#define IDLE 0.05  /* of the machine: it is full */
#define SHORT 0.02 /* ms: a way that a packet takes within a machine */

struct step {
    uint32_t clients, pipeline, threads;
    double rate, p50_ms, p99_ms;
    double own_busy;    /* of a thread of this program, 0 ... 1 */
    double server_cpus; /* that it used; below 0: not known */
    double idle;        /* of this machine's CPUs, 0 ... 1; below 0: not known */
};

struct diagnosis {
    const struct bench_options *options;
    const volatile sig_atomic_t *stop;
    struct link *link; /* for INFO */
    int64_t server_threads;
    struct step steps[STEPS_MOST];
    uint32_t count;
};

/* ---------------------------------------------------------------------------------------------------- sources -- */

static double number_in(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at != NULL ? strtod(at + strlen(name), NULL) : -1;
}

/* Seconds of CPU time that the server has used; below 0: it does not say. */
static double server_cpu(struct diagnosis *diagnosis)
{
    static const struct slice words[] = {SLICE("INFO"), SLICE("cpu")};
    struct resp_reply *reply = NULL;
    double user = -1, system = -1;

    if (link_call(diagnosis->link, words, countof(words), &reply) == STATUS_OK && reply->text != NULL) {
        user = number_in(reply->text, "used_cpu_user:");
        system = number_in(reply->text, "used_cpu_sys:");
    }
    resp_reply_destroy(&reply);
    return user >= 0 && system >= 0 ? user + system : -1;
}

static int64_t ask_number(struct diagnosis *diagnosis, const char *name)
{
    const struct slice words[] = {SLICE("CONFIG"), SLICE("GET"), slice_from_text(name)};
    struct resp_reply *reply = NULL;
    int64_t number = 0;

    if (link_call(diagnosis->link, words, countof(words), &reply) == STATUS_OK && reply->element_count == 2 &&
        reply->elements[1]->text != NULL)
        number = strtoll(reply->elements[1]->text, NULL, 10);
    resp_reply_destroy(&reply);
    return number;
}

/* Jiffies of this machine since it started, all and idle ones. */
static bool machine_times(double *all, double *idle)
{
    FILE *file = fopen("/proc/stat", "re");
    double times[8] = {0};
    int count = 0;

    if (file == NULL)
        return false;
    if (fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &times[0], &times[1], &times[2], &times[3], &times[4],
               &times[5], &times[6], &times[7]) == 8)
        count = 8;
    (void)fclose(file);
    *all = 0;
    for (int i = 0; i < count; i++)
        *all += times[i];
    *idle = times[3] + times[4];
    return count != 0;
}

/* ------------------------------------------------------------------------------------------------------- steps -- */

static bool run_step(struct diagnosis *diagnosis, struct step *step)
{
    static const struct slice words[] = {SLICE("GET"), SLICE("keydb-benchmark:__rand_int__")};
    const struct bench_options *options = diagnosis->options;
    const struct run_node node = {.target = options->target};
    struct distribution keys = {.kind = DISTRIBUTION_UNIFORM};
    struct workload workload;
    struct run_plan plan = {.workload = &workload,
                            .nodes = &node,
                            .node_count = 1,
                            .clients = step->clients,
                            .pipeline = step->pipeline,
                            .threads = step->threads,
                            .duration_ms = options->duration_s != 0 ? (uint64_t)options->duration_s * 1000 : STEP_MS,
                            .seed = (uint64_t)options->seed};
    struct run_result result;
    double all_before, idle_before, all, idle, cpu_before, cpu;
    bool has_times, good;

    distribution_begin(&keys, KEYS);
    workload_init(&workload, &keys, SLICE(""), 0);
    good = workload_add(&workload, 1, words, countof(words));
    has_times = machine_times(&all_before, &idle_before);
    cpu_before = server_cpu(diagnosis);
    good = good && run_it(&plan, diagnosis->stop, &result) && result.all != NULL;
    cpu = server_cpu(diagnosis);
    has_times = machine_times(&all, &idle) && has_times && all > all_before;
    if (good && result.seconds > 0) {
        step->rate = report_rate(&result);
        step->p50_ms = (double)latencies_percentile_ns(result.all, 50) / 1e6;
        step->p99_ms = (double)latencies_percentile_ns(result.all, 99) / 1e6;
        step->own_busy = result.cpu_seconds / result.seconds / step->threads;
        step->server_cpus = cpu_before >= 0 && cpu >= 0 ? (cpu - cpu_before) / result.seconds : -1;
        step->idle = has_times ? (idle - idle_before) / (all - all_before) : -1;
    } else {
        fprintf(stderr, "%s\n", result.error);
    }
    run_result_fini(&result);
    workload_fini(&workload);
    return good && *diagnosis->stop == 0;
}

static void show(const struct step *step)
{
    printf("%8u %8u %8u %12.0f %9.3f %9.3f %7.0f %%", step->clients, step->pipeline, step->threads, step->rate,
           step->p50_ms, step->p99_ms, step->own_busy * 100);
    if (step->server_cpus >= 0)
        printf(" %9.2f", step->server_cpus);
    else
        printf(" %9s", "?");
    if (step->idle >= 0)
        printf(" %7.0f %%", step->idle * 100);
    printf("\n");
    fflush(stdout);
}

static struct step *try(struct diagnosis *diagnosis, uint32_t clients, uint32_t pipeline, uint32_t threads)
{
    struct step *step = &diagnosis->steps[diagnosis->count];

    if (diagnosis->count == STEPS_MOST)
        return NULL;
    *step = (struct step){.clients = clients, .pipeline = pipeline, .threads = threads};
    if (!run_step(diagnosis, step))
        return NULL;
    diagnosis->count++;
    show(step);
    return step;
}

/* More connections, then pipelines, then threads, as long as that brings more. */
static bool climb(struct diagnosis *diagnosis)
{
    const uint32_t threads_most = MIN(thread_cpu_count(), THREADS_MOST_HERE);
    const struct step *last = try(diagnosis, 1, 1, 1), *next = NULL;

    if (last == NULL || try(diagnosis, 8, 1, 1) == NULL || try(diagnosis, 64, 1, 1) == NULL)
        return false;
    last = try(diagnosis, 64, 32, 1);
    for (uint32_t threads = 2; last != NULL && threads <= threads_most; threads *= 2) {
        next = try(diagnosis, 64, 32, threads);
        if (next == NULL)
            return false;
        if (next->rate < last->rate * GAIN)
            break;
        last = next;
    }
    return last != NULL;
}

/* -------------------------------------------------------------------------------------------------- the finding -- */

static const struct step *best_of(const struct diagnosis *diagnosis)
{
    const struct step *best = &diagnosis->steps[0];

    for (uint32_t i = 1; i < diagnosis->count; i++) {
        if (diagnosis->steps[i].rate > best->rate)
            best = &diagnosis->steps[i];
    }
    return best;
}

static void conclude(const struct diagnosis *diagnosis)
{
    const struct step *best = best_of(diagnosis), *single = &diagnosis->steps[0];
    const double threads = (double)MAX(diagnosis->server_threads, 1);

    printf("\nThe most were %.0f requests a second, with %u connections, a pipeline of %u and %u threads.\n",
           best->rate, best->clients, best->pipeline, best->threads);
    if (best->server_cpus >= BUSY * threads) {
        printf("The server is the bottleneck: it uses %.2f CPUs, and has %.0f threads for requests.\n"
               "Give it more (server-threads), if the machine has CPUs to spare, or lighter commands.\n",
               best->server_cpus, threads);
    } else if (best->idle >= 0 && best->idle < IDLE) {
        printf("The machine is the bottleneck: its CPUs are idle for %.0f %% of the time.\n"
               "If the server runs here, too, let this program run elsewhere.\n",
               best->idle * 100);
    } else if (best->own_busy >= BUSY) {
        printf("This program is the bottleneck: each of its threads is busy for %.0f %% of the time.\n"
               "Give it more --threads, or let it run on several machines.\n",
               best->own_busy * 100);
    } else {
        printf("Neither the server nor this program is busy: both wait for what is between them.\n"
               "One request takes %.3f ms there and back%s. More connections and longer pipelines help.\n",
               single->p50_ms, single->p50_ms < SHORT ? "" : ", most of it on the way");
    }
}

int diagnose_run(const struct bench_options *options, const volatile sig_atomic_t *stop)
{
    struct diagnosis diagnosis = {.options = options, .stop = stop, .link = link_create()};
    enum link_step step;
    bool good = link_open(diagnosis.link, &options->target) == STATUS_OK &&
                link_greet(diagnosis.link, &options->target, &step) == STATUS_OK;

    if (!good) {
        fprintf(stderr, "Could not connect to Redis at %s:%d: %s\n", options->target.host, options->target.port,
                link_error(diagnosis.link));
    } else {
        diagnosis.server_threads = ask_number(&diagnosis, "server-threads");
        if (diagnosis.server_threads == 0)
            diagnosis.server_threads = ask_number(&diagnosis, "io-threads");
        printf("%8s %8s %8s %12s %9s %9s %9s %9s %9s\n", "clients", "pipeline", "threads", "requests/s", "p50 ms",
               "p99 ms", "own busy", "server", "idle");
        good = climb(&diagnosis);
        if (good)
            conclude(&diagnosis);
    }
    link_destroy(&diagnosis.link);
    return good ? 0 : 1;
}
