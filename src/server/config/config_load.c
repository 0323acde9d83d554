/* Reads the options at start: the file, standard input and the command line become one text, which is read line by
 * line; the last value of an option wins. The command line becomes lines of the same form with quoted values, so that
 * every error is reported in the same way: the line number, the line, the reason. */
#include "base/assert.h"
#include "base/buffer.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "base/words.h"
#include "server/config/config_priv.h"
#include "server/config/config_words.h"
#include "server/config/options.h"
#include "server/config/options_accepted.h"
#include "server/config/save_points.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INCLUDE_DEPTH_MOST = 64, READ_STEP_BYTES = 16384 };

/* Where the reader is, for messages. */
struct reader {
    unsigned line_number;
    unsigned depth; /* of includes */
    struct words words;
};

static void fatal(const struct reader *reader, struct slice line, const char *reason)
{
    fprintf(stderr, "\n*** FATAL CONFIG FILE ERROR (KeyDB %s) ***\n", KEYDB_VERSION);
    if (reader != NULL) {
        fprintf(stderr, "Reading the configuration file, at line %u\n", reader->line_number);
        fprintf(stderr, ">>> '%.*s'\n", (int)line.size, line.data);
    }
    fprintf(stderr, "%s\n", reason);
}

const struct config_directive *config_find_directive(struct slice name)
{
    for (size_t i = 0; i < config_state.directives.count; i++) {
        if (slice_equal_text_nocase(name, config_state.directives.items[i]->name))
            return config_state.directives.items[i];
    }
    return NULL;
}

/* --- text --- */

static must_check bool append_stream(struct buffer *text, FILE *stream)
{
    size_t got;

    do {
        got = fread(buffer_reserve(text, READ_STEP_BYTES), 1, READ_STEP_BYTES, stream);
        text->size += got;
    } while (got != 0);
    return ferror(stream) == 0;
}

static bool append_file(struct buffer *text, const char *path)
{
    FILE *stream = fopen(path, "re");
    bool done = stream != NULL && append_stream(text, stream);

    if (!done)
        log_warning("Fatal error, can't open config file '%s': %s", path, strerror(errno));
    if (stream != NULL)
        fclose(stream);
    return done;
}

/* --- lines --- */

static bool read_text(struct slice text, unsigned depth);

static bool include_one(const char *path, unsigned depth)
{
    struct buffer text = {0};
    bool done = append_file(&text, path) && read_text(buffer_slice(&text), depth);

    assert(depth <= INCLUDE_DEPTH_MOST);
    buffer_fini(&text);
    return done;
}

/* A pattern may match nothing; a plain path must be there. */
static bool include(struct reader *reader, struct slice line, const char *path)
{
    glob_t found;
    bool done = true;

    if (reader->depth == INCLUDE_DEPTH_MOST) {
        fatal(reader, line, "includes are nested too deeply");
        return false;
    }
    if (strpbrk(path, "*?[") == NULL)
        return include_one(path, reader->depth + 1);
    if (glob(path, 0, NULL, &found) != 0)
        return true;
    for (size_t i = 0; done && i < found.gl_pathc; i++)
        done = include_one(found.gl_pathv[i], reader->depth + 1);
    globfree(&found);
    return done;
}

static bool set_option(struct config_row *row, const struct slice *words, size_t count, char *error, size_t error_size)
{
    struct option_value value;
    bool done;

    if (!option_parse(row->row, words, count, &value, error, error_size))
        return false;
    done = option_store(row->row, &value, error, error_size) != OPTION_FAILED;
    option_value_release(&value);
    row->given = true;
    return done;
}

static bool read_words(struct reader *reader, struct slice line)
{
    const struct slice *words = reader->words.items;
    size_t count = reader->words.count;
    const struct config_directive *directive = config_find_directive(words[0]);
    struct config_row *row = config_find_row(words[0]);
    char error[OPTION_ERROR_SPACE];
    const char *reason = NULL;

    if (row != NULL)
        reason = set_option(row, words + 1, count - 1, error, sizeof(error)) ? NULL : error;
    else if (slice_equal_text_nocase(words[0], "include") && count == 2)
        return include(reader, line, words[1].data);
    else if (directive != NULL)
        reason = directive->run(words, count);
    else if (memchr(words[0].data, '.', words[0].size) != NULL)
        reason = "Module configuration given, but modules are not part of this build";
    else
        reason = "Bad directive or wrong number of arguments";
    if (reason != NULL)
        fatal(reader, line, reason);
    return reason == NULL;
}

static struct slice trim(struct slice line)
{
    while (line.size != 0 && strchr(" \t\r\n", line.data[0]) != NULL)
        line = slice_skip(line, 1);
    while (line.size != 0 && strchr(" \t\r\n", line.data[line.size - 1]) != NULL)
        line.size--;
    return line;
}

static bool read_line(struct reader *reader, struct slice line)
{
    if (line.size == 0 || line.data[0] == '#')
        return true;
    if (!words_split(line, &reader->words)) {
        fatal(reader, line, "Unbalanced quotes in configuration line");
        return false;
    }
    return reader->words.count == 0 || read_words(reader, line);
}

static bool read_text(struct slice text, unsigned depth)
{
    struct reader reader = {.depth = depth};
    bool done = true;

    while (done && text.size != 0) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t size = end != NULL ? (size_t)(end - text.data) : text.size;

        reader.line_number++;
        done = read_line(&reader, trim(slice_make(text.data, size)));
        text = slice_skip(text, end != NULL ? size + 1 : size);
    }
    words_fini(&reader.words);
    return done;
}

/* --- the command line --- */

/* Converts "--name", "value"... to: name "value"... The word of a name may contain its value, too: "--port 6380". The
 * word after a bare name is its value in any case, except for --save, whose value is optional. */
static void append_arguments(struct buffer *text, char **args, int count)
{
    bool wants_value = false, is_save = false;

    for (int i = 0; i < count; i++) {
        struct slice word = slice_from_text(args[i]);
        bool is_name = slice_starts_with(word, SLICE("--"));

        if (is_name && wants_value && is_save) {
            buffer_append_text(text, "\"\"");
            wants_value = false;
        }
        if (is_name && !wants_value) {
            struct slice name = slice_skip(word, 2);

            buffer_append_char(text, '\n');
            buffer_append_slice(text, name);
            buffer_append_char(text, ' ');
            wants_value = name.size != 0 && memchr(name.data, ' ', name.size) == NULL;
            is_save = slice_equal_text_nocase(name, "save");
        } else {
            words_quote(text, word);
            buffer_append_char(text, ' ');
            wants_value = is_save = false;
        }
    }
    if (wants_value && is_save)
        buffer_append_text(text, "\"\"");
}

static char *absolute_path(const char *path)
{
    char here[PATH_MAX];
    struct buffer joined = {0};

    if (path[0] == '/' || getcwd(here, sizeof(here)) == NULL)
        return mem_copy_text(path);
    buffer_printf(&joined, "%s/%s", strcmp(here, "/") == 0 ? "" : here, path);
    return buffer_take(&joined, &(size_t){0});
}

static char *own_path(const char *arg)
{
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path));

    return size > 0 && (size_t)size < sizeof(path) ? mem_copy(path, (size_t)size) : absolute_path(arg);
}

uint64_t config_build_id(void)
{
    uint64_t id = UINT64_C(0xcbf29ce484222325);

    for (const char *at = KEYDB_VERSION " " KEYDB_GIT_SHA1 " " __VERSION__; *at != '\0'; at++)
        id = (id ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return id;
}

static bool collect_text(struct buffer *text, int argc, char **argv)
{
    int first = 1, last = argc;
    bool reads_input = false;

    if (argc > 1 && argv[1][0] != '-') {
        mem_free(config_state.file_path);
        config_state.file_path = absolute_path(argv[1]);
        if (!append_file(text, config_state.file_path))
            return false;
        first = 2;
    }
    if (argc > 1 && strcmp(argv[1], "-") == 0) {
        reads_input = true;
        first++;
    } else if (first < last && strcmp(argv[last - 1], "-") == 0) {
        reads_input = true;
        last--;
    }
    if (reads_input) {
        log_warning("Reading config from stdin");
        if (text->size != 0 && text->data[text->size - 1] != '\n')
            buffer_append_char(text, '\n');
        if (!append_stream(text, stdin)) {
            log_warning("Fatal error, can't read config from stdin: %s", strerror(errno));
            return false;
        }
    }
    /* A line of its own also when the first word is no --option: then the message shows that word. */
    if (first < last && strncmp(argv[first], "--", 2) != 0)
        buffer_append_char(text, '\n');
    append_arguments(text, argv + first, last - first);
    return true;
}

static bool log_file_is_fine(void)
{
    char error[256];

    if (option_logfile.size == 0 || log_can_open(option_logfile.data))
        return true;
    snprintf(error, sizeof(error), "Can't open the log file: %s", strerror(errno));
    fatal(NULL, SLICE_EMPTY, error);
    return false;
}

bool config_load(int argc, char **argv, int *exit_status)
{
    struct buffer text = {0};
    bool done;

    gate_assert_main_alone();
    assert(argc > 0);
    config_add_accepted();
    config_add_file_only();
    config_state.arg_count = argc;
    config_state.args = argv;
    mem_free(config_state.executable_path);
    config_state.executable_path = own_path(argv[0]);
    if (config_run_word(argc, argv, exit_status))
        return false;
    save_points_reading(true);
    done = collect_text(&text, argc, argv) && read_text(buffer_slice(&text), 0) && log_file_is_fine();
    save_points_reading(false);
    options_clamp();
    config_state.is_read = true;
    buffer_fini(&text);
    *exit_status = done ? 0 : 1;
    return done;
}
