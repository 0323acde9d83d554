#include "tools/cli/eval.h"

#include "base/mem.h"
#include "base/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct eval {
    char *script;
    char count_text[NUMBER_I64_SPACE];
    struct slice *words; /* EVAL, the script, the count of keys, keys, arguments */
    size_t word_count;
};

void eval_destroy(struct eval **handle)
{
    struct eval *eval = *handle;

    *handle = NULL;
    if (eval == NULL)
        return;
    mem_free(eval->script);
    mem_free(eval->words);
    mem_free(eval);
}

/* False: standard error says why. */
static bool read_script(const char *path, struct buffer *text)
{
    FILE *file = fopen(path, "re");
    size_t count = 1;

    if (file == NULL) {
        fprintf(stderr, "Can't open file '%s': %s\n", path, strerror(errno));
        return false;
    }
    while (count > 0) {
        count = fread(buffer_reserve(text, 65536), 1, 65536, file);
        text->size += count;
    }
    fclose(file);
    return true;
}

static struct eval *eval_create(const struct options *options)
{
    struct buffer text = {0};
    struct eval *eval;
    bool is_key = true;
    size_t size, key_count = 0;

    if (!read_script(options->eval_file, &text))
        return NULL;
    eval = mem_alloc_zero(sizeof(*eval));
    eval->script = buffer_take(&text, &size);
    eval->words = mem_alloc(((size_t)options->word_count + 3) * sizeof(*eval->words));
    eval->word_count = 3;
    for (int i = 0; i < options->word_count; i++) {
        if (is_key && strcmp(options->words[i], ",") == 0) {
            is_key = false;
            continue;
        }
        key_count += is_key;
        eval->words[eval->word_count++] = slice_from_text(options->words[i]);
    }
    eval->words[0] = SLICE("EVAL");
    eval->words[1] = slice_make(eval->script, size);
    eval->words[2] = slice_make(eval->count_text, number_format_u64(eval->count_text, key_count));
    return eval;
}

/* ---------------------------------------------------------------------------------------------------- debugger -- */

static const char *colour_of(const char *line)
{
    static const struct {
        const char *begin, *colour;
    } rows[] = {{"<error>", "31"},  {"<redis>", "32"}, {"->", "33"},      {"<value>", "35"},
                {"<retval>", "35"}, {"<reply>", "36"}, {"<debug>", "36"}, {"<hint>", "36"}};

    for (size_t i = 0; i < countof(rows); i++)
        if (strncmp(line, rows[i].begin, strlen(rows[i].begin)) == 0)
            return rows[i].colour;
    return "37";
}

/* Prints lines of the debugger. True: the session has ended, and the script's reply follows. */
static bool show_lines(const struct resp_reply *reply)
{
    bool ended = false;

    for (size_t i = 0; i < reply->element_count; i++) {
        const char *line = reply->elements[i]->text;

        if (line != NULL && strcmp(line, "<endsession>") == 0)
            ended = true;
        else if (line != NULL)
            printf("\x1b[0;%s;49m%s\x1b[0m\n", colour_of(line), line);
    }
    fflush(stdout);
    return ended;
}

/* The script's own reply. Then the connection is one as any other, but the server may close it. */
static bool end(struct session *session)
{
    struct resp_reply *reply = session_receive(session);

    session->is_debugging = false;
    session->debug_ended = true;
    if (reply == NULL)
        return false;
    printf("\n");
    session_show(session, reply);
    resp_reply_destroy(&reply);
    printf("\n(Lua debugging session ended%s)\n\n",
           session->options->debug_synchronous ? "" : " -- dataset changes rolled back");
    fflush(stdout);
    session_disconnect(session); /* it belonged to a forked process of the server */
    return session_connect(session);
}

static bool take_lines(struct session *session)
{
    struct resp_reply *reply = session_receive(session);
    bool ended;

    if (reply == NULL)
        return false;
    ended = show_lines(reply);
    if (reply->type != RESP_TYPE_ARRAY)
        session_show(session, reply);
    resp_reply_destroy(&reply);
    return !ended || end(session);
}

/* False: standard output or standard error says why. */
static bool begin(struct session *session)
{
    struct slice words[] = {SLICE("SCRIPT"), SLICE("DEBUG"),
                            session->options->debug_synchronous ? SLICE("sync") : SLICE("yes")};
    struct resp_reply *reply;
    bool is_error;

    if (!session_connect(session))
        return false;
    reply = session_call(session, words, countof(words));
    if (reply == NULL)
        return false;
    is_error = format_is_error(reply);
    if (is_error)
        fprintf(stderr, "%s\n", reply->text);
    resp_reply_destroy(&reply);
    if (is_error)
        return false;
    printf("Lua debugging session started, please use:\n"
           "quit    -- End the session.\n"
           "restart -- Restart the script in debug mode again.\n"
           "help    -- Show Lua script debugging commands.\n\n");
    reply = session_call(session, session->eval->words, session->eval->word_count);
    if (reply == NULL)
        return false;
    if (show_lines(reply)) { /* it has ended already: what follows is why */
        resp_reply_destroy(&reply);
        reply = session_receive(session);
        if (reply == NULL)
            return false;
    }
    session->is_debugging = reply->type == RESP_TYPE_ARRAY;
    if (!session->is_debugging) {
        printf("\nEval debugging session can't start:\n");
        session_show(session, reply);
    }
    resp_reply_destroy(&reply);
    return session->is_debugging;
}

bool eval_debug(struct session *session, const struct slice *words, size_t word_count)
{
    link_send(session->link, words, word_count);
    return take_lines(session);
}

bool eval_restart(struct session *session)
{
    session->is_debugging = session->debug_ended = false;
    session_disconnect(session);
    printf("\n");
    return begin(session);
}

int eval_run(struct session *session)
{
    session->eval = eval_create(session->options);
    if (session->eval == NULL || !session_connect(session))
        return 1;
    if (session->options->debug)
        return begin(session) ? -1 : 0;
    for (int64_t i = session->options->repeat; i != 0; i -= i > 0)
        if (!session_connect(session) || !session_run(session, session->eval->words, session->eval->word_count))
            return 1;
    return 0;
}
