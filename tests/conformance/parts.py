"""Guesses which part of the server a failing test waits for, from what the server said. A person reads it over."""
import re

COMMANDS = {
    "types": "lpush rpush lpushx rpushx lrange llen lpop rpop lindex lset linsert lrem ltrim blpop brpop brpoplpush "
             "rpoplpush blmove blmpop lmove lmpop lpos sadd srem smembers sismember spop scard smove sscan sinter "
             "sunion sdiff srandmember hset hmset hget hgetall hdel hscan hlen hincrby zadd zrange zscan zrem zscore "
             "zcard zunionstore bzpopmin bzpopmax bzmpop xadd xread xgroup xreadgroup xrange xlen pfadd pfcount "
             "pfmerge pfdebug setbit getbit bitcount bitop bitfield geoadd sort sort_ro dump restore",
    "scripts": "eval eval_ro evalsha function fcall fcall_ro script",
    "replication": "replicaof slaveof sync psync wait role replconf failover migrate",
    "pubsub": "subscribe psubscribe publish ssubscribe spublish pubsub",
    "persistence": "bgsave save bgrewriteaof lastsave",
    "acl": "acl",
    "cluster": "cluster asking readonly",
    "modules": "module",
}
PARTS = {command: part for part, commands in COMMANDS.items() for command in commands.split()}
SIGNS = [
    (r"unknown subcommand '(?:tracking|caching|trackinginfo)'", "tracking", "CLIENT TRACKING"),
    (r"replication_stream", "replication", "SYNC"),
    (r"appendonly|loadaof|Can't start the Redis server.*append", "persistence", "the append-only file"),
    (r"rdb-key-save-delay|key-load-delay|trying to save|rdb save", "persistence", "snapshots"),
    (r"no blocked clients", "types", "blocking commands"),
    (r"EXECABORT\*BUSY", "scripts", "a script that runs too long"),
    (r"NOREPLICAS", "replication", "min-replicas-to-write"),
    (r"'debug\|? ?(?:reload|loadaof)|debug reload", "persistence", "DEBUG RELOAD"),
]


def guess(why):
    """(part, reason), or None where nothing speaks for a part that is still to come."""
    found = re.search(r"unknown command '(\w+)'", why)
    if found and found.group(1).lower() in PARTS:
        command = found.group(1).lower()
        return PARTS[command], command.upper()
    for pattern, part, reason in SIGNS:
        if re.search(pattern, why, re.S | re.I):
            return part, reason
    return None
