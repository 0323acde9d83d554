#include "store/snapshot.h"

#include "base/assert.h"

static unsigned quiet_database_bound(const struct snapshot *snapshot)
{
    return store_database_bound(snapshot->access->store);
}

static void quiet_totals(const struct snapshot *snapshot, unsigned db, struct database_totals *totals)
{
    store_database_totals(snapshot->access->store, db, totals);
}

struct sieve {
    const struct snapshot_visitor *visitor;
    const struct snapshot_choice *choice;
};

static void visit_chosen(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    const struct sieve *sieve = context;

    if (snapshot_chooses(sieve->choice, entry))
        sieve->visitor->visit(access, db, entry, sieve->visitor->context);
}

static bool quiet_each(struct snapshot *snapshot, const struct snapshot_visitor *visitor, unsigned count)
{
    const bool has_all = snapshot_has_all(snapshot);
    struct sieve sieve = {visitor, snapshot->choice};
    const struct access_visitor each = {.visit = has_all ? visitor->visit : visit_chosen,
                                        .context = has_all ? visitor->context : &sieve,
                                        .sees_expired = visitor->sees_expired};
    bool is_whole = true;

    assert(count == 1);
    for (unsigned db = 0; db < store_database_bound(snapshot->access->store); db++) {
        access_each(snapshot->access, db, &each);
        if (visitor->rest != NULL && !visitor->rest(visitor->context)) {
            is_whole = false;
            break;
        }
    }
    if (visitor->done != NULL)
        visitor->done(visitor->context);
    return is_whole;
}

static bool quiet_each_stripe(struct snapshot *snapshot, const struct snapshot_holder *holder)
{
    for (uint32_t i = 0; i <= snapshot->access->store->stripe_mask; i++) {
        holder->hold(snapshot->access, i, holder->context);
        if (!holder->rest(holder->context))
            return false;
    }
    return true;
}

struct snapshot snapshot_of_access(struct access *access)
{
    return snapshot_of_chosen(access, NULL);
}

struct snapshot snapshot_of_chosen(struct access *access, const struct snapshot_choice *choice)
{
    static const struct snapshot_kind quiet = {.database_bound = quiet_database_bound,
                                               .totals = quiet_totals,
                                               .each = quiet_each,
                                               .each_stripe = quiet_each_stripe};

    assert(access->exclusive);
    return (struct snapshot){.kind = &quiet, .access = access, .choice = choice};
}
