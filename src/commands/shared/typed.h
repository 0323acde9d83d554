/* Keys with values other than strings: how commands find, create and change them.
 *
 *     struct edit edit;
 *
 *     if (!edit_begin(&edit, request, &request->keys[0], TYPE_SET))
 *         return;                                        WRONGTYPE was replied
 *     if (edit.is_new)
 *         edit.value = set_create(...);                  only if an element will be added
 *     ... change edit.value ...
 *     edit_end(&edit, EVENT_SET, "sadd");                stores it, or deletes the key if it is empty
 *
 * A command that removes members, or gives them a new life, calls edit_forget, which removes their deadlines. Without
 * edit_end nothing has changed: for commands that find nothing to do. */
#pragma once

#include "server/core/request.h"
#include "store/subkey_ttl.h"

/* The latest deadline of a field that Redis can store: 46 bits of milliseconds. EXPIREMEMBER takes any. */
#define FIELD_DEADLINE_MOST_MS ((INT64_C(1) << 46) - 1)

struct edit {
    struct change change;
    struct request *request;
    struct value value; /* data NULL: a new value was not created yet */
    enum value_type type;
    bool is_new;        /* the key did not exist */
    bool has_deadlines; /* members have deadlines */
    bool is_replaced;   /* edit_replace */
    bool is_open;       /* begun and not ended yet */
};

must_check bool edit_begin(struct edit *edit, struct request *request, const struct key *key, enum value_type type);
/* The same for commands that also read: the lookup counts as a hit or a miss. */
must_check bool edit_begin_read(struct edit *edit, struct request *request, const struct key *key,
                                enum value_type type);
/* Begins with the first of the request's keys, from *index on, that exists; *index is its index. For a command that was
 * blocked only the ready key is checked. False: there is none, or (*failed) one has another type, and an error was
 * replied. */
must_check bool edit_begin_next(struct edit *edit, struct request *request, uint32_t *index, enum value_type type,
                                bool *failed);
void edit_end(struct edit *edit, enum event_class event_class, const char *event);
/* The same for a value that is now empty: deletes the key, with a second event for that. */
void edit_end_empty(struct edit *edit, enum event_class event_class, const char *event);

/* To remove many elements takes long. If few are left, another value with these is made sooner, and whoever frees large
 * values (store/lazyfree.h) gets the old one. True: so it is here, and no element has a deadline. For values that are
 * tables. */
must_check bool edit_leaves_few(const struct edit *edit, uint64_t left, uint64_t removed);
/* From edit_end on the key has this value, which is taken over, and its old deadline. Until then the old value is
 * there, unchanged. */
void edit_replace(struct edit *edit, struct value value);

/* Call it before edit_end. */
static inline void edit_forget(struct edit *edit, struct slice member)
{
    if (LIKELY(!edit->has_deadlines))
        return;
    assert(edit->is_open);
    change_member_expire(&edit->change, member, EXPIRE_NEVER);
}

/* The same for arguments first, first + step ... of the command. */
static inline void edit_forget_args(struct edit *edit, uint32_t first, uint32_t step)
{
    if (LIKELY(!edit->has_deadlines))
        return;
    for (uint32_t i = first; i < edit->request->arg_count; i += step)
        edit_forget(edit, request_arg(edit->request, i));
}

static inline must_check bool typed_value(struct request *request, const struct entry *entry, enum value_type type,
                                          struct value *value)
{
    *value = (struct value){NULL, ENCODING_RAW};
    if (entry == NULL)
        return true;
    if (UNLIKELY(!request_expect_type(request, entry, type)))
        return false;
    *value = entry_value(entry);
    return true;
}

/* For reading: counts and touches the key. False: another type, an error was replied. value->data is NULL if the key
 * does not exist. */
static inline must_check bool typed_read(struct request *request, const struct key *key, enum value_type type,
                                         struct value *value)
{
    return typed_value(request, access_read(request->access, request->db, key), type, value);
}

/* The same for a key to be changed: touches it, but counts neither a hit nor a miss. */
static inline must_check bool typed_find(struct request *request, const struct key *key, enum value_type type,
                                         struct value *value)
{
    return typed_value(request, access_find(request->access, request->db, key), type, value);
}
