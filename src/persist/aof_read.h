/* Parses an append-only file: commands, each an array of bulk strings as clients send them, and notes, which are lines
 * that begin with # ("#TS:1700000000": the following commands were written at that time). The bytes are not trusted:
 * every length is checked.
 *
 *     while ((piece = aof_reader_piece(&reader, &command)) ...)
 *         AOF_COMMAND   reader.words[command.first ...] are its words
 *         AOF_NOTE      a note
 *         AOF_MORE      the window ends within a piece: call aof_reader_fill and ask again
 *         AOF_BAD       reader.error has the reason; the bad piece begins at aof_reader_offset
 *
 * Words point into the window. They are valid while pieces are read, until aof_reader_fill or aof_reader_forget. So
 * several commands can be used together. A reader belongs to one thread. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "base/status.h"
#include "persist/byte_io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum aof_piece { AOF_COMMAND, AOF_NOTE, AOF_MORE, AOF_BAD };

struct aof_command {
    uint32_t first, count; /* in reader.words */
    uint64_t offset;       /* offset of its first byte in the file */
};

struct aof_reader {
    struct byte_source *source; /* NULL: all bytes are in the window */
    char *window;
    size_t capacity, at, end; /* in the window: begin of the next piece; end of the bytes */
    uint64_t offset;          /* offset of the window's first byte in the file */
    struct {
        struct slice *items;
        uint32_t count, capacity;
    } words;
    struct slice note;  /* the last note, without its end of line */
    uint64_t wanted;    /* least size of the piece at the window's end, as its lengths claim */
    bool ended;         /* the source is at its end */
    enum status status; /* status of the source: why no more bytes can be read */
    const char *error;  /* AOF_BAD: the reason */
};

/* `offset` is the source's position in the file. The source must outlive the reader. */
void aof_reader_init(struct aof_reader *reader, struct byte_source *source, uint64_t offset);
/* Does not own the bytes. */
void aof_reader_init_memory(struct aof_reader *reader, struct slice bytes, uint64_t offset);
void aof_reader_fini(struct aof_reader *reader);

must_check enum aof_piece aof_reader_piece(struct aof_reader *reader, struct aof_command *command);
/* Forgets all words and reads more bytes. False: there are none (status says whether that is an error). Bytes of the
 * window from `keep` on stay (and move); `keep` is at most reader->at. */
must_check bool aof_reader_fill(struct aof_reader *reader, size_t *keep);
static inline void aof_reader_forget(struct aof_reader *reader)
{
    reader->words.count = 0;
}

/* Offset of the next piece. */
static inline uint64_t aof_reader_offset(const struct aof_reader *reader)
{
    return reader->offset + reader->at;
}
/* True if everything was read up to the last byte. */
static inline bool aof_reader_is_done(const struct aof_reader *reader)
{
    return reader->ended && reader->at == reader->end;
}

/* For a file that ends within a piece: true if complete commands follow in the part that would be cut off, as after
 * damage to a length. Reads the rest of the file. */
must_check bool aof_reader_hides_commands(struct aof_reader *reader);

/* The end of an entry (aof_text.h). */
struct aof_order_note {
    uint64_t origin, stamp; /* possible ones */
    uint64_t previous;      /* the origin's stamp before; 0: it is the first */
    int64_t wall_ms;
    uint32_t count; /* of the commands before it that are its operations */
    uint64_t seen;  /* of an eviction: the stamp of the key's last operation; 0: it is none */
};
/* False: another note, or not one of ours. */
must_check bool aof_note_order(struct slice note, struct aof_order_note *order);
must_check bool aof_note_is_plain(struct slice note); /* the next command is an effect, and no operation */
/* Parses "#TS:" and seconds. False: another note. */
must_check bool aof_note_time(struct slice note, int64_t *seconds);
