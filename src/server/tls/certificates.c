#include "server/tls/certificates.h"

#include "base/assert.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "base/thread.h"
#include "net/tls.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/core/lifecycle.h"
#include "server/core/worker.h"
#include "server/observe/info_moment.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_COUNT = 6, US_PER_SECOND = 1000000 };

/* Distinguishes versions of the files; compared as bytes. All zero: the file does not exist. */
struct file_stamps {
    struct {
        struct timespec modified;
        off_t size;
        ino_t inode;
        dev_t device;
    } files[FILE_COUNT];
};

static _Atomic int64_t option_tls_rotation;             /* global: option storage; bool */
static _Atomic int64_t option_tls_auto_reload_interval; /* global: option storage; seconds */

static struct {
    struct spinlock lock;                         /* rank LOCK_REGISTRY */
    struct tls_context *context GUARDED_BY(lock); /* NULL: none */
    uint64_t version GUARDED_BY(lock);          /* counts contexts: shows that a context was made from older options */
    struct file_stamps stamps GUARDED_BY(lock); /* of the files that were read, or could not be used */
    _Atomic bool is_looking;                    /* atomic: acquire/release; a job is under way */
} current;                                      /* global: one server, one set of certificates */

/* ------------------------------------------------------------------------------------------------------- making -- */

static struct tls_options options_now(void)
{
    return (struct tls_options){
        .cert_file = option_tls_cert_file.data,
        .key_file = option_tls_key_file.data,
        .key_file_pass = option_tls_key_file_pass.data,
        .client_cert_file = option_tls_client_cert_file.data,
        .client_key_file = option_tls_client_key_file.data,
        .client_key_file_pass = option_tls_client_key_file_pass.data,
        .ca_cert_file = option_tls_ca_cert_file.data,
        .ca_cert_dir = option_tls_ca_cert_dir.data,
        .dh_params_file = option_tls_dh_params_file.data,
        .protocols = option_tls_protocols.data,
        .ciphers = option_tls_ciphers.data,
        .ciphersuites = option_tls_ciphersuites.data,
        .prefer_server_ciphers = OPTION_IS(option_tls_prefer_server_ciphers),
        .session_caching = OPTION_IS(option_tls_session_caching),
        .session_cache_size = (uint32_t)OPTION_GET(option_tls_session_cache_size),
        .session_cache_timeout_s = (uint32_t)OPTION_GET(option_tls_session_cache_timeout),
        .auth_clients = (enum tls_auth_clients)OPTION_GET(option_tls_auth_clients),
    };
}

static const char **text_at(struct tls_options *options, unsigned index)
{
    const char **texts[] = {&options->cert_file,        &options->key_file,
                            &options->client_cert_file, &options->client_key_file,
                            &options->ca_cert_file,     &options->ca_cert_dir,
                            &options->key_file_pass,    &options->client_key_file_pass,
                            &options->dh_params_file,   &options->protocols,
                            &options->ciphers,          &options->ciphersuites};

    return index < countof(texts) ? texts[index] : NULL; /* the first FILE_COUNT are files that rotate */
}

static void look_at_files(struct tls_options *options, struct file_stamps *stamps)
{
    spinlock_assert_may_sleep();
    memset(stamps, 0, sizeof(*stamps));
    for (unsigned i = 0; i < FILE_COUNT; i++) {
        const char *path = *text_at(options, i);
        struct stat facts;

        if (path == NULL || stat(path, &facts) != 0)
            continue;
        stamps->files[i].modified = facts.st_mtim;
        stamps->files[i].size = facts.st_size;
        stamps->files[i].inode = facts.st_ino;
        stamps->files[i].device = facts.st_dev;
    }
}

struct tls_context *certificates_acquire(void)
{
    struct tls_context *context = NULL;

    spinlock_acquire(&current.lock);
    if (current.context != NULL)
        context = tls_context_acquire(current.context);
    spinlock_release(&current.lock);
    return context;
}

uint64_t certificates_version(void)
{
    uint64_t version;

    spinlock_acquire(&current.lock);
    version = current.version;
    spinlock_release(&current.lock);
    return version;
}

/* Puts the context in use, and takes it over in any case. With `version`: not if others were put in use since then. */
static bool replace(struct tls_context *context, const struct file_stamps *stamps, const uint64_t *version)
{
    struct tls_context *other = context;
    bool fits;

    spinlock_acquire(&current.lock);
    fits = version == NULL || current.version == *version;
    if (fits) {
        other = current.context;
        current.context = context;
        current.stamps = *stamps;
        current.version++;
    }
    spinlock_release(&current.lock);
    tls_context_release(&other);
    return fits;
}

static must_check bool make(const struct tls_options *options, struct tls_context **context)
{
    struct tls_context *previous = certificates_acquire();
    char error[TLS_ERROR_BYTES];
    bool made = tls_context_create(options, previous, context, error);

    tls_context_release(&previous);
    if (!made)
        log_warning("Failed to configure TLS: %s", error);
    return made;
}

static must_check bool make_and_use(void)
{
    struct tls_options options = options_now();
    struct tls_context *context;
    struct file_stamps stamps;

    gate_assert_alone();
    look_at_files(&options, &stamps); /* before they are read: what changes meanwhile is read again */
    return make(&options, &context) && replace(context, &stamps, NULL);
}

static bool start(struct server *server)
{
    thread_assert_main();
    (void)server;
    return (OPTION_GET(option_tls_port) == 0 && option_tls_cert_file.data == NULL) || make_and_use();
}

static const char *apply(void)
{
    return make_and_use() ? NULL : "Unable to update TLS configuration. Check server logs.";
}

static bool is_configured(void)
{
    struct tls_context *context = certificates_acquire();
    bool is = context != NULL;

    tls_context_release(&context);
    return is;
}

const char *certificates_demand(void)
{
    gate_assert_alone();
    return is_configured() ? NULL : apply();
}

static const char *apply_option(const struct option_row *row)
{
    gate_assert_alone();
    (void)row;
    if (OPTION_GET(option_tls_port) == 0 && !is_configured())
        return NULL; /* nobody uses it: looked at when a port is given, so that files may come in any order */
    return apply();
}

/* ----------------------------------------------------------------------------------------------------- rotation -- */

/* The inputs of a job, so that it reads no options. */
struct look {
    struct tls_options options; /* its texts are copies */
    uint64_t version;
};

/* Inside of the gate, as texts are replaced at the gate only. */
static struct look *look_create(const struct worker *worker)
{
    struct look *look = mem_alloc(sizeof(*look));
    const char **text;

    worker_assert_inside(worker);
    *look = (struct look){.options = options_now()};
    spinlock_acquire(&current.lock);
    look->version = current.version;
    spinlock_release(&current.lock);
    for (unsigned i = 0; (text = text_at(&look->options, i)) != NULL; i++)
        *text = *text != NULL ? mem_copy_text(*text) : NULL;
    return look;
}

static void look_destroy(struct look *look)
{
    const char **text;

    for (unsigned i = 0; (text = text_at(&look->options, i)) != NULL; i++)
        mem_free((char *)(uintptr_t)*text);
    mem_free(look);
}

/* Have the files changed since they were looked at last? A failed attempt is not made again before the next change. */
static bool note_change(const struct file_stamps *stamps)
{
    bool changed;

    spinlock_acquire(&current.lock);
    changed = memcmp(stamps, &current.stamps, sizeof(*stamps)) != 0;
    current.stamps = *stamps;
    spinlock_release(&current.lock);
    return changed;
}

static void look_run(void *argument)
{
    struct look *look = argument;
    struct tls_context *context;
    struct file_stamps stamps;

    assert(atomic_load_explicit(&current.is_looking, memory_order_relaxed)); /* one at a time */
    look_at_files(&look->options, &stamps);
    if (note_change(&stamps)) {
        if (!make(&look->options, &context))
            log_warning("TLS: certificates changed on disk, but can't be used: keeping the old ones");
        else if (replace(context, &stamps, &look->version))
            log_notice("TLS: certificates changed on disk: new connections use the new ones");
    }
    look_destroy(look);
    atomic_store_explicit(&current.is_looking, false, memory_order_release);
}

/* Once a second. */
static bool is_time_to_look(void)
{
    const int64_t interval_s = OPTION_GET(option_tls_auto_reload_interval);
    static int64_t passed_s; /* global: worker 0's; seconds since it was time */

    passed_s = interval_s != 0 ? passed_s + 1 : 0;
    if (OPTION_IS(option_tls_rotation))
        return true;
    if (interval_s == 0 || passed_s < interval_s)
        return false;
    passed_s = 0;
    return true;
}

static void look_each_second(struct worker *worker)
{
    struct look *look;

    if (worker->index != 0 || LIKELY(!is_time_to_look()) ||
        atomic_load_explicit(&current.is_looking, memory_order_acquire) || !is_configured() ||
        !gate_enter(&worker->member))
        return;
    look = look_create(worker);
    gate_leave(&worker->member);
    worker_assert_zero(worker);
    atomic_store_explicit(&current.is_looking, true, memory_order_relaxed);
    background_submit(BACKGROUND_OTHER, look_run, look);
}

/* --------------------------------------------------------------------------------------------------------- INFO -- */

static void append_facts(struct buffer *buffer, const void *picture)
{
    static const char *const names[TLS_CERTIFICATE_COUNT] = {"server", "client", "ca"};
    struct tls_context *context = certificates_acquire();
    int64_t now_s = info_moment()->wall_us / US_PER_SECOND;

    (void)picture;
    for (unsigned kind = 0; context != NULL && kind < TLS_CERTIFICATE_COUNT; kind++) {
        const struct tls_certificate_facts *facts = tls_context_certificate(context, (enum tls_certificate_kind)kind);

        if (facts->known)
            buffer_printf(buffer,
                          "tls_%s_cert_serial:%s\r\ntls_%s_cert_expires_at:%lld\r\n"
                          "tls_%s_cert_expires_in_seconds:%lld\r\n",
                          names[kind], facts->serial, names[kind], (long long)facts->expires_s, names[kind],
                          (long long)(facts->expires_s - now_s));
    }
    tls_context_release(&context);
}

/* -------------------------------------------------------------------------------------------------------- setup -- */

void certificates_setup(void)
{
    static const struct option_row rows[] = {
        ROW_BOOL("tls-rotation", &option_tls_rotation, 0, OPTION_MUTABLE,
                 "Check each second whether the files of certificates have changed, and use them."),
        ROW_INT("tls-auto-reload-interval", &option_tls_auto_reload_interval, 0, 0, INT32_MAX, OPTION_MUTABLE,
                "The same every so many seconds; 0: not."),
    };
    static const char *const names[] = {"tls-cert-file",
                                        "tls-key-file",
                                        "tls-key-file-pass",
                                        "tls-client-cert-file",
                                        "tls-client-key-file",
                                        "tls-client-key-file-pass",
                                        "tls-ca-cert-file",
                                        "tls-ca-cert-dir",
                                        "tls-dh-params-file",
                                        "tls-protocols",
                                        "tls-ciphers",
                                        "tls-ciphersuites",
                                        "tls-prefer-server-ciphers",
                                        "tls-session-caching",
                                        "tls-session-cache-size",
                                        "tls-session-cache-timeout",
                                        "tls-auth-clients"};

    gate_assert_main_alone();
    spinlock_init(&current.lock, LOCK_REGISTRY);
    config_add_rows(rows, countof(rows));
    for (size_t i = 0; i < countof(names); i++)
        config_on_change(names[i], apply_option);
}

void certificates_teardown(void)
{
    gate_assert_main_alone();
    assert(!atomic_load(&current.is_looking));
    tls_context_release(&current.context);
}

const struct lifecycle certificates_lifecycle = {
    .server_start = start,
    .worker_second = look_each_second, /* worker 0 has a background thread look at the files, as the options say */
};

const struct info_row certificates_info[] = {
    INFO_LINES("tls_<kind>_cert_<fact>", NULL, append_facts),
    {0},
};
