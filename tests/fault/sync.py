"""Replicas with an append-only file that are killed, or lose power, around a full sync: their files have the data from
before the sync, whole, or that of the master, never a mixture."""
import os
import shutil
import threading
import time

from disk import Disk
from server import Client, Error, Server

KEYS = 3000


class Mixed(Exception):
    """The data is neither the old nor the new."""


class Counter(threading.Thread):
    """Writes to the master: what the replica gets behind the snapshot."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.client = Client(port)
        self.sent = 0
        self.ends = False
        self.start()

    def run(self):
        while not self.ends:
            self.sent += 1
            self.client.call("SET", "number", self.sent)
            time.sleep(0.001)
        self.client.close()


class Replica:
    def __init__(self, binary, folder, random):
        self.binary = binary
        self.random = random
        self.data = os.path.join(folder, "replica")
        self.log = os.path.join(folder, "replica.log")
        shutil.rmtree(self.data, ignore_errors=True)
        os.makedirs(self.data)

    def start(self, environment, slow):
        options = {"appendonly": "yes", "appendfsync": "always", "save": "", "server-threads": "4",
                   "aof-use-rdb-preamble": self.random.choice(("yes", "no")),
                   "repl-diskless-load": self.random.choice(("disabled", "swapdb", "on-empty-db"))}
        if slow:
            options.update({"key-load-delay": self.random.choice(("0", "20", "-5")),
                            "rdb-key-save-delay": self.random.choice(("0", "20", "100"))})
        server = Server(self.binary, self.data, self.log, options, environment)
        client = server.wait_loaded()
        if client is None:
            raise Mixed("the replica does not start:\n" + server.log_tail())
        return server, client

    def round(self, number, master, power_loss):
        disk = Disk(self.binary, self.data) if power_loss else None
        server, client = self.start(disk.environment if disk else {}, True)
        counter = None
        try:
            client.call("SET", "mine", number)
            old = (client.call("GET", "owner"), str(number), client.call("DBSIZE"))
            counter = Counter(master.port)
            client.call("REPLICAOF", "127.0.0.1", master.port)
            time.sleep(self.random.choice((0.1, 0.5, 1.5)) * self.random.random())
        finally:
            server.kill()
            if counter is not None:
                counter.ends = True
                counter.join()
        if power_loss:
            disk.cut_power(self.random, self.random.random() < 0.5)
        return self.verify(old, f"master {number}", counter.sent)

    def verify(self, old, owner, sent):
        """Which data it is."""
        server, client = self.start({}, False)
        try:
            found = (client.call("GET", "owner"), client.call("GET", "mine"), client.call("DBSIZE"))
            last = int(client.call("GET", "number") or 0)
            if found == old:
                return "old"
            if found == (owner, None, KEYS + 2) and last <= sent:
                return "new"
            raise Mixed(f"found {found}, last number {last}; old {old}, new {(owner, None, KEYS + 2)}, sent {sent}")
        finally:
            client.close()
            server.kill()


def sync_rounds(binary, folder, count, random, report):
    """`count` rounds with one replica; every other one loses power. Calls report(name, problem)."""
    os.makedirs(os.path.join(folder, "master"), exist_ok=True)
    master = Server(binary, os.path.join(folder, "master"), os.path.join(folder, "master.log"),
                    {"save": "", "repl-diskless-sync-delay": "0", "enable-debug-command": "yes"})
    replica = Replica(binary, folder, random)
    seen = {"old": 0, "new": 0}
    try:
        client = master.wait_loaded()
        client.call("DEBUG", "POPULATE", KEYS)
        client.call("SET", "number", 0)
        for number in range(count):
            problem = None
            client.call("SET", "owner", f"master {number}")
            try:
                seen[replica.round(number, master, number % 2 == 1)] += 1
            except (Mixed, Error, TimeoutError, OSError, ValueError) as found:
                problem = found
            report(f"sync{', power lost' if number % 2 == 1 else ''}, round {number}", problem)
            if problem is not None:
                break
        if count >= 20:
            report("syncs end before and after the crash", None if min(seen.values()) else f"only one of {seen}")
    finally:
        master.kill()
