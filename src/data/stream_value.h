/* Streams as values. There is one encoding, and a key with an empty stream stays. */
#pragma once

#include "data/stream.h"
#include "data/value.h"

extern const struct value_ops stream_ops;
extern const struct former_ops stream_former;

static inline struct value stream_value(struct stream *stream)
{
    return (struct value){stream, ENCODING_STREAM};
}

static inline struct stream *stream_of(struct value value)
{
    return value.data;
}
