/* LOLWUT: a small picture, and the version.
 *
 *     LOLWUT [VERSION v [a b c]]
 *
 *     5   roses: a field of Maurer roses, drawn with braille characters; arguments: columns of text, roses a row, rows
 *     6   cloth: the states of an elementary cellular automaton, one line of text each, in colours; arguments: columns
 *         and rows
 *     others only the version, for clients that need only that
 *
 * A Maurer rose joins points of r = sin(n t), taken every d degrees. n and d of each rose and the rule of the automaton
 * are random. Arguments out of bounds count as the bound; further ones are ignored. */
#include "commands/shared/families.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/version.h"
#include "server/core/request.h"

#include <math.h>
#include <string.h>

enum { DOTS_ACROSS = 2, DOTS_DOWN = 4, COLUMNS_MOST = 1000, ROWS_MOST = 1000, ROSES_MOST = 200 };
enum { FIELD_ROWS_MOST = 100 }; /* of text: the worst field takes 0.2 s */

/* ------------------------------------------------------------------------------------------------------- canvas -- */

/* One byte a character cell: bit i is dot i + 1 of the braille pattern. */
struct canvas {
    int64_t columns, rows;
    uint8_t *cells;
};

static void canvas_dot(struct canvas *canvas, int64_t x, int64_t y)
{
    static const uint8_t bits[DOTS_DOWN][DOTS_ACROSS] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

    if (x >= 0 && y >= 0 && x < canvas->columns * DOTS_ACROSS && y < canvas->rows * DOTS_DOWN)
        canvas->cells[y / DOTS_DOWN * canvas->columns + x / DOTS_ACROSS] |= bits[y % DOTS_DOWN][x % DOTS_ACROSS];
}

static void canvas_line(struct canvas *canvas, double x0, double y0, double x1, double y1)
{
    int64_t steps = (int64_t)fmax(fabs(x1 - x0), fabs(y1 - y0)) + 1;
    double x_step = (x1 - x0) / (double)steps, y_step = (y1 - y0) / (double)steps;

    for (int64_t i = 0; i <= steps; i++, x0 += x_step, y0 += y_step) {
        if (x0 > -0.5 && y0 > -0.5)
            canvas_dot(canvas, (int64_t)(x0 + 0.5), (int64_t)(y0 + 0.5));
    }
}

/* U+2800 and the dots as its low byte, in UTF-8. */
static void canvas_print(const struct canvas *canvas, struct buffer *text)
{
    for (int64_t row = 0; row < canvas->rows; row++) {
        for (int64_t column = 0; column < canvas->columns; column++) {
            uint8_t dots = canvas->cells[row * canvas->columns + column];

            buffer_append_char(text, (char)0xE2);
            buffer_append_char(text, (char)(0xA0 | dots >> 6));
            buffer_append_char(text, (char)(0x80 | (dots & 0x3F)));
        }
        buffer_append_char(text, '\n');
    }
}

/* -------------------------------------------------------------------------------------------------------- roses -- */

static void draw_rose(struct canvas *canvas, double center_x, double center_y, double radius)
{
    enum { DEGREES = 360 };
    const double degree = 3.14159265358979323846 / 180;
    double petals = (double)(2 + random_below(random_thread(), 6)), x = center_x, y = center_y;
    /* Prime to 360, or the walk comes home before it has seen all of the rose. */
    static const int strides[] = {7, 17, 29, 31, 47, 71, 73, 97};
    int stride = strides[random_below(random_thread(), countof(strides))];

    for (int i = 1; i <= DEGREES; i++) {
        double angle = degree * (double)(i * stride % DEGREES), reach = radius * sin(petals * angle);
        double next_x = center_x + reach * cos(angle), next_y = center_y + reach * sin(angle);

        canvas_line(canvas, x, y, next_x, next_y);
        x = next_x;
        y = next_y;
    }
}

static void draw_roses(struct buffer *text, const int64_t sizes[3])
{
    double cell = (double)(sizes[0] * DOTS_ACROSS) / (double)sizes[1];
    struct canvas canvas = {.columns = sizes[0]};

    canvas.rows = MAX(MIN((int64_t)ceil(cell * (double)sizes[2] / DOTS_DOWN), FIELD_ROWS_MOST), 1);
    canvas.cells = mem_alloc_zero((size_t)(canvas.columns * canvas.rows));
    for (int64_t row = 0; row < sizes[2] && cell * (double)row < (double)(canvas.rows * DOTS_DOWN); row++) {
        for (int64_t column = 0; column < sizes[1]; column++)
            draw_rose(&canvas, cell * ((double)column + 0.5) - 0.5, cell * ((double)row + 0.5) - 0.5, cell * 0.45);
    }
    canvas_print(&canvas, text);
    mem_free(canvas.cells);
    buffer_append_text(text, "\nRoses after Peter M. Maurer, 1987. ");
}

/* -------------------------------------------------------------------------------------------------------- cloth -- */

static void weave_line(struct buffer *text, const uint8_t *threads, int64_t columns, unsigned colour)
{
    for (int64_t i = 0; i < columns; i++)
        buffer_printf(text, "\x1b[%s;%um \x1b[0m", threads[i] ? "0;30" : "0;37", threads[i] ? 40 + colour : 40);
    buffer_append_char(text, '\n');
}

static void draw_cloth(struct buffer *text, const int64_t sizes[3])
{
    static const uint8_t rules[] = {22, 30, 45, 54, 60, 73, 90, 105, 110, 126, 150};
    uint8_t rule = rules[random_below(random_thread(), countof(rules))];
    size_t columns = (size_t)sizes[0];
    uint8_t *threads = mem_alloc_zero(columns), *next = mem_alloc_zero(columns), *last;

    threads[columns / 2] = 1;
    for (int64_t row = 0; row < sizes[1]; row++) {
        weave_line(text, threads, sizes[0], 1 + (unsigned)(row / 3 % 6));
        for (size_t i = 0; i < columns; i++) {
            unsigned left = threads[(i + columns - 1) % columns], right = threads[(i + 1) % columns];

            next[i] = rule >> (left << 2 | (unsigned)threads[i] << 1 | right) & 1;
        }
        last = threads;
        threads = next;
        next = last;
    }
    mem_free(threads);
    mem_free(next);
    buffer_printf(text, "Cloth of rule %u, after Stephen Wolfram, 1983. ", rule);
}

/* ------------------------------------------------------------------------------------------------------ command -- */

struct picture {
    int64_t version;
    void (*draw)(struct buffer *text, const int64_t sizes[3]);
    int64_t presets[3], most[3]; /* 0: no such argument */
};

static const struct picture pictures[] = {
    {5, draw_roses, {66, 8, 12}, {COLUMNS_MOST, ROSES_MOST, ROSES_MOST}},
    {6, draw_cloth, {80, 20, 0}, {COLUMNS_MOST, ROWS_MOST, 0}},
};

/* The picture asked for, NULL: none. False: an argument is no number, it has replied. */
static bool choose_picture(struct request *request, const struct picture **picture, int64_t sizes[3])
{
    int64_t version;

    *picture = NULL;
    if (request->arg_count < 3 || !request_arg_is(request, 1, "version"))
        return true;
    if (!request_arg_i64(request, 2, &version))
        return false;
    for (size_t i = 0; i < countof(pictures); i++) {
        if (pictures[i].version == version)
            *picture = &pictures[i];
    }
    for (uint32_t i = 0; *picture != NULL && i < 3 && (*picture)->most[i] != 0; i++) {
        sizes[i] = (*picture)->presets[i];
        if (i + 3 < request->arg_count && !request_arg_i64(request, i + 3, &sizes[i]))
            return false;
        sizes[i] = MAX(1, MIN(sizes[i], (*picture)->most[i]));
    }
    return true;
}

static void cmd_lolwut(struct request *request)
{
    const struct picture *picture;
    struct buffer text = {0};
    int64_t sizes[3] = {0};

    if (!choose_picture(request, &picture, sizes))
        return;
    if (picture != NULL)
        picture->draw(&text, sizes);
    buffer_printf(&text, "Redis ver. %s\n", KEYDB_REDIS_VERSION);
    reply_verbatim(request, "txt", buffer_slice(&text));
    buffer_fini(&text);
}

/* clang-format off */
const struct command_row lolwut_commands[] = {
    {.name = "lolwut", .run = cmd_lolwut, .arity = -1, .access = ACCESS_FREE, .flags = "readonly fast",
     .categories = "@read @fast", .group = "server", .since = "5.0.0",
     .summary = "Returns a picture and the version.", .complexity = "O(N) for N characters of the picture",
     .syntax = "LOLWUT [VERSION version]"},
    {0},
};
/* clang-format on */
