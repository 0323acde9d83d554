#include "store/changed.h"

#include "base/array.h"
#include "store/lookup.h"

#include <string.h>

void changed_fini(struct changed *changed)
{
    buffer_fini(&changed->names);
    ARRAY_FINI(&changed->groups);
    ARRAY_FINI(&changed->stamps);
    ARRAY_FINI(changed);
}

static void cut(struct changed *changed, uint32_t count)
{
    if (count == changed->count)
        return;
    changed->names.size = changed->items[count].name_at;
    changed->count = count;
}

static struct slice name_of(const struct changed *changed, const struct changed_item *key)
{
    return slice_make(changed->names.data + key->name_at, key->name_size);
}

/* Commands that change a key twice do it without another one in between. */
static bool is_last(const struct changed *changed, const struct change *change)
{
    const struct changed_group *group = changed->groups.count != 0 ? &changed->groups.items[changed->groups.count - 1]
                                                                   : NULL;
    const struct changed_item *last;

    if (changed->count == (group != NULL ? group->key_end : 0))
        return false;
    last = &changed->items[changed->count - 1];
    return last->hash == change->key->hash && last->db == change->db &&
           slice_equal(name_of(changed, last), change->key->name);
}

void changed_note(struct changed *changed, const struct change *change)
{
    access_assert_holds(change->access, access_stripe_of(change->access, change->key));
    if (is_last(changed, change))
        return;
    *ARRAY_PUSH(changed) = (struct changed_item){change->key->hash, changed->names.size, change->key->name.size,
                                                 change->db};
    buffer_append_slice(&changed->names, change->key->name);
}

void changed_end_group(struct changed *changed, uint32_t effect_count, int64_t wall_ms)
{
    const struct changed_group *last = changed->groups.count != 0 ? &changed->groups.items[changed->groups.count - 1]
                                                                  : NULL;

    assert(last == NULL || effect_count >= last->effect_end);
    if (effect_count == (last != NULL ? last->effect_end : 0))
        cut(changed, last != NULL ? last->key_end : 0);
    else
        *ARRAY_PUSH(&changed->groups) = (struct changed_group){changed->count, effect_count, wall_ms};
}

void changed_clear(struct changed *changed)
{
    cut(changed, 0);
    changed->groups.count = 0;
}

static void set_version(struct access *access, const struct changed *changed, const struct changed_item *item,
                        uint64_t version)
{
    const struct key key = {name_of(changed, item), item->hash};
    struct change change = {.access = access, .key = &key, .db = item->db};

    change.stripe = &access->store->stripes[access_stripe_of(access, &key)];
    stripe_assert_held(change.stripe);
    change.keys = stripe_db(change.stripe, item->db);
    change.slot = change.keys != NULL ? lookup_slot_in_table(&change.keys->keys, &key) : NULL;
    if (change.slot != NULL)
        change_set_version(&change, version);
}

/* Of a group whose effects begin there. 0: none of them is for peers. */
static uint64_t stamp_of(const struct changed *changed, uint32_t effect, uint32_t end)
{
    for (; effect < end; effect++) {
        if (changed->stamps.items[effect].stamp != 0)
            return changed->stamps.items[effect].stamp;
    }
    return 0;
}

static void prepare_stamps(struct changed *changed)
{
    uint32_t effect = 0;

    changed->stamps.count = 0;
    for (uint32_t i = 0; i < changed->groups.count; i++) {
        const struct changed_group *group = &changed->groups.items[i];

        for (; effect < group->effect_end; effect++)
            *ARRAY_PUSH(&changed->stamps) = (struct effect_stamp){.wall_ms = group->wall_ms,
                                                                  .key_position = JOURNAL_NOWHERE};
    }
}

/* The newest stamp of a key counts, so they are written in order. */
static void write_versions(struct changed *changed, struct access *access)
{
    uint32_t key = 0, effect = 0;

    access->found_key = NULL; /* entries may move */
    for (uint32_t i = 0; i < changed->groups.count; i++) {
        const struct changed_group *group = &changed->groups.items[i];
        const uint64_t stamp = stamp_of(changed, effect, group->effect_end);

        for (; stamp != 0 && key < group->key_end; key++)
            set_version(access, changed, &changed->items[key], version_make(stamp, false, VERSION_OWN_ORIGIN));
        key = group->key_end;
        effect = group->effect_end;
    }
}

uint64_t changed_append(struct changed *changed, struct access *access, struct journal *journal,
                        const struct effects *effects)
{
    uint64_t offset;

    prepare_stamps(changed);
    assert(changed->stamps.count == effects->count);
    offset = journal_append_stamped(journal, effects, false, changed->stamps.items);
    write_versions(changed, access);
    changed_clear(changed);
    return offset;
}
