/* What an active KeyDB server sends. Properties:
 *  1. stamps ascend for each UUID, and so do mvccs; nothing of the own UUID is given;
 *  2. the same input again gives nothing with an mvcc: all of it is known;
 *  3. an envelope that fails gives nothing and raises no mark, and its error is one printable line;
 *  4. what was given, written as an envelope, is read as the same. */
#include "active/envelopes.h"
#include "fuzz.h"
#include "net/resp.h"

#include <stdlib.h>
#include <string.h>

enum { DB_COUNT = 16, TRANSACTION_BYTES_MOST = 4096, UUIDS_MOST = 64 };

struct fuzz {
    struct envelopes *envelopes;
    struct uuid own;
    struct uuid uuids[UUIDS_MOST];
    uint64_t stamps[UUIDS_MOST], mvccs[UUIDS_MOST];
    unsigned uuid_count;
    unsigned given, given_marked; /* in this call; all with an mvcc */
};

static bool passes_by(const struct envelope_command *command)
{
    return slice_equal_text_nocase(command->words[0], "ping") || slice_equal_text_nocase(command->words[0], "replconf");
}

/* Those that speak of the link stand in no order. */
static bool is_of_the_link(const struct envelope_entry *entry)
{
    for (uint32_t i = 0; i < entry->command_count; i++) {
        if (passes_by(&entry->commands[i]))
            return true;
    }
    return false;
}

static void check_order(struct fuzz *fuzz, const struct envelope_entry *entry)
{
    unsigned index = 0;

    while (index < fuzz->uuid_count && !uuid_equal(&fuzz->uuids[index], &entry->uuid))
        index++;
    if (index == UUIDS_MOST)
        return;
    if (index == fuzz->uuid_count)
        fuzz->uuids[fuzz->uuid_count++] = entry->uuid;
    assert(stamp_is_possible(entry->stamp));
    assert(entry->mvcc > fuzz->mvccs[index]);
    assert(uuid_is_ours(&entry->uuid) || entry->stamp > fuzz->stamps[index]);
    fuzz->mvccs[index] = entry->mvcc;
    fuzz->stamps[index] = entry->stamp;
}

static void expect_same(void *context, const struct envelope_entry *again)
{
    const struct envelope_entry *entry = context;

    assert(again->command_count == entry->command_count);
    for (uint32_t i = 0; i < entry->command_count; i++) {
        const struct envelope_command *a = &entry->commands[i], *b = &again->commands[i];

        assert(a->word_count == b->word_count);
        for (uint32_t word = 0; word < a->word_count; word++)
            assert(slice_equal(a->words[word], b->words[word]));
    }
}

static void check_written(struct fuzz *fuzz, const struct envelope_entry *entry)
{
    struct envelopes *other = envelopes_create(&fuzz->own, DB_COUNT, TRANSACTION_BYTES_MOST);
    struct buffer payload = {0};
    char text[UUID_TEXT_BYTES + 1], error[ENVELOPE_ERROR_BYTES];
    struct slice words[3] = {SLICE("RREPLAY"), slice_make(text, UUID_TEXT_BYTES)};
    unsigned db = 0;

    uuid_format(&entry->uuid, text);
    for (uint32_t i = 0; i < entry->command_count; i++)
        envelope_add_command(&payload, entry->commands[i].words, entry->commands[i].word_count);
    words[2] = buffer_slice(&payload);
    assert(envelopes_take(other, words, countof(words), &db, expect_same, (void *)(uintptr_t)entry, error) ==
           ENVELOPE_NEW);
    buffer_fini(&payload);
    envelopes_destroy(&other);
}

static void give(void *context, const struct envelope_entry *entry)
{
    struct fuzz *fuzz = context;

    assert(!uuid_equal(&entry->uuid, &fuzz->own));
    assert(entry->command_count != 0);
    fuzz->given++;
    if (entry->mvcc != 0 && !is_of_the_link(entry)) {
        fuzz->given_marked++;
        check_order(fuzz, entry);
    }
    check_written(fuzz, entry);
}

static void check_error(const char *error)
{
    assert(error[0] != '\0');
    for (; *error != '\0'; error++)
        assert(*error >= ' ' && *error <= '~');
}

static void take(struct fuzz *fuzz, const struct resp_command *command, unsigned *db)
{
    char error[ENVELOPE_ERROR_BYTES] = "";
    const unsigned db_before = *db;
    struct envelope envelope;
    uint64_t mark = 0;
    const bool is_right = envelope_read(command->args, command->arg_count, DB_COUNT, &envelope, error);

    if (is_right)
        mark = envelopes_mark(fuzz->envelopes, &envelope.uuid);
    fuzz->given = 0;
    if (envelopes_take(fuzz->envelopes, command->args, command->arg_count, db, give, fuzz, error) == ENVELOPE_FAILED) {
        check_error(error);
        assert(fuzz->given == 0 && *db == db_before);
        assert(!is_right || envelopes_mark(fuzz->envelopes, &envelope.uuid) == mark);
    }
    assert(*db < DB_COUNT);
}

static void take_all(struct fuzz *fuzz, struct slice input)
{
    static const struct resp_limits limits = {.bulk_max_bytes = 1 << 29, .authenticated = true};
    struct resp_scratch scratch = {0};
    struct resp_parser parser;
    struct resp_command command;
    char *block = malloc(input.size);
    unsigned db = 0;
    enum resp_result result = RESP_EMPTY;

    assert(block != NULL || input.size == 0);
    if (input.size != 0)
        memcpy(block, input.data, input.size);
    resp_parser_init(&parser, &limits, &scratch);
    for (size_t at = 0; at < input.size && (result == RESP_COMMAND || result == RESP_EMPTY);) {
        result = resp_parse(&parser, block + at, input.size - at, &command);
        if (result != RESP_COMMAND && result != RESP_EMPTY)
            break;
        at += command.consumed;
        if (result == RESP_EMPTY)
            continue;
        if (envelope_is(command.args, command.arg_count))
            take(fuzz, &command, &db);
        resp_command_fini(&command);
    }
    resp_parser_fini(&parser);
    resp_scratch_fini(&scratch);
    free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct slice input = slice_make(bytes, size);
    struct fuzz fuzz = {.own = uuid_of_id(77)};

    fuzz.envelopes = envelopes_create(&fuzz.own, DB_COUNT, TRANSACTION_BYTES_MOST);
    take_all(&fuzz, input);
    for (unsigned i = 0; i < fuzz.uuid_count; i++)
        envelopes_end_transaction(fuzz.envelopes, &fuzz.uuids[i]);
    fuzz.given_marked = 0;
    take_all(&fuzz, input);
    assert(fuzz.given_marked == 0);
    envelopes_destroy(&fuzz.envelopes);
    return 0;
}
