/* The words that rows and COMMAND use for flags, categories and flags of keys. Tables only. */
#pragma once

#include "base/slice.h"
#include "server/command/command.h"

#include <stdbool.h>
#include <stdint.h>

/* Parses a word of a row's `flags`. False: no such word. */
bool command_flag_of_word(struct slice word, uint32_t *flag);
/* The flags in the order of COMMAND's reply; 0: the end. */
uint32_t command_flag_at(unsigned index);
/* The category's bit; without the @, case-insensitive; 0: no such category. */
uint64_t command_category_of_word(struct slice word);
uint32_t key_flag_of_word(struct slice word); /* case-insensitive; 0: no such flag */
uint32_t key_flag_at(unsigned index);         /* the flags in the order of COMMAND's reply; 0: the end */
const char *key_flag_name(uint32_t flag);     /* as in COMMAND's reply: "RW", "access" */
