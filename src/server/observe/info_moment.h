/* The moment that one answer of INFO shows: for the functions of rows and sources (base/info_row.h), while this thread
 * writes an answer. */
#pragma once

#include "base/info_row.h"

const struct info_moment *info_moment(void);

/* Returns the picture of another source, and takes it first if necessary. A row must have this source. The picture is
 * valid until the answer is complete. */
const void *info_moment_picture(const struct info_source *source);
