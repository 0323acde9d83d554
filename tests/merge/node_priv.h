/* For the files of the node. */
#pragma once

#include "node.h"

void merge_free_bytes(struct slice bytes); /* of memory that was allocated for them */
void merge_data_fini(struct merge_data *data, const struct merge_model *model);
void merge_data_copy(struct merge_data *to, const struct merge_data *from, const struct merge_model *model);
struct merge_key *merge_data_find(const struct merge_data *data, struct slice name, uint32_t *at);
struct merge_key *merge_data_add(struct merge_data *data, uint32_t at, struct slice name);
void merge_data_remove(struct merge_data *data, uint32_t at, const struct merge_model *model);
struct merge_dirty *merge_data_find_dirty(const struct merge_data *data, struct slice name);
void merge_data_mark(struct merge_data *data, struct slice name, struct merge_place place);
void merge_data_clean(struct merge_data *data, struct slice name);
void merge_data_keep(struct merge_data *data, struct merge_entry *entry); /* in the history */

void merge_node_place_entry(struct merge_node *node, struct merge_entry *entry);
void merge_node_note_frontiers(struct merge_node *node); /* the state's, for the keys */
