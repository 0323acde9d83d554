#include "store/key_registry.h"

#include "base/array.h"
#include "base/mem.h"
#include "store/lookup.h"
#include "store/waiters.h"

struct wanted_key {
    unsigned db;
    const struct key *key;
};

static uint64_t registry_hash(unsigned db, uint64_t hash)
{
    return hash ^ (uint64_t)db * UINT64_C(0x9E3779B97F4A7C15);
}

static uint64_t hash_of(const void *item)
{
    const struct registered_key *key = item;

    return registry_hash(key->db, key->hash);
}

static bool match(const void *item, const void *wanted_key)
{
    const struct registered_key *key = item;
    const struct wanted_key *wanted = wanted_key;

    return key->db == wanted->db && key->size == wanted->key->name.size &&
           lookup_same_bytes(key->name, wanted->key->name.data, key->size);
}

struct registered_key *key_registry_find(const struct key_registry *registry, unsigned db, const struct key *key)
{
    const struct wanted_key wanted = {db, key};

    return table_find(&registry->keys, registry_hash(db, key->hash), match, &wanted);
}

struct registered_key *key_registry_use(struct key_registry *registry, unsigned db, const struct key *key)
{
    struct registered_key *made = key_registry_find(registry, db, key);

    if (made != NULL)
        return made;
    made = mem_alloc(sizeof(*made) + key->name.size);
    *made = (struct registered_key){.db = db, .hash = key->hash, .size = key->name.size};
    list_init(&made->nodes);
    if (key->name.size != 0)
        memcpy(made->name, key->name.data, key->name.size);
    table_insert(&registry->keys, registry_hash(db, key->hash), made, hash_of);
    return made;
}

void key_registry_drop(struct key_registry *registry, struct registered_key *key)
{
    const struct key name = registered_key_key(key);
    const struct wanted_key wanted = {key->db, &name};
    uint64_t hash = hash_of(key);

    assert(list_is_empty(&key->nodes));
    table_remove(&registry->keys, hash, table_find_slot(&registry->keys, hash, match, &wanted));
    mem_free(key);
}

size_t key_registry_key_bytes(void)
{
    return sizeof(struct registered_key);
}

struct stripe_registries *stripe_registries_use(struct stripe *stripe)
{
    stripe_assert_held(stripe);
    if (stripe->registries == NULL)
        stripe->registries = mem_alloc_zero(sizeof(*stripe->registries));
    return stripe->registries;
}

void stripe_registries_destroy(struct stripe *stripe)
{
    gate_assert_alone();
    if (stripe->registries == NULL)
        return;
    table_clear(&stripe->registries->watched.keys, NULL, NULL);
    table_clear(&stripe->registries->waited.keys, NULL, NULL);
    ARRAY_FINI(&stripe->registries->needs);
    mem_free(stripe->registries);
    stripe->registries = NULL;
}
