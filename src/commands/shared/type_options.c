#include "commands/shared/type_options.h"

#include "base/assert.h"
#include "base/rows.h"
#include "base/thread.h"
#include "server/config/config.h"

static _Atomic int64_t hash_entries, hash_value;                                     /* global: option storage */
static _Atomic int64_t list_size, list_compress;                                     /* global: option storage */
static _Atomic uint64_t list_plain_from;                                             /* global: atomic, relaxed */
static _Atomic int64_t set_intset_entries, set_listpack_entries, set_listpack_value; /* global: option storage */
static _Atomic int64_t zset_entries, zset_value;                                     /* global: option storage */
static _Atomic int64_t stream_bytes, stream_entries;                                 /* global: option storage */
static _Atomic int64_t stream_idmp_duration_s, stream_idmp_maxsize;                  /* global: option storage */

struct hash_limits type_hash_limits(void)
{
    return (struct hash_limits){.listpack_entries = OPTION_GET_U64(hash_entries),
                                .listpack_bytes = OPTION_GET_U64(hash_value)};
}

/* list-max-listpack-size: below zero a class of bytes, of which there are five. */
struct quicklist_limits type_list_limits(void)
{
    int64_t fill = OPTION_GET(list_size), compress = OPTION_GET(list_compress);

    return (struct quicklist_limits){.fill = (int)MAX(MIN(fill, (int64_t)QUICKLIST_FILL_MOST), INT64_C(-5)),
                                     .compress = compress == 0 ? LIST_OPEN_NODES : (uint32_t)compress,
                                     .plain_from_bytes = atomic_load_explicit(&list_plain_from, memory_order_relaxed)};
}

void type_set_list_plain_from(uint64_t bytes)
{
    atomic_store_explicit(&list_plain_from, bytes, memory_order_relaxed);
}

struct set_limits type_set_limits(void)
{
    return (struct set_limits){.intset_entries = OPTION_GET_U64(set_intset_entries),
                               .listpack_entries = OPTION_GET_U64(set_listpack_entries),
                               .listpack_bytes = OPTION_GET_U64(set_listpack_value)};
}

struct zset_limits type_zset_limits(void)
{
    return (struct zset_limits){.listpack_entries = OPTION_GET_U64(zset_entries),
                                .listpack_bytes = OPTION_GET_U64(zset_value)};
}

struct stream_limits type_stream_limits(void)
{
    return (struct stream_limits){.node_bytes = OPTION_GET_U64(stream_bytes),
                                  .node_entries = OPTION_GET_U64(stream_entries)};
}

struct stream_idmp_limits type_stream_idmp_limits(void)
{
    return (struct stream_idmp_limits){.duration_s = (uint32_t)OPTION_GET(stream_idmp_duration_s),
                                       .maxsize = (uint32_t)OPTION_GET(stream_idmp_maxsize)};
}

struct rdb_limits type_rdb_limits(void)
{
    return (struct rdb_limits){.hash = type_hash_limits(),
                               .set = type_set_limits(),
                               .zset = type_zset_limits(),
                               .list = type_list_limits()};
}

void type_options_setup(void)
{
    static const struct option_row rows[] = {
        ROW_INT("hash-max-listpack-entries", &hash_entries, 512, 0, INT64_MAX, OPTION_MUTABLE,
                "Fields up to which a hash is a listpack.", .alias = "hash-max-ziplist-entries"),
        ROW_MEMORY("hash-max-listpack-value", &hash_value, 64, 0, INT64_MAX, OPTION_MUTABLE,
                   "Bytes of a field or value up to which a hash is a listpack.", .alias = "hash-max-ziplist-value"),
        ROW_INT("list-max-listpack-size", &list_size, -2, INT32_MIN, INT32_MAX, OPTION_MUTABLE,
                "Elements in a node of a list; -1 to -5: nodes of 4, 8, 16, 32, 64 KiB.",
                .alias = "list-max-ziplist-size"),
        ROW_INT("list-compress-depth", &list_compress, 0, 0, INT32_MAX, OPTION_MUTABLE,
                "Nodes at each end of a list that are not compressed; 0: 8 nodes."),
        ROW_INT("set-max-intset-entries", &set_intset_entries, 512, 0, INT64_MAX, OPTION_MUTABLE,
                "Members up to which a set of integers is an intset."),
        ROW_INT("set-max-listpack-entries", &set_listpack_entries, 128, 0, INT64_MAX, OPTION_MUTABLE,
                "Members up to which a set is a listpack."),
        ROW_INT("set-max-listpack-value", &set_listpack_value, 64, 0, INT64_MAX, OPTION_MUTABLE,
                "Bytes of a member up to which a set is a listpack."),
        ROW_INT("zset-max-listpack-entries", &zset_entries, 128, 0, INT64_MAX, OPTION_MUTABLE,
                "Members up to which a sorted set is a listpack.", .alias = "zset-max-ziplist-entries"),
        ROW_MEMORY("zset-max-listpack-value", &zset_value, 64, 0, INT64_MAX, OPTION_MUTABLE,
                   "Bytes of a member up to which a sorted set is a listpack.", .alias = "zset-max-ziplist-value"),
        ROW_MEMORY("stream-node-max-bytes", &stream_bytes, 4096, 0, INT64_MAX, OPTION_MUTABLE,
                   "Approximate bytes in a node of a stream; 0: no limit."),
        ROW_INT("stream-node-max-entries", &stream_entries, 100, 0, INT64_MAX, OPTION_MUTABLE,
                "Entries in a node of a stream; 0: no limit."),
        ROW_INT("stream-idmp-duration", &stream_idmp_duration_s, STREAM_IDMP_DURATION_S, 1, STREAM_IDMP_DURATION_MOST_S,
                OPTION_MUTABLE, "Seconds for which a new stream knows what its producers have added."),
        ROW_INT("stream-idmp-maxsize", &stream_idmp_maxsize, STREAM_IDMP_MAXSIZE, 1, STREAM_IDMP_MAXSIZE_MOST,
                OPTION_MUTABLE, "Entries that a new stream knows of a producer."),
    };

    thread_assert_main();
    config_add_rows(rows, countof(rows));
}
