"""A client that minds its own business, in a process of its own so that the attacker's work does not slow its clock."""
import multiprocessing
import time

from harness import Connection, Lost, encode

PAUSE_S = 0.001


def work(port, pipe):
    latencies, errors = [], 0
    connection = None
    value = b"v" * 64
    turn = 0
    while not pipe.poll(PAUSE_S):
        turn += 1
        try:
            if connection is None:
                connection = Connection(port, 10)
            key = b"healthy:%d" % (turn % 100)
            begin = time.perf_counter()
            replies = connection.exchange(encode(["SET", key, value]) + encode(["GET", key]), 2)
            latencies.append(time.perf_counter() - begin)
            errors += replies != [("+", b"OK"), ("$", value)]
        except (Lost, OSError):
            errors += 1
            connection = None
            time.sleep(0.05)
        if turn == 1:
            pipe.send("it works, or does not")
    latencies.sort()
    pick = lambda share: latencies[min(len(latencies) - 1, int(len(latencies) * share))] * 1000 if latencies else 0.0
    pipe.send((pick(0.5), pick(0.99), errors + (not latencies)))


class Healthy:
    def __init__(self, port):
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=work, args=(port, other), daemon=True)
        self.process.start()
        if self.pipe.poll(30):
            self.pipe.recv()

    def finish(self):
        """p50 and p99 in milliseconds, and how often it was let down."""
        self.pipe.send("end")
        result = self.pipe.recv() if self.pipe.poll(30) else (0.0, 0.0, 1)
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
        return result
