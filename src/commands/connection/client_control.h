/* CLIENT PAUSE, UNPAUSE and UNBLOCK: control of other clients. */
#pragma once

struct request;

void cmd_client_pause(struct request *request);
void cmd_client_unpause(struct request *request);
void cmd_client_unblock(struct request *request);
