#!/usr/bin/env python3
"""keydb-cli beside redis-cli, and alone.

    run.py --server BIN --oracle BIN [--cli BIN] [--only REGEX]

redis-cli stands beside the oracle, keydb-cli beside the server unless --cli says where. Both programs get the same
command lines and standard inputs, with the same data in the same server: output, errors and exit codes have to be equal
byte for byte. `alone.py` tests what only ours does, or does otherwise on purpose: terminals, TLS, replies that make no
sense, --compare. Python's standard library only.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "differential"))
sys.path.insert(0, HERE)

import alone        # noqa: E402
import lines        # noqa: E402
from harness import Server      # noqa: E402
from speaker import Speaker     # noqa: E402

SECONDS = 20


class World:
    """Servers, programs, and the counting."""

    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="keydb-cli-test-")
        # It has to be called as the one that it is compared with: its name is in texts.
        self.ours = os.path.join(self.folder, "redis-cli")
        os.symlink(os.path.abspath(options.cli), self.ours)
        self.theirs = os.path.join(os.path.dirname(os.path.abspath(options.oracle)), "redis-cli")
        self.home = os.path.join(self.folder, "home")
        os.mkdir(self.home)
        self.passed = self.failed = 0
        self.lock = threading.Lock()
        self.server = Server(options.server, ["--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0",
                                              "--unixsocket", os.path.join(self.folder, "socket")], 2)
        self.admin = self.server.connect()
        self.speaker = Speaker()

    def close(self):
        self.server.stop()
        subprocess.run(["rm", "-rf", self.folder], check=False)

    def wants(self, name):
        return self.options.only is None or re.search(self.options.only, name) is not None

    def check(self, name, good, *details):
        with self.lock:
            if good:
                self.passed += 1
                return
            self.failed += 1
        print("FAILED %s" % name)
        for detail in details:
            print("    %s" % (detail if isinstance(detail, str) else repr(detail)))

    def environment(self, more=()):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("REDISCLI") and
                name != "FAKETTY"}
        return {**kept, "HOME": self.home, "LC_ALL": "C", **dict(more)}

    def run(self, program, words, given=b"", more=(), seconds=SECONDS):
        """Exit code (None: it went on until the time was over), output, errors."""
        process = subprocess.Popen([program, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.environment(more), cwd=self.folder)
        try:
            output, errors = process.communicate(given, timeout=seconds)
            return process.returncode, output, errors
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            return None, output, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--cli")
    parser.add_argument("--only")
    options = parser.parse_args()
    options.cli = os.path.abspath(options.cli or os.path.join(os.path.dirname(options.server), "keydb-cli"))
    world = World(options)
    try:
        beside = alone.start(world)
        lines.run(world)
        alone.run(world)
        for thread in beside:
            thread.join()
    finally:
        world.close()
    print("%d passed, %d failed" % (world.passed, world.failed))
    return 1 if world.failed else 0


if __name__ == "__main__":
    sys.exit(main())
