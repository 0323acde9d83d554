/* The sections and fields of INFO, in the order in which they are printed. The rows are in the parts that they describe
 * (base/info_row.h). */
#pragma once

#include <stddef.h>

/* Each also by the values behind it. */
enum info_shown { INFO_SHOWN_BY_DEFAULT, INFO_SHOWN_BY_ALL, INFO_SHOWN_BY_NAME };

struct info_section {
    const char *name, *title;
    enum info_shown shown;
    const char *const *fields; /* names of rows; NULL ends them */
};

extern const struct info_section info_sections[];
extern const size_t info_section_count;
