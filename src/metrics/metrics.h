/* metrics-port: what this server does, over HTTP, for Prometheus, probes and people.
 *
 *     /metrics   the figures of INFO for Prometheus (exposition.h)
 *     /healthz   200: the process answers
 *     /readyz    200: clients may come; 503 and the reason in a line
 *     /          a page that draws the figures live (page.h)
 *
 * A thread of its own answers (http.h). It takes what INFO takes: no gate, no stripe; and no worker waits for it. With
 * metrics-token only /metrics wants the token: probes have none, and the page, which has no figures in it, asks for
 * it. */
#pragma once

#include "server/core/lifecycle.h"

extern const struct lifecycle metrics_lifecycle; /* listens at the start, serves when all is set up */

void metrics_setup(void); /* after config_setup: adds the options */
void metrics_stop(void);  /* main thread, when the workers have ended: nobody is answered any more */
