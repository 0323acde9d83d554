#include "commands/type_options.h"

#include "base/rows.h"
#include "server/config.h"

static _Atomic int64_t hash_entries, hash_value; /* global: option storage */
static _Atomic int64_t set_intset_entries, set_listpack_entries, set_listpack_value; /* global: option storage */

struct hash_limits type_hash_limits(void)
{
    return (struct hash_limits){.listpack_entries = OPTION_GET_U64(hash_entries),
                                .listpack_bytes = OPTION_GET_U64(hash_value)};
}

struct set_limits type_set_limits(void)
{
    return (struct set_limits){.intset_entries = OPTION_GET_U64(set_intset_entries),
                               .listpack_entries = OPTION_GET_U64(set_listpack_entries),
                               .listpack_bytes = OPTION_GET_U64(set_listpack_value)};
}

void type_values_setup(struct store *store)
{
    store_set_type(store, TYPE_HASH, &hash_ops);
    store_set_type(store, TYPE_SET, &set_ops);
}

void type_options_setup(void)
{
    static const struct option_row rows[] = {
        ROW_INT("hash-max-listpack-entries", &hash_entries, 512, 0, INT64_MAX, OPTION_MUTABLE,
                "fields a hash may have to be kept in one piece", .alias = "hash-max-ziplist-entries"),
        ROW_MEMORY("hash-max-listpack-value", &hash_value, 64, 0, INT64_MAX, OPTION_MUTABLE,
                   "bytes of its longest field or value", .alias = "hash-max-ziplist-value"),
        ROW_INT("set-max-intset-entries", &set_intset_entries, 512, 0, INT64_MAX, OPTION_MUTABLE,
                "members a set of integers may have to be kept as sorted numbers"),
        ROW_INT("set-max-listpack-entries", &set_listpack_entries, 128, 0, INT64_MAX, OPTION_MUTABLE,
                "members another set may have to be kept in one piece"),
        ROW_INT("set-max-listpack-value", &set_listpack_value, 64, 0, INT64_MAX, OPTION_MUTABLE,
                "bytes of its longest member"),
    };

    config_add_rows(rows, countof(rows));
}
