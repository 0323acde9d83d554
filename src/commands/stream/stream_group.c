/* Consumer groups: creating and deleting them, and pending entries. */
#include "base/array.h"
#include "commands/shared/families.h"

#include "commands/shared/operations.h"
#include "commands/stream/stream_effects.h"
#include "store/lazyfree.h"

#include <stdio.h>

/* ------------------------------------------------------------------------------------------------------- XGROUP -- */

enum { CREATE_WORDS_MOST = 8, SETID_WORDS_MOST = 7 };

struct group_options {
    bool makes_stream;
    int64_t entries_read;
    uint32_t read_arg; /* where that is; 0: it was not given */
    bool is_capped;    /* what was given was more */
};

static bool parse_group_options(struct request *request, bool may_make, struct group_options *options)
{
    *options = (struct group_options){.entries_read = STREAM_READ_UNKNOWN};
    for (uint32_t i = 5; i < request->arg_count; i++) {
        if (may_make && request_arg_is(request, i, "MKSTREAM")) {
            options->makes_stream = true;
        } else if (request_arg_is(request, i, "ENTRIESREAD") && i + 1 < request->arg_count) {
            options->read_arg = ++i;
            if (!request_arg_i64(request, i, &options->entries_read))
                return false;
            if (options->entries_read < STREAM_READ_UNKNOWN) {
                reply_error(request, "ERR value for ENTRIESREAD must be positive or -1");
                return false;
            }
        } else {
            reply_subcommand_syntax_error(request);
            return false;
        }
    }
    if (request->arg_count <= (may_make ? CREATE_WORDS_MOST : SETID_WORDS_MOST))
        return true;
    reply_subcommand_syntax_error(request); /* an option came twice */
    return false;
}

/* No group has read more than there ever was, whatever a client says. */
static void cap_entries_read(struct group_options *options, const struct stream *stream)
{
    const uint64_t added = stream_entries_added(stream);

    options->is_capped = options->entries_read >= 0 && (uint64_t)options->entries_read > added;
    if (options->is_capped)
        options->entries_read = (int64_t)added;
}

/* The stream of the first key. False: it is not there, or is something else, which was replied. */
static bool edit_there(struct edit *edit, struct request *request, bool makes_stream)
{
    if (!edit_begin(edit, request, &request->keys[0], TYPE_STREAM))
        return false;
    if (!edit->is_new || makes_stream)
        return true;
    reply_error(request, "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to "
                         "use the MKSTREAM option to create an empty stream automatically.");
    return false;
}

static bool edit_group(struct edit *edit, struct request *request, struct group_use *use)
{
    struct slice name = request_arg(request, 3);

    if (!edit_there(edit, request, false))
        return false;
    *use = (struct group_use){.request = request,
                              .key = &request->keys[0],
                              .stream = stream_of(edit->value),
                              .group_name = name};
    use->group = stream_group_find(use->stream, name);
    if (use->group != NULL)
        return true;
    reply_error_about(request, "NOGROUP No such consumer group '@' for key name '@'",
                      (const struct slice[]){name, use->key->name});
    return false;
}

/* "$" and the like are ids for peers. Others have to be told if the number was too large: not all of them see to it. */
static void tell_position(struct request *request, struct slice subcommand, struct stream_id id,
                          const struct group_options *options)
{
    char text[STREAM_ID_TEXT_BYTES], number[NUMBER_I64_SPACE];
    struct slice words[CREATE_WORDS_MOST];

    assert(request->arg_count <= countof(words));
    memcpy(words, request->args, request->arg_count * sizeof(*words));
    words[0] = SLICE("XGROUP");
    words[1] = subcommand;
    words[4] = stream_id_format(id, text);
    if (options->is_capped) {
        words[options->read_arg] = slice_make(number, number_format_i64(number, options->entries_read));
        effect_set(request, words, request->arg_count);
    }
    operation_add(request, words, request->arg_count);
}

static void cmd_xgroup_create(struct request *request)
{
    struct group_options options;
    struct stream *stream;
    struct stream_id id;
    struct edit edit;

    if (!parse_group_options(request, true, &options) || !edit_there(&edit, request, options.makes_stream))
        return;
    if (!slice_equal(request_arg(request, 4), SLICE("$"))) {
        if (!stream_arg_id(request, 4, 0, &id))
            return;
    } else {
        id = edit.is_new ? STREAM_ID_LEAST : stream_last_id(stream_of(edit.value));
    }
    if (edit.is_new)
        edit.value = stream_value(stream_create());
    stream = stream_of(edit.value);
    cap_entries_read(&options, stream);
    if (stream_group_create(stream, request_arg(request, 3), id, options.entries_read) == NULL) {
        reply_error(request, "BUSYGROUP Consumer Group name already exists");
        return;
    }
    edit_end(&edit, EVENT_STREAM, "xgroup-create");
    tell_position(request, SLICE("CREATE"), id, &options);
    reply_ok(request);
}

static void cmd_xgroup_setid(struct request *request)
{
    struct group_options options;
    struct group_use use;
    struct stream_id id;
    struct edit edit;

    if (!parse_group_options(request, false, &options) || !edit_group(&edit, request, &use))
        return;
    id = stream_last_id(use.stream);
    if (slice_equal(request_arg(request, 4), SLICE("-")))
        id = STREAM_ID_LEAST;
    else if (slice_equal(request_arg(request, 4), SLICE("+")))
        id = STREAM_ID_MOST;
    else if (!slice_equal(request_arg(request, 4), SLICE("$")) && !stream_arg_id(request, 4, 0, &id))
        return;
    use.group->last_id = id;
    cap_entries_read(&options, use.stream);
    use.group->entries_read = options.entries_read;
    group_use_forget_new(&use);
    edit_end(&edit, EVENT_STREAM, "xgroup-setid");
    tell_position(request, SLICE("SETID"), id, &options);
    reply_ok(request);
}

static void end_with_garbage(struct edit *edit, struct stream *garbage, const char *event)
{
    if (garbage != NULL)
        lazyfree_of_part(&edit->change, &stream_ops, stream_value(garbage));
    edit_end(edit, EVENT_STREAM, event);
}

static void cmd_xgroup_destroy(struct request *request)
{
    struct stream *garbage;
    struct edit edit;
    bool found;

    if (!edit_there(&edit, request, false))
        return;
    found = stream_group_destroy(stream_of(edit.value), request_arg(request, 3), &garbage);
    if (found)
        end_with_garbage(&edit, garbage, "xgroup-destroy");
    reply_int(request, found);
}

static void cmd_xgroup_createconsumer(struct request *request)
{
    struct group_use use;
    struct edit edit;

    if (!edit_group(&edit, request, &use))
        return;
    if (stream_consumer_find(use.group, request_arg(request, 4)) != NULL) {
        reply_int(request, 0);
        return;
    }
    stream_consumer_create(use.group, request_arg(request, 4), request->access->now_ms);
    edit_end(&edit, EVENT_STREAM, "xgroup-createconsumer");
    reply_int(request, 1);
}

static void cmd_xgroup_delconsumer(struct request *request)
{
    uint64_t pending_count = 0;
    struct stream *garbage;
    struct group_use use;
    struct edit edit;

    if (!edit_group(&edit, request, &use))
        return;
    if (stream_consumer_destroy(use.group, request_arg(request, 4), &pending_count, &garbage))
        end_with_garbage(&edit, garbage, "xgroup-delconsumer");
    reply_int(request, (int64_t)pending_count);
}

static void cmd_xgroup_help(struct request *request)
{
    static const char *const lines[] = {
        "CREATE <key> <group> <id|$> [MKSTREAM] [ENTRIESREAD <entries-read>]",
        "    Create a group that reads the entries after <id>, or new entries ($).",
        "    * MKSTREAM: create an empty stream if the key does not exist.",
        "    * ENTRIESREAD: set the number of entries that the group has read (-1: unknown).",
        "CREATECONSUMER <key> <group> <consumer>",
        "    Create a consumer.",
        "DELCONSUMER <key> <group> <consumer>",
        "    Delete a consumer with its pending entries.",
        "DESTROY <key> <group>",
        "    Delete a group with its consumers.",
        "SETID <key> <group> <id|$> [ENTRIESREAD <entries-read>]",
        "    Set the last delivered id of the group.",
    };

    reply_help(request, lines, countof(lines));
}

/* --------------------------------------------------------------------------------------------------------- XACK -- */

/* An entry that a peer has delivered to this consumer, as if for the first time, also if somebody has had it: so the
 * peer has done. */
static void deliver(struct group_use *use, struct stream_id id, int64_t ms, bool is_pending)
{
    const struct stream_pending *pending = stream_pending_find(use->group, id);
    const bool was_late = pending != NULL && stream_is_late(pending);

    stream_group_advance(use->stream, use->group, id);
    if (was_late)
        stream_group_count(use->stream, use->group);
    if (is_pending)
        (void)stream_pending_assign(use->group, id, group_use_consumer(use), ms, 1);
    else if (was_late)
        (void)stream_pending_remove(use->group, id);
}

/* The group's position has moved to `last`, behind entries that the peer did not have. Ids ascend. */
static void pass_by(struct group_use *use, struct stream_id after, struct stream_id last)
{
    const struct request *request = use->request;
    struct stream_id id, named = STREAM_ID_LEAST;
    struct stream_iter iter;
    uint64_t field_count;
    uint32_t next = 6;

    if (stream_id_compare(last, after) <= 0 || !stream_id_increment(&after))
        return;
    stream_iter_init(&iter, use->stream, after, last);
    while (stream_iter_next(&iter, &id, &field_count)) {
        while (next < request->arg_count && stream_id_compare(named, id) < 0 &&
               stream_id_parse(request_arg(request, next), 0, &named))
            next++;
        if (stream_id_compare(named, id) != 0)
            group_use_late(use, id);
    }
    stream_iter_fini(&iter);
}

/* KEYDB.OP.DELIVER key group consumer milliseconds ACK|NOACK id [id ...] */
static void operate_deliver(struct request *request)
{
    struct stream_id id, before;
    struct group_use use;
    struct edit edit;
    int64_t ms, delivered = 0;

    if (!request_arg_i64(request, 4, &ms) || !edit_begin(&edit, request, &request->keys[0], TYPE_STREAM))
        return;
    use = (struct group_use){.request = request,
                             .key = &request->keys[0],
                             .stream = edit.is_new ? NULL : stream_of(edit.value),
                             .group_name = request_arg(request, 2),
                             .consumer_name = request_arg(request, 3)};
    use.group = edit.is_new ? NULL : stream_group_find(use.stream, use.group_name);
    if (use.group == NULL) {
        reply_int(request, 0);
        return;
    }
    if (request_arg_is(request, 5, "ACK"))
        group_use_consumer(&use)->active_ms = ms;
    else
        (void)group_use_consumer(&use);
    before = use.group->last_id;
    for (uint32_t i = 6; i < request->arg_count; i++) {
        if (!stream_id_parse(request_arg(request, i), 0, &id))
            continue;
        deliver(&use, id, ms, request_arg_is(request, 5, "ACK"));
        delivered++;
    }
    pass_by(&use, before, use.group->last_id);
    edit_end(&edit, EVENT_STREAM, NULL);
    group_use_end(&use);
    reply_int(request, delivered);
}

static void cmd_xack(struct request *request)
{
    struct stream_group *group = NULL;
    int64_t acknowledged = 0;
    struct stream_id id;
    struct edit edit;

    if (!edit_begin_read(&edit, request, &request->keys[0], TYPE_STREAM))
        return;
    if (!edit.is_new)
        group = stream_group_find(stream_of(edit.value), request_arg(request, 2));
    for (uint32_t i = 3; group != NULL && i < request->arg_count; i++) /* all must be ids before any is looked at */
        if (!stream_arg_id(request, i, 0, &id))
            return;
    for (uint32_t i = 3; group != NULL && i < request->arg_count; i++)
        acknowledged += stream_id_parse(request_arg(request, i), 0, &id) && stream_pending_remove(group, id);
    if (acknowledged != 0)
        edit_end(&edit, EVENT_STREAM, NULL);
    reply_int(request, acknowledged);
}

/* ----------------------------------------------------------------------------------------------------- XPENDING -- */

/* The group that the second argument names. False: it was not found, or is something else, which was replied. */
static bool find_group(struct request *request, const struct stream *stream, struct stream_group **group)
{
    struct slice key = request->keys[0].name, name = request_arg(request, 2);

    *group = stream != NULL ? stream_group_find(stream, name) : NULL;
    if (*group == NULL)
        reply_error_about(request, "NOGROUP No such key '@' or consumer group '@'", (const struct slice[]){key, name});
    return *group != NULL;
}

static void reply_pending_end(struct request *request, const struct radix *pending, enum radix_seek which)
{
    struct radix_iter iter;

    radix_iter_init(&iter, pending);
    if (radix_seek(&iter, which, SLICE_EMPTY))
        reply_stream_id(request, stream_pending_id(&iter));
    else
        reply_null(request);
    radix_iter_fini(&iter);
}

static void reply_busy_consumers(struct request *request, const struct stream_group *group)
{
    struct resp_deferred head = resp_begin_deferred(request->out);
    struct radix_iter consumers;
    uint64_t count = 0;

    radix_iter_init(&consumers, group->consumers);
    for (bool more = radix_seek(&consumers, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&consumers)) {
        const struct stream_consumer *consumer = consumers.value;

        if (radix_count(consumer->pending) == 0 || consumer == stream_group_released(group))
            continue;
        reply_array(request, 2);
        reply_bulk(request, stream_consumer_name(consumer));
        resp_write_bulk_int(request->out, (int64_t)radix_count(consumer->pending));
        count++;
    }
    radix_iter_fini(&consumers);
    resp_end_deferred(request->out, request->proto, head, RESP_ARRAY, count);
}

static void reply_pending_summary(struct request *request, const struct stream_group *group)
{
    reply_array(request, 4);
    reply_int(request, (int64_t)radix_count(group->pending));
    reply_pending_end(request, group->pending, RADIX_FIRST);
    reply_pending_end(request, group->pending, RADIX_LAST);
    if (radix_count(group->pending) == 0)
        reply_null_array(request);
    else
        reply_busy_consumers(request, group);
}

struct pending_options {
    int64_t idle_ms;
    struct stream_id start, end;
    int64_t count;
    bool of_one; /* consumer */
    struct slice consumer;
};

/* [IDLE ms] start end count [consumer] */
static bool parse_pending(struct request *request, struct pending_options *options)
{
    uint32_t first = 3;

    *options = (struct pending_options){.idle_ms = INT64_MIN};
    if (request->arg_count < 6 || request->arg_count > 9) {
        reply_syntax_error(request);
        return false;
    }
    if (request_arg_is(request, 3, "IDLE")) {
        if (!request_arg_i64(request, 4, &options->idle_ms))
            return false;
        if (request->arg_count < 8) {
            reply_syntax_error(request);
            return false;
        }
        first = 5;
    }
    if (!request_arg_i64(request, first + 2, &options->count) || !stream_arg_start(request, first, &options->start) ||
        !stream_arg_end(request, first + 1, &options->end))
        return false;
    options->of_one = first + 3 < request->arg_count;
    if (options->of_one)
        options->consumer = request_arg(request, first + 3);
    return true;
}

/* A released entry has no consumer, and is not idle. */
static void reply_record(struct request *request, struct stream_id id, const struct stream_pending *record,
                         int64_t idle_ms)
{
    const bool is_released = stream_is_released(record);

    reply_array(request, 4);
    reply_stream_id(request, id);
    reply_bulk(request, is_released ? SLICE_EMPTY : stream_consumer_name(record->consumer));
    reply_int(request, is_released ? -1 : idle_ms);
    reply_int(request, (int64_t)record->delivery_count);
}

static void reply_pending_list(struct request *request, const struct stream_group *group,
                               const struct pending_options *options)
{
    const struct radix *records = group->pending;
    struct resp_deferred head;
    struct radix_iter iter;
    int64_t count = 0;
    bool more;

    if (options->of_one) {
        const struct stream_consumer *consumer = stream_consumer_find(group, options->consumer);

        if (consumer == NULL) {
            reply_array(request, 0);
            return;
        }
        records = consumer->pending;
    }
    head = resp_begin_deferred(request->out);
    radix_iter_init(&iter, records);
    more = options->count > 0 && stream_pending_seek(&iter, options->start);
    for (; more && count < options->count; more = radix_next(&iter)) {
        const struct stream_pending *record = iter.value;
        int64_t idle_ms = MAX(request->access->now_ms - record->delivery_ms, INT64_C(0));

        if (stream_id_compare(stream_pending_id(&iter), options->end) > 0)
            break;
        if (idle_ms < options->idle_ms)
            continue;
        reply_record(request, stream_pending_id(&iter), record, idle_ms);
        count++;
    }
    radix_iter_fini(&iter);
    resp_end_deferred(request->out, request->proto, head, RESP_ARRAY, (uint64_t)count);
}

static void cmd_xpending(struct request *request)
{
    bool is_summary = request->arg_count == 3;
    struct pending_options options;
    const struct stream *stream;
    struct stream_group *group;

    if ((!is_summary && !parse_pending(request, &options)) || !stream_read_arg(request, &request->keys[0], &stream) ||
        !find_group(request, stream, &group))
        return;
    if (is_summary)
        reply_pending_summary(request, group);
    else
        reply_pending_list(request, group, &options);
}

/* ------------------------------------------------------------------------------------------- XCLAIM, XAUTOCLAIM -- */

struct claim_options {
    int64_t idle_ms;  /* at least so long */
    uint32_t ids_end; /* the argument after the last id */
    int64_t delivery_ms;
    int64_t retry_count; /* -1: one more than it was */
    bool force, just_id;
    struct stream_id last_id;
};

/* The number of IDLE, TIME and RETRYCOUNT. */
static bool claim_number(struct request *request, uint32_t index, const char *option, int64_t *number)
{
    if (number_parse_i64(request_arg(request, index), number))
        return true;
    reply_errorf(request, "ERR Invalid %s option argument for XCLAIM", option);
    return false;
}

/* One option and its value; *index is at its last word then. */
static bool parse_claim_option(struct request *request, uint32_t *index, struct claim_options *options)
{
    uint32_t i = *index;
    int64_t number = 0;

    if (request_arg_is(request, i, "FORCE")) {
        options->force = true;
        return true;
    }
    if (request_arg_is(request, i, "JUSTID")) {
        options->just_id = true;
        return true;
    }
    if (i + 1 < request->arg_count) {
        ++*index;
        if (request_arg_is(request, i, "IDLE")) {
            if (!claim_number(request, i + 1, "IDLE", &number))
                return false;
            if (__builtin_sub_overflow(request->access->now_ms, number, &options->delivery_ms))
                options->delivery_ms = -1;
            return true;
        }
        if (request_arg_is(request, i, "TIME"))
            return claim_number(request, i + 1, "TIME", &options->delivery_ms);
        if (request_arg_is(request, i, "RETRYCOUNT"))
            return claim_number(request, i + 1, "RETRYCOUNT", &options->retry_count);
        if (request_arg_is(request, i, "LASTID"))
            return stream_arg_id(request, i + 1, 0, &options->last_id);
    }
    reply_error_about(request, "ERR Unrecognized XCLAIM option '@'", &request->args[i]);
    return false;
}

/* From the least idle time on: ids up to the first word that is none, then options. */
static bool parse_claim(struct request *request, struct claim_options *options)
{
    const int64_t now_ms = request->access->now_ms;
    struct stream_id id;
    uint32_t i = 5;

    *options = (struct claim_options){.delivery_ms = now_ms, .retry_count = -1};
    if (!number_parse_i64(request_arg(request, 4), &options->idle_ms)) {
        reply_error(request, "ERR Invalid min-idle-time argument for XCLAIM");
        return false;
    }
    while (i < request->arg_count && stream_id_parse(request_arg(request, i), 0, &id))
        i++;
    options->ids_end = i;
    for (; i < request->arg_count; i++)
        if (!parse_claim_option(request, &i, options))
            return false;
    if (options->delivery_ms < 0 || options->delivery_ms > now_ms)
        options->delivery_ms = now_ms;
    return true;
}

static bool is_idle_enough(const struct request *request, const struct stream_pending *record, int64_t idle_ms)
{
    return idle_ms <= 0 || request->access->now_ms - record->delivery_ms >= idle_ms;
}

/* The consumer has it from now on; the reply is the entry, which was found, or its id. */
static void claim(struct group_use *use, struct stream_id id, uint64_t field_count, const struct claim_options *options)
{
    struct request *request = use->request;
    struct stream_consumer *consumer = group_use_consumer(use);
    const struct stream_pending *record = stream_pending_find(use->group, id);
    uint64_t count = record != NULL ? record->delivery_count : 0;

    if (count == 0 && (record == NULL || !stream_is_released(record)))
        count = 1; /* FORCE is one, too */
    if (options->retry_count >= 0)
        count = (uint64_t)options->retry_count;
    else if (!options->just_id)
        count = stream_deliveries_after(count);
    record = stream_pending_assign(use->group, id, consumer, options->delivery_ms, count);
    consumer->active_ms = request->access->now_ms;
    if (options->just_id)
        reply_stream_id(request, id);
    else
        reply_stream_entry(request, &use->entries, id, field_count);
    effect_claim(use, id, record);
}

/* Removes a pending entry whose stream entry was deleted. Replicas do the same when they get the claim. */
static void forget(struct group_use *use, struct stream_id id, const struct stream_pending *record)
{
    effect_claim(use, id, record);
    (void)stream_pending_remove(use->group, id);
}

/* True: something is replied for this id. */
static bool claim_if_due(struct group_use *use, struct stream_id id, const struct claim_options *options,
                         bool *is_changed)
{
    const struct stream_pending *record = stream_pending_find(use->group, id);
    uint64_t field_count;

    if (!stream_iter_find(&use->entries, id, &field_count)) {
        *is_changed |= record != NULL;
        if (record != NULL)
            forget(use, id, record);
        return false;
    }
    if (record == NULL ? !options->force : !is_idle_enough(use->request, record, options->idle_ms))
        return false;
    claim(use, id, field_count, options);
    *is_changed = true;
    return true;
}

/* Is it what XREADGROUP tells replicas of one entry it delivered? Then the group got it here, too. */
static bool tells_delivery(const struct request *request, const struct claim_options *options)
{
    struct stream_id id;

    return options->force && options->just_id && options->retry_count >= 0 && options->ids_end == 6 &&
           stream_id_parse(request_arg(request, 5), 0, &id) && stream_id_compare(id, options->last_id) == 0;
}

/* False: LASTID is not new. */
static bool advance_group(struct group_use *use, const struct claim_options *options)
{
    if (stream_id_compare(options->last_id, use->group->last_id) <= 0)
        return false;
    if (tells_delivery(use->request, options) && stream_has(use->stream, options->last_id))
        stream_group_advance(use->stream, use->group, options->last_id);
    else
        use->group->last_id = options->last_id;
    return true;
}

/* The edit is open, or was not begun: there is no such key. */
static bool use_group(struct group_use *use, struct request *request, const struct edit *edit)
{
    *use = (struct group_use){.request = request,
                              .key = &request->keys[0],
                              .group_name = request_arg(request, 2),
                              .consumer_name = request_arg(request, 3)};
    use->stream = edit->is_new ? NULL : stream_of(edit->value);
    return find_group(request, use->stream, &use->group);
}

/* The consumer exists from now on, also if there is nothing to claim. */
static void begin_claim(struct group_use *use)
{
    effect_none(use->request); /* each entry has an effect of its own */
    (void)group_use_consumer(use);
    stream_iter_init_find(&use->entries, use->stream);
}

static void end_claim(struct edit *edit, struct group_use *use, uint64_t claimed, bool is_changed)
{
    stream_iter_fini(&use->entries);
    if (use->made_consumer && claimed == 0)
        effect_consumer(use);
    if (is_changed || use->made_consumer)
        edit_end(edit, EVENT_STREAM, NULL);
    group_use_end(use);
}

static void cmd_xclaim(struct request *request)
{
    struct claim_options options;
    struct resp_deferred head;
    struct group_use use;
    struct edit edit;
    uint64_t count = 0;
    bool is_moved, is_changed = false;

    if (!edit_begin_read(&edit, request, &request->keys[0], TYPE_STREAM) || !use_group(&use, request, &edit) ||
        !parse_claim(request, &options))
        return;
    begin_claim(&use);
    is_moved = advance_group(&use, &options);
    head = resp_begin_deferred(request->out);
    for (uint32_t i = 5; i < options.ids_end; i++) {
        struct stream_id id;

        count += stream_id_parse(request_arg(request, i), 0, &id) && claim_if_due(&use, id, &options, &is_changed);
    }
    resp_end_deferred(request->out, request->proto, head, RESP_ARRAY, count);
    if (is_moved && (!is_changed || !operations_are_wanted(request))) /* peers have it with what was claimed */
        effect_group_position(&use);
    end_claim(&edit, &use, count, is_changed || is_moved);
}

enum {
    AUTOCLAIM_COUNT = 100,
    AUTOCLAIM_LOOKS = 10, /* at records, for each that may be claimed */
    ID_REPLY_BYTES = 5 + STREAM_ID_TEXT_BYTES + 2
};

static bool parse_autoclaim(struct request *request, struct claim_options *options, struct stream_id *start,
                            int64_t *count)
{
    *options = (struct claim_options){.delivery_ms = request->access->now_ms, .retry_count = -1};
    *count = AUTOCLAIM_COUNT;
    if (!number_parse_i64(request_arg(request, 4), &options->idle_ms)) {
        reply_error(request, "ERR Invalid min-idle-time argument for XAUTOCLAIM");
        return false;
    }
    if (!stream_arg_start(request, 5, start))
        return false;
    for (uint32_t i = 6; i < request->arg_count; i++) {
        if (request_arg_is(request, i, "COUNT") && i + 1 < request->arg_count) {
            if (!request_arg_range(request, ++i, 1, INT64_MAX / 2 / STREAM_ID_BYTES, count, "ERR COUNT must be > 0"))
                return false;
        } else if (request_arg_is(request, i, "JUSTID")) {
            options->just_id = true;
        } else {
            reply_syntax_error(request);
            return false;
        }
    }
    return true;
}

struct gone_ids { /* entries that were pending and are no more */
    struct stream_id *items;
    uint64_t count, capacity;
};

/* Replies the claimed entries as an array. Leaves the iterator at the next entry, or at the end. */
static uint64_t claim_from(struct group_use *use, struct radix_iter *pending, const struct claim_options *options,
                           int64_t most, struct gone_ids *gone)
{
    struct resp_deferred head = resp_begin_deferred(use->request->out);
    int64_t left = most, looks = most > INT64_MAX / AUTOCLAIM_LOOKS ? INT64_MAX : most * AUTOCLAIM_LOOKS;
    uint64_t claimed = 0;

    for (; pending->valid && left > 0 && looks > 0; looks--, (void)radix_next(pending)) {
        const struct stream_pending *record = pending->value;
        struct stream_id id = stream_pending_id(pending);
        uint64_t field_count;

        if (!stream_iter_find(&use->entries, id, &field_count)) {
            forget(use, id, record);
            *ARRAY_PUSH(gone) = id;
            left--;
        } else if (is_idle_enough(use->request, record, options->idle_ms)) {
            claim(use, id, field_count, options);
            claimed++;
            left--;
        }
    }
    resp_end_deferred(use->request->out, use->request->proto, head, RESP_ARRAY, claimed);
    return claimed;
}

/* The id as a bulk, in a place left free for it. */
static void close_with_id(struct request *request, struct output_gap gap, struct stream_id id)
{
    char room[STREAM_ID_TEXT_BYTES], reply[ID_REPLY_BYTES + 1];
    struct slice text = stream_id_format(id, room);
    int size = snprintf(reply, sizeof(reply), "$%zu\r\n%.*s\r\n", text.size, (int)text.size, text.data);

    output_gap_close(request->out, gap, reply, (size_t)size);
}

static void cmd_xautoclaim(struct request *request)
{
    struct claim_options options;
    struct gone_ids gone = {NULL, 0, 0};
    struct radix_iter pending;
    struct group_use use;
    struct stream_id start;
    struct output_gap next;
    struct edit edit;
    uint64_t claimed;
    int64_t count;

    if (!parse_autoclaim(request, &options, &start, &count) ||
        !edit_begin_read(&edit, request, &request->keys[0], TYPE_STREAM) || !use_group(&use, request, &edit))
        return;
    begin_claim(&use);
    reply_array(request, 3);
    next = output_gap_open(request->out, ID_REPLY_BYTES);
    radix_iter_init(&pending, use.group->pending);
    (void)stream_pending_seek(&pending, start);
    claimed = claim_from(&use, &pending, &options, count, &gone);
    close_with_id(request, next, pending.valid ? stream_pending_id(&pending) : STREAM_ID_LEAST);
    radix_iter_fini(&pending);
    reply_array(request, gone.count);
    for (uint64_t i = 0; i < gone.count; i++)
        reply_stream_id(request, gone.items[i]);
    end_claim(&edit, &use, claimed, claimed + gone.count != 0);
    ARRAY_FINI(&gone);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
static const struct command_row group_subcommands[] = {
    {.name = "create", .run = cmd_xgroup_create, .arity = -5, .access = ACCESS_STRIPED, .flags = "write denyoom",
     .categories = "@write @stream @slow", .keys = "RW,INSERT@index:2@range:0,1,0", .group = "stream",
     .since = "5.0.0", .summary = "Creates a group of consumers.", .complexity = "O(1)",
     .syntax = "XGROUP CREATE key group (id|$) [MKSTREAM] [ENTRIESREAD entries-read]",
     .history = "7.0.0=The option `ENTRIESREAD`."},
    {.name = "setid", .run = cmd_xgroup_setid, .arity = -5, .access = ACCESS_STRIPED, .flags = "write",
     .categories = "@write @stream @slow", .keys = "RW,UPDATE@index:2@range:0,1,0", .group = "stream",
     .since = "5.0.0", .summary = "Sets the last delivered id of a consumer group.", .complexity = "O(1)",
     .syntax = "XGROUP SETID key group (id|$) [ENTRIESREAD entries-read]",
     .history = "7.0.0=The option `ENTRIESREAD`."},
    {.name = "destroy", .run = cmd_xgroup_destroy, .arity = 4, .access = ACCESS_STRIPED, .flags = "write",
     .categories = "@write @stream @slow", .keys = "RW,DELETE@index:2@range:0,1,0", .group = "stream",
     .since = "5.0.0", .summary = "Deletes a consumer group.",
     .complexity = "O(N) for N entries that are pending", .syntax = "XGROUP DESTROY key group"},
    {.name = "createconsumer", .run = cmd_xgroup_createconsumer, .arity = 5, .access = ACCESS_STRIPED,
     .flags = "write denyoom", .categories = "@write @stream @slow", .keys = "RW,INSERT@index:2@range:0,1,0",
     .group = "stream", .since = "6.2.0", .summary = "Creates a consumer of a group.", .complexity = "O(1)",
     .syntax = "XGROUP CREATECONSUMER key group consumer"},
    {.name = "delconsumer", .run = cmd_xgroup_delconsumer, .arity = 5, .access = ACCESS_STRIPED, .flags = "write",
     .categories = "@write @stream @slow", .keys = "RW,DELETE@index:2@range:0,1,0", .group = "stream",
     .since = "5.0.0", .summary = "Deletes a consumer with its pending entries.",
     .complexity = "O(N) for N entries that are pending", .syntax = "XGROUP DELCONSUMER key group consumer"},
    {.name = "help", .run = cmd_xgroup_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
     .categories = "@stream @slow", .group = "stream", .since = "5.0.0", .summary = "Explains the subcommands.",
     .complexity = "O(1)", .syntax = "XGROUP HELP"},
    {.name = NULL},
};
/* clang-format on */

/* clang-format off */
const struct command_row stream_group_commands[] = {
    {.name = "keydb.op.deliver", .run = operate_deliver, .arity = -7, .access = ACCESS_STRIPED,
     .flags = "write operation", .categories = "@write @stream @slow", .keys = "RW,UPDATE@index:1@range:0,1,0",
     .group = "stream", .since = "7.0.0", .summary = "Makes entries pending that another server has delivered.",
     .complexity = "O(N) for N entries",
     .syntax = "KEYDB.OP.DELIVER key group consumer milliseconds ACK|NOACK id [id ...]"},
    {.name = "xgroup", .arity = -2, .access = ACCESS_STRIPED, .categories = "@slow", .group = "stream",
     .since = "5.0.0", .summary = "Container for commands that manage consumer groups.",
     .complexity = "Depends on the subcommand.",
     .syntax = "XGROUP subcommand [arg ...]", .subcommands = group_subcommands},
    {.name = "xack", .run = cmd_xack, .arity = -4, .access = ACCESS_STRIPED, .flags = "write fast",
     .categories = "@write @stream @fast", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "stream",
     .since = "5.0.0", .summary = "Acknowledges entries: they are no longer pending in the group.",
     .complexity = "O(N) for N ids", .syntax = "XACK key group id [id ...]"},
    {.name = "xpending", .run = cmd_xpending, .arity = -3, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @stream @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "stream", .since = "5.0.0",
     .summary = "Returns the entries that were delivered to a group and not acknowledged.",
     .complexity = "O(N) for N records returned; without an interval O(N) for N consumers",
     .syntax = "XPENDING key group [[IDLE min-idle-time] start end count [consumer]]", .arg_since = "IDLE:6.2.0",
     .tips = "nondeterministic_output",
     .history = "6.2.0=The option `IDLE`, and ends that do not belong to the interval."},
    {.name = "xclaim", .run = cmd_xclaim, .arity = -6, .access = ACCESS_STRIPED, .flags = "write fast",
     .categories = "@write @stream @fast", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "stream",
     .since = "5.0.0", .summary = "Assigns pending entries to another consumer.", .complexity = "O(N) for N ids",
     .syntax = "XCLAIM key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] "
               "[RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]",
     .tips = "nondeterministic_output"},
    {.name = "xautoclaim", .run = cmd_xautoclaim, .arity = -6, .access = ACCESS_STRIPED, .flags = "write fast alone",
     .categories = "@write @stream @fast", .keys = "RW,DELETE@index:1@range:0,1,0", .group = "stream",
     .since = "6.2.0", .summary = "Assigns entries that have been pending for long to another consumer.",
     .complexity = "O(N) for a count of N",
     .syntax = "XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]",
     .tips = "nondeterministic_output",
     .history = "7.0.0=Entries that are gone are told apart and forgotten."},
    {.name = NULL},
};
/* clang-format on */
