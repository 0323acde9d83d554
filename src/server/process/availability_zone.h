/* availability-zone: a text that INFO server shows, for clients that prefer servers nearby. */
#pragma once

struct buffer;

void availability_zone_setup(void);                   /* after config_setup: adds the option */
void availability_zone_start(void);                   /* main thread, after the configuration was read */
void availability_zone_append(struct buffer *buffer); /* any thread */
