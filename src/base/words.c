#include "base/words.h"

#include "base/array.h"
#include "base/mem.h"

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Vertical tab and form feed are blanks between words, but do not end one that has begun: so does Redis. */
static bool ends_word(char c)
{
    return is_blank(c) && c != '\v' && c != '\f';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = slice_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

struct reader {
    const char *at;
    const char *end;
    char *to;
};

static char escaped(char c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'b':
        return '\b';
    case 'a':
        return '\a';
    default:
        return c;
    }
}

/* Called at a backslash inside "..."; a backslash at the end stands for itself. */
static void read_escape(struct reader *reader)
{
    size_t left = (size_t)(reader->end - reader->at);

    if (left >= 4 && reader->at[1] == 'x' && hex_value(reader->at[2]) >= 0 && hex_value(reader->at[3]) >= 0) {
        *reader->to++ = (char)(hex_value(reader->at[2]) << 4 | hex_value(reader->at[3]));
        reader->at += 4;
    } else if (left >= 2) {
        *reader->to++ = escaped(reader->at[1]);
        reader->at += 2;
    } else {
        *reader->to++ = *reader->at++;
    }
}

/* Called behind the opening quote. False: it is not closed, or something sticks to the closing one. */
static bool read_quoted(struct reader *reader, char quote)
{
    while (reader->at < reader->end) {
        char c = *reader->at;

        if (c == quote) {
            reader->at++;
            return reader->at == reader->end || is_blank(*reader->at);
        }
        if (c == '\\' && quote == '"') {
            read_escape(reader);
        } else if (c == '\\' && reader->end - reader->at >= 2 && reader->at[1] == '\'') {
            *reader->to++ = '\'';
            reader->at += 2;
        } else {
            *reader->to++ = c;
            reader->at++;
        }
    }
    return false;
}

static bool read_word(struct reader *reader)
{
    while (reader->at < reader->end && !ends_word(*reader->at)) {
        char c = *reader->at++;

        if (c == '"' || c == '\'')
            return read_quoted(reader, c);
        *reader->to++ = c;
    }
    return true;
}

static void add_word(struct words *words, const char *begin, const char *end)
{
    *ARRAY_PUSH(words) = slice_make(begin, (size_t)(end - begin));
}

bool words_split(struct slice line, struct words *words)
{
    const char *zero = line.size == 0 ? NULL : memchr(line.data, '\0', line.size);
    struct reader reader = {.at = line.data, .end = line.data};

    if (line.size != 0)
        reader.end = zero != NULL ? zero : line.data + line.size;
    words->count = 0;
    /* A word is never longer than its notation, and a blank or the end follows it: a zero byte fits. */
    words->text = mem_realloc(words->text, line.size + 1);
    reader.to = words->text;
    for (;;) {
        char *begin = reader.to;

        while (reader.at < reader.end && is_blank(*reader.at))
            reader.at++;
        if (reader.at == reader.end)
            return true;
        if (!read_word(&reader)) {
            words->count = 0;
            return false;
        }
        add_word(words, begin, reader.to);
        *reader.to++ = '\0';
    }
}

void words_fini(struct words *words)
{
    mem_free(words->items);
    mem_free(words->text);
    *words = (struct words){0};
}

static bool is_printable(char c)
{
    return c >= ' ' && c <= '~';
}

static void quote_byte(struct buffer *buffer, char c)
{
    static const char special[] = "\n\r\t\b\a\"\\";
    static const char letters[] = "nrtba\"\\";
    const char *found = c == '\0' ? NULL : strchr(special, c);

    if (found != NULL) {
        buffer_append_char(buffer, '\\');
        buffer_append_char(buffer, letters[found - special]);
    } else if (is_printable(c)) {
        buffer_append_char(buffer, c);
    } else {
        buffer_printf(buffer, "\\x%02x", (unsigned)(unsigned char)c);
    }
}

void words_quote(struct buffer *buffer, struct slice word)
{
    buffer_append_char(buffer, '"');
    for (size_t i = 0; i < word.size; i++)
        quote_byte(buffer, word.data[i]);
    buffer_append_char(buffer, '"');
}

bool words_needs_quote(struct slice word)
{
    for (size_t i = 0; i < word.size; i++) {
        char c = word.data[i];

        if (!is_printable(c) || c == ' ' || c == '"' || c == '\'' || c == '\\')
            return true;
    }
    return word.size == 0;
}
