"""redis-py: a rate limiter in Lua, locks, and its cache of what the server tracks; see ../run."""
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "common"))

import redis    # noqa: E402
from redis.cache import CacheConfig     # noqa: E402
from redis.connection import CacheProxyConnection       # noqa: E402

from report import expect, run, wait_for    # noqa: E402

PORT = int(os.environ["PORT"])

# A sliding window: at most ARGV[2] calls within the last ARGV[1] microseconds. Replies whether this one is allowed,
# how many are left, and what number it got.
LIMITER = """
local now = redis.call('TIME')
local us = now[1] * 1000000 + now[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', us - ARGV[1])
local used = redis.call('ZCARD', KEYS[1])
if used >= tonumber(ARGV[2]) then
    return {0, 0, redis.error_reply('LIMIT').err}
end
local number = redis.call('INCR', KEYS[2])
redis.call('ZADD', KEYS[1], us, number)
redis.call('PEXPIRE', KEYS[1], math.ceil(ARGV[1] / 1000))
return {1, ARGV[2] - used - 1, tostring(number)}
"""


def plain(**options):
    return redis.Redis(port=PORT, socket_timeout=30, **options)


def limiter():
    """Eight threads at once: exactly as many calls as allowed get through, also after the scripts were flushed."""
    client = plain()
    client.delete("py:window", "py:number")
    client.script_flush()
    script = client.register_script(LIMITER)
    allowed = []

    def ask():
        mine = plain()
        for turn in range(25):
            if turn == 12:
                mine.script_flush()
            reply = script(keys=["py:window", "py:number"], args=[600 * 1000000, 50], client=mine)
            if reply[0]:
                allowed.append((reply[1], int(reply[2])))
            else:
                expect(reply[2], b"LIMIT")

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(sorted(allowed), sorted((50 - number, number) for number in range(1, 51)))
    expect(client.zcard("py:window"), 50)
    expect(script(keys=["py:window", "py:number"], args=[1, 50])[0], 1)     # the window has passed
    expect(client.zcard("py:window"), 1)


def lock():
    """Guards a counter that is read and written by itself."""
    plain().set("py:counter", 0)

    def count():
        mine = plain()
        for _ in range(20):
            with mine.lock("py:lock", timeout=30, sleep=0.001):
                mine.set("py:counter", int(mine.get("py:counter")) + 1)

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client = plain()
    expect(client.get("py:counter"), b"120")
    held = client.lock("py:lock", timeout=30)
    expect(held.acquire(blocking=False), True)
    expect(client.lock("py:lock", timeout=30).acquire(blocking=False), False)
    expect(held.extend(30), True)
    client.delete("py:lock")
    try:
        held.release()
    except redis.exceptions.LockNotOwnedError:
        return
    raise AssertionError("released what was not held")


def caching():
    """What was read is kept until somebody changes it."""
    if plain().info("server")["redis_version"].startswith("7.0."):
        CacheProxyConnection.MIN_ALLOWED_VERSION = "7.0.0"      # redis-py wants 7.4; tracking is the same
    writer = plain()
    writer.mset({"py:a": 1, "py:b": 2})
    writer.hset("py:h", mapping={"f": 1})
    reader = plain(protocol=3, cache_config=CacheConfig(max_size=100))
    cache = reader.get_cache()

    def gets():
        return int(writer.info("commandstats").get("cmdstat_get", {"calls": 0})["calls"])

    expect([reader.get("py:a"), reader.mget("py:a", "py:b"), reader.hgetall("py:h")],
           [b"1", [b"1", b"2"], {b"f": b"1"}])
    expect(cache.size, 3)
    before = gets()
    for _ in range(50):
        expect(reader.get("py:a"), b"1")
    expect(gets(), before)
    writer.set("py:a", 10)
    wait_for(lambda: reader.get("py:a") == b"10", "the new value")
    expect(reader.mget("py:a", "py:b"), [b"10", b"2"])
    writer.eval("redis.call('HSET', KEYS[1], 'f', 2) redis.call('DEL', KEYS[2])", 2, "py:h", "py:b")
    wait_for(lambda: reader.hgetall("py:h") == {b"f": b"2"}, "what a script changed")
    expect(reader.mget("py:a", "py:b"), [b"10", None])
    writer.flushdb()
    wait_for(lambda: reader.get("py:a") is None, "the flush")
    reader.close()


run(limiter, lock, caching)
