#include "active/own_data.h"

#include "active/place.h"
#include "base/gate.h"
#include "server/durable/libraries.h"
#include "server/durable/value_words.h"
#include "store/window.h"

#include <string.h>

enum { WORDS_MOST = 8 }; /* of a value */

/* Then the name, and of each word its size and bytes. */
struct kept_key {
    struct merge_place last;
    size_t name_size;
    unsigned db;
    uint32_t word_count;
    bool overwrote;
};

struct keeping {
    struct own_data *own;
    const struct merge_vector *theirs;
    struct kept_key key;
    struct slice name;
    struct access *access;
};

static void keep_words(const struct slice *words, uint32_t count, void *context)
{
    struct keeping *keeping = context;
    struct buffer *bytes = &keeping->own->bytes;

    assert(count <= WORDS_MOST);
    keeping->key.word_count = count;
    keeping->key.name_size = keeping->name.size;
    buffer_append(bytes, &keeping->key, sizeof(keeping->key));
    buffer_append_slice(bytes, keeping->name);
    for (uint32_t i = 0; i < count; i++) {
        buffer_append(bytes, &words[i].size, sizeof(words[i].size));
        buffer_append_slice(bytes, words[i]);
    }
    keeping->own->keys++;
}

static void keep(struct keeping *keeping, struct access *access, unsigned db, const struct key *key,
                 struct merge_place last, bool overwrote)
{
    if (last.origin < MERGE_ORIGIN_FLOOR && last.stamp != 0 &&
        last.stamp <= merge_vector_get(keeping->theirs, last.origin))
        return;
    keeping->key = (struct kept_key){.last = last, .db = db, .overwrote = overwrote};
    keeping->name = key->name;
    value_words(access, db, key, keep_words, keeping);
}

static void keep_entry(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    const struct key key = key_make(entry_key(entry));
    const uint64_t version = entry_version(entry);
    struct merge_record base;

    if (window_find(access, db, &key) != NULL)
        return;
    window_base(access, db, true, version, &base);
    if (version == 0)
        base.base_place = (struct merge_place){0, 0}; /* of a plain file: anything with a stamp is younger */
    keep(context, access, db, &key, base.base_place, base.base_overwrote);
}

static void keep_known(struct access *access, struct window_key *known, void *context)
{
    const struct key key = window_name(known);

    keep(context, access, known->db, &key, merge_record_last(&known->record),
         known->record.count == 0 && known->record.base_overwrote);
}

static void keep_library(struct slice name, void *context)
{
    struct keeping *keeping = context;
    const struct key key = key_make(name);
    const unsigned db = horizon_libraries_db(&keeping->access->store->horizon);

    if (keeping->access->store->window == NULL || window_find(keeping->access, db, &key) == NULL)
        keep(keeping, keeping->access, db, &key, (struct merge_place){0, 0}, false);
}

void own_data_keep(struct own_data *own, struct access *access, const struct merge_vector *theirs)
{
    struct keeping keeping = {.own = own, .theirs = theirs, .access = access};
    const struct access_visitor visitor = {.visit = keep_entry, .context = &keeping, .sees_expired = true};

    gate_assert_alone();
    for (unsigned db = 0; db < access->store->database_count; db++)
        access_each(access, db, &visitor);
    libraries_each_name(keep_library, &keeping);
    for (uint32_t i = 0; access->store->window != NULL && i <= access->store->stripe_mask; i++)
        window_each(access, i, keep_known, &keeping);
}

void own_data_keep_key(struct own_data *own, struct access *access, const struct merge_vector *theirs, unsigned db,
                       const struct key *key)
{
    struct keeping keeping = {.own = own, .theirs = theirs};
    struct window_key *known = window_find(access, db, key);
    const struct entry *entry = access_probe(access, db, key);

    gate_assert_alone();
    if (known != NULL)
        keep_known(access, known, &keeping);
    else if (entry != NULL)
        keep_entry(access, db, entry, &keeping);
}

static size_t take(const struct own_data *own, size_t at, void *to, size_t size)
{
    assert(size <= own->bytes.size - at);
    memcpy(to, own->bytes.data + at, size);
    return at + size;
}

uint64_t own_data_put(const struct own_data *own, struct worker *worker)
{
    struct place place = {.worker = NULL};
    uint64_t count = 0;

    place_begin_again(&place, worker);
    for (size_t at = 0; at < own->bytes.size;) {
        struct slice words[WORDS_MOST];
        struct kept_key kept;
        struct key key;

        at = take(own, at, &kept, sizeof(kept));
        key = key_make(slice_make(own->bytes.data + at, kept.name_size));
        at += kept.name_size;
        for (uint32_t i = 0; i < kept.word_count; i++) {
            size_t size;

            at = take(own, at, &size, sizeof(size));
            words[i] = slice_make(own->bytes.data + at, size);
            at += size;
        }
        count += place_value(&place, &(struct place_value){.db = kept.db,
                                                           .key = key,
                                                           .last = kept.last,
                                                           .overwrote = kept.overwrote,
                                                           .words = words,
                                                           .word_count = kept.word_count});
    }
    place_end(&place);
    place_fini(&place);
    return count;
}

void own_data_fini(struct own_data *own)
{
    buffer_fini(&own->bytes);
    own->keys = 0;
}
