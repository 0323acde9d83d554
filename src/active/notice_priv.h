/* Parts of notices, for other formats that have them (beats.c, moment.c). A read that fails leaves its reason in the
 * cursor. */
#pragma once

#include "active/cursor.h"
#include "active/notice.h"

/* `base`: of the stamps, which are written as differences to it. */
void notice_put_vector(struct buffer *body, const struct merge_vector *vector, uint64_t base);
void notice_put_set(struct buffer *body, const struct merge_vector *set);
void notice_put_members(struct buffer *body, const struct merge_members *members);

must_check bool notice_get_id(struct cursor *cursor, uint64_t *id);
must_check bool notice_get_stamp(struct cursor *cursor, uint64_t base, uint64_t *stamp); /* 0, or a possible one */
must_check bool notice_get_clock(struct cursor *cursor, uint64_t *clock);
must_check bool notice_get_incarnation(struct cursor *cursor, uint32_t *incarnation);
must_check bool notice_get_wall(struct cursor *cursor, int64_t *wall);
/* Into what is empty; also what was read before a failure has to be freed. */
must_check bool notice_get_vector(struct cursor *cursor, struct merge_vector *vector, uint64_t base);
must_check bool notice_get_set(struct cursor *cursor, struct merge_vector *set);
must_check bool notice_get_members(struct cursor *cursor, struct merge_members *members);

/* Returns whether all of a body was read; the last thing that was is `is_right`. Else `error` has a line with `what`,
 * the byte and the reason. */
must_check bool notice_ends(struct cursor *cursor, bool is_right, const char *what, char error[NOTICE_ERROR_BYTES]);
