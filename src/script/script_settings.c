#include "script/script_settings.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "base/gate.h"
#include "base/spinlock.h"

#include <stdatomic.h>

static struct {
    struct spinlock lock;                             /* rank LOCK_REGISTRY */
    struct cjson_options options[2] GUARDED_BY(lock); /* of scripts, of functions */
    _Atomic uint32_t versions[2];                     /* atomic: written under the lock; of the options */
} shared;

void script_settings_setup(void)
{
    gate_assert_main_alone();
    spinlock_init(&shared.lock, LOCK_REGISTRY);
    lua_cjson_reset(&shared.options[0]);
    lua_cjson_reset(&shared.options[1]);
}

void script_settings_before(struct script_settings *settings, struct cjson_options *options, bool is_function)
{
    if (LIKELY(settings->of_functions == is_function &&
               settings->version == atomic_load_explicit(&shared.versions[is_function], memory_order_acquire)))
        return;
    spinlock_acquire(&shared.lock);
    *options = shared.options[is_function];
    settings->version = atomic_load_explicit(&shared.versions[is_function], memory_order_relaxed);
    spinlock_release(&shared.lock);
    settings->of_functions = is_function;
}

void script_settings_after(struct script_settings *settings, const struct cjson_options *options)
{
    const unsigned which = settings->of_functions;

    if (LIKELY(!options->changed))
        return;
    spinlock_acquire(&shared.lock);
    shared.options[which] = *options;
    shared.options[which].changed = false;
    settings->version--; /* the state's own are taken in anew */
    atomic_fetch_add_explicit(&shared.versions[which], 1, memory_order_release);
    spinlock_release(&shared.lock);
}

void script_settings_reset(void)
{
    spinlock_acquire(&shared.lock);
    lua_cjson_reset(&shared.options[0]);
    atomic_fetch_add_explicit(&shared.versions[0], 1, memory_order_release);
    spinlock_release(&shared.lock);
}
