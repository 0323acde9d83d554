/* LCS and STRALGO.
 *
 * The classic table: cell (i, j) stands for the first i bytes of one string and the first j of the other. Its length
 * depends on the cells above, to the left, and above left, so one row of lengths is sufficient. For every cell two bits
 * tell which of these its length comes from; following them back from the last cell gives the subsequence. If above and
 * left are equally good, left is used: clients see which of several longest subsequences is found. */
#include "commands/string/lcs.h"

#include "base/assert.h"
#include "base/mem.h"
#include "commands/shared/families.h"
#include "server/config/options.h"
#include "server/core/request.h"

#include <string.h>

enum step { STEP_BOTH, STEP_FIRST, STEP_SECOND }; /* which string gives its last byte up */

enum { STEPS_A_BYTE = 4, STEP_BITS = 2, STEP_MASK = 3 };

struct lcs {
    struct slice first, second;
    size_t at_first, at_second; /* the walk: bytes not yet passed */
    size_t size;
    size_t row_bytes;
    unsigned char steps[]; /* first.size rows of second.size steps */
};

/* Fills in the steps and returns the size. */
static uint32_t fill(struct lcs *lcs, uint32_t *lengths)
{
    for (size_t i = 0; i < lcs->first.size; i++) {
        unsigned char *row = lcs->steps + i * lcs->row_bytes;
        char byte = lcs->first.data[i];
        uint32_t above_left = 0; /* the row above, one to the left */

        for (size_t j = 0; j < lcs->second.size; j++) {
            uint32_t above = lengths[j + 1];
            enum step step;

            if (byte == lcs->second.data[j]) {
                lengths[j + 1] = above_left + 1;
                step = STEP_BOTH;
            } else if (above > lengths[j]) {
                step = STEP_FIRST;
            } else {
                lengths[j + 1] = lengths[j];
                step = STEP_SECOND;
            }
            row[j / STEPS_A_BYTE] |= (unsigned char)((unsigned)step << (j % STEPS_A_BYTE * STEP_BITS));
            above_left = above;
        }
    }
    return lengths[lcs->second.size];
}

struct lcs *lcs_create(struct slice first, struct slice second)
{
    size_t row_bytes = second.size / STEPS_A_BYTE + 1, steps_bytes;
    uint32_t *lengths = NULL;
    struct lcs *lcs = NULL;

    if (second.size >= UINT32_MAX || __builtin_mul_overflow(first.size, row_bytes, &steps_bytes) ||
        steps_bytes > SIZE_MAX / 2)
        return NULL;
    lengths = mem_try_alloc_zero((second.size + 1) * sizeof(*lengths));
    if (lengths != NULL)
        lcs = mem_try_alloc_zero(sizeof(*lcs) + steps_bytes);
    if (lcs != NULL) {
        lcs->first = first;
        lcs->second = second;
        lcs->at_first = first.size;
        lcs->at_second = second.size;
        lcs->row_bytes = row_bytes;
        lcs->size = fill(lcs, lengths);
    }
    mem_free(lengths);
    return lcs;
}

void lcs_destroy(struct lcs **lcs)
{
    mem_free(*lcs);
    *lcs = NULL;
}

size_t lcs_size(const struct lcs *lcs)
{
    return lcs->size;
}

static enum step step_at(const struct lcs *lcs)
{
    size_t j = lcs->at_second - 1;

    return (lcs->steps[(lcs->at_first - 1) * lcs->row_bytes + j / STEPS_A_BYTE] >> (j % STEPS_A_BYTE * STEP_BITS)) &
           STEP_MASK;
}

bool lcs_next_run(struct lcs *lcs, struct lcs_run *run)
{
    run->size = 0;
    while (lcs->at_first != 0 && lcs->at_second != 0) {
        enum step step = step_at(lcs);

        if (step != STEP_BOTH && run->size != 0)
            break; /* the run has ended; this step is the next call's */
        if (step == STEP_BOTH)
            run->size++;
        lcs->at_first -= step != STEP_SECOND;
        lcs->at_second -= step != STEP_FIRST;
    }
    run->first_start = lcs->at_first;
    run->second_start = lcs->at_second;
    assert(run->first_start + run->size <= lcs->first.size && run->second_start + run->size <= lcs->second.size);
    return run->size != 0;
}

/* ------------------------------------------------------------------------------------------------------ commands -- */

struct lcs_options {
    bool size_only, runs, with_sizes;
    int64_t least;
    uint32_t strings_index, keys_index; /* STRALGO: of the first string or key; 0: none */
};

/* Options from `index` on. False: a syntax error, or it was replied. */
static bool parse_options(struct request *request, uint32_t index, bool with_sources, struct lcs_options *options)
{
    *options = (struct lcs_options){.least = 0};
    for (uint32_t i = index; i < request->arg_count; i++) {
        uint32_t more = request->arg_count - i - 1;

        if (request_arg_is(request, i, "LEN")) {
            options->size_only = true;
        } else if (request_arg_is(request, i, "IDX")) {
            options->runs = true;
        } else if (request_arg_is(request, i, "WITHMATCHLEN")) {
            options->with_sizes = true;
        } else if (request_arg_is(request, i, "MINMATCHLEN") && more >= 1) {
            if (!request_arg_i64(request, ++i, &options->least))
                return false;
        } else if (with_sources && more >= 2 &&
                   (request_arg_is(request, i, "STRINGS") || request_arg_is(request, i, "KEYS"))) {
            if (options->strings_index != 0 || options->keys_index != 0) {
                reply_error(request, "ERR Either use STRINGS or KEYS");
                return false;
            }
            if (request_arg_is(request, i, "KEYS"))
                options->keys_index = i + 1;
            else
                options->strings_index = i + 1;
            i += 2;
        } else {
            reply_syntax_error(request);
            return false;
        }
    }
    return true;
}

static bool check_options(struct request *request, const struct lcs_options *options)
{
    if (!options->size_only || !options->runs)
        return true;
    reply_error(request, "ERR If you want both the length and indexes, please just use IDX.");
    return false;
}

/* The strings of the two keys; absent ones are empty. `scratch` holds the digits of numbers. */
static bool read_two(struct request *request, char scratch[2][ENTRY_INT_TEXT_BYTES], struct slice strings[2])
{
    bool are_strings = true;

    for (unsigned i = 0; i < 2; i++) { /* both, also if the first one will not do: the other one may be a miss */
        const struct entry *entry = access_read(request->access, request->db, &request->keys[i]);

        if (entry != NULL && entry->type != TYPE_STRING)
            are_strings = false;
        else
            strings[i] = entry != NULL ? entry_string(entry, scratch[i]) : SLICE_EMPTY;
    }
    if (!are_strings)
        reply_error(request, "ERR The specified keys must contain string values");
    return are_strings;
}

/* A bound on time as much as on memory: the known one of the family, four bytes a cell of the table. */
static bool check_sizes(struct request *request, const struct slice strings[2])
{
    uint64_t limit = OPTION_GET_U64(option_proto_max_bulk_len);

    if (strings[0].size >= UINT32_MAX - 1 || strings[1].size >= UINT32_MAX - 1) {
        reply_error(request, "ERR String too long for LCS");
        return false;
    }
    if ((uint64_t)(strings[0].size + 1) * (strings[1].size + 1) > limit / sizeof(uint32_t)) {
        reply_error(request, "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
        return false;
    }
    return true;
}

static void reply_range(struct request *request, size_t start, size_t size)
{
    reply_array(request, 2);
    reply_int(request, (int64_t)start);
    reply_int(request, (int64_t)(start + size - 1));
}

static void reply_runs(struct request *request, struct lcs *lcs, const struct lcs_options *options)
{
    struct resp_deferred matches;
    struct lcs_run run;
    uint64_t count = 0;

    reply_map(request, 2);
    reply_text(request, "matches");
    matches = resp_begin_deferred(request->out);
    while (lcs_next_run(lcs, &run)) {
        if ((int64_t)run.size < options->least)
            continue;
        reply_array(request, options->with_sizes ? 3 : 2);
        reply_range(request, run.first_start, run.size);
        reply_range(request, run.second_start, run.size);
        if (options->with_sizes)
            reply_int(request, (int64_t)run.size);
        count++;
    }
    resp_end_deferred(request->out, request->proto, matches, RESP_ARRAY, count);
    reply_text(request, "len");
    reply_int(request, (int64_t)lcs_size(lcs));
}

static void reply_no_memory(struct request *request)
{
    reply_error(request, "ERR Insufficient memory, failed allocating transient memory for LCS");
}

static void reply_subsequence(struct request *request, struct lcs *lcs, struct slice first)
{
    size_t at = lcs_size(lcs);
    char *bytes = mem_try_alloc(at + 1);
    struct lcs_run run;

    if (bytes == NULL) {
        reply_no_memory(request);
        return;
    }
    while (lcs_next_run(lcs, &run)) {
        at -= run.size;
        memcpy(bytes + at, first.data + run.first_start, run.size);
    }
    reply_bulk(request, slice_make(bytes, lcs_size(lcs)));
    mem_free(bytes);
}

static void compare(struct request *request, const struct slice strings[2], const struct lcs_options *options)
{
    struct lcs *lcs;

    if (!check_sizes(request, strings))
        return;
    lcs = lcs_create(strings[0], strings[1]);
    if (lcs == NULL)
        reply_no_memory(request);
    else if (options->runs)
        reply_runs(request, lcs, options);
    else if (options->size_only)
        reply_int(request, (int64_t)lcs_size(lcs));
    else
        reply_subsequence(request, lcs, strings[0]);
    lcs_destroy(&lcs);
}

static void cmd_lcs(struct request *request)
{
    char scratch[2][ENTRY_INT_TEXT_BYTES];
    struct lcs_options options;
    struct slice strings[2];

    if (!read_two(request, scratch, strings) || !parse_options(request, 3, false, &options) ||
        !check_options(request, &options))
        return;
    compare(request, strings, &options);
}

static void cmd_stralgo(struct request *request)
{
    char scratch[2][ENTRY_INT_TEXT_BYTES];
    struct lcs_options options;
    struct slice strings[2];

    if (!request_arg_is(request, 1, "LCS")) {
        reply_syntax_error(request);
        return;
    }
    if (!parse_options(request, 2, true, &options))
        return;
    if (options.keys_index != 0) {
        if (!read_two(request, scratch, strings))
            return;
    } else if (options.strings_index != 0) {
        strings[0] = request_arg(request, options.strings_index);
        strings[1] = request_arg(request, options.strings_index + 1);
    } else {
        reply_error(request, "ERR Please specify two strings: STRINGS or KEYS options are mandatory");
        return;
    }
    if (check_options(request, &options))
        compare(request, strings, &options);
}

/* The two arguments behind KEYS, unless that word is itself one of STRINGS. */
static bool stralgo_find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    for (uint32_t i = 2; i < arg_count; i++) {
        if (slice_equal_text_nocase(args[i], "STRINGS")) {
            i += 2;
        } else if (slice_equal_text_nocase(args[i], "MINMATCHLEN")) {
            i++;
        } else if (slice_equal_text_nocase(args[i], "KEYS") && arg_count - i > 2) {
            key_positions_add(positions, i + 1, KEY_RO | KEY_ACCESS);
            key_positions_add(positions, i + 2, KEY_RO | KEY_ACCESS);
            return true;
        }
    }
    return true;
}

#define LCS_OPTIONS "[LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]"

/* clang-format off */
const struct command_row lcs_commands[] = {
    {.name = "lcs", .run = cmd_lcs, .arity = -3, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @string @slow", .keys = "RO,ACCESS@index:1@range:1,1,0", .group = "string",
     .since = "7.0.0", .summary = "Returns the longest common subsequence of two strings.",
     .complexity = "O(N*M) for strings of N and M bytes", .syntax = "LCS key1 key2 " LCS_OPTIONS},
    {.name = "stralgo", .run = cmd_stralgo, .arity = -2, .access = ACCESS_STRIPED,
     .flags = "readonly movablekeys alone", .categories = "@read @string @slow", .group = "generic",
     .since = "6.0.0", .summary = "Returns the longest common subsequence of two strings, given or stored in keys.",
     .complexity = "O(N*M) for strings of N and M bytes",
     .syntax = "STRALGO LCS (KEYS key1 key2|STRINGS string1 string2) " LCS_OPTIONS,
     .find_keys = stralgo_find_keys},
    {.name = NULL},
};
/* clang-format on */
