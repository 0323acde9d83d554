#include "script/lua_source.h"

#include <string.h>

enum { BLOCKS_MOST = 4096 }; /* deeper nesting than the compiler takes: then returns stay as they are */

struct scanner {
    const char *start, *at, *end;
    unsigned line;
};

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

static char peek(const struct scanner *scanner, size_t offset)
{
    return (size_t)(scanner->end - scanner->at) > offset ? scanner->at[offset] : '\0';
}

static void step(struct scanner *scanner)
{
    scanner->line += *scanner->at == '\n';
    scanner->at++;
}

/* "[==[" begins at the scanner: returns the number of = signs; -1: it is not such a bracket. */
static long bracket_level(const struct scanner *scanner)
{
    const char *at = scanner->at + 1;

    while (at < scanner->end && *at == '=')
        at++;
    return at < scanner->end && *at == '[' ? at - scanner->at - 1 : -1;
}

static void skip_long(struct scanner *scanner, size_t level)
{
    scanner->at += level + 2;
    for (; scanner->at < scanner->end; step(scanner)) {
        size_t signs = 0;

        if (*scanner->at != ']')
            continue;
        while ((size_t)(scanner->end - scanner->at) > signs + 1 && scanner->at[signs + 1] == '=')
            signs++;
        if (signs == level && (size_t)(scanner->end - scanner->at) > signs + 1 && scanner->at[signs + 1] == ']') {
            scanner->at += level + 2;
            return;
        }
        if (signs != 0)
            scanner->at += signs; /* no bracket among signs: none is looked at twice */
    }
}

static void skip_line(struct scanner *scanner)
{
    while (scanner->at < scanner->end && *scanner->at != '\n' && *scanner->at != '\r')
        scanner->at++;
}

static bool is_break_of_two(const struct scanner *scanner)
{
    char first = peek(scanner, 0), second = peek(scanner, 1);

    return (first == '\r' && second == '\n') || (first == '\n' && second == '\r');
}

static void skip_quoted(struct scanner *scanner)
{
    char quote = *scanner->at++;

    while (scanner->at < scanner->end && *scanner->at != quote && *scanner->at != '\n' && *scanner->at != '\r') {
        if (*scanner->at == '\\' && scanner->at + 1 < scanner->end) {
            bool zap = scanner->at[1] == 'z'; /* it skips white space, line breaks as well */

            scanner->at++;
            if (is_break_of_two(scanner)) /* one line break to the compiler: both belong to the escape */
                step(scanner);
            step(scanner);
            while (zap && scanner->at < scanner->end && memchr(" \t\n\v\f\r", *scanner->at, 6) != NULL)
                step(scanner);
        } else {
            scanner->at++;
        }
    }
    if (scanner->at < scanner->end && *scanner->at == quote)
        scanner->at++;
}

/* Skips white space and comments. */
static void skip_blank(struct scanner *scanner)
{
    while (scanner->at < scanner->end) {
        if (memchr(" \t\n\v\f\r", *scanner->at, 6) != NULL) {
            step(scanner);
        } else if (*scanner->at == '-' && peek(scanner, 1) == '-') {
            scanner->at += 2;
            if (peek(scanner, 0) == '[' && bracket_level(scanner) >= 0)
                skip_long(scanner, (size_t)bracket_level(scanner));
            else
                skip_line(scanner);
        } else {
            return;
        }
    }
}

/* A number as the compiler sees it: all that could belong to it. */
static struct slice take_number(struct scanner *scanner)
{
    const char *start = scanner->at;
    char exponent = start + 1 < scanner->end && *start == '0' && (start[1] | 32) == 'x' ? 'p' : 'e';

    while (scanner->at < scanner->end) {
        char c = *scanner->at;

        if ((c | 32) == exponent && (peek(scanner, 1) == '+' || peek(scanner, 1) == '-'))
            scanner->at += 2;
        else if (is_word_part(c) || c == '.')
            scanner->at++;
        else
            break;
    }
    return slice_make(start, (size_t)(scanner->at - start));
}

static bool has_suffix(struct slice number)
{
    char last = (char)(number.data[number.size - 1] | 32);

    return last == 'i' || last == 'l' || last == 'u'; /* LL, ULL and LLU are integers of 64 bits, i is complex */
}

static struct slice take_word(struct scanner *scanner)
{
    const char *start = scanner->at;

    while (scanner->at < scanner->end && is_word_part(*scanner->at))
        scanner->at++;
    return slice_make(start, (size_t)(scanner->at - start));
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

/* Does a value come next? The scanner stays. */
static bool returns_value(struct scanner scanner)
{
    struct slice word;

    skip_blank(&scanner);
    if (scanner.at == scanner.end || *scanner.at == ';')
        return false;
    if (!is_word_start(*scanner.at))
        return true;
    word = take_word(&scanner);
    return !slice_equal(word, SLICE("end")) && !slice_equal(word, SLICE("else")) &&
           !slice_equal(word, SLICE("elseif")) && !slice_equal(word, SLICE("until"));
}

/* Goes behind one token; true: it was a return to be patched. */
static bool next_token(struct scanner *scanner, struct blocks *blocks, struct slice *number)
{
    char c = *scanner->at;
    struct slice word;

    if (is_digit(c) || (c == '.' && is_digit(peek(scanner, 1)))) {
        *number = take_number(scanner);
    } else if (c == '"' || c == '\'') {
        skip_quoted(scanner);
    } else if (c == '[' && bracket_level(scanner) >= 0) {
        skip_long(scanner, (size_t)bracket_level(scanner));
    } else if (is_word_start(c)) {
        word = take_word(scanner);
        follow_block(blocks, word);
        return slice_equal(word, SLICE("return")) && blocks->functions == 0 && !blocks->lost && returns_value(*scanner);
    } else {
        scanner->at++;
    }
    return false;
}

bool lua_source_prepare(struct slice source, bool patch_returns, struct buffer *out, unsigned *line,
                        struct slice *number)
{
    struct scanner scanner = {source.data, source.data, source.data + source.size, 1};
    struct blocks blocks;
    const char *copied = source.data;

    blocks.count = blocks.functions = 0;
    blocks.lost = !patch_returns;
    while (skip_blank(&scanner), scanner.at < scanner.end) {
        struct slice found = SLICE_EMPTY;

        if (next_token(&scanner, &blocks, &found)) {
            buffer_append(out, copied, (size_t)(scanner.at - copied));
            buffer_append_text(out, " true and ");
            copied = scanner.at;
        }
        if (found.size != 0 && has_suffix(found)) {
            *line = scanner.line;
            *number = found;
            return false;
        }
    }
    buffer_append(out, copied, (size_t)(scanner.end - copied));
    return true;
}
