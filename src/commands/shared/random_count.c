#include "commands/shared/random_count.h"

#include "base/assert.h"
#include "base/rows.h"
#include "base/thread.h"
#include "net/output.h"
#include "server/config/config.h"
#include "server/core/client.h"

#define LIMIT_MOST (INT64_MAX / 2)
#define STRING_BYTES_LEAST (sizeof("$0\r\n\r\n") - 1)

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
    return true;
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

/* The output limit of the client. A script's reply is not output of a client, and a client of another worker has no
 * output here. */
static uint64_t output_limit_bytes(const struct request *request)
{
    if (request->in_script || request->client == NULL)
        return UINT64_MAX;
    return client_output_limit_bytes(request->client);
}

/* False: they take more than there may be. */
static bool write_repeats(struct request *request, const struct random_count *wanted, uint64_t length,
                          random_count_reply_fn *reply_one, void *context)
{
    uint64_t limit = output_limit_bytes(request);

    if (limit > RANDOM_REPEATS_BYTES && length > RANDOM_REPEATS_BYTES / STRING_BYTES_LEAST)
        return false;
    reply_array(request, length);
    for (uint64_t count = wanted->count; count > 0 && output_size(request->out) < limit; count--) {
        reply_one(request, context);
        if (output_size(request->out) > RANDOM_REPEATS_BYTES)
            return false;
    }
    return true;
}

/* Written aside first, so that it can be discarded. */
void random_count_reply_repeats(struct request *request, const struct random_count *wanted, uint64_t length,
                                random_count_reply_fn *reply_one, void *context)
{
    struct output *out = request->out;
    struct output own;
    bool fits;

    assert(wanted->repeats);
    output_init(&own, out->pool);
    request->out = &own;
    fits = write_repeats(request, wanted, length, reply_one, context);
    request->out = out;
    if (fits)
        output_splice(out, &own);
    else
        reply_error(request, "ERR value is out of range, the reply would exceed 512 MiB");
    output_clear(&own);
}

void random_count_setup(void)
{
    static const struct option_row rows[] = {
        ROW_INT("max-rand-count", &option_max_rand_count, LIMIT_MOST, 0, LIMIT_MOST, OPTION_MUTABLE,
                "Largest count that SRANDMEMBER, HRANDFIELD and ZRANDMEMBER accept."),
    };

    thread_assert_main();
    config_add_rows(rows, countof(rows));
}
