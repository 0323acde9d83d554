/* DEBUG subcommands by which people and tests compare servers, hash slot by hash slot. */
#include "commands/debug/debug_priv.h"

#include "base/mem.h"
#include "base/number.h"
#include "persist/slot_digest.h"
#include "server/core/request.h"
#include "server/upkeep/slot_cycle.h"

#include <stdio.h>

struct slot_range {
    uint32_t first, last;
};

static bool parse_slot(struct slice text, uint32_t *slot)
{
    int64_t number;

    if (!number_parse_i64(text, &number) || number < 0 || number >= SLOT_COUNT)
        return false;
    *slot = (uint32_t)number;
    return true;
}

/* "7" or "0-5460". */
static bool parse_range(struct slice text, struct slot_range *range)
{
    const char *dash = text.size != 0 ? memchr(text.data, '-', text.size) : NULL;
    size_t size = dash != NULL ? (size_t)(dash - text.data) : text.size;

    if (!parse_slot(slice_make(text.data, size), &range->first))
        return false;
    range->last = range->first;
    return dash == NULL ||
           (parse_slot(slice_make(dash + 1, text.size - size - 1), &range->last) && range->last >= range->first);
}

static struct slot_terms terms_of(const struct request *request, struct slice seed)
{
    return (struct slot_terms){.secret = slot_secret_of(seed), .until_ms = request->access->now_ms};
}

/* SEED text, if it is there. Returns the index of the argument behind it. */
static uint32_t take_seed(struct request *request, struct slot_terms *terms)
{
    bool has_seed = request->arg_count > 3 && slice_equal_text_nocase(request_arg(request, 2), "seed");

    *terms = terms_of(request, has_seed ? request_arg(request, 3) : SLICE_EMPTY);
    return has_seed ? 4 : 2;
}

static void reply_sum(struct request *request, const struct slot_sum *sum)
{
    char text[SLOT_SUM_TEXT_BYTES];

    slot_sum_format(sum, text);
    reply_status(request, text);
}

/* False: an argument is no slot, or there are too many, which was replied. */
static bool take_wanted(struct request *request, uint32_t at, uint64_t wanted[SLOT_COUNT / 64], uint32_t *count)
{
    struct slot_range range;

    *count = 0;
    memset(wanted, 0, SLOT_COUNT / 8);
    for (; at < request->arg_count; at++) {
        if (!parse_range(request_arg(request, at), &range)) {
            reply_error(request, "ERR Invalid or out of range slot");
            return false;
        }
        *count += range.last - range.first + 1;
        if (*count > SLOT_COUNT) {
            reply_error(request, "ERR these are more slots than there are");
            return false;
        }
        for (uint32_t slot = range.first; slot <= range.last; slot++)
            wanted[slot / 64] |= UINT64_C(1) << (slot % 64);
    }
    return true;
}

/* The digests of a walk; of a slot that has changed meanwhile, or is left out, null. */
static void reply_walk(struct request *request, const struct slot_walk_result *result, uint32_t at)
{
    uint64_t wanted[SLOT_COUNT / 64];
    struct slot_range range;
    uint32_t count;

    if (!take_wanted(request, at, wanted, &count))
        return;
    if (result == NULL) {
        reply_error(request, "ERR no walk has ended");
        return;
    }
    reply_array(request, count);
    for (; at < request->arg_count && parse_range(request_arg(request, at), &range); at++) {
        for (uint32_t slot = range.first; slot <= range.last; slot++) {
            if (slot_walk_is_clear(slot))
                reply_sum(request, &result->digests.slots[slot]);
            else
                reply_null(request);
        }
    }
}

static void describe_walk(struct request *request)
{
    const struct slot_walk_result *result = slot_walk_result();
    uint32_t clear = 0;
    char text[256];

    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++)
        clear += slot_walk_is_clear(slot);
    snprintf(text, sizeof(text), "state:%s keys:%llu large:%llu clear:%u spent_us:%llu longest_step_us:%llu",
             slot_walk_runs() ? "running"
             : result != NULL ? "ended"
                              : "none",
             (unsigned long long)(result != NULL ? result->keys : 0),
             (unsigned long long)(result != NULL ? result->large : 0), (unsigned)clear,
             (unsigned long long)slot_cycle_spent_us(), (unsigned long long)slot_cycle_longest_us());
    reply_status(request, text);
}

static void debug_digest_walk(struct request *request)
{
    struct slice word = request_arg(request, 2);
    struct slot_terms terms;

    if (slice_equal_text_nocase(word, "state") && request->arg_count == 3) {
        describe_walk(request);
    } else if (slice_equal_text_nocase(word, "slots") && request->arg_count > 3) {
        reply_walk(request, slot_walk_result(), 3);
    } else if (slice_equal_text_nocase(word, "start") && request->arg_count <= 4) {
        terms = terms_of(request, request->arg_count == 4 ? request_arg(request, 3) : SLICE_EMPTY);
        slot_cycle_begin(&terms);
        reply_ok(request);
    } else {
        debug_refuse(request);
    }
}

static void debug_digest_slot(struct request *request)
{
    uint64_t wanted[SLOT_COUNT / 64];
    struct slot_digests *digests;
    struct slot_terms terms;
    struct slot_range range;
    uint32_t at = take_seed(request, &terms), count;

    if (at == request->arg_count) {
        debug_refuse(request);
        return;
    }
    if (!take_wanted(request, at, wanted, &count))
        return;
    digests = mem_alloc(sizeof(*digests));
    slot_digests_take(digests, request->access, &terms, wanted);
    reply_array(request, count);
    for (; at < request->arg_count && parse_range(request_arg(request, at), &range); at++) {
        for (uint32_t slot = range.first; slot <= range.last; slot++)
            reply_sum(request, &digests->slots[slot]);
    }
    mem_free(digests);
}

static void debug_digest_key(struct request *request)
{
    struct slot_terms terms = terms_of(request, SLICE_EMPTY);

    reply_array(request, request->key_count);
    for (uint32_t i = 0; i < request->key_count; i++) {
        const struct entry *entry = access_look(request->access, request->db, &request->keys[i]);
        struct slot_sum sum;

        if (entry == NULL || !slot_digest_of(&terms, request->db, entry, &sum))
            sum = (struct slot_sum){{0, 0}};
        reply_sum(request, &sum);
    }
}

const struct debug_row debug_slot_rows[] = {
    {"digest-key", "<key> [<key> ...]",
     "Return what each of these keys adds to the digest of its hash slot (without\nSEED).", debug_digest_key, 2,
     UINT32_MAX, ACCESS_STRIPED, 2, UINT32_MAX},
    {"digest-slot", "[SEED <text>] <slot>|<first>-<last> [<slot>|<first>-<last> ...]",
     "Return digests of the keys in these hash slots, in all databases, equal on\nservers with the same data and the "
     "same <text>.",
     debug_digest_slot, 3, UINT32_MAX, ACCESS_EXCLUSIVE, 0, 0},
    {"digest-walk", "START [<text>] | STATE | SLOTS <slot>|<first>-<last> [...]",
     "Make digests of all hash slots in the background, with <text> as seed.\nSTATE tells how far that is; SLOTS "
     "returns "
     "the digests, null where keys of a slot\nhave changed meanwhile or are too large.",
     debug_digest_walk, 3, UINT32_MAX, ACCESS_EXCLUSIVE, 0, 0},
    {0},
};
