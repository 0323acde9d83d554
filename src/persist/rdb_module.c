#include "persist/rdb_module.h"

void rdb_module_name(uint64_t id, char name[10])
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    for (int i = 0; i < 9; i++)
        name[i] = alphabet[id >> (10 + 6 * (8 - i)) & 63];
    name[9] = '\0';
}

bool rdb_skip_module_items(struct rdb_reader *reader)
{
    for (;;) {
        uint64_t item, number;
        struct slice bytes;
        bool good;

        if (!rdb_read_length(reader, &item))
            return false;
        switch (item) {
        case RDB_MODULE_END:
            return true;
        case RDB_MODULE_SIGNED:
        case RDB_MODULE_UNSIGNED:
            good = rdb_read_length(reader, &number);
            break;
        case RDB_MODULE_FLOAT:
            good = rdb_read_bytes(reader, 4, &bytes);
            break;
        case RDB_MODULE_DOUBLE:
            good = rdb_read_bytes(reader, 8, &bytes);
            break;
        case RDB_MODULE_TEXT:
            good = rdb_read_text(reader, &bytes);
            break;
        default:
            return rdb_corrupt(reader, "a value of a module is damaged");
        }
        if (!good)
            return false;
    }
}
