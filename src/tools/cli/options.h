/* options.h: what keydb-cli is asked to do: its command line and its environment. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "tools/cli/format.h"
#include "tools/link/link.h"
#include "tools/link/uri.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Set by the option that asks for it; the last one counts. */
enum mode {
    MODE_COMMAND, /* of the command line, or those of standard input */
    MODE_HELP,
    MODE_VERSION,
    MODE_CLUSTER,
    MODE_EVAL,
    MODE_PIPE,
    MODE_SCAN,
    MODE_BIG_KEYS,
    MODE_MEMORY_KEYS,
    MODE_HOT_KEYS,
    MODE_LATENCY,
    MODE_LATENCY_HISTORY,
    MODE_LATENCY_SPECTRUM,
    MODE_STAT,
    MODE_RDB,
    MODE_FUNCTIONS_RDB,
    MODE_REPLICA,
    MODE_INTRINSIC_LATENCY,
    MODE_LRU_TEST,
    MODE_COMPARE,
};

struct options {
    const char *name; /* of the program: keydb-cli or redis-cli */
    const char *path; /* as it was called */
    enum mode mode;
    struct link_target target; /* its texts are those of the command line, the environment or `uri` */
    struct link_tls tls;
    struct uri uri;

    enum format format;
    bool format_given;           /* else it depends on whether standard output is a terminal */
    const char *bulk_delimiter;  /* between the parts of a raw reply */
    const char *reply_delimiter; /* after a raw reply */
    bool exit_on_error;          /* -e */
    bool quoted_input;
    bool last_word_from_input;   /* -x */
    const char *word_from_input; /* -X: this word is replaced; NULL: none */
    enum { PUSHES_AUTO, PUSHES_YES, PUSHES_NO } pushes;
    int64_t repeat;           /* below 0: for ever */
    uint64_t interval_us;     /* 0: not given */
    bool follow_redirections; /* -c */
    bool ask_password;
    bool warn_of_password; /* one was given where others may see it */
    bool monochrome;
    bool verbose;

    const char *eval_file;
    bool debug, debug_synchronous; /* --ldb */
    int pipe_limit_s;              /* 0: none */
    const char *rdb_file;          /* "-": standard output */
    char *pattern;                 /* NULL: all keys; owned */
    size_t pattern_size;
    int64_t scan_count;     /* 0: the server's own */
    int64_t memory_samples; /* -1: the server's own */
    int64_t lru_keys;
    int64_t intrinsic_s;
    const char *compare_with; /* HOST:PORT or a URI */
    int64_t compare_rate;     /* keys a second; 0: no limit */

    char **words; /* the command, from argv */
    int word_count;
};

/* False: `error` has the lines to be printed on standard error, and the program ends with 1. `options` is ended with
 * options_fini in any case. */
must_check bool options_parse(struct options *options, int argc, char **argv, struct buffer *error);
void options_fini(struct options *options);

void options_usage(const struct options *options, struct buffer *out);
