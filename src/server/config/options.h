/* The values of the server's own options. Numbers: any thread, OPTION_GET(option_port). Strings and lists: inside an
 * exclusive section (or before the workers start), or copied by a function of config_on_change. */
#pragma once

#include "base/rows.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* --- network --- */
extern _Atomic int64_t option_port;                     /* global: option storage */
extern _Atomic int64_t option_tls_port;                 /* global: option storage */
extern _Atomic int64_t option_unixsocketperm;           /* global: option storage */
extern _Atomic int64_t option_tcp_backlog;              /* global: option storage */
extern _Atomic int64_t option_tcp_keepalive;            /* global: option storage; seconds, 0: off */
extern _Atomic int64_t option_timeout;                  /* global: option storage; seconds, 0: never */
extern _Atomic int64_t option_maxclients;               /* global: option storage */
extern _Atomic int64_t option_maxclients_reserved;      /* global: option storage */
extern _Atomic int64_t option_overload_protect_percent; /* global: option storage */
extern _Atomic int64_t option_protected_mode;           /* global: option storage; bool */
extern _Atomic int64_t option_socket_mark_id;           /* global: option storage */
extern struct option_string option_unixsocket;          /* global: option storage; NULL: none */
extern struct option_string option_bind_source_addr;    /* global: option storage; NULL: none */
extern struct option_string option_requirepass;         /* global: option storage; NULL: none */

/* The addresses of `bind`; valid until the next CONFIG SET bind. In an exclusive section, or before the workers
 * start. */
const char *const *option_bind_addresses(size_t *count);

/* --- clients --- */
extern _Atomic int64_t option_client_query_buffer_limit; /* global: option storage; bytes */
extern _Atomic int64_t option_proto_max_bulk_len;        /* global: option storage; bytes */

enum output_class { OUTPUT_CLASS_NORMAL, OUTPUT_CLASS_REPLICA, OUTPUT_CLASS_PUBSUB, OUTPUT_CLASS_COUNT };
struct output_limit {
    _Atomic uint64_t hard_bytes;   /* atomic: relaxed; 0: no limit */
    _Atomic uint64_t soft_bytes;   /* atomic: relaxed; 0: no limit */
    _Atomic uint64_t soft_seconds; /* atomic: relaxed */
};
extern struct output_limit option_output_limits[OUTPUT_CLASS_COUNT]; /* global: option storage */

/* --- threads and time --- */
extern _Atomic int64_t option_server_threads;          /* global: option storage */
extern _Atomic int64_t option_server_thread_affinity;  /* global: option storage; 0: off, N: first processor + 1 */
extern _Atomic int64_t option_active_client_balancing; /* global: option storage; bool */
extern _Atomic int64_t option_min_clients_per_thread;  /* global: option storage */
extern _Atomic int64_t option_event_loop;              /* global: option storage; enum loop_kind of net/loop.h */
extern _Atomic int64_t option_event_loop_spin_us;      /* global: option storage */
extern _Atomic int64_t option_prefetch_enabled;        /* global: option storage; bool */
enum { OPTION_HZ_MOST = 500 };
extern _Atomic int64_t option_hz;         /* global: option storage; the effective value is server_hz */
extern _Atomic int64_t option_dynamic_hz; /* global: option storage; bool */
extern _Atomic int64_t option_databases;  /* global: option storage */

/* --- memory --- */
extern _Atomic int64_t option_maxmemory; /* global: option storage; bytes, unsigned; 0: none */
enum memory_policy {                     /* bits, so that one test covers several policies */
                     POLICY_LRU = 1 << 0,
                     POLICY_LFU = 1 << 1,
                     POLICY_RANDOM = 1 << 2,
                     POLICY_TTL = 1 << 3,
                     POLICY_NO_EVICTION = 1 << 4,
                     POLICY_ALL_KEYS = 1 << 5, /* all keys, not only those with a deadline */
                     POLICY_MODIFIED = 1 << 6  /* with POLICY_LRU: reads are no use of a key */
};
extern _Atomic int64_t option_maxmemory_policy;         /* global: option storage; enum memory_policy */
extern _Atomic int64_t option_lfu_log_factor;           /* global: option storage */
extern _Atomic int64_t option_lfu_decay_time;           /* global: option storage; minutes */
extern _Atomic int64_t option_lazyfree_lazy_eviction;   /* global: option storage; bool */
extern _Atomic int64_t option_lazyfree_lazy_expire;     /* global: option storage; bool */
extern _Atomic int64_t option_lazyfree_lazy_server_del; /* global: option storage; bool */
extern _Atomic int64_t option_lazyfree_lazy_user_del;   /* global: option storage; bool */
extern _Atomic int64_t option_lazyfree_lazy_user_flush; /* global: option storage; bool */

/* --- values --- */
extern _Atomic int64_t option_hll_sparse_max_bytes; /* global: option storage; bytes */

/* --- log and process --- */
extern _Atomic int64_t option_loglevel;          /* global: option storage; enum log_level */
extern struct option_string option_logfile;      /* global: option storage; never NULL */
extern _Atomic int64_t option_syslog_enabled;    /* global: option storage; bool */
extern struct option_string option_syslog_ident; /* global: option storage */
extern _Atomic int64_t option_syslog_facility;   /* global: option storage; LOG_LOCAL0 ... of <syslog.h> */
extern _Atomic int64_t option_daemonize;         /* global: option storage; bool */
extern struct option_string option_pidfile;      /* global: option storage; NULL: none */
enum supervised_mode { SUPERVISED_NO, SUPERVISED_AUTO, SUPERVISED_SYSTEMD, SUPERVISED_UPSTART };
extern _Atomic int64_t option_supervised;               /* global: option storage; enum supervised_mode */
extern _Atomic int64_t option_always_show_logo;         /* global: option storage; bool */
extern _Atomic int64_t option_set_proc_title;           /* global: option storage; bool */
extern struct option_string option_proc_title_template; /* global: option storage */
enum allowed_from { ALLOWED_NO, ALLOWED_YES, ALLOWED_LOCAL };
extern _Atomic int64_t option_enable_debug_command;     /* global: option storage; enum allowed_from */
extern _Atomic int64_t option_enable_protected_configs; /* global: option storage; enum allowed_from */
extern _Atomic int64_t option_enable_module_command;    /* global: option storage; enum allowed_from */

/* --- TLS; as struct tls_options of net/tls.h --- */
extern struct option_string option_tls_cert_file;     /* global: option storage; NULL: none, as for all strings below */
extern struct option_string option_tls_key_file;      /* global: option storage */
extern struct option_string option_tls_key_file_pass; /* global: option storage */
extern struct option_string option_tls_client_cert_file;     /* global: option storage */
extern struct option_string option_tls_client_key_file;      /* global: option storage */
extern struct option_string option_tls_client_key_file_pass; /* global: option storage */
extern struct option_string option_tls_ca_cert_file;         /* global: option storage */
extern struct option_string option_tls_ca_cert_dir;          /* global: option storage */
extern struct option_string option_tls_dh_params_file;       /* global: option storage */
extern struct option_string option_tls_protocols;            /* global: option storage */
extern struct option_string option_tls_ciphers;              /* global: option storage */
extern struct option_string option_tls_ciphersuites;         /* global: option storage */
extern _Atomic int64_t option_tls_auth_clients;              /* global: option storage; enum tls_auth_clients */
extern _Atomic int64_t option_tls_prefer_server_ciphers;     /* global: option storage; bool */
extern _Atomic int64_t option_tls_session_caching;           /* global: option storage; bool */
extern _Atomic int64_t option_tls_session_cache_size;        /* global: option storage */
extern _Atomic int64_t option_tls_session_cache_timeout;     /* global: option storage; seconds */

/* The rows of all these options, with defaults and bounds; config_setup adds them. */
extern const struct option_row server_options[];
extern const size_t server_option_count;
void options_teardown(void); /* main thread, after the workers have ended */
/* Limits values whose bounds are narrower than those accepted (hz): after the options of the start were read, and in
 * the exclusive section in which one is set. */
void options_clamp(void);
