#include "script/lua_source.h"

#include "script/lua_tokens.h"

enum { BLOCKS_MOST = 4096 }; /* deeper nesting than the compiler takes: then returns stay as they are */

static bool has_suffix(struct slice number)
{
    char last = (char)(number.data[number.size - 1] | 32);

    return last == 'i' || last == 'l' || last == 'u'; /* LL, ULL and LLU are integers of 64 bits, i is complex */
}

/* The blocks around, a character each: f(unction) or another. */
struct blocks {
    char items[BLOCKS_MOST];
    unsigned count, functions;
    bool lost; /* more than we follow */
};

static void open_block(struct blocks *blocks, char kind)
{
    if (blocks->count == BLOCKS_MOST) {
        blocks->lost = true;
        return;
    }
    blocks->items[blocks->count++] = kind;
    blocks->functions += kind == 'f';
}

static void close_block(struct blocks *blocks)
{
    if (blocks->count != 0)
        blocks->functions -= blocks->items[--blocks->count] == 'f';
}

static void follow_block(struct blocks *blocks, struct slice word)
{
    if (slice_equal(word, SLICE("function")))
        open_block(blocks, 'f');
    else if (slice_equal(word, SLICE("if")) || slice_equal(word, SLICE("do")) || slice_equal(word, SLICE("repeat")))
        open_block(blocks, 'b');
    else if (slice_equal(word, SLICE("end")) || slice_equal(word, SLICE("until")))
        close_block(blocks);
}

/* Does a value come next? The tokens stay. */
static bool returns_value(struct lua_tokens tokens)
{
    struct lua_token token;

    lua_tokens_next(&tokens, &token);
    if (token.kind == LUA_TOKEN_END || lua_token_is(&token, LUA_TOKEN_SIGN, ";"))
        return false;
    return token.kind != LUA_TOKEN_WORD ||
           (!slice_equal(token.text, SLICE("end")) && !slice_equal(token.text, SLICE("else")) &&
            !slice_equal(token.text, SLICE("elseif")) && !slice_equal(token.text, SLICE("until")));
}

/* True: the word is a return to be patched. */
static bool follow_word(struct blocks *blocks, struct slice word, const struct lua_tokens *behind)
{
    follow_block(blocks, word);
    return slice_equal(word, SLICE("return")) && blocks->functions == 0 && !blocks->lost && returns_value(*behind);
}

bool lua_source_prepare(struct slice source, bool patch_returns, struct buffer *out, unsigned *line,
                        struct slice *number)
{
    struct lua_tokens tokens = lua_tokens_of(source);
    struct lua_token token;
    struct blocks blocks;
    const char *copied = source.data;

    blocks.count = blocks.functions = 0;
    blocks.lost = !patch_returns;
    while (lua_tokens_next(&tokens, &token)) {
        if (token.kind == LUA_TOKEN_WORD && follow_word(&blocks, token.text, &tokens)) {
            buffer_append(out, copied, (size_t)(tokens.at - copied));
            buffer_append_text(out, " true and ");
            copied = tokens.at;
        }
        if (token.kind == LUA_TOKEN_NUMBER && has_suffix(token.text)) {
            *line = tokens.line;
            *number = token.text;
            return false;
        }
    }
    buffer_append(out, copied, (size_t)(tokens.end - copied));
    return true;
}
