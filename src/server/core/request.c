#include "server/core/request.h"

#include "base/number.h"
#include "server/command/operation.h"
#include "server/core/client.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "store/effects_words.h"

#include <stdarg.h>
#include <stdio.h>

struct blob *request_arg_blob(const struct request *request, uint32_t index)
{
    for (uint32_t i = 0; i < request->blob_count; i++) {
        if (request->blobs[i].arg_index == index)
            return request->blobs[i].blob;
    }
    return NULL;
}

struct blob *request_blob_of(const void *request, struct slice bytes)
{
    const struct request *its = request;

    for (uint32_t i = 0; i < its->blob_count; i++) {
        struct blob *blob = its->blobs[i].blob;

        if (blob != NULL && blob->data == bytes.data && blob->size == bytes.size)
            return blob;
    }
    return access_stored_blob(its->access, bytes);
}

/* ------------------------------------------------------------------------------------------------------- checks -- */

bool request_expect_type(struct request *request, const struct entry *entry, enum value_type type)
{
    if (entry == NULL || entry->type == (uint32_t)type)
        return true;
    reply_error(request, "WRONGTYPE Operation against a key holding the wrong kind of value");
    return false;
}

bool request_arg_i64(struct request *request, uint32_t index, int64_t *number)
{
    return request_arg_range(request, index, INT64_MIN, INT64_MAX, number, NULL);
}

bool request_arg_range(struct request *request, uint32_t index, int64_t least, int64_t most, int64_t *number,
                       const char *error)
{
    int64_t parsed;

    if (number_parse_i64(request->args[index], &parsed) && parsed >= least && parsed <= most) {
        *number = parsed;
        return true;
    }
    reply_error(request, error != NULL ? error : "ERR value is not an integer or out of range");
    return false;
}

bool request_arg_long_double(struct request *request, uint32_t index, long double *number)
{
    if (number_parse_long_double(request->args[index], number))
        return true;
    reply_error(request, "ERR value is not a valid float");
    return false;
}

bool request_arg_db(struct request *request, uint32_t index, unsigned *db, const char *error)
{
    int64_t number;

    if (!request_arg_range(request, index, INT64_MIN, INT64_MAX, &number, error))
        return false;
    if (number < INT32_MIN || number > INT32_MAX) {
        reply_error(request, error != NULL ? error
                                           : "ERR value is out of range, value must between -2147483648 and "
                                             "2147483647");
        return false;
    }
    if (number < 0 || number >= (int64_t)request->access->store->database_count) {
        reply_error(request, "ERR DB index is out of range");
        return false;
    }
    *db = (unsigned)number;
    return true;
}

/* ------------------------------------------------------------------------------------------------------ replies -- */

void reply_status(struct request *request, const char *text)
{
    resp_write_status(request->out, slice_from_text(text));
}

void reply_string(struct request *request, const struct entry *entry)
{
    struct blob *blob;
    char scratch[ENTRY_INT_TEXT_BYTES];

    if (UNLIKELY(entry == NULL)) {
        reply_null(request);
        return;
    }
    blob = entry_blob(entry);
    if (UNLIKELY(blob != NULL))
        resp_write_bulk_blob(request->out, blob, 0, blob->size);
    else
        resp_write_bulk(request->out, entry_string(entry, scratch));
}

void reply_verbatim(struct request *request, const char *format, struct slice text)
{
    resp_write_verbatim(request->out, request->proto, format, text);
}

void reply_error(struct request *request, const char *text)
{
    request->failed = true;
    worker_count_error(request->worker, slice_from_text(text));
    resp_write_error_text(request->out, text);
}

void reply_errorf(struct request *request, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    reply_error(request, text);
}

void reply_help(struct request *request, const char *const *lines, size_t count)
{
    const struct slice name = request->args[0]; /* as the client calls it: it may be renamed */
    char first[128];
    size_t used = 0;

    reply_array(request, count + 3);
    for (size_t i = 0; i < name.size && used < 40; i++) {
        char c = name.data[i];

        first[used++] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    snprintf(first + used, sizeof(first) - used, " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    reply_status(request, first);
    for (size_t i = 0; i < count; i++)
        reply_status(request, lines[i]);
    reply_status(request, "HELP");
    reply_status(request, "    Print this help.");
}

void reply_syntax_error(struct request *request)
{
    reply_error(request, "ERR syntax error");
}

/* The text before the subcommand's name differs; the hint to HELP has the command in capitals. */
static void reply_about_subcommand(struct request *request, const char *problem)
{
    char name[64];
    struct slice word = request->arg_count > 1 ? request->args[1] : request->args[0];
    size_t size = MIN(request->args[0].size, sizeof(name) - 1);

    for (size_t i = 0; i < size; i++) {
        char c = request->args[0].data[i];

        name[i] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    name[size] = '\0';
    reply_errorf(request, "ERR %s '%.*s'. Try %s HELP.", problem, (int)MIN(word.size, (size_t)128), word.data, name);
}

void reply_subcommand_error(struct request *request)
{
    reply_about_subcommand(request, "unknown subcommand");
}

void reply_subcommand_syntax_error(struct request *request)
{
    reply_about_subcommand(request, "unknown subcommand or wrong number of arguments for");
}

/* ------------------------------------------------------------------------------------------------------ effects -- */

void effect_set(struct request *request, const struct slice *args, uint32_t arg_count)
{
    request->effect = EFFECT_GIVEN;
    effect_add(request, args, arg_count);
}

void effect_describe(const struct request *request, const struct slice *args, uint32_t arg_count)
{
    if (!operations_are_wanted(request))
        return;
    if (LIKELY(args == request->args))
        operation_describe_own(request->access->effects, request->command, args, arg_count, request->keys,
                               request->key_count);
    else
        operation_describe(request->access->effects, args, arg_count);
}

void effect_add(struct request *request, const struct slice *args, uint32_t arg_count)
{
    if (request->access->effects == NULL)
        return;
    effects_add_with_blobs(request->access->effects, request->db, args, arg_count, request_blob_of, request);
    effect_describe(request, args, arg_count);
}

void effect_add_own(const struct request *request)
{
    struct effects *effects = request->access->effects;
    const struct slice *args = request->args;
    const struct slice text = request->is_plain ? effects_plain_text(args, request->arg_count) : SLICE_EMPTY;

    if (UNLIKELY(text.size == 0 || text.size >= EFFECT_BLOB_BYTES))
        effects_add_with_blobs(effects, request->db, args, request->arg_count, request_blob_of, request);
    else
        effects_add_plain(effects, request->db, args, request->arg_count, text);
    if (operations_are_wanted(request))
        operation_describe_own(effects, request->command, args, request->arg_count, request->keys, request->key_count);
}

void effect_message(struct request *request, const struct slice *args, uint32_t arg_count)
{
    request->effect = EFFECT_GIVEN;
    if (request->access->effects != NULL)
        effects_add_message(request->access->effects, request->db, args, arg_count);
}

void effect_none(struct request *request)
{
    request->effect = EFFECT_NONE;
}

/* --------------------------------------------------------------------------------------------------- operations -- */

bool operations_are_wanted(const struct request *request)
{
    const struct access *access = request->access;

    /* What a peer has done it has told itself. */
    return UNLIKELY(access->effects != NULL && journal_has_peers(&request->worker->server->journal)) &&
           access->changed != NULL;
}

void operation_add_value_in(struct request *request, unsigned db, const struct slice *args, uint32_t arg_count,
                            struct blob *value)
{
    if (!operations_are_wanted(request))
        return;
    request->has_operations = true;
    effects_add_value(request->access->effects, db, args, arg_count, value, EFFECT_PLAIN);
    operation_describe(request->access->effects, args, arg_count);
}

void operation_add_in(struct request *request, unsigned db, const struct slice *args, uint32_t arg_count)
{
    operation_add_value_in(request, db, args, arg_count, NULL);
}

void operation_add(struct request *request, const struct slice *args, uint32_t arg_count)
{
    operation_add_in(request, request->db, args, arg_count);
}

void operation_none(struct request *request)
{
    request->has_operations = operations_are_wanted(request);
}
