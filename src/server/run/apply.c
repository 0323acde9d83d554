#include "server/run/apply.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "server/command/key_list.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/run/obeyed.h"

struct apply {
    struct client *client;
    struct worker *worker;
    applied_fn on_error;
    void *context; /* its */
    uint64_t command_count;
    struct key_list keys;
};

/* --------------------------------------------------------------------------------------------------- the client -- */

static struct apply *create(struct worker *worker)
{
    struct apply *apply = mem_alloc_zero(sizeof(*apply));

    apply->worker = worker;
    apply->client = obeyed_client_create(worker, NULL);
    return apply;
}

static void destroy(struct apply **apply)
{
    if (*apply == NULL)
        return;
    obeyed_client_destroy(&(*apply)->client);
    key_list_fini(&(*apply)->keys);
    mem_free(*apply);
    *apply = NULL;
}

static void begin(struct apply *apply, applied_fn on_error, void *context)
{
    worker_assert_self(apply->worker);
    apply->on_error = on_error;
    apply->context = context;
    apply->client->db = 0;
}

static uint64_t count(const struct apply *apply)
{
    return apply->command_count;
}

/* ---------------------------------------------------------------------------------------------------- preparing -- */

static bool is_plain(const struct command *command, const char *name)
{
    return slice_equal_text(command->full_name, name);
}

/* Nobody is there yet to whom it could be published. */
static bool is_without_effect(const struct command *command)
{
    return (command->flags & COMMAND_PUBSUB) != 0 || is_plain(command, "ping");
}

static void forget(struct apply *apply)
{
    apply->keys.count = 0;
}

static enum apply_verdict prepare(struct apply *apply, const struct slice *args, uint32_t arg_count,
                                  struct applied *applied)
{
    const struct command *command = command_find(args[0]);

    if (command != NULL && command->subcommand_count != 0 && arg_count > 1)
        command = command_find_subcommand(command, args[1]);
    if (UNLIKELY(command == NULL))
        return APPLY_UNKNOWN;
    if (UNLIKELY(!command_arity_fits(command, arg_count)))
        return APPLY_ARITY;
    if (UNLIKELY(!obeyed_belongs(command)))
        return APPLY_FOREIGN;
    *applied = (struct applied){.args = args, .arg_count = arg_count, .command = command};
    applied->first_key = apply->keys.count;
    applied->key_count = key_list_add(&apply->keys, command, args, arg_count);
    return APPLY_FINE;
}

/* ----------------------------------------------------------------------------------------------------- running -- */

static void tell_error(const struct apply *apply, const struct applied *applied, struct output *out)
{
    struct buffer text = {0};

    output_to_buffer(out, &text);
    apply->on_error(applied, buffer_slice(&text), apply->context);
    buffer_fini(&text);
}

/* False: the following commands would go to another database. */
static bool run_one(struct apply *apply, const struct applied *applied, int64_t now_ms)
{
    struct worker *worker = apply->worker;
    struct access *access = &worker->run.access;
    struct request request;

    assert(applied->first_key + applied->key_count <= apply->keys.count);
    if (UNLIKELY(is_without_effect(applied->command)))
        return true;
    request_init(&request, worker, apply->client, applied->command, applied->args, applied->arg_count, &worker->sink);
    if (applied->key_count != 0)
        request_set_keys(&request, &apply->keys.items[applied->first_key], applied->key_count);
    request.in_exec = true;
    access_begin(access, now_ms, true);
    access_follow(access);
    applied->command->run(&request);
    apply->command_count++;
    if (UNLIKELY(request.failed)) {
        tell_error(apply, applied, &worker->sink);
        if (is_plain(applied->command, "select"))
            return false;
    }
    output_clear(&worker->sink);
    return true;
}

static uint32_t run(struct apply *apply, const struct applied *applied, uint32_t applied_count)
{
    int64_t now_ms = clock_wall_ms();

    worker_assert_self(apply->worker);
    gate_assert_alone();
    if (apply->client->db == 0 && apply->keys.count > 1)
        store_prefetch(apply->worker->server->store, apply->keys.items, apply->keys.count);
    for (uint32_t i = 0; i < applied_count; i++) {
        if (!run_one(apply, &applied[i], now_ms))
            return i;
    }
    return applied_count;
}

const struct applier apply_functions = {
    .create = create,
    .destroy = destroy,
    .begin = begin,
    .forget = forget,
    .prepare = prepare,
    .run = run,
    .count = count,
};
