/* The queue of a client's transaction: commands between MULTI and EXEC, each with its own copy of the words. */
#pragma once

#include "net/resp.h"
#include "server/command/command.h"

#include <stdbool.h>
#include <stdint.h>

#define REFUSED_EXEC "EXECABORT Transaction discarded because of: " /* and then why */

struct key;
struct transaction;

struct transaction *transaction_create(void);
void transaction_destroy(struct transaction **transaction);
/* Copies the command to the end of the queue. */
void transaction_queue(struct transaction *transaction, const struct command *command,
                       const struct resp_command *words);
void transaction_spoil(struct transaction *transaction); /* an error while queueing: EXEC will refuse */
bool transaction_is_spoiled(const struct transaction *transaction);
uint32_t transaction_count(const struct transaction *transaction);
size_t transaction_memory_bytes(const struct transaction *transaction); /* what its commands take */
uint32_t transaction_flags(const struct transaction *transaction); /* enum command_flag, of all its commands together */
bool transaction_may_write(const struct transaction *transaction); /* one of its commands may: command_may_write */

/* What EXEC needs: ACCESS_EXCLUSIVE if a queued command does, else ACCESS_STRIPED with the keys that visit is told. */
enum access_class transaction_needs(const struct transaction *transaction,
                                    void (*visit)(const struct key *keys, uint32_t key_count, void *context),
                                    void *context);

/* The command at that place of the queue, counted from 0, and its words, which stay the transaction's. */
struct owned_args;
const struct command *transaction_at(const struct transaction *transaction, uint32_t index,
                                     const struct owned_args **words);
