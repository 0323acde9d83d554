#!/usr/bin/env python3
"""How long the other clients of a worker wait while one sends, reads, overwrites and deletes a very large value.

    large_value.py --server BIN [--oracle BIN] [--mib 256,1024] [-n ROUNDS]

One worker; one process sends PING after PING and notes the longest wait, the other does the work. Printed are medians
over the rounds, in ms; idle is the longest wait of as much time without any work: what the machine adds.
"""
import argparse
import multiprocessing
import os
import shutil
import socket
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "differential"))

from harness import Server, is_redis      # noqa: E402

PHASES = ("idle", "set", "get", "overwrite", "del")
PIECE = bytes(1 << 20)


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def ping(port, worst, stop):
    connection = connect(port)
    while not stop.value:
        begun = time.perf_counter()
        connection.sendall(b"PING\r\n")
        connection.recv(64)
        worst.value = max(worst.value, time.perf_counter() - begun)


def send_value(connection, mib):
    connection.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % (mib << 20))
    for _ in range(mib):
        connection.sendall(PIECE)
    connection.sendall(b"\r\n")
    assert connection.recv(64) == b"+OK\r\n"


def read_value(connection, mib):
    connection.sendall(b"GET k\r\n")
    left = (mib << 20) + len(b"$%d\r\n\r\n" % (mib << 20))
    buffer = bytearray(1 << 20)
    while left > 0:
        left -= connection.recv_into(buffer)


def delete(connection, mib):
    connection.sendall(b"DEL k\r\n")
    assert connection.recv(64) == b":1\r\n"


def measure(binary, mib):
    options = ["--proto-max-bulk-len", "2gb", "--client-query-buffer-limit", "3gb", "--save", ""]
    server = Server(binary, options, 1)
    worst, stop = multiprocessing.Value("d", 0), multiprocessing.Value("b", 0)
    connection = connect(server.port)
    pinger = multiprocessing.Process(target=ping, args=(server.port, worst, stop))
    pinger.start()
    waits = {}
    for phase, work in zip(PHASES, (lambda *_: time.sleep(mib / 1024), send_value, read_value, send_value, delete)):
        worst.value = 0
        work(connection, mib)
        time.sleep(0.05)
        waits[phase] = worst.value * 1000
    stop.value = 1
    pinger.join()
    server.stop()
    return waits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle")
    parser.add_argument("--mib", default="256,1024")
    parser.add_argument("-n", type=int, default=5)
    options = parser.parse_args()
    binaries = [shutil.which(binary) for binary in (options.oracle, options.server) if binary]
    for mib in map(int, options.mib.split(",")):
        rounds = [[measure(binary, mib) for binary in binaries] for _ in range(options.n)]
        for i, binary in enumerate(binaries):
            waits = "  ".join("%s %.1f" % (phase, statistics.median(row[i][phase] for row in rounds))
                              for phase in PHASES)
            print("%5d MiB  %-12s %s" % (mib, "redis" if is_redis(binary) else "keydb", waits), flush=True)


if __name__ == "__main__":
    main()
