/* The server's figures in the text format of Prometheus (version 0.0.4).
 *
 * They are those of INFO: one answer of INFO is taken, so that all of them show one moment, and the rows of
 * exposition_rows.c say which of its fields make which metric. Beside them stand the histograms of commands'
 * durations, which INFO has no form for. */
#pragma once

#include "base/buffer.h"

void exposition_write(struct buffer *text); /* any thread; takes no gate and no stripe, as INFO */

/* The same from this answer of INFO; without histograms. */
void exposition_write_from(struct buffer *text, struct slice info);
