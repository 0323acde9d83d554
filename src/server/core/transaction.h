/* The queue of a client's transaction: the commands between MULTI and EXEC, each with a copy of its arguments. */
#pragma once

#include "net/resp.h"
#include "server/command/command.h"

#include <stdbool.h>
#include <stdint.h>

#define REFUSED_EXEC "EXECABORT Transaction discarded because of: " /* followed by the reason */

struct key;
struct transaction;

struct transaction *transaction_create(unsigned db); /* the client's database */
void transaction_destroy(struct transaction **transaction);
/* Appends a copy of the command to the queue. */
void transaction_queue(struct transaction *transaction, const struct command *command,
                       const struct resp_command *words);
void transaction_spoil(struct transaction *transaction); /* after an error while queueing: EXEC will fail */
bool transaction_is_spoiled(const struct transaction *transaction);
/* The database in which the next command of the queue would run if SELECTs in the queue do their work. */
unsigned transaction_db(const struct transaction *transaction);
uint32_t transaction_count(const struct transaction *transaction);
size_t transaction_memory_bytes(const struct transaction *transaction); /* memory of the queued commands */
/* Enum command_flag: the flags of all commands combined, each with its arguments (command_flags). */
uint32_t transaction_flags(const struct transaction *transaction);
uint32_t transaction_lacking_flags(const struct transaction *transaction); /* those that some command does not have */
bool transaction_may_write(const struct transaction *transaction); /* true: command_may_write is true for one of them */

/* The access of EXEC: ACCESS_EXCLUSIVE if a queued command needs it, otherwise ACCESS_STRIPED; calls `visit` with the
 * keys. */
enum access_class transaction_needs(const struct transaction *transaction,
                                    void (*visit)(const struct key *keys, uint32_t key_count, void *context),
                                    void *context);

/* The command at this index of the queue and its arguments, which the transaction still owns. */
struct owned_args;
const struct command *transaction_at(const struct transaction *transaction, uint32_t index,
                                     const struct owned_args **words);
