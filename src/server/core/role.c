#include "server/core/role.h"

#include "base/gate.h"

_Atomic bool role_is_follower; /* global: see role.h */

void role_set(bool follows)
{
    gate_assert_alone();
    atomic_store_explicit(&role_is_follower, follows, memory_order_relaxed);
}
