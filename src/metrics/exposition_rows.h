/* Which fields of INFO make which metrics. Rows with the same metric stand beside each other. */
#pragma once

#include <stddef.h>

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_SUMMARY };

struct metric_row {
    const char *name;
    enum metric_type type;
    /* A field of INFO; "db#": all fields of this name with a number behind it; "cmdstat_*": whatever is behind it. */
    const char *field;
    /* Of a value "a=1,b=2": which of these. NULL: the whole value. "*": each of them, as a sample of its own. */
    const char *part;
    /* Words "label=from": from is a part of the value; "*", what stands behind the field's name for '*' or '#'; "**",
     * the whole name of the field; "<", the name of the part; "field:NAME", another field; or a text in quotes 'so'.
     * NULL: no labels. */
    const char *labels;
    const char *is; /* the sample is 1 if the value is this text, else 0; "*": always 1. NULL: the value is a number */
    double divisor; /* of the number; 0: none */
    const char *help;
};

extern const struct metric_row metric_rows[];
extern const size_t metric_row_count;
