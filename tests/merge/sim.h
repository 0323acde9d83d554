/* A world for the rules of merge/: nodes, links, crashes, files, clocks, operators.
 *
 * A history is a list of events, made from a seed beforehand. An event holds all its random choices, so a history with
 * some events left out still means nearly the same: that is how a failing one is made small. In the end everything is
 * repaired, all links come up, and the nodes are compared with each other and with the oracle.
 *
 *     honest    nobody is given up: every node must equal the oracle, and nothing may be late
 *     bounded   windows overflow, members are given up, histories are cut: all nodes must be equal in the end */
#pragma once

#include "merge/asks.h"
#include "node.h"
#include "values.h"

enum { SIM_NODES_MOST = 8, SIM_LINKS_MOST = SIM_NODES_MOST * SIM_NODES_MOST };

enum sim_event_kind {
    EVENT_CLIENT,
    EVENT_LINK,
    EVENT_LINKS,
    EVENT_CUT,
    EVENT_ADVANCE,
    EVENT_SAVE,
    EVENT_CRASH,
    EVENT_BACK,
    EVENT_JOIN,
    EVENT_CLOCK,
    EVENT_FORGET,
    EVENT_WIPE,
    EVENT_GIVE_UP,
    EVENT_BOUND,
    EVENT_REPAIR,
    EVENT_KINDS
};

struct sim_event {
    uint8_t kind;
    uint8_t later_ms;
    uint64_t seed;
};

struct sim_history {
    uint64_t seed; /* of the world before the first event */
    bool bounded;
    enum value_profile profile;
    struct sim_event *items;
    uint32_t count, capacity;
};

enum sim_message_kind {
    MESSAGE_ENTRY,
    MESSAGE_BEAT,
    MESSAGE_SNAPSHOT,
    MESSAGE_STOPPED,
    MESSAGE_HELLO,
    MESSAGE_WANT,
    MESSAGE_STOP
};

struct sim_beat {
    uint32_t references;
    struct merge_beat whole, part; /* part: what goes by the link */
};

struct sim_message {
    enum sim_message_kind kind;
    bool repeated; /* the wire has doubled it */
    struct merge_entry *entry;
    struct sim_beat *beat;
    struct merge_snapshot *snapshot;
    struct merge_hello *hello; /* with its own vectors */
    uint64_t origin, stamp;
};

struct sim_queue {
    struct sim_message *items;
    uint32_t first, count, capacity; /* items[first ... count - 1] */
};

enum sim_link_state {
    LINK_OFF,
    LINK_CONNECTING,
    LINK_ON,
    LINK_GHOST /* the sender died; the wire still holds things */
};

struct sim_link {
    uint32_t from, to;
    bool up;
    bool exempt; /* a snapshot overtook it: what it still brings may be known */
    enum sim_link_state state;
    struct sim_queue forward, backward;
    uint64_t sender_origin;
    struct merge_vector sent;         /* at the sender: what is wanted, and up to where it was sent */
    struct merge_vector asked_closed; /* at the receiver: a set */
    uint32_t cursor;                  /* in the sender's history */
};

struct sim_node {
    struct merge_node *node; /* NULL: gone for ever */
    struct merge_snapshot *file;
    struct merge_asks asks;
    int64_t clock_offset;
    int64_t clock_rate; /* in eighths */
    uint64_t limit_window;
    uint32_t limit_tombstones;
    bool alive;
};

struct sim_totals {
    uint64_t histories, events, operations, deliveries, snapshots, forced, joins, crashes, forgotten, wiped, refused;
    uint64_t given_first, evictions, flushes, compared_with_oracle;
    struct merge_counts counts;
};

struct sim {
    struct random random; /* of the event that is running */
    int64_t now;
    struct sim_node nodes[SIM_NODES_MOST];
    struct sim_link links[SIM_LINKS_MOST];
    uint32_t node_count, link_count;
    uint32_t key_count;
    uint64_t next_origin;
    enum merge_waited waited;
    bool bounded, may_force, saved_history, print;
    bool gentle; /* no wire loses or doubles anything */
    enum value_profile profile;
    char wrong[512]; /* the first property that did not hold */
    struct {
        struct merge_entry **items; /* all that were ever made */
        uint32_t count, capacity;
    } all;
    struct sim_totals *totals;
};

void sim_history_make(struct sim_history *history, uint64_t seed, bool bounded);
/* Runs a history. Returns false if a property did not hold; `wrong` then says which (512 bytes). */
bool sim_run(const struct sim_history *history, bool print, struct sim_totals *totals, char *wrong);

/* --- pieces, for directed histories --- */

void sim_init(struct sim *sim, uint64_t seed, bool bounded, struct sim_totals *totals);
void sim_init_mesh(struct sim *sim, uint32_t node_count, bool bounded, struct sim_totals *totals); /* even clocks */
void sim_fini(struct sim *sim);
int64_t sim_wall(const struct sim *sim, uint32_t node);
struct sim_link *sim_link(struct sim *sim, uint32_t from, uint32_t to);
/* Runs one command on one key; "k0" is key 0. */
void sim_command(struct sim *sim, uint32_t node, uint32_t key, struct value_part part);
void sim_evict(struct sim *sim, uint32_t node, uint32_t key);
void sim_flush(struct sim *sim, uint32_t node);
void sim_send(struct sim *sim, struct sim_link *link,
              bool beat); /* connects; the sender puts what it has on the wire */
void sim_receive(struct sim *sim, struct sim_link *link, uint32_t most);
void sim_exchange(struct sim *sim, uint32_t rounds); /* everything over all links, then the frontiers, then settles */
void sim_settle(struct sim *sim, uint32_t node);
void sim_save(struct sim *sim, uint32_t node);
void sim_trim(struct sim *sim, uint32_t node);
void sim_repair(struct sim *sim, uint32_t node);
void sim_crash(struct sim *sim, uint32_t node, bool wire_stays);
void sim_back(struct sim *sim, uint32_t node);
uint32_t sim_join(struct sim *sim);                           /* linked to all, with an even clock */
bool sim_forget(struct sim *sim, uint32_t by, uint32_t gone); /* false: it is refused */
void sim_cut(struct sim *sim, uint32_t a, uint32_t b, bool cut);
void sim_drop_link(struct sim *sim, uint32_t from, uint32_t to);
bool sim_finish(struct sim *sim); /* repairs everything and compares */
