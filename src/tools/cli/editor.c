#include "tools/cli/editor.h"

#include "base/mem.h"
#include "base/status.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* A key is a byte, or one of these. Characters of UTF-8 are treated as wholes when the cursor moves, and are taken to
 * be one column wide. */
enum key {
    KEY_NONE = 0,
    KEY_CTRL_A = 1,
    KEY_CTRL_B = 2,
    KEY_CTRL_C = 3,
    KEY_CTRL_D = 4,
    KEY_CTRL_E = 5,
    KEY_CTRL_F = 6,
    KEY_CTRL_G = 7,
    KEY_CTRL_H = 8,
    KEY_TAB = 9,
    KEY_LINE_FEED = 10,
    KEY_CTRL_K = 11,
    KEY_CTRL_L = 12,
    KEY_RETURN = 13,
    KEY_CTRL_N = 14,
    KEY_CTRL_P = 16,
    KEY_CTRL_R = 18,
    KEY_CTRL_T = 20,
    KEY_CTRL_U = 21,
    KEY_CTRL_W = 23,
    KEY_ESCAPE = 27,
    KEY_BACKSPACE = 127,
    KEY_UP = 256,
    KEY_DOWN,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_HOME,
    KEY_END,
    KEY_DELETE,
    KEY_WORD_LEFT,
    KEY_WORD_RIGHT,
    KEY_EOF,
};

enum { ESCAPE_WAIT_MS = 50, COLUMNS_DEFAULT = 80 };

struct line {
    const struct editor *editor;
    const char *prompt;
    struct buffer text;
    size_t cursor;
    size_t columns;
    size_t cursor_row; /* where the last drawing left it, below the prompt's */
    uint32_t past;     /* how many lines back in the history; 0: the line that is being typed */
    char *draft;       /* that line, while another one is shown */
};

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t columns_of(const char *text, size_t size)
{
    size_t columns = 0;

    for (size_t i = 0; i < size; i++)
        columns += !is_continuation(text[i]);
    return columns;
}

/* The size of the first `columns` characters. */
static size_t prefix_of(const char *text, size_t size, size_t columns)
{
    size_t i = 0;

    while (i < size && columns > 0) {
        i++;
        while (i < size && is_continuation(text[i]))
            i++;
        columns--;
    }
    return i;
}

/* ----------------------------------------------------------------------------------------------------- drawing -- */

static void put(const struct buffer *out)
{
    size_t at = 0;

    while (at < out->size) {
        ssize_t count = write(STDOUT_FILENO, out->data + at, out->size - at);

        if (count < 0 && errno != EINTR)
            return;
        at += count > 0 ? (size_t)count : 0;
    }
}

static void put_text(const char *text)
{
    status_ignore(write(STDOUT_FILENO, text, strlen(text)), "there is no other way to tell the user");
}

static size_t terminal_columns(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : COLUMNS_DEFAULT;
}

/* The hint in grey, as much of it as fits into the last row. */
static void append_hint(const struct line *line, size_t end, struct buffer *out)
{
    struct buffer hint = {0};
    size_t room = line->columns - end % line->columns;

    line->editor->hint(line->editor->user, buffer_slice(&line->text), &hint);
    if (hint.size > 0 && room > 1) {
        size_t size = prefix_of(hint.data, hint.size, room - 1);

        buffer_append_text(out, "\x1b[0;90;49m");
        buffer_append(out, hint.data, size);
        buffer_append_text(out, "\x1b[0m");
    }
    buffer_fini(&hint);
}

static void draw(struct line *line, bool with_hint)
{
    struct buffer out = {0};
    size_t start = columns_of(line->prompt, strlen(line->prompt));
    size_t end, cursor, end_row;

    line->columns = terminal_columns();
    end = start + columns_of(line->text.data, line->text.size);
    cursor = start + columns_of(line->text.data, line->cursor);
    end_row = end / line->columns;
    if (line->cursor_row > 0)
        buffer_printf(&out, "\x1b[%zuA", line->cursor_row);
    buffer_append_text(&out, "\r\x1b[J");
    buffer_append_text(&out, line->prompt);
    for (size_t i = 0; line->editor->masked && i < line->text.size; i++)
        buffer_append_char(&out, '*');
    if (!line->editor->masked)
        buffer_append_slice(&out, buffer_slice(&line->text));
    if (end > 0 && end % line->columns == 0)
        buffer_append_text(&out, "\r\n"); /* the terminal waits at the edge; the cursor belongs to the next row */
    if (with_hint && line->editor->hint != NULL && !line->editor->masked)
        append_hint(line, end, &out);
    line->cursor_row = cursor / line->columns;
    if (end_row > line->cursor_row)
        buffer_printf(&out, "\x1b[%zuA", end_row - line->cursor_row);
    buffer_append_char(&out, '\r');
    if (cursor % line->columns > 0)
        buffer_printf(&out, "\x1b[%zuC", cursor % line->columns);
    put(&out);
    buffer_fini(&out);
}

/* -------------------------------------------------------------------------------------------------------- keys -- */

static int read_byte(int limit_ms)
{
    struct pollfd one = {.fd = STDIN_FILENO, .events = POLLIN};
    unsigned char byte;
    ssize_t count;

    if (limit_ms >= 0 && poll(&one, 1, limit_ms) <= 0)
        return KEY_NONE;
    do
        count = read(STDIN_FILENO, &byte, 1);
    while (count < 0 && errno == EINTR);
    return count == 1 ? byte : KEY_EOF;
}

static int key_of_letter(int letter)
{
    switch (letter) {
    case 'A':
        return KEY_UP;
    case 'B':
        return KEY_DOWN;
    case 'C':
        return KEY_RIGHT;
    case 'D':
        return KEY_LEFT;
    case 'H':
        return KEY_HOME;
    case 'F':
        return KEY_END;
    default:
        return KEY_NONE;
    }
}

/* Behind ESC [. "1;5C" is a key with Ctrl, "3~" is Delete. */
static int read_sequence(void)
{
    int number = 0, modifier = 0;
    int byte = read_byte(ESCAPE_WAIT_MS);

    while ((byte >= '0' && byte <= '9') || byte == ';') {
        if (byte == ';')
            modifier = 1;
        else if (modifier == 0)
            number = number < 100 ? number * 10 + byte - '0' : number;
        byte = read_byte(ESCAPE_WAIT_MS);
    }
    if (byte == '~')
        return number == 1 || number == 7   ? KEY_HOME
               : number == 4 || number == 8 ? KEY_END
               : number == 3                ? KEY_DELETE
                                            : KEY_NONE;
    if (modifier != 0 && (byte == 'C' || byte == 'D'))
        return byte == 'C' ? KEY_WORD_RIGHT : KEY_WORD_LEFT;
    return key_of_letter(byte);
}

static int read_key(void)
{
    int byte = read_byte(-1);

    if (byte != KEY_ESCAPE)
        return byte;
    byte = read_byte(ESCAPE_WAIT_MS);
    switch (byte) {
    case KEY_NONE:
        return KEY_ESCAPE;
    case '[':
        return read_sequence();
    case 'O':
        return key_of_letter(read_byte(ESCAPE_WAIT_MS));
    case 'b':
        return KEY_WORD_LEFT;
    case 'f':
        return KEY_WORD_RIGHT;
    default:
        return KEY_ESCAPE;
    }
}

/* ----------------------------------------------------------------------------------------------------- editing -- */

static size_t before(const struct line *line, size_t at)
{
    while (at > 0 && is_continuation(line->text.data[at - 1]))
        at--;
    return at > 0 ? at - 1 : 0;
}

static size_t after(const struct line *line, size_t at)
{
    if (at < line->text.size)
        at++;
    while (at < line->text.size && is_continuation(line->text.data[at]))
        at++;
    return at;
}

static size_t word_before(const struct line *line, size_t at)
{
    while (at > 0 && line->text.data[at - 1] == ' ')
        at--;
    while (at > 0 && line->text.data[at - 1] != ' ')
        at--;
    return at;
}

static size_t word_after(const struct line *line, size_t at)
{
    while (at < line->text.size && line->text.data[at] == ' ')
        at++;
    while (at < line->text.size && line->text.data[at] != ' ')
        at++;
    return at;
}

static void remove_between(struct line *line, size_t from, size_t to)
{
    if (from >= to)
        return;
    memmove(line->text.data + from, line->text.data + to, line->text.size - to);
    buffer_truncate(&line->text, line->text.size - (to - from));
    line->cursor = from;
}

static void insert(struct line *line, char c)
{
    buffer_append_char(&line->text, c);
    memmove(line->text.data + line->cursor + 1, line->text.data + line->cursor, line->text.size - line->cursor - 1);
    line->text.data[line->cursor++] = c;
}

static void replace(struct line *line, const char *text)
{
    buffer_clear(&line->text);
    buffer_append_text(&line->text, text);
    line->cursor = line->text.size;
}

static void exchange(struct line *line)
{
    size_t at = line->cursor == line->text.size ? before(line, line->cursor) : line->cursor;

    if (at == 0 || line->text.size < 2 || is_continuation(line->text.data[at]) ||
        is_continuation(line->text.data[at - 1]))
        return;
    char c = line->text.data[at - 1];

    line->text.data[at - 1] = line->text.data[at];
    line->text.data[at] = c;
    line->cursor = at + 1;
}

static void go_back(struct line *line, int step)
{
    const struct history *history = line->editor->history;
    int64_t past = (int64_t)line->past + step;

    if (history == NULL || past < 0 || past > (int64_t)history->count)
        return;
    if (line->past == 0) {
        mem_free(line->draft);
        line->draft = mem_copy_text(buffer_text(&line->text));
    }
    line->past = (uint32_t)past;
    replace(line, past == 0 ? line->draft : history->items[history->count - (uint32_t)past]);
}

/* Shows one completion after another. Returns the key that was no Tab. */
static int complete(struct line *line)
{
    char *typed = mem_copy_text(buffer_text(&line->text));
    size_t cursor = line->cursor;
    uint32_t index = 0;
    int key = KEY_TAB;

    while (key == KEY_TAB) {
        char *found = line->editor->complete(line->editor->user, typed, index++);

        if (found != NULL) {
            replace(line, found);
            mem_free(found);
        } else {
            if (index == 1) {
                put_text("\a");
                key = KEY_NONE;
                break;
            }
            put_text("\a");
            index = 0;
            replace(line, typed);
            line->cursor = cursor;
        }
        draw(line, true);
        key = read_key();
    }
    if (key == KEY_ESCAPE) {
        replace(line, typed);
        line->cursor = cursor;
        key = KEY_NONE;
    }
    mem_free(typed);
    return key;
}

/* The newest line before `past` that has the text in it; 0: none. */
static uint32_t search_back(const struct history *history, const char *text, uint32_t past)
{
    while (++past <= history->count)
        if (strstr(history->items[history->count - past], text) != NULL)
            return past;
    return 0;
}

/* Ctrl-R. Returns the key that ended the search, which is then a key of the line that was found. */
static int search(struct line *line)
{
    const struct history *history = line->editor->history;
    const char *prompt = line->prompt;
    char *typed = mem_copy_text(buffer_text(&line->text));
    struct buffer wanted = {0}, shown = {0};
    uint32_t past = 0;
    int key = KEY_CTRL_R;

    for (;;) {
        buffer_clear(&shown);
        buffer_printf(&shown, "(search '%s') ", buffer_text(&wanted));
        line->prompt = buffer_text(&shown);
        draw(line, false);
        key = read_key();
        if (key == KEY_CTRL_R) {
            uint32_t further = wanted.size > 0 ? search_back(history, buffer_text(&wanted), past) : 0;

            past = further != 0 ? further : past;
        } else if ((key == KEY_BACKSPACE || key == KEY_CTRL_H) && wanted.size > 0) {
            buffer_truncate(&wanted, wanted.size - 1);
            past = wanted.size > 0 ? search_back(history, buffer_text(&wanted), 0) : 0;
        } else if (key >= ' ' && key < KEY_UP && key != KEY_BACKSPACE) {
            buffer_append_char(&wanted, (char)key);
            past = search_back(history, buffer_text(&wanted), past > 0 ? past - 1 : 0);
        } else {
            break;
        }
        replace(line, past != 0 ? history->items[history->count - past] : typed);
    }
    if (key == KEY_ESCAPE || key == KEY_CTRL_G) {
        replace(line, typed);
        key = KEY_NONE;
    }
    line->prompt = prompt;
    mem_free(typed);
    buffer_fini(&wanted);
    buffer_fini(&shown);
    return key;
}

static void edit(struct line *line, int key)
{
    switch (key) {
    case KEY_LEFT:
    case KEY_CTRL_B:
        line->cursor = before(line, line->cursor);
        break;
    case KEY_RIGHT:
    case KEY_CTRL_F:
        line->cursor = after(line, line->cursor);
        break;
    case KEY_HOME:
    case KEY_CTRL_A:
        line->cursor = 0;
        break;
    case KEY_END:
    case KEY_CTRL_E:
        line->cursor = line->text.size;
        break;
    case KEY_WORD_LEFT:
        line->cursor = word_before(line, line->cursor);
        break;
    case KEY_WORD_RIGHT:
        line->cursor = word_after(line, line->cursor);
        break;
    case KEY_BACKSPACE:
    case KEY_CTRL_H:
        remove_between(line, before(line, line->cursor), line->cursor);
        break;
    case KEY_DELETE:
    case KEY_CTRL_D:
        remove_between(line, line->cursor, after(line, line->cursor));
        break;
    case KEY_CTRL_K:
        remove_between(line, line->cursor, line->text.size);
        break;
    case KEY_CTRL_U:
        remove_between(line, 0, line->cursor);
        break;
    case KEY_CTRL_W:
        remove_between(line, word_before(line, line->cursor), line->cursor);
        break;
    case KEY_CTRL_T:
        exchange(line);
        break;
    case KEY_UP:
    case KEY_CTRL_P:
        go_back(line, 1);
        break;
    case KEY_DOWN:
    case KEY_CTRL_N:
        go_back(line, -1);
        break;
    case KEY_CTRL_L:
        put_text("\x1b[H\x1b[2J");
        line->cursor_row = 0;
        break;
    default:
        if (key >= ' ' && key < KEY_UP)
            insert(line, (char)key);
        break;
    }
}

/* True: the line is complete. False: the end. */
static bool type(struct line *line)
{
    for (;;) {
        int key = read_key();

        if (key == KEY_TAB && line->editor->complete != NULL && line->text.size > 0)
            key = complete(line);
        else if (key == KEY_CTRL_R && line->editor->history != NULL)
            key = search(line);
        if (key == KEY_RETURN || key == KEY_LINE_FEED) {
            line->cursor = line->text.size;
            draw(line, false);
            return true;
        }
        if (key == KEY_CTRL_C || key == KEY_EOF || (key == KEY_CTRL_D && line->text.size == 0))
            return false;
        edit(line, key);
        draw(line, true);
    }
}

char *editor_read(const struct editor *editor, const char *prompt)
{
    struct line line = {.editor = editor, .prompt = prompt};
    struct termios before_typing, raw;
    char *text = NULL;
    size_t size;

    if (tcgetattr(STDIN_FILENO, &before_typing) != 0)
        return NULL;
    raw = before_typing;
    cfmakeraw(&raw);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    put_text(prompt); /* where the cursor is: what was printed last may have had no line break */
    if (type(&line))
        text = buffer_take(&line.text, &size);
    put_text("\r\n");
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before_typing);
    buffer_fini(&line.text);
    mem_free(line.draft);
    return text;
}
