#include "persist/slot_digest.h"

#include "base/gate.h"
#include "base/mem.h"
#include "persist/types.h"
#include "store/stamp.h"
#include "store/subkey_ttl.h"

#include <stdio.h>

enum { GATHERED_MOST = 32 };

/* --------------------------------------------------------------------------------------------------------- a key -- */

/* Whether a member with a deadline before until_ms, but no other one, is there. */
static void count_due(struct slice member, int64_t expire_ms, void *context)
{
    struct {
        int64_t until_ms;
        uint64_t due;
    } *counted = context;

    (void)member;
    counted->due += expire_ms < counted->until_ms;
}

static bool is_gone(const struct slot_terms *terms, const struct entry *entry)
{
    struct {
        int64_t until_ms;
        uint64_t due;
    } counted = {terms->until_ms, 0};
    int64_t expire_ms = entry_expire_ms(entry);

    if (expire_ms != EXPIRE_NEVER && expire_ms < terms->until_ms)
        return true;
    if ((entry->flags & ENTRY_MEMBERS) == 0 || entry_member_due_ms(entry) >= terms->until_ms)
        return false;
    entry_each_member_deadline(entry, count_due, &counted);
    return counted.due == type_row_of((enum value_type)entry->type)->known.ops->count(entry_value(entry));
}

/* The stamp is the same everywhere, but the number of its origin is this server's. */
static void mix_stamp(struct digest *digest, const struct slot_terms *terms, const struct entry *entry)
{
    const uint64_t version = entry_version(entry);

    if (terms->origins == NULL || version == 0) {
        digest_mix_u64(digest, 0);
        return;
    }
    digest_mix_u64(digest, version_stamp(version));
    digest_mix_u64(digest, version_overwrote(version));
    digest_mix_u64(digest, terms->origins[version_origin(version)]);
}

struct digest_secret slot_secret_of(struct slice text)
{
    struct digest digest = {0};

    digest_mix(&digest, text);
    return (struct digest_secret){
        {sip_little((const char *)digest.bytes, 8), sip_little((const char *)digest.bytes + 8, 8)}};
}

bool slot_digest_of(const struct slot_terms *terms, unsigned db, const struct entry *entry, struct slot_sum *sum)
{
    struct digest digest;

    if (UNLIKELY((entry->flags & ENTRY_EXPIRES) != 0) && is_gone(terms, entry))
        return false;
    digest_begin_keyed(&digest, &terms->secret);
    if (UNLIKELY((entry->flags & ENTRY_MEMBERS) != 0)) {
        digest.of = entry;
        digest.until_ms = terms->until_ms;
    }
    digest_mix_u64(&digest, db);
    digest_mix(&digest, entry_key(entry));
    mix_stamp(&digest, terms, entry);
    digest_mix_value(&digest, entry);
    digest_end_keyed(&digest, sum->words);
    return true;
}

void slot_sum_format(const struct slot_sum *sum, char text[SLOT_SUM_TEXT_BYTES])
{
    snprintf(text, SLOT_SUM_TEXT_BYTES, "%016llx%016llx", (unsigned long long)sum->words[0],
             (unsigned long long)sum->words[1]);
}

/* ------------------------------------------------------------------------------------------------------ all keys -- */

void slot_digests_add(struct slot_digests *digests, uint32_t slot, const struct slot_terms *terms, unsigned db,
                      const struct entry *entry)
{
    struct slot_sum sum;

    if (!slot_digest_of(terms, db, entry, &sum))
        return;
    digests->slots[slot].words[0] += sum.words[0];
    digests->slots[slot].words[1] += sum.words[1];
}

/* Keys are gathered and their memory is fetched together, instead of one after the other. */
struct gatherer {
    struct slot_digests *digests;
    const struct slot_terms *terms;
    const uint64_t *wanted;
    unsigned db;
    unsigned count;
    const struct entry *entries[GATHERED_MOST];
};

static bool is_wanted(const struct gatherer *gatherer, uint32_t slot)
{
    return gatherer->wanted == NULL || (gatherer->wanted[slot / 64] >> (slot % 64) & 1) != 0;
}

static void add_gathered(struct gatherer *gatherer)
{
    for (unsigned i = 0; i < gatherer->count; i++) {
        const uint32_t slot = slot_of(entry_key(gatherer->entries[i]));

        if (is_wanted(gatherer, slot))
            slot_digests_add(gatherer->digests, slot, gatherer->terms, gatherer->db, gatherer->entries[i]);
    }
    gatherer->count = 0;
}

static void gather(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    struct gatherer *gatherer = context;

    (void)access;
    assert(db == gatherer->db);
    __builtin_prefetch(entry);
    __builtin_prefetch((const char *)entry + CACHE_LINE_BYTES);
    gatherer->entries[gatherer->count++] = entry;
    if (gatherer->count == GATHERED_MOST)
        add_gathered(gatherer);
}

void slot_digests_take(struct slot_digests *digests, struct access *access, const struct slot_terms *terms,
                       const uint64_t *wanted)
{
    struct gatherer gatherer = {.digests = digests, .terms = terms, .wanted = wanted};
    const struct access_visitor visitor = {.visit = gather, .context = &gatherer, .sees_expired = true};

    gate_assert_alone();
    memset(digests, 0, sizeof(*digests));
    for (; gatherer.db < store_database_bound(access->store); gatherer.db++) {
        access_each(access, gatherer.db, &visitor);
        add_gathered(&gatherer);
    }
}
