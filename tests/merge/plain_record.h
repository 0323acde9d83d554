/* The simplest form of merge/record.h: the value at the base stays, and whenever the list changes, all of it is run
 * again. What the cheap form does is compared with this. Functions and fields are as there. */
#pragma once

#include "merge/record.h"

struct plain_record {
    struct merge_place base_place;
    struct merge_value *base;
    struct merge_value *value;
    struct merge_op **ops; /* ascending by place, all behind the base; each holds its entry */
    uint32_t count, capacity;
    bool base_overwrote;
};

void plain_record_init(struct plain_record *record, const struct merge_horizon *horizon);
void plain_record_fini(struct plain_record *record, const struct merge_model *model);
struct merge_place plain_record_last(const struct plain_record *record);
enum merge_outcome plain_record_place(struct plain_record *record, struct merge_op *op, bool exists,
                                      const struct merge_horizon *horizon, const struct merge_model *model);
enum merge_outcome plain_record_flush(struct plain_record *record, struct merge_place flush,
                                      const struct merge_model *model);
bool plain_record_settle(struct plain_record *record, const struct merge_horizon *horizon, bool keep,
                         const struct merge_model *model);
void plain_record_forget_list(struct plain_record *record, const struct merge_model *model);
