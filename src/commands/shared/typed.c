#include "commands/shared/typed.h"

#include "base/assert.h"

static inline bool begin(struct edit *edit, struct request *request, const struct key *key, enum value_type type,
                         struct entry *entry)
{
    if (entry != NULL && !request_expect_type(request, entry, type))
        return false;
    edit->request = request;
    edit->type = type;
    edit->is_new = entry == NULL;
    edit->is_replaced = false;
    edit->has_deadlines = entry != NULL && (entry->flags & ENTRY_MEMBERS) != 0;
    edit->value = entry != NULL ? entry_value(entry) : (struct value){NULL, ENCODING_RAW};
    change_begin(&edit->change, request->access, request->db, key);
    edit->is_open = true;
    return true;
}

bool edit_begin(struct edit *edit, struct request *request, const struct key *key, enum value_type type)
{
    return begin(edit, request, key, type, access_find(request->access, request->db, key));
}

bool edit_begin_read(struct edit *edit, struct request *request, const struct key *key, enum value_type type)
{
    return begin(edit, request, key, type, access_read(request->access, request->db, key));
}

enum { VALIDATED_MOST = 32 }; /* deadlines: more take too long, even in a debug build */

/* In debug builds: nobody forgot to call edit_forget. */
static void edit_validate(const struct edit *edit)
{
#ifdef KEYDB_DEBUG
    const struct entry *entry = change_entry(&edit->change);

    if (edit->has_deadlines && entry_member_deadlines(entry) <= VALIDATED_MOST)
        subkey_ttl_validate(edit->request->access->store, entry);
#else
    (void)edit;
#endif
}

bool edit_begin_next(struct edit *edit, struct request *request, uint32_t *index, enum value_type type, bool *failed)
{
    *failed = false;
    for (; *index < request->key_count; ++*index) {
        const struct key *key = &request->keys[*index];

        if (request->ready != NULL && request->ready != key)
            continue;
        if (!edit_begin(edit, request, key, type)) {
            *failed = true;
            return false;
        }
        if (!edit->is_new)
            return true;
    }
    return false;
}

enum { REPLACED_LEAST = 1024, LEFT_SHARE = 2 };

bool edit_leaves_few(const struct edit *edit, uint64_t left, uint64_t removed)
{
    return !edit->has_deadlines && removed >= REPLACED_LEAST && left <= removed / LEFT_SHARE;
}

void edit_replace(struct edit *edit, struct value value)
{
    assert(edit->is_open && !edit->is_new && !edit->is_replaced && !edit->has_deadlines);
    edit->value = value;
    edit->is_replaced = true;
}

static void edit_store(struct edit *edit)
{
    assert(edit->is_open && edit->value.data != NULL);
    edit->is_open = false;
    if (edit->is_new || edit->is_replaced)
        change_put_value(&edit->change, edit->type, edit->value, edit->is_new ? EXPIRE_NEVER : EXPIRE_KEEP);
    else
        change_keep_value(&edit->change, edit->value);
    edit_validate(edit);
}

void edit_end(struct edit *edit, enum event_class event_class, const char *event)
{
    edit_store(edit);
    change_end(&edit->change, event_class, event);
}

void edit_end_empty(struct edit *edit, enum event_class event_class, const char *event)
{
    edit_end(edit, event_class, event);
    (void)access_delete(edit->request->access, edit->change.db, edit->change.key);
}
