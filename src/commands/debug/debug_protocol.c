/* DEBUG subcommands about the protocol: samples of all types of replies, errors, patterns. */
#include "commands/debug/debug_priv.h"

#include "base/buffer.h"
#include "base/glob.h"
#include "base/random.h"
#include "server/core/request.h"

static void protocol_string(struct request *request)
{
    reply_text(request, "Hello World");
}
static void protocol_integer(struct request *request)
{
    reply_int(request, 12345);
}
static void protocol_double(struct request *request)
{
    if (request->proto == 2)
        reply_text(request, "3.141");
    else
        resp_write_raw(request->out, SLICE(",3.141\r\n")); /* the shortest digits, whatever doubles look like else */
}
static void protocol_bignum(struct request *request)
{
    resp_write_bignum(request->out, request->proto, SLICE("1234567999999999999999999999999999999"));
}
static void protocol_null(struct request *request)
{
    reply_null(request);
}
static void protocol_numbers(struct request *request)
{
    for (int64_t i = 0; i < 3; i++)
        reply_int(request, i);
}
static void protocol_array(struct request *request)
{
    reply_array(request, 3);
    protocol_numbers(request);
}
static void protocol_set(struct request *request)
{
    reply_set(request, 3);
    protocol_numbers(request);
}
static void protocol_map(struct request *request)
{
    reply_map(request, 3);
    for (int64_t i = 0; i < 3; i++) {
        reply_int(request, i);
        reply_bool(request, i == 1);
    }
}
static void protocol_attrib(struct request *request)
{
    if (request->proto > 2) {
        resp_write_attribute(request->out, request->proto, 1);
        reply_text(request, "key-popularity");
        reply_array(request, 2);
        reply_text(request, "key:123");
        reply_int(request, 90);
    }
    reply_text(request, "Some real reply following the attribute");
}
static void protocol_push(struct request *request)
{
    if (request->proto == 2) {
        reply_error(request, "ERR RESP2 is not supported by this command");
        return;
    }
    resp_write_push(request->out, request->proto, 2);
    reply_text(request, "server-cpu-usage");
    reply_int(request, 42);
    reply_text(request, "Some real reply following the push reply");
}
static void protocol_verbatim(struct request *request)
{
    reply_verbatim(request, "txt", SLICE("This is a verbatim\nstring"));
}
static void protocol_true(struct request *request)
{
    reply_bool(request, true);
}
static void protocol_false(struct request *request)
{
    reply_bool(request, false);
}

static void debug_protocol(struct request *request)
{
    static const struct {
        const char *name;
        void (*reply)(struct request *request);
    } types[] = {
        {"string", protocol_string}, {"integer", protocol_integer},   {"double", protocol_double},
        {"bignum", protocol_bignum}, {"null", protocol_null},         {"array", protocol_array},
        {"set", protocol_set},       {"map", protocol_map},           {"attrib", protocol_attrib},
        {"push", protocol_push},     {"verbatim", protocol_verbatim}, {"true", protocol_true},
        {"false", protocol_false},
    };

    for (size_t i = 0; i < countof(types); i++) {
        if (request_arg_is(request, 2, types[i].name)) {
            types[i].reply(request);
            return;
        }
    }
    reply_error(request, "ERR Wrong protocol type name. Please use one of the following: "
                         "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false");
}

/* Replies the text unchanged, with its code; it does not count as an error of the server. */
static void debug_error(struct request *request)
{
    struct buffer text = {0};

    buffer_append_slice(&text, request_arg(request, 2));
    resp_write_error_text(request->out, buffer_text(&text));
    buffer_fini(&text);
}

/* -------------------------------------------------------------------------------------------------- patterns -- */

static void debug_stringmatch_len(struct request *request)
{
    reply_int(request, glob_match(request_arg(request, 2), request_arg(request, 3), false) ? 1 : 0);
}

/* Of few characters, so that patterns are met now and then. */
static struct slice random_text(char *space, size_t most, const char *letters)
{
    size_t size = (size_t)random_below(random_thread(), most + 1), letter_count = strlen(letters);

    for (size_t i = 0; i < size; i++)
        space[i] = letters[random_below(random_thread(), letter_count)];
    return slice_make(space, size);
}

static void debug_stringmatch_test(struct request *request)
{
    enum { ROUNDS = 100000, TEXT_BYTES = 32 };
    char pattern[TEXT_BYTES], text[TEXT_BYTES];

    for (int i = 0; i < ROUNDS; i++) {
        struct slice wanted = random_text(pattern, TEXT_BYTES, "ab*?[]^-\\");

        (void)glob_match(wanted, random_text(text, TEXT_BYTES, "abc"), i % 2 == 0);
    }
    reply_ok(request);
}

const struct debug_row debug_protocol_rows[] = {
    {"error", "<string>", "Reply with <string> as an error.", debug_error, 3, 3, ACCESS_FREE, 0, 0},
    {"protocol", "<type>",
     "Return a sample reply of a type: string, integer, double, bignum, null, array, set, map, attrib, "
     "push,\nverbatim, true, false.",
     debug_protocol, 3, 3, ACCESS_FREE, 0, 0},
    {"stringmatch-len", "<pattern> <string>", "Return whether the pattern of KEYS matches the string.",
     debug_stringmatch_len, 4, 4, ACCESS_FREE, 0, 0},
    {"stringmatch-test", "", "Match random texts with random patterns.", debug_stringmatch_test, 2, 2, ACCESS_FREE, 0,
     0},
    {0},
};
