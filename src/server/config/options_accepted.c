#include "server/config/options_accepted.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/number.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum reason { PERSISTENCE, REPLICATION, CLUSTER, TYPES, LATER, OTHERWISE };

static const char *const reasons[] = {
    [PERSISTENCE] = "there is only one way of saving and loading",
    [REPLICATION] = "replication works differently here",
    [CLUSTER] = "cluster mode is not supported",
    [TYPES] = "its type of values is not supported",
    [LATER] = "its feature is not supported",
    [OTHERWISE] = "this server works differently and needs no such setting",
};

struct accepted {
    enum option_type type;
    const char *name, *alias;
    const char *preset;
    int64_t least, most;
    const char *names; /* ENUM: "a|b|c"; MULTI_ENUM: "a=0|b=3|c=1|d=2", with the bits of each */
    uint32_t flags;
    enum reason reason;
    bool only_preset; /* nothing but the default may be given */
};

#define MUTABLE OPTION_MUTABLE
#define NUMBER(type_, name_, alias_, preset_, least_, most_, flags_, reason_)                               \
    {                                                                                                       \
        .type = OPTION_##type_, .name = (name_), .alias = (alias_), .preset = (preset_), .least = (least_), \
        .most = (most_), .flags = (flags_), .reason = (reason_)                                             \
    }
#define YES_NO(name_, alias_, preset_, flags_, reason_) NUMBER(BOOL, name_, alias_, preset_, 0, 1, flags_, reason_)
#define TEXT(name_, alias_, preset_, flags_, reason_) NUMBER(STRING, name_, alias_, preset_, 0, 0, flags_, reason_)
#define CHOICE(name_, preset_, names_, flags_, reason_)                                                  \
    {                                                                                                    \
        .type = OPTION_ENUM, .name = (name_), .preset = (preset_), .names = (names_), .flags = (flags_), \
        .reason = (reason_)                                                                              \
    }
#define ONLY_YES_NO(name_, alias_, preset_, flags_, reason_)                                                        \
    {                                                                                                               \
        .type = OPTION_BOOL, .name = (name_), .alias = (alias_), .preset = (preset_), .most = 1, .flags = (flags_), \
        .reason = (reason_), .only_preset = true                                                                    \
    }
#define ONLY_TEXT(name_, alias_, preset_, flags_, reason_)                                                 \
    {                                                                                                      \
        .type = OPTION_STRING, .name = (name_), .alias = (alias_), .preset = (preset_), .flags = (flags_), \
        .reason = (reason_), .only_preset = true                                                           \
    }

static const struct accepted accepted[] = {
    NUMBER(INT, "active-defrag-cycle-us", NULL, "500", 0, 100000, MUTABLE, OTHERWISE),
    YES_NO("activerehashing", NULL, "yes", MUTABLE, OTHERWISE),
    YES_NO("allow-rdb-resize-op", NULL, "yes", MUTABLE, REPLICATION),
    YES_NO("allow-write-during-load", NULL, "no", MUTABLE, PERSISTENCE),
    NUMBER(INT, "aof-load-corrupt-tail-max-size", NULL, "0", 0, INT64_MAX, MUTABLE, PERSISTENCE),
    NUMBER(INT, "array-slice-size", NULL, "4096", 256, 65536, MUTABLE, TYPES),
    NUMBER(INT, "array-sparse-kmax", NULL, "10", 0, INT32_MAX, MUTABLE, TYPES),
    NUMBER(INT, "array-sparse-kmin", NULL, "5", 0, INT32_MAX, MUTABLE, TYPES),
    NUMBER(INT, "backup-sealed-ttl", NULL, "0", 0, INT32_MAX, MUTABLE, LATER),
    TEXT("backupdirname", NULL, "backupdir", 0, LATER),
    NUMBER(INT, "client-default-resp", NULL, "2", 2, 3, OPTION_HIDDEN, OTHERWISE),
    YES_NO("cluster-allow-pubsubshard-when-down", NULL, "yes", MUTABLE, CLUSTER),
    YES_NO("cluster-allow-reads-when-down", NULL, "no", MUTABLE, CLUSTER),
    YES_NO("cluster-allow-replica-migration", NULL, "yes", MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-announce-bus-port", NULL, "0", 0, 65535, MUTABLE, CLUSTER),
    TEXT("cluster-announce-client-ipv4", NULL, NULL, MUTABLE, CLUSTER),
    TEXT("cluster-announce-client-ipv6", NULL, NULL, MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-announce-client-port", NULL, "0", 0, 65535, MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-announce-client-tls-port", NULL, "0", 0, 65535, MUTABLE, CLUSTER),
    TEXT("cluster-announce-hostname", NULL, NULL, MUTABLE, CLUSTER),
    TEXT("cluster-announce-human-nodename", NULL, NULL, MUTABLE, CLUSTER),
    TEXT("cluster-announce-ip", NULL, NULL, MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-announce-port", NULL, "0", 0, 65535, MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-announce-tls-port", NULL, "0", 0, 65535, MUTABLE, CLUSTER),
    NUMBER(UINT, "cluster-blacklist-ttl", NULL, "60", 0, -1, MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-compatibility-sample-ratio", NULL, "0", 0, 100, MUTABLE, CLUSTER),
    TEXT("cluster-config-file", NULL, "nodes.conf", 0, CLUSTER),
    CHOICE("cluster-config-save-behavior", "sync", "sync|best-effort", MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-databases", NULL, "1", 1, INT32_MAX, 0, CLUSTER),
    ONLY_YES_NO("cluster-enabled", NULL, "no", 0, CLUSTER),
    NUMBER(MEMORY, "cluster-link-sendbuf-limit", NULL, "0", 0, -1, MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-manual-failover-timeout", NULL, "5000", 1, INT32_MAX, MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-migration-barrier", NULL, "1", 0, INT32_MAX, MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-node-timeout", NULL, "15000", 0, INT64_MAX, MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-ping-interval", NULL, "0", 0, INT64_MAX, MUTABLE | OPTION_HIDDEN, CLUSTER),
    NUMBER(INT, "cluster-port", NULL, "0", 0, 65535, 0, CLUSTER),
    CHOICE("cluster-preferred-endpoint-type", "ip", "ip|hostname|unknown-endpoint", MUTABLE, CLUSTER),
    YES_NO("cluster-replica-no-failover", "cluster-slave-no-failover", "no", MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-replica-validity-factor", "cluster-slave-validity-factor", "10", 0, INT32_MAX, MUTABLE,
           CLUSTER),
    YES_NO("cluster-require-full-coverage", NULL, "yes", MUTABLE, CLUSTER),
    NUMBER(MEMORY, "cluster-slot-migration-handoff-max-lag-bytes", NULL, "1048576", 0, INT64_MAX, MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-slot-migration-log-max-len", NULL, "1000", 0, INT64_MAX, MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-slot-migration-sync-buffer-drain-timeout", NULL, "60000", 0, INT64_MAX, MUTABLE, CLUSTER),
    NUMBER(INT, "cluster-slot-migration-write-pause-timeout", NULL, "10000", 0, INT64_MAX, MUTABLE, CLUSTER),
    CHOICE("cluster-slot-stats-enabled", "no", "no=0|yes=7|cpu=1|net=2|mem=4",
           MUTABLE | OPTION_MULTI_ARG | OPTION_MULTI_ENUM, CLUSTER),
    ONLY_TEXT("db-s3-object", NULL, NULL, MUTABLE, PERSISTENCE),
    TEXT("debug-context", NULL, NULL, MUTABLE | OPTION_HIDDEN, OTHERWISE),
    YES_NO("delete-on-evict", NULL, "no", MUTABLE, LATER),
    YES_NO("dual-channel-replication-enabled", NULL, "no", MUTABLE, REPLICATION),
    YES_NO("enable-async-commands", NULL, "no", MUTABLE, OTHERWISE),
    YES_NO("enable-async-rehash", NULL, "yes", MUTABLE, OTHERWISE),
    YES_NO("enable-debug-assert", NULL, "no", OPTION_HIDDEN, OTHERWISE),
    YES_NO("enable-keydb-fastsync", NULL, "no", MUTABLE, REPLICATION),
    YES_NO("enable-motd", NULL, "yes", 0, LATER),
    NUMBER(INT, "events-per-io-thread", NULL, "2", 0, INT32_MAX, MUTABLE, OTHERWISE),
    YES_NO("extended-redis-compatibility", NULL, "no", MUTABLE, OTHERWISE),
    YES_NO("flash-disable-key-cache", NULL, "no", MUTABLE, LATER),
    YES_NO("force-backlog-disk-reserve", NULL, "no", MUTABLE, REPLICATION),
    TEXT("hash-seed", NULL, NULL, 0, OTHERWISE),
    YES_NO("io-threads-do-reads", NULL, "no", 0, OTHERWISE),
    YES_NO("key-memory-histograms", NULL, "no", 0, LATER),
    TEXT("list-max-ziplist-entries", NULL, NULL, OPTION_HIDDEN | OPTION_NO_REWRITE, TYPES),
    TEXT("list-max-ziplist-value", NULL, NULL, OPTION_HIDDEN | OPTION_NO_REWRITE, TYPES),
    NUMBER(INT, "loading-process-events-interval-bytes", NULL, "2097152", 1024, INT32_MAX, MUTABLE | OPTION_HIDDEN,
           PERSISTENCE),
    NUMBER(MEMORY, "loading-process-events-interval-keys", NULL, "8192", 0, INT64_MAX, MUTABLE, PERSISTENCE),
    NUMBER(INT, "lookahead", NULL, "16", 1, INT32_MAX, MUTABLE, OTHERWISE),
    YES_NO("lua-enable-deprecated-api", NULL, "no", OPTION_HIDDEN, LATER),
    YES_NO("lua-enable-insecure-api", NULL, "no", 0, LATER),
    TEXT("lua-replicate-commands", NULL, NULL, OPTION_HIDDEN | OPTION_NO_REWRITE, LATER),
    NUMBER(INT, "max-new-connections-per-cycle", NULL, "10", 1, 1000, MUTABLE, OTHERWISE),
    NUMBER(INT, "max-new-tls-connections-per-cycle", NULL, "1", 1, 1000, MUTABLE, OTHERWISE),
    NUMBER(INT, "max-snapshot-slip", NULL, "400", 0, 5000, MUTABLE, OTHERWISE),
    NUMBER(MEMORY, "maxstorage", NULL, "0", 0, INT64_MAX, MUTABLE, LATER),
    NUMBER(INT, "min-io-threads-avoid-copy-reply", NULL, "7", 0, INT32_MAX, MUTABLE, OTHERWISE),
    NUMBER(INT, "min-string-size-avoid-copy-reply", NULL, "16384", 0, INT32_MAX, MUTABLE, OTHERWISE),
    NUMBER(INT, "min-string-size-avoid-copy-reply-threaded", NULL, "65536", 0, INT32_MAX, MUTABLE, OTHERWISE),
    YES_NO("mptcp", NULL, "no", 0, LATER),
    YES_NO("multithread-load-enabled", NULL, "no", MUTABLE, PERSISTENCE),
    NUMBER(INT, "prefetch-batch-max-size", NULL, "16", 0, 128, MUTABLE, OTHERWISE),
    YES_NO("rdb-del-sync-files", NULL, "no", MUTABLE, PERSISTENCE),
    CHOICE("rdb-version-check", "strict", "strict|relaxed", MUTABLE, PERSISTENCE),
    TEXT("rdma-bind", NULL, NULL, 0, LATER),
    NUMBER(INT, "rdma-completion-vector", NULL, "-1", -1, 1024, 0, LATER),
    NUMBER(INT, "rdma-port", NULL, "0", 0, 65535, 0, LATER),
    NUMBER(INT, "rdma-rx-size", NULL, "1048576", 65536, 16777216, 0, LATER),
    NUMBER(MEMORY, "repl-backlog-disk-reserve", NULL, "0", 0, INT64_MAX, 0, REPLICATION),
    YES_NO("repl-mptcp", NULL, "no", 0, REPLICATION),
    YES_NO("repl-rdb-channel", NULL, "no", MUTABLE, REPLICATION),
    NUMBER(MEMORY, "replica-full-sync-buffer-limit", NULL, "0", 0, INT64_MAX, MUTABLE, REPLICATION),
    NUMBER(INT, "replica-weighting-factor", NULL, "2", 1, INT32_MAX, MUTABLE, REPLICATION),
    TEXT("req-res-logfile", NULL, NULL, OPTION_HIDDEN, OTHERWISE),
    CHOICE("sanitize-dump-payload", "no", "no|yes|clients", MUTABLE, PERSISTENCE),
    NUMBER(INT, "semi-ordered-set-bucket-size", NULL, "0", 0, 1024, MUTABLE, TYPES),
    NUMBER(INT, "slot-migration-max-failover-repl-bytes", NULL, "0", -1, INT64_MAX, MUTABLE, CLUSTER),
    CHOICE("storage-cache-mode", "writethrough", "writeback|writethrough", 0, LATER),
    NUMBER(INT, "storage-flush-period", NULL, "500", 1, 10000, MUTABLE, LATER),
    TEXT("storage-provider-options", NULL, NULL, 0, LATER),
    YES_NO("testmode", NULL, "no", OPTION_HIDDEN, OTHERWISE),
    YES_NO("time-thread-priority", NULL, "no", 0, OTHERWISE),
    YES_NO("tls-cluster", NULL, "no", MUTABLE, CLUSTER),
    YES_NO("use-fork", NULL, "yes", 0, PERSISTENCE),
    YES_NO("vset-force-single-threaded-execution", NULL, "no", MUTABLE, TYPES),
};

/* The rows made of these. */
static struct option_row rows[countof(accepted)];
static _Atomic int64_t numbers[countof(accepted)];
static struct option_string strings[countof(accepted)];
static struct option_enum *names[countof(accepted)];
static bool made;

/* --- rows --- */

static const struct accepted *accepted_of(const struct option_row *row)
{
    return row >= rows && row < &rows[countof(rows)] ? &accepted[row - rows] : NULL;
}

const char *options_accepted_reason(const struct option_row *row)
{
    const struct accepted *from = accepted_of(row);

    return from == NULL ? NULL : reasons[from->reason];
}

static const char *check_only_preset(const struct option_row *row, int64_t number, struct slice text)
{
    bool is_preset = row->type == OPTION_STRING ? text.size == 0 : number == row->preset;

    return is_preset ? NULL : options_accepted_reason(row);
}

/* "a|b|c" as a table: 0, 1, 2; or with the values behind the names. */
static struct option_enum *make_names(const char *text)
{
    struct option_enum *table;
    size_t count = 1, index = 0;

    for (const char *at = text; *at != '\0'; at++)
        count += *at == '|';
    table = mem_alloc_zero((count + 1) * sizeof(*table));
    while (index < count) {
        size_t size = strcspn(text, "|");
        size_t name_size = strcspn(text, "=|");
        int64_t value = (int64_t)index;

        if (name_size != size && !number_parse_i64(slice_make(text + name_size + 1, size - name_size - 1), &value))
            assert(!"a value in the table that is no number");
        table[index].name = mem_copy(text, name_size);
        table[index].value = value;
        index++;
        text += size + (text[size] == '|');
    }
    return table;
}

static void free_names(struct option_enum **table)
{
    for (struct option_enum *at = *table; at != NULL && at->name != NULL; at++)
        mem_free((void *)(uintptr_t)at->name);
    mem_free(*table);
    *table = NULL;
}

static void make_row(size_t index)
{
    const struct accepted *from = &accepted[index];
    struct option_row *row = &rows[index];
    struct option_value value;
    char error[OPTION_ERROR_SPACE];

    *row = (struct option_row){.name = from->name,
                               .alias = from->alias,
                               .type = from->type,
                               .flags = from->flags,
                               .least = from->least,
                               .most = from->most,
                               .help = reasons[from->reason]};
    if (from->type == OPTION_STRING) {
        row->string = &strings[index];
        row->preset_text = from->preset;
        row->flags |= from->preset == NULL ? OPTION_EMPTY_IS_NULL : 0;
    } else {
        struct slice word = slice_from_text(from->preset);

        row->number = &numbers[index];
        if (from->type == OPTION_ENUM)
            row->names = names[index] = make_names(from->names);
        if (!option_parse(row, &word, 1, &value, error, sizeof(error)))
            assert(!"a default that its own option refuses");
        row->preset = value.number;
        option_value_release(&value);
    }
    if (from->only_preset)
        row->check = check_only_preset;
}

const struct option_row *options_accepted(size_t *count)
{
    assert(made || gate_is_alone()); /* made while there is one thread */
    for (size_t i = 0; !made && i < countof(accepted); i++)
        make_row(i);
    made = true;
    *count = countof(rows);
    return rows;
}

void options_accepted_teardown(void)
{
    gate_assert_no_traffic();
    for (size_t i = 0; i < countof(accepted); i++)
        free_names(&names[i]);
    made = false;
}
