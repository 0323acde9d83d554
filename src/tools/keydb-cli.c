/* keydb-cli: a client for the command line: one command, commands typed or piped in, and looks at a server.
 *
 * Options, forms of output and exit codes are those of redis-cli 7.0, whose name it may also have. tools/cli has its
 * parts, tools/link its connection. */
#include "base/buffer.h"
#include "base/mem.h"
#include "base/version.h"
#include "base/words.h"
#include "tools/cli/compare.h"
#include "tools/cli/eval.h"
#include "tools/cli/measure.h"
#include "tools/cli/options.h"
#include "tools/cli/pipe.h"
#include "tools/cli/replica.h"
#include "tools/cli/scan.h"
#include "tools/cli/session.h"
#include "tools/cli/shell.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The command of the command line, as it is sent. */
struct command {
    struct slice *words;
    size_t count;
    struct words *unquoted; /* --quoted-input: one for each word */
    struct buffer input;    /* -x, -X */
};

static void command_fini(struct command *command, int word_count)
{
    for (int i = 0; command->unquoted != NULL && i < word_count; i++)
        words_fini(&command->unquoted[i]);
    mem_free(command->unquoted);
    mem_free(command->words);
    buffer_fini(&command->input);
}

static void read_input(struct buffer *input)
{
    size_t count = 1;

    while (count > 0) {
        count = fread(buffer_reserve(input, 65536), 1, 65536, stdin);
        input->size += count;
    }
}

/* False: output says why. */
static bool make_command(const struct options *options, struct command *command)
{
    bool replaced = false;

    command->words = mem_alloc(((size_t)options->word_count + 1) * sizeof(*command->words));
    command->unquoted = mem_alloc_zero(((size_t)options->word_count + 1) * sizeof(*command->unquoted));
    for (int i = 0; i < options->word_count; i++) {
        command->words[i] = slice_from_text(options->words[i]);
        if (!options->quoted_input)
            continue;
        if (!words_split(command->words[i], &command->unquoted[i]) || command->unquoted[i].count != 1) {
            printf("Invalid quoted string\n");
            return false;
        }
        command->words[i] = command->unquoted[i].items[0];
    }
    command->count = (size_t)options->word_count;
    if (options->last_word_from_input) {
        read_input(&command->input);
        command->words[command->count++] = buffer_slice(&command->input);
    } else if (options->word_from_input != NULL) {
        for (size_t i = 0; i < command->count && !replaced; i++) {
            if (!slice_equal_text(command->words[i], options->word_from_input))
                continue;
            read_input(&command->input);
            command->words[i] = buffer_slice(&command->input);
            replaced = true;
        }
        if (!replaced) {
            fprintf(stderr, "Using -X option but stdin tag not match.\n");
            return false;
        }
    }
    return true;
}

static bool repeat_command(struct session *session, const struct command *command)
{
    for (int64_t i = session->options->repeat; i != 0; i -= i > 0) {
        if (!session_connect(session) || !session_run(session, command->words, command->count))
            return false;
        if (session->options->interval_us > 0)
            usleep((useconds_t)session->options->interval_us);
    }
    return true;
}

static int run_command(struct session *session)
{
    struct command command = {0};
    int code = 1;

    if (make_command(session->options, &command) && session_connect(session))
        code = repeat_command(session, &command) ? 0 : 1;
    command_fini(&command, session->options->word_count);
    return code;
}

static int run(struct session *session)
{
    int code;

    switch (session->options->mode) {
    case MODE_EVAL:
        code = eval_run(session);
        return code >= 0 ? code : shell_run(session);
    case MODE_PIPE:
        return pipe_run(session);
    case MODE_SCAN:
        return scan_run(session);
    case MODE_BIG_KEYS:
    case MODE_MEMORY_KEYS:
        return scan_run_sizes(session);
    case MODE_HOT_KEYS:
        return scan_run_hot(session);
    case MODE_LATENCY:
    case MODE_LATENCY_HISTORY:
        return measure_latency(session);
    case MODE_LATENCY_SPECTRUM:
        return measure_latency_spectrum(session);
    case MODE_STAT:
        return measure_stat(session);
    case MODE_RDB:
    case MODE_FUNCTIONS_RDB:
        return replica_run_rdb(session);
    case MODE_REPLICA:
        return replica_run_stream(session);
    case MODE_COMPARE:
        return compare_run(session);
    case MODE_LRU_TEST:
        return measure_cache(session);
    case MODE_INTRINSIC_LATENCY:
        return measure_intrinsic(session);
    default:
        return session->options->word_count > 0 ? run_command(session) : shell_run(session);
    }
}

static void show_usage(const struct options *options)
{
    struct buffer text = {0};

    options_usage(options, &text);
    format_write(&text, stdout);
    buffer_fini(&text);
}

/* -1: there is more to do than to tell. */
static int tell(const struct options *options)
{
    switch (options->mode) {
    case MODE_HELP:
        show_usage(options);
        return 0;
    case MODE_VERSION:
        printf("%s %s\n", options->name, KEYDB_VERSION);
        return 0;
    case MODE_CLUSTER:
        fprintf(stderr, "--cluster comes with cluster mode, which this version does not have.\n");
        return 1;
    default:
        return -1;
    }
}

int main(int argc, char **argv)
{
    struct options options;
    struct buffer error = {0};
    char *password = NULL;
    int code = 1;

    if (options_parse(&options, argc, argv, &error))
        code = tell(&options);
    format_write(&error, stderr);
    if (code < 0) {
        struct session session;

        if (options.ask_password) {
            password = shell_ask_password();
            options.target.password = password;
        } else if (options.warn_of_password) {
            fprintf(stderr, "Warning: Using a password with '-a' or '-u' option on the command line interface may not "
                            "be safe.\n");
        }
        if (options.target.tls != NULL)
            signal(SIGPIPE, SIG_IGN); /* of its socket; that of standard output is raised again */
        session_init(&session, &options);
        code = run(&session);
        session_fini(&session);
    }
    buffer_fini(&error);
    options_fini(&options);
    mem_free(password);
    return code;
}
