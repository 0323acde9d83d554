/* The moment that one answer of INFO shows: for the functions of rows and sources (base/info_row.h), while this thread
 * makes an answer. */
#pragma once

#include "base/info_row.h"

const struct info_moment *info_moment(void);

/* The picture of another part: taken already, or taken now. Some row has this source. It stays until the answer is
 * complete. */
const void *info_moment_picture(const struct info_source *source);
