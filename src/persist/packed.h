/* The containers in one piece that RDB files hold as a text: listpack, and of older versions ziplist and zipmap. Bytes
 * from outside: packed_open looks at all of them, after that walking cannot leave them. */
#pragma once

#include "base/compiler.h"
#include "base/number.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum packed_kind { PACKED_LISTPACK, PACKED_ZIPLIST, PACKED_ZIPMAP };

struct packed {
    enum packed_kind kind;
    struct slice bytes; /* not owned */
    uint64_t count;     /* texts in all */
    uint64_t left;      /* to come */
    size_t at;
    char digits[2][NUMBER_I64_SPACE];
};

must_check bool packed_open(struct packed *packed, enum packed_kind kind, struct slice bytes); /* false: damaged */
/* The next text; not more than `count` times. Numbers are written into memory of the packed itself: a text is good
 * until the call after next. */
struct slice packed_next(struct packed *packed);
void packed_rewind(struct packed *packed);
