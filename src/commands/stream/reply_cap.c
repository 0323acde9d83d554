#include "commands/stream/reply_cap.h"

const char *reply_cap_parse(struct slice option, struct slice text, uint64_t *most)
{
    int64_t number;

    if (!number_parse_i64(text, &number))
        return "ERR value is not an integer or out of range";
    if (number <= 0)
        return slice_equal_text_nocase(option, "MAXCOUNT") ? "ERR MAXCOUNT must be a positive integer"
                                                           : "ERR MAXSIZE must be a positive integer";
    *most = (uint64_t)number;
    return NULL;
}

bool reply_cap_takes_slowly(struct reply_cap *cap, const struct stream_iter *iter, uint64_t field_count)
{
    const uint64_t bytes = iter != NULL && cap->bytes_left != UINT64_MAX ? stream_iter_bytes(iter, field_count) : 0;

    if (cap->is_ended || (cap->has_any && bytes > cap->bytes_left)) {
        cap->is_ended = true;
        return false;
    }
    cap->has_any = true;
    if (cap->bytes_left != UINT64_MAX)
        cap->bytes_left -= MIN(bytes, cap->bytes_left);
    cap->count_left--;
    cap->is_ended = cap->count_left == 0 || cap->bytes_left == 0;
    return true;
}
