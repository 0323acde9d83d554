/* HOTKEYS: finds the keys that take most time, and most bytes of the network. */
#include "server/observe/hotkeys.h"

#include "commands/shared/families.h"
#include "server/core/request.h"

enum { COUNT_BY_DEFAULT = 10, METRICS_AT = 2 };

/* -------------------------------------------------------------------------------------------------------- START -- */

static const char *const metric_words[HOTKEYS_METRICS] = {[HOTKEYS_CPU] = "cpu", [HOTKEYS_NET] = "net"};

static bool is_metric(const struct request *request, uint32_t index, unsigned *metric)
{
    for (*metric = 0; *metric < HOTKEYS_METRICS; ++*metric) {
        if (request_arg_is(request, index, metric_words[*metric]))
            return true;
    }
    return false;
}

/* METRICS count (CPU|NET)...; *index: the first argument behind it. */
static bool parse_metrics(struct request *request, struct hotkeys_plan *plan, uint32_t *index)
{
    static const char mismatch[] = "ERR METRICS count does not match number of metric types provided";
    int64_t wanted, given = 0;
    unsigned metric;

    if (request->arg_count <= METRICS_AT + 1 || !request_arg_is(request, METRICS_AT, "metrics")) {
        reply_error(request, "ERR METRICS parameter is required");
        return false;
    }
    if (!request_arg_range(request, METRICS_AT + 1, 1, HOTKEYS_METRICS, &wanted,
                           "ERR METRICS count must be > 0 and <= 2"))
        return false;
    if (request->arg_count == METRICS_AT + 2) {
        reply_error(request, mismatch);
        return false;
    }
    for (*index = METRICS_AT + 2; given < wanted && *index < request->arg_count; ++*index) {
        if (!is_metric(request, *index, &metric))
            break;
        if (plan->wants[metric]) {
            reply_errorf(request, "ERR METRICS %s defined more than once!", metric == HOTKEYS_CPU ? "CPU" : "NET");
            return false;
        }
        plan->wants[metric] = true;
        given++;
    }
    if (given == 0)
        reply_error(request, "ERR METRICS no valid metrics passed. Supported: CPU|NET");
    else if (given != wanted)
        reply_error(request, mismatch);
    return given == wanted;
}

/* The option at `index`, which has a value. */
static bool parse_option(struct request *request, uint32_t index, struct hotkeys_plan *plan)
{
    int64_t number;

    if (request_arg_is(request, index, "count")) {
        if (!request_arg_range(request, index + 1, 1, HOTKEYS_COUNT_MOST, &number,
                               "ERR COUNT must be between 1 and 64"))
            return false;
        plan->count = (uint32_t)number;
    } else if (request_arg_is(request, index, "duration")) {
        return request_arg_range(request, index + 1, 1, HOTKEYS_SECONDS_MOST, &plan->seconds,
                                 "ERR DURATION must be between 1 and 1000000");
    } else if (request_arg_is(request, index, "sample")) {
        if (!request_arg_range(request, index + 1, 1, INT64_MAX, &number, "ERR SAMPLE ratio must be positive"))
            return false;
        plan->sampling = (uint64_t)number;
    } else {
        reply_syntax_error(request);
        return false;
    }
    return true;
}

static bool parse_plan(struct request *request, struct hotkeys_plan *plan)
{
    uint32_t index;

    if (!parse_metrics(request, plan, &index))
        return false;
    for (; index < request->arg_count; index += 2) {
        if (request_arg_is(request, index, "slots")) {
            reply_error(request, "ERR SLOTS parameter cannot be used in non-cluster mode");
            return false;
        }
        if (index + 1 == request->arg_count) {
            reply_syntax_error(request);
            return false;
        }
        if (!parse_option(request, index, plan))
            return false;
    }
    return true;
}

static void cmd_hotkeys_start(struct request *request)
{
    struct hotkeys_plan plan = {.count = COUNT_BY_DEFAULT, .sampling = 1};
    bool is_started;

    if (hotkeys_is_active()) {
        reply_error(request, "ERR hotkey tracking session already in progress");
        return;
    }
    if (!parse_plan(request, &plan))
        return;
    is_started = hotkeys_start(&plan);
    assert(is_started);
    (void)is_started;
    reply_ok(request);
}

/* -------------------------------------------------------------------------------------------- STOP, RESET, HELP -- */

static void cmd_hotkeys_stop(struct request *request)
{
    if (hotkeys_stop())
        reply_ok(request);
    else
        reply_null(request);
}

static void cmd_hotkeys_reset(struct request *request)
{
    if (hotkeys_reset())
        reply_ok(request);
    else
        reply_error(request, "ERR hotkey tracking session in progress, stop tracking first");
}

static void cmd_hotkeys_help(struct request *request)
{
    static const char *const lines[] = {
        "START METRICS <count> [CPU] [NET] [COUNT <keys>] [DURATION <seconds>] [SAMPLE <ratio>]",
        "    Begin to look for the keys that take most time (CPU) and most bytes of requests and",
        "    replies (NET): <keys> of each (default: 10), until HOTKEYS STOP or for <seconds>,",
        "    looking at one of <ratio> commands (default: all).",
        "STOP",
        "    Stop looking; what was found stays.",
        "GET",
        "    Return what was found.",
        "RESET",
        "    Forget what was found.",
    };

    reply_help(request, lines, countof(lines));
}

/* ---------------------------------------------------------------------------------------------------------- GET -- */

static void reply_field(struct request *request, const char *name, uint64_t number)
{
    reply_text(request, name);
    reply_int(request, (int64_t)number);
}

/* All slots: there is no cluster. */
static void reply_slots(struct request *request)
{
    enum { SLOT_LAST = 16383 };

    reply_text(request, "selected-slots");
    reply_array(request, 1);
    reply_array(request, 2);
    reply_int(request, 0);
    reply_int(request, SLOT_LAST);
}

static void reply_keys(struct request *request, const char *name, enum hotkeys_metric metric, uint64_t divisor)
{
    struct hotkeys_key keys[HOTKEYS_COUNT_MOST];
    const size_t count = hotkeys_list(metric, keys);

    reply_text(request, name);
    reply_array(request, 2 * count);
    for (size_t i = 0; i < count; i++) {
        reply_bulk(request, keys[i].name);
        reply_int(request, (int64_t)(keys[i].amount / divisor));
    }
}

static void reply_report(struct request *request, const struct hotkeys_report *report)
{
    enum { FIELDS = 7, FIELDS_OF_CPU = 3, FIELDS_OF_NET = 2, NS_PER_US = 1000 };
    const bool has_cpu = report->plan.wants[HOTKEYS_CPU], has_net = report->plan.wants[HOTKEYS_NET];

    reply_map(request, FIELDS + (has_cpu ? FIELDS_OF_CPU : 0) + (has_net ? FIELDS_OF_NET : 0));
    reply_field(request, "tracking-active", report->is_active);
    reply_field(request, "sample-ratio", report->plan.sampling);
    reply_slots(request);
    reply_field(request, "all-commands-all-slots-us", report->commands_us);
    reply_field(request, "net-bytes-all-commands-all-slots", report->commands_bytes);
    reply_field(request, "collection-start-time-unix-ms", (uint64_t)report->start_wall_ms);
    reply_field(request, "collection-duration-ms", report->duration_ms);
    if (has_cpu) {
        reply_field(request, "total-cpu-time-user-ms", report->user_ms);
        reply_field(request, "total-cpu-time-sys-ms", report->system_ms);
    }
    if (has_net)
        reply_field(request, "total-net-bytes", report->net_bytes);
    if (has_cpu)
        reply_keys(request, "by-cpu-time-us", HOTKEYS_CPU, NS_PER_US);
    if (has_net)
        reply_keys(request, "by-net-bytes", HOTKEYS_NET, 1);
}

static void cmd_hotkeys_get(struct request *request)
{
    struct hotkeys_report report;

    if (!hotkeys_report(&report)) {
        reply_null(request);
        return;
    }
    reply_array(request, 1);
    reply_report(request, &report);
}

/* clang-format off */
static const struct command_row hotkeys_subcommands[] = {
    {
        .name = "get", .run = cmd_hotkeys_get, .arity = 2, .access = ACCESS_EXCLUSIVE, .flags = "admin noscript",
        .categories = "@admin @slow @dangerous", .group = "server", .since = "8.6.0",
        .summary = "Returns the keys that a session has found.", .complexity = "O(N log N), N keys kept by all threads",
        .syntax = "HOTKEYS GET", .tips = "request_policy:special response_policy:special nondeterministic_output",
    },
    {
        .name = "help", .run = cmd_hotkeys_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
        .categories = "@slow", .group = "server", .since = "8.6.1", .summary = "Explains the subcommands.",
        .complexity = "O(1)", .syntax = "HOTKEYS HELP",
    },
    {
        .name = "reset", .run = cmd_hotkeys_reset, .arity = 2, .access = ACCESS_EXCLUSIVE, .flags = "admin noscript",
        .categories = "@admin @slow @dangerous", .group = "server", .since = "8.6.0",
        .summary = "Forgets the keys that a session has found.", .complexity = "O(N), N keys kept by all threads",
        .syntax = "HOTKEYS RESET", .tips = "request_policy:special",
    },
    {
        .name = "start", .run = cmd_hotkeys_start, .arity = -2, .access = ACCESS_EXCLUSIVE, .flags = "admin noscript",
        .categories = "@admin @slow @dangerous", .group = "server", .since = "8.6.0",
        .summary = "Begins to look for the keys that take most time or most bytes.", .complexity = "O(1)",
        .syntax = "HOTKEYS START METRICS count [CPU] [NET] [COUNT k] [DURATION seconds] [SAMPLE ratio] "
                  "[SLOTS slot-count slot [slot ...]]",
        .tips = "request_policy:special",
    },
    {
        .name = "stop", .run = cmd_hotkeys_stop, .arity = 2, .access = ACCESS_EXCLUSIVE, .flags = "admin noscript",
        .categories = "@admin @slow @dangerous", .group = "server", .since = "8.6.0",
        .summary = "Stops looking for keys.", .complexity = "O(1)", .syntax = "HOTKEYS STOP",
        .tips = "request_policy:special",
    },
    {0},
};
/* clang-format on */

static void cmd_container(struct request *request)
{
    reply_subcommand_error(request);
}

/* clang-format off */
const struct command_row hotkeys_commands[] = {
    {
        .name = "hotkeys", .run = cmd_container, .arity = -2, .access = ACCESS_FREE, .categories = "@slow",
        .group = "server", .since = "8.6.0", .summary = "Container for commands about the most used keys.",
        .complexity = "Depends on the subcommand.", .syntax = "HOTKEYS", .subcommands = hotkeys_subcommands,
    },
    {0},
};
/* clang-format on */
