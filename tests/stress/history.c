#include "history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- texts --- */

const char *texts_get(const struct texts *texts, uint32_t number, size_t *size)
{
    *size = texts->sizes[number];
    return texts->bytes.data + texts->starts[number];
}

uint32_t texts_number(struct texts *texts, const char *data, size_t size)
{
    uint64_t hash = 1469598103934665603u;
    uint32_t slot;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)data[i]) * 1099511628211u;
    slot = (uint32_t)(hash ^ (hash >> 29)) % COUNTOF(texts->slots);
    for (; texts->slots[slot] != 0; slot = (slot + 1) % COUNTOF(texts->slots)) {
        uint32_t number = texts->slots[slot];

        if (texts->sizes[number] == size && memcmp(texts->bytes.data + texts->starts[number], data, size) == 0)
            return number;
    }
    if (texts->count == 0)
        texts->count = 1;
    if (texts->count >= COUNTOF(texts->slots) * 3 / 4)
        die("a window has too many texts");
    if (texts->count >= texts->room) {
        texts->room = texts->room == 0 ? 1024 : texts->room * 2;
        texts->starts = realloc(texts->starts, texts->room * sizeof(*texts->starts));
        texts->sizes = realloc(texts->sizes, texts->room * sizeof(*texts->sizes));
        if (texts->starts == NULL || texts->sizes == NULL)
            die("out of memory");
    }
    texts->starts[texts->count] = (uint32_t)texts->bytes.size;
    texts->sizes[texts->count] = (uint32_t)size;
    text_append(&texts->bytes, data, size);
    text_append(&texts->bytes, "", 1);
    texts->slots[slot] = texts->count;
    return texts->count++;
}

void texts_clear(struct texts *texts)
{
    memset(texts->slots, 0, sizeof(texts->slots));
    texts->count = 0;
    texts->bytes.size = 0;
}

/* --- the commands --- */

enum row_id {
    GET,
    SET,
    SET_NX,
    SET_XX,
    SET_GET,
    GETSET,
    SETNX,
    GETDEL,
    DEL,
    DEL2,
    DEL3,
    UNLINK2,
    EXISTS2,
    STRLEN,
    INCR,
    INCRBY,
    APPEND,
    SETRANGE,
    MGET3,
    MSET2,
    MSET3,
    MSETNX2,
    RENAME,
    RENAMENX,
    COPY,
    COPY_REPLACE,
    MOVE,
    KEYS,
    FLUSHDB,
    FLUSHALL,
    SWAPDB,
    CONFIG_SET,
    DEBUG_SLEEP,
    ROW_COUNT
};

enum nature {
    READS,
    MAY_REFUSE, /* an error, null or 0 says that it changed nothing */
    CHANGES
};

/* k is a key, v a value like no other, n a small number, d the other database; the rest are words as they are. */
static const struct row {
    const char *words;
    unsigned weight;
    bool alone; /* not within MULTI */
    enum nature nature;
} rows[ROW_COUNT] = {
    [GET] = {"GET k", 16, false, READS},
    [SET] = {"SET k v", 10, false, CHANGES},
    [SET_NX] = {"SET k v NX", 3, false, MAY_REFUSE},
    [SET_XX] = {"SET k v XX", 3, false, MAY_REFUSE},
    [SET_GET] = {"SET k v GET", 5, false, CHANGES},
    [GETSET] = {"GETSET k v", 5, false, CHANGES},
    [SETNX] = {"SETNX k v", 3, false, MAY_REFUSE},
    [GETDEL] = {"GETDEL k", 4, false, MAY_REFUSE},
    [DEL] = {"DEL k", 4, false, MAY_REFUSE},
    [DEL2] = {"DEL k k", 3, false, MAY_REFUSE},
    [DEL3] = {"DEL k k k", 2, false, MAY_REFUSE},
    [UNLINK2] = {"UNLINK k k", 2, false, MAY_REFUSE},
    [EXISTS2] = {"EXISTS k k", 3, false, READS},
    [STRLEN] = {"STRLEN k", 3, false, READS},
    [INCR] = {"INCR k", 10, false, MAY_REFUSE},
    [INCRBY] = {"INCRBY k n", 4, false, MAY_REFUSE},
    [APPEND] = {"APPEND k v", 8, false, CHANGES},
    [SETRANGE] = {"SETRANGE k 0 v", 2, false, CHANGES},
    [MGET3] = {"MGET k k k", 12, false, READS},
    [MSET2] = {"MSET k v k v", 5, false, CHANGES},
    [MSET3] = {"MSET k v k v k v", 5, false, CHANGES},
    [MSETNX2] = {"MSETNX k v k v", 3, false, MAY_REFUSE},
    [RENAME] = {"RENAME k k", 4, false, MAY_REFUSE},
    [RENAMENX] = {"RENAMENX k k", 3, false, MAY_REFUSE},
    [COPY] = {"COPY k k", 3, false, MAY_REFUSE},
    [COPY_REPLACE] = {"COPY k k REPLACE", 3, false, MAY_REFUSE},
    [MOVE] = {"MOVE k d", 4, false, MAY_REFUSE},
    [KEYS] = {"KEYS *", 2, false, READS},
    [FLUSHDB] = {"FLUSHDB", 1, false, CHANGES},
    [FLUSHALL] = {"FLUSHALL", 1, false, CHANGES},
    [SWAPDB] = {"SWAPDB 0 1", 2, false, CHANGES},
    [CONFIG_SET] = {"CONFIG SET hz n", 1, false, READS},
    [DEBUG_SLEEP] = {"DEBUG SLEEP 0.001", 1, true, READS},
};

static void step_make(struct step *step, struct texts *texts, struct chance *chance, uint64_t *unique, bool nested)
{
    static unsigned total;
    unsigned roll;
    unsigned key_count = 0, value_count = 0;

    if (total == 0) {
        for (unsigned i = 0; i < ROW_COUNT; i++)
            total += rows[i].weight;
    }
    do {
        roll = chance_below(chance, total);
        *step = (struct step){0};
        while (roll >= rows[step->row].weight)
            roll -= rows[step->row++].weight;
    } while (nested && rows[step->row].alone);
    for (const char *word = rows[step->row].words; word != NULL; word = strchr(word, ' ')) {
        char text[32];

        word += *word == ' ';
        if (word[1] != ' ' && word[1] != 0)
            continue;
        if (*word == 'k')
            step->keys[key_count++] = (uint8_t)chance_below(chance, MODEL_KEYS);
        if (*word == 'v' && chance_below(chance, 4) == 0)
            snprintf(text, sizeof(text), "%u", chance_below(chance, 1000000));
        else if (*word == 'v')
            snprintf(text, sizeof(text), "v%llu", (unsigned long long)++*unique);
        else if (*word == 'n')
            snprintf(text, sizeof(text), "%u", 2 + chance_below(chance, 90));
        else
            continue;
        step->values[value_count++] = texts_number(texts, text, strlen(text));
    }
}

void op_make(struct op *op, struct texts *texts, struct chance *chance, uint64_t *unique)
{
    op->in_transaction = chance_below(chance, 6) == 0;
    op->step_count = (uint8_t)(op->in_transaction ? 1 + chance_below(chance, OP_STEPS_MOST) : 1);
    op->pending = true;
    op->reply = 0;
    for (unsigned i = 0; i < op->step_count; i++)
        step_make(&op->steps[i], texts, chance, unique, op->in_transaction);
}

static void step_print(const struct step *step, uint8_t db, const struct texts *texts, char *line, size_t room)
{
    unsigned key = 0, value = 0;
    size_t at = 0;

    for (const char *word = rows[step->row].words; *word != 0 && at + 300 < room;) {
        size_t size = strcspn(word, " "), value_size;

        if (size == 1 && *word == 'k') {
            at += (size_t)snprintf(line + at, room - at, "k%u", step->keys[key++]);
        } else if (size == 1 && (*word == 'v' || *word == 'n')) {
            at += (size_t)snprintf(line + at, room - at, "%s", texts_get(texts, step->values[value++], &value_size));
        } else if (size == 1 && *word == 'd') {
            at += (size_t)snprintf(line + at, room - at, "%d", 1 - db);
        } else {
            at += (size_t)snprintf(line + at, room - at, "%.*s", (int)size, word);
        }
        word += size;
        if (*word == ' ') {
            line[at++] = ' ';
            word++;
        }
    }
    line[at] = 0;
}

unsigned op_send(const struct op *op, const struct texts *texts, struct conn *conn)
{
    char line[2048];

    if (op->in_transaction)
        conn_add(conn, "MULTI");
    for (unsigned i = 0; i < op->step_count; i++) {
        step_print(&op->steps[i], op->db, texts, line, sizeof(line));
        conn_add(conn, "%s", line);
    }
    if (op->in_transaction)
        conn_add(conn, "EXEC");
    return op->step_count + (op->in_transaction ? 2u : 0);
}

/* --- replies in the words of the model: ":5;" "$text;" "_;" "+OK;" "-ERR;" "*2;..." --- */

struct out {
    char data[16384];
    size_t size;
};

static void out_add(struct out *out, char type, const char *data, size_t size)
{
    if (out->size + size + 2 > sizeof(out->data))
        die("a value has grown too long for the model");
    out->data[out->size++] = type;
    memcpy(out->data + out->size, data, size);
    out->size += size;
    out->data[out->size++] = ';';
}

static void out_int(struct out *out, char type, int64_t number)
{
    char digits[24];

    out_add(out, type, digits, (size_t)snprintf(digits, sizeof(digits), "%lld", (long long)number));
}

static void out_text(struct out *out, const struct texts *texts, uint32_t number)
{
    size_t size;
    const char *data;

    if (number == 0) {
        out_add(out, '_', "", 0);
        return;
    }
    data = texts_get(texts, number, &size);
    out_add(out, '$', data, size);
}

static int compare_raw(const void *left, const void *right)
{
    const struct raw *a = left, *b = right;
    int order = memcmp(a->data, b->data, a->size < b->size ? a->size : b->size);

    return order != 0 ? order : (int)a->size - (int)b->size;
}

static void out_raw(struct out *out, const struct step *step, const struct op *op, struct raw raw)
{
    struct raw string = raw_string(raw);

    if (raw_is_null(raw)) {
        out_add(out, '_', "", 0);
    } else if (raw_is_error(raw)) {
        const char *space = memchr(string.data, ' ', string.size);

        out_add(out, '-', string.data, space != NULL ? (size_t)(space - string.data) : string.size);
    } else if (raw_is_array(raw)) {
        struct raw children[64];
        size_t count = (size_t)raw_number(raw);

        if (count > COUNTOF(children))
            die("a reply has too many elements");
        for (size_t i = 0; i < count; i++)
            children[i] = raw_child(raw, i);
        if (step != NULL && step->row == KEYS) /* any order is right */
            qsort(children, count, sizeof(children[0]), compare_raw);
        out_int(out, '*', (int64_t)count);
        for (size_t i = 0; i < count; i++)
            out_raw(out, step == NULL && i < op->step_count ? &op->steps[i] : NULL, op, children[i]);
    } else {
        out_add(out, raw.data[0], string.data, string.size);
    }
}

uint32_t op_reply(const struct op *op, struct texts *texts, struct raw raw)
{
    static __thread struct out out;

    out.size = 0;
    out_raw(&out, op->in_transaction ? NULL : &op->steps[0], op, raw);
    return texts_number(texts, out.data, out.size);
}

/* --- the model --- */

static bool as_number(const struct texts *texts, uint32_t value, int64_t *number)
{
    size_t size;
    const char *data;

    *number = 0;
    if (value == 0)
        return true;
    data = texts_get(texts, value, &size);
    if (size == 0 || size > 19)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (data[i] < '0' || data[i] > '9' || __builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, data[i] - '0', number))
            return false;
    }
    return size == 1 || data[0] != '0';
}

static void ok(struct out *out)
{
    out_add(out, '+', "OK", 2);
}
static void no(struct out *out)
{
    out_add(out, '-', "ERR", 3);
}

static void add_number(struct texts *texts, uint32_t *value, int64_t amount, struct out *out)
{
    int64_t number;
    char digits[24];

    if (!as_number(texts, *value, &number) || __builtin_add_overflow(number, amount, &number)) {
        no(out);
        return;
    }
    *value = texts_number(texts, digits, (size_t)snprintf(digits, sizeof(digits), "%lld", (long long)number));
    out_int(out, ':', number);
}

/* Writes `with` over the value from a place on, or behind it. */
static void overwrite(struct texts *texts, uint32_t *value, bool behind, uint32_t with, struct out *out)
{
    char room[8192];
    size_t old_size = 0, size = 0;
    const char *data;

    if (*value != 0) {
        data = texts_get(texts, *value, &old_size);
        if (old_size > sizeof(room) - 64)
            die("a value has grown too long for the model");
        memcpy(room, data, old_size);
    }
    data = texts_get(texts, with, &size);
    memcpy(room + (behind ? old_size : 0), data, size);
    if (behind)
        size += old_size;
    else if (size < old_size)
        size = old_size;
    *value = texts_number(texts, room, size);
    out_int(out, ':', (int64_t)size);
}

static void delete_keys(uint32_t *values, const struct step *step, unsigned count, struct out *out)
{
    unsigned deleted = 0;

    for (unsigned i = 0; i < count; i++) {
        deleted += values[step->keys[i]] != 0;
        values[step->keys[i]] = 0;
    }
    out_int(out, ':', deleted);
}

static void step_run(const struct step *step, unsigned db, struct state *state, struct texts *texts, struct out *out)
{
    uint32_t *values = state->values[db];
    uint32_t *first = &values[step->keys[0]], *second = &values[step->keys[1]];
    uint32_t *other = &state->values[1 - db][step->keys[0]];
    uint32_t old = *first;
    struct state before;
    size_t size = 0;
    int64_t number = 0;

    switch ((enum row_id)step->row) {
    case GET:
        out_text(out, texts, old);
        break;
    case SET:
        *first = step->values[0];
        ok(out);
        break;
    case SET_NX:
    case SET_XX:
        if ((old == 0) == (step->row == SET_NX)) {
            *first = step->values[0];
            ok(out);
        } else {
            out_text(out, texts, 0);
        }
        break;
    case SET_GET:
    case GETSET:
        *first = step->values[0];
        out_text(out, texts, old);
        break;
    case SETNX:
        if (old == 0)
            *first = step->values[0];
        out_int(out, ':', old == 0);
        break;
    case GETDEL:
        *first = 0;
        out_text(out, texts, old);
        break;
    case DEL:
        delete_keys(values, step, 1, out);
        break;
    case DEL2:
    case UNLINK2:
        delete_keys(values, step, 2, out);
        break;
    case DEL3:
        delete_keys(values, step, 3, out);
        break;
    case EXISTS2:
        out_int(out, ':', (old != 0) + (*second != 0));
        break;
    case STRLEN:
        if (old != 0)
            texts_get(texts, old, &size);
        out_int(out, ':', (int64_t)size);
        break;
    case INCR:
        add_number(texts, first, 1, out);
        break;
    case INCRBY:
        as_number(texts, step->values[0], &number);
        add_number(texts, first, number, out);
        break;
    case APPEND:
        overwrite(texts, first, true, step->values[0], out);
        break;
    case SETRANGE:
        overwrite(texts, first, false, step->values[0], out);
        break;
    case MGET3:
        out_int(out, '*', 3);
        for (unsigned i = 0; i < 3; i++)
            out_text(out, texts, values[step->keys[i]]);
        break;
    case MSET2:
    case MSET3:
        for (unsigned i = 0; i < (step->row == MSET2 ? 2 : 3); i++)
            values[step->keys[i]] = step->values[i];
        ok(out);
        break;
    case MSETNX2:
        number = old == 0 && *second == 0;
        if (number != 0) {
            *first = step->values[0];
            *second = step->values[1];
        }
        out_int(out, ':', number);
        break;
    case RENAME:
        if (old == 0) {
            no(out);
            break;
        }
        *first = 0;
        *second = old;
        ok(out);
        break;
    case RENAMENX:
        if (old == 0) {
            no(out);
            break;
        }
        if (*second == 0) {
            *first = 0;
            *second = old;
            number = 1;
        }
        out_int(out, ':', number);
        break;
    case COPY:
    case COPY_REPLACE:
        if (first == second) {
            no(out);
            break;
        }
        if (old != 0 && (*second == 0 || step->row == COPY_REPLACE)) {
            *second = old;
            number = 1;
        }
        out_int(out, ':', number);
        break;
    case MOVE:
        if (old != 0 && *other == 0) {
            *other = old;
            *first = 0;
            number = 1;
        }
        out_int(out, ':', number);
        break;
    case KEYS:
        for (unsigned i = 0; i < MODEL_KEYS; i++)
            number += values[i] != 0;
        out_int(out, '*', number);
        for (unsigned i = 0; i < MODEL_KEYS; i++) {
            char name[8];

            if (values[i] != 0)
                out_add(out, '$', name, (size_t)snprintf(name, sizeof(name), "k%u", i));
        }
        break;
    case FLUSHDB:
        memset(values, 0, sizeof(state->values[0]));
        ok(out);
        break;
    case FLUSHALL:
        memset(state, 0, sizeof(*state));
        ok(out);
        break;
    case SWAPDB:
        before = *state;
        memcpy(state->values[0], before.values[1], sizeof(state->values[0]));
        memcpy(state->values[1], before.values[0], sizeof(state->values[0]));
        ok(out);
        break;
    case CONFIG_SET:
    case DEBUG_SLEEP:
        ok(out);
        break;
    case ROW_COUNT:
        die("a step has no command");
    }
}

/* Replays it; false: that is not the reply it got. */
static bool op_run(const struct op *op, struct state *state, struct texts *texts)
{
    static __thread struct out out;
    const char *reply;
    size_t size;

    out.size = 0;
    if (op->in_transaction)
        out_int(&out, '*', op->step_count);
    for (unsigned i = 0; i < op->step_count; i++)
        step_run(&op->steps[i], op->db, state, texts, &out);
    if (op->pending)
        return true;
    reply = texts_get(texts, op->reply, &size);
    return out.size == size && memcmp(out.data, reply, size) == 0;
}

/* With this reply the command has changed nothing, whatever the data were. */
static bool op_changed_nothing(const struct op *op, const struct texts *texts)
{
    enum nature most = READS;
    const char *reply;
    size_t size;

    if (op->pending)
        return false;
    for (unsigned i = 0; i < op->step_count; i++)
        most = rows[op->steps[i].row].nature > most ? rows[op->steps[i].row].nature : most;
    reply = texts_get(texts, op->reply, &size);
    return most == READS || (most == MAY_REFUSE && !op->in_transaction &&
                             (reply[0] == '-' || strcmp(reply, "_;") == 0 || strcmp(reply, ":0;") == 0));
}

/* --- the search --- */

enum { SEARCH_NODES_MOST = 500000, SEEN_SLOTS = 1 << 21 };

struct seen {
    uint64_t done, state;
    uint64_t generation;
};

struct search {
    struct window *window;
    struct verdict_info *info;
    uint64_t before[WINDOW_OPS_MOST]; /* bits: operations that must have happened */
    unsigned by_time[WINDOW_OPS_MOST];
    uint64_t must;
    uint64_t reads; /* operations that changed nothing */
    unsigned order[WINDOW_OPS_MOST];
    unsigned order_count;
};

static struct seen *seen;
static uint64_t seen_generation;

static uint64_t state_hash(const struct state *state)
{
    uint64_t hash = 0;

    for (unsigned db = 0; db < MODEL_DBS; db++) {
        for (unsigned key = 0; key < MODEL_KEYS; key++) {
            hash = (hash ^ state->values[db][key]) * 0x9E3779B97F4A7C15u;
            hash ^= hash >> 32;
        }
    }
    return hash;
}

/* True: we were here before, and it led nowhere. */
static bool was_seen(uint64_t done, uint64_t state)
{
    uint64_t slot = ((done * 0xD1B54A32D192ED03u) ^ state) * 0x9E3779B97F4A7C15u >> 43;

    for (; seen[slot].generation == seen_generation; slot = (slot + 1) % SEEN_SLOTS) {
        if (seen[slot].done == done && seen[slot].state == state)
            return true;
    }
    seen[slot] = (struct seen){done, state, seen_generation};
    return false;
}

static void search_note(struct search *search)
{
    if (search->order_count > search->info->order_count) {
        search->info->order_count = search->order_count;
        memcpy(search->info->order, search->order, sizeof(search->order));
    }
}

/* An operation that has changed nothing and is right now may as well happen now: that takes no chance from the
 * others. */
static uint64_t take_reads(struct search *search, uint64_t done, const struct state *state)
{
    const struct window *window = search->window;

    for (unsigned i = 0; i < window->op_count; i++) {
        struct state copy = *state;

        if (((search->reads & ~done) >> i & 1) == 0 || (search->before[i] & ~done) != 0 ||
            !op_run(&window->ops[i], &copy, &search->window->texts))
            continue;
        done |= 1ull << i;
        search->order[search->order_count++] = i;
        i = UINT32_MAX; /* from the beginning: others may follow it */
    }
    return done;
}

static enum verdict search_from(struct search *search, uint64_t done, struct state state)
{
    const struct window *window = search->window;
    unsigned order_count = search->order_count;
    enum verdict verdict = LINEAR_NO;

    if (++search->info->nodes > SEARCH_NODES_MOST)
        return LINEAR_TOO_LONG;
    done = take_reads(search, done, &state);
    search_note(search);
    if ((done & search->must) == search->must && memcmp(&state, &window->end, sizeof(state)) == 0)
        return LINEAR_YES;
    if (!was_seen(done, state_hash(&state))) {
        for (unsigned n = 0; n < window->op_count && verdict == LINEAR_NO; n++) {
            unsigned i = search->by_time[n];
            struct state next = state;

            if (((done | search->reads) >> i & 1) != 0 || (search->before[i] & ~done) != 0 ||
                !op_run(&window->ops[i], &next, &search->window->texts))
                continue;
            search->order[search->order_count++] = i;
            verdict = search_from(search, done | 1ull << i, next);
            if (verdict == LINEAR_NO)
                search->order_count--;
        }
    }
    if (verdict == LINEAR_NO)
        search->order_count = order_count;
    return verdict;
}

enum verdict window_verdict(struct window *window, struct verdict_info *info)
{
    struct search search = {.window = window, .info = info};

    *info = (struct verdict_info){0};
    if (seen == NULL)
        seen = calloc(SEEN_SLOTS, sizeof(*seen));
    if (seen == NULL)
        die("out of memory");
    seen_generation++;
    for (unsigned i = 0; i < window->op_count; i++) {
        const struct op *op = &window->ops[i];
        unsigned at = i;

        for (; at > 0; at--) {
            const struct op *earlier = &window->ops[search.by_time[at - 1]];

            if (op->pending || (!earlier->pending && earlier->returned_ns <= op->returned_ns))
                break;
            search.by_time[at] = search.by_time[at - 1];
        }
        search.by_time[at] = i;
        if (!op->pending)
            search.must |= 1ull << i;
        if (op_changed_nothing(op, &window->texts))
            search.reads |= 1ull << i;
        for (unsigned j = 0; j < window->op_count; j++) {
            const struct op *other = &window->ops[j];

            if ((other->conn == op->conn && j < i) ||
                (j != i && !other->pending && other->returned_ns < op->invoked_ns))
                search.before[i] |= 1ull << j;
        }
    }
    return search_from(&search, 0, window->begin);
}

/* --- messages --- */

static void show_state(struct window *window, const char *name, const struct state *state)
{
    char line[4096];
    size_t at = 0;

    for (unsigned db = 0; db < MODEL_DBS; db++) {
        for (unsigned key = 0; key < MODEL_KEYS; key++) {
            size_t size;
            uint32_t value = state->values[db][key];

            if (value != 0 && at + 600 < sizeof(line))
                at += (size_t)snprintf(line + at, sizeof(line) - at, " %u:k%u=%.500s", db, key,
                                       texts_get(&window->texts, value, &size));
        }
    }
    line[at] = 0;
    say("  %s:%s", name, line);
}

static void show_op(struct window *window, unsigned index)
{
    const struct op *op = &window->ops[index];
    uint64_t start = window->ops[0].invoked_ns;
    char line[4096];
    size_t at = 0, size;

    for (unsigned i = 0; i < window->op_count; i++)
        start = window->ops[i].invoked_ns < start ? window->ops[i].invoked_ns : start;
    for (unsigned i = 0; i < op->step_count && at + 1000 < sizeof(line); i++) {
        step_print(&op->steps[i], op->db, &window->texts, line + at, sizeof(line) - at);
        at += strlen(line + at);
        at += (size_t)snprintf(line + at, sizeof(line) - at, "%s", i + 1 < op->step_count ? " | " : "");
    }
    say("  %2u conn %2u db %u  %8.1f .. %8.1f us  %s%s  ->  %s", index, op->conn, op->db,
        (double)(op->invoked_ns - start) / 1e3, op->pending ? -1.0 : (double)(op->returned_ns - start) / 1e3,
        op->in_transaction ? "MULTI " : "", line,
        op->pending ? "(no reply)" : texts_get(&window->texts, op->reply, &size));
}

void window_show(struct window *window, const struct verdict_info *info)
{
    uint64_t shown = 0;

    show_state(window, "data before", &window->begin);
    say("  the longest order that explains its replies (%u of %u operations):", info->order_count, window->op_count);
    for (unsigned i = 0; i < info->order_count; i++) {
        show_op(window, info->order[i]);
        shown |= 1ull << info->order[i];
    }
    say("  the others:");
    for (unsigned i = 0; i < window->op_count; i++) {
        if ((shown >> i & 1) == 0)
            show_op(window, i);
    }
    show_state(window, "data after", &window->end);
}
