#include "script/script_keys.h"

#include "base/compiler.h"
#include "script/lua_tokens.h"
#include "server/command/command.h"

#include <string.h>

enum {
    LOCALS_MOST = 32, /* local variables with keys */
    NESTED_MOST = 16  /* calls in the arguments of calls */
};

struct reader {
    struct lua_tokens tokens;
    struct lua_token now, before, second; /* the current token and the two before it */
    struct slice locals[LOCALS_MOST];     /* with keys */
    unsigned local_count, nested;
};

/* An argument of a call. */
struct argument {
    bool is_key;   /* KEYS[i] or such a local variable */
    bool is_plain; /* it is one value: not a call, nor "...", which may be none or many */
};

/* ------------------------------------------------------------------------------------------------------- tokens -- */

static void next(struct reader *reader)
{
    reader->second = reader->before;
    reader->before = reader->now;
    (void)lua_tokens_next(&reader->tokens, &reader->now);
}

static bool is_sign(const struct reader *reader, const char *sign)
{
    return lua_token_is(&reader->now, LUA_TOKEN_SIGN, sign);
}

static bool is_word(const struct reader *reader, const char *word)
{
    return lua_token_is(&reader->now, LUA_TOKEN_WORD, word);
}

static bool is_any(struct slice word, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(word, slice_from_text(names[i])))
            return true;
    }
    return false;
}

static bool is_library(struct slice word)
{
    static const char *const names[] = {"redis", "keydb", "server"};

    return is_any(word, names, countof(names));
}

/* Names by which a script could do what its text does not show; and that of a text which is no key, for where a local
 * variable with a key is called so, too. */
static bool is_opaque(struct slice word)
{
    static const char *const names[] = {"_G",       "getfenv",  "setfenv", "load",   "loadstring",
                                        "loadfile", "dofile",   "require", "module", "package",
                                        "debug",    "newproxy", "jit",     "ffi",    "_VERSION"};

    return is_any(word, names, countof(names));
}

static bool is_local(const struct reader *reader, struct slice word)
{
    for (unsigned i = 0; i < reader->local_count; i++) {
        if (slice_equal(word, reader->locals[i]))
            return true;
    }
    return false;
}

/* x.NAME and x:NAME, but not x..NAME */
static bool is_field(const struct reader *reader)
{
    return (lua_token_is(&reader->before, LUA_TOKEN_SIGN, ".") &&
            !lua_token_is(&reader->second, LUA_TOKEN_SIGN, ".")) ||
           (lua_token_is(&reader->before, LUA_TOKEN_SIGN, ":") && !lua_token_is(&reader->second, LUA_TOKEN_SIGN, ":"));
}

/* ------------------------------------------------------------------------------------- local variables with keys -- */

/* KEYS[i]; the token behind it is the next one. */
static bool take_element(struct reader *reader)
{
    if (!is_word(reader, "KEYS"))
        return false;
    next(reader);
    if (!is_sign(reader, "["))
        return false;
    next(reader);
    if (reader->now.kind != LUA_TOKEN_NUMBER && reader->now.kind != LUA_TOKEN_WORD)
        return false;
    next(reader);
    if (!is_sign(reader, "]"))
        return false;
    next(reader);
    return true;
}

/* No operator that would go on with the expression. */
static bool is_end_of_value(const struct reader *reader)
{
    return reader->now.kind == LUA_TOKEN_END || is_sign(reader, ";") ||
           (reader->now.kind == LUA_TOKEN_WORD && !is_word(reader, "and") && !is_word(reader, "or"));
}

/* "local a, b = KEYS[1], KEYS[2]", from behind `local`: notes the names, if that is all there is. */
static bool take_locals(struct reader *reader)
{
    const unsigned first = reader->local_count;
    unsigned values = 0;

    do {
        next(reader);
        if (reader->now.kind != LUA_TOKEN_WORD || is_library(reader->now.text) || is_opaque(reader->now.text) ||
            is_word(reader, "KEYS") || reader->local_count == LOCALS_MOST)
            return false;
        reader->locals[reader->local_count++] = reader->now.text;
        next(reader);
    } while (is_sign(reader, ","));
    if (!is_sign(reader, "="))
        return false;
    do {
        next(reader);
        if (!take_element(reader))
            return false;
        values++;
    } while (is_sign(reader, ","));
    return values == reader->local_count - first && is_end_of_value(reader);
}

/* The scope of a variable is not looked at: a name that is such a variable's somewhere is not used in another way. */
static void find_locals(struct reader *reader)
{
    while (next(reader), reader->now.kind != LUA_TOKEN_END) {
        struct reader ahead;

        if (!is_word(reader, "local"))
            continue;
        ahead = *reader;
        if (!take_locals(&ahead))
            continue;
        reader->local_count = ahead.local_count;
        for (unsigned i = 0; i < ahead.local_count; i++)
            reader->locals[i] = ahead.locals[i];
    }
}

/* Goes to the last token of such a statement, if this is one. */
static void skip_locals(struct reader *reader)
{
    struct reader ahead = *reader, behind = *reader;

    ahead.local_count = 0;
    if (!take_locals(&ahead))
        return;
    while (behind.tokens.at < ahead.now.text.data) {
        *reader = behind;
        next(&behind);
    }
}

/* -------------------------------------------------------------------------------------------------------- calls -- */

/* True if the command has to hold nothing, or the stripes of keys at fixed places. */
static bool is_plain_command(const struct command *command)
{
    const uint32_t odd = COMMAND_NOSCRIPT | COMMAND_MOVABLE_KEYS | COMMAND_ARBITRARY_KEYS | COMMAND_SCRIPT |
                         COMMAND_PROTECTED | COMMAND_ABSENT;

    if (command == NULL || command->subcommand_count != 0 || (command->flags & odd) != 0 ||
        command->row->access_of != NULL)
        return false;
    if (command->access == ACCESS_FREE || command->access == ACCESS_GATED)
        return true;
    return command->access == ACCESS_STRIPED && command->simple_keys && command->first_key > 0 &&
           (command->last_key > 0 || command->last_key == -1);
}

static bool is_key_place(const struct command *command, int index)
{
    return command->access == ACCESS_STRIPED && index >= command->first_key &&
           (command->last_key == -1 || index <= command->last_key) &&
           (index - command->first_key) % command->key_step == 0;
}

static bool is_key_behind(const struct command *command, int index)
{
    return command->access == ACCESS_STRIPED && (command->last_key == -1 || index < command->last_key);
}

static const struct command *command_of(const struct lua_token *token)
{
    const struct slice text = token->text;

    if (token->kind != LUA_TOKEN_TEXT || text.size < 2 || text.data[0] == '[' ||
        memchr(text.data, '\\', text.size) != NULL)
        return NULL;
    return command_find(slice_make(text.data + 1, text.size - 2));
}

static bool check(struct reader *reader);

/* An argument, up to the sign behind it. */
static bool take_argument(struct reader *reader, struct argument *argument)
{
    struct reader ahead = *reader;
    unsigned depth = 0, count = 0;

    *argument = (struct argument){.is_key = take_element(&ahead)};
    if (!argument->is_key && reader->now.kind == LUA_TOKEN_WORD && is_local(reader, reader->now.text)) {
        ahead = *reader;
        next(&ahead);
        argument->is_key = true;
    }
    if (argument->is_key) {
        *reader = ahead;
        return is_sign(reader, ",") || is_sign(reader, ")");
    }
    argument->is_plain = true;
    for (;; next(reader), count++) {
        const bool closes = is_sign(reader, ")") || is_sign(reader, "]") || is_sign(reader, "}");

        if (reader->now.kind == LUA_TOKEN_END || is_word(reader, "function"))
            return false;
        if (depth == 0 && (closes || is_sign(reader, ",")))
            return true;
        depth += is_sign(reader, "(") || is_sign(reader, "[") || is_sign(reader, "{");
        depth -= closes;
        if (reader->now.kind == LUA_TOKEN_TEXT)
            argument->is_plain = argument->is_plain && count == 0;
        else if (reader->now.kind == LUA_TOKEN_SIGN && !is_sign(reader, "[") && !is_sign(reader, "]"))
            argument->is_plain = false;
        if (!check(reader))
            return false;
    }
}

/* The arguments of redis.call; the token is the bracket before them, and then the one behind. */
static bool check_arguments(struct reader *reader)
{
    const struct command *command;
    struct argument argument = {.is_plain = true};
    int index = 1;

    next(reader);
    command = command_of(&reader->now);
    if (!is_plain_command(command))
        return false;
    next(reader);
    for (; is_sign(reader, ","); index++) {
        next(reader);
        if (!take_argument(reader, &argument) || (is_key_place(command, index) && !argument.is_key))
            return false;
    }
    return is_sign(reader, ")") && (argument.is_key || argument.is_plain || !is_key_behind(command, index - 1));
}

static bool check_library(struct reader *reader)
{
    bool fine;

    next(reader);
    if (!is_sign(reader, "."))
        return false;
    next(reader);
    if (!is_word(reader, "call") && !is_word(reader, "pcall"))
        return reader->now.kind == LUA_TOKEN_WORD;
    next(reader);
    if (!is_sign(reader, "(") || reader->nested == NESTED_MOST)
        return false;
    reader->nested++;
    fine = check_arguments(reader);
    reader->nested--;
    return fine;
}

/* The current token, and those that belong to it. */
static bool check(struct reader *reader)
{
    if (reader->now.kind != LUA_TOKEN_WORD || is_field(reader))
        return true;
    if (is_word(reader, "local")) {
        skip_locals(reader);
        return true;
    }
    if (is_word(reader, "KEYS"))
        return lua_token_is(&reader->before, LUA_TOKEN_SIGN, "#");
    if (is_library(reader->now.text))
        return check_library(reader);
    return !is_opaque(reader->now.text) && !is_local(reader, reader->now.text);
}

bool script_keys_are_declared(struct slice body)
{
    struct reader reader = {.tokens = lua_tokens_of(body)};
    bool fine = true;

    find_locals(&reader);
    reader.tokens = lua_tokens_of(body);
    reader.now = reader.before = reader.second = (struct lua_token){.kind = LUA_TOKEN_END, .text = SLICE_EMPTY};
    for (next(&reader); fine && reader.now.kind != LUA_TOKEN_END; next(&reader))
        fine = check(&reader);
    return fine;
}
