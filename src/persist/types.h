/* Types as files see them: one row for each type, beside the code that reads and writes its values (type_hash.c). To
 * add a type, add such a file and a line to EVERY_TYPE (store/entry.h). rdb_format.h has the numbers of its forms. */
#pragma once

#include "base/compiler.h"
#include "data/former.h"
#include "data/zindex_item.h"
#include "persist/aof_commands.h"
#include "persist/digest.h"
#include "persist/packed.h"
#include "persist/rdb_read_value.h"
#include "persist/rdb_write.h"
#include "store/store.h"

/* A form of values in RDB. Its shape lets a reader skip values: `head`; then, if `each` is not NULL, a count, and
 * `each` that many times.
 *     t a text    l a length    8 eight bytes    d a number as text of old versions */
struct rdb_form {
    enum rdb_type number;
    const char *name;        /* for people: "hash as listpack" */
    const char *head, *each; /* head NULL: the end is found only by parsing */
    /* Reads a value; value->form is set before. It sets type and value. On failure these are the parts read so far, or
     * none. */
    bool (*read)(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value);
    void (*write)(struct rdb_writer *writer, const struct entry *entry); /* NULL: this form is only read */
    /* Contains deadlines of members; otherwise these are in records behind the value. A deadline is in front of its
     * element, and the earliest one in front of all; or each follows its element, by itself. */
    bool has_deadlines, deadlines_follow;
};

/* How a value is written whose elements come one by one (data/former.h). Of a stream, elements are nodes. */
struct type_elements {
    bool form_is_fixed; /* false: form_of knows it, by what a value has beside its elements */
    enum rdb_type form; /* that it has then */
    /* That it has then if members have deadlines; RDB_TYPE_NONE: the version of the file has none. NULL: deadlines are
     * in records behind the value in any version. Its elements are those of `form`, and the deadlines. */
    enum rdb_type (*form_with_deadlines)(struct rdb_writer *writer);
    void (*write_head)(struct rdb_writer *writer); /* NULL: the number of the elements */
    void (*write)(struct rdb_writer *writer, const struct former_element *element);
    /* Of a value that has other parts behind its elements, or nothing else. */
    void (*write_part)(struct rdb_writer *writer, enum rdb_type form, const struct entry *entry,
                       const struct former_element *element);
    /* What follows the elements; NULL: nothing. */
    void (*write_rest)(struct rdb_writer *writer, enum rdb_type form, const struct entry *entry);
    /* The command that adds elements, and words of one; NULL: one RESTORE. */
    const char *command;
    unsigned width;
    void (*put)(struct aof_commands *commands, const struct former_element *element);
    bool are_bytes; /* of a string: it has no command, but one SET with the bytes that `put` adds */
};

struct type_row {
    struct store_type known;      /* for the keyspace */
    const struct rdb_form *forms; /* the last one has no name */
    /* Chooses the form to write; NULL: the first. */
    enum rdb_type (*form_of)(struct rdb_writer *writer, const struct entry *entry);
    /* For records behind the value other than deadlines of members. take_record returns false for other records. */
    void (*write_records)(struct rdb_writer *writer, const struct entry *entry);
    bool (*take_record)(struct value *value, struct slice name, struct slice text);
    /* Commands that create the value; NULL: one RESTORE. */
    void (*put_commands)(struct aof_commands *commands, const struct entry *entry);
    const struct type_elements *elements; /* NULL: they never come one by one */
    bool has_fields;                      /* members are fields, in the sense of the commands of Redis 7.4 */
    uint32_t digest_number;               /* the type's number in digests */
    void (*digest)(struct digest *digest, const struct entry *entry); /* mixes the contents of the value in */
};

#define DECLARE_TYPE_ROW(type, row) extern const struct type_row row;
EVERY_TYPE(DECLARE_TYPE_ROW)

const struct type_row *type_row_of(enum value_type type);
const struct rdb_form *rdb_form_of(unsigned number); /* NULL: there is none; any thread */
void types_setup(struct store *store); /* registers all types with the store; main thread, before the workers start */

/* --- functions that types share --- */

/* Checks a text of a container: our types count its bytes in 31 bits. */
static inline must_check bool rdb_check_member(struct rdb_reader *reader, struct slice member)
{
    return member.size <= ZINDEX_MEMBER_BYTES_MOST || rdb_corrupt(reader, "a member is too long");
}
must_check bool rdb_open_packed(struct rdb_reader *reader, enum packed_kind kind, struct packed *packed);
/* A value that is a listpack, unchanged. */
void rdb_write_listpack(struct rdb_writer *writer, const struct entry *entry);
