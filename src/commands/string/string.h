/* Functions that the commands of strings share. */
#pragma once

#include "base/number.h"
#include "server/config/options.h"
#include "server/core/request.h"

/* Finds a string for reading: counts and touches the key. False: the key has another type, an error was replied. */
static inline bool string_read(struct request *request, const struct key *key, struct entry **entry)
{
    *entry = access_read(request->access, request->db, key);
    return LIKELY(*entry == NULL || (*entry)->type == TYPE_STRING) || request_expect_type(request, *entry, TYPE_STRING);
}

/* The same for changing. */
static inline bool string_find(struct request *request, const struct key *key, struct entry **entry)
{
    *entry = access_find(request->access, request->db, key);
    return LIKELY(*entry == NULL || (*entry)->type == TYPE_STRING) || request_expect_type(request, *entry, TYPE_STRING);
}

/* How long a string may get. What a master or a file says was checked where it was written: under another limit. */
static inline uint64_t string_size_limit(const struct request *request)
{
    if (UNLIKELY(request->client != NULL && (request->client->flags & CLIENT_OBEYED) != 0))
        return INT64_MAX;
    return OPTION_GET_U64(option_proto_max_bulk_len);
}

/* Checks that a string of this size is within the limit for bulk strings. Replies an error if not. */
static inline bool string_check_size(struct request *request, uint64_t size)
{
    if (LIKELY(size <= string_size_limit(request)))
        return true;
    reply_error(request, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    return false;
}

/* The number a string is; an absent key is 0. False: it is none, which was replied. */
static inline bool string_read_number(struct request *request, const struct entry *entry, int64_t *number)
{
    char scratch[ENTRY_INT_TEXT_BYTES];

    if (entry == NULL)
        *number = 0;
    else if (LIKELY(entry->encoding == ENCODING_INT))
        *number = entry_int(entry);
    else if (!number_parse_i64(entry_string(entry, scratch), number)) {
        reply_error(request, "ERR value is not an integer or out of range");
        return false;
    }
    return true;
}
/* The same for floats. */
must_check bool string_read_float(struct request *request, const struct entry *entry, long double *number);
/* The text stays text, also where it looks like an integer: the next increment is one of floats again. */
void string_put_text(struct change *change, struct slice text);
