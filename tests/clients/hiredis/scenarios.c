/* hiredis: one function a scenario, see ../run. A function gives what went wrong, or NULL. */
#include <hiredis/hiredis.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIPELINED 1000

static char problem[512];

static redisContext *plain(void)
{
    struct timeval patience = {.tv_sec = 30};
    redisContext *context = redisConnectWithTimeout("127.0.0.1", atoi(getenv("PORT")), patience);

    if (context == NULL || context->err) {
        printf("not ok connect: %s\n", context ? context->errstr : "no memory");
        exit(1);
    }
    redisSetTimeout(context, patience);
    return context;
}

/* The reply as text: integers in decimal, nil as "(nil)", elements separated by blanks. */
static void describe(const redisReply *reply, char *text, size_t size)
{
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        snprintf(text, size, "%lld", reply->integer);
        break;
    case REDIS_REPLY_NIL:
        snprintf(text, size, "(nil)");
        break;
    case REDIS_REPLY_ARRAY:
        text[0] = 0;
        for (size_t i = 0; i < reply->elements; i++) {
            size_t used = strlen(text);

            if (i > 0 && used + 1 < size) {
                text[used++] = ' ';
                text[used] = 0;
            }
            describe(reply->element[i], text + used, size - used);
        }
        break;
    default:
        snprintf(text, size, "%s", reply->str);
    }
}

static const char *expect(redisReply *reply, const char *wanted)
{
    char text[256];

    if (reply == NULL)
        return "no reply";
    describe(reply, text, sizeof text);
    freeReplyObject(reply);
    if (strcmp(text, wanted) == 0)
        return NULL;
    snprintf(problem, sizeof problem, "%.200s instead of %.200s", text, wanted);
    return problem;
}

/* Sends commands of single words, each with the reply it has to have. The last row is empty. */
struct step {
    const char *command;
    const char *reply;
};

static const char *walk(redisContext *context, const struct step *steps)
{
    for (; steps->command != NULL; steps++) {
        const char *failure = expect(redisCommand(context, steps->command), steps->reply);

        if (failure != NULL)
            return failure;
    }
    return NULL;
}

static const char *scenario_connect(void)
{
    static const struct step steps[] = {
        {"PING", "PONG"},
        {"SELECT 2", "OK"},
        {"SET c:connect x", "OK"},
        {"GET c:connect", "x"},
        {"SELECT 0", "OK"},
        {"GET c:connect", "(nil)"},
        {"CLIENT SETNAME scenario", "OK"},
        {"CLIENT GETNAME", "scenario"},
        {NULL, NULL},
    };
    redisContext *context = plain();
    const char *failure = walk(context, steps);

    redisFree(context);
    return failure;
}

static const char *scenario_pipeline(void)
{
    redisContext *context = plain();
    const char *failure = NULL;
    redisReply *reply;

    for (int i = 0; i < PIPELINED; i++) {
        redisAppendCommand(context, "SET c:%d %d", i, i);
        redisAppendCommand(context, "INCR c:%d", i);
    }
    for (int i = 0; i < PIPELINED && failure == NULL; i++) {
        char wanted[32];

        snprintf(wanted, sizeof wanted, "%d", i + 1);
        reply = NULL;
        redisGetReply(context, (void **)&reply);
        failure = expect(reply, "OK");
        if (failure == NULL) {
            reply = NULL;
            redisGetReply(context, (void **)&reply);
            failure = expect(reply, wanted);
        }
    }
    redisFree(context);
    return failure;
}

static const char *scenario_multi(void)
{
    static const struct step steps[] = {
        {"SET c:n 0", "OK"},
        {"MULTI", "OK"},
        {"INCR c:n", "QUEUED"},
        {"INCRBY c:n 10", "QUEUED"},
        {"GET c:n", "QUEUED"},
        {"EXEC", "1 11 11"},
        {"EXEC", "ERR EXEC without MULTI"},
        {"MULTI", "OK"},
        {"SET c:n", "ERR wrong number of arguments for 'set' command"},
        {"EXEC", "EXECABORT Transaction discarded because of previous errors."},
        {NULL, NULL},
    };
    redisContext *context = plain();
    const char *failure = walk(context, steps);

    redisFree(context);
    return failure;
}

static const char *scenario_watch(void)
{
    static const struct step before[] = {{"WATCH c:w", "OK"}, {NULL, NULL}};
    static const struct step between[] = {{"SET c:w 2", "OK"}, {NULL, NULL}};
    static const struct step after[] = {
        {"MULTI", "OK"},         {"SET c:w 3", "QUEUED"}, {"EXEC", "(nil)"}, {"WATCH c:w", "OK"}, {"MULTI", "OK"},
        {"SET c:w 4", "QUEUED"}, {"EXEC", "OK"},          {"GET c:w", "4"},  {NULL, NULL},
    };
    redisContext *context = plain();
    redisContext *other = plain();
    const char *failure = walk(context, before);

    if (failure == NULL)
        failure = walk(other, between);
    if (failure == NULL)
        failure = walk(context, after);
    redisFree(context);
    redisFree(other);
    return failure;
}

static const char *scenario_unix(void)
{
    static const struct step steps[] = {{"SET c:unix 1", "OK"}, {"INCR c:unix", "2"}, {NULL, NULL}};
    redisContext *context = redisConnectUnix(getenv("UNIX_SOCKET"));
    const char *failure;

    if (context == NULL || context->err)
        return "cannot connect";
    failure = walk(context, steps);
    redisFree(context);
    return failure;
}

static const char *scenario_large(void)
{
    static const size_t sizes[] = {16384, 32767, 32768, 1 << 20, 20 << 20};
    redisContext *context = plain();
    const char *failure = NULL;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && failure == NULL; i++) {
        char *value = malloc(sizes[i]);
        redisReply *reply;

        if (value == NULL)
            return "no memory";
        for (size_t at = 0; at < sizes[i]; at++)
            value[at] = (char)(at * 31 + at / 251);
        failure = expect(redisCommand(context, "SET c:large %b", value, sizes[i]), "OK");
        reply = failure ? NULL : redisCommand(context, "GET c:large");
        if (failure == NULL &&
            (reply == NULL || (size_t)reply->len != sizes[i] || memcmp(reply->str, value, sizes[i]) != 0))
            failure = "it came back differently";
        if (reply != NULL)
            freeReplyObject(reply);
        free(value);
    }
    if (failure == NULL)
        failure = expect(redisCommand(context, "DEL c:large"), "1");
    redisFree(context);
    return failure;
}

static const char *scenario_reconnect(void)
{
    redisContext *context = plain();
    redisContext *other = plain();
    redisReply *reply = redisCommand(context, "CLIENT ID");
    long long id = reply ? reply->integer : 0;
    const char *failure;

    if (reply != NULL)
        freeReplyObject(reply);
    failure = expect(redisCommand(other, "CLIENT KILL ID %lld", id), "1");
    if (failure == NULL && redisCommand(context, "PING") != NULL)
        failure = "the killed connection still answers";
    if (failure == NULL && redisReconnect(context) != REDIS_OK)
        failure = "cannot connect again";
    if (failure == NULL)
        failure = expect(redisCommand(context, "PING"), "PONG");
    redisFree(context);
    redisFree(other);
    return failure;
}

static const char *scenario_errors(void)
{
    static const struct step steps[] = {
        {"SET c:text text", "OK"},
        {"INCR c:text", "ERR value is not an integer or out of range"},
        {"NOSUCH a", "ERR unknown command 'NOSUCH', with args beginning with: 'a' "},
        {"GET", "ERR wrong number of arguments for 'get' command"},
        {"PING", "PONG"},
        {NULL, NULL},
    };
    redisContext *context = plain();
    const char *failure = walk(context, steps);

    redisFree(context);
    return failure;
}

int main(void)
{
    static const struct {
        const char *name;
        const char *(*run)(void);
    } scenarios[] = {
        {"connect", scenario_connect},     {"pipeline", scenario_pipeline}, {"multi", scenario_multi},
        {"watch", scenario_watch},         {"unix", scenario_unix},         {"large", scenario_large},
        {"reconnect", scenario_reconnect}, {"errors", scenario_errors},
    };

    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        const char *failure = scenarios[i].run();

        if (failure == NULL)
            printf("ok %s\n", scenarios[i].name);
        else
            printf("not ok %s: %s\n", scenarios[i].name, failure);
        fflush(stdout);
    }
    return 0;
}
