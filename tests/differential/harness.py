"""What the Python tests share: starting a server, talking RESP to it with exact types.

A reply is a tuple (type, payload). The type is the first byte as a character; payload is bytes for what fits a line
("+OK" is ("+", b"OK")), bytes or None for bulks, a list of replies or None for what has elements ("%" lists keys and
values in turn). Nothing is converted, so that replies which only look alike differ.
"""
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_ports import free_port    # noqa: E402

LINE_TYPES = frozenset(b"+-:_,#(")
BULK_TYPES = frozenset(b"$=!")
ELEMENT_TYPES = {ord("*"): 1, ord("~"): 1, ord(">"): 1, ord("%"): 2, ord("|"): 2}
LONG_ARRAY = 64     # elements; these are read one by one as they come
TICKS = os.sysconf("SC_CLK_TCK")


class Incomplete(Exception):
    """More bytes are needed: at least so many in all."""

    def __init__(self, least=0):
        super().__init__()
        self.least = least


class Lost(Exception):
    """The other side closed, timed out, or sent what is not RESP."""


def parse(data, at):
    """One reply that begins at data[at], and where it ends."""
    end = data.find(b"\r\n", at)
    if end < 0:
        raise Incomplete
    kind = data[at]
    after = end + 2
    if kind in LINE_TYPES:
        return (chr(kind), bytes(data[at + 1:end])), after
    try:
        size = int(data[at + 1:end])
    except ValueError:
        raise Lost("not RESP: %r" % bytes(data[at:at + 60])) from None
    if kind in BULK_TYPES:
        if size < 0:
            return (chr(kind), None), after
        if len(data) < after + size + 2:
            raise Incomplete(after + size + 2)
        if data[after + size:after + size + 2] != b"\r\n":
            raise Lost("bulk of %d bytes without its end: %r" % (size, bytes(data[at:at + 60])))
        return (chr(kind), bytes(data[after:after + size])), after + size + 2
    if kind not in ELEMENT_TYPES:
        raise Lost("not RESP: %r" % bytes(data[at:at + 60]))
    if size < 0:
        return (chr(kind), None), after
    elements = []
    for _ in range(size * ELEMENT_TYPES[kind]):
        element, after = parse(data, after)
        elements.append(element)
    if kind == ord("|"):    # attributes belong to the reply that follows
        reply, after = parse(data, after)
        elements.append(reply)
    return (chr(kind), elements), after


def to_bytes(word):
    if isinstance(word, bytes):
        return word
    return str(word).encode()


def encode(words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = to_bytes(word)
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


def begin_array(data, at):
    """Of an array of many elements, how many, and a list for them; or nothing. And where what follows begins."""
    end = data.find(b"\r\n", at)
    if end < 0 or data[at] != ord("*") or not data[at + 1:end].isdigit() or int(data[at + 1:end]) < LONG_ARRAY:
        return None, at
    return (int(data[at + 1:end]), []), end + 2


class Connection:
    def __init__(self, address, timeout=60):
        """address: a port on loopback, or the path of a unix socket."""
        self.timeout = timeout
        if isinstance(address, int):
            self.sock = socket.create_connection(("127.0.0.1", address), timeout)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(timeout)
            self.sock.connect(address)
        self.data = bytearray()
        self.least = 0      # with fewer bytes than that no reply can be complete
        self.begun = None   # of a long array: how many elements it has, and those that are here

    def close(self):
        self.sock.close()

    def take(self, replies, wanted):
        """Moves complete replies from the bytes received into the list, up to wanted."""
        if len(self.data) < self.least:
            return
        self.least = at = 0
        try:
            while len(replies) < wanted:
                if self.begun is None:
                    self.begun, at = begin_array(self.data, at)
                if self.begun is None:
                    reply, at = parse(self.data, at)
                    replies.append(reply)
                    continue
                count, elements = self.begun
                while len(elements) < count:
                    element, at = parse(self.data, at)
                    elements.append(element)
                replies.append(("*", elements))
                self.begun = None
        except Incomplete as problem:
            self.least = max(problem.least - at, 0)
        if at:
            del self.data[:at]

    def exchange(self, payload, count):
        result = exchange_all([(self, payload, count)])[0]
        if isinstance(result, Lost):
            raise result
        return result

    def command(self, *words):
        return self.exchange(encode(words), 1)[0]


def exchange_all(jobs):
    """jobs: (connection, bytes to send, replies to expect). Sends and receives on all at once, so that neither a full
    pipe nor a slow side stalls the other. Gives a list of replies each, or what went wrong (Lost)."""
    results = [[] for _ in jobs]
    sent = [0] * len(jobs)
    open_jobs = {}
    for index, (connection, payload, count) in enumerate(jobs):
        connection.take(results[index], count)
        if payload or len(results[index]) < count:
            open_jobs[connection.sock.fileno()] = index
            connection.sock.setblocking(False)
    deadline = time.monotonic() + max([job[0].timeout for job in jobs], default=0)
    poll = select.poll()
    for fd, index in open_jobs.items():
        poll.register(fd, select.POLLIN | (select.POLLOUT if jobs[index][1] else 0))

    def finish(fd, outcome=None):
        index = open_jobs.pop(fd)
        poll.unregister(fd)
        jobs[index][0].sock.settimeout(jobs[index][0].timeout)
        if outcome is not None:
            outcome.replies = results[index]
            results[index] = outcome

    while open_jobs:
        left = deadline - time.monotonic()
        if left <= 0:
            for fd in list(open_jobs):
                finish(fd, Lost("no reply in time"))
            break
        for fd, events in poll.poll(left * 1000):
            index = open_jobs.get(fd)
            if index is None:
                continue
            connection, payload, count = jobs[index]
            try:
                if events & select.POLLOUT:
                    sent[index] += connection.sock.send(memoryview(payload)[sent[index]:sent[index] + (1 << 18)])
                    if sent[index] == len(payload):
                        poll.modify(fd, select.POLLIN)
                if events & (select.POLLIN | select.POLLHUP | select.POLLERR):
                    received = connection.sock.recv(1 << 20)
                    if not received:
                        raise Lost("connection closed by the server")
                    connection.data += received
                    connection.take(results[index], count)
            except BlockingIOError:
                continue
            except (Lost, OSError) as problem:
                finish(fd, problem if isinstance(problem, Lost) else Lost(str(problem)))
                continue
            if sent[index] == len(payload) and len(results[index]) >= count:
                finish(fd)
    return results


def is_redis(binary):
    return "redis" in os.path.basename(binary)


def cpu_ns(pid):
    """Processor time of all threads that run; nanoseconds, where stat counts in hundredths of a second."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task)) as stat:
            total += int(stat.read().split()[0])
    return total


class Server:
    """A server process on a port of its own, without persistence, in a folder of its own."""

    environment = {}    # what its next start gets beside ours

    def __init__(self, binary, options=(), threads=None, cpus=None, port=None, ready=True):
        """options: words of the command line, e.g. ["--maxclients", "100"]. threads: worker threads of ours,
        io-threads of Redis. cpus: as for taskset. port=0: no plain port (ready is then the caller's business)."""
        self.binary = os.path.abspath(binary)
        self.redis = is_redis(binary)
        self.options = [str(option) for option in options]
        self.cpus = cpus
        self.port = free_port() if port is None else port
        self.folder = tempfile.mkdtemp(prefix="keydb-test-")
        if threads is not None:
            self.options += ["--io-threads" if self.redis else "--server-threads", str(threads)]
        self.process = None
        self.start(ready)

    def start(self, ready=True):
        command = [self.binary, "--port", str(self.port), "--dir", self.folder, "--save", "", *self.options]
        if self.cpus is not None:
            command = ["taskset", "-c", str(self.cpus), *command]
        with open(self.log_path(), "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.folder, env={**os.environ, **self.environment})
        if ready:
            self.wait_ready()

    def log_path(self):
        return os.path.join(self.folder, "log")

    def log(self, last=4000):
        with open(self.log_path(), "rb") as log:
            return log.read()[-last:].decode(errors="replace")

    def wait_ready(self, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise Lost("%s ended with %d\n%s" % (self.binary, self.process.returncode, self.log()))
            try:
                connection = Connection(self.port, 5)
                reply = connection.command("PING")
                connection.close()
                if reply == ("+", b"PONG"):
                    return
            except (OSError, Lost):
                pass
            time.sleep(0.02)
        raise Lost("%s does not answer\n%s" % (self.binary, self.log()))

    def alive(self):
        return self.process.poll() is None

    def connect(self, timeout=60):
        return Connection(self.port, timeout)

    def pid(self):
        """The server's own: the wrapper of the oracle and taskset replace themselves."""
        return self.process.pid

    def rss(self):
        with open("/proc/%d/status" % self.pid()) as status:
            for line in status:
                if line.startswith("VmRSS"):
                    return int(line.split()[1]) * 1024
        return 0

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.pid()) as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def stop(self, keep=False):
        if self.process and self.process.poll() is None:
            # Redis would wait for its replicas first; nothing of it is of interest any more.
            self.process.send_signal(signal.SIGKILL if self.redis else signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
