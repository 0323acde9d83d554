/* The configuration: rows of options from all folders, their values from the command line and from files, CONFIG.
 *
 *     config_setup();                               rows of server/ (options.h), presets
 *     config_add_rows(store_options, count);        rows of other folders
 *     config_on_change("port", apply_port);         who must act when CONFIG SET changes a value
 *     if (!config_load(argc, argv, &exit_status))   file, standard input, command line
 *         return exit_status;
 *
 * Everything up to config_load runs in the main thread before others start; afterwards rows never change, and values
 * change only in exclusive sections (CONFIG SET). Reading a value is options.h's or the row owner's business; who reads
 * several that belong together outside of the gate asks config_version. */
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

/* The table is used as it is, for as long as the program runs; its presets are stored at once. A name that is already
 * there is a mistake in the program. */
void config_add_rows(const struct option_row *rows, size_t count);

/* Called after CONFIG SET has stored a new value of this option (and after the row's own `apply`), in the exclusive
 * section, by the thread that runs the command. NULL: fine; else why not, and everything is set back, calling this
 * again with the old value. Several options given in one CONFIG SET with the same function: it is called once. Not
 * called by config_load: whoever registers looks at the value itself when it starts. */
typedef const char *(*config_apply_fn)(const struct option_row *row);
void config_on_change(const char *option_name, config_apply_fn apply);

/* Called by CONFIG RESETSTAT, in the exclusive section. */
void config_on_reset_stat(void (*reset)(void));

/* Lines of a configuration file that are no options: "rename-command GET g", "user ...". words[0] is the name.
 * NULL: fine, else the text of the start-up error. `rewrite` (may be NULL) appends the lines for CONFIG REWRITE. */
struct config_directive {
    const char *name;
    const char *(*run)(const struct slice *words, size_t count);
    void (*rewrite)(struct buffer *lines);
};
void config_on_directive(const struct config_directive *directive); /* used as it is */

/* Reads the command line, and what it names. False: the program ends with *exit_status (--version, --help, a mistake;
 * everything has been said). `argv` must stay. */
must_check bool config_load(int argc, char **argv, int *exit_status);

/* Once, after the log was set up: what was given but has no effect in this program. */
void config_log_remarks(void);

/* --- any thread, where it does not say otherwise --- */

const char *config_file_path(void);        /* absolute; "" when there is none */
const char *config_executable_path(void);  /* absolute */
char *const *config_arguments(int *count); /* argv as it was given */
uint64_t config_build_id(void);            /* differs between versions and compilers */

const struct option_row *config_find(struct slice name); /* name or alias, any case; NULL: none */
/* The value as CONFIG GET prints it, appended. False: no such option. For DEBUG, MEMORY and tests. */
bool config_get_text(const char *name, struct buffer *text);
/* As CONFIG SET of one option, without the rights of clients: false: *error says why not. In an exclusive section or
 * before the workers start. */
must_check bool config_set_text(const char *name, struct slice text, char *error, size_t error_size);

/* Writes the file anew. NULL: fine; else why not. In an exclusive section. */
const char *config_rewrite(void);
const char *config_rewrite_everything(void); /* also what has its default */

/* CONFIG SET: names and values, taken in turns, all or none. In an exclusive section. False: *refusal says what is
 * wrong. With `may_protected` options that say where files are may be changed, too. */
struct config_refusal {
    bool is_unknown;                 /* there is no option of that name */
    bool is_loading;                 /* it may not change while data is loaded */
    struct slice name;               /* as it was given */
    char reason[OPTION_ERROR_SPACE]; /* "": none is known */
};
must_check bool config_change(const struct slice *words, size_t pair_count, bool may_protected,
                              struct config_refusal *refusal);
void config_reset_stat(void); /* CONFIG RESETSTAT; likewise */
/* Any thread. What was read between two calls belongs to one moment if both returned the same. While values are being
 * changed it waits: whoever changes them waits for nobody, and who waits is outside of the gate and holds no lock. */
uint64_t config_version(void);

size_t config_row_count(void); /* rows never change after config_load */
const struct option_row *config_row_at(size_t index);
