/* Internals that the files of the configuration share. */
#pragma once

#include "server/config/config.h"

struct config_row {
    const struct option_row *row;
    bool given;             /* set by a file or on the command line */
    config_apply_fn *hooks; /* functions of config_on_change */
    size_t hook_count;
};

struct config_state {
    struct {
        struct config_row *items;
        size_t count, capacity;
    } rows;
    struct {
        void (**items)(void);
        size_t count, capacity;
    } reset_hooks;
    struct {
        const struct config_directive **items;
        size_t count, capacity;
    } directives;
    char *file_path; /* NULL: none */
    char *executable_path;
    int arg_count;
    char **args;
    bool is_read; /* config_load is done: there are no more rows */
};
extern struct config_state config_state; /* global: see config.c */

struct config_row *config_find_row(struct slice name);                   /* NULL: none */
const struct config_directive *config_find_directive(struct slice name); /* NULL: none */
/* Main thread, before the workers start. */
void config_add_accepted(void);
void config_add_file_only(void); /* directives for features that are not supported: config_directives.c */
