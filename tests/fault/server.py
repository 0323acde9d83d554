"""A server that is started, spoken to, and killed."""
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_ports import free_port    # noqa: E402


class Error(Exception):
    """An error reply."""


def request(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Client:
    def __init__(self, port, timeout=30):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        self.socket.sendall(request(*words))

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server is gone")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b":":
            return int(rest)
        if kind == b"-":
            return Error(rest.decode(errors="replace"))
        if kind == b"$":
            if rest == b"-1":
                return None
            body = self.file.read(int(rest) + 2)
            if len(body) != int(rest) + 2:
                raise ConnectionError("the server is gone")
            return body[:-2].decode(errors="replace")
        if kind == b"*":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest))]
        raise ValueError(line)

    def call(self, *words):
        self.send(*words)
        reply = self.read()
        if isinstance(reply, Error):
            raise reply
        return reply

    def field(self, name):
        for line in self.call("INFO", "persistence").split("\r\n"):
            if line.startswith(name + ":"):
                return line.split(":", 1)[1]
        return None

    def close(self):
        self.file.close()
        self.socket.close()


class Server:
    def __init__(self, binary, folder, log, options, environment=None):
        self.port = free_port()
        self.log = log
        self.out = open(log, "ab")
        arguments = [os.path.abspath(binary), "--port", str(self.port), "--dir", folder, "--server-threads", "2"]
        for name, value in options.items():
            arguments += ["--" + name, value]
        self.process = subprocess.Popen(arguments, cwd=folder, stdout=self.out, stderr=subprocess.STDOUT,
                                        env={**os.environ, **(environment or {})}, start_new_session=True)

    def wait_loaded(self, seconds=60):
        """A client, when the data is there; None: it has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                return None
            try:
                client = Client(self.port)
                if client.field("loading") == "0":
                    return client
                client.close()
            except (OSError, ConnectionError, Error):
                pass
            time.sleep(0.01)
        raise TimeoutError("the server does not get ready")

    def others_live(self):
        """Children of its, which are of its session."""
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    state, _, _, session = file.read().rsplit(")", 1)[1].split()[:4]
            except (OSError, ValueError):
                continue
            if name.isdigit() and int(session) == self.process.pid and state not in "ZX":
                return True
        return False

    def kill(self):
        """It, and then its children: nobody writes any more."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        end = time.monotonic() + 10
        while self.others_live() and time.monotonic() < end:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            time.sleep(0.002)
        self.out.close()

    def stop(self):
        self.process.terminate()
        code = self.process.wait(60)
        self.out.close()
        return code

    def log_tail(self, count=25):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-count:])
