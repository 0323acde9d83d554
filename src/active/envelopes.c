#include "active/envelopes.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/number.h"
#include "net/resp.h"

#include <stdio.h>

/* What one command was read as. An envelope is followed by what is in it. */
struct step {
    enum step_kind { STEP_COMMAND, STEP_SELECT, STEP_ENVELOPE } kind;
    uint32_t word_count;       /* STEP_COMMAND */
    const struct slice *words; /* likewise */
    unsigned db;               /* STEP_SELECT */
    struct envelope envelope;  /* STEP_ENVELOPE */
    uint32_t end;              /* likewise: the first step that is not in it */
};

struct sender {
    struct uuid uuid;
    struct mvcc_clock clock;
    uint64_t heard; /* the call in which it was heard last */
    bool is_in_multi;
    struct buffer queued; /* the commands as (database, word count, (size, bytes)...) */
    uint32_t queued_count, queued_words;
};

struct envelopes {
    struct uuid own;
    unsigned db_count;
    size_t transaction_bytes_most;
    uint64_t calls;
    struct {
        struct sender *items;
        uint32_t count, capacity;
    } senders;
    struct {
        struct step *items;
        uint32_t count, capacity;
    } steps; /* of the call that runs */
    struct {
        struct envelope_command *items;
        uint32_t count, capacity;
    } commands; /* of the entry that is put together */
    struct resp_scratch scratch;
    struct envelopes_counts counts;
};

/* What the steps of one call need. */
struct run {
    struct envelopes *envelopes;
    unsigned *link_db;
    envelope_entry_fn give;
    void *context;
    bool dropped;
};

enum { KEPT_ITEMS_MOST = 1024 }; /* larger arrays are given back after the call */

/* The payload is as long as it is; the bytes are here. */
static const struct resp_limits payload_limits = {.bulk_max_bytes = UINT64_C(1) << 40, .authenticated = true};

struct envelopes *envelopes_create(const struct uuid *own, unsigned db_count, size_t transaction_bytes_most)
{
    struct envelopes *envelopes = mem_alloc_zero(sizeof(*envelopes));

    assert(!uuid_is_nil(own));
    assert(db_count > 0);
    envelopes->own = *own;
    envelopes->db_count = db_count;
    envelopes->transaction_bytes_most = transaction_bytes_most;
    return envelopes;
}

void envelopes_destroy(struct envelopes **envelopes)
{
    struct envelopes *gone = *envelopes;

    *envelopes = NULL;
    if (gone == NULL)
        return;
    for (uint32_t i = 0; i < gone->senders.count; i++)
        buffer_fini(&gone->senders.items[i].queued);
    ARRAY_FINI(&gone->senders);
    ARRAY_FINI(&gone->steps);
    ARRAY_FINI(&gone->commands);
    resp_scratch_fini(&gone->scratch);
    mem_free(gone);
}

/* ------------------------------------------------------------------------------------------------------- senders -- */

static struct sender *find(const struct envelopes *envelopes, const struct uuid *uuid)
{
    for (uint32_t i = 0; i < envelopes->senders.count; i++) {
        if (uuid_equal(&envelopes->senders.items[i].uuid, uuid))
            return &envelopes->senders.items[i];
    }
    return NULL;
}

static void end_transaction(struct sender *sender)
{
    buffer_fini(&sender->queued);
    sender->queued_count = sender->queued_words = 0;
    sender->is_in_multi = false;
}

static void lose_transaction(struct envelopes *envelopes, struct sender *sender)
{
    envelopes->counts.transactions_lost += sender->is_in_multi;
    end_transaction(sender);
}

static void forget(struct envelopes *envelopes, struct sender *sender)
{
    lose_transaction(envelopes, sender);
    *sender = envelopes->senders.items[--envelopes->senders.count];
}

static void forget_the_most_silent(struct envelopes *envelopes)
{
    struct sender *silent = &envelopes->senders.items[0];

    for (uint32_t i = 1; i < envelopes->senders.count; i++) {
        if (envelopes->senders.items[i].heard < silent->heard)
            silent = &envelopes->senders.items[i];
    }
    forget(envelopes, silent);
    envelopes->counts.uuids_forgotten++;
}

/* Valid until the next call of it. */
static struct sender *find_or_add(struct envelopes *envelopes, const struct uuid *uuid)
{
    struct sender *sender = find(envelopes, uuid);

    if (sender == NULL) {
        if (envelopes->senders.count == ENVELOPES_UUIDS_MOST)
            forget_the_most_silent(envelopes);
        sender = ARRAY_PUSH(&envelopes->senders);
        *sender = (struct sender){.uuid = *uuid};
    }
    sender->heard = envelopes->calls;
    return sender;
}

void envelopes_learn(struct envelopes *envelopes, const struct uuid *uuid, uint64_t mvcc, uint64_t stamp)
{
    mvcc_learn(&find_or_add(envelopes, uuid)->clock, mvcc, stamp);
}

void envelopes_end_transaction(struct envelopes *envelopes, const struct uuid *uuid)
{
    struct sender *sender = find(envelopes, uuid);

    if (sender != NULL)
        lose_transaction(envelopes, sender);
}

void envelopes_forget(struct envelopes *envelopes, const struct uuid *uuid)
{
    struct sender *sender = find(envelopes, uuid);

    if (sender != NULL)
        forget(envelopes, sender);
}

uint64_t envelopes_mark(const struct envelopes *envelopes, const struct uuid *uuid)
{
    const struct sender *sender = find(envelopes, uuid);

    return sender != NULL ? sender->clock.mvcc : 0;
}

size_t envelopes_bytes(const struct envelopes *envelopes)
{
    size_t bytes = sizeof(*envelopes) + envelopes->senders.capacity * sizeof(struct sender) +
                   envelopes->steps.capacity * sizeof(struct step) +
                   envelopes->commands.capacity * sizeof(struct envelope_command);

    for (uint32_t i = 0; i < envelopes->senders.count; i++)
        bytes += envelopes->senders.items[i].queued.capacity;
    return bytes;
}

const struct envelopes_counts *envelopes_counts(const struct envelopes *envelopes)
{
    return &envelopes->counts;
}

/* ------------------------------------------------------------------------------------------------------- reading -- */

/* A payload that is being read. */
struct reading {
    struct envelopes *envelopes;
    const struct envelope *outside; /* the envelope that it belongs to */
    unsigned depth;
    size_t at;
    char *error;
    bool has_commands, has_envelopes, has_ended; /* by EXEC */
};

static bool fail(const struct reading *reading, const char *what)
{
    char uuid[UUID_TEXT_BYTES + 1];

    uuid_format(&reading->outside->uuid, uuid);
    (void)snprintf(reading->error, ENVELOPE_ERROR_BYTES, "RREPLAY of %s at depth %u, byte %zu of its payload: %s", uuid,
                   reading->depth, reading->at, what);
    return false;
}

static bool read_payload(struct reading *reading);

/* Notes the envelope and what is in it. What is too deep is noted as an empty one. */
static bool read_envelope(struct envelopes *envelopes, const struct slice *words, uint32_t word_count, unsigned depth,
                          char error[ENVELOPE_ERROR_BYTES])
{
    const uint32_t index = envelopes->steps.count;
    struct step step = {.kind = STEP_ENVELOPE};
    struct reading reading = {.envelopes = envelopes, .outside = &step.envelope, .depth = depth, .error = error};

    if (!envelope_read(words, word_count, envelopes->db_count, &step.envelope, error))
        return false;
    if (depth > ENVELOPE_DEPTH_MOST)
        step.envelope.payload = SLICE_EMPTY;
    *ARRAY_PUSH(&envelopes->steps) = step;
    if (!read_payload(&reading))
        return false;
    envelopes->steps.items[index].end = envelopes->steps.count;
    return true;
}

static bool read_select(struct reading *reading, const struct resp_command *command)
{
    struct step step = {.kind = STEP_SELECT};
    uint64_t number;

    if (command->arg_count != 2 || !number_parse_u64(command->args[1], &number) ||
        number >= reading->envelopes->db_count)
        return fail(reading, "SELECT of no database");
    step.db = (unsigned)number;
    *ARRAY_PUSH(&reading->envelopes->steps) = step;
    return true;
}

/* An envelope is one entry, which has one stamp: so it has commands or envelopes, and all of a transaction's end. */
static bool read_command(struct reading *reading, const struct resp_command *command)
{
    const struct slice name = command->args[0];
    const bool is_envelope = envelope_is(command->args, command->arg_count);

    if (reading->has_ended)
        return fail(reading, "a command behind EXEC");
    if (slice_equal_text_nocase(name, "select"))
        return read_select(reading, command);
    if (is_envelope ? reading->has_commands : reading->has_envelopes)
        return fail(reading, "an envelope beside a command");
    if (is_envelope) {
        reading->has_envelopes = true;
        return read_envelope(reading->envelopes, command->args, command->arg_count, reading->depth + 1, reading->error);
    }
    if (slice_equal_text_nocase(name, "multi") && reading->has_commands)
        return fail(reading, "MULTI behind a command");
    reading->has_commands = true;
    reading->has_ended = slice_equal_text_nocase(name, "exec");
    *ARRAY_PUSH(&reading->envelopes->steps) = (struct step){.kind = STEP_COMMAND,
                                                            .words = command->args,
                                                            .word_count = command->arg_count};
    return true;
}

/* Reads the command at `at`, and goes behind it. */
static bool read_next(struct reading *reading, struct resp_parser *parser)
{
    /* The parser writes to inline requests only, and none gets there. */
    char *data = (char *)(uintptr_t)reading->outside->payload.data; /* NOLINT(performance-no-int-to-ptr) */
    struct resp_command command;
    bool is_right = true;

    if (data[reading->at] != '*')
        return fail(reading, "no command begins here");
    switch (resp_parse(parser, data + reading->at, reading->outside->payload.size - reading->at, &command)) {
    case RESP_COMMAND:
        is_right = read_command(reading, &command);
        resp_command_fini(&command);
        break;
    case RESP_EMPTY:
        break;
    case RESP_ERROR:
        return fail(reading, "this is no command");
    case RESP_MORE:
    case RESP_LARGE:
        return fail(reading, "the end of a command is missing");
    }
    reading->at += command.consumed;
    return is_right;
}

static bool read_payload(struct reading *reading)
{
    struct resp_parser parser;
    bool is_right = true;

    resp_parser_init(&parser, &payload_limits, &reading->envelopes->scratch);
    while (is_right && reading->at < reading->outside->payload.size)
        is_right = read_next(reading, &parser);
    resp_parser_fini(&parser);
    return is_right;
}

/* ----------------------------------------------------------------------------------------- entries, transactions -- */

static void give_commands(struct run *run, const struct sender *sender, uint64_t mvcc, uint64_t stamp,
                          bool is_transaction)
{
    struct envelopes *envelopes = run->envelopes;
    const struct envelope_entry entry = {.uuid = sender->uuid,
                                         .mvcc = mvcc,
                                         .stamp = stamp,
                                         .commands = envelopes->commands.items,
                                         .command_count = envelopes->commands.count,
                                         .is_transaction = is_transaction};

    if (entry.command_count != 0)
        run->give(run->context, &entry);
    envelopes->commands.count = 0;
}

static void append_raw(struct buffer *buffer, uint64_t number)
{
    buffer_append(buffer, &number, sizeof(number));
}

static uint64_t take_raw(const char **at)
{
    uint64_t number;

    memcpy(&number, *at, sizeof(number));
    *at += sizeof(number);
    return number;
}

static size_t queued_bytes_of(const struct step *step)
{
    size_t bytes = (2 + (size_t)step->word_count) * sizeof(uint64_t);

    for (uint32_t i = 0; i < step->word_count; i++)
        bytes += step->words[i].size;
    return bytes;
}

/* What it refers to will be gone when EXEC comes. */
static void queue_command(struct sender *sender, const struct step *step, unsigned db)
{
    append_raw(&sender->queued, db);
    append_raw(&sender->queued, step->word_count);
    for (uint32_t i = 0; i < step->word_count; i++) {
        append_raw(&sender->queued, step->words[i].size);
        buffer_append_slice(&sender->queued, step->words[i]);
    }
    sender->queued_count++;
    sender->queued_words += step->word_count;
}

static void give_transaction(struct run *run, struct sender *sender, uint64_t mvcc, uint64_t stamp)
{
    struct slice *words = mem_alloc((1 + (size_t)sender->queued_words) * sizeof(*words)), *next = words;
    const char *at = sender->queued.data;

    for (uint32_t i = 0; i < sender->queued_count; i++) {
        struct envelope_command *command = ARRAY_PUSH(&run->envelopes->commands);

        command->db = (unsigned)take_raw(&at);
        command->word_count = (uint32_t)take_raw(&at);
        command->words = next;
        for (uint32_t word = 0; word < command->word_count; word++, next++) {
            const size_t size = take_raw(&at);

            *next = slice_make(at, size);
            at += size;
        }
    }
    assert(next == words + sender->queued_words);
    give_commands(run, sender, mvcc, stamp, true);
    end_transaction(sender);
    mem_free(words);
}

/* They speak of the link, and are in no transaction. */
static bool passes_by(const struct step *step)
{
    return slice_equal_text_nocase(step->words[0], "ping") || slice_equal_text_nocase(step->words[0], "replconf");
}

static void run_command(struct run *run, struct sender *sender, const struct step *step, uint64_t mvcc, uint64_t stamp)
{
    const struct slice name = step->words[0];

    if (slice_equal_text_nocase(name, "multi")) {
        sender->is_in_multi = true;
    } else if (slice_equal_text_nocase(name, "exec")) {
        give_transaction(run, sender, mvcc, stamp);
    } else if (slice_equal_text_nocase(name, "discard")) {
        end_transaction(sender);
    } else if (sender->is_in_multi && !passes_by(step)) {
        queue_command(sender, step, *run->link_db);
    } else {
        *ARRAY_PUSH(&run->envelopes->commands) = (struct envelope_command){step->words, step->word_count,
                                                                           *run->link_db};
    }
}

/* --------------------------------------------------------------------------------------------------------- steps -- */

/* Raises the mark. False: nothing in it is to be run. */
static bool enter(struct run *run, const struct step *step, unsigned depth, uint64_t *stamp)
{
    struct envelopes *envelopes = run->envelopes;
    const struct envelope *envelope = &step->envelope;
    struct sender *sender;

    *stamp = 0;
    if (uuid_equal(&envelope->uuid, &envelopes->own)) {
        envelopes->counts.own++;
        return false;
    }
    if (depth > ENVELOPE_DEPTH_MOST) {
        envelopes->counts.too_deep++;
        return false;
    }
    sender = find_or_add(envelopes, &envelope->uuid);
    if (envelope->mvcc != 0 && !mvcc_take(&sender->clock, envelope->mvcc, stamp)) {
        envelopes->counts.known++;
        return false;
    }
    if (envelope->mvcc != 0 && uuid_is_ours(&envelope->uuid))
        *stamp = mvcc_to_stamp(envelope->mvcc);
    if (*stamp != 0 && !stamp_is_possible(*stamp)) { /* carried on from a stamp that another node gave */
        envelopes->counts.impossible++;
        return false;
    }
    if (envelope->has_db)
        *run->link_db = envelope->db;
    envelopes->counts.taken++;
    return true;
}

/* Runs the envelope at `index`, which is `depth` deep. Returns the first step behind it. */
static uint32_t run_envelope(struct run *run, uint32_t index, unsigned depth)
{
    struct envelopes *envelopes = run->envelopes;
    const struct step *steps = envelopes->steps.items;
    const struct step *outside = &steps[index];
    const uint64_t mvcc = outside->envelope.mvcc;
    uint64_t stamp;

    if (!enter(run, outside, depth, &stamp)) {
        run->dropped = true;
        return outside->end;
    }
    for (uint32_t i = index + 1; i < outside->end; i++) {
        struct sender *sender = find_or_add(envelopes, &outside->envelope.uuid);

        switch (steps[i].kind) {
        case STEP_ENVELOPE:
            i = run_envelope(run, i, depth + 1) - 1;
            break;
        case STEP_SELECT:
            *run->link_db = steps[i].db;
            break;
        case STEP_COMMAND:
            run_command(run, sender, &steps[i], mvcc, stamp);
            break;
        }
    }
    give_commands(run, find_or_add(envelopes, &outside->envelope.uuid), mvcc, stamp, false);
    return outside->end;
}

/* False: a transaction would grow beyond its bound. Counts every command, whatever of it will be dropped. */
static bool has_room(const struct envelopes *envelopes, char error[ENVELOPE_ERROR_BYTES])
{
    size_t more = 0, waiting = 0;
    bool waits = false;

    for (uint32_t i = 0; i < envelopes->steps.count; i++) {
        const struct step *step = &envelopes->steps.items[i];
        const struct sender *sender = step->kind == STEP_ENVELOPE ? find(envelopes, &step->envelope.uuid) : NULL;

        if (step->kind == STEP_COMMAND) {
            more += queued_bytes_of(step);
            waits = waits || slice_equal_text_nocase(step->words[0], "multi");
        }
        if (sender != NULL && sender->is_in_multi) {
            waits = true;
            waiting = MAX(waiting, sender->queued.size);
        }
    }
    if (!waits || waiting + more <= envelopes->transaction_bytes_most)
        return true;
    (void)snprintf(error, ENVELOPE_ERROR_BYTES, "RREPLAY: a transaction has more than %zu bytes",
                   envelopes->transaction_bytes_most);
    return false;
}

static void clean(struct envelopes *envelopes)
{
    resp_scratch_reset(&envelopes->scratch);
    envelopes->steps.count = envelopes->commands.count = 0;
    if (envelopes->steps.capacity > KEPT_ITEMS_MOST)
        ARRAY_FINI(&envelopes->steps);
    if (envelopes->commands.capacity > KEPT_ITEMS_MOST)
        ARRAY_FINI(&envelopes->commands);
}

enum envelope_result envelopes_take(struct envelopes *envelopes, const struct slice *words, uint32_t word_count,
                                    unsigned *link_db, envelope_entry_fn give, void *context,
                                    char error[ENVELOPE_ERROR_BYTES])
{
    struct run run = {.envelopes = envelopes, .link_db = link_db, .give = give, .context = context};
    enum envelope_result result = ENVELOPE_FAILED;

    assert(envelopes->steps.count == 0 && envelopes->commands.count == 0);
    envelopes->calls++;
    if (read_envelope(envelopes, words, word_count, 1, error) && has_room(envelopes, error)) {
        (void)run_envelope(&run, 0, 1);
        result = run.dropped ? ENVELOPE_DROPPED : ENVELOPE_NEW;
    }
    envelopes->counts.failed += result == ENVELOPE_FAILED;
    clean(envelopes);
    return result;
}
