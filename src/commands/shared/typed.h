/* Keys that hold more than a string: how command families find, make and change their values.
 *
 *     struct edit edit;
 *
 *     if (!edit_begin(&edit, request, &request->keys[0], TYPE_SET))
 *         return;                                        WRONGTYPE has been replied
 *     if (edit.is_new)
 *         edit.value = set_create(...);                  only if something is put into it
 *     ... change edit.value ...
 *     edit_end(&edit, EVENT_SET, "sadd");                stores it; an empty one goes with its key
 *
 * Whoever removes members, or gives them a new life, says so with edit_forget: their deadlines go.
 * Without edit_end nothing has changed for anybody: for commands that find nothing to do. */
#pragma once

#include "server/core/request.h"
#include "store/subkey_ttl.h"

/* What other servers can keep of a field's deadline: 46 bits of milliseconds. EXPIREMEMBER takes any. */
#define FIELD_DEADLINE_MOST_MS ((INT64_C(1) << 46) - 1)

struct edit {
    struct change change;
    struct request *request;
    struct value value; /* data NULL while a new one was not made */
    enum value_type type;
    bool is_new;        /* the key was not there */
    bool has_deadlines; /* of members */
};

must_check bool edit_begin(struct edit *edit, struct request *request, const struct key *key, enum value_type type);
/* The first of the request's keys, from *index on, that has a value: to be edited; *index is its place. Of a command
 * that has waited only the key that is ready is looked at. False: there is none, or (*failed) one is of another type,
 * which was replied. */
must_check bool edit_begin_next(struct edit *edit, struct request *request, uint32_t *index, enum value_type type,
                                bool *failed);
void edit_end(struct edit *edit, enum event_class event_class, const char *event);
/* The same for a value that has become empty: the key goes, with its own event after this one. */
void edit_end_empty(struct edit *edit, enum event_class event_class, const char *event);

/* Before edit_end. */
static inline void edit_forget(struct edit *edit, struct slice member)
{
    if (UNLIKELY(edit->has_deadlines))
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

/* To read: counted and touched. False: another type, which was replied. value->data is NULL if there is no such key. */
static inline must_check bool typed_read(struct request *request, const struct key *key, enum value_type type,
                                         struct value *value)
{
    return typed_value(request, access_read(request->access, request->db, key), type, value);
}

/* The same for a key that is to be changed: touched, but neither a hit nor a miss. */
static inline must_check bool typed_find(struct request *request, const struct key *key, enum value_type type,
                                         struct value *value)
{
    return typed_value(request, access_find(request->access, request->db, key), type, value);
}
