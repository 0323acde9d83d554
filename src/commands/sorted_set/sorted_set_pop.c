/* Removing members from an end of a sorted set: ZPOPMIN and similar commands. */
#include "commands/shared/families.h"

#include "base/number.h"
#include "commands/shared/operations.h"
#include "commands/sorted_set/sorted_set.h"
#include "server/run/blocked.h"

struct zset_pop {
    bool greatest;  /* from the end of the greatest scores */
    uint64_t count; /* at most; not 0 */
    enum zset_form form;
};

/* These members go, whichever are the least or greatest elsewhere. */
static void operation_popped(const struct edit *edit, struct zset_span span)
{
    struct operation_list popped;
    struct zset_walk walk;
    struct slice member;
    double score;

    operation_list_begin(&popped, edit->request);
    if (operation_list_is_wanted(&popped)) {
        zset_walk_begin(&walk, edit->value, span, false);
        while (zset_walk_next(&walk, &member, &score))
            operation_list_add(&popped, member);
    }
    operation_list_end(&popped, (const struct slice[]){SLICE("ZREM"), edit->change.key->name}, 2);
}

/* Replies the members that it removes from the set being edited (which exists), then ends the edit with its event.
 * Returns their number. is_part: within a reply that was begun already. */
static uint64_t pop_members(struct edit *edit, const struct zset_pop *pop, bool is_part)
{
    struct request *request = edit->request;
    uint64_t all = zset_count(edit->value), count = MIN(pop->count, all);
    struct zset_span span = {pop->greatest ? all - count : 0, pop->greatest ? all : count};

    (is_part ? zset_reply_members : zset_reply_span)(request->out, request->proto, edit->value, span, pop->greatest,
                                                     pop->form);
    operation_popped(edit, span);
    zset_end_with_removal(edit, span, pop->greatest ? "zpopmax" : "zpopmin");
    return count;
}

/* The effect of a command that names several keys: "ZPOPMIN key count". */
static void effect_popped(struct request *request, const struct key *key, bool greatest, uint64_t count)
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
        (void)pop_members(&edit, &pop, false);
}

static void cmd_zpopmin(struct request *request)
{
    pop_end(request, false);
}

static void cmd_zpopmax(struct request *request)
{
    pop_end(request, true);
}

static bool parse_end(struct request *request, uint32_t index, bool *greatest)
{
    *greatest = request_arg_is(request, index, "MAX");
    if (*greatest || request_arg_is(request, index, "MIN"))
        return true;
    reply_syntax_error(request);
    return false;
}

/* "numkeys key [key ...] MIN|MAX [COUNT count]" from argument `index` on. False: an error was replied. */
static bool parse_pop_of_several(struct request *request, uint32_t index, struct zset_pop *pop)
{
    int64_t key_count, count = 1;

    pop->form = ZSET_NESTED_SCORES;
    if (!request_arg_range(request, index, 1, INT64_MAX, &key_count, "ERR numkeys should be greater than 0"))
        return false;
    if (key_count >= (int64_t)request->arg_count - (int64_t)index - 1) {
        reply_syntax_error(request);
        return false;
    }
    index += 1 + (uint32_t)key_count;
    if (!parse_end(request, index++, &pop->greatest))
        return false;
    if (index + 1 < request->arg_count && request_arg_is(request, index, "COUNT")) {
        if (!request_arg_range(request, index + 1, 1, INT64_MAX, &count, "ERR count should be greater than 0"))
            return false;
        index += 2;
    }
    pop->count = (uint64_t)count;
    if (index == request->arg_count)
        return true;
    reply_syntax_error(request);
    return false;
}

/* From the first set that has something. False: there is none, and nothing was replied. */
static bool pop_of_several(struct request *request, const struct zset_pop *pop)
{
    uint32_t index = 0;
    struct edit edit;
    bool failed;

    if (!edit_begin_next(&edit, request, &index, TYPE_ZSET, &failed))
        return failed;
    reply_array(request, 2);
    reply_bulk(request, request->keys[index].name);
    effect_popped(request, &request->keys[index], pop->greatest, pop_members(&edit, pop, false));
    return true;
}

static void cmd_zmpop(struct request *request)
{
    struct zset_pop pop;

    if (parse_pop_of_several(request, 1, &pop) && !pop_of_several(request, &pop))
        reply_null_array(request);
}

static void wait_for_sets(struct request *request, int64_t timeout_ms)
{
    block_client(request, &(const struct block_wish){.type = TYPE_ZSET,
                                                     .keys = request->keys,
                                                     .key_count = request->key_count,
                                                     .timeout_ms = timeout_ms});
}

static void cmd_bzmpop(struct request *request)
{
    struct zset_pop pop;
    int64_t timeout_ms;

    if (request_arg_timeout(request, 1, &timeout_ms) && parse_pop_of_several(request, 2, &pop) &&
        !pop_of_several(request, &pop))
        wait_for_sets(request, timeout_ms);
}

static void pop_or_wait(struct request *request, bool greatest)
{
    const struct zset_pop pop = {.greatest = greatest, .count = 1, .form = ZSET_FLAT_SCORES};
    uint32_t index = 0;
    int64_t timeout_ms;
    struct edit edit;
    bool failed;

    if (!request_arg_timeout(request, request->arg_count - 1, &timeout_ms))
        return;
    if (edit_begin_next(&edit, request, &index, TYPE_ZSET, &failed)) {
        const struct slice effect[] = {greatest ? SLICE("ZPOPMAX") : SLICE("ZPOPMIN"), request->keys[index].name};

        reply_array(request, 3);
        reply_bulk(request, request->keys[index].name);
        (void)pop_members(&edit, &pop, true);
        effect_set(request, effect, countof(effect));
    } else if (!failed) {
        wait_for_sets(request, timeout_ms);
    }
}

static void cmd_bzpopmin(struct request *request)
{
    pop_or_wait(request, false);
}

static void cmd_bzpopmax(struct request *request)
{
    pop_or_wait(request, true);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row sorted_set_pop_commands[] = {
    {.name = "zpopmin", .run = cmd_zpopmin, .arity = -2, .access = ACCESS_STRIPED, .flags = "write fast alone",
     .categories = "@write @sortedset @fast", .keys = "RW,ACCESS,DELETE@index:1@range:0,1,0", .group = "sorted-set",
     .since = "5.0.0", .summary = "Removes and returns the members with the lowest scores.",
     .complexity = "O(M*log(N)) for M members out of N", .syntax = "ZPOPMIN key [count]"},
    {.name = "zpopmax", .run = cmd_zpopmax, .arity = -2, .access = ACCESS_STRIPED, .flags = "write fast alone",
     .categories = "@write @sortedset @fast", .keys = "RW,ACCESS,DELETE@index:1@range:0,1,0", .group = "sorted-set",
     .since = "5.0.0", .summary = "Removes and returns the members with the highest scores.",
     .complexity = "O(M*log(N)) for M members out of N", .syntax = "ZPOPMAX key [count]"},
    {.name = "zmpop", .run = cmd_zmpop, .arity = -4, .access = ACCESS_STRIPED, .flags = "write movablekeys alone",
     .categories = "@write @sortedset @slow", .keys = "RW,ACCESS,DELETE@index:1@keynum:0,1,1", .group = "sorted-set",
     .since = "7.0.0", .summary = "Removes and returns members of the first sorted set that is not empty.",
     .complexity = "O(K)+O(M*log(N)) for K keys and M members out of N",
     .syntax = "ZMPOP numkeys key [key ...] (MIN|MAX) [COUNT count]"},
    {.name = "bzpopmin", .run = cmd_bzpopmin, .arity = -3, .access = ACCESS_STRIPED,
     .flags = "write blocking fast alone", .categories = "@write @sortedset @fast @blocking",
     .keys = "RW,ACCESS,DELETE@index:1@range:-2,1,0", .group = "sorted-set", .since = "5.0.0",
     .summary = "Removes and returns the member with the lowest score of the first sorted set that is not empty. "
                "Blocks until there is one.",
     .complexity = "O(log(N)) for N members", .syntax = "BZPOPMIN key [key ...] timeout",
     .history = "6.0.0=A timeout may be a fraction of a second."},
    {.name = "bzpopmax", .run = cmd_bzpopmax, .arity = -3, .access = ACCESS_STRIPED,
     .flags = "write blocking fast alone", .categories = "@write @sortedset @fast @blocking",
     .keys = "RW,ACCESS,DELETE@index:1@range:-2,1,0", .group = "sorted-set", .since = "5.0.0",
     .summary = "Removes and returns the member with the highest score of the first sorted set that is not empty. "
                "Blocks until there is one.",
     .complexity = "O(log(N)) for N members", .syntax = "BZPOPMAX key [key ...] timeout",
     .history = "6.0.0=A timeout may be a fraction of a second."},
    {.name = "bzmpop", .run = cmd_bzmpop, .arity = -5, .access = ACCESS_STRIPED,
     .flags = "write blocking movablekeys alone", .categories = "@write @sortedset @slow @blocking",
     .keys = "RW,ACCESS,DELETE@index:2@keynum:0,1,1", .group = "sorted-set", .since = "7.0.0",
     .summary = "Removes and returns members of the first sorted set that is not empty. Blocks until there is one.",
     .complexity = "O(K)+O(M*log(N)) for K keys and M members out of N",
     .syntax = "BZMPOP timeout numkeys key [key ...] (MIN|MAX) [COUNT count]"},
    {.name = NULL},
};
/* clang-format on */
