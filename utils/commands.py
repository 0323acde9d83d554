#!/usr/bin/env python3
"""Writes docs/commands.md: which commands this server, Redis, Valkey and KeyDB have. Ours come from a running server's
command table, theirs from utils/commands.tsv.

    utils/commands.py --server build/release/bin/keydb-server            writes the file
    utils/commands.py --server build/release/bin/keydb-server --check    ends with 1 if the file is not what it would be
"""
import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(ROOT, "utils/commands.tsv")
PAGE = os.path.join(ROOT, "docs/commands.md")
SYSTEMS = ["Redis 7.0", "Redis 7.4", "Redis 8.10", "Valkey 9.1", "KeyDB 6.3.4"]
SECONDS = 30

# Commands that are refused without a cluster, and what asks the server whether it does so.
NEED_CLUSTER = {"cluster": "CLUSTER INFO", "readonly": "READONLY", "readwrite": "READWRITE", "asking": "ASKING",
                "restore-asking": "RESTORE-ASKING k 0 v"}
NEED_MODULES = ("module", "module list", "module load", "module loadex", "module unload")

HEAD = """# Commands

Written by `utils/commands.py` from the server's table of commands; `make lint` tells when it is out of date. A command
of two words is a subcommand. "Here" tells what this server does with it: *yes*; *-*: it does not know the command; *no
cluster*: it knows the command and refuses it, as Redis does with `cluster-enabled no`; there is no cluster mode yet;
*no modules*: it can list modules, of which there are none, and load none.

%s

A command that several servers have need not have the same options in all of them: `COMMAND DOCS` tells those of this
server, and [architecture](architecture.md#differences-from-redis-70) tells where it does something else than Redis 7.0.
The other columns were taken from Redis 7.0.15 and KeyDB 6.3.4, from the development trees of Redis and Valkey of
October 2024 as far as their commands say that they are of Redis 7.4 or Valkey 8.0, and from the documentation of what
came since. The modules that Redis 8 is shipped with (`JSON.`, `FT.`, `TS.`, `BF.`, `CF.`, `CMS.`, `TOPK.` and
`TDIGEST.` and what follows) are not counted; arrays and vector sets are, and are left out here on purpose.
"""


class Replies:
    """What a server replies, in RESP2."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def call(self, line):
        self.socket.sendall(line.encode() + b"\r\n")
        return self.read()

    def read(self):
        line = self.file.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:].decode()
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2].decode() if rest != "-1" else None
        if kind == b"*":
            return [self.read() for _ in range(int(rest))] if rest != "-1" else None
        return line.decode() if kind == b"-" else rest

    def close(self):
        self.file.close()
        self.socket.close()


def ask(server):
    """Name to group and first version, of all commands and subcommands; and what needs a cluster."""
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/socket"
        process = subprocess.Popen([server, "--port", "0", "--unixsocket", path, "--dir", folder, "--save", "",
                                    "--server-threads", "1"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            end = time.monotonic() + SECONDS
            replies = None
            while replies is None:
                if process.poll() is not None or time.monotonic() > end:
                    raise SystemExit("%s does not start" % server)
                time.sleep(0.01)
                try:
                    replies = Replies(path)
                except (FileNotFoundError, ConnectionRefusedError):
                    pass  # the server has not got that far
            names = {}
            documented = replies.call("COMMAND DOCS")
            for name, fields in zip(documented[::2], documented[1::2]):
                add(names, name, fields)
            refuses = {name for name, line in NEED_CLUSTER.items()
                       if "cluster support disabled" in str(replies.call(line))}
            replies.close()
        finally:
            process.kill()
            process.wait()
    return names, refuses


def add(names, name, fields):
    facts = dict(zip(fields[::2], fields[1::2]))
    names[name.replace("|", " ")] = (facts.get("group", ""), facts.get("since", ""))
    inner = facts.get("subcommands", [])
    for subcommand, subfields in zip(inner[::2], inner[1::2]):
        add(names, subcommand, subfields)


def theirs():
    """Name to group and the systems that have it."""
    found = {}
    for line in open(TABLE, encoding="utf-8"):
        if line.startswith("#") or not line.strip():
            continue
        name, group, *marks = line.rstrip("\n").split("\t")
        found[name.lower()] = (group, [mark == "yes" for mark in marks])
    return found


def here(name, ours, refuses):
    if name in refuses or name in ours and name.split()[0] in refuses:
        return "no cluster"
    if name not in ours:
        return "-"
    if name in NEED_MODULES:
        return "no modules"
    return "yes"


def page(server):
    ours, refuses = ask(server)
    others = theirs()
    groups = {}
    counts = {}
    for name in sorted(set(ours) | set(others)):
        group = others[name][0] if name in others else ours[name][0]
        marks = others[name][1] if name in others else [False] * len(SYSTEMS)
        state = here(name, ours, refuses)
        since = " (of Redis or Valkey %s)" % ours[name][1] if name in ours and not any(marks) and \
            ours[name][1][:1] in "89" else " (only here)" if not any(marks) else ""
        groups.setdefault(group, []).append("| %s%s | %s | %s |" % (
            name.upper(), since, " | ".join("yes" if mark else "-" for mark in marks), state))
        for system, mark in zip(SYSTEMS, marks):
            if mark:
                counts.setdefault(system, {}).setdefault(state, []).append(name)
    lines = ["| of | commands and subcommands | here | refused: no cluster, no modules | missing |",
             "|---|---|---|---|---|"]
    for system in SYSTEMS:
        count = {state: len(names) for state, names in counts[system].items()}
        lines.append("| %s | %d | %d | %d | %d |" % (system, sum(count.values()), count.get("yes", 0),
                                                  count.get("no cluster", 0) + count.get("no modules", 0),
                                                  count.get("-", 0)))
    for group in sorted(groups):
        lines += ["", "## %s" % group.replace("_", " ").replace("-", " ").capitalize(), "",
                  "| command | %s | here |" % " | ".join(SYSTEMS), "|---" * (len(SYSTEMS) + 2) + "|"] + groups[group]
    return HEAD % "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = page(os.path.abspath(arguments.server))
    if not arguments.check:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    if os.path.exists(PAGE) and open(PAGE, encoding="utf-8").read() == text:
        print("1 passed, 0 failed")
        return 0
    print("FAILED: docs/commands.md is not what utils/commands.py writes for this server; run it")
    print("0 passed, 1 failed")
    return 1


if __name__ == "__main__":
    sys.exit(main())
