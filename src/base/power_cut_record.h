/* The record of power_cut.h as lines and kept files, for the code that writes it (power_cut_calls.c) and the code that
 * applies it (power_cut.c). An error ends the program: a test must not believe an incomplete record. */
#pragma once

#include "base/compiler.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stat;

/* The function of libc that our function of the same name hides. */
#define REAL(name)                                                        \
    ({                                                                    \
        static _Atomic(void *) known_;                                    \
        (__typeof__(&(name)))(uintptr_t)power_cut_hidden(&known_, #name); \
    })
void *power_cut_hidden(_Atomic(void *) *known, const char *name);

NORETURN void power_cut_give_up(const char *what, const char *path);

struct power_cut_line {
    char kind;
    uint64_t number, inode, first, second;
    const char *path, *to; /* NULL: none */
};

/* Chooses the record that the other functions use. No call may be recorded meanwhile. */
void power_cut_choose(const char *folder);
void power_cut_create(void);         /* replaces what is there by an empty record */
const char *power_cut_watched(void); /* the absolute path of the folder, without a slash at its end */
const char *power_cut_record(void);  /* the path of the folder's record */

uint64_t power_cut_number(void);                                /* the number of a new change */
void power_cut_kept_path(char path[PATH_MAX], uint64_t number); /* where what the change destroys is kept */
void power_cut_put(const struct power_cut_line *line);
/* Calls `fn` (NULL is fine) for each line of the log, the first being 1. Returns the number of lines. Changes the log;
 * the lines refer to it. */
typedef void power_cut_line_fn(const struct power_cut_line *line, uint64_t at_line, void *context);
uint64_t power_cut_each(char *log, power_cut_line_fn *fn, void *context);
char *power_cut_load(void); /* the log as text; the caller frees it */

/* --- files --- */

void power_cut_join_path(char path[PATH_MAX], const char *folder, const char *name);
/* Copies at most `bytes` bytes, fewer if `from` ends. */
void power_cut_copy(const char *from, off_t from_offset, const char *to, off_t to_offset, off_t bytes);
/* Calls `fn` for everything below the folder: for the contents of a folder first, then for the folder. */
typedef void power_cut_walk_fn(const char *path, const struct stat *info, void *context);
void power_cut_walk(const char *folder, power_cut_walk_fn *fn, void *context);
void power_cut_remove_folder(const char *path);
