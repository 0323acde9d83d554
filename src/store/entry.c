#include "store/entry.h"

#include "base/number.h"
#include "data/quicklist.h"

struct slice entry_string(const struct entry *entry, char scratch[ENTRY_INT_TEXT_BYTES])
{
    const struct blob *blob;
    struct slice key;

    debug_assert(entry->type == TYPE_STRING);
    if (entry->encoding == ENCODING_INT)
        return (struct slice){scratch, number_format_i64(scratch, entry_int(entry))};
    blob = entry_blob(entry);
    if (blob != NULL)
        return blob_slice(blob);
    key = entry_key(entry);
    return (struct slice){key.data + key.size, entry->inline_size};
}

size_t entry_string_size(const struct entry *entry)
{
    char scratch[ENTRY_INT_TEXT_BYTES];

    return entry_string(entry, scratch).size;
}

const char *entry_encoding_name(const struct entry *entry)
{
    static const char *const names[ENCODING_COUNT] = {"int",       "embstr",    "raw",      "listpack", "intset",
                                                      "hashtable", "quicklist", "skiplist", "stream"};

    assert(entry->encoding < ENCODING_COUNT);
    if (entry->type == TYPE_LIST && !quicklist_is_long(entry_value(entry).data))
        return names[ENCODING_LISTPACK];
    if (entry->encoding == ENCODING_LISTPACK && (entry->flags & ENTRY_MEMBERS) != 0)
        return "listpackex"; /* the deadlines are beside it, but clients know this name */
    return names[entry->encoding];
}
