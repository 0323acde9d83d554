/* Streams: adding, removing and reading entries. Groups of consumers are in stream_group.c. */
#include "commands/shared/families.h"

#include "base/mem.h"
#include "commands/shared/operations.h"
#include "commands/shared/type_options.h"
#include "commands/stream/references.h"
#include "commands/stream/stream_effects.h"
#include "commands/stream/stream_producers.h"
#include "server/core/server.h"

enum { ORIGIN_BITS = 40 }; /* of an id that an active node chooses */
enum { TRIM_LIMIT_NODES = 100, TRIM_LIMIT_DEFAULT = 10000, TRIM_LIMIT_MOST = 1000000, WORDS_ON_STACK = 32 };

/* ------------------------------------------------------------------------------------------------------ options -- */

/* XADD and XTRIM: the options between the key and the id. */
struct add_options {
    enum { TRIM_NONE, TRIM_MAXLEN, TRIM_MINID } trim_by;
    struct stream_trim trim;
    uint32_t strategy_arg;
    uint32_t sign_arg; /* of "~"; 0: there is none */
    uint32_t threshold_arg;
    enum reference_policy policy;
    uint32_t policy_arg; /* 0: there is none */
    bool has_limit;
    bool no_make;
    enum { ID_GIVEN, ID_OF_NOW, ID_NEXT_OF_MS } id_form;
    struct stream_id id;
    uint32_t id_arg; /* 0: not reached */
    struct producer_args producer;
};

static bool parse_trim(struct request *request, struct add_options *options, uint32_t *index)
{
    bool by_length = request_arg_is(request, *index, "MAXLEN");
    int64_t length = 0;

    if (options->trim_by != TRIM_NONE) {
        reply_error(request, "ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
        return false;
    }
    options->trim_by = by_length ? TRIM_MAXLEN : TRIM_MINID;
    options->trim.by = by_length ? STREAM_TRIM_LENGTH : STREAM_TRIM_ID;
    options->strategy_arg = (*index)++;
    if (*index + 1 < request->arg_count && request_arg_is(request, *index, "~"))
        options->sign_arg = (*index)++;
    else if (*index + 1 < request->arg_count && request_arg_is(request, *index, "="))
        ++*index;
    options->trim.whole_nodes = options->sign_arg != 0;
    options->threshold_arg = *index;
    if (!by_length)
        return stream_arg_id(request, *index, 0, &options->trim.id);
    if (!request_arg_i64(request, *index, &length))
        return false;
    options->trim.length = (uint64_t)length;
    if (length < 0)
        reply_error(request, "ERR The MAXLEN argument must be >= 0.");
    return length >= 0;
}

static bool parse_limit(struct request *request, struct add_options *options, uint32_t index)
{
    int64_t limit;

    if (!request_arg_i64(request, index, &limit))
        return false;
    options->trim.removal_limit = (uint64_t)limit;
    options->has_limit = true;
    if (limit < 0)
        reply_error(request, "ERR The LIMIT argument must be >= 0.");
    return limit >= 0;
}

static bool parse_new_id(struct request *request, struct add_options *options, uint32_t index)
{
    struct slice text = request_arg(request, index);

    options->id_arg = index;
    if (slice_equal(text, SLICE("*"))) {
        options->id_form = ID_OF_NOW;
        return true;
    }
    if (text.size > 2 && memcmp(text.data + text.size - 2, "-*", 2) == 0) {
        options->id_form = ID_NEXT_OF_MS;
        text.size -= 2;
        if (memchr(text.data, '-', text.size) == NULL && stream_id_parse(text, 0, &options->id))
            return true;
    }
    return stream_arg_id(request, index, 0, &options->id);
}

/* LIMIT makes sense with "~" alone, where there always is one. */
static bool settle_limit(struct request *request, struct add_options *options)
{
    uint64_t entries = type_stream_limits().node_entries;

    if (options->has_limit && options->trim_by == TRIM_NONE) {
        reply_error(request, "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
        return false;
    }
    if (access_follows(request->access)) { /* redis-server writes "=" for "~", and leaves its LIMIT as it was */
        options->trim.removal_limit = UINT64_MAX;
        return true;
    }
    if (options->has_limit && options->sign_arg == 0) {
        reply_error(request, "ERR syntax error, LIMIT cannot be used without the special ~ option");
        return false;
    }
    if (options->sign_arg != 0 && !options->has_limit)
        options->trim.removal_limit = entries == 0 ? TRIM_LIMIT_DEFAULT
                                                   : MIN(entries, (uint64_t)TRIM_LIMIT_MOST) * TRIM_LIMIT_NODES;
    options->trim.removal_limit = MIN(options->trim.removal_limit, options->has_limit ? UINT64_MAX : TRIM_LIMIT_MOST);
    return true;
}

/* Ids do not begin like that, but a word that is wrong may. */
static NOINLINE bool parse_producer_or_id(struct request *request, struct add_options *options, uint32_t *index)
{
    bool found;

    return producer_parse(request, &options->producer, index, &found) &&
           (found || parse_new_id(request, options, *index));
}

/* A master's entries have their ids. */
static bool check_producer(struct request *request, const struct add_options *options)
{
    if (LIKELY(options->producer.word_arg == 0) || options->id_arg == 0 || options->id_form == ID_OF_NOW ||
        access_follows(request->access))
        return true;
    reply_error(request, "ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs");
    return false;
}

/* No option does. */
static inline bool begins_id(struct slice word)
{
    return word.size != 0 && (*word.data == '*' || (*word.data >= '0' && *word.data <= '9'));
}

/* From argument 2 on; with an id (XADD) it ends there. False: an error was replied. */
static bool parse_options(struct request *request, struct add_options *options, bool with_id)
{
    uint32_t i = 2;

    *options = (struct add_options){.trim_by = TRIM_NONE};
    for (; i < request->arg_count && options->id_arg == 0; i++) {
        bool has_value = i + 1 < request->arg_count, done = true;

        if (with_id && begins_id(request_arg(request, i))) {
            done = parse_new_id(request, options, i);
        } else if (has_value && (request_arg_is(request, i, "MAXLEN") || request_arg_is(request, i, "MINID"))) {
            done = parse_trim(request, options, &i);
        } else if (has_value && request_arg_is(request, i, "LIMIT")) {
            done = parse_limit(request, options, ++i);
        } else if (with_id && request_arg_is(request, i, "NOMKSTREAM")) {
            options->no_make = true;
        } else if (options->policy_arg == 0 && reference_policy_parse(request_arg(request, i), &options->policy)) {
            options->policy_arg = i;
        } else if (with_id && UNLIKELY(producer_may_begin(request_arg(request, i)))) {
            done = parse_producer_or_id(request, options, &i);
        } else if (with_id) {
            done = parse_new_id(request, options, i);
        } else {
            reply_syntax_error(request);
            return false;
        }
        if (!done)
            return false;
    }
    return check_producer(request, options) && settle_limit(request, options);
}

/* From which id on entries stay when nothing more is to go. */
static struct stream_id least_id(const struct stream *stream)
{
    return stream_length(stream) != 0 ? stream_front_id(stream) : STREAM_ID_MOST;
}

/* IDMP with the iid, whichever it was; none of it if the pair comes apart. Returns how many words that are. */
static NOINLINE uint32_t put_producer(const struct producer_args *producer, bool pair_apart, struct slice *words)
{
    if (pair_apart)
        return 0;
    words[0] = SLICE("IDMP");
    words[1] = producer->producer;
    words[2] = producer->iid;
    return 3;
}

/* Is it a word of trimming? `*index` becomes the last one of these. */
static bool is_trimming(const struct request *request, const struct add_options *options, uint32_t *index)
{
    if (options->strategy_arg != 0 && *index == options->strategy_arg) {
        *index = options->threshold_arg;
        return true;
    }
    if (*index < 2 || (*index >= options->id_arg && options->id_arg != 0) || !request_arg_is(request, *index, "LIMIT"))
        return false;
    ++*index;
    return true;
}

/* The effect has the results of "*" and "~": the id, and the entries that are left. Policies are told by other effects;
 * is_apart: so is trimming. */
static void effect_settled(struct request *request, const struct add_options *options, const struct stream *stream,
                           bool is_apart, bool pair_apart)
{
    char id[STREAM_ID_TEXT_BYTES], threshold[STREAM_ID_TEXT_BYTES];
    struct slice few[WORDS_ON_STACK], *words = few;
    uint32_t count = 0;

    if (request->access->effects == NULL ||
        (options->sign_arg == 0 && options->id_form == ID_GIVEN && options->policy_arg == 0))
        return;
    if (request->arg_count + 1 > WORDS_ON_STACK) /* IDMPAUTO becomes one word more */
        words = mem_alloc((request->arg_count + 1) * sizeof(*words));
    for (uint32_t i = 0; i < request->arg_count; i++) {
        struct slice *word = &words[count++];

        *word = request_arg(request, i);
        if (i == options->id_arg && options->id_form != ID_GIVEN) {
            *word = stream_id_format(stream_last_id(stream), id);
        } else if (i != 0 && i == options->policy_arg) {
            count--;
        } else if (UNLIKELY(is_apart) && is_trimming(request, options, &i)) {
            count--;
        } else if (UNLIKELY(i == options->producer.word_arg) && i != 0) {
            count += put_producer(&options->producer, pair_apart, word) - 1;
            i += options->producer.word_count - 1;
        } else if (options->sign_arg == 0) {
            continue;
        } else if (i == options->sign_arg) {
            *word = SLICE("=");
        } else if (i == options->threshold_arg) {
            *word = options->trim_by == TRIM_MINID
                        ? stream_id_format(least_id(stream), threshold)
                        : slice_make(threshold, number_format_u64(threshold, stream_length(stream)));
        } else if (i >= 2 && (i < options->id_arg || options->id_arg == 0) && request_arg_is(request, i, "LIMIT")) {
            count--; /* it has no meaning with "=" */
            i++;
        }
    }
    effect_set(request, words, count);
    if (words != few)
        mem_free(words);
}

/* Trims are exact for peers: entries below an id go. */
static void operation_trimmed(struct request *request, const struct stream *stream)
{
    struct stream_id least = stream_first_id(stream);
    char text[STREAM_ID_TEXT_BYTES];

    if (request->access->effects == NULL)
        return;
    if (stream_length(stream) == 0) { /* all that there were; not those to come */
        least = stream_last_id(stream);
        (void)!stream_id_increment(&least);
    }
    operation_add(request,
                  (const struct slice[]){SLICE("XTRIM"), request_arg(request, 1), SLICE("MINID"), SLICE("="),
                                         stream_id_format(least, text)},
                  5);
}

static void operation_added(struct request *request, const struct add_options *options, const struct stream *stream,
                            struct stream_id id)
{
    char text[STREAM_ID_TEXT_BYTES];

    if (request->access->effects == NULL) /* nobody is told */
        return;
    operation_add_words(request,
                        (const struct slice[]){SLICE("KEYDB.OP.XADD"), request_arg(request, 1),
                                               stream_id_format(id, text)},
                        3, options->id_arg + 1);
    if (UNLIKELY(options->producer.word_arg != 0))
        operation_producer_pair(request, &options->producer, stream, id);
}

/* --------------------------------------------------------------------------------------------- adding, removing -- */

static bool edit_stream(struct edit *edit, struct request *request)
{
    return edit_begin(edit, request, &request->keys[0], TYPE_STREAM);
}

/* Ids of two nodes of an active group are never equal: the low bits of a number that we choose are our origin's, the
 * others count. Else they are zero, and all bits count. */
static uint64_t own_bits(const struct request *request)
{
    if (LIKELY(!journal_is_stamping(&request->worker->server->journal)))
        return 0;
    return origins_id(&request->access->store->origins, VERSION_OWN_ORIGIN) & ((UINT64_C(1) << ORIGIN_BITS) - 1);
}

/* The least number of ours above this one. False: there is none. */
static bool next_seq(uint64_t own, uint64_t seq, uint64_t *next)
{
    const unsigned shift = own != 0 ? ORIGIN_BITS : 0;
    const bool is_above = own > (seq & ((UINT64_C(1) << shift) - 1));
    uint64_t count = seq >> shift;

    if (!is_above && count++ == UINT64_MAX >> shift)
        return false;
    *next = count << shift | own;
    return true;
}

/* The id of a new entry, above the last one. False: there is none, which was replied. */
static bool choose_id(struct request *request, const struct add_options *options, struct stream_id last,
                      struct stream_id *id)
{
    const uint64_t own = own_bits(request);
    uint64_t now = (uint64_t)MAX(request->access->now_ms, INT64_C(0)), next = 0;
    const bool has_next = next_seq(own, last.seq, &next);

    if (last.ms == UINT64_MAX && (last.seq == UINT64_MAX || (options->id_form == ID_OF_NOW && !has_next))) {
        reply_error(request, "ERR The stream has exhausted the last possible ID, unable to add more items");
        return false;
    }
    *id = options->id_form == ID_OF_NOW ? (struct stream_id){now, own} : options->id;
    if (options->id_form == ID_OF_NOW && now <= last.ms) {
        *id = has_next ? (struct stream_id){last.ms, next} : (struct stream_id){last.ms + 1, own};
        return true;
    }
    if (options->id_form == ID_NEXT_OF_MS && id->ms > last.ms)
        id->seq = own;
    else if (options->id_form == ID_NEXT_OF_MS && id->ms == last.ms && has_next)
        id->seq = next;
    if (stream_id_compare(*id, last) > 0)
        return true;
    reply_error(request, "ERR The ID specified in XADD is equal or smaller than the target stream top item");
    return false;
}

/* False: it was refused, which was replied. */
static bool add_entry(struct request *request, const struct add_options *options, struct stream *stream,
                      struct stream_id *id)
{
    const struct stream_limits limits = type_stream_limits();
    uint32_t first = options->id_arg + 1;

    if (!choose_id(request, options, stream_last_id(stream), id))
        return false;
    if (stream_append(stream, *id, &request->args[first], (request->arg_count - first) / 2, &limits))
        return true;
    reply_error(request, "ERR Elements are too large to be stored");
    return false;
}

/* Of an entry that a producer has added to the stream just now. True: the effects have the pair apart. */
static NOINLINE bool record_pair(struct request *request, const struct add_options *options, struct stream *stream,
                                 struct stream_id id)
{
    /* what a master says stays as it is */
    return producer_record(&options->producer, stream, id) && !access_follows(request->access);
}

static NOINLINE void effect_pair(struct request *request, const struct add_options *options,
                                 const struct stream *stream, struct stream_id id)
{
    effect_producer_limits(request, stream);
    effect_producer_pair(request, &options->producer, id);
}

/* A producer's entry that is here already. True: so it was replied. A follower is told of new entries with their ids.
 * What a master of Redis, or its file, has without an id was a repetition there, whether the pair is over or not. */
static NOINLINE bool reply_repeated(struct request *request, struct add_options *options, struct stream *stream)
{
    struct stream_id id;

    producer_digest(request, &options->producer, options->id_arg + 1);
    if (access_follows(request->access) && options->id_form == ID_OF_NOW) {
        producer_count_repetition(stream);
        reply_null(request);
        return true;
    }
    if (stream == NULL || access_follows(request->access) ||
        !producer_repeats(request, &options->producer, stream, &id))
        return false;
    reply_stream_id(request, id);
    return true;
}

static uint64_t trim_stream(struct request *request, const struct add_options *options, struct stream *stream,
                            struct reference_trim *apart)
{
    if (LIKELY(options->policy == REFERENCES_KEPT))
        return stream_trim(stream, &options->trim);
    return reference_trim(request, stream, &options->trim, options->policy, apart);
}

static void tell_trimmed(struct request *request, const struct stream *stream, struct reference_trim *apart)
{
    if (apart->is_apart)
        reference_trim_end(request, apart);
    else
        operation_trimmed(request, stream);
}

static void cmd_xadd(struct request *request)
{
    struct add_options options;
    struct stream *stream;
    struct stream_id id;
    struct reference_trim apart = {0};
    struct edit edit;
    bool trimmed, pair_apart;

    if (!parse_options(request, &options, true))
        return;
    if (options.id_arg == 0 || request->arg_count - options.id_arg < 3 ||
        (request->arg_count - options.id_arg) % 2 == 0) {
        reply_error(request, "ERR wrong number of arguments for 'xadd' command");
        return;
    }
    if (options.id_form == ID_GIVEN && stream_id_is_zero(options.id)) {
        reply_error(request, "ERR The ID specified in XADD must be greater than 0-0");
        return;
    }
    if (!edit_stream(&edit, request))
        return;
    if (edit.is_new && options.no_make) {
        reply_null(request);
        return;
    }
    if (UNLIKELY(options.producer.word_arg != 0) &&
        reply_repeated(request, &options, edit.is_new ? NULL : stream_of(edit.value)))
        return;
    if (edit.is_new)
        edit.value = stream_value(stream_create());
    stream = stream_of(edit.value);
    if (!add_entry(request, &options, stream, &id)) {
        if (edit.is_new)
            stream_destroy(&stream);
        return;
    }
    pair_apart = UNLIKELY(options.producer.word_arg != 0) && record_pair(request, &options, stream, id);
    trimmed = options.trim_by != TRIM_NONE && trim_stream(request, &options, stream, &apart) != 0;
    edit_end(&edit, EVENT_STREAM, "xadd");
    if (trimmed)
        access_event(request->access, request->db, &request->keys[0], EVENT_STREAM, "xtrim");
    effect_settled(request, &options, stream, apart.is_apart, pair_apart);
    if (UNLIKELY(pair_apart))
        effect_pair(request, &options, stream, id);
    operation_added(request, &options, stream, id);
    if (trimmed)
        tell_trimmed(request, stream, &apart);
    reply_stream_id(request, id);
}

/* Groups that have read beyond it get it next. */
static void make_late(struct request *request, struct stream *stream, struct stream_id id)
{
    struct radix_iter groups;

    radix_iter_init(&groups, stream_groups(stream));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        struct group_use use = {.request = request, .stream = stream, .group_name = radix_iter_key(&groups)};

        if (stream_id_compare(id, ((const struct stream_group *)groups.value)->last_id) > 0)
            continue;
        use.group = stream_group_find(stream, use.group_name); /* it changes */
        group_use_late(&use, id);
    }
    radix_iter_fini(&groups);
}

/* KEYDB.OP.XADD key id field value [field value ...]: an entry that a peer has added. It goes where its id belongs; a
 * used id is refused. */
static void operate_add(struct request *request)
{
    const struct stream_limits limits = type_stream_limits();
    struct stream *stream;
    struct stream_id id, last;
    struct edit edit;

    if (request->arg_count % 2 == 0) {
        reply_syntax_error(request);
        return;
    }
    if (!stream_arg_id(request, 2, 0, &id) || !edit_stream(&edit, request))
        return;
    if (edit.is_new)
        edit.value = stream_value(stream_create());
    stream = stream_of(edit.value);
    last = stream_last_id(stream);
    if (!stream_id_is_zero(id) && stream_insert(stream, id, &request->args[3], (request->arg_count - 3) / 2, &limits)) {
        if (stream_id_compare(id, last) < 0)
            make_late(request, stream, id);
        edit_end(&edit, EVENT_STREAM, "xadd");
        reply_int(request, 1);
        return;
    }
    if (edit.is_new)
        stream_destroy(&stream);
    reply_int(request, 0);
}

static void cmd_xtrim(struct request *request)
{
    struct add_options options;
    struct reference_trim apart = {0};
    struct edit edit;
    uint64_t removed = 0;

    if (!parse_options(request, &options, false))
        return;
    if (options.trim_by == TRIM_NONE) {
        reply_error(request, "ERR syntax error, XTRIM must be called with a trimming strategy");
        return;
    }
    if (!edit_stream(&edit, request))
        return;
    if (!edit.is_new)
        removed = trim_stream(request, &options, stream_of(edit.value), &apart);
    if (removed != 0) {
        edit_end(&edit, EVENT_STREAM, "xtrim");
        if (!apart.is_apart)
            effect_settled(request, &options, stream_of(edit.value), false, false);
        tell_trimmed(request, stream_of(edit.value), &apart);
    }
    reply_int(request, (int64_t)removed);
}

static void cmd_xdel(struct request *request)
{
    struct edit edit;
    struct stream_id id;
    int64_t removed = 0;

    if (!edit_stream(&edit, request))
        return;
    for (uint32_t i = 2; !edit.is_new && i < request->arg_count; i++) /* all must be ids before any goes */
        if (!stream_arg_id(request, i, 0, &id))
            return;
    for (uint32_t i = 2; !edit.is_new && i < request->arg_count; i++)
        removed += stream_id_parse(request_arg(request, i), 0, &id) && stream_delete(stream_of(edit.value), id);
    if (removed != 0)
        edit_end(&edit, EVENT_STREAM, "xdel");
    reply_int(request, removed);
}

/* ------------------------------------------------------------------------------------------------------- XSETID -- */

struct new_ids {
    struct stream_id last_id;
    struct stream_id max_deleted_id; /* 0-0: as it was */
    int64_t entries_added;           /* -1: as it was */
};

static bool parse_new_ids(struct request *request, struct new_ids *ids)
{
    *ids = (struct new_ids){.entries_added = -1};
    if (!stream_arg_id(request, 2, 0, &ids->last_id))
        return false;
    for (uint32_t i = 3; i < request->arg_count; i += 2) {
        bool has_value = i + 1 < request->arg_count;

        if (has_value && request_arg_is(request, i, "ENTRIESADDED")) {
            if (!request_arg_i64(request, i + 1, &ids->entries_added))
                return false;
            if (ids->entries_added < 0) {
                reply_error(request, "ERR entries_added must be positive");
                return false;
            }
        } else if (has_value && request_arg_is(request, i, "MAXDELETEDID")) {
            if (!stream_arg_id(request, i + 1, 0, &ids->max_deleted_id))
                return false;
            if (stream_id_compare(ids->last_id, ids->max_deleted_id) < 0) {
                reply_error(request, "ERR The ID specified in XSETID is smaller than the provided "
                                     "max_deleted_entry_id");
                return false;
            }
        } else {
            reply_syntax_error(request);
            return false;
        }
    }
    return true;
}

static bool refuse_behind_deleted(struct request *request)
{
    reply_error(request, "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id");
    return false;
}

/* Do they suit the stream? False: no, which was replied. Entries that were deleted count too: their ids must not come
 * again behind others, whatever MAXDELETEDID was before. */
static bool check_new_ids(struct request *request, const struct stream *stream, struct new_ids *ids)
{
    if (stream_id_compare(ids->last_id, stream_max_deleted_id(stream)) < 0)
        return refuse_behind_deleted(request);
    if (stream_id_compare(ids->last_id, stream_top_id(stream)) < 0) {
        reply_error(request, "ERR The ID specified in XSETID is smaller than the target stream top item");
        return false;
    }
    if (ids->entries_added == -1)
        ids->entries_added = (int64_t)stream_entries_added(stream);
    if ((uint64_t)ids->entries_added < stream_length(stream)) {
        reply_error(request, "ERR The entries_added specified in XSETID is smaller than the target stream length");
        return false;
    }
    if (stream_id_is_zero(ids->max_deleted_id))
        ids->max_deleted_id = stream_max_deleted_id(stream);
    if (stream_id_compare(ids->last_id, stream_tail_id(stream)) < 0)
        return refuse_behind_deleted(request);
    return true;
}

static void cmd_xsetid(struct request *request)
{
    struct stream *stream;
    struct new_ids ids;
    struct edit edit;

    if (!parse_new_ids(request, &ids) || !edit_stream(&edit, request))
        return;
    if (edit.is_new) {
        reply_error(request, "ERR no such key");
        return;
    }
    stream = stream_of(edit.value);
    if (!check_new_ids(request, stream, &ids))
        return;
    stream_set_ids(stream, ids.last_id, ids.max_deleted_id, (uint64_t)ids.entries_added);
    edit_end(&edit, EVENT_STREAM, "xsetid");
    reply_ok(request);
}

/* ----------------------------------------------------------------------------------------------------- reading -- */

static void cmd_xlen(struct request *request)
{
    const struct stream *stream;

    if (stream_read_arg(request, &request->keys[0], &stream))
        reply_int(request, stream != NULL ? (int64_t)stream_length(stream) : 0);
}

/* From `start_arg` to `end_arg`, or back. */
static void range(struct request *request, uint32_t start_arg, uint32_t end_arg, bool backwards)
{
    const struct stream *stream;
    struct stream_id start, end;
    struct stream_iter iter;
    int64_t count = INT64_MAX;

    if (!stream_arg_start(request, start_arg, &start) || !stream_arg_end(request, end_arg, &end))
        return;
    for (uint32_t i = 4; i < request->arg_count; i += 2) {
        if (i + 1 == request->arg_count || !request_arg_is(request, i, "COUNT")) {
            reply_syntax_error(request);
            return;
        }
        if (!request_arg_i64(request, i + 1, &count))
            return;
    }
    if (!stream_read_arg(request, &request->keys[0], &stream))
        return;
    if (stream == NULL) {
        reply_array(request, 0);
    } else if (count <= 0) {
        reply_null_array(request);
    } else {
        (backwards ? stream_iter_init_backwards : stream_iter_init)(&iter, stream, start, end);
        reply_stream_entries(request, &iter, (uint64_t)count);
    }
}

static void cmd_xrange(struct request *request)
{
    range(request, 2, 3, false);
}

static void cmd_xrevrange(struct request *request)
{
    range(request, 3, 2, true);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row stream_commands[] = {
    {.name = "keydb.op.xadd", .run = operate_add, .arity = -5, .access = ACCESS_STRIPED, .flags = "write operation",
     .categories = "@write @stream @slow", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "stream",
     .since = "7.0.0", .summary = "Inserts an entry that another server has added.",
     .complexity = "O(1) at the end, O(N) for N entries of a node elsewhere",
     .syntax = "KEYDB.OP.XADD key id field value [field value ...]"},
    {.name = "xadd", .run = cmd_xadd, .arity = -5, .access = ACCESS_STRIPED, .flags = "write denyoom fast",
     .categories = "@write @stream @fast", .keys = "RW,UPDATE@index:1@range:0,1,0",
     .key_notes = "entries that are trimmed go", .group = "stream",
     .since = "5.0.0", .summary = "Appends an entry to a stream, and trims the stream with MAXLEN or MINID.",
     .complexity = "O(1); with trimming O(N) for N entries that go",
     .history = "6.2.0=The options `NOMKSTREAM`, `MINID` and `LIMIT`.|7.0.0=Ids with a time and `*`.|"
                "8.2.0=The options `KEEPREF`, `DELREF` and `ACKED`.|"
                "8.6.0=The options `IDMP` and `IDMPAUTO`.",
     .syntax = "XADD key [NOMKSTREAM] [KEEPREF|DELREF|ACKED] [IDMPAUTO producer|IDMP producer iid] "
               "[(MAXLEN|MINID) [=|~] threshold [LIMIT count]] (*|id) field value [field value ...]",
     .arg_since = "NOMKSTREAM:6.2.0 KEEPREF:8.2.0 MINID:6.2.0 LIMIT:6.2.0 IDMPAUTO:8.6.0 IDMP:8.6.0",
     .tips = "nondeterministic_output"},
    {.name = "xtrim", .run = cmd_xtrim, .arity = -4, .access = ACCESS_STRIPED, .flags = "write",
     .categories = "@write @stream @slow", .keys = "RW,DELETE@index:1@range:0,1,0", .group = "stream",
     .since = "5.0.0", .summary = "Removes the oldest entries of a stream.",
     .complexity = "O(N) for N entries that go, little where whole nodes go",
     .syntax = "XTRIM key ((MAXLEN|MINID) [=|~] threshold [LIMIT count]) [KEEPREF|DELREF|ACKED]",
     .arg_since = "MINID:6.2.0 LIMIT:6.2.0 KEEPREF:8.2.0",
     .tips = "nondeterministic_output",
     .history = "6.2.0=The options `MINID` and `LIMIT`.|8.2.0=The options `KEEPREF`, `DELREF` and `ACKED`."},
    {.name = "xdel", .run = cmd_xdel, .arity = -3, .access = ACCESS_STRIPED, .flags = "write fast",
     .categories = "@write @stream @fast", .keys = "RW,DELETE@index:1@range:0,1,0", .group = "stream",
     .since = "5.0.0", .summary = "Deletes entries of a stream.", .complexity = "O(N) for N ids",
     .syntax = "XDEL key id [id ...]"},
    {.name = "xsetid", .run = cmd_xsetid, .arity = -3, .access = ACCESS_STRIPED, .flags = "write denyoom fast",
     .categories = "@write @stream @fast", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "stream",
     .since = "5.0.0",
     .summary = "Sets the last id of a stream, its count of added entries, and its highest deleted id.",
     .complexity = "O(1)", .syntax = "XSETID key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]",
     .arg_since = "ENTRIESADDED:7.0.0 MAXDELETEDID:7.0.0",
     .history = "7.0.0=The options `ENTRIESADDED` and `MAXDELETEDID`."},
    {.name = "xlen", .run = cmd_xlen, .arity = 2, .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @stream @fast", .keys = "RO@index:1@range:0,1,0", .group = "stream", .since = "5.0.0",
     .summary = "Returns how many entries a stream has.", .complexity = "O(1)", .syntax = "XLEN key"},
    {.name = "xrange", .run = cmd_xrange, .arity = -4, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @stream @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "stream", .since = "5.0.0",
     .summary = "Returns the entries in a range of ids.", .complexity = "O(N) for N entries returned",
     .syntax = "XRANGE key start end [COUNT count]",
     .history = "6.2.0=Ends that do not belong to the interval."},
    {.name = "xrevrange", .run = cmd_xrevrange, .arity = -4, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @stream @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "stream", .since = "5.0.0",
     .summary = "Returns the entries in a range of ids in reverse order.",
     .complexity = "O(N) for N entries returned", .syntax = "XREVRANGE key end start [COUNT count]",
     .history = "6.2.0=Ends that do not belong to the interval."},
    {.name = NULL},
};
/* clang-format on */
