/* A model replica: four threads change data at random, with transactions, lifetimes and whole databases; one connection
 * reads the journal, and a model with one thread applies it, command by command. A replica does not let keys expire by
 * itself: the stream deletes them. When the load has ended and short lifetimes are over, both must hold the same keys,
 * values and deadlines. The writes of a transaction are tagged, so that a piece of another between its commands shows
 * in the stream. */
#include "conn.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    WRITERS = 4,
    CONNS_A_WRITER = 4,
    DBS = 4,
    KEYS = 48,
    ROUND_OPS = 8,
    TAGS_MOST = 4,
    ARGS_MOST = 16,
    VALUE_MOST_BYTES = 1 << 20
};

static const int64_t far_ms = 3600 * 1000; /* keys with longer lifetimes stay to the end */

/* --- the model --- */

struct value {
    char *data; /* NULL: no such key */
    size_t size;
    int64_t expire_ms; /* -1: never */
};

struct model {
    struct value values[DBS][KEYS];
    int db; /* -1: nothing was selected yet */
    bool in_block;
    unsigned block_conn, block_number, block_next, block_count; /* of a tagged transaction; count 0: not tagged */
    unsigned last_number[WRITERS * CONNS_A_WRITER];
    uint64_t commands, blocks, tagged_blocks;
    char problem[400]; /* the first; empty: none */
};

struct command {
    struct raw args[ARGS_MOST];
    unsigned count;
    struct raw whole;
};

static void problem(struct model *model, const struct command *command, const char *what)
{
    char room[250];

    if (model->problem[0] == 0)
        snprintf(model->problem, sizeof(model->problem), "%s: command %llu: %s", what,
                 (unsigned long long)model->commands, raw_show(command->whole, room, sizeof(room)));
}

static bool arg_is(const struct command *command, unsigned index, const char *word)
{
    return index < command->count && command->args[index].size == strlen(word) &&
           strncasecmp(command->args[index].data, word, command->args[index].size) == 0;
}

static int64_t text_number(struct raw text, int64_t otherwise)
{
    char digits[32], *end;
    int64_t number;

    if (text.size == 0 || text.size >= sizeof(digits))
        return otherwise;
    memcpy(digits, text.data, text.size);
    digits[text.size] = 0;
    number = strtoll(digits, &end, 10);
    return *end == 0 ? number : otherwise;
}

static int64_t arg_number(const struct command *command, unsigned index)
{
    return index < command->count ? text_number(command->args[index], -1) : -1;
}

static void value_clear(struct value *value)
{
    free(value->data);
    *value = (struct value){.expire_ms = -1};
}

static void value_put(struct value *value, const char *data, size_t size, int64_t expire_ms)
{
    char *copy = malloc(size + 1);

    if (copy == NULL)
        die("out of memory");
    memcpy(copy, data, size);
    free(value->data);
    *value = (struct value){copy, size, expire_ms};
}

static struct value *value_of(struct model *model, const struct command *command, unsigned index)
{
    static struct value nobody = {.expire_ms = -1};
    int64_t key = -1;

    if (index < command->count && command->args[index].size > 1 && command->args[index].data[0] == 'k')
        key = text_number((struct raw){command->args[index].data + 1, command->args[index].size - 1}, -1);
    if (key >= 0 && key < KEYS && model->db >= 0)
        return &model->values[model->db][key];
    problem(model, command, model->db < 0 ? "no database was selected" : "an unknown key");
    value_clear(&nobody);
    return &nobody;
}

static void run_set(struct model *model, const struct command *command)
{
    struct value *value = value_of(model, command, 1);
    int64_t expire_ms = -1;

    for (unsigned i = 3; i < command->count; i++) {
        if (arg_is(command, i, "PXAT"))
            expire_ms = arg_number(command, ++i);
        else if (arg_is(command, i, "KEEPTTL"))
            expire_ms = value->expire_ms;
        else if (!arg_is(command, i, "NX") && !arg_is(command, i, "XX") && !arg_is(command, i, "GET"))
            problem(model, command, "SET with what a replica cannot repeat");
    }
    value_put(value, command->args[2].data, command->args[2].size, expire_ms);
}

static void run_add(struct model *model, const struct command *command)
{
    struct value *value = value_of(model, command, 1);
    int64_t by = command->count > 2 ? arg_number(command, 2) : 1, number = 0;
    char digits[24];
    int size;

    if (arg_is(command, 0, "DECR") || arg_is(command, 0, "DECRBY"))
        by = -by;
    if (value->data != NULL)
        number = text_number((struct raw){value->data, value->size}, INT64_MIN);
    if (number == INT64_MIN) {
        problem(model, command, "adds to what is no number here");
        return;
    }
    size = snprintf(digits, sizeof(digits), "%lld", (long long)(number + by));
    value_put(value, digits, (size_t)size, value->expire_ms);
}

static void run_write_at(struct model *model, const struct command *command, bool append)
{
    struct value *value = value_of(model, command, 1);
    struct raw bytes = command->args[append ? 2 : 3];
    size_t at = append ? value->size : (size_t)arg_number(command, 2);
    size_t size = at + bytes.size > value->size ? at + bytes.size : value->size;
    char *data;

    if (size > VALUE_MOST_BYTES) {
        problem(model, command, "a value has grown too long");
        return;
    }
    data = calloc(size + 1, 1);
    if (data == NULL)
        die("out of memory");
    if (value->data != NULL)
        memcpy(data, value->data, value->size);
    memcpy(data + at, bytes.data, bytes.size);
    free(value->data);
    value->data = data;
    value->size = size;
}

static void run_copy(struct model *model, const struct command *command, bool keep)
{
    struct value *from = value_of(model, command, 1), *to = value_of(model, command, 2);

    if (from->data == NULL) {
        problem(model, command, "the source is not there");
        return;
    }
    if (from == to)
        return;
    value_put(to, from->data, from->size, from->expire_ms);
    if (!keep)
        value_clear(from);
}

static void run_move(struct model *model, const struct command *command)
{
    struct value *from = value_of(model, command, 1), *to;
    int64_t db = arg_number(command, 2);

    if (db < 0 || db >= DBS || from->data == NULL || (to = &model->values[db][from - model->values[model->db]])->data) {
        problem(model, command, "MOVE cannot have moved anything");
        return;
    }
    *to = *from;
    *from = (struct value){.expire_ms = -1};
}

static void run_swapdb(struct model *model, const struct command *command)
{
    int64_t one = arg_number(command, 1), other = arg_number(command, 2);

    if (one < 0 || other < 0 || one >= DBS || other >= DBS) {
        problem(model, command, "SWAPDB of unknown databases");
        return;
    }
    for (unsigned key = 0; key < KEYS; key++) {
        struct value value = model->values[one][key];

        model->values[one][key] = model->values[other][key];
        model->values[other][key] = value;
    }
}

static void run_flush(struct model *model, bool all)
{
    for (int db = 0; db < DBS; db++) {
        for (unsigned key = 0; key < KEYS && (all || db == model->db); key++)
            value_clear(&model->values[db][key]);
    }
}

/* --- transactions in the stream --- */

/* "tx.CONN.NUMBER.INDEX.COUNT" */
static bool parse_tag(struct raw text, unsigned tag[4])
{
    char room[64];

    if (text.size >= sizeof(room) || text.size < 3 || memcmp(text.data, "tx.", 3) != 0)
        return false;
    memcpy(room, text.data, text.size);
    room[text.size] = 0;
    return sscanf(room, "tx.%u.%u.%u.%u", &tag[0], &tag[1], &tag[2], &tag[3]) == 4;
}

static void watch_tags(struct model *model, const struct command *command)
{
    unsigned tag[4];

    if (arg_is(command, 0, "MULTI") || arg_is(command, 0, "EXEC"))
        return;
    if (!arg_is(command, 0, "SET") || command->count < 3 || !parse_tag(command->args[2], tag)) {
        /* A key that is overwritten after its time goes first; databases may be swapped in between. */
        if (model->in_block && model->block_count != 0 && !arg_is(command, 0, "DEL") && !arg_is(command, 0, "UNLINK") &&
            !arg_is(command, 0, "SWAPDB") && !arg_is(command, 0, "SELECT"))
            problem(model, command, "stands in the middle of somebody's transaction");
        return;
    }
    if (!model->in_block) {
        problem(model, command, "a piece of a transaction stands alone");
        return;
    }
    if (model->block_next == 0) {
        model->block_conn = tag[0];
        model->block_number = tag[1];
        model->block_count = tag[3];
        if (tag[0] >= COUNTOF(model->last_number) || tag[1] <= model->last_number[tag[0]])
            problem(model, command, "transactions of one connection are out of order");
        else
            model->last_number[tag[0]] = tag[1];
    }
    if (tag[0] != model->block_conn || tag[1] != model->block_number || tag[2] != model->block_next)
        problem(model, command, "transactions are mixed");
    model->block_next++;
}

static void run_block_edge(struct model *model, const struct command *command, bool begins)
{
    if (begins == model->in_block)
        problem(model, command, begins ? "MULTI within MULTI" : "EXEC without MULTI");
    if (!begins && model->block_next != model->block_count)
        problem(model, command, "a part of a transaction is missing");
    model->blocks += begins;
    model->tagged_blocks += !begins && model->block_count != 0;
    model->in_block = begins;
    model->block_next = model->block_count = 0;
}

/* --- a command of the stream --- */

static void run_command(struct model *model, const struct command *command)
{
    static const struct {
        const char *name;
        unsigned least;
    } sizes[] = {{"SET", 3},      {"APPEND", 3}, {"SETRANGE", 4}, {"INCR", 2},   {"DECR", 2},      {"INCRBY", 3},
                 {"DECRBY", 3},   {"MSET", 3},   {"MSETNX", 3},   {"DEL", 2},    {"UNLINK", 2},    {"RENAME", 3},
                 {"RENAMENX", 3}, {"COPY", 3},   {"MOVE", 3},     {"SWAPDB", 3}, {"PEXPIREAT", 3}, {"PERSIST", 2},
                 {"SETNX", 3},    {"SELECT", 2}, {"GETDEL", 2},   {"GETSET", 3}};

    for (size_t i = 0; i < COUNTOF(sizes); i++) {
        if (arg_is(command, 0, sizes[i].name) && command->count < sizes[i].least) {
            problem(model, command, "too few arguments");
            return;
        }
    }
    model->commands++;
    watch_tags(model, command);
    if (arg_is(command, 0, "SELECT")) {
        model->db = (int)arg_number(command, 1);
        if (model->db < 0 || model->db >= DBS)
            problem(model, command, "selects an unknown database");
    } else if (arg_is(command, 0, "MULTI")) {
        run_block_edge(model, command, true);
    } else if (arg_is(command, 0, "EXEC")) {
        run_block_edge(model, command, false);
    } else if (arg_is(command, 0, "SET")) {
        run_set(model, command);
    } else if (arg_is(command, 0, "GETSET") || arg_is(command, 0, "SETNX")) {
        value_put(value_of(model, command, 1), command->args[2].data, command->args[2].size, -1);
    } else if (arg_is(command, 0, "MSET") || arg_is(command, 0, "MSETNX")) {
        for (unsigned i = 1; i + 1 < command->count; i += 2)
            value_put(value_of(model, command, i), command->args[i + 1].data, command->args[i + 1].size, -1);
    } else if (arg_is(command, 0, "APPEND") || arg_is(command, 0, "SETRANGE")) {
        run_write_at(model, command, arg_is(command, 0, "APPEND"));
    } else if (arg_is(command, 0, "INCR") || arg_is(command, 0, "DECR") || arg_is(command, 0, "INCRBY") ||
               arg_is(command, 0, "DECRBY")) {
        run_add(model, command);
    } else if (arg_is(command, 0, "DEL") || arg_is(command, 0, "UNLINK") || arg_is(command, 0, "GETDEL")) {
        for (unsigned i = 1; i < command->count; i++)
            value_clear(value_of(model, command, i));
    } else if (arg_is(command, 0, "RENAME") || arg_is(command, 0, "RENAMENX")) {
        run_copy(model, command, false);
    } else if (arg_is(command, 0, "COPY")) {
        run_copy(model, command, true);
    } else if (arg_is(command, 0, "MOVE")) {
        run_move(model, command);
    } else if (arg_is(command, 0, "SWAPDB")) {
        run_swapdb(model, command);
    } else if (arg_is(command, 0, "FLUSHDB") || arg_is(command, 0, "FLUSHALL")) {
        run_flush(model, arg_is(command, 0, "FLUSHALL"));
    } else if (arg_is(command, 0, "PEXPIREAT") || arg_is(command, 0, "PERSIST")) {
        struct value *value = value_of(model, command, 1);

        if (value->data == NULL)
            problem(model, command, "a lifetime for a key that is not there");
        value->expire_ms = command->count > 2 ? arg_number(command, 2) : -1;
    } else {
        problem(model, command, "no command that a stream should have");
    }
}

/* Applies a stream; `skip` is left out (counted from 0; UINT64_MAX: nothing is). Returns how many commands it had. */
static uint64_t apply(struct model *model, struct raw stream, uint64_t skip)
{
    uint64_t index = 0;

    for (size_t at = 0; at < stream.size; index++) {
        struct command command = {.whole = {stream.data + at, raw_size(stream.data + at, stream.size - at)}};

        if (command.whole.size == 0 || !raw_is_array(command.whole)) {
            problem(model, &command, "the stream is damaged");
            return index;
        }
        command.count = (unsigned)raw_number(command.whole);
        if (command.count == 0 || command.count > ARGS_MOST) {
            problem(model, &command, "a strange number of arguments");
            return index;
        }
        for (unsigned i = 0; i < command.count; i++)
            command.args[i] = raw_string(raw_child(command.whole, i));
        if (index != skip)
            run_command(model, &command);
        at += command.whole.size;
    }
    return index;
}

static void model_init(struct model *model)
{
    *model = (struct model){.db = -1};
    for (unsigned db = 0; db < DBS; db++) {
        for (unsigned key = 0; key < KEYS; key++)
            model->values[db][key].expire_ms = -1;
    }
}

static void model_copy(struct model *copy, const struct model *model)
{
    *copy = *model;
    for (unsigned db = 0; db < DBS; db++) {
        for (unsigned key = 0; key < KEYS; key++) {
            const struct value *value = &model->values[db][key];

            copy->values[db][key].data = NULL;
            if (value->data != NULL)
                value_put(&copy->values[db][key], value->data, value->size, value->expire_ms);
        }
    }
}

static void model_fini(struct model *model)
{
    run_flush(model, true);
}

static bool models_equal(const struct model *one, const struct model *other, bool show)
{
    bool equal = true;

    for (unsigned db = 0; db < DBS; db++) {
        for (unsigned key = 0; key < KEYS; key++) {
            const struct value *a = &one->values[db][key], *b = &other->values[db][key];

            if ((a->data == NULL) == (b->data == NULL) && a->size == b->size && a->expire_ms == b->expire_ms &&
                (a->data == NULL || memcmp(a->data, b->data, a->size) == 0))
                continue;
            equal = false;
            if (show)
                complain("replica: db %u k%u: the server has '%.*s' until %lld, the replica '%.*s' until %lld", db, key,
                         a->data ? (int)(a->size < 100 ? a->size : 100) : 6, a->data ? a->data : "(none)",
                         (long long)a->expire_ms, b->data ? (int)(b->size < 100 ? b->size : 100) : 6,
                         b->data ? b->data : "(none)", (long long)b->expire_ms);
        }
    }
    return equal;
}

/* --- the load --- */

struct replica {
    int port;
    uint64_t seed, until_ns;
    _Atomic unsigned writing;
    struct conn reader;
    struct model model;
    uint64_t commands, reads;
    uint64_t sent[WRITERS];
};

static void add_transaction(struct conn *conn, struct chance *chance, unsigned conn_index, unsigned *number)
{
    unsigned count = 2 + chance_below(chance, TAGS_MOST - 1);

    ++*number;
    conn_add(conn, "MULTI");
    for (unsigned i = 0; i < count; i++) {
        conn_add(conn, "SET k%u tx.%u.%u.%u.%u", chance_below(chance, KEYS), conn_index, *number, i, count);
        if (chance_below(chance, 12) == 0)
            conn_add(conn, "SWAPDB %u %u", chance_below(chance, DBS), chance_below(chance, DBS));
        if (chance_below(chance, 8) == 0)
            conn_add(conn, "GET k%u", chance_below(chance, KEYS));
    }
    conn_add(conn, "EXEC");
}

/* A transaction of anything: its effects need not be as many as its commands. */
static void add_change(struct conn *conn, struct chance *chance)
{
    unsigned key = chance_below(chance, KEYS), other = chance_below(chance, KEYS), number = chance_below(chance, 1000);

    switch (chance_below(chance, 36)) {
    case 0:
        conn_add(conn, "SET k%u %u", key, number);
        break;
    case 1:
        conn_add(conn, "SET k%u v%u PX %u", key, number, 1 + chance_below(chance, 60));
        break;
    case 2:
        conn_add(conn, "SET k%u %u PX %u", key, number, 1 + chance_below(chance, 60));
        break;
    case 3:
        conn_add(conn, "SET k%u v%u EX %u", key, number, 10000 + number);
        break;
    case 4:
        conn_add(conn, "SET k%u v%u NX", key, number);
        break;
    case 5:
        conn_add(conn, "SET k%u v%u XX KEEPTTL", key, number);
        break;
    case 6:
        conn_add(conn, "SET k%u v%u GET PX %u", key, number, 1 + chance_below(chance, 30));
        break;
    case 7:
        conn_add(conn, "GETSET k%u %u", key, number);
        break;
    case 8:
        conn_add(conn, "GETDEL k%u", key);
        break;
    case 9:
        conn_add(conn, "GETEX k%u PX %u", key, 1 + chance_below(chance, 60));
        break;
    case 10:
        conn_add(conn, "GETEX k%u PERSIST", key);
        break;
    case 11:
        conn_add(conn, "PEXPIRE k%u %u", key, chance_below(chance, 40));
        break;
    case 12:
        conn_add(conn, "EXPIRE k%u %u", key, 10000 + number);
        break;
    case 13:
        conn_add(conn, "PEXPIREAT k%u %u", key, number);
        break;
    case 14:
        conn_add(conn, "PERSIST k%u", key);
        break;
    case 15:
        conn_add(conn, "INCR k%u", key);
        break;
    case 16:
        conn_add(conn, "DECRBY k%u %u", key, number);
        break;
    case 17:
        conn_add(conn, "INCRBY k%u %u", key, number);
        break;
    case 18:
        conn_add(conn, "INCRBYFLOAT k%u 0.5", key);
        break;
    case 19:
        conn_add(conn, "APPEND k%u a%u", key, number);
        break;
    case 20:
        conn_add(conn, "SETRANGE k%u %u x", key, chance_below(chance, 20));
        break;
    case 21:
        conn_add(conn, "MSET k%u a%u k%u b%u", key, number, other, number);
        break;
    case 22:
        conn_add(conn, "MSETNX k%u a%u k%u b%u", key, number, other, number);
        break;
    case 23:
        conn_add(conn, "DEL k%u k%u", key, other);
        break;
    case 24:
        conn_add(conn, "UNLINK k%u", key);
        break;
    case 25:
        conn_add(conn, "RENAME k%u k%u", key, other);
        break;
    case 26:
        conn_add(conn, "RENAMENX k%u k%u", key, other);
        break;
    case 27:
        conn_add(conn, "COPY k%u k%u", key, other);
        break;
    case 28:
        conn_add(conn, "COPY k%u k%u REPLACE", key, other);
        break;
    case 29:
        conn_add(conn, "MOVE k%u %u", key, chance_below(chance, DBS));
        break;
    case 30:
        conn_add(conn, "SELECT %u", chance_below(chance, DBS));
        break;
    case 31:
        conn_add(conn, "SETNX k%u %u", key, number);
        break;
    case 32:
        conn_add(conn, "PSETEX k%u %u v%u", key, 1 + chance_below(chance, 50), number);
        break;
    case 33:
        conn_add(conn, "MGET k%u k%u", key, other);
        break;
    case 34:
        conn_add(conn, "SWAPDB %u %u", chance_below(chance, DBS), chance_below(chance, DBS));
        break;
    default:
        if (chance_below(chance, 12) == 0)
            conn_add(conn, chance_below(chance, 6) == 0 ? "FLUSHALL" : "FLUSHDB");
        else
            conn_add(conn, "GET k%u", key);
    }
}

static void add_mixed_transaction(struct conn *conn, struct chance *chance)
{
    unsigned count = 1 + chance_below(chance, 6);

    conn_add(conn, "MULTI");
    for (unsigned i = 0; i < count; i++)
        add_change(conn, chance);
    conn_add(conn, "EXEC");
}

static void write_load(struct replica *replica, unsigned index)
{
    struct chance chance = chance_make(replica->seed, 200 + index);
    struct conn conns[CONNS_A_WRITER];
    unsigned numbers[CONNS_A_WRITER] = {0};

    for (unsigned c = 0; c < CONNS_A_WRITER; c++)
        conn_start(&conns[c], replica->port, (int)chance_below(&chance, DBS));
    while (now_ns() < replica->until_ns) {
        for (unsigned c = 0; c < CONNS_A_WRITER; c++) {
            for (unsigned i = 0; i < ROUND_OPS; i++) {
                unsigned roll = chance_below(&chance, 10);

                if (roll == 0)
                    add_transaction(&conns[c], &chance, index * CONNS_A_WRITER + c, &numbers[c]);
                else if (roll == 1)
                    add_mixed_transaction(&conns[c], &chance);
                else
                    add_change(&conns[c], &chance);
            }
            conn_add(&conns[c], "ECHO end");
            conn_send(&conns[c]);
        }
        for (unsigned c = 0; c < CONNS_A_WRITER; c++) {
            struct raw reply;

            do {
                if (conn_read(&conns[c], &reply, reply_limit_seconds) != GOT_REPLY)
                    die("replica: a writer got no reply");
            } while (!raw_says(reply, "end"));
            replica->sent[index] += ROUND_OPS;
        }
    }
    for (unsigned c = 0; c < CONNS_A_WRITER; c++)
        conn_close(&conns[c]);
    atomic_fetch_sub(&replica->writing, 1);
}

static struct raw read_journal(struct replica *replica)
{
    struct raw reply = conn_ask(&replica->reader, "DEBUG JOURNAL READ");
    char room[200];

    if (!raw_is_string(reply))
        die("replica: DEBUG JOURNAL READ: %s", raw_show(reply, room, sizeof(room)));
    replica->reads++;
    return raw_string(reply);
}

static void follow(struct replica *replica)
{
    apply(&replica->model, read_journal(replica), UINT64_MAX);
    if (replica->model.in_block)
        complain("replica: the journal was read in the middle of a transaction");
    if (replica->model.problem[0] != 0)
        complain("replica: %s", replica->model.problem);
    replica->model.problem[0] = 0;
}

static void replica_thread(void *context, unsigned index)
{
    struct replica *replica = context;

    if (index < WRITERS) {
        write_load(replica, index);
        return;
    }
    while (atomic_load(&replica->writing) != 0) {
        follow(replica);
        sleep_ms(5);
    }
}

/* --- the end: both must be equal --- */

static void dump_server(struct conn *conn, struct model *dump)
{
    for (int db = 0; db < DBS; db++) {
        conn_ask(conn, "SELECT %d", db);
        for (unsigned key = 0; key < KEYS; key++) {
            struct raw reply = conn_ask(conn, "GET k%u", key);
            struct value *value = &dump->values[db][key];

            if (raw_is_null(reply))
                continue;
            value_put(value, raw_string(reply).data, raw_string(reply).size, -1);
            value->expire_ms = raw_number(conn_ask(conn, "PEXPIRETIME k%u", key));
        }
    }
}

/* Waits until only keys with long lifetimes are left. */
static void wait_for_silence(struct replica *replica, struct conn *conn)
{
    for (uint64_t limit = now_ns() + 30ull * 1000000000; now_ns() < limit; sleep_ms(20)) {
        bool settled = true;
        int64_t keys = 0, alive = 0;

        follow(replica);
        for (int db = 0; db < DBS; db++) {
            conn_ask(conn, "SELECT %d", db);
            keys += raw_number(conn_ask(conn, "DBSIZE"));
            alive += raw_number(conn_ask(conn, "KEYS *"));
            for (unsigned key = 0; key < KEYS && settled; key++) {
                int64_t left = raw_number(conn_ask(conn, "PTTL k%u", key));

                settled = left < 0 || left > far_ms;
            }
        }
        if (settled && keys == alive)
            return;
    }
    complain("replica: keys stay after their time");
}

/* The last commands, each of which matters: so each can be dropped to see whether that is noticed. */
static void check_dropping(struct replica *replica, struct conn *conn)
{
    struct model before, dump, after;
    struct raw stream;
    uint64_t count, noticed = 0, asked = 0;
    char *copy;

    model_copy(&before, &replica->model);
    conn_ask(conn, "SELECT 2");
    conn_ask(conn, "SET k1 1");
    for (unsigned i = 0; i < 5; i++)
        conn_ask(conn, "INCR k1");
    conn_ask(conn, "SET k2 a");
    conn_ask(conn, "APPEND k2 b");
    conn_ask(conn, "SET k3 c EX 50000");
    conn_ask(conn, "EXPIRE k2 50000");
    conn_ask(conn, "SET k4 d");
    conn_ask(conn, "DEL k4");
    stream = read_journal(replica);
    copy = malloc(stream.size + 1);
    if (copy == NULL)
        die("out of memory");
    memcpy(copy, stream.data, stream.size);
    stream.data = copy;
    count = apply(&replica->model, stream, UINT64_MAX);
    model_init(&dump);
    dump_server(conn, &dump);
    check(models_equal(&dump, &replica->model, true) && replica->model.problem[0] == 0,
          "replica: all keys, values and deadlines are equal");
    for (uint64_t skip = 0; skip < count; skip++) {
        model_copy(&after, &before);
        apply(&after, stream, skip);
        asked++;
        noticed += after.problem[0] != 0 || !models_equal(&dump, &after, false);
        model_fini(&after);
    }
    /* SET k1, SET k2 and SET k4 are overwritten or deleted, and SELECT may repeat the current database: dropping them
     * need not show; an addition, the appendix, both deadlines, and the deletion must. */
    check(asked >= 12 && noticed + 4 >= asked, "replica: %llu of %llu dropped commands were noticed",
          (unsigned long long)noticed, (unsigned long long)asked);
    model_fini(&before);
    model_fini(&dump);
    free(copy);
}

/* A stream from a line of commands, separated by '|'. */
static bool stream_is_right(const char *line)
{
    struct conn stream = {.fd = -1};
    struct model model;
    char room[600], *rest = room;
    bool right;

    snprintf(room, sizeof(room), "%s", line);
    for (char *command; (command = strsep(&rest, "|")) != NULL;)
        conn_add(&stream, "%s", command);
    model_init(&model);
    apply(&model, (struct raw){stream.out.data, stream.out.size}, UINT64_MAX);
    right = model.problem[0] == 0;
    model_fini(&model);
    text_fini(&stream.out);
    return right;
}

static void check_stream_checker(void)
{
    static const char *const wrong[] = {
        "SELECT 0|MULTI|SET k1 tx.1.1.0.2|SET k5 foreign|SET k2 tx.1.1.1.2|EXEC",
        "SELECT 0|MULTI|SET k1 tx.1.1.0.2|SET k2 tx.2.1.1.2|EXEC",
        "SELECT 0|MULTI|SET k1 tx.1.1.0.2|EXEC",
        "SELECT 0|SET k1 tx.1.1.0.2|SET k2 tx.1.1.1.2",
        "SELECT 0|MULTI|MULTI|EXEC",
        "SELECT 0|EXEC",
        "SELECT 0|MULTI|SET k1 tx.1.2.0.1|EXEC|MULTI|SET k1 tx.1.1.0.1|EXEC",
        "SET k1 1",
        "SELECT 0|SET k1 1 PX 100",
        "SELECT 0|PEXPIRE k1 100",
        "SELECT 0|SET k1 x|INCR k1",
        "SELECT 0|RENAME k1 k2",
    };
    unsigned noticed = 0;

    for (size_t i = 0; i < COUNTOF(wrong); i++) {
        noticed += !stream_is_right(wrong[i]);
        if (stream_is_right(wrong[i]))
            say("replica: not noticed: %s", wrong[i]);
    }
    check(noticed == COUNTOF(wrong) && stream_is_right("SELECT 0|MULTI|SET k1 tx.1.1.0.2|SET k2 tx.1.1.1.2|EXEC"),
          "replica: %u of %zu damaged streams were noticed", noticed, COUNTOF(wrong));
}

/* A second server that is told the model's data has the same fingerprint as the first. */
static void check_digests(struct replica *replica, struct conn *conn, const struct options *options)
{
    char first[64], second[64];
    struct server server;
    struct conn copy;

    server_start(&server, options, 1);
    conn_start(&copy, server.port, 0);
    for (int db = 0; db < DBS; db++) {
        conn_ask(&copy, "SELECT %d", db);
        for (unsigned key = 0; key < KEYS; key++) {
            const struct value *value = &replica->model.values[db][key];
            char name[8], deadline[24];
            const char *args[] = {"SET", name, value->data, "PXAT", deadline};
            size_t sizes[] = {3, 0, value->size, 4, 0};
            struct raw reply;

            if (value->data == NULL)
                continue;
            sizes[1] = (size_t)snprintf(name, sizeof(name), "k%u", key);
            sizes[4] = (size_t)snprintf(deadline, sizeof(deadline), "%lld", (long long)value->expire_ms);
            conn_add_args(&copy, value->expire_ms == -1 ? 3 : 5, args, sizes);
            if (!conn_send(&copy) || conn_read(&copy, &reply, reply_limit_seconds) != GOT_REPLY ||
                !raw_says(reply, "OK"))
                die("replica: the second server does not take a key");
        }
    }
    raw_show(raw_string(conn_ask(conn, "DEBUG DIGEST")), first, sizeof(first));
    raw_show(raw_string(conn_ask(&copy, "DEBUG DIGEST")), second, sizeof(second));
    check(strcmp(first, second) == 0 && strlen(first) == 40, "replica: DEBUG DIGEST is equal: %s, %s", first, second);
    conn_ask(&copy, "SELECT 2");
    conn_ask(&copy, "APPEND k2 more");
    raw_show(raw_string(conn_ask(&copy, "DEBUG DIGEST")), second, sizeof(second));
    check(strcmp(first, second) != 0, "replica: DEBUG DIGEST differs after one more change");
    conn_close(&copy);
    server_stop(&server, "replica, the second server");
}

void part_replica(const struct options *options, double seconds)
{
    static struct replica replica;
    struct server server;
    struct conn conn;
    uint64_t sent = 0;

    check_stream_checker();
    server_start(&server, options, options->server_threads);
    replica.port = server.port;
    replica.seed = options->seed;
    model_init(&replica.model);
    conn_start(&replica.reader, server.port, 0);
    conn_start(&conn, server.port, 0);
    if (!raw_says(conn_ask(&replica.reader, "DEBUG JOURNAL START"), "OK"))
        die("replica: DEBUG JOURNAL START is refused");
    replica.until_ns = now_ns() + (uint64_t)(seconds * 1e9);
    atomic_store(&replica.writing, WRITERS);
    threads_run(WRITERS + 1, replica_thread, &replica);
    wait_for_silence(&replica, &conn);
    for (unsigned i = 0; i < WRITERS; i++)
        sent += replica.sent[i];
    say("replica: %llu commands and transactions sent, %llu commands in the stream, %llu blocks (%llu tagged), "
        "%llu reads",
        (unsigned long long)sent, (unsigned long long)replica.model.commands, (unsigned long long)replica.model.blocks,
        (unsigned long long)replica.model.tagged_blocks, (unsigned long long)replica.reads);
    check(complaints() == 0 && replica.model.tagged_blocks > 0, "replica: the stream makes sense, transactions in one "
                                                                "piece and in order");
    check_dropping(&replica, &conn);
    check(complaints() == 0, "replica: nothing was wrong at the end");
    check_digests(&replica, &conn, options);
    conn_close(&conn);
    conn_close(&replica.reader);
    model_fini(&replica.model);
    server_stop(&server, "replica, with the journal being read");
}
