#include "tools/benchmark/options.h"

#include "base/assert.h"
#include "base/number.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLIENTS_MOST = 100000,
    PIPELINE_MOST = 1000000,
    THREADS_MOST = 500,
    KEY_MOST_BYTES = 65536,
    PAYLOAD_MOST = 1024 * 1024 * 1024,
    PRECISION_USUAL = 3,
    PRECISION_MOST = 4,
    YCSB_PAYLOAD_BYTES = 100,
};
#define COUNT_MOST INT64_C(1000000000000)

struct row {
    const char *name;
    enum { ROW_TEXT, ROW_NUMBER, ROW_FLAG, ROW_MODE, ROW_CALL } kind;
    size_t offset;
    int64_t least, most; /* ROW_NUMBER; ROW_MODE: the mode is `most` */
    bool (*set)(struct bench_options *options, const char *value, struct buffer *error);
};

static bool set_port(struct bench_options *options, const char *value, struct buffer *error)
{
    int64_t port;

    if (!number_parse_i64(slice_from_text(value), &port) || port < 0 || port > 65535) {
        buffer_printf(error, "Invalid port \"%s\" for -p: it is a number from 0 to 65535\n", value);
        return false;
    }
    options->target.port = (int)port;
    return true;
}

static bool set_database(struct bench_options *options, const char *value, struct buffer *error)
{
    int64_t number;

    if (!number_parse_i64(slice_from_text(value), &number) || number < 0 || number > INT32_MAX) {
        buffer_printf(error, "Invalid database \"%s\" for --dbnum\n", value);
        return false;
    }
    options->target.database = (int)number;
    return true;
}

static bool set_uri(struct bench_options *options, const char *value, struct buffer *error)
{
    const char *wrong;

    uri_fini(&options->uri);
    wrong = uri_parse(value, &options->uri);
    if (wrong != NULL) {
        buffer_printf(error, "%s\n", wrong);
        return false;
    }
    uri_give(&options->uri, &options->target, &options->tls);
    return true;
}

static bool set_tls(struct bench_options *options, const char *value, struct buffer *error)
{
    (void)value;
    (void)error;
    options->target.tls = &options->tls;
    return true;
}

static bool set_resp3(struct bench_options *options, const char *value, struct buffer *error)
{
    (void)value;
    (void)error;
    options->target.proto = 3;
    return true;
}

static bool set_requests(struct bench_options *options, const char *value, struct buffer *error)
{
    options->requests_given = number_parse_i64(slice_from_text(value), &options->requests) && options->requests > 0 &&
                              options->requests <= COUNT_MOST;
    if (!options->requests_given)
        buffer_printf(error, "Invalid number \"%s\" for -n: it is at least 1\n", value);
    return options->requests_given;
}

/* BYTES, or LEAST-MOST. */
static bool set_payload(struct bench_options *options, const char *value, struct buffer *error)
{
    const char *dash = strchr(value + (value[0] == '-'), '-');
    const struct slice first = dash != NULL ? slice_make(value, (size_t)(dash - value)) : slice_from_text(value);
    bool good = number_parse_i64(first, &options->payload_least);

    options->payload_bytes = options->payload_least;
    if (dash != NULL)
        good = good && number_parse_i64(slice_from_text(dash + 1), &options->payload_bytes) &&
               options->payload_least >= 0 && options->payload_least <= options->payload_bytes &&
               options->payload_bytes <= PAYLOAD_MOST;
    if (!good)
        buffer_printf(error, "Invalid size \"%s\" for -d: it is a number of bytes, or LEAST-MOST\n", value);
    options->payload_bytes = MAX(MIN(options->payload_bytes, PAYLOAD_MOST), 1);
    options->payload_least = dash != NULL ? options->payload_least : options->payload_bytes;
    options->payload_given = true;
    return good;
}

/* BYTES, or LEAST-MOST. */
static bool set_key_sizes(struct bench_options *options, const char *value, struct buffer *error)
{
    const char *dash = strchr(value, '-');
    const struct slice first = dash != NULL ? slice_make(value, (size_t)(dash - value)) : slice_from_text(value);

    if (number_parse_i64(first, &options->key_least) &&
        number_parse_i64(dash != NULL ? slice_from_text(dash + 1) : first, &options->key_most) &&
        options->key_least > 0 && options->key_least <= options->key_most && options->key_most <= KEY_MOST_BYTES)
        return true;
    buffer_printf(error, "Invalid size \"%s\" for --key-size: it is a number of bytes up to %d, or LEAST-MOST\n", value,
                  KEY_MOST_BYTES);
    return false;
}

static bool set_precision(struct bench_options *options, const char *value, struct buffer *error)
{
    if (!number_parse_i64(slice_from_text(value), &options->precision)) {
        buffer_printf(error, "Invalid number \"%s\" for --precision\n", value);
        return false;
    }
    options->precision = options->precision < 0 ? PRECISION_USUAL : MAX(MIN(options->precision, PRECISION_MOST), 1);
    return true;
}

static bool set_rate(struct bench_options *options, const char *value, struct buffer *error)
{
    if (number_parse_double(slice_from_text(value), &options->rate) && options->rate > 0 && options->rate <= 1e9)
        return true;
    buffer_printf(error, "Invalid rate \"%s\" for --rate: it is a number of requests a second\n", value);
    return false;
}

static bool set_distribution(struct bench_options *options, const char *value, struct buffer *error)
{
    const char *wrong = distribution_parse(value, &options->distribution);

    if (wrong != NULL)
        buffer_printf(error, "Invalid distribution \"%s\" for --distribution: %s\n", value, wrong);
    options->distribution_given = true;
    return wrong == NULL;
}

static bool set_e(struct bench_options *options, const char *value, struct buffer *error)
{
    (void)value;
    (void)error;
    options->warn_of_e = true;
    return true;
}

#define AT(member) offsetof(struct bench_options, member)

/* clang-format off */
static const struct row with_value[] = {
    {"-h",                 ROW_TEXT,   AT(target.host),        0, 0,                       NULL},
    {"-p",                 ROW_CALL,   0,                      0, 0,                       set_port},
    {"-s",                 ROW_TEXT,   AT(target.socket_path), 0, 0,                       NULL},
    {"-a",                 ROW_TEXT,   AT(target.password),    0, 0,                       NULL},
    {"--user",             ROW_TEXT,   AT(target.user),        0, 0,                       NULL},
    {"-u",                 ROW_CALL,   0,                      0, 0,                       set_uri},
    {"-c",                 ROW_NUMBER, AT(clients),            1, CLIENTS_MOST,            NULL},
    {"-n",                 ROW_CALL,   0,                      0, 0,                       set_requests},
    {"-d",                 ROW_CALL,   0,                      0, 0,                       set_payload},
    {"--key-size",         ROW_CALL,   0,                      0, 0,                       set_key_sizes},
    {"--dbnum",            ROW_CALL,   0,                      0, 0,                       set_database},
    {"--threads",          ROW_NUMBER, AT(threads),            0, INT32_MAX,               NULL},
    {"-k",                 ROW_NUMBER, AT(keep_alive),         0, INT32_MAX,               NULL},
    {"-r",                 ROW_NUMBER, AT(keys),               INT64_MIN, COUNT_MOST,      NULL},
    {"-P",                 ROW_NUMBER, AT(pipeline),           INT64_MIN, PIPELINE_MOST,   NULL},
    {"--precision",        ROW_CALL,   0,                      0, 0,                       set_precision},
    {"-t",                 ROW_TEXT,   AT(tests),              0, 0,                       NULL},
    {"--sni",              ROW_TEXT,   AT(tls.server_name),    0, 0,                       NULL},
    {"--cacert",           ROW_TEXT,   AT(tls.ca_file),        0, 0,                       NULL},
    {"--cacertdir",        ROW_TEXT,   AT(tls.ca_folder),      0, 0,                       NULL},
    {"--cert",             ROW_TEXT,   AT(tls.cert_file),      0, 0,                       NULL},
    {"--key",              ROW_TEXT,   AT(tls.key_file),       0, 0,                       NULL},
    {"--tls-ciphers",      ROW_TEXT,   AT(tls.ciphers),        0, 0,                       NULL},
    {"--tls-ciphersuites", ROW_TEXT,   AT(tls.ciphersuites),   0, 0,                       NULL},
    {"--seed",             ROW_NUMBER, AT(seed),               INT64_MIN, INT64_MAX,       NULL},
    {"--duration",         ROW_NUMBER, AT(duration_s),         1, 1000000,                 NULL},
    {"--warm-up",          ROW_NUMBER, AT(warm_up_s),          0, 1000000,                 NULL},
    {"--rate",             ROW_CALL,   0,                      0, 0,                       set_rate},
    {"--distribution",     ROW_CALL,   0,                      0, 0,                       set_distribution},
    {"--mix",              ROW_TEXT,   AT(mix),                0, 0,                       NULL},
    {"--ratio",            ROW_TEXT,   AT(ratio),              0, 0,                       NULL},
    {"--ycsb",             ROW_TEXT,   AT(ycsb),               0, 0,                       NULL},
    {"--json",             ROW_TEXT,   AT(json),               0, 0,                       NULL},
    {"--svg",              ROW_TEXT,   AT(svg),                0, 0,                       NULL},
};

static const struct row without_value[] = {
    {"--help",             ROW_MODE,   0,                      0, BENCH_HELP,              NULL},
    {"--version",          ROW_MODE,   0,                      0, BENCH_VERSION,           NULL},
    {"-v",                 ROW_MODE,   0,                      0, BENCH_VERSION,           NULL},
    {"-I",                 ROW_MODE,   0,                      0, BENCH_IDLE,              NULL},
    {"--diagnose",         ROW_MODE,   0,                      0, BENCH_DIAGNOSE,          NULL},
    {"-3",                 ROW_CALL,   0,                      0, 0,                       set_resp3},
    {"-q",                 ROW_FLAG,   AT(quiet),              0, 0,                       NULL},
    {"--csv",              ROW_FLAG,   AT(csv),                0, 0,                       NULL},
    {"--table",            ROW_FLAG,   AT(table),              0, 0,                       NULL},
    {"-l",                 ROW_FLAG,   AT(loop),               0, 0,                       NULL},
    {"-x",                 ROW_FLAG,   AT(last_word_from_input), 0, 0,                     NULL},
    {"-e",                 ROW_CALL,   0,                      0, 0,                       set_e},
    {"--cluster",          ROW_FLAG,   AT(cluster),            0, 0,                       NULL},
    {"--enable-tracking",  ROW_FLAG,   AT(tracking),           0, 0,                       NULL},
    {"--go-on",            ROW_FLAG,   AT(goes_on),            0, 0,                       NULL},
    {"--tls",              ROW_CALL,   0,                      0, 0,                       set_tls},
    {"--insecure",         ROW_FLAG,   AT(tls.insecure),       0, 0,                       NULL},
};
/* clang-format on */

static const struct row *find_row(const struct row *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

static bool set_number(const struct row *row, int64_t *number, const char *value, struct buffer *error)
{
    if (number_parse_i64(slice_from_text(value), number) && *number >= row->least && *number <= row->most)
        return true;
    if (row->least == INT64_MIN)
        buffer_printf(error, "Invalid number \"%s\" for %s\n", value, row->name);
    else
        buffer_printf(error, "Invalid number \"%s\" for %s: it is one from %lld to %lld\n", value, row->name,
                      (long long)row->least, (long long)row->most);
    return false;
}

static bool apply(const struct row *row, struct bench_options *options, const char *value, struct buffer *error)
{
    char *member = (char *)options + row->offset;

    switch (row->kind) {
    case ROW_TEXT:
        memcpy(member, &value, sizeof(value));
        return true;
    case ROW_NUMBER: {
        int64_t number = 0;
        const bool good = set_number(row, &number, value, error);

        memcpy(member, &number, sizeof(number));
        return good;
    }
    case ROW_FLAG:
        *(bool *)member = true;
        return true;
    case ROW_MODE:
        options->mode = (unsigned)row->most;
        return true;
    default:
        assert(row->kind == ROW_CALL);
        return row->set(options, value, error);
    }
}

static void set_limits(struct bench_options *options)
{
    options->keys = MAX(options->keys, 0);
    options->pipeline = MAX(options->pipeline, 1);
    options->threads = MIN(options->threads, THREADS_MOST);
    if (options->ycsb != NULL && !options->payload_given)
        options->payload_bytes = options->payload_least = YCSB_PAYLOAD_BYTES;
}

static bool is_sound(const struct bench_options *options, struct buffer *error)
{
    const int several = (options->mix != NULL) + (options->ratio != NULL) + (options->ycsb != NULL) +
                        (options->tests != NULL && options->word_count == 0) + (options->word_count > 0);

    if (several > 1 && (options->mix != NULL || options->ratio != NULL || options->ycsb != NULL)) {
        buffer_append_text(error, "Only one of --mix, --ratio, --ycsb, -t and a command can be given\n");
        return false;
    }
    if (options->rate > 0 && options->keep_alive == 0) {
        buffer_append_text(error, "--rate needs connections that stay: -k 0 cannot be given with it\n");
        return false;
    }
    if (options->key_most != 0 && (options->keys == 0 || options->ycsb != NULL)) {
        buffer_printf(error, "--key-size lengthens keys with numbers: it %s\n",
                      options->ycsb != NULL ? "cannot be given with --ycsb, whose index has them" : "needs -r");
        return false;
    }
    if (options->last_word_from_input && options->word_count == 0) {
        buffer_append_text(error, "-x needs a command, whose last word it reads\n");
        return false;
    }
    if (options->target.user != NULL && options->target.password == NULL) {
        buffer_append_text(error, "--user needs a password (-a)\n");
        return false;
    }
    return true;
}

bool bench_options_parse(struct bench_options *options, int argc, char **argv, struct buffer *error)
{
    const char *slash = strrchr(argv[0], '/');

    *options = (struct bench_options){.name = slash != NULL ? slash + 1 : argv[0],
                                      .target = {.host = "127.0.0.1", .port = 6379},
                                      .clients = 50,
                                      .requests = 100000,
                                      .payload_bytes = 3,
                                      .payload_least = 3,
                                      .pipeline = 1,
                                      .keep_alive = 1,
                                      .precision = PRECISION_USUAL,
                                      .seed = 1};
    for (int i = 1; i < argc; i++) {
        const struct row *row = find_row(without_value, countof(without_value), argv[i]);
        const bool takes_value = row == NULL;

        if (row == NULL)
            row = find_row(with_value, countof(with_value), argv[i]);
        if (row == NULL && argv[i][0] != '-') {
            options->words = &argv[i];
            options->word_count = argc - i;
            break;
        }
        if (row == NULL || (takes_value && i + 1 == argc)) {
            buffer_printf(error, "Invalid option \"%s\" or option argument missing\n\n", argv[i]);
            bench_usage(options, error);
            return false;
        }
        i += takes_value;
        if (!apply(row, options, takes_value ? argv[i] : NULL, error))
            return false;
    }
    set_limits(options);
    return is_sound(options, error);
}

void bench_options_fini(struct bench_options *options)
{
    uri_fini(&options->uri);
}
