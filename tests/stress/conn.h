/* A connection of a client: commands are collected, sent in one piece, and replies read one after the other.
 * Owned by one thread. A reply is a piece of the input buffer, valid until the next call that reads. */
#pragma once

#include "stress.h"

struct text {
    char *data;
    size_t size, room;
};

void text_append(struct text *text, const char *data, size_t size);
void text_printf(struct text *text, const char *format, ...) PRINTF(2, 3);
void text_fini(struct text *text);

struct raw { /* a whole reply as it came */
    const char *data;
    size_t size;
};

enum got { GOT_REPLY, GOT_CLOSED, GOT_NOTHING /* in time */ };

struct conn {
    int fd; /* -1: closed */
    int64_t id;
    int worker; /* -1: unknown */
    struct text out;
    struct text in;
    size_t in_done;
};

/* False: the server does not accept. */
bool conn_open(struct conn *conn, int port);
/* The same, and dies when it fails; asks for the id; selects the database. */
void conn_start(struct conn *conn, int port, int db);
/* False: the connection was closed meanwhile, as happens where others kill. */
bool conn_try_start(struct conn *conn, int port, int db);
void conn_close(struct conn *conn);
void conn_reset(struct conn *conn); /* closes by RST */

/* Adds a command to what will be sent; words are separated by single spaces. */
void conn_add(struct conn *conn, const char *format, ...) PRINTF(2, 3);
void conn_add_args(struct conn *conn, int count, const char *const *args, const size_t *sizes);
/* Sends the added commands. False: closed. */
bool conn_send(struct conn *conn);
enum got conn_read(struct conn *conn, struct raw *reply, double seconds);
/* A reply that is there already, without waiting. */
enum got conn_poll(struct conn *conn, struct raw *reply);

/* One command, sent now; its reply comes later. Dies where the connection is closed. */
void conn_post(struct conn *conn, const char *format, ...) PRINTF(2, 3);
bool conn_is_silent(struct conn *conn); /* open, and no reply is there; one that is there is taken */
int conn_worker(struct conn *conn);     /* asks which worker it belongs to */

int64_t conn_lock_waits(struct conn *conn); /* asks how many commands were parked so far */

/* One command, one reply, with a long limit; dies where none comes. */
struct raw conn_ask(struct conn *conn, const char *format, ...) PRINTF(2, 3);

extern double reply_limit_seconds;

/* Every worker has clients: else a test says little. */
bool server_is_spread(struct conn *conn, int threads);

/* --- contents of a reply --- */

size_t raw_size(const char *data, size_t size); /* of the reply at the beginning; 0: it is not whole yet */

bool raw_is_error(struct raw raw);
bool raw_is_null(struct raw raw);
bool raw_is_int(struct raw raw);
bool raw_is_string(struct raw raw); /* of either kind */
bool raw_is_array(struct raw raw);
int64_t raw_number(struct raw raw);    /* of an integer, or of a string of digits, or an array's length; else -1 */
struct raw raw_string(struct raw raw); /* the bytes of a string, an error or an integer */
struct raw raw_child(struct raw array, size_t index);
bool raw_says(struct raw raw, const char *text);
/* "field:123" in an INFO text; -1 where it is missing. */
int64_t info_number(struct raw info, const char *field);
/* A reply in one line for messages. */
const char *raw_show(struct raw raw, char *room, size_t size);
