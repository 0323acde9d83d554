#include "server/run/migrate.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutex.h"
#include "base/number.h"
#include "base/thread.h"
#include "persist/rdb_payload.h"
#include "server/command/command.h"
#include "server/config/command_block.h"
#include "server/core/client.h"
#include "server/core/deliveries.h"
#include "server/core/lifecycle.h"
#include "server/core/server.h"
#include "server/core/transaction.h"
#include "server/durable/file_options.h"
#include "server/run/dispatch.h"
#include "server/run/pause.h"
#include "store/effects.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { TRIES_MOST = 100, SECOND = 1 };

struct moving_key {
    struct key key;                  /* its own bytes */
    size_t payload_at, payload_size; /* in the order's commands; size 0: the key is gone, DEL was sent */
    bool is_sent;                    /* command `command` of the order is about it */
    uint32_t command;
    bool is_over; /* moved, copied or refused */
};

struct migration {
    struct list_node node;       /* registry */
    struct list_node queue_node; /* of the thread, then of the worker's `answered` */
    struct mail mail;
    struct worker *worker;
    struct client *client; /* owner: the worker; NULL: it has gone */
    bool is_silent;
    unsigned db, tries;
    bool copies, replaces;
    bool is_killed;  /* its client was: then no key is deleted here any more */
    bool is_demoted; /* likewise, as this server has become a replica */
    struct moving_key *keys;
    struct key *keys_to_hold; /* the same keys, in a row */
    uint32_t key_count;
    struct migrate_order order;
};

static struct spinlock registry_lock;           /* global; rank LOCK_REGISTRY */
static struct list registry;                    /* global, guarded by registry_lock: of struct migration */
static pthread_once_t once = PTHREAD_ONCE_INIT; /* global */

/* The thread. Global; the mutex guards the queue and the two flags. */
static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static struct list queue;
static struct thread thread;
static bool thread_stops;

static struct list answered[WORKERS_MOST]; /* global, each worker's own: of struct migration, by queue_node */

static void setup_once(void)
{
    spinlock_init(&registry_lock, LOCK_REGISTRY);
    list_init(&registry);
    migrate_links_setup();
    list_init(&queue);
    for (unsigned i = 0; i < WORKERS_MOST; i++)
        list_init(&answered[i]);
}

/* ------------------------------------------------------------------------------------------------------ payloads -- */

static void append_restore(struct migration *migration, struct moving_key *moving, const struct entry *entry,
                           int64_t now_ms)
{
    const struct rdb_write_options options = rdb_payload_options();
    struct buffer *commands = &migration->order.commands;
    int64_t expire_ms = entry_expire_ms(entry), ttl_ms = 0;
    char ttl[NUMBER_I64_SPACE];
    struct rdb_writer writer;
    struct slice words[5] = {SLICE("RESTORE"), moving->key.name};

    if (expire_ms != EXPIRE_NEVER)
        ttl_ms = MAX(expire_ms - now_ms, INT64_C(1));
    rdb_writer_init(&writer, &options, NULL);
    rdb_payload_write(&writer, entry);
    words[2] = slice_make(ttl, number_format_i64(ttl, ttl_ms));
    words[3] = buffer_slice(&writer.out);
    words[4] = SLICE("REPLACE");
    assert(writer.out.size != 0);
    moving->payload_size = writer.out.size;
    migrate_append_words(commands, words, migration->replaces || migration->tries > 0 ? 5 : 4);
    moving->payload_at = commands->size - writer.out.size - 2;
    if (migration->replaces || migration->tries > 0)
        moving->payload_at -= sizeof("$7\r\nREPLACE\r\n") - 1;
    rdb_writer_fini(&writer);
}

static void append_del(struct migration *migration, struct moving_key *moving)
{
    const struct slice words[] = {SLICE("DEL"), moving->key.name};

    migrate_append_words(&migration->order.commands, words, 2);
    moving->payload_size = 0;
}

/* Writes commands for the keys that are not done. A key that does not exist is skipped, unless it existed before. */
static void write_commands(struct migration *migration, struct access *access)
{
    struct migrate_order *order = &migration->order;

    buffer_clear(&order->commands);
    order->count = 0;
    for (uint32_t i = 0; i < migration->key_count; i++) {
        struct moving_key *moving = &migration->keys[i];
        const struct entry *entry;

        moving->is_sent = false;
        if (moving->is_over)
            continue;
        entry = access_peek(access, migration->db, &moving->key);
        if (entry != NULL)
            append_restore(migration, moving, entry, access->now_ms);
        else if (migration->tries > 0)
            append_del(migration, moving);
        else
            moving->is_over = true;
        if (moving->is_over)
            continue;
        moving->is_sent = true;
        moving->command = order->count++;
    }
}

static bool is_unchanged(const struct migration *migration, const struct moving_key *moving, struct access *access)
{
    const struct rdb_write_options options = rdb_payload_options();
    const struct entry *entry = access_peek(access, migration->db, &moving->key);
    struct rdb_writer writer;
    bool same;

    if (entry == NULL || moving->payload_size == 0)
        return entry == NULL && moving->payload_size == 0;
    rdb_writer_init(&writer, &options, NULL);
    rdb_payload_write(&writer, entry);
    same = slice_equal(buffer_slice(&writer.out),
                       slice_make(migration->order.commands.data + moving->payload_at, moving->payload_size));
    rdb_writer_fini(&writer);
    return same;
}

/* ------------------------------------------------------------------------------------------------------- replies -- */

/* The whole line, with its code. */
static void describe_end(const struct migration *migration, char *text, size_t size)
{
    const struct migrate_order *order = &migration->order;

    if (order->error[0] != '\0')
        (void)snprintf(text, size, "ERR Target instance replied with error: %s", order->error);
    else if (order->end == MIGRATE_NO_ADDRESS)
        (void)snprintf(text, size, "IOERR error or timeout connecting to the client");
    else if (order->end != MIGRATE_DONE)
        (void)snprintf(text, size, "IOERR error or timeout %s to target instance",
                       order->end == MIGRATE_NOT_READ ? "reading" : "writing");
    else if (migration->is_demoted)
        (void)snprintf(text, size, "READONLY You can't write against a read only replica.");
    else if (migration->tries >= TRIES_MOST)
        (void)snprintf(text, size, "ERR a key changes faster than MIGRATE can move it");
    else
        text[0] = '\0';
}

/* ------------------------------------------------------------------------------------------------------- the end -- */

static void migration_destroy(struct migration *migration)
{
    for (uint32_t i = 0; i < migration->key_count; i++)
        mem_free((char *)(uintptr_t)migration->keys[i].key.name.data);
    mem_free(migration->keys);
    mem_free(migration->keys_to_hold);
    mem_free(migration->order.host);
    mem_free(migration->order.port);
    mem_free((char *)(uintptr_t)migration->order.user.data);
    mem_free((char *)(uintptr_t)migration->order.password.data);
    mem_free(migration->order.accepted);
    buffer_fini(&migration->order.commands);
    mem_free(migration);
}

/* Peers get an operation for each key. */
static void tell_deleted(const struct migration *migration, struct access *access, struct slice *words, uint32_t count)
{
    struct journal *journal = &migration->worker->server->journal;

    if (access->effects == NULL || count < 2)
        return;
    if (LIKELY(!journal_has_peers(journal))) {
        effects_add(access->effects, migration->db, words, count);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        const struct slice one[] = {words[0], words[i]};

        effects_add(access->effects, migration->db, one, countof(one));
        effects_describe(access->effects, 1, EFFECT_OVERWRITES);
    }
}

/* Deletes the keys that have arrived there; keys that have changed meanwhile have to be sent again. Returns whether
 * there are any. */
static bool take_away(struct migration *migration, struct access *access)
{
    struct slice *words = mem_alloc((migration->key_count + 1) * sizeof(*words));
    bool again = false;
    uint32_t count = 1;

    words[0] = SLICE("DEL");
    for (uint32_t i = 0; i < migration->key_count; i++) {
        struct moving_key *moving = &migration->keys[i];

        if (!moving->is_sent)
            continue;
        assert(!moving->is_over && moving->command < migration->order.count);
        if (!migration->order.accepted[moving->command] || migration->copies || migration->is_killed) {
            moving->is_over = true;
        } else if (is_unchanged(migration, moving, access)) {
            moving->is_over = true;
            if (access_delete(access, migration->db, &moving->key))
                words[count++] = moving->key.name;
        } else {
            again = true;
        }
    }
    tell_deleted(migration, access, words, count);
    mem_free(words);
    return again;
}

static void settle_held(struct worker *worker, void *context)
{
    struct migration *migration = context;
    struct access *access = &worker->run.access;

    if ((command_blocks() & COMMAND_BLOCK_READONLY) != 0) {
        migration->is_demoted = true;
        migration->order.count = 0;
        return;
    }
    if (take_away(migration, access) && migration->order.end == MIGRATE_DONE && migration->tries < TRIES_MOST) {
        migration->tries++;
        write_commands(migration, access);
    } else {
        migration->order.count = 0;
    }
    access->found_key = NULL; /* it may point at ours */
}

static void leave_registry(struct migration *migration)
{
    struct server *server = server_instance();
    bool empty;

    worker_assert_outside(migration->worker);
    spinlock_acquire(&registry_lock);
    list_remove(&migration->node);
    empty = list_is_empty(&registry);
    if (empty)
        command_block_set(COMMAND_BLOCK_MOVING, false);
    spinlock_release(&registry_lock);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_wake_parked(&server->workers[i], PARKING_PAUSE); /* parked commands may continue */
}

static void reply_end(struct migration *migration)
{
    struct client *client = migration->client;
    char text[512];

    if (client == NULL)
        return;
    client_assert_owned(client);
    describe_end(migration, text, sizeof(text));
    if (text[0] != '\0')
        worker_count_error(migration->worker, slice_from_text(text));
    if (!migration->is_silent && text[0] != '\0')
        resp_write_error_text(&client->conn.output, text);
    else if (!migration->is_silent)
        resp_write_ok(&client->conn.output);
    client_unblock(client);
}

/* ---------------------------------------------------------------------------------------------------- the thread -- */

static void deliver_answer(struct worker *worker, struct mail *mail)
{
    struct migration *migration = container_of(mail, struct migration, mail);

    assert(worker == migration->worker);
    list_push_back(&answered[worker->index], &migration->queue_node);
}

static void set_deadline(struct timespec *until)
{
    clock_gettime(CLOCK_REALTIME, until);
    until->tv_sec += SECOND;
}

/* The next one, or NULL: nothing for a second, or the end. */
static struct migration *next_in_queue(bool *stops)
{
    struct list_node *node;
    struct timespec until;

    mutex_lock(&queue_mutex);
    if (list_is_empty(&queue) && !thread_stops) {
        set_deadline(&until);
        (void)pthread_cond_timedwait(&queue_filled, &queue_mutex, &until);
    }
    node = list_first(&queue);
    if (node != NULL)
        list_remove(node);
    *stops = thread_stops;
    mutex_unlock(&queue_mutex);
    return node != NULL ? container_of(node, struct migration, queue_node) : NULL;
}

static void work(void *argument)
{
    struct migrate_links *links = migrate_links_create();
    bool stops = false;

    (void)argument;
    while (!stops) {
        struct migration *migration = next_in_queue(&stops);
        struct mail *mail;

        if (migration != NULL && !stops) {
            migrate_link_run(links, &migration->order);
            mail = &migration->mail;
            mail->deliver = deliver_answer;
            worker_post(migration->worker, &mail);
        }
        migrate_links_close_idle(links);
    }
    migrate_links_destroy(&links);
}

/* In the worker, no lock held. */
static void submit(struct worker *worker, struct mail *mail)
{
    struct migration *migration = container_of(mail, struct migration, mail);

    worker_assert_outside(worker);
    mutex_lock(&queue_mutex);
    if (!thread.started && !thread_stops)
        thread_start(&thread, "migrate", work, NULL);
    list_push_back(&queue, &migration->queue_node);
    pthread_cond_signal(&queue_filled);
    mutex_unlock(&queue_mutex);
}

/* False: something is in the way, and we will be woken. */
static bool finish(struct worker *worker, struct migration *migration)
{
    if (!dispatch_run_unasked(worker, migration->keys_to_hold, migration->key_count, settle_held, migration))
        return false;
    list_remove(&migration->queue_node);
    if (migration->order.count != 0) {
        submit(worker, &migration->mail);
        return true;
    }
    leave_registry(migration);
    reply_end(migration);
    migration_destroy(migration);
    return true;
}

static void woken(struct worker *worker)
{
    if (LIKELY(!migrate_is_on()) || worker->reentrant || pause_holds_writes())
        return;
    LIST_FOREACH_SAFE(node, &answered[worker->index]) {
        if (!finish(worker, container_of(node, struct migration, queue_node)))
            break;
    }
    if (worker->has_deferred)
        worker_run_deferred(worker);
}

/* ------------------------------------------------------------------------------------------------------- holding -- */

static bool is_moving_locked(struct slice name)
{
    spinlock_assert_held(&registry_lock);
    LIST_FOREACH(node, &registry) {
        const struct migration *migration = container_of(node, struct migration, node);

        for (uint32_t i = 0; i < migration->key_count && !migration->copies; i++) {
            if (slice_equal(migration->keys[i].key.name, name))
                return true;
        }
    }
    return false;
}

/* Keys of any database: COPY and MOVE have two. What needs more than its keys, or may, waits for all. */
bool migrate_holds(const struct client *client, const struct command *command, const struct slice *args,
                   uint32_t arg_count, const struct key *keys, uint32_t key_count)
{
    enum access_class class;
    bool is_held = false;

    client_assert_owned(client);
    if (command->row->access == ACCESS_TRANSACTION)
        return client->transaction != NULL && transaction_may_write(client->transaction);
    if (!command_may_write(command, args, arg_count))
        return false;
    class = command_access(command, args, arg_count);
    if ((command->flags & COMMAND_SCRIPT) != 0 || class != ACCESS_STRIPED)
        return class != ACCESS_FREE && class != ACCESS_GATED;
    spinlock_acquire(&registry_lock);
    for (uint32_t i = 0; i < key_count && !is_held; i++)
        is_held = is_moving_locked(keys[i].name);
    spinlock_release(&registry_lock);
    return is_held;
}

static void forget(struct client *client, bool is_killed)
{
    if (LIKELY(!migrate_is_on()))
        return;
    spinlock_acquire(&registry_lock);
    LIST_FOREACH(node, &registry) {
        struct migration *migration = container_of(node, struct migration, node);

        if (migration->client != client)
            continue;
        migration->client = NULL;
        migration->is_killed = is_killed;
    }
    spinlock_release(&registry_lock);
}

/* ----------------------------------------------------------------------------------------------------- the begin -- */

static struct slice copy_text(struct slice text)
{
    return text.data != NULL ? slice_make(mem_copy(text.data, text.size), text.size) : text;
}

static struct migration *migration_create(const struct request *request, struct migrate_wish *wish)
{
    struct migration *migration = mem_alloc_zero(sizeof(*migration));

    list_node_init(&migration->node);
    list_node_init(&migration->queue_node);
    migration->worker = request->worker;
    migration->db = request->db;
    migration->copies = wish->copies;
    migration->replaces = wish->replaces;
    migration->order = (struct migrate_order){.host = wish->host,
                                              .port = wish->port,
                                              .db = wish->db,
                                              .timeout_ms = wish->timeout_ms,
                                              .user = copy_text(wish->user),
                                              .password = copy_text(wish->password)};
    migration->keys = mem_alloc_zero((request->key_count + 1) * sizeof(*migration->keys));
    migration->keys_to_hold = mem_alloc((request->key_count + 1) * sizeof(struct key));
    migration->order.accepted = mem_alloc_zero((request->key_count + 1) * sizeof(bool));
    for (uint32_t i = 0; i < request->key_count; i++) {
        struct moving_key *moving = &migration->keys[migration->key_count++];

        moving->key = request->keys[i];
        moving->key.name = slice_make(mem_copy(moving->key.name.data, moving->key.name.size), moving->key.name.size);
        migration->keys_to_hold[i] = moving->key;
    }
    return migration;
}

static void begin(struct request *request, struct migration *migration)
{
    struct client *client = request->client;
    struct mail *mail = &migration->mail;

    client_assert_owned(client);
    migration->client = client; /* before it can be found: other workers look whether it is one of theirs */
    migration->is_silent = (client->flags & (CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP)) != 0;
    spinlock_acquire(&registry_lock);
    list_push_back(&registry, &migration->node);
    command_block_set(COMMAND_BLOCK_MOVING, true);
    spinlock_release(&registry_lock);
    request->blocked = true;
    client_block(client, NULL);
    mail->deliver = submit;
    deliveries_post_mail(request->worker, request->worker, mail); /* read at the turn's end, when no lock is held */
}

/* Runs with the locks held: for callers that must not be interrupted. */
static void run_at_once(struct request *request, struct migration *migration)
{
    const bool were_excused = spinlock_stripes_are_excused;
    char text[512];

    spinlock_excuse_stripes(true); /* of EXEC, too: whoever wants its keys waits for the network with it */
    migrate_link_run(NULL, &migration->order);
    spinlock_excuse_stripes(were_excused);
    (void)take_away(migration, request->access);
    effect_none(request); /* DEL was told */
    request->access->found_key = NULL;
    describe_end(migration, text, sizeof(text));
    if (text[0] != '\0')
        reply_error(request, text);
    else
        reply_ok(request);
    migration_destroy(migration);
}

void migrate_run(struct request *request, struct migrate_wish *wish)
{
    struct migration *migration;

    worker_assert_inside(request->worker);
    pthread_once(&once, setup_once);
    migration = migration_create(request, wish);
    write_commands(migration, request->access);
    request->access->found_key = NULL; /* it may point at ours */
    if (migration->order.count == 0) {
        reply_status(request, "NOKEY");
        migration_destroy(migration);
    } else if (request->in_exec) {
        run_at_once(request, migration);
    } else {
        begin(request, migration);
    }
}

void migrate_stop(void)
{
    gate_assert_main_alone();
    pthread_once(&once, setup_once);
    mutex_lock(&queue_mutex);
    thread_stops = true;
    pthread_cond_signal(&queue_filled);
    mutex_unlock(&queue_mutex);
    migrate_links_interrupt();
    thread_join(&thread);
}

void migrate_teardown(void)
{
    thread_assert_main();
    assert(!thread.started);
    LIST_FOREACH_SAFE(node, &registry) {
        list_remove(node);
        migration_destroy(container_of(node, struct migration, node));
    }
    migrate_links_teardown();
}

static void kill_client(struct client *client)
{
    forget(client, true);
}

static void withdraw(struct client *client)
{
    forget(client, false);
}

const struct lifecycle migrate_lifecycle = {
    .worker_wake = woken,       /* unfinished work is tried again */
    .client_kill = kill_client, /* its keys stay here */
    .client_withdraw = withdraw,
};
