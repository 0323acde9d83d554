#include "server/transaction.h"

#include "base/mem.h"
#include "server/dispatch.h"
#include "server/request.h"

/* One command in the queue, with its own copy of the words and the hashes of its keys. */
struct queued {
    const struct command *command;
    enum access_class access;
    struct slice *args;
    uint32_t arg_count;
    struct key *keys;
    uint32_t key_count;
    struct resp_command words; /* owns the blobs */
    char *bytes;
    size_t memory_bytes;
};

struct transaction {
    struct queued *items;
    uint32_t count, capacity;
    uint32_t flags; /* enum command_flag, of all */
    size_t memory_bytes; /* of the queued commands, without room for more */
    bool spoiled;
};

struct transaction *transaction_create(void)
{
    return mem_alloc_zero(sizeof(struct transaction));
}

void transaction_destroy(struct transaction **transaction)
{
    if (*transaction == NULL)
        return;
    for (uint32_t i = 0; i < (*transaction)->count; i++) {
        struct queued *queued = &(*transaction)->items[i];

        resp_command_fini(&queued->words);
        mem_free(queued->args);
        mem_free(queued->keys);
        mem_free(queued->bytes);
    }
    mem_free((*transaction)->items);
    mem_free(*transaction);
    *transaction = NULL;
}

static bool is_in_blob(const struct resp_command *words, uint32_t arg_index)
{
    for (uint32_t i = 0; i < words->blob_count; i++) {
        if (words->blobs[i].arg_index == arg_index)
            return true;
    }
    return false;
}

static void copy_words(struct queued *queued, const struct resp_command *words)
{
    size_t size = 0;
    char *at;

    for (uint32_t i = 0; i < words->arg_count; i++)
        size += is_in_blob(words, i) ? 0 : words->args[i].size;
    queued->arg_count = words->arg_count;
    queued->args = mem_alloc(words->arg_count * sizeof(struct slice));
    queued->bytes = at = mem_alloc(size + 1);
    queued->memory_bytes = sizeof(*queued) + words->arg_count * sizeof(struct slice) + size + 1;
    for (uint32_t i = 0; i < words->arg_count; i++) {
        queued->args[i] = words->args[i];
        if (is_in_blob(words, i) || words->args[i].size == 0)
            continue;
        memcpy(at, words->args[i].data, words->args[i].size);
        queued->args[i].data = at;
        at += words->args[i].size;
    }
}

static void find_keys(struct queued *queued)
{
    struct key_positions positions = {0};

    if (command_keys(queued->command, queued->args, queued->arg_count, &positions) && positions.count != 0) {
        queued->keys = mem_alloc(positions.count * sizeof(struct key));
        queued->key_count = positions.count;
        for (uint32_t i = 0; i < positions.count; i++)
            queued->keys[i] = key_make(queued->args[positions.items[i].arg_index]);
        queued->memory_bytes += positions.count * sizeof(struct key);
    }
    key_positions_fini(&positions);
}

void transaction_queue(struct transaction *transaction, const struct command *command, struct resp_command *words)
{
    struct queued *queued;

    if (transaction->count == transaction->capacity) {
        transaction->capacity = transaction->capacity * 2 + 4;
        transaction->items = mem_realloc(transaction->items, transaction->capacity * sizeof(struct queued));
    }
    queued = &transaction->items[transaction->count++];
    *queued = (struct queued){.command = command};
    transaction->flags |= command->flags;
    copy_words(queued, words);
    queued->access = command_access(command, queued->args, queued->arg_count);
    find_keys(queued);
    for (uint32_t i = 0; i < words->blob_count; i++)
        queued->memory_bytes += words->blobs[i].blob->capacity;
    transaction->memory_bytes += queued->memory_bytes;
    queued->words = *words; /* for its blobs */
    words->blobs = NULL;
    words->blob_count = 0;
}

void transaction_spoil(struct transaction *transaction)
{
    transaction->spoiled = true;
}

bool transaction_is_spoiled(const struct transaction *transaction)
{
    return transaction->spoiled;
}

uint32_t transaction_count(const struct transaction *transaction)
{
    return transaction->count;
}

size_t transaction_memory_bytes(const struct transaction *transaction)
{
    return transaction->memory_bytes;
}

uint32_t transaction_flags(const struct transaction *transaction)
{
    return transaction->flags;
}

enum access_class transaction_needs(const struct transaction *transaction,
                                    void (*visit)(const struct key *keys, uint32_t key_count, void *context),
                                    void *context)
{
    for (uint32_t i = 0; i < transaction->count; i++) {
        const struct queued *queued = &transaction->items[i];

        if (queued->access == ACCESS_EXCLUSIVE || queued->access == ACCESS_WALK)
            return ACCESS_EXCLUSIVE;
        if (queued->access == ACCESS_STRIPED)
            visit(queued->keys, queued->key_count, context);
    }
    return ACCESS_STRIPED;
}

void transaction_run(struct transaction *transaction, struct request *request)
{
    reply_array(request, transaction->count);
    for (uint32_t i = 0; i < transaction->count; i++) {
        struct queued *queued = &transaction->items[i];

        dispatch_run_nested(request, queued->command, queued->args, queued->arg_count, queued->keys,
                            queued->key_count, queued->words.blobs, queued->words.blob_count);
    }
}
