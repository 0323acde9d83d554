#include "commands/shared/operations.h"

#include "base/array.h"
#include "base/mem.h"
#include "server/durable/value_words.h"

struct value_target {
    struct request *request;
    unsigned db;
};

static void add_words(const struct slice *words, uint32_t count, struct blob *value, void *context)
{
    const struct value_target *to = context;

    operation_add_value_in(to->request, to->db, words, count, value);
}

void operation_add_value(struct request *request, unsigned db, const struct key *key)
{
    struct value_target to = {request, db};

    if (operations_are_wanted(request))
        value_words(request->access, db, key, add_words, &to);
}

void operation_add_words(struct request *request, const struct slice *words, uint32_t word_count, uint32_t first)
{
    const uint32_t more = request->arg_count - first;
    struct slice *all;

    if (!operations_are_wanted(request))
        return;
    all = mem_alloc((word_count + more) * sizeof(*all));
    memcpy(all, words, word_count * sizeof(*all));
    if (more != 0)
        memcpy(all + word_count, &request->args[first], more * sizeof(*all));
    operation_add(request, all, word_count + more);
    mem_free(all);
}

void operation_list_begin(struct operation_list *list, struct request *request)
{
    *list = (struct operation_list){.request = operations_are_wanted(request) ? request : NULL};
}

void operation_members_begin(struct operation_list *list, struct request *request)
{
    *list = (struct operation_list){.request = NULL};
    if (request->arg_count > 3)
        operation_list_begin(list, request);
}

void operation_list_add(struct operation_list *list, struct slice element)
{
    if (list->request == NULL)
        return;
    *ARRAY_PUSH(&list->sizes) = element.size;
    buffer_append_slice(&list->bytes, element);
}

void operation_list_forget(struct operation_list *list)
{
    buffer_fini(&list->bytes);
    ARRAY_FINI(&list->sizes);
}

void operation_list_end(struct operation_list *list, const struct slice *words, uint32_t word_count)
{
    struct slice *all;
    const char *at;

    if (list->request == NULL)
        return;
    operation_none(list->request);
    at = buffer_text(&list->bytes);
    all = mem_alloc((word_count + list->sizes.count) * sizeof(*all));
    memcpy(all, words, word_count * sizeof(*all));
    for (uint32_t i = 0; i < list->sizes.count; i++) {
        all[word_count + i] = slice_make(at, list->sizes.items[i]);
        at += list->sizes.items[i];
    }
    if (list->sizes.count != 0)
        operation_add(list->request, all, word_count + list->sizes.count);
    mem_free(all);
    operation_list_forget(list);
}

void operation_members_end(struct operation_list *list)
{
    if (list->request == NULL)
        return;
    if (list->sizes.count == 0 || list->sizes.count == list->request->arg_count - 2)
        operation_list_forget(list);
    else
        operation_list_end(list, list->request->args, 2);
}
