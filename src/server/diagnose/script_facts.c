#include "server/diagnose/script_facts.h"

#include <stddef.h>

static void (*provider)(struct script_facts *facts);

void script_facts_provide(void (*read)(struct script_facts *facts))
{
    provider = read;
}

struct script_facts script_facts(void)
{
    struct script_facts facts = {0};

    if (provider != NULL)
        provider(&facts);
    return facts;
}
