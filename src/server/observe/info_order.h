/* Which sections and fields INFO has, in the order in which they are printed. The rows stand in the parts they tell of
 * (base/info_row.h). */
#pragma once

#include <stddef.h>

enum info_shown { INFO_SHOWN_BY_DEFAULT, INFO_SHOWN_BY_ALL, INFO_SHOWN_BY_NAME }; /* each also by what stands behind */

struct info_section {
    const char *name, *title;
    enum info_shown shown;
    const char *const *fields; /* names of rows; NULL ends them */
};

extern const struct info_section info_sections[];
extern const size_t info_section_count;
