/* Operations that several families need. What each command is for peers stands beside its effect;
 * docs/active-replication.md has the table. */
#pragma once

#include "server/core/request.h"

#define POP_NEAR_ELEMENTS 64     /* of these: so far one by one, then by a look at all bytes first */
#define POP_SEARCH_ELEMENTS 4096 /* how far from its end a list is searched for an element that was popped elsewhere */

/* The key's value as it is now, whatever was there before; DEL if there is none. */
void operation_add_value(struct request *request, unsigned db, const struct key *key);
static inline void operation_add_delete(struct request *request, unsigned db, struct slice key)
{
    operation_add_in(request, db, (const struct slice[]){SLICE("DEL"), key}, 2);
}

/* The command's words with other words in front of those from `first` on. */
void operation_add_words(struct request *request, const struct slice *words, uint32_t word_count, uint32_t first);

/* "NAME key element ...", where elements come one by one. Does nothing unless operations are wanted; begin and end
 * always come in pairs. */
struct operation_list {
    struct request *request; /* NULL: not wanted */
    struct buffer bytes;
    struct {
        size_t *items;
        uint32_t count, capacity;
    } sizes;
};
void operation_list_begin(struct operation_list *list, struct request *request);
static inline bool operation_list_is_wanted(const struct operation_list *list)
{
    return list->request != NULL;
}
void operation_list_add(struct operation_list *list, struct slice element);
/* These words, then the elements. None: no operation. */
void operation_list_end(struct operation_list *list, const struct slice *words, uint32_t word_count);

void operation_list_forget(struct operation_list *list); /* instead: the command's own words stay */

/* The same for "NAME key element ...", a command that changes some elements: what it changed nothing of is no part of
 * the operation. If it changed all, its own words stay. */
void operation_members_begin(struct operation_list *list, struct request *request);
void operation_members_end(struct operation_list *list);
