#include "persist/rdb_skim.h"

#include "base/assert.h"

/* The shape of a value: what comes first, then, if `each` is there, a count and so many times that.
 *     t a text    l a length    8 eight bytes    d a number as text of old versions */
static const struct shape {
    const char *head, *each;
} shapes[] = {
    [RDB_STRING] = {"t", NULL},
    [RDB_LIST] = {"", "t"},
    [RDB_SET] = {"", "t"},
    [RDB_ZSET_TEXT] = {"", "td"},
    [RDB_HASH] = {"", "tt"},
    [RDB_ZSET] = {"", "t8"},
    [RDB_HASH_ZIPMAP] = {"t", NULL},
    [RDB_LIST_ZIPLIST] = {"t", NULL},
    [RDB_SET_INTSET] = {"t", NULL},
    [RDB_ZSET_ZIPLIST] = {"t", NULL},
    [RDB_HASH_ZIPLIST] = {"t", NULL},
    [RDB_LIST_ZIPLISTS] = {"", "t"},
    [RDB_HASH_LISTPACK] = {"t", NULL},
    [RDB_ZSET_LISTPACK] = {"t", NULL},
    [RDB_LIST_NODES] = {"", "lt"},
    [RDB_SET_LISTPACK] = {"t", NULL},
    [RDB_HASH_DEADLINES_EARLY] = {"", "ltt"},
    [RDB_HASH_LISTPACK_DEADLINES_EARLY] = {"t", NULL},
    [RDB_HASH_DEADLINES] = {"8", "ltt"},
    [RDB_HASH_LISTPACK_DEADLINES] = {"8t", NULL},
};

bool rdb_can_skim(unsigned type)
{
    return type < countof(shapes) && shapes[type].head != NULL;
}

static bool skim_double_text(struct rdb_reader *reader)
{
    unsigned size;

    return rdb_read_byte(reader, &size) && (size >= 253 || rdb_skip_bytes(reader, size));
}

static bool skim_parts(struct rdb_reader *reader, const char *parts)
{
    uint64_t length;
    bool good = true;

    for (; good && *parts != '\0'; parts++) {
        switch (*parts) {
        case 't':
            good = rdb_skip_text(reader);
            break;
        case 'l':
            good = rdb_read_length(reader, &length);
            break;
        case '8':
            good = rdb_skip_bytes(reader, 8);
            break;
        default:
            good = skim_double_text(reader);
            break;
        }
    }
    return good;
}

bool rdb_skim_value(struct rdb_reader *reader, unsigned type)
{
    const struct shape *shape = &shapes[type];
    uint64_t count = 0;
    bool good;

    assert(rdb_can_skim(type));
    good = skim_parts(reader, shape->head) && (shape->each == NULL || rdb_read_count(reader, 1, &count));
    for (; good && count != 0; count--)
        good = skim_parts(reader, shape->each);
    return good;
}
