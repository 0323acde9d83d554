/* Fields of hashes: what the files with commands for them share. */
#pragma once

#include "commands/keys/expire.h"
#include "commands/shared/typed.h"

/* FIELDS numfields field [field ...]: arguments [first, end). */
struct fields {
    uint32_t first, end;
};

/* From argument `index` to the last one. False: an error was replied. */
must_check bool fields_parse(struct request *request, uint32_t index, struct fields *fields);
/* Returns argument `index` as a deadline that a field can have, in ms. False: an error was replied. */
must_check bool field_deadline_parse(struct request *request, uint32_t index, enum lifetime lifetime,
                                     int64_t *expire_ms);

/* Replies its value, or null; hash.data NULL: there is no hash. */
void field_reply(struct request *request, struct value hash, struct slice field);

/* Gives a field that is there this deadline. False: it has passed, so the field is gone. */
bool field_live_until(struct edit *edit, struct slice field, int64_t expire_ms);
/* edit_end, with the fields that the event is about: every `step`th of `count` times `step` slices. */
static inline void fields_end_kept(struct edit *edit, const char *event, const struct slice *fields, uint32_t count,
                                   uint32_t step)
{
    edit_end(edit, EVENT_HASH, event);
    access_event_fields(edit->request->access, edit->change.db, edit->change.key, event, fields, count, step);
}

/* Fields that a command has changed something of. */
struct touched {
    struct slice *fields; /* NULL: nobody wants to know more than how many they are */
    uint32_t count;
};

void touched_begin(struct touched *touched, uint32_t most);
/* Names the fields only if somebody wants to hear of those that events are about. */
static inline void touched_begin_event(struct touched *touched, const struct request *request, uint32_t most)
{
    *touched = (struct touched){.fields = NULL};
    if (access_tells_fields(request->access))
        touched_begin(touched, most);
}
static inline void touched_add(struct touched *touched, struct slice field)
{
    if (UNLIKELY(touched->fields != NULL))
        touched->fields[touched->count] = field;
    touched->count++;
}
void touched_end(struct touched *touched);

/* edit_end, with the fields that the event is about; the key goes if no field is left. */
void fields_end(struct edit *edit, const char *event, const struct touched *touched);

/* The effect of a field's having this deadline, which EXPIREMEMBER may have set; none for EXPIRE_NEVER. */
void field_effect_deadline(struct request *request, struct slice field, int64_t expire_ms);
/* Adds an effect of these words. */
void fields_effect(struct request *request, const struct slice *head, uint32_t head_count, const struct slice *tail,
                   uint32_t tail_count);
/* Adds the effect of field_live_until for these fields: HPEXPIREAT or HDEL. */
void fields_effect_deadline(struct request *request, int64_t expire_ms, const struct slice *fields, uint32_t count);
