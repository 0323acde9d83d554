/* Geo positions as scores of sorted sets, and the ranges of scores that cover an area.
 *
 * Longitude and latitude are each divided into 2^26 steps, and their bits are interleaved (longitude is the upper bit
 * of each pair). That gives 52 bits, which a double holds exactly. The first 2 * s bits name a cell of step s, one of
 * 2^s x 2^s cells; positions in a cell have neighbouring scores. Longitude 180 and the greatest latitude are one step
 * beyond the last one: their scores have bits 53 and 52. Scores that never were positions are decoded, too; outside of
 * the borders the nearest border is taken.
 *
 * Clients see the results of the formulas and constants: distances and positions agree with Redis to the last digit. */
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

/* Within the limits above and not NaN. */
bool geohash_point_is_valid(struct geohash_point point);

uint64_t geohash_encode(struct geohash_point point); /* the point must be valid */
uint64_t geohash_from_score(double score);           /* any score, also infinite */
struct geohash_area geohash_area(uint64_t hash);     /* the cell of step 26 */
struct geohash_point geohash_decode(uint64_t hash);  /* the middle of the cell, a valid point */

/* Writes the standard geohash text: base 32, with latitudes of -90 to 90. Its last digit is always 0. A zero byte
 * follows. */
void geohash_format(char out[GEOHASH_TEXT_BYTES + 1], struct geohash_point point);

double geohash_distance_m(struct geohash_point a, struct geohash_point b);

/* --- cells --- */

struct geohash_cell {
    uint32_t column, row; /* counted from west and from south */
    unsigned step;        /* 1 ... 26: there are 2^step columns and rows */
};

/* Points on the upper limits belong to the last column and row. */
struct geohash_cell geohash_cell_at(struct geohash_point point, unsigned step);
struct geohash_area geohash_cell_area(struct geohash_cell cell);
/* Returns the cell that is `east` and `north` (-1, 0, 1) cells away. Columns wrap around. False: there is no such
 * row. */
must_check bool geohash_cell_neighbour(struct geohash_cell cell, int east, int north, struct geohash_cell *neighbour);

/* --- searching --- */

enum geohash_shape_kind { GEOHASH_CIRCLE, GEOHASH_BOX, GEOHASH_POLYGON };

struct geohash_shape {
    enum geohash_shape_kind kind;
    struct geohash_point center; /* a valid point, but for a polygon */
    double radius_m;             /* for a circle */
    double width_m, height_m;    /* for a box */
    /* For a polygon; valid points, the caller's. */
    const struct geohash_point *vertices;
    uint32_t vertex_count;
};

/* The polygon with these vertices, at least one; its center is their mean as seen
 * from the middle of the earth, and may be outside, also of the map. Degrees are taken as a plane: edges are
 * straight lines of longitude and latitude, and none of them crosses longitude 180. Edges belong to the polygon; what
 * they surround an even number of times does not. */
struct geohash_shape geohash_polygon(const struct geohash_point *vertices, uint32_t count);

/* Returns a window in degrees that has every point of the shape; longitudes may be beyond 180 to either side. It
 * excludes most points outside of the shape without computing a sine. */
struct geohash_area geohash_shape_window(const struct geohash_shape *shape);
static inline bool geohash_window_has(const struct geohash_area *window, struct geohash_point point)
{
    double longitude = point.longitude;

    return point.latitude >= window->least.latitude && point.latitude <= window->most.latitude &&
           ((longitude >= window->least.longitude && longitude <= window->most.longitude) ||
            longitude + 2 * GEOHASH_LONGITUDE_MOST <= window->most.longitude ||
            longitude - 2 * GEOHASH_LONGITUDE_MOST >= window->least.longitude);
}

/* If true, *distance_m is the distance from the center. */
bool geohash_shape_contains(const struct geohash_shape *shape, struct geohash_point point, double *distance_m);

struct geohash_range {
    uint64_t begin, end; /* begin <= score < end */
};

/* Returns the number of ranges of scores that cover every point of the shape; they do not overlap. The order is the one
 * that clients expect of unsorted replies: the cell of the center, north, south, east, west, north-east, north-west,
 * south-east, south-west, and last the points on the upper limits. */
unsigned geohash_shape_cover(const struct geohash_shape *shape, struct geohash_range ranges[GEOHASH_RANGES_MOST]);
