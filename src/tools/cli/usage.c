#include "base/buffer.h"
#include "base/version.h"
#include "tools/cli/options.h"
#include "tools/link/usage.h"

/* NAME stands for the program's name. */
static const char text[] =
    "Usage: NAME [OPTIONS] [COMMAND [ARGUMENT ...]]\n"
    "Sends a command to a server and prints its reply. Without a command it reads commands: at a terminal with\n"
    "history, completion and hints, else a line each from standard input.\n"
    "\n"
    "Where to connect\n"
    "  -h HOST                     server's name or address (127.0.0.1)\n"
    "  -p PORT                     its port (6379)\n"
    "  -s SOCKET                   its unix socket, in place of host and port\n"
    "  -u URI                      redis://[[user:]password@]host[:port][/database], rediss:// for TLS,\n"
    "                              or keydb:// and keydbs://\n"
    "  -n NUMBER                   database\n"
    "  -a PASSWORD, --pass         password; other users of the machine may see it, so rather set\n"
    "                              REDISCLI_AUTH, which this option overrides\n"
    "  --user USER                 user, together with a password\n"
    "  --askpass                   ask for the password at the terminal\n"
    "  --no-auth-warning           say nothing about passwords on the command line\n"
    "  -2, -3                      speak RESP2 (as every connection begins) or RESP3\n"
    "  -c                          follow MOVED and ASK\n"
    "\n" LINK_USAGE_TLS "Commands\n"
    "  -r COUNT                    repeat the command; a negative count is for ever\n"
    "  -i SECONDS                  pause after each (0.1 is possible); also a cycle of --scan and --stat,\n"
    "                              and of 100 calls of --bigkeys, --memkeys and --hotkeys\n"
    "  -x                          standard input is the last argument\n"
    "  -X TAG                      standard input replaces the argument TAG\n"
    "  --quoted-input              arguments have quotes and escapes: '\"a\\x00b\"'\n"
    "  -e                          an error reply goes to standard error, and the exit code is 1\n"
    "  --eval FILE                 run the script in FILE; its keys follow, then a comma, then its arguments\n"
    "  --ldb, --ldb-sync-mode      debug that script; in sync mode its changes stay and the server waits\n"
    "\n"
    "Form of replies\n"
    "  --raw                       as they are (default where standard output is no terminal)\n"
    "  --no-raw                    for people\n"
    "  --csv, --json               as CSV; as JSON (speaks RESP3 unless -2 is given)\n"
    "  --quoted-json               as JSON in ASCII\n"
    "  -d TEXT                     between the elements of a raw reply (line break)\n"
    "  -D TEXT                     after a raw reply (line break)\n"
    "  --show-pushes yes|no        print messages that the server sends unasked (default at a terminal)\n"
    "\n"
    "Looking at a server\n"
    "  --stat                      a line of figures each second (-i)\n"
    "  --latency                   time of PING: without end at a terminal, else one line after a second (-i)\n"
    "  --latency-history           the same, a new line every 15 seconds (-i)\n"
    "  --latency-dist              the distribution as a row of colours; --mono: of greys\n"
    "  --intrinsic-latency SECONDS longest time this machine let a running program wait\n"
    "  --scan                      names of keys\n"
    "  --bigkeys                   largest keys of each type by elements\n"
    "  --memkeys                   by memory; --memkeys-samples COUNT elements of each are looked at\n"
    "  --hotkeys                   most used keys, with an LFU policy of maxmemory\n"
    "  --pattern GLOB              only keys that match; --quoted-pattern: with quotes and escapes\n"
    "  --count NUMBER              COUNT of each SCAN\n"
    "  --lru-test COUNT            a cache of so many keys, 80 % of the requests for 20 % of them\n"
    "\n"
    "Moving and comparing data\n"
    "  --pipe                      send standard input, which is protocol or lines of commands\n"
    "  --pipe-timeout SECONDS      longest wait for its last replies (30; 0: for ever)\n"
    "  --rdb FILE                  fetch a snapshot; - is standard output\n"
    "  --functions-rdb FILE        the same, only functions\n"
    "  --replica                   print what a replica is sent\n"
    "  --compare HOST:PORT         compare the keys of two servers; the other one may be a URI. Exit code 0:\n"
    "                              equal, 1: they differ, 2: it was not possible\n"
    "  --rate KEYS                 at most so many keys a second (10000; 0: no limit)\n"
    "\n"
    "  --cluster ...               comes with cluster mode\n"
    "  --verbose                   say more\n"
    "  --help, --version\n"
    "\n"
    "Examples\n"
    "  NAME -x SET page < page.html\n"
    "  NAME -r 100 -i 1 INFO | grep used_memory_human:\n"
    "  NAME --eval limit.lua visits:1 , 10 60\n"
    "  NAME --scan --pattern 'session:*'\n"
    "  NAME -D '' --raw DUMP k | NAME -X V RESTORE copy 0 V\n"
    "  NAME -h here --compare there:6379\n";

void options_usage(const struct options *options, struct buffer *out)
{
    struct slice rest = slice_make(text, sizeof(text) - 1);

    buffer_printf(out, "%s %s\n\n", options->name, KEYDB_VERSION);
    for (;;) {
        const char *mark = memmem(rest.data, rest.size, "NAME ", 5);

        if (mark == NULL)
            break;
        buffer_append(out, rest.data, (size_t)(mark - rest.data));
        buffer_printf(out, "%s ", options->name);
        rest = slice_skip(rest, (size_t)(mark - rest.data) + 5);
    }
    buffer_append_slice(out, rest);
}
