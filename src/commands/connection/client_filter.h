/* Which clients CLIENT LIST and CLIENT KILL mean: filters, each of which must hold.
 *
 *     client_filter_init(&filter, request);
 *     if (client_filter_parse(&filter, 2, false))          else an error was replied
 *         ... client_filter_takes(&filter, card) ...
 *
 * ID takes several numbers. Each filter has its opposite, NOT-ID and so on, but MAXAGE, IDLE and SKIPME. A filter that
 * is given twice counts as it was given last. Texts are those of the request. */
#pragma once

#include "server/core/client.h"
#include "server/core/request.h"

/* Each but the last two has an opposite. */
enum client_filter_kind {
    FILTER_ID,
    FILTER_TYPE,
    FILTER_ADDR,
    FILTER_LADDR,
    FILTER_IP,
    FILTER_USER,
    FILTER_NAME,
    FILTER_LIB_NAME,
    FILTER_LIB_VER,
    FILTER_FLAGS,
    FILTER_DB,
    FILTER_CAPA,
    FILTER_MAXAGE,
    FILTER_IDLE,
    FILTER_KINDS
};

/* Types as clients name them. */
enum client_type { CLIENT_TYPE_NORMAL, CLIENT_TYPE_REPLICA, CLIENT_TYPE_PUBSUB, CLIENT_TYPE_MASTER };

struct client_filter {
    struct request *request;
    int64_t now_us, now_ms; /* monotonic; wall clock */
    uint32_t set[2];        /* 1 << kind, of those that were given; [1]: opposites */
    struct {
        struct slice text;     /* of the others */
        int64_t number;        /* of a type, a database, an age or a time */
        uint32_t first, count; /* arguments with ids */
    } values[2][FILTER_KINDS];
    bool skips_me;  /* SKIPME; CLIENT KILL does unless it says NO */
    bool says_skip; /* it was given */
};

void client_filter_init(struct client_filter *filter, struct request *request);
/* Parses all arguments from `index` on; `kills`: with the errors of CLIENT KILL. False: an error was replied. */
must_check bool client_filter_parse(struct client_filter *filter, uint32_t index, bool kills);
/* Instead: argument `index` is the address. */
void client_filter_of_address(struct client_filter *filter, uint32_t index);
/* Under the roster lock of the client's worker. SKIPME is the caller's. */
must_check bool client_filter_takes(const struct client_filter *filter, const struct client_card *card);
/* True if there are ids, which need not be in order, and no other filter. */
bool client_filter_is_ids(const struct client_filter *filter);
