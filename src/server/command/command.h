/* Commands as data. Each command is one row, declared beside its function. Parsing, checks, COMMAND and its
 * documentation are made from the rows. A family publishes a table of rows (commands/string/string.c: string_commands);
 * main.c hands all tables to command_registry_setup. The facts come from the documentation of Redis and KeyDB; the
 * texts are our own.
 *
 * Strings in a row, parsed once at start:
 *   keys     key specifications, separated by blanks, each "FLAG,FLAG...@index:N@range:LAST,STEP,LIMIT", or with
 *            "@keyword:WORD,FROM" to begin and "@keynum:IDX,FIRST,STEP" or "@unknown" to find; "" = no keys.
 *            FLAGs are those of COMMAND: RO RW OW RM, ACCESS UPDATE INSERT DELETE, NOT_KEY INCOMPLETE VARIABLE_FLAGS.
 *   syntax   as in the documentation: UPPER literal token, lower argument, [] optional, | alternative, () group, ...
 *   words    flags and categories: "write denyoom fast", "@write @string @fast" */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "server/config/config.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;
struct command;

typedef void (*command_fn)(struct request *request);

/* What a command holds while it runs. */
enum access_class {
    ACCESS_EXCLUSIVE,  /* the gate; the default */
    ACCESS_STRIPED,    /* the stripes of its keys */
    ACCESS_FREE,       /* nothing: uses its own connection, registries and atomics; changes nothing that is journaled */
    ACCESS_GATED,      /* no stripe, but an open gate: its effect is journaled (PUBLISH) */
    ACCESS_WALK,       /* locks one stripe after the other itself; exclusive inside EXEC */
    ACCESS_TRANSACTION /* EXEC: all that the queued commands need */
};

enum command_flag {
    COMMAND_WRITE = 1 << 0,
    COMMAND_READONLY = 1 << 1,
    COMMAND_DENYOOM = 1 << 2,
    COMMAND_ADMIN = 1 << 3,
    COMMAND_PUBSUB = 1 << 4,
    COMMAND_NOSCRIPT = 1 << 5,
    COMMAND_BLOCKING = 1 << 6,
    COMMAND_LOADING = 1 << 7,
    COMMAND_STALE = 1 << 8,
    COMMAND_SKIP_MONITOR = 1 << 9,
    COMMAND_SKIP_SLOWLOG = 1 << 10,
    COMMAND_ASKING = 1 << 11,
    COMMAND_FAST = 1 << 12,
    COMMAND_NO_AUTH = 1 << 13,
    COMMAND_MAY_REPLICATE = 1 << 14,
    COMMAND_MOVABLE_KEYS = 1 << 15,
    COMMAND_NO_MULTI = 1 << 16,
    COMMAND_ALLOW_BUSY = 1 << 17,
    COMMAND_NO_ASYNC_LOADING = 1 << 18,
    COMMAND_NO_MANDATORY_KEYS = 1 << 19,
    COMMAND_PROTECTED = 1 << 20,      /* not printed: needs enable-debug-command or a similar option */
    COMMAND_DEPRECATED = 1 << 21,     /* documentation only */
    COMMAND_SYSTEM = 1 << 22,         /* documentation only: syscmd */
    COMMAND_ARBITRARY_KEYS = 1 << 23, /* not printed: uses keys that are not among its arguments */
    COMMAND_ALONE = 1 << 24,          /* not printed: never in one group with other commands (it may be slow) */
    COMMAND_UNQUEUED = 1 << 25,       /* not printed: runs at once, also inside MULTI */
    COMMAND_ENDS_MULTI = 1 << 26, /* not printed: ends a transaction, so it may run even if memory is above the limit */
    COMMAND_SUBSCRIBED = 1 << 27, /* not printed: allowed for clients with subscriptions over RESP2 */
    COMMAND_SCRIPT = 1 << 28,     /* not printed: runs a script: takes the turn (script_turn.h) */
    COMMAND_ABSENT = 1 << 29,     /* not printed: not supported, but ACL rules and rename-command may name it */
    COMMAND_OPERATION = 1 << 30   /* not printed: an operation of a peer; clients cannot call it */
};

/* The position of a key among the arguments. */
struct key_position {
    uint32_t arg_index;
    uint32_t flags; /* enum key_flag */
};

enum key_flag {
    KEY_RO = 1 << 0,
    KEY_RW = 1 << 1,
    KEY_OW = 1 << 2,
    KEY_RM = 1 << 3,
    KEY_ACCESS = 1 << 4,
    KEY_UPDATE = 1 << 5,
    KEY_INSERT = 1 << 6,
    KEY_DELETE = 1 << 7,
    KEY_NOT_KEY = 1 << 8,
    KEY_INCOMPLETE = 1 << 9,
    KEY_VARIABLE_FLAGS = 1 << 10,
    KEY_PATH = 1 << 11 /* not printed: the key ends at the first dot of the argument, if there is one */
};

/* A growable list of positions that is used again. */
struct key_positions {
    struct key_position *items;
    uint32_t count, capacity;
};
struct key_position *key_positions_add(struct key_positions *positions, uint32_t arg_index, uint32_t flags);
void key_positions_fini(struct key_positions *positions);
/* The key at this position. */
static inline struct slice key_position_name(const struct slice *args, struct key_position position)
{
    struct slice name = args[position.arg_index];
    const char *dot = UNLIKELY((position.flags & KEY_PATH) != 0) && name.size != 0 ? memchr(name.data, '.', name.size)
                                                                                   : NULL;

    return dot != NULL ? slice_make(name.data, (size_t)(dot - name.data)) : name;
}

/* Finds keys that specifications cannot describe (SORT ... STORE). False: a syntax error, such that the keys are
 * unknown. */
typedef bool (*keys_fn)(const struct slice *args, uint32_t arg_count, struct key_positions *positions);
typedef enum access_class (*access_class_fn)(const struct slice *args, uint32_t arg_count);
typedef uint32_t (*flags_fn)(uint32_t flags, const struct slice *args, uint32_t arg_count);
/* In a worker's thread. False is always right. */
typedef bool (*keeps_fn)(const struct slice *args, uint32_t arg_count);

/* The arguments that are channels or patterns: users need permission for them (acl_check.h). */
enum channel_args { CHANNELS_NONE, CHANNELS_FIRST, CHANNELS_ALL, CHANNELS_PATTERNS };

/* The databases that a command uses: users need permission for them (acl_check.h). Beside them it uses those that
 * find_databases finds among its arguments. */
enum database_use {
    DATABASES_OWN,    /* its client's, if it has keys, reads or writes */
    DATABASES_NAMED,  /* no others */
    DATABASES_CHOSEN, /* no others; the one it names is its client's from then on */
    DATABASES_ALL
};

/* A row of the source. Fields that are left out are zero. */
struct command_row {
    const char *name; /* lower case; for a subcommand its own word only */
    command_fn run;
    int arity;      /* negative: a minimum */
    uint8_t member; /* which argument is a member of its only key, the first one; 0: none */
    enum access_class access;
    const char *flags;
    const char *categories;
    const char *keys;
    const char *key_notes; /* for the key specifications in order, separated by |; NULL: none */
    const char *group;
    const char *since;
    const char *summary;
    const char *complexity;
    const char *syntax;
    const char *arg_since; /* "condition:7.0.0 GET:6.2.0" */
    const char *history;   /* "6.2.0=text|7.0.0=text" */
    const char *tips;      /* separated by blanks */
    const char *deprecated_since;
    const char *replaced_by;
    access_class_fn access_of; /* used instead of `access` if the arguments decide */
    keys_fn find_keys;         /* used instead of `keys` if specifications cannot describe them */
    enum channel_args channels;
    enum database_use databases;
    keys_fn find_databases; /* their numbers; NULL: it names none */
    flags_fn flags_of;      /* its flags with these arguments, as a script declares them; NULL: its own */
    keeps_fn keeps_to_keys; /* of COMMAND_SCRIPT: with these arguments it never escalates; NULL: it may */
    const struct command_row *subcommands; /* ends with a row without name */
};

/* A key specification, parsed. */
struct key_spec {
    uint32_t flags;
    enum { KEY_BEGIN_INDEX, KEY_BEGIN_KEYWORD, KEY_BEGIN_UNKNOWN } begin;
    enum { KEY_FIND_RANGE, KEY_FIND_KEYNUM, KEY_FIND_UNKNOWN } find;
    int index;                        /* BEGIN_INDEX; BEGIN_KEYWORD: where the search begins */
    const char *keyword;              /* BEGIN_KEYWORD */
    int last, step, limit;            /* FIND_RANGE */
    int count_index, first, key_step; /* FIND_KEYNUM */
};

/* A command of the registry: made from its row at start, constant afterwards except for the counters. */
struct command {
    const struct command_row *row;
    command_fn run;
    int arity;
    uint32_t flags;      /* enum command_flag */
    uint64_t categories; /* bit i: command_category_name(i) */
    enum access_class access;
    uint32_t id; /* 0 ... command_count() - 1: index of the workers' counters */
    uint32_t key_spec_count;
    struct key_spec *key_specs;
    int first_key, last_key, key_step; /* the legacy range; 0: none */
    bool simple_keys;                  /* the legacy range covers all keys */
    uint8_t member;                    /* as in the row */
    bool uses_own_database;            /* of its client: it has keys there, reads or writes */
    uint8_t operation_kind;            /* operation.h; 0: the command depends on what is older */
    uint8_t operation_key;             /* operation_key_index */
    const struct command *container;   /* NULL if not a subcommand */
    struct command *subcommands;
    uint32_t subcommand_count;
    struct slice full_name; /* "client|list" */
    struct slice name;      /* the name that clients use: that of the row unless renamed; empty: removed */
};

/* Builds the registry from tables of rows; each table ends with a row without name. Once, by the main thread, before
 * the workers start. */
void command_registry_setup(const struct command_row *const *tables, size_t table_count);
void command_registry_teardown(void); /* main thread, after the workers have ended */
/* Renames a top-level command, or removes it (empty name). Returns NULL, or the reason why not. Its full name stays.
 * Does nothing for commands that are not supported. Main thread, before the workers start. */
const char *command_rename(struct slice name, struct slice new_name);
extern const struct config_directive command_rename_directive; /* rename-command OLD NEW in a configuration file */

/* --- any thread --- */

const struct command *command_find(struct slice name); /* case-insensitive; NULL: none */
const struct command *command_find_subcommand(const struct command *container, struct slice name);
/* A command that is an operation of a peer, or one that clients can call, too; NULL: none. */
const struct command *command_find_operation(struct slice name);
/* By full name: "client|list" or "get". */
const struct command *command_find_full(struct slice name);
uint32_t command_count(void); /* with subcommands */
const struct command *command_at(uint32_t id);
uint32_t command_top_count(void); /* without subcommands */
const struct command *command_top_at(uint32_t index);

/* Appends the keys among the arguments to `positions`. False: the arguments cannot be parsed that way. */
bool command_keys(const struct command *command, const struct slice *args, uint32_t arg_count,
                  struct key_positions *positions);
enum access_class command_access(const struct command *command, const struct slice *args, uint32_t arg_count);
/* Enum command_flag: of the command with these arguments. */
uint32_t command_flags(const struct command *command, const struct slice *args, uint32_t arg_count);
/* True if the command with these arguments may change data or send something to replicas. */
bool command_may_write(const struct command *command, const struct slice *args, uint32_t arg_count);
static inline bool command_arity_fits(const struct command *command, uint32_t arg_count)
{
    return command->arity >= 0 ? arg_count == (uint32_t)command->arity : arg_count >= (uint32_t)-command->arity;
}

const char *command_category_name(unsigned bit); /* "keyspace"; NULL: no such category */
const char *command_flag_name(uint32_t flag);    /* as COMMAND prints it; NULL: not printed */
