/* Places on the earth as scores of sorted sets, and the ranges of scores in which to look for what is near.
 *
 * Longitude and latitude are cut into 2^26 steps each and their bits interleaved (longitude the upper of each pair):
 * 52 bits, which a double holds exactly. The first 2 * s bits name a cell of step s, one of 2^s x 2^s; the places in it
 * have neighbouring scores. Longitude 180 and the greatest latitude are one step beyond the last: their scores have
 * bits 53 and 52. Scores that were never places are decoded all the same, to the nearest border where they are outside.
 *
 * The formulas and constants are part of what clients see: distances and positions are compared to the last digit. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

#define GEOHASH_LONGITUDE_MOST 180.0
#define GEOHASH_LATITUDE_MOST 85.05112878
#define GEOHASH_EARTH_RADIUS_M 6372797.560856

enum { GEOHASH_STEP_MOST = 26, GEOHASH_TEXT_BYTES = 11, GEOHASH_RANGES_MOST = 16 };

struct geohash_point {
    double longitude, latitude; /* degrees */
};

struct geohash_area {
    struct geohash_point least, most;
};

/* Within the limits above; not NaN. */
bool geohash_point_is_valid(struct geohash_point point);

uint64_t geohash_encode(struct geohash_point point); /* valid */
uint64_t geohash_from_score(double score);           /* any score, infinite ones too */
struct geohash_area geohash_area(uint64_t hash);     /* the cell of step 26 */
struct geohash_point geohash_decode(uint64_t hash);  /* its middle, which is a valid point */

/* The text that other systems know: base 32, with latitudes of -90 to 90. The last of its digits is always 0. A zero
 * byte follows. */
void geohash_format(char out[GEOHASH_TEXT_BYTES + 1], struct geohash_point point);

double geohash_distance_m(struct geohash_point a, struct geohash_point b);

/* --- cells --- */

struct geohash_cell {
    uint32_t column, row; /* from west and from south */
    unsigned step;        /* 1 ... 26: there are 2^step of each */
};

/* Points on the upper limits are taken to the last column and row. */
struct geohash_cell geohash_cell_at(struct geohash_point point, unsigned step);
struct geohash_area geohash_cell_area(struct geohash_cell cell);
/* The cell so many (-1, 0, 1) to the east and north. Columns go round; false: there is no such row. */
must_check bool geohash_cell_neighbour(struct geohash_cell cell, int east, int north, struct geohash_cell *neighbour);

/* --- searching --- */

enum geohash_shape_kind { GEOHASH_CIRCLE, GEOHASH_BOX };

struct geohash_shape {
    enum geohash_shape_kind kind;
    struct geohash_point center; /* valid */
    double radius_m;             /* circle */
    double width_m, height_m;    /* box */
};

/* Degrees in which every point of the shape lies, longitudes maybe beyond 180 to either side: most points that are not
 * in the shape are known by that already, without an angle's sine. */
struct geohash_area geohash_shape_window(const struct geohash_shape *shape);
static inline bool geohash_window_has(const struct geohash_area *window, struct geohash_point point)
{
    double longitude = point.longitude;

    return point.latitude >= window->least.latitude && point.latitude <= window->most.latitude &&
           ((longitude >= window->least.longitude && longitude <= window->most.longitude) ||
            longitude + 2 * GEOHASH_LONGITUDE_MOST <= window->most.longitude ||
            longitude - 2 * GEOHASH_LONGITUDE_MOST >= window->least.longitude);
}

/* Also gives the distance from the center, if so. */
bool geohash_shape_contains(const struct geohash_shape *shape, struct geohash_point point, double *distance_m);

struct geohash_range {
    uint64_t begin, end; /* begin <= score < end */
};

/* Ranges of scores that hold every point of the shape, none twice; returns how many. They come in the order in which
 * clients expect what they did not ask to be sorted: the cell of the center, north, south, east, west, north-east,
 * north-west, south-east, south-west, and last the points on the upper limits. */
unsigned geohash_shape_cover(const struct geohash_shape *shape, struct geohash_range ranges[GEOHASH_RANGES_MOST]);
