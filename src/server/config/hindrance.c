#include "server/config/hindrance.h"

_Atomic unsigned hindrance_bits; /* global: see hindrance.h */
