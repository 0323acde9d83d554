#include "tools/benchmark/series.h"

#include "base/assert.h"
#include "base/mem.h"
#include "net/resp.h"
#include "tools/benchmark/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 200 };

struct series {
    const struct bench_options *options;
    const volatile sig_atomic_t *stop;
    bool shows_progress;
    size_t shown; /* characters of the line that shows it */
    struct run_progress before;
    const char *title;
    struct report_node *configs; /* owned; of each node */
    uint32_t config_count;
    struct report_facts *facts; /* owned; of the tests that are done, for files */
    struct run_result *results; /* likewise */
    uint32_t count;
};

/* ----------------------------------------------------------------------------------------------------- server -- */

static bool ask_config(struct link *link, const char *name, char value[REPORT_CONFIG_BYTES])
{
    const struct slice words[] = {SLICE("CONFIG"), SLICE("GET"), slice_from_text(name)};
    struct resp_reply *reply = NULL;
    bool good = link_call(link, words, countof(words), &reply) == STATUS_OK && reply->element_count == 2 &&
                reply->elements[1]->text != NULL;

    if (good)
        snprintf(value, REPORT_CONFIG_BYTES, "%s", reply->elements[1]->text);
    resp_reply_destroy(&reply);
    return good;
}

/* False: there is no server; it was told. */
static bool look_at_node(const struct link_target *target, struct report_node *config)
{
    struct link *link = link_create();
    enum link_step step = LINK_STEP_AUTH;
    const bool is_there = link_open(link, target) == STATUS_OK;

    if (!is_there && target->socket_path != NULL)
        fprintf(stderr, "Could not connect to Redis at %s: %s\n", target->socket_path, link_error(link));
    else if (!is_there)
        fprintf(stderr, "Could not connect to Redis at %s:%d: %s\n", target->host, target->port, link_error(link));
    else if (link_greet(link, target, &step) == STATUS_OK)
        config->is_known = ask_config(link, "save", config->save) && ask_config(link, "appendonly", config->appendonly);
    if (is_there && !config->is_known)
        fprintf(stderr, "WARNING: Could not fetch server CONFIG\n");
    link_destroy(&link);
    return is_there;
}

static bool look_at_nodes(struct series *series, const struct run_plan *plan)
{
    bool good = true;

    series->configs = mem_alloc_zero(MAX(plan->node_count, 1U) * sizeof(*series->configs));
    series->config_count = plan->node_count;
    for (uint32_t i = 0; i < plan->node_count && good; i++)
        good = look_at_node(&plan->nodes[i].target, &series->configs[i]);
    return good;
}

bool series_nodes(const struct bench_options *options, struct cluster *cluster, struct run_node *single,
                  struct run_plan *plan)
{
    struct buffer error = {0};
    bool good = true;

    *single = (struct run_node){.target = options->target};
    plan->nodes = single;
    plan->node_count = 1;
    if (options->cluster) {
        struct run_node *nodes;

        good = cluster_ask(&options->target, cluster, &error);
        fputs(buffer_text(&error), stderr);
        buffer_fini(&error);
        nodes = mem_alloc_zero(MAX(cluster->count, 1U) * sizeof(*nodes));
        for (uint32_t i = 0; i < cluster->count; i++)
            nodes[i] = cluster->masters[i].node;
        plan->nodes = nodes;
        plan->node_count = cluster->count;
    }
    return good;
}

static void tell_cluster(const struct bench_options *options, const struct cluster *cluster)
{
    if (!options->cluster || options->csv)
        return;
    printf("Cluster has %u master nodes:\n\n", cluster->count);
    for (uint32_t i = 0; i < cluster->count; i++)
        printf("Master %u: %s %s:%d\n", i, cluster->masters[i].id, cluster->masters[i].host,
               cluster->masters[i].node.target.port);
    printf("\n");
}

/* --------------------------------------------------------------------------------------------------- progress -- */

static void hide_progress(struct series *series)
{
    if (series->shown != 0)
        printf("\r%*s\r", (int)series->shown, "");
    series->shown = 0;
}

static double mean_ms(double sum_ns, uint64_t count)
{
    return count != 0 ? sum_ns / (double)count / 1e6 : 0;
}

static void show_progress(const struct run_progress *now, void *context)
{
    struct series *series = context;
    const struct run_progress *before = &series->before;
    const double seconds = now->seconds - before->seconds;
    char line[LINE_BYTES];
    int size;

    size = snprintf(line, sizeof(line), "%.60s: rps=%.1f (overall: %.1f) avg_msec=%.3f (overall: %.3f)", series->title,
                    seconds > 0 ? (double)(now->finished - before->finished) / seconds : 0,
                    now->seconds > 0 ? (double)now->finished / now->seconds : 0,
                    mean_ms(now->sum_ns - before->sum_ns, now->finished - before->finished),
                    mean_ms(now->sum_ns, now->finished));
    series->before = *now;
    printf("\r%*s\r%s", (int)series->shown, "", line);
    fflush(stdout);
    series->shown = (size_t)MAX(size, 0);
}

/* ---------------------------------------------------------------------------------------------------- results -- */

static void print(const struct series *series, const struct report_facts *facts)
{
    struct buffer text = {0};

    if (series->options->csv)
        report_csv(facts, &text);
    else if (series->options->table)
        report_table(facts, &text);
    else if (series->options->quiet)
        report_quiet(facts, &text);
    else
        report_text(facts, &text);
    fputs(buffer_text(&text), stdout);
    if (!series->options->csv && !series->options->table && !series->options->quiet)
        putchar('\n');
    fflush(stdout);
    buffer_fini(&text);
}

static void tell_lag(const struct series *series, const struct report_facts *facts)
{
    const double rate = report_rate(facts->result);

    if (facts->rate > 0 && rate < 0.95 * facts->rate && *series->stop == 0)
        fprintf(stderr, "WARNING: %s: only %.0f of %.0f requests a second were answered\n", facts->title, rate,
                facts->rate);
}

static bool store(const char *path, const struct buffer *text)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    bool good;

    if (file == NULL) {
        fprintf(stderr, "Can't open %s: %s\n", path, strerror(errno));
        return false;
    }
    good = fwrite(text->data, 1, text->size, file) == text->size;
    good = (file == stdout ? fflush(file) : fclose(file)) == 0 && good;
    if (!good)
        fprintf(stderr, "Can't write %s: %s\n", path, strerror(errno));
    return good;
}

static bool store_files(const struct series *series)
{
    const struct bench_options *options = series->options;
    struct buffer text = {0};
    bool good = true;

    if (options->json != NULL) {
        buffer_printf(&text, "{\"program\": \"%s\", \"tests\": [", options->name);
        for (uint32_t i = 0; i < series->count; i++) {
            buffer_append_text(&text, i != 0 ? ",\n  " : "\n  ");
            report_json(&series->facts[i], &text);
        }
        buffer_append_text(&text, "\n]}\n");
        good = store(options->json, &text);
        buffer_clear(&text);
    }
    if (options->svg != NULL) {
        report_svg(series->facts, series->count, &text);
        good = store(options->svg, &text) && good;
    }
    buffer_fini(&text);
    return good;
}

static struct report_facts facts_of(const struct series *series, const struct bench_test *test,
                                    const struct run_plan *plan, const struct run_result *result)
{
    const struct bench_options *options = series->options;

    return (struct report_facts){
        .title = test->title,
        .clients = plan->clients,
        .pipeline = plan->pipeline,
        .threads = options->threads != 0 || options->cluster ? plan->threads : 0,
        .payload_bytes = test->workload.payload.size,
        .command_bytes = options->word_count != 0 ? test->workload.commands[0].text.bytes.size : 0,
        .keep_alive = (int)options->keep_alive,
        .precision = (int)options->precision,
        .rate = plan->rate,
        .nodes = series->configs,
        .node_count = series->config_count,
        .is_cluster = options->cluster,
        .workload = &test->workload,
        .result = result,
    };
}

/* ------------------------------------------------------------------------------------------------------- runs -- */

static bool run_test(struct series *series, struct bench_test *test, struct run_plan *plan)
{
    struct run_result *result = &series->results[series->count];
    const struct bench_options *options = series->options;
    bool good;

    plan->workload = &test->workload;
    plan->requests = test->requests != 0                                    ? test->requests
                     : options->duration_s != 0 && !options->requests_given ? 0
                                                                            : (uint64_t)options->requests;
    plan->look = series->shows_progress ? show_progress : NULL;
    plan->context = series;
    series->title = test->title;
    series->before = (struct run_progress){0};
    good = run_it(plan, series->stop, result);
    hide_progress(series);
    series->facts[series->count] = facts_of(series, test, plan, result);
    if (!good || result->all == NULL) {
        fprintf(stderr, "%s\n", result->error);
        run_result_fini(result);
        return false;
    }
    print(series, &series->facts[series->count]);
    tell_lag(series, &series->facts[series->count]);
    series->count++;
    return true;
}

static void forget_results(struct series *series)
{
    for (uint32_t i = 0; i < series->count; i++)
        run_result_fini(&series->results[i]);
    series->count = 0;
}

static bool run_all(struct series *series, struct bench_tests *tests, struct run_plan *plan)
{
    bool good = true;

    series->facts = mem_alloc_zero(MAX(tests->count, 1U) * sizeof(*series->facts));
    series->results = mem_alloc_zero(MAX(tests->count, 1U) * sizeof(*series->results));
    do {
        forget_results(series);
        for (uint32_t i = 0; i < tests->count && good && *series->stop == 0; i++)
            good = run_test(series, tests->items[i], plan);
        if (!series->options->csv && !series->options->table && good)
            putchar('\n');
    } while (series->options->loop && good && *series->stop == 0);
    good = store_files(series) && good;
    forget_results(series);
    mem_free(series->facts);
    mem_free(series->results);
    return good;
}

static bool idle(const struct series *series, const struct run_plan *plan)
{
    char error[RUN_ERROR_BYTES];

    printf("Creating %u idle connections and waiting forever (Ctrl+C when done)\n", plan->clients);
    fflush(stdout);
    if (run_idle(plan, series->stop, error))
        return true;
    fprintf(stderr, "%s\n", error);
    return false;
}

int series_run(const struct bench_options *options, struct bench_tests *tests, const volatile sig_atomic_t *stop)
{
    struct series series = {.options = options, .stop = stop, .shows_progress = isatty(STDOUT_FILENO) && !options->csv};
    struct run_plan plan = {.clients = (uint32_t)options->clients,
                            .pipeline = (uint32_t)options->pipeline,
                            .threads = (uint32_t)MIN(MAX(options->threads, 1), options->clients),
                            .duration_ms = (uint64_t)options->duration_s * 1000,
                            .warm_up_ms = (uint64_t)options->warm_up_s * 1000,
                            .rate = options->rate,
                            .reconnects = options->keep_alive == 0,
                            .tracks = options->tracking,
                            .goes_on = options->goes_on,
                            .seed = (uint64_t)options->seed};
    struct cluster cluster = {0};
    struct run_node single;
    struct buffer head = {0};
    bool good = series_nodes(options, &cluster, &single, &plan) && look_at_nodes(&series, &plan);

    if (options->cluster && options->threads == 0) /* a thread for each master, as redis-benchmark has it */
        plan.threads = MIN(MAX(plan.node_count, 1U), MIN(plan.clients, (uint32_t)RUN_THREADS_MOST));
    if (good) {
        tell_cluster(options, &cluster);
        if (options->csv && options->mode == BENCH_RUN)
            report_csv_head(&head);
        else if (options->table && options->mode == BENCH_RUN)
            report_table_head(&head);
        fputs(buffer_text(&head), stdout);
        good = options->mode == BENCH_IDLE ? idle(&series, &plan) : run_all(&series, tests, &plan);
    }
    if (plan.nodes != &single)
        mem_free((void *)(uintptr_t)plan.nodes);
    buffer_fini(&head);
    mem_free(series.configs);
    cluster_fini(&cluster);
    return good ? 0 : 1;
}
