/* Copies of few bytes without a call, as most words are short. */
#pragma once

#include "base/compiler.h"

#include <stddef.h>
#include <string.h>

/* memcpy; `size` may be 0. Up to 64 bytes are two moves that overlap, or four. */
static ALWAYS_INLINE void copy_word(char *to, const char *from, size_t size)
{
    if (size >= 16) {
        if (size <= 32) {
            char head[16], tail[16];

            memcpy(head, from, 16);
            memcpy(tail, from + size - 16, 16);
            memcpy(to, head, 16);
            memcpy(to + size - 16, tail, 16);
            return;
        }
        if (size <= 64) {
            char head[32], tail[32];

            memcpy(head, from, 32);
            memcpy(tail, from + size - 32, 32);
            memcpy(to, head, 32);
            memcpy(to + size - 32, tail, 32);
            return;
        }
        memcpy(to, from, size);
    } else if (size >= 8) {
        char head[8], tail[8];

        memcpy(head, from, 8);
        memcpy(tail, from + size - 8, 8);
        memcpy(to, head, 8);
        memcpy(to + size - 8, tail, 8);
    } else if (size >= 4) {
        char head[4], tail[4];

        memcpy(head, from, 4);
        memcpy(tail, from + size - 4, 4);
        memcpy(to, head, 4);
        memcpy(to + size - 4, tail, 4);
    } else if (size != 0) {
        to[0] = from[0];
        to[size / 2] = from[size / 2];
        to[size - 1] = from[size - 1];
    }
}
