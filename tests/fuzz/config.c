/* The configuration at start, from a text of any lines. Properties of an accepted text:
 *  1. CONFIG REWRITE's lines for all options, read by a fresh program, give the same values;
 *  2. CONFIG SET accepts the text that CONFIG GET shows for an option that it may change, and CONFIG GET shows it
 *     again.
 * The text is one word of the command line, which is taken unchanged: no file is needed. Lines that would touch files
 * are left out (fuzz inputs with such lines are skipped). */
#include "base/words.h"
#include "fuzz.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/config/options_accepted.h"
#include "server/config/save_points.h"

#include <stdio.h>
#include <stdlib.h>

#define BEFORE_TEXT "--\n" /* the line's end: then the word can be neither --help nor --version */

struct values {
    struct buffer *texts;
    size_t count;
};

static FILE *no_stream; /* where messages about mistakes go */

static bool touches_files(struct slice text)
{
    static const char *const names[] = {"include", "dir", "logfile"};
    struct words words = {0};
    bool touches = false;

    while (!touches && text.size != 0) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t size = end != NULL ? (size_t)(end - text.data) : text.size;

        if (words_split(slice_make(text.data, size), &words) && words.count != 0) {
            for (size_t i = 0; i < countof(names); i++)
                touches = touches || slice_equal_text_nocase(words.items[0], names[i]);
        }
        text = slice_skip(text, end != NULL ? size + 1 : size);
    }
    words_fini(&words);
    return touches;
}

static bool load(struct slice text)
{
    struct buffer word = {0};
    char program[] = "keydb-server", *args[3] = {program, NULL, NULL};
    FILE *kept = stderr;
    int exit_status = 0;
    bool done;

    buffer_append_text(&word, BEFORE_TEXT);
    buffer_append_slice(&word, text);
    args[1] = buffer_take(&word, &(size_t){0});
    config_setup();
    save_points_setup();
    stderr = no_stream;
    done = config_load(2, args, &exit_status);
    stderr = kept;
    assert(exit_status == (done ? 0 : 1));
    free(args[1]);
    return done;
}

static const struct option_row *row_at(size_t index)
{
    size_t accepted_count;
    const struct option_row *accepted = options_accepted(&accepted_count);

    if (index < server_option_count)
        return &server_options[index];
    index -= server_option_count;
    return index < accepted_count ? &accepted[index] : NULL;
}

/* Rows that another folder has taken over are not in use. */
static bool is_in_use(const struct option_row *row)
{
    return config_find(slice_from_text(row->name)) == row;
}

static void values_take(struct values *values)
{
    values->count = 0;
    while (row_at(values->count) != NULL)
        values->count++;
    values->texts = calloc(values->count, sizeof(struct buffer));
    assert(values->texts != NULL);
    for (size_t i = 0; i < values->count; i++) {
        if (is_in_use(row_at(i)))
            option_format(row_at(i), &values->texts[i]);
    }
}

static void values_release(struct values *values)
{
    for (size_t i = 0; i < values->count; i++)
        buffer_fini(&values->texts[i]);
    free(values->texts);
}

static void check_equal(struct values *before, struct values *after)
{
    assert(before->count == after->count);
    for (size_t i = 0; i < before->count; i++) {
        if (!slice_equal(buffer_slice(&before->texts[i]), buffer_slice(&after->texts[i]))) {
            fprintf(stderr, "%s: '%s' before, '%s' after\n", row_at(i)->name, buffer_text(&before->texts[i]),
                    buffer_text(&after->texts[i]));
            assert(!"a value has changed");
        }
    }
}

static void check_set(const struct values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        const struct option_row *row = row_at(i);
        struct buffer again = {0};
        char error[OPTION_ERROR_SPACE];

        if (!is_in_use(row) || (row->flags & OPTION_MUTABLE) == 0)
            continue;
        if (!config_set_text(row->name, buffer_slice(&values->texts[i]), error, sizeof(error))) {
            fprintf(stderr, "%s '%s': %s\n", row->name, buffer_text(&values->texts[i]), error);
            assert(!"its own value is refused");
        }
        option_format(row, &again);
        if (!slice_equal(buffer_slice(&again), buffer_slice(&values->texts[i])))
            fprintf(stderr, "%s: '%s', set again: '%s'\n", row->name, buffer_text(&values->texts[i]),
                    buffer_text(&again));
        assert(slice_equal(buffer_slice(&again), buffer_slice(&values->texts[i])));
        buffer_fini(&again);
    }
}

static void write_lines(struct buffer *lines)
{
    const struct option_row *row;

    for (size_t i = 0; (row = row_at(i)) != NULL; i++) {
        if (is_in_use(row) && (row->flags & OPTION_NO_REWRITE) == 0 && !slice_equal_text(SLICE("dir"), row->name) &&
            !slice_equal_text(SLICE("logfile"), row->name))
            option_rewrite(row, lines);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size), text = fuzz_take_text(&input);
    struct values before, after;
    struct buffer lines = {0};

    if (no_stream == NULL)
        no_stream = fopen("/dev/null", "we");
    assert(no_stream != NULL);
    if (touches_files(text))
        return 0;
    if (!load(text)) {
        config_teardown();
        return 0;
    }
    values_take(&before);
    check_set(&before);
    write_lines(&lines);
    config_teardown();
    if (!load(buffer_slice(&lines))) {
        fprintf(stderr, "%s\n", buffer_text(&lines));
        assert(!"our own lines are refused");
    }
    values_take(&after);
    check_equal(&before, &after);
    config_teardown();
    values_release(&before);
    values_release(&after);
    buffer_fini(&lines);
    return 0;
}
