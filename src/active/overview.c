#include "active/overview.h"

#include "active/peers.h"
#include "base/array.h"
#include "base/assert.h"
#include "store/stamp.h"

#include <string.h>

static void name_of(uint64_t id, char name[UUID_TEXT_BYTES + 1])
{
    const struct uuid uuid = uuid_of_id(id);

    uuid_format(&uuid, name);
}

/* A master whose link was not made yet. */
static void add_master(const struct peer *peer, void *context)
{
    struct overview_peer *added = ARRAY_PUSH((struct overview *)context);

    *added = (struct overview_peer){.has_link = true};
    added->link = (struct link_facts){.id = peer->id, .port = peer->port, .last_io_s = -1, .heard_ms = -1};
    memcpy(added->link.host, peer->host, sizeof(added->link.host));
}

static void add_link(const struct link_facts *facts, void *context)
{
    struct overview *overview = context;

    for (size_t i = 0; i < overview->count; i++) {
        struct overview_peer *peer = &overview->items[i];

        if (peer->link.id != facts->id)
            continue;
        peer->link = *facts;
        if (facts->name != 0)
            name_of(facts->name, peer->name);
    }
}

static struct overview_peer *find_linked(struct overview *overview, uint64_t name)
{
    for (size_t i = 0; i < overview->count; i++) {
        if (overview->items[i].has_link && overview->items[i].link.name == name)
            return &overview->items[i];
    }
    return NULL;
}

static void add_member(struct overview *overview, const struct node_member *member)
{
    struct overview_peer *peer = find_linked(overview, member->name);

    if (peer == NULL) {
        peer = ARRAY_PUSH(overview);
        *peer = (struct overview_peer){0};
        name_of(member->name, peer->name);
    }
    peer->is_member = true;
    peer->member = *member;
}

/* Of several from one node the last one is that which it still has. */
static void add_sender(const struct sender_facts *facts, void *context)
{
    struct overview *overview = context;

    for (size_t i = 0; i < overview->count && facts->peer != 0; i++) {
        struct overview_peer *peer = &overview->items[i];

        if (!peer->is_member || peer->member.name != facts->peer)
            continue;
        peer->is_sent_to = true;
        peer->sender = *facts;
    }
}

void overview_take(struct overview *overview, int64_t now_ms)
{
    *overview = (struct overview){.now_ms = now_ms};
    peers_each(add_master, overview);
    links_each(add_link, overview);
    node_facts(&overview->node);
    for (uint32_t i = 0; i < overview->node.member_count; i++) {
        if (!overview->node.members[i].is_self)
            add_member(overview, &overview->node.members[i]);
    }
    senders_each(add_sender, overview);
}

void overview_fini(struct overview *overview)
{
    node_facts_fini(&overview->node);
    ARRAY_FINI(overview);
}

const char *overview_link_word(const struct overview_peer *peer)
{
    static const char *const words[] = {[MASTER_CONNECT] = "connect",
                                        [MASTER_CONNECTING] = "connecting",
                                        [MASTER_HANDSHAKE] = "handshake",
                                        [MASTER_SYNC] = "sync",
                                        [MASTER_CONNECTED] = "up"};

    return peer->has_link ? words[peer->link.state] : "none";
}

int64_t overview_age_ms(const struct overview *overview, uint64_t stamp)
{
    return stamp == 0 ? -1 : MAX(overview->now_ms - stamp_ms(stamp), 0);
}
