#include "tools/cli/compare.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/random.h"
#include "store/slot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDES = 2, BATCH_KEYS = 200, READ_KEYS = 20, ROUNDS = 3, DEADLINE_SLACK_MS = 1000, SEED_DIGITS = 32 };

enum difference { EQUAL, ONLY_FIRST, ONLY_SECOND, OTHER_TYPE, OTHER_VALUE, OTHER_DEADLINE };

struct side {
    struct link *link;
    const char *name;         /* for people */
    bool has_exact_deadlines; /* PEXPIRETIME */
};

struct found_key {
    int database;
    char *name; /* owned */
    size_t size;
    enum difference difference;
};

struct compare {
    struct session *session;
    struct side sides[SIDES];
    bool uses_digests;
    bool *slots; /* uses_digests: those that differ */
    struct {
        int *items;
        uint32_t count, capacity;
    } databases;
    struct {
        struct found_key *items;
        uint32_t count, capacity;
    } found;
    uint64_t begin_ms, compared;
    bool failed; /* it was told */
};

static struct slice text_of(const struct resp_reply *reply)
{
    return slice_make(reply->text, reply->size);
}

/* -------------------------------------------------------------------------------------------------------- calls -- */

static bool fail(struct compare *compare, const struct side *side, const char *why)
{
    if (!compare->failed)
        fprintf(stderr, "compare: %s: %s\n", side->name, why);
    compare->failed = true;
    return false;
}

/* The next reply; an error reply is one, too. NULL: the connection failed, and it was told. */
static struct resp_reply *receive(struct compare *compare, const struct side *side)
{
    struct resp_reply *reply = NULL;

    if (compare->failed || link_receive(side->link, LINK_FOREVER, &reply) == STATUS_OK)
        return reply;
    fail(compare, side, link_error(side->link));
    return NULL;
}

static struct resp_reply *call(struct compare *compare, const struct side *side, const struct slice *words,
                               size_t word_count)
{
    if (!link_is_open(side->link)) {
        fail(compare, side, "not connected");
        return NULL;
    }
    link_send(side->link, words, word_count);
    return receive(compare, side);
}

/* The same, but an error reply is a failure. */
static struct resp_reply *call_well(struct compare *compare, const struct side *side, const struct slice *words,
                                    size_t word_count)
{
    struct resp_reply *reply = call(compare, side, words, word_count);

    if (reply != NULL && format_is_error(reply)) {
        fail(compare, side, reply->text);
        resp_reply_destroy(&reply);
    }
    return reply;
}

static bool select_database(struct compare *compare, int database)
{
    char number[NUMBER_I64_SPACE];
    const struct slice words[] = {SLICE("SELECT"), slice_make(number, number_format_i64(number, database))};

    for (size_t i = 0; i < SIDES; i++) {
        struct resp_reply *reply = call_well(compare, &compare->sides[i], words, countof(words));

        if (reply == NULL)
            return false;
        resp_reply_destroy(&reply);
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------- values -- */

/* How a value is read: the command's words around the key, and how its members are to be compared. */
struct reading {
    const char *type;
    const char *command;
    const char *arguments[3];
    size_t step; /* members to be sorted have so many elements; 0: the order counts */
};

static const struct reading readings[] = {
    {"string", "GET", {NULL}, 0},
    {"list", "LRANGE", {"0", "-1", NULL}, 0},
    {"set", "SMEMBERS", {NULL}, 1},
    {"hash", "HGETALL", {NULL}, 2},
    {"zset", "ZRANGE", {"0", "-1", "WITHSCORES"}, 0},
    {"stream", "XRANGE", {"-", "+", NULL}, 0},
};
static const struct reading other_reading = {NULL, "DUMP", {NULL}, 0};

static const struct reading *reading_of(const char *type)
{
    for (size_t i = 0; i < countof(readings); i++)
        if (strcmp(readings[i].type, type) == 0)
            return &readings[i];
    return &other_reading;
}

static int compare_member(const void *a, const void *b)
{
    const struct resp_reply *const *first = a, *const *second = b;

    return slice_compare(text_of(*first), text_of(*second));
}

static bool same(const struct resp_reply *a, const struct resp_reply *b)
{
    if (a->type != b->type || a->integer != b->integer || a->element_count != b->element_count ||
        (a->text == NULL) != (b->text == NULL) || (a->text != NULL && !slice_equal(text_of(a), text_of(b))))
        return false;
    for (size_t i = 0; i < a->element_count; i++)
        if (!same(a->elements[i], b->elements[i]))
            return false;
    return true;
}

/* Members and, in hashes, their values: in the order of members. */
static void sort_members(struct resp_reply *reply, size_t step)
{
    for (size_t i = 0; i < reply->element_count; i++)
        if (reply->elements[i]->text == NULL)
            return;
    if (step != 0 && reply->element_count % step == 0 && reply->element_count > 0)
        qsort(reply->elements, reply->element_count / step, step * sizeof(struct resp_reply *), compare_member);
}

bool compare_values_equal(const char *type, struct resp_reply *a, struct resp_reply *b)
{
    const struct reading *reading = reading_of(type);

    sort_members(a, reading->step);
    sort_members(b, reading->step);
    return same(a, b);
}

static void send_reading(const struct side *side, const struct reading *reading, struct slice key)
{
    struct slice words[5] = {slice_from_text(reading->command), key};
    size_t word_count = 2;

    for (size_t i = 0; i < countof(reading->arguments) && reading->arguments[i] != NULL; i++)
        words[word_count++] = slice_from_text(reading->arguments[i]);
    link_send(side->link, words, word_count);
}

/* What both servers say of one key. */
struct look {
    struct resp_reply *type[SIDES], *deadline[SIDES];
    enum difference difference;
    bool reads; /* the values are still to be compared */
};

static void send_look(const struct side *side, struct slice key)
{
    const struct slice type[] = {SLICE("TYPE"), key};
    const struct slice deadline[] = {side->has_exact_deadlines ? SLICE("PEXPIRETIME") : SLICE("PTTL"), key};

    link_send(side->link, type, countof(type));
    link_send(side->link, deadline, countof(deadline));
}

static int64_t deadline_of(const struct side *side, const struct resp_reply *reply)
{
    if (reply->type != RESP_TYPE_INT || reply->integer < 0)
        return -1;
    return side->has_exact_deadlines ? reply->integer : clock_wall_ms() + reply->integer;
}

static bool same_deadline(const struct compare *compare, const struct look *look)
{
    int64_t first = deadline_of(&compare->sides[0], look->deadline[0]);
    int64_t second = deadline_of(&compare->sides[1], look->deadline[1]);
    int64_t slack = compare->sides[0].has_exact_deadlines && compare->sides[1].has_exact_deadlines ? 0
                                                                                                   : DEADLINE_SLACK_MS;

    if (first < 0 || second < 0)
        return first < 0 && second < 0;
    return llabs(first - second) <= slack;
}

static void judge(const struct compare *compare, struct look *look)
{
    const char *first = look->type[0]->text, *second = look->type[1]->text;

    if (strcmp(first, "none") == 0)
        look->difference = strcmp(second, "none") == 0 ? EQUAL : ONLY_SECOND;
    else if (strcmp(second, "none") == 0)
        look->difference = ONLY_FIRST;
    else if (strcmp(first, second) != 0)
        look->difference = OTHER_TYPE;
    else
        look->reads = true;
    if (look->reads && !same_deadline(compare, look))
        look->difference = OTHER_DEADLINE; /* unless the values differ as well */
}

/* Reads the values of some keys from both servers at once. */
static bool read_some_values(struct compare *compare, const struct slice *keys, struct look *looks, const size_t *some,
                             size_t count)
{
    struct resp_reply *values[SIDES][READ_KEYS] = {{NULL}};

    for (size_t k = 0; k < SIDES; k++)
        for (size_t i = 0; i < count; i++)
            send_reading(&compare->sides[k], reading_of(looks[some[i]].type[0]->text), keys[some[i]]);
    if (link_flush(compare->sides[1].link) != STATUS_OK) /* the second reads while the first is listened to */
        fail(compare, &compare->sides[1], link_error(compare->sides[1].link));
    for (size_t k = 0; k < SIDES; k++)
        for (size_t i = 0; i < count; i++)
            values[k][i] = receive(compare, &compare->sides[k]);
    for (size_t i = 0; i < count; i++) {
        struct look *look = &looks[some[i]];

        if (!compare->failed && !compare_values_equal(look->type[0]->text, values[0][i], values[1][i]))
            look->difference = OTHER_VALUE;
        resp_reply_destroy(&values[0][i]);
        resp_reply_destroy(&values[1][i]);
    }
    return !compare->failed;
}

/* Reads the values of the keys that are left. */
static bool read_values(struct compare *compare, const struct slice *keys, size_t count, struct look *looks)
{
    size_t some[READ_KEYS], some_count = 0;

    for (size_t i = 0; i < count; i++) {
        if (looks[i].reads)
            some[some_count++] = i;
        if (some_count < READ_KEYS && i + 1 < count)
            continue;
        if (some_count > 0 && !read_some_values(compare, keys, looks, some, some_count))
            return false;
        some_count = 0;
    }
    return true;
}

static bool take_looks(struct compare *compare, size_t count, struct look *looks)
{
    for (size_t k = 0; k < SIDES; k++)
        for (size_t i = 0; i < count && !compare->failed; i++) {
            looks[i].type[k] = receive(compare, &compare->sides[k]);
            looks[i].deadline[k] = receive(compare, &compare->sides[k]);
            if (!compare->failed && looks[i].type[k]->type != RESP_TYPE_STATUS)
                return fail(compare, &compare->sides[k],
                            format_is_error(looks[i].type[k]) ? looks[i].type[k]->text : "no reply to TYPE");
        }
    return !compare->failed;
}

static bool look_at_keys(struct compare *compare, const struct slice *keys, size_t count, enum difference *differences)
{
    struct look *looks = mem_alloc_zero((count + 1) * sizeof(*looks));
    bool good;

    for (size_t k = 0; k < SIDES; k++)
        for (size_t i = 0; i < count; i++)
            send_look(&compare->sides[k], keys[i]);
    if (link_flush(compare->sides[1].link) != STATUS_OK)
        fail(compare, &compare->sides[1], link_error(compare->sides[1].link));
    good = take_looks(compare, count, looks);
    for (size_t i = 0; i < count && good; i++)
        judge(compare, &looks[i]);
    good = good && read_values(compare, keys, count, looks);
    for (size_t i = 0; i < count; i++) {
        differences[i] = looks[i].difference;
        for (size_t k = 0; k < SIDES; k++) {
            resp_reply_destroy(&looks[i].type[k]);
            resp_reply_destroy(&looks[i].deadline[k]);
        }
    }
    mem_free(looks);
    return good;
}

/* ------------------------------------------------------------------------------------------------------ digests -- */

/* NULL: a server has none, or the connection failed. */
static struct resp_reply *digests_of_keys(struct compare *compare, const struct side *side, const char *which,
                                          const struct slice *keys, size_t count)
{
    struct slice *words = mem_alloc((count + 2) * sizeof(*words));
    struct resp_reply *reply;

    words[0] = SLICE("DEBUG");
    words[1] = slice_from_text(which);
    memcpy(words + 2, keys, count * sizeof(*keys));
    reply = call_well(compare, side, words, count + 2);
    mem_free(words);
    if (reply != NULL && (reply->type != RESP_TYPE_ARRAY || reply->element_count != count)) {
        fail(compare, side, "no digests of keys");
        resp_reply_destroy(&reply);
    }
    return reply;
}

static bool is_absent(const struct resp_reply *digest)
{
    return digest->text != NULL && strspn(digest->text, "0") == digest->size;
}

static bool look_at_digests(struct compare *compare, const struct slice *keys, size_t count,
                            enum difference *differences)
{
    struct resp_reply *whole[SIDES] = {NULL, NULL}, *values[SIDES] = {NULL, NULL};

    for (size_t k = 0; k < SIDES && !compare->failed; k++) {
        whole[k] = digests_of_keys(compare, &compare->sides[k], "DIGEST-KEY", keys, count);
        if (!compare->failed)
            values[k] = digests_of_keys(compare, &compare->sides[k], "DIGEST-VALUE", keys, count);
    }
    for (size_t i = 0; i < count && !compare->failed; i++) {
        differences[i] = EQUAL;
        if (same(whole[0]->elements[i], whole[1]->elements[i]))
            continue;
        if (is_absent(whole[0]->elements[i]))
            differences[i] = ONLY_SECOND;
        else if (is_absent(whole[1]->elements[i]))
            differences[i] = ONLY_FIRST;
        else
            differences[i] = same(values[0]->elements[i], values[1]->elements[i]) ? OTHER_DEADLINE : OTHER_VALUE;
    }
    for (size_t k = 0; k < SIDES; k++) {
        resp_reply_destroy(&whole[k]);
        resp_reply_destroy(&values[k]);
    }
    return !compare->failed;
}

/* Learns which slots differ. Where a server has no digests, all keys are read. */
static void compare_slots(struct compare *compare)
{
    struct resp_reply *digests[SIDES] = {NULL, NULL};
    char seed[SEED_DIGITS];
    char range[32];
    const struct slice words[] = {SLICE("DEBUG"), SLICE("DIGEST-SLOT"), SLICE("SEED"), slice_make(seed, sizeof(seed)),
                                  slice_make(range, (size_t)snprintf(range, sizeof(range), "0-%d", SLOT_COUNT - 1))};

    random_hex(seed, sizeof(seed));
    compare->uses_digests = true;
    for (size_t k = 0; k < SIDES && compare->uses_digests; k++) {
        digests[k] = call(compare, &compare->sides[k], words, countof(words));
        compare->uses_digests = digests[k] != NULL && digests[k]->type == RESP_TYPE_ARRAY &&
                                digests[k]->element_count == SLOT_COUNT;
    }
    if (compare->uses_digests) {
        compare->slots = mem_alloc_zero(SLOT_COUNT * sizeof(*compare->slots));
        for (size_t i = 0; i < SLOT_COUNT; i++)
            compare->slots[i] = !same(digests[0]->elements[i], digests[1]->elements[i]);
    }
    resp_reply_destroy(&digests[0]);
    resp_reply_destroy(&digests[1]);
}

static bool some_slot_differs(const struct compare *compare)
{
    for (size_t i = 0; i < SLOT_COUNT; i++)
        if (compare->slots[i])
            return true;
    return false;
}

/* -------------------------------------------------------------------------------------------------------- walks -- */

/* Not faster than the user allows. */
static void slow_down(struct compare *compare, size_t count)
{
    int64_t rate = compare->session->options->compare_rate;
    uint64_t due_ms;

    compare->compared += count;
    if (rate <= 0)
        return;
    due_ms = compare->begin_ms + compare->compared * 1000 / (uint64_t)rate;
    while (clock_monotonic_ms() < due_ms)
        usleep((useconds_t)MIN((due_ms - clock_monotonic_ms()) * 1000 + 1, (uint64_t)100000));
}

static bool look_at(struct compare *compare, const struct slice *keys, size_t count, enum difference *differences)
{
    bool good;

    if (count == 0)
        return true;
    good = compare->uses_digests ? look_at_digests(compare, keys, count, differences)
                                 : look_at_keys(compare, keys, count, differences);
    slow_down(compare, count);
    return good;
}

/* Keys that the second server has are of interest only where the first has them not: the others were looked at. */
static void note(struct compare *compare, int database, const struct slice *keys, size_t count,
                 const enum difference *differences, bool only_absent)
{
    for (size_t i = 0; i < count; i++)
        if (only_absent ? differences[i] == ONLY_SECOND : differences[i] != EQUAL && differences[i] != ONLY_SECOND)
            *ARRAY_PUSH(&compare->found) = (struct found_key){.database = database,
                                                              .name = mem_copy(keys[i].data, keys[i].size),
                                                              .size = keys[i].size,
                                                              .difference = differences[i]};
}

static bool look_at_batch(struct compare *compare, int database, size_t side, const struct resp_reply *names)
{
    struct slice keys[BATCH_KEYS];
    enum difference differences[BATCH_KEYS];
    size_t count = 0;

    for (size_t i = 0; i < names->element_count; i++) {
        struct slice key = text_of(names->elements[i]);

        if (names->elements[i]->text != NULL && (!compare->uses_digests || compare->slots[slot_of(key)]))
            keys[count++] = key;
        if (count < BATCH_KEYS && i + 1 < names->element_count)
            continue;
        if (!look_at(compare, keys, count, differences))
            return false;
        note(compare, database, keys, count, differences, side == 1);
        count = 0;
    }
    return true;
}

static bool walk(struct compare *compare, int database, size_t side)
{
    char cursor[NUMBER_I64_SPACE] = "0";
    char batch[NUMBER_I64_SPACE];
    bool good = true;

    number_format_i64(batch, BATCH_KEYS);
    do {
        const struct slice words[] = {SLICE("SCAN"), slice_from_text(cursor), SLICE("COUNT"), slice_from_text(batch)};
        struct resp_reply *reply = call_well(compare, &compare->sides[side], words, countof(words));

        if (reply == NULL)
            return false;
        if (reply->type != RESP_TYPE_ARRAY || reply->element_count != 2 || reply->elements[0]->text == NULL ||
            reply->elements[0]->size >= sizeof(cursor) || reply->elements[1]->type != RESP_TYPE_ARRAY) {
            good = fail(compare, &compare->sides[side], "no reply to SCAN");
        } else {
            strcpy(cursor, reply->elements[0]->text);
            good = look_at_batch(compare, database, side, reply->elements[1]);
        }
        resp_reply_destroy(&reply);
    } while (good && strcmp(cursor, "0") != 0);
    return good;
}

/* -------------------------------------------------------------------------------------------------- altogether -- */

static void add_database(struct compare *compare, int database)
{
    for (uint32_t i = 0; i < compare->databases.count; i++)
        if (compare->databases.items[i] == database)
            return;
    *ARRAY_PUSH(&compare->databases) = database;
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static bool find_databases(struct compare *compare)
{
    static const struct slice words[] = {SLICE("INFO"), SLICE("keyspace")};

    for (size_t k = 0; k < SIDES; k++) {
        struct resp_reply *reply = call_well(compare, &compare->sides[k], words, countof(words));

        if (reply == NULL)
            return false;
        for (const char *line = reply->text; line != NULL; line = strchr(line, '\n')) {
            line += *line == '\n';
            if (strncmp(line, "db", 2) == 0 && line[2] >= '0' && line[2] <= '9')
                add_database(compare, atoi(line + 2));
        }
        resp_reply_destroy(&reply);
    }
    if (compare->databases.count > 0)
        qsort(compare->databases.items, compare->databases.count, sizeof(int), compare_ints);
    return true;
}

/* Does the server know PEXPIRETIME? */
static bool learn_deadlines(struct compare *compare, struct side *side)
{
    static const struct slice words[] = {SLICE("PEXPIRETIME"), SLICE("")};
    struct resp_reply *reply = call(compare, side, words, countof(words));

    side->has_exact_deadlines = reply != NULL && reply->type == RESP_TYPE_INT;
    resp_reply_destroy(&reply);
    return !compare->failed;
}

/* Looks again at what differed, so that only what goes on to differ is left. */
static bool look_again(struct compare *compare)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < compare->found.count && !compare->failed; i++) {
        struct found_key *found = &compare->found.items[i];
        struct slice key = slice_make(found->name, found->size);

        if (!select_database(compare, found->database) || !look_at(compare, &key, 1, &found->difference))
            return false;
    }
    for (uint32_t i = 0; i < compare->found.count; i++) {
        if (compare->found.items[i].difference == EQUAL)
            mem_free(compare->found.items[i].name);
        else
            compare->found.items[left++] = compare->found.items[i];
    }
    compare->found.count = left;
    return !compare->failed;
}

static bool find_differences(struct compare *compare)
{
    if (!find_databases(compare))
        return false;
    compare_slots(compare);
    if (compare->failed)
        return false;
    if (compare->uses_digests && !some_slot_differs(compare))
        return true;
    for (uint32_t i = 0; i < compare->databases.count; i++) {
        int database = compare->databases.items[i];

        if (!select_database(compare, database))
            return false;
        for (size_t k = 0; k < SIDES; k++)
            if (!walk(compare, database, k))
                return false;
    }
    for (int round = 1; round < ROUNDS && compare->found.count > 0; round++) {
        usleep(1000000);
        if (!look_again(compare))
            return false;
    }
    return true;
}

static void tell(const struct compare *compare)
{
    struct buffer line = {0};

    for (uint32_t i = 0; i < compare->found.count; i++) {
        const struct found_key *found = &compare->found.items[i];

        buffer_clear(&line);
        buffer_printf(&line, "%d ", found->database);
        format_quoted(&line, slice_make(found->name, found->size));
        switch (found->difference) {
        case ONLY_FIRST:
        case ONLY_SECOND:
            buffer_printf(&line, " only on %s", compare->sides[found->difference == ONLY_SECOND].name);
            break;
        case OTHER_TYPE:
            buffer_append_text(&line, " type");
            break;
        case OTHER_VALUE:
            buffer_append_text(&line, " value");
            break;
        default:
            buffer_append_text(&line, compare->uses_digests ? " beside the value" : " deadline");
            break;
        }
        puts(buffer_text(&line));
    }
    if (compare->found.count > 0)
        printf("%u keys differ\n", compare->found.count);
    else
        printf("the data are equal\n");
    buffer_fini(&line);
}

/* The other server has the user, password and TLS of the first one, unless its URI says otherwise. */
static bool aim(const struct options *options, struct uri *uri, struct link_target *target, struct buffer *host)
{
    const char *text = options->compare_with;
    const char *colon;
    const char *wrong;

    *target = options->target;
    target->socket_path = NULL;
    if (uri_is(text)) {
        wrong = uri_parse(text, uri);
        if (wrong != NULL) {
            fprintf(stderr, "compare: %s\n", wrong);
            return false;
        }
        target->tls = uri->tls ? &options->tls : NULL;
        target->host = uri->host != NULL ? uri->host : "127.0.0.1";
        target->port = uri->port != 0 ? uri->port : options->target.port;
        if (uri->password != NULL) {
            target->user = uri->user;
            target->password = uri->password;
        }
        return true;
    }
    colon = strrchr(text, ':');
    if (colon == NULL || atoi(colon + 1) <= 0) {
        fprintf(stderr, "compare: '%s' is not HOST:PORT\n", text);
        return false;
    }
    if (text[0] == '[' && colon > text && colon[-1] == ']')
        buffer_append(host, text + 1, (size_t)(colon - text) - 2);
    else
        buffer_append(host, text, (size_t)(colon - text));
    target->host = buffer_text(host);
    target->port = atoi(colon + 1);
    return true;
}

static bool open_side(struct compare *compare, struct side *side, const struct link_target *target)
{
    struct link_target plain = *target;
    enum link_step step;

    plain.proto = 2; /* replies to both are to have the same form */
    plain.database = 0;
    if (link_open(side->link, &plain) != STATUS_OK || link_greet(side->link, &plain, &step) != STATUS_OK)
        return fail(compare, side, link_error(side->link));
    return learn_deadlines(compare, side);
}

int compare_run(struct session *session)
{
    struct compare compare = {.session = session, .begin_ms = clock_monotonic_ms()};
    struct uri uri = {.database = -1};
    struct link_target second;
    struct buffer host = {0}, first_name = {0}, second_name = {0};
    bool good = aim(session->options, &uri, &second, &host);
    int code = COMPARE_FAILED;

    for (size_t k = 0; k < SIDES; k++)
        compare.sides[k].link = link_create();
    if (good) {
        if (session->target.socket_path != NULL)
            buffer_append_text(&first_name, session->target.socket_path);
        else
            buffer_printf(&first_name, "%s:%d", session->target.host, session->target.port);
        buffer_printf(&second_name, "%s:%d", second.host, second.port);
        compare.sides[0].name = buffer_text(&first_name);
        compare.sides[1].name = buffer_text(&second_name);
        good = open_side(&compare, &compare.sides[0], &session->target) &&
               open_side(&compare, &compare.sides[1], &second) && find_differences(&compare);
    }
    if (good) {
        tell(&compare);
        code = compare.found.count > 0 ? COMPARE_DIFFERENT : COMPARE_EQUAL;
    }
    for (size_t k = 0; k < SIDES; k++)
        link_destroy(&compare.sides[k].link);
    for (uint32_t i = 0; i < compare.found.count; i++)
        mem_free(compare.found.items[i].name);
    ARRAY_FINI(&compare.found);
    ARRAY_FINI(&compare.databases);
    mem_free(compare.slots);
    uri_fini(&uri);
    buffer_fini(&host);
    buffer_fini(&first_name);
    buffer_fini(&second_name);
    return code;
}
