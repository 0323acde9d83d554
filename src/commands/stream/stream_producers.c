/* XCFGSET, XIDMPRECORD, and what XADD does for producers.
 *
 * Replicas and files get "XADD key IDMP producer iid id ...", with the id that was chosen. The first pair of a stream
 * would take the limits of the replica's directives there: so it comes as three commands, XADD without it, XCFGSET with
 * the limits, XIDMPRECORD. */
#include "commands/stream/stream_producers.h"

#include "commands/shared/families.h"
#include "commands/shared/operations.h"
#include "commands/shared/type_options.h"
#include "data/stream_idmp.h"

#include <xxhash.h>

/* ------------------------------------------------------------------------------------------------------- words -- */

static bool check_text(struct request *request, struct slice text, const char *error)
{
    if (text.size == 0)
        reply_error(request, error);
    return text.size != 0;
}

bool producer_parse(struct request *request, struct producer_args *args, uint32_t *index, bool *found)
{
    const bool is_auto = request_arg_is(request, *index, "IDMPAUTO");
    const uint32_t last = *index + (is_auto ? 1 : 2);

    *found = false;
    if ((!is_auto && !request_arg_is(request, *index, "IDMP")) || last >= request->arg_count)
        return true;
    *found = true;
    if (args->word_arg != 0) {
        reply_error(request, "ERR syntax error, IDMP/IDMPAUTO specified multiple times");
        return false;
    }
    *args = (struct producer_args){.word_arg = *index,
                                   .word_count = last + 1 - *index,
                                   .producer = request_arg(request, *index + 1)};
    *index = last;
    if (is_auto)
        return check_text(request, args->producer, "ERR syntax error, IDMPAUTO requires a non-empty producer ID");
    args->iid = request_arg(request, last);
    return check_text(request, args->producer, "ERR syntax error, IDMP requires a non-empty producer ID") &&
           check_text(request, args->iid, "ERR syntax error, IDMP requires a non-empty idempotent ID");
}

/* A sum, which has no order, and in which equal pairs count. */
void producer_digest(const struct request *request, struct producer_args *args, uint32_t first_pair)
{
    XXH128_hash_t sum = {0, 0};
    XXH128_canonical_t canonical;

    if (args->word_arg == 0 || args->iid.size != 0)
        return;
    for (uint32_t i = first_pair; i + 1 < request->arg_count; i += 2) {
        const struct slice field = request_arg(request, i), value = request_arg(request, i + 1);
        const XXH128_hash_t of_field = XXH3_128bits(field.data, field.size);
        /* the one's digest is the other's seed: so no byte can move from the field to the value */
        const XXH128_hash_t of_pair = XXH3_128bits_withSeed(value.data, value.size, of_field.low64 ^ of_field.high64);

        sum.high64 += of_pair.high64 + __builtin_add_overflow(sum.low64, of_pair.low64, &sum.low64);
    }
    XXH128_canonicalFromHash(&canonical, sum);
    static_assert(sizeof(canonical) == PRODUCER_DIGEST_BYTES, "128 bits");
    memcpy(args->digest, &canonical, sizeof(canonical));
    args->iid = slice_make(args->digest, sizeof(args->digest));
}

/* ------------------------------------------------------------------------------------------------------- pairs -- */

static uint64_t now_of(const struct request *request)
{
    return (uint64_t)MAX(request->access->now_ms, INT64_C(0));
}

static bool finds(const struct stream *stream, const struct producer_args *args, uint64_t now_ms, struct stream_id *id)
{
    return stream_idmp_find(stream, args->producer, args->iid, id) && !stream_idmp_is_over(stream, *id, now_ms);
}

bool producer_repeats(const struct request *request, const struct producer_args *args, struct stream *stream,
                      struct stream_id *id)
{
    if (!finds(stream, args, now_of(request), id))
        return false;
    stream_idmp_count_duplicate(stream);
    return true;
}

static bool has_limits(const struct stream *stream)
{
    struct stream_idmp_facts facts;

    return stream_idmp_facts(stream, &facts);
}

void producer_count_repetition(struct stream *stream)
{
    if (stream != NULL && has_limits(stream))
        stream_idmp_count_duplicate(stream);
}

bool producer_record(const struct producer_args *args, struct stream *stream, struct stream_id id)
{
    const bool is_first = !has_limits(stream);

    if (is_first)
        (void)stream_idmp_limit(stream, type_stream_idmp_limits());
    stream_idmp_record(stream, args->producer, args->iid, id);
    return is_first;
}

/* ----------------------------------------------------------------------------------------------------- effects -- */

struct limit_texts {
    char duration[NUMBER_I64_SPACE], maxsize[NUMBER_I64_SPACE];
};

static void format_limits(const struct stream *stream, struct limit_texts *texts, struct slice words[2])
{
    struct stream_idmp_facts facts = {.pair_count = 0};

    (void)stream_idmp_facts(stream, &facts);
    words[0] = slice_make(texts->duration, number_format_u64(texts->duration, facts.limits.duration_s));
    words[1] = slice_make(texts->maxsize, number_format_u64(texts->maxsize, facts.limits.maxsize));
}

static void tell_limits(struct request *request, const struct stream *stream,
                        void (*tell)(struct request *request, const struct slice *words, uint32_t word_count))
{
    struct limit_texts texts;
    struct slice limits[2];

    format_limits(stream, &texts, limits);
    tell(request,
         (const struct slice[]){SLICE("XCFGSET"), request_arg(request, 1), SLICE("IDMP-DURATION"), limits[0],
                                SLICE("IDMP-MAXSIZE"), limits[1]},
         6);
}

void effect_producer_limits(struct request *request, const struct stream *stream)
{
    tell_limits(request, stream, effect_set);
}

void effect_producer_pair(struct request *request, const struct producer_args *args, struct stream_id id)
{
    char text[STREAM_ID_TEXT_BYTES];

    effect_set(request,
               (const struct slice[]){SLICE("XIDMPRECORD"), request_arg(request, 1), args->producer, args->iid,
                                      stream_id_format(id, text)},
               5);
}

void operation_producer_pair(struct request *request, const struct producer_args *args, const struct stream *stream,
                             struct stream_id id)
{
    char text[STREAM_ID_TEXT_BYTES];
    struct limit_texts texts;
    struct slice limits[2];

    format_limits(stream, &texts, limits);
    operation_add(request,
                  (const struct slice[]){SLICE("KEYDB.OP.XIDMP"), request_arg(request, 1), args->producer, args->iid,
                                         stream_id_format(id, text), limits[0], limits[1]},
                  7);
}

/* ------------------------------------------------------------------------------------------------ XCFGSET -- */

struct new_limits {
    uint32_t duration_s, maxsize; /* 0: as it was */
};

static bool parse_limit(struct request *request, uint32_t index, int64_t most, const char *error, uint32_t *limit)
{
    int64_t number;

    if (!request_arg_i64(request, index, &number))
        return false;
    if (number < 1 || number > most) {
        reply_error(request, error);
        return false;
    }
    *limit = (uint32_t)number;
    return true;
}

static bool parse_limits(struct request *request, struct new_limits *limits)
{
    *limits = (struct new_limits){0, 0};
    for (uint32_t i = 2; i < request->arg_count; i += 2) {
        const bool is_duration = request_arg_is(request, i, "IDMP-DURATION");
        uint32_t *limit = is_duration ? &limits->duration_s : &limits->maxsize;

        if ((!is_duration && !request_arg_is(request, i, "IDMP-MAXSIZE")) || i + 1 == request->arg_count) {
            reply_syntax_error(request);
            return false;
        }
        if (*limit != 0) {
            reply_errorf(request, "ERR %s specified multiple times", is_duration ? "IDMP-DURATION" : "IDMP-MAXSIZE");
            return false;
        }
        if (!parse_limit(request, i + 1, is_duration ? STREAM_IDMP_DURATION_MOST_S : STREAM_IDMP_MAXSIZE_MOST,
                         is_duration ? "ERR IDMP-DURATION must be between 1 and 86400 seconds"
                                     : "ERR IDMP-MAXSIZE must be between 1 and 10000 entries",
                         limit))
            return false;
    }
    if (limits->duration_s == 0 && limits->maxsize == 0)
        reply_error(request, "ERR At least one parameter must be specified");
    return limits->duration_s != 0 || limits->maxsize != 0;
}

/* What a stream has, or would have with its first pair. */
static struct stream_idmp_limits limits_of(const struct stream *stream)
{
    struct stream_idmp_facts facts;

    return stream_idmp_facts(stream, &facts) ? facts.limits : type_stream_idmp_limits();
}

/* False: there is none, which was replied. */
static bool edit_existing(struct edit *edit, struct request *request)
{
    if (!edit_begin(edit, request, &request->keys[0], TYPE_STREAM))
        return false;
    if (edit->is_new)
        reply_error(request, "ERR no such key");
    return !edit->is_new;
}

static void cmd_xcfgset(struct request *request)
{
    struct new_limits wanted;
    struct stream_idmp_limits limits;
    struct stream *stream;
    struct edit edit;

    if (!edit_existing(&edit, request) || !parse_limits(request, &wanted))
        return;
    stream = stream_of(edit.value);
    limits = limits_of(stream);
    if (wanted.duration_s != 0)
        limits.duration_s = wanted.duration_s;
    if (wanted.maxsize != 0)
        limits.maxsize = wanted.maxsize;
    if (stream_idmp_limit(stream, limits)) {
        edit_end(&edit, EVENT_STREAM, NULL); /* as in Redis, no event */
        effect_producer_limits(request, stream);
        tell_limits(request, stream, operation_add);
    }
    reply_ok(request);
}

/* -------------------------------------------------------------------------------------------- XIDMPRECORD -- */

static bool check_pair(struct request *request, const struct producer_args *args, const struct stream *stream,
                       struct stream_id id, bool *is_known)
{
    struct stream_id before;

    *is_known = finds(stream, args, now_of(request), &before);
    if (*is_known && stream_id_compare(before, id) != 0) {
        reply_error(request, "ERR IID already exists for this producer with a different stream ID");
        return false;
    }
    if (!*is_known && !stream_has(stream, id)) {
        reply_error(request, "ERR No such message in stream");
        return false;
    }
    return true;
}

/* A follower believes what it is told: the entry may be trimmed by now. */
static void cmd_xidmprecord(struct request *request)
{
    struct producer_args args = {.producer = request_arg(request, 2), .iid = request_arg(request, 3)};
    bool is_known = false, is_first;
    struct stream *stream;
    struct stream_id id;
    struct edit edit;

    if (!check_text(request, args.producer, "ERR producer ID must be non-empty") ||
        !check_text(request, args.iid, "ERR idempotent ID must be non-empty") || !stream_arg_id(request, 4, 0, &id) ||
        !edit_existing(&edit, request))
        return;
    stream = stream_of(edit.value);
    if (!access_follows(request->access) && !check_pair(request, &args, stream, id, &is_known))
        return;
    if (!is_known) {
        is_first = producer_record(&args, stream, id);
        edit_end(&edit, EVENT_STREAM, NULL);
        if (is_first) {
            effect_producer_limits(request, stream);
            effect_producer_pair(request, &args, id);
        }
        operation_producer_pair(request, &args, stream, id);
    }
    reply_ok(request);
}

/* KEYDB.OP.XIDMP key producer iid id duration maxsize: a pair that a peer has added. If two nodes have added the same
 * one, each with an entry, the lower id is it from then on. */
static void operate_pair(struct request *request)
{
    const struct producer_args args = {.producer = request_arg(request, 2), .iid = request_arg(request, 3)};
    struct new_limits limits = {0, 0};
    struct stream_id id, before;
    struct edit edit;

    if (!stream_arg_id(request, 4, 0, &id) ||
        !parse_limit(request, 5, STREAM_IDMP_DURATION_MOST_S, "ERR wrong duration", &limits.duration_s) ||
        !parse_limit(request, 6, STREAM_IDMP_MAXSIZE_MOST, "ERR wrong size", &limits.maxsize) ||
        !check_text(request, args.producer, "ERR no producer") || !check_text(request, args.iid, "ERR no iid") ||
        !edit_begin(&edit, request, &request->keys[0], TYPE_STREAM))
        return;
    if (edit.is_new || (finds(stream_of(edit.value), &args, id.ms, &before) && stream_id_compare(before, id) <= 0)) {
        reply_int(request, 0);
        return;
    }
    if (!has_limits(stream_of(edit.value)))
        (void)stream_idmp_limit(stream_of(edit.value), (struct stream_idmp_limits){limits.duration_s, limits.maxsize});
    stream_idmp_record(stream_of(edit.value), args.producer, args.iid, id);
    edit_end(&edit, EVENT_STREAM, NULL);
    reply_int(request, 1);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row stream_producers_commands[] = {
    {.name = "keydb.op.xidmp", .run = operate_pair, .arity = 7, .access = ACCESS_STRIPED, .flags = "write operation",
     .categories = "@write @stream @slow", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "stream",
     .since = "8.6.0", .summary = "Notes which entry another server has added for a producer.",
     .complexity = "O(1)", .syntax = "KEYDB.OP.XIDMP key producer iid id duration maxsize"},
    {.name = "xcfgset", .run = cmd_xcfgset, .arity = -2, .access = ACCESS_STRIPED, .flags = "write fast",
     .categories = "@write @stream @fast", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "stream",
     .since = "8.6.0", .summary = "Sets how long a stream knows what its producers have added, and how much of it.",
     .complexity = "O(1); O(N) for N pairs that are forgotten, if a limit changes",
     .syntax = "XCFGSET key [IDMP-DURATION duration] [IDMP-MAXSIZE maxsize]"},
    {.name = "xidmprecord", .run = cmd_xidmprecord, .arity = 5, .access = ACCESS_STRIPED,
     .flags = "write denyoom fast", .categories = "@write @stream @fast", .keys = "RW,UPDATE@index:1@range:0,1,0",
     .group = "stream", .since = "8.6.2", .summary = "Notes which entry a producer has added.", .complexity = "O(1)",
     .syntax = "XIDMPRECORD key producer iid id"},
    {.name = NULL},
};
/* clang-format on */
