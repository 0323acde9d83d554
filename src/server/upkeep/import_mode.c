#include "server/upkeep/import_mode.h"

#include "base/gate.h"
#include "base/log.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/core/server.h"
#include "store/store.h"

static _Atomic int64_t option_import_mode; /* global: option storage; bool */

static bool is_active_node(const struct store *store)
{
    return (atomic_load_explicit(&store->keeps_expired, memory_order_relaxed) & STORE_KEEPS_ACTIVE) != 0;
}

static const char *apply(const struct option_row *row)
{
    struct store *store = server_instance()->store;
    const bool imports = OPTION_IS(option_import_mode);

    gate_assert_alone();
    (void)row;
    if (imports && is_active_node(store))
        return "an active replica can't import: its nodes decide together when keys expire";
    store_keep_expired(store, STORE_KEEPS_IMPORTING, imports);
    return NULL;
}

static const struct option_row rows[] = {
    ROW_BOOL("import-mode", &option_import_mode, 0, OPTION_MUTABLE,
             "Neither expire nor evict keys, while data are copied from another server.", .apply = apply),
};

void import_mode_setup(void)
{
    gate_assert_main_alone();
    config_add_rows(rows, countof(rows));
}

static bool start(struct server *server)
{
    const char *reason = apply(NULL);

    (void)server;
    if (reason != NULL)
        log_warning("import-mode yes has no effect: %s", reason);
    return true;
}

const struct lifecycle import_mode_lifecycle = {.server_start = start};
