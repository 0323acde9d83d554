#include "data/geohash.h"

#include "base/assert.h"

#include <math.h>

#define DEGREE (M_PI / 180.0)
#define STEPS_MOST ((double)(UINT32_C(1) << GEOHASH_STEP_MOST))

/* A cell of step s is searched for radii up to this by 2^s. It is about half the way round the earth, and settles the
 * order of replies that are not sorted. */
#define REACH_M 20037726.37
/* Cells are narrower towards the poles, so they are chosen larger there. */
#define LATITUDE_NARROW 66.0
#define LATITUDE_NARROWER 80.0

#define WIDER 1e-9 /* the area is enlarged by this factor: rounding must not lose members */

/* --- bits --- */

/* The bits of a number at the even places. */
static uint64_t spread(uint32_t number)
{
    uint64_t bits = number;

    bits = (bits | bits << 16) & UINT64_C(0x0000FFFF0000FFFF);
    bits = (bits | bits << 8) & UINT64_C(0x00FF00FF00FF00FF);
    bits = (bits | bits << 4) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    bits = (bits | bits << 2) & UINT64_C(0x3333333333333333);
    return (bits | bits << 1) & UINT64_C(0x5555555555555555);
}

static uint32_t gather(uint64_t bits)
{
    bits &= UINT64_C(0x5555555555555555);
    bits = (bits | bits >> 1) & UINT64_C(0x3333333333333333);
    bits = (bits | bits >> 2) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    bits = (bits | bits >> 4) & UINT64_C(0x00FF00FF00FF00FF);
    bits = (bits | bits >> 8) & UINT64_C(0x0000FFFF0000FFFF);
    return (uint32_t)(bits | bits >> 16);
}

static uint64_t interleave(uint32_t column, uint32_t row)
{
    return spread(column) << 1 | spread(row);
}

/* --- points and scores --- */

/* How many steps of `count` the value is above -most. */
static uint32_t steps_of(double value, double most, double count)
{
    return (uint32_t)((value + most) / (2 * most) * count);
}

static double value_of(uint32_t steps, double most, double count)
{
    return -most + steps / count * (2 * most);
}

static double clamp(double value, double most)
{
    return MAX(-most, MIN(value, most));
}

static struct geohash_area area_of(uint32_t column, uint32_t row, double count)
{
    struct geohash_area area;

    area.least.longitude = value_of(column, GEOHASH_LONGITUDE_MOST, count);
    area.most.longitude = value_of(column + 1, GEOHASH_LONGITUDE_MOST, count);
    area.least.latitude = value_of(row, GEOHASH_LATITUDE_MOST, count);
    area.most.latitude = value_of(row + 1, GEOHASH_LATITUDE_MOST, count);
    return area;
}

bool geohash_point_is_valid(struct geohash_point point)
{
    return point.longitude >= -GEOHASH_LONGITUDE_MOST && point.longitude <= GEOHASH_LONGITUDE_MOST &&
           point.latitude >= -GEOHASH_LATITUDE_MOST && point.latitude <= GEOHASH_LATITUDE_MOST;
}

uint64_t geohash_encode(struct geohash_point point)
{
    assert(geohash_point_is_valid(point));
    return interleave(steps_of(point.longitude, GEOHASH_LONGITUDE_MOST, STEPS_MOST),
                      steps_of(point.latitude, GEOHASH_LATITUDE_MOST, STEPS_MOST));
}

/* Whole part modulo 2^64; what no 64-bit number is near is 0 if it is positive and 2^63 if not. */
uint64_t geohash_from_score(double score)
{
    if (score >= 0x1p64)
        return 0;
    if (score >= 0)
        return (uint64_t)score;
    return score >= -0x1p63 ? (uint64_t)(int64_t)score : UINT64_C(1) << 63;
}

struct geohash_area geohash_area(uint64_t hash)
{
    return area_of(gather(hash >> 1), gather(hash), STEPS_MOST);
}

struct geohash_point geohash_decode(uint64_t hash)
{
    struct geohash_area area = geohash_area(hash);

    return (struct geohash_point){
        clamp((area.least.longitude + area.most.longitude) / 2, GEOHASH_LONGITUDE_MOST),
        clamp((area.least.latitude + area.most.latitude) / 2, GEOHASH_LATITUDE_MOST),
    };
}

void geohash_format(char out[GEOHASH_TEXT_BYTES + 1], struct geohash_point point)
{
    static const char digits[] = "0123456789bcdefghjkmnpqrstuvwxyz";
    uint64_t bits = interleave(steps_of(point.longitude, GEOHASH_LONGITUDE_MOST, STEPS_MOST),
                               steps_of(point.latitude, 90, STEPS_MOST));

    /* Ten digits take 50 of the 52 bits; the two that are left make no digit of five. */
    for (unsigned i = 0; i < GEOHASH_TEXT_BYTES - 1; i++)
        out[i] = digits[bits >> (2 * GEOHASH_STEP_MOST - 5 * (i + 1)) & 31];
    out[GEOHASH_TEXT_BYTES - 1] = digits[0];
    out[GEOHASH_TEXT_BYTES] = '\0';
}

static double meridian_distance_m(double latitude_a, double latitude_b)
{
    return GEOHASH_EARTH_RADIUS_M * fabs(latitude_b * DEGREE - latitude_a * DEGREE);
}

/* The haversine formula. */
double geohash_distance_m(struct geohash_point a, struct geohash_point b)
{
    double latitude_a = a.latitude * DEGREE, latitude_b = b.latitude * DEGREE;
    double v = sin((b.longitude * DEGREE - a.longitude * DEGREE) / 2), u, root;

    if (v == 0)
        return meridian_distance_m(a.latitude, b.latitude);
    u = sin((latitude_b - latitude_a) / 2);
    root = sqrt(u * u + cos(latitude_a) * cos(latitude_b) * v * v);
    return 2.0 * GEOHASH_EARTH_RADIUS_M * asin(fmin(root, 1)); /* rounding might have taken it beyond */
}

/* --- cells --- */

static uint32_t cell_count(unsigned step)
{
    return UINT32_C(1) << step;
}

struct geohash_cell geohash_cell_at(struct geohash_point point, unsigned step)
{
    uint32_t column = steps_of(point.longitude, GEOHASH_LONGITUDE_MOST, STEPS_MOST) >> (GEOHASH_STEP_MOST - step);
    uint32_t row = steps_of(point.latitude, GEOHASH_LATITUDE_MOST, STEPS_MOST) >> (GEOHASH_STEP_MOST - step);
    uint32_t last = cell_count(step) - 1;

    assert(geohash_point_is_valid(point));
    return (struct geohash_cell){MIN(column, last), MIN(row, last), step};
}

struct geohash_area geohash_cell_area(struct geohash_cell cell)
{
    return area_of(cell.column, cell.row, cell_count(cell.step));
}

bool geohash_cell_neighbour(struct geohash_cell cell, int east, int north, struct geohash_cell *neighbour)
{
    uint32_t last = cell_count(cell.step) - 1;

    if ((cell.row == 0 && north < 0) || (cell.row == last && north > 0))
        return false;
    neighbour->column = (cell.column + (uint32_t)east) & last;
    neighbour->row = cell.row + (uint32_t)north;
    neighbour->step = cell.step;
    return true;
}

/* --- polygons --- */

static struct geohash_area polygon_area(const struct geohash_shape *shape)
{
    struct geohash_area area = {shape->vertices[0], shape->vertices[0]};

    for (uint32_t i = 1; i < shape->vertex_count; i++) {
        const struct geohash_point vertex = shape->vertices[i];

        area.least.longitude = fmin(area.least.longitude, vertex.longitude);
        area.least.latitude = fmin(area.least.latitude, vertex.latitude);
        area.most.longitude = fmax(area.most.longitude, vertex.longitude);
        area.most.latitude = fmax(area.most.latitude, vertex.latitude);
    }
    return area;
}

/* The mean of the vertices as vectors from the middle of the earth, so it may be nearer to a pole than all of them. */
static struct geohash_point polygon_center(const struct geohash_point *vertices, uint32_t count)
{
    double x = 0, y = 0, z = 0;

    for (uint32_t i = 0; i < count; i++) {
        const double longitude = vertices[i].longitude * DEGREE, latitude = vertices[i].latitude * DEGREE;

        x += cos(latitude) * cos(longitude);
        y += cos(latitude) * sin(longitude);
        z += sin(latitude);
    }
    return (struct geohash_point){atan2(y, x) / DEGREE, atan2(z, hypot(x, y)) / DEGREE};
}

struct geohash_shape geohash_polygon(const struct geohash_point *vertices, uint32_t count)
{
    assert(count != 0);
    return (struct geohash_shape){
        .kind = GEOHASH_POLYGON,
        .center = polygon_center(vertices, count),
        .vertices = vertices,
        .vertex_count = count,
    };
}

/* Above 0: the point is west of the line through both; 0: it is on it. `low` has not the greater latitude. The same for
 * both polygons that share an edge, so that no point between them is lost. */
static double side_of(struct geohash_point low, struct geohash_point high, struct geohash_point point)
{
    return (high.longitude - low.longitude) * (point.latitude - low.latitude) -
           (high.latitude - low.latitude) * (point.longitude - low.longitude);
}

static bool is_on_level_edge(struct geohash_point a, struct geohash_point b, struct geohash_point point)
{
    return point.latitude == a.latitude && point.longitude >= fmin(a.longitude, b.longitude) &&
           point.longitude <= fmax(a.longitude, b.longitude);
}

/* Counts the edges that a ray to the east crosses; an edge has its lower end, but not its upper one. */
static bool polygon_contains(const struct geohash_shape *shape, struct geohash_point point)
{
    struct geohash_point before = shape->vertices[shape->vertex_count - 1];
    bool is_inside = false;

    for (uint32_t i = 0; i < shape->vertex_count; i++) {
        const struct geohash_point vertex = shape->vertices[i];
        const bool rises = before.latitude < vertex.latitude;
        const struct geohash_point low = rises ? before : vertex, high = rises ? vertex : before;

        before = vertex;
        if (low.latitude == high.latitude) {
            if (is_on_level_edge(low, high, point))
                return true;
        } else if (point.latitude >= low.latitude && point.latitude <= high.latitude) {
            const double side = side_of(low, high, point);

            if (side == 0)
                return true;
            is_inside ^= side > 0 && point.latitude != high.latitude;
        }
    }
    return is_inside;
}

/* --- searching --- */

bool geohash_shape_contains(const struct geohash_shape *shape, struct geohash_point point, double *distance_m)
{
    if (shape->kind == GEOHASH_BOX) {
        struct geohash_point beside = {shape->center.longitude, point.latitude}; /* on the point's parallel */

        if (meridian_distance_m(point.latitude, shape->center.latitude) > shape->height_m / 2 ||
            geohash_distance_m(beside, point) > shape->width_m / 2)
            return false;
        *distance_m = geohash_distance_m(shape->center, point);
        return true;
    }
    *distance_m = geohash_distance_m(shape->center, point);
    if (shape->kind == GEOHASH_POLYGON)
        return polygon_contains(shape, point);
    return *distance_m <= shape->radius_m;
}

/* How far from the center the shape reaches, in degrees of longitude to either side. A circle does so farthest where a
 * meridian touches it, unless that is nearer to a pole than any point can be: then at the greatest latitude. */
static double circle_longitudes(const struct geohash_shape *shape, double latitudes)
{
    double latitude = fabs(shape->center.latitude) * DEGREE, angle = latitudes * DEGREE;
    double most = GEOHASH_LATITUDE_MOST * DEGREE, half, rise, ratio;

    if (latitude + angle < M_PI / 2 && sin(latitude) <= sin(most) * cos(angle))
        return asin(sin(angle) / cos(latitude)) / DEGREE;
    if (angle >= M_PI)
        return GEOHASH_LONGITUDE_MOST;
    half = sin(angle / 2); /* by halves, since the cosine of a small angle has too few digits */
    rise = sin((most - latitude) / 2);
    ratio = (half * half - rise * rise) / (cos(latitude) * cos(most));
    return 2 * asin(sqrt(fmax(0, fmin(ratio, 1)))) / DEGREE;
}

/* A box is as wide at each latitude, so it reaches across most degrees where it is nearest to a pole. */
static double box_longitudes(const struct geohash_shape *shape, double latitudes)
{
    double latitude = fmin(fabs(shape->center.latitude) + latitudes, GEOHASH_LATITUDE_MOST);
    double angle = shape->width_m / 4 / GEOHASH_EARTH_RADIUS_M, ratio;

    if (angle >= M_PI / 2)
        return GEOHASH_LONGITUDE_MOST;
    ratio = sin(angle) / cos(latitude * DEGREE);
    return ratio < 1 ? 2 * asin(ratio) / DEGREE : GEOHASH_LONGITUDE_MOST;
}

/* The degrees around the shape; longitudes may extend beyond 180 to either side. */
static struct geohash_area shape_area(const struct geohash_shape *shape)
{
    double reach_m = shape->kind == GEOHASH_BOX ? shape->height_m / 2 : shape->radius_m;
    double latitudes = reach_m / GEOHASH_EARTH_RADIUS_M / DEGREE * (1 + WIDER) + WIDER, longitudes;

    if (shape->kind == GEOHASH_POLYGON)
        return polygon_area(shape);
    longitudes = shape->kind == GEOHASH_BOX ? box_longitudes(shape, latitudes) : circle_longitudes(shape, latitudes);
    longitudes = longitudes * (1 + WIDER) + WIDER;
    return (struct geohash_area){
        {shape->center.longitude - longitudes, shape->center.latitude - latitudes},
        {shape->center.longitude + longitudes, shape->center.latitude + latitudes},
    };
}

/* Where a shape reaches far round the earth, distances and angles are rounded too much to rely on their borders. */
#define WINDOW_REACH_M (GEOHASH_EARTH_RADIUS_M / 2)

struct geohash_area geohash_shape_window(const struct geohash_shape *shape)
{
    double reach_m = shape->kind == GEOHASH_BOX ? fmax(shape->width_m, shape->height_m) : shape->radius_m;

    if (reach_m < WINDOW_REACH_M || shape->kind == GEOHASH_POLYGON)
        return shape_area(shape);
    return (struct geohash_area){{-2 * GEOHASH_LONGITUDE_MOST, -GEOHASH_LATITUDE_MOST},
                                 {2 * GEOHASH_LONGITUDE_MOST, GEOHASH_LATITUDE_MOST}};
}

/* Is everything in the cell and those around it? With three columns or fewer in all there is nothing else. */
static bool block_covers(struct geohash_cell cell, const struct geohash_area *wanted)
{
    struct geohash_area area = geohash_cell_area(cell);
    double width = area.most.longitude - area.least.longitude, height = area.most.latitude - area.least.latitude;

    if (cell.step == 1)
        return true;
    return (area.least.latitude - height <= wanted->least.latitude || cell.row <= 1) &&
           (area.most.latitude + height >= wanted->most.latitude || cell.row + 2 >= cell_count(cell.step)) &&
           area.least.longitude - width <= wanted->least.longitude &&
           area.most.longitude + width >= wanted->most.longitude;
}

static unsigned first_step(const struct geohash_shape *shape)
{
    double reach_m = shape->kind == GEOHASH_BOX ? hypot(shape->width_m / 2, shape->height_m / 2) : shape->radius_m;
    double latitude = fabs(shape->center.latitude);
    unsigned step = 0, less = (unsigned)(latitude > LATITUDE_NARROW) + (unsigned)(latitude > LATITUDE_NARROWER);

    for (; step < GEOHASH_STEP_MOST + less && reach_m * 2 < REACH_M; step++)
        reach_m *= 2;
    return step > less ? step - less : 1;
}

/* Cells are taken one step larger than need be at the borders of the map, and if the block is not as wide as the shape
 * would be at its latitude nearest to a pole. That only settles the order of replies that are not sorted. */
static bool wants_larger(struct geohash_cell cell, const struct geohash_shape *shape)
{
    double reach_m = shape->kind == GEOHASH_BOX ? shape->height_m / 2 : shape->radius_m;
    double side_m = shape->kind == GEOHASH_BOX ? shape->width_m / 2 : shape->radius_m;
    double latitudes = reach_m / GEOHASH_EARTH_RADIUS_M / DEGREE;
    double narrowest = cos((fabs(shape->center.latitude) + latitudes) * DEGREE);
    double longitudes = side_m / GEOHASH_EARTH_RADIUS_M / DEGREE / narrowest;
    struct geohash_point center = shape->center;
    struct geohash_area wanted = {{center.longitude - longitudes, center.latitude - latitudes},
                                  {center.longitude + longitudes, center.latitude + latitudes}};
    uint32_t last = cell_count(cell.step) - 1;

    return cell.row == 0 || cell.row == last || cell.column == 0 || cell.column == last || !block_covers(cell, &wanted);
}

/* The point of the map nearest to the center, which a polygon may have beyond the map's borders. */
static struct geohash_point point_to_start(const struct geohash_shape *shape)
{
    return (struct geohash_point){
        fmax(-GEOHASH_LONGITUDE_MOST, fmin(shape->center.longitude, GEOHASH_LONGITUDE_MOST)),
        fmax(-GEOHASH_LATITUDE_MOST, fmin(shape->center.latitude, GEOHASH_LATITUDE_MOST)),
    };
}

/* A polygon's is the smallest one around which the block covers it all. */
static struct geohash_cell first_cell(const struct geohash_shape *shape)
{
    struct geohash_cell cell;

    if (shape->kind == GEOHASH_POLYGON)
        return geohash_cell_at(point_to_start(shape), GEOHASH_STEP_MOST);
    cell = geohash_cell_at(point_to_start(shape), first_step(shape));
    if (cell.step > 1 && wants_larger(cell, shape))
        cell = geohash_cell_at(point_to_start(shape), cell.step - 1);
    return cell;
}

struct cover {
    struct geohash_range *ranges;
    unsigned count;
};

static void cover_add(struct cover *cover, uint32_t column, uint32_t row, unsigned step)
{
    unsigned shift = 2 * (GEOHASH_STEP_MOST - step);
    uint64_t prefix = interleave(column, row);

    for (unsigned i = 0; i < cover->count; i++) {
        if (cover->ranges[i].begin == prefix << shift)
            return; /* round the earth we came here before */
    }
    assert(cover->count < GEOHASH_RANGES_MOST);
    cover->ranges[cover->count++] = (struct geohash_range){prefix << shift, (prefix + 1) << shift};
}

/* Points on the upper limits have a column or row of their own beyond the last. Longitude 180 is also where the first
 * column begins. */
static void cover_add_limits(struct cover *cover, const struct geohash_cell *cells, unsigned cell_total)
{
    for (unsigned i = 0; i < cell_total; i++) {
        uint32_t beyond = cell_count(cells[i].step);
        bool at_side = cells[i].column + 1 == beyond || cells[i].column == 0, at_top = cells[i].row + 1 == beyond;

        if (at_side)
            cover_add(cover, beyond, cells[i].row, cells[i].step);
        if (at_top)
            cover_add(cover, cells[i].column, beyond, cells[i].step);
        if (at_side && at_top)
            cover_add(cover, beyond, beyond, cells[i].step);
    }
}

unsigned geohash_shape_cover(const struct geohash_shape *shape, struct geohash_range ranges[GEOHASH_RANGES_MOST])
{
    static const int8_t directions[][2] = {{0, 0}, {0, 1},  {0, -1}, {1, 0},  {-1, 0},
                                           {1, 1}, {-1, 1}, {1, -1}, {-1, -1}}; /* east, north */
    struct geohash_area wanted = shape_area(shape), area;
    struct geohash_cell cell = first_cell(shape), cells[countof(directions)];
    struct cover cover = {ranges, 0};
    unsigned cell_total = 0;

    while (!block_covers(cell, &wanted))
        cell = geohash_cell_at(point_to_start(shape), cell.step - 1);
    area = geohash_cell_area(cell);
    for (unsigned i = 0; i < countof(directions); i++) {
        int east = directions[i][0], north = directions[i][1];
        struct geohash_cell *next = &cells[cell_total];

        if ((east > 0 && wanted.most.longitude < area.most.longitude) ||
            (east < 0 && wanted.least.longitude >= area.least.longitude) ||
            (north > 0 && wanted.most.latitude < area.most.latitude) ||
            (north < 0 && wanted.least.latitude >= area.least.latitude) ||
            !geohash_cell_neighbour(cell, east, north, next))
            continue;
        cover_add(&cover, next->column, next->row, next->step);
        cell_total++;
    }
    cover_add_limits(&cover, cells, cell_total);
    return cover.count;
}
