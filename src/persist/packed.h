/* Containers in one piece that RDB files store as a text: listpacks and, in older versions, ziplists and zipmaps. The
 * bytes come from outside: packed_open checks all of them, so iterating cannot leave them. */
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
    uint64_t count;     /* number of texts */
    uint64_t left;      /* texts still to come */
    size_t at;
    char digits[2][NUMBER_I64_SPACE];
};

must_check bool packed_open(struct packed *packed, enum packed_kind kind, struct slice bytes); /* false: damaged */
/* Returns the next text; call it at most `count` times. Numbers are written into the struct: a text is valid until the
 * call after the next one. */
struct slice packed_next(struct packed *packed);
void packed_rewind(struct packed *packed);
