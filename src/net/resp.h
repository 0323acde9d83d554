/* resp.h: the protocol of the family, RESP2 and RESP3: replies written into an output, requests read in place, and
 * for our own client side replies read into a tree. No I/O and no locks: each object is used by one thread at a time.
 *
 * Writers that differ between the protocols take `proto` (2 or 3). */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "net/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob;

/* ---------------------------------------------------------------------------------------------- writing replies -- */

#define RESP_BY_REFERENCE_BYTES 16384 /* blob bulks from this size up are referenced, not copied */
#define RESP_HEADER_BYTES 24          /* most that a type byte, a number and CR LF can take */

/* Writes "<type><number>\r\n" at `at` (RESP_HEADER_BYTES of room) and returns its end. */
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

/* Blob bytes [offset, offset + size): by reference from RESP_BY_REFERENCE_BYTES up, else copied. */
void resp_write_bulk_blob(struct output *output, struct blob *blob, size_t offset, size_t size);
void resp_write_bulk_int(struct output *output, int64_t number); /* its digits as a bulk */

void resp_write_status(struct output *output, struct slice text);
/* The text begins with its code ("ERR ...", "WRONGTYPE ..."), without the minus; CR and LF become blanks. */
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

/* The heads of aggregates; the caller then writes the elements. Map and attribute count pairs; in RESP2 a map is an
 * array of 2n, a set and a push are arrays of n. An attribute has no RESP2 form: write none (asserted). */
static ALWAYS_INLINE void resp_write_array(struct output *output, int proto, uint64_t count)
{
    (void)proto;
    resp_write_header(output, '*', (int64_t)count);
}
void resp_write_map(struct output *output, int proto, uint64_t pair_count);
void resp_write_set(struct output *output, int proto, uint64_t count);
void resp_write_push(struct output *output, int proto, uint64_t count);
void resp_write_attribute(struct output *output, int proto, uint64_t pair_count);

void resp_write_double(struct output *output, int proto, double number);       /* RESP2: a bulk */
void resp_write_bool(struct output *output, int proto, bool value);            /* RESP2: :1 or :0 */
void resp_write_bignum(struct output *output, int proto, struct slice digits); /* RESP2: a bulk */
void resp_write_verbatim(struct output *output, int proto, const char format[3], struct slice text); /* RESP2: a bulk */

/* An aggregate whose length is known only after its elements were written. Deferred heads nest. */
enum resp_aggregate { RESP_ARRAY, RESP_MAP, RESP_SET, RESP_PUSH };
struct resp_deferred {
    struct output_gap gap;
};

struct resp_deferred resp_begin_deferred(struct output *output);
void resp_end_deferred(struct output *output, int proto, struct resp_deferred deferred, enum resp_aggregate type,
                       uint64_t count); /* RESP_MAP: pairs */

/* Requests, for links and clients of our own: "*n" + bulks. */
void resp_write_command(struct output *output, const struct slice *args, size_t arg_count);

/* -------------------------------------------------------------------------------------------- reading requests -- */

#define RESP_LARGE_BYTES 32768      /* bulks from this size up can be received into a blob of their own */
#define RESP_INLINE_MAX_BYTES 65536 /* longest inline request, count or length line */

/* What a connection may send. One constant object serves many connections; swap the parser's pointer on AUTH. */
struct resp_limits {
    uint64_t bulk_max_bytes; /* proto-max-bulk-len; at least 100,000: the fast path relies on it */
    bool authenticated;      /* else at most 10 arguments of at most 16384 bytes */
    bool large;              /* report RESP_LARGE */
};

/* Where the argument arrays of a batch of commands live: chunks that do not move. One a worker; resp_scratch_reset()
 * when all commands of the batch are done. Zeroed memory is an empty scratch. */
struct resp_scratch_chunk;
struct resp_scratch {
    struct slice *next; /* free slots from here */
    struct slice *limit;
    struct slice *only;                /* slots of the only chunk; NULL: there are others, or none of usual size */
    struct resp_scratch_chunk *chunks; /* the newest first */
};

void resp_scratch_fini(struct resp_scratch *scratch);

/* A complete request. args point into the data that was parsed (or into the scratch's blobs), the array into the
 * scratch. Usually owns nothing; if `blobs` is set, resp_command_fini() releases what was not taken. */
struct resp_blob_arg {
    uint32_t arg_index;
    struct blob *blob; /* holds exactly the argument's bytes; owned by the command. NULL: see lacks */
};

struct resp_command {
    struct slice *args;
    uint32_t arg_count;
    uint32_t blob_count;
    struct resp_blob_arg *blobs; /* on the heap; NULL in most commands */
    size_t consumed;             /* bytes of the range this request took (RESP_COMMAND, RESP_EMPTY) */
    size_t size_bytes;           /* sum of the arguments' sizes */

    /* RESP_LARGE: argument large_index, of large_size bytes, begins at data + large_offset and is incomplete. */
    uint32_t large_index;
    size_t large_offset;
    size_t large_size;
    struct slice error; /* RESP_ERROR: "Protocol error: ..."; valid until the thread's next error */
};

struct blob *resp_command_take_blob(struct resp_command *command, uint32_t arg_index); /* NULL: not in a blob */
bool resp_command_lacks_slow(const struct resp_command *command);

/* Is an argument missing, for which there was no memory? Asked before any blob is taken. */
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
    RESP_COMMAND, /* one command; its `consumed` bytes are behind us */
    RESP_EMPTY,   /* `consumed` bytes held no command ("*0", an empty line): go on */
    RESP_MORE,    /* incomplete: present the same bytes, moved or not, with more behind them */
    RESP_LARGE,   /* a large bulk is due: see resp_parser_large_done(); or receive on and parse again: also fine */
    RESP_ERROR,   /* reply command->error, then close */
};

/* The state of a connection between two reads. Owns memory only in the middle of a command. */
struct resp_parser {
    const struct resp_limits *limits;
    struct resp_scratch *scratch;
    struct resp_progress *progress; /* NULL: at the start of a command */
};

void resp_parser_init(struct resp_parser *parser, const struct resp_limits *limits, struct resp_scratch *scratch);
void resp_parser_fini(struct resp_parser *parser); /* also: forget an unfinished command */

/* Of the range, what in front of an unfinished command's next argument was read. */
size_t resp_parser_read_size(const struct resp_parser *parser);
/* What an unfinished command takes beside the range: the table of its arguments; the large arguments that have come,
 * their sizes and their memory. */
size_t resp_parser_table_bytes(const struct resp_parser *parser);
size_t resp_parser_large_size(const struct resp_parser *parser);
size_t resp_parser_large_bytes(const struct resp_parser *parser);

static inline bool resp_parser_is_idle(const struct resp_parser *parser)
{
    return parser->progress == NULL;
}

/* Reads one request from data[0, size). Inline requests are unquoted in place. */
enum resp_result resp_parse(struct resp_parser *parser, char *data, size_t size, struct resp_command *command);

/* After RESP_LARGE: the caller has all large_size bytes in `blob` (which must hold exactly them; a reference is
 * taken) and took them out of the stream: the range it presents next is the first large_offset bytes as before,
 * followed by what came behind the bulk. NULL: the bytes are gone; the argument is empty, and the command lacks it. */
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

/* A reply as a tree. "$-1" and "*-1" are RESP_TYPE_NULL with `was` telling them apart. */
struct resp_reply {
    enum resp_type type;
    enum resp_type was; /* the type byte on the wire */
    char format[4];     /* RESP_TYPE_VERBATIM: "txt" */
    int64_t integer;    /* RESP_TYPE_INT, RESP_TYPE_BOOL */
    double number;      /* RESP_TYPE_DOUBLE */
    char *text;         /* bytes of texts, bulks, bignums; ints and doubles as sent; then a NUL */
    size_t size;
    struct resp_reply **elements; /* maps and attributes: key, value, key, value ... */
    size_t element_count;
    struct resp_reply *attribute; /* the attribute that stood before this reply, or NULL */
};

void resp_reply_destroy(struct resp_reply **handle); /* NULL is fine; leaves NULL */

/* Limits for bytes from a stranger; zeroes mean the defaults. */
struct resp_reply_parser {
    struct {
        struct resp_reply_frame *items;
        uint32_t count, capacity;
    } frames;                     /* open aggregates, the innermost last */
    size_t scanned;               /* bytes of an unfinished line known to hold no CR LF */
    size_t bulk_max_bytes;        /* default 512 MiB */
    struct resp_reply *attribute; /* of the next reply at the top */
    char error[96];
};

enum resp_reply_result {
    RESP_REPLY_READY,
    RESP_REPLY_MORE,
    RESP_REPLY_ERROR, /* the stream cannot be read further: parser->error */
};

#define RESP_REPLY_DEPTH_MAX 128

void resp_reply_parser_init(struct resp_reply_parser *parser);
void resp_reply_parser_fini(struct resp_reply_parser *parser);

/* Reads on. `consumed` bytes at the start of the range are done with whatever is returned; present the rest again
 * with more behind it. RESP_REPLY_READY: *reply is the caller's. */
enum resp_reply_result resp_reply_parse(struct resp_reply_parser *parser, const char *data, size_t size,
                                        size_t *consumed, struct resp_reply **reply);
