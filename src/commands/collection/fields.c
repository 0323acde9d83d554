#include "commands/collection/fields.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/number.h"
#include "data/hash.h"

bool fields_parse(struct request *request, uint32_t index, struct fields *fields)
{
    int64_t count;

    if (!request_arg_is(request, index, "FIELDS")) {
        reply_error(request, "ERR Mandatory argument FIELDS is missing or not at the right position");
        return false;
    }
    if (!request_arg_range(request, index + 1, 1, INT64_MAX, &count, "ERR Number of fields must be a positive integer"))
        return false;
    if (count != (int64_t)request->arg_count - index - 2) {
        reply_error(request, "ERR The `numfields` parameter must match the number of arguments");
        return false;
    }
    *fields = (struct fields){index + 2, request->arg_count};
    return true;
}

bool field_deadline_parse(struct request *request, uint32_t index, enum lifetime lifetime, int64_t *expire_ms)
{
    int64_t number;

    if (!request_arg_i64(request, index, &number))
        return false;
    if (number < 0) {
        reply_error(request, "ERR invalid expire time, must be >= 0");
        return false;
    }
    if (!expire_arg(request, index, lifetime, expire_ms))
        return false;
    if (*expire_ms > FIELD_DEADLINE_MOST_MS) {
        reply_errorf(request, "ERR invalid expire time in '%s' command", request->command->row->name);
        return false;
    }
    return true;
}

void field_reply(struct request *request, struct value hash, struct slice field)
{
    char scratch[NUMBER_I64_SPACE];
    struct slice value;

    if (hash.data != NULL && hash_get(hash, field, scratch, &value))
        reply_bulk(request, value);
    else
        reply_null(request);
}

static bool has_passed(const struct request *request, int64_t expire_ms)
{
    return expire_ms <= request->access->due_ms;
}

bool field_live_until(struct edit *edit, struct slice field, int64_t expire_ms)
{
    if (has_passed(edit->request, expire_ms)) {
        edit_forget(edit, field);
        (void)hash_remove(&edit->value, field);
        return false;
    }
    change_member_expire(&edit->change, field, expire_ms);
    edit->has_deadlines = true;
    return true;
}

void touched_begin(struct touched *touched, uint32_t most)
{
    *touched = (struct touched){.fields = mem_alloc(most * sizeof(struct slice))};
}

void touched_end(struct touched *touched)
{
    mem_free(touched->fields);
}

void fields_end(struct edit *edit, const char *event, const struct touched *touched)
{
    const bool is_empty = hash_count(edit->value) == 0;

    fields_end_kept(edit, event, touched->fields, touched->count, 1);
    if (is_empty)
        (void)access_delete(edit->request->access, edit->change.db, edit->change.key);
}

void field_effect_deadline(struct request *request, struct slice field, int64_t expire_ms)
{
    char text[NUMBER_I64_SPACE];
    struct slice when;

    if (expire_ms == EXPIRE_NEVER)
        return;
    when = slice_make(text, number_format_i64(text, expire_ms));
    if (expire_ms <= FIELD_DEADLINE_MOST_MS)
        effect_add(request,
                   (const struct slice[]){SLICE("HPEXPIREAT"), request_arg(request, 1), when, SLICE("FIELDS"),
                                          SLICE("1"), field},
                   6);
    else
        effect_add(request, (const struct slice[]){SLICE("PEXPIREMEMBERAT"), request_arg(request, 1), field, when}, 4);
}

void fields_effect(struct request *request, const struct slice *head, uint32_t head_count, const struct slice *tail,
                   uint32_t tail_count)
{
    struct slice *words = mem_alloc((head_count + tail_count) * sizeof(*words));

    memcpy(words, head, head_count * sizeof(*words));
    memcpy(words + head_count, tail, tail_count * sizeof(*words));
    effect_add(request, words, head_count + tail_count);
    mem_free(words);
}

void fields_effect_deadline(struct request *request, int64_t expire_ms, const struct slice *fields, uint32_t count)
{
    char time_text[NUMBER_I64_SPACE], count_text[NUMBER_I64_SPACE];
    const struct slice gone[] = {SLICE("HDEL"), request_arg(request, 1)};
    const struct slice live[] = {SLICE("HPEXPIREAT"), request_arg(request, 1),
                                 slice_make(time_text, number_format_i64(time_text, expire_ms)), SLICE("FIELDS"),
                                 slice_make(count_text, number_format_i64(count_text, count))};

    assert(count != 0);
    if (has_passed(request, expire_ms))
        fields_effect(request, gone, countof(gone), fields, count);
    else
        fields_effect(request, live, countof(live), fields, count);
}
