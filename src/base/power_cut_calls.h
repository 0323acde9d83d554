/* The functions of libc that change files (open, write, rename, fsync ...): calls for files in the watched folder are
 * recorded (power_cut_record.h), all calls are passed on. This header declares none of them; libc's own headers do. */
#pragma once

#include <stdbool.h>

void power_cut_calls_record(bool on); /* off at first */
