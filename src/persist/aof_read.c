#include "persist/aof_read.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/mem.h"
#include "base/number.h"
#include "store/stamp.h"

enum {
    WINDOW_BYTES = 1 << 20,
    NOTE_BYTES_MOST = 1024,
    DIGITS_MOST = 18,
    FIRST_GROWTH_BYTES = 64 << 20 /* memory that a claimed length gets at once */
};
#define HIDDEN_BYTES_MOST ((uint64_t)1 << 30) /* so much is searched for commands behind a damaged length */

void aof_reader_init(struct aof_reader *reader, struct byte_source *source, uint64_t offset)
{
    *reader = (struct aof_reader){.source = source, .offset = offset, .capacity = WINDOW_BYTES};
    reader->window = mem_alloc(reader->capacity);
}

void aof_reader_init_memory(struct aof_reader *reader, struct slice bytes, uint64_t offset)
{
    *reader = (struct aof_reader){.window = (char *)(uintptr_t)bytes.data,
                                  .end = bytes.size,
                                  .offset = offset,
                                  .ended = true};
}

void aof_reader_fini(struct aof_reader *reader)
{
    if (reader->source != NULL)
        mem_free(reader->window);
    ARRAY_FINI(&reader->words);
    *reader = (struct aof_reader){0};
}

/* ------------------------------------------------------------------------------------------------------- pieces -- */

static enum aof_piece bad(struct aof_reader *reader, const char *error)
{
    reader->error = error;
    return AOF_BAD;
}

/* `mark`, digits, CR LF at *at, which moves behind them. */
static inline enum aof_piece read_count(struct aof_reader *reader, char mark, size_t *at, uint64_t *count)
{
    const char *bytes = reader->window + *at, *end = reader->window + reader->end, *first = bytes + 1;
    uint64_t number = 0;

    if (UNLIKELY(bytes == end))
        return AOF_MORE;
    if (UNLIKELY(*bytes != mark))
        return bad(reader, mark == '*' ? "expected '*' at the beginning of a command"
                                       : "expected '$' at the beginning of an argument");
    for (bytes = first; bytes < end && *bytes >= '0' && *bytes <= '9'; bytes++)
        number = number * 10 + (uint64_t)(*bytes - '0'); /* too many digits are refused below */
    if (UNLIKELY(bytes - first > DIGITS_MOST))
        return bad(reader, "a length is too large");
    if (UNLIKELY(end - bytes < 2 && (bytes == end || *bytes == '\r')))
        return AOF_MORE;
    if (UNLIKELY(bytes == first || bytes[0] != '\r' || bytes[1] != '\n'))
        return bad(reader, "a length is not a number");
    *at = (size_t)(bytes + 2 - reader->window);
    *count = number;
    return AOF_COMMAND;
}

static enum aof_piece read_note(struct aof_reader *reader)
{
    const char *first = reader->window + reader->at;
    size_t size = reader->end - reader->at;
    const char *end = memchr(first, '\n', MIN(size, (size_t)NOTE_BYTES_MOST));

    if (end == NULL)
        return size < NOTE_BYTES_MOST ? AOF_MORE : bad(reader, "a note is too long");
    reader->at += (size_t)(end - first) + 1;
    reader->note = slice_make(first, (size_t)(end - first) - (end > first && end[-1] == '\r'));
    return AOF_NOTE;
}

enum aof_piece aof_reader_piece(struct aof_reader *reader, struct aof_command *command)
{
    size_t at = reader->at;
    uint64_t count, size;
    enum aof_piece piece;

    assert(at <= reader->end);
    reader->wanted = 0;
    if (UNLIKELY(at == reader->end))
        return AOF_MORE;
    if (UNLIKELY(reader->window[at] == '#'))
        return read_note(reader);
    *command = (struct aof_command){.first = reader->words.count, .offset = reader->offset + at};
    piece = read_count(reader, '*', &at, &count);
    if (UNLIKELY(piece != AOF_COMMAND))
        return piece;
    if (UNLIKELY(count == 0))
        return bad(reader, "a command has no arguments");
    for (uint64_t i = 0; i < count; i++) {
        piece = read_count(reader, '$', &at, &size);
        if (UNLIKELY(piece != AOF_COMMAND))
            goto incomplete;
        if (UNLIKELY(reader->end - at < size + 2)) {
            reader->wanted = at - reader->at + size + 2;
            piece = AOF_MORE;
            goto incomplete;
        }
        *ARRAY_PUSH(&reader->words) = (struct slice){reader->window + at, (size_t)size};
        at += size;
        if (UNLIKELY(reader->window[at] != '\r' || reader->window[at + 1] != '\n')) {
            piece = bad(reader, "an argument is longer than its length says");
            goto incomplete;
        }
        at += 2;
    }
    command->count = reader->words.count - command->first;
    reader->at = at;
    return AOF_COMMAND;
incomplete:
    reader->words.count = command->first;
    return piece;
}

/* ------------------------------------------------------------------------------------------------------- window -- */

/* Makes room for the wanted bytes, but not for more than the source has; doubles, so that a claim alone costs no
 * memory. */
static bool make_room(struct aof_reader *reader)
{
    size_t used = reader->end, capacity = reader->capacity;
    char *window;

    assert(reader->source != NULL && used <= capacity);
    if (used < capacity)
        return true;
    capacity *= 2;
    if (reader->wanted > capacity)
        capacity = (size_t)MIN(reader->wanted, (uint64_t)MAX(capacity, (size_t)FIRST_GROWTH_BYTES));
    window = mem_try_realloc(reader->window, capacity);
    if (window == NULL) {
        reader->status = STATUS_NO_MEMORY;
        return false;
    }
    reader->window = window;
    reader->capacity = capacity;
    return true;
}

bool aof_reader_fill(struct aof_reader *reader, size_t *keep)
{
    size_t from = keep != NULL ? *keep : reader->at, got;

    assert(from <= reader->at && reader->at <= reader->end);
    reader->words.count = 0;
    if (reader->ended || reader->status != STATUS_OK)
        return false;
    if (from != 0) {
        memmove(reader->window, reader->window + from, reader->end - from);
        reader->offset += from;
        reader->at -= from;
        reader->end -= from;
        if (keep != NULL)
            *keep = 0;
    }
    if (!make_room(reader))
        return false;
    reader->status = reader->source->read(reader->source, reader->window + reader->end, reader->capacity - reader->end,
                                          &got);
    if (reader->status != STATUS_OK)
        return false;
    assert(got <= reader->capacity - reader->end);
    reader->end += got;
    reader->ended = got == 0;
    return got != 0;
}

/* ------------------------------------------------------------------------------------------------------ the end -- */

/* Does a whole command begin in the window behind a CR LF, from `at` on? */
static bool has_command(const struct aof_reader *reader, size_t at)
{
    const char *end = reader->window + reader->end, *found = reader->window + at;
    struct aof_command command;
    bool is_there = false;

    while (!is_there && (found = memchr(found, '*', (size_t)(end - found))) != NULL) {
        struct aof_reader rest;

        if (found - reader->window >= 2 && found[-1] == '\n' && found[-2] == '\r') {
            aof_reader_init_memory(&rest, slice_make(found, (size_t)(end - found)), 0);
            is_there = aof_reader_piece(&rest, &command) == AOF_COMMAND;
            aof_reader_fini(&rest);
        }
        found++;
    }
    return is_there;
}

bool aof_reader_hides_commands(struct aof_reader *reader)
{
    while (reader->end - reader->at < HIDDEN_BYTES_MOST && aof_reader_fill(reader, NULL))
        ;
    return reader->at < reader->end && has_command(reader, reader->at + 1);
}

bool aof_note_time(struct slice note, int64_t *seconds)
{
    return slice_starts_with(note, SLICE("#TS:")) && number_parse_i64(slice_skip(note, 4), seconds) && *seconds >= 0;
}

static bool parse_hex(struct slice digits, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < digits.size; i++) {
        const char digit = digits.data[i];

        if (digit >= '0' && digit <= '9')
            *number = *number << 4 | (uint64_t)(digit - '0');
        else if (digit >= 'a' && digit <= 'f')
            *number = *number << 4 | (uint64_t)(digit - 'a' + 10);
        else
            return false;
    }
    return true;
}

/* The next word of a line, without the space before it. */
static struct slice take_word(struct slice *text)
{
    struct slice word;
    size_t size = 0;

    if (text->size == 0 || text->data[0] != ' ')
        return slice_make(text->data, 0);
    *text = slice_skip(*text, 1);
    while (size < text->size && text->data[size] != ' ')
        size++;
    word = slice_make(text->data, size);
    *text = slice_skip(*text, size);
    return word;
}

bool aof_note_order(struct slice note, struct aof_order_note *order)
{
    enum { HEX_BYTES = 16 };
    uint64_t before = 0, count = 0;
    struct slice origin, stamp, back, seen;
    int64_t behind = 0;

    if (!slice_starts_with(note, SLICE("#order ")))
        return false;
    note = slice_skip(note, 6);
    origin = take_word(&note);
    stamp = take_word(&note);
    back = take_word(&note);
    if (origin.size != HEX_BYTES || stamp.size != HEX_BYTES || back.size == 0 || back.size > HEX_BYTES ||
        !parse_hex(origin, &order->origin) || !parse_hex(stamp, &order->stamp) || !parse_hex(back, &before) ||
        !number_parse_i64(take_word(&note), &behind) || !number_parse_u64(take_word(&note), &count))
        return false;
    order->seen = 0;
    if (note.size != 0) {
        seen = take_word(&note);
        if (note.size != 0 || seen.size != HEX_BYTES || !parse_hex(seen, &order->seen) ||
            !stamp_is_possible(order->seen) || count != 1)
            return false;
    }
    if (order->origin == 0 || order->origin >= MERGE_ORIGIN_FLOOR || !stamp_is_possible(order->stamp) || before == 0 ||
        before > order->stamp || behind < -STAMP_MOST_MS || behind > STAMP_MOST_MS || count > UINT32_MAX)
        return false;
    order->previous = order->stamp - before;
    order->wall_ms = stamp_ms(order->stamp) + behind;
    order->count = (uint32_t)count;
    return true;
}

bool aof_note_is_plain(struct slice note)
{
    return slice_equal(note, SLICE("#plain"));
}
