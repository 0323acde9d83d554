/* Sorted sets: members with their scores, one at a time. Ranges, algebra and popping have files of their own. */
#include "commands/sorted_set/sorted_set.h"

#include "base/mem.h"
#include "commands/shared/families.h"
#include "commands/shared/operations.h"
#include "commands/shared/random_count.h"
#include "commands/shared/scan_options.h"

#include <math.h>

/* ------------------------------------------------------------------------------------------------------ adding -- */

static enum zset_verdict decide(bool is_there, double *score, void *context)
{
    struct zset_adding *adding = context;
    double wanted = adding->score;

    if (is_there ? adding->only_new : adding->only_there)
        return ZSET_LEAVE;
    if (is_there && adding->increases)
        wanted += *score;
    if (isnan(wanted)) {
        adding->is_nan = true;
        return ZSET_LEAVE;
    }
    if (is_there && ((adding->only_greater && wanted <= *score) || (adding->only_less && wanted >= *score)))
        return ZSET_LEAVE;
    *score = wanted;
    adding->score = wanted;
    return ZSET_STORE;
}

/* The words before the scores; returns where those begin. */
static uint32_t parse_words(const struct request *request, struct zset_adding *adding)
{
    const struct {
        const char *word;
        bool *flag;
    } words[] = {{"NX", &adding->only_new},  {"XX", &adding->only_there},     {"GT", &adding->only_greater},
                 {"LT", &adding->only_less}, {"CH", &adding->counts_changes}, {"INCR", &adding->increases}};
    uint32_t index = 2;

    for (; index < request->arg_count; index++) {
        struct slice given = request_arg(request, index);
        size_t i = 0;

        /* Most often it is a number already. */
        if (given.size < 2 || given.size > 4 || given.data[0] < 'A')
            break;
        while (i < countof(words) && !slice_equal_text_nocase(given, words[i].word))
            i++;
        if (i == countof(words))
            break;
        *words[i].flag = true;
    }
    return index;
}

static bool check_words(struct request *request, const struct zset_adding *adding, uint32_t element_words)
{
    const char *error = NULL;

    if (element_words == 0 || element_words % 2 != 0)
        error = "ERR syntax error";
    else if (adding->only_new && adding->only_there)
        error = "ERR XX and NX options at the same time are not compatible";
    else if (adding->only_greater + adding->only_less + adding->only_new > 1)
        error = "ERR GT, LT, and/or NX options at the same time are not compatible";
    else if (adding->increases && element_words > 2)
        error = "ERR INCR option supports a single increment-element pair";
    if (error != NULL)
        reply_error(request, error);
    return error == NULL;
}

/* An edit of a set that is there, or is to be made. */
static bool edit_to_add(struct edit *edit, struct request *request, const struct zset_adding *adding)
{
    if (!zset_edit(edit, request, &request->keys[0]))
        return false;
    if (edit->is_new && !adding->only_there)
        edit->value = zset_create();
    return true;
}

/* NX and XX were decided here: only what was stored is told. GT, LT and INCR stay. The command's own words do if they
 * say the same. */
static void operation_stored(struct operation_list *stored, const struct zset_adding *adding, uint32_t given)
{
    struct slice words[4] = {SLICE("ZADD"), request_arg(stored->request, 1)};
    uint32_t count = 2;

    if (adding->only_greater || adding->only_less)
        words[count++] = adding->only_greater ? SLICE("GT") : SLICE("LT");
    if (adding->increases)
        words[count++] = SLICE("INCR");
    if (!adding->only_new && !adding->only_there && (stored->sizes.count == 0 || stored->sizes.count == 2 * given))
        operation_list_forget(stored);
    else
        operation_list_end(stored, words, count);
}

static void note_stored(struct operation_list *stored, const struct zset_scored *scored)
{
    char digits[NUMBER_DOUBLE_SPACE];

    operation_list_add(stored, slice_make(digits, number_format_double(digits, scored->score)));
    operation_list_add(stored, scored->member);
}

bool zset_add(struct request *request, struct zset_adding *adding, const struct zset_scored *members, uint32_t count)
{
    const struct zset_limits limits = type_zset_limits();
    uint64_t added = 0, changed = 0;
    enum zset_outcome outcome = ZSET_LEFT;
    struct operation_list stored = {0};
    struct edit edit;

    if (!edit_to_add(&edit, request, adding))
        return false;
    if (adding->only_new || adding->only_there || count > 1)
        operation_list_begin(&stored, request);
    for (uint32_t i = 0; edit.value.data != NULL && i < count; i++) {
        adding->score = members[i].score;
        outcome = zset_update(&edit.value, &limits, members[i].member, decide, adding);
        added += outcome == ZSET_ADDED;
        changed += outcome == ZSET_CHANGED;
        if ((outcome == ZSET_ADDED || outcome == ZSET_CHANGED) && operation_list_is_wanted(&stored))
            note_stored(&stored, &members[i]);
    }
    if (operation_list_is_wanted(&stored))
        operation_stored(&stored, adding, count);
    if (added + changed > 0)
        edit_end(&edit, EVENT_ZSET, adding->increases ? "zincr" : "zadd");
    if (adding->is_nan)
        reply_error(request, "ERR resulting score is not a number (NaN)");
    else if (!adding->increases)
        reply_int(request, (int64_t)(adding->counts_changes ? added + changed : added));
    else if (outcome == ZSET_LEFT)
        reply_null(request);
    else
        resp_write_double(request->out, request->proto, adding->score);
    return added + changed > 0;
}

bool zset_check_member(struct request *request, struct slice member)
{
    if (member.size <= ZINDEX_MEMBER_BYTES_MOST)
        return true;
    reply_error(request, "ERR member of a sorted set is too long");
    return false;
}

/* All scores are looked at before anything changes. */
static bool parse_scored(struct request *request, uint32_t first, struct zset_scored *members)
{
    for (uint32_t i = first; i < request->arg_count; i += 2, members++) {
        members->member = request_arg(request, i + 1);
        if (!zset_parse_score(request, i, &members->score) || !zset_check_member(request, members->member))
            return false;
    }
    return true;
}

static void parse_and_add(struct request *request, struct zset_adding *adding)
{
    struct zset_scored room[ZSET_SCORED_ROOM], *members = room;
    uint32_t first = parse_words(request, adding), count = (request->arg_count - first) / 2;

    if (!check_words(request, adding, request->arg_count - first))
        return;
    if (count > countof(room))
        members = mem_alloc(count * sizeof(*members));
    if (parse_scored(request, first, members))
        (void)zset_add(request, adding, members, count);
    if (members != room)
        mem_free(members);
}

static void cmd_zadd(struct request *request)
{
    parse_and_add(request, &(struct zset_adding){.score = 0});
}

/* The words of ZADD are known as such here, too, though there is no room for one. */
static void cmd_zincrby(struct request *request)
{
    parse_and_add(request, &(struct zset_adding){.increases = true});
}

static void cmd_zrem(struct request *request)
{
    struct operation_list changed;
    struct edit edit;
    int64_t removed = 0;

    if (!zset_edit(&edit, request, &request->keys[0]))
        return;
    operation_members_begin(&changed, request);
    for (uint32_t i = 2; !edit.is_new && i < request->arg_count; i++) {
        if (!zset_remove(&edit.value, request_arg(request, i)))
            continue;
        operation_list_add(&changed, request_arg(request, i));
        removed++;
    }
    if (removed > 0) {
        edit_forget_args(&edit, 2, 1);
        zset_end_removal(&edit, "zrem");
    }
    operation_members_end(&changed);
    reply_int(request, removed);
}

/* ----------------------------------------------------------------------------------------------------- reading -- */

static bool read_zset(struct request *request, struct value *zset)
{
    return zset_read(request, &request->keys[0], zset);
}

static void cmd_zcard(struct request *request)
{
    struct value zset;

    if (read_zset(request, &zset))
        reply_int(request, zset.data != NULL ? (int64_t)zset_count(zset) : 0);
}

static void reply_score(struct request *request, struct value zset, struct slice member)
{
    double score;

    if (zset.data != NULL && zset_score(zset, member, &score))
        resp_write_double(request->out, request->proto, score);
    else
        reply_null(request);
}

static void cmd_zscore(struct request *request)
{
    struct value zset;

    if (read_zset(request, &zset))
        reply_score(request, zset, request_arg(request, 2));
}

static void cmd_zmscore(struct request *request)
{
    struct value zset;

    if (!read_zset(request, &zset))
        return;
    reply_array(request, request->arg_count - 2);
    for (uint32_t i = 2; i < request->arg_count; i++)
        reply_score(request, zset, request_arg(request, i));
}

static void reply_rank(struct request *request, bool backwards)
{
    bool with_score = request->arg_count > 3;
    struct value zset;
    uint64_t rank;
    double score;

    if (request->arg_count > 4 || (with_score && !request_arg_is(request, 3, "WITHSCORE"))) {
        reply_syntax_error(request);
        return;
    }
    if (!read_zset(request, &zset))
        return;
    if (zset.data == NULL || !zset_rank(zset, request_arg(request, 2), &rank, &score)) {
        if (with_score)
            reply_null_array(request);
        else
            reply_null(request);
        return;
    }
    if (with_score)
        reply_array(request, 2);
    reply_int(request, (int64_t)(backwards ? zset_count(zset) - 1 - rank : rank));
    if (with_score)
        resp_write_double(request->out, request->proto, score);
}

static void cmd_zrank(struct request *request)
{
    reply_rank(request, false);
}

static void cmd_zrevrank(struct request *request)
{
    reply_rank(request, true);
}

struct scan_printer {
    struct request *request;
    struct scan_options options;
    bool is_small; /* whole numbers are replied as a listpack holds them: without exponent */
    uint64_t count;
};

/* Scores are text in either protocol. */
static void print_if_wanted(struct slice member, double score, void *context)
{
    struct scan_printer *printer = context;

    if (!scan_wants(&printer->options, member))
        return;
    reply_bulk(printer->request, member);
    if (printer->is_small && zset_score_is_whole(score))
        resp_write_bulk_int(printer->request->out, (int64_t)score);
    else
        resp_write_double(printer->request->out, 2, score);
    printer->count += 2;
}

static void print_member_if_wanted(struct slice member, double score, void *context)
{
    struct scan_printer *printer = context;

    (void)score;
    if (!scan_wants(&printer->options, member))
        return;
    reply_bulk(printer->request, member);
    printer->count++;
}

static void cmd_zscan(struct request *request)
{
    struct scan_printer printer = {.request = request};
    struct scan_reply reply;
    struct value zset;
    uint64_t cursor;

    if (!scan_parse_cursor(request, 2, &cursor) || !read_zset(request, &zset))
        return;
    if (zset.data == NULL) {
        scan_reply_nothing(request);
        return;
    }
    if (!scan_parse_options(request, 3, SCAN_NOSCORES, &printer.options))
        return;
    printer.is_small = zset.encoding == ENCODING_LISTPACK;
    reply = scan_reply_begin(request);
    cursor = zset_scan(zset, cursor, (uint64_t)printer.options.want,
                       printer.options.no_scores ? print_member_if_wanted : print_if_wanted, &printer);
    scan_reply_end(request, reply, cursor, printer.count);
}

struct printer {
    struct request *request;
    enum zset_form form;
};

static void print_member(struct slice member, double score, void *context)
{
    const struct printer *printer = context;
    struct request *request = printer->request;

    if (printer->form == ZSET_NESTED_SCORES)
        reply_array(request, 2);
    reply_bulk(request, member);
    if (printer->form != ZSET_MEMBERS)
        resp_write_double(request->out, request->proto, score);
}

struct random_printer {
    struct printer printer;
    struct value zset;
};

/* A random_count_reply_fn. */
static void reply_random_one(struct request *request, void *context)
{
    struct random_printer *random = context;

    (void)request;
    zset_random(random->zset, random_thread(), print_member, &random->printer);
}

static void reply_random(struct request *request, struct value zset, const struct random_count *wanted,
                         enum zset_form form)
{
    struct random_printer random = {.printer = {.request = request, .form = form}, .zset = zset};
    uint64_t count = wanted->count, strings = form == ZSET_FLAT_SCORES ? 2 : 1;

    if (zset.data == NULL) {
        reply_array(request, 0);
    } else if (wanted->repeats) {
        random_count_reply_repeats(request, wanted, count * strings, reply_random_one, &random);
    } else {
        count = MIN(count, zset_count(zset));
        reply_array(request, count * strings);
        if (count != 0)
            zset_random_some(zset, random_thread(), count, print_member, &random.printer);
    }
}

static void cmd_zrandmember(struct request *request)
{
    struct printer printer = {.request = request, .form = ZSET_MEMBERS};
    struct random_count wanted;
    struct value zset;

    if (request->arg_count == 2) {
        if (!read_zset(request, &zset))
            return;
        if (zset.data == NULL)
            reply_null(request);
        else
            zset_random(zset, random_thread(), print_member, &printer);
        return;
    }
    if (!random_count_parse(request, 2, &wanted))
        return;
    if (request->arg_count > 4 || (request->arg_count == 4 && !request_arg_is(request, 3, "WITHSCORES"))) {
        reply_syntax_error(request);
        return;
    }
    if (request->arg_count == 4 && !random_count_check_pairs(request, &wanted))
        return;
    if (read_zset(request, &zset))
        reply_random(request, zset, &wanted, zset_form_of(request, request->arg_count == 4));
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row sorted_set_commands[] = {
    {.name = "zadd", .run = cmd_zadd, .arity = -4, .member = 3, .access = ACCESS_STRIPED, .flags = "write denyoom fast",
     .categories = "@write @sortedset @fast", .keys = "RW,UPDATE@index:1@range:0,1,0", .group = "sorted-set",
     .since = "1.2.0", .summary = "Adds members to a sorted set, or updates their scores.",
     .complexity = "O(log(N)) for each member, N of them being there",
     .syntax = "ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member [score member ...]",
     .arg_since = "condition:3.0.2 comparison:6.2.0 CH:3.0.2 INCR:3.0.2",
     .history = "2.4.0=Several members in one call.|3.0.2=The words `XX`, `NX`, `CH` and `INCR`.|"
                "6.2.0=The words `GT` and `LT`."},
    {.name = "zincrby", .run = cmd_zincrby, .arity = 4, .member = 3,
     .access = ACCESS_STRIPED, .flags = "write denyoom fast",
     .categories = "@write @sortedset @fast", .keys = "RW,ACCESS,UPDATE@index:1@range:0,1,0", .group = "sorted-set",
     .since = "1.2.0", .summary = "Adds to the score of a member. A member that does not exist counts as 0.",
     .complexity = "O(log(N)) for a set of N members", .syntax = "ZINCRBY key increment member"},
    {.name = "zrem", .run = cmd_zrem, .arity = -3, .member = 2, .access = ACCESS_STRIPED, .flags = "write fast",
     .categories = "@write @sortedset @fast", .keys = "RW,DELETE@index:1@range:0,1,0", .group = "sorted-set",
     .since = "1.2.0", .summary = "Removes members. Deletes the sorted set when no member remains.",
     .complexity = "O(M*log(N)) for M members out of N", .syntax = "ZREM key member [member ...]",
     .history = "2.4.0=Several members in one call."},
    {.name = "zcard", .run = cmd_zcard, .arity = 2, .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @sortedset @fast", .keys = "RO@index:1@range:0,1,0", .group = "sorted-set", .since = "1.2.0",
     .summary = "Returns how many members a sorted set has.", .complexity = "O(1)", .syntax = "ZCARD key"},
    {.name = "zscore", .run = cmd_zscore, .arity = 3, .member = 2, .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @sortedset @fast", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "sorted-set",
     .since = "1.2.0", .summary = "Returns the score of a member.", .complexity = "O(1)",
     .syntax = "ZSCORE key member"},
    {.name = "zmscore", .run = cmd_zmscore, .arity = -3, .member = 2,
     .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @sortedset @fast", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "sorted-set",
     .since = "6.2.0", .summary = "Returns the scores of several members.", .complexity = "O(N) for N members",
     .syntax = "ZMSCORE key member [member ...]"},
    {.name = "zrank", .run = cmd_zrank, .arity = -3, .member = 2, .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @sortedset @fast", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "sorted-set",
     .since = "2.0.0", .summary = "Returns the rank of a member, in order of ascending scores.",
     .complexity = "O(log(N)) for a set of N members", .syntax = "ZRANK key member [WITHSCORE]",
     .history = "7.2.0=The word `WITHSCORE`."},
    {.name = "zrevrank", .run = cmd_zrevrank, .arity = -3, .member = 2,
     .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @sortedset @fast", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "sorted-set",
     .since = "2.0.0", .summary = "Returns the rank of a member, in order of descending scores.",
     .complexity = "O(log(N)) for a set of N members", .syntax = "ZREVRANK key member [WITHSCORE]",
     .history = "7.2.0=The word `WITHSCORE`."},
    {.name = "zscan", .run = cmd_zscan, .arity = -3, .access = ACCESS_STRIPED, .flags = "readonly",
     .categories = "@read @sortedset @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "sorted-set",
     .since = "2.8.0", .summary = "Iterates over the members of a sorted set.",
     .complexity = "O(1) for each step, O(N) for all N members",
     .syntax = "ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]", .arg_since = "noscores:8.0.0",
     .history = "8.0.0=The word NOSCORES.", .tips = "nondeterministic_output"},
    {.name = "zrandmember", .run = cmd_zrandmember, .arity = -2, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @sortedset @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "sorted-set",
     .since = "6.2.0", .summary = "Returns random members of a sorted set.",
     .complexity = "O(N) for N members returned",
     .syntax = "ZRANDMEMBER key [count [WITHSCORES]]", .tips = "nondeterministic_output"},
    {.name = NULL},
};
/* clang-format on */
