#include "store/entry_copy.h"

#include "store/journal_blob.h"
#include "store/lazyfree.h"
#include "store/subkey_ttl_priv.h"

void entry_copy_value(const struct store *store, const struct entry *entry, struct entry *copy)
{
    struct subkey_ttls *lifetimes;

    if (entry->type != TYPE_STRING) {
        const struct value value = store->types[entry->type].ops->copy(entry_value(entry));

        copy->encoding = (uint32_t)value.encoding & 15;
        entry_word_store(copy, ENTRY_WORD, (uint64_t)(uintptr_t)value.data);
        lifetimes = subkey_ttl_copy(entry);
        if (lifetimes != NULL) {
            lifetimes->key_ms = entry_expire_ms(entry);
            lifetimes->due_ms = entry_subkey_ttls(entry)->due_ms;
            entry_word_store(copy, ENTRY_EXPIRES, (uint64_t)(uintptr_t)lifetimes);
        }
    } else if (entry_blob(entry) != NULL) {
        struct blob *blob = journal_blob_take_value(blob_acquire(entry_blob(entry)));

        entry_word_store(copy, ENTRY_WORD, (uint64_t)(uintptr_t)blob);
    }
}

void entry_copy_key_deadline(const struct entry *entry, struct entry *copy)
{
    const int64_t expire_ms = entry_expire_ms(entry);
    const size_t rest = entry_copy_bytes(entry) - sizeof(*entry) - sizeof(uint64_t);

    copy->flags &= (uint8_t)~ENTRY_MEMBERS;
    if (expire_ms != EXPIRE_NEVER) {
        entry_word_store(copy, ENTRY_EXPIRES, (uint64_t)expire_ms);
        return;
    }
    static_assert(ENTRY_EXPIRES == 1, "the first word");
    memmove(copy->rest, copy->rest + sizeof(uint64_t), rest);
    copy->flags &= (uint8_t)~ENTRY_EXPIRES;
}

struct entry *entry_copy_create(const struct store *store, const struct entry *entry)
{
    struct entry *copy = entry_clone(entry);

    entry_copy_value(store, entry, copy);
    return copy;
}

void entry_copy_free(struct access *access, struct entry *copy)
{
    if (copy == NULL)
        return;
    lazyfree_of_value(access, copy, FREE_SERVER_DEL);
    entry_free(copy);
}
