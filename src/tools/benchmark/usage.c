#include "base/buffer.h"
#include "tools/benchmark/options.h"
#include "tools/link/usage.h"

#include <string.h>

/* NAME stands for the program's name. */
static const char text[] =
    "Usage: NAME [OPTIONS] [COMMAND ARGS...]\n"
    "Sends many commands to a server over many connections, and tells how many it answered a second and how long\n"
    "each took. Without a command it runs a series of tests.\n"
    "\n"
    "Where to connect\n"
    "  -h HOST                     server's name or address (127.0.0.1)\n"
    "  -p PORT                     its port (6379)\n"
    "  -s SOCKET                   its unix socket, in place of host and port\n"
    "  -u URI                      redis://[[user:]password@]host[:port][/database], rediss:// for TLS\n"
    "  -a PASSWORD                 password; other users of the machine may see it\n"
    "  --user USER                 user, together with a password\n"
    "  --dbnum NUMBER              database (0)\n"
    "  -3                          speak RESP3\n"
    "  --cluster                   spread the load over the masters of a cluster; keys of a command of your own\n"
    "                              need {tag} in them\n"
    "  --enable-tracking           CLIENT TRACKING on, before the run\n"
    "\n" LINK_USAGE_TLS "How much\n"
    "  -n REQUESTS                 of each test (100000)\n"
    "  --duration SECONDS          for so long, in place of -n\n"
    "  --warm-up SECONDS           before anything is counted\n"
    "  -c CLIENTS                  connections (50)\n"
    "  -P REQUESTS                 pipeline: sent together, before the first reply (1)\n"
    "  --threads NUMBER            threads of this program that share the connections\n"
    "  -k 0|1                      0: a new connection for each pipeline (1)\n"
    "  --rate NUMBER               so many requests a second, open loop: each is due at its time, and its latency\n"
    "                              counts from then, even if the server keeps it from being sent\n"
    "  -l                          run the tests again and again\n"
    "  -I                          only open the connections, and wait\n"
    "\n"
    "What\n"
    "  -t TEST,...                 only these tests: ping_inline ping_mbulk ping set get incr lpush rpush lpop rpop\n"
    "                              sadd hset spop zadd zpopmin lrange lrange_100 lrange_300 lrange_500 lrange_600\n"
    "                              mset, and if they are named xadd mget hmset hmget\n"
    "  -d BYTES, -d LEAST-MOST     size of values (3); of a range each request takes another one\n"
    "  -r KEYS                     numbers from 0 to KEYS - 1 in the tests' keys, members and fields, and for\n"
    "                              __rand_int__ in the words of a command; without it all are the same\n"
    "  --distribution WHICH        of these numbers: uniform, sequential, gaussian[:KEYS], zipf[:EXPONENT],\n"
    "                              latest[:EXPONENT]\n"
    "  --key-size BYTES, --key-size LEAST-MOST\n"
    "                              lengthens the names of keys with such numbers; a key keeps its size\n"
    "  --ratio SETS:GETS           both at once, in this proportion\n"
    "  --mix 'N COMMAND; ...'      several commands at once, each with its share\n"
    "  --ycsb load|A|B|C|D|E|F     a workload of YCSB on -r records, hashes of ten fields of 100 bytes (or -d);\n"
    "                              load writes them\n"
    "  -x                          standard input is the last word of the command\n"
    "  --seed NUMBER               other random numbers\n"
    "  --go-on                     count error replies; without it the first one ends the run\n"
    "\n"
    "What it prints\n"
    "  -q                          one line for each test\n"
    "  --csv                       as CSV\n"
    "  --table                     as a table\n"
    "  --precision DIGITS          significant ones of latencies, 1 to 4 (3)\n"
    "  --json FILE                 results as JSON, too; - is standard output\n"
    "  --svg FILE                  a picture of the latencies by percentile\n"
    "\n"
    "  --diagnose                  raises the load step by step and says what holds it back: the server, this\n"
    "                              program, the machine or the way between\n"
    "  --help, --version\n"
    "\n"
    "Examples\n"
    "  NAME -t set,get -n 1000000 -r 1000000 -d 64\n"
    "  NAME -P 32 -c 100 --threads 4 --duration 30 -t set\n"
    "  NAME --rate 50000 --duration 60 --ratio 1:9 -r 1000000 --distribution zipf\n"
    "  NAME -r 10000 lpush mylist __rand_int__\n";

void bench_usage(const struct bench_options *options, struct buffer *out)
{
    const char *at = text, *mark;

    while ((mark = strstr(at, "NAME")) != NULL) {
        buffer_append(out, at, (size_t)(mark - at));
        buffer_append_text(out, options->name);
        at = mark + 4;
    }
    buffer_append_text(out, at);
}
