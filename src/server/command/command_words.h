/* The words of command rows and of COMMAND: flags, categories, flags of keys. Tables only. */
#pragma once

#include "base/slice.h"
#include "server/command/command.h"

#include <stdbool.h>
#include <stdint.h>

/* Words of a row's `flags`. False: no such word. */
bool command_flag_of_word(struct slice word, uint32_t *flag);
/* In the order in which COMMAND prints them; 0 ends. */
uint32_t command_flag_at(unsigned index);
uint64_t command_category_of_word(struct slice word); /* a bit, without the @, any case; 0: no such */
uint32_t key_flag_of_word(struct slice word);         /* any case; 0: no such */
uint32_t key_flag_at(unsigned index);                 /* in printing order; 0 ends */
const char *key_flag_name(uint32_t flag);             /* as COMMAND prints it: "RW", "access" */
