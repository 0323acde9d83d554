/* Where this server listens, for INFO. Any thread, no lock held. */
#pragma once

struct buffer;

/* A line for each kind of listener that there is. */
void info_append_listeners(struct buffer *buffer);
