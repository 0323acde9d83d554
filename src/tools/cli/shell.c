#include "tools/cli/shell.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/version.h"
#include "base/words.h"
#include "tools/cli/docs.h"
#include "tools/cli/editor.h"
#include "tools/cli/eval.h"
#include "tools/cli/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOW_MS = 500 }; /* replies that took so long have their time told */

struct shell {
    struct session *session;
    struct history history;
    struct docs docs;
    bool asked_docs; /* of this connection */
    bool shows_hints;
};

static bool is(const struct slice *words, size_t count, size_t index, const char *word)
{
    return index < count && slice_equal_text_nocase(words[index], word);
}

/* ------------------------------------------------------------------------------------------------ what is known -- */

/* Asks once, when a connection is there and nothing else goes on. A server that does not know the command stays without
 * hints. */
static void learn(struct shell *shell)
{
    static const struct slice words[] = {SLICE("COMMAND"), SLICE("DOCS")};
    struct session *session = shell->session;
    struct resp_reply *reply = NULL;

    if (shell->asked_docs || !link_is_open(session->link) || session->in_multi || session->replies != REPLIES_ON ||
        session->is_debugging)
        return;
    shell->asked_docs = true;
    if (link_call(session->link, words, countof(words), &reply) == STATUS_OK && !format_is_error(reply))
        docs_load(&shell->docs, reply);
    resp_reply_destroy(&reply);
}

static char *complete(void *user, const char *line, uint32_t index)
{
    const struct shell *shell = user;

    return docs_complete(&shell->docs, line, index);
}

static void hint(void *user, struct slice line, struct buffer *out)
{
    const struct shell *shell = user;

    if (shell->shows_hints)
        docs_hint(&shell->docs, line, out);
}

/* ------------------------------------------------------------------------------------------------- own commands -- */

static void set_preference(struct shell *shell, const struct slice *words, size_t count, const char *prefix)
{
    const char *name = shell->session->options->name;

    if (!is(words, count, 0, ":set"))
        printf("%sunknown %s internal command '%.*s'\n", prefix, name, (int)words[0].size, words[0].data);
    else if (is(words, count, 1, "hints"))
        shell->shows_hints = true;
    else if (is(words, count, 1, "nohints"))
        shell->shows_hints = false;
    else if (count > 1)
        printf("%sunknown %s preference '%.*s'\n", prefix, name, (int)words[1].size, words[1].data);
}

static void read_preferences(struct shell *shell)
{
    char *path = history_path("REDISCLI_RCFILE", ".redisclirc");
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    struct words words = {0};
    char *line = NULL;
    size_t room = 0;
    ssize_t size;

    while (file != NULL && (size = getline(&line, &room, file)) > 0) {
        if (words_split(slice_make(line, (size_t)size), &words) && words.count > 0)
            set_preference(shell, words.items, words.count, ".redisclirc: ");
    }
    if (file != NULL)
        fclose(file);
    free(line);
    words_fini(&words);
    mem_free(path);
}

static void help(struct shell *shell, const struct slice *words, size_t count)
{
    const char *name = shell->session->options->name;
    struct buffer text = {0};

    if (count == 0) {
        buffer_printf(&text,
                      "%s %s\n"
                      "help COMMAND         what a command does (also: help CONFIG SET)\n"
                      "help @GROUP          the commands of a group: help @list; Tab shows the groups\n"
                      "NUMBER COMMAND ...   repeats a command\n"
                      "connect HOST PORT    goes on with another server\n"
                      "clear                clears the screen\n"
                      ":set hints           shows arguments while you type; :set nohints does not\n"
                      "quit                 ends\n"
                      "The file ~/.redisclirc may have lines with :set.\n",
                      name, KEYDB_VERSION);
    } else {
        learn(shell);
        status_ignore(docs_help(&shell->docs, words, count, &text), "an unknown command has no help");
        buffer_append_text(&text, "\r\n");
    }
    format_write(&text, stdout);
    buffer_fini(&text);
}

static void connect_elsewhere(struct shell *shell, struct slice host, struct slice port)
{
    char *name = mem_copy(host.data, host.size);
    int64_t number;

    if (!number_parse_i64(port, &number) || number < 0 || number > UINT16_MAX)
        number = 0;
    session_connect_to(shell->session, name, (int)number);
    shell->asked_docs = false;
    status_ignore(session_connect(shell->session), "it has told the user");
    mem_free(name);
}

/* ---------------------------------------------------------------------------------------------------- commands -- */

static void run(struct shell *shell, const struct slice *words, size_t count, int64_t repeat)
{
    struct session *session = shell->session;

    for (; repeat > 0; repeat--) {
        uint64_t begin = clock_monotonic_ms();
        uint64_t took;

        if (!session_connect(session) || !session_run(session, words, count))
            return;
        took = clock_monotonic_ms() - begin;
        if (took >= SLOW_MS && session->format == FORMAT_TEXT && !session->is_debugging)
            printf("(%.2fs)\n", (double)took / 1000);
        if (session->options->interval_us != 0 && repeat > 1)
            usleep((useconds_t)session->options->interval_us);
    }
}

/* False: the user has said quit. */
static bool obey(struct shell *shell, const struct slice *words, size_t count)
{
    struct session *session = shell->session;
    int64_t repeat = 1;

    if (is(words, count, 0, "quit") || is(words, count, 0, "exit"))
        return false;
    if (is(words, count, 0, "restart") && session->eval != NULL)
        return eval_restart(session);
    if (session->is_debugging)
        return eval_debug(session, words, count);
    if (words[0].size > 0 && words[0].data[0] == ':') {
        set_preference(shell, words, count, "");
    } else if (is(words, count, 0, "restart")) {
        printf("Use 'restart' only in Lua debugging mode.\n");
    } else if (is(words, count, 0, "connect") && count == 3) {
        connect_elsewhere(shell, words[1], words[2]);
    } else if (is(words, count, 0, "clear") && count == 1) {
        printf("\x1b[H\x1b[2J");
    } else if (is(words, count, 0, "help") || is(words, count, 0, "?")) {
        help(shell, words + 1, count - 1);
    } else if (count > 1 && number_parse_i64(words[0], &repeat)) {
        if (repeat <= 0)
            printf("Invalid redis-cli repeat command option value.\n");
        else
            run(shell, words + 1, count - 1, repeat);
    } else {
        run(shell, words, count, 1);
    }
    fflush(stdout);
    return true;
}

/* Also remembers it. False: the end. */
static bool obey_line(struct shell *shell, const char *line, size_t size)
{
    struct words words = {0};
    bool goes_on = true;

    if (!words_split(slice_make(line, size), &words)) {
        words_fini(&words);
        printf("Invalid argument(s)\n");
        fflush(stdout);
        return true;
    }
    if (words.count > 0) {
        if (shell->session->is_interactive && !history_is_secret(words.items, words.count))
            history_add(&shell->history, line);
        goes_on = obey(shell, words.items, words.count);
    }
    words_fini(&words);
    return goes_on;
}

static void obey_terminal(struct shell *shell)
{
    const struct editor editor = {.history = &shell->history, .complete = complete, .hint = hint, .user = shell};
    bool goes_on = true;

    while (goes_on) {
        struct buffer prompt = {0};
        char *line;

        learn(shell);
        session_prompt(shell->session, &prompt);
        line = editor_read(&editor, buffer_text(&prompt));
        goes_on = line != NULL && obey_line(shell, line, strlen(line));
        mem_free(line);
        buffer_fini(&prompt);
    }
}

static void obey_input(struct shell *shell)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size;

    while ((size = getline(&line, &room, stdin)) >= 0) {
        while (size > 0 && (line[size - 1] == '\n' || line[size - 1] == '\r'))
            line[--size] = '\0';
        if (!obey_line(shell, line, (size_t)size))
            break;
    }
    free(line);
}

int shell_run(struct session *session)
{
    struct shell shell = {.session = session, .shows_hints = true};
    char *path = NULL;

    session->is_shell = true;
    session->is_interactive = isatty(STDIN_FILENO);
    if (session->is_interactive) {
        path = history_path("REDISCLI_HISTFILE", ".rediscli_history");
        read_preferences(&shell);
    }
    history_init(&shell.history, path);
    if (!session->is_debugging)
        status_ignore(session_connect(session), "the prompt tells, and each command tries again");
    if (session->is_interactive)
        obey_terminal(&shell);
    else
        obey_input(&shell);
    history_fini(&shell.history);
    docs_fini(&shell.docs);
    mem_free(path);
    return 0;
}

char *shell_ask_password(void)
{
    const struct editor editor = {.masked = true};
    char *line = NULL, *password = NULL;
    size_t room = 0;
    ssize_t size;

    if (isatty(STDIN_FILENO))
        return editor_read(&editor, "Please input password: ");
    size = getline(&line, &room, stdin);
    if (size > 0)
        password = mem_copy(line, strcspn(line, "\r\n"));
    free(line);
    return password;
}
