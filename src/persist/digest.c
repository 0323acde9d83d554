#include "persist/digest.h"

#include "base/gate.h"
#include "persist/types.h"
#include "store/subkey_ttl.h"

#include <openssl/sha.h>

static_assert(DIGEST_BYTES == SHA_DIGEST_LENGTH, "a digest is a SHA-1");

void digest_add(struct digest *digest, struct slice bytes)
{
    unsigned char hash[SHA_DIGEST_LENGTH];

    SHA1((const unsigned char *)(bytes.size != 0 ? bytes.data : ""), bytes.size, hash);
    for (unsigned i = 0; i < DIGEST_BYTES; i++)
        digest->bytes[i] ^= hash[i];
}

void digest_mix(struct digest *digest, struct slice bytes)
{
    unsigned char hash[SHA_DIGEST_LENGTH];

    digest_add(digest, bytes);
    SHA1(digest->bytes, DIGEST_BYTES, hash);
    memcpy(digest->bytes, hash, DIGEST_BYTES);
}

void digest_mix_u32(struct digest *digest, uint32_t number)
{
    const uint8_t bytes[4] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16), (uint8_t)(number >> 8),
                              (uint8_t)number};

    digest_mix(digest, slice_make(bytes, sizeof(bytes)));
}

void digest_add_pair(struct digest *digest, struct slice first, struct slice second)
{
    struct digest pair = {{0}};

    digest_mix(&pair, first);
    digest_mix(&pair, second);
    digest_add(digest, slice_make(pair.bytes, DIGEST_BYTES));
}

/* Whether a member has a deadline counts, not its time: as for keys. */
static void add_deadline(struct slice member, int64_t expire_ms, void *context)
{
    struct digest digest = {{0}};

    (void)expire_ms;
    digest_mix(&digest, member);
    digest_mix(&digest, SLICE("!!member expire!!"));
    digest_add(context, slice_make(digest.bytes, DIGEST_BYTES));
}

void digest_mix_value(struct digest *digest, const struct entry *entry)
{
    const struct type_row *row = type_row_of((enum value_type)entry->type);

    digest_mix_u32(digest, row->digest_number);
    row->digest(digest, entry);
    entry_each_member_deadline(entry, add_deadline, digest);
    if (entry_expire_ms(entry) != EXPIRE_NEVER)
        digest_add(digest, SLICE("!!expire!!"));
}

static void add_entry(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    struct digest digest = {{0}};

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
    *digest = (struct digest){{0}};
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
