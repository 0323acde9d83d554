#include "server/durable/libraries.h"

#include "base/assert.h"
#include "base/gate.h"
#include "server/core/worker.h"
#include "server/durable/child.h"

#include <stdio.h>

static const struct libraries_keeper *keeper;

void libraries_provide(const struct libraries_keeper *provided)
{
    gate_assert_main_alone();
    assert(keeper == NULL);
    keeper = provided;
}

void libraries_each(void (*visit)(struct slice source, void *context), void *context)
{
    assert(child_is_copy() || gate_is_alone() || gate_is_inside(&worker_self()->member));
    if (keeper != NULL)
        keeper->each(visit, context);
}

bool libraries_load(struct slice source, bool replaces, char *error, size_t error_size)
{
    gate_assert_alone();
    if (keeper != NULL)
        return keeper->load(source, replaces, error, error_size);
    snprintf(error, error_size, "functions are not supported here");
    return false;
}

void libraries_flush(void)
{
    gate_assert_alone();
    if (keeper != NULL)
        keeper->flush();
}

void libraries_each_name(void (*visit)(struct slice name, void *context), void *context)
{
    assert(gate_is_alone() || gate_is_inside(&worker_self()->member));
    if (keeper != NULL)
        keeper->each_name(visit, context);
}

bool libraries_find(struct slice name, struct slice *source)
{
    assert(gate_is_alone() || gate_is_inside(&worker_self()->member));
    return keeper != NULL && keeper->find(name, source);
}

struct script_facts script_facts(void)
{
    struct script_facts facts = {0};

    if (keeper != NULL)
        keeper->facts(&facts);
    return facts;
}
