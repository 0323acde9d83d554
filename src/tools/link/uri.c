#include "tools/link/uri.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct scheme {
    const char *name;
    bool tls;
};

static const struct scheme schemes[] = {{"redis://", false},
                                        {"rediss://", true},
                                        {"keydb://", false},
                                        {"keydbs://", true}};

static const struct scheme *scheme_of(const char *text)
{
    for (size_t i = 0; i < countof(schemes); i++)
        if (strncasecmp(text, schemes[i].name, strlen(schemes[i].name)) == 0)
            return &schemes[i];
    return NULL;
}

bool uri_is(const char *text)
{
    return scheme_of(text) != NULL;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

/* NULL: what follows a % is no byte. */
static char *decode(struct slice text)
{
    char *out = mem_alloc(text.size + 1);
    size_t size = 0;

    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] != '%') {
            out[size++] = text.data[i];
            continue;
        }
        if (text.size - i < 3 || digit_of(text.data[i + 1]) < 0 || digit_of(text.data[i + 2]) < 0) {
            mem_free(out);
            return NULL;
        }
        out[size++] = (char)(digit_of(text.data[i + 1]) << 4 | digit_of(text.data[i + 2]));
        i += 2;
    }
    out[size] = '\0';
    return out;
}

/* The part "user:password" or "password". */
static bool parse_who(struct slice who, struct uri *uri)
{
    const char *colon = who.size > 0 ? memchr(who.data, ':', who.size) : NULL;

    if (colon != NULL) {
        if (colon > who.data) {
            uri->user = decode(slice_make(who.data, (size_t)(colon - who.data)));
            if (uri->user == NULL)
                return false;
        }
        who = slice_skip(who, (size_t)(colon - who.data) + 1);
    }
    uri->password = decode(who);
    return uri->password != NULL;
}

static void parse_host(struct slice place, struct uri *uri)
{
    struct slice host = place;
    const char *colon = NULL;

    if (place.size > 0 && place.data[0] == '[') {
        const char *end = memchr(place.data, ']', place.size);

        if (end != NULL) {
            host = slice_make(place.data + 1, (size_t)(end - place.data) - 1);
            place = slice_skip(place, (size_t)(end - place.data) + 1);
            colon = place.size > 0 && place.data[0] == ':' ? place.data : NULL;
        }
    } else {
        colon = place.size > 0 ? memchr(place.data, ':', place.size) : NULL;
        if (colon != NULL)
            host.size = (size_t)(colon - place.data);
    }
    if (host.size > 0)
        uri->host = mem_copy(host.data, host.size);
    if (colon != NULL)
        uri->port = atoi(colon + 1);
}

const char *uri_parse(const char *text, struct uri *uri)
{
    const struct scheme *scheme = scheme_of(text);
    const char *at;
    size_t place_size;

    *uri = (struct uri){.database = -1};
    if (scheme == NULL)
        return "Invalid URI scheme";
    uri->tls = scheme->tls;
    text += strlen(scheme->name);
    at = strchr(text, '@');
    if (at != NULL) {
        if (!parse_who(slice_make(text, (size_t)(at - text)), uri)) {
            uri_fini(uri);
            return "Illegal character in URI encoding";
        }
        text = at + 1;
    }
    place_size = strcspn(text, "/");
    parse_host(slice_make(text, place_size), uri);
    if (text[place_size] == '/' && text[place_size + 1] != '\0')
        uri->database = atoi(text + place_size + 1);
    return NULL;
}

void uri_fini(struct uri *uri)
{
    mem_free(uri->user);
    mem_free(uri->password);
    mem_free(uri->host);
    *uri = (struct uri){.database = -1};
}

void uri_give(const struct uri *uri, struct link_target *target, const struct link_tls *tls)
{
    if (uri->tls)
        target->tls = tls;
    if (uri->host != NULL)
        target->host = uri->host;
    if (uri->port != 0)
        target->port = uri->port;
    if (uri->database >= 0)
        target->database = uri->database;
    if (uri->user != NULL)
        target->user = uri->user;
    if (uri->password != NULL)
        target->password = uri->password;
}
