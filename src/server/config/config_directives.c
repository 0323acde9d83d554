/* Directives of Redis and KeyDB that are only in files and on command lines, and are not options: each is refused with
 * its reason, or accepted because it demands the only behaviour there is. */
#include "base/gate.h"
#include "server/config/config_priv.h"

#include <stddef.h>

static const char *refuse_module(const struct slice *words, size_t count)
{
    (void)words;
    return count < 2 ? "Bad directive or wrong number of arguments" : "Modules are not part of this build";
}

/* The bare word, as packages write it, says nothing. */
static const char *refuse_sentinel(const struct slice *words, size_t count)
{
    (void)words;
    return count == 1 ? NULL : "sentinel directive while not in sentinel mode";
}

static const char *refuse_flash(const struct slice *words, size_t count)
{
    (void)words;
    (void)count;
    return "Values on flash are not part of this build";
}

static const char *accept_fuzz_mode(const struct slice *words, size_t count)
{
    (void)words;
    (void)count;
    return NULL;
}

void config_add_file_only(void)
{
    static const struct config_directive directives[] = {
        {.name = "loadmodule", .run = refuse_module},      {.name = "sentinel", .run = refuse_sentinel},
        {.name = "storage-provider", .run = refuse_flash}, {.name = "scratch-file-path", .run = refuse_flash},
        {.name = "rdbfuzz-mode", .run = accept_fuzz_mode},
    };

    gate_assert_main_alone();
    for (size_t i = 0; i < countof(directives); i++) {
        /* Once a part of the program has it, that one counts. */
        if (config_find_directive(slice_from_text(directives[i].name)) == NULL)
            config_on_directive(&directives[i]);
    }
}
