#include "commands/sorted_set_pop.h"

#include "base/number.h"
#include "commands/families.h"

uint64_t zset_pop(struct edit *edit, const struct zset_pop *pop, struct output *out, int proto)
{
    uint64_t all = zset_count(edit->value), count = MIN(pop->count, all);
    struct zset_span span = {pop->greatest ? all - count : 0, pop->greatest ? all : count};

    zset_reply_span(out, proto, edit->value, span, pop->greatest, pop->form);
    zset_end_with_removal(edit, span, pop->greatest ? "zpopmax" : "zpopmin");
    return count;
}

void zset_pop_effect(struct request *request, const struct key *key, bool greatest, uint64_t count)
{
    char digits[NUMBER_I64_SPACE];

    effect_set(request,
               (const struct slice[]){greatest ? SLICE("ZPOPMAX") : SLICE("ZPOPMIN"), key->name,
                                      slice_make(digits, number_format_u64(digits, count))},
               3);
}

static void pop_end(struct request *request, bool greatest)
{
    struct zset_pop pop = {.greatest = greatest, .count = 1, .form = ZSET_FLAT_SCORES};
    struct edit edit;
    int64_t count;

    if (request->arg_count > 3) {
        reply_syntax_error(request);
        return;
    }
    if (request->arg_count == 3) {
        if (!request_arg_range(request, 2, 0, INT64_MAX, &count, "ERR value is out of range, must be positive"))
            return;
        pop.count = (uint64_t)count;
        pop.form = zset_form_of(request, true);
    }
    if (!zset_edit(&edit, request, &request->keys[0]))
        return;
    if (edit.is_new || pop.count == 0)
        reply_array(request, 0);
    else
        (void)zset_pop(&edit, &pop, request->out, request->proto);
}

static void cmd_zpopmin(struct request *request)
{
    pop_end(request, false);
}

static void cmd_zpopmax(struct request *request)
{
    pop_end(request, true);
}

bool zset_parse_end(struct request *request, uint32_t index, bool *greatest)
{
    *greatest = request_arg_is(request, index, "MAX");
    if (*greatest || request_arg_is(request, index, "MIN"))
        return true;
    reply_syntax_error(request);
    return false;
}

bool zset_parse_pop_count(struct request *request, uint32_t index, uint64_t *count)
{
    int64_t given = 1;

    if (index + 1 < request->arg_count && request_arg_is(request, index, "COUNT")) {
        if (!request_arg_range(request, index + 1, 1, INT64_MAX, &given, "ERR count should be greater than 0"))
            return false;
        index += 2;
    }
    *count = (uint64_t)given;
    if (index == request->arg_count)
        return true;
    reply_syntax_error(request);
    return false;
}

static void cmd_zmpop(struct request *request)
{
    struct zset_pop pop = {.form = ZSET_NESTED_SCORES};
    struct edit edit;
    int64_t key_count;

    if (!request_arg_range(request, 1, 1, INT64_MAX, &key_count, "ERR numkeys should be greater than 0"))
        return;
    if (key_count >= (int64_t)request->arg_count - 2) {
        reply_syntax_error(request);
        return;
    }
    if (!zset_parse_end(request, 2 + (uint32_t)key_count, &pop.greatest) ||
        !zset_parse_pop_count(request, 3 + (uint32_t)key_count, &pop.count))
        return;
    for (uint32_t i = 0; i < request->key_count; i++) {
        const struct key *key = &request->keys[i];

        if (!zset_edit(&edit, request, key))
            return;
        if (edit.is_new)
            continue;
        reply_array(request, 2);
        reply_bulk(request, key->name);
        zset_pop_effect(request, key, pop.greatest, zset_pop(&edit, &pop, request->out, request->proto));
        return;
    }
    reply_null_array(request);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

const struct command_row sorted_set_pop_commands[] = {
    {.name = "zpopmin", .run = cmd_zpopmin, .arity = -2, .access = ACCESS_STRIPED, .flags = "write fast alone",
     .categories = "@write @sortedset @fast", .keys = "RW,ACCESS,DELETE@index:1@range:0,1,0", .group = "sorted_set",
     .since = "5.0.0", .summary = "Removes the members of the lowest scores and returns them.",
     .complexity = "O(M*log(N)) for M members out of N", .syntax = "ZPOPMIN key [count]"},
    {.name = "zpopmax", .run = cmd_zpopmax, .arity = -2, .access = ACCESS_STRIPED, .flags = "write fast alone",
     .categories = "@write @sortedset @fast", .keys = "RW,ACCESS,DELETE@index:1@range:0,1,0", .group = "sorted_set",
     .since = "5.0.0", .summary = "Removes the members of the highest scores and returns them.",
     .complexity = "O(M*log(N)) for M members out of N", .syntax = "ZPOPMAX key [count]"},
    {.name = "zmpop", .run = cmd_zmpop, .arity = -4, .access = ACCESS_STRIPED, .flags = "write movablekeys alone",
     .categories = "@write @sortedset @slow", .keys = "RW,ACCESS,DELETE@index:1@keynum:0,1,1", .group = "sorted_set",
     .since = "7.0.0", .summary = "Removes members from an end of the first of several sorted sets that has any.",
     .complexity = "O(K)+O(M*log(N)) for K keys and M members out of N",
     .syntax = "ZMPOP numkeys key [key ...] (MIN|MAX) [COUNT count]"},
    {.name = NULL},
};
