/* Rows and storage of the server's own options, and one table of options that are known in the family and accepted, so
 * that configuration files and command lines made for it work, but mean nothing here (yet): each with the reason. */
#include "server/config/options.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/panic.h"
#include "net/loop.h"
#include "net/tls.h"
#include "server/config/options_accepted.h"
#include "server/config/options_process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

_Atomic int64_t option_port;                                  /* global: option storage */
_Atomic int64_t option_tls_port;                              /* global: option storage */
_Atomic int64_t option_unixsocketperm;                        /* global: option storage */
_Atomic int64_t option_tcp_backlog;                           /* global: option storage */
_Atomic int64_t option_tcp_keepalive;                         /* global: option storage */
_Atomic int64_t option_timeout;                               /* global: option storage */
_Atomic int64_t option_maxclients;                            /* global: option storage */
_Atomic int64_t option_maxclients_reserved;                   /* global: option storage */
_Atomic int64_t option_overload_protect_percent;              /* global: option storage */
_Atomic int64_t option_protected_mode;                        /* global: option storage */
_Atomic int64_t option_socket_mark_id;                        /* global: option storage */
struct option_string option_unixsocket;                       /* global: option storage */
struct option_string option_bind_source_addr;                 /* global: option storage */
struct option_string option_requirepass;                      /* global: option storage */
_Atomic int64_t option_client_query_buffer_limit;             /* global: option storage */
_Atomic int64_t option_proto_max_bulk_len;                    /* global: option storage */
struct output_limit option_output_limits[OUTPUT_CLASS_COUNT]; /* global: option storage */
_Atomic int64_t option_server_threads;                        /* global: option storage */
_Atomic int64_t option_server_thread_affinity;                /* global: option storage */
_Atomic int64_t option_active_client_balancing;               /* global: option storage */
_Atomic int64_t option_min_clients_per_thread;                /* global: option storage */
_Atomic int64_t option_event_loop;                            /* global: option storage */
_Atomic int64_t option_event_loop_spin_us;                    /* global: option storage */
_Atomic int64_t option_prefetch_enabled;                      /* global: option storage */
_Atomic int64_t option_hz;                                    /* global: option storage */
_Atomic int64_t option_dynamic_hz;                            /* global: option storage */
_Atomic int64_t option_databases;                             /* global: option storage */
_Atomic int64_t option_maxmemory;                             /* global: option storage */
_Atomic int64_t option_maxmemory_policy;                      /* global: option storage */
_Atomic int64_t option_lfu_log_factor;                        /* global: option storage */
_Atomic int64_t option_lfu_decay_time;                        /* global: option storage */
_Atomic int64_t option_lazyfree_lazy_eviction;                /* global: option storage */
_Atomic int64_t option_lazyfree_lazy_expire;                  /* global: option storage */
_Atomic int64_t option_lazyfree_lazy_server_del;              /* global: option storage */
_Atomic int64_t option_lazyfree_lazy_user_del;                /* global: option storage */
_Atomic int64_t option_lazyfree_lazy_user_flush;              /* global: option storage */
_Atomic int64_t option_hll_sparse_max_bytes;                  /* global: option storage */
_Atomic int64_t option_loglevel;                              /* global: option storage */
struct option_string option_logfile;                          /* global: option storage */
_Atomic int64_t option_syslog_enabled;                        /* global: option storage */
struct option_string option_syslog_ident;                     /* global: option storage */
_Atomic int64_t option_syslog_facility;                       /* global: option storage */
_Atomic int64_t option_daemonize;                             /* global: option storage */
struct option_string option_pidfile;                          /* global: option storage */
_Atomic int64_t option_supervised;                            /* global: option storage */
_Atomic int64_t option_always_show_logo;                      /* global: option storage */
_Atomic int64_t option_set_proc_title;                        /* global: option storage */
struct option_string option_proc_title_template;              /* global: option storage */
_Atomic int64_t option_enable_debug_command;                  /* global: option storage */
_Atomic int64_t option_enable_protected_configs;              /* global: option storage */
_Atomic int64_t option_enable_module_command;                 /* global: option storage */
struct option_string option_tls_cert_file;                    /* global: option storage */
struct option_string option_tls_key_file;                     /* global: option storage */
struct option_string option_tls_key_file_pass;                /* global: option storage */
struct option_string option_tls_client_cert_file;             /* global: option storage */
struct option_string option_tls_client_key_file;              /* global: option storage */
struct option_string option_tls_client_key_file_pass;         /* global: option storage */
struct option_string option_tls_ca_cert_file;                 /* global: option storage */
struct option_string option_tls_ca_cert_dir;                  /* global: option storage */
struct option_string option_tls_dh_params_file;               /* global: option storage */
struct option_string option_tls_protocols;                    /* global: option storage */
struct option_string option_tls_ciphers;                      /* global: option storage */
struct option_string option_tls_ciphersuites;                 /* global: option storage */
_Atomic int64_t option_tls_auth_clients;                      /* global: option storage */
_Atomic int64_t option_tls_prefer_server_ciphers;             /* global: option storage */
_Atomic int64_t option_tls_session_caching;                   /* global: option storage */
_Atomic int64_t option_tls_session_cache_size;                /* global: option storage */
_Atomic int64_t option_tls_session_cache_timeout;             /* global: option storage */

static bool refuse(char *error, size_t error_size, const char *reason)
{
    snprintf(error, error_size, "%s", reason);
    return false;
}

/* --- bind --- */

enum { BIND_ADDRESSES_MOST = 16 };

static struct {
    char *items[BIND_ADDRESSES_MOST]; /* at the gate alone, as `count` */
    size_t count;
    struct option_string text; /* all of them */
} bound;

const char *const *option_bind_addresses(size_t *count)
{
    gate_assert_alone();
    assert(bound.count <= BIND_ADDRESSES_MOST);
    *count = bound.count;
    return (const char *const *)bound.items;
}

static void forget_addresses(void)
{
    gate_assert_alone();
    for (size_t i = 0; i < bound.count; i++)
        mem_free(bound.items[i]);
    bound.count = 0;
}

static void show_addresses(void)
{
    struct buffer buffer = {0};
    struct option_string text = {0};

    for (size_t i = 0; i < bound.count; i++) {
        buffer_append_text(&buffer, i == 0 ? "" : " ");
        buffer_append_text(&buffer, bound.items[i]);
    }
    if (bound.count != 0)
        text.data = buffer_take(&buffer, &text.size);
    text = option_string_replace(&bound.text, text);
    mem_free(text.data);
}

static bool set_bind(const struct option_row *row, const struct slice *words, size_t count, char *error,
                     size_t error_size)
{
    (void)row;
    if (count > BIND_ADDRESSES_MOST)
        return refuse(error, error_size, "Too many bind addresses specified.");
    forget_addresses();
    for (size_t i = 0; i < count; i++) { /* an empty word is none: `bind ""` means nowhere */
        if (words[i].size != 0)
            bound.items[bound.count++] = mem_copy(words[i].data, words[i].size);
    }
    show_addresses();
    return true;
}

static void get_bind(const struct option_row *row, struct buffer *buffer)
{
    (void)row;
    option_string_append(&bound.text, buffer);
}

/* --- client-output-buffer-limit: groups of CLASS HARD SOFT SECONDS; classes that are not named keep theirs --- */

enum { OUTPUT_LIMIT_WORDS = 4 };

/* clang-format off */
static const struct option_enum output_classes[] = {
    {"normal", OUTPUT_CLASS_NORMAL}, {"slave", OUTPUT_CLASS_REPLICA}, {"replica", OUTPUT_CLASS_REPLICA},
    {"pubsub", OUTPUT_CLASS_PUBSUB}, {NULL, 0},
};
/* clang-format on */

struct output_limit_value {
    bool given;
    uint64_t hard_bytes, soft_bytes, soft_seconds;
};

static bool parse_output_limit(const struct slice words[OUTPUT_LIMIT_WORDS], struct output_limit_value values[],
                               char *error, size_t error_size)
{
    struct output_limit_value value = {.given = true};
    int64_t class, seconds;

    if (!option_enum_value(output_classes, words[0], &class))
        return refuse(error, error_size, "Invalid client class specified in buffer limit configuration.");
    if (!number_parse_memory(words[1], &value.hard_bytes) || !number_parse_memory(words[2], &value.soft_bytes) ||
        !number_parse_i64(words[3], &seconds) || seconds < 0)
        return refuse(error, error_size, "Error in hard, soft or soft_seconds setting in buffer limit configuration.");
    value.soft_seconds = (uint64_t)seconds;
    values[class] = value;
    return true;
}

static bool set_output_limits(const struct option_row *row, const struct slice *words, size_t count, char *error,
                              size_t error_size)
{
    struct output_limit_value values[OUTPUT_CLASS_COUNT] = {{0}};

    gate_assert_alone();
    (void)row;
    if (count % OUTPUT_LIMIT_WORDS != 0) /* no words: no class is changed, as in the rest of the family */
        return refuse(error, error_size, "Wrong number of arguments in buffer limit configuration.");
    for (size_t i = 0; i < count; i += OUTPUT_LIMIT_WORDS) {
        if (!parse_output_limit(&words[i], values, error, error_size))
            return false;
    }
    for (int class = 0; class < OUTPUT_CLASS_COUNT; class ++) {
        struct output_limit *limit = &option_output_limits[class];

        if (!values[class].given)
            continue;
        atomic_store_explicit(&limit->hard_bytes, values[class].hard_bytes, memory_order_relaxed);
        atomic_store_explicit(&limit->soft_bytes, values[class].soft_bytes, memory_order_relaxed);
        atomic_store_explicit(&limit->soft_seconds, values[class].soft_seconds, memory_order_relaxed);
    }
    return true;
}

static void get_output_limits(const struct option_row *row, struct buffer *buffer)
{
    (void)row;
    for (int class = 0; class < OUTPUT_CLASS_COUNT; class ++) {
        struct output_limit *limit = &option_output_limits[class];

        buffer_printf(buffer, "%s%s %llu %llu %llu", class == 0 ? "" : " ", option_enum_name(output_classes, class),
                      (unsigned long long)atomic_load_explicit(&limit->hard_bytes, memory_order_relaxed),
                      (unsigned long long)atomic_load_explicit(&limit->soft_bytes, memory_order_relaxed),
                      (unsigned long long)atomic_load_explicit(&limit->soft_seconds, memory_order_relaxed));
    }
}

static void rewrite_output_limits(const struct option_row *row, struct buffer *buffer)
{
    for (int class = 0; class < OUTPUT_CLASS_COUNT; class ++) {
        struct output_limit *limit = &option_output_limits[class];
        char hard[NUMBER_DOUBLE_SPACE], soft[NUMBER_DOUBLE_SPACE];

        number_format_memory(hard, atomic_load_explicit(&limit->hard_bytes, memory_order_relaxed));
        number_format_memory(soft, atomic_load_explicit(&limit->soft_bytes, memory_order_relaxed));
        buffer_printf(buffer, "%s %s %s %s %llu\n", row->name,
                      class == OUTPUT_CLASS_REPLICA ? "replica" : option_enum_name(output_classes, class), hard, soft,
                      (unsigned long long)atomic_load_explicit(&limit->soft_seconds, memory_order_relaxed));
    }
}

/* --- dir: the process' own folder is the storage --- */

static bool set_dir(const struct option_row *row, const struct slice *words, size_t count, char *error,
                    size_t error_size)
{
    gate_assert_alone();
    (void)row;
    if (count != 1)
        return refuse(error, error_size, "wrong number of arguments");
    return chdir(words[0].data) == 0 || refuse(error, error_size, strerror(errno)); /* words end with a zero byte */
}

static void get_dir(const struct option_row *row, struct buffer *buffer)
{
    char path[4096];

    (void)row;
    if (getcwd(path, sizeof(path)) != NULL)
        buffer_append_text(buffer, path);
}

/* --- server-thread-affinity: false, true, or the first processor, counted from 1 --- */

static bool set_affinity(const struct option_row *row, const struct slice *words, size_t count, char *error,
                         size_t error_size)
{
    int64_t first = 0;

    (void)row;
    if (count != 1)
        return refuse(error, error_size, "wrong number of arguments");
    if (slice_equal_text_nocase(words[0], "true") || slice_equal_text_nocase(words[0], "yes"))
        first = 1;
    else if (!slice_equal_text_nocase(words[0], "false") && !slice_equal_text_nocase(words[0], "no") &&
             (!number_parse_i64(words[0], &first) || first < 0 || first > 4096))
        return refuse(error, error_size, "Unknown argument: server-thread-affinity expects either true or false");
    atomic_store_explicit(&option_server_thread_affinity, first, memory_order_relaxed);
    return true;
}

static void get_affinity(const struct option_row *row, struct buffer *buffer)
{
    int64_t first = OPTION_GET(option_server_thread_affinity);

    (void)row;
    if (first > 1)
        buffer_append_i64(buffer, first);
    else
        buffer_append_text(buffer, first == 1 ? "true" : "false");
}

/* --- checks and applications --- */

static const char *apply_loglevel(const struct option_row *row)
{
    (void)row;
    log_set_level((enum log_level)OPTION_GET(option_loglevel));
    return NULL;
}

static const char *check_address(const struct option_row *row, int64_t number, struct slice text)
{
    unsigned char address[sizeof(struct in6_addr)];
    char copy[INET6_ADDRSTRLEN] = "";

    (void)row;
    (void)number;
    if (text.size == 0)
        return NULL;
    if (text.size < sizeof(copy))
        memcpy(copy, text.data, text.size);
    return inet_pton(AF_INET, copy, address) == 1 || inet_pton(AF_INET6, copy, address) == 1
               ? NULL
               : "argument must be an IPv4 or IPv6 address";
}

static const char *apply_hz(const struct option_row *row)
{
    (void)row;
    options_clamp();
    return NULL;
}

/* {word} must be one of the known ones; a brace that is not closed is a mistake. */
static bool title_template_is_valid(struct slice text)
{
    static const char *const known[] = {"title", "listen-addr", "server-mode", "config-file",
                                        "port",  "tls-port",    "unixsocket"};

    for (;;) {
        const char *open = text.size == 0 ? NULL : memchr(text.data, '{', text.size);
        const char *close;
        bool found = false;

        if (open == NULL)
            return true;
        text = slice_skip(text, (size_t)(open + 1 - text.data));
        close = text.size == 0 ? NULL : memchr(text.data, '}', text.size);
        if (close == NULL)
            return false;
        for (size_t i = 0; i < countof(known); i++)
            found = found || slice_equal_text(slice_make(text.data, (size_t)(close - text.data)), known[i]);
        if (!found)
            return false;
        text = slice_skip(text, (size_t)(close + 1 - text.data));
    }
}

static const char *check_title_template(const struct option_row *row, int64_t number, struct slice text)
{
    (void)row;
    (void)number;
    return text.size != 0 && title_template_is_valid(text) ? NULL
                                                           : "template format is invalid or contains unknown variables";
}

/* --- rows --- */

static const struct option_enum log_levels[] = {
    {"debug", LOG_LEVEL_DEBUG},     {"verbose", LOG_LEVEL_VERBOSE}, {"notice", LOG_LEVEL_NOTICE},
    {"warning", LOG_LEVEL_WARNING}, {"nothing", LOG_LEVEL_NOTHING}, {NULL, 0},
};
/* clang-format off */
static const struct option_enum syslog_facilities[] = {
    {"user", LOG_USER},     {"local0", LOG_LOCAL0}, {"local1", LOG_LOCAL1}, {"local2", LOG_LOCAL2},
    {"local3", LOG_LOCAL3}, {"local4", LOG_LOCAL4}, {"local5", LOG_LOCAL5}, {"local6", LOG_LOCAL6},
    {"local7", LOG_LOCAL7}, {NULL, 0},
};
/* clang-format on */
/* clang-format off */
static const struct option_enum supervisors[] = {
    {"upstart", SUPERVISED_UPSTART}, {"systemd", SUPERVISED_SYSTEMD}, {"auto", SUPERVISED_AUTO},
    {"no", SUPERVISED_NO},           {NULL, 0},
};
/* clang-format on */
static const struct option_enum allowed_from[] = {{"no", ALLOWED_NO},
                                                  {"yes", ALLOWED_YES},
                                                  {"local", ALLOWED_LOCAL},
                                                  {NULL, 0}};
static const struct option_enum memory_policies[] = {
    {"volatile-lru", POLICY_LRU},
    {"volatile-lfu", POLICY_LFU},
    {"volatile-random", POLICY_RANDOM},
    {"volatile-ttl", POLICY_TTL},
    {"volatile-lrm", POLICY_LRU | POLICY_MODIFIED},
    {"allkeys-lru", POLICY_LRU | POLICY_ALL_KEYS},
    {"allkeys-lfu", POLICY_LFU | POLICY_ALL_KEYS},
    {"allkeys-random", POLICY_RANDOM | POLICY_ALL_KEYS},
    {"allkeys-lrm", POLICY_LRU | POLICY_MODIFIED | POLICY_ALL_KEYS},
    {"noeviction", POLICY_NO_EVICTION},
    {NULL, 0},
};
static const struct option_enum auth_modes[] = {{"no", TLS_AUTH_NO},
                                                {"yes", TLS_AUTH_YES},
                                                {"optional", TLS_AUTH_OPTIONAL},
                                                {NULL, 0}};
static const struct option_enum event_loops[] = {{"auto", LOOP_AUTO},
                                                 {"epoll", LOOP_EPOLL},
                                                 {"io_uring", LOOP_IO_URING},
                                                 {NULL, 0}};

#define TLS_FILE (OPTION_MUTABLE | OPTION_VOLATILE | OPTION_EMPTY_IS_NULL)
#define TLS_TEXT (OPTION_MUTABLE | OPTION_EMPTY_IS_NULL)

const struct option_row server_options[] = {
    /* network */
    ROW_INT("port", &option_port, 6379, 0, 65535, OPTION_MUTABLE, "TCP port; 0: none."),
    ROW_SPECIAL("bind", set_bind, get_bind, "* -::*", OPTION_MUTABLE | OPTION_MULTI_ARG,
                "Addresses to listen on; one with a minus in front may be missing."),
    ROW_STRING("bind-source-addr", &option_bind_source_addr, NULL, OPTION_MUTABLE | OPTION_EMPTY_IS_NULL,
               "Source address of connections that the server makes.", .check = check_address),
    ROW_STRING("unixsocket", &option_unixsocket, NULL, OPTION_IMMUTABLE | OPTION_EMPTY_IS_NULL,
               "Path of a unix socket to listen on."),
    ROW_OCTAL("unixsocketperm", &option_unixsocketperm, 0, 0, 0777, OPTION_IMMUTABLE,
              "Mode of the unix socket's file; 0: as the umask says."),
    ROW_INT("tcp-backlog", &option_tcp_backlog, 511, 0, INT32_MAX, OPTION_IMMUTABLE,
            "Length of the queue of connections that wait for accept."),
    ROW_INT("tcp-keepalive", &option_tcp_keepalive, 300, 0, INT32_MAX, OPTION_MUTABLE,
            "Seconds of silence before the system probes a connection; 0: never."),
    ROW_INT("socket-mark-id", &option_socket_mark_id, 0, 0, UINT32_MAX, OPTION_IMMUTABLE,
            "Mark of the sockets for the packet filter."),
    ROW_INT("timeout", &option_timeout, 0, 0, INT32_MAX, OPTION_MUTABLE,
            "Seconds after which an idle client is disconnected; 0: never."),
    ROW_INT("maxclients", &option_maxclients, 10000, 1, UINT32_MAX, OPTION_MUTABLE,
            "Largest number of connected clients."),
    ROW_INT("maxclients-reserved", &option_maxclients_reserved, 0, 0, 100, OPTION_MUTABLE,
            "Part of maxclients that is reserved for clients of this machine, such as an administrator."),
    ROW_INT("overload-protect-percent", &option_overload_protect_percent, 0, 0, 200, OPTION_MUTABLE,
            "Processor time of a thread, in percent, above which clients are disconnected; 0: never."),
    ROW_BOOL("protected-mode", &option_protected_mode, 1, OPTION_MUTABLE,
             "Serve only clients of this machine while there is no password."),
    ROW_STRING("requirepass", &option_requirepass, NULL, OPTION_MUTABLE | OPTION_SENSITIVE | OPTION_EMPTY_IS_NULL,
               "Password of the default user."),

    /* clients */
    ROW_SPECIAL("client-output-buffer-limit", set_output_limits, get_output_limits,
                "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
                OPTION_MUTABLE | OPTION_MULTI_ARG,
                "Class, hard limit, soft limit and its seconds: a client beyond them is disconnected.",
                .rewrite = rewrite_output_limits),
    ROW_MEMORY("client-query-buffer-limit", &option_client_query_buffer_limit, 1073741824, 1048576, INT64_MAX,
               OPTION_MUTABLE, "Largest size of an incomplete request, in bytes."),
    ROW_MEMORY("proto-max-bulk-len", &option_proto_max_bulk_len, 536870912, 1048576, INT64_MAX, OPTION_MUTABLE,
               "Largest size of an argument, in bytes."),

    /* threads and time */
    ROW_INT("server-threads", &option_server_threads, 0, 0, 64, OPTION_IMMUTABLE,
            "Worker threads, which serve the same data; 0: one for each processor, at most 8.", .alias = "io-threads"),
    ROW_SPECIAL("server-thread-affinity", set_affinity, get_affinity, "false", OPTION_IMMUTABLE,
                "Bind each worker thread to a processor: false, true, or the first processor, counted from 1."),
    ROW_BOOL("active-client-balancing", &option_active_client_balancing, 1, OPTION_MUTABLE,
             "Give a new client to the worker thread with the fewest clients."),
    ROW_INT("min-clients-per-thread", &option_min_clients_per_thread, 1, 0, 400, OPTION_MUTABLE,
            "Clients that a worker thread gets before the next thread gets one."),
    ROW_ENUM("event-loop", &option_event_loop, LOOP_AUTO, event_loops, OPTION_IMMUTABLE,
             "How to wait for clients: auto, epoll or io_uring."),
    ROW_INT("event-loop-spin-us", &option_event_loop_spin_us, 4, 0, 1000, OPTION_IMMUTABLE,
            "Microseconds that a thread looks for requests before it sleeps, while they come that soon; 0: never."),
    ROW_BOOL("prefetch-enabled", &option_prefetch_enabled, 1, OPTION_MUTABLE,
             "Prefetch the keys of a group of commands before it runs."),
    ROW_INT("hz", &option_hz, 10, 0, INT32_MAX, OPTION_MUTABLE, "Background cycles a second; kept within 1 to 500.",
            .apply = apply_hz),
    ROW_BOOL("dynamic-hz", &option_dynamic_hz, 1, OPTION_MUTABLE, "Raise hz with the number of clients."),
    ROW_INT("databases", &option_databases, 16, 1, INT32_MAX, OPTION_IMMUTABLE, "Number of databases."),

    /* memory */
    ROW_MEMORY("maxmemory", &option_maxmemory, 0, 0, UINT64_MAX, OPTION_MUTABLE,
               "Limit of used memory in bytes; 0: none."),
    ROW_ENUM("maxmemory-policy", &option_maxmemory_policy, POLICY_NO_EVICTION, memory_policies, OPTION_MUTABLE,
             "Which keys are evicted above maxmemory."),
    ROW_INT("lfu-log-factor", &option_lfu_log_factor, 10, 0, INT32_MAX, OPTION_MUTABLE,
            "How slowly the LFU counter of a key grows."),
    ROW_INT("lfu-decay-time", &option_lfu_decay_time, 1, 0, INT32_MAX, OPTION_MUTABLE,
            "Minutes after which the LFU counter of a key is decremented; 0: never."),
    ROW_BOOL("lazyfree-lazy-eviction", &option_lazyfree_lazy_eviction, 1, OPTION_MUTABLE,
             "Free evicted values in the background."),
    ROW_BOOL("lazyfree-lazy-expire", &option_lazyfree_lazy_expire, 1, OPTION_MUTABLE,
             "Free expired values in the background."),
    ROW_BOOL("lazyfree-lazy-server-del", &option_lazyfree_lazy_server_del, 1, OPTION_MUTABLE,
             "Free values that commands replace in the background."),
    ROW_BOOL("lazyfree-lazy-user-del", &option_lazyfree_lazy_user_del, 1, OPTION_MUTABLE, "DEL works as UNLINK."),
    ROW_BOOL("lazyfree-lazy-user-flush", &option_lazyfree_lazy_user_flush, 1, OPTION_MUTABLE,
             "FLUSHALL and FLUSHDB are ASYNC unless they say SYNC."),

    /* values */
    ROW_MEMORY("hll-sparse-max-bytes", &option_hll_sparse_max_bytes, 3000, 0, INT64_MAX, OPTION_MUTABLE,
               "Bytes up to which a HyperLogLog is stored sparse; a dense one takes 12 KiB."),

    /* log and process */
    ROW_ENUM("loglevel", &option_loglevel, LOG_LEVEL_NOTICE, log_levels, OPTION_MUTABLE,
             "Lowest level that is logged: debug, verbose, notice, warning, nothing.", .apply = apply_loglevel),
    ROW_STRING("logfile", &option_logfile, "", OPTION_IMMUTABLE, "File of the log; empty: standard output."),
    ROW_BOOL("syslog-enabled", &option_syslog_enabled, 0, OPTION_IMMUTABLE, "Write the log to the system's log, too."),
    ROW_STRING("syslog-ident", &option_syslog_ident, "redis", OPTION_IMMUTABLE,
               "Name of the server in the system's log."),
    ROW_ENUM("syslog-facility", &option_syslog_facility, LOG_LOCAL0, syslog_facilities, OPTION_IMMUTABLE,
             "Facility of the system's log."),
    ROW_BOOL("daemonize", &option_daemonize, 0, OPTION_IMMUTABLE, "Run in the background."),
    ROW_STRING("pidfile", &option_pidfile, NULL, OPTION_IMMUTABLE | OPTION_EMPTY_IS_NULL,
               "File with the process id, which exists while the server runs."),
    ROW_ENUM("supervised", &option_supervised, SUPERVISED_NO, supervisors, OPTION_IMMUTABLE,
             "Supervisor that waits for notifications: no, auto, systemd, upstart."),
    ROW_SPECIAL("dir", set_dir, get_dir, NULL, OPTION_MUTABLE | OPTION_PROTECTED | OPTION_DENY_LOADING,
                "Working directory, in which files are written."),
    ROW_BOOL("always-show-logo", &option_always_show_logo, 0, OPTION_IMMUTABLE,
             "Begin the log with a logo even when it is not a terminal."),
    ROW_BOOL("set-proc-title", &option_set_proc_title, 1, OPTION_IMMUTABLE,
             "Show address and mode in the title of the process."),
    ROW_STRING("proc-title-template", &option_proc_title_template, "{title} {listen-addr} {server-mode}",
               OPTION_MUTABLE, "Title of the process.", .check = check_title_template),
    ROW_ENUM("enable-debug-command", &option_enable_debug_command, ALLOWED_NO, allowed_from, OPTION_IMMUTABLE,
             "Clients that may use DEBUG: no, local (clients of this machine), yes."),
    ROW_ENUM("enable-protected-configs", &option_enable_protected_configs, ALLOWED_NO, allowed_from, OPTION_IMMUTABLE,
             "Clients that may change the directory and names of files: no, local, yes."),
    ROW_ENUM("enable-module-command", &option_enable_module_command, ALLOWED_NO, allowed_from, OPTION_IMMUTABLE,
             "Clients that may use MODULE LOAD, LOADEX and UNLOAD: no, local, yes."),

    /* TLS */
    ROW_INT("tls-port", &option_tls_port, 0, 0, 65535, OPTION_MUTABLE, "TLS port; 0: none."),
    ROW_STRING("tls-cert-file", &option_tls_cert_file, NULL, TLS_FILE, "Certificate of the server, with its chain."),
    ROW_STRING("tls-key-file", &option_tls_key_file, NULL, TLS_FILE, "Private key of tls-cert-file."),
    ROW_STRING("tls-key-file-pass", &option_tls_key_file_pass, NULL, TLS_TEXT | OPTION_SENSITIVE,
               "Passphrase of tls-key-file."),
    ROW_STRING("tls-client-cert-file", &option_tls_client_cert_file, NULL, TLS_FILE,
               "Certificate for connections that the server makes; unset: tls-cert-file."),
    ROW_STRING("tls-client-key-file", &option_tls_client_key_file, NULL, TLS_FILE,
               "Private key of tls-client-cert-file."),
    ROW_STRING("tls-client-key-file-pass", &option_tls_client_key_file_pass, NULL, TLS_TEXT | OPTION_SENSITIVE,
               "Passphrase of tls-client-key-file."),
    ROW_STRING("tls-ca-cert-file", &option_tls_ca_cert_file, NULL, TLS_FILE,
               "Certificates of the authorities that sign peers' certificates."),
    ROW_STRING("tls-ca-cert-dir", &option_tls_ca_cert_dir, NULL, TLS_FILE,
               "Directory with certificates of authorities."),
    ROW_STRING("tls-dh-params-file", &option_tls_dh_params_file, NULL, TLS_FILE,
               "Diffie-Hellman parameters for TLS 1.2."),
    ROW_STRING("tls-protocols", &option_tls_protocols, NULL, TLS_TEXT, "versions: \"TLSv1.2 TLSv1.3\""),
    ROW_STRING("tls-ciphers", &option_tls_ciphers, NULL, TLS_TEXT, "Ciphers up to TLS 1.2."),
    ROW_STRING("tls-ciphersuites", &option_tls_ciphersuites, NULL, TLS_TEXT, "Ciphers of TLS 1.3."),
    ROW_ENUM("tls-auth-clients", &option_tls_auth_clients, TLS_AUTH_YES, auth_modes, OPTION_MUTABLE,
             "Whether clients must have a certificate: yes, no, optional."),
    ROW_BOOL("tls-prefer-server-ciphers", &option_tls_prefer_server_ciphers, 0, OPTION_MUTABLE,
             "The server's order of ciphers counts."),
    ROW_BOOL("tls-session-caching", &option_tls_session_caching, 1, OPTION_MUTABLE, "Let clients resume sessions."),
    ROW_INT("tls-session-cache-size", &option_tls_session_cache_size, 20480, 0, INT32_MAX, OPTION_MUTABLE,
            "Sessions in the cache; 0: no limit."),
    ROW_INT("tls-session-cache-timeout", &option_tls_session_cache_timeout, 300, 0, INT32_MAX, OPTION_MUTABLE,
            "Seconds for which a session can be resumed."),
};
const size_t server_option_count = countof(server_options);

void options_clamp(void)
{
    int64_t hz = OPTION_GET(option_hz);

    gate_assert_alone();
    atomic_store_explicit(&option_hz, MIN(MAX(hz, 1), OPTION_HZ_MOST), memory_order_relaxed);
    process_options_clamp();
}

void options_teardown(void)
{
    gate_assert_main_alone();
    forget_addresses();
    show_addresses();
    options_accepted_teardown();
}
