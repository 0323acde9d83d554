"""Ports of loopback for servers of the tests, which run beside each other and start their servers again.

They are below the range from which the kernel takes ports for what goes out and for listeners that name none (Linux:
32768 and above), and below those of the Tcl suites (15000 and above). The last ports that a process took are its own,
also while their servers are down: the lock on a file tells the other tests of this machine.
"""
import collections
import fcntl
import os
import random
import socket
import tempfile

FIRST, LAST = 10001, 14999      # with 10000 added, the port of a cluster's bus is below that range as well
FOLDER = os.path.join(tempfile.gettempdir(), "keydb-test-ports-%d" % os.getuid())
HELD_MOST = 256     # a process may start many servers one after the other
RANDOM = random.SystemRandom()      # a test's own seed is not for this
held = collections.deque()      # files, open and locked, the oldest first


def lock(port):
    file = os.open(os.path.join(FOLDER, str(port)), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return False
    held.append(file)
    if len(held) > HELD_MOST:
        os.close(held.popleft())
    return True


def is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port():
    os.makedirs(FOLDER, exist_ok=True)
    for port in RANDOM.sample(range(FIRST, LAST + 1), LAST + 1 - FIRST):
        if lock(port) and is_free(port):
            return port
    raise OSError("no port between %d and %d is free" % (FIRST, LAST))
