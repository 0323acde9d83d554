/* DEBUG subcommands by which people and tests compare servers, hash slot by hash slot. */
#include "commands/debug/debug_priv.h"

#include "base/mem.h"
#include "base/number.h"
#include "persist/slot_digest.h"
#include "server/core/request.h"

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

/* SEED text, if it is there. Returns the index of the argument behind it. */
static uint32_t take_seed(struct request *request, struct slot_terms *terms)
{
    bool has_seed = request->arg_count > 3 && slice_equal_text_nocase(request_arg(request, 2), "seed");

    *terms = (struct slot_terms){
        .secret = slot_secret_of(has_seed ? request_arg(request, 3) : SLICE_EMPTY),
        .until_ms = request->access->now_ms,
    };
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

static void debug_digest_slot(struct request *request)
{
    uint64_t wanted[SLOT_COUNT / 64] = {0};
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
    struct slot_terms terms = {.secret = slot_secret_of(SLICE_EMPTY), .until_ms = request->access->now_ms};

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
    {0},
};
