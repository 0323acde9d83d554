/* editor.h: one line typed at a terminal, with editing, history, completion and hints.
 *
 *     left, right, Ctrl-B, Ctrl-F, Home, End, Ctrl-A, Ctrl-E    move
 *     Alt-B, Alt-F                                              by words
 *     Backspace, Delete, Ctrl-H, Ctrl-D                         delete a character; Ctrl-D in an empty line: the end
 *     Ctrl-K, Ctrl-U, Ctrl-W                                    delete to the end, to the beginning, a word
 *     Ctrl-T                                                    exchange two characters
 *     up, down, Ctrl-P, Ctrl-N                                  history
 *     Ctrl-R                                                    search in the history
 *     Tab, Escape                                               next completion, none
 *     Ctrl-L                                                    clear the screen
 *     Ctrl-C                                                    the end
 *
 * A line that is wider than the terminal goes on in the next row. One thread uses it; the terminal is standard input
 * and output. */
#pragma once

#include "base/buffer.h"
#include "tools/cli/history.h"

#include <stdbool.h>
#include <stdint.h>

struct editor {
    const struct history *history;                                   /* NULL: none */
    char *(*complete)(void *user, const char *line, uint32_t index); /* NULL: none; the caller of it frees the result */
    void (*hint)(void *user, struct slice line, struct buffer *out); /* NULL: none */
    void *user;
    bool masked; /* shows stars: for a password */
};

/* NULL: the end. The caller frees the line with mem_free. */
char *editor_read(const struct editor *editor, const char *prompt);
