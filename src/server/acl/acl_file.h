/* The ACL file (`aclfile`): a line "user NAME RULE..." for each user, words between blanks. Any thread. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>

struct buffer;

/* Reads all users anew; or none, if anything in the file is wrong: false, and what is wrong is appended, all of it. A
 * file without the default user means it as it is at first. */
must_check bool acl_load(struct buffer *errors);
must_check bool acl_load_text(struct slice text, struct buffer *errors); /* the same with what stands in a file */
/* Writes a new file in place of the old one. False: it could not be; the log says why. */
must_check bool acl_save(void);
