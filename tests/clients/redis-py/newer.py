"""redis-py of 2026: the methods it has for commands and options that are newer than Redis 7.4, in RESP2 and RESP3; see
../run. What it makes of a reply is compared with what was written, by hand."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "common"))

import redis    # noqa: E402
from redis.commands.core import DataPersistOptions, HashDataPersistOptions, HotkeysMetricsTypes     # noqa: E402

from report import expect, run    # noqa: E402

PORT = int(os.environ["PORT"])


def scenario(body):
    """The scenario once for each protocol, with a client and a key of its own."""
    def both():
        for protocol in (2, 3):
            client = redis.Redis(port=PORT, socket_timeout=30, protocol=protocol, decode_responses=True)
            key = "newer:{%s}:%d" % (body.__name__, protocol)
            client.delete(*[key + end for end in ("", ":a", ":b", ":c")])
            body(client, key)
            client.close()
    both.__name__ = body.__name__
    return both


def refused(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except redis.ResponseError as problem:
        return str(problem)
    raise AssertionError("nothing was refused")


def within(got, least, most):
    if not least <= got <= most:
        raise AssertionError("%r is not from %r to %r" % (got, least, most))


@scenario
def strings(client, key):
    expect(client.digest(key), None)
    expect(client.set(key, "one", ifne="other"), True)
    expect(client.digest(key), client.digest_local(b"one"))
    expect(client.set(key, "two", ifeq="nothing"), None)
    expect(client.set(key, "two", ifeq="one", get=True), "one")
    expect(client.set(key, "three", ifdeq=client.digest_local(b"two"), ex=100), True)
    within(client.ttl(key), 90, 100)
    expect(client.set(key, "four", ifdne=client.digest_local(b"three")), None)
    expect(client.delex(key, ifeq="two"), 0)
    expect(client.delex(key, ifdne=client.digest_local(b"three")), 0)
    expect(client.delex(key, ifeq="three"), 1)
    expect(client.delex(key), 0)
    expect(client.msetex({key: 1, key + ":a": 2}, ex=100, data_persist_option=DataPersistOptions.NX), 1)
    expect(client.msetex({key: 3, key + ":b": 4}, data_persist_option=DataPersistOptions.NX), 0)
    expect(client.msetex({key: 5, key + ":a": 6}, keepttl=True, data_persist_option=DataPersistOptions.XX), 1)
    expect(client.mget(key, key + ":a", key + ":b"), ["5", "6", None])
    within(client.ttl(key + ":a"), 90, 100)


@scenario
def counters(client, key):
    expect(client.increx(key), [1, 1])
    expect(client.increx(key, byint=10, ubound=8, saturate=True), [8, 7])
    expect(client.increx(key, byint=10, ubound=8), [8, 0])
    expect(client.increx(key, byint=-3, ex=100), [5, -3])
    within(client.ttl(key), 90, 100)
    expect(client.increx(key, byint=1, ex=1000, enx=True), [6, 1])
    within(client.ttl(key), 90, 100)
    expect(client.increx(key, byint=1, persist=True), [7, 1])
    expect(client.ttl(key), -1)
    expect([float(number) for number in client.increx(key, byfloat=0.5)], [7.5, 0.5])


@scenario
def hashes(client, key):
    expect(client.hsetex(key, mapping={"a": "1", "b": "2"}, ex=100), 1)
    expect(client.hsetex(key, "a", "3", data_persist_option=HashDataPersistOptions.FNX), 0)
    expect(client.hsetex(key, "a", "3", data_persist_option=HashDataPersistOptions.FXX, keepttl=True), 1)
    expect([90 < left <= 100 for left in client.httl(key, "a", "b")], [True, True])
    expect(client.hgetex(key, "a", "none", persist=True), ["3", None])
    expect(client.httl(key, "a", "none"), [-1, -2])
    expect(client.hgetex(key, "a", px=100000), ["3"])
    within(client.hpttl(key, "a")[0], 90000, 100000)
    expect(client.hgetdel(key, "a", "none"), ["3", None])
    expect(client.hgetdel(key, "b"), ["2"])
    expect(client.exists(key), 0)


@scenario
def lists(client, key):
    client.rpush(key, *"abcdef")
    expect(client.lmovem(key, key + ":a", "LEFT", "RIGHT", 2, "COUNT", "BULK"), ["a", "b"])
    expect(client.lmovem(key, key + ":a", "LEFT", "RIGHT", 9, "EXACTLY", "OBO"), None)
    expect(client.lmovem(key, key + ":a", "RIGHT", "LEFT", 2, "EXACTLY", "BULK"), ["e", "f"])
    expect(client.lrange(key + ":a", 0, -1), ["e", "f", "a", "b"])
    expect(client.blmovem(key, key + ":a", 1, "LEFT", "LEFT", 2, "COUNT", "OBO"), ["d", "c"])
    expect(client.blmovem(key, key + ":a", 0.01, "LEFT", "LEFT", 1, "COUNT", "OBO"), None)
    expect(client.lrange(key + ":a", 0, -1), list("dcefab"))


@scenario
def sets(client, key):
    client.sadd(key, *range(100))
    client.sadd(key + ":a", *range(50, 150))
    expect(client.sdiffcard(2, [key, key + ":a"]), 50)
    expect(client.sdiffcard(2, [key, key + ":a"], limit=7), 7)
    expect(client.sunioncard(2, [key, key + ":a"]), 150)
    expect(client.sunioncard(2, [key, key + ":a"], limit=9), 9)
    within(client.sunioncard(2, [key, key + ":a"], approx=True), 140, 160)
    client.zadd(key + ":b", {"x": 10, "y": 20})
    client.zadd(key + ":c", {"y": 30, "z": 40})
    keys = {key + ":b": 2, key + ":c": 3}
    expect(dict(client.zunion(keys, aggregate="COUNT", withscores=True)), {"x": 2.0, "y": 5.0, "z": 3.0})
    expect(dict(client.zinter(keys, aggregate="COUNT", withscores=True)), {"y": 5.0})
    expect(client.zunionstore(key, keys, aggregate="COUNT"), 3)
    expect(client.zscore(key, "y"), 5.0)


@scenario
def bits(client, key):
    client.set(key + ":a", b"\xf0")
    client.set(key + ":b", b"\x3c")
    for name, wanted in (("DIFF", 0xc0), ("DIFF1", 0x0c), ("ANDOR", 0x30), ("ONE", 0xcc)):
        expect(client.bitop(name, key, key + ":a", key + ":b"), 1)
        expect(client.bitfield(key).get("u8", 0).execute(), [wanted])


@scenario
def references(client, key):
    for number in range(1, 6):
        client.xadd(key, {"f": number}, id="%d-0" % number)
    client.xgroup_create(key, "g", id="0")
    client.xreadgroup("g", "c", {key: ">"}, count=3)
    expect(client.xdelex(key, "1-0", "4-0", "9-0", ref_policy="ACKED"), [2, 2, -1])
    expect(client.xackdel(key, "g", "1-0", "9-0", ref_policy="ACKED"), [1, -1])
    expect(client.xdelex(key, "2-0", ref_policy="DELREF"), [1])
    expect(client.xpending(key, "g")["pending"], 1)
    expect(client.xdelex(key, "3-0"), [1])
    expect(client.xpending(key, "g")["pending"], 1)
    expect(client.xtrim(key, maxlen=0, approximate=False, ref_policy="ACKED"), 0)
    expect(client.xtrim(key, maxlen=0, approximate=False, ref_policy="DELREF"), 2)
    client.xadd(key, {"f": 1}, id="6-0", maxlen=1, approximate=False, ref_policy="DELREF")
    expect(client.xlen(key), 1)


@scenario
def amounts(client, key):
    for number in range(1, 6):
        for name in (key, key + ":a"):
            client.xadd(name, {"f": "x" * 100}, id="%d-0" % number)
    both = {key: "0", key + ":a": "0"}
    counts = (lambda reply: [len(entries) for entries in of_streams(reply)])
    expect(counts(client.xread(both, count=4, max_count=6)), [4, 2])
    expect(counts(client.xread(both, max_size=1)), [1])
    client.xgroup_create(key, "g", id="0")
    client.xgroup_create(key + ":a", "g", id="0")
    new = {key: ">", key + ":a": ">"}
    expect(counts(client.xreadgroup("g", "c", new, count=5, max_count=7)), [5, 2])
    expect([client.xpending(name, "g")["pending"] for name in both], [5, 2])


def of_streams(reply):
    """Lists of entries, as either protocol's reply has them."""
    values = reply.values() if isinstance(reply, dict) else [entries for _, entries in reply]
    return [entries[0] if len(entries) == 1 and isinstance(entries[0], list) else entries for entries in values]


@scenario
def claims(client, key):
    for number in range(1, 4):
        client.xadd(key, {"f": number}, id="%d-0" % number)
    client.xgroup_create(key, "g", id="0")
    client.xreadgroup("g", "first", {key: ">"}, count=2)
    entries = of_streams(client.xreadgroup("g", "second", {key: ">"}, claim_min_idle_time=0))[0]
    expect([entry[0] for entry in entries], ["1-0", "2-0", "3-0"])
    expect([entry[1] for entry in entries], [{"f": "1"}, {"f": "2"}, {"f": "3"}])
    expect([int(entry[3]) for entry in entries], [1, 1, 0])
    expect(client.xpending_range(key, "g", "-", "+", 9, "second")[0]["times_delivered"], 2)
    expect(client.xnack(key, "g", "SILENT", "1-0", "9-0"), 1)
    expect(client.xnack(key, "g", "FAIL", "2-0"), 1)
    expect(client.xnack(key, "g", "FATAL", "3-0", retrycount=7), 1)
    rows = client.xpending_range(key, "g", "-", "+", 9)
    expect([(row["message_id"], row["consumer"], row["times_delivered"]) for row in rows],
           [("1-0", "", 1), ("2-0", "", 2), ("3-0", "", 7)])
    entries = of_streams(client.xreadgroup("g", "third", {key: ">"}, claim_min_idle_time=100000))[0]
    expect([entry[0] for entry in entries], ["1-0", "2-0", "3-0"])


@scenario
def producers(client, key):
    first = client.xadd(key, {"f": "1"}, idmp=("p", b"i"))
    expect(client.xadd(key, {"f": "2"}, idmp=("p", b"i")), first)
    second = client.xadd(key, {"f": "3", "g": "4"}, idmpauto="p")
    expect(client.xadd(key, {"g": "4", "f": "3"}, idmpauto="p"), second)
    expect(client.xlen(key), 2)
    facts = client.xinfo_stream(key)
    expect([facts[name] for name in ("pids-tracked", "iids-tracked", "iids-added", "iids-duplicates")], [1, 2, 2, 2])
    expect(client.xcfgset(key, idmp_duration=200, idmp_maxsize=5), "OK")
    facts = client.xinfo_stream(key)
    expect([facts[name] for name in ("idmp-duration", "idmp-maxsize", "iids-tracked")], [200, 5, 0])
    expect(refused(client.execute_command, "XCFGSET", key, "IDMP-DURATION", 0),
           "IDMP-DURATION must be between 1 and 86400 seconds")


@scenario
def hotkeys(client, key):
    client.hotkeys_start([HotkeysMetricsTypes.CPU, HotkeysMetricsTypes.NET], count=5)
    for _ in range(200):
        client.set(key, "x" * 1000)
    facts = client.hotkeys_get()
    facts = facts[0] if isinstance(facts, list) else facts
    expect(facts[as_given(facts, "tracking-active")], 1)
    expect(key in str(facts[as_given(facts, "by-net-bytes")]), True)
    client.hotkeys_stop()
    client.hotkeys_reset()
    expect(client.execute_command("HOTKEYS", "GET"), None)     # hotkeys_get cannot read the null


def as_given(facts, name):
    return name if name in facts else name.encode()


@scenario
def slow_log(client, key):
    old = client.config_get("slowlog-log-slower-than")
    client.config_set("slowlog-log-slower-than", 0)
    client.set(key, "x" * 1000)
    expect([entry for entry in client.slowlog_get(5) if key in str(entry["command"])] != [], True)
    client.config_set("slowlog-log-slower-than", old["slowlog-log-slower-than"])


if __name__ == "__main__":
    run(strings, counters, hashes, lists, sets, bits, references, amounts, claims, producers, hotkeys, slow_log)
