#include "commands/random_count.h"

bool random_count_parse(struct request *request, uint32_t index, struct random_count *wanted)
{
    if (!request_arg_i64(request, index, &wanted->given))
        return false;
    if (wanted->given == INT64_MIN) {
        reply_error(request, "ERR value is out of range, value must between -9223372036854775807 and "
                             "9223372036854775807");
        return false;
    }
    wanted->repeats = wanted->given < 0;
    wanted->count = (uint64_t)(wanted->repeats ? -wanted->given : wanted->given);
    if (!wanted->repeats || wanted->count <= RANDOM_REPEATS_MOST)
        return true;
    reply_error(request, "ERR value is out of range");
    return false;
}

bool random_count_check_pairs(struct request *request, const struct random_count *wanted)
{
    if (wanted->given >= -(INT64_MAX / 2) && wanted->given <= INT64_MAX / 2)
        return true;
    reply_error(request, "ERR value is out of range");
    return false;
}
