/* LATENCY: events that took long, and how long commands take. */
#include "base/buffer.h"
#include "base/mem.h"
#include "commands/shared/families.h"
#include "server/core/request.h"
#include "server/observe/latency.h"
#include "server/observe/timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------- histograms -- */

/* Upper ends of what LATENCY HISTOGRAM tells: 1.032 us times powers of two, printed in whole microseconds. Clients of
 * the family know these numbers: 1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056 ... */
enum { STEP_NS = 1032, STEPS_MOST = 30 };

/* Cumulative counts, a pair where the count grows; returns how many pairs. */
static unsigned write_steps(struct request *request, const struct histogram *ticks, bool really)
{
    uint64_t total = histogram_count(ticks), told = 0;
    unsigned pairs = 0;

    for (unsigned i = 0; i < STEPS_MOST && told < total; i++) {
        uint64_t end_ns = ((uint64_t)STEP_NS << i) - 1;
        uint64_t count = i == STEPS_MOST - 1 ? total : histogram_count_upto(ticks, tick_from_ns(end_ns));

        if (count <= told)
            continue;
        told = count;
        pairs++;
        if (really) {
            reply_int(request, (int64_t)(end_ns / 1000));
            reply_int(request, (int64_t)count);
        }
    }
    return pairs;
}

static void write_histogram(struct request *request, const struct command *command, const struct histogram *ticks)
{
    reply_bulk(request, command->full_name);
    reply_map(request, 2);
    reply_text(request, "calls");
    reply_int(request, (int64_t)histogram_count(ticks));
    reply_text(request, "histogram_usec");
    reply_map(request, write_steps(request, ticks, false));
    write_steps(request, ticks, true);
}

/* Marks the command, or all its subcommands. */
static void mark(bool *wanted, const struct command *command)
{
    wanted[command->id] = true;
    for (uint32_t i = 0; i < command->subcommand_count; i++)
        wanted[command->subcommands[i].id] = true;
}

static const struct command *command_of_name(struct slice name)
{
    const char *bar = name.size != 0 ? memchr(name.data, '|', name.size) : NULL;
    const struct command *command;

    if (bar == NULL)
        return command_find(name);
    command = command_find(slice_make(name.data, (size_t)(bar - name.data)));
    return command == NULL ? NULL : command_find_subcommand(command, slice_skip(name, (size_t)(bar + 1 - name.data)));
}

static void cmd_latency_histogram(struct request *request)
{
    uint32_t count = command_count(), told = 0;
    struct command_times **times = mem_alloc_zero((count + 1) * sizeof(*times));
    bool *wanted = mem_alloc_zero(count + 1);

    memset(wanted, request->arg_count == 2, count);
    for (uint32_t i = 2; i < request->arg_count; i++) {
        const struct command *command = command_of_name(request_arg(request, i));

        if (command != NULL)
            mark(wanted, command);
    }
    for (uint32_t id = 0; id < count; id++) {
        times[id] = wanted[id] ? timing_collect(id) : NULL;
        told += times[id] != NULL && histogram_count(&times[id]->ticks) != 0;
    }
    reply_map(request, told);
    for (uint32_t id = 0; id < count; id++) {
        if (times[id] != NULL && histogram_count(&times[id]->ticks) != 0)
            write_histogram(request, command_at(id), &times[id]->ticks);
        mem_free(times[id]);
    }
    mem_free(wanted);
    mem_free(times);
}

/* -------------------------------------------------------------------------------------------------------- events -- */

static void cmd_latency_latest(struct request *request)
{
    struct latency_history *all = mem_alloc(LATENCY_EVENT_COUNT * sizeof(*all));
    unsigned used = 0;

    for (unsigned i = 0; i < LATENCY_EVENT_COUNT; i++) {
        latency_read((enum latency_event)i, &all[i]);
        used += all[i].count != 0;
    }
    reply_array(request, used);
    for (unsigned i = 0; i < LATENCY_EVENT_COUNT; i++) {
        const struct latency_sample *last;

        if (all[i].count == 0)
            continue;
        last = &all[i].samples[all[i].count - 1];
        reply_array(request, 4);
        reply_text(request, latency_event_name((enum latency_event)i));
        reply_int(request, last->time_s);
        reply_int(request, last->ms);
        reply_int(request, all[i].worst_ms);
    }
    mem_free(all);
}

static void read_named(struct request *request, struct latency_history *history)
{
    enum latency_event event;

    history->count = 0;
    if (latency_find_event(request_arg(request, 2), &event))
        latency_read(event, history);
}

static void cmd_latency_history(struct request *request)
{
    struct latency_history history;

    read_named(request, &history);
    reply_array(request, history.count);
    for (size_t i = 0; i < history.count; i++) {
        reply_array(request, 2);
        reply_int(request, history.samples[i].time_s);
        reply_int(request, history.samples[i].ms);
    }
}

static void cmd_latency_reset(struct request *request)
{
    int64_t count = 0;
    enum latency_event event;

    for (unsigned i = 0; request->arg_count == 2 && i < LATENCY_EVENT_COUNT; i++)
        count += latency_reset((enum latency_event)i);
    for (uint32_t i = 2; i < request->arg_count; i++)
        count += latency_find_event(request_arg(request, i), &event) && latency_reset(event);
    reply_int(request, count);
}

/* --------------------------------------------------------------------------------------------------------- graph -- */

enum { GRAPH_WIDTH = 80, GRAPH_HEIGHT = 4, AGE_DIGITS = 4 };

/* "7s", "12m", "3h", "2d": how long ago. */
static void print_age(char text[AGE_DIGITS + 1], int64_t seconds)
{
    static const struct {
        int64_t seconds;
        char letter;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    size_t unit = 0;
    char number[32];

    seconds = MAX(seconds, 0);
    while (unit + 1 < countof(units) && seconds < units[unit].seconds)
        unit++;
    snprintf(number, sizeof(number), "%lld%c", (long long)MIN(seconds / units[unit].seconds, 999), units[unit].letter);
    memcpy(text, number, MIN(strlen(number) + 1, (size_t)AGE_DIGITS + 1));
    text[AGE_DIGITS] = '\0';
}

/* One column for each sample: its height is the duration, below it is its age from top to bottom. */
static void print_graph(struct buffer *text, const struct latency_sample *samples, size_t count, int64_t low,
                        int64_t high, int64_t now_s)
{
    static const char levels[] = "_-`";
    const int steps = GRAPH_HEIGHT * 3;

    for (int row = GRAPH_HEIGHT - 1; row >= 0; row--) {
        for (size_t i = 0; i < count; i++) {
            double part = high == low ? 0 : (double)(samples[i].ms - low) / (double)(high - low);
            int level = (int)(part * (steps - 1) + 0.5);
            bool under = level / 3 > row;

            buffer_append_char(text, level / 3 == row ? levels[level % 3] : under ? '|' : ' ');
        }
        buffer_append_char(text, '\n');
    }
    buffer_append_char(text, '\n');
    for (int row = 0; row < AGE_DIGITS; row++) {
        bool any = false;

        for (size_t i = 0; i < count; i++) {
            char age[AGE_DIGITS + 1];

            print_age(age, now_s - samples[i].time_s);
            any = any || (size_t)row < strlen(age);
            buffer_append_char(text, (size_t)row < strlen(age) ? age[row] : ' ');
        }
        buffer_append_char(text, '\n');
        if (!any)
            break;
    }
}

static void cmd_latency_graph(struct request *request)
{
    struct latency_history history;
    struct slice name = request_arg(request, 2);
    struct buffer text = {0};
    int64_t low = INT64_MAX, high = 0;
    size_t first;

    read_named(request, &history);
    if (history.count == 0) {
        reply_errorf(request, "ERR No samples available for event '%.*s'", (int)MIN(name.size, (size_t)128), name.data);
        return;
    }
    first = history.count > GRAPH_WIDTH ? history.count - GRAPH_WIDTH : 0;
    for (size_t i = first; i < history.count; i++) {
        low = MIN(low, history.samples[i].ms);
        high = MAX(high, history.samples[i].ms);
    }
    buffer_printf(&text, "%.*s - high %lld ms, low %lld ms (all time high %lld ms)\n", (int)name.size, name.data,
                  (long long)high, (long long)low, (long long)history.worst_ms);
    for (unsigned i = 0; i < GRAPH_WIDTH; i++)
        buffer_append_char(&text, '-');
    buffer_append_char(&text, '\n');
    print_graph(&text, &history.samples[first], history.count - first, low, high, clock_wall_us() / 1000000);
    reply_verbatim(request, "txt", buffer_slice(&text));
    buffer_fini(&text);
}

/* -------------------------------------------------------------------------------------------------------- doctor -- */

static const char *const advice[LATENCY_EVENT_COUNT] = {
    [LATENCY_COMMAND] = "SLOWLOG GET shows which commands they were. One that walks over all keys (KEYS, FLUSHALL "
                        "SYNC) or over one very large value holds up whoever needs the same data; SCAN and smaller "
                        "values do not.",
    [LATENCY_FAST_COMMAND] = "These commands do little work: more likely the thread got no processor. Look whether the "
                             "machine is busy, swaps, or is a virtual one whose host is; more server-threads than "
                             "processors have the same effect.",
    [LATENCY_EXPIRE_CYCLE] = "Many keys are due at the same moment. Spread their times to live, or set "
                             "lazyfree-lazy-expire yes if their values are large.",
    [LATENCY_EVICTION_CYCLE] = "Memory is at its limit all the time. Raise maxmemory, or lower "
                               "maxmemory-eviction-tenacity so that less is evicted in one go.",
    [LATENCY_FORK] = "The process is large: fork copies its page tables. Huge pages of the system make it slower.",
    [LATENCY_EVICTION_DEL] = "Evicted values are large: lazyfree-lazy-eviction yes frees them in the background.",
    [LATENCY_ACTIVE_DEFRAG_CYCLE] = "Lower active-defrag-cycle-max: defragmentation takes too large a share.",
};

static void describe(struct buffer *text, unsigned number, enum latency_event event,
                     const struct latency_history *history)
{
    double sum = 0, deviation = 0;
    int64_t span_s = history->samples[history->count - 1].time_s - history->samples[0].time_s;

    for (size_t i = 0; i < history->count; i++)
        sum += (double)history->samples[i].ms;
    for (size_t i = 0; i < history->count; i++)
        deviation += fabs((double)history->samples[i].ms - sum / (double)history->count);
    buffer_printf(text, "%u. %s: %zu slow moments, %.0f ms each on average (mean deviation %.0f ms)", number,
                  latency_event_name(event), history->count, sum / (double)history->count,
                  deviation / (double)history->count);
    if (history->count > 1)
        buffer_printf(text, ", one in %.1f s", (double)span_s / (double)(history->count - 1));
    buffer_printf(text, ". The worst took %lld ms.\n   %s\n", (long long)history->worst_ms, advice[event]);
}

static void cmd_latency_doctor(struct request *request)
{
    struct buffer text = {0};
    struct latency_history *history = mem_alloc(sizeof(*history));
    unsigned number = 0;

    for (unsigned i = 0; i < LATENCY_EVENT_COUNT; i++) {
        latency_read((enum latency_event)i, history);
        if (history->count != 0)
            describe(&text, ++number, (enum latency_event)i, history);
    }
    if (number == 0 && latency_threshold() == 0)
        buffer_append_text(&text, "Nobody is watching: CONFIG SET latency-monitor-threshold <milliseconds> makes the "
                                  "server note whatever takes that long.\n");
    else if (number == 0)
        buffer_printf(&text, "All is well: nothing has taken %lld ms or longer.\n", (long long)latency_threshold());
    reply_verbatim(request, "txt", buffer_slice(&text));
    mem_free(history);
    buffer_fini(&text);
}

/* ---------------------------------------------------------------------------------------------------------- rows -- */

static void cmd_latency_help(struct request *request)
{
    static const char *const lines[] = {
        "DOCTOR",
        "    Report latency events, and what may help.",
        "GRAPH <event>",
        "    Return a graph of the samples of <event>.",
        "HISTORY <event>",
        "    Return the samples of <event>: time stamp and milliseconds.",
        "LATEST",
        "    Return the latest and the worst sample of each event.",
        "RESET [<event> ...]",
        "    Delete the samples of these events, or of all events.",
        "HISTOGRAM [COMMAND ...]",
        "    Return the distribution of the durations of these commands, or of all: cumulative counts by microseconds.",
    };

    reply_help(request, lines, countof(lines));
}

static void cmd_latency(struct request *request)
{
    reply_subcommand_error(request);
}

#define TIPS_OF_EVENTS "nondeterministic_output request_policy:all_nodes response_policy:special"

/* clang-format off */
static const struct command_row latency_subcommands[] = {
    {
        .name = "doctor", .run = cmd_latency_doctor, .arity = 2, .access = ACCESS_FREE,
        .flags = "admin noscript loading stale", .categories = "@admin @slow @dangerous", .group = "server",
        .since = "2.8.13", .summary = "Returns a report about latency events.", .complexity = "O(1)",
        .syntax = "LATENCY DOCTOR", .tips = TIPS_OF_EVENTS,
    },
    {
        .name = "graph", .run = cmd_latency_graph, .arity = 3, .access = ACCESS_FREE,
        .flags = "admin noscript loading stale", .categories = "@admin @slow @dangerous", .group = "server",
        .since = "2.8.13", .summary = "Returns a graph of a latency event.", .complexity = "O(1)",
        .syntax = "LATENCY GRAPH event", .tips = TIPS_OF_EVENTS,
    },
    {
        .name = "help", .run = cmd_latency_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
        .categories = "@slow", .group = "server", .since = "2.8.13", .summary = "Explains the subcommands.",
        .complexity = "O(1)", .syntax = "LATENCY HELP",
    },
    {
        .name = "histogram", .run = cmd_latency_histogram, .arity = -2, .access = ACCESS_FREE,
        .flags = "admin noscript loading stale", .categories = "@admin @slow @dangerous", .group = "server",
        .since = "7.0.0", .summary = "Returns the distribution of the times that commands took.",
        .complexity = "O(N), N commands with calls", .syntax = "LATENCY HISTOGRAM [command ...]",
        .tips = TIPS_OF_EVENTS,
    },
    {
        .name = "history", .run = cmd_latency_history, .arity = 3, .access = ACCESS_FREE,
        .flags = "admin noscript loading stale", .categories = "@admin @slow @dangerous", .group = "server",
        .since = "2.8.13", .summary = "Returns the samples of a latency event.", .complexity = "O(1)",
        .syntax = "LATENCY HISTORY event", .tips = TIPS_OF_EVENTS,
    },
    {
        .name = "latest", .run = cmd_latency_latest, .arity = 2, .access = ACCESS_FREE,
        .flags = "admin noscript loading stale", .categories = "@admin @slow @dangerous", .group = "server",
        .since = "2.8.13", .summary = "Returns the latest sample of each latency event.", .complexity = "O(1)",
        .syntax = "LATENCY LATEST", .tips = TIPS_OF_EVENTS,
    },
    {
        .name = "reset", .run = cmd_latency_reset, .arity = -2, .access = ACCESS_FREE,
        .flags = "admin noscript loading stale", .categories = "@admin @slow @dangerous", .group = "server",
        .since = "2.8.13", .summary = "Deletes the samples of some latency events, or of all.", .complexity = "O(1)",
        .syntax = "LATENCY RESET [event ...]", .tips = "request_policy:all_nodes response_policy:agg_sum",
    },
    {0},
};
/* clang-format on */

/* clang-format off */
const struct command_row latency_commands[] = {
    {
        .name = "latency", .run = cmd_latency, .arity = -2, .access = ACCESS_FREE, .categories = "@slow",
        .group = "server", .since = "2.8.13", .summary = "Container for commands about latency.",
        .complexity = "Depends on the subcommand.", .syntax = "LATENCY", .subcommands = latency_subcommands,
    },
    {0},
};
/* clang-format on */
