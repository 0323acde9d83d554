"""A program in a terminal of its own, 80 columns wide."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

SECONDS = 10


class Terminal:
    def __init__(self, world, words, more=()):
        self.seen = ""          # all of it
        self.unread = ""        # what nobody has expected yet
        self.missed = []
        self.status = None
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            environment = world.environment({"TERM": "xterm", **dict(more)})
            os.execve(world.ours, [world.ours, *words], environment)

    def _read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self.master, 65536)
        except OSError:
            piece = b""
        text = piece.decode("utf-8", "replace")
        self.seen += text
        self.unread += text
        return piece != b""

    def type(self, text):
        try:
            os.write(self.master, text.encode())
        except OSError:
            self.missed.append("typing %r" % text)
        return self

    def expect(self, text):
        """Waits until the text has come, behind what was expected before."""
        end = time.monotonic() + SECONDS
        while text not in self.unread and time.monotonic() < end:
            if not self._read(0.1):
                break
        if text in self.unread:
            self.unread = self.unread[self.unread.index(text) + len(text):]
        else:
            self.missed.append(text)
        return self

    def enter(self, text, *wanted):
        """Types a line, and waits for what it says and for the next prompt: what is typed before that is not edited."""
        self.type(text + "\r").expect("\r\n")
        for one in wanted:
            self.expect(one)
        return self.expect("> ")

    def ends(self):
        """The exit code, or None if it goes on."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            while self._read(0.02) and self.unread:
                self.unread = ""
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                return self.status
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)
