/* Functions that the geo commands share. */
#pragma once

#include "commands/sorted_set/sorted_set.h"
#include "data/geohash.h"

#define GEO_DISTANCE_SPACE 400 /* room for any double with four digits after the point */

struct geohash_point geo_point_of_score(double score);
size_t geo_format_distance(char out[GEO_DISTANCE_SPACE], double distance);
void geo_reply_point(struct request *request, struct geohash_point point);

/* Checks that reply an error and return false. A point is two arguments. */
must_check bool geo_parse_point(struct request *request, uint32_t index, struct geohash_point *point);
must_check bool geo_parse_unit(struct request *request, uint32_t index, double *unit_m);
