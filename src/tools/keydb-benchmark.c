/* keydb-benchmark: sends many commands to a server, and tells how many it answers a second and how long each takes.
 *
 * Options and forms of output are those of redis-benchmark 7.0, whose name it may also have, and some more.
 * tools/benchmark has its parts, tools/link its connections. */
#include "base/buffer.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/status.h"
#include "base/version.h"
#include "tools/benchmark/diagnose.h"
#include "tools/benchmark/options.h"
#include "tools/benchmark/series.h"
#include "tools/benchmark/tests.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

static volatile sig_atomic_t told_to_stop; /* by SIGINT or SIGTERM */

static void stop(int number)
{
    (void)number;
    told_to_stop = 1;
}

/* What a server that compresses values cannot make smaller, and the same in each run with a seed. */
static void make_payload(const struct bench_options *options, struct buffer *payload)
{
    struct random random;
    char *to = buffer_reserve(payload, (size_t)options->payload_bytes);

    random_seed(&random, (uint64_t)options->seed);
    for (int64_t i = 0; i < options->payload_bytes; i++)
        to[i] = (char)('A' + random_below(&random, 26));
    payload->size = (size_t)options->payload_bytes;
}

static void read_input(struct buffer *input)
{
    size_t count = 1;

    while (count > 0) {
        count = fread(buffer_reserve(input, 65536), 1, 65536, stdin);
        input->size += count;
    }
}

static int run(const struct bench_options *options)
{
    struct buffer payload = {0}, input = {0}, error = {0};
    struct bench_tests tests = {0};
    int code = 1;

    make_payload(options, &payload);
    if (options->last_word_from_input)
        read_input(&input);
    if (options->mode == BENCH_DIAGNOSE)
        code = diagnose_run(options, &told_to_stop);
    else if (bench_tests_make(options, buffer_slice(&payload), buffer_slice(&input), &tests, &error))
        code = series_run(options, &tests, &told_to_stop);
    fputs(buffer_text(&error), stderr);
    bench_tests_fini(&tests);
    buffer_fini(&payload);
    buffer_fini(&input);
    buffer_fini(&error);
    return code;
}

/* As many connections as the system allows, rather than as many as a shell begins with. */
static void raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    status_ignore(setrlimit(RLIMIT_NOFILE, &limit), "connecting tells if there are too few");
}

static int act(const struct bench_options *options)
{
    struct buffer usage = {0};
    const struct sigaction action = {.sa_handler = stop};

    switch (options->mode) {
    case BENCH_HELP:
        bench_usage(options, &usage);
        fputs(buffer_text(&usage), stdout);
        buffer_fini(&usage);
        return 0;
    case BENCH_VERSION:
        printf("%s %s\n", options->name, KEYDB_VERSION);
        return 0;
    default:
        if (options->warn_of_e)
            fprintf(stderr, "WARNING: -e option has no effect. We now immediately exit on error to avoid false "
                            "results.\n");
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        signal(SIGPIPE, SIG_IGN);
        raise_limit();
        return run(options);
    }
}

int main(int argc, char **argv)
{
    struct bench_options options;
    struct buffer error = {0};
    int code = 1;

    if (bench_options_parse(&options, argc, argv, &error))
        code = act(&options);
    fputs(buffer_text(&error), stdout);
    buffer_fini(&error);
    bench_options_fini(&options);
    return code;
}
