/* What files must know of each type: one row a type, declared beside all that reads and writes its values
 * (type_hash.c), and the list of these rows. Who adds a type adds that file and a line to EVERY_TYPE; the type's number
 * is in store/entry.h, the numbers of its forms in rdb_format.h. */
#pragma once

#include "base/compiler.h"
#include "data/zindex_item.h"
#include "persist/aof_commands.h"
#include "persist/digest.h"
#include "persist/packed.h"
#include "persist/rdb_read_value.h"
#include "persist/rdb_write.h"
#include "store/store.h"

/* A form in which values stand in RDB. Its shape, for who reads over it without a look: what comes first, then, if
 * `each` is there, a count and so many times that.
 *     t a text    l a length    8 eight bytes    d a number as text of old versions */
struct rdb_form {
    enum rdb_type number;
    const char *name;        /* for people: "hash as listpack" */
    const char *head, *each; /* head NULL: only reading it tells where it ends */
    /* Type and value, of which value->form is set; when it fails what has been read so far, or none. */
    bool (*read)(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value);
    void (*write)(struct rdb_writer *writer, const struct entry *entry); /* NULL: it is only read */
    bool has_deadlines; /* of members; else they stand in records behind the value */
};

struct type_row {
    struct store_type known;                                                        /* by the keyspace */
    const struct rdb_form *forms;                                                   /* up to one without a name */
    enum rdb_type (*form_of)(struct rdb_writer *writer, const struct entry *entry); /* to write; NULL: the first */
    /* Records behind the value, when they tell of more than members with deadlines; false: it is none of them. */
    void (*write_records)(struct rdb_writer *writer, const struct entry *entry);
    bool (*take_record)(struct value *value, struct slice name, struct slice text);
    void (*put_commands)(struct aof_commands *commands, const struct entry *entry); /* make it; NULL: one RESTORE */
    bool has_fields;        /* members are what the commands of Redis 7.4 call fields */
    uint32_t digest_number; /* by which digests know the type */
    void (*digest)(struct digest *digest, const struct entry *entry); /* adds what is in the value */
};

#define EVERY_TYPE(DO)           \
    DO(TYPE_STRING, type_string) \
    DO(TYPE_LIST, type_list)     \
    DO(TYPE_SET, type_set)       \
    DO(TYPE_ZSET, type_zset)     \
    DO(TYPE_HASH, type_hash)     \
    DO(TYPE_STREAM, type_stream) \
    DO(TYPE_NESTED, type_nested) \
    DO(TYPE_CRON, type_cron)

#define DECLARE_TYPE_ROW(type, row) extern const struct type_row row;
EVERY_TYPE(DECLARE_TYPE_ROW)

const struct type_row *type_row_of(enum value_type type);
const struct rdb_form *rdb_form_of(unsigned number); /* NULL: there is none; any thread */
void types_setup(struct store *store);               /* tells it of all types; before the workers start */

/* --- what types share --- */

/* Texts of containers, which our types count in 31 bits. */
static inline must_check bool rdb_check_member(struct rdb_reader *reader, struct slice member)
{
    return member.size <= ZINDEX_MEMBER_BYTES_MOST || rdb_corrupt(reader, "a member is too long");
}
must_check bool rdb_open_packed(struct rdb_reader *reader, enum packed_kind kind, struct packed *packed);
void rdb_write_listpack(struct rdb_writer *writer, const struct entry *entry); /* a value that is one, as it is */
