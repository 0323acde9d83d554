#include "tools/cli/replica.h"

#include "base/buffer.h"
#include "base/mem.h"
#include "base/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The payload of SYNC is "$SIZE\r\n" and so many bytes, or "$EOF:MARK\r\n", bytes, and the mark of 40 bytes again. Line
 * feeds may come before, while the server prepares it. */

enum { MARK_BYTES = 40, LINE_BYTES_MOST = 1024, PIECE_BYTES = 64 * 1024, ACKNOWLEDGE_MS = 1000 };

struct payload {
    bool has_mark;
    char mark[MARK_BYTES];
    uint64_t size; /* without a mark */
};

static void replconf(struct session *session, const char *name, const char *value)
{
    const struct slice words[] = {SLICE("REPLCONF"), slice_from_text(name), slice_from_text(value)};
    struct resp_reply *reply;

    fprintf(stderr, "sending REPLCONF %s %s\n", name, value);
    reply = session_call(session, words, countof(words));
    if (reply != NULL && format_is_error(reply))
        fprintf(stderr, "REPLCONF %s error: %s\n", name, reply->text);
    resp_reply_destroy(&reply);
}

/* Valkey writes what that version of it can load which it is told; without one it fails where fields have deadlines.
 * Others are told nothing: our server would take this for a Valkey. */
static void tell_valkey(struct session *session)
{
    static const struct slice words[] = {SLICE("INFO"), SLICE("server")};
    struct resp_reply *reply = session_call(session, words, countof(words));
    const bool is_valkey = reply != NULL && !format_is_error(reply) && reply->text != NULL &&
                           strstr(reply->text, "\nvalkey_version:") != NULL;

    resp_reply_destroy(&reply);
    if (is_valkey)
        replconf(session, "version", "9.0.0");
}

static bool read_line(struct session *session, char line[LINE_BYTES_MOST])
{
    size_t size = 0, count;

    for (;;) {
        char c;

        if (link_read(session->link, LINK_FOREVER, &c, 1, &count) != STATUS_OK) {
            fprintf(stderr, "Error reading bulk length while SYNCing\n");
            return false;
        }
        if (c == '\n' && size == 0)
            continue;
        if (c == '\n')
            break;
        if (size + 1 < LINE_BYTES_MOST)
            line[size++] = c;
    }
    if (line[size - 1] == '\r')
        size--;
    line[size] = '\0';
    return true;
}

/* Also skips "+FULLRESYNC ..." of PSYNC. */
static bool begin(struct session *session, struct payload *payload)
{
    char line[LINE_BYTES_MOST];

    do
        if (!read_line(session, line))
            return false;
    while (line[0] == '+' && strncmp(line, "+FULLRESYNC", 11) == 0);
    *payload = (struct payload){0};
    if (line[0] == '$' && strncmp(line + 1, "EOF:", 4) == 0 && strlen(line + 5) == MARK_BYTES) {
        payload->has_mark = true;
        memcpy(payload->mark, line + 5, MARK_BYTES);
        return true;
    }
    if (line[0] == '$' && number_parse_u64(slice_from_text(line + 1), &payload->size))
        return true;
    fprintf(stderr, "SYNC with master failed: %s\n", line);
    return false;
}

/* Gives the bytes of the payload to `take`, in order; the mark is kept back. False: the connection or `take` failed. */
static bool receive(struct session *session, const struct payload *payload, uint64_t *total,
                    bool (*take)(void *user, const char *data, size_t size), void *user)
{
    char *data = mem_alloc(PIECE_BYTES + MARK_BYTES);
    size_t held = 0; /* bytes at the beginning of `data` that may be the mark's */
    bool good = true, ended = !payload->has_mark && payload->size == 0;

    *total = 0;
    while (good && !ended) {
        size_t room = PIECE_BYTES, count = 0, out;

        if (!payload->has_mark)
            room = (size_t)MIN((uint64_t)room, payload->size - *total);
        good = link_read(session->link, LINK_FOREVER, data + held, room, &count) == STATUS_OK;
        if (!good)
            break;
        out = held + count;
        if (payload->has_mark) {
            ended = out >= MARK_BYTES && memcmp(data + out - MARK_BYTES, payload->mark, MARK_BYTES) == 0;
            held = MIN(out, (size_t)MARK_BYTES);
            out -= held;
        }
        *total += out;
        good = out == 0 || take(user, data, out);
        if (payload->has_mark && out > 0)
            memmove(data, data + out, held);
        if (!payload->has_mark)
            ended = *total == payload->size;
    }
    mem_free(data);
    return good;
}

/* --------------------------------------------------------------------------------------------------------- RDB -- */

static bool write_all(void *user, const char *data, size_t size)
{
    const int *descriptor = user;

    while (size > 0) {
        ssize_t count = write(*descriptor, data, size);

        if (count < 0 && errno != EINTR) {
            fprintf(stderr, "Error writing data to file: %s\n", strerror(errno));
            return false;
        }
        data += count > 0 ? count : 0;
        size -= count > 0 ? (size_t)count : 0;
    }
    return true;
}

int replica_run_rdb(struct session *session)
{
    static const struct slice sync = SLICE("SYNC");
    const char *path = session->options->rdb_file;
    const bool to_output = strcmp(path, "-") == 0;
    struct payload payload;
    uint64_t total = 0;
    int descriptor = STDOUT_FILENO;
    bool good;

    if (!session_connect(session))
        return 1;
    tell_valkey(session);
    replconf(session, "capa", "eof");
    replconf(session, "rdb-only", "1");
    if (session->options->mode == MODE_FUNCTIONS_RDB)
        replconf(session, "rdb-filter-only", "functions");
    link_send(session->link, &sync, 1);
    if (!begin(session, &payload))
        return 1;
    if (payload.has_mark)
        fprintf(stderr, "SYNC sent to master, writing bytes of bulk transfer until EOF marker to '%s'\n", path);
    else
        fprintf(stderr, "SYNC sent to master, writing %llu bytes to '%s'\n", (unsigned long long)payload.size, path);
    if (!to_output) {
        descriptor = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
        if (descriptor < 0) {
            fprintf(stderr, "Error opening '%s': %s\n", path, strerror(errno));
            return 1;
        }
    }
    good = receive(session, &payload, &total, write_all, &descriptor);
    if (!good && link_error(session->link)[0] != '\0')
        fprintf(stderr, "I/O Error reading RDB payload from socket: %s\n", link_error(session->link));
    if (good && !to_output && fsync(descriptor) != 0) {
        fprintf(stderr, "Fail to fsync '%s': %s\n", path, strerror(errno));
        good = false;
    }
    if (!to_output && close(descriptor) != 0)
        good = false;
    if (!good)
        return 1;
    fprintf(stderr, "Transfer finished with success after %llu bytes\n", (unsigned long long)total);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------ stream -- */

static bool discard(void *user, const char *data, size_t size)
{
    (void)user;
    (void)data;
    (void)size;
    return true;
}

/* A server without a file waits for this before it sends what comes next, but only once its child has ended: an early
 * one is lost. So it is said each second; that also shows that somebody is there. */
static void acknowledge(struct session *session)
{
    static const struct slice words[] = {SLICE("REPLCONF"), SLICE("ACK"), SLICE("0")};

    link_send(session->link, words, countof(words));
    status_ignore(link_flush(session->link), "the next read tells");
}

static void print_commands(struct session *session)
{
    struct resp_reply *reply;
    enum status status = STATUS_OK;

    while (status == STATUS_OK || status == STATUS_TIMEOUT) {
        status = link_receive(session->link, ACKNOWLEDGE_MS, &reply);
        if (status == STATUS_TIMEOUT)
            acknowledge(session);
        if (status == STATUS_OK)
            session_show(session, reply);
        resp_reply_destroy(&reply);
    }
    fprintf(stderr, "Error: %s\n", link_error(session->link));
}

bool replica_follow(struct session *session, const struct slice *words, size_t word_count)
{
    struct payload payload;
    uint64_t total;

    link_send(session->link, words, word_count);
    if (!begin(session, &payload))
        return false;
    if (payload.has_mark)
        fprintf(stderr, "SYNC with master, discarding bytes of bulk transfer until EOF marker...\n");
    else
        fprintf(stderr, "SYNC with master, discarding %llu bytes of bulk transfer...\n",
                (unsigned long long)payload.size);
    if (!receive(session, &payload, &total, discard, NULL)) {
        fprintf(stderr, "Error reading RDB payload while SYNCing\n");
        return false;
    }
    fprintf(stderr, "SYNC done after %llu bytes. Logging commands from master.\n", (unsigned long long)total);
    if (payload.has_mark)
        fprintf(stderr, "sending REPLCONF ACK 0\n");
    acknowledge(session);
    session->format = FORMAT_CSV;
    print_commands(session);
    return false;
}

int replica_run_stream(struct session *session)
{
    static const struct slice sync = SLICE("SYNC");

    if (!session_connect(session))
        return 1;
    tell_valkey(session);
    replconf(session, "capa", "eof");
    replconf(session, "rdb-filter-only", "");
    return replica_follow(session, &sync, 1) ? 0 : 1;
}
