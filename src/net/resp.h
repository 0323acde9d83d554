/* resp.h: the Redis protocol, RESP2 and RESP3. It writes replies into an output, parses requests in place, and parses
 * replies into a tree, for the server's own client side. There is no I/O and no lock: one thread at a time uses each
 * object.
 *
 * Writers whose result depends on the protocol take `proto` (2 or 3). */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "net/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob;

/* ---------------------------------------------------------------------------------------------- writing replies -- */

#define RESP_BY_REFERENCE_BYTES 16384 /* blobs of this size or more are referenced, not copied */
#define RESP_HEADER_BYTES 24          /* largest size of a type byte, a number and CR LF */

/* Writes "<type><number>\r\n" at `at` (RESP_HEADER_BYTES of room) and returns the end. */
char *resp_encode_header_slow(char *at, char type, int64_t number);

static ALWAYS_INLINE char *resp_encode_header(char *at, char type, int64_t number)
{
    uint64_t n = (uint64_t)number;

    at[0] = type;
    if (LIKELY(n < 10)) {
        at[1] = (char)('0' + n);
        at[2] = '\r';
        at[3] = '\n';
        return at + 4;
    }
    if (LIKELY(n < 100)) {
        at[1] = (char)('0' + n / 10);
        at[2] = (char)('0' + n % 10);
        at[3] = '\r';
        at[4] = '\n';
        return at + 5;
    }
    return resp_encode_header_slow(at, type, number);
}

static ALWAYS_INLINE void resp_write_header(struct output *output, char type, int64_t number)
{
    output_commit(output, resp_encode_header(output_reserve(output, RESP_HEADER_BYTES), type, number));
}

static ALWAYS_INLINE void resp_write_raw(struct output *output, struct slice bytes)
{
    output_append(output, bytes.data, bytes.size);
}

static ALWAYS_INLINE void resp_write_ok(struct output *output)
{
    char *at = output_reserve(output, 5);

    __builtin_memcpy(at, "+OK\r\n", 5);
    output_commit(output, at + 5);
}

static ALWAYS_INLINE void resp_write_int(struct output *output, int64_t number)
{
    resp_write_header(output, ':', number);
}

void resp_write_bulk_slow(struct output *output, struct slice bytes);

static ALWAYS_INLINE void resp_write_bulk(struct output *output, struct slice bytes)
{
    if (LIKELY(bytes.size <= 4096)) {
        char *at = output_reserve(output, RESP_HEADER_BYTES + bytes.size + 2);

        at = resp_encode_header(at, '$', (int64_t)bytes.size);
        if (LIKELY(bytes.size != 0))
            __builtin_memcpy(at, bytes.data, bytes.size);
        at += bytes.size;
        at[0] = '\r';
        at[1] = '\n';
        output_commit(output, at + 2);
        return;
    }
    resp_write_bulk_slow(output, bytes);
}

/* Writes the blob's bytes [offset, offset + size) as a bulk string, by reference if they are RESP_BY_REFERENCE_BYTES or
 * more. */
void resp_write_bulk_blob(struct output *output, struct blob *blob, size_t offset, size_t size);
void resp_write_bulk_int(struct output *output, int64_t number); /* the decimal text as a bulk string */

void resp_write_status(struct output *output, struct slice text);
/* The text begins with its code ("ERR ...", "WRONGTYPE ..."), without the minus. CR and LF become blanks. */
void resp_write_error(struct output *output, struct slice text);
void resp_write_error_text(struct output *output, const char *text);

static ALWAYS_INLINE void resp_write_null(struct output *output, int proto)
{
    char *at = output_reserve(output, 5);

    if (proto == 2) {
        __builtin_memcpy(at, "$-1\r\n", 5);
        output_commit(output, at + 5);
    } else {
        __builtin_memcpy(at, "_\r\n", 3);
        output_commit(output, at + 3);
    }
}

static inline void resp_write_null_array(struct output *output, int proto)
{
    char *at = output_reserve(output, 5);

    if (proto == 2) {
        __builtin_memcpy(at, "*-1\r\n", 5);
        output_commit(output, at + 5);
    } else {
        __builtin_memcpy(at, "_\r\n", 3);
        output_commit(output, at + 3);
    }
}

/* Headers of aggregates; the caller then writes the elements. Map and attribute take a count of pairs. In RESP2 a map
 * is an array of 2n elements, a set and a push are arrays of n. An attribute has no RESP2 form: do not write one
 * (asserted). */
static ALWAYS_INLINE void resp_write_array(struct output *output, int proto, uint64_t count)
{
    (void)proto;
    resp_write_header(output, '*', (int64_t)count);
}
void resp_write_map(struct output *output, int proto, uint64_t pair_count);
void resp_write_set(struct output *output, int proto, uint64_t count);
void resp_write_push(struct output *output, int proto, uint64_t count);
void resp_write_attribute(struct output *output, int proto, uint64_t pair_count);

void resp_write_double(struct output *output, int proto, double number);            /* in RESP2 a bulk string */
void resp_write_bool(struct output *output, int proto, bool value);                 /* RESP2: :1 or :0 */
void resp_write_double_text(struct output *output, int proto, struct slice digits); /* the same with this text */
void resp_write_bignum(struct output *output, int proto, struct slice digits);      /* in RESP2 a bulk string */
/* In RESP2 a bulk string. */
void resp_write_verbatim(struct output *output, int proto, const char format[3], struct slice text);

/* An aggregate whose length is known only after its elements were written. Deferred headers nest. */
enum resp_aggregate { RESP_ARRAY, RESP_MAP, RESP_SET, RESP_PUSH };
struct resp_deferred {
    struct output_gap gap;
};

struct resp_deferred resp_begin_deferred(struct output *output);
void resp_end_deferred(struct output *output, int proto, struct resp_deferred deferred, enum resp_aggregate type,
                       uint64_t count); /* for RESP_MAP the count of pairs */

/* Writes a request as an array of bulk strings, for the server's own connections to other servers. */
void resp_write_command(struct output *output, const struct slice *args, size_t arg_count);

/* -------------------------------------------------------------------------------------------- reading requests -- */

#define RESP_LARGE_BYTES 32768      /* bulk strings of this size or more can be received into a blob of their own */
#define RESP_INLINE_MAX_BYTES 65536 /* longest inline request, or line with a count or length */

/* Limits of a connection's requests. One constant object serves many connections; AUTH changes the parser's pointer. */
struct resp_limits {
    uint64_t bulk_max_bytes; /* proto-max-bulk-len; at least 100,000, since the fast path relies on it */
    bool authenticated;      /* false: at most 10 arguments of at most 16384 bytes */
    bool large;              /* the parser may return RESP_LARGE */
};

/* Memory for the argument arrays of a batch of commands, in chunks that do not move. Each worker has one; it calls
 * resp_scratch_reset() when all commands of the batch are done. Zeroed memory is an empty scratch. */
struct resp_scratch_chunk;
struct resp_scratch {
    struct slice *next; /* first free slot */
    struct slice *limit;
    struct slice *only;                /* slots of the only chunk; NULL: there are several, or none of the usual size */
    struct resp_scratch_chunk *chunks; /* newest first */
};

void resp_scratch_fini(struct resp_scratch *scratch);

/* A complete request. `args` points into the parsed data (or into blobs), the array is in the scratch. A command
 * usually owns nothing. If `blobs` is set, resp_command_fini() releases the blobs that were not taken. */
struct resp_blob_arg {
    uint32_t arg_index;
    struct blob *blob; /* holds exactly the argument's bytes; owned by the command. NULL: see resp_command_lacks */
};

struct resp_command {
    struct slice *args;
    uint32_t arg_count;
    uint32_t blob_count;
    struct resp_blob_arg *blobs; /* on the heap; NULL in most commands */
    size_t consumed;             /* bytes of the range that this request used (RESP_COMMAND, RESP_EMPTY) */
    size_t size_bytes;           /* sum of the sizes of the arguments */
    /* Count and lengths stand before the arguments as resp_encode_header would write them. The two bytes behind each
     * argument may be any. */
    bool is_plain;

    /* RESP_LARGE: argument large_index of large_size bytes begins at data + large_offset and is incomplete. */
    uint32_t large_index;
    size_t large_offset;
    size_t large_size;
    struct slice error; /* RESP_ERROR: "Protocol error: ..."; valid until the thread's next error */
};

/* NULL: the argument has no blob. */
struct blob *resp_command_take_blob(struct resp_command *command, uint32_t arg_index);
bool resp_command_lacks_slow(const struct resp_command *command);

/* True if an argument is missing because there was no memory for it. Call it before a blob is taken. */
static ALWAYS_INLINE bool resp_command_lacks(const struct resp_command *command)
{
    return UNLIKELY(command->blobs != NULL) && resp_command_lacks_slow(command);
}

void resp_command_fini_slow(struct resp_command *command);

static ALWAYS_INLINE void resp_command_fini(struct resp_command *command)
{
    if (UNLIKELY(command->blobs != NULL))
        resp_command_fini_slow(command);
}

enum resp_result {
    RESP_COMMAND, /* one command; it used `consumed` bytes */
    RESP_EMPTY,   /* `consumed` bytes held no command ("*0", an empty line): continue */
    RESP_MORE,    /* incomplete: call again with the same bytes, moved or not, and more behind them */
    /* A large bulk string follows: see resp_parser_large_done(); receiving more and parsing again works, too. */
    RESP_LARGE,
    RESP_ERROR, /* reply with command->error, then close */
};

/* The parser's state between two reads of a connection. It owns memory only in the middle of a command. */
struct resp_parser {
    const struct resp_limits *limits;
    struct resp_scratch *scratch;
    struct resp_progress *progress; /* NULL: at the start of a command */
};

void resp_parser_init(struct resp_parser *parser, const struct resp_limits *limits, struct resp_scratch *scratch);
void resp_parser_fini(struct resp_parser *parser); /* also forgets an unfinished command */

/* The number of bytes of the range that were parsed before the unfinished command's next argument. */
size_t resp_parser_read_size(const struct resp_parser *parser);
/* Memory of an unfinished command outside of the range: the table of its arguments; the sum of the sizes of large
 * arguments received so far; the memory of these. */
size_t resp_parser_table_bytes(const struct resp_parser *parser);
size_t resp_parser_large_size(const struct resp_parser *parser);
size_t resp_parser_large_bytes(const struct resp_parser *parser);

static inline bool resp_parser_is_idle(const struct resp_parser *parser)
{
    return parser->progress == NULL;
}

/* Parses one request from data[0, size). Unquotes inline requests in place. */
enum resp_result resp_parse(struct resp_parser *parser, char *data, size_t size, struct resp_command *command);

/* Call it after RESP_LARGE. The caller has received all large_size bytes into `blob`, which must hold exactly these;
 * the parser acquires a reference. The bytes are out of the stream: the next range is the first large_offset bytes as
 * before, followed by the bytes behind the bulk string. NULL: the bytes were discarded; the argument is empty, and
 * resp_command_lacks() is true for the command. */
void resp_parser_large_done(struct resp_parser *parser, struct blob *blob);

static ALWAYS_INLINE void resp_scratch_reset(struct resp_scratch *scratch)
{
    if (LIKELY(scratch->only != NULL))
        scratch->next = scratch->only;
    else
        resp_scratch_fini(scratch);
}

/* --------------------------------------------------------------------------------------------- reading replies -- */

enum resp_type {
    RESP_TYPE_STATUS = '+',
    RESP_TYPE_ERROR = '-',
    RESP_TYPE_INT = ':',
    RESP_TYPE_BULK = '$',
    RESP_TYPE_ARRAY = '*',
    RESP_TYPE_NULL = '_',
    RESP_TYPE_BOOL = '#',
    RESP_TYPE_DOUBLE = ',',
    RESP_TYPE_BIGNUM = '(',
    RESP_TYPE_BULK_ERROR = '!',
    RESP_TYPE_VERBATIM = '=',
    RESP_TYPE_MAP = '%',
    RESP_TYPE_SET = '~',
    RESP_TYPE_PUSH = '>',
    RESP_TYPE_ATTRIBUTE = '|',
};

/* A reply as a tree. "$-1" and "*-1" are RESP_TYPE_NULL; `was` distinguishes them. */
struct resp_reply {
    enum resp_type type;
    enum resp_type was; /* the type byte that was received */
    char format[4];     /* RESP_TYPE_VERBATIM: "txt" */
    int64_t integer;    /* RESP_TYPE_INT, RESP_TYPE_BOOL */
    double number;      /* RESP_TYPE_DOUBLE */
    char *text; /* bytes of texts, bulk strings and big numbers; ints and doubles as received; a zero byte follows */
    size_t size;
    struct resp_reply **elements; /* maps and attributes: key, value, key, value ... */
    size_t element_count;
    struct resp_reply *attribute; /* the attribute before this reply, or NULL */
};

void resp_reply_destroy(struct resp_reply **handle); /* accepts NULL; leaves NULL */

/* Limits for replies of other servers; 0: the default. */
struct resp_reply_parser {
    struct {
        struct resp_reply_frame *items;
        uint32_t count, capacity;
    } frames;                     /* open aggregates, innermost last */
    size_t scanned;               /* bytes of an unfinished line without CR LF */
    size_t bulk_max_bytes;        /* default 512 MiB */
    struct resp_reply *attribute; /* for the next reply at the top level */
    char error[96];
};

enum resp_reply_result {
    RESP_REPLY_READY,
    RESP_REPLY_MORE,
    RESP_REPLY_ERROR, /* the rest of the stream cannot be parsed; see parser->error */
};

#define RESP_REPLY_DEPTH_MAX 128

void resp_reply_parser_init(struct resp_reply_parser *parser);
void resp_reply_parser_fini(struct resp_reply_parser *parser);

/* Continues parsing. Whatever it returns, the first `consumed` bytes of the range are done; call again with the rest
 * and more behind it. RESP_REPLY_READY: the caller owns *reply. */
enum resp_reply_result resp_reply_parse(struct resp_reply_parser *parser, const char *data, size_t size,
                                        size_t *consumed, struct resp_reply **reply);
