/* Union, intersection and difference: ZUNION, ZINTER, ZDIFF. Inputs may be sets as well; their members have the score
 * 1.
 *
 * Inputs are processed from the smallest to the largest. This decides the order in which scores are added, which
 * clients see in the last digit. */
#include "commands/sorted_set/sorted_set.h"

#include "base/mem.h"
#include "base/number.h"
#include "commands/shared/families.h"
#include "data/set.h"
#include "data/zindex_item.h"

#include <math.h>
#include <stdlib.h>

enum aggregate { SUM, LEAST, MOST, COUNT }; /* COUNT: the sum of the weights, whatever the scores */
enum operation { UNION, INTERSECTION, DIFFERENCE };

struct input {
    struct value value; /* data NULL: there is no such key */
    bool is_set;
    double weight;
    uint64_t count;
    uint32_t position; /* among the words */
};

struct inputs {
    struct input *items;
    uint32_t count;
};

/* The parsed arguments. */
struct algebra {
    enum operation operation;
    enum aggregate aggregate;
    bool with_scores;
    uint64_t limit; /* 0: none */
};

/* ------------------------------------------------------------------------------------------------------ inputs -- */

static bool read_input(struct request *request, const struct key *key, struct input *input)
{
    struct entry *entry = access_read(request->access, request->db, key);

    *input = (struct input){.weight = 1};
    if (entry == NULL)
        return true;
    input->is_set = entry->type == TYPE_SET;
    if (!input->is_set && !request_expect_type(request, entry, TYPE_ZSET))
        return false;
    input->value = entry_value(entry);
    input->count = input->is_set ? set_count(input->value) : zset_count(input->value);
    return true;
}

/* The keys from `first` on. False: one has another type, which was replied; nothing is to be freed. */
static bool inputs_init(struct inputs *inputs, struct request *request, uint32_t first)
{
    inputs->count = request->key_count - first;
    inputs->items = mem_alloc(MAX(inputs->count, 1U) * sizeof(*inputs->items));
    for (uint32_t i = 0; i < inputs->count; i++) {
        if (!read_input(request, &request->keys[first + i], &inputs->items[i])) {
            mem_free(inputs->items);
            return false;
        }
        inputs->items[i].position = i;
    }
    return true;
}

static int compare_inputs(const void *a, const void *b)
{
    const struct input *left = a, *right = b;

    if (left->count != right->count)
        return left->count < right->count ? -1 : 1;
    return left->position < right->position ? -1 : 1;
}

static bool input_score(const struct input *input, struct slice member, double *score)
{
    if (input->value.data == NULL)
        return false;
    if (!input->is_set)
        return zset_score(input->value, member, score);
    *score = 1;
    return set_has(input->value, member);
}

struct set_visit {
    zset_member_fn fn;
    void *context;
};

static void visit_set_member(struct slice member, void *context)
{
    const struct set_visit *visit = context;

    visit->fn(member, 1, visit->context);
}

static void input_each(const struct input *input, zset_member_fn fn, void *context)
{
    struct set_visit visit = {fn, context};
    struct zset_walk walk;
    struct slice member;
    double score;

    if (input->value.data == NULL)
        return;
    if (input->is_set) {
        set_each(input->value, visit_set_member, &visit);
        return;
    }
    zset_walk_begin(&walk, input->value, (struct zset_span){0, input->count}, false);
    while (zset_walk_next(&walk, &member, &score))
        fn(member, score, context);
}

/* ---------------------------------------------------------------------------------------------------- reckoning -- */

static double weighted(double score, double weight)
{
    double product = score * weight;

    return isnan(product) ? 0 : product; /* infinity without weight is nothing */
}

static double sum_of(double a, double b)
{
    double sum = a + b;

    return isnan(sum) ? 0 : sum;
}

static double aggregated(double a, double b, enum aggregate aggregate)
{
    if (aggregate == SUM)
        return sum_of(a, b);
    if (aggregate == LEAST)
        return b < a ? b : a; /* of zeros that differ in sign the first stays */
    return b > a ? b : a;
}

struct work {
    const struct algebra *algebra;
    const struct inputs *inputs;
    const struct input *input;   /* the input being walked */
    struct zset_builder *result; /* NULL: members are only counted */
    uint64_t count;
};

static void unite_member(struct slice member, double score, void *context)
{
    const struct work *work = context;
    struct zindex_item *item = zset_builder_find(work->result, member);

    score = weighted(score, work->input->weight);
    if (item == NULL)
        zset_builder_add(work->result, member, score);
    else
        item->score = aggregated(item->score, score, work->algebra->aggregate);
}

static void intersect_member(struct slice member, double score, void *context)
{
    struct work *work = context;
    double other;

    if (work->algebra->limit != 0 && work->count == work->algebra->limit)
        return;
    score = weighted(score, work->input->weight);
    for (uint32_t i = 1; i < work->inputs->count; i++) {
        if (!input_score(&work->inputs->items[i], member, &other))
            return;
        /* No number is kept out by the aggregate alone: a sum with it is 0. */
        score = aggregated(score, other * work->inputs->items[i].weight, work->algebra->aggregate);
    }
    work->count++;
    if (work->result != NULL)
        zset_builder_add(work->result, member, score);
}

static void unite_counted(struct slice member, double score, void *context)
{
    const struct work *work = context;
    struct zindex_item *item = zset_builder_find(work->result, member);

    (void)score;
    if (item == NULL)
        zset_builder_add(work->result, member, work->input->weight);
    else
        item->score = sum_of(item->score, work->input->weight);
}

static void intersect_counted(struct slice member, double score, void *context)
{
    const struct work *work = context;
    double sum = work->input->weight, other;

    (void)score;
    for (uint32_t i = 1; i < work->inputs->count; i++) {
        if (!input_score(&work->inputs->items[i], member, &other))
            return;
        sum = sum_of(sum, work->inputs->items[i].weight);
    }
    zset_builder_add(work->result, member, sum);
}

static void subtract_member(struct slice member, double score, void *context)
{
    const struct work *work = context;
    double other;

    for (uint32_t i = 1; i < work->inputs->count; i++) {
        if (input_score(&work->inputs->items[i], member, &other))
            return;
    }
    zset_builder_add(work->result, member, score);
}

/* A key named twice is subtracted from itself, whatever its place. */
static void reckon(struct work *work)
{
    const bool counts = work->algebra->aggregate == COUNT;
    struct inputs inputs = *work->inputs;

    if (inputs.count == 0)
        return;
    work->input = &inputs.items[0];
    if (work->algebra->operation == DIFFERENCE) {
        input_each(work->input, subtract_member, work);
        return;
    }
    qsort(inputs.items, inputs.count, sizeof(*inputs.items), compare_inputs);
    if (work->algebra->operation == INTERSECTION) {
        input_each(work->input, counts ? intersect_counted : intersect_member, work);
        return;
    }
    for (uint32_t i = 0; i < inputs.count; i++) {
        work->input = &inputs.items[i];
        input_each(work->input, counts ? unite_counted : unite_member, work);
    }
}

/* ----------------------------------------------------------------------------------------------------- parsing -- */

static bool parse_key_count(struct request *request, uint32_t index, uint32_t *key_count)
{
    int64_t count;

    if (!request_arg_i64(request, index, &count))
        return false;
    if (count < 1) {
        reply_errorf(request, "ERR at least 1 input key is needed for '%.*s' command", (int)request->command->name.size,
                     request->command->name.data);
        return false;
    }
    if (count > (int64_t)request->arg_count - (int64_t)index - 1) {
        reply_syntax_error(request);
        return false;
    }
    *key_count = (uint32_t)count;
    return true;
}

static bool parse_weights(struct request *request, uint32_t index, struct inputs *inputs)
{
    for (uint32_t i = 0; i < inputs->count; i++) {
        if (!number_parse_double(request_arg(request, index + i), &inputs->items[i].weight)) {
            reply_error(request, "ERR weight value is not a float");
            return false;
        }
    }
    return true;
}

static bool parse_aggregate(const struct request *request, uint32_t index, enum aggregate *aggregate)
{
    static const char *const words[] = {[SUM] = "SUM", [LEAST] = "MIN", [MOST] = "MAX", [COUNT] = "COUNT"};

    for (uint32_t i = 0; i < countof(words); i++) {
        if (request_arg_is(request, index, words[i])) {
            *aggregate = (enum aggregate)i;
            return true;
        }
    }
    return false;
}

/* The words behind the keys. */
static bool parse_words(struct request *request, uint32_t index, bool stores, struct algebra *algebra,
                        struct inputs *inputs)
{
    bool combines = algebra->operation != DIFFERENCE;

    while (index < request->arg_count) {
        uint32_t left = request->arg_count - index;

        if (combines && left > inputs->count && request_arg_is(request, index, "WEIGHTS")) {
            if (!parse_weights(request, index + 1, inputs))
                return false;
            index += 1 + inputs->count;
        } else if (combines && left >= 2 && request_arg_is(request, index, "AGGREGATE") &&
                   parse_aggregate(request, index + 1, &algebra->aggregate)) {
            index += 2;
        } else if (!stores && request_arg_is(request, index, "WITHSCORES")) {
            algebra->with_scores = true;
            index++;
        } else {
            reply_syntax_error(request);
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------- commands -- */

/* Reads keys and words and leaves the result in `result`; false: an error was replied. */
static bool run(struct request *request, bool stores, struct algebra *algebra, struct zset_builder *result)
{
    uint32_t count_index = stores ? 2 : 1, key_count;
    struct inputs inputs;
    bool is_fine;

    if (!parse_key_count(request, count_index, &key_count) || !inputs_init(&inputs, request, stores ? 1 : 0))
        return false;
    is_fine = parse_words(request, count_index + 1 + key_count, stores, algebra, &inputs);
    if (is_fine)
        reckon(&(struct work){.algebra = algebra, .inputs = &inputs, .result = result});
    mem_free(inputs.items);
    return is_fine;
}

static void reply_result(struct request *request, enum operation operation)
{
    struct algebra algebra = {.operation = operation};
    struct zset_builder result = {.longest = 0};
    struct value zset;

    if (!run(request, false, &algebra, &result))
        return;
    zset = zset_build(&result, NULL);
    zset_reply_span(request->out, request->proto, zset, (struct zset_span){0, zset_count(zset)}, false,
                    zset_form_of(request, algebra.with_scores));
    zset_ops.destroy(zset);
}

static void store_result(struct request *request, enum operation operation, const char *event)
{
    const struct zset_limits limits = type_zset_limits();
    struct algebra algebra = {.operation = operation};
    struct zset_builder result = {.longest = 0};

    if (!run(request, true, &algebra, &result))
        return;
    if (algebra.aggregate == COUNT)
        zset_effect_built(request, &request->keys[0], &result); /* the word is newer than Redis 7.0 */
    zset_store(request, &request->keys[0], zset_build(&result, &limits), event);
}

static void cmd_zunion(struct request *request)
{
    reply_result(request, UNION);
}

static void cmd_zinter(struct request *request)
{
    reply_result(request, INTERSECTION);
}

static void cmd_zdiff(struct request *request)
{
    reply_result(request, DIFFERENCE);
}

static void cmd_zunionstore(struct request *request)
{
    store_result(request, UNION, "zunionstore");
}

static void cmd_zinterstore(struct request *request)
{
    store_result(request, INTERSECTION, "zinterstore");
}

static void cmd_zdiffstore(struct request *request)
{
    store_result(request, DIFFERENCE, "zdiffstore");
}

static bool parse_limit(struct request *request, uint32_t index, struct algebra *algebra)
{
    int64_t limit;

    for (; index < request->arg_count; index += 2) {
        if (!request_arg_is(request, index, "LIMIT") || index + 1 == request->arg_count) {
            reply_syntax_error(request);
            return false;
        }
        if (!request_arg_range(request, index + 1, 0, INT64_MAX, &limit, "ERR LIMIT can't be negative"))
            return false;
        algebra->limit = (uint64_t)limit;
    }
    return true;
}

static void cmd_zintercard(struct request *request)
{
    struct algebra algebra = {.operation = INTERSECTION};
    struct inputs inputs;
    uint32_t key_count;

    if (!parse_key_count(request, 1, &key_count) || !inputs_init(&inputs, request, 0))
        return;
    if (parse_limit(request, 2 + key_count, &algebra)) {
        struct work work = {.algebra = &algebra, .inputs = &inputs};

        reckon(&work);
        reply_int(request, (int64_t)work.count);
    }
    mem_free(inputs.items);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row sorted_set_algebra_commands[] = {
    {.name = "zunion", .run = cmd_zunion, .arity = -3, .access = ACCESS_STRIPED, .flags = "readonly movablekeys alone",
     .categories = "@read @sortedset @slow", .keys = "RO,ACCESS@index:1@keynum:0,1,1", .group = "sorted-set",
     .since = "6.2.0", .summary = "Returns the union of sorted sets.",
     .complexity = "O(N)+O(M*log(M)) for N members in all, M of them in the result",
     .syntax = "ZUNION numkeys key [key ...] [WEIGHTS weight [weight ...]] "
               "[AGGREGATE (SUM|MIN|MAX|COUNT)] [WITHSCORES]"},
    {.name = "zinter", .run = cmd_zinter, .arity = -3, .access = ACCESS_STRIPED, .flags = "readonly movablekeys alone",
     .categories = "@read @sortedset @slow", .keys = "RO,ACCESS@index:1@keynum:0,1,1", .group = "sorted-set",
     .since = "6.2.0", .summary = "Returns the intersection of sorted sets.",
     .complexity = "O(N*K)+O(M*log(M)) for K sets of which the smallest has N members, M members in the result",
     .syntax = "ZINTER numkeys key [key ...] [WEIGHTS weight [weight ...]] "
               "[AGGREGATE (SUM|MIN|MAX|COUNT)] [WITHSCORES]"},
    {.name = "zdiff", .run = cmd_zdiff, .arity = -3, .access = ACCESS_STRIPED, .flags = "readonly movablekeys alone",
     .categories = "@read @sortedset @slow", .keys = "RO,ACCESS@index:1@keynum:0,1,1", .group = "sorted-set",
     .since = "6.2.0", .summary = "Returns the difference of sorted sets.",
     .complexity = "O(N*K)+O(M*log(M)) for K sets of which the smallest has N members, M members in the result",
     .syntax = "ZDIFF numkeys key [key ...] [WITHSCORES]"},
    {.name = "zunionstore", .run = cmd_zunionstore, .arity = -4, .access = ACCESS_STRIPED,
     .flags = "write denyoom movablekeys alone", .categories = "@write @sortedset @slow",
     .keys = "OW,UPDATE@index:1@range:0,1,0 RO,ACCESS@index:2@keynum:0,1,1", .group = "sorted-set", .since = "2.0.0",
     .summary = "Stores the union of sorted sets.",
     .complexity = "O(N)+O(M*log(M)) for N members in all, M of them in the result",
     .syntax = "ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] "
               "[AGGREGATE (SUM|MIN|MAX|COUNT)]"},
    {.name = "zinterstore", .run = cmd_zinterstore, .arity = -4, .access = ACCESS_STRIPED,
     .flags = "write denyoom movablekeys alone", .categories = "@write @sortedset @slow",
     .keys = "OW,UPDATE@index:1@range:0,1,0 RO,ACCESS@index:2@keynum:0,1,1", .group = "sorted-set", .since = "2.0.0",
     .summary = "Stores the intersection of sorted sets.",
     .complexity = "O(N*K)+O(M*log(M)) for K sets of which the smallest has N members, M members in the result",
     .syntax = "ZINTERSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] "
               "[AGGREGATE (SUM|MIN|MAX|COUNT)]"},
    {.name = "zdiffstore", .run = cmd_zdiffstore, .arity = -4, .access = ACCESS_STRIPED,
     .flags = "write denyoom movablekeys alone", .categories = "@write @sortedset @slow",
     .keys = "OW,UPDATE@index:1@range:0,1,0 RO,ACCESS@index:2@keynum:0,1,1", .group = "sorted-set", .since = "6.2.0",
     .summary = "Stores the difference of sorted sets.",
     .complexity = "O(N*K)+O(M*log(M)) for K sets of which the smallest has N members, M members in the result",
     .syntax = "ZDIFFSTORE destination numkeys key [key ...]"},
    {.name = "zintercard", .run = cmd_zintercard, .arity = -3, .access = ACCESS_STRIPED,
     .flags = "readonly movablekeys alone", .categories = "@read @sortedset @slow",
     .keys = "RO,ACCESS@index:1@keynum:0,1,1", .group = "sorted-set", .since = "7.0.0",
     .summary = "Returns the number of members in the intersection of sorted sets.",
     .complexity = "O(N*K) for K sets of which the smallest has N members",
     .syntax = "ZINTERCARD numkeys key [key ...] [LIMIT limit]"},
    {.name = NULL},
};
/* clang-format on */
