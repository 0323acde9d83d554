#include "server/config/command_block.h"

_Atomic unsigned command_block_bits; /* global: see command_block.h */
