/* A script that runs for long: others are told so, and may end it. */
#pragma once

#include <stdbool.h>

struct request;

/* SCRIPT KILL, FUNCTION KILL. */
void script_busy_kill(struct request *request, bool function);
