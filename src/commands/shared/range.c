#include "commands/shared/range.h"

/* From the end to from the beginning; what lies before the first byte becomes the first. */
static int64_t from_beginning(int64_t position, int64_t size)
{
    if (position < 0)
        position += size; /* sizes are far below 2^62: no overflow */
    return position < 0 ? 0 : position;
}

bool range_of_bytes(int64_t start, int64_t end, size_t size, size_t *first, size_t *count)
{
    return !(start < 0 && end < 0 && start > end) && range_of_any_ends(start, end, size, first, count);
}

bool range_of_any_ends(int64_t start, int64_t end, size_t size, size_t *first, size_t *count)
{
    if (size == 0)
        return false;
    start = from_beginning(start, (int64_t)size);
    end = from_beginning(end, (int64_t)size);
    if (end >= (int64_t)size)
        end = (int64_t)size - 1;
    if (start > end)
        return false;
    *first = (size_t)start;
    *count = (size_t)(end - start) + 1;
    return true;
}
