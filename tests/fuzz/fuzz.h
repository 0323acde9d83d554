/* Functions that fuzz targets share. A target takes outside bytes, and asserts properties rather than waiting for a
 * crash: the same result however the bytes arrive, the same as a simple model, back and forth without loss.
 *
 * The first bytes of an input steer (which limits, where to cut), the rest is the data. */
#pragma once

#include "base/assert.h"
#include "base/buffer.h"
#include "base/compiler.h"
#include "base/random.h"
#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size); /* libFuzzer calls it */

/* Takes one byte from the front; 0 when there is none. */
static inline uint8_t fuzz_take_byte(struct slice *input)
{
    uint8_t byte = 0;

    if (input->size != 0) {
        byte = (uint8_t)input->data[0];
        *input = slice_skip(*input, 1);
    }
    return byte;
}

/* Takes the bytes before the first zero byte; the input continues behind it. */
static inline struct slice fuzz_take_text(struct slice *input)
{
    const char *zero = input->size == 0 ? NULL : memchr(input->data, '\0', input->size);
    struct slice text = *input;

    if (zero == NULL) {
        *input = SLICE_EMPTY;
        return text;
    }
    text.size = (size_t)(zero - input->data);
    *input = slice_skip(*input, text.size + 1);
    return text;
}
