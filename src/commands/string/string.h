/* What all commands on strings begin with. */
#pragma once

#include "server/config/options.h"
#include "server/core/request.h"

/* A string key to read: counted and touched. False: it holds something else, which was replied. */
static inline bool string_read(struct request *request, const struct key *key, struct entry **entry)
{
    *entry = access_read(request->access, request->db, key);
    return LIKELY(*entry == NULL || (*entry)->type == TYPE_STRING) || request_expect_type(request, *entry, TYPE_STRING);
}

/* The same to change. */
static inline bool string_find(struct request *request, const struct key *key, struct entry **entry)
{
    *entry = access_find(request->access, request->db, key);
    return LIKELY(*entry == NULL || (*entry)->type == TYPE_STRING) || request_expect_type(request, *entry, TYPE_STRING);
}

/* Does a string of this size stay within the limit for bulks? Replies if not. */
static inline bool string_check_size(struct request *request, uint64_t size)
{
    if (LIKELY(size <= OPTION_GET_U64(option_proto_max_bulk_len)))
        return true;
    reply_error(request, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    return false;
}
