#include "commands/random_count.h"

#include "base/rows.h"
#include "server/config.h"

#define LIMIT_MOST (INT64_MAX / 2)

static _Atomic int64_t option_max_rand_count; /* global: option storage */

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

static bool check_limit(struct request *request, const struct random_count *wanted, uint64_t limit)
{
    if (wanted->count <= limit)
        return true;
    reply_error(request, "ERR value is out of range");
    return false;
}

bool random_count_check(struct request *request, const struct random_count *wanted)
{
    int64_t limit = OPTION_GET(option_max_rand_count);

    return check_limit(request, wanted, limit < LIMIT_MOST ? (uint64_t)limit : UINT64_MAX);
}

bool random_count_check_pairs(struct request *request, const struct random_count *wanted)
{
    return check_limit(request, wanted, OPTION_GET_U64(option_max_rand_count));
}

void random_count_setup(void)
{
    static const struct option_row rows[] = {
        ROW_INT("max-rand-count", &option_max_rand_count, LIMIT_MOST, 0, LIMIT_MOST, OPTION_MUTABLE,
                "members or pairs that SRANDMEMBER, HRANDFIELD and ZRANDMEMBER may be asked for"),
    };

    config_add_rows(rows, countof(rows));
}
