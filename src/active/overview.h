/* The group as this node sees it: its masters with their links, and the members that it knows, put together. For INFO,
 * ROLE and KEYDB.ACTIVE. Any thread, under no lock; what it sees is of one moment, and may be over. */
#pragma once

#include "active/links.h"
#include "active/node.h"
#include "active/sender.h"
#include "active/uuid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A master, a member, or both: the one that was heard behind a master's address last is that member. */
struct overview_peer {
    bool has_link, is_member, is_sent_to;
    struct link_facts link;         /* with has_link */
    struct node_member member;      /* with is_member */
    struct sender_facts sender;     /* with is_sent_to: the link on which it receives */
    char name[UUID_TEXT_BYTES + 1]; /* "": nobody was heard there yet */
};

struct overview {
    struct overview_peer *items; /* masters in their order, then members without a link of this node */
    size_t count, capacity;
    struct node_facts node;
    int64_t now_ms;
};

void overview_take(struct overview *overview, int64_t now_ms);
void overview_fini(struct overview *overview);

const char *overview_link_word(const struct overview_peer *peer); /* "up", "sync", "connect" ...; "none": no link */
/* How old a stamp is; -1: there is none. */
int64_t overview_age_ms(const struct overview *overview, uint64_t stamp);
