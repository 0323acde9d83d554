#include "server/config/command_block.h"

_Atomic unsigned command_block_bits;         /* global: see command_block.h */
_Atomic uint32_t command_block_change_count; /* global: likewise */
