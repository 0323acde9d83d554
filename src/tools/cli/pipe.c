#include "tools/cli/pipe.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* After the input a last command is sent, ECHO with bytes that nobody else would send: its reply is the end. */

enum { MARK_BYTES = 20, PIECE_BYTES = 64 * 1024, UNSENT_MOST_BYTES = 1024 * 1024, REPLY_MOST_BYTES = 64 };

struct pipe {
    struct session *session;
    char mark[MARK_BYTES + 1];
    bool input_ended, done;
    uint64_t heard_ms; /* the last time that something came */
    long long errors, replies;
};

static void make_mark(struct pipe *pipe)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    FILE *file = fopen("/dev/urandom", "re");
    unsigned char bytes[MARK_BYTES] = {0};

    if (file == NULL || fread(bytes, 1, sizeof(bytes), file) != sizeof(bytes))
        snprintf((char *)bytes, sizeof(bytes), "%llx%x", (unsigned long long)clock_monotonic_ns(), (unsigned)getpid());
    if (file != NULL)
        fclose(file);
    for (size_t i = 0; i < MARK_BYTES; i++)
        pipe->mark[i] = letters[bytes[i] % (sizeof(letters) - 1)];
}

/* Takes the replies that are there. False: the connection ended. */
static bool take_replies(struct pipe *pipe)
{
    struct resp_reply *reply;
    enum status status = STATUS_OK;

    while (!pipe->done) {
        status = link_receive(pipe->session->link, 0, &reply);
        if (status != STATUS_OK)
            break;
        pipe->heard_ms = clock_monotonic_ms();
        if (pipe->input_ended && reply->type == RESP_TYPE_BULK && reply->size == MARK_BYTES &&
            memcmp(reply->text, pipe->mark, MARK_BYTES) == 0) {
            printf("Last reply received from server.\n");
            pipe->done = true;
        } else {
            pipe->replies++;
            if (format_is_error(reply)) {
                fprintf(stderr, "%s\n", reply->text);
                pipe->errors++;
            }
        }
        resp_reply_destroy(&reply);
    }
    if (status == STATUS_OK || status == STATUS_TIMEOUT)
        return true;
    fprintf(stderr, "Error reading replies from server: %s\n", link_error(pipe->session->link));
    return false;
}

static bool end_input(struct pipe *pipe)
{
    const struct slice words[] = {SLICE("ECHO"), slice_make(pipe->mark, MARK_BYTES)};

    pipe->input_ended = true;
    pipe->heard_ms = clock_monotonic_ms();
    link_send_raw(pipe->session->link, SLICE("\r\n")); /* a last line that had no end */
    link_send(pipe->session->link, words, countof(words));
    printf("All data transferred. Waiting for the last reply...\n");
    fflush(stdout);
    return true;
}

static bool read_input(struct pipe *pipe)
{
    char piece[PIECE_BYTES];
    ssize_t count = read(STDIN_FILENO, piece, sizeof(piece));

    if (count > 0) {
        link_send_raw(pipe->session->link, slice_make(piece, (size_t)count));
        return true;
    }
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (count < 0) {
        fprintf(stderr, "Error reading from stdin: %s\n", strerror(errno));
        return false;
    }
    return end_input(pipe);
}

/* False: the limit of time has passed. */
static bool wait_for_either(struct pipe *pipe)
{
    const struct options *options = pipe->session->options;
    struct link *link = pipe->session->link;
    bool wants_input = !pipe->input_ended && link_unsent(link) < UNSENT_MOST_BYTES;
    struct pollfd both[] = {{.fd = link_descriptor(link), .events = POLLIN},
                            {.fd = wants_input ? STDIN_FILENO : -1, .events = POLLIN}};
    int limit_ms = -1;

    if (link_unsent(link) > 0)
        both[0].events |= POLLOUT;
    if (pipe->input_ended && options->pipe_limit_s > 0) {
        uint64_t end = pipe->heard_ms + (uint64_t)options->pipe_limit_s * 1000, now = clock_monotonic_ms();

        if (now >= end) {
            fprintf(stderr, "No replies for %d seconds: exiting.\n", options->pipe_limit_s);
            pipe->errors++;
            return false;
        }
        limit_ms = (int)MIN(end - now, (uint64_t)1000);
    }
    if (poll(both, countof(both), limit_ms) < 0 && errno != EINTR)
        return false;
    return (both[1].revents & (POLLIN | POLLHUP | POLLERR)) == 0 || read_input(pipe);
}

int pipe_run(struct session *session)
{
    struct pipe pipe = {.session = session};

    make_mark(&pipe);
    if (!session_connect(session))
        return 1;
    link_set_push(session->link, NULL, NULL);
    while (!pipe.done) {
        if (link_flush_some(session->link) != STATUS_OK) {
            fprintf(stderr, "Error writing to the server: %s\n", link_error(session->link));
            pipe.errors++;
            break;
        }
        if (link_unsent(session->link) < UNSENT_MOST_BYTES && !take_replies(&pipe)) {
            pipe.errors++;
            break;
        }
        if (!pipe.done && !wait_for_either(&pipe))
            break;
    }
    printf("errors: %lld, replies: %lld\n", pipe.errors, pipe.replies);
    return pipe.errors > 0 || !pipe.done ? 1 : 0;
}
