#include "replication/handshake.h"

#include "base/assert.h"
#include "base/number.h"

#include <stdio.h>
#include <string.h>

/* An offset beyond it could not grow for long. */
static const int64_t offset_most = INT64_MAX / 4;

const char *handshake_step_name(enum handshake_step step)
{
    static const char *const names[] = {
        [HANDSHAKE_PING] = "PING",
        [HANDSHAKE_AUTH] = "AUTH",
        [HANDSHAKE_PORT] = "REPLCONF listening-port",
        [HANDSHAKE_IP] = "REPLCONF ip-address",
        [HANDSHAKE_CAPA] = "REPLCONF capa",
        [HANDSHAKE_UUID] = "REPLCONF uuid",
        [HANDSHAKE_VERSION] = "REPLCONF version",
        [HANDSHAKE_ORDER] = "REPLCONF one-order",
        [HANDSHAKE_PSYNC] = "PSYNC",
        [HANDSHAKE_END] = "",
    };

    return names[step];
}

static void append_words(struct buffer *buffer, const struct slice *words, size_t count)
{
    buffer_printf(buffer, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++) {
        buffer_printf(buffer, "$%zu\r\n", words[i].size);
        buffer_append_slice(buffer, words[i]);
        buffer_append(buffer, "\r\n", 2);
    }
}

static void prepare_psync(struct handshake *handshake, const struct handshake_facts *facts)
{
    char number[NUMBER_I64_SPACE];
    /* The first byte that is wanted, counted from 1. */
    const int64_t wanted = facts->id != NULL ? facts->offset + 1 : -1;
    const struct slice words[] = {SLICE("PSYNC"), facts->id != NULL ? slice_from_text(facts->id) : SLICE("?"),
                                  slice_make(number, number_format_i64(number, wanted)), SLICE("FAILOVER")};

    handshake->asks_to_continue = facts->id != NULL;
    append_words(&handshake->requests[HANDSHAKE_PSYNC], words,
                 facts->is_failover ? countof(words) : countof(words) - 1);
}

/* What only active servers say. */
static void prepare_active(struct handshake *handshake, const struct handshake_facts *facts)
{
    const struct slice capa[] = {SLICE("REPLCONF"),
                                 SLICE("capa"),
                                 SLICE("eof"),
                                 SLICE("capa"),
                                 SLICE("psync2"),
                                 SLICE("capa"),
                                 SLICE("rdb-newest"),
                                 SLICE("capa"),
                                 SLICE("activeExpire"),
                                 SLICE("capa"),
                                 SLICE(HANDSHAKE_ORDER_WORD)};
    const struct slice uuid[] = {SLICE("REPLCONF"), SLICE("uuid"), slice_from_text(facts->uuid)};
    const struct slice order[] = {SLICE("REPLCONF"), SLICE(HANDSHAKE_ORDER_WORD), slice_from_text(facts->uuid)};

    buffer_clear(&handshake->requests[HANDSHAKE_CAPA]);
    append_words(&handshake->requests[HANDSHAKE_CAPA], capa, countof(capa));
    append_words(&handshake->requests[HANDSHAKE_UUID], uuid, countof(uuid));
    append_words(&handshake->requests[HANDSHAKE_ORDER], order, countof(order));
}

static void prepare(struct handshake *handshake, const struct handshake_facts *facts)
{
    char number[NUMBER_I64_SPACE];
    const struct slice ping[] = {SLICE("PING")};
    const struct slice auth[] = {SLICE("AUTH"), facts->user, facts->password};
    const struct slice plain_auth[] = {SLICE("AUTH"), facts->password};
    const struct slice port[] = {SLICE("REPLCONF"), SLICE("listening-port"),
                                 slice_make(number, number_format_i64(number, facts->port))};
    const struct slice ip[] = {SLICE("REPLCONF"), SLICE("ip-address"), facts->announced_ip};
    /* rdb-newest is a word of our own: our masters send the newest version of the file format then. */
    const struct slice capa[] = {SLICE("REPLCONF"), SLICE("capa"), SLICE("eof"),       SLICE("capa"),
                                 SLICE("psync2"),   SLICE("capa"), SLICE("rdb-newest")};
    /* Masters of Valkey alone listen to it, and send what that version of Valkey can load: for this one they write
     * RDB_VERSION_VALKEY, below it they fail where a hash has deadlines. */
    const struct slice version[] = {SLICE("REPLCONF"), SLICE("version"), SLICE("9.0.0")};
    struct buffer *requests = handshake->requests;

    append_words(&requests[HANDSHAKE_PING], ping, countof(ping));
    if (facts->password.size != 0 && facts->user.size != 0)
        append_words(&requests[HANDSHAKE_AUTH], auth, countof(auth));
    else if (facts->password.size != 0)
        append_words(&requests[HANDSHAKE_AUTH], plain_auth, countof(plain_auth));
    append_words(&requests[HANDSHAKE_PORT], port, countof(port));
    if (facts->announced_ip.size != 0)
        append_words(&requests[HANDSHAKE_IP], ip, countof(ip));
    append_words(&requests[HANDSHAKE_CAPA], capa, countof(capa));
    append_words(&requests[HANDSHAKE_VERSION], version, countof(version));
    if (facts->uuid != NULL)
        prepare_active(handshake, facts);
    prepare_psync(handshake, facts);
}

void handshake_begin(struct handshake *handshake, const struct handshake_facts *facts, struct buffer *out)
{
    assert(facts->uuid == NULL || handshake_is_uuid(slice_from_text(facts->uuid)));
    assert(facts->id == NULL || (strlen(facts->id) == HISTORY_ID_SIZE && facts->offset >= 0));
    *handshake = (struct handshake){.step = HANDSHAKE_PING};
    prepare(handshake, facts);
    buffer_append_slice(out, buffer_slice(&handshake->requests[HANDSHAKE_PING]));
}

void handshake_fini(struct handshake *handshake)
{
    for (size_t i = 0; i < countof(handshake->requests); i++)
        buffer_fini(&handshake->requests[i]);
}

void handshake_quote(struct slice text, char *quoted, size_t quoted_size)
{
    size_t size = MIN(text.size, quoted_size - 1);

    for (size_t i = 0; i < size; i++)
        quoted[i] = text.data[i] >= ' ' && text.data[i] <= '~' ? text.data[i] : '?';
    quoted[size] = '\0';
}

static enum handshake_result fail(struct handshake *handshake, const char *what, struct slice line)
{
    char quoted[HANDSHAKE_ERROR_BYTES / 2];

    handshake_quote(line, quoted, sizeof(quoted));
    (void)snprintf(handshake->error, sizeof(handshake->error), "%s: '%s'", what, quoted);
    return HANDSHAKE_FAILED;
}

static enum handshake_result next_request(struct handshake *handshake, struct buffer *out)
{
    do {
        handshake->step++;
    } while (handshake->requests[handshake->step].size == 0 ||
             (handshake->step == HANDSHAKE_ORDER && !(handshake->peer_is_active && handshake->peer_has_order)));
    assert(handshake->step < HANDSHAKE_END);
    buffer_append_slice(out, buffer_slice(&handshake->requests[handshake->step]));
    return HANDSHAKE_MORE;
}

/* ------------------------------------------------------------------------------------------- the answer to PSYNC -- */

static struct slice next_word(struct slice *line)
{
    const char *blank = line->size != 0 ? memchr(line->data, ' ', line->size) : NULL;
    struct slice word = blank != NULL ? slice_make(line->data, (size_t)(blank - line->data)) : *line;

    *line = slice_skip(*line, blank != NULL ? word.size + 1 : word.size);
    return word;
}

/* Any byte that ids of some server may have, but nothing that would disturb a line of a file or of the log. */
static bool take_id(struct slice word, char *id)
{
    if (word.size != HISTORY_ID_SIZE)
        return false;
    for (size_t i = 0; i < word.size; i++) {
        const char c = slice_lower(word.data[i]);

        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z'))
            return false;
    }
    memcpy(id, word.data, HISTORY_ID_SIZE);
    id[HISTORY_ID_SIZE] = '\0';
    return true;
}

static enum handshake_result take_full(struct handshake *handshake, struct slice line)
{
    struct slice left = line;

    (void)next_word(&left);
    if (!take_id(next_word(&left), handshake->id) || !number_parse_i64(next_word(&left), &handshake->offset) ||
        handshake->offset < 0 || handshake->offset > offset_most || left.size != 0)
        return fail(handshake, "the master's reply to PSYNC is damaged", line);
    handshake->step = HANDSHAKE_END;
    return HANDSHAKE_FULL;
}

static enum handshake_result take_continue(struct handshake *handshake, struct slice line)
{
    struct slice left = line, id;

    (void)next_word(&left);
    id = next_word(&left);
    handshake->id[0] = '\0';
    if (!handshake->asks_to_continue)
        return fail(handshake, "the master continues what was not asked for", line);
    if (id.size != 0 && !take_id(id, handshake->id))
        return fail(handshake, "the master's reply to PSYNC is damaged", line);
    handshake->step = HANDSHAKE_END;
    return HANDSHAKE_CONTINUES;
}

static bool begins(struct slice line, const char *word)
{
    return slice_starts_with(line, slice_from_text(word)) &&
           (line.size == strlen(word) || line.data[strlen(word)] == ' ');
}

static enum handshake_result take_psync(struct handshake *handshake, struct slice line)
{
    if (begins(line, "+FULLRESYNC"))
        return take_full(handshake, line);
    if (begins(line, "+CONTINUE"))
        return take_continue(handshake, line);
    if (begins(line, "-NOMASTERLINK") || begins(line, "-LOADING"))
        return fail(handshake, "the master cannot serve replicas now, but should later", line);
    if (slice_starts_with(line, SLICE("-ERR unknown command")))
        return fail(handshake, "the master does not know PSYNC", line);
    return fail(handshake, "the master refuses PSYNC", line);
}

/* ------------------------------------------------------------------------------------------------------- replies -- */

static enum handshake_result take_ping(struct handshake *handshake, struct slice line, struct buffer *out)
{
    if (line.data[0] == '+' || begins(line, "-NOAUTH") || begins(line, "-NOPERM") ||
        slice_starts_with(line, SLICE("-ERR operation not permitted")))
        return next_request(handshake, out);
    return fail(handshake, "the master's reply to PING", line);
}

bool handshake_is_uuid(struct slice text)
{
    if (text.size != HANDSHAKE_UUID_BYTES)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        const char c = slice_lower(text.data[i]);
        const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (is_dash ? c != '-' : !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
    }
    return true;
}

/* Whole words only. */
static void take_capa(struct handshake *handshake, struct slice line)
{
    struct slice left = line;

    if (!begins(line, "+OK"))
        return;
    (void)next_word(&left);
    while (left.size != 0) {
        const struct slice word = next_word(&left);

        handshake->peer_is_active = handshake->peer_is_active || slice_equal_text(word, HANDSHAKE_ACTIVE_WORD);
        handshake->peer_has_order = handshake->peer_has_order || slice_equal_text(word, HANDSHAKE_ORDER_WORD);
    }
}

/* An error comes from a server that is no KeyDB. */
static enum handshake_result take_uuid(struct handshake *handshake, struct slice line, struct buffer *out)
{
    const struct slice uuid = slice_skip(line, 1);

    if (line.data[0] == '-')
        return next_request(handshake, out);
    if (line.data[0] != '+' || !handshake_is_uuid(uuid))
        return fail(handshake, "the master's uuid is damaged", line);
    memcpy(handshake->peer_uuid, uuid.data, uuid.size);
    handshake->peer_uuid[uuid.size] = '\0';
    return next_request(handshake, out);
}

static enum handshake_result take_order(struct handshake *handshake, struct slice line)
{
    if (!begins(line, "+ONE-ORDER"))
        return fail(handshake, "the other node refuses the link", line);
    handshake->step = HANDSHAKE_END;
    return HANDSHAKE_FRAMES;
}

static enum handshake_result take_line(struct handshake *handshake, struct slice line, struct buffer *out)
{
    switch (handshake->step) {
    case HANDSHAKE_PING:
        return take_ping(handshake, line, out);
    case HANDSHAKE_AUTH:
        if (line.data[0] != '+')
            return fail(handshake, "Unable to AUTH to MASTER", line);
        return next_request(handshake, out);
    case HANDSHAKE_UUID:
        return take_uuid(handshake, line, out);
    case HANDSHAKE_ORDER:
        return take_order(handshake, line);
    case HANDSHAKE_PSYNC:
        return take_psync(handshake, line);
    default:
        /* It does not know the word, or this server may not say it: PSYNC will tell. */
        if (line.data[0] != '+' && line.data[0] != '-')
            return fail(handshake, "the master's reply to REPLCONF", line);
        if (handshake->step == HANDSHAKE_CAPA)
            take_capa(handshake, line);
        return next_request(handshake, out);
    }
}

enum handshake_result handshake_take(struct handshake *handshake, const char *data, size_t size, size_t *used,
                                     struct buffer *out)
{
    enum handshake_result result = HANDSHAKE_MORE;

    assert(handshake->step < HANDSHAKE_END);
    *used = 0;
    while (result == HANDSHAKE_MORE && *used < size) {
        const struct slice left = slice_make(data + *used, size - *used);
        const char *end = memchr(left.data, '\n', left.size);
        struct slice line = slice_make(left.data, end != NULL ? (size_t)(end - left.data) : left.size);

        if (line.size > HANDSHAKE_LINE_MOST_BYTES)
            return fail(handshake, "the master's reply is too long", slice_make(line.data, 40));
        if (end == NULL)
            break;
        *used += line.size + 1;
        if (line.size != 0 && line.data[line.size - 1] == '\r')
            line.size--;
        if (line.size != 0) /* an empty line says that it is alive */
            result = take_line(handshake, line, out);
    }
    return result;
}
