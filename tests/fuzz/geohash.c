/* Places and shapes chosen by the input. Properties: a place is in the cell that it is encoded to; every place in a
 * shape lies in its window and in exactly one of its ranges; distances are the same both ways. */
#include "data/geohash.h"

#include "fuzz.h"

#include <math.h>

static uint32_t take_u32(struct slice *input)
{
    uint32_t number = 0;

    for (unsigned i = 0; i < 4; i++)
        number = number << 8 | fuzz_take_byte(input);
    return number;
}

static double take_degrees(struct slice *input, double most)
{
    return most * (2.0 * take_u32(input) / UINT32_MAX - 1);
}

static struct geohash_point take_point(struct slice *input)
{
    struct geohash_point point;

    point.longitude = take_degrees(input, GEOHASH_LONGITUDE_MOST);
    point.latitude = take_degrees(input, GEOHASH_LATITUDE_MOST);
    return point;
}

static double take_length(struct slice *input)
{
    return exp((double)take_u32(input) / UINT32_MAX * 18); /* 1 m to half the way around */
}

static void check_place(struct geohash_point point)
{
    uint64_t hash = geohash_encode(point);
    struct geohash_area area = geohash_area(hash);
    char text[GEOHASH_TEXT_BYTES + 1];

    assert(hash >= UINT64_C(1) << 53 || geohash_from_score((double)hash) == hash); /* a double holds no more */
    assert(point.longitude >= area.least.longitude - 1e-6 && point.longitude <= area.most.longitude + 1e-6);
    assert(point.latitude >= area.least.latitude - 1e-6 && point.latitude <= area.most.latitude + 1e-6);
    assert(geohash_point_is_valid(geohash_decode(hash)));
    geohash_format(text, point);
    assert(strlen(text) == GEOHASH_TEXT_BYTES);
}

static void check_shape(const struct geohash_shape *shape, struct geohash_point point)
{
    uint64_t hash = geohash_encode(point);
    struct geohash_point kept = geohash_decode(hash); /* as a sorted set gives it back */
    struct geohash_range ranges[GEOHASH_RANGES_MOST];
    struct geohash_area window = geohash_shape_window(shape);
    unsigned count = geohash_shape_cover(shape, ranges), in = 0;
    double distance;

    assert(count <= GEOHASH_RANGES_MOST);
    for (unsigned i = 0; i < count; i++) {
        assert(ranges[i].begin < ranges[i].end);
        in += hash >= ranges[i].begin && hash < ranges[i].end;
    }
    assert(in <= 1);
    if (!geohash_shape_contains(shape, kept, &distance))
        return;
    assert(in == 1);
    assert(geohash_window_has(&window, kept));
    assert(fabs(distance - geohash_distance_m(kept, shape->center)) <= 1e-6 * (1 + distance));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);
    struct geohash_shape shape = {.kind = fuzz_take_byte(&input) % 2 == 0 ? GEOHASH_CIRCLE : GEOHASH_BOX};
    struct geohash_point point;

    shape.center = take_point(&input);
    shape.radius_m = shape.width_m = take_length(&input);
    shape.height_m = take_length(&input);
    do {
        struct geohash_point far = take_point(&input);

        /* Some near the center, where the borders are. */
        point.longitude = shape.center.longitude + (far.longitude - shape.center.longitude) / (1 << (size % 20));
        point.latitude = shape.center.latitude + (far.latitude - shape.center.latitude) / (1 << (size % 20));
        if (!geohash_point_is_valid(point))
            continue; /* by rounding */
        check_place(point);
        check_shape(&shape, point);
    } while (input.size != 0);
    return 0;
}
