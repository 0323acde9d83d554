#include "persist/rdb_skim.h"

#include "base/assert.h"

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

bool rdb_skim_value(struct rdb_reader *reader, const struct rdb_form *form)
{
    uint64_t count = 0;
    bool good;

    assert(rdb_can_skim(form));
    good = skim_parts(reader, form->head) && (form->each == NULL || rdb_read_count(reader, 1, &count));
    for (; good && count != 0; count--)
        good = skim_parts(reader, form->each);
    return good;
}
