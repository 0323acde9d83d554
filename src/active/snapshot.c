#include "active/snapshot.h"

#include "active/node.h"
#include "active/node_files.h"
#include "active/part.h"
#include "base/assert.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "server/core/exclusive.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/child.h"
#include "server/durable/loading.h"
#include "server/durable/persistence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file without a name, which goes with the last gift that has it. */
struct shared_file {
    uint32_t uses;  /* under the lock */
    int fd;         /* const */
    uint64_t bytes; /* const */
};

struct snapshot_gift {
    struct list_node node;
    struct worker *worker;             /* const: woken when the state changes */
    struct merge_hello hello;          /* const; owned */
    uint64_t number;                   /* const */
    bool may_go;                       /* under the lock: it is ready, or a member */
    bool may_be_part;                  /* const */
    bool takes_part;                   /* under the lock: the child that runs writes for it */
    struct shared_file *file;          /* under the lock, until it is ready; then const */
    _Atomic enum snapshot_state state; /* atomic: release */
};

static struct {
    struct spinlock lock;     /* rank LOCK_REGISTRY; guards the list, and the number */
    struct list gifts;        /* that wait */
    uint64_t number;          /* of the last gift */
    bool is_set_up;           /* const after the start */
    _Atomic uint32_t waiting; /* atomic: relaxed; gifts in the list */
    /* worker 0's */
    bool child_runs;
    char path[64], temp_path[64];  /* const while a child runs */
    struct persistence_sync work;  /* likewise, but for its context */
    struct part part;              /* const while a child runs */
    bool is_part;                  /* likewise: the file has a part, for one gift */
    struct rdb_save_result result; /* the child's */
} given;

/* -------------------------------------------------------------------------------------------------------- gifts -- */

static void copy_hello(struct merge_hello *to, const struct merge_hello *from)
{
    *to = (struct merge_hello){.name = from->name,
                               .origin = from->origin,
                               .clock = from->clock,
                               .incarnation = from->incarnation,
                               .ready = from->ready};
    merge_members_copy(&to->members, &from->members);
    merge_vector_copy(&to->vector, &from->vector);
    merge_vector_copy(&to->deeds, &from->deeds);
    merge_vector_copy(&to->cut, &from->cut);
    merge_vector_copy(&to->closed, &from->closed);
    merge_vector_copy(&to->removed, &from->removed);
}

static void hello_fini(struct merge_hello *hello)
{
    merge_members_fini(&hello->members);
    merge_vector_fini(&hello->vector);
    merge_vector_fini(&hello->deeds);
    merge_vector_fini(&hello->cut);
    merge_vector_fini(&hello->closed);
    merge_vector_fini(&hello->removed);
}

struct snapshot_gift *snapshot_begin(const struct merge_hello *hello, bool takes_part, struct worker *worker)
{
    struct snapshot_gift *gift = mem_alloc_zero(sizeof(*gift));

    worker_assert_self(worker);
    assert(given.is_set_up);
    gift->worker = worker;
    gift->may_go = hello->ready;
    gift->may_be_part = takes_part && hello->ready;
    copy_hello(&gift->hello, hello);
    atomic_init(&gift->state, SNAPSHOT_WAITS);
    spinlock_acquire(&given.lock);
    gift->number = ++given.number;
    list_push_back(&given.gifts, &gift->node);
    spinlock_release(&given.lock);
    (void)atomic_fetch_add_explicit(&given.waiting, 1, memory_order_relaxed);
    worker_wake(&worker->server->workers[0]);
    return gift;
}

/* Takes it out of the list, if it is there. */
static void withdraw_locked(struct snapshot_gift *gift) REQUIRES(given.lock)
{
    spinlock_assert_held(&given.lock);
    if (gift->file != NULL || snapshot_state(gift) > SNAPSHOT_MAKES)
        return;
    list_remove(&gift->node);
    (void)atomic_fetch_sub_explicit(&given.waiting, 1, memory_order_relaxed);
}

void snapshot_end(struct snapshot_gift **handle)
{
    struct snapshot_gift *gift = *handle;
    struct shared_file *file;
    bool is_last;

    if (gift == NULL)
        return;
    *handle = NULL;
    spinlock_acquire(&given.lock);
    withdraw_locked(gift);
    file = gift->file;
    is_last = file != NULL && --file->uses == 0;
    spinlock_release(&given.lock);
    if (is_last) {
        (void)close(file->fd);
        mem_free(file);
    }
    hello_fini(&gift->hello);
    mem_free(gift);
}

enum snapshot_state snapshot_state(const struct snapshot_gift *gift)
{
    return atomic_load_explicit(&gift->state, memory_order_acquire);
}

int snapshot_fd(const struct snapshot_gift *gift, uint64_t *bytes)
{
    assert(snapshot_state(gift) == SNAPSHOT_READY);
    *bytes = gift->file->bytes;
    return gift->file->fd;
}

/* ----------------------------------------------------------------------------------------------------- the child -- */

static void run_child(struct snapshot *keys, struct child_report *report, void *context)
{
    (void)context;
    given.work.context = report;
    report->status = persistence_save_sync(&given.work, keys, &given.result);
    report->keys = given.result.keys;
    report->bytes = given.result.bytes;
    (void)snprintf(report->error, sizeof(report->error), "%s", given.result.error);
}

static struct shared_file *open_file(void)
{
    struct shared_file *file;
    struct stat facts;
    int fd = open(given.path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &facts) != 0) {
        log_warning("Can't read the state for peers: %s: %s", given.path, strerror(errno));
        if (fd >= 0)
            (void)close(fd);
        return NULL;
    }
    file = mem_alloc_zero(sizeof(*file));
    file->fd = fd;
    file->bytes = (uint64_t)facts.st_size;
    return file;
}

/* The gifts of the child that has ended get the file; NULL: they have failed. Returns how many. */
static uint32_t hand_out(struct shared_file *file)
{
    struct worker *worker = server_instance()->workers;
    uint32_t count = 0;

    spinlock_acquire(&given.lock);
    LIST_FOREACH_SAFE(node, &given.gifts) {
        struct snapshot_gift *gift = container_of(node, struct snapshot_gift, node);

        if (!gift->takes_part)
            continue;
        withdraw_locked(gift);
        if (file != NULL)
            file->uses++;
        gift->file = file;
        atomic_store_explicit(&gift->state, file != NULL ? SNAPSHOT_READY : SNAPSHOT_FAILED, memory_order_release);
        count++;
    }
    spinlock_release(&given.lock);
    for (unsigned i = 0; i < worker->server->worker_count; i++)
        worker_wake(&worker->server->workers[i]);
    return count;
}

/* A child has begun to write for those who take part. */
static void tell_it_is_made(struct server *server)
{
    spinlock_acquire(&given.lock);
    LIST_FOREACH(node, &given.gifts) {
        struct snapshot_gift *gift = container_of(node, struct snapshot_gift, node);

        if (gift->takes_part)
            atomic_store_explicit(&gift->state, SNAPSHOT_MAKES, memory_order_release);
    }
    spinlock_release(&given.lock);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_wake(&server->workers[i]);
}

static void child_done(const struct child_report *report, void *context)
{
    struct shared_file *file = NULL;

    (void)context;
    given.child_runs = false;
    if (report->is_last && report->status == STATUS_OK)
        file = open_file();
    else
        log_warning("Can't save the state for peers: %s", report->error);
    if (file != NULL)
        log_notice("The state for peers: %llu keys, %llu bytes", (unsigned long long)report->keys,
                   (unsigned long long)file->bytes);
    (void)unlink(given.path);
    (void)unlink(given.temp_path);
    if (hand_out(file) == 0 && file != NULL) { /* nobody wants it any more */
        (void)close(file->fd);
        mem_free(file);
    }
}

/* -------------------------------------------------------------------------------------------------- at the gate -- */

static void prepare(void)
{
    static const struct rdb_aux mark = {RDB_AUX_ORDER_PART, {"1", 1}};

    (void)snprintf(given.path, sizeof(given.path), "temp-state-%d.rdb", (int)getpid());
    (void)snprintf(given.temp_path, sizeof(given.temp_path), "temp-state-%d.part", (int)getpid());
    (void)unlink(given.path);
    (void)unlink(given.temp_path);
    given.work = (struct persistence_sync){.path = given.path,
                                           .temp_path = given.temp_path,
                                           .least_version = rdb_version_for_all(),
                                           .most_version = rdb_version_for_all(),
                                           .without_libraries = given.is_part,
                                           .with_order = true,
                                           .aux = &mark,
                                           .aux_count = given.is_part ? 1 : 0,
                                           .progress = child_tell_keys};
    persistence_note_moment();
    persistence_prepare_sync(&given.work);
}

/* Copies the hello of one that is to become a member. 0: there is none. */
static uint64_t find_newcomer(struct merge_hello *hello)
{
    uint64_t number = 0;

    spinlock_acquire(&given.lock);
    LIST_FOREACH(node, &given.gifts) {
        const struct snapshot_gift *gift = container_of(node, struct snapshot_gift, node);

        if (gift->may_go || gift->takes_part)
            continue;
        number = gift->number;
        copy_hello(hello, &gift->hello);
        break;
    }
    spinlock_release(&given.lock);
    return number;
}

static void let_go(uint64_t number)
{
    spinlock_acquire(&given.lock);
    LIST_FOREACH(node, &given.gifts) {
        struct snapshot_gift *gift = container_of(node, struct snapshot_gift, node);

        gift->may_go = gift->may_go || gift->number == number;
    }
    spinlock_release(&given.lock);
}

/* A newcomer is a member, on the disk, before the state goes. */
static void make_members(void)
{
    struct merge_hello hello;
    uint64_t number;

    while ((number = find_newcomer(&hello)) != 0) {
        const bool is_member = node_sponsor(&hello);

        hello_fini(&hello);
        if (!is_member)
            break; /* soon */
        let_go(number);
    }
}

/* One that may get a part, if it can be told what it lacks. */
static bool choose_part(void)
{
    struct merge_account account = {.clock = 0};
    bool is_chosen = false;

    node_account(&account);
    spinlock_acquire(&given.lock);
    LIST_FOREACH(node, &given.gifts) {
        struct snapshot_gift *gift = container_of(node, struct snapshot_gift, node);

        if (gift->may_go && gift->may_be_part && part_make(&given.part, &account.deeds, &gift->hello.vector)) {
            gift->takes_part = true;
            is_chosen = true;
            break;
        }
    }
    spinlock_release(&given.lock);
    merge_account_fini(&account);
    return is_chosen;
}

/* Returns how many take part. */
static uint32_t choose(bool starts)
{
    uint32_t count = 0;

    spinlock_acquire(&given.lock);
    LIST_FOREACH(node, &given.gifts) {
        struct snapshot_gift *gift = container_of(node, struct snapshot_gift, node);

        if (!gift->may_go)
            continue;
        gift->takes_part = starts;
        count++;
    }
    spinlock_release(&given.lock);
    return count;
}

static void start(struct worker *worker)
{
    struct access *access = &worker->run.access;
    struct child_task task = {.kind = CHILD_STATE,
                              .run = run_child,
                              .done = child_done,
                              .context = worker,
                              .access = access,
                              .keys_total = persistence_key_count(worker->server->store),
                              .has_order = true};
    uint32_t count;

    gate_assert_alone();
    access_begin(access, worker_now_ms(worker), true);
    part_fini(&given.part);
    given.is_part = choose_part();
    count = given.is_part ? 1 : choose(true);
    if (count == 0)
        return;
    task.choice = given.is_part ? &given.part.choice : NULL;
    prepare();
    given.child_runs = child_start(&task);
    if (given.child_runs) {
        tell_it_is_made(worker->server);
        log_notice("Background saving of the state for %u peers started by %s%s", count, child_name(CHILD_STATE),
                   given.is_part ? ": the part that is missing there" : "");
    } else {
        log_warning("Can't save the state for peers: %s", strerror(errno));
        (void)hand_out(NULL);
    }
}

static void look(struct worker *worker)
{
    worker_assert_zero(worker);
    if (atomic_load_explicit(&given.waiting, memory_order_relaxed) == 0 || given.child_runs ||
        !child_may_start(CHILD_STATE) || loading_runs() || loading_replaces() || !active_is_on() ||
        server_is_stopping(worker->server)) {
        exclusive_drop(worker, GATE_WISH_STATE);
        return;
    }
    make_members();
    if (choose(false) == 0) {
        exclusive_drop(worker, GATE_WISH_STATE);
        return;
    }
    if (!exclusive_begin(worker, GATE_WISH_STATE))
        return; /* looks again when it is woken */
    if (!loading_runs() && child_may_start(CHILD_STATE))
        start(worker);
    exclusive_end(worker);
}

static void woken(struct worker *worker)
{
    if (worker->index == 0 && UNLIKELY(atomic_load_explicit(&given.waiting, memory_order_relaxed) != 0 ||
                                       exclusive_is_wished(worker, GATE_WISH_STATE)))
        look(worker);
}

static void sample(struct server *server)
{
    look(&server->workers[0]);
}

static bool set_up(struct server *server)
{
    (void)server;
    spinlock_init(&given.lock, LOCK_REGISTRY);
    list_init(&given.gifts);
    given.is_set_up = true;
    return true;
}

const struct lifecycle snapshot_lifecycle = {
    .server_start = set_up,
    .server_sample = sample,
    .worker_wake = woken,
};
