/* What the commands about streams have in common: ids as clients write them, and replies of ids and entries. */
#pragma once

#include "commands/shared/typed.h"
#include "data/stream_value.h"

enum { STREAM_ID_TEXT_BYTES = 2 * NUMBER_I64_SPACE };

/* "5-3", or "5", which means 5 and missing_seq. */
must_check bool stream_id_parse(struct slice text, uint64_t missing_seq, struct stream_id *id);
struct slice stream_id_format(struct stream_id id, char room[STREAM_ID_TEXT_BYTES]);

/* The argument as an id; false: it is none, which was replied. */
must_check bool stream_arg_id(struct request *request, uint32_t index, uint64_t missing_seq, struct stream_id *id);
/* As an end of an interval: also "-", "+", and with "(" before it the next or the one before. */
must_check bool stream_arg_start(struct request *request, uint32_t index, struct stream_id *id);
must_check bool stream_arg_end(struct request *request, uint32_t index, struct stream_id *id);

/* To read; *stream is NULL if there is no such key. False: another type, which was replied. */
must_check bool stream_read_arg(struct request *request, const struct key *key, const struct stream **stream);

/* An error that names things: each "@" of the text stands for the next of the names. */
void reply_error_about(struct request *request, const char *text, const struct slice *names);
void reply_stream_id(struct request *request, struct stream_id id);
/* Id and pairs of the entry the iterator has just come to. */
void reply_stream_entry(struct request *request, struct stream_iter *iter, struct stream_id id, uint64_t field_count);
/* The same for one entry; false: it is not there, and nothing was replied. */
bool reply_stream_entry_at(struct request *request, const struct stream *stream, struct stream_id id);
/* An array of at most so many entries of an iterator, which is finished then. */
void reply_stream_entries(struct request *request, struct stream_iter *iter, uint64_t most);
