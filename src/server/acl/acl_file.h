/* The ACL file (`aclfile`): one line "user NAME RULE..." for each user, with words separated by blanks. Any thread. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>

struct buffer;

/* Replaces all users by those of the file. False: the file has errors; nothing has changed, and all errors are
 * appended. A file without the default user gives that user its initial rules. */
must_check bool acl_load(struct buffer *errors);
must_check bool acl_load_text(struct slice text, struct buffer *errors); /* the same with the contents of a file */
/* Replaces the file. False: it failed; the reason is in the log. */
must_check bool acl_save(void);
