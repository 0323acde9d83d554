#include "data/geohash.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "base/number.h"
#include "base/random.h"
#include "base/test_seed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Replies of redis-server 7.0.15 to GEOADD and ZSCORE, GEOPOS, GEOHASH. */
struct place {
    struct geohash_point point;
    uint64_t score;
    const char *longitude, *latitude, *text;
};

/* Scores that are no places, or borders of the earth. */
struct stray {
    double score;
    const char *longitude, *latitude, *text;
};

#define UNKNOWN (-1.0)

/* GEOSEARCHSTORE with STOREDIST tells all digits (but fails to find some), GEODIST four. */
struct way {
    struct geohash_point from, to;
    double distance_m;
    const char *text;
};

/* GEOSEARCH without ASC or DESC among the towns, in its order. */
struct search {
    struct geohash_shape shape;
    double north; /* by so many degrees all towns are moved */
    const char *found;
};

/* clang-format off */
static const struct place places[] = {
    {{0.0, 0.0}, UINT64_C(3377699720527872), "0.00000268220901489", "0.00000126736058093", "s0000000000"},
    {{13.361389, 38.115556}, UINT64_C(3479099956230698), "13.36138933897018433", "38.11555639549629859", "sqc8b49rny0"},
    {{15.087269, 37.502669}, UINT64_C(3479447370796909), "15.08726745843887329", "37.50266842333162032", "sqdtr74hyu0"},
    {{-73.9798091, 40.7598464}, UINT64_C(1791875712733669), "-73.97980660200119019", "40.75984594638999425",
     "dr5rus1e390"},
    {{151.2093, -33.8688}, UINT64_C(3252046221964352), "151.20929986238479614", "-33.86880091934155956", "r3gx2f77bj0"},
    {{180.0, 0.0}, UINT64_C(10133099161583616), "180", "0.00000126736058093", "80000000000"},
    {{-180.0, 0.0}, UINT64_C(1125899906842624), "-179.99999731779098511", "0.00000126736058093", "80000000000"},
    {{0.0, 85.05112878}, UINT64_C(6755399441055744), "0.00000268220901489", "85.0511287799999991", "up05b5048p0"},
    {{0.0, -85.05112878}, UINT64_C(2251799813685248), "0.00000268220901489", "-85.05112751263942528", "h0bh0hbj200"},
    {{180.0, 85.05112878}, UINT64_C(13510798882111488), "180", "85.0511287799999991", "bp05b5048p0"},
    {{-180.0, -85.05112878}, UINT64_C(0), "-179.99999731779098511", "-85.05112751263942528", "00bh0hbj200"},
    {{179.999999, 85.051128}, UINT64_C(4503599627370495), "179.99999731779098511", "85.05112751263942528",
     "zzpgzgpfxz0"},
    {{-1e-06, -1e-06}, UINT64_C(1125899906842623), "-0.00000268220901489", "-0.00000126736058093", "7zzzzzzzzz0"},
    {{1e-05, -1e-05}, UINT64_C(2627099782632786), "0.00000804662704468", "-0.00000887152405227", "kpbpbpbpbn0"},
    {{103.8198, 1.3521}, UINT64_C(3949901648979255), "103.81980031728744507", "1.35210011010791931", "w21zdqpk890"},
    {{-68.303, -54.8019}, UINT64_C(650595395073383), "-68.30300241708755493", "-54.80189953730982211", "4qr2jxx7b90"},
    {{24.9384, 60.1699}, UINT64_C(3716816073376637), "24.93839889764785767", "60.16989905718278919", "ud9wr3xe4f0"},
    {{50.193647, -80.748172}, UINT64_C(2394641638340659), "50.19364446401596069", "-80.74817219893981246",
     "j1eswhjzu90"},
    {{-80.989445, -47.054175}, UINT64_C(658138463368643), "-80.98944336175918579", "-47.05417452227032982",
     "4pwkm413940"},
    {{85.129637, 30.038913}, UINT64_C(3640587575284057), "85.12963682413101196", "30.03891328921518777", "tvkdchmt270"},
    {{141.184644, -70.220398}, UINT64_C(2976668192850230), "141.18464559316635132", "-70.22039796771244369",
     "p5s2s8z8890"},
    {{-28.108145, -79.934473}, UINT64_C(716144204918822), "-28.10814768075942993", "-79.93447347764765709",
     "53u122k7bw0"},
    {{-101.290329, 0.910399}, UINT64_C(1304827125401613), "-101.29032701253890991", "0.91039960088151162",
     "98pvpjdxkq0"},
    {{-170.447051, -51.197599}, UINT64_C(91050503129852), "-170.44705241918563843", "-51.19759955564344978",
     "0nyu9ru0rg0"},
    {{53.958398, 7.640052}, UINT64_C(3525942662013180), "53.95839840173721313", "7.64005132755135463", "t1q77yg69b0"},
};
/* clang-format on */
static const struct stray strays[] = {
    {1e15, "-31.01234167814254761", "-32.19914967503108016", "763by63d250"},
    {1.5, "-179.99999731779098511", "-85.05112497791824921", "00bh0hbj210"},
    {4503599627370495.0, "179.99999731779098511", "85.05112751263942528", "zzpgzgpfxz0"},
    {4503599627370496.0, "-179.99999731779098511", "85.0511287799999991", "bp05b5048p0"},
    {9007199254740992.0, "180", "-85.05112751263942528", "00bh0hbj200"},
    {1e17, "180", "85.0511287799999991", "bp05b5048p0"},
    {1e18, "180", "85.0511287799999991", "bp05b5048p0"},
    {1e19, "180", "85.0511287799999991", "bp05b5048p0"},
    {1.8e19, "180", "85.0511287799999991", "bp05b5048p0"},
    {2e19, "-179.99999731779098511", "-85.05112751263942528", "00bh0hbj200"},
    {-1.0, "180", "85.0511287799999991", "bp05b5048p0"},
    {-1e15, "180", "85.0511287799999991", "bp05b5048p0"},
    {-1e19, "180", "-85.05112751263942528", "00bh0hbj200"},
    {INFINITY, "-179.99999731779098511", "-85.05112751263942528", "00bh0hbj200"},
    {-INFINITY, "180", "-85.05112751263942528", "00bh0hbj200"},
};
static const struct way ways[] = {
    {{13.361389, 38.115556}, {15.087269, 37.502669}, 166274.15156960033, "166274.1516"},
    {{0.0, 0.0}, {180.0, 0.0}, UNKNOWN, "20020733.6202"},
    {{0.0, 85.05112878}, {180.0, -85.05112878}, UNKNOWN, "20020734.0000"},
    {{10.0, 20.0}, {10.0, -20.0}, 4449052.1310479445, "4449052.1310"},
    {{10.0, 20.0}, {10.0, 20.0}, 0, "0.0000"},
    {{179.9, 10.0}, {-179.9, 10.0}, 21907.47909193801, "21907.4791"},
    {{2.35, 48.85}, {2.35001, 48.85001}, 1.3741715614170444, "1.3742"},
    {{-100.6414, 15.1752}, {111.395, -83.8952}, 12270704.112207724, "12270704.1122"},
    {{110.0949, 33.6837}, {-57.5098, -58.5685}, 17103465.307488032, "17103465.3075"},
    {{164.5967, -27.7789}, {-146.6115, -68.5582}, 5527218.2573057665, "5527218.2573"},
    {{125.098, 17.6334}, {110.5662, 39.0544}, 2766470.4997558431, "2766470.4998"},
    {{13.0421, 80.4297}, {-43.7276, 8.8469}, 8454784.7113283966, "8454784.7113"},
    {{118.5857, 20.1484}, {130.2145, 13.1499}, 1462430.3481308627, "1462430.3481"},
    {{-101.0445, 84.5814}, {-101.0445, 1.6195}, 9227545.1860608775, "9227545.1861"},
    {{45.8806, 49.6535}, {45.8806, -13.2328}, 6994610.4872303428, "6994610.4872"},
    {{-157.13, -20.1247}, {-157.13, 84.3406}, 11619288.887781117, "11619288.8878"},
};
static const struct geohash_point towns[] = {
    {13.40058, 38.10942}, /* A */
    {13.47216, 38.0023},  /* B */
    {13.84144, 38.46342}, /* C */
    {13.84364, 35.3019},  /* D */
    {13.40282, 38.09223}, /* E */
    {13.38695, 38.09074}, /* F */
    {14.30763, 38.85171}, /* G */
    {10.56067, 38.10703}, /* H */
    {13.39357, 38.10825}, /* I */
    {13.4741, 38.05969},  /* J */
    {13.6779, 38.31794},  /* K */
    {9.23407, 41.25013},  /* L */
    {13.40079, 38.10557}, /* M */
    {13.40607, 38.00011}, /* N */
    {13.04831, 37.13895}, /* O */
    {18.54918, 42.64466}, /* P */
    {13.40663, 38.09615}, /* Q */
    {13.31159, 38.1756},  /* R */
    {14.2939, 37.27131},  /* S */
    {13.23189, 32.93055}, /* T */
    {13.40521, 38.10532}, /* U */
    {13.32568, 38.09506}, /* V */
    {13.49961, 37.63011}, /* W */
    {17.8692, 37.17766},  /* X */
    {13.39424, 38.10079}, /* Y */
    {13.44599, 38.04023}, /* Z */
    {13.02343, 39.0903},  /* a */
    {15.19854, 37.3572},  /* b */
    {13.40035, 38.09242}, /* c */
    {13.34494, 38.06762}, /* d */
    {13.57662, 37.56023}, /* e */
    {10.04261, 32.95192}, /* f */
    {13.40262, 38.09458}, /* g */
    {13.48108, 38.17193}, /* h */
    {12.54171, 37.57601}, /* i */
    {15.42773, 34.67084}, /* j */
    {13.39265, 38.10871}, /* k */
    {13.41421, 38.09453}, /* l */
    {13.96924, 38.71499}, /* m */
    {9.68492, 33.26317},  /* n */
    {13.39862, 38.09847}, /* o */
    {13.3934, 38.14582},  /* p */
    {13.74673, 39.06833}, /* q */
    {8.58101, 36.93146},  /* r */
    {13.39679, 38.10723}, /* s */
    {13.34973, 38.03804}, /* t */
    {13.29723, 37.94376}, /* u */
    {10.74254, 35.09768}, /* v */
    {13.40847, 38.09886}, /* w */
    {13.47227, 38.11007}, /* x */
    {12.50118, 39.09856}, /* y */
    {17.43233, 43.72796}, /* z */
    {13.40853, 38.10697}, /* 0 */
    {13.33326, 38.09713}, /* 1 */
    {12.82749, 37.90208}, /* 2 */
    {8.10362, 36.64768},  /* 3 */
    {13.40971, 38.0953},  /* 4 */
    {13.45681, 38.091},   /* 5 */
    {13.24601, 39.01464}, /* 6 */
    {19.34507, 38.76922}, /* 7 */
    {13.40437, 38.0931},  /* 8 */
    {13.35934, 38.19374}, /* 9 */
};
/* clang-format off */
static const struct search searches[] = {
    {{GEOHASH_CIRCLE, {13.4, 38.1}, 500, 0, 0, NULL, 0}, 0, "o"},
    {{GEOHASH_CIRCLE, {13.4, 38.1}, 1215, 0, 0, NULL, 0}, 0, "cgYosMIkAE8Q4wU0"},
    {{GEOHASH_CIRCLE, {13.4, 38.1}, 1230, 0, 0, NULL, 0}, 0, "EcgYosMIkA8Q4wU0"},
    {{GEOHASH_CIRCLE, {13.4, 38.1}, 2000, 0, 0, NULL, 0}, 0, "FEcgYosMIkA8Ql4wU0"},
    {{GEOHASH_CIRCLE, {13.4, 38.1}, 12000, 0, 0, NULL, 0}, 0, "FEcgYosMIkA8Ql4wU0J5xphNZdV1R9t"},
    {{GEOHASH_CIRCLE, {13.4, 38.1}, 60000, 0, 0, NULL, 0}, 0, "2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCW"},
    {{GEOHASH_CIRCLE, {13.4, 38.1}, 120000, 0, 0, NULL, 0}, 0, "iWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKC6amqOG"},
    {{GEOHASH_CIRCLE, {13.4, 38.1}, 400000, 0, 0, NULL, 0}, 0, "iWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCy6amqSbGDOH"},
    {{GEOHASH_CIRCLE, {13.4, 38.1}, 1100000, 0, 0, NULL, 0}, 0,
     "fn3vrHLTDOjXiWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCy6amqSbG7zP"},
    {{GEOHASH_BOX, {13.4, 38.1}, 0, 1500, 900, NULL, 0}, 0, "YoQw"},
    {{GEOHASH_BOX, {13.4, 38.1}, 0, 10000, 30000, NULL, 0}, 0, "FEcgYosMIkA8Ql4wU05pNZd9t"},
    {{GEOHASH_BOX, {13.4, 38.1}, 0, 90000, 60000, NULL, 0}, 0, "utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphK"},
    {{GEOHASH_BOX, {13.4, 38.1}, 0, 300000, 150000, NULL, 0}, 0, "iWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCm"},
    {{GEOHASH_BOX, {13.4, 38.1}, 0, 100000, 1500000, NULL, 0}, 0, "TDOWeutdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKC6amq"},
    {{GEOHASH_CIRCLE, {13.35, 38.15}, 500, 0, 0, NULL, 0}, 0, ""},
    {{GEOHASH_CIRCLE, {13.35, 38.15}, 12000, 0, 0, NULL, 0}, 0, "dV1R9FEcgYosMIkA8Ql4wU05xph"},
    {{GEOHASH_CIRCLE, {13.35, 38.15}, 60000, 0, 0, NULL, 0}, 0, "2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCW"},
    {{GEOHASH_CIRCLE, {13.35, 38.15}, 120000, 0, 0, NULL, 0}, 0, "iWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKC6amqOG"},
    {{GEOHASH_CIRCLE, {13.35, 38.15}, 400000, 0, 0, NULL, 0}, 0, "iWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCy6amqSbGDOH"},
    {{GEOHASH_CIRCLE, {13.35, 38.15}, 1100000, 0, 0, NULL, 0}, 0,
     "fn3vrHLTDOjXiWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCy6amqSbG7zP"},
    {{GEOHASH_BOX, {13.35, 38.15}, 0, 10000, 30000, NULL, 0}, 0, "dV1R9tFEcgYosMIkA8QUp"},
    {{GEOHASH_BOX, {13.35, 38.15}, 0, 90000, 60000, NULL, 0}, 0, "utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphK"},
    {{GEOHASH_BOX, {13.35, 38.15}, 0, 300000, 150000, NULL, 0}, 0, "iWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCm"},
    {{GEOHASH_BOX, {13.35, 38.15}, 0, 100000, 1500000, NULL, 0}, 0, "TDOWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKC6aq"},
    {{GEOHASH_CIRCLE, {13.0, 38.5}, 60000, 0, 0, NULL, 0}, 0, "tdV1R9FEcgYosMIkA8Ql4wU0xph"},
    {{GEOHASH_CIRCLE, {13.0, 38.5}, 120000, 0, 0, NULL, 0}, 0, "iWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCy6amq"},
    {{GEOHASH_CIRCLE, {13.0, 38.5}, 400000, 0, 0, NULL, 0}, 0, "iWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCy6amqSbGDOH"},
    {{GEOHASH_CIRCLE, {13.0, 38.5}, 1100000, 0, 0, NULL, 0}, 0,
     "fn3vrHLTDOjXiWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCy6amqSbG7zP"},
    {{GEOHASH_BOX, {13.0, 38.5}, 0, 300000, 150000, NULL, 0}, 0, "2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCy6amqG"},
    {{GEOHASH_BOX, {13.0, 38.5}, 0, 100000, 1500000, NULL, 0}, 0, "TOiW2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphy6a"},
    {{GEOHASH_CIRCLE, {9.0, 40.0}, 400000, 0, 0, NULL, 0}, 0, "HL3ry6a"},
    {{GEOHASH_CIRCLE, {9.0, 40.0}, 1100000, 0, 0, NULL, 0}, 0,
     "fn3vrHLTDOjXiWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCy6amqSbG7zP"},
    {{GEOHASH_BOX, {9.0, 40.0}, 0, 100000, 1500000, NULL, 0}, 0, "rL"},
    {{GEOHASH_CIRCLE, {13.4, 67.1}, 500, 0, 0, NULL, 0}, 29, "oYw"},
    {{GEOHASH_CIRCLE, {13.4, 67.1}, 1215, 0, 0, NULL, 0}, 29, "FcEgoYsIkMA8lQw4U0"},
    {{GEOHASH_CIRCLE, {13.4, 67.1}, 1230, 0, 0, NULL, 0}, 29, "FcEgoYsIkMA8lQw4U0"},
    {{GEOHASH_CIRCLE, {13.4, 67.1}, 2000, 0, 0, NULL, 0}, 29, "FcEgoYsIkMA8lQw4U0"},
    {{GEOHASH_CIRCLE, {13.4, 67.1}, 12000, 0, 0, NULL, 0}, 29, "NBZFcEgoYsIkMA8lQw4U0J5xphtdV1R9"},
    {{GEOHASH_CIRCLE, {13.4, 67.1}, 60000, 0, 0, NULL, 0}, 29, "2utdV1WNBZFcEgoYsIkMA8lQw4U0J5xR9phKC"},
    {{GEOHASH_CIRCLE, {13.4, 67.1}, 120000, 0, 0, NULL, 0}, 29, "i2utdV1eWNBZFcEgoYsIkMA8lQw4U0J5xR9phKCmya6qGOSb"},
    {{GEOHASH_CIRCLE, {13.4, 67.1}, 400000, 0, 0, NULL, 0}, 29,
     "3vrHLDOSbi2utdV1eWNBZFcEgoYsIkMA8lQw4U0J5xR9phKCmya6qGX7j"},
    {{GEOHASH_CIRCLE, {13.4, 67.1}, 1100000, 0, 0, NULL, 0}, 29,
     "nfTj3vrHLDOSbi2utdV1eWNBZFcEgoYsIkMA8lQw4U0J5xR9phKCmya6qGX7Pz"},
    {{GEOHASH_BOX, {13.4, 67.1}, 0, 1500, 900, NULL, 0}, 29, "oYQw"},
    {{GEOHASH_BOX, {13.4, 67.1}, 0, 10000, 30000, NULL, 0}, 29, "NBZFcEgoYsIkMA8lQw4U0J5xphtdV1R9"},
    {{GEOHASH_BOX, {13.4, 67.1}, 0, 90000, 60000, NULL, 0}, 29, "2utdV1NBZFcEgoYsIkMA8lQw4U0J5xR9phK"},
    {{GEOHASH_BOX, {13.4, 67.1}, 0, 300000, 150000, NULL, 0}, 29, "i2utdV1eWNBZFcEgoYsIkMA8lQw4U0J5xR9phKCmH"},
    {{GEOHASH_BOX, {13.4, 67.1}, 0, 100000, 1500000, NULL, 0}, 29, "TDOSi2utdV1eWNBZFcEgoYsIkMA8lQw4U0J5xR9phKCmya6qG"},
    {{GEOHASH_CIRCLE, {13.4, 80.5}, 12000, 0, 0, NULL, 0}, 41.5, "6q"},
    {{GEOHASH_CIRCLE, {13.4, 80.5}, 60000, 0, 0, NULL, 0}, 41.5, "ym6aqG"},
    {{GEOHASH_CIRCLE, {13.4, 80.5}, 120000, 0, 0, NULL, 0}, 41.5, "HutdV1R9NZBJFcEgoYMIskA8lQw4U0p5xhyKCm6aqG7"},
    {{GEOHASH_CIRCLE, {13.4, 80.5}, 400000, 0, 0, NULL, 0}, 41.5,
     "3rHLiOe2utdV1R9WNZBJFcEgoYMIskA8lQw4U0p5xhSbXyKCm6aqG7"},
    {{GEOHASH_CIRCLE, {13.4, 80.5}, 1100000, 0, 0, NULL, 0}, 41.5,
     "nfv3rHLTDjiOe2utdV1R9WNZBJFcEgoYMIskA8lQw4U0p5xhSbXyKCm6aqG7P"},
    {{GEOHASH_BOX, {13.4, 80.5}, 0, 10000, 30000, NULL, 0}, 41.5, "6"},
    {{GEOHASH_BOX, {13.4, 80.5}, 0, 90000, 60000, NULL, 0}, 41.5, "y6aqG"},
    {{GEOHASH_BOX, {13.4, 80.5}, 0, 300000, 150000, NULL, 0}, 41.5, "yCm6aqG7"},
    {{GEOHASH_BOX, {13.4, 80.5}, 0, 100000, 1500000, NULL, 0}, 41.5,
     "TDiOe2utdV1R9WNZBJFcEgoYMIskA8lQw4U0p5xhSbyKCm6aqG"},
    {{GEOHASH_CIRCLE, {21.0, 54.5}, 1250000, 0, 0, NULL, 0}, 16.4,
     "nf3vTDjrHLiO2utdeWNBZJyV1R9FcEgYoMIksA8Q4lwU0p5xhKCm6aqSbGX7Pz"},
    {{GEOHASH_CIRCLE, {13.4, 64.1}, 1100000, 0, 0, NULL, 0}, 26,
     "HLy2utdV1R9NBZFcEgoYskIMA8lQw4U0J5xphKa6CmqG7Pznfv3rTjDiOeWSbX"},
    {{GEOHASH_CIRCLE, {13.4, 60.5}, 1200000, 0, 0, NULL, 0}, 22.4,
     "nfv3rHLTDjOi2uteWNZBJdV1R9FcEgYosM8Ql4wU0kIAp5xhKCmSby6aqGX7Pz"},
    {{GEOHASH_BOX, {13.4, 60.5}, 0, 2400000, 1200000, NULL, 0}, 22.4,
     "nfv3rHLTDjOi2uteWNZBJdV1R9FcEgYosM8Ql4wU0kIAp5xhKCmSby6aqGX7P"},
    {{GEOHASH_CIRCLE, {-170.0, -60.0}, 20000000, 0, 0, NULL, 0}, 0,
     "fn3vrHLTDOjXiWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCy6amqSbG7zP"},
    {{GEOHASH_BOX, {0.0, 0.0}, 0, 40000000, 20000000, NULL, 0}, 0,
     "fn3vrHLTDOjXiWe2utdV1R9NZBFEcgYosMIkA8Ql4wU0J5xphKCy6amqSbG7zP"},
};
/* clang-format on */

static void expect_decimal(double number, const char *text)
{
    char space[NUMBER_LONG_DOUBLE_HUMAN_SPACE];

    number_format_long_double_human(space, number);
    assert_string_equal(space, text);
}

static void expect_point(uint64_t hash, const char *longitude, const char *latitude, const char *text)
{
    struct geohash_point point = geohash_decode(hash);
    char space[GEOHASH_TEXT_BYTES + 1];

    expect_decimal(point.longitude, longitude);
    expect_decimal(point.latitude, latitude);
    assert_true(geohash_point_is_valid(point));
    geohash_format(space, point);
    assert_string_equal(space, text);
}

static void places_are_those_of_redis(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(places); i++) {
        assert_int_equal(geohash_encode(places[i].point), places[i].score);
        assert_int_equal(geohash_from_score((double)places[i].score), places[i].score);
        expect_point(places[i].score, places[i].longitude, places[i].latitude, places[i].text);
    }
}

static void any_score_is_some_place(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (size_t i = 0; i < countof(strays); i++)
        expect_point(geohash_from_score(strays[i].score), strays[i].longitude, strays[i].latitude, strays[i].text);
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t bits = random_u64(&random) >> random_below(&random, 64);
        char space[GEOHASH_TEXT_BYTES + 1];
        double score;

        memcpy(&score, &bits, sizeof(score));
        if (!isnan(score))
            assert_true(geohash_point_is_valid(geohash_decode(geohash_from_score(score))));
        assert_true(geohash_point_is_valid(geohash_decode(bits)));
        geohash_format(space, geohash_decode(bits));
        assert_int_equal(strlen(space), GEOHASH_TEXT_BYTES);
    }
}

static void points_outside_are_not_valid(void **state)
{
    static const struct geohash_point outside[] = {{180.000001, 0},   {-180.000001, 0}, {0, 85.05112879},
                                                   {0, -85.05112879}, {NAN, 0},         {0, NAN},
                                                   {INFINITY, 0}};

    (void)state;
    for (size_t i = 0; i < countof(outside); i++)
        assert_false(geohash_point_is_valid(outside[i]));
    assert_true(geohash_point_is_valid((struct geohash_point){180, 85.05112878}));
    assert_true(geohash_point_is_valid((struct geohash_point){-180, -85.05112878}));
}

static void distances_are_those_of_redis(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(ways); i++) {
        struct geohash_point from = geohash_decode(geohash_encode(ways[i].from));
        struct geohash_point to = geohash_decode(geohash_encode(ways[i].to));
        double there = geohash_distance_m(from, to);
        char text[64];

        snprintf(text, sizeof(text), "%.4f", there);
        assert_string_equal(text, ways[i].text);
        if (ways[i].distance_m != UNKNOWN)
            assert_true(there == ways[i].distance_m);
        assert_true(geohash_distance_m(to, from) == there);
    }
}

/* Points on the other side of the earth, where rounding could take the formula beyond its range. */
static void no_distance_is_more_than_half_round_the_earth(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        struct geohash_point a = {random_unit(&random) * 180, (random_unit(&random) - 0.5) * 170};
        struct geohash_point b = {a.longitude - 180, -a.latitude};

        assert_true(geohash_distance_m(a, b) <= GEOHASH_EARTH_RADIUS_M * 3.1415926535897936);
        assert_true(geohash_distance_m(a, b) > GEOHASH_EARTH_RADIUS_M * 3.14159);
    }
}

static struct geohash_point some_point(struct random *random)
{
    static const double corners[] = {-1, -0.9999999, 0, 0.9999999, 1};
    struct geohash_point point;

    point.longitude = (2 * random_unit(random) - 1) * GEOHASH_LONGITUDE_MOST;
    point.latitude = (2 * random_unit(random) - 1) * GEOHASH_LATITUDE_MOST;
    if (random_below(random, 10) == 0)
        point.longitude = corners[random_below(random, countof(corners))] * GEOHASH_LONGITUDE_MOST;
    if (random_below(random, 10) == 0)
        point.latitude = corners[random_below(random, countof(corners))] * GEOHASH_LATITUDE_MOST;
    return point;
}

/* The bits one by one. */
static uint64_t prefix_of(struct geohash_cell cell)
{
    uint64_t prefix = 0;

    for (unsigned bit = cell.step; bit-- > 0;)
        prefix = prefix << 2 | (cell.column >> bit & 1) << 1 | (cell.row >> bit & 1);
    return prefix;
}

static void cells_are_prefixes_of_scores(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        struct geohash_point point = some_point(&random), middle;
        uint64_t hash = geohash_encode(point);

        if (hash >> 52 != 0)
            continue; /* on an upper limit */
        for (unsigned step = 1; step <= GEOHASH_STEP_MOST; step++) {
            struct geohash_cell cell = geohash_cell_at(point, step);
            struct geohash_area area = geohash_cell_area(cell);

            assert_int_equal(prefix_of(cell), hash >> (52 - 2 * step));
            assert_true(point.longitude >= area.least.longitude - 1e-12);
            assert_true(point.longitude <= area.most.longitude + 1e-12);
            assert_true(point.latitude >= area.least.latitude - 1e-12);
            assert_true(point.latitude <= area.most.latitude + 1e-12);
        }
        middle = geohash_decode(hash);
        assert_int_equal(geohash_encode(middle), hash);
    }
}

static void neighbours_share_borders(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        struct geohash_cell cell, next;
        struct geohash_area area, other;

        cell = geohash_cell_at(some_point(&random), 1 + (unsigned)random_below(&random, GEOHASH_STEP_MOST));
        area = geohash_cell_area(cell);
        assert_int_equal(geohash_cell_neighbour(cell, 0, 1, &next), area.most.latitude < GEOHASH_LATITUDE_MOST);
        if (area.most.latitude < GEOHASH_LATITUDE_MOST) {
            other = geohash_cell_area(next);
            assert_true(other.least.latitude == area.most.latitude);
            assert_true(other.least.longitude == area.least.longitude);
            assert_true(geohash_cell_neighbour(next, 0, -1, &next));
            assert_memory_equal(&next, &cell, sizeof(cell));
        }
        assert_int_equal(geohash_cell_neighbour(cell, 0, -1, &next), area.least.latitude > -GEOHASH_LATITUDE_MOST);
        assert_true(geohash_cell_neighbour(cell, 1, 0, &next));
        other = geohash_cell_area(next);
        assert_true(other.least.longitude ==
                    (area.most.longitude == GEOHASH_LONGITUDE_MOST ? -GEOHASH_LONGITUDE_MOST : area.most.longitude));
        assert_true(geohash_cell_neighbour(next, -1, 0, &next));
        assert_memory_equal(&next, &cell, sizeof(cell));
    }
}

struct town {
    uint64_t score;
    char name;
};

static int compare_towns(const void *a, const void *b)
{
    uint64_t first = ((const struct town *)a)->score, second = ((const struct town *)b)->score;

    return (first > second) - (first < second);
}

/* The towns in order of their scores, as a sorted set has them; last those that GEOADD refuses so far north. */
static void set_up_towns(struct town out[countof(towns)], double north)
{
    static const char names[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    static_assert(countof(names) == countof(towns) + 1, "a name each");
    for (size_t i = 0; i < countof(towns); i++) {
        struct geohash_point point = {towns[i].longitude, towns[i].latitude + north};

        out[i] = (struct town){geohash_point_is_valid(point) ? geohash_encode(point) : UINT64_MAX, names[i]};
    }
    qsort(out, countof(towns), sizeof(*out), compare_towns);
}

static void searches_find_what_redis_finds(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(searches); i++) {
        struct geohash_range ranges[GEOHASH_RANGES_MOST];
        unsigned range_count = geohash_shape_cover(&searches[i].shape, ranges), found_count = 0;
        char found[countof(towns) + 1];
        struct town sorted[countof(towns)];

        set_up_towns(sorted, searches[i].north);
        for (unsigned k = 0; k < range_count; k++) {
            for (size_t j = 0; j < countof(towns); j++) {
                uint64_t score = sorted[j].score;
                double distance_m;

                if (score >= ranges[k].begin && score < ranges[k].end &&
                    geohash_shape_contains(&searches[i].shape, geohash_decode(score), &distance_m))
                    found[found_count++] = sorted[j].name;
            }
        }
        found[found_count] = '\0';
        assert_string_equal(found, searches[i].found);
    }
}

enum { VERTICES_MOST = 9 };

/* Of any size, on borders of the map and across most of it. Valid until the next one. */
static struct geohash_shape some_polygon(struct random *random)
{
    static struct geohash_point vertices[VERTICES_MOST];
    const uint32_t count = 1 + (uint32_t)random_below(random, VERTICES_MOST);
    const double share = pow(10, -7 * random_unit(random));
    const struct geohash_point near = some_point(random);

    for (uint32_t i = 0; i < count; i++) {
        const struct geohash_point far = some_point(random);

        vertices[i].longitude = near.longitude + share * (far.longitude - near.longitude);
        vertices[i].latitude = near.latitude + share * (far.latitude - near.latitude);
    }
    return geohash_polygon(vertices, count);
}

/* Between two vertices, or a little beside. */
static struct geohash_point point_near_polygon(struct random *random, const struct geohash_shape *polygon)
{
    const struct geohash_point a = polygon->vertices[random_below(random, polygon->vertex_count)];
    const struct geohash_point b = polygon->vertices[random_below(random, polygon->vertex_count)];
    const double share = random_unit(random) * 1.2 - 0.1;
    struct geohash_point point = {a.longitude + share * (b.longitude - a.longitude),
                                  a.latitude + share * (b.latitude - a.latitude)};

    point.longitude = fmax(-GEOHASH_LONGITUDE_MOST, fmin(point.longitude, GEOHASH_LONGITUDE_MOST));
    point.latitude = fmax(-GEOHASH_LATITUDE_MOST, fmin(point.latitude, GEOHASH_LATITUDE_MOST));
    return point;
}

/* Of any size, and often one that is large and near a pole. */
static struct geohash_shape some_shape(struct random *random)
{
    struct geohash_shape shape = {.center = some_point(random)};
    double size_m = random_below(random, 100) == 0 ? 0 : pow(10, 8.5 * random_unit(random) - 1);

    if (random_below(random, 3) == 0)
        return some_polygon(random);
    if (random_below(random, 4) == 0) {
        shape.center.latitude = copysign(75 + 10 * random_unit(random), shape.center.latitude);
        size_m = pow(10, 5.7 + random_unit(random));
    }
    if (random_below(random, 2) == 0) {
        shape.kind = GEOHASH_CIRCLE;
        shape.radius_m = size_m;
    } else {
        shape.kind = GEOHASH_BOX;
        shape.width_m = size_m;
        shape.height_m = size_m * pow(10, 4 * random_unit(random) - 2);
    }
    return shape;
}

/* Somewhere about the shape, or anywhere. */
static struct geohash_point point_near(struct random *random, const struct geohash_shape *shape)
{
    double size_m = shape->radius_m + fmax(shape->width_m, shape->height_m) * pow(10, -2 * random_unit(random));
    double degrees = size_m * 1.1 / 111000, width = degrees / cos(shape->center.latitude * 0.01745);
    struct geohash_point point = shape->center;

    if (random_below(random, 4) == 0)
        return some_point(random);
    if (shape->kind == GEOHASH_POLYGON)
        return point_near_polygon(random, shape);
    point.longitude += (2 * random_unit(random) - 1) * width;
    point.latitude += (2 * random_unit(random) - 1) * degrees;
    point.longitude = remainder(point.longitude, 360);
    point.latitude = fmax(-GEOHASH_LATITUDE_MOST, fmin(point.latitude, GEOHASH_LATITUDE_MOST));
    return point;
}

static bool is_covered(uint64_t hash, const struct geohash_range *ranges, unsigned range_count)
{
    for (unsigned i = 0; i < range_count; i++) {
        if (hash >= ranges[i].begin && hash < ranges[i].end)
            return true;
    }
    return false;
}

static void ranges_cover_all_that_is_inside(void **state)
{
    struct random random = test_random(__func__);
    uint64_t inside_count = 0, kept_out_count = 0;

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        struct geohash_shape shape = some_shape(&random);
        struct geohash_area window = geohash_shape_window(&shape);
        struct geohash_range ranges[GEOHASH_RANGES_MOST];
        unsigned range_count = geohash_shape_cover(&shape, ranges);

        assert_in_range(range_count, 1, GEOHASH_RANGES_MOST);
        for (unsigned k = 0; k < range_count; k++) {
            assert_true(ranges[k].begin < ranges[k].end);
            for (unsigned j = 0; j < k; j++)
                assert_true(ranges[j].end <= ranges[k].begin || ranges[k].end <= ranges[j].begin);
        }
        for (unsigned k = 0; k < 50; k++) {
            const bool is_center = k == 0 && shape.kind != GEOHASH_POLYGON; /* whose center may be beyond the map */
            uint64_t hash = geohash_encode(is_center ? shape.center : point_near(&random, &shape));
            double distance_m;

            if (geohash_shape_contains(&shape, geohash_decode(hash), &distance_m)) {
                assert_true(is_covered(hash, ranges, range_count));
                assert_true(geohash_window_has(&window, geohash_decode(hash)));
                inside_count++;
            } else {
                kept_out_count += !geohash_window_has(&window, geohash_decode(hash));
            }
        }
    }
    assert_true(inside_count > 100000);
    assert_true(kept_out_count > 50000);
}

/* Whole degrees, so that nothing is rounded. The ray goes north, not east. */
static bool model_contains(const struct geohash_shape *polygon, struct geohash_point point)
{
    const int x = (int)point.longitude, y = (int)point.latitude;
    bool is_inside = false;

    for (uint32_t i = 0; i < polygon->vertex_count; i++) {
        const struct geohash_point a = polygon->vertices[i], b = polygon->vertices[(i + 1) % polygon->vertex_count];
        const int ax = (int)a.longitude - x, ay = (int)a.latitude - y;
        const int bx = (int)b.longitude - x, by = (int)b.latitude - y;
        const int turn = ax * by - ay * bx;

        if (turn == 0 && ax * bx <= 0 && ay * by <= 0)
            return true; /* between both */
        if ((ax > 0) != (bx > 0) && (turn > 0) == (ax > bx))
            is_inside = !is_inside;
    }
    return is_inside;
}

/* Also those that cross themselves, or have fewer than two corners. */
static void polygons_contain_what_a_model_says(void **state)
{
    struct random random = test_random(__func__);
    unsigned inside_count = 0, outside_count = 0;

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        const int size = 2 + (int)random_below(&random, 8);
        const double west = random_below(&random, 2) == 0 ? -180 : 180 - size,
                     south = random_below(&random, 2) == 0 ? -85 : 10;
        struct geohash_point vertices[VERTICES_MOST];
        const uint32_t count = 1 + (uint32_t)random_below(&random, VERTICES_MOST);
        struct geohash_shape polygon;

        for (uint32_t k = 0; k < count; k++)
            vertices[k] = (struct geohash_point){west + (double)random_below(&random, (uint64_t)size + 1),
                                                 south + (double)random_below(&random, (uint64_t)size + 1)};
        polygon = geohash_polygon(vertices, count);
        for (double longitude = west; longitude <= west + size; longitude++) {
            for (double latitude = south; latitude <= south + size; latitude++) {
                const struct geohash_point point = {longitude, latitude};
                double distance_m;
                const bool is_inside = geohash_shape_contains(&polygon, point, &distance_m);

                assert_int_equal(is_inside, model_contains(&polygon, point));
                assert_true(distance_m == geohash_distance_m(polygon.center, point));
                inside_count += is_inside;
                outside_count += !is_inside;
            }
        }
    }
    assert_true(inside_count > 100000 && outside_count > 100000);
}

/* Seen from the middle of the earth: of points on one parallel it is nearer to the pole. */
static void the_center_of_a_polygon_is_the_mean_of_its_vertices(void **state)
{
    static const struct geohash_point vertices[] = {{-60, 45}, {60, 45}}, across[] = {{170, 10}, {-170, -10}},
                                      corners[] = {{0.1, 0.7}, {0.1, 0.7}, {0.1, 0.7}, {0.1, 0.7},
                                                   {0.1, 0.7}, {0.1, 0.7}, {0.1, 0.7}};
    struct geohash_point center = geohash_polygon(vertices, countof(vertices)).center;

    (void)state;
    assert_true(fabs(center.longitude) < 1e-9 && fabs(center.latitude - atan(2) * 180 / M_PI) < 1e-9);
    center = geohash_polygon(across, countof(across)).center;
    assert_true(fabs(fabs(center.longitude) - 180) < 1e-9 && fabs(center.latitude) < 1e-9);
    for (uint32_t count = 1; count <= countof(corners); count++) {
        center = geohash_polygon(corners, count).center;
        assert_true(fabs(center.longitude - 0.1) < 1e-9 && fabs(center.latitude - 0.7) < 1e-9);
    }
}

/* On the last parallel that a point can be on, at the very edge of circles down to a decimetre. */
static void small_circles_near_the_poles_are_whole(void **state)
{
    struct random random = test_random(__func__);
    unsigned inside_count = 0;

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        struct geohash_shape shape = {.kind = GEOHASH_CIRCLE, .radius_m = pow(10, 4 * random_unit(&random) - 1)};
        double degrees = shape.radius_m / 111227 / cos(GEOHASH_LATITUDE_MOST * M_PI / 180), distance_m;
        struct geohash_area window;
        struct geohash_point point;

        shape.center = (struct geohash_point){20, i % 2 == 0 ? GEOHASH_LATITUDE_MOST : -GEOHASH_LATITUDE_MOST};
        window = geohash_shape_window(&shape);
        point = shape.center;
        point.longitude += degrees * (0.999 + 0.001 * random_unit(&random));
        if (geohash_shape_contains(&shape, point, &distance_m)) {
            assert_true(geohash_window_has(&window, point));
            inside_count++;
        }
    }
    assert_true(inside_count > 1000);
}

/* There a shape reaches across more degrees than its size would let one think. */
static void nothing_is_lost_near_the_poles(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        struct geohash_shape shape = {.kind = i % 2 == 0 ? GEOHASH_CIRCLE : GEOHASH_BOX};
        struct geohash_range ranges[GEOHASH_RANGES_MOST];
        struct geohash_area window;
        unsigned range_count;
        double sign = i % 4 < 2 ? 1 : -1;

        shape.center.longitude = (2 * random_unit(&random) - 1) * GEOHASH_LONGITUDE_MOST;
        shape.center.latitude = sign * (75 + 10 * random_unit(&random));
        shape.radius_m = shape.height_m = 400e3 + 1e6 * random_unit(&random);
        shape.width_m = 1500e3 + 1500e3 * random_unit(&random);
        range_count = geohash_shape_cover(&shape, ranges);
        window = geohash_shape_window(&shape);
        for (int longitude = -180; longitude <= 180; longitude++) {
            for (double latitude = 65; latitude <= 85; latitude += 0.5) {
                uint64_t hash = geohash_encode((struct geohash_point){longitude, sign * latitude});
                double distance_m;

                if (geohash_shape_contains(&shape, geohash_decode(hash), &distance_m)) {
                    assert_true(is_covered(hash, ranges, range_count));
                    assert_true(geohash_window_has(&window, geohash_decode(hash)));
                }
            }
        }
    }
}

/* The same place has two names, and one of them a column of its own. */
static void both_sides_of_the_date_line_are_found(void **state)
{
    static const double longitudes[] = {180, -180, 179.9999, -179.9999};

    (void)state;
    for (size_t i = 0; i < countof(longitudes); i++) {
        struct geohash_shape shape = {GEOHASH_CIRCLE, {longitudes[i], 12}, 100, 0, 0, NULL, 0};
        struct geohash_area window = geohash_shape_window(&shape);
        struct geohash_range ranges[GEOHASH_RANGES_MOST];
        unsigned range_count = geohash_shape_cover(&shape, ranges);

        for (size_t k = 0; k < countof(longitudes); k++) {
            uint64_t hash = geohash_encode((struct geohash_point){longitudes[k], 12});
            unsigned times = 0;

            for (unsigned j = 0; j < range_count; j++)
                times += hash >= ranges[j].begin && hash < ranges[j].end;
            assert_int_equal(times, 1);
            assert_true(geohash_window_has(&window, geohash_decode(hash)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_those_of_redis),
        cmocka_unit_test(any_score_is_some_place),
        cmocka_unit_test(points_outside_are_not_valid),
        cmocka_unit_test(distances_are_those_of_redis),
        cmocka_unit_test(no_distance_is_more_than_half_round_the_earth),
        cmocka_unit_test(cells_are_prefixes_of_scores),
        cmocka_unit_test(neighbours_share_borders),
        cmocka_unit_test(searches_find_what_redis_finds),
        cmocka_unit_test(ranges_cover_all_that_is_inside),
        cmocka_unit_test(polygons_contain_what_a_model_says),
        cmocka_unit_test(the_center_of_a_polygon_is_the_mean_of_its_vertices),
        cmocka_unit_test(small_circles_near_the_poles_are_whole),
        cmocka_unit_test(nothing_is_lost_near_the_poles),
        cmocka_unit_test(both_sides_of_the_date_line_are_found),
    };

    return cmocka_run_group_tests_name("geohash", tests, NULL, NULL);
}
