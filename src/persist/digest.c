#include "persist/digest.h"

#include "base/assert.h"
#include "base/panic.h"
#include "data/cron.h"
#include "data/hash.h"
#include "data/list.h"
#include "data/nested.h"
#include "data/set.h"
#include "data/stream_value.h"
#include "data/zset.h"
#include "store/subkey_ttl.h"

#include <openssl/sha.h>

static_assert(DIGEST_BYTES == SHA_DIGEST_LENGTH, "a digest is a SHA-1");

/* The numbers by which digests know the types. */
static const uint32_t type_numbers[TYPE_COUNT] = {
    [TYPE_STRING] = 0, [TYPE_LIST] = 1,   [TYPE_SET] = 2,    [TYPE_ZSET] = 3,
    [TYPE_HASH] = 4,   [TYPE_STREAM] = 6, [TYPE_NESTED] = 64, [TYPE_CRON] = 65,
};

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

static void mix_elements(struct digest *digest, const struct quicklist *list)
{
    char scratch[NUMBER_I64_SPACE];
    struct quicklist_iter iter;
    struct listpack_value value;

    quicklist_iter_init(&iter, list, 0, QUICKLIST_FORWARD);
    while (quicklist_iter_next(&iter, &value))
        digest_mix(digest, listpack_value_text(&value, scratch));
    quicklist_iter_fini(&iter);
}

static void mix_entries(struct digest *digest, const struct stream *stream)
{
    char text[2 * NUMBER_I64_SPACE];
    struct slice field, value;
    struct stream_iter iter;
    struct stream_id id;
    uint64_t field_count;

    stream_iter_init(&iter, stream, STREAM_ID_LEAST, STREAM_ID_MOST);
    while (stream_iter_next(&iter, &id, &field_count)) {
        size_t size = number_format_u64(text, id.ms);

        text[size++] = '.';
        digest_mix(digest, slice_make(text, size + number_format_u64(text + size, id.seq)));
        while (field_count-- > 0) {
            stream_iter_pair(&iter, &field, &value);
            digest_mix(digest, field);
            digest_mix(digest, value);
        }
    }
    stream_iter_fini(&iter);
}

static void add_member(struct slice member, void *context)
{
    digest_add(context, member);
}

static void add_pair(struct slice field, struct slice value, void *context)
{
    struct digest pair = {{0}};

    digest_mix(&pair, field);
    digest_mix(&pair, value);
    digest_add(context, slice_make(pair.bytes, DIGEST_BYTES));
}

/* That a member has a deadline counts, not when it is: as with keys. */
static void add_deadline(struct slice member, int64_t expire_ms, void *context)
{
    struct digest digest = {{0}};

    (void)expire_ms;
    digest_mix(&digest, member);
    digest_mix(&digest, SLICE("!!member expire!!"));
    digest_add(context, slice_make(digest.bytes, DIGEST_BYTES));
}

static void add_scored(struct digest *digest, struct value zset)
{
    char text[NUMBER_DOUBLE_SPACE];
    struct zset_walk walk;
    struct slice member;
    double score;

    zset_walk_begin(&walk, zset, (struct zset_span){0, zset_count(zset)}, false);
    while (zset_walk_next(&walk, &member, &score))
        add_pair(member, slice_make(text, number_format_double(text, score)), digest);
}

static void mix_node(struct digest *digest, const struct nested *node);

static void add_child(struct slice name, const struct nested *node, void *context)
{
    struct digest digest = {{0}};

    digest_mix(&digest, name);
    mix_node(&digest, node);
    digest_add(context, slice_make(digest.bytes, DIGEST_BYTES));
}

static void mix_node(struct digest *digest, const struct nested *node)
{
    digest_mix_u32(digest, nested_kind(node));
    if (nested_kind(node) == NESTED_TREE)
        nested_each(node, add_child, digest);
    for (uint64_t i = 0; nested_kind(node) != NESTED_TREE && i < nested_count(node); i++)
        digest_mix(digest, nested_text(node, i));
}

/* Its times are those of one moment. */
static void mix_job(struct digest *digest, const struct cron *cron)
{
    digest_mix_u32(digest, cron->repeats);
    digest_mix_u32(digest, (uint32_t)((uint64_t)cron->interval_ms >> 32));
    digest_mix_u32(digest, (uint32_t)cron->interval_ms);
    digest_mix_u32(digest, cron->key_count);
    for (uint32_t i = 0; i < cron->word_count; i++)
        digest_mix(digest, cron->words[i]);
}

void digest_mix_value(struct digest *digest, const struct entry *entry)
{
    char scratch[ENTRY_INT_TEXT_BYTES];

    digest_mix_u32(digest, type_numbers[entry->type]);
    switch ((enum value_type)entry->type) {
    case TYPE_STRING:
        digest_mix(digest, entry_string(entry, scratch));
        break;
    case TYPE_LIST:
        mix_elements(digest, entry_value(entry).data);
        break;
    case TYPE_SET:
        set_each(entry_value(entry), add_member, digest);
        break;
    case TYPE_ZSET:
        add_scored(digest, entry_value(entry));
        break;
    case TYPE_HASH:
        hash_each(entry_value(entry), add_pair, digest);
        break;
    case TYPE_STREAM:
        mix_entries(digest, entry_value(entry).data);
        break;
    case TYPE_NESTED:
        mix_node(digest, nested_find(entry_value(entry), SLICE_EMPTY));
        break;
    case TYPE_CRON:
        mix_job(digest, cron_of(entry_value(entry)));
        break;
    default:
        panic("no digest of this type");
    }
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
