#include "tools/cli/session.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/number.h"
#include "tools/cli/eval.h"
#include "tools/cli/replica.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------------------- interrupts -- */

static volatile sig_atomic_t interrupt_seen; /* global: set by the signal handler */

static void see_interrupt(int number)
{
    (void)number;
    interrupt_seen = 1;
}

void session_catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = see_interrupt, .sa_flags = (int)SA_RESETHAND};

    sigaction(SIGINT, &action, NULL); /* without SA_RESTART: who waits is woken; a second one ends the program */
}

bool session_interrupted(void)
{
    return interrupt_seen != 0;
}

void session_forget_interrupt(void)
{
    interrupt_seen = 0;
}

/* ------------------------------------------------------------------------------------------------- connecting -- */

/* When nobody reads the output any more, the program ends as others do, also where SIGPIPE is ignored. */
static void print(const struct buffer *text)
{
    format_write(text, stdout);
    if (fflush(stdout) == 0 || errno != EPIPE)
        return;
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
}

static void show_push(const struct resp_reply *push, void *user)
{
    const struct session *session = user;
    const struct options *options = session->options;
    struct buffer text = {0};

    if (!session->shows_pushes)
        return;
    format_push(&text, push, session->format, options->bulk_delimiter, options->reply_delimiter);
    print(&text);
    buffer_fini(&text);
}

void session_init(struct session *session, const struct options *options)
{
    bool is_terminal = isatty(STDOUT_FILENO) || getenv("FAKETTY") != NULL;

    *session = (struct session){.options = options,
                                .format = options->format,
                                .shows_pushes = options->pushes == PUSHES_YES ||
                                                (options->pushes == PUSHES_AUTO && is_terminal),
                                .link = link_create(),
                                .target = options->target,
                                .proto = 2};
    if (!options->format_given && !is_terminal && !options->debug)
        session->format = FORMAT_RAW;
    session->database = options->target.database;
    link_set_push(session->link, show_push, session);
}

void session_fini(struct session *session)
{
    eval_destroy(&session->eval);
    link_destroy(&session->link);
    mem_free(session->target_host);
    mem_free(session->user);
    mem_free(session->password);
}

void session_connect_to(struct session *session, const char *host, int port)
{
    char *copy = mem_copy_text(host);

    session_disconnect(session);
    mem_free(session->target_host);
    session->target_host = copy;
    session->target.socket_path = NULL;
    session->target.host = copy;
    session->target.port = port;
}

void session_disconnect(struct session *session)
{
    link_close(session->link);
    session->in_multi = false;
    session->replies = REPLIES_ON;
    session->proto = 2;
}

static void tell_no_connection(const struct session *session)
{
    const struct link_target *target = &session->target;

    if (link_is_tls_error(session->link))
        fprintf(stderr, "Could not negotiate a TLS connection: %s\n", link_error(session->link));
    else if (target->socket_path != NULL)
        fprintf(stderr, "Could not connect to Redis at %s: %s\n", target->socket_path, link_error(session->link));
    else
        fprintf(stderr, "Could not connect to Redis at %s:%d: %s\n", target->host, target->port,
                link_error(session->link));
}

static void tell_refused_step(const struct session *session, enum link_step step)
{
    switch (step) {
    case LINK_STEP_AUTH:
        fprintf(stderr, "AUTH failed: %s\n", link_error(session->link));
        break;
    case LINK_STEP_HELLO:
        fprintf(stderr, "HELLO 3 failed: %s\n", link_error(session->link));
        break;
    default:
        fprintf(stderr, "SELECT %d failed: %s\n", session->target.database, link_error(session->link));
        break;
    }
}

/* A step that is refused is told, and the others are done all the same, but nothing as another user than was meant. */
static bool introduce(struct session *session)
{
    for (int step = LINK_STEP_AUTH; step <= LINK_STEP_SELECT; step++) {
        enum status status = link_greet_step(session->link, &session->target, (enum link_step)step);

        if (status == STATUS_DENIED) {
            tell_refused_step(session, (enum link_step)step);
            if (step == LINK_STEP_AUTH)
                break;
            if (step == LINK_STEP_SELECT)
                session->database = session->target.database = 0;
        } else if (status != STATUS_OK) {
            fprintf(stderr, "Error: %s\n", link_error(session->link));
            return false;
        } else if (step == LINK_STEP_HELLO && session->target.proto == 3) {
            session->proto = 3;
        }
    }
    return true;
}

bool session_connect(struct session *session)
{
    if (link_is_open(session->link))
        return true;
    session_disconnect(session);
    session->target.database = session->database;
    if (link_open(session->link, &session->target) != STATUS_OK) {
        tell_no_connection(session);
        return false;
    }
    return introduce(session);
}

/* ---------------------------------------------------------------------------------------------------- replies -- */

static void tell_error(struct session *session)
{
    fflush(stdout);
    fprintf(stderr, "Error: %s\n", link_error(session->link));
    session_disconnect(session);
}

struct resp_reply *session_receive(struct session *session)
{
    struct resp_reply *reply = NULL;

    if (link_receive(session->link, LINK_FOREVER, &reply) == STATUS_OK)
        return reply;
    tell_error(session);
    return NULL;
}

struct resp_reply *session_call(struct session *session, const struct slice *words, size_t word_count)
{
    link_send(session->link, words, word_count);
    return session_receive(session);
}

void session_show(const struct session *session, const struct resp_reply *reply)
{
    struct buffer text = {0};

    format_reply(&text, reply, session->format, session->options->bulk_delimiter, session->options->reply_delimiter);
    print(&text);
    buffer_fini(&text);
}

static void show_raw(const struct session *session, const struct resp_reply *reply)
{
    struct buffer text = {0};

    format_raw(&text, reply, session->options->bulk_delimiter);
    print(&text);
    buffer_fini(&text);
}

/* --------------------------------------------------------------------------------------------------- commands -- */

static bool is(const struct slice *words, size_t count, size_t index, const char *word)
{
    return index < count && slice_equal_text_nocase(words[index], word);
}

/* Commands whose replies are texts with lines: these are printed as they are in any form. */
static bool has_text(const struct slice *words, size_t count)
{
    static const struct {
        const char *command, *subcommand;
        size_t least, most; /* words; 0: any */
    } texts[] = {
        {"info", NULL, 1, 0},
        {"lolwut", NULL, 1, 0},
        {"debug", "htstats", 2, 0},
        {"debug", "htstats-key", 2, 0},
        {"debug", "client-eviction", 2, 0},
        {"memory", "malloc-stats", 2, 0},
        {"memory", "doctor", 2, 0},
        {"cluster", "nodes", 2, 2},
        {"cluster", "info", 2, 2},
        {"client", "list", 2, 0},
        {"client", "info", 2, 0},
        {"latency", "graph", 3, 3},
        {"latency", "doctor", 2, 2},
        {"proxy", "info", 2, 0},
    };

    for (size_t i = 0; i < countof(texts); i++)
        if (is(words, count, 0, texts[i].command) &&
            (texts[i].subcommand == NULL || is(words, count, 1, texts[i].subcommand)) && count >= texts[i].least &&
            (texts[i].most == 0 || count <= texts[i].most))
            return true;
    return false;
}

static bool subscribes(const struct slice *words, size_t count)
{
    return is(words, count, 0, "subscribe") || is(words, count, 0, "psubscribe") || is(words, count, 0, "ssubscribe");
}

/* In RESP3 their only reply is a push. */
static bool unsubscribes(const struct slice *words, size_t count)
{
    return is(words, count, 0, "unsubscribe") || is(words, count, 0, "punsubscribe") ||
           is(words, count, 0, "sunsubscribe");
}

/* Ctrl-C ends the waiting for a message. It is blocked otherwise, so that none is lost while messages are printed. */
static void catch_while_waiting(struct session *session)
{
    sigset_t interrupt, before;

    session_catch_interrupts();
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    link_set_interrupted(session->link, session_interrupted, &before);
}

static void catch_no_more(struct session *session)
{
    sigset_t interrupt;

    link_set_interrupted(session->link, NULL, NULL);
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_UNBLOCK, &interrupt, NULL); /* one that is pending reaches our handler yet */
    signal(SIGINT, SIG_DFL);
    session_forget_interrupt();
}

/* While messages come faster than they are printed, nobody waits. */
static bool is_interrupt_pending(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGINT) == 1;
}

/* Prints what the server sends until it ends, an error comes, or Ctrl-C. */
static bool listen_to_messages(struct session *session)
{
    bool good = true;

    link_set_push(session->link, NULL, NULL);
    if (session->is_interactive)
        catch_while_waiting(session);
    for (;;) {
        struct resp_reply *reply = NULL;
        enum status status = link_receive(session->link, LINK_FOREVER, &reply);
        bool is_error;

        if (status == STATUS_INTERRUPTED || (status == STATUS_OK && is_interrupt_pending())) {
            /* A connection of its own is the way out of subscriptions and MONITOR. */
            resp_reply_destroy(&reply);
            session_disconnect(session);
            good = session_connect(session);
            break;
        }
        if (status != STATUS_OK) {
            tell_error(session);
            good = false;
            break;
        }
        is_error = format_is_error(reply);
        session_show(session, reply);
        resp_reply_destroy(&reply);
        if (is_error)
            break;
    }
    if (session->is_interactive)
        catch_no_more(session);
    link_set_push(session->link, show_push, session);
    return good;
}

/* The next message is the reply. */
static struct resp_reply *receive_push(struct session *session)
{
    struct resp_reply *reply;

    link_set_push(session->link, NULL, NULL);
    reply = session_receive(session);
    link_set_push(session->link, show_push, session);
    return reply;
}

static void keep(char **text, struct slice word)
{
    mem_free(*text);
    *text = mem_copy(word.data, word.size);
}

/* A connection that is opened again shall be that of the same user. */
static void note_auth(struct session *session, const struct slice *words, size_t count)
{
    if (count != 2 && count != 3)
        return;
    mem_free(session->user);
    session->user = NULL;
    if (count == 3)
        keep(&session->user, words[1]);
    keep(&session->password, words[count - 1]);
    session->target.user = session->user;
    session->target.password = session->password;
}

static void note_hello(struct session *session, const struct slice *words, size_t count)
{
    if (count > 1 && (slice_equal_text(words[1], "2") || slice_equal_text(words[1], "3"))) {
        session->proto = words[1].data[0] - '0';
        session->target.proto = session->proto;
    }
    for (size_t i = 2; i + 2 < count; i++)
        if (is(words, count, i, "auth")) {
            note_auth(session, words + i, 3);
            return;
        }
}

static void note_select(struct session *session, const struct slice *words, size_t count)
{
    int64_t number;

    if (count == 2 && number_parse_i64(words[1], &number) && number >= 0 && number <= INT32_MAX)
        session->database = (int)number;
}

static void note_reply_mode(struct session *session, const struct slice *words, size_t count)
{
    if (is(words, count, 2, "off"))
        session->replies = REPLIES_OFF;
    else if (is(words, count, 2, "skip") && session->replies == REPLIES_ON)
        session->replies = REPLIES_SKIP_NEXT;
    else if (is(words, count, 2, "on"))
        session->replies = REPLIES_ON;
}

/* What a command that succeeded has changed of the connection. */
static void note(struct session *session, const struct slice *words, size_t count, const struct resp_reply *reply)
{
    if (format_is_error(reply)) {
        if (session->in_multi && is(words, count, 0, "exec")) {
            session->in_multi = false;
            session->database = session->database_before_multi;
        }
        return;
    }
    if (is(words, count, 0, "select")) {
        note_select(session, words, count);
    } else if (is(words, count, 0, "multi")) {
        session->in_multi = true;
        session->database_before_multi = session->database;
    } else if (is(words, count, 0, "exec") && session->in_multi) {
        session->in_multi = false;
        if (reply->type == RESP_TYPE_NULL) /* nothing of it was done */
            session->database = session->database_before_multi;
    } else if (is(words, count, 0, "discard") && session->in_multi) {
        session->in_multi = false;
        session->database = session->database_before_multi;
    } else if (is(words, count, 0, "auth")) {
        note_auth(session, words, count);
    } else if (is(words, count, 0, "hello")) {
        note_hello(session, words, count);
    } else if (is(words, count, 0, "reset")) {
        session->in_multi = false;
        session->database = 0;
        session->proto = 2;
    }
}

/* "MOVED 123 10.0.0.1:7000": connects there. 1: the command is to be sent again; 0: it is no redirection; -1: an error
 * that was told. */
static int follow(struct session *session, const struct resp_reply *reply)
{
    static const struct slice asking = SLICE("ASKING");
    bool ask = format_is_error(reply) && strncmp(reply->text, "ASK ", 4) == 0;
    struct resp_reply *answer;
    const char *slot, *place, *colon;
    char *host;
    bool good;

    if (!ask && (!format_is_error(reply) || strncmp(reply->text, "MOVED ", 6) != 0))
        return 0;
    slot = strchr(reply->text, ' ') + 1;
    place = strchr(slot, ' ');
    colon = strrchr(reply->text, ':');
    if (place == NULL || colon == NULL || colon < place)
        return 0;
    place++;
    host = mem_copy(place, (size_t)(colon - place));
    if (session->format == FORMAT_TEXT && session->is_shell)
        printf("-> Redirected to slot [%d] located at %s:%d\n", atoi(slot), host, atoi(colon + 1));
    session_connect_to(session, host[0] != '\0' ? host : session->target.host, atoi(colon + 1));
    mem_free(host);
    if (!session_connect(session))
        return -1;
    if (!ask)
        return 1;
    answer = session_call(session, &asking, 1);
    good = answer != NULL && !format_is_error(answer);
    if (answer != NULL && !good)
        fprintf(stderr, "ASKING failed: %s\n", answer->text);
    resp_reply_destroy(&answer);
    return good ? 1 : -1;
}

/* Prints the reply. False: -e, and it is an error. */
static bool tell(struct session *session, const struct slice *words, size_t count, const struct resp_reply *reply)
{
    if (session->options->exit_on_error && !session->is_shell && format_is_error(reply)) {
        fprintf(stderr, "%s\n", reply->text);
        return false;
    }
    if (has_text(words, count) && reply->type != RESP_TYPE_ARRAY)
        show_raw(session, reply);
    else
        session_show(session, reply);
    return true;
}

enum { REDIRECTIONS_MOST = 16 };

/* NULL: an error that was told. */
static struct resp_reply *call_and_follow(struct session *session, const struct slice *words, size_t count)
{
    for (int i = 0;; i++) {
        struct resp_reply *reply;
        int followed = 0;

        link_send(session->link, words, count);
        reply = session->proto == 3 && unsubscribes(words, count) ? receive_push(session) : session_receive(session);
        if (reply != NULL && session->options->follow_redirections && i < REDIRECTIONS_MOST)
            followed = follow(session, reply);
        if (followed == 0)
            return reply;
        resp_reply_destroy(&reply);
        if (followed < 0)
            return NULL;
    }
}

/* The server ends: it has no reply. */
static bool shut_down(struct session *session, const struct slice *words, size_t count)
{
    struct resp_reply *reply = NULL;
    enum status status;
    bool good = true;

    link_send(session->link, words, count);
    status = link_receive(session->link, LINK_FOREVER, &reply);
    if (status == STATUS_OK)
        good = tell(session, words, count, reply);
    else if (status != STATUS_CLOSED && status != STATUS_IO) {
        tell_error(session);
        good = false;
    }
    resp_reply_destroy(&reply);
    if (status != STATUS_OK)
        session_disconnect(session);
    return good;
}

/* Nothing will be said about this command: CLIENT REPLY. */
static bool send_silently(struct session *session, const struct slice *words, size_t count)
{
    if (session->replies == REPLIES_SKIP_NEXT && !is(words, count, 1, "reply"))
        session->replies = REPLIES_ON;
    link_send(session->link, words, count);
    if (link_flush(session->link) == STATUS_OK)
        return true;
    tell_error(session);
    return false;
}

bool session_run(struct session *session, const struct slice *words, size_t word_count)
{
    struct resp_reply *reply;
    bool good;

    if (is(words, word_count, 0, "shutdown"))
        return shut_down(session, words, word_count);
    if (subscribes(words, word_count)) {
        if (session->format != FORMAT_RAW)
            printf("Reading messages... (press Ctrl-C to quit)\n");
        link_send(session->link, words, word_count);
        return listen_to_messages(session);
    }
    if (is(words, word_count, 0, "monitor")) {
        link_send(session->link, words, word_count);
        return listen_to_messages(session);
    }
    if (is(words, word_count, 0, "sync") || is(words, word_count, 0, "psync")) {
        printf("Entering replica output mode...  (press Ctrl-C to quit)\n");
        return replica_follow(session, words, word_count);
    }
    if (is(words, word_count, 0, "client") && is(words, word_count, 1, "reply"))
        note_reply_mode(session, words, word_count);
    if (session->replies != REPLIES_ON)
        return send_silently(session, words, word_count);
    reply = call_and_follow(session, words, word_count);
    if (reply == NULL)
        return false;
    note(session, words, word_count, reply);
    good = tell(session, words, word_count, reply);
    resp_reply_destroy(&reply);
    return good;
}

/* ----------------------------------------------------------------------------------------------------- prompt -- */

void session_prompt(const struct session *session, struct buffer *out)
{
    const struct link_target *target = &session->target;

    if (session->is_debugging) {
        buffer_append_text(out, "lua debugger> ");
        return;
    }
    if (!link_is_open(session->link)) {
        buffer_append_text(out, "not connected> ");
        return;
    }
    if (target->socket_path != NULL)
        buffer_printf(out, "redis %s", target->socket_path);
    else
        buffer_printf(out, strchr(target->host, ':') != NULL ? "[%s]:%d" : "%s:%d", target->host, target->port);
    if (session->database != 0)
        buffer_printf(out, "[%d]", session->database);
    buffer_append_text(out, session->in_multi ? "(TX)> " : "> ");
}
