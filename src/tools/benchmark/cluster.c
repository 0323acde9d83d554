#include "tools/benchmark/cluster.h"

#include "base/array.h"
#include "base/mem.h"
#include "net/resp.h"
#include "store/slot.h"
#include "tools/benchmark/workload.h"

#include <string.h>

enum { TAGS_A_MASTER = 128, SLOTS = 16384, TAG_LETTERS = 36 };

static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";

static bool is_list(const struct resp_reply *reply, size_t least)
{
    return reply->type == RESP_TYPE_ARRAY && reply->element_count >= least;
}

/* [first, last, [host, port, id, ...], ...]: the first node is the master. */
static bool is_range(const struct resp_reply *range)
{
    return is_list(range, 3) && range->elements[0]->type == RESP_TYPE_INT &&
           range->elements[1]->type == RESP_TYPE_INT && is_list(range->elements[2], 3) &&
           range->elements[2]->elements[1]->type == RESP_TYPE_INT && range->elements[2]->elements[2]->text != NULL;
}

static struct cluster_master *master_of(struct cluster *cluster, const struct link_target *target,
                                        const struct resp_reply *node)
{
    const struct resp_reply *host = node->elements[0];
    struct cluster_master *master;

    for (uint32_t i = 0; i < cluster->count; i++) {
        if (strcmp(cluster->masters[i].id, node->elements[2]->text) == 0)
            return &cluster->masters[i];
    }
    cluster->masters = mem_realloc(cluster->masters, (cluster->count + 1) * sizeof(*cluster->masters));
    master = &cluster->masters[cluster->count++];
    *master = (struct cluster_master){
        /* a node that does not know its own name means the one that was asked */
        .host = mem_copy_text(host->text != NULL && host->text[0] != '\0' ? host->text : target->host),
        .id = mem_copy_text(node->elements[2]->text),
        .tags = mem_alloc_zero(TAGS_A_MASTER * sizeof(*master->tags)),
        .node = {.target = *target},
    };
    master->node.target.port = (int)node->elements[1]->integer;
    master->node.target.socket_path = NULL;
    return master;
}

static void add_tags(struct cluster_master *const *owners)
{
    for (int number = 0; number < TAG_LETTERS * TAG_LETTERS * TAG_LETTERS; number++) {
        const char tag[WORKLOAD_TAG_BYTES + 1] = {letters[number / TAG_LETTERS / TAG_LETTERS],
                                                  letters[number / TAG_LETTERS % TAG_LETTERS],
                                                  letters[number % TAG_LETTERS], '\0'};
        struct cluster_master *owner = owners[slot_crc16(slice_make(tag, WORKLOAD_TAG_BYTES)) % SLOTS];

        if (owner != NULL && owner->tag_count < TAGS_A_MASTER)
            owner->tags[owner->tag_count++] = mem_copy_text(tag);
    }
}

static bool read_slots(const struct resp_reply *reply, const struct link_target *target, struct cluster *cluster,
                       struct buffer *error)
{
    struct cluster_master **owners = mem_alloc_zero(SLOTS * sizeof(struct cluster_master *));
    uint32_t *numbers = mem_alloc_zero(SLOTS * sizeof(*numbers)); /* of the master, plus one */
    bool good = is_list(reply, 1);

    for (size_t i = 0; good && i < reply->element_count; i++) {
        const struct resp_reply *range = reply->elements[i];

        good = is_range(range);
        for (int64_t slot = good ? MAX(range->elements[0]->integer, 0) : SLOTS;
             slot < SLOTS && slot <= range->elements[1]->integer; slot++)
            numbers[slot] = (uint32_t)(master_of(cluster, target, range->elements[2]) - cluster->masters) + 1;
    }
    for (int slot = 0; slot < SLOTS; slot++)
        owners[slot] = numbers[slot] != 0 ? &cluster->masters[numbers[slot] - 1] : NULL;
    if (good)
        add_tags(owners);
    else
        buffer_append_text(error, "CLUSTER SLOTS gives no slots: is it a cluster, and is it set up?\n");
    mem_free(owners);
    mem_free(numbers);
    return good;
}

static bool point(struct cluster *cluster, struct buffer *error)
{
    for (uint32_t i = 0; i < cluster->count; i++) {
        struct cluster_master *master = &cluster->masters[i];

        master->node.target.host = master->host;
        master->node.tags = (const char *const *)master->tags;
        master->node.tag_count = master->tag_count;
        if (master->tag_count == 0) {
            buffer_printf(error, "The master %s at %s:%d has so few slots that no tag leads to it\n", master->id,
                          master->host, master->node.target.port);
            return false;
        }
    }
    return true;
}

bool cluster_ask(const struct link_target *target, struct cluster *cluster, struct buffer *error)
{
    static const struct slice words[] = {SLICE("CLUSTER"), SLICE("SLOTS")};
    struct link *link = link_create();
    struct resp_reply *reply = NULL;
    enum link_step step;
    bool good;

    *cluster = (struct cluster){0};
    good = link_open(link, target) == STATUS_OK && link_greet(link, target, &step) == STATUS_OK &&
           link_call(link, words, countof(words), &reply) == STATUS_OK;
    if (!good)
        buffer_printf(error, "The cluster cannot be asked: %s\n", link_error(link));
    else if (reply->type == RESP_TYPE_ERROR)
        buffer_printf(error, "The cluster cannot be asked: %s\n", reply->text);
    good = good && error->size == 0 && read_slots(reply, target, cluster, error) && point(cluster, error);
    resp_reply_destroy(&reply);
    link_destroy(&link);
    return good;
}

void cluster_fini(struct cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->count; i++) {
        struct cluster_master *master = &cluster->masters[i];

        for (uint32_t tag = 0; tag < master->tag_count; tag++)
            mem_free(master->tags[tag]);
        mem_free(master->tags);
        mem_free(master->host);
        mem_free(master->id);
    }
    mem_free(cluster->masters);
    *cluster = (struct cluster){0};
}
