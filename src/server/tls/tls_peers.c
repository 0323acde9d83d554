#include "server/tls/tls_peers.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/gate.h"
#include "base/glob.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "base/thread.h"
#include "base/words.h"
#include "net/tls.h"
#include "server/config/config.h"
#include "server/core/client.h"
#include "server/core/deferred_log.h"
#include "server/core/request.h"
#include "server/core/worker.h"
#include "server/observe/timing.h"

#include <stdio.h>
#include <string.h>

/* A list never changes; it is replaced. So a thread with a reference matches without the lock. */
struct patterns {
    _Atomic uint32_t refs; /* atomic: release on leaving, acquire by the last */
    size_t count;
    struct slice items[]; /* in one allocation with their bytes */
};

static struct {
    struct spinlock lock;                        /* rank LOCK_REGISTRY */
    struct patterns *allowed GUARDED_BY(lock);   /* NULL: everybody */
    struct patterns *unaudited GUARDED_BY(lock); /* NULL: nobody is written down */
    bool started;                                /* const while workers run */
} peers;                                         /* global: one server, one pair of lists */

/* ------------------------------------------------------------------------------------------------------- lists -- */

static struct patterns *patterns_create(const struct slice *words, size_t count)
{
    struct patterns *patterns;
    size_t bytes = 0;
    char *at;

    for (size_t i = 0; i < count; i++)
        bytes += words[i].size;
    if (bytes == 0)
        return NULL; /* no words, or only empty ones: no list */
    patterns = mem_alloc(sizeof(*patterns) + count * sizeof(*patterns->items) + bytes);
    atomic_init(&patterns->refs, 1);
    patterns->count = 0;
    at = (char *)&patterns->items[count];
    for (size_t i = 0; i < count; i++) {
        if (words[i].size == 0)
            continue;
        memcpy(at, words[i].data, words[i].size);
        patterns->items[patterns->count++] = slice_make(at, words[i].size);
        at += words[i].size;
    }
    assert(at == (char *)&patterns->items[count] + bytes);
    return patterns;
}

static struct patterns *patterns_acquire(struct patterns *const *list)
{
    struct patterns *patterns;

    spinlock_acquire(&peers.lock);
    patterns = *list;
    if (patterns != NULL)
        atomic_fetch_add_explicit(&patterns->refs, 1, memory_order_relaxed);
    spinlock_release(&peers.lock);
    return patterns;
}

static void patterns_release(struct patterns *patterns)
{
    uint32_t before = patterns == NULL ? 0 : atomic_fetch_sub_explicit(&patterns->refs, 1, memory_order_acq_rel);

    assert(patterns == NULL || before != 0);
    if (before == 1)
        mem_free(patterns);
}

static bool set_list(struct patterns **list, const char *name, const struct slice *words, size_t count, char *error,
                     size_t error_size)
{
    struct patterns *old;

    gate_assert_alone();
    if (!peers.started && *list != NULL) {
        snprintf(error, error_size, "%s may only be set once", name);
        return false;
    }
    spinlock_acquire(&peers.lock);
    old = *list;
    *list = patterns_create(words, count);
    spinlock_release(&peers.lock);
    patterns_release(old);
    return true;
}

static void get_list(struct patterns *const *list, struct buffer *buffer)
{
    struct patterns *patterns = patterns_acquire(list);

    for (size_t i = 0; patterns != NULL && i < patterns->count; i++) {
        buffer_append_text(buffer, i == 0 ? "" : " ");
        if (words_needs_quote(patterns->items[i]))
            words_quote(buffer, patterns->items[i]);
        else
            buffer_append(buffer, patterns->items[i].data, patterns->items[i].size);
    }
    patterns_release(patterns);
}

static bool set_allowed(const struct option_row *row, const struct slice *words, size_t count, char *error,
                        size_t error_size)
{
    return set_list(&peers.allowed, row->name, words, count, error, error_size);
}

static void get_allowed(const struct option_row *row, struct buffer *buffer)
{
    (void)row;
    get_list(&peers.allowed, buffer);
}

static bool set_unaudited(const struct option_row *row, const struct slice *words, size_t count, char *error,
                          size_t error_size)
{
    return set_list(&peers.unaudited, row->name, words, count, error, error_size);
}

static void get_unaudited(const struct option_row *row, struct buffer *buffer)
{
    (void)row;
    get_list(&peers.unaudited, buffer);
}

static const struct option_row peer_options[] = {
    ROW_SPECIAL("tls-allowlist", set_allowed, get_allowed, "", OPTION_MUTABLE | OPTION_MULTI_ARG | OPTION_ARRAY,
                "Patterns: TLS clients whose certificate has no matching name are disconnected."),
    ROW_SPECIAL("tls-auditlog-blocklist", set_unaudited, get_unaudited, "", OPTION_MULTI_ARG | OPTION_ARRAY,
                "Patterns: commands of TLS clients whose certificate has no matching name are logged."),
};

void tls_peers_setup(void)
{
    gate_assert_main_alone();
    spinlock_init(&peers.lock, LOCK_REGISTRY);
    config_add_rows(peer_options, countof(peer_options));
}

void tls_peers_teardown(void)
{
    gate_assert_main_alone();
    patterns_release(peers.allowed);
    patterns_release(peers.unaudited);
    peers.allowed = peers.unaudited = NULL;
    peers.started = false;
}

/* --------------------------------------------------------------------------------------------------- admission -- */

static bool name_fits(const char *name, size_t size, void *user)
{
    const struct patterns *patterns = user;

    for (size_t i = 0; i < patterns->count; i++) {
        if (glob_match(patterns->items[i], slice_make(name, size), true))
            return true;
    }
    return false;
}

static bool is_allowed(const struct client *client)
{
    struct patterns *patterns = patterns_acquire(&peers.allowed);
    bool allowed = patterns == NULL || tls_conn_peer_match_names(&client->conn, name_fits, patterns);

    patterns_release(patterns);
    return allowed;
}

/* Names come from outside: nothing in them may look like another line of the log. */
static void print_name(struct slice name, struct buffer *text)
{
    if (words_needs_quote(name))
        words_quote(text, name);
    else
        buffer_append(text, name.data, name.size);
}

static void log_refused(const struct client *client)
{
    char name[256];
    struct buffer text = {0};

    if (!tls_conn_peer_has_certificate(&client->conn)) {
        log_warning("Client without a certificate is not on the allowlist: %s", client->card.address);
        return;
    }
    print_name(slice_make(name, tls_conn_peer_common_name(&client->conn, name, sizeof(name))), &text);
    log_warning("Client CN (%.*s) and SANs not found in allowlist.", (int)text.size, text.data);
    buffer_fini(&text);
}

static void begin_audit(struct client *client)
{
    struct patterns *patterns = patterns_acquire(&peers.unaudited);
    char fingerprint[TLS_FINGERPRINT_BYTES];

    assert(client->audit == NULL);
    if (patterns == NULL)
        return;
    if (tls_conn_peer_fingerprint(&client->conn, fingerprint, sizeof(fingerprint)) == 0)
        snprintf(fingerprint, sizeof(fingerprint), "no-certificate");
    if (tls_conn_peer_match_names(&client->conn, name_fits, patterns)) {
        log_notice("Audit Log: disabled for %s", fingerprint);
    } else {
        log_notice("Audit Log: enabled for %s", fingerprint);
        client->audit = mem_copy_text(fingerprint);
        timing_want_commands(1);
    }
    patterns_release(patterns);
}

static bool admit(struct client *client)
{
    client_assert_owned(client);
    if (!is_allowed(client)) {
        log_refused(client);
        conn_close(&client->conn);
        return false;
    }
    begin_audit(client);
    return true;
}

static void leave(struct client *client)
{
    client_assert_owned(client);
    if (client->audit == NULL)
        return;
    mem_free(client->audit);
    client->audit = NULL;
    timing_want_commands(-1);
}

/* ------------------------------------------------------------------------------------------------------- audit -- */

static void note_command(const struct request *request)
{
    struct slice name = request->command->full_name;
    struct buffer keys = {0};

    worker_assert_self(request->worker);
    if (request->client->audit == NULL)
        return;
    for (uint32_t i = 0; i < request->key_count; i++) {
        buffer_append_text(&keys, i == 0 ? ", keys: " : "");
        print_name(request->keys[i].name, &keys);
        buffer_append_char(&keys, ' ');
    }
    deferred_log(request->worker, LOG_LEVEL_NOTICE, "Audit Log: %s, cmd %.*s%s", request->client->audit, (int)name.size,
                 name.data, buffer_text(&keys));
    buffer_fini(&keys);
}

static bool start(struct server *server)
{
    thread_assert_main();
    assert(!peers.started);
    (void)server;
    peers.started = true; /* the files have been read: from now on a list may be set anew */
    timing_on_command(note_command);
    return true;
}

const struct lifecycle tls_peers_lifecycle = {
    .server_start = start,
    .client_admit = admit, /* after its handshake; closed if it is not on the allowlist (the log says so) */
    .client_close = leave,
};
