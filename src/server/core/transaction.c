#include "server/core/transaction.h"

#include "base/array.h"
#include "base/mem.h"
#include "base/number.h"
#include "server/command/owned_args.h"
#include "server/config/options.h"

/* One command in the queue. */
struct queued {
    const struct command *command;
    enum access_class access;
    struct owned_args words;
};

struct transaction {
    struct queued *items;
    uint32_t count, capacity;
    uint32_t flags;      /* enum command_flag, of all */
    uint32_t lacking;    /* those that some command does not have */
    size_t memory_bytes; /* of the queued commands, without room for more */
    unsigned db;         /* of the next command */
    bool spoiled;
};

struct transaction *transaction_create(unsigned db)
{
    struct transaction *transaction = mem_alloc_zero(sizeof(*transaction));

    transaction->db = db;
    return transaction;
}

void transaction_destroy(struct transaction **transaction)
{
    if (*transaction == NULL)
        return;
    for (uint32_t i = 0; i < (*transaction)->count; i++)
        owned_args_fini(&(*transaction)->items[i].words);
    ARRAY_FINI(*transaction);
    mem_free(*transaction);
    *transaction = NULL;
}

/* An index that is wrong is the command's to say, and changes nothing. */
static void note_choice(struct transaction *transaction, const struct command *command, const struct slice *args,
                        uint32_t arg_count)
{
    struct key_positions databases = {0};
    int64_t db;

    if (command->row->find_databases(args, arg_count, &databases) && databases.count == 1 &&
        number_parse_i64(args[databases.items[0].arg_index], &db) && db >= 0 && db < OPTION_GET(option_databases))
        transaction->db = (unsigned)db;
    key_positions_fini(&databases);
}

void transaction_queue(struct transaction *transaction, const struct command *command, const struct resp_command *words)
{
    struct queued *queued = ARRAY_PUSH(transaction);
    const uint32_t flags = command_flags(command, words->args, words->arg_count);

    queued->command = command;
    transaction->flags |= flags;
    transaction->lacking |= ~flags;
    owned_args_make(&queued->words, words->args, words->arg_count, words->blobs, words->blob_count, NULL, 0);
    owned_args_find_keys(&queued->words, command);
    queued->access = command_access(command, queued->words.args, queued->words.arg_count);
    transaction->memory_bytes += sizeof(*queued) + queued->words.memory_bytes;
    if (command->row->databases == DATABASES_CHOSEN)
        note_choice(transaction, command, words->args, words->arg_count);
    for (uint32_t i = 0; i < words->blob_count; i++)
        transaction->memory_bytes += words->blobs[i].blob->capacity;
}

void transaction_spoil(struct transaction *transaction)
{
    transaction->spoiled = true;
}

bool transaction_is_spoiled(const struct transaction *transaction)
{
    return transaction->spoiled;
}

unsigned transaction_db(const struct transaction *transaction)
{
    return transaction->db;
}

uint32_t transaction_count(const struct transaction *transaction)
{
    return transaction->count;
}

size_t transaction_memory_bytes(const struct transaction *transaction)
{
    return transaction->memory_bytes;
}

bool transaction_may_write(const struct transaction *transaction)
{
    return (transaction->flags & (COMMAND_WRITE | COMMAND_MAY_REPLICATE)) != 0;
}

uint32_t transaction_flags(const struct transaction *transaction)
{
    return transaction->flags;
}

uint32_t transaction_lacking_flags(const struct transaction *transaction)
{
    return transaction->lacking;
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
            visit(queued->words.keys, queued->words.key_count, context);
    }
    return ACCESS_STRIPED;
}

const struct command *transaction_at(const struct transaction *transaction, uint32_t index,
                                     const struct owned_args **words)
{
    assert(index < transaction->count);
    *words = &transaction->items[index].words;
    return transaction->items[index].command;
}
