#include "commands/shared/operations.h"

#include "base/array.h"
#include "base/mem.h"
#include "base/number.h"
#include "persist/rdb_payload.h"
#include "server/durable/file_options.h"

/* A string needs no payload. */
static void add_string(struct request *request, unsigned db, const struct key *key, const struct entry *entry)
{
    char scratch[ENTRY_INT_TEXT_BYTES], digits[NUMBER_I64_SPACE];
    const int64_t expire_ms = entry_expire_ms(entry);
    const struct slice words[] = {SLICE("SET"), key->name, entry_string(entry, scratch), SLICE("PXAT"),
                                  slice_make(digits, number_format_i64(digits, expire_ms))};

    operation_add_in(request, db, words, expire_ms != EXPIRE_NEVER ? 5 : 3);
}

static void add_payload(struct request *request, unsigned db, const struct key *key, const struct entry *entry)
{
    const struct rdb_write_options options = rdb_payload_options();
    const int64_t expire_ms = entry_expire_ms(entry);
    char digits[NUMBER_I64_SPACE];
    struct slice words[] = {SLICE("RESTORE"), key->name, SLICE("0"), SLICE_EMPTY, SLICE("REPLACE"), SLICE("ABSTTL")};
    struct rdb_writer writer;

    if (expire_ms != EXPIRE_NEVER)
        words[2] = slice_make(digits, number_format_i64(digits, expire_ms));
    rdb_writer_init(&writer, &options, NULL);
    rdb_payload_write(&writer, entry);
    words[3] = buffer_slice(&writer.out);
    operation_add_in(request, db, words, countof(words));
    rdb_writer_fini(&writer);
}

void operation_add_value(struct request *request, unsigned db, const struct key *key)
{
    const struct entry *entry;

    if (!operations_are_wanted(request))
        return;
    entry = access_look(request->access, db, key);
    if (entry == NULL)
        operation_add_delete(request, db, key->name);
    else if (entry->type == TYPE_STRING)
        add_string(request, db, key, entry);
    else
        add_payload(request, db, key, entry);
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

void operation_list_add(struct operation_list *list, struct slice element)
{
    if (list->request == NULL)
        return;
    *ARRAY_PUSH(&list->sizes) = element.size;
    buffer_append_slice(&list->bytes, element);
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
    buffer_fini(&list->bytes);
    ARRAY_FINI(&list->sizes);
}
