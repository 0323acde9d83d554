#include "server/command/operation.h"

#include "base/number.h"

#include <string.h>

/* All other commands depend on what is older. */
static const struct {
    const char *full_name;
    enum { OVERWRITES = 1, OVERWRITES_WITHOUT_OPTIONS, FLUSHES, OF_LIBRARY, FLUSHES_LIBRARIES } kind;
} kinds[] = {
    {"set", OVERWRITES_WITHOUT_OPTIONS},
    {"setex", OVERWRITES},
    {"psetex", OVERWRITES},
    {"getset", OVERWRITES},
    {"getdel", OVERWRITES},
    {"mset", OVERWRITES},
    {"del", OVERWRITES},
    {"unlink", OVERWRITES},
    {"expdel", OVERWRITES},
    {"restore", OVERWRITES},
    {"keydb.cron", OVERWRITES},
    {"keydb.op.library", OF_LIBRARY},
    {"function|flush", FLUSHES_LIBRARIES},
    {"flushall", FLUSHES},
    {"flushdb", FLUSHES},
};

uint8_t operation_kind(struct slice full_name)
{
    for (size_t i = 0; i < countof(kinds); i++) {
        if (slice_equal_text(full_name, kinds[i].full_name))
            return (uint8_t)kinds[i].kind;
    }
    return 0;
}

static const struct touch_row {
    const char *name;
    enum operation_touch_kind kind;
    uint32_t word_count, member_index, amount_index; /* 0: there is none */
} touch_rows[] = {
    {"incr", OPERATION_ADDS, 2, 0, 0},    {"decr", OPERATION_ADDS, 2, 0, 0},    {"incrby", OPERATION_ADDS, 3, 0, 2},
    {"decrby", OPERATION_ADDS, 3, 0, 2},  {"hincrby", OPERATION_ADDS, 4, 2, 3}, {"hset", OPERATION_WRITES, 4, 2, 0},
    {"hmset", OPERATION_WRITES, 4, 2, 0}, {"hdel", OPERATION_REMOVES, 3, 2, 0}, {"sadd", OPERATION_WRITES, 3, 2, 0},
    {"srem", OPERATION_REMOVES, 3, 2, 0}, {"zadd", OPERATION_WRITES, 4, 3, 0},  {"zrem", OPERATION_REMOVES, 3, 2, 0},
};

static bool is_small(struct slice word)
{
    int64_t amount;

    return number_parse_i64(word, &amount) && amount > -OPERATION_ADDS_MOST && amount < OPERATION_ADDS_MOST;
}

struct operation_touch operation_touch(const struct slice *words, uint32_t word_count)
{
    for (size_t i = 0; i < countof(touch_rows); i++) {
        const struct touch_row *row = &touch_rows[i];

        if (row->word_count != word_count || !slice_equal_text_nocase(words[0], row->name))
            continue;
        if (row->amount_index != 0 && !is_small(words[row->amount_index]))
            break;
        return (struct operation_touch){row->kind, row->member_index != 0 ? words[row->member_index] : SLICE_EMPTY};
    }
    return (struct operation_touch){.kind = OPERATION_TOUCHES_ALL};
}

const struct command *operation_find(const struct slice *words, uint32_t word_count)
{
    const struct command *command = command_find_operation(words[0]);

    assert(word_count != 0);
    if (command == NULL || LIKELY(command->subcommand_count == 0) || word_count < 2)
        return command;
    return command_find_subcommand(command, words[1]);
}

/* SET with KEEPTTL keeps something of the key, and one with a condition, as a KeyDB server may send it, does not always
 * set. */
static bool is_plain_set(const struct slice *words, uint32_t word_count)
{
    for (uint32_t i = 3; i < word_count; i++) {
        if (slice_equal_text_nocase(words[i], "keepttl") || slice_equal_text_nocase(words[i], "nx") ||
            slice_equal_text_nocase(words[i], "xx"))
            return false;
    }
    return true;
}

bool operation_overwrites(const struct command *command, const struct slice *words, uint32_t word_count)
{
    if (command->operation_kind == OVERWRITES_WITHOUT_OPTIONS)
        return is_plain_set(words, word_count);
    return command->operation_kind != 0;
}

bool operation_flushes(const struct command *command)
{
    return command->operation_kind == FLUSHES;
}

bool operation_flushes_words(const struct slice *words, uint32_t word_count)
{
    const struct command *command = operation_find(words, word_count);

    return command != NULL && operation_flushes(command);
}

bool operation_is_of_library(const struct command *command)
{
    return command->operation_kind == OF_LIBRARY;
}

bool operation_flushes_libraries(const struct command *command)
{
    return command->operation_kind == FLUSHES_LIBRARIES;
}

unsigned operation_key_index(const struct command *command)
{
    return (unsigned)MIN(MAX(command->first_key, 0), EFFECT_KEY_MOST);
}

void operation_describe_as(struct effects *effects, const struct command *command, const struct slice *words,
                           uint32_t word_count)
{
    effects_describe(effects, operation_key_index(command),
                     (operation_overwrites(command, words, word_count) ? EFFECT_OVERWRITES : 0) |
                         (operation_flushes(command) ? EFFECT_FLUSH : 0) |
                         (operation_is_of_library(command) ? EFFECT_LIBRARY : 0) |
                         (operation_flushes_libraries(command) ? EFFECT_LIBRARIES : 0));
}

void operation_describe(struct effects *effects, const struct slice *words, uint32_t word_count)
{
    const struct command *command = operation_find(words, word_count);

    if (command != NULL)
        operation_describe_as(effects, command, words, word_count);
}
