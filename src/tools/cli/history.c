#include "tools/cli/history.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/compiler.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void push(struct history *history, const char *line)
{
    if (history->count == HISTORY_LINES_MOST) {
        mem_free(history->items[0]);
        memmove(history->items, history->items + 1, (--history->count) * sizeof(char *));
    }
    *ARRAY_PUSH(history) = mem_copy_text(line);
}

void history_init(struct history *history, const char *path)
{
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    char *line = NULL;
    size_t room = 0;
    ssize_t size;

    *history = (struct history){.path = path != NULL ? mem_copy_text(path) : NULL};
    if (file == NULL)
        return;
    while ((size = getline(&line, &room, file)) > 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] != '\0')
            push(history, line);
    }
    free(line);
    fclose(file);
}

void history_fini(struct history *history)
{
    for (uint32_t i = 0; i < history->count; i++)
        mem_free(history->items[i]);
    ARRAY_FINI(history);
    mem_free(history->path);
    history->path = NULL;
}

static void save(const struct history *history)
{
    int descriptor = open(history->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;

    if (file == NULL) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    fchmod(descriptor, 0600);
    for (uint32_t i = 0; i < history->count; i++)
        fprintf(file, "%s\n", history->items[i]);
    fclose(file);
}

void history_add(struct history *history, const char *line)
{
    if (line[0] == '\0' || (history->count > 0 && strcmp(history->items[history->count - 1], line) == 0))
        return;
    push(history, line);
    if (history->path != NULL)
        save(history);
}

char *history_path(const char *variable, const char *name)
{
    const char *chosen = getenv(variable);
    const char *home = getenv("HOME");
    struct buffer path = {0};
    size_t size;

    if (chosen != NULL && chosen[0] != '\0')
        return strcmp(chosen, "/dev/null") == 0 ? NULL : mem_copy_text(chosen);
    if (home == NULL || home[0] == '\0')
        return NULL;
    buffer_printf(&path, "%s/%s", home, name);
    return buffer_take(&path, &size);
}

static bool is(const struct slice *words, size_t count, size_t index, const char *word)
{
    return index < count && slice_equal_text_nocase(words[index], word);
}

static bool has(const struct slice *words, size_t count, size_t from, const char *const *names, size_t name_count)
{
    for (size_t i = from; i < count; i++)
        for (size_t k = 0; k < name_count; k++)
            if (slice_equal_text_nocase(words[i], names[k]))
                return true;
    return false;
}

bool history_is_secret(const struct slice *words, size_t word_count)
{
    static const char *const options[] = {"masterauth", "masteruser", "requirepass", "tls-key-file-pass",
                                          "tls-client-key-file-pass"};
    static const char *const auth[] = {"auth", "auth2"};

    if (is(words, word_count, 0, "auth"))
        return true;
    if (is(words, word_count, 0, "acl"))
        return is(words, word_count, 1, "setuser");
    if (is(words, word_count, 0, "config") && is(words, word_count, 1, "set"))
        return has(words, word_count, 2, options, countof(options));
    if (is(words, word_count, 0, "hello"))
        return has(words, word_count, 1, auth, 1);
    if (is(words, word_count, 0, "migrate"))
        return has(words, word_count, 1, auth, countof(auth));
    return false;
}
