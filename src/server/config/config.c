/* The rows of all folders in one list, and the three ways to set values: at start, by CONFIG SET, and by a caller in
 * the program. CONFIG REWRITE is in config_rewrite.c, reading files and the command line in config_load.c. */
#include "server/config/config.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/fence.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/spinlock.h"
#include "base/thread.h"
#include "server/config/config_priv.h"
#include "server/config/command_block.h"
#include "server/config/options.h"
#include "server/config/options_accepted.h"
#include "server/config/options_process.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

static _Atomic uint64_t version; /* atomic; odd while values are being changed, at the gate */

struct config_state config_state; /* global: the configuration; written at start and in exclusive sections */

/* --- setup --- */

static void add_row(const struct option_row *row)
{
    *ARRAY_PUSH(&config_state.rows) = (struct config_row){.row = row};
    option_set_preset(row);
}

struct config_row *config_find_row(struct slice name)
{
    for (size_t i = 0; i < config_state.rows.count; i++) {
        if (option_is_named(config_state.rows.items[i].row, name))
            return &config_state.rows.items[i];
    }
    return NULL;
}

void config_add_rows(const struct option_row *rows, size_t count)
{
    gate_assert_main_alone();
    assert(!config_state.is_read);
    for (size_t i = 0; i < count; i++) {
        if (config_find_row(slice_from_text(rows[i].name)) != NULL)
            panic("option '%s' is declared twice", rows[i].name);
        add_row(&rows[i]);
    }
}

void config_add_accepted(void)
{
    size_t count;
    const struct option_row *rows = options_accepted(&count);

    gate_assert_main_alone();
    assert(config_state.rows.items != NULL); /* config_setup was first */
    for (size_t i = 0; i < count; i++) {
        const struct config_row *known = config_find_row(slice_from_text(rows[i].name));

        assert(known == NULL || known->row == &rows[i]); /* an option that works has no row here */
        if (known == NULL)
            add_row(&rows[i]);
    }
}

void config_setup(void)
{
    gate_assert_main_alone();
    assert(config_state.rows.items == NULL);
    config_add_rows(server_options, server_option_count);
    config_add_rows(process_options, process_option_count);
}

void config_teardown(void)
{
    struct config_state *state = &config_state;

    gate_assert_main_alone();
    for (size_t i = 0; i < state->rows.count; i++) {
        option_fini(state->rows.items[i].row);
        mem_free(state->rows.items[i].hooks);
    }
    options_teardown();
    ARRAY_FINI(&state->rows);
    ARRAY_FINI(&state->reset_hooks);
    ARRAY_FINI(&state->directives);
    mem_free(state->file_path);
    mem_free(state->executable_path);
    memset(state, 0, sizeof(*state));
}

void config_on_change(const char *option_name, config_apply_fn apply)
{
    struct config_row *row = config_find_row(slice_from_text(option_name));

    assert(apply != NULL);
    gate_assert_main_alone();
    if (row == NULL)
        panic("no option '%s'", option_name);
    row->hooks = mem_realloc(row->hooks, (row->hook_count + 1) * sizeof(*row->hooks));
    row->hooks[row->hook_count++] = apply;
}

void config_on_reset_stat(void (*reset)(void))
{
    assert(reset != NULL);
    gate_assert_main_alone();
    *ARRAY_PUSH(&config_state.reset_hooks) = reset;
}

void config_on_directive(const struct config_directive *directive)
{
    assert(directive->run != NULL);
    assert(config_find_directive(slice_from_text(directive->name)) == NULL);
    gate_assert_main_alone();
    *ARRAY_PUSH(&config_state.directives) = directive;
}

/* --- looking --- */

size_t config_row_count(void)
{
    assert(config_state.is_read);
    return config_state.rows.count;
}

const struct option_row *config_row_at(size_t index)
{
    assert(index < config_state.rows.count);
    return config_state.rows.items[index].row;
}

const struct option_row *config_find(struct slice name)
{
    const struct config_row *found = config_find_row(name);

    return found != NULL ? found->row : NULL;
}

bool config_get_text(const char *name, struct buffer *text)
{
    const struct option_row *row = config_find(slice_from_text(name));

    if (row == NULL)
        return false;
    option_format(row, text);
    return true;
}

const char *config_file_path(void)
{
    return config_state.file_path != NULL ? config_state.file_path : "";
}

const char *config_executable_path(void)
{
    return config_state.executable_path != NULL ? config_state.executable_path : "";
}

char *const *config_arguments(int *count)
{
    *count = config_state.arg_count;
    return config_state.args;
}

void config_log_remarks(void)
{
    thread_assert_main();
    assert(config_state.is_read);
    for (size_t i = 0; i < config_state.rows.count; i++) {
        const struct config_row *row = &config_state.rows.items[i];
        const char *reason = options_accepted_reason(row->row);

        if (row->given && reason != NULL && !option_is_preset(row->row))
            log_notice("'%s' is accepted but has no effect: %s", row->row->name, reason);
    }
}

/* --- changing several options, all or none --- */

struct setting {
    struct config_row *row;
    struct slice name;         /* as the client wrote it */
    struct option_value value; /* the new one; once stored, the old one */
    bool stored, changed;
};

struct change_set {
    struct setting *settings;
    size_t count;
    struct slice blamed; /* the name in the error */
    char error[OPTION_ERROR_SPACE];
};

static bool blame(struct change_set *set, const struct setting *setting, const char *reason)
{
    set->blamed = setting->name;
    if (reason != set->error)
        snprintf(set->error, sizeof(set->error), "%s", reason);
    return false;
}

static bool parse_settings(struct change_set *set, const struct slice *texts, size_t stride)
{
    for (size_t i = 0; i < set->count; i++) {
        struct setting *setting = &set->settings[i];

        if (!option_parse(setting->row->row, &texts[i * stride], 1, &setting->value, set->error, sizeof(set->error)))
            return blame(set, setting, set->error);
    }
    return true;
}

static bool store_settings(struct change_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        struct setting *setting = &set->settings[i];
        enum option_result result = option_store(setting->row->row, &setting->value, set->error, sizeof(set->error));

        if (result == OPTION_FAILED)
            return blame(set, setting, set->error);
        setting->stored = true;
        setting->changed = result == OPTION_CHANGED || (setting->row->row->flags & OPTION_VOLATILE) != 0;
    }
    return true;
}

/* Has an earlier setting of this set already called the function? */
static bool was_called(const struct change_set *set, size_t until, config_apply_fn apply)
{
    for (size_t i = 0; i < until; i++) {
        const struct config_row *row = set->settings[i].row;

        for (size_t k = 0; set->settings[i].changed && k < row->hook_count; k++) {
            if (row->hooks[k] == apply)
                return true;
        }
    }
    return false;
}

static const char *apply_setting(const struct change_set *set, size_t index)
{
    const struct config_row *row = set->settings[index].row;
    const char *reason = row->row->apply != NULL ? row->row->apply(row->row) : NULL;

    for (size_t i = 0; reason == NULL && i < row->hook_count; i++) {
        if (!was_called(set, index, row->hooks[i]))
            reason = row->hooks[i](row->row);
    }
    return reason;
}

static bool apply_settings(struct change_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const char *reason = set->settings[i].changed ? apply_setting(set, i) : NULL;

        if (reason != NULL)
            return blame(set, &set->settings[i], reason);
    }
    return true;
}

static void undo_settings(struct change_set *set, bool applied)
{
    char error[OPTION_ERROR_SPACE];

    for (size_t i = set->count; i-- > 0;) {
        struct setting *setting = &set->settings[i];

        if (setting->stored && option_store(setting->row->row, &setting->value, error, sizeof(error)) == OPTION_FAILED)
            log_warning("Can't restore the old value of '%s': %s", setting->row->row->name, error);
    }
    for (size_t i = 0; applied && i < set->count; i++) {
        const char *reason = set->settings[i].changed ? apply_setting(set, i) : NULL;

        if (reason != NULL)
            log_warning("Restoring the old value of '%s': %s", set->settings[i].row->row->name, reason);
    }
}

/* A change of values is between two calls. The fences: version, values, version, here as in config_version. */
static void next_version(void)
{
    gate_assert_alone();
    fence_full();
    (void)atomic_fetch_add_explicit(&version, 1, memory_order_relaxed);
    fence_full();
}

uint64_t config_version(void)
{
    uint64_t now;

    fence_full();
    while ((now = atomic_load_explicit(&version, memory_order_relaxed)) % 2 != 0) {
        spinlock_assert_none_held();
        sched_yield();
    }
    fence_full();
    return now;
}

/* texts[i * stride] is the new value of settings[i]. */
static bool change_all(struct change_set *set, const struct slice *texts, size_t stride)
{
    bool done = parse_settings(set, texts, stride);

    if (done) {
        bool stored;

        next_version();
        assert(atomic_load_explicit(&version, memory_order_relaxed) % 2 != 0);
        stored = store_settings(set);
        done = stored && apply_settings(set);
        if (!done)
            undo_settings(set, stored);
        next_version();
    }
    assert(atomic_load_explicit(&version, memory_order_relaxed) % 2 == 0);
    for (size_t i = 0; i < set->count; i++)
        option_value_release(&set->settings[i].value);
    return done;
}

bool config_set_text(const char *name, struct slice text, char *error, size_t error_size)
{
    struct setting setting = {.name = slice_from_text(name)};
    struct change_set set = {.settings = &setting, .count = 1};

    gate_assert_alone();
    setting.row = config_find_row(setting.name);
    if (setting.row == NULL) {
        snprintf(error, error_size, "no such option");
        return false;
    }
    if (change_all(&set, &text, 1))
        return true;
    snprintf(error, error_size, "%s", set.error);
    return false;
}

/* --- CONFIG SET --- */

static bool is_repeated(const struct change_set *set, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (set->settings[i].row == set->settings[index].row)
            return true;
    }
    return false;
}

static bool find_settings(struct change_set *set, const struct slice *words, bool may_protected,
                          struct config_refusal *refusal)
{
    for (size_t i = 0; i < set->count; i++) {
        struct setting *setting = &set->settings[i];

        setting->name = words[2 * i];
        setting->row = config_find_row(setting->name);
        if (setting->row == NULL) {
            refusal->is_unknown = true;
            return blame(set, setting, "");
        }
        if ((setting->row->row->flags & OPTION_MUTABLE) == 0)
            return blame(set, setting, "can't set immutable config");
        if ((setting->row->row->flags & OPTION_PROTECTED) != 0 && !may_protected)
            return blame(set, setting, "can't set protected config");
        if ((setting->row->row->flags & OPTION_DENY_LOADING) != 0 && (command_blocks() & COMMAND_BLOCK_LOADING) != 0) {
            refusal->is_loading = true;
            return blame(set, setting, "");
        }
        if (is_repeated(set, i))
            return blame(set, setting, "duplicate parameter");
    }
    return true;
}

bool config_change(const struct slice *words, size_t pair_count, bool may_protected, struct config_refusal *refusal)
{
    struct change_set set = {.count = pair_count};
    bool done;

    gate_assert_alone();
    assert(pair_count > 0);
    refusal->is_unknown = false;
    refusal->is_loading = false;
    set.settings = mem_alloc_zero(set.count * sizeof(*set.settings));
    done = find_settings(&set, words, may_protected, refusal) && change_all(&set, &words[1], 2);
    refusal->name = set.blamed;
    snprintf(refusal->reason, sizeof(refusal->reason), "%s", set.error);
    mem_free(set.settings);
    return done;
}

void config_reset_stat(void)
{
    gate_assert_alone();
    for (size_t i = 0; i < config_state.reset_hooks.count; i++)
        config_state.reset_hooks.items[i]();
}
