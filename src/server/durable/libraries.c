#include "server/durable/libraries.h"

#include <stdio.h>

static const struct libraries_keeper *keeper;

void libraries_provide(const struct libraries_keeper *provided)
{
    keeper = provided;
}

void libraries_each(void (*visit)(struct slice source, void *context), void *context)
{
    if (keeper != NULL)
        keeper->each(visit, context);
}

bool libraries_load(struct slice source, bool replaces, char *error, size_t error_size)
{
    if (keeper != NULL)
        return keeper->load(source, replaces, error, error_size);
    snprintf(error, error_size, "functions are not supported here");
    return false;
}

void libraries_flush(void)
{
    if (keeper != NULL)
        keeper->flush();
}

struct script_facts script_facts(void)
{
    struct script_facts facts = {0};

    if (keeper != NULL)
        keeper->facts(&facts);
    return facts;
}
