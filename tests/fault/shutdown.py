"""Rounds of an orderly end under load: what was acknowledged before the end is there after the next start, once each.

Sixteen clients count without pause, some pipelined, while the server is asked to end in one of the ways. What is found
for a counter is at least its last acknowledged value and at most what was sent. SHUTDOWN ABORT takes an end back: the
server goes on, and nothing is lost when it ends later."""
import os
import shutil
import signal
import threading
import time

from server import Client, Error, Server

CLIENTS = 16
AOF = {"appendonly": "yes", "save": ""}
WAYS = {
    "SIGTERM, RDB": {"save": "3600 1"},
    "SHUTDOWN, RDB": {"save": "3600 1"},
    "SHUTDOWN SAVE": {"save": ""},
    "SIGTERM, AOF": {**AOF, "appendfsync": "everysec"},
    "SHUTDOWN NOSAVE, AOF everysec": {**AOF, "appendfsync": "everysec"},
    "SHUTDOWN NOSAVE, AOF always": {**AOF, "appendfsync": "always"},
    "SHUTDOWN, AOF and RDB": {"appendonly": "yes", "appendfsync": "everysec", "save": "3600 1"},
    "SHUTDOWN ABORT, then SHUTDOWN": {**AOF, "appendfsync": "everysec"},
}


class Counter(threading.Thread):
    """One client that counts until the server is gone."""

    def __init__(self, index, port):
        super().__init__(daemon=True)
        self.key = f"counter:{index}"
        self.depth = (1, 1, 8, 64)[index % 4]
        self.script = index % 8 == 5
        self.client = Client(port)
        self.sent = self.acked = 0
        self.problem = None

    def run(self):
        words = ("INCR", self.key)
        if self.script:
            words = ("EVAL", "return redis.call('incr', KEYS[1])", 1, self.key)
        try:
            while True:
                for _ in range(self.depth):
                    self.sent += 1
                    self.client.send(*words)
                for _ in range(self.depth):
                    reply = self.client.read()
                    if reply != self.acked + 1:
                        self.problem = f"{self.key}: {self.acked} is followed by {reply!r}"
                        return
                    self.acked = reply
        except (OSError, ConnectionError):
            pass


def end_of(server, way):
    if way.startswith("SIGTERM"):
        server.process.send_signal(signal.SIGTERM)
    elif way.startswith("SHUTDOWN ABORT"):
        operator = Client(server.port)
        operator.call("DEBUG", "PAUSE-CRON", "1")
        server.process.send_signal(signal.SIGTERM)
        aborted = False
        while not aborted:
            try:
                aborted = operator.call("SHUTDOWN", "ABORT") == "OK"
            except Error:
                pass  # the signal has not come yet
        operator.call("DEBUG", "PAUSE-CRON", "0")
        operator.call("PING")
        operator.send("SHUTDOWN")
    else:
        Client(server.port).send(*way.split(",")[0].split())
    return server.process.wait(60)


def one_round(binary, folder, way, random):
    """The problem, or None."""
    options = {**WAYS[way], "server-threads": "4", "min-clients-per-thread": "1", "enable-debug-command": "yes"}
    server = Server(binary, folder, folder + ".log", options)
    client = server.wait_loaded()
    if client is None:
        return "the server did not start:\n" + server.log_tail()
    counters = [Counter(index, server.port) for index in range(CLIENTS)]
    for counter in counters:
        counter.start()
    enough = random.randrange(1, 400)
    while min(counter.acked for counter in counters) < enough and all(counter.is_alive() for counter in counters):
        time.sleep(0.001)
    code = end_of(server, way)
    for counter in counters:
        counter.join(30)
    server.out.close()
    if code != 0:
        return f"exit code {code}:\n" + server.log_tail()
    server = Server(binary, folder, folder + ".log", options)
    client = server.wait_loaded()
    if client is None:
        return "the server did not start again:\n" + server.log_tail()
    problems = [counter.problem for counter in counters if counter.problem]
    for counter in counters:
        found = int(client.call("GET", counter.key) or 0)
        if not counter.acked <= found <= counter.sent:
            problems.append(f"{counter.key}: acknowledged {counter.acked}, found {found}, sent {counter.sent}")
    client.close()
    server.stop()
    return "; ".join(problems) or None


def shutdown_rounds(binary, folder, count, random, report):
    for way in WAYS:
        for number in range(count):
            where = os.path.join(folder, "shutdown")
            os.makedirs(where)
            report(f"{way}, round {number}", one_round(binary, where, way, random))
            shutil.rmtree(where)
