"""What tests of packages share: counting, waiting, one reply of a server, and who is told that a server is ready."""
import os
import socket
import subprocess
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_ports import free_port    # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS = 60  # for everything that is waited for


class Count:
    """Checks one after the other; each says what it found when it failed."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def check(self, what, good, found=""):
        if good:
            self.passed += 1
            return
        self.failed += 1
        print("FAILED: %s" % what)
        for line in str(found).strip().splitlines()[-30:]:
            print("  | " + line)

    def skip(self, what, why):
        """One line, also in the output of the runner when there is nothing else."""
        print("skipped: %s: %s" % (what, why))

    def end(self):
        if self.passed + self.failed:
            print("%d passed, %d failed" % (self.passed, self.failed))
        sys.exit(1 if self.failed else 0)


def run(words, **options):
    """The ended process, with both outputs as one text."""
    options.setdefault("cwd", ROOT)
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                          timeout=options.pop("seconds", 600), **options)


def make(*words, **options):
    """make on its own, not as a part of the make that runs the tests. It takes the programs as they are: it may have
    been given other flags than the make that built them."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "DESTDIR", "PREFIX")}
    return run(["make", "--no-print-directory", "--old-file=programs", *words], env=environment, **options)


def call(port, *words, host="127.0.0.1"):
    """The first line of a reply, or the text of a bulk string."""
    with socket.create_connection((host, port), 5) as connection:
        connection.settimeout(20)
        data = b"*%d\r\n" % len(words)
        for word in words:
            raw = str(word).encode()
            data += b"$%d\r\n%s\r\n" % (len(raw), raw)
        connection.sendall(data)
        with connection.makefile("rb") as replies:
            line = replies.readline().rstrip(b"\r\n")
            if line[:1] == b"$" and line != b"$-1":
                return replies.read(int(line[1:])).decode()
            return line.decode()


def wait_for(condition, process=None):
    """The first true result, or None when the time is over or the process has ended."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            found = condition()
            if found:
                return found
        except OSError:
            pass
        if process is not None and process.poll() is not None:
            return None
        time.sleep(0.02)
    return None


class Notified:
    """The socket on which a server of Type=notify says that it is ready."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        os.chmod(path, 0o777)
        self.socket.settimeout(0.05)

    def ready(self, process):
        def said():
            try:
                return "READY=1" in self.socket.recv(4096).decode().splitlines()
            except socket.timeout:
                return False
        return bool(wait_for(said, process))

    def close(self):
        self.socket.close()


def exec_start(unit_text):
    """The words of ExecStart of a unit."""
    line = [line for line in unit_text.splitlines() if line.startswith("ExecStart=")][0]
    return line[len("ExecStart="):].split()
