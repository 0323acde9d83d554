/* The patterns of SORT's BY and GET: "weight_*" names a string, "object_*->price" a field of a hash, with the element
 * in place of the first asterisk. "#" is the element itself. */
#pragma once

#include "base/buffer.h"
#include "base/number.h"
#include "server/core/request.h"

struct sort_pattern {
    struct slice before, after; /* of the element, in the key's name */
    struct slice field;         /* data NULL: the key is a string */
    bool is_element;            /* "#" */
    bool names_keys;            /* it has a place for the element */
};

struct sort_pattern sort_pattern_parse(struct slice text);

/* Room for what a lookup needs; `name` is the caller's to free. */
struct sort_lookup {
    struct buffer name;
    char scratch[NUMBER_I64_SPACE];
};

/* What the pattern names for this element; false: there is no such thing. Whoever asks holds the gate if the pattern
 * names keys. *value is good until the next lookup or change, its data never
 * NULL. */
bool sort_pattern_find(const struct sort_pattern *pattern, struct request *request, struct slice element,
                       struct sort_lookup *lookup, struct slice *value);
