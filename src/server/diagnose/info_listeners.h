/* The listening addresses for INFO. Any thread, under stripes at most. */
#pragma once

struct buffer;

/* A line for each kind of listener that there is. */
void info_append_listeners(struct buffer *buffer, const void *picture);
