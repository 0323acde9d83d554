#include "tools/cli/scan.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long u64; /* as printf wants it */

enum { PAUSE_CALLS = 100, NOTE_KEYS = 1000000, HOT_KEYS = 16 };

/* A walk. After walk_next `keys` are those of the step. */
struct walk {
    struct session *session;
    struct resp_reply *reply;
    struct resp_reply **keys; /* in the reply */
    size_t key_count;
    char cursor[NUMBER_I64_SPACE];
    bool began;
};

static void walk_init(struct walk *walk, struct session *session)
{
    *walk = (struct walk){.session = session, .cursor = "0"};
}

static void walk_fini(struct walk *walk)
{
    resp_reply_destroy(&walk->reply);
}

static bool is_scan_reply(const struct resp_reply *reply)
{
    return reply->type == RESP_TYPE_ARRAY && reply->element_count == 2 && reply->elements[0]->text != NULL &&
           reply->elements[0]->size < NUMBER_I64_SPACE && reply->elements[1]->type == RESP_TYPE_ARRAY;
}

/* 1: a step; 0: the end; -1: an error that was told. */
static int walk_next(struct walk *walk)
{
    const struct options *options = walk->session->options;
    char count[NUMBER_I64_SPACE];
    struct slice words[6] = {SLICE("SCAN"), slice_from_text(walk->cursor)};
    size_t word_count = 2;

    if (walk->began && strcmp(walk->cursor, "0") == 0)
        return 0;
    if (options->pattern != NULL) {
        words[word_count++] = SLICE("MATCH");
        words[word_count++] = slice_make(options->pattern, options->pattern_size);
    }
    if (options->scan_count > 0) {
        words[word_count++] = SLICE("COUNT");
        words[word_count++] = slice_make(count, number_format_i64(count, options->scan_count));
    }
    resp_reply_destroy(&walk->reply);
    walk->reply = session_call(walk->session, words, word_count);
    if (walk->reply == NULL)
        return -1;
    if (format_is_error(walk->reply) || !is_scan_reply(walk->reply)) {
        fprintf(stderr, "SCAN error: %s\n", format_is_error(walk->reply) ? walk->reply->text : "Non ARRAY response");
        return -1;
    }
    walk->began = true;
    strcpy(walk->cursor, walk->reply->elements[0]->text);
    walk->keys = walk->reply->elements[1]->elements;
    walk->key_count = walk->reply->elements[1]->element_count;
    return 1;
}

static struct slice name_of(const struct resp_reply *key)
{
    return slice_make(key->text, key->size);
}

static void pause_for(const struct session *session)
{
    if (session->options->interval_us > 0)
        usleep((useconds_t)session->options->interval_us);
}

/* -------------------------------------------------------------------------------------------------------- scan -- */

int scan_run(struct session *session)
{
    struct walk walk;
    struct buffer out = {0};
    int result;

    walk_init(&walk, session);
    result = session_connect(session) ? walk_next(&walk) : -1;
    while (result > 0) {
        buffer_clear(&out);
        for (size_t i = 0; i < walk.key_count; i++) {
            if (session->format == FORMAT_TEXT)
                format_quoted(&out, name_of(walk.keys[i]));
            else
                buffer_append_slice(&out, name_of(walk.keys[i]));
            buffer_append_char(&out, '\n');
        }
        format_write(&out, stdout);
        fflush(stdout);
        pause_for(session);
        result = walk_next(&walk);
    }
    buffer_fini(&out);
    walk_fini(&walk);
    return result < 0 ? 1 : 0;
}

/* --------------------------------------------------------------------------------------------- largest of a type -- */

struct type {
    char *name;
    const char *command; /* that tells the size; NULL: none does */
    const char *unit;
    char *largest_name; /* quoted; NULL: none yet */
    u64 largest, total, count;
};

struct sizes {
    struct session *session;
    struct {
        struct type *items;
        uint32_t count, capacity;
    } types;
    u64 key_count, key_bytes, keys_in_all;
};

static struct type *type_of(struct sizes *sizes, const char *name)
{
    static const struct {
        const char *name, *command, *unit;
    } known[] = {{"list", "LLEN", "items"},     {"hash", "HLEN", "fields"},  {"string", "STRLEN", "bytes"},
                 {"stream", "XLEN", "entries"}, {"set", "SCARD", "members"}, {"zset", "ZCARD", "members"}};
    struct type *type;

    if (sizes->types.count == 0) {
        for (size_t i = 0; i < countof(known); i++)
            *ARRAY_PUSH(&sizes->types) = (struct type){.name = mem_copy_text(known[i].name),
                                                       .command = known[i].command,
                                                       .unit = known[i].unit};
    }
    for (uint32_t i = 0; i < sizes->types.count; i++)
        if (strcmp(sizes->types.items[i].name, name) == 0)
            return &sizes->types.items[i];
    type = ARRAY_PUSH(&sizes->types);
    *type = (struct type){.name = mem_copy_text(name), .unit = "?"};
    return type;
}

static void sizes_fini(struct sizes *sizes)
{
    for (uint32_t i = 0; i < sizes->types.count; i++) {
        mem_free(sizes->types.items[i].name);
        mem_free(sizes->types.items[i].largest_name);
    }
    ARRAY_FINI(&sizes->types);
}

static bool by_memory(const struct sizes *sizes)
{
    return sizes->session->options->mode == MODE_MEMORY_KEYS;
}

static const char *unit_of(const struct sizes *sizes, const struct type *type)
{
    return by_memory(sizes) ? "bytes" : type->unit;
}

/* Asks for the types of all keys at once. False: an error that was told. */
static bool ask_types(struct sizes *sizes, const struct walk *walk, uint32_t *types)
{
    bool good = true;

    for (size_t i = 0; i < walk->key_count; i++) {
        const struct slice words[] = {SLICE("TYPE"), name_of(walk->keys[i])};

        link_send(sizes->session->link, words, countof(words));
    }
    for (size_t i = 0; i < walk->key_count && good; i++) {
        struct resp_reply *reply = session_receive(sizes->session);

        good = reply != NULL;
        if (good && reply->type != RESP_TYPE_STATUS) {
            fprintf(stderr, "TYPE returned an error: %s\n", reply->text != NULL ? reply->text : "?");
            good = false;
        }
        if (good)
            types[i] = (uint32_t)(type_of(sizes, reply->text) - sizes->types.items);
        resp_reply_destroy(&reply);
    }
    return good;
}

static bool send_size_command(struct sizes *sizes, const struct type *type, struct slice key)
{
    int64_t samples = sizes->session->options->memory_samples;
    char number[NUMBER_I64_SPACE];
    struct slice words[5] = {SLICE("MEMORY"), SLICE("USAGE"), key};
    size_t word_count = 3;

    if (!by_memory(sizes)) {
        if (type->command == NULL)
            return false;
        words[0] = slice_from_text(type->command);
        words[1] = key;
        word_count = 2;
    } else if (samples >= 0) {
        words[3] = SLICE("SAMPLES");
        words[4] = slice_make(number, number_format_i64(number, samples));
        word_count = 5;
    }
    link_send(sizes->session->link, words, word_count);
    return true;
}

static bool ask_sizes(struct sizes *sizes, const struct walk *walk, const uint32_t *types, u64 *bytes)
{
    bool *asked = mem_alloc_zero(walk->key_count + 1);
    bool good = true;

    for (size_t i = 0; i < walk->key_count; i++)
        asked[i] = send_size_command(sizes, &sizes->types.items[types[i]], name_of(walk->keys[i]));
    for (size_t i = 0; i < walk->key_count && good; i++) {
        struct resp_reply *reply = NULL;

        bytes[i] = 0;
        if (!asked[i])
            continue;
        reply = session_receive(sizes->session);
        good = reply != NULL;
        if (good && reply->type == RESP_TYPE_INT)
            bytes[i] = (u64)reply->integer;
        else if (good && format_is_error(reply)) /* the key was replaced meanwhile */
            fprintf(stderr, "Warning:  %s on '%s' failed (may have changed type)\n",
                    by_memory(sizes) ? "MEMORY" : sizes->types.items[types[i]].command, walk->keys[i]->text);
        resp_reply_destroy(&reply);
    }
    mem_free(asked);
    return good;
}

static void count_key(struct sizes *sizes, struct type *type, struct slice key, u64 size, double percent)
{
    type->total += size;
    type->count++;
    sizes->key_bytes += key.size;
    sizes->key_count++;
    if (size > type->largest) {
        struct buffer name = {0};
        size_t name_size;

        mem_free(type->largest_name);
        format_quoted(&name, key);
        type->largest_name = buffer_take(&name, &name_size);
        type->largest = size;
        printf("[%05.2f%%] Biggest %-6s found so far '%s' with %llu %s\n", percent, type->name, type->largest_name,
               size, unit_of(sizes, type));
    }
    if (sizes->key_count % NOTE_KEYS == 0)
        printf("[%05.2f%%] Sampled %llu keys so far\n", percent, sizes->key_count);
}

static bool count_keys(struct sizes *sizes, const struct walk *walk)
{
    uint32_t *types = mem_alloc_zero((walk->key_count + 1) * sizeof(*types));
    u64 *bytes = mem_alloc_zero((walk->key_count + 1) * sizeof(*bytes));
    double percent = sizes->keys_in_all > 0 ? 100.0 * (double)sizes->key_count / (double)sizes->keys_in_all : 0;
    bool good = ask_types(sizes, walk, types) && ask_sizes(sizes, walk, types, bytes);

    for (size_t i = 0; i < walk->key_count && good; i++)
        count_key(sizes, &sizes->types.items[types[i]], name_of(walk->keys[i]), bytes[i], MIN(percent, 100.0));
    mem_free(types);
    mem_free(bytes);
    return good;
}

static void show_summary(const struct sizes *sizes)
{
    const u64 count = sizes->key_count;

    printf("\n-------- summary -------\n\n");
    printf("Sampled %llu keys in the keyspace!\n", count);
    printf("Total key length in bytes is %llu (avg len %.2f)\n\n", sizes->key_bytes,
           count > 0 ? (double)sizes->key_bytes / (double)count : 0);
    for (uint32_t i = 0; i < sizes->types.count; i++) {
        const struct type *type = &sizes->types.items[i];

        if (type->largest_name != NULL)
            printf("Biggest %6s found '%s' has %llu %s\n", type->name, type->largest_name, type->largest,
                   unit_of(sizes, type));
    }
    printf("\n");
    for (uint32_t i = 0; i < sizes->types.count; i++) {
        const struct type *type = &sizes->types.items[i];

        printf("%llu %ss with %llu %s (%05.2f%% of keys, avg size %.2f)\n", type->count, type->name, type->total,
               unit_of(sizes, type), count > 0 ? 100 * (double)type->count / (double)count : 0,
               type->count > 0 ? (double)type->total / (double)type->count : 0);
    }
}

/* -1: an error that was told. */
static int64_t ask_key_count(struct session *session)
{
    static const struct slice words[] = {SLICE("DBSIZE")};
    struct resp_reply *reply = session_call(session, words, countof(words));
    int64_t count = -1;

    if (reply != NULL && reply->type == RESP_TYPE_INT)
        count = reply->integer;
    else if (reply != NULL)
        fprintf(stderr, "Couldn't determine DBSIZE: %s\n", reply->text != NULL ? reply->text : "?");
    resp_reply_destroy(&reply);
    return count;
}

static void show_head(const char *what)
{
    printf("\n# Scanning the entire keyspace to find %s keys as well as\n", what);
    printf("# average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n");
    printf("# per 100 SCAN commands (not usually needed).\n\n");
    fflush(stdout);
}

int scan_run_sizes(struct session *session)
{
    struct sizes sizes = {.session = session};
    struct walk walk;
    int64_t count;
    int result = -1;

    walk_init(&walk, session);
    if (!session_connect(session))
        return 1;
    status_ignore(type_of(&sizes, "list"), "it puts the known ones there");
    count = ask_key_count(session);
    if (count >= 0) {
        sizes.keys_in_all = (u64)count;
        show_head("biggest");
        session_catch_interrupts();
        result = walk_next(&walk);
    }
    for (unsigned calls = 1; result > 0 && !session_interrupted(); calls++) {
        if (!count_keys(&sizes, &walk)) {
            result = -1;
            break;
        }
        if (calls % PAUSE_CALLS == 0)
            pause_for(session);
        result = walk_next(&walk);
    }
    if (result >= 0)
        show_summary(&sizes);
    walk_fini(&walk);
    sizes_fini(&sizes);
    return result < 0 ? 1 : 0;
}

/* --------------------------------------------------------------------------------------------------- most used -- */

struct hot_key {
    u64 counter;
    char *name; /* quoted */
};

/* Keeps the HOT_KEYS largest, in ascending order. */
static void keep(struct hot_key *hot, u64 counter, struct slice key, double percent)
{
    struct buffer name = {0};
    size_t size, at = 0;

    if (counter <= hot[0].counter)
        return;
    mem_free(hot[0].name);
    while (at + 1 < HOT_KEYS && hot[at + 1].counter < counter) {
        hot[at] = hot[at + 1];
        at++;
    }
    format_quoted(&name, key);
    hot[at] = (struct hot_key){.counter = counter, .name = buffer_take(&name, &size)};
    printf("[%05.2f%%] Hot key '%s' found so far with counter %llu\n", percent, hot[at].name, counter);
}

static bool ask_counters(struct session *session, const struct walk *walk, struct hot_key *hot, double percent)
{
    bool good = true;

    for (size_t i = 0; i < walk->key_count; i++) {
        const struct slice words[] = {SLICE("OBJECT"), SLICE("FREQ"), name_of(walk->keys[i])};

        link_send(session->link, words, countof(words));
    }
    for (size_t i = 0; i < walk->key_count && good; i++) {
        struct resp_reply *reply = session_receive(session);

        good = reply != NULL;
        if (good && reply->type == RESP_TYPE_INT) {
            keep(hot, (u64)reply->integer, name_of(walk->keys[i]), percent);
        } else if (good && format_is_error(reply)) {
            fprintf(stderr, "Error: %s\n", reply->text);
            good = false;
        }
        resp_reply_destroy(&reply);
    }
    return good;
}

int scan_run_hot(struct session *session)
{
    struct hot_key hot[HOT_KEYS] = {0};
    struct walk walk;
    u64 seen = 0;
    int64_t count;
    int result = -1;

    walk_init(&walk, session);
    if (!session_connect(session))
        return 1;
    count = ask_key_count(session);
    if (count >= 0) {
        show_head("hot");
        session_catch_interrupts();
        result = walk_next(&walk);
    }
    for (unsigned calls = 1; result > 0 && !session_interrupted(); calls++) {
        double percent = count > 0 ? 100.0 * (double)seen / (double)count : 0;

        if (!ask_counters(session, &walk, hot, MIN(percent, 100.0))) {
            result = -1;
            break;
        }
        seen += walk.key_count;
        if (calls % PAUSE_CALLS == 0)
            pause_for(session);
        result = walk_next(&walk);
    }
    if (result >= 0) {
        printf("\n-------- summary -------\n\nSampled %llu keys in the keyspace!\n", seen);
        for (int i = HOT_KEYS - 1; i >= 0; i--)
            if (hot[i].name != NULL)
                printf("hot key found with counter: %llu\tkeyname: %s\n", hot[i].counter, hot[i].name);
    }
    for (size_t i = 0; i < HOT_KEYS; i++)
        mem_free(hot[i].name);
    walk_fini(&walk);
    return result < 0 ? 1 : 0;
}
