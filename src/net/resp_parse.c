#include "net/resp.h"

#include "base/assert.h"
#include "base/blob.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/words.h"

#include <string.h>

/* There are two ways to parse a request. The fast one parses a small complete request in one pass and stores no state.
 * If anything is unusual (incomplete, long numbers, a client that is not authenticated, an error) it gives up without a
 * trace. Then the slow way starts over and keeps its progress: offsets from the start of the range, so the range may
 * move between calls.
 *
 *     position   everything before it was read
 *     scanned    no line end between position and here
 *     in_bulk    the length line of argument arg_count was read, its bytes begin at position
 *
 * Like Redis, it accepts any byte after the CR of a count or length (the fast way leaves such a request to the slow
 * one), and ignores the two bytes after a bulk string. */

enum {
    FAST_ARGS_MAX = 1024,
    CHUNK_SLOTS = 1024, /* 16 KiB; every chunk has at least these */
    PROGRESS_ARGS_MIN = 8,
    PROGRESS_CHUNK_ARGS = 4095, /* 64 KiB with its link */
    STRANGER_ARGS_MAX = 10,
    STRANGER_BULK_BYTES_MAX = 16384,
};

#define OFFSET_IN_BLOB SIZE_MAX

struct progress_arg {
    size_t offset; /* OFFSET_IN_BLOB: the next of the blobs */
    size_t size;
};

struct resp_progress {
    size_t position;
    size_t scanned;
    uint64_t arg_total; /* 0: the first line is not complete */
    uint32_t arg_count;
    uint32_t arg_capacity; /* of args */
    uint32_t blob_count;
    bool in_bulk;
    size_t bulk_size;
    size_t size_bytes;
    bool has_large;     /* in_bulk: the argument has come, its bytes are not in the range */
    struct blob *large; /* ... but here; NULL: nowhere */
    struct resp_blob_arg *blobs;
    struct progress_arg *args;     /* the first PROGRESS_CHUNK_ARGS; those behind are in chunks, so none is copied */
    struct progress_chunk *chunks; /* in their order */
    struct progress_chunk *last;
    size_t table_bytes; /* memory that all but the blobs' bytes take */
    size_t blob_size;   /* of all blobs */
    size_t blob_bytes;  /* memory that those take */
};

struct progress_chunk {
    struct progress_chunk *next;
    struct progress_arg args[PROGRESS_CHUNK_ARGS];
};
static_assert(sizeof(struct progress_chunk) <= 65536, "a chunk wastes nothing of what it takes");

struct resp_scratch_chunk {
    struct resp_scratch_chunk *next;
    struct slice slots[];
};

/* ------------------------------------------------------------------------------------------------- scratch -- */

static NOINLINE struct slice *scratch_room_slow(struct resp_scratch *scratch, size_t count)
{
    size_t slots = MAX(count, (size_t)CHUNK_SLOTS);
    struct resp_scratch_chunk *chunk = mem_alloc(sizeof(*chunk) + slots * sizeof(struct slice));

    chunk->next = scratch->chunks;
    scratch->chunks = chunk;
    scratch->only = chunk->next == NULL && slots == CHUNK_SLOTS ? chunk->slots : NULL;
    scratch->next = chunk->slots;
    scratch->limit = chunk->slots + slots;
    return scratch->next;
}

/* Room for `count` slices; the caller moves `next` when it keeps them. */
static ALWAYS_INLINE struct slice *scratch_room(struct resp_scratch *scratch, size_t count)
{
    if (LIKELY((size_t)(scratch->limit - scratch->next) >= count))
        return scratch->next;
    return scratch_room_slow(scratch, count);
}

void resp_scratch_fini(struct resp_scratch *scratch)
{
    struct resp_scratch_chunk *next = NULL;

    for (struct resp_scratch_chunk *chunk = scratch->chunks; chunk != NULL; chunk = next) {
        next = chunk->next;
        mem_free(chunk);
    }
    *scratch = (struct resp_scratch){0};
}

/* ------------------------------------------------------------------------------------------------ commands -- */

struct blob *resp_command_take_blob(struct resp_command *command, uint32_t arg_index)
{
    for (uint32_t i = 0; i < command->blob_count; i++) {
        struct blob *blob = command->blobs[i].blob;

        if (command->blobs[i].arg_index == arg_index) {
            command->blobs[i].blob = NULL;
            return blob;
        }
    }
    return NULL;
}

bool resp_command_lacks_slow(const struct resp_command *command)
{
    for (uint32_t i = 0; i < command->blob_count; i++) {
        if (command->blobs[i].blob == NULL)
            return true;
    }
    return false;
}

void resp_command_fini_slow(struct resp_command *command)
{
    for (uint32_t i = 0; i < command->blob_count; i++)
        blob_release(&command->blobs[i].blob);
    mem_free(command->blobs);
    command->blobs = NULL;
    command->blob_count = 0;
}

/* ------------------------------------------------------------------------------------------------ progress -- */

static struct resp_progress *progress_of(struct resp_parser *parser)
{
    if (parser->progress == NULL) {
        parser->progress = mem_alloc_zero(sizeof(*parser->progress));
        parser->progress->table_bytes = mem_usable(parser->progress);
    }
    return parser->progress;
}

static void progress_destroy(struct resp_progress **handle)
{
    struct resp_progress *progress = *handle;

    *handle = NULL;
    if (progress == NULL)
        return;
    for (uint32_t i = 0; i < progress->blob_count; i++)
        blob_release(&progress->blobs[i].blob);
    blob_release(&progress->large);
    mem_free(progress->blobs);
    mem_free(progress->args);
    while (progress->chunks != NULL) {
        struct progress_chunk *chunk = progress->chunks;

        progress->chunks = chunk->next;
        mem_free(chunk);
    }
    mem_free(progress);
}

static void progress_grow_args(struct resp_progress *progress)
{
    const uint32_t doubled = MAX(progress->arg_capacity * 2, (uint32_t)PROGRESS_ARGS_MIN);

    progress->table_bytes -= mem_usable(progress->args);
    progress->arg_capacity = MIN(doubled, (uint32_t)PROGRESS_CHUNK_ARGS);
    progress->args = mem_realloc(progress->args, progress->arg_capacity * sizeof(*progress->args));
    progress->table_bytes += mem_usable(progress->args);
}

static void progress_add_chunk(struct resp_progress *progress)
{
    struct progress_chunk *chunk = mem_alloc(sizeof(*chunk));

    chunk->next = NULL;
    if (progress->last == NULL)
        progress->chunks = chunk;
    else
        progress->last->next = chunk;
    progress->last = chunk;
    progress->table_bytes += mem_usable(chunk);
}

/* Where the next argument is noted. */
static struct progress_arg *progress_slot(struct resp_progress *progress)
{
    const uint32_t index = progress->arg_count % PROGRESS_CHUNK_ARGS;

    if (progress->arg_count >= PROGRESS_CHUNK_ARGS) {
        if (index == 0)
            progress_add_chunk(progress);
        return &progress->last->args[index];
    }
    if (index == progress->arg_capacity)
        progress_grow_args(progress);
    return &progress->args[index];
}

static void progress_add_arg(struct resp_progress *progress, size_t offset, size_t size)
{
    *progress_slot(progress) = (struct progress_arg){offset, size};
    progress->arg_count++;
    progress->size_bytes += size;
}

static void progress_add_large(struct resp_progress *progress)
{
    size_t size = progress->large != NULL ? progress->large->size : 0;

    progress->table_bytes -= mem_usable(progress->blobs);
    progress->blobs = mem_realloc(progress->blobs, (progress->blob_count + 1) * sizeof(*progress->blobs));
    progress->table_bytes += mem_usable(progress->blobs);
    progress->blobs[progress->blob_count++] = (struct resp_blob_arg){.arg_index = progress->arg_count,
                                                                     .blob = progress->large};
    progress->large = NULL;
    progress->has_large = false;
    progress_add_arg(progress, OFFSET_IN_BLOB, size);
}

void resp_parser_init(struct resp_parser *parser, const struct resp_limits *limits, struct resp_scratch *scratch)
{
    *parser = (struct resp_parser){.limits = limits, .scratch = scratch};
}

void resp_parser_fini(struct resp_parser *parser)
{
    progress_destroy(&parser->progress);
}

size_t resp_parser_read_size(const struct resp_parser *parser)
{
    return parser->progress != NULL ? parser->progress->position : 0;
}

size_t resp_parser_table_bytes(const struct resp_parser *parser)
{
    return parser->progress != NULL ? parser->progress->table_bytes : 0;
}

size_t resp_parser_large_size(const struct resp_parser *parser)
{
    return parser->progress != NULL ? parser->progress->blob_size : 0;
}

size_t resp_parser_large_bytes(const struct resp_parser *parser)
{
    return parser->progress != NULL ? parser->progress->blob_bytes : 0;
}

/* ------------------------------------------------------------------------------------------- the careful way -- */

static enum resp_result parse_fail(struct resp_parser *parser, struct resp_command *command, struct slice error)
{
    progress_destroy(&parser->progress);
    command->error = error;
    return RESP_ERROR;
}

static enum resp_result parse_empty(struct resp_parser *parser, struct resp_command *command, size_t consumed)
{
    progress_destroy(&parser->progress);
    command->consumed = consumed;
    return RESP_EMPTY;
}

/* The text between position and the next CR, without its type byte; position moves behind CR and the byte after it.
 * False: not there yet; *too_long if it cannot become a line any more. */
static bool take_line(struct resp_progress *progress, const char *data, size_t size, struct slice *line, bool *too_long)
{
    size_t from = MAX(progress->scanned, progress->position);
    const char *end = from < size ? memchr(data + from, '\r', size - from) : NULL;

    *too_long = false;
    if (end == NULL) {
        progress->scanned = size;
        *too_long = size - progress->position > RESP_INLINE_MAX_BYTES;
        return false;
    }
    progress->scanned = (size_t)(end - data);
    if (progress->scanned + 1 == size)
        return false;
    *line = slice_make(data + progress->position, progress->scanned - progress->position);
    progress->position = progress->scanned + 2;
    return true;
}

static struct slice large_slice(const struct blob *blob)
{
    return blob != NULL ? blob_slice(blob) : SLICE_EMPTY;
}

static enum resp_result finish_command(struct resp_parser *parser, char *data, struct resp_command *command)
{
    struct resp_progress *progress = parser->progress;
    struct slice *args = scratch_room(parser->scratch, progress->arg_count);
    const struct progress_chunk *chunk = progress->chunks;
    const struct progress_arg *from = progress->args;
    uint32_t blob_index = 0;

    for (uint32_t i = 0, k = 0; i < progress->arg_count; i++, k++) {
        struct progress_arg arg;

        if (k == PROGRESS_CHUNK_ARGS) {
            from = chunk->args;
            chunk = chunk->next;
            k = 0;
        }
        arg = from[k];
        args[i] = arg.offset == OFFSET_IN_BLOB ? large_slice(progress->blobs[blob_index++].blob)
                                               : slice_make(data + arg.offset, arg.size);
    }
    parser->scratch->next = args + progress->arg_count;
    command->args = args;
    command->arg_count = progress->arg_count;
    command->size_bytes = progress->size_bytes;
    command->consumed = progress->position;
    command->blobs = progress->blobs;
    command->blob_count = progress->blob_count;
    progress->blobs = NULL;
    progress->blob_count = 0;
    progress_destroy(&parser->progress);
    return RESP_COMMAND;
}

static enum resp_result parse_length(struct resp_parser *parser, struct slice line, struct resp_command *command)
{
    static _Thread_local char text[] = "Protocol error: expected '$', got '?'"; /* owner: the thread; for the reply */
    struct resp_progress *progress = parser->progress;
    int64_t length = 0;

    if (line.size == 0 || line.data[0] != '$') {
        char got = line.size == 0 ? '\r' : line.data[0];

        text[sizeof(text) - 3] = (char)(got == '\0' ? ' ' : got);
        return parse_fail(parser, command, slice_make(text, sizeof(text) - 1));
    }
    if (!number_parse_i64(slice_skip(line, 1), &length) || length < 0 ||
        (uint64_t)length > parser->limits->bulk_max_bytes)
        return parse_fail(parser, command, SLICE("Protocol error: invalid bulk length"));
    if (length > STRANGER_BULK_BYTES_MAX && !parser->limits->authenticated)
        return parse_fail(parser, command, SLICE("Protocol error: unauthenticated bulk length"));
    progress->bulk_size = (size_t)length;
    progress->in_bulk = true;
    return RESP_MORE;
}

static enum resp_result parse_args(struct resp_parser *parser, char *data, size_t size, struct resp_command *command)
{
    struct resp_progress *progress = parser->progress;

    while (progress->arg_count < progress->arg_total) {
        size_t there = 0;

        if (!progress->in_bulk) {
            struct slice line = SLICE_EMPTY;
            bool too_long = false;

            if (!take_line(progress, data, size, &line, &too_long)) {
                if (too_long)
                    return parse_fail(parser, command, SLICE("Protocol error: too big bulk count string"));
                return RESP_MORE;
            }
            if (parse_length(parser, line, command) == RESP_ERROR)
                return RESP_ERROR;
        }
        there = size > progress->position ? size - progress->position : 0;
        if (there < progress->bulk_size && progress->bulk_size >= RESP_LARGE_BYTES && parser->limits->large) {
            command->large_index = progress->arg_count;
            command->large_offset = progress->position;
            command->large_size = progress->bulk_size;
            return RESP_LARGE;
        }
        if (there < progress->bulk_size + 2)
            return RESP_MORE;
        if (progress->has_large)
            progress_add_large(progress);
        else
            progress_add_arg(progress, progress->position, progress->bulk_size);
        progress->position += progress->bulk_size + 2;
        progress->in_bulk = false;
    }
    return finish_command(parser, data, command);
}

static enum resp_result parse_multibulk(struct resp_parser *parser, char *data, size_t size,
                                        struct resp_command *command)
{
    struct resp_progress *progress = parser->progress;
    struct slice line = SLICE_EMPTY;
    bool too_long = false;
    int64_t count = 0;

    if (progress->arg_total != 0)
        return parse_args(parser, data, size, command);
    if (!take_line(progress, data, size, &line, &too_long)) {
        if (too_long)
            return parse_fail(parser, command, SLICE("Protocol error: too big mbulk count string"));
        return RESP_MORE;
    }
    if (!number_parse_i64(slice_skip(line, 1), &count) || count > INT32_MAX)
        return parse_fail(parser, command, SLICE("Protocol error: invalid multibulk length"));
    if (count > STRANGER_ARGS_MAX && !parser->limits->authenticated)
        return parse_fail(parser, command, SLICE("Protocol error: unauthenticated multibulk length"));
    if (count <= 0)
        return parse_empty(parser, command, progress->position);
    progress->arg_total = (uint64_t)count;
    return parse_args(parser, data, size, command);
}

/* The rules of words_split(): vertical tab and form feed separate words but do not end one. */
static bool ends_word(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_blank(char c)
{
    return ends_word(c) || c == '\v' || c == '\f';
}

/* Splits a line without quotes where it lies. */
static uint32_t split_plain(char *line, size_t size, struct slice *args)
{
    const char *zero = memchr(line, '\0', size);
    uint32_t count = 0;

    if (zero != NULL)
        size = (size_t)(zero - line);
    for (size_t i = 0; i < size;) {
        size_t start = i;

        if (is_blank(line[i])) {
            i++;
            continue;
        }
        while (i < size && !ends_word(line[i]))
            i++;
        args[count++] = slice_make(line + start, i - start);
    }
    return count;
}

/* An unquoted word is never longer than its notation, so it fits in place. */
static bool split_quoted(char *line, size_t size, struct slice *args, uint32_t *count)
{
    struct words words = {0};
    bool balanced = words_split(slice_make(line, size), &words);
    char *at = line;

    *count = 0;
    for (size_t i = 0; balanced && i < words.count; i++) {
        assert((size_t)(line + size - at) >= words.items[i].size);
        if (words.items[i].size != 0)
            memcpy(at, words.items[i].data, words.items[i].size);
        args[(*count)++] = slice_make(at, words.items[i].size);
        at += words.items[i].size;
    }
    words_fini(&words);
    return balanced;
}

static enum resp_result parse_inline(struct resp_parser *parser, char *data, size_t size, struct resp_command *command)
{
    struct resp_progress *progress = progress_of(parser);
    char *end = size > progress->scanned ? memchr(data + progress->scanned, '\n', size - progress->scanned) : NULL;
    struct slice *args = NULL;
    size_t line_size = 0;
    uint32_t count = 0;

    if (end == NULL) {
        progress->scanned = size;
        if (size > RESP_INLINE_MAX_BYTES)
            return parse_fail(parser, command, SLICE("Protocol error: too big inline request"));
        return RESP_MORE;
    }
    line_size = (size_t)(end - data);
    if (line_size > 0 && end[-1] == '\r')
        line_size--;
    args = scratch_room(parser->scratch, line_size / 2 + 1); /* words have at least one byte and a blank between */
    if (memchr(data, '"', line_size) == NULL && memchr(data, '\'', line_size) == NULL)
        count = split_plain(data, line_size, args);
    else if (!split_quoted(data, line_size, args, &count))
        return parse_fail(parser, command, SLICE("Protocol error: unbalanced quotes in request"));
    if (count == 0)
        return parse_empty(parser, command, (size_t)(end - data) + 1);
    progress_destroy(&parser->progress);
    parser->scratch->next = args + count;
    command->args = args;
    command->arg_count = count;
    command->consumed = (size_t)(end - data) + 1;
    for (uint32_t i = 0; i < count; i++)
        command->size_bytes += args[i].size;
    return RESP_COMMAND;
}

static NOINLINE enum resp_result parse_careful(struct resp_parser *parser, char *data, size_t size,
                                               struct resp_command *command)
{
    *command = (struct resp_command){0};
    if (size == 0)
        return RESP_MORE;
    if (data[0] != '*')
        return parse_inline(parser, data, size, command);
    progress_of(parser);
    return parse_multibulk(parser, data, size, command);
}

void resp_parser_large_done(struct resp_parser *parser, struct blob *blob)
{
    struct resp_progress *progress = parser->progress;

    assert(progress != NULL);
    assert(progress->in_bulk && !progress->has_large);
    assert(blob == NULL || blob->size == progress->bulk_size);
    progress->has_large = true;
    if (blob != NULL) {
        progress->large = blob_acquire(blob);
        progress->blob_size += blob->size;
        progress->blob_bytes += blob_footprint(blob);
    }
    progress->bulk_size = 0; /* only CR LF are still in the range */
}

/* ---------------------------------------------------------------------------------------------- the fast way -- */

static ALWAYS_INLINE bool is_line_end(const char *at)
{
    uint16_t both, wanted;

    memcpy(&both, at, sizeof(both));
    memcpy(&wanted, "\r\n", sizeof(wanted));
    return both == wanted;
}

/* Reads "<digits>\r\n" of 1 to 5 digits without leading zero. False: something else, or not complete. */
static ALWAYS_INLINE bool fast_number(const char **at, const char *end, size_t *number)
{
    const char *p = *at;
    size_t value = (unsigned char)(p[0] - '0');
    size_t digit = 0;

    /* The caller checked that three bytes are there: the shortest "d\r\n". */
    if (UNLIKELY(value > 9))
        return false;
    if (LIKELY(is_line_end(p + 1))) {
        *number = value;
        *at = p + 3;
        return true;
    }
    digit = (unsigned char)(p[1] - '0');
    if (UNLIKELY(digit > 9 || value == 0 || end - p < 4))
        return false;
    value = value * 10 + digit;
    if (LIKELY(is_line_end(p + 2))) {
        *number = value;
        *at = p + 4;
        return true;
    }
    for (int i = 2; i < 5; i++) {
        digit = (unsigned char)(p[i] - '0');
        if (digit > 9 || end - p < i + 3)
            return false;
        value = value * 10 + digit;
        if (is_line_end(p + i + 1)) {
            *number = value;
            *at = p + i + 3;
            return true;
        }
    }
    return false;
}

enum resp_result resp_parse(struct resp_parser *parser, char *data, size_t size, struct resp_command *command)
{
    struct resp_scratch *scratch = parser->scratch;
    const char *p = data + 1;
    const char *end = data + size;
    size_t arg_count = 0;
    size_t size_bytes = 0;
    struct slice *args = NULL;

    if (UNLIKELY(parser->progress != NULL || !parser->limits->authenticated || size < 4 || data[0] != '*'))
        return parse_careful(parser, data, size, command);
    if (UNLIKELY(!fast_number(&p, end, &arg_count) || arg_count - 1 >= FAST_ARGS_MAX))
        return parse_careful(parser, data, size, command);
    args = scratch_room(scratch, arg_count);
    for (size_t i = 0; i < arg_count; i++) {
        size_t length = 0;

        if (UNLIKELY(end - p < 6 || p[0] != '$')) /* "$0\r\n\r\n" is the least */
            return parse_careful(parser, data, size, command);
        p++;
        if (UNLIKELY(!fast_number(&p, end, &length) || (size_t)(end - p) < length + 2))
            return parse_careful(parser, data, size, command);
        args[i] = slice_make(p, length);
        p += length + 2;
        size_bytes += length;
    }
    scratch->next = args + arg_count;
    command->args = args;
    command->arg_count = (uint32_t)arg_count;
    command->blob_count = 0;
    command->blobs = NULL;
    command->consumed = (size_t)(p - data);
    command->size_bytes = size_bytes;
    command->is_plain = true;
    return RESP_COMMAND;
}
