/* Reading an append only file: commands, each an array of bulks as clients send them, and notes, lines that begin with
 * # ("#TS:1700000000": what follows was written at that time). The bytes may be anybody's: what they claim is checked.
 *
 *     while ((piece = aof_reader_piece(&reader, &command)) ...)
 *         AOF_COMMAND   reader.words[command.first ...] are its words
 *         AOF_NOTE      a note
 *         AOF_MORE      what is in the window ends within a piece: aof_reader_fill, then ask again
 *         AOF_BAD       reader.error says why; it begins at aof_reader_offset
 *
 * Words point into the window. They stay while pieces are read, until aof_reader_fill or aof_reader_forget: so several
 * commands can be looked at together. A reader belongs to one thread. */
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
    uint64_t offset;       /* of its first byte in the file */
};

struct aof_reader {
    struct byte_source *source; /* NULL: all there is stands in the window */
    char *window;
    size_t capacity, at, end; /* in the window: the next piece; behind the last byte */
    uint64_t offset;          /* of the window's first byte in the file */
    struct {
        struct slice *items;
        uint32_t count, capacity;
    } words;
    struct slice note;  /* the last one, without its end of line */
    uint64_t wanted;    /* bytes that the piece at the window's end takes at least; a claim */
    bool ended;         /* the source has nothing more */
    enum status status; /* of the source: why nothing more can be read */
    const char *error;  /* AOF_BAD: what is wrong */
};

/* `offset`: where in the file the source stands. The source outlives the reader. */
void aof_reader_init(struct aof_reader *reader, struct byte_source *source, uint64_t offset);
void aof_reader_init_memory(struct aof_reader *reader, struct slice bytes, uint64_t offset); /* not owned */
void aof_reader_fini(struct aof_reader *reader);

must_check enum aof_piece aof_reader_piece(struct aof_reader *reader, struct aof_command *command);
/* Forgets all words, and reads more. False: there is nothing more (status says whether that is an error). What stands
 * in the window from `keep` on stays (and moves); at most reader->at. */
must_check bool aof_reader_fill(struct aof_reader *reader, size_t *keep);
static inline void aof_reader_forget(struct aof_reader *reader)
{
    reader->words.count = 0;
}

/* Of the next piece. */
static inline uint64_t aof_reader_offset(const struct aof_reader *reader)
{
    return reader->offset + reader->at;
}
/* Everything was read, to the last byte. */
static inline bool aof_reader_is_done(const struct aof_reader *reader)
{
    return reader->ended && reader->at == reader->end;
}

/* The file ends within a piece. Is that all that is wrong? Or is a length damaged, so that whole commands stand in what
 * would be cut off? Reads what is left. */
must_check bool aof_reader_hides_commands(struct aof_reader *reader);

/* "#TS:" and seconds; false: another note. */
must_check bool aof_note_time(struct slice note, int64_t *seconds);
