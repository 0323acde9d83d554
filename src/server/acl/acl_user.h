/* An ACL user as a value: name, passwords and permissions.
 *
 *     user = flags, passwords, selectors          a command is allowed if one of the selectors allows it
 *     selector = commands, keys, channels, databases
 *                                                 the first is the user's own, others are written in "( ... )"
 *
 * A user is created or copied, changed by rules while only one thread has it, sealed, and published (acl.h). After that
 * only its reference count and the mark for a newer version change. So a thread that holds a reference reads it without
 * a lock.
 *
 * The result of rules on commands is kept twice: as one bit for each command, for checks, and as text, for ACL LIST.
 * The text has the rules in their order, without those that a later rule on the same command or category has
 * overridden. So a user that is printed, saved and loaded has the same meaning, also if there are more commands by
 * then. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer;

enum { ACL_HASH_BYTES = 32, ACL_HASH_TEXT_BYTES = 2 * ACL_HASH_BYTES };

/* The last two control checks of payloads for RESTORE; without either it is as with ACL_SANITIZE. */
enum acl_flag { ACL_ON = 1 << 0, ACL_NOPASS = 1 << 1, ACL_SANITIZE = 1 << 2, ACL_SKIP_SANITIZE = 1 << 3 };

enum acl_permission { ACL_READ = 1 << 0, ACL_WRITE = 1 << 1, ACL_READ_WRITE = ACL_READ | ACL_WRITE };

/* A growable list of byte strings that it owns. */
struct acl_texts {
    struct slice *items;
    uint32_t count, capacity;
};

struct acl_key_pattern {
    struct slice text;
    uint32_t permissions; /* enum acl_permission */
};

/* "+select|0": the command is allowed with this first argument. */
struct acl_first_arg {
    uint32_t command_id;
    struct slice text;
};

struct acl_selector {
    bool has_all_commands; /* every bit is set */
    bool has_all_keys, has_all_channels, has_all_databases;
    bool begins_with_all; /* the rules on commands begin with +@all, otherwise with -@all */
    uint64_t *commands;   /* one bit for each command id: allowed with any arguments */
    struct {
        struct acl_first_arg *items;
        uint32_t count, capacity;
    } first_args;
    struct {
        struct acl_key_pattern *items;
        uint32_t count, capacity;
    } keys;                    /* empty if has_all_keys */
    struct acl_texts channels; /* patterns; empty if has_all_channels */
    struct {
        uint32_t *items; /* ascending */
        uint32_t count, capacity;
    } databases;            /* empty if has_all_databases */
    struct acl_texts rules; /* on commands: "+@read", "-get", "+config|get" */
};

struct acl_user {
    _Atomic uint32_t refs;    /* atomic: release when a user leaves, acquire by the last user */
    _Atomic bool is_outdated; /* atomic: relaxed; a newer version, or none, is published */
    uint64_t identity;        /* the same for all versions of a user; never used again after the user was deleted */
    struct slice name;        /* a zero byte follows */
    uint32_t flags;           /* enum acl_flag */
    bool may_everything;      /* set by acl_user_seal: a selector allows everything */
    struct {
        unsigned char (*items)[ACL_HASH_BYTES];
        uint32_t count, capacity;
    } hashes;                       /* SHA-256 of each password */
    struct acl_selector *selectors; /* at least one */
    uint32_t selector_count;
};

enum acl_error {
    ACL_FINE = 0,
    ACL_SYNTAX,
    ACL_UNKNOWN_COMMAND,
    ACL_NESTED_FIRST_ARG,
    ACL_ALL_KEYS_ALREADY,
    ACL_ALL_CHANNELS_ALREADY,
    ACL_DATABASE_RANGE,
    ACL_NO_SUCH_PASSWORD,
    ACL_BAD_HASH
};
const char *acl_error_text(enum acl_error error);

/* Creates a user: off, without password, nothing allowed (channels as acl-pubsub-default says) in all databases. The
 * registry of commands must be set up. */
struct acl_user *acl_user_create(struct slice name);
struct acl_user *acl_user_create_default(void); /* the initial default user: on, nopass, everything allowed */
struct acl_user *acl_user_copy(const struct acl_user *user); /* not sealed; the same identity */
struct acl_user *acl_user_acquire(struct acl_user *user);
void acl_user_release(struct acl_user **user); /* accepts NULL; leaves NULL */
void acl_user_seal(struct acl_user *user);     /* when its rules are complete; nobody else has a reference */

/* Applies one rule: "on", ">password", "~pattern", "+@read", "(~a +get)"... On an error the user is unchanged.
 * Nobody else has a reference. */
must_check enum acl_error acl_user_apply(struct acl_user *user, struct slice rule);

/* Sets the only password; empty: no password needed. Nobody else has a reference. */
void acl_user_set_password(struct acl_user *user, struct slice password);

/* Reads rules from words: a word that begins with "(" is joined with the following ones up to one that ends with
 * ")". */
struct acl_rule_reader {
    const struct slice *words;
    size_t count, at;
    char *joined;
};
/* False: the end. The rule is valid until the next call, which frees joined words: read to the end. */
bool acl_rule_next(struct acl_rule_reader *reader, struct slice *rule);
/* NULL: every "(" has its ")"; otherwise the word with the first "(" without one. */
const struct slice *acl_rules_unmatched(const struct slice *words, size_t count);

/* True if the name has no blanks and no zero bytes. */
bool acl_name_is_fine(struct slice name);

/* SHA-256, and whether `password` is one of the user's; the time does not depend on the password. */
void acl_hash(struct slice password, unsigned char hash[ACL_HASH_BYTES]);
void acl_hash_print(const unsigned char hash[ACL_HASH_BYTES], char text[ACL_HASH_TEXT_BYTES]);
bool acl_user_knows(const struct acl_user *user, struct slice password);

/* Append text. Parts are separated by blanks. */
void acl_user_print_rules(const struct acl_user *user, struct buffer *buffer); /* all rules: "on ... (~a +get)" */
void acl_selector_print_commands(const struct acl_selector *selector, struct buffer *buffer);
void acl_selector_print_keys(const struct acl_selector *selector, struct buffer *buffer);
void acl_selector_print_channels(const struct acl_selector *selector, struct buffer *buffer);
/* "alldbs", or "db=0,2", or nothing. */
void acl_selector_print_databases(const struct acl_selector *selector, struct buffer *buffer);
