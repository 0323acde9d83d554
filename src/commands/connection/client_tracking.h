/* CLIENT TRACKING and related commands; their rows are among those of CLIENT, in connection.c. */
#pragma once

struct request;

void cmd_client_caching(struct request *request);
void cmd_client_getredir(struct request *request);
void cmd_client_tracking(struct request *request);
void cmd_client_trackinginfo(struct request *request);
