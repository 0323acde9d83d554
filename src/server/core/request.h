/* A request: the running command with all that its function needs. The caller owns everything; it is valid until the
 * function returns. The stripes of the keys are held (or the gate, depending on the row), so a function neither locks
 * nor blocks.
 *
 * A command replies with reply_*, and reads and changes keys through store/access.h with request->access. It does not
 * touch the journal: dispatch records the command's own words if it changed something. Commands like SPOP replace these
 * words with effect_set, effect_add or effect_none. */
#pragma once

#include "base/slice.h"
#include "net/resp.h"
#include "server/command/command.h"
#include "server/core/client.h"
#include "server/core/worker.h"
#include "store/access.h"

struct request {
    const struct command *command;
    const struct slice *args; /* args[0] is the name */
    uint32_t arg_count;
    uint32_t key_count;
    const struct key *keys; /* the key arguments, in the order of command_keys */
    struct access *access;
    struct client *client; /* the sender; NULL: a client of another worker that was blocked (ready is set), or none */
    struct worker *worker;
    struct output *out;
    int proto; /* 2 or 3 */
    unsigned db;
    const struct resp_blob_arg *blobs; /* arguments that are complete blobs */
    uint32_t blob_count;
    bool is_plain;           /* the arguments stand in the client's input, as struct resp_command says */
    bool in_exec;            /* part of EXEC or a script */
    bool in_script;          /* called by a script */
    const struct key *ready; /* for a command that was blocked: the key to look at; NULL: all keys */
    bool blocked;            /* the command is now blocked: see blocked.h */
    bool again;              /* a walk that has done nothing yet: it waits for busy_stripe and runs again */
    uint32_t busy_stripe;
    bool failed; /* the reply is an error */
    bool is_cut; /* a script that did not run to its end, as the server ends */
    /* One bit for each argument that logs must not show; the last bit is for all arguments from 63 on. */
    uint64_t redacted;
    enum { EFFECT_OWN_WORDS, EFFECT_GIVEN, EFFECT_NONE } effect;
    bool has_operations; /* peers get these, not the effects */
};

/* Initialises a request for this command, run by this worker. The client is the sender; db and proto are taken from it.
 * NULL: no client of this worker (db and proto are 0 and 2 then). All other fields are zero: set keys, blobs and so
 * on. */
static inline void request_init(struct request *request, struct worker *worker, struct client *client,
                                const struct command *command, const struct slice *args, uint32_t arg_count,
                                struct output *out)
{
    *request = (struct request){.command = command,
                                .args = args,
                                .arg_count = arg_count,
                                .access = &worker->run.access,
                                .client = client,
                                .worker = worker,
                                .out = out,
                                .proto = client != NULL ? client->proto : 2,
                                .db = client != NULL ? client->db : 0};
}
static inline void request_set_keys(struct request *request, const struct key *keys, uint32_t key_count)
{
    request->keys = keys;
    request->key_count = key_count;
}
static inline void request_set_blobs(struct request *request, const struct resp_blob_arg *blobs, uint32_t blob_count)
{
    request->blobs = blobs;
    request->blob_count = blob_count;
}

/* The blob that holds argument `index`; NULL: the argument is not in a blob, copy the slice. Not acquired. */
struct blob *request_arg_blob(const struct request *request, uint32_t index);
/* A blob with these bytes: those of an argument, or of the string that the command has put last. NULL: there is none.
 * Not acquired. `request` is a struct request: for effects_add_with_blobs. */
struct blob *request_blob_of(const void *request, struct slice bytes);
static inline struct slice request_arg(const struct request *request, uint32_t index)
{
    debug_assert(index < request->arg_count); /* the command's row or the caller has checked it */
    return request->args[index];
}
static inline bool request_arg_is(const struct request *request, uint32_t index, const char *word)
{
    debug_assert(index < request->arg_count);
    return slice_equal_text_nocase(request->args[index], word); /* case-insensitive */
}

/* Marks the argument as secret: the slow log and MONITOR show "(redacted)". */
static inline void request_redact(struct request *request, uint32_t index)
{
    request->redacted |= UINT64_C(1) << MIN(index, 63U);
}
static inline bool request_is_redacted(const struct request *request, uint32_t index)
{
    return (request->redacted >> MIN(index, 63U) & 1) != 0;
}

/* For ACCESS_WALK, before anything is replied or changed. */
static inline void request_again_after(struct request *request, uint32_t busy_stripe)
{
    request->blocked = true;
    request->again = true;
    request->busy_stripe = busy_stripe;
}

/* Checks. If they fail they reply an error and return false. */
must_check bool request_expect_type(struct request *request, const struct entry *entry, enum value_type type);
must_check bool request_arg_i64(struct request *request, uint32_t index, int64_t *number); /* "not an integer" */
must_check bool request_arg_range(struct request *request, uint32_t index, int64_t least, int64_t most, int64_t *number,
                                  const char *error); /* error NULL: the usual text */
must_check bool request_arg_long_double(struct request *request, uint32_t index, long double *number);
must_check bool request_arg_db(struct request *request, uint32_t index, unsigned *db, const char *error);

/* Replies. */
static inline void reply_ok(struct request *request)
{
    resp_write_ok(request->out);
}
static inline void reply_int(struct request *request, int64_t number)
{
    resp_write_int(request->out, number);
}
static inline void reply_bulk(struct request *request, struct slice bytes)
{
    resp_write_bulk(request->out, bytes);
}
static inline void reply_text(struct request *request, const char *text)
{
    resp_write_bulk(request->out, slice_from_text(text));
}
static inline void reply_null(struct request *request)
{
    resp_write_null(request->out, request->proto);
}
static inline void reply_null_array(struct request *request)
{
    resp_write_null_array(request->out, request->proto);
}
static inline void reply_array(struct request *request, uint64_t count)
{
    resp_write_array(request->out, request->proto, count);
}
static inline void reply_map(struct request *request, uint64_t pairs)
{
    resp_write_map(request->out, request->proto, pairs);
}
static inline void reply_set(struct request *request, uint64_t count)
{
    resp_write_set(request->out, request->proto, count);
}
static inline void reply_bool(struct request *request, bool value)
{
    resp_write_bool(request->out, request->proto, value);
}
void reply_status(struct request *request, const char *text);
/* Replies a string entry as bulk string; NULL: null. */
void reply_string(struct request *request, const struct entry *entry);
void reply_verbatim(struct request *request, const char *format, struct slice text);
void reply_error(struct request *request, const char *text); /* "ERR ..." with its code; marks the request failed */
void reply_errorf(struct request *request, const char *format, ...) PRINTF_LIKE(2, 3);
/* The HELP reply of a container command. */
void reply_help(struct request *request, const char *const *lines, size_t count);
void reply_syntax_error(struct request *request);            /* "ERR syntax error" */
void reply_subcommand_error(struct request *request);        /* error for an unknown subcommand */
void reply_subcommand_syntax_error(struct request *request); /* error for wrong arguments of a known subcommand */

/* Sets what the journal gets instead of the command's own words. The array is copied. */
void effect_set(struct request *request, const struct slice *args, uint32_t arg_count); /* only this command */
/* In addition to those set before. */
void effect_add(struct request *request, const struct slice *args, uint32_t arg_count);
/* The command's own words. There are readers. */
void effect_add_own(const struct request *request);
void effect_none(struct request *request);
/* Describes the effect that was added last to peers, if they read (effects_describe). All functions here do so. */
void effect_describe(const struct request *request, const struct slice *args, uint32_t arg_count);
/* A message for replicas, which may have subscribers. It is not a change, and files do not keep it. */
void effect_message(struct request *request, const struct slice *args, uint32_t arg_count);

/* Operations: what peers of an active server get instead of the command's effects, where these are not what the command
 * did to one key as a total function of that key (docs/active-replication.md). Only if operations_are_wanted: otherwise
 * nothing happens. */
bool operations_are_wanted(const struct request *request);
void operation_add(struct request *request, const struct slice *args, uint32_t arg_count);
void operation_add_in(struct request *request, unsigned db, const struct slice *args, uint32_t arg_count);
/* `value`: the blob in which a word is, which is not copied then; NULL: none is in one. */
void operation_add_value_in(struct request *request, unsigned db, const struct slice *args, uint32_t arg_count,
                            struct blob *value);
void operation_none(struct request *request); /* peers get none of its effects */
