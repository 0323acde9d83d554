/* Skips values without making them, to find where they end. For readers whose records are parsed by other threads. */
#pragma once

#include "persist/types.h"

/* True if the form can be skipped: all forms except those of streams, jobs and modules. */
static inline bool rdb_can_skim(const struct rdb_form *form)
{
    return form->head != NULL;
}

/* Skips the bytes behind type and key, for a form that can be skipped. */
must_check bool rdb_skim_value(struct rdb_reader *reader, const struct rdb_form *form);
