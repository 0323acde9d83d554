/* Sets: members, and what sets have in common. */
#include "commands/shared/families.h"

#include "base/mem.h"
#include "commands/shared/operations.h"
#include "commands/shared/random_count.h"
#include "commands/shared/scan_options.h"
#include "commands/shared/type_options.h"
#include "commands/shared/typed.h"
#include "data/hyperloglog.h"
#include "data/set.h"

/* ---------------------------------------------------------------------------------------------- adding, removing -- */

static bool edit_set(struct edit *edit, struct request *request, const struct key *key)
{
    return edit_begin(edit, request, key, TYPE_SET);
}

static bool add_member(struct edit *edit, const struct set_limits *limits, struct slice member)
{
    if (edit->value.data == NULL)
        edit->value = set_create(limits, member, 1);
    return set_add(&edit->value, limits, member);
}

static void cmd_sadd(struct request *request)
{
    const struct set_limits limits = type_set_limits();
    struct operation_list changed;
    struct edit edit;
    int64_t added = 0;

    if (!edit_set(&edit, request, &request->keys[0]))
        return;
    operation_members_begin(&changed, request);
    for (uint32_t i = 2; i < request->arg_count; i++) {
        if (!add_member(&edit, &limits, request_arg(request, i)))
            continue;
        operation_list_add(&changed, request_arg(request, i));
        added++;
    }
    if (added > 0)
        edit_end(&edit, EVENT_SET, "sadd");
    operation_members_end(&changed);
    reply_int(request, added);
}

static void end_removal(struct edit *edit, const char *event)
{
    if (set_count(edit->value) == 0)
        edit_end_empty(edit, EVENT_SET, event);
    else
        edit_end(edit, EVENT_SET, event);
}

static void cmd_srem(struct request *request)
{
    struct operation_list changed;
    struct edit edit;
    int64_t removed = 0;

    if (!edit_set(&edit, request, &request->keys[0]))
        return;
    operation_members_begin(&changed, request);
    for (uint32_t i = 2; !edit.is_new && i < request->arg_count; i++) {
        if (!set_remove(&edit.value, request_arg(request, i)))
            continue;
        operation_list_add(&changed, request_arg(request, i));
        removed++;
    }
    if (removed > 0) {
        edit_forget_args(&edit, 2, 1);
        end_removal(&edit, "srem");
    }
    operation_members_end(&changed);
    reply_int(request, removed);
}

static void cmd_smove(struct request *request)
{
    const struct set_limits limits = type_set_limits();
    struct slice member = request_arg(request, 3);
    struct edit from, to;
    struct value set;

    if (!typed_find(request, &request->keys[0], TYPE_SET, &set))
        return;
    if (set.data == NULL) {
        (void)access_find(request->access, request->db, &request->keys[1]); /* it goes if it is past its deadline */
        reply_int(request, 0);
        return;
    }
    if (!typed_find(request, &request->keys[1], TYPE_SET, &(struct value){NULL, ENCODING_RAW}))
        return;
    if (slice_equal(request->keys[0].name, request->keys[1].name)) {
        reply_int(request, set_has(set, member));
        return;
    }
    if (!edit_set(&from, request, &request->keys[0]))
        return;
    if (!set_remove(&from.value, member)) {
        reply_int(request, 0);
        return;
    }
    edit_forget(&from, member);
    end_removal(&from, "srem");
    if (!edit_set(&to, request, &request->keys[1]))
        return;
    if (add_member(&to, &limits, member))
        edit_end(&to, EVENT_SET, "sadd");
    operation_add(request, (const struct slice[]){SLICE("SREM"), request->keys[0].name, member}, 3);
    operation_add(request, (const struct slice[]){SLICE("SADD"), request->keys[1].name, member}, 3);
    reply_int(request, 1);
}

/* ----------------------------------------------------------------------------------------------------- reading -- */

static bool read_set(struct request *request, const struct key *key, struct value *set)
{
    return typed_read(request, key, TYPE_SET, set);
}

static void cmd_sismember(struct request *request)
{
    struct value set;

    if (read_set(request, &request->keys[0], &set))
        reply_int(request, set.data != NULL && set_has(set, request_arg(request, 2)));
}

static void cmd_smismember(struct request *request)
{
    struct value set;

    if (!read_set(request, &request->keys[0], &set))
        return;
    reply_array(request, request->arg_count - 2);
    for (uint32_t i = 2; i < request->arg_count; i++)
        reply_int(request, set.data != NULL && set_has(set, request_arg(request, i)));
}

static void cmd_scard(struct request *request)
{
    struct value set;

    if (read_set(request, &request->keys[0], &set))
        reply_int(request, set.data != NULL ? (int64_t)set_count(set) : 0);
}

static void print_member(struct slice member, void *context)
{
    reply_bulk(context, member);
}

static void cmd_smembers(struct request *request)
{
    struct value set;

    if (!read_set(request, &request->keys[0], &set))
        return;
    reply_set(request, set.data != NULL ? set_count(set) : 0);
    if (set.data != NULL)
        set_each(set, print_member, request);
}

struct scan_printer {
    struct request *request;
    struct scan_options options;
    uint64_t count;
};

static void print_if_wanted(struct slice member, void *context)
{
    struct scan_printer *printer = context;

    if (!scan_wants(&printer->options, member))
        return;
    reply_bulk(printer->request, member);
    printer->count++;
}

static void cmd_sscan(struct request *request)
{
    struct scan_printer printer = {.request = request};
    struct scan_reply reply;
    struct value set;
    uint64_t cursor;

    if (!scan_parse_cursor(request, 2, &cursor) || !read_set(request, &request->keys[0], &set))
        return;
    if (set.data == NULL) {
        scan_reply_nothing(request);
        return;
    }
    if (!scan_parse_options(request, 3, 0, &printer.options))
        return;
    reply = scan_reply_begin(request);
    cursor = set_scan(set, cursor, (uint64_t)printer.options.want, print_if_wanted, &printer);
    scan_reply_end(request, reply, cursor, printer.count);
}

/* --------------------------------------------------------------------------------------------------- random members
 * -- */

/* A random_count_reply_fn; the context is the set. */
static void reply_random_member(struct request *request, void *context)
{
    const struct value *set = context;
    char scratch[NUMBER_I64_SPACE];

    reply_bulk(request, set_random(*set, random_thread(), scratch));
}

static void reply_random_members(struct request *request, struct value set, const struct random_count *wanted)
{
    uint64_t count = wanted->count;

    if (set.data == NULL) {
        reply_array(request, 0);
    } else if (wanted->repeats) {
        random_count_reply_repeats(request, wanted, count, reply_random_member, &set);
    } else {
        count = MIN(count, set_count(set));
        reply_array(request, count);
        if (count != 0)
            set_random_some(set, random_thread(), count, print_member, request);
    }
}

static void cmd_srandmember(struct request *request)
{
    char scratch[NUMBER_I64_SPACE];
    struct random_count wanted;
    struct value set;

    if (request->arg_count > 3) {
        reply_syntax_error(request);
        return;
    }
    if (request->arg_count == 3) {
        if (random_count_parse(request, 2, &wanted) && random_count_check(request, &wanted) &&
            read_set(request, &request->keys[0], &set))
            reply_random_members(request, set, &wanted);
        return;
    }
    if (!read_set(request, &request->keys[0], &set))
        return;
    if (set.data == NULL)
        reply_null(request);
    else
        reply_bulk(request, set_random(set, random_thread(), scratch));
}

/* Members that were chosen, to be taken out afterwards: names one behind the other. */
struct chosen {
    struct buffer bytes;
    struct slice *members; /* of `bytes`, once it is complete; behind two words for the effect */
    size_t *sizes;
    uint32_t count;
    uint64_t most;
};

enum { EFFECT_WORDS = 2 };

static void choose(struct slice member, void *context)
{
    struct chosen *chosen = context;

    chosen->sizes[chosen->count++] = member.size;
    buffer_append_slice(&chosen->bytes, member);
}

static void chosen_init(struct chosen *chosen, uint64_t most)
{
    *chosen = (struct chosen){.members = mem_alloc((most + EFFECT_WORDS) * sizeof(*chosen->members)),
                              .sizes = mem_alloc(most * sizeof(*chosen->sizes)),
                              .most = most};
}

static void chosen_complete(struct chosen *chosen, struct slice key)
{
    const char *at = chosen->bytes.data;

    chosen->members[0] = SLICE("SREM");
    chosen->members[1] = key;
    for (uint32_t i = 0; i < chosen->count; i++) {
        chosen->members[EFFECT_WORDS + i] = slice_make(at, chosen->sizes[i]);
        at += chosen->sizes[i];
    }
}

static void chosen_fini(struct chosen *chosen)
{
    buffer_fini(&chosen->bytes);
    mem_free(chosen->members);
    mem_free(chosen->sizes);
}

static void note_popped(struct slice member, void *context)
{
    operation_list_add(context, member);
}

/* All members are removed: the key is deleted, and the effect is that deletion. For peers only these members go. */
static void pop_all(struct request *request, struct edit *edit)
{
    struct operation_list operation;

    set_each(edit->value, print_member, request);
    operation_list_begin(&operation, request);
    if (operation_list_is_wanted(&operation))
        set_each(edit->value, note_popped, &operation);
    operation_list_end(&operation, (const struct slice[]){SLICE("SREM"), request_arg(request, 1)}, 2);
    edit_end(edit, EVENT_SET, "spop");
    (void)access_delete(request->access, request->db, &request->keys[0]);
    effect_set(request, (const struct slice[]){SLICE("DEL"), request_arg(request, 1)}, 2);
}

static void take_chosen(struct edit *edit, struct chosen *chosen)
{
    set_random_some(edit->value, random_thread(), chosen->most, choose, chosen);
    chosen_complete(chosen, edit->change.key->name);
    for (uint32_t i = 0; i < chosen->count; i++) {
        bool removed = set_remove(&edit->value, chosen->members[EFFECT_WORDS + i]);

        assert(removed);
        edit_forget(edit, chosen->members[EFFECT_WORDS + i]);
    }
}

/* As large sets are made, whatever there is: a set does not go back to an earlier form. */
static const struct set_limits no_small_form = {0, 0, 0};

static void keep_member(struct slice member, void *context)
{
    set_add_new(context, &no_small_form, member);
}

struct rest {
    struct value kept;
    struct chosen *chosen;
};

static void choose_rest(struct slice member, void *context)
{
    const struct rest *rest = context;

    if (!set_has(rest->kept, member))
        choose(member, rest->chosen);
}

/* The same if few are left: these are chosen. */
static void take_all_but_few(struct edit *edit, struct chosen *chosen)
{
    struct rest rest = {set_create(&no_small_form, SLICE_EMPTY, 1), chosen};

    set_random_some(edit->value, random_thread(), set_count(edit->value) - chosen->most, keep_member, &rest.kept);
    set_each(edit->value, choose_rest, &rest);
    chosen_complete(chosen, edit->change.key->name);
    edit_replace(edit, rest.kept);
}

static void pop_some(struct request *request, struct edit *edit, uint64_t count)
{
    const bool leaves_few = edit->value.encoding == ENCODING_HASHTABLE &&
                            edit_leaves_few(edit, set_count(edit->value) - count, count);
    struct chosen chosen;

    chosen_init(&chosen, count);
    if (leaves_few)
        take_all_but_few(edit, &chosen);
    else
        take_chosen(edit, &chosen);
    assert(chosen.count == count);
    for (uint32_t i = 0; i < chosen.count; i++)
        reply_bulk(request, chosen.members[EFFECT_WORDS + i]);
    edit_end(edit, EVENT_SET, "spop");
    effect_set(request, chosen.members, chosen.count + EFFECT_WORDS);
    chosen_fini(&chosen);
}

static void pop_one(struct request *request, struct edit *edit)
{
    char scratch[NUMBER_I64_SPACE];
    struct slice member = set_random(edit->value, random_thread(), scratch);
    struct buffer copy = {0};
    bool removed;

    buffer_append_slice(&copy, member); /* it goes with its place */
    member = copy.size != 0 ? buffer_slice(&copy) : SLICE("");
    removed = set_remove(&edit->value, member);
    assert(removed);
    edit_forget(edit, member);
    reply_bulk(request, member);
    end_removal(edit, "spop");
    effect_set(request, (const struct slice[]){SLICE("SREM"), request_arg(request, 1), member}, 3);
    buffer_fini(&copy);
}

static void pop_count(struct request *request)
{
    struct edit edit;
    int64_t count;

    if (!request_arg_range(request, 2, 0, INT64_MAX, &count, "ERR value is out of range, must be positive") ||
        !edit_set(&edit, request, &request->keys[0]))
        return;
    if (edit.is_new || count == 0) {
        reply_set(request, 0);
    } else if ((uint64_t)count >= set_count(edit.value)) {
        reply_set(request, set_count(edit.value));
        pop_all(request, &edit);
    } else {
        reply_set(request, (uint64_t)count);
        pop_some(request, &edit, (uint64_t)count);
    }
}

static void cmd_spop(struct request *request)
{
    struct edit edit;

    if (request->arg_count > 3) {
        reply_syntax_error(request);
    } else if (request->arg_count == 3) {
        pop_count(request);
    } else if (edit_set(&edit, request, &request->keys[0])) {
        if (edit.is_new)
            reply_null(request);
        else
            pop_one(request, &edit);
    }
}

/* ----------------------------------------------------------------------------------------------------- algebra -- */

enum { ASKED_IN_TURN_MOST = 4 };

/* Where members of a result go: a reply, a count, or a set to be stored. */
struct result {
    struct request *request;
    bool stores;
    struct value set;      /* for `stores`, or the members found before; data NULL: none yet */
    uint64_t count, limit; /* limit 0: none */
};

/* Each member comes once. */
static void result_add(struct result *result, struct slice member)
{
    const struct set_limits limits = type_set_limits();

    result->count++;
    if (!result->stores) {
        if (result->request != NULL)
            reply_bulk(result->request, member);
        return;
    }
    if (result->set.data == NULL)
        result->set = set_create(&limits, member, 1);
    set_add_new(&result->set, &limits, member);
}

/* The sets of the keys from `first` on; data NULL: the key does not exist. NULL: a key has another type, an error was
 * replied. The caller frees the result. */
static struct value *read_sets(struct request *request, uint32_t first)
{
    uint32_t count = request->key_count - first;
    struct value *sets = mem_alloc(MAX(count, 1U) * sizeof(*sets));

    for (uint32_t i = 0; i < count; i++) {
        if (!read_set(request, &request->keys[first + i], &sets[i])) {
            mem_free(sets);
            return NULL;
        }
    }
    return sets;
}

struct sifting {
    const struct value *sets; /* members must be in all of them, or in none */
    uint32_t count;
    bool wanted;
    struct result *result;
};

static void sift(struct slice member, void *context)
{
    const struct sifting *sifting = context;

    if (sifting->result->limit != 0 && sifting->result->count == sifting->result->limit)
        return;
    for (uint32_t i = 0; i < sifting->count; i++) {
        if ((sifting->sets[i].data != NULL && set_has(sifting->sets[i], member)) != sifting->wanted)
            return;
    }
    result_add(sifting->result, member);
}

/* Walks the smallest set and asks the others. The sets change places. */
static void intersect(struct value *sets, uint32_t count, struct result *result)
{
    struct sifting sifting = {&sets[1], count - 1, true, result};

    for (uint32_t i = 0; i < count; i++) {
        if (sets[i].data == NULL)
            return;
        if (set_count(sets[i]) < set_count(sets[0])) {
            struct value smaller = sets[i];

            sets[i] = sets[0];
            sets[0] = smaller;
        }
    }
    set_each(sets[0], sift, &sifting);
}

static void subtract(struct value *sets, uint32_t count, struct result *result)
{
    struct sifting sifting = {&sets[1], count - 1, false, result};

    if (sets[0].data != NULL)
        set_each(sets[0], sift, &sifting);
}

/* Of several sets; each member once, though it is in some of them. Few sets are asked in turn whether they had it
 * before, which takes no memory; of many the members are put into one. Those before `first` were added already. */
static void unite_few(struct value *sets, uint32_t first, uint32_t count, struct result *result)
{
    for (uint32_t i = first; i < count; i++) {
        struct sifting sifting = {sets, i, false, result};

        if (sets[i].data != NULL)
            set_each(sets[i], sift, &sifting);
    }
}

static void gather(struct slice member, void *context)
{
    const struct set_limits limits = type_set_limits();
    struct value *set = context;

    if (set->data == NULL)
        *set = set_create(&limits, member, 1);
    (void)set_add(set, &limits, member);
}

static struct value gather_all(const struct value *sets, uint32_t count)
{
    struct value all = {NULL, ENCODING_RAW};

    for (uint32_t i = 0; i < count; i++)
        if (sets[i].data != NULL)
            set_each(sets[i], gather, &all);
    return all;
}

static void pass_on(struct slice member, void *context)
{
    result_add(context, member);
}

static void unite(struct value *sets, uint32_t count, struct result *result)
{
    struct value all;

    if (count <= ASKED_IN_TURN_MOST) {
        unite_few(sets, 0, count, result);
        return;
    }
    all = gather_all(sets, count);
    if (all.data == NULL)
        return;
    if (result->stores) {
        result->set = all;
        return;
    }
    set_each(all, pass_on, result);
    set_ops.destroy(all);
}

typedef void (*algebra_fn)(struct value *sets, uint32_t count, struct result *result);

static void reply_algebra(struct request *request, algebra_fn algebra)
{
    struct result result = {.request = request};
    struct value *sets = read_sets(request, 0);
    struct resp_deferred head;

    if (sets == NULL)
        return;
    head = resp_begin_deferred(request->out);
    algebra(sets, request->key_count, &result);
    resp_end_deferred(request->out, request->proto, head, RESP_SET, result.count);
    mem_free(sets);
}

static void cmd_sinter(struct request *request)
{
    reply_algebra(request, intersect);
}

static void cmd_sdiff(struct request *request)
{
    reply_algebra(request, subtract);
}

static void cmd_sunion(struct request *request)
{
    reply_algebra(request, unite);
}

/* The first key gets the result, whatever it was before; without members it goes. */
static void store_algebra(struct request *request, algebra_fn algebra, const char *event)
{
    const struct key *key = &request->keys[0];
    struct result result = {.stores = true};
    struct value *sets = read_sets(request, 1);
    struct change change;

    if (sets == NULL)
        return;
    algebra(sets, request->key_count - 1, &result);
    mem_free(sets);
    if (result.set.data == NULL) {
        if (access_delete(request->access, request->db, key))
            operation_add_delete(request, request->db, key->name);
        reply_int(request, 0);
        return;
    }
    (void)access_probe(request->access, request->db, key);
    change_begin(&change, request->access, request->db, key);
    change_put_value(&change, TYPE_SET, result.set, EXPIRE_NEVER);
    change_end(&change, EVENT_SET | EVENT_REPLACES, event);
    operation_add_value(request, request->db, key);
    reply_int(request, (int64_t)set_count(result.set));
}

static void cmd_sinterstore(struct request *request)
{
    store_algebra(request, intersect, "sinterstore");
}

static void cmd_sunionstore(struct request *request)
{
    store_algebra(request, unite, "sunionstore");
}

static void cmd_sdiffstore(struct request *request)
{
    store_algebra(request, subtract, "sdiffstore");
}

/* "numkeys key [key ...] [LIMIT limit]", also "[APPROX]" if `approximates` is not NULL. False: an error was replied. */
static bool parse_card(struct request *request, uint64_t *limit, bool *approximates)
{
    int64_t key_count, most = 0;

    if (!request_arg_range(request, 1, 1, INT64_MAX, &key_count, "ERR numkeys should be greater than 0"))
        return false;
    if (key_count > (int64_t)request->arg_count - 2) {
        reply_error(request, "ERR Number of keys can't be greater than number of args");
        return false;
    }
    for (uint32_t i = 2 + (uint32_t)key_count; i < request->arg_count; i++) {
        if (approximates != NULL && request_arg_is(request, i, "APPROX")) {
            *approximates = true;
            continue;
        }
        if (!request_arg_is(request, i, "LIMIT") || i + 1 == request->arg_count) {
            reply_syntax_error(request);
            return false;
        }
        if (!request_arg_range(request, ++i, 0, INT64_MAX, &most, "ERR LIMIT can't be negative"))
            return false;
    }
    *limit = (uint64_t)most;
    return true;
}

static void reply_card(struct request *request, algebra_fn algebra)
{
    struct result result = {.count = 0};
    struct value *sets;

    if (!parse_card(request, &result.limit, NULL))
        return;
    sets = read_sets(request, 0);
    if (sets == NULL)
        return;
    algebra(sets, request->key_count, &result);
    reply_int(request, (int64_t)result.count);
    mem_free(sets);
}

static void cmd_sintercard(struct request *request)
{
    reply_card(request, intersect);
}

static void cmd_sdiffcard(struct request *request)
{
    reply_card(request, subtract);
}

static void put_largest_first(struct value *sets, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct value first = sets[0];

        if (sets[i].data == NULL || (first.data != NULL && set_count(sets[i]) <= set_count(first)))
            continue;
        sets[0] = sets[i];
        sets[i] = first;
    }
}

/* The largest set is counted without a walk. If it reaches the limit that is enough; if not, no set does, so the limit
 * bounds what is walked and gathered. */
static uint64_t count_union(struct value *sets, uint32_t count, uint64_t limit)
{
    struct result result = {.limit = limit};
    struct value all;

    put_largest_first(sets, count);
    if (sets[0].data == NULL)
        return 0;
    result.count = set_count(sets[0]);
    if (limit != 0 && result.count >= limit)
        return limit;
    if (count > ASKED_IN_TURN_MOST) {
        all = gather_all(sets, count);
        result.count = limit != 0 ? MIN(set_count(all), limit) : set_count(all);
        set_ops.destroy(all);
        return result.count;
    }
    unite_few(sets, 1, count, &result);
    return result.count;
}

static void raise_register(struct slice member, void *context)
{
    const struct hll_place place = hll_place_of(member);
    struct hll_registers *registers = context;

    if (registers->ranks[place.index] < place.rank)
        registers->ranks[place.index] = (uint8_t)place.rank;
}

/* Within about 0.8 %, as PFCOUNT counts, and in no more memory whatever the sets are. */
static uint64_t estimate_union(const struct value *sets, uint32_t count, uint64_t limit)
{
    struct hll_registers registers = {{0}};
    uint64_t estimate;

    for (uint32_t i = 0; i < count; i++) {
        if (sets[i].data != NULL)
            set_each(sets[i], raise_register, &registers);
    }
    estimate = hll_registers_estimate(&registers);
    return limit != 0 ? MIN(estimate, limit) : estimate;
}

static void cmd_sunioncard(struct request *request)
{
    bool approximates = false;
    struct value *sets;
    uint64_t limit;

    if (!parse_card(request, &limit, &approximates))
        return;
    sets = read_sets(request, 0);
    if (sets == NULL)
        return;
    reply_int(request, (int64_t)(approximates ? estimate_union(sets, request->key_count, limit)
                                              : count_union(sets, request->key_count, limit)));
    mem_free(sets);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row set_commands[] = {
    {.name = "sadd", .run = cmd_sadd, .arity = -3, .member = 2, .access = ACCESS_STRIPED, .flags = "write denyoom fast",
     .categories = "@write @set @fast", .keys = "RW,INSERT@index:1@range:0,1,0", .group = "set", .since = "1.0.0",
     .summary = "Adds members to a set.", .complexity = "O(N) for N members", .syntax = "SADD key member [member ...]",
     .history = "2.4.0=Several members in one call."},
    {.name = "srem", .run = cmd_srem, .arity = -3, .member = 2, .access = ACCESS_STRIPED, .flags = "write fast",
     .categories = "@write @set @fast", .keys = "RW,DELETE@index:1@range:0,1,0", .group = "set", .since = "1.0.0",
     .summary = "Removes members. Deletes the set when no member remains.", .complexity = "O(N) for N members",
     .syntax = "SREM key member [member ...]", .history = "2.4.0=Several members in one call."},
    {.name = "smove", .run = cmd_smove, .arity = 4, .access = ACCESS_STRIPED, .flags = "write fast",
     .categories = "@write @set @fast", .keys = "RW,ACCESS,DELETE@index:1@range:0,1,0 RW,INSERT@index:2@range:0,1,0",
     .group = "set", .since = "1.0.0", .summary = "Moves a member from one set to another.", .complexity = "O(1)",
     .syntax = "SMOVE source destination member"},
    {.name = "sismember", .run = cmd_sismember, .arity = 3, .member = 2,
     .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @set @fast", .keys = "RO@index:1@range:0,1,0", .group = "set", .since = "1.0.0",
     .summary = "Checks whether a set has a member.", .complexity = "O(1)", .syntax = "SISMEMBER key member"},
    {.name = "smismember", .run = cmd_smismember, .arity = -3, .member = 2,
     .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @set @fast", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "set", .since = "6.2.0",
     .summary = "Checks for each of several members whether a set has it.", .complexity = "O(N) for N members",
     .syntax = "SMISMEMBER key member [member ...]"},
    {.name = "scard", .run = cmd_scard, .arity = 2, .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @set @fast", .keys = "RO@index:1@range:0,1,0", .group = "set", .since = "1.0.0",
     .summary = "Returns how many members a set has.", .complexity = "O(1)", .syntax = "SCARD key"},
    {.name = "smembers", .run = cmd_smembers, .arity = 2, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @set @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "set", .since = "1.0.0",
     .summary = "Returns every member of a set.", .complexity = "O(N) for a set of N members", .syntax = "SMEMBERS key",
     .tips = "nondeterministic_output_order"},
    {.name = "sscan", .run = cmd_sscan, .arity = -3, .access = ACCESS_STRIPED, .flags = "readonly",
     .categories = "@read @set @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "set", .since = "2.8.0",
     .summary = "Iterates over the members of a set.",
     .complexity = "O(1) for each step, O(N) for all N members",
     .syntax = "SSCAN key cursor [MATCH pattern] [COUNT count]", .tips = "nondeterministic_output"},
    {.name = "srandmember", .run = cmd_srandmember, .arity = -2, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @set @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "set", .since = "1.0.0",
     .summary = "Returns random members of a set.", .complexity = "O(N) for N members returned",
     .syntax = "SRANDMEMBER key [count]", .arg_since = "count:2.6.0", .tips = "nondeterministic_output",
     .history = "2.6.0=The argument `count`."},
    {.name = "spop", .run = cmd_spop, .arity = -2, .access = ACCESS_STRIPED, .flags = "write fast alone",
     .categories = "@write @set @fast", .keys = "RW,ACCESS,DELETE@index:1@range:0,1,0", .group = "set",
     .since = "1.0.0", .summary = "Removes and returns random members of a set.",
     .complexity = "O(N) for N members returned", .syntax = "SPOP key [count]", .arg_since = "count:3.2.0",
     .tips = "nondeterministic_output", .history = "3.2.0=The argument `count`."},
    {.name = "sinter", .run = cmd_sinter, .arity = -2, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @set @slow", .keys = "RO,ACCESS@index:1@range:-1,1,0", .group = "set", .since = "1.0.0",
     .summary = "Returns the intersection of sets.",
     .complexity = "O(N*M) for M sets of which the smallest has N members", .syntax = "SINTER key [key ...]",
     .tips = "nondeterministic_output_order"},
    {.name = "sintercard", .run = cmd_sintercard, .arity = -3, .access = ACCESS_STRIPED,
     .flags = "readonly movablekeys alone", .categories = "@read @set @slow", .keys = "RO,ACCESS@index:1@keynum:0,1,1",
     .group = "set", .since = "7.0.0", .summary = "Returns the number of members in the intersection of sets.",
     .complexity = "O(N*M) for M sets of which the smallest has N members",
     .syntax = "SINTERCARD numkeys key [key ...] [LIMIT limit]"},
    {.name = "sinterstore", .run = cmd_sinterstore, .arity = -3, .access = ACCESS_STRIPED,
     .flags = "write denyoom alone", .categories = "@write @set @slow",
     .keys = "OW,UPDATE@index:1@range:0,1,0 RO,ACCESS@index:2@range:-1,1,0", .group = "set", .since = "1.0.0",
     .summary = "Stores the intersection of sets.",
     .complexity = "O(N*M) for M sets of which the smallest has N members",
     .syntax = "SINTERSTORE destination key [key ...]"},
    {.name = "sunion", .run = cmd_sunion, .arity = -2, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @set @slow", .keys = "RO,ACCESS@index:1@range:-1,1,0", .group = "set", .since = "1.0.0",
     .summary = "Returns the union of sets.", .complexity = "O(N) for N members in all",
     .syntax = "SUNION key [key ...]", .tips = "nondeterministic_output_order"},
    {.name = "sunionstore", .run = cmd_sunionstore, .arity = -3, .access = ACCESS_STRIPED,
     .flags = "write denyoom alone", .categories = "@write @set @slow",
     .keys = "OW,UPDATE@index:1@range:0,1,0 RO,ACCESS@index:2@range:-1,1,0", .group = "set", .since = "1.0.0",
     .summary = "Stores the union of sets.", .complexity = "O(N) for N members in all",
     .syntax = "SUNIONSTORE destination key [key ...]"},
    {.name = "sunioncard", .run = cmd_sunioncard, .arity = -3, .access = ACCESS_STRIPED,
     .flags = "readonly movablekeys alone", .categories = "@read @set @slow", .keys = "RO,ACCESS@index:1@keynum:0,1,1",
     .group = "set", .since = "8.10.0",
     .summary = "Returns the number of members in the union of sets, exactly or by an estimate.",
     .complexity = "O(N) for N members in all", .syntax = "SUNIONCARD numkeys key [key ...] [APPROX] [LIMIT limit]"},
    {.name = "sdiff", .run = cmd_sdiff, .arity = -2, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @set @slow", .keys = "RO,ACCESS@index:1@range:-1,1,0", .group = "set", .since = "1.0.0",
     .summary = "Returns the difference of sets.",
     .complexity = "O(N*M) for M sets of which the first has N members", .syntax = "SDIFF key [key ...]",
     .tips = "nondeterministic_output_order"},
    {.name = "sdiffstore", .run = cmd_sdiffstore, .arity = -3, .access = ACCESS_STRIPED,
     .flags = "write denyoom alone", .categories = "@write @set @slow",
     .keys = "OW,UPDATE@index:1@range:0,1,0 RO,ACCESS@index:2@range:-1,1,0", .group = "set", .since = "1.0.0",
     .summary = "Stores the difference of sets.",
     .complexity = "O(N*M) for M sets of which the first has N members",
     .syntax = "SDIFFSTORE destination key [key ...]"},
    {.name = "sdiffcard", .run = cmd_sdiffcard, .arity = -3, .access = ACCESS_STRIPED,
     .flags = "readonly movablekeys alone", .categories = "@read @set @slow", .keys = "RO,ACCESS@index:1@keynum:0,1,1",
     .group = "set", .since = "8.10.0", .summary = "Returns the number of members in the difference of sets.",
     .complexity = "O(N*M) for M sets of which the first has N members",
     .syntax = "SDIFFCARD numkeys key [key ...] [LIMIT limit]"},
    {.name = NULL},
};
/* clang-format on */
