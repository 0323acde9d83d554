/* XNACK: a worker gives entries back that it was handed and cannot do. They stay pending in the group, for nobody
 * (STREAM_RELEASED_CONSUMER), and whoever claims gets them at once. */
#include "commands/shared/families.h"

#include "commands/stream/stream_effects.h"

enum nack_mode {
    NACK_SILENT, /* as if the entry had not been delivered */
    NACK_FAIL,   /* the delivery counts */
    NACK_FATAL   /* no delivery will help */
};

enum { MODE_WORD = 3, IDS_WORD = 4, COUNT_WORD = 5, FIRST_ID = 6 };

struct nack_options {
    enum nack_mode mode;
    uint32_t ids_end;    /* the argument after the last id */
    int64_t retry_count; /* -1: as the mode says */
    bool force;          /* also entries that are not pending */
};

static bool parse_mode(struct request *request, enum nack_mode *mode)
{
    static const char *const words[] = {[NACK_SILENT] = "SILENT", [NACK_FAIL] = "FAIL", [NACK_FATAL] = "FATAL"};

    for (unsigned i = 0; i < countof(words); i++) {
        if (request_arg_is(request, MODE_WORD, words[i])) {
            *mode = (enum nack_mode)i;
            return true;
        }
    }
    reply_error(request, "ERR mode must be SILENT, FAIL, or FATAL");
    return false;
}

/* IDS count id [id ...] */
static bool parse_ids(struct request *request, uint32_t *ids_end)
{
    const uint32_t left = request->arg_count - FIRST_ID;
    struct stream_id id;
    int64_t count;

    if (!request_arg_is(request, IDS_WORD, "IDS")) {
        reply_error(request, "ERR syntax error, expected IDS keyword");
        return false;
    }
    if (!number_parse_i64(request_arg(request, COUNT_WORD), &count) || count <= 0) {
        reply_error(request, "ERR numids must be a positive integer");
        return false;
    }
    if ((uint64_t)count > left) {
        reply_error(request, "ERR number of IDs doesn't match numids");
        return false;
    }
    *ids_end = FIRST_ID + (uint32_t)count;
    for (uint32_t i = FIRST_ID; i < *ids_end; i++)
        if (!stream_arg_id(request, i, 0, &id))
            return false;
    return true;
}

static bool parse_nack(struct request *request, struct nack_options *options)
{
    *options = (struct nack_options){.retry_count = -1};
    if (!parse_mode(request, &options->mode) || !parse_ids(request, &options->ids_end))
        return false;
    for (uint32_t i = options->ids_end; i < request->arg_count; i++) {
        if (request_arg_is(request, i, "FORCE")) {
            options->force = true;
        } else if (request_arg_is(request, i, "RETRYCOUNT") && i + 1 < request->arg_count) {
            if (!request_arg_range(request, ++i, 0, INT64_MAX, &options->retry_count,
                                   "ERR Invalid RETRYCOUNT value, must be >= 0"))
                return false;
        } else {
            reply_error_about(request, "ERR Unrecognized XNACK option '@'", &request->args[i]);
            return false;
        }
    }
    return true;
}

/* How often a released entry was delivered. */
static uint64_t deliveries(const struct stream_pending *record, const struct nack_options *options)
{
    const uint64_t count = record != NULL ? record->delivery_count : 0;

    if (options->retry_count >= 0)
        return (uint64_t)options->retry_count;
    if (options->mode == NACK_FATAL)
        return STREAM_DELIVERIES_MOST;
    return options->mode == NACK_SILENT && count != 0 ? count - 1 : count;
}

/* An entry that is gone cannot be handed out again: it is pending no longer, as after XCLAIM. */
static void forget(const struct group_use *use, struct stream_id id)
{
    effect_acknowledged(use, id);
    (void)stream_pending_remove(use->group, id);
}

/* False: nothing has changed. */
static bool release(struct group_use *use, struct stream_id id, const struct nack_options *options)
{
    const struct stream_pending *record = stream_pending_find(use->group, id);
    const bool is_there = stream_has(use->stream, id);

    if (record != NULL ? stream_is_late(record) : !options->force || !is_there)
        return false;
    if (is_there)
        effect_claim(use, id,
                     stream_pending_assign(use->group, id, group_use_consumer(use), 0, deliveries(record, options)));
    else
        forget(use, id);
    return true;
}

static void cmd_xnack(struct request *request)
{
    struct nack_options options;
    struct group_use use;
    struct edit edit;
    int64_t count = 0;

    if (!parse_nack(request, &options) || !edit_begin(&edit, request, &request->keys[0], TYPE_STREAM))
        return;
    use = (struct group_use){.request = request,
                             .key = &request->keys[0],
                             .stream = edit.is_new ? NULL : stream_of(edit.value),
                             .group_name = request_arg(request, 2),
                             .consumer_name = STREAM_RELEASED_CONSUMER};
    use.group = edit.is_new ? NULL : stream_group_find(use.stream, use.group_name);
    if (use.group == NULL) {
        reply_error_about(request, "NOGROUP No such key '@' or consumer group '@'",
                          (const struct slice[]){use.key->name, use.group_name});
        return;
    }
    effect_none(request); /* each entry has an effect of its own */
    for (uint32_t i = FIRST_ID; i < options.ids_end; i++) {
        struct stream_id id;

        count += stream_id_parse(request_arg(request, i), 0, &id) && release(&use, id, &options);
    }
    if (count != 0)
        edit_end(&edit, EVENT_STREAM, NULL);
    reply_int(request, count);
}

/* clang-format off */
const struct command_row stream_nack_commands[] = {
    {.name = "xnack", .run = cmd_xnack, .arity = -7, .access = ACCESS_STRIPED, .flags = "write fast",
     .categories = "@write @stream @fast", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "stream",
     .since = "8.8.0", .summary = "Gives pending entries back: they belong to no consumer, and are claimed at once.",
     .complexity = "O(N) for N ids",
     .syntax = "XNACK key group SILENT|FAIL|FATAL IDS numids id [id ...] [RETRYCOUNT count] [FORCE]"},
    {.name = NULL},
};
/* clang-format on */
