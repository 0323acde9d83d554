/* HyperLogLogs. They are strings, which clients may GET and SET, so each command checks the value. A change is computed
 * in a buffer first, because only then it is known whether there is one; a dense value of 12 KiB is changed in
 * place. */
#include "commands/shared/families.h"

#include "base/random.h"
#include "commands/shared/operations.h"
#include "commands/string/string.h"
#include "data/hyperloglog.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/durable/data_order.h"

#include <inttypes.h>
#include <math.h>

/* --- shared pieces --- */

enum { ACTIVE_SPARSE_BYTES = 3000 };

/* All nodes of an active group have the same bytes of a value: no directive decides them. */
static size_t sparse_limit(const struct request *request)
{
    if (UNLIKELY(journal_is_stamping(&request->worker->server->journal)) || UNLIKELY(data_order_is_wanted()))
        return ACTIVE_SPARSE_BYTES;
    return (size_t)OPTION_GET_U64(option_hll_sparse_max_bytes);
}

/* The value of a string key; false: it is no HyperLogLog, which was replied. */
static bool expect_hll(struct request *request, const struct entry *entry, struct slice *value)
{
    *value = entry_is_int(entry) ? SLICE_EMPTY : entry_string(entry, NULL);
    if (hll_encoding_of(*value) != HLL_NONE)
        return true;
    reply_error(request, "WRONGTYPE Key is not a valid HyperLogLog string value.");
    return false;
}

/* Can its registers be read? Replies if not. */
static bool expect_whole(struct request *request, struct slice value)
{
    if (hll_is_whole(value))
        return true;
    reply_error(request, "INVALIDOBJ Corrupted HLL object detected");
    return false;
}

/* The key takes the bytes, or is made of them. A dense one gets a blob of its size, not one that has grown to it. */
static void put_value(const struct request *request, const struct key *key, struct slice value, const char *event)
{
    struct change change;
    const struct entry *entry;

    change_begin(&change, request->access, request->db, key);
    entry = change_entry(&change);
    if (value.size == HLL_DENSE_BYTES && (entry == NULL || entry_string_size(entry) != value.size)) {
        struct blob *blob = blob_create_copy(value);

        change_put_blob(&change, blob, entry != NULL ? EXPIRE_KEEP : EXPIRE_NEVER);
        blob_release(&blob);
    } else {
        memcpy(change_edit_string(&change, value.size), value.data, value.size);
    }
    change_end(&change, EVENT_STRING, event);
}

/* --- PFADD --- */

static struct hll_place place_of_argument(const struct request *request, uint32_t index)
{
    return hll_place_of(request_arg(request, index));
}

/* The bytes of a dense one that have the register will be written. */
static void note_register(struct change *change, uint32_t index)
{
    const size_t first = HLL_HEADER_BYTES + index * 6 / 8;

    change_edit_also(change, first, MIN((size_t)2, HLL_DENSE_BYTES - first));
}

/* Nothing is written before the first element that is new to it. */
static bool add_to_dense(const struct request *request, const struct key *key, struct slice value)
{
    struct change change;
    struct hll_place place;
    uint32_t index = 2;
    char *bytes;

    for (;; index++) {
        if (index == request->arg_count)
            return false;
        place = place_of_argument(request, index);
        if (hll_dense_rank(value.data, place.index) < place.rank)
            break;
    }
    change_begin(&change, request->access, request->db, key);
    bytes = change_edit_part(&change, value.size, 0, HLL_HEADER_BYTES);
    for (; index < request->arg_count; index++) {
        place = place_of_argument(request, index);
        note_register(&change, place.index);
        (void)hll_dense_raise(bytes, place);
    }
    change_end(&change, EVENT_STRING, "pfadd");
    return true;
}

/* `value` is empty where there is no key. */
static bool add_to_sparse(const struct request *request, const struct key *key, struct slice value)
{
    struct buffer work = {NULL, 0, 0};
    bool changed = value.size == 0;

    if (changed)
        hll_init(&work);
    else
        buffer_append_slice(&work, value);
    for (uint32_t i = 2; i < request->arg_count; i++)
        changed |= hll_raise(&work, place_of_argument(request, i), sparse_limit(request));
    if (changed)
        put_value(request, key, buffer_slice(&work), "pfadd");
    buffer_fini(&work);
    return changed;
}

static void cmd_pfadd(struct request *request)
{
    const struct key *key = &request->keys[0];
    struct slice value = SLICE_EMPTY;
    struct entry *entry;

    if (!string_find(request, key, &entry) || (entry != NULL && !expect_hll(request, entry, &value)))
        return;
    if (entry == NULL)
        reply_int(request, add_to_sparse(request, key, value));
    else if (request->arg_count == 2)
        reply_int(request, 0);
    else if (hll_encoding_of(value) == HLL_DENSE)
        reply_int(request, add_to_dense(request, key, value));
    else if (expect_whole(request, value))
        reply_int(request, add_to_sparse(request, key, value));
}

/* --- PFCOUNT --- */

/* A replica's values are its master's: they remember counts when the master's do. */
static bool may_remember(const struct request *request)
{
    return (!role_follows() || access_follows(request->access)) && !operations_are_wanted(request);
}

/* Stores the estimate in the value: a change without an event. */
static void count_one(struct request *request)
{
    const struct key *key = &request->keys[0];
    struct change change;
    struct slice value;
    struct entry *entry;
    uint64_t count = 0;

    if (!string_read(request, key, &entry))
        return;
    if (entry != NULL) {
        if (!expect_hll(request, entry, &value))
            return;
        if (!hll_remembered_count(value, &count)) {
            if (!expect_whole(request, value))
                return;
            count = hll_estimate(value);
            if (may_remember(request)) {
                change_begin(&change, request->access, request->db, key);
                hll_remember_count(change_edit_part(&change, value.size, 0, HLL_HEADER_BYTES), count);
                change_end(&change, EVENT_STRING, NULL);
            }
        }
    }
    reply_int(request, (int64_t)count);
}

/* Adds a key's value to the registers; a key that does not exist adds nothing. */
static bool add_key(struct request *request, const struct entry *entry, struct hll_registers *registers, bool *dense)
{
    struct slice value;

    if (entry == NULL)
        return true;
    if (!expect_hll(request, entry, &value) || !expect_whole(request, value))
        return false;
    hll_registers_add(registers, value);
    *dense |= hll_encoding_of(value) == HLL_DENSE;
    return true;
}

static void count_union(struct request *request)
{
    struct hll_registers registers = {{0}};
    bool dense = false;

    for (uint32_t i = 0; i < request->key_count; i++) {
        struct entry *entry;

        if (!string_read(request, &request->keys[i], &entry) || !add_key(request, entry, &registers, &dense))
            return;
    }
    reply_int(request, (int64_t)hll_registers_estimate(&registers));
}

static void cmd_pfcount(struct request *request)
{
    if (request->key_count == 1)
        count_one(request);
    else
        count_union(request);
}

/* --- PFMERGE --- */

/* The specifications want a source; without one the key is merged with nothing, and made if there is none. */
static bool pfmerge_find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    (void)args;
    key_positions_add(positions, 1, KEY_RW | KEY_ACCESS | KEY_INSERT);
    for (uint32_t i = 2; i < arg_count; i++)
        key_positions_add(positions, i, KEY_RO | KEY_ACCESS);
    return true;
}

static void cmd_pfmerge(struct request *request)
{
    const struct key *key = &request->keys[0];
    struct hll_registers registers = {{0}};
    struct buffer work = {NULL, 0, 0};
    struct entry *entry;
    bool dense = false;

    for (uint32_t i = 0; i < request->key_count; i++) {
        if (!string_read(request, &request->keys[i], &entry) || !add_key(request, entry, &registers, &dense))
            return;
    }
    entry = access_find(request->access, request->db, key);
    if (entry != NULL)
        buffer_append_slice(&work, entry_string(entry, NULL)); /* it was seen to be one */
    else
        hll_init(&work);
    if (dense)
        hll_make_dense(&work);
    hll_raise_all(&work, &registers, sparse_limit(request));
    hll_forget_count(work.data);
    put_value(request, key, buffer_slice(&work), "pfadd");
    operation_add_value(request, request->db, key);
    buffer_fini(&work);
    reply_ok(request);
}

/* --- PFDEBUG --- */

/* False: it was dense. */
static bool make_key_dense(const struct request *request, struct slice value)
{
    struct buffer work = {NULL, 0, 0};

    if (hll_encoding_of(value) == HLL_DENSE)
        return false;
    buffer_append_slice(&work, value);
    hll_make_dense(&work);
    put_value(request, &request->keys[0], buffer_slice(&work), NULL);
    buffer_fini(&work);
    return true;
}

static void debug_getreg(struct request *request, struct slice value)
{
    struct hll_registers registers = {{0}};

    hll_registers_add(&registers, value);
    (void)make_key_dense(request, value); /* as it always did */
    reply_array(request, HLL_REGISTER_COUNT);
    for (uint32_t i = 0; i < HLL_REGISTER_COUNT; i++)
        reply_int(request, registers.ranks[i]);
}

static void debug_todense(struct request *request, struct slice value)
{
    reply_int(request, make_key_dense(request, value));
}

static void debug_encoding(struct request *request, struct slice value)
{
    reply_status(request, hll_encoding_of(value) == HLL_DENSE ? "dense" : "sparse");
}

static void debug_decode(struct request *request, struct slice value)
{
    struct buffer text = {NULL, 0, 0};

    if (hll_encoding_of(value) == HLL_DENSE) {
        reply_error(request, "ERR HLL encoding is not sparse");
        return;
    }
    hll_describe_runs(value, &text);
    reply_bulk(request, buffer_slice(&text));
    buffer_fini(&text);
}

static const struct {
    const char *word;
    void (*run)(struct request *request, struct slice value);
    bool reads_registers;
} debug_subcommands[] = {
    {"getreg", debug_getreg, true},
    {"decode", debug_decode, true},
    {"encoding", debug_encoding, false},
    {"todense", debug_todense, true},
};

static void cmd_pfdebug(struct request *request)
{
    struct slice word = request_arg(request, 1), value;
    struct entry *entry;

    if (!string_find(request, &request->keys[0], &entry))
        return;
    if (entry == NULL) {
        reply_error(request, "ERR The specified key does not exist");
        return;
    }
    if (!expect_hll(request, entry, &value))
        return;
    for (size_t i = 0; i < countof(debug_subcommands); i++) {
        if (!slice_equal_text_nocase(word, debug_subcommands[i].word))
            continue;
        if (!debug_subcommands[i].reads_registers || expect_whole(request, value))
            debug_subcommands[i].run(request, value);
        return;
    }
    reply_errorf(request, "ERR Unknown PFDEBUG subcommand '%.*s'", (int)MIN(word.size, (size_t)128), word.data);
}

/* --- PFSELFTEST --- */

enum {
    SELFTEST_ROUNDS = 20,
    SELFTEST_ELEMENTS = 1000000,
    SELFTEST_SPARSE_ELEMENTS = 100, /* so few are surely sparse */
    SELFTEST_SPARSE_LIMIT_BYTES = 3000
};

/* Compares random registers with the values last written to them. */
static bool test_registers(struct request *request, struct random *random)
{
    struct hll_registers model = {{0}};
    struct buffer value = {NULL, 0, 0};
    bool fine = true;

    hll_init(&value);
    hll_make_dense(&value);
    for (uint32_t i = 0; i < SELFTEST_ROUNDS * HLL_REGISTER_COUNT; i++) {
        struct hll_place place = {(uint32_t)random_below(random, HLL_REGISTER_COUNT),
                                  (uint32_t)random_below(random, HLL_RANK_MOST + 1)};

        model.ranks[place.index] = MAX(model.ranks[place.index], (uint8_t)place.rank);
        (void)hll_dense_raise(value.data, place);
    }
    for (uint32_t i = 0; i < HLL_REGISTER_COUNT && fine; i++) {
        fine = hll_dense_rank(value.data, i) == model.ranks[i];
        if (!fine)
            reply_errorf(request, "ERR TESTFAILED Register %u should be %u but is %u", i, model.ranks[i],
                         hll_dense_rank(value.data, i));
    }
    buffer_fini(&value);
    return fine;
}

/* An error of six times the standard error, 1.04 / sqrt(registers), is rarer than a broken machine. A few elements may
 * have equal hashes. */
static int64_t tolerated_error(int64_t elements)
{
    return (int64_t)(6 * 1.04 / sqrt(HLL_REGISTER_COUNT) * (double)elements) + 4;
}

static bool test_counts(struct request *request, int64_t elements, struct slice dense, struct slice sparse)
{
    int64_t count = (int64_t)hll_estimate(dense), error = count > elements ? count - elements : elements - count;

    if (elements <= SELFTEST_SPARSE_ELEMENTS && hll_encoding_of(sparse) != HLL_SPARSE)
        reply_error(request, "ERR TESTFAILED sparse encoding not used");
    else if (hll_estimate(sparse) != (uint64_t)count)
        reply_error(request, "ERR TESTFAILED dense/sparse disagree");
    else if (error > tolerated_error(elements))
        reply_errorf(request, "ERR TESTFAILED Too big error. card:%" PRId64 " abserr:%" PRId64, elements, error);
    else
        return true;
    return false;
}

/* More and more random elements, into one of each encoding (the sparse one may become dense as it likes). */
static bool test_elements(struct request *request, struct random *random)
{
    struct buffer dense = {NULL, 0, 0}, sparse = {NULL, 0, 0};
    int64_t next_check = 1;
    bool fine = true;

    hll_init(&dense);
    hll_make_dense(&dense);
    hll_init(&sparse);
    for (int64_t elements = 1; elements <= SELFTEST_ELEMENTS && fine; elements++) {
        uint64_t element = random_u64(random);
        struct hll_place place = hll_place_of(slice_make(&element, sizeof(element)));

        (void)hll_dense_raise(dense.data, place);
        (void)hll_raise(&sparse, place, SELFTEST_SPARSE_LIMIT_BYTES);
        if (elements == next_check) {
            fine = test_counts(request, elements, buffer_slice(&dense), buffer_slice(&sparse));
            next_check *= 10;
        }
    }
    buffer_fini(&dense);
    buffer_fini(&sparse);
    return fine;
}

static void cmd_pfselftest(struct request *request)
{
    struct random random;
    uint64_t seed;

    random_secret(&seed, sizeof(seed));
    random_seed(&random, seed);
    if (test_registers(request, &random) && test_elements(request, &random))
        reply_ok(request);
}

/* --- rows --- */

#define PF_ROW(name_, run_, arity_, access_, flags_, categories_, keys_, complexity_, syntax_, summary_, ...) \
    {                                                                                                         \
        .name = (name_), .run = (run_), .arity = (arity_), .access = (access_), .flags = (flags_),            \
        .categories = (categories_), .keys = (keys_), .group = "hyperloglog", .since = "2.8.9",               \
        .complexity = (complexity_), .syntax = (syntax_), .summary = (summary_), ##__VA_ARGS__                \
    }

const struct command_row hyperloglog_commands[] = {
    PF_ROW("pfadd", cmd_pfadd, -2, ACCESS_STRIPED, "write denyoom fast", "@write @hyperloglog @fast",
           "RW,INSERT@index:1@range:0,1,0", "O(1) for each element", "PFADD key [element ...]",
           "Adds elements to a HyperLogLog. Creates the key if it does not exist."),
    PF_ROW("pfcount", cmd_pfcount, -2, ACCESS_STRIPED, "readonly may_replicate", "@read @hyperloglog @slow",
           "RW,ACCESS@index:1@range:-1,1,0", "O(1) for one key, O(N) for N keys, with a much larger constant",
           "PFCOUNT key [key ...]", "Returns the approximate number of different elements that HyperLogLogs have seen.",
           .key_notes = "RW, for the estimate is kept with the value, and told to replicas."),
    PF_ROW("pfmerge", cmd_pfmerge, -2, ACCESS_STRIPED, "write denyoom alone", "@write @hyperloglog @slow",
           "RW,ACCESS,INSERT@index:1@range:0,1,0 RO,ACCESS@index:2@range:-1,1,0", "O(N) for N keys",
           "PFMERGE destkey [sourcekey ...]", "Merges HyperLogLogs into one.", .find_keys = pfmerge_find_keys),
    PF_ROW("pfdebug", cmd_pfdebug, 3, ACCESS_STRIPED, "write denyoom admin syscmd",
           "@write @hyperloglog @admin @slow @dangerous", "RW,ACCESS@index:2@range:0,1,0", "N/A",
           "PFDEBUG subcommand key", "Shows how a HyperLogLog is stored: GETREG, DECODE, ENCODING, TODENSE."),
    PF_ROW("pfselftest", cmd_pfselftest, 1, ACCESS_FREE, "admin syscmd", "@hyperloglog @admin @slow @dangerous", "",
           "N/A", "PFSELFTEST", "Tests whether HyperLogLogs count correctly."),
    {.name = NULL},
};
