/* What a shutdown waits for: replicas that do not have everything yet. */
#pragma once

void farewell_setup(void); /* main thread, before the workers start */
