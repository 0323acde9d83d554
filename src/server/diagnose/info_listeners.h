/* The listening addresses for INFO. Any thread, under stripes at most. */
#pragma once

struct buffer;

/* Appends a line for each kind of listener in use. */
void info_append_listeners(struct buffer *buffer, const void *picture);
