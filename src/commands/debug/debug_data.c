/* DEBUG subcommands that look at the data, and POPULATE. */
#include "commands/debug/debug_priv.h"

#include "base/mem.h"
#include "base/number.h"
#include "commands/shared/object.h"
#include "commands/shared/type_options.h"
#include "data/list.h"
#include "persist/digest.h"
#include "server/core/client.h"
#include "server/core/request.h"

#include <stdio.h>

enum { POPULATE_VALUE_MOST_BYTES = 512 << 20, DESCRIBED_SAMPLES = 5 };

/* For a string its size in an uncompressed RDB file; for other types approximately their memory. */
static size_t serialized_size(const struct store *store, const struct entry *entry)
{
    char scratch[ENTRY_INT_TEXT_BYTES];
    struct slice text;
    int64_t number;

    if (entry->type != TYPE_STRING)
        return store->types[entry->type].ops->memory_bytes(entry_value(entry), DESCRIBED_SAMPLES);
    text = entry_string(entry, scratch);
    if (text.size <= 11 && number_parse_i64(text, &number) && number >= INT32_MIN && number <= INT32_MAX)
        return number >= INT8_MIN && number <= INT8_MAX ? 2 : number >= INT16_MIN && number <= INT16_MAX ? 3 : 5;
    return text.size + (text.size < 64 ? 1 : text.size < 16384 ? 2 : text.size <= UINT32_MAX ? 5 : 9);
}

static void describe_list(const struct quicklist *list, char *text, size_t text_size)
{
    const struct quicklist_limits limits = quicklist_limits(list);
    uint32_t nodes = quicklist_node_count(list);
    bool is_compressed = false;
    struct slice stored;
    size_t bytes = 0;

    for (const struct quicklist_node *node = quicklist_first_node(list); node != NULL;
         node = quicklist_next_node(list, node)) {
        bytes += quicklist_node_size_bytes(node);
        is_compressed = quicklist_node_compressed(node, &stored) || is_compressed;
    }
    snprintf(text, text_size,
             " ql_nodes:%u ql_avg_node:%.2f ql_listpack_max:%d ql_compressed:%d "
             "ql_uncompressed_size:%zu",
             (unsigned)nodes, (double)quicklist_count(list) / nodes, limits.fill,
             is_compressed || limits.compress != LIST_OPEN_NODES, bytes);
}

static void debug_object(struct request *request)
{
    const struct entry *entry = access_look(request->access, request->db, &request->keys[0]);
    char text[512];
    int size;

    if (entry == NULL) {
        reply_error(request, "ERR no such key");
        return;
    }
    size = snprintf(text, sizeof(text),
                    "Value at:%p refcount:%lld encoding:%s serializedlength:%zu lru:%u lru_seconds_idle:%u",
                    (const void *)entry, (long long)object_refcount(entry), entry_encoding_name(entry),
                    serialized_size(request->access->store, entry), (unsigned)entry->clock,
                    (unsigned)((request->access->clock - entry->clock) & 0xFFFFFF));
    if (entry->type == TYPE_LIST)
        describe_list(entry_value(entry).data, text + size, sizeof(text) - (size_t)size);
    reply_status(request, text);
}

static void reply_digest(struct request *request, const struct digest *digest)
{
    char text[DIGEST_TEXT_BYTES];

    digest_format(digest, text);
    reply_status(request, text);
}

static void debug_digest(struct request *request)
{
    struct digest digest;

    digest_all(&digest, request->access);
    reply_digest(request, &digest);
}

static void debug_digest_value(struct request *request)
{
    reply_array(request, request->key_count);
    for (uint32_t i = 0; i < request->key_count; i++) {
        const struct entry *entry = access_look(request->access, request->db, &request->keys[i]);
        struct digest digest = {0};

        if (entry != NULL)
            digest_mix_value(&digest, entry);
        reply_digest(request, &digest);
    }
}

static void debug_htstats(struct request *request)
{
    const struct store *store = request->access->store;
    uint64_t slots = 0, keys = 0, bytes = 0, most = 0;
    struct database_totals totals;
    struct buffer text = {0};
    int64_t db;

    if (!request_arg_i64(request, 2, &db))
        return;
    if (db < 0 || db >= (int64_t)store->database_count) {
        reply_error(request, "ERR Out of range database");
        return;
    }
    for (uint32_t i = 0; i <= store->stripe_mask; i++) {
        const struct stripe_db *stripe = stripe_db(&store->stripes[i], (unsigned)db);

        if (stripe == NULL)
            continue;
        slots += table_slot_count(&stripe->keys);
        keys += table_count(&stripe->keys);
        bytes += table_memory_bytes(&stripe->keys);
        most = MAX(most, table_count(&stripe->keys));
    }
    store_database_totals(store, (unsigned)db, &totals);
    buffer_printf(&text,
                  "[Dictionary HT]\n stripes: %u\n table size: %llu\n number of elements: %llu\n"
                  " load: %.2f%%\n memory: %llu\n most elements in a stripe: %llu\n"
                  "[Expires HT]\n number of elements: %llu\n",
                  store->stripe_mask + 1, (unsigned long long)slots, (unsigned long long)keys,
                  slots != 0 ? 100.0 * (double)keys / (double)slots : 0.0, (unsigned long long)bytes,
                  (unsigned long long)most, (unsigned long long)totals.expires);
    reply_verbatim(request, "txt", buffer_slice(&text));
    buffer_fini(&text);
}

/* One key of POPULATE; one that is there stays. */
static void populate_key(struct request *request, struct slice name, struct slice value)
{
    struct key key = key_make(name);
    struct change change;

    if (access_probe(request->access, request->db, &key) != NULL)
        return;
    change_begin(&change, request->access, request->db, &key);
    change_put_string(&change, value, EXPIRE_NEVER);
    change_end(&change, EVENT_STRING, NULL);
}

static void debug_populate(struct request *request)
{
    static const char range_error[] = "ERR value is out of range, must be positive";
    struct slice prefix = request->arg_count > 3 ? request_arg(request, 3) : SLICE("key");
    struct buffer name = {0}, value = {0};
    int64_t count, size = -1; /* -1: as long as the text */

    if (!request_arg_range(request, 2, 0, INT64_MAX, &count, range_error) ||
        (request->arg_count > 4 && !request_arg_range(request, 4, 0, POPULATE_VALUE_MOST_BYTES, &size, range_error)))
        return;
    effect_none(request); /* every server makes its own */
    for (int64_t i = 0; i < count; i++) {
        buffer_clear(&name);
        buffer_append_slice(&name, prefix);
        buffer_append_char(&name, ':');
        buffer_append_i64(&name, i);
        buffer_clear(&value);
        buffer_append_text(&value, "value:");
        buffer_append_i64(&value, i);
        if (size >= 0 && value.size < (size_t)size)
            memset(buffer_reserve(&value, (size_t)size - value.size), 0, (size_t)size - value.size);
        if (size >= 0)
            value.size = (size_t)size;
        populate_key(request, buffer_slice(&name), buffer_slice(&value));
    }
    buffer_fini(&name);
    buffer_fini(&value);
    reply_ok(request);
}

/* NULL: there is no such key, which was replied. */
static const struct entry *existing_entry(struct request *request)
{
    const struct entry *entry = access_look(request->access, request->db, &request->keys[0]);

    if (entry == NULL)
        reply_error(request, "ERR no such key");
    return entry;
}

static void debug_sdslen(struct request *request)
{
    const struct entry *entry = existing_entry(request);
    char text[256], scratch[ENTRY_INT_TEXT_BYTES];
    const struct blob *blob;
    size_t size;

    if (entry == NULL)
        return;
    if (entry_is_int(entry)) {
        reply_error(request, "ERR Not an sds encoded string.");
        return;
    }
    blob = entry_blob(entry);
    size = entry_string(entry, scratch).size;
    snprintf(text, sizeof(text),
             "key_sds_len:%zu, key_sds_avail:0, key_zmalloc: %zu, val_sds_len:%zu, val_sds_avail:%zu, val_zmalloc: %zu",
             entry_key(entry).size, mem_usable(entry), size, blob != NULL ? blob->capacity - size : (size_t)0,
             blob != NULL ? mem_usable(blob) : (size_t)0);
    reply_status(request, text);
}

static void debug_structsize(struct request *request)
{
    char text[256];

    snprintf(text, sizeof(text), "bits:%zu entry:%zu blob:%zu bucket:%d stripe:%zu client:%zu ", 8 * sizeof(void *),
             sizeof(struct entry), sizeof(struct blob), CACHE_LINE_BYTES, sizeof(struct stripe), sizeof(struct client));
    reply_text(request, text);
}

const struct debug_row debug_data_rows[] = {
    {"digest", "", "Return a digest of all data, equal on servers with the same data.", debug_digest, 2, 2,
     ACCESS_EXCLUSIVE, 0, 0},
    {"digest-value", "<key> [<key> ...]", "Return digests of the values of these keys.", debug_digest_value, 2,
     UINT32_MAX, ACCESS_STRIPED, 2, UINT32_MAX},
    {"htstats", "<dbid>", "Return statistics of the hash tables of a database.", debug_htstats, 3, 3, ACCESS_EXCLUSIVE,
     0, 0},
    {"object", "<key>", "Return how the value of <key> is stored.", debug_object, 3, 3, ACCESS_STRIPED, 2, 2},
    {"populate", "<count> [<prefix>] [<size>]",
     "Create <count> string keys <prefix>:<number> unless they exist, only on this server.\nThe "
     "default prefix is \"key\"; values have <size> bytes.",
     debug_populate, 3, 5, ACCESS_EXCLUSIVE, 0, 0},
    {"sdslen", "<key>", "Return the lengths and the memory of the name and of the string of <key>.", debug_sdslen, 3, 3,
     ACCESS_STRIPED, 2, 2},
    {"structsize", "", "Return the sizes of the most frequent structures.", debug_structsize, 2, 2, ACCESS_FREE, 0, 0},
    {0},
};
