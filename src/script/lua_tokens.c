#include "script/lua_tokens.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word_start(char c)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_word_part(char c)
{
    return is_word_start(c) || is_digit(c);
}

static char peek(const struct lua_tokens *tokens, size_t offset)
{
    return (size_t)(tokens->end - tokens->at) > offset ? tokens->at[offset] : '\0';
}

static void step(struct lua_tokens *tokens)
{
    tokens->line += *tokens->at == '\n';
    tokens->at++;
}

/* "[==[" begins here: returns the number of = signs; -1: it is not such a bracket. */
static long bracket_level(const struct lua_tokens *tokens)
{
    const char *at = tokens->at + 1;

    while (at < tokens->end && *at == '=')
        at++;
    return at < tokens->end && *at == '[' ? at - tokens->at - 1 : -1;
}

static void skip_long(struct lua_tokens *tokens, size_t level)
{
    tokens->at += level + 2;
    for (; tokens->at < tokens->end; step(tokens)) {
        size_t signs = 0;

        if (*tokens->at != ']')
            continue;
        while ((size_t)(tokens->end - tokens->at) > signs + 1 && tokens->at[signs + 1] == '=')
            signs++;
        if (signs == level && (size_t)(tokens->end - tokens->at) > signs + 1 && tokens->at[signs + 1] == ']') {
            tokens->at += level + 2;
            return;
        }
        if (signs != 0)
            tokens->at += signs; /* no bracket among signs: none is looked at twice */
    }
}

static void skip_line(struct lua_tokens *tokens)
{
    while (tokens->at < tokens->end && *tokens->at != '\n' && *tokens->at != '\r')
        tokens->at++;
}

static bool is_break_of_two(const struct lua_tokens *tokens)
{
    char first = peek(tokens, 0), second = peek(tokens, 1);

    return (first == '\r' && second == '\n') || (first == '\n' && second == '\r');
}

static void skip_quoted(struct lua_tokens *tokens)
{
    char quote = *tokens->at++;

    while (tokens->at < tokens->end && *tokens->at != quote && *tokens->at != '\n' && *tokens->at != '\r') {
        if (*tokens->at == '\\' && tokens->at + 1 < tokens->end) {
            bool zap = tokens->at[1] == 'z'; /* it skips white space, line breaks as well */

            tokens->at++;
            if (is_break_of_two(tokens)) /* one line break to the compiler: both belong to the escape */
                step(tokens);
            step(tokens);
            while (zap && tokens->at < tokens->end && memchr(" \t\n\v\f\r", *tokens->at, 6) != NULL)
                step(tokens);
        } else {
            tokens->at++;
        }
    }
    if (tokens->at < tokens->end && *tokens->at == quote)
        tokens->at++;
}

/* Skips white space and comments. */
static void skip_blank(struct lua_tokens *tokens)
{
    while (tokens->at < tokens->end) {
        if (memchr(" \t\n\v\f\r", *tokens->at, 6) != NULL) {
            step(tokens);
        } else if (*tokens->at == '-' && peek(tokens, 1) == '-') {
            tokens->at += 2;
            if (peek(tokens, 0) == '[' && bracket_level(tokens) >= 0)
                skip_long(tokens, (size_t)bracket_level(tokens));
            else
                skip_line(tokens);
        } else {
            return;
        }
    }
}

/* A number as the compiler sees it: all that could belong to it. */
static struct slice take_number(struct lua_tokens *tokens)
{
    const char *start = tokens->at;
    char exponent = start + 1 < tokens->end && *start == '0' && (start[1] | 32) == 'x' ? 'p' : 'e';

    while (tokens->at < tokens->end) {
        char c = *tokens->at;

        if ((c | 32) == exponent && (peek(tokens, 1) == '+' || peek(tokens, 1) == '-'))
            tokens->at += 2;
        else if (is_word_part(c) || c == '.')
            tokens->at++;
        else
            break;
    }
    return slice_make(start, (size_t)(tokens->at - start));
}

static struct slice take_word(struct lua_tokens *tokens)
{
    const char *start = tokens->at;

    while (tokens->at < tokens->end && is_word_part(*tokens->at))
        tokens->at++;
    return slice_make(start, (size_t)(tokens->at - start));
}

/* A text in quotes or long brackets; false: none begins here. */
static bool skip_text(struct lua_tokens *tokens)
{
    const char c = *tokens->at;

    if (c == '"' || c == '\'')
        skip_quoted(tokens);
    else if (c == '[' && bracket_level(tokens) >= 0)
        skip_long(tokens, (size_t)bracket_level(tokens));
    else
        return false;
    return true;
}

struct lua_tokens lua_tokens_of(struct slice source)
{
    return (struct lua_tokens){.at = source.data, .end = source.data + source.size, .line = 1};
}

bool lua_tokens_next(struct lua_tokens *tokens, struct lua_token *token)
{
    skip_blank(tokens);
    *token = (struct lua_token){.kind = LUA_TOKEN_END, .text = slice_make(tokens->at, 0)};
    if (tokens->at == tokens->end)
        return false;
    if (is_digit(*tokens->at) || (*tokens->at == '.' && is_digit(peek(tokens, 1)))) {
        token->kind = LUA_TOKEN_NUMBER;
        token->text = take_number(tokens);
    } else if (is_word_start(*tokens->at)) {
        token->kind = LUA_TOKEN_WORD;
        token->text = take_word(tokens);
    } else {
        token->kind = skip_text(tokens) ? LUA_TOKEN_TEXT : LUA_TOKEN_SIGN;
        tokens->at += token->kind == LUA_TOKEN_SIGN;
        token->text.size = (size_t)(tokens->at - token->text.data);
    }
    return true;
}
