#include "tools/cli/options.h"

#include "base/buffer.h"
#include "base/mem.h"
#include "base/version.h"
#include "base/words.h"

#include <stdlib.h>
#include <string.h>

enum { PORT_DEFAULT = 6379, PIPE_LIMIT_DEFAULT_S = 30, COMPARE_RATE_DEFAULT = 10000 };

/* What is done with an option's value, or with an option that has none. */
enum kind {
    KIND_FLAG,   /* a bool becomes true */
    KIND_TEXT,   /* a const char * */
    KIND_NUMBER, /* an int64_t */
    KIND_INT,    /* an int */
    KIND_MODE,   /* `value` is the mode */
    KIND_FORMAT, /* `value` is the format */
    KIND_CALL,   /* with a value */
    KIND_IGNORED,
};

struct row {
    const char *name;
    enum kind kind;
    size_t offset;
    int value; /* KIND_NUMBER and KIND_TEXT: also this mode, if it is not 0 */
    bool (*call)(struct options *options, const char *value, struct buffer *error);
};

static bool set_interval(struct options *options, const char *value, struct buffer *error)
{
    double seconds = atof(value);

    (void)error;
    options->interval_us = seconds > 0 ? (uint64_t)(seconds * 1000000) : 0;
    return true;
}

static bool set_password(struct options *options, const char *value, struct buffer *error)
{
    (void)error;
    options->target.password = value;
    options->warn_of_password = true;
    return true;
}

static bool set_uri(struct options *options, const char *value, struct buffer *error)
{
    const char *wrong;

    uri_fini(&options->uri);
    wrong = uri_parse(value, &options->uri);
    if (wrong != NULL) {
        buffer_printf(error, "%s\n", wrong);
        return false;
    }
    uri_give(&options->uri, &options->target, &options->tls);
    options->warn_of_password |= options->uri.password != NULL;
    return true;
}

static bool set_tls(struct options *options, const char *value, struct buffer *error)
{
    (void)value;
    (void)error;
    options->target.tls = &options->tls;
    return true;
}

static bool set_quoted_pattern(struct options *options, const char *value, struct buffer *error)
{
    struct words words = {0};
    bool good = words_split(slice_from_text(value), &words) && words.count == 1;

    if (good) {
        mem_free(options->pattern);
        options->pattern = mem_copy(words.items[0].data, words.items[0].size);
        options->pattern_size = words.items[0].size;
    } else {
        buffer_append_text(error, "Invalid quoted string specified for --quoted-pattern.\n");
    }
    words_fini(&words);
    return good;
}

static bool set_pattern(struct options *options, const char *value, struct buffer *error)
{
    (void)error;
    mem_free(options->pattern);
    options->pattern = mem_copy_text(value);
    options->pattern_size = strlen(value);
    return true;
}

static bool set_pushes(struct options *options, const char *value, struct buffer *error)
{
    if (value[0] == 'y' || value[0] == 'Y')
        options->pushes = PUSHES_YES;
    else if (value[0] == 'n' || value[0] == 'N')
        options->pushes = PUSHES_NO;
    else
        buffer_printf(error, "Unknown --show-pushes value '%s' (valid: '[y]es', '[n]o')\n", value);
    return true;
}

static bool set_debug_synchronous(struct options *options, const char *value, struct buffer *error)
{
    (void)value;
    (void)error;
    options->debug = options->debug_synchronous = true;
    return true;
}

static bool set_protocol(struct options *options, int proto, struct buffer *error)
{
    if (options->target.proto != 0 && options->target.proto != proto) {
        buffer_append_text(error, "Options -2 and -3 are mutually exclusive.\n");
        return false;
    }
    options->target.proto = proto;
    return true;
}

static bool set_protocol_2(struct options *options, const char *value, struct buffer *error)
{
    (void)value;
    return set_protocol(options, 2, error);
}

static bool set_protocol_3(struct options *options, const char *value, struct buffer *error)
{
    (void)value;
    return set_protocol(options, 3, error);
}

#define AT(member) offsetof(struct options, member)

/* clang-format off */
static const struct row with_value[] = {
    {"-h",                   KIND_TEXT,   AT(target.host),       0,                      NULL},
    {"-p",                   KIND_INT,    AT(target.port),       0,                      NULL},
    {"-s",                   KIND_TEXT,   AT(target.socket_path), 0,                     NULL},
    {"-n",                   KIND_INT,    AT(target.database),   0,                      NULL},
    {"-u",                   KIND_CALL,   0,                     0,                      set_uri},
    {"-a",                   KIND_CALL,   0,                     0,                      set_password},
    {"--pass",               KIND_CALL,   0,                     0,                      set_password},
    {"--user",               KIND_TEXT,   AT(target.user),       0,                      NULL},
    {"-r",                   KIND_NUMBER, AT(repeat),            0,                      NULL},
    {"-i",                   KIND_CALL,   0,                     0,                      set_interval},
    {"-d",                   KIND_TEXT,   AT(bulk_delimiter),    0,                      NULL},
    {"-D",                   KIND_TEXT,   AT(reply_delimiter),   0,                      NULL},
    {"-X",                   KIND_TEXT,   AT(word_from_input),   0,                      NULL},
    {"--sni",                KIND_TEXT,   AT(tls.server_name),   0,                      NULL},
    {"--cacert",             KIND_TEXT,   AT(tls.ca_file),       0,                      NULL},
    {"--cacertdir",          KIND_TEXT,   AT(tls.ca_folder),     0,                      NULL},
    {"--cert",               KIND_TEXT,   AT(tls.cert_file),     0,                      NULL},
    {"--key",                KIND_TEXT,   AT(tls.key_file),      0,                      NULL},
    {"--tls-ciphers",        KIND_TEXT,   AT(tls.ciphers),       0,                      NULL},
    {"--tls-ciphersuites",   KIND_TEXT,   AT(tls.ciphersuites),  0,                      NULL},
    {"--show-pushes",        KIND_CALL,   0,                     0,                      set_pushes},
    {"--eval",               KIND_TEXT,   AT(eval_file),         MODE_EVAL,              NULL},
    {"--pipe-timeout",       KIND_INT,    AT(pipe_limit_s),      0,                      NULL},
    {"--rdb",                KIND_TEXT,   AT(rdb_file),          MODE_RDB,               NULL},
    {"--functions-rdb",      KIND_TEXT,   AT(rdb_file),          MODE_FUNCTIONS_RDB,     NULL},
    {"--pattern",            KIND_CALL,   0,                     0,                      set_pattern},
    {"--quoted-pattern",     KIND_CALL,   0,                     0,                      set_quoted_pattern},
    {"--count",              KIND_NUMBER, AT(scan_count),        0,                      NULL},
    {"--memkeys-samples",    KIND_NUMBER, AT(memory_samples),    MODE_MEMORY_KEYS,       NULL},
    {"--intrinsic-latency",  KIND_NUMBER, AT(intrinsic_s),       MODE_INTRINSIC_LATENCY, NULL},
    {"--lru-test",           KIND_NUMBER, AT(lru_keys),          MODE_LRU_TEST,          NULL},
    {"--compare",            KIND_TEXT,   AT(compare_with),      MODE_COMPARE,           NULL},
    {"--rate",               KIND_NUMBER, AT(compare_rate),      0,                      NULL},
};

static const struct row without_value[] = {
    {"--help",               KIND_MODE,   0,                     MODE_HELP,              NULL},
    {"--version",            KIND_MODE,   0,                     MODE_VERSION,           NULL},
    {"-v",                   KIND_MODE,   0,                     MODE_VERSION,           NULL},
    {"-x",                   KIND_FLAG,   AT(last_word_from_input), 0,                   NULL},
    {"-e",                   KIND_FLAG,   AT(exit_on_error),     0,                      NULL},
    {"-c",                   KIND_FLAG,   AT(follow_redirections), 0,                    NULL},
    {"-2",                   KIND_CALL,   0,                     0,                      set_protocol_2},
    {"-3",                   KIND_CALL,   0,                     0,                      set_protocol_3},
    {"--tls",                KIND_CALL,   0,                     0,                      set_tls},
    {"--insecure",           KIND_FLAG,   AT(tls.insecure),      0,                      NULL},
    {"--askpass",            KIND_FLAG,   AT(ask_password),      0,                      NULL},
    {"--raw",                KIND_FORMAT, 0,                     FORMAT_RAW,             NULL},
    {"--no-raw",             KIND_FORMAT, 0,                     FORMAT_TEXT,            NULL},
    {"--csv",                KIND_FORMAT, 0,                     FORMAT_CSV,             NULL},
    {"--json",               KIND_FORMAT, 0,                     FORMAT_JSON,            NULL},
    {"--quoted-json",        KIND_FORMAT, 0,                     FORMAT_QUOTED_JSON,     NULL},
    {"--quoted-input",       KIND_FLAG,   AT(quoted_input),      0,                      NULL},
    {"--latency",            KIND_MODE,   0,                     MODE_LATENCY,           NULL},
    {"--latency-history",    KIND_MODE,   0,                     MODE_LATENCY_HISTORY,   NULL},
    {"--latency-dist",       KIND_MODE,   0,                     MODE_LATENCY_SPECTRUM,  NULL},
    {"--mono",               KIND_FLAG,   AT(monochrome),        0,                      NULL},
    {"--replica",            KIND_MODE,   0,                     MODE_REPLICA,           NULL},
    {"--slave",              KIND_MODE,   0,                     MODE_REPLICA,           NULL},
    {"--stat",               KIND_MODE,   0,                     MODE_STAT,              NULL},
    {"--scan",               KIND_MODE,   0,                     MODE_SCAN,              NULL},
    {"--bigkeys",            KIND_MODE,   0,                     MODE_BIG_KEYS,          NULL},
    {"--memkeys",            KIND_MODE,   0,                     MODE_MEMORY_KEYS,       NULL},
    {"--hotkeys",            KIND_MODE,   0,                     MODE_HOT_KEYS,          NULL},
    {"--pipe",               KIND_MODE,   0,                     MODE_PIPE,              NULL},
    {"--ldb",                KIND_FLAG,   AT(debug),             0,                      NULL},
    {"--ldb-sync-mode",      KIND_CALL,   0,                     0,                      set_debug_synchronous},
    {"--cluster",            KIND_MODE,   0,                     MODE_CLUSTER,           NULL},
    {"--no-auth-warning",    KIND_IGNORED, 0,                    0,                      NULL},
    {"--no-motd",            KIND_IGNORED, 0,                    0,                      NULL},
    {"--verbose",            KIND_FLAG,   AT(verbose),           0,                      NULL},
};
/* clang-format on */

static const struct row *row_of(const struct row *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static bool apply(struct options *options, const struct row *row, const char *value, struct buffer *error)
{
    char *at = (char *)options + row->offset;

    switch (row->kind) {
    case KIND_FLAG:
        *(bool *)at = true;
        break;
    case KIND_TEXT:
        *(const char **)(void *)at = value;
        break;
    case KIND_NUMBER:
        *(int64_t *)(void *)at = strtoll(value, NULL, 10);
        break;
    case KIND_INT:
        *(int *)(void *)at = atoi(value);
        break;
    case KIND_FORMAT:
        options->format = (enum format)row->value;
        options->format_given = true;
        return true;
    case KIND_CALL:
        return row->call(options, value, error);
    case KIND_MODE:
    case KIND_IGNORED:
        break;
    }
    if (row->value != 0)
        options->mode = (enum mode)row->value;
    return true;
}

static void set_defaults(struct options *options, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;

    *options = (struct options){.name = strncmp(base, "redis-cli", 9) == 0 ? "redis-cli" : "keydb-cli",
                                .path = path,
                                .target = {.host = "127.0.0.1", .port = PORT_DEFAULT},
                                .uri = {.database = -1},
                                .format = FORMAT_TEXT,
                                .bulk_delimiter = "\n",
                                .reply_delimiter = "\n",
                                .repeat = 1,
                                .pipe_limit_s = PIPE_LIMIT_DEFAULT_S,
                                .memory_samples = -1,
                                .compare_rate = COMPARE_RATE_DEFAULT};
}

/* What only several options together decide. */
static bool check(struct options *options, struct buffer *error)
{
    bool is_json = options->format_given && (options->format == FORMAT_JSON || options->format == FORMAT_QUOTED_JSON);

    if (options->debug && options->mode != MODE_EVAL) {
        buffer_printf(error, "Options --ldb and --ldb-sync-mode require --eval.\nTry %s --help for more information.\n",
                      options->path);
        return false;
    }
    if (options->last_word_from_input && options->word_from_input != NULL) {
        buffer_append_text(error, "Options -x and -X are mutually exclusive.\n");
        return false;
    }
    if (is_json && options->target.proto == 0)
        options->target.proto = 3;
    return true;
}

bool options_parse(struct options *options, int argc, char **argv, struct buffer *error)
{
    bool silent = false;
    int i;

    set_defaults(options, argv[0]);
    options->target.password = getenv("REDISCLI_AUTH");
    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        const struct row *row = row_of(without_value, countof(without_value), argv[i]);
        const char *value = NULL;

        if (row == NULL && i + 1 < argc) {
            row = row_of(with_value, countof(with_value), argv[i]);
            value = row != NULL ? argv[++i] : NULL;
        }
        if (row == NULL && i + 1 == argc && strcmp(argv[i], "-h") == 0) {
            options->mode = MODE_HELP;
            return true;
        }
        if (row == NULL) {
            buffer_printf(error, "Unrecognized option or bad number of args for: '%s'\n", argv[i]);
            return false;
        }
        silent = silent || strcmp(row->name, "--no-auth-warning") == 0;
        if (!apply(options, row, value, error))
            return false;
        if (options->mode == MODE_HELP || options->mode == MODE_VERSION || options->mode == MODE_CLUSTER)
            return true;
    }
    options->words = argv + i;
    options->word_count = argc - i;
    if (silent)
        options->warn_of_password = false;
    return check(options, error);
}

void options_fini(struct options *options)
{
    uri_fini(&options->uri);
    mem_free(options->pattern);
    options->pattern = NULL;
}
