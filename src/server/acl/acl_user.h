/* A user of the ACL as a value: who it is, how it proves it, and what it may do.
 *
 *     user = flags, passwords, selectors          may do what any one of its selectors allows
 *     selector = commands, keys, channels         the first is the user's own, others stand in "( ... )"
 *
 * A user is made or copied, changed by rules while it is its maker's alone, sealed, and published (acl.h). From then on
 * nothing in it changes but the counter of references and the mark that another version has taken its place; so whoever
 * holds a reference looks at it without a lock.
 *
 * What rules on commands do is kept twice: as one bit for each command, to be checked, and as text, to be told. The
 * text has the rules in the order in which they were given, without those that a later one of the same command or
 * category made void; so a user that is told, saved and loaded means the same, also when there are more commands by
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

/* The last two say how carefully what it restores is looked at; without either it is as with ACL_SANITIZE. */
enum acl_flag { ACL_ON = 1 << 0, ACL_NOPASS = 1 << 1, ACL_SANITIZE = 1 << 2, ACL_SKIP_SANITIZE = 1 << 3 };

enum acl_permission { ACL_READ = 1 << 0, ACL_WRITE = 1 << 1, ACL_READ_WRITE = ACL_READ | ACL_WRITE };

/* A growable list of byte strings of its own. */
struct acl_texts {
    struct slice *items;
    uint32_t count, capacity;
};

struct acl_key_pattern {
    struct slice text;
    uint32_t permissions; /* enum acl_permission */
};

/* "+select|0": the command may be run with this first argument. */
struct acl_first_arg {
    uint32_t command_id;
    struct slice text;
};

struct acl_selector {
    bool has_all_commands; /* every bit is set */
    bool has_all_keys, has_all_channels;
    bool begins_with_all; /* the rules on commands are said of all, else of none */
    uint64_t *commands;   /* a bit for each command id: may be run, whatever its arguments */
    struct {
        struct acl_first_arg *items;
        uint32_t count, capacity;
    } first_args;
    struct {
        struct acl_key_pattern *items;
        uint32_t count, capacity;
    } keys;                    /* none if has_all_keys */
    struct acl_texts channels; /* patterns; none if has_all_channels */
    struct acl_texts rules;    /* on commands: "+@read", "-get", "+config|get" */
};

struct acl_user {
    _Atomic uint32_t refs;    /* atomic: release on leaving, acquire by the last */
    _Atomic bool is_outdated; /* atomic, relaxed: a newer version, or none, is published */
    uint64_t identity;        /* the same for all versions of a user; a deleted one's is never used again */
    struct slice name;        /* a zero byte follows */
    uint32_t flags;           /* enum acl_flag */
    bool may_everything;      /* set by acl_user_seal: some selector allows all */
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
    ACL_NO_SUCH_PASSWORD,
    ACL_BAD_HASH
};
const char *acl_error_text(enum acl_error error);

/* A new user: off, without password, allowed nothing (channels as acl-pubsub-default says). The registry of commands
 * must be set up. */
struct acl_user *acl_user_create(struct slice name);
struct acl_user *acl_user_create_default(void); /* "default" as it is at first: on, nopass, allowed everything */
struct acl_user *acl_user_copy(const struct acl_user *user); /* not sealed; the same identity */
struct acl_user *acl_user_acquire(struct acl_user *user);
void acl_user_release(struct acl_user **user); /* NULL is fine; leaves NULL */
void acl_user_seal(struct acl_user *user);     /* its rules are complete */

/* One rule: "on", ">password", "~pattern", "+@read", "(~a +get)"... An error leaves the user as it was. */
must_check enum acl_error acl_user_apply(struct acl_user *user, struct slice rule);

/* This password and no other; empty: it needs none. */
void acl_user_set_password(struct acl_user *user, struct slice password);

/* Rules from words: a word that begins with "(" is joined with those behind it up to one that ends with ")". */
struct acl_rule_reader {
    const struct slice *words;
    size_t count, at;
    char *joined;
};
/* False: the end. The rule is valid until the next call, which frees what it joined: read to the end. */
bool acl_rule_next(struct acl_rule_reader *reader, struct slice *rule);
/* NULL: every "(" has its ")"; else the word that opened the one that has none. */
const struct slice *acl_rules_unmatched(const struct slice *words, size_t count);

/* No blanks, no zero bytes. */
bool acl_name_is_fine(struct slice name);

/* SHA-256, and whether `password` is one of the user's: takes the same time whichever it is. */
void acl_hash(struct slice password, unsigned char hash[ACL_HASH_BYTES]);
void acl_hash_print(const unsigned char hash[ACL_HASH_BYTES], char text[ACL_HASH_TEXT_BYTES]);
bool acl_user_knows(const struct acl_user *user, struct slice password);

/* As text, appended. Parts are separated by blanks. */
void acl_user_print_rules(const struct acl_user *user, struct buffer *buffer); /* all: "on ... (~a +get)" */
void acl_selector_print_commands(const struct acl_selector *selector, struct buffer *buffer);
void acl_selector_print_keys(const struct acl_selector *selector, struct buffer *buffer);
void acl_selector_print_channels(const struct acl_selector *selector, struct buffer *buffer);
