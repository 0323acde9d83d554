/* SORT: the elements of a list, set or sorted set in order of themselves or of what keys named after them hold.
 *
 * The elements are copied out first (gather), get their weights (weigh), are put in order as far as LIMIT asks for
 * (sort_order.h), and go into the reply or a new list (print, store). With patterns that name keys nobody can tell
 * beforehand which stripes that takes: such a SORT owns the gate. */
#include "commands/shared/families.h"

#include "base/mem.h"
#include "commands/keys/sort_order.h"
#include "commands/keys/sort_pattern.h"
#include "commands/shared/operations.h"
#include "commands/shared/type_options.h"
#include "data/zset.h"
#include "server/acl/acl_client.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* ----------------------------------------------------------------------------------------------------- options -- */

struct sort_options {
    struct sort_pattern by;
    bool nosort; /* BY something that names no keys: the elements stay as they are */
    bool descending;
    bool alpha;
    int64_t offset;            /* LIMIT */
    int64_t count;             /* below zero: all */
    struct sort_pattern *gets; /* owned; NULL: the elements themselves are the result */
    uint32_t get_count;
    const struct key *destination; /* NULL: none */
};

static void add_get(struct request *request, uint32_t index, struct sort_options *options)
{
    if (options->gets == NULL)
        options->gets = mem_alloc((request->arg_count - index) * sizeof(*options->gets));
    options->gets[options->get_count++] = sort_pattern_parse(request_arg(request, index));
}

/* How many arguments an option takes, with its name. */
static uint32_t option_words(struct slice word)
{
    if (slice_equal_text_nocase(word, "LIMIT"))
        return 3;
    if (slice_equal_text_nocase(word, "BY") || slice_equal_text_nocase(word, "GET") ||
        slice_equal_text_nocase(word, "STORE"))
        return 2;
    return 1;
}

static bool can_store(const struct request *request)
{
    return (request->command->flags & COMMAND_WRITE) != 0;
}

/* Patterns may lead to any key. False: an error was replied. */
static bool may_look_elsewhere(struct request *request, const char *option)
{
    if (acl_may_read_all_keys(request))
        return true;
    reply_errorf(request, "ERR %s option of SORT denied due to insufficient ACL permissions.", option);
    return false;
}

/* An option that is there with all its words. False: an error was replied. */
static bool parse_option(struct request *request, uint32_t index, struct sort_options *options)
{
    if (request_arg_is(request, index, "ASC")) {
        options->descending = false;
    } else if (request_arg_is(request, index, "DESC")) {
        options->descending = true;
    } else if (request_arg_is(request, index, "ALPHA")) {
        options->alpha = true;
    } else if (request_arg_is(request, index, "LIMIT")) {
        return request_arg_i64(request, index + 1, &options->offset) &&
               request_arg_i64(request, index + 2, &options->count);
    } else if (request_arg_is(request, index, "BY")) {
        options->by = sort_pattern_parse(request_arg(request, index + 1));
        options->nosort |= !options->by.names_keys;
        return !options->by.names_keys || may_look_elsewhere(request, "BY");
    } else if (request_arg_is(request, index, "GET")) {
        if (!may_look_elsewhere(request, "GET"))
            return false;
        add_get(request, index + 1, options);
    } else if (request_arg_is(request, index, "STORE") && can_store(request)) {
        options->destination = &request->keys[1];
    } else {
        reply_syntax_error(request);
        return false;
    }
    return true;
}

static bool parse_options(struct request *request, struct sort_options *options)
{
    uint32_t words;

    for (uint32_t i = 2; i < request->arg_count; i += words) {
        words = option_words(request_arg(request, i));
        if (words > request->arg_count - i) {
            reply_syntax_error(request);
            return false;
        }
        if (!parse_option(request, i, options))
            return false;
    }
    return true;
}

/* Only a SORT with BY or GET patterns for keys uses keys that it does not name. */
static enum access_class sort_access(const struct slice *args, uint32_t arg_count)
{
    for (uint32_t i = 2; i + 1 < arg_count; i += option_words(args[i])) {
        bool names_pattern = slice_equal_text_nocase(args[i], "BY") || slice_equal_text_nocase(args[i], "GET");

        if (names_pattern && sort_pattern_parse(args[i + 1]).names_keys)
            return ACCESS_EXCLUSIVE;
    }
    return ACCESS_STRIPED;
}

/* The source, and the last destination. */
static bool sort_find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    uint32_t destination = 0;

    if (arg_count < 2)
        return false;
    key_positions_add(positions, 1, KEY_RO | KEY_ACCESS);
    for (uint32_t i = 2; i + 1 < arg_count; i += option_words(args[i]))
        if (slice_equal_text_nocase(args[i], "STORE"))
            destination = i + 1;
    if (destination != 0)
        key_positions_add(positions, destination, KEY_OW | KEY_UPDATE);
    return true;
}

static bool sort_ro_find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    (void)args;
    if (arg_count < 2)
        return false;
    key_positions_add(positions, 1, KEY_RO | KEY_ACCESS);
    return true;
}

/* --------------------------------------------------------------------------------------------------- gathering -- */

/* Copies of texts, which stay where they are. */
struct text_chunk {
    struct text_chunk *next;
    char bytes[];
};

enum { CHUNK_FIRST_BYTES = 4096, CHUNK_MOST_BYTES = 1 << 20 };

struct sort {
    struct request *request;
    const struct sort_options *options;
    struct sort_element *elements;
    uint64_t count, room;
    uint64_t skip; /* so many that come next are not wanted */
    struct sort_item *items;
    struct text_chunk *chunks;
    char *free_bytes;
    size_t free_size, chunk_bytes;
    struct sort_lookup lookup;
};

static void add_chunk(struct sort *sort, size_t least)
{
    struct text_chunk *chunk;

    sort->chunk_bytes = sort->chunk_bytes == 0 ? CHUNK_FIRST_BYTES : MIN(2 * sort->chunk_bytes, CHUNK_MOST_BYTES);
    sort->free_size = MAX(least, sort->chunk_bytes);
    chunk = mem_alloc(sizeof(*chunk) + sort->free_size);
    chunk->next = sort->chunks;
    sort->chunks = chunk;
    sort->free_bytes = chunk->bytes;
}

static struct slice keep_text(struct sort *sort, struct slice text)
{
    char *copy;

    if (sort->free_size < text.size + 1)
        add_chunk(sort, text.size + 1);
    copy = sort->free_bytes;
    if (text.size != 0)
        memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    sort->free_bytes += text.size + 1;
    sort->free_size -= text.size + 1;
    return slice_make(copy, text.size);
}

static void gather_text(struct slice text, void *context)
{
    struct sort *sort = context;

    if (sort->skip > 0) {
        sort->skip--;
    } else if (sort->count < sort->room) {
        struct slice copy = keep_text(sort, text);

        sort->elements[sort->count++] = (struct sort_element){copy, {copy}};
    }
}

/* The part of the elements that LIMIT selects. */
struct window {
    uint64_t start, end;
};

static struct window clamp_window(const struct sort_options *options, uint64_t count)
{
    uint64_t start = MIN((uint64_t)MAX(options->offset, INT64_C(0)), count), rest = count - start;

    return (struct window){start, start + (options->count < 0 ? rest : MIN((uint64_t)options->count, rest))};
}

/* Makes room for what will be gathered of so many; returns where to begin. */
static uint64_t expect(struct sort *sort, uint64_t count, bool only_window)
{
    struct window window = {0, count};

    if (only_window)
        window = clamp_window(sort->options, count);
    sort->room = window.end - window.start;
    sort->elements = mem_alloc(MAX(sort->room, UINT64_C(1)) * sizeof(*sort->elements));
    return window.start;
}

/* Unsorted and descending is from the end. */
static void gather_list(struct sort *sort, const struct quicklist *list)
{
    int64_t start = (int64_t)expect(sort, quicklist_count(list), sort->options->nosort);
    bool backward = sort->options->nosort && sort->options->descending;
    char scratch[NUMBER_I64_SPACE];
    struct listpack_value value;
    struct quicklist_iter iter;

    quicklist_iter_init(&iter, list, backward ? -1 - start : start, backward ? QUICKLIST_BACKWARD : QUICKLIST_FORWARD);
    while (sort->count < sort->room && quicklist_iter_next(&iter, &value))
        gather_text(listpack_value_text(&value, scratch), sort);
    quicklist_iter_fini(&iter);
}

static int compare_texts(const void *a, const void *b)
{
    return slice_compare(((const struct sort_element *)a)->text, ((const struct sort_element *)b)->text);
}

/* A set has no defined order that another server would share: stored results, and those of scripts, are always sorted,
 * also members of equal weight. */
static bool needs_order(const struct sort *sort)
{
    return sort->options->destination != NULL || sort->request->in_script;
}

static void gather_set(struct sort *sort, struct value set)
{
    sort->skip = expect(sort, set_count(set), sort->options->nosort && !needs_order(sort));
    set_each(set, gather_text, sort);
    if (needs_order(sort) && sort->options->alpha && sort->options->by.names_keys)
        qsort(sort->elements, sort->count, sizeof(*sort->elements), compare_texts);
}

static void gather_zset(struct sort *sort, struct value zset)
{
    uint64_t start = expect(sort, zset_count(zset), sort->options->nosort), first = start;
    bool backward = sort->options->nosort && sort->options->descending;
    struct zset_walk walk;
    struct slice member;
    double score;

    if (backward)
        first = zset_count(zset) - start - sort->room;
    zset_walk_begin(&walk, zset, (struct zset_span){first, first + sort->room}, backward);
    while (zset_walk_next(&walk, &member, &score))
        gather_text(member, sort);
}

/* False: it is of a type that has no elements to sort, which was replied. */
static bool gather(struct sort *sort, const struct entry *entry)
{
    switch ((enum value_type)entry->type) {
    case TYPE_LIST:
        gather_list(sort, list_of(entry_value(entry)));
        return true;
    case TYPE_SET:
        gather_set(sort, entry_value(entry));
        return true;
    case TYPE_ZSET:
        gather_zset(sort, entry_value(entry));
        return true;
    default:
        return request_expect_type(sort->request, entry, TYPE_LIST);
    }
}

static void sort_fini(struct sort *sort)
{
    while (sort->chunks != NULL) {
        struct text_chunk *next = sort->chunks->next;

        mem_free(sort->chunks);
        sort->chunks = next;
    }
    mem_free(sort->options->gets);
    mem_free(sort->elements);
    mem_free(sort->items);
    buffer_fini(&sort->lookup.name);
}

/* ---------------------------------------------------------------------------------------------------- ordering -- */

/* More tolerant than other commands: accepts leading blanks, the empty text (zero), and an end at a zero byte. */
static bool parse_weight(struct slice text, double *number)
{
    int64_t whole;
    char *end;

    if (number_parse_i64(text, &whole)) {
        *number = (double)whole;
        return true;
    }
    errno = 0;
    *number = strtod(text.data, &end);
    return *end == '\0' && errno != ERANGE && !isnan(*number);
}

static bool weigh_by_number(struct sort *sort)
{
    for (uint64_t i = 0; i < sort->count; i++) {
        struct sort_element *element = &sort->elements[i];
        double number = 0;

        if (element->weight.data != NULL && !parse_weight(element->weight, &number)) {
            reply_error(sort->request, "ERR One or more scores can't be converted into double");
            return false;
        }
        element->number = number;
    }
    return true;
}

static void find_weights(struct sort *sort)
{
    for (uint64_t i = 0; i < sort->count; i++) {
        struct sort_element *element = &sort->elements[i];
        struct slice found;

        if (sort_pattern_find(&sort->options->by, sort->request, element->text, &sort->lookup, &found))
            element->weight = keep_text(sort, found);
        else
            element->weight = SLICE_EMPTY;
    }
}

/* A stored order must be the same on every server, whatever its locale. */
static enum sort_rule rule_of(const struct sort_options *options)
{
    if (options->nosort)
        return SORT_BY_BYTES;
    if (!options->alpha)
        return SORT_BY_NUMBER;
    return options->destination != NULL ? SORT_BY_BYTES : SORT_BY_COLLATION;
}

/* False: a weight is no number, which was replied. */
static bool order(struct sort *sort, bool unordered, struct window window)
{
    const struct sort_options *options = sort->options;
    enum sort_rule rule = rule_of(options);

    sort->items = mem_alloc(MAX(sort->count, UINT64_C(1)) * sizeof(*sort->items));
    for (uint64_t i = 0; i < sort->count; i++)
        sort->items[i].element = &sort->elements[i];
    if (unordered)
        return true;
    if (options->by.names_keys && !options->nosort)
        find_weights(sort);
    if (rule == SORT_BY_NUMBER && !weigh_by_number(sort))
        return false;
    sort_order(sort->items, sort->count, window.start, window.end, rule, options->descending);
    return true;
}

/* ------------------------------------------------------------------------------------------------------- results -- */

/* Called for each result; data NULL: it does not exist. */
typedef void (*result_fn)(struct slice text, void *context);

static void each_get(struct sort *sort, struct slice element, result_fn fn, void *context)
{
    const struct sort_options *options = sort->options;
    struct slice found;

    for (uint32_t i = 0; i < options->get_count; i++) {
        bool there = sort_pattern_find(&options->gets[i], sort->request, element, &sort->lookup, &found);

        fn(there ? found : SLICE_EMPTY, context);
    }
}

static void each_result(struct sort *sort, struct window window, result_fn fn, void *context)
{
    for (uint64_t i = window.start; i < window.end; i++) {
        struct slice text = sort->items[i].element->text;

        if (sort->options->get_count == 0)
            fn(text, context);
        else
            each_get(sort, text, fn, context);
    }
}

static uint64_t result_count(const struct sort *sort, struct window window)
{
    return (window.end - window.start) * MAX(sort->options->get_count, 1U);
}

static void print(struct slice text, void *context)
{
    if (text.data != NULL)
        reply_bulk(context, text);
    else
        reply_null(context);
}

static void append(struct slice text, void *context)
{
    quicklist_push(context, QUICKLIST_TAIL, text.data != NULL ? text : SLICE(""));
}

/* Replaces the destination's value; without results the destination is deleted. */
static void store(struct sort *sort, struct window window)
{
    const struct quicklist_limits limits = type_list_limits();
    struct request *request = sort->request;
    const struct key *key = sort->options->destination;
    struct change change;
    struct value list;

    if (window.start == window.end) {
        if (access_delete(request->access, request->db, key))
            operation_add_delete(request, request->db, key->name);
        reply_int(request, 0);
        return;
    }
    list = list_create(&limits);
    each_result(sort, window, append, list_of(list));
    (void)access_probe(request->access, request->db, key);
    change_begin(&change, request->access, request->db, key);
    change_put_value(&change, TYPE_LIST, list, EXPIRE_NEVER);
    change_end(&change, EVENT_LIST | EVENT_REPLACES, "sortstore");
    operation_add_value(request, request->db, key);
    reply_int(request, (int64_t)result_count(sort, window));
}

static void finish(struct sort *sort, struct window window)
{
    if (sort->options->destination != NULL) {
        store(sort, window);
        return;
    }
    reply_array(sort->request, result_count(sort, window));
    each_result(sort, window, print, sort->request);
}

static void sort_entry(struct sort *sort, const struct entry *entry)
{
    const struct sort_options *options = sort->options;
    struct window window = {0, 0};
    bool in_place = false; /* the gathered elements are the result */

    if (entry != NULL) {
        if (!gather(sort, entry))
            return;
        in_place = options->nosort && !(entry->type == TYPE_SET && needs_order(sort));
        window = in_place ? (struct window){0, sort->count} : clamp_window(options, sort->count);
    }
    if (order(sort, in_place, window))
        finish(sort, window);
}

static void cmd_sort(struct request *request)
{
    struct sort_options options = {.count = -1};
    struct sort sort = {.request = request, .options = &options};

    if (parse_options(request, &options))
        sort_entry(&sort, access_read(request->access, request->db, &request->keys[0]));
    sort_fini(&sort);
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

#define SORT_OPTIONS "[BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC|DESC] [ALPHA]"

/* clang-format off */
const struct command_row sort_commands[] = {
    {.name = "sort", .run = cmd_sort, .arity = -2, .access_of = sort_access, .find_keys = sort_find_keys,
     .flags = "write denyoom movablekeys alone", .categories = "@write @set @sortedset @list @slow @dangerous",
     .keys = "RO,ACCESS@index:1@range:0,1,0 RO,ACCESS@unknown OW,UPDATE@unknown",
     .key_notes = "|The patterns of BY and GET name keys once the elements are known."
                  "|STORE can stand anywhere among the options.",
     .group = "generic", .since = "1.0.0",
     .summary = "Returns or stores the sorted elements of a list, set or sorted set.",
     .complexity = "O(N+M*log(M)) for N elements of which M are returned",
     .syntax = "SORT key " SORT_OPTIONS " [STORE destination]"},
    {.name = "sort_ro", .run = cmd_sort, .arity = -2, .access_of = sort_access, .find_keys = sort_ro_find_keys,
     .flags = "readonly movablekeys alone", .categories = "@read @set @sortedset @list @slow @dangerous",
     .keys = "RO,ACCESS@index:1@range:0,1,0 RO,ACCESS@unknown",
     .key_notes = "|The patterns of BY and GET name keys once the elements are known.", .group = "generic",
     .since = "7.0.0", .summary = "Returns the sorted elements of a list, set or sorted set.",
     .complexity = "O(N+M*log(M)) for N elements of which M are returned", .syntax = "SORT_RO key " SORT_OPTIONS},
    {.name = NULL},
};
/* clang-format on */
