#include "server/process/process_title.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/slice.h"
#include "base/thread.h"
#include "server/config/config.h"
#include "server/config/options.h"

#include <string.h>
#include <unistd.h>

static struct {
    char *room; /* where ps looks; NULL: not there */
    size_t room_size;
    int argc;
    char **args;        /* copies */
    char **environment; /* likewise */
    char **original_environment;
} title; /* owner: the main thread, or the gate's */

static char **copy_list(char **list, size_t *count)
{
    char **copy;

    for (*count = 0; list[*count] != NULL; (*count)++)
        ;
    copy = mem_alloc_zero((*count + 1) * sizeof(*copy));
    for (size_t i = 0; i < *count; i++)
        copy[i] = mem_copy_text(list[i]);
    return copy;
}

static void free_list(char ***list)
{
    for (char **item = *list; item != NULL && *item != NULL; item++)
        mem_free(*item);
    mem_free(*list);
    *list = NULL;
}

/* How far the texts follow each other without a gap. */
static char *end_of_row(char **list, char *end)
{
    for (; *list != NULL && *list == end; list++)
        end = *list + strlen(*list) + 1;
    return end;
}

char **process_title_setup(int argc, char **argv)
{
    size_t count;

    thread_assert_only();
    assert(title.args == NULL);
    if (argc > 0) {
        char *end = end_of_row(argv, argv[0]);

        title.room = argv[0];
        title.room_size = (size_t)(end_of_row(environ, end) - argv[0]);
    }
    title.argc = argc;
    title.args = copy_list(argv, &count);
    title.original_environment = environ;
    title.environment = copy_list(environ, &count);
    environ = title.environment;
    return title.args;
}

void process_title_teardown(void)
{
    gate_assert_main_alone();
    /* The title uses the memory of these texts; a variable that is read so late is not found. */
    if (title.original_environment != NULL)
        title.original_environment[0] = NULL;
    environ = title.original_environment;
    free_list(&title.environment);
    free_list(&title.args);
}

static void append_address(struct buffer *text)
{
    size_t count;
    const char *const *addresses = option_bind_addresses(&count);
    int64_t port = OPTION_GET(option_port) != 0 ? OPTION_GET(option_port) : OPTION_GET(option_tls_port);

    if (port == 0 && option_unixsocket.data != NULL) {
        buffer_append_text(text, option_unixsocket.data);
        return;
    }
    if (count != 0)
        buffer_append_text(text, addresses[0][0] == '-' ? addresses[0] + 1 : addresses[0]);
    buffer_printf(text, ":%lld", (long long)port);
}

static void append_variable(struct buffer *text, struct slice name)
{
    if (slice_equal_text(name, "title"))
        buffer_append_text(text, title.argc > 0 ? title.args[0] : "keydb-server");
    else if (slice_equal_text(name, "listen-addr"))
        append_address(text);
    else if (slice_equal_text(name, "config-file"))
        buffer_append_text(text, config_file_path()[0] != '\0' ? config_file_path() : "-");
    else if (slice_equal_text(name, "port"))
        buffer_append_i64(text, OPTION_GET(option_port));
    else if (slice_equal_text(name, "tls-port"))
        buffer_append_i64(text, OPTION_GET(option_tls_port));
    else if (slice_equal_text(name, "unixsocket") && option_unixsocket.data != NULL)
        buffer_append_text(text, option_unixsocket.data);
    /* server-mode: neither a cluster node nor a sentinel is anything to show */
}

static void expand(struct buffer *text, struct slice rest)
{
    while (rest.size != 0) {
        const char *open = memchr(rest.data, '{', rest.size);
        const char *close;

        buffer_append(text, rest.data, open == NULL ? rest.size : (size_t)(open - rest.data));
        if (open == NULL)
            break;
        rest = slice_skip(rest, (size_t)(open + 1 - rest.data));
        close = memchr(rest.data, '}', rest.size);
        if (close == NULL)
            break;
        append_variable(text, slice_make(rest.data, (size_t)(close - rest.data)));
        rest = slice_skip(rest, (size_t)(close + 1 - rest.data));
    }
    while (text->size != 0 && text->data[text->size - 1] == ' ')
        text->size--;
}

bool process_title_update(void)
{
    struct buffer text = {0};
    size_t size;

    gate_assert_alone();
    if (title.room == NULL || !OPTION_IS(option_set_proc_title))
        return false;
    expand(&text, slice_make(option_proc_title_template.data, option_proc_title_template.size));
    size = MIN(text.size, title.room_size - 1);
    assert(title.room_size > 0 && size < title.room_size);
    memset(title.room, 0, title.room_size);
    if (size != 0)
        memcpy(title.room, text.data, size);
    buffer_fini(&text);
    return true;
}
