/* The tokens of a Lua source, one after the other, as the compiler sees them, without comments. Signs come as single
 * characters: ".." are two. A source that the compiler would refuse has tokens, too. Pure functions. Any thread. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>

struct lua_tokens {
    const char *at, *end;
    unsigned line; /* of `at`; counted from 1 */
};

enum lua_token_kind {
    LUA_TOKEN_END,
    LUA_TOKEN_WORD,   /* a name or a keyword */
    LUA_TOKEN_NUMBER, /* and all that could belong to it */
    LUA_TOKEN_TEXT,   /* with its quotes or long brackets */
    LUA_TOKEN_SIGN
};

struct lua_token {
    enum lua_token_kind kind;
    struct slice text; /* in the source */
};

struct lua_tokens lua_tokens_of(struct slice source);
/* False: there is none, which is a LUA_TOKEN_END. */
bool lua_tokens_next(struct lua_tokens *tokens, struct lua_token *token);

static inline bool lua_token_is(const struct lua_token *token, enum lua_token_kind kind, const char *text)
{
    return token->kind == kind && slice_equal(token->text, slice_from_text(text));
}
