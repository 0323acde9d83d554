#include "persist/digest.h"

#include "base/gate.h"
#include "persist/types.h"
#include "store/subkey_ttl.h"

#include <openssl/sha.h>

static_assert(DIGEST_BYTES == SHA_DIGEST_LENGTH, "a digest is a SHA-1");

/* What a hash begins with: hashes of different things never agree. */
enum part { PART_WHOLE, PART_ONE, PART_PAIR, PART_DEADLINE };

/* -------------------------------------------------------------------------------------------------- Redis' form -- */

static void redis_add(struct digest *digest, struct slice bytes)
{
    unsigned char hash[SHA_DIGEST_LENGTH];

    SHA1((const unsigned char *)(bytes.size != 0 ? bytes.data : ""), bytes.size, hash);
    for (unsigned i = 0; i < DIGEST_BYTES; i++)
        digest->bytes[i] ^= hash[i];
}

static void redis_mix(struct digest *digest, struct slice bytes)
{
    unsigned char hash[SHA_DIGEST_LENGTH];

    redis_add(digest, bytes);
    SHA1(digest->bytes, DIGEST_BYTES, hash);
    memcpy(digest->bytes, hash, DIGEST_BYTES);
}

static void redis_add_pair(struct digest *digest, struct slice first, struct slice second)
{
    struct digest pair = {0};

    redis_mix(&pair, first);
    redis_mix(&pair, second);
    redis_add(digest, slice_make(pair.bytes, DIGEST_BYTES));
}

/* -------------------------------------------------------------------------------------------------------- keyed -- */

static inline struct sip begin_hash(const struct digest_secret *secret, enum part part)
{
    struct sip sip = sip_begin_long(secret->words);

    sip_word(&sip, part);
    return sip;
}

static inline void add_hash(struct digest *digest, struct sip *sip)
{
    uint64_t result[2];

    sip_end_long(sip, result);
    digest->keyed.sums[0] += result[0];
    digest->keyed.sums[1] += result[1];
}

static inline bool is_left_out(const struct digest *digest, struct slice member)
{
    int64_t expire_ms;

    if (LIKELY(digest->of == NULL))
        return false;
    expire_ms = entry_member_expire_ms(digest->of, member);
    return expire_ms != EXPIRE_NEVER && expire_ms < digest->until_ms;
}

void digest_begin_keyed(struct digest *digest, const struct digest_secret *secret)
{
    assert(secret != NULL);
    digest->secret = secret;
    digest->of = NULL;
    digest->until_ms = INT64_MIN;
    digest->keyed.ordered = begin_hash(secret, PART_WHOLE);
    digest->keyed.sums[0] = digest->keyed.sums[1] = 0;
}

void digest_end_keyed(struct digest *digest, uint64_t result[2])
{
    assert(digest_is_keyed(digest));
    sip_word(&digest->keyed.ordered, digest->keyed.sums[0]);
    sip_word(&digest->keyed.ordered, digest->keyed.sums[1]);
    sip_end_long(&digest->keyed.ordered, result);
}

void digest_mix_u64(struct digest *digest, uint64_t number)
{
    assert(digest_is_keyed(digest));
    sip_word(&digest->keyed.ordered, number);
}

/* --------------------------------------------------------------------------------------------------------- both -- */

void digest_mix(struct digest *digest, struct slice bytes)
{
    if (digest_is_keyed(digest))
        sip_text(&digest->keyed.ordered, bytes);
    else
        redis_mix(digest, bytes);
}

void digest_mix_u32(struct digest *digest, uint32_t number)
{
    const uint8_t bytes[4] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16), (uint8_t)(number >> 8),
                              (uint8_t)number};

    if (digest_is_keyed(digest))
        sip_word(&digest->keyed.ordered, number);
    else
        redis_mix(digest, slice_make(bytes, sizeof(bytes)));
}

void digest_add(struct digest *digest, struct slice bytes)
{
    struct sip sip;

    if (!digest_is_keyed(digest)) {
        redis_add(digest, bytes);
        return;
    }
    if (is_left_out(digest, bytes))
        return;
    sip = begin_hash(digest->secret, PART_ONE);
    sip_text(&sip, bytes);
    add_hash(digest, &sip);
}

void digest_add_pair(struct digest *digest, struct slice first, struct slice second)
{
    struct sip sip;

    if (!digest_is_keyed(digest)) {
        redis_add_pair(digest, first, second);
        return;
    }
    if (is_left_out(digest, first))
        return;
    sip = begin_hash(digest->secret, PART_PAIR);
    sip_text(&sip, first);
    sip_text(&sip, second);
    add_hash(digest, &sip);
}

void digest_begin_part(struct digest *part, const struct digest *whole)
{
    if (digest_is_keyed(whole))
        digest_begin_keyed(part, whole->secret);
    else
        *part = (struct digest){0};
}

void digest_add_part(struct digest *whole, struct digest *part)
{
    uint64_t result[2];

    assert(whole->secret == part->secret);
    if (!digest_is_keyed(whole)) {
        redis_add(whole, slice_make(part->bytes, DIGEST_BYTES));
        return;
    }
    digest_end_keyed(part, result);
    whole->keyed.sums[0] += result[0];
    whole->keyed.sums[1] += result[1];
}

/* In Redis' form it counts whether a member has a deadline, not its time: as for keys. */
static void add_deadline(struct slice member, int64_t expire_ms, void *context)
{
    struct digest *digest = context, marked = {0};
    struct sip sip;

    if (!digest_is_keyed(digest)) {
        redis_mix(&marked, member);
        redis_mix(&marked, SLICE("!!member expire!!"));
        redis_add(digest, slice_make(marked.bytes, DIGEST_BYTES));
        return;
    }
    if (expire_ms < digest->until_ms)
        return;
    sip = begin_hash(digest->secret, PART_DEADLINE);
    sip_text(&sip, member);
    sip_word(&sip, (uint64_t)expire_ms);
    add_hash(digest, &sip);
}

void digest_mix_value(struct digest *digest, const struct entry *entry)
{
    const struct type_row *row = type_row_of((enum value_type)entry->type);

    digest_mix_u32(digest, row->digest_number);
    row->digest(digest, entry);
    entry_each_member_deadline(entry, add_deadline, digest);
    if (digest_is_keyed(digest))
        digest_mix_u64(digest, (uint64_t)entry_expire_ms(entry));
    else if (entry_expire_ms(entry) != EXPIRE_NEVER)
        redis_add(digest, SLICE("!!expire!!"));
}

/* ---------------------------------------------------------------------------------------------------- databases -- */

static void add_entry(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    struct digest digest = {0};

    (void)access;
    (void)db;
    digest_mix(&digest, entry_key(entry));
    digest_mix_value(&digest, entry);
    digest_add(context, slice_make(digest.bytes, DIGEST_BYTES));
}

void digest_all(struct digest *digest, struct access *access)
{
    const struct store *store = access->store;

    gate_assert_alone();
    *digest = (struct digest){0};
    for (unsigned db = 0; db < store->database_count; db++) {
        if (store_key_count(store, db) == 0)
            continue;
        digest_mix_u32(digest, db);
        access_each(access, db, &(struct access_visitor){.visit = add_entry, .context = digest});
    }
}

void digest_format(const struct digest *digest, char text[DIGEST_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef";

    for (unsigned i = 0; i < DIGEST_BYTES; i++) {
        text[2 * i] = digits[digest->bytes[i] >> 4];
        text[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    text[DIGEST_TEXT_BYTES - 1] = '\0';
}
