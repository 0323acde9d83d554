"""A client of failover.py, by redis-py. Writes PREFIX1, PREFIX2 ... to the master that the Sentinel names, each with
WAIT, until its input ends. Says "ack NUMBER REPLICAS TIME" or "error TIME WHAT" for each.

    failover_writer.py SENTINEL-PORT PREFIX REPLICAS
"""
import sys
import threading
import time

import redis
from redis.sentinel import Sentinel

port, prefix, replicas = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
ended = threading.Event()


def wait_for_end():
    sys.stdin.read()
    ended.set()


threading.Thread(target=wait_for_end, daemon=True).start()
sentinel = Sentinel([("127.0.0.1", port)], socket_timeout=0.5)
master = sentinel.master_for("group", socket_timeout=1.5, socket_connect_timeout=0.5)
number = 0
while not ended.is_set():
    number += 1
    try:
        with master.pipeline(transaction=False) as pipe:
            pipe.set(prefix + str(number), number)
            pipe.execute_command("WAIT", replicas, 500)
            _, count = pipe.execute()
        print("ack", number, count, time.time(), flush=True)
    except (redis.RedisError, OSError) as problem:
        print("error", time.time(), type(problem).__name__, str(problem)[:80], flush=True)
        time.sleep(0.02)
    time.sleep(0.001)
