/* Lists as values. Every list is a quicklist; a short list is a single node. */
#pragma once

#include "data/quicklist.h"
#include "data/value.h"

extern const struct value_ops list_ops;
extern const struct former_ops quicklist_former;

struct value list_create(const struct quicklist_limits *limits);

static inline struct quicklist *list_of(struct value value)
{
    return value.data;
}
