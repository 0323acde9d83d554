/* What comes from an active KeyDB server, command by command, and what is new of it. A node has one of these for all
 * its links: KeyDB sends the same operation by several ways, and marks it with the UUID of the server where it ran and
 * with an mvcc that ascends there.
 *
 *     RREPLAY B ( RREPLAY A ( SET x 1 ) db mA ) db mB
 *
 *  1. An envelope with this node's own UUID, at any depth, is dropped, and so is one whose mvcc is not above the last
 *     one of its UUID. An envelope that has a dropped one in it is not forwarded.
 *  2. The commands of one innermost envelope are one entry, with one stamp. MULTI belongs to the UUID, not to the link:
 *     its commands wait, whatever way they come, until EXEC makes one entry of them. PING and REPLCONF do not wait. In
 *     a payload MULTI is the first command, EXEC the last, and no command stands beside an envelope.
 *  3. An envelope counts whole or not at all: one that is damaged anywhere raises no mark and gives no entry.
 *  4. Memory is bounded: UUIDs by ENVELOPES_UUIDS_MOST (beyond it the one that was silent longest is forgotten),
 *     waiting commands by `transaction_bytes_most` a UUID.
 *
 * The owner guards it. */
#pragma once

#include "active/envelope.h"
#include "active/mvcc.h"

enum { ENVELOPES_UUIDS_MOST = 1024 };

struct envelopes;

/* The memory is valid during the call that gives it. */
struct envelope_command {
    const struct slice *words; /* never SELECT, MULTI, EXEC or RREPLAY */
    uint32_t word_count;
    unsigned db;
};

struct envelope_entry {
    struct uuid uuid; /* where it ran; uuid_is_ours tells of what kind that is */
    uint64_t mvcc;    /* 0: none */
    uint64_t stamp;   /* 0 without an mvcc; else possible (stamp_is_possible) */
    const struct envelope_command *commands;
    uint32_t command_count;
    bool is_transaction;
};

typedef void (*envelope_entry_fn)(void *context, const struct envelope_entry *entry);

enum envelope_result {
    ENVELOPE_NEW,     /* all of it is new: to be forwarded to KeyDB servers, unless these are all connected directly */
    ENVELOPE_DROPPED, /* some of it is not, or is nested too deep */
    ENVELOPE_FAILED   /* `error` has the reason, with UUIDs and the place in the payload; nothing of it counts */
};

struct envelopes_counts {
    uint64_t taken;      /* envelopes, at any depth */
    uint64_t own;        /* dropped: with the own UUID */
    uint64_t known;      /* dropped: not above the mark */
    uint64_t too_deep;   /* dropped */
    uint64_t impossible; /* dropped: stamps end there */
    uint64_t failed;
    uint64_t transactions_lost; /* ended without their EXEC */
    uint64_t uuids_forgotten;
};

struct envelopes *envelopes_create(const struct uuid *own, unsigned db_count, size_t transaction_bytes_most);
void envelopes_destroy(struct envelopes **envelopes); /* accepts NULL; leaves NULL */

/* Takes one command that a link has received, an RREPLAY. *link_db is the database of that link, for envelopes that
 * name none; it begins with 0. Calls `give` for each entry, in order. The words may be used during the call only. */
must_check enum envelope_result envelopes_take(struct envelopes *envelopes, const struct slice *words,
                                               uint32_t word_count, unsigned *link_db, envelope_entry_fn give,
                                               void *context, char error[ENVELOPE_ERROR_BYTES]);

/* An operation of a KeyDB server came by a link of ours, with its stamp. */
void envelopes_learn(struct envelopes *envelopes, const struct uuid *uuid, uint64_t mvcc, uint64_t stamp);
/* The server has gone, or its data come whole: a transaction that it began will not go on. Its mark stays. */
void envelopes_end_transaction(struct envelopes *envelopes, const struct uuid *uuid);
void envelopes_forget(struct envelopes *envelopes, const struct uuid *uuid); /* its mark goes, too */

uint64_t envelopes_mark(const struct envelopes *envelopes, const struct uuid *uuid); /* its last mvcc; 0: none */
size_t envelopes_bytes(const struct envelopes *envelopes);                           /* memory */
const struct envelopes_counts *envelopes_counts(const struct envelopes *envelopes);
