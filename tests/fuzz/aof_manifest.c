/* The manifest of an append only file. Properties of text that is accepted: printed and read again it is the same;
 * names stay in their folder; the order is base, history, increments, and increments ascend, also after changes. */
#include "persist/aof_manifest.h"
#include "fuzz.h"

#include "base/mem.h"

static void check_order(const struct aof_manifest *manifest)
{
    static const char ranks[] = {AOF_BASE, AOF_HISTORY, AOF_INCREMENT};
    uint64_t last = 0;
    unsigned rank = 0;

    assert(aof_manifest_count(manifest, AOF_BASE) <= 1);
    for (uint32_t i = 0; i < manifest->count; i++) {
        const struct aof_part *part = &manifest->items[i];

        while (rank < sizeof(ranks) && ranks[rank] != (char)part->type)
            rank++;
        assert(rank < sizeof(ranks));
        assert(part->name[0] != '\0' && strchr(part->name, '/') == NULL);
        if (part->type != AOF_INCREMENT)
            continue;
        assert(part->sequence > last);
        last = part->sequence;
    }
}

static void check_again(const struct aof_manifest *manifest)
{
    struct aof_manifest again;
    struct aof_manifest_problem problem;
    struct buffer text = {0}, text_again = {0};
    enum status status;

    aof_manifest_print(manifest, &text);
    if (manifest->count != 0) {
        status = aof_manifest_parse(&again, buffer_slice(&text), &problem);
        /* Quoting may make a line too long, nothing else may happen. */
        assert(status == STATUS_OK || strstr(problem.text, "too long") != NULL);
        aof_manifest_print(&again, &text_again);
        assert(status != STATUS_OK || slice_equal(buffer_slice(&text), buffer_slice(&text_again)));
        aof_manifest_fini(&again);
    }
    buffer_fini(&text);
    buffer_fini(&text_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct aof_manifest manifest;
    struct aof_manifest_problem problem;

    if (aof_manifest_parse(&manifest, slice_make(bytes, size), &problem) != STATUS_OK) {
        assert(problem.text != NULL && manifest.count == 0);
        return 0;
    }
    check_order(&manifest);
    check_again(&manifest);
    aof_manifest_replace_base(&manifest, "n", (size & 1) != 0,
                              (size & 2) != 0 ? aof_manifest_add_increment(&manifest, "n") : NULL);
    check_order(&manifest);
    aof_manifest_drop_history(&manifest);
    aof_manifest_add_increment(&manifest, "n");
    check_order(&manifest);
    assert(aof_manifest_count(&manifest, AOF_HISTORY) == 0);
    aof_manifest_fini(&manifest);
    return 0;
}
