/* CLIENT PAUSE, UNPAUSE and UNBLOCK: what one client may do to the flow of others. */
#pragma once

struct request;

void cmd_client_pause(struct request *request);
void cmd_client_unpause(struct request *request);
void cmd_client_unblock(struct request *request);
