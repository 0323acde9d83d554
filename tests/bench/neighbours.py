#!/usr/bin/env python3
"""What clients feel of each other: latencies of some while others do what is hard on them.

    neighbours.py --server BIN [--server BIN2 ...] [--seconds N] [--threads N] [CASE ...]

    exporter   GETs of other keys beside a script of 100 ms on a key of its own, while an exporter asks CONFIG GET *,
               INFO and SLOWLOG GET each second (and, before that, while it does not)
    parked     PINGs beside 4,000 commands that wait for one stripe and 500 messages a second
    movers     writes of a key in whose stripe 1,500 BLMOVE with targets of their own wait for other keys
    many       MGET of 2,000 keys beside clients that write to the same keys without pause

Who asks at an interval counts from when it would have asked, so that a long wait is not counted once only; others ask
again when they have their reply. Times are in milliseconds. With several servers each case is run with each
in turn, so that figures can be compared.
"""
import argparse
import os
import select
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "differential"))

from harness import Server, encode      # noqa: E402

SLOW = """local function now() local t = redis.call('time') return t[1] * 1000000 + t[2] end
local start = now() while now() < start + 100000 do end return 1"""


class Asker(threading.Thread):
    """Sends requests of `count` commands in turn, each after the replies to the one before; keeps their times."""

    def __init__(self, connection, requests, interval=0.0, count=1):
        super().__init__(daemon=True)
        self.connection, self.requests, self.interval, self.count = connection, requests, interval, count
        self.times, self.stopped = [], False

    def run(self):
        begin, index = time.monotonic(), 0
        while not self.stopped:
            self.connection.exchange(self.requests[index % len(self.requests)], self.count)
            now = time.monotonic()
            self.times.append(now - begin)
            index += 1
            begin = begin + self.interval if self.interval else now
            if begin > now:
                time.sleep(begin - now)


def run(askers, seconds):
    for asker in askers:
        asker.start()
    time.sleep(seconds)
    for asker in askers:
        asker.stopped = True
    for asker in askers:
        asker.join()


def show(what, *askers):
    times = sorted(t * 1000 for asker in askers for t in asker.times)
    if not times:
        print("    %-34s none came back" % what)
        return
    print("    %-34s %7d  mean %8.3f  p50 %8.3f  p99 %8.3f  worst %8.3f" % (
        what, len(times), sum(times) / len(times), times[len(times) // 2], times[len(times) * 99 // 100], times[-1]))


def start(binary, options):
    return Server(binary, ["--min-clients-per-thread", 0, "--enable-debug-command", "yes", "--maxclients", 10000],
                  options.threads)


def spread(server, count):
    """Connections, `count` on each worker."""
    workers = {}
    while len(workers) < server.threads_wanted or min(len(found) for found in workers.values()) < count:
        connection = server.connect()
        text = connection.command("CLIENT", "INFO") and connection.command("INFO", "clients")[1].decode()
        worker = int(text.split("current_client_thread:")[1].split()[0])
        workers.setdefault(worker, []).append(connection)
    return [[found for found in workers[worker]][:count] for worker in sorted(workers)]


def exporter(binary, options):
    with start(binary, options) as server:
        server.threads_wanted = options.threads
        by_worker = spread(server, 3)
        admin = by_worker[0][0]
        for i in range(1000):
            admin.command("SET", "key:%d" % i, "x")
        for asks in (False, True):
            slow = Asker(by_worker[-1][0 if asks else 1], [encode(["EVAL", SLOW, "1", "slow"])])
            gets = [Asker(connections[1 + asks], [encode(["GET", "key:%d" % i]) for i in range(1000)], 0.002)
                    for connections in by_worker[:-1]]
            asked = [["CONFIG", "GET", "*"], ["INFO"], ["SLOWLOG", "GET"]]
            others = [Asker(admin, [b"".join(encode(words) for words in asked)], 1.0, len(asked))]
            run([slow, *gets, *(others if asks else [])], options.seconds)
            show("GET" + (" beside an exporter" if asks else ""), *gets)
        show("exporter", *others)


def parked(binary, options):
    with start(binary, options) as server:
        server.threads_wanted = options.threads
        by_worker = spread(server, 3)
        holder, publisher = by_worker[0][0], by_worker[0][1]
        subscribers = [connections[2] for connections in by_worker]
        for subscriber in subscribers:
            subscriber.command("SUBSCRIBE", "news")
        pings = [Asker(server.connect(), [encode(["PING"])], 0.002) for _ in range(options.threads)]
        holder.sock.sendall(encode(["DEBUG", "HOLD", "held", str(options.seconds * 2 + 20)]))
        time.sleep(0.5)
        crowd = [server.connect() for _ in range(4000)]
        for client in crowd:
            client.sock.sendall(encode(["GET", "held"]))
        time.sleep(2)
        publish = Asker(publisher, [encode(["PUBLISH", "news", "x"])], 0.002)
        drain = threading.Thread(target=read_away, args=(subscribers,), daemon=True)
        drain.start()
        run([*pings, publish], options.seconds)
        show("PING", *pings)
        show("PUBLISH", publish)
        begin = time.monotonic()
        publisher.command("DEBUG", "RELEASE", "hold")
        for client in crowd:
            client.exchange(b"", 1)
        print("    all 4,000 were answered %.0f ms after the release" % ((time.monotonic() - begin) * 1000))


def read_away(connections):
    poll = select.epoll()
    by_number = {connection.sock.fileno(): connection for connection in connections}
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    while True:
        for number, _ in poll.poll(1):
            try:
                if not by_number[number].sock.recv(1 << 16):
                    poll.unregister(number)
            except OSError:
                return


def movers(binary, options):
    with start(binary, options) as server:
        server.threads_wanted = options.threads
        base = Asker(server.connect(), [encode(["SET", "wanted", "x"]), encode(["DEL", "wanted"])])
        run([base], options.seconds)
        show("SET and DEL, nobody waits", base)
        waiting = [server.connect() for _ in range(1500)]
        for index, client in enumerate(waiting):
            client.sock.sendall(encode(["BLMOVE", "wanted" if index % 2 else "wanted-%d" % index, "target-%d" % index,
                                        "LEFT", "RIGHT", "0"]))
        time.sleep(1)
        beside = Asker(server.connect(), [encode(["SET", "wanted", "x"]), encode(["DEL", "wanted"])])
        run([beside], options.seconds)
        show("SET and DEL of the key waited for", beside)
        others = Asker(server.connect(), [encode(["SET", "key:%d" % i, "x"]) for i in range(5000)])
        run([others], options.seconds)
        show("SET of 5,000 other keys", others)


def many(binary, options):
    with start(binary, options) as server:
        server.threads_wanted = options.threads
        keys = ["key:%d" % i for i in range(2000)]
        admin = server.connect()
        for key in keys:
            admin.command("SET", key, "x")
        by_worker = spread(server, 3)
        mget = Asker(by_worker[0][0], [encode(["MGET", *keys])])
        batches = [b"".join(encode(["SET", keys[(i * 37 + k * 101) % 2000], "x" * 64]) for k in range(16))
                   for i in range(200)]
        writers = [Asker(connections[1 + k], batches, 0, 16) for connections in by_worker for k in range(2)]
        run(writers, options.seconds)
        show("16 SETs, alone", *writers)
        writers = [Asker(connections[1 + k], batches, 0, 16) for connections in by_worker for k in range(2)]
        run([mget, *writers], options.seconds)
        show("MGET of 2,000 beside writers", mget)
        show("16 SETs beside MGET", *writers)


CASES = {"exporter": exporter, "parked": parked, "movers": movers, "many": many}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_args()
    for case in options.cases or CASES:
        for binary in options.server:
            print("%s: %s" % (case, binary))
            CASES[case](binary, options)


if __name__ == "__main__":
    main()
