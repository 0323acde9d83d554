/* The configuration: rows of options from all folders, their values from the command line and from files, CONFIG.
 *
 *     config_setup();                               rows of server/ (options.h), defaults
 *     config_add_rows(store_options, count);        rows of other folders
 *     config_on_change("port", apply_port);         hooks for CONFIG SET
 *     if (!config_load(argc, argv, &exit_status))   file, standard input, command line
 *         return exit_status;
 *
 * Everything up to config_load runs in the main thread before others start. Afterwards rows never change, and values
 * change only in exclusive sections (CONFIG SET). Values are read as options.h or the owner of the row says. To read
 * several values that belong together outside of the gate, use config_version. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/rows.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

/* --- at start: by the main thread, before the workers start --- */

void config_setup(void);
void config_teardown(void); /* after the workers have ended */

/* Uses the table itself, which must stay valid, and stores the defaults at once. A name must be new: otherwise the
 * program is wrong. */
void config_add_rows(const struct option_row *rows, size_t count);

/* Called after CONFIG SET has stored a new value of this option (and after the row's own `apply`), in the exclusive
 * section, by the thread that runs the command. Returns NULL, or why the value is refused: then all old values are
 * restored and the function is called again. If several options of one CONFIG SET have the same function, it is called
 * once. config_load does not call it: read the value itself at start. */
typedef const char *(*config_apply_fn)(const struct option_row *row);
void config_on_change(const char *option_name, config_apply_fn apply);

/* Called by CONFIG RESETSTAT, in the exclusive section. */
void config_on_reset_stat(void (*reset)(void));

/* Lines of a configuration file that are not options: "rename-command GET g", "user ...". words[0] is the name. `run`
 * returns NULL, or the text of the error that ends the start. `rewrite` (may be NULL) appends the lines for CONFIG
 * REWRITE. */
struct config_directive {
    const char *name;
    const char *(*run)(const struct slice *words, size_t count);
    void (*rewrite)(struct buffer *lines);
};
void config_on_directive(const struct config_directive *directive); /* the struct must stay valid */

/* Reads the command line and the files that it names. False: the program ends with *exit_status (--version, --help, an
 * error); everything was printed. `argv` must stay valid. */
must_check bool config_load(int argc, char **argv, int *exit_status);

/* Once, after the log was set up: logs options that were given but have no effect. */
void config_log_remarks(void);

/* --- any thread, where it does not say otherwise --- */

const char *config_file_path(void);        /* absolute; "": there is none */
const char *config_executable_path(void);  /* absolute */
char *const *config_arguments(int *count); /* argv */
uint64_t config_build_id(void);            /* differs between versions and compilers */

const struct option_row *config_find(struct slice name); /* name or alias, case-insensitive; NULL: none */
/* Appends the value as CONFIG GET shows it. False: no such option. For DEBUG, MEMORY and tests. */
bool config_get_text(const char *name, struct buffer *text);
/* Like CONFIG SET of one option, without checking a client's rights. False: *error has the reason. In an exclusive
 * section or before the workers start. */
must_check bool config_set_text(const char *name, struct slice text, char *error, size_t error_size);

/* Rewrites the configuration file. Returns NULL, or the reason why not. In an exclusive section. */
const char *config_rewrite(void);
const char *config_rewrite_everything(void); /* also writes options that have their default */

/* CONFIG SET: pairs of names and values, all or none. In an exclusive section. False: *refusal has the reason. With
 * `may_protected`, options with paths of files may be changed, too. */
struct config_refusal {
    bool is_unknown;                 /* there is no option with this name */
    bool is_loading;                 /* it cannot be changed while data is loading */
    struct slice name;               /* as the client wrote it */
    char reason[OPTION_ERROR_SPACE]; /* "": unknown */
};
must_check bool config_change(const struct slice *words, size_t pair_count, bool may_protected,
                              struct config_refusal *refusal);
void config_reset_stat(void); /* CONFIG RESETSTAT; in an exclusive section */
/* Any thread. Values read between two calls belong together if both calls returned the same number. While values are
 * being changed it waits: the thread that changes them waits for no other. A thread that may wait is outside of the
 * gate and holds no lock. */
uint64_t config_version(void);

size_t config_row_count(void); /* rows never change after config_load */
const struct option_row *config_row_at(size_t index);
