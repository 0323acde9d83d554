#include "script/script_info.h"

#include "server/durable/libraries.h"

struct picture {
    struct script_facts facts;
    uint64_t scripts_bytes; /* of cached scripts and of functions */
};

static void take(void *into, const struct info_moment *moment)
{
    struct picture *picture = into;

    (void)moment;
    picture->facts = script_facts();
    picture->scripts_bytes = picture->facts.cached_scripts_bytes + picture->facts.functions_bytes;
}

static const struct info_source source = {sizeof(struct picture), .take = take};

#define FIELD(name, member) INFO_FIELD(name, &source, struct picture, member)
#define HUMAN(name, member) INFO_HUMAN(name, &source, struct picture, member)

const struct info_row script_info[] = {
    FIELD("used_memory_lua", facts.vm_bytes),
    HUMAN("used_memory_lua_human", facts.vm_bytes),
    FIELD("used_memory_vm_eval", facts.vm_bytes),
    FIELD("used_memory_vm_total", facts.vm_bytes),
    HUMAN("used_memory_vm_total_human", facts.vm_bytes),
    FIELD("used_memory_scripts_eval", facts.cached_scripts_bytes),
    FIELD("number_of_cached_scripts", facts.cached_scripts),
    FIELD("number_of_functions", facts.functions),
    FIELD("number_of_libraries", facts.libraries),
    FIELD("used_memory_functions", facts.functions_bytes),
    FIELD("used_memory_scripts", scripts_bytes),
    HUMAN("used_memory_scripts_human", scripts_bytes),
    FIELD("evicted_scripts", facts.evicted_scripts),
    {0},
};
