/* The numbers of the RDB format, from the documentation and files of Redis and KeyDB. A file is
 *
 *     "REDIS" | version, 4 digits | records | 255 | CRC-64 of all before, little-endian (from version 5 on)
 *     "VALKEY" | version, 3 digits | the same, by Valkey from 9.0 on
 *
 * A record is an opcode with its data, or a key: type | key | value, after opcodes with its deadline and its use. A
 * DUMP payload is type | value | version u16 | CRC-64. */
#pragma once

#include <stdbool.h>
#include <string.h>

enum {
    RDB_VERSION_LEAST = 1,         /* lowest version that can be read */
    RDB_VERSION_WRITTEN_LEAST = 9, /* lowest version that can be written */
    RDB_VERSION_MOST = 14,         /* highest version that can be read */
    RDB_HEADER_BYTES = 9,
    RDB_VERSION_WITH_CHECKSUM = 5,
    RDB_VERSION_LISTPACKS = 10,    /* and functions, streams with entries_added */
    RDB_VERSION_SET_LISTPACK = 11, /* and consumers' active time */
    RDB_VERSION_FIELD_DEADLINES = 12,
    RDB_VERSION_IDMP = 13, /* streams with pairs of producers, of Redis 8.6 */
    /* Valkey's, from 9.0 on: what Redis' 11 has, and a hash with deadlines of its own. Not above the others. */
    RDB_VERSION_VALKEY = 80
};

enum { RDB_MAGIC_BYTES = 5 };

/* Whether a file with these first bytes is, or begins with, an RDB file: of an append-only file, its preamble. */
static inline bool rdb_is_magic(const char bytes[RDB_MAGIC_BYTES])
{
    return memcmp(bytes, "REDIS", RDB_MAGIC_BYTES) == 0 || memcmp(bytes, "VALKEY", RDB_MAGIC_BYTES) == 0;
}

enum rdb_opcode {
    RDB_SLOT_INFO = 244,
    RDB_FUNCTION = 245,
    RDB_FUNCTION_EARLY = 246, /* of release candidates; refused */
    RDB_MODULE_AUX = 247,
    RDB_IDLE = 248,
    RDB_FREQUENCY = 249,
    RDB_AUX = 250,
    RDB_RESIZE = 251,
    RDB_EXPIRE_MS = 252,
    RDB_EXPIRE_S = 253,
    RDB_SELECT = 254,
    RDB_END = 255
};

enum rdb_type {
    RDB_STRING = 0,
    RDB_LIST = 1,
    RDB_SET = 2,
    RDB_ZSET_TEXT = 3, /* scores as text */
    RDB_HASH = 4,
    RDB_ZSET = 5, /* scores as binary doubles */
    RDB_MODULE_EARLY = 6,
    RDB_MODULE = 7,
    RDB_HASH_ZIPMAP = 9,
    RDB_LIST_ZIPLIST = 10,
    RDB_SET_INTSET = 11,
    RDB_ZSET_ZIPLIST = 12,
    RDB_HASH_ZIPLIST = 13,
    RDB_LIST_ZIPLISTS = 14,
    RDB_STREAM_1 = 15,
    RDB_HASH_LISTPACK = 16,
    RDB_ZSET_LISTPACK = 17,
    RDB_LIST_NODES = 18,
    RDB_STREAM_2 = 19,
    RDB_SET_LISTPACK = 20,
    RDB_STREAM_3 = 21,
    RDB_HASH_DEADLINES_EARLY = 22, /* of release candidates */
    RDB_HASH_LISTPACK_DEADLINES_EARLY = 23,
    RDB_HASH_DEADLINES = 24,
    RDB_HASH_LISTPACK_DEADLINES = 25,
    RDB_STREAM_4 = 26,          /* and pairs of producers (data/stream_idmp.h) */
    RDB_CRON = 64,              /* KeyDB's */
    RDB_HASH_VALKEY = 256 + 22, /* what is 22 in RDB_VERSION_VALKEY (rdb_type_byte) */
    RDB_TYPE_NUMBERS = 512,     /* above all of these */
    RDB_TYPE_NONE = -1
};

/* The type that a byte stands for in a file or payload of this version. */
static inline unsigned rdb_type_in(int version, unsigned type)
{
    return version == RDB_VERSION_VALKEY && type == RDB_HASH_DEADLINES_EARLY ? RDB_HASH_VALKEY : type;
}

/* The byte that stands for a type in files and payloads of those versions that have it. */
static inline unsigned rdb_type_byte(enum rdb_type type)
{
    return (unsigned)type & 0xff;
}

enum rdb_text_form { RDB_TEXT_I8 = 0, RDB_TEXT_I16 = 1, RDB_TEXT_I32 = 2, RDB_TEXT_LZF = 3 };
enum rdb_node_form { RDB_NODE_PLAIN = 1, RDB_NODE_LISTPACK = 2 };
enum rdb_module_item {
    RDB_MODULE_END = 0,
    RDB_MODULE_SIGNED = 1,
    RDB_MODULE_UNSIGNED = 2,
    RDB_MODULE_FLOAT = 3,
    RDB_MODULE_DOUBLE = 4,
    RDB_MODULE_TEXT = 5
};

/* Deadlines of members of sets and hashes, as records behind their key: first the member, then the time in ms as
 * text. */
#define RDB_AUX_MEMBER SLICE("keydb-subexpire-key")
#define RDB_AUX_MEMBER_MS SLICE("keydb-subexpire-when")
/* Before a key, and in DUMP payloads behind the value: KeyDB's time stamp of a change. */
#define RDB_AUX_STAMP SLICE("mvcc-tstamp")
/* Of active replication. In front of all keys, once: ids of origins, 8 bytes each, little-endian; the first one has
 * the number 0. Then before a key: its version (store/stamp.h), 8 bytes, with the number of an origin in that list. A
 * number behind the list's end, or of the id 0, is that of an origin that is not known any more. Without the list such
 * a record is none of ours. */
#define RDB_AUX_ORIGINS SLICE("order-origins")
#define RDB_AUX_VERSION SLICE("v")
/* Also of active replication: the node's state, in front; and the records of its window: in front of all keys, or
 * behind them (and a SELECT, so that no key takes them for its own). */
#define RDB_AUX_ORDER_STATE SLICE("order-state")
#define RDB_AUX_ORDER_RECORD SLICE("order-record")
#define RDB_AUX_ORDER_PART SLICE("order-part") /* before the state: it has only the keys that the receiver lacks */
