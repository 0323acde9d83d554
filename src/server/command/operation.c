#include "server/command/operation.h"

#include "base/number.h"

#include <string.h>

/* All other commands depend on what is older. */
static const struct {
    const char *full_name;
    enum { OVERWRITES = 1, OVERWRITES_WITHOUT_OPTIONS, FLUSHES, OF_LIBRARY, FLUSHES_LIBRARIES, TELLS_LATE_FLUSH } kind;
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
    {"keydb.op.flushed", TELLS_LATE_FLUSH},
};

uint8_t operation_kind(struct slice full_name)
{
    for (size_t i = 0; i < countof(kinds); i++) {
        if (slice_equal_text(full_name, kinds[i].full_name))
            return (uint8_t)kinds[i].kind;
    }
    return 0;
}

enum { TOUCH_WORDS = 4 }; /* the most that a row has */

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

static enum operation_touch_kind push_of(struct slice name)
{
    if (name.size != 5 || !slice_equal_text_nocase(slice_make(name.data + 1, 4), "push"))
        return OPERATION_TOUCHES_ALL;
    if (*name.data == 'R' || *name.data == 'r')
        return OPERATION_PUSHES_LAST;
    return *name.data == 'L' || *name.data == 'l' ? OPERATION_PUSHES_FIRST : OPERATION_TOUCHES_ALL;
}

/* word_count may be more than there are words, which are those that matter then. */
struct operation_touch operation_touch(const struct slice *words, uint32_t word_count)
{
    const enum operation_touch_kind push = push_of(words[0]);

    if (push != OPERATION_TOUCHES_ALL && word_count > 2)
        return (struct operation_touch){push, word_count - 2, SLICE_EMPTY};
    for (size_t i = 0; i < countof(touch_rows); i++) {
        const struct touch_row *row = &touch_rows[i];

        if (row->word_count != word_count || !slice_equal_text_nocase(words[0], row->name))
            continue;
        if (row->amount_index != 0 && !is_small(words[row->amount_index]))
            break;
        return (struct operation_touch){row->kind, 0, row->member_index != 0 ? words[row->member_index] : SLICE_EMPTY};
    }
    return (struct operation_touch){.kind = OPERATION_TOUCHES_ALL};
}

uint64_t operation_next_count(const char **at)
{
    uint64_t number = 0;

    for ((*at)++; **at != '\r'; (*at)++)
        number = number * 10 + (uint64_t)(**at - '0');
    *at += 2;
    return number;
}

struct slice operation_next_word(const char **at)
{
    const uint64_t size = operation_next_count(at);
    const struct slice word = slice_make(*at, size);

    *at += size + 2;
    return word;
}

struct operation_touch operation_touch_of(struct slice stored)
{
    struct slice words[TOUCH_WORDS], word;
    const char *at = stored.data;
    const uint64_t count = operation_next_count(&at);

    for (uint64_t i = 0; i < count; i++) {
        word = operation_next_word(&at);
        if (i < TOUCH_WORDS)
            words[i] = word;
    }
    if (at != stored.data + stored.size || count == 0 || count > UINT32_MAX)
        return (struct operation_touch){.kind = OPERATION_TOUCHES_ALL};
    return operation_touch(words, (uint32_t)count);
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
    return command->operation_kind != 0 && command->operation_kind != TELLS_LATE_FLUSH;
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

bool operation_tells_late_flush(const struct command *command)
{
    return command->operation_kind == TELLS_LATE_FLUSH;
}

static inline void describe(struct effects *effects, const struct command *command, const struct slice *words,
                            uint32_t word_count, unsigned flags)
{
    if (LIKELY(command->operation_kind == OVERWRITES_WITHOUT_OPTIONS)) {
        flags |= is_plain_set(words, word_count) ? EFFECT_OVERWRITES : 0;
    } else if (command->operation_kind != 0) {
        flags |= EFFECT_OVERWRITES;
        flags |= operation_flushes(command) ? EFFECT_FLUSH : 0;
        flags |= operation_is_of_library(command) ? EFFECT_LIBRARY : 0;
        flags |= operation_flushes_libraries(command) ? EFFECT_LIBRARIES : 0;
    }
    effects_describe(effects, operation_key_index(command), flags);
}

void operation_describe_own(struct effects *effects, const struct command *command, const struct slice *words,
                            uint32_t word_count, const struct key *keys, uint32_t key_count)
{
    const unsigned index = operation_key_index(command);
    const bool is_own = index != 0 && index < word_count && key_count != 0 && keys[0].name.data == words[index].data &&
                        keys[0].name.size == words[index].size;

    describe(effects, command, words, word_count, is_own ? EFFECT_OWN_KEY : 0);
}

void operation_describe(struct effects *effects, const struct slice *words, uint32_t word_count)
{
    const struct command *command = operation_find(words, word_count);

    if (command != NULL)
        describe(effects, command, words, word_count, 0);
}
