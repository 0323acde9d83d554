#include "server/observe/commands_info.h"

#include "base/mem.h"
#include "base/number.h"
#include "server/command/command.h"
#include "server/core/stats_since.h"
#include "server/observe/timing.h"

#include <stdio.h>
#include <string.h>

/* The name of a field ends at a colon, and there is a command "host:". */
static void append_command_name(struct buffer *buffer, const char *what, struct slice name)
{
    buffer_append_text(buffer, what);
    for (size_t i = 0; i < name.size; i++)
        buffer_append_char(buffer, name.data[i] == ':' ? '_' : name.data[i]);
}

static void append_command_lines(struct buffer *buffer, const void *picture)
{
    (void)picture;
    for (uint32_t id = 0; id < command_count(); id++) {
        struct slice name = command_at(id)->full_name;
        struct command_stats stats = {0};
        struct command_times *times = timing_collect(id);
        uint64_t calls = times != NULL ? timing_calls(times) : 0, usec = times != NULL ? timing_usec(times) : 0;

        mem_free(times);
        if (!stats_since_command(id, &stats) && calls == 0)
            continue;
        append_command_name(buffer, "cmdstat_", name);
        buffer_printf(buffer, ":calls=%llu,usec=%llu,usec_per_call=%.2f,rejected_calls=%llu,failed_calls=%llu\r\n",
                      (unsigned long long)calls, (unsigned long long)usec,
                      calls == 0 ? 0 : (double)usec / (double)calls, (unsigned long long)stats.rejected_calls,
                      (unsigned long long)stats.failed_calls);
    }
}

/* In order of their codes; each worker may have met others, and together not more are told than one may know. */
struct error_lines {
    struct error_line {
        char code[ERROR_CODE_BYTES];
        uint64_t count;
    } lines[ERROR_CODES_MOST];
    size_t count;
    uint64_t overflow;
};

static void note_error(void *context, const char *code, uint64_t count)
{
    struct error_lines *errors = context;
    size_t at = errors->count;

    if (at == ERROR_CODES_MOST || strcmp(code, ERROR_CODE_OVERFLOW) == 0) {
        errors->overflow += count;
        return;
    }
    for (; at > 0 && strcmp(errors->lines[at - 1].code, code) > 0; at--)
        errors->lines[at] = errors->lines[at - 1];
    snprintf(errors->lines[at].code, ERROR_CODE_BYTES, "%s", code);
    errors->lines[at].count = count;
    errors->count++;
}

static void append_error_lines(struct buffer *buffer, const void *picture)
{
    (void)picture;
    struct error_lines *errors = mem_alloc_zero(sizeof(*errors));

    stats_since_errors(note_error, errors);
    for (size_t i = 0; i < errors->count; i++)
        buffer_printf(buffer, "errorstat_%s:count=%llu\r\n", errors->lines[i].code,
                      (unsigned long long)errors->lines[i].count);
    if (errors->overflow != 0)
        buffer_printf(buffer, "errorstat_%s:count=%llu\r\n", ERROR_CODE_OVERFLOW, (unsigned long long)errors->overflow);
    mem_free(errors);
}

static void append_latency_lines(struct buffer *buffer, const void *picture)
{
    (void)picture;
    const double *percents;
    size_t count = timing_percents(&percents);

    for (uint32_t id = 0; timing_is_tracking() && id < command_count(); id++) {
        struct slice name = command_at(id)->full_name;
        struct command_times *times = timing_collect(id);

        if (times != NULL && histogram_count(&times->ticks) != 0) {
            append_command_name(buffer, "latency_percentiles_usec_", name);
            buffer_append_char(buffer, ':');
            for (size_t i = 0; i < count; i++) {
                char percent[NUMBER_DOUBLE_SPACE];

                number_format_double_short(percent, percents[i]);
                buffer_printf(buffer, "%sp%s=%.3f", i == 0 ? "" : ",", percent,
                              (double)tick_to_ns(histogram_percentile(&times->ticks, percents[i])) / 1000);
            }
            buffer_append_text(buffer, "\r\n");
        }
        mem_free(times);
    }
}

const struct info_row commands_info[] = {
    INFO_LINES("cmdstat_<command>", NULL, append_command_lines),
    INFO_LINES("errorstat_<code>", NULL, append_error_lines),
    INFO_LINES("latency_percentiles_usec_<command>", NULL, append_latency_lines),
    {0},
};
