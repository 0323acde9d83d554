#include "commands/keys/sort_pattern.h"

#include "base/assert.h"
#include "data/hash.h"

struct sort_pattern sort_pattern_parse(struct slice text)
{
    struct sort_pattern pattern = {.is_element = slice_equal_text(text, "#")};
    size_t size = text.size != 0 ? strnlen(text.data, text.size) : 0; /* signs behind a zero byte are none */
    const char *place = size != 0 ? memchr(text.data, '*', size) : NULL, *arrow;

    if (place == NULL)
        return pattern;
    pattern.names_keys = true;
    pattern.before = slice_make(text.data, (size_t)(place - text.data));
    pattern.after = slice_skip(text, pattern.before.size + 1);
    size -= pattern.before.size + 1;
    arrow = size != 0 ? memmem(pattern.after.data, size, "->", 2) : NULL;
    if (arrow != NULL && arrow + 2 < pattern.after.data + size) { /* the name of a field follows the arrow */
        pattern.field = slice_skip(pattern.after, (size_t)(arrow + 2 - pattern.after.data));
        pattern.after.size = (size_t)(arrow - pattern.after.data);
    }
    return pattern;
}

static bool find_named(const struct sort_pattern *pattern, struct request *request, struct sort_lookup *lookup,
                       struct slice *value)
{
    const struct key key = key_make(buffer_slice(&lookup->name));
    const struct entry *entry = access_read(request->access, request->db, &key);

    if (entry == NULL)
        return false;
    if (pattern->field.data != NULL)
        return entry->type == TYPE_HASH && hash_get(entry_value(entry), pattern->field, lookup->scratch, value);
    if (entry->type != TYPE_STRING)
        return false;
    *value = entry_string(entry, lookup->scratch);
    return true;
}

bool sort_pattern_find(const struct sort_pattern *pattern, struct request *request, struct slice element,
                       struct sort_lookup *lookup, struct slice *value)
{
    if (pattern->is_element) {
        *value = element;
        return true;
    }
    if (!pattern->names_keys)
        return false;
    assert(request->access->exclusive); /* its keys are known only now */
    buffer_clear(&lookup->name);
    buffer_append_slice(&lookup->name, pattern->before);
    buffer_append_slice(&lookup->name, element);
    buffer_append_slice(&lookup->name, pattern->after);
    if (!find_named(pattern, request, lookup, value))
        return false;
    assert(value->data != NULL);
    return true;
}
