/* XINFO: what streams, groups and consumers are like. */
#include "commands/shared/families.h"

#include "commands/shared/type_options.h"
#include "commands/stream/stream_args.h"
#include "commands/stream/stream_effects.h"
#include "data/stream_idmp.h"

enum { FULL_COUNT = 10 };

/* The second argument. False: it is not there, or is something else, which was replied. */
static bool find_stream(struct request *request, const struct stream **stream)
{
    if (!stream_read_arg(request, &request->keys[0], stream))
        return false;
    if (*stream == NULL)
        reply_error(request, "ERR no such key");
    return *stream != NULL;
}

static void reply_field_int(struct request *request, const char *name, uint64_t number)
{
    reply_text(request, name);
    reply_int(request, (int64_t)number);
}

static void reply_field_id(struct request *request, const char *name, struct stream_id id)
{
    reply_text(request, name);
    reply_stream_id(request, id);
}

/* --------------------------------------------------------------------------------------------------- consumers -- */

/* What nobody has (XNACK) is no consumer's. */
static uint64_t consumer_count(const struct stream_group *group)
{
    return radix_count(group->consumers) - (stream_group_released(group) != NULL);
}

static void reply_consumer(struct request *request, const struct stream_consumer *consumer)
{
    reply_map(request, 4);
    reply_text(request, "name");
    reply_bulk(request, stream_consumer_name(consumer));
    reply_field_int(request, "pending", radix_count(consumer->pending));
    reply_field_int(request, "idle", (uint64_t)MAX(request->access->now_ms - consumer->seen_ms, INT64_C(0)));
    reply_text(request, "inactive");
    reply_int(request, consumer->active_ms < 0 ? -1 : MAX(request->access->now_ms - consumer->active_ms, INT64_C(0)));
}

static void cmd_xinfo_consumers(struct request *request)
{
    const struct stream *stream;
    const struct stream_group *group;
    struct radix_iter iter;

    if (!find_stream(request, &stream))
        return;
    group = stream_group_find(stream, request_arg(request, 3));
    if (group == NULL) {
        reply_error_about(request, "NOGROUP No such consumer group '@' for key name '@'",
                          (const struct slice[]){request_arg(request, 3), request->keys[0].name});
        return;
    }
    reply_array(request, consumer_count(group));
    radix_iter_init(&iter, group->consumers);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter))
        if (iter.value != stream_group_released(group))
            reply_consumer(request, iter.value);
    radix_iter_fini(&iter);
}

/* ------------------------------------------------------------------------------------------------------ groups -- */

/* How far it has read, and how many entries are behind it, if that is known. */
static void reply_progress(struct request *request, const struct stream *stream, const struct stream_group *group)
{
    int64_t lag;

    reply_field_id(request, "last-delivered-id", group->last_id);
    reply_text(request, "entries-read");
    if (group->entries_read != STREAM_READ_UNKNOWN)
        reply_int(request, group->entries_read);
    else
        reply_null(request);
    reply_text(request, "lag");
    if (stream_group_lag(stream, group, &lag))
        reply_int(request, lag);
    else
        reply_null(request);
}

static void cmd_xinfo_groups(struct request *request)
{
    const struct stream *stream;
    struct radix_iter iter;

    if (!find_stream(request, &stream))
        return;
    reply_array(request, radix_count(stream_groups(stream)));
    radix_iter_init(&iter, stream_groups(stream));
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        const struct stream_group *group = iter.value;

        reply_map(request, 6);
        reply_text(request, "name");
        reply_bulk(request, radix_iter_key(&iter));
        reply_field_int(request, "consumers", consumer_count(group));
        reply_field_int(request, "pending", radix_count(group->pending));
        reply_progress(request, stream, group);
    }
    radix_iter_fini(&iter);
}

/* ------------------------------------------------------------------------------------------------------ stream -- */

/* A stream without pairs has the limits that it would get with the first one. */
static void reply_producers(struct request *request, const struct stream *stream)
{
    struct stream_idmp_facts facts = {.pair_count = 0};

    if (!stream_idmp_facts(stream, &facts))
        facts.limits = type_stream_idmp_limits();
    reply_field_int(request, "idmp-duration", facts.limits.duration_s);
    reply_field_int(request, "idmp-maxsize", facts.limits.maxsize);
    reply_field_int(request, "pids-tracked", facts.producer_count);
    reply_field_int(request, "iids-tracked", facts.pair_count);
    reply_field_int(request, "iids-added", facts.added);
    reply_field_int(request, "iids-duplicates", facts.duplicates);
}

static void reply_stream_facts(struct request *request, const struct stream *stream)
{
    reply_field_int(request, "length", stream_length(stream));
    reply_field_int(request, "radix-tree-keys", stream_node_count(stream));
    reply_field_int(request, "radix-tree-nodes", stream_tree_node_count(stream));
    reply_field_id(request, "last-generated-id", stream_last_id(stream));
    reply_field_id(request, "max-deleted-entry-id", stream_max_deleted_id(stream));
    reply_field_int(request, "entries-added", stream_entries_added(stream));
    reply_field_id(request, "recorded-first-entry-id", stream_first_id(stream));
    reply_producers(request, stream);
}

static void reply_end_entry(struct request *request, const char *name, const struct stream *stream, struct stream_id id)
{
    reply_text(request, name);
    if (stream_length(stream) == 0 || !reply_stream_entry_at(request, stream, id))
        reply_null(request);
}

static void reply_short(struct request *request, const struct stream *stream)
{
    reply_map(request, 16);
    reply_stream_facts(request, stream);
    reply_field_int(request, "groups", radix_count(stream_groups(stream)));
    reply_end_entry(request, "first-entry", stream, stream_first_id(stream));
    reply_end_entry(request, "last-entry", stream, stream_top_id(stream));
}

/* At most so many records of a group or a consumer, with or without the consumer's name. */
static void reply_records(struct request *request, const struct radix *records, bool with_consumer, uint64_t most)
{
    uint64_t left = MIN(radix_count(records), most);
    struct radix_iter iter;

    reply_text(request, "pending");
    reply_array(request, left);
    radix_iter_init(&iter, records);
    (void)radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY);
    for (; left > 0; left--, (void)radix_next(&iter)) {
        const struct stream_pending *record = iter.value;

        reply_array(request, with_consumer ? 4 : 3);
        reply_stream_id(request, stream_pending_id(&iter));
        if (with_consumer)
            reply_bulk(request, stream_is_released(record) ? SLICE_EMPTY : stream_consumer_name(record->consumer));
        reply_int(request, record->delivery_ms);
        reply_int(request, (int64_t)record->delivery_count);
    }
    radix_iter_fini(&iter);
}

static void reply_full_consumers(struct request *request, const struct stream_group *group, uint64_t most)
{
    struct radix_iter iter;

    reply_text(request, "consumers");
    reply_array(request, consumer_count(group));
    radix_iter_init(&iter, group->consumers);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        const struct stream_consumer *consumer = iter.value;

        if (consumer == stream_group_released(group))
            continue;
        reply_map(request, 5);
        reply_text(request, "name");
        reply_bulk(request, stream_consumer_name(consumer));
        reply_field_int(request, "seen-time", (uint64_t)consumer->seen_ms);
        reply_text(request, "active-time");
        reply_int(request, consumer->active_ms);
        reply_field_int(request, "pel-count", radix_count(consumer->pending));
        reply_records(request, consumer->pending, false, most);
    }
    radix_iter_fini(&iter);
}

static bool has_released(const struct stream_group *group)
{
    const struct stream_consumer *released = stream_group_released(group);

    return released != NULL && radix_count(released->pending) != 0;
}

static void reply_full(struct request *request, const struct stream *stream, uint64_t most)
{
    struct stream_iter entries;
    struct radix_iter groups;

    reply_map(request, 15);
    reply_stream_facts(request, stream);
    reply_text(request, "entries");
    stream_iter_init(&entries, stream, STREAM_ID_LEAST, STREAM_ID_MOST);
    reply_stream_entries(request, &entries, most);
    reply_text(request, "groups");
    reply_array(request, radix_count(stream_groups(stream)));
    radix_iter_init(&groups, stream_groups(stream));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        const struct stream_group *group = groups.value;

        reply_map(request, 7 + has_released(group));
        reply_text(request, "name");
        reply_bulk(request, radix_iter_key(&groups));
        reply_progress(request, stream, group);
        reply_field_int(request, "pel-count", radix_count(group->pending));
        if (has_released(group))
            reply_field_int(request, "nacked-count", radix_count(stream_group_released(group)->pending));
        reply_records(request, group->pending, true, most);
        reply_full_consumers(request, group, most);
    }
    radix_iter_fini(&groups);
}

/* [FULL [COUNT count]]; a count of 0 means all. */
static void cmd_xinfo_stream(struct request *request)
{
    bool is_full = request->arg_count > 3;
    const struct stream *stream;
    int64_t count = FULL_COUNT;

    if (!find_stream(request, &stream))
        return;
    if (is_full && (!request_arg_is(request, 3, "FULL") || (request->arg_count != 4 && request->arg_count != 6) ||
                    (request->arg_count == 6 && !request_arg_is(request, 4, "COUNT")))) {
        reply_subcommand_syntax_error(request);
        return;
    }
    if (request->arg_count == 6 && !request_arg_i64(request, 5, &count))
        return;
    if (count < 0)
        count = FULL_COUNT;
    if (is_full)
        reply_full(request, stream, count == 0 ? UINT64_MAX : (uint64_t)count);
    else
        reply_short(request, stream);
}

static void cmd_xinfo_help(struct request *request)
{
    static const char *const lines[] = {
        "CONSUMERS <key> <group>",
        "    Return the consumers of a group: names, numbers of pending entries, times since they were seen.",
        "GROUPS <key>",
        "    Return the groups of a stream, and how far they have read.",
        "STREAM <key> [FULL [COUNT <count>]]",
        "    Return length, ids, first and last entry of a stream. FULL: <count> entries, groups, consumers.",
    };

    reply_help(request, lines, countof(lines));
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
static const struct command_row info_subcommands[] = {
    {.name = "stream", .run = cmd_xinfo_stream, .arity = -3, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @stream @slow", .keys = "RO,ACCESS@index:2@range:0,1,0", .group = "stream", .since = "5.0.0",
     .summary = "Returns information about a stream.",
     .complexity = "O(1); FULL: O(N) for N entries, groups, consumers and records told",
     .syntax = "XINFO STREAM key [FULL [COUNT count]]",
     .history = "6.0.0=The option `FULL`.|7.0.0=Ids of the first entry and of the last one deleted, "
                "entries added and read, the lag.|"
                "7.2.0=The time `active-time`; `seen-time` has another meaning.|"
                "8.6.0=What is known of producers (`XADD IDMP`)."},
    {.name = "groups", .run = cmd_xinfo_groups, .arity = 3, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @stream @slow", .keys = "RO,ACCESS@index:2@range:0,1,0", .group = "stream", .since = "5.0.0",
     .summary = "Returns the consumer groups of a stream.", .complexity = "O(N) for N groups",
     .syntax = "XINFO GROUPS key",
     .history = "7.0.0=Entries read and the lag."},
    {.name = "consumers", .run = cmd_xinfo_consumers, .arity = 4, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @stream @slow", .keys = "RO,ACCESS@index:2@range:0,1,0", .group = "stream", .since = "5.0.0",
     .summary = "Returns the consumers of a group.", .complexity = "O(N) for N consumers",
     .syntax = "XINFO CONSUMERS key group", .history = "7.2.0=The field `inactive`; `idle` has another meaning.",
     .tips = "nondeterministic_output"},
    {.name = "help", .run = cmd_xinfo_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
     .categories = "@stream @slow", .group = "stream", .since = "5.0.0", .summary = "Explains the subcommands.",
     .complexity = "O(1)", .syntax = "XINFO HELP"},
    {.name = NULL},
};
/* clang-format on */

/* clang-format off */
const struct command_row stream_info_commands[] = {
    {.name = "xinfo", .arity = -2, .access = ACCESS_STRIPED, .categories = "@slow", .group = "stream",
     .since = "5.0.0", .summary = "Container for commands that describe streams, groups and consumers.",
     .complexity = "Depends on the subcommand.",
     .syntax = "XINFO subcommand [arg ...]", .subcommands = info_subcommands},
    {.name = NULL},
};
/* clang-format on */
