/* The patterns of SORT's BY and GET: "weight_*" is the name of a string, "object_*->price" a field of a hash, with the
 * element in place of the first asterisk. "#" is the element itself. */
#pragma once

#include "base/buffer.h"
#include "base/number.h"
#include "server/core/request.h"

struct sort_pattern {
    struct slice before, after; /* the key's name before and after the element */
    struct slice field;         /* data NULL: the key is a string */
    bool is_element;            /* "#" */
    bool names_keys;            /* it contains an asterisk */
};

struct sort_pattern sort_pattern_parse(struct slice text);

/* Memory for lookups; the caller frees `name`. */
struct sort_lookup {
    struct buffer name;
    char scratch[NUMBER_I64_SPACE];
};

/* Looks up the pattern for this element; false: there is no such key or field. Whoever calls holds the gate if the
 * pattern names keys. *value is valid until the next lookup or change; its data is never NULL. */
bool sort_pattern_find(const struct sort_pattern *pattern, struct request *request, struct slice element,
                       struct sort_lookup *lookup, struct slice *value);
