#include "data/former.h"

bool former_suits(const struct value_ops *ops, struct value value)
{
    return ops->former != NULL && (value.encoding == ENCODING_HASHTABLE || value.encoding == ENCODING_SKIPLIST ||
                                   value.encoding == ENCODING_QUICKLIST || value.encoding == ENCODING_STREAM ||
                                   value.encoding == ENCODING_RAW); /* a nested hash: it has no other form */
}

void former_destroy(struct former **former)
{
    struct former *gone = *former;

    *former = NULL;
    if (gone != NULL)
        gone->ops->destroy(gone);
}
