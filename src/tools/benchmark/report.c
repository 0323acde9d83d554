#include "tools/benchmark/report.h"

#include <math.h>
#include <string.h>

#define NS_PER_MS 1e6

enum { STEP_US = 100, STEPS_UPTO_US = 2100, COARSE_STEP_US = 1000, PRECISION_FULL = 3 };

static double ms(uint64_t ns)
{
    return (double)ns / NS_PER_MS;
}

/* An HDR histogram of microseconds as redis-benchmark has it knows numbers to `digits` significant ones, but not better
 * than 8 us: the low bits that it does not know. */
static uint64_t unknown_bits(uint64_t us, int digits)
{
    const unsigned step_bits = (unsigned)ceil(log2(2 * pow(10, digits)));
    const unsigned top = 63 - (unsigned)__builtin_clzll(us | 1);
    const unsigned unit_bits = top >= step_bits + 3 ? top - step_bits + 1 : 3;

    return (UINT64_C(1) << unit_bits) - 1;
}

/* What a latency is shown as: whole microseconds, and less than that if fewer digits are asked for. */
static uint64_t shown_us(const struct report_facts *facts, uint64_t ns)
{
    const uint64_t us = ns / 1000;

    return facts->precision < PRECISION_FULL ? us | unknown_bits(us, facts->precision) : us;
}

/* How many are shown as no more than the nth is. */
static uint64_t count_like(const struct report_facts *facts, uint64_t nth)
{
    const struct latencies *all = facts->result->all;
    const uint64_t total = latencies_count(all), us = shown_us(facts, latencies_nth_ns(all, nth));
    uint64_t count = nth - 1;

    while (count < total && shown_us(facts, latencies_nth_ns(all, count + 1)) <= us)
        count = latencies_upto(all, latencies_nth_ns(all, count + 1));
    return count;
}

static double shown_ms(const struct report_facts *facts, uint64_t ns)
{
    return (double)shown_us(facts, ns) / 1000;
}

static double percentile_ms(const struct report_facts *facts, const struct latencies *latencies, double percent)
{
    return shown_ms(facts, latencies_percentile_ns(latencies, percent));
}

static double least_ms(const struct report_facts *facts, const struct latencies *latencies)
{
    const uint64_t us = latencies_least_ns(latencies) / 1000;

    return (double)(facts->precision < PRECISION_FULL ? us & ~unknown_bits(us, facts->precision) : us) / 1000;
}

double report_rate(const struct run_result *result)
{
    return result->seconds > 0 ? (double)result->finished / result->seconds : 0;
}

/* -------------------------------------------------------------------------------------------------------- text -- */

static void line(double percent, uint64_t us, uint64_t count, struct buffer *out)
{
    buffer_printf(out, "%.3f%% <= %.3f milliseconds (cumulative count %llu)\n", percent, (double)us / 1000,
                  (unsigned long long)count);
}

/* Percentiles that approach 100 by halves. A latency that reaches several of them has one line, with the first. */
static void by_percentile(const struct report_facts *facts, struct buffer *out)
{
    const uint64_t total = latencies_count(facts->result->all);
    double percent = 0;
    uint64_t count = 0;

    buffer_append_text(out, "Latency by percentile distribution:\n");
    while (count < total) {
        const uint64_t nth = MAX((uint64_t)ceil((double)total * percent / 100), count + 1);

        count = count_like(facts, nth);
        line(percent, shown_us(facts, latencies_nth_ns(facts->result->all, nth)), count, out);
        while (count < total && percent <= 100 * (double)count / (double)total)
            percent += (100 - percent) / 2;
    }
    line(100, shown_us(facts, latencies_most_ns(facts->result->all)), total, out);
}

/* Steps of 0.1 ms up to 2.1 ms, then of 1 ms, by the names that redis-benchmark has for them; but for the first one,
 * steps that add nothing are left out. */
static void cumulative(const struct report_facts *facts, struct buffer *out)
{
    const uint64_t total = latencies_count(facts->result->all);
    uint64_t before = UINT64_MAX;

    buffer_append_text(out, "\nCumulative distribution of latencies:\n");
    for (uint64_t us = STEP_US; before != total && total != 0; us += us < STEPS_UPTO_US ? STEP_US : COARSE_STEP_US) {
        const uint64_t name_us = us | unknown_bits(us, facts->precision);
        const uint64_t count = latencies_upto(facts->result->all, name_us * 1000 + 999);

        if (count != before)
            line((double)count * 100 / (double)total, name_us, count, out);
        before = count;
    }
}

static void summary(const struct report_facts *facts, struct buffer *out)
{
    const struct latencies *all = facts->result->all;

    buffer_printf(out, "\nSummary:\n  throughput summary: %.2f requests per second\n  latency summary (msec):\n",
                  report_rate(facts->result));
    buffer_printf(out, "    %9s %9s %9s %9s %9s %9s\n", "avg", "min", "p50", "p95", "p99", "max");
    buffer_printf(out, "    %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", latencies_mean_ns(all) / NS_PER_MS,
                  least_ms(facts, all), percentile_ms(facts, all, 50), percentile_ms(facts, all, 95),
                  percentile_ms(facts, all, 99), shown_ms(facts, latencies_most_ns(all)));
}

static void each_command(const struct report_facts *facts, struct buffer *out)
{
    for (uint32_t i = 0; i < facts->workload->count; i++) {
        const struct latencies *one = facts->result->each[i];

        if (one == NULL || latencies_count(one) == 0)
            continue;
        buffer_printf(out, "  %s: %llu requests, p50 %.3f, p99 %.3f, p99.9 %.3f msec\n",
                      facts->workload->commands[i].name, (unsigned long long)latencies_count(one),
                      percentile_ms(facts, one, 50), percentile_ms(facts, one, 99), percentile_ms(facts, one, 99.9));
    }
}

static void tell_errors(const struct run_result *result, struct buffer *out)
{
    if (result->errors != 0)
        buffer_printf(out, "  %llu error replies, the first: %s\n", (unsigned long long)result->errors, result->error);
}

static void configuration(const struct report_facts *facts, struct buffer *out)
{
    if (!facts->is_cluster && facts->nodes[0].is_known)
        buffer_printf(out, "  host configuration \"save\": %s\n  host configuration \"appendonly\": %s\n",
                      facts->nodes[0].save, facts->nodes[0].appendonly);
    if (facts->is_cluster)
        buffer_printf(out, "  cluster mode: yes (%u masters)\n", facts->node_count);
    for (uint32_t i = 0; i < facts->node_count && facts->is_cluster; i++) {
        const struct report_node *node = &facts->nodes[i];

        buffer_printf(out, "  node [%u] configuration:\n", i);
        if (node->is_known)
            buffer_printf(out, "    save: %s\n    appendonly: %s\n", node->save[0] != '\0' ? node->save : "NONE",
                          node->appendonly);
    }
}

void report_text(const struct report_facts *facts, struct buffer *out)
{
    const struct run_result *result = facts->result;

    buffer_printf(out, "====== %s ======\n  %llu requests completed in %.2f seconds\n  %u parallel clients\n",
                  facts->title, (unsigned long long)result->finished, result->seconds, facts->clients);
    buffer_printf(out, "  %zu bytes payload\n  keep alive: %d\n",
                  facts->command_bytes != 0 ? facts->command_bytes : facts->payload_bytes, facts->keep_alive);
    configuration(facts, out);
    buffer_printf(out, "  multi-thread: %s\n", facts->threads != 0 ? "yes" : "no");
    if (facts->threads != 0)
        buffer_printf(out, "  threads: %u\n", facts->threads);
    if (facts->rate > 0)
        buffer_printf(out, "  open loop: %.2f requests per second asked for\n", facts->rate);
    each_command(facts, out);
    tell_errors(result, out);
    buffer_append_char(out, '\n');
    by_percentile(facts, out);
    cumulative(facts, out);
    summary(facts, out);
}

/* What one line is about: a test, or one of its several commands. */
struct part {
    const char *title, *command; /* NULL: all of them */
    const struct latencies *latencies;
    double rate;
};

typedef void (*part_fn)(const struct report_facts *facts, const struct part *part, struct buffer *out);

static void each_part(const struct report_facts *facts, part_fn fn, struct buffer *out)
{
    const struct run_result *result = facts->result;
    struct part part = {.title = facts->title, .latencies = result->all, .rate = report_rate(result)};

    fn(facts, &part, out);
    for (uint32_t i = 0; i < facts->workload->count; i++) {
        part.command = facts->workload->commands[i].name;
        part.latencies = result->each[i];
        if (part.latencies == NULL)
            continue;
        part.rate = result->seconds > 0 ? (double)latencies_count(part.latencies) / result->seconds : 0;
        fn(facts, &part, out);
    }
}

static void quiet_line(const struct report_facts *facts, const struct part *part, struct buffer *out)
{
    buffer_printf(out, "%s%s%s: %.2f requests per second, p50=%.3f msec\n", part->title,
                  part->command != NULL ? " / " : "", part->command != NULL ? part->command : "", part->rate,
                  percentile_ms(facts, part->latencies, 50));
}

void report_quiet(const struct report_facts *facts, struct buffer *out)
{
    each_part(facts, quiet_line, out);
    tell_errors(facts->result, out);
}

void report_table_head(struct buffer *out)
{
    buffer_printf(out, "%-34s %13s %9s %9s %9s %9s %9s %9s\n", "latencies in milliseconds", "requests/s", "avg", "p50",
                  "p95", "p99", "p99.9", "max");
}

static void table_line(const struct report_facts *facts, const struct part *part, struct buffer *out)
{
    const struct latencies *latencies = part->latencies;

    buffer_printf(out, "%s%-*s %13.2f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", part->command != NULL ? "  " : "",
                  part->command != NULL ? 32 : 34, part->command != NULL ? part->command : part->title, part->rate,
                  latencies_mean_ns(latencies) / NS_PER_MS, percentile_ms(facts, latencies, 50),
                  percentile_ms(facts, latencies, 95), percentile_ms(facts, latencies, 99),
                  percentile_ms(facts, latencies, 99.9), shown_ms(facts, latencies_most_ns(latencies)));
}

void report_table(const struct report_facts *facts, struct buffer *out)
{
    each_part(facts, table_line, out);
    tell_errors(facts->result, out);
}

/* -------------------------------------------------------------------------------------------------- CSV, JSON -- */

static void quoted(const char *text, struct buffer *out)
{
    buffer_append_char(out, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            buffer_append_char(out, '"');
        buffer_append_char(out, *text);
    }
    buffer_append_char(out, '"');
}

void report_csv_head(struct buffer *out)
{
    buffer_append_text(out, "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\","
                            "\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n");
}

static void csv_line(const struct report_facts *facts, const struct part *part, struct buffer *out)
{
    const struct latencies *latencies = part->latencies;
    struct buffer title = {0};

    buffer_printf(&title, "%s%s%s", part->title, part->command != NULL ? " / " : "",
                  part->command != NULL ? part->command : "");
    quoted(buffer_text(&title), out);
    buffer_printf(out, ",\"%.2f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\"\n", part->rate,
                  latencies_mean_ns(latencies) / NS_PER_MS, least_ms(facts, latencies),
                  percentile_ms(facts, latencies, 50), percentile_ms(facts, latencies, 95),
                  percentile_ms(facts, latencies, 99), shown_ms(facts, latencies_most_ns(latencies)));
    buffer_fini(&title);
}

void report_csv(const struct report_facts *facts, struct buffer *out)
{
    each_part(facts, csv_line, out);
}

static void json_text(const char *text, struct buffer *out)
{
    buffer_append_char(out, '"');
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            buffer_printf(out, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f) /* bytes that are no ASCII need not be UTF-8 */
            buffer_printf(out, "\\u%04x", c);
        else
            buffer_append_char(out, (char)c);
    }
    buffer_append_char(out, '"');
}

static void json_latencies(const struct latencies *latencies, struct buffer *out)
{
    static const double percents[] = {50, 90, 95, 99, 99.9, 99.99};

    buffer_printf(out, "{\"count\": %llu, \"mean\": %.6f, \"stddev\": %.6f, \"min\": %.6f",
                  (unsigned long long)latencies_count(latencies), latencies_mean_ns(latencies) / NS_PER_MS,
                  latencies_deviation_ns(latencies) / NS_PER_MS, ms(latencies_least_ns(latencies)));
    for (size_t i = 0; i < countof(percents); i++)
        buffer_printf(out, ", \"p%g\": %.6f", percents[i], ms(latencies_percentile_ns(latencies, percents[i])));
    buffer_printf(out, ", \"max\": %.6f}", ms(latencies_most_ns(latencies)));
}

void report_json(const struct report_facts *facts, struct buffer *out)
{
    const struct run_result *result = facts->result;

    buffer_append_text(out, "{\"test\": ");
    json_text(facts->title, out);
    buffer_printf(out, ", \"clients\": %u, \"pipeline\": %u, \"threads\": %u, \"payload_bytes\": %zu", facts->clients,
                  facts->pipeline, MAX(facts->threads, 1U), facts->payload_bytes);
    buffer_printf(out, ", \"rate_asked\": %.2f, \"requests\": %llu, \"errors\": %llu, \"seconds\": %.6f", facts->rate,
                  (unsigned long long)result->finished, (unsigned long long)result->errors, result->seconds);
    buffer_printf(out, ", \"rps\": %.2f, \"client_cpu_us_per_request\": %.4f, \"latency_ms\": ", report_rate(result),
                  result->finished != 0 ? result->cpu_seconds * 1e6 / (double)result->finished : 0);
    json_latencies(result->all, out);
    buffer_append_text(out, ", \"commands\": [");
    for (uint32_t i = 0, told = 0; i < facts->workload->count; i++) {
        if (result->each[i] == NULL)
            continue;
        buffer_append_text(out, told++ != 0 ? ", {\"name\": " : "{\"name\": ");
        json_text(facts->workload->commands[i].name, out);
        buffer_append_text(out, ", \"latency_ms\": ");
        json_latencies(result->each[i], out);
        buffer_append_char(out, '}');
    }
    buffer_append_text(out, "]}");
}

/* --------------------------------------------------------------------------------------------------------- SVG -- */

enum { WIDTH = 800, HEIGHT = 480, LEFT = 80, RIGHT = 200, TOP = 30, BOTTOM = 60, NINES = 5, POINTS = 200 };

static const char *const colours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                      "#ff7f0e", "#17becf", "#8c564b", "#e377c2"};

/* To the right each nine of the percentile takes as much room: 0, 90, 99, 99.9 % ... */
static double across(double nines)
{
    return LEFT + nines / NINES * (WIDTH - LEFT - RIGHT);
}

static double upwards(double value_ms, double most_ms)
{
    return HEIGHT - BOTTOM - value_ms / most_ms * (HEIGHT - TOP - BOTTOM);
}

static void xml_text(const char *text, struct buffer *out)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;

        if (c == '<')
            buffer_append_text(out, "&lt;");
        else if (c == '&')
            buffer_append_text(out, "&amp;");
        else
            buffer_append_char(out, c < 0x20 || c >= 0x7f ? '?' : (char)c);
    }
}

/* Above it: 1, 2 or 5 times a power of ten. */
static double round_up(double value)
{
    const double power = pow(10, floor(log10(value)));

    return value <= power ? power : value <= 2 * power ? 2 * power : value <= 5 * power ? 5 * power : 10 * power;
}

static void grid(double most_ms, struct buffer *out)
{
    static const char *const percents[NINES + 1] = {"0", "90", "99", "99.9", "99.99", "99.999"};

    for (int i = 0; i <= NINES; i++) {
        const double x = across(i), y = upwards(most_ms * i / NINES, most_ms);

        buffer_printf(out, "<path d=\"M%.1f %d V%d M%d %.1f H%d\" stroke=\"#ddd\"/>\n", x, TOP, HEIGHT - BOTTOM, LEFT,
                      y, WIDTH - RIGHT);
        buffer_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s %%</text>\n", x, HEIGHT - BOTTOM + 20,
                      percents[i]);
        buffer_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8, y + 4,
                      most_ms * i / NINES);
    }
    buffer_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">ms</text>\n", LEFT - 8, TOP - 10);
}

static void curve(const struct report_facts *facts, uint32_t number, double most_ms, struct buffer *out)
{
    const char *colour = colours[number % countof(colours)];
    const int y = TOP + 10 + 20 * (int)number;

    buffer_append_text(out, "<path fill=\"none\" stroke-width=\"2\" stroke=\"");
    buffer_printf(out, "%s\" d=\"", colour);
    for (int i = 0; i <= POINTS; i++) {
        const double nines = (double)i * NINES / POINTS, percent = 100 - 100 * pow(10, -nines);

        buffer_printf(out, "%c%.1f %.1f", i == 0 ? 'M' : 'L', across(nines),
                      upwards(ms(latencies_percentile_ns(facts->result->all, percent)), most_ms));
    }
    buffer_printf(out, "\"/>\n<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", WIDTH - RIGHT + 15,
                  y, colour);
    buffer_printf(out, "<text x=\"%d\" y=\"%d\">", WIDTH - RIGHT + 33, y + 11);
    xml_text(facts->title, out);
    buffer_append_text(out, "</text>\n");
}

void report_svg(const struct report_facts *facts, uint32_t count, struct buffer *out)
{
    double most_ms = 0.001;

    for (uint32_t i = 0; i < count; i++)
        most_ms = MAX(most_ms, ms(latencies_percentile_ns(facts[i].result->all, 100 - 100 * pow(10, -NINES))));
    most_ms = round_up(most_ms);
    buffer_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
                  "font-size=\"12\">\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
                  WIDTH, MAX((int)HEIGHT, TOP + 40 + 20 * (int)count), WIDTH,
                  MAX((int)HEIGHT, TOP + 40 + 20 * (int)count));
    grid(most_ms, out);
    for (uint32_t i = 0; i < count; i++)
        curve(&facts[i], i, most_ms, out);
    buffer_append_text(out, "</svg>\n");
}
