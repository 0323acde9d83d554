/* A node of a stream from outside. Properties of bytes that are accepted:
 *  1. the stream is valid with it, and has as many entries forwards as backwards, as it says;
 *  2. written and read again it is the same;
 *  3. entries can be added behind, all can be deleted, and then nothing is left. */
#include "base/mem.h"
#include "data/stream.h"
#include "fuzz.h"

static uint64_t walk(const struct stream *stream, bool backwards)
{
    struct stream_iter iter;
    struct stream_id id;
    uint64_t field_count, count = 0;

    if (backwards)
        stream_iter_init_backwards(&iter, stream, STREAM_ID_LEAST, STREAM_ID_MOST);
    else
        stream_iter_init(&iter, stream, STREAM_ID_LEAST, STREAM_ID_MOST);
    for (; stream_iter_next(&iter, &id, &field_count); count++) {
        struct slice field, value;

        assert(stream_has(stream, id));
        for (uint64_t i = 0; i < field_count; i++)
            stream_iter_pair(&iter, &field, &value);
    }
    stream_iter_fini(&iter);
    return count;
}

static void load_again(struct stream_id id, struct slice bytes, void *context)
{
    bool loaded = stream_load_node(context, id, bytes);

    assert(loaded);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size), pair[2] = {SLICE("f"), SLICE("v")};
    struct stream_id id = {fuzz_take_byte(&input), fuzz_take_byte(&input)};
    struct stream *stream = stream_create(), *again = stream_create();
    char *exact = mem_copy(input.data, input.size); /* so that reading beyond the end is seen */
    bool loaded = stream_load_node(stream, id, slice_make(exact, input.size));

    mem_free(exact);
    if (loaded) {
        stream_validate(stream);
        assert(walk(stream, false) == stream_length(stream));
        assert(walk(stream, true) == stream_length(stream));
        stream_each_node(stream, load_again, again);
        stream_validate(again);
        assert(stream_length(again) == stream_length(stream));
        id = stream_last_id(stream);
        if (stream_id_increment(&id)) {
            bool added = stream_append(stream, id, pair, 1, &(struct stream_limits){0, 0});

            assert(added);
        }
        stream_validate(stream);
        while (stream_length(stream) != 0) {
            bool deleted = stream_delete(stream, stream_first_id(stream));

            assert(deleted);
        }
        stream_validate(stream);
        assert(stream_node_count(stream) == 0);
    } else {
        assert(stream_length(stream) == 0);
    }
    stream_destroy(&stream);
    stream_destroy(&again);
    return 0;
}
