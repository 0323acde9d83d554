/* Listpacks and intsets from outside: what passes the check can be walked both ways, read, searched, and changed. */
#include "base/assert.h"
#include "data/intset.h"
#include "data/listpack.h"
#include "fuzz.h"

static void use_listpack(struct slice bytes)
{
    struct listpack *list = listpack_from_bytes(bytes);
    uint32_t count = 0;
    char scratch[NUMBER_I64_SPACE];

    for (listpack_at at = listpack_first(list); at != LISTPACK_NONE; at = listpack_next(list, at), count++)
        assert(listpack_equals(list, at, listpack_text(list, at, scratch)));
    assert(count == listpack_count(list));
    for (listpack_at at = listpack_last(list); at != LISTPACK_NONE; at = listpack_previous(list, at))
        count--;
    assert(count == 0);
    listpack_append(&list, SLICE("more"));
    assert(listpack_find(list, listpack_first(list), SLICE("more"), 0) != LISTPACK_NONE);
    listpack_remove(&list, listpack_first(list), 1);
    listpack_validate(list);
    listpack_destroy(&list);
}

static void use_intset(struct slice bytes)
{
    struct intset *set = intset_from_bytes(bytes);
    uint32_t count = intset_count(set);
    int64_t first = intset_at(set, 0);

    for (uint32_t i = 0; i < count; i++)
        assert(intset_has(set, intset_at(set, i)));
    assert(intset_remove(&set, first));
    assert(intset_add(&set, first) && intset_at(set, 0) == first);
    intset_validate(set);
    intset_destroy(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice whole = slice_make((const char *)bytes, size);

    if (listpack_check(whole))
        use_listpack(whole);
    if (intset_check(whole))
        use_intset(whole);
    return 0;
}
