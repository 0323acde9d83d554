/* XREAD and XREADGROUP: new entries of several streams, also for blocked clients. */
#include "commands/shared/families.h"

#include "base/mem.h"
#include "commands/shared/operations.h"
#include "commands/stream/stream_claim.h"
#include "server/core/server.h"
#include "server/run/blocked.h"
#include "server/run/wake_later.h"

enum { STREAMS_ON_STACK = 8 };

/* ------------------------------------------------------------------------------------------------------ options -- */

struct reading {
    bool in_group;
    struct slice group, consumer;
    bool noack;
    uint64_t max_count, max_bytes; /* of all streams together */
    bool claims;                   /* also what has been pending for: */
    int64_t claim_idle_ms;         /* at least so long */
    uint64_t count;                /* at most so many entries of each stream */
    struct reply_cap *cap;         /* what is left of all; NULL: there is no cap */
    bool waits;
    int64_t timeout_ms;
    uint32_t first_key;    /* the argument; ids follow the keys */
    uint32_t stream_count; /* 0: STREAMS was not reached */
};

/* The number behind COUNT or BLOCK. NULL: fine; else the error. */
static const char *parse_number(struct slice option, struct slice text, int64_t now_ms, struct reading *reading)
{
    int64_t number;

    if (slice_equal_text_nocase(option, "COUNT")) {
        if (!number_parse_i64(text, &number))
            return "ERR value is not an integer or out of range";
        reading->count = number <= 0 ? UINT64_MAX : (uint64_t)number;
        return NULL;
    }
    if (!number_parse_i64(text, &number))
        return "ERR timeout is not an integer or out of range";
    if (number < 0)
        return "ERR timeout is negative";
    if (number > INT64_MAX - now_ms)
        return "ERR timeout is out of range";
    reading->waits = true;
    reading->timeout_ms = number;
    return NULL;
}

static const char *parse_streams(uint32_t index, uint32_t arg_count, bool in_group, struct reading *reading)
{
    reading->first_key = index + 1;
    reading->stream_count = (arg_count - index - 1) / 2;
    if ((arg_count - index - 1) % 2 == 0)
        return NULL;
    return in_group ? "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified."
                    : "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be "
                      "specified.";
}

static const char *parse_claim(struct slice text, bool in_group, struct reading *reading)
{
    if (!in_group)
        return "ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.";
    reading->claims = true;
    return stream_claim_parse(text, &reading->claim_idle_ms);
}

static bool is_cap(struct slice option)
{
    return option.size >= 7 &&
           (slice_equal_text_nocase(option, "MAXCOUNT") || slice_equal_text_nocase(option, "MAXSIZE"));
}

static const char *parse_cap(struct slice option, struct slice text, struct reading *reading)
{
    return reply_cap_parse(option, text, option.size == 8 ? &reading->max_count : &reading->max_bytes);
}

/* What has to be true of several options together; see parse_reading. */
static const char *check_options(const struct reading *reading, bool in_group)
{
    if (reading->stream_count == 0)
        return "ERR syntax error";
    if (in_group && !reading->in_group)
        return "ERR Missing GROUP option for XREADGROUP";
    if (reading->count != UINT64_MAX && reading->max_count < reading->count)
        return "ERR MAXCOUNT must not be less than COUNT";
    return NULL;
}

/* NULL: fine; else the error. */
static const char *parse_reading(const struct request *request, bool in_group, int64_t now_ms, struct reading *reading)
{
    const struct slice *args = request->args;
    const uint32_t arg_count = request->arg_count;
    const char *error = NULL;
    uint32_t i = 1;

    *reading = (struct reading){.count = UINT64_MAX, .max_count = UINT64_MAX, .max_bytes = UINT64_MAX};
    for (; i < arg_count && reading->stream_count == 0 && error == NULL; i++) {
        uint32_t more = arg_count - i - 1;

        if (more != 0 && (slice_equal_text_nocase(args[i], "COUNT") || slice_equal_text_nocase(args[i], "BLOCK"))) {
            error = parse_number(args[i], args[i + 1], now_ms, reading);
            i++;
        } else if (more != 0 && slice_equal_text_nocase(args[i], "STREAMS")) {
            error = parse_streams(i, arg_count, in_group, reading);
        } else if (more >= 2 && slice_equal_text_nocase(args[i], "GROUP")) {
            if (!in_group)
                error = "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.";
            reading->in_group = true;
            reading->group = args[++i];
            reading->consumer = args[++i];
        } else if (slice_equal_text_nocase(args[i], "NOACK")) {
            if (!in_group)
                error = "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.";
            reading->noack = true;
        } else if (more != 0 && slice_equal_text_nocase(args[i], "CLAIM")) {
            error = parse_claim(args[++i], in_group, reading);
        } else if (more != 0 && is_cap(args[i])) {
            error = parse_cap(args[i], args[i + 1], reading);
            i++;
        } else {
            error = "ERR syntax error";
        }
    }
    return error != NULL ? error : check_options(reading, in_group);
}

/* The word STREAMS, at `first` or later; names of groups may be "STREAMS", too. arg_count: there is none. */
static uint32_t find_streams(const struct slice *args, uint32_t arg_count, uint32_t first)
{
    uint32_t i = 1;

    while (i < arg_count && (i < first || !slice_equal_text_nocase(args[i], "STREAMS"))) {
        if (slice_equal_text_nocase(args[i], "COUNT") || slice_equal_text_nocase(args[i], "BLOCK") ||
            slice_equal_text_nocase(args[i], "CLAIM"))
            i += i + 1 < arg_count && slice_equal_text_nocase(args[i + 1], "STREAMS") ? 1 : 2;
        else if (slice_equal_text_nocase(args[i], "GROUP"))
            i += 3;
        else
            i++;
    }
    if (i < arg_count)
        return i;
    for (i = first; i < arg_count && !slice_equal_text_nocase(args[i], "STREAMS"); i++)
        ; /* words are wrong, so nothing will be read: what looks like keys counts as keys */
    return i;
}

static bool find_keys_behind(const struct slice *args, uint32_t arg_count, uint32_t first,
                             struct key_positions *positions)
{
    uint32_t i = find_streams(args, arg_count, first), keys;

    if (i + 2 >= arg_count)
        return false;
    keys = (arg_count - i - 1) / 2;
    for (uint32_t k = 0; k < keys; k++)
        key_positions_add(positions, i + 1 + k, KEY_RO | KEY_ACCESS);
    return true;
}

static bool find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    return find_keys_behind(args, arg_count, 1, positions);
}

/* GROUP and two words have to come before. */
static bool find_group_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    return find_keys_behind(args, arg_count, 4, positions);
}

/* ----------------------------------------------------------------------------------------------- what to read -- */

static struct slice id_text(const struct request *request, const struct reading *reading, uint32_t index)
{
    return request_arg(request, reading->first_key + reading->stream_count + index);
}

/* A group's reader wants what nobody of the group has had. */
static bool wants_new(const struct request *request, const struct reading *reading, uint32_t index)
{
    return reading->in_group && slice_equal(id_text(request, reading, index), SLICE(">"));
}

static bool refuse_id(struct request *request, const struct reading *reading, struct slice text)
{
    if (slice_equal(text, SLICE("+")))
        reply_error(request, "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history "
                             "of this consumer by specifying a proper ID, or use the > ID to get new messages. The + "
                             "ID would just return an empty result set.");
    else if (!reading->in_group)
        reply_error(request, "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> "
                             "<consumer> option.");
    else
        reply_error(request, "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history "
                             "of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ "
                             "ID would just return an empty result set.");
    return false;
}

/* The id before the last live entry; for an empty stream all later entries are new. */
static struct stream_id before_top(const struct stream *stream)
{
    struct stream_id id = stream_top_id(stream);

    (void)!stream_id_decrement(&id);
    return id;
}

/* After which id to read from the stream (NULL: there is none). False: an error was replied. */
static bool start_of(struct request *request, const struct reading *reading, uint32_t index,
                     const struct stream *stream, struct stream_id *after)
{
    struct slice text = id_text(request, reading, index);
    bool is_dollar = slice_equal(text, SLICE("$")), is_plus = slice_equal(text, SLICE("+"));

    if (slice_equal(text, SLICE(">")) || is_dollar || is_plus) {
        if ((is_dollar || is_plus) == reading->in_group)
            return refuse_id(request, reading, text);
        *after = STREAM_ID_LEAST;
        if (is_dollar && stream != NULL)
            *after = stream_last_id(stream);
        else if (is_plus && stream != NULL)
            *after = before_top(stream);
        return true;
    }
    return stream_arg_id(request, reading->first_key + reading->stream_count + index, 0, after);
}

/* Of all streams; false: an error was replied. */
static bool find_starts(struct request *request, const struct reading *reading, struct stream_id *starts)
{
    for (uint32_t i = 0; i < reading->stream_count; i++) {
        const struct stream *stream;

        if (!stream_read_arg(request, &request->keys[i], &stream))
            return false;
        if (reading->in_group && (stream == NULL || stream_group_find(stream, reading->group) == NULL)) {
            reply_error_about(request, "NOGROUP No such key '@' or consumer group '@' in XREADGROUP with GROUP option",
                              (const struct slice[]){request->keys[i].name, reading->group});
            return false;
        }
        if (!start_of(request, reading, i, stream, &starts[i]))
            return false;
    }
    return true;
}

static bool has_entries_after(const struct stream *stream, struct stream_id id)
{
    return stream_id_compare(stream_last_id(stream), id) > 0 && stream_id_compare(stream_top_id(stream), id) > 0;
}

/* A server that is not active has no late entries. */
static bool serves_late(const struct request *request)
{
    return journal_is_stamping(&request->worker->server->journal);
}

static bool has_late(const struct stream *stream, const struct stream_group *group)
{
    const struct stream_consumer *late = stream_consumer_find(group, STREAM_LATE_CONSUMER);
    struct radix_iter pending;
    bool found = false;

    if (late == NULL || stream_length(stream) == 0)
        return false;
    radix_iter_init(&pending, late->pending);
    for (bool more = stream_pending_seek(&pending, stream_first_id(stream)); more && !found;
         more = radix_next(&pending)) /* what was trimmed is passed over at once */
        found = stream_has(stream, stream_pending_id(&pending));
    radix_iter_fini(&pending);
    return found;
}

static bool has_claim(const struct request *request, const struct reading *reading, const struct stream *stream,
                      struct stream_group *group)
{
    int64_t due_ms;

    return stream_claim_is_due(stream, group, request->access->now_ms, reading->claim_idle_ms, &due_ms);
}

/* True if there is something to reply. A consumer's history is always replied, even if it is empty. */
static bool has_news(const struct request *request, const struct reading *reading, uint32_t index,
                     const struct stream *stream, struct stream_id after)
{
    struct stream_group *group;

    if (!reading->in_group)
        return stream != NULL && has_entries_after(stream, after);
    group = stream_group_find(stream, reading->group);
    return !wants_new(request, reading, index) || has_entries_after(stream, group->last_id) ||
           (UNLIKELY(serves_late(request)) && has_late(stream, group)) ||
           (reading->claims && has_claim(request, reading, stream, group));
}

/* ----------------------------------------------------------------------------------------------------- replies -- */

static void iter_init_after(struct stream_iter *iter, const struct stream *stream, struct stream_id after)
{
    bool more = stream_id_increment(&after);

    assert(more); /* there is something behind it */
    stream_iter_init(iter, stream, after, STREAM_ID_MOST);
}

/* Peers do the same with the entries that were handed out here, so the group's position is theirs, too. */
static void operation_delivered(const struct group_use *use, const struct reading *reading, struct operation_list *ids)
{
    char time[NUMBER_I64_SPACE];

    if (!operation_list_is_wanted(ids))
        return;
    if (use->made_consumer)
        operation_consumer(use);
    operation_list_end(ids,
                       (const struct slice[]){SLICE("KEYDB.OP.DELIVER"), use->key->name, use->group_name,
                                              use->consumer_name,
                                              slice_make(time, number_format_i64(time, use->request->access->now_ms)),
                                              reading->noack ? SLICE("NOACK") : SLICE("ACK")},
                       6);
}

static void note_delivered(struct operation_list *ids, struct stream_id id)
{
    char text[STREAM_ID_TEXT_BYTES];

    if (operation_list_is_wanted(ids))
        operation_list_add(ids, stream_id_format(id, text));
}

/* An entry that nobody of the group has had. */
static void reply_new(struct request *request, const struct reading *reading, struct stream_iter *iter,
                      struct stream_id id, uint64_t field_count)
{
    if (reading->claims)
        reply_claimed_entry(request, iter, id, field_count, 0, 0);
    else
        reply_stream_entry(request, iter, id, field_count);
}

static bool find_late(const struct group_use *use, struct stream_id *id)
{
    const struct stream_consumer *late = stream_consumer_find(use->group, STREAM_LATE_CONSUMER);
    struct radix_iter pending;
    bool found;

    if (late == NULL || late == use->consumer)
        return false;
    radix_iter_init(&pending, late->pending);
    found = radix_seek(&pending, RADIX_FIRST, SLICE_EMPTY);
    if (found)
        *id = stream_pending_id(&pending);
    radix_iter_fini(&pending);
    return found;
}

/* It is not late any more, and nobody's. */
static void forget_late(const struct group_use *use, struct stream_id id)
{
    (void)stream_pending_remove(use->group, id);
    effect_acknowledged(use, id);
}

static void make_pending(const struct group_use *use, struct stream_id id)
{
    effect_claim(use, id, stream_pending_assign(use->group, id, use->consumer, use->request->access->now_ms, 1));
}

/* Before the new ones. */
static uint64_t deliver_late(struct group_use *use, const struct reading *reading, uint64_t most,
                             struct operation_list *ids)
{
    uint64_t count = 0, field_count;
    struct stream_id id;

    stream_iter_init_find(&use->entries, use->stream);
    while (count < most && find_late(use, &id)) {
        if (!stream_iter_find(&use->entries, id, &field_count)) { /* it has been deleted */
            forget_late(use, id);
            operation_acknowledged(use, id);
            continue;
        }
        if (!reply_cap_takes(reading->cap, &use->entries, field_count))
            break;
        reply_new(use->request, reading, &use->entries, id, field_count);
        stream_group_count(use->stream, use->group);
        note_delivered(ids, id);
        if (reading->noack)
            forget_late(use, id);
        else
            make_pending(use, id);
        count++;
    }
    stream_iter_fini(&use->entries);
    return count;
}

/* Hands entries to the consumer that nobody of the group has had; before them what it claims. Others are told of each
 * by XCLAIM. redis-server does not count those for the group, so its position follows. */
static uint64_t deliver_new(struct group_use *use, const struct reading *reading)
{
    struct request *request = use->request;
    struct stream_consumer *consumer = group_use_consumer(use);
    uint64_t claimed = 0, count, field_count;
    struct operation_list ids;
    struct stream_iter iter;
    struct stream_id id;

    operation_list_begin(&ids, request);
    if (reading->noack && use->made_consumer)
        effect_consumer(use);
    if (reading->claims)
        claimed = stream_claim_deliver(use, reading->claim_idle_ms, reading->count);
    count = claimed;
    if (UNLIKELY(serves_late(request)))
        count += deliver_late(use, reading, reading->count - count, &ids);
    if (!has_entries_after(use->stream, use->group->last_id)) /* all of them were late, or claimed */
        goto out;
    iter_init_after(&iter, use->stream, use->group->last_id);
    for (; count < reading->count && stream_iter_next(&iter, &id, &field_count); count++) {
        if (!reply_cap_takes(reading->cap, &iter, field_count))
            break;
        reply_new(request, reading, &iter, id, field_count);
        stream_group_advance(use->stream, use->group, id);
        note_delivered(&ids, id);
        if (!reading->noack)
            make_pending(use, id);
    }
    stream_iter_fini(&iter);
out:
    if (reading->noack ? claimed != 0 : count != 0) /* what need not be acknowledged makes nobody active */
        consumer->active_ms = request->access->now_ms;
    else if (use->made_consumer && !reading->noack) /* the cap let nothing through */
        effect_consumer(use);
    if (count != claimed)
        effect_group_position(use);
    operation_delivered(use, reading, &ids);
    return count;
}

/* Delivers the consumer's pending entries once more; for deleted entries only the id. */
static uint64_t deliver_again(struct group_use *use, const struct reading *reading, struct stream_id after)
{
    struct request *request = use->request;
    struct stream_consumer *consumer = group_use_consumer(use);
    uint64_t count = 0, field_count;
    struct radix_iter pending;
    bool more;

    if (use->made_consumer) {
        effect_consumer(use);
        operation_consumer(use);
    }
    stream_iter_init_find(&use->entries, use->stream);
    radix_iter_init(&pending, consumer->pending);
    more = stream_id_increment(&after) && stream_pending_seek(&pending, after);
    for (; more && count < reading->count; count++) {
        const struct stream_pending *record = pending.value;
        struct stream_id id = stream_pending_id(&pending);

        bool found = stream_iter_find(&use->entries, id, &field_count);

        if (!reply_cap_takes(reading->cap, found ? &use->entries : NULL, field_count))
            break;
        if (found) {
            reply_stream_entry(request, &use->entries, id, field_count);
            record = stream_pending_assign(use->group, id, consumer, request->access->now_ms,
                                           stream_deliveries_after(record->delivery_count));
            operation_claim(use, id, record); /* replicas are not told */
        } else {
            reply_array(request, 2);
            reply_stream_id(request, id);
            reply_null_array(request);
        }
        more = radix_next(&pending);
    }
    radix_iter_fini(&pending);
    stream_iter_fini(&use->entries);
    return count;
}

static struct group_use use_of(struct request *request, const struct reading *reading, uint32_t index)
{
    return (struct group_use){.request = request,
                              .key = &request->keys[index],
                              .group_name = reading->group,
                              .consumer_name = reading->consumer,
                              .cap = reading->cap};
}

/* There is nothing for the consumer, but it has asked, and so it exists. That it has asked is no change of the key. */
static void meet_consumer(struct request *request, const struct reading *reading, uint32_t index)
{
    struct group_use use = use_of(request, reading, index);
    struct edit edit;

    if (!edit_begin(&edit, request, use.key, TYPE_STREAM))
        return; /* not to be: it was looked at before */
    use.stream = stream_of(edit.value);
    use.group = stream_group_find(use.stream, use.group_name);
    (void)group_use_consumer(&use);
    if (use.made_consumer) {
        effect_consumer(&use);
        operation_consumer(&use);
        edit_end(&edit, EVENT_STREAM, NULL);
    }
    group_use_end(&use);
}

/* Returns how many entries it has replied. */
static uint64_t serve_group(struct request *request, const struct reading *reading, uint32_t index,
                            struct stream_id after)
{
    struct group_use use = use_of(request, reading, index);
    struct resp_deferred head = resp_begin_deferred(request->out);
    struct edit edit;
    uint64_t count;

    if (!edit_begin(&edit, request, use.key, TYPE_STREAM))
        return 0; /* not to be: it was looked at before */
    use.stream = stream_of(edit.value);
    use.group = stream_group_find(use.stream, use.group_name);
    count = wants_new(request, reading, index) ? deliver_new(&use, reading) : deliver_again(&use, reading, after);
    edit_end(&edit, EVENT_STREAM, NULL);
    group_use_end(&use);
    resp_end_deferred(request->out, request->proto, head, RESP_ARRAY, count);
    return count;
}

/* As reply_stream_entries, with a cap. */
static uint64_t reply_capped(struct request *request, const struct reading *reading, struct stream_iter *iter)
{
    struct resp_deferred head = resp_begin_deferred(request->out);
    uint64_t count = 0, field_count;
    struct stream_id id;

    for (; count < reading->count && stream_iter_next(iter, &id, &field_count); count++) {
        if (!reply_cap_takes(reading->cap, iter, field_count))
            break;
        reply_stream_entry(request, iter, id, field_count);
    }
    stream_iter_fini(iter);
    resp_end_deferred(request->out, request->proto, head, RESP_ARRAY, count);
    return count;
}

/* The key and its entries; there is something. Returns how many entries it has replied; 0 also if they were not
 * counted. */
static uint64_t serve(struct request *request, const struct reading *reading, uint32_t index,
                      const struct stream *stream, struct stream_id after)
{
    struct stream_iter iter;

    if (request->proto == 2)
        reply_array(request, 2);
    reply_bulk(request, request->keys[index].name);
    if (reading->in_group)
        return serve_group(request, reading, index, after);
    iter_init_after(&iter, stream, after);
    if (UNLIKELY(reading->cap != NULL))
        return reply_capped(request, reading, &iter);
    reply_stream_entries(request, &iter, reading->count);
    return 0;
}

/* Serves a stream unless its first entry does not fit. False: nothing was replied. An empty history, which tells that
 * nothing is pending, is replied. */
static bool serve_capped(struct request *request, const struct reading *reading, uint32_t index,
                         const struct stream *stream, struct stream_id after)
{
    struct output apart, *out = request->out;
    bool fits;

    output_init(&apart, out->pool);
    request->out = &apart;
    fits = serve(request, reading, index, stream, after) != 0 || !reading->cap->is_ended;
    request->out = out;
    if (fits)
        output_splice(out, &apart);
    output_clear(&apart);
    return fits;
}

static const struct stream *probe(struct request *request, const struct key *key)
{
    const struct entry *entry = access_probe(request->access, request->db, key);

    return entry != NULL ? stream_of(entry_value(entry)) : NULL;
}

/* False: there is nothing, and nothing was replied. */
static bool serve_all(struct request *request, const struct reading *reading, const struct stream_id *starts)
{
    struct resp_deferred head;
    uint64_t count = 0;

    for (uint32_t i = 0; i < reading->stream_count && !reply_cap_is_ended(reading->cap); i++) {
        const struct stream *stream = probe(request, &request->keys[i]);

        if (!has_news(request, reading, i, stream, starts[i])) {
            if (reading->in_group)
                meet_consumer(request, reading, i);
            continue;
        }
        if (count == 0)
            head = resp_begin_deferred(request->out);
        if (count != 0 && UNLIKELY(reading->cap != NULL)) {
            count += serve_capped(request, reading, i, stream, starts[i]);
            continue;
        }
        (void)serve(request, reading, i, stream, starts[i]);
        count++;
    }
    if (count != 0)
        resp_end_deferred(request->out, request->proto, head, request->proto == 2 ? RESP_ARRAY : RESP_MAP, count);
    return count != 0;
}

/* ----------------------------------------------------------------------------------------------------- waiting -- */

/* Nothing is there for it yet. Something will be when it has been pending for long enough. */
static void look_again(const struct request *request, const struct reading *reading, const struct key *key,
                       const struct stream *stream)
{
    struct stream_group *group = stream_group_find(stream, reading->group);
    const int64_t now_ms = request->access->now_ms;
    int64_t due_ms;

    if (!stream_claim_is_due(stream, group, now_ms, reading->claim_idle_ms, &due_ms) && due_ms != INT64_MAX)
        wake_later(request->worker, request->db, key, due_ms - MAX(now_ms, INT64_C(0)));
}

/* A group that has gone is an answer, too. */
static bool can_serve(const struct request *request, const struct entry *entry)
{
    const struct stream *stream = stream_of(entry_value(entry));
    uint32_t index = (uint32_t)(request->ready - request->keys);
    bool in_group = (request->command->flags & COMMAND_WRITE) != 0;
    struct stream_id after = STREAM_ID_LEAST;
    struct reading reading;

    if (parse_reading(request, in_group, 0, &reading) != NULL)
        return false;
    if (in_group &&
        (stream_group_find(stream, reading.group) == NULL || has_news(request, &reading, index, stream, after)))
        return true;
    if (reading.claims)
        look_again(request, &reading, request->ready, stream);
    if (in_group)
        return false;
    return stream_id_parse(id_text(request, &reading, index), 0, &after) && has_entries_after(stream, after);
}

/* Runs for a client that was blocked, with the one stream that is ready. */
static void serve_ready(struct request *request, const struct reading *reading)
{
    uint32_t index = (uint32_t)(request->ready - request->keys);
    const struct entry *entry = access_read(request->access, request->db, request->ready);
    struct stream_id after;

    if (entry == NULL || entry->type != TYPE_STREAM) {
        reply_error(request, "UNBLOCKED the stream key no longer exists");
    } else if (reading->in_group && stream_group_find(stream_of(entry_value(entry)), reading->group) == NULL) {
        reply_error(request, "NOGROUP the consumer group this client was blocked on no longer exists");
    } else if (start_of(request, reading, index, NULL, &after)) {
        if (request->proto == 2)
            reply_array(request, 1);
        else
            reply_map(request, 1);
        serve(request, reading, index, stream_of(entry_value(entry)), after);
    }
}

/* "$" and "+" keep the meaning they had when the command arrived. */
static void wait_for_streams(struct request *request, const struct reading *reading, const struct stream_id *starts)
{
    struct slice *words = mem_alloc(request->arg_count * sizeof(*words));
    char(*texts)[STREAM_ID_TEXT_BYTES] = mem_alloc(reading->stream_count * sizeof(*texts));

    memcpy(words, request->args, request->arg_count * sizeof(*words));
    for (uint32_t i = 0; reading->claims && !request->in_exec && i < reading->stream_count; i++)
        look_again(request, reading, &request->keys[i], probe(request, &request->keys[i]));
    for (uint32_t i = 0; i < reading->stream_count; i++) {
        if (slice_equal(id_text(request, reading, i), SLICE("$")) ||
            slice_equal(id_text(request, reading, i), SLICE("+")))
            words[reading->first_key + reading->stream_count + i] = stream_id_format(starts[i], texts[i]);
    }
    block_client(request, &(const struct block_wish){.type = TYPE_STREAM,
                                                     .keys = request->keys,
                                                     .key_count = request->key_count,
                                                     .timeout_ms = reading->timeout_ms,
                                                     .wants_losses = reading->in_group,
                                                     .can_serve = can_serve,
                                                     .args = words});
    mem_free(texts);
    mem_free(words);
}

/* ---------------------------------------------------------------------------------------------------- commands -- */

static void read_streams(struct request *request, bool in_group)
{
    struct stream_id few[STREAMS_ON_STACK], *starts = few;
    struct reply_cap cap;
    struct reading reading;
    const char *error = parse_reading(request, in_group, request->access->now_ms, &reading);

    if (error != NULL) {
        reply_error(request, error);
        return;
    }
    assert(request->key_count == reading.stream_count); /* find_keys reads the words as we do */
    if (UNLIKELY(reading.max_count != UINT64_MAX || reading.max_bytes != UINT64_MAX)) {
        reply_cap_init(&cap, reading.max_count, reading.max_bytes);
        reading.cap = &cap;
    }
    effect_none(request); /* each entry has an effect of its own */
    if (request->ready != NULL) {
        serve_ready(request, &reading);
        return;
    }
    if (reading.stream_count > STREAMS_ON_STACK)
        starts = mem_alloc(reading.stream_count * sizeof(*starts));
    if (find_starts(request, &reading, starts) && !serve_all(request, &reading, starts)) {
        if (reading.waits)
            wait_for_streams(request, &reading, starts);
        else
            reply_null_array(request);
    }
    if (starts != few)
        mem_free(starts);
}

static void cmd_xread(struct request *request)
{
    read_streams(request, false);
}

static void cmd_xreadgroup(struct request *request)
{
    read_streams(request, true);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row stream_read_commands[] = {
    {.name = "xread", .run = cmd_xread, .arity = -4, .access = ACCESS_STRIPED,
     .flags = "readonly blocking movablekeys alone", .categories = "@read @stream @slow @blocking",
     .keys = "RO,ACCESS@keyword:STREAMS,1@range:-1,1,2", .group = "stream", .since = "5.0.0",
     .summary = "Returns the entries of streams after given ids. May block until there are some.",
     .complexity = "O(N) for N entries returned",
     .syntax = "XREAD [COUNT count] [MAXCOUNT maxcount] [MAXSIZE maxsize] [BLOCK milliseconds] STREAMS key [key ...] "
               "id [id ...]",
     .arg_since = "MAXCOUNT:8.10.0 MAXSIZE:8.10.0", .history = "8.10.0=The options `MAXCOUNT` and `MAXSIZE`.",
     .find_keys = find_keys},
    {.name = "xreadgroup", .run = cmd_xreadgroup, .arity = -7, .access = ACCESS_STRIPED,
     .flags = "write blocking movablekeys alone", .categories = "@write @stream @slow @blocking",
     .keys = "RO,ACCESS@keyword:STREAMS,4@range:-1,1,2", .group = "stream", .since = "5.0.0",
     .summary = "Returns new entries of streams for a consumer of a group, or its pending entries. May block "
                "until there are some.",
     .complexity = "O(N) for N entries returned",
     .syntax = "XREADGROUP GROUP group consumer [COUNT count] [MAXCOUNT maxcount] [MAXSIZE maxsize] "
               "[BLOCK milliseconds] [NOACK] [CLAIM min-idle-time] STREAMS key [key ...] id [id ...]",
     .arg_since = "MAXCOUNT:8.10.0 MAXSIZE:8.10.0 CLAIM:8.4.0",
     .history = "8.4.0=The option `CLAIM`.|8.10.0=The options `MAXCOUNT` and `MAXSIZE`.",
     .find_keys = find_group_keys},
    {.name = NULL},
};
/* clang-format on */
