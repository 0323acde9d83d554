/* DEBUG UNDO: runs commands and takes them back, for tests of store/undo.h. */
#include "commands/debug/debug_priv.h"

#include "base/array.h"
#include "base/mem.h"
#include "persist/slot_digest.h"
#include "server/command/key_list.h"
#include "server/core/request.h"
#include "server/core/worker.h"
#include "server/run/dispatch.h"
#include "store/undo.h"

/* One key of a command that was run. */
struct undone {
    struct key_undo *undo;
    struct slot_sum before; /* the key's digest then */
    unsigned db;
    uint32_t run; /* the number of its run */
    char *name;
    size_t name_size;
};

/* global, guarded by the gate: what was run and not taken back, the newest last. */
static struct {
    struct undone *items;
    uint32_t count, capacity;
    uint32_t runs;
    struct store *store; /* of the keys */
} taken;

static struct key key_of(const struct undone *undone)
{
    return key_make(slice_make(undone->name, undone->name_size));
}

static struct slot_sum digest_of(struct access *access, unsigned db, const struct key *key)
{
    const struct slot_terms terms = {.secret = slot_secret_of(SLICE("undo"))};
    const struct entry *entry = access_look(access, db, key);
    struct slot_sum sum;

    return entry != NULL && slot_digest_of(&terms, db, entry, &sum) ? sum : (struct slot_sum){{0, 0}};
}

static bool is_same(struct slot_sum a, struct slot_sum b)
{
    return a.words[0] == b.words[0] && a.words[1] == b.words[1];
}

static void drop_newest(struct access *access)
{
    struct undone *undone = &taken.items[--taken.count];

    key_undo_release(access, &undone->undo);
    mem_free(undone->name);
}

/* A command among the arguments: words first ... end - 1. NULL: an error was replied. */
static const struct command *command_in(struct request *request, uint32_t first, uint32_t end)
{
    const struct command *command = first < end ? command_find_operation(request_arg(request, first)) : NULL;

    if (command != NULL && command->subcommand_count != 0 && end - first > 1)
        command = command_find_subcommand(command, request_arg(request, first + 1));
    if (command != NULL && (command->flags & COMMAND_WRITE) != 0 && command_arity_fits(command, end - first))
        return command;
    reply_error(request, "ERR no such write command");
    return NULL;
}

/* Behind the command that begins there. */
static uint32_t end_of(const struct request *request, uint32_t first)
{
    while (first < request->arg_count && !slice_equal_text(request_arg(request, first), ";"))
        first++;
    return first;
}

static bool is_noted(uint32_t first, const struct key *key)
{
    for (uint32_t i = first; i < taken.count; i++) {
        if (slice_equal(key_of(&taken.items[i]).name, key->name))
            return true;
    }
    return false;
}

static void note_keys(struct request *request, const struct key_list *keys)
{
    const uint32_t first = taken.count;

    for (uint32_t i = 0; i < keys->count; i++) {
        const struct key *key = &keys->items[i];

        if (is_noted(first, key))
            continue;
        *ARRAY_PUSH(&taken) = (struct undone){.before = digest_of(request->access, request->db, key),
                                              .db = request->db,
                                              .run = taken.runs,
                                              .name = mem_copy(key->name.data, key->name.size),
                                              .name_size = key->name.size};
    }
}

/* Returns how many keys have changed; -1: one without an undo. */
static int64_t take_undos(struct request *request, uint32_t first)
{
    struct access *access = request->access;
    int64_t changed = 0;

    for (uint32_t i = first; i < taken.count && changed >= 0; i++) {
        struct undone *undone = &taken.items[i];
        const struct key key = key_of(undone);

        undone->undo = undo_take(access, undone->db, &key);
        if (undone->undo != NULL)
            changed++;
        else if (!is_same(undone->before, digest_of(access, undone->db, &key)))
            changed = -1;
    }
    return changed;
}

static void run_one(struct request *request, uint32_t first, uint32_t end)
{
    const struct command *command = command_in(request, first, end);
    struct key_list keys = {0};

    key_list_add(&keys, command, request->args + first, end - first);
    dispatch_run_nested(request, command, request->args + first, end - first, keys.items, keys.count, NULL, 0);
    key_list_fini(&keys);
}

/* Replies what the commands reply, and how many keys they have changed. */
static void undo_run(struct request *request)
{
    const uint32_t first = taken.count;
    struct key_list keys = {0};
    uint32_t commands = 0;
    int64_t changed;

    for (uint32_t at = 3, end; at <= request->arg_count; at = end + 1, commands++) {
        const struct command *command = command_in(request, at, end = end_of(request, at));

        if (command == NULL)
            goto out;
        key_list_add(&keys, command, request->args + at, end - at);
    }
    taken.runs++;
    taken.store = request->access->store;
    note_keys(request, &keys);
    reply_array(request, commands + 1);
    undo_begin(request->access);
    for (uint32_t at = 3, end; at <= request->arg_count; at = end + 1)
        run_one(request, at, end = end_of(request, at));
    changed = take_undos(request, first);
    undo_end(request->access);
    if (changed >= 0)
        reply_int(request, changed);
    else
        reply_error(request, "ERR a key has changed without an undo");
out:
    key_list_fini(&keys);
}

/* Takes back the newest run; false: a key is not what it was. */
static bool back_one(struct access *access)
{
    const uint32_t run = taken.items[taken.count - 1].run;
    bool same = true;

    for (uint32_t i = taken.count; i-- > 0 && taken.items[i].run == run;) {
        const struct key key = key_of(&taken.items[i]);

        if (taken.items[i].undo != NULL)
            undo_apply(access, taken.items[i].db, &key, taken.items[i].undo);
        key_undo_release(access, &taken.items[i].undo);
    }
    while (taken.count != 0 && taken.items[taken.count - 1].run == run) {
        const struct undone *last = &taken.items[taken.count - 1];
        const struct key key = key_of(last);

        same = same && is_same(last->before, digest_of(access, last->db, &key));
        drop_newest(access);
    }
    return same;
}

/* Replies how many runs were taken back. */
static void undo_back(struct request *request)
{
    int64_t most = INT64_MAX, done = 0;

    if (request->arg_count > 3 && !request_arg_i64(request, 3, &most))
        return;
    for (; done < most && taken.count != 0; done++) {
        if (!back_one(request->access)) {
            reply_error(request, "ERR a key is not what it was");
            return;
        }
    }
    reply_int(request, done);
}

static void undo_bytes(struct request *request)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < taken.count; i++)
        bytes += taken.items[i].undo != NULL ? key_undo_bytes(taken.items[i].undo) : 0;
    reply_int(request, (int64_t)bytes);
}

static void debug_undo(struct request *request)
{
    gate_assert_alone();
    if (request_arg_is(request, 2, "run") && request->arg_count > 3) {
        undo_run(request);
    } else if (request_arg_is(request, 2, "back") && request->arg_count <= 4) {
        undo_back(request);
    } else if (request_arg_is(request, 2, "bytes") && request->arg_count == 3) {
        undo_bytes(request);
    } else if (request_arg_is(request, 2, "forget") && request->arg_count == 3) {
        while (taken.count != 0)
            drop_newest(request->access);
        reply_ok(request);
    } else {
        debug_refuse(request);
    }
}

static void debug_keep_expired(struct request *request)
{
    int64_t keeps;

    gate_assert_alone();
    if (!request_arg_range(request, 2, 0, 1, &keeps, "ERR 0 or 1"))
        return;
    store_keep_expired(request->access->store, STORE_KEEPS_ACTIVE, keeps != 0);
    reply_ok(request);
}

void debug_undo_close(void)
{
    struct access access = {.store = taken.store, .exclusive = true};

    gate_assert_main_alone();
    while (taken.count != 0)
        drop_newest(&access);
    ARRAY_FINI(&taken);
}

const struct debug_row debug_undo_rows[] = {
    {"keep-expired", "<0|1>",
     "With 1, expired keys and members stay as on an active node: until a write\nchanges the key, or all nodes agree.",
     debug_keep_expired, 3, 3, ACCESS_EXCLUSIVE, 0, 0},
    {"undo", "RUN <command> [<arg> ...] [; <command> ...] | BACK [<count>] | BYTES | FORGET",
     "Run a command so that it can be taken back, take back the last ones of these,\nreturn the memory that this "
     "takes, "
     "or forget them. Only on this server.",
     debug_undo, 3, UINT32_MAX, ACCESS_EXCLUSIVE, 0, 0},
    {0},
};
