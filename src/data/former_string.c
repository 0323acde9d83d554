#include "data/former_string.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

static size_t page_count(const struct former_string *former)
{
    return (former->size + FORMER_PAGE_BYTES - 1) / FORMER_PAGE_BYTES;
}

static size_t page_size(const struct former_string *former, size_t page)
{
    return MIN((size_t)FORMER_PAGE_BYTES, former->size - page * FORMER_PAGE_BYTES);
}

void former_string_init(struct former_string *former, size_t size)
{
    *former = (struct former_string){.size = size};
}

static void drop_page(struct former_string *former, size_t page)
{
    former->kept_bytes -= page_size(former, page);
    mem_free(former->pages[page]);
    former->pages[page] = NULL;
}

void former_string_fini(struct former_string *former)
{
    for (size_t page = former->given / FORMER_PAGE_BYTES; former->pages != NULL && page < page_count(former); page++) {
        if (former->pages[page] != NULL)
            drop_page(former, page);
    }
    mem_free(former->pages);
    *former = (struct former_string){0};
}

static void keep_page(struct former_string *former, const char *bytes, size_t page)
{
    const size_t size = page_size(former, page);

    if (former->pages[page] != NULL)
        return;
    former->pages[page] = mem_alloc(size);
    memcpy(former->pages[page], bytes + page * FORMER_PAGE_BYTES, size);
    former->kept_bytes += size;
}

void former_string_keep(struct former_string *former, const char *bytes, size_t offset, size_t size)
{
    const size_t begin = MAX(offset, former->given);
    const size_t end = offset < former->size ? offset + MIN(size, former->size - offset) : 0;

    if (begin >= end)
        return;
    if (former->pages == NULL) {
        former->pages = mem_alloc_zero(page_count(former) * sizeof(*former->pages));
        former->kept_bytes += page_count(former) * sizeof(*former->pages);
    }
    for (size_t page = begin / FORMER_PAGE_BYTES; page * FORMER_PAGE_BYTES < end; page++)
        keep_page(former, bytes, page);
}

bool former_string_give(struct former_string *former, const char *bytes, struct buffer *to)
{
    const size_t end = former->given + MIN((size_t)FORMER_STRING_PIECE_BYTES, former->size - former->given);

    while (former->given < end) {
        const size_t page = former->given / FORMER_PAGE_BYTES, size = page_size(former, page);

        if (former->pages != NULL && former->pages[page] != NULL) {
            buffer_append(to, former->pages[page], size);
            drop_page(former, page);
        } else {
            buffer_append(to, bytes + former->given, size);
        }
        former->given += size;
    }
    return former->given < former->size;
}
