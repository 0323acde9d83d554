/* Functions that the commands of strings share. */
#pragma once

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

/* Checks that a string of this size is within the limit for bulk strings. Replies an error if not. */
static inline bool string_check_size(struct request *request, uint64_t size)
{
    if (LIKELY(size <= OPTION_GET_U64(option_proto_max_bulk_len)))
        return true;
    reply_error(request, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    return false;
}
