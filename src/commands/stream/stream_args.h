/* Functions that the commands of streams share: ids in arguments, and replies with ids and entries. */
#pragma once

#include "commands/shared/typed.h"
#include "data/stream_value.h"

enum { STREAM_ID_TEXT_BYTES = 2 * NUMBER_I64_SPACE };

/* Parses "5-3", or "5", whose sequence is missing_seq. */
must_check bool stream_id_parse(struct slice text, uint64_t missing_seq, struct stream_id *id);
struct slice stream_id_format(struct stream_id id, char room[STREAM_ID_TEXT_BYTES]);

/* Parses an argument as an id. False: it is not an id, an error was replied. */
must_check bool stream_arg_id(struct request *request, uint32_t index, uint64_t missing_seq, struct stream_id *id);
/* As an end of an interval: accepts also "-" and "+", and "(" for an exclusive end. */
must_check bool stream_arg_start(struct request *request, uint32_t index, struct stream_id *id);
must_check bool stream_arg_end(struct request *request, uint32_t index, struct stream_id *id);

/* For reading; *stream is NULL if the key does not exist. False: another type, an error was replied. */
must_check bool stream_read_arg(struct request *request, const struct key *key, const struct stream **stream);

/* Replies an error with names: each "@" of the text stands for the next name. */
void reply_error_about(struct request *request, const char *text, const struct slice *names);
void reply_stream_id(struct request *request, struct stream_id id);
/* Replies id and pairs of the iterator's current entry. */
void reply_stream_entry(struct request *request, struct stream_iter *iter, struct stream_id id, uint64_t field_count);
/* The same two, for a reply that has more. */
void reply_stream_entry_parts(struct request *request, struct stream_iter *iter, struct stream_id id,
                              uint64_t field_count);
/* The same for one entry; false: it does not exist, and nothing was replied. */
bool reply_stream_entry_at(struct request *request, const struct stream *stream, struct stream_id id);
/* Replies an array of at most `most` entries of an iterator, and finishes the iterator. */
void reply_stream_entries(struct request *request, struct stream_iter *iter, uint64_t most);
