#include "server/process/identity.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/random.h"

/* Constant after setup. */
static struct {
    char run_id[IDENTITY_SIZE + 1]; /* its zero byte is there already */
    uint64_t start_us;
} identity;

void identity_setup(void)
{
    gate_assert_main_alone();
    random_hex(identity.run_id, IDENTITY_SIZE);
    identity.start_us = clock_monotonic_us();
}

const char *identity_run_id(void)
{
    assert(identity.start_us != 0); /* identity_setup was first */
    return identity.run_id;
}

uint64_t identity_start_us(void)
{
    assert(identity.start_us != 0); /* identity_setup was first */
    return identity.start_us;
}
