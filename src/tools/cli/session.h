/* session.h: a conversation with one server: connecting and connecting again, commands and the printing of their
 * replies, and what the server remembers of the connection (database, transaction, protocol).
 *
 * It prints to standard output and standard error, but never ends the program. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "tools/cli/options.h"
#include "tools/link/link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct eval;

struct session {
    const struct options *options;
    enum format format;
    bool shows_pushes;
    bool is_shell;       /* commands come from standard input */
    bool is_interactive; /* and somebody types them */
    struct link *link;
    struct link_target target; /* where it is connected, or will be; follows CONNECT and redirections */
    char *target_host;         /* owned texts of the target; NULL: those of the options */
    char *user, *password;     /* likewise, from AUTH */
    int database;              /* the connection's; after DISCARD that of before MULTI */
    int database_before_multi;
    int proto; /* 2 or 3: the connection's */
    bool in_multi;
    bool is_debugging; /* the script debugger talks */
    bool debug_ended;  /* it has ended; the rest of the output is the script's reply */
    struct eval *eval; /* owned; NULL: none */
    enum { REPLIES_ON, REPLIES_OFF, REPLIES_SKIP_NEXT } replies; /* CLIENT REPLY */
};

/* `options` stays the caller's. */
void session_init(struct session *session, const struct options *options);
void session_fini(struct session *session);

/* Connects if there is no connection, and introduces itself. False: there is none now, and standard error says why. */
must_check bool session_connect(struct session *session);
void session_connect_to(struct session *session, const char *host, int port); /* for the next session_connect */
void session_disconnect(struct session *session);

/* Sends a command and prints its reply. False: an error of the connection, or with -e an error reply; standard error
 * has it. Commands that change the conversation (SUBSCRIBE, MONITOR, SYNC, SHUTDOWN) are known. */
must_check bool session_run(struct session *session, const struct slice *words, size_t word_count);

/* Sends a command, for a mode that looks at the reply itself. NULL: an error of the connection; standard error has
 * "Error: ...". The caller owns the reply. */
must_check struct resp_reply *session_call(struct session *session, const struct slice *words, size_t word_count);
must_check struct resp_reply *session_receive(struct session *session);

/* The prompt: "127.0.0.1:6379[3](TX)> ". */
void session_prompt(const struct session *session, struct buffer *out);

void session_show(const struct session *session, const struct resp_reply *reply); /* prints it in the chosen form */

/* Ctrl-C, in the modes that end by it. */
void session_catch_interrupts(void);
bool session_interrupted(void); /* it was pressed since the last session_forget_interrupt */
void session_forget_interrupt(void);
