#include "commands/connection/client_filter.h"

#include "base/clock.h"
#include "base/number.h"
#include "server/acl/acl.h"
#include "server/acl/acl_user.h"

#include <string.h>

enum { US_A_SECOND = 1000 * 1000, MS_A_SECOND = 1000, WORD_BYTES_SHOWN = 128 };

static const struct {
    const char *word;
    enum client_filter_kind kind;
} words[] = {
    {"ID", FILTER_ID},           {"TYPE", FILTER_TYPE},   {"ADDR", FILTER_ADDR}, {"LADDR", FILTER_LADDR},
    {"IP", FILTER_IP},           {"USER", FILTER_USER},   {"NAME", FILTER_NAME}, {"LIB-NAME", FILTER_LIB_NAME},
    {"LIB-VER", FILTER_LIB_VER}, {"FLAGS", FILTER_FLAGS}, {"DB", FILTER_DB},     {"MAXAGE", FILTER_MAXAGE},
    {"CAPA", FILTER_CAPA},       {"IDLE", FILTER_IDLE},
};

static int shown_size(struct slice word)
{
    return (int)MIN(word.size, (size_t)WORD_BYTES_SHOWN);
}

void client_filter_init(struct client_filter *filter, struct request *request)
{
    *filter = (struct client_filter){.request = request,
                                     .now_us = (int64_t)clock_monotonic_us(),
                                     .now_ms = clock_wall_ms()};
}

/* ------------------------------------------------------------------------------------------------------- parsing -- */

static bool parse_type(struct request *request, struct slice word, int64_t *type)
{
    static const struct {
        const char *word;
        enum client_type type;
    } types[] = {
        {"normal", CLIENT_TYPE_NORMAL}, {"slave", CLIENT_TYPE_REPLICA}, {"replica", CLIENT_TYPE_REPLICA},
        {"pubsub", CLIENT_TYPE_PUBSUB}, {"master", CLIENT_TYPE_MASTER}, {"primary", CLIENT_TYPE_MASTER},
    };

    for (size_t i = 0; i < countof(types); i++) {
        if (slice_equal_text_nocase(word, types[i].word)) {
            *type = types[i].type;
            return true;
        }
    }
    reply_errorf(request, "ERR Unknown client type '%.*s'", shown_size(word), word.data);
    return false;
}

/* The ids from *index on, at least one; goes to the last one. */
static bool parse_ids(struct client_filter *filter, uint32_t *index, bool kills, uint32_t *first, uint32_t *count)
{
    const int64_t least = kills ? 1 : INT64_MIN;
    const char *error = kills ? "ERR client-id should be greater than 0" : "ERR Invalid client ID";
    struct request *request = filter->request;
    int64_t id;

    *first = *index;
    if (!request_arg_range(request, *index, least, INT64_MAX, &id, error))
        return false;
    while (*index + 1 < request->arg_count && number_parse_i64(request_arg(request, *index + 1), &id)) {
        if (id < least) {
            reply_error(request, error);
            return false;
        }
        ++*index;
    }
    *count = *index - *first + 1;
    return true;
}

static bool parse_user(struct request *request, struct slice name)
{
    struct acl_user *user = acl_find(name);
    const bool found = user != NULL;

    acl_user_release(&user);
    if (!found)
        reply_errorf(request, "ERR No such user '%.*s'", shown_size(name), name.data);
    return found;
}

static bool parse_seconds(struct request *request, uint32_t index, const char *what, int64_t *seconds)
{
    if (!number_parse_i64(request_arg(request, index), seconds)) {
        reply_errorf(request, "ERR %s is not an integer or out of range", what);
        return false;
    }
    if (*seconds > 0)
        return true;
    reply_errorf(request, "ERR %s should be greater than 0", what);
    return false;
}

static bool parse_letters(struct request *request, struct slice letters, bool is_not, const char *known,
                          const char *what, const char *where_not)
{
    for (size_t i = 0; i < letters.size; i++) {
        if (strchr(known, letters.data[i]) == NULL || letters.data[i] == '\0') {
            reply_errorf(request, "ERR Unknown %s found in the %s filter: %.*s", what, is_not ? where_not : "provided",
                         shown_size(letters), letters.data);
            return false;
        }
    }
    return true;
}

static bool parse_db(struct request *request, uint32_t index, bool is_not, int64_t *number)
{
    const int most = (int)request->access->store->database_count - 1;
    const char *word = is_not ? "NOT-DB" : "DB";

    if (!number_parse_i64(request_arg(request, index), number)) {
        reply_errorf(request, "ERR %s is not an integer or out of range", word);
        return false;
    }
    if (*number >= 0 && *number <= most)
        return true;
    reply_errorf(request, "ERR %s number should be between 0 and %d", word, most);
    return false;
}

static bool parse_value(struct client_filter *filter, enum client_filter_kind kind, bool is_not, uint32_t *index,
                        bool kills)
{
    struct request *request = filter->request;
    const struct slice text = request_arg(request, *index);
    int64_t *number = &filter->values[is_not][kind].number;

    filter->set[is_not] |= 1U << kind;
    filter->values[is_not][kind].text = text;
    switch (kind) {
    case FILTER_ID:
        return parse_ids(filter, index, kills, &filter->values[is_not][kind].first,
                         &filter->values[is_not][kind].count);
    case FILTER_TYPE:
        return parse_type(request, text, number);
    case FILTER_USER:
        return parse_user(request, text);
    case FILTER_FLAGS:
        return parse_letters(request, text, is_not, CLIENT_FLAG_LETTERS, "flags", "NOT-FLAGS");
    case FILTER_CAPA:
        return parse_letters(request, text, is_not, CLIENT_CAPA_LETTERS, "capa", "NOT-CAPA");
    case FILTER_DB:
        return parse_db(request, *index, is_not, number);
    case FILTER_MAXAGE:
        return parse_seconds(request, *index, "maxage", number);
    case FILTER_IDLE:
        return parse_seconds(request, *index, "idle", number);
    default:
        return true;
    }
}

static bool parse_skip(struct client_filter *filter, struct slice value)
{
    filter->says_skip = true;
    filter->skips_me = slice_equal_text_nocase(value, "yes");
    if (filter->skips_me || slice_equal_text_nocase(value, "no"))
        return true;
    reply_syntax_error(filter->request);
    return false;
}

/* The filter at *index; goes to its last argument. */
static bool parse_one(struct client_filter *filter, uint32_t *index, bool kills)
{
    struct request *request = filter->request;
    struct slice word = request_arg(request, *index);
    const bool is_not = word.size > 4 && slice_equal_text_nocase(slice_make(word.data, 4), "NOT-");

    if (++*index == request->arg_count) {
        reply_syntax_error(request);
        return false;
    }
    if (slice_equal_text_nocase(word, "SKIPME"))
        return parse_skip(filter, request_arg(request, *index));
    if (is_not)
        word = slice_skip(word, 4);
    for (size_t i = 0; i < countof(words); i++) {
        if (slice_equal_text_nocase(word, words[i].word) && (!is_not || words[i].kind < FILTER_MAXAGE))
            return parse_value(filter, words[i].kind, is_not, index, kills);
    }
    reply_syntax_error(request);
    return false;
}

void client_filter_of_address(struct client_filter *filter, uint32_t index)
{
    filter->set[0] = 1U << FILTER_ADDR;
    filter->values[0][FILTER_ADDR].text = request_arg(filter->request, index);
}

bool client_filter_parse(struct client_filter *filter, uint32_t index, bool kills)
{
    filter->skips_me = kills;
    for (; index < filter->request->arg_count; index++) {
        if (!parse_one(filter, &index, kills))
            return false;
    }
    return true;
}

bool client_filter_is_ids(const struct client_filter *filter)
{
    return filter->set[0] == 1U << FILTER_ID && filter->set[1] == 0 && !filter->says_skip;
}

/* ------------------------------------------------------------------------------------------------------ matching -- */

static enum client_type type_of(const struct client_card *card)
{
    const uint32_t flags = atomic_load_explicit(&card->flags, memory_order_relaxed);

    if ((flags & CLIENT_REPLICA) != 0)
        return CLIENT_TYPE_REPLICA;
    if ((flags & CLIENT_MASTER) != 0)
        return CLIENT_TYPE_MASTER;
    return (flags & CLIENT_PUBSUB) != 0 ? CLIENT_TYPE_PUBSUB : CLIENT_TYPE_NORMAL;
}

static bool has_id(const struct client_filter *filter, bool is_not, const struct client_card *card)
{
    for (uint32_t i = 0; i < filter->values[is_not][FILTER_ID].count; i++) {
        uint64_t id;

        if (number_parse_u64(request_arg(filter->request, filter->values[is_not][FILTER_ID].first + i), &id) &&
            id == card->id)
            return true;
    }
    return false;
}

/* Without the port. */
static bool has_ip(const char *address, struct slice ip)
{
    const char *colon = strrchr(address, ':');

    return colon != NULL && slice_equal(slice_make(address, (size_t)(colon - address)), ip);
}

static bool is_text(const char *text, struct slice wanted)
{
    return slice_equal_text(wanted, text != NULL ? text : "");
}

static bool has_all(const char *letters, struct slice wanted)
{
    for (size_t i = 0; i < wanted.size; i++) {
        if (strchr(letters, wanted.data[i]) == NULL)
            return false;
    }
    return true;
}

static bool has_flags(const struct client_card *card, struct slice wanted)
{
    char letters[sizeof(CLIENT_FLAG_LETTERS)];

    client_card_flags(card, letters);
    return has_all(letters, wanted);
}

static bool has_capa(const struct client_card *card, struct slice wanted)
{
    char letters[sizeof(CLIENT_CAPA_LETTERS)];

    client_card_capa(card, letters);
    return has_all(letters, wanted);
}

static bool matches(const struct client_filter *filter, enum client_filter_kind kind, bool is_not,
                    const struct client_card *card)
{
    const struct slice text = filter->values[is_not][kind].text;
    const int64_t number = filter->values[is_not][kind].number;

    switch (kind) {
    case FILTER_ID:
        return has_id(filter, is_not, card);
    case FILTER_TYPE:
        return (int64_t)type_of(card) == number;
    case FILTER_ADDR:
        return slice_equal_text(text, card->address);
    case FILTER_LADDR:
        return slice_equal_text(text, card->local_address);
    case FILTER_IP:
        return has_ip(card->address, text);
    case FILTER_USER:
        return card->user != NULL && slice_equal(text, card->user->name);
    case FILTER_NAME:
        return is_text(card->name, text);
    case FILTER_LIB_NAME:
        return is_text(card->library_name, text);
    case FILTER_LIB_VER:
        return is_text(card->library_version, text);
    case FILTER_FLAGS:
        return has_flags(card, text);
    case FILTER_CAPA:
        return has_capa(card, text);
    case FILTER_DB:
        return (int64_t)atomic_load_explicit(&card->db, memory_order_relaxed) == number;
    case FILTER_MAXAGE:
        return (filter->now_us - card->created_us) / US_A_SECOND >= number;
    case FILTER_IDLE:
        return (filter->now_ms - atomic_load_explicit(&card->active_ms, memory_order_relaxed)) / MS_A_SECOND >= number;
    case FILTER_KINDS:
        break;
    }
    return false;
}

bool client_filter_takes(const struct client_filter *filter, const struct client_card *card)
{
    for (unsigned is_not = 0; is_not < 2; is_not++) {
        for (enum client_filter_kind kind = 0; kind < FILTER_KINDS; kind++) {
            if ((filter->set[is_not] & 1U << kind) != 0 && matches(filter, kind, is_not != 0, card) == (is_not != 0))
                return false;
        }
    }
    return true;
}
