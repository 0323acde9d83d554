#include "server/core/role.h"

#include "base/assert.h"
#include "base/gate.h"
#include "server/config/command_block.h"
#include "server/core/client.h"
#include "server/core/server.h"
#include "store/store.h"

#include <string.h>

_Atomic bool role_is_follower;       /* global: see role.h */
_Atomic bool role_is_active_replica; /* global: see role.h */

const char role_unblock_error[] =
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";

static void (*on_change)(void);                          /* const after setup; NULL: none */
static bool (*print_master)(char *address, size_t size); /* const after setup; NULL: there is no replication */

/* From here on nothing serves it; its worker ends the wait in its next turn. */
static bool is_blocked(struct client_card *card, void *context)
{
    (void)context;
    return client_card_claim(card, CLIENT_WAIT_DEMOTED);
}

void role_end_waits(void)
{
    struct worker *worker = worker_self();

    gate_assert_alone();
    if (worker != NULL) /* at the start there is neither a worker nor a client */
        (void)server_request_clients(worker, CLIENT_REQUEST_UNBLOCK, is_blocked, NULL, NULL);
}

void role_set(bool follows)
{
    gate_assert_alone();
    atomic_store_explicit(&role_is_follower, follows, memory_order_relaxed);
    command_block_note_change();
    store_keep_expired(server_instance()->store, STORE_KEEPS_FOLLOWING, follows);
    if (follows)
        role_end_waits();
    if (on_change != NULL)
        on_change();
}

void role_set_active(bool is_active)
{
    gate_assert_alone();
    assert(!is_active || !role_follows());
    atomic_store_explicit(&role_is_active_replica, is_active, memory_order_relaxed);
}

bool role_redirect(char error[ROLE_REDIRECT_SPACE])
{
    static const char code[] = "REDIRECT ";
    const size_t used = sizeof(code) - 1;

    memcpy(error, code, sizeof(code));
    return role_follows() && print_master != NULL && print_master(error + used, ROLE_REDIRECT_SPACE - used);
}

void role_provide_master(bool (*print)(char *address, size_t size))
{
    gate_assert_main_alone();
    print_master = print;
}

void role_on_change(void (*changed)(void))
{
    gate_assert_main_alone();
    on_change = changed;
}
