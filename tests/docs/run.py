#!/usr/bin/env python3
"""Runs the commands that documents show. A comment <!-- test: NAME --> makes the indented block behind it a part of the
test NAME; further lines within the comment are run before the block and are not shown: they make what the reader has
already, or check what the block did. All parts of a NAME are one script of bash, which ends with the first command that
fails, in a folder of its own; ports that documents use are replaced by free ones. KEYDB_ROOT is the folder of the
project, KEYDB_OUT that of what was built.

    tests/docs/run.py --server build/release/bin/keydb-server --oracle build/oracle/redis-server [NAME ...]
"""
import argparse
import ctypes
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests"))

from free_ports import free_port    # noqa: E402

PORT = re.compile(r"\b(6379|638\d|70\d\d)\b")
SECONDS = 90
MISSING = 77  # exit code of a script that lacks a program
PR_SET_CHILD_SUBREAPER = 36

PROLOGUE = """set -eu
need() { command -v "$1" >/dev/null || { echo "$1 is missing"; exit %d; }; }
""" % MISSING


def scripts_of(path):
    """Name to script, and what is wrong with the comments."""
    scripts, wrong = {}, []
    text = open(path, encoding="utf-8").read()
    for match in re.finditer(r"<!-- test: (\w+)[ \n](.*?)-->\n(?:\n((?:    [^\n]*\n|\n)+))?", text, re.DOTALL):
        name, hidden, shown = match.groups()
        if not hidden.strip() and not shown:
            wrong.append("%s: a comment for the test %s without a block behind it" % (path, name))
        lines = [line[4:] for line in (shown or "").splitlines()]
        scripts[name] = scripts.get(name, "") + hidden.strip() + "\n" + "\n".join(lines) + "\n"
    if text.count("<!-- test:") != len(re.findall(r"<!-- test: \w+[ \n]", text)):
        wrong.append("%s: a comment for a test without a name" % path)
    return scripts, wrong


def with_free_ports(script):
    names = sorted(set(PORT.findall(script)))
    ports = {name: free_port() for name in names}
    return PORT.sub(lambda match: str(ports[match.group(1)]), script)


def children():
    return [int(pid) for path in glob.glob("/proc/self/task/*/children") for pid in open(path).read().split()]


def end_children():
    """Also those that have daemonized: their parents are gone, so they are ours."""
    while True:
        left = children()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        try:
            while True:
                os.waitpid(-1, 0)
        except ChildProcessError:
            return


def programs(folder, server, oracle):
    """The PATH of a reader: ours, those of Redis, and the old KeyDB under the name with its version."""
    os.mkdir(folder)
    if os.access(os.environ.get("KEYDB_ORACLE", ""), os.X_OK):
        os.symlink(os.path.abspath(os.environ["KEYDB_ORACLE"]), os.path.join(folder, "keydb-server-6.3.4"))
    folders = [os.path.dirname(os.path.abspath(server)), os.path.dirname(os.path.abspath(oracle)), folder]
    return ":".join(folders + [os.environ["PATH"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    bin_folder = os.path.dirname(os.path.abspath(arguments.server))
    passed = failed = 0
    for page in ["README.md"] + sorted(glob.glob("docs/*.md", root_dir=ROOT)):
        scripts, wrong = scripts_of(os.path.join(ROOT, page))
        for line in wrong:
            print("FAILED: " + line)
        failed += len(wrong)
        for name, script in scripts.items():
            if arguments.names and name not in arguments.names:
                continue
            with tempfile.TemporaryDirectory(prefix="keydb-docs-") as box:
                environment = dict(os.environ, PATH=programs(box + "/programs", arguments.server, arguments.oracle),
                                   KEYDB_ROOT=ROOT, KEYDB_OUT=os.path.dirname(bin_folder))
                os.mkdir(box + "/here")
                script = PROLOGUE + with_free_ports(script)
                with open(box + "/output", "w+") as output:
                    process = subprocess.Popen(["bash", "-xc", script], cwd=box + "/here", env=environment,
                                               stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
                    try:
                        code = process.wait(SECONDS)
                    except subprocess.TimeoutExpired:
                        code = "none within %d s" % SECONDS
                    end_children()
                    output.seek(0)
                    lines = output.read().splitlines()
            if code == 0:
                passed += 1
            elif code == MISSING:
                print("skipped: %s: %s" % (name, [line for line in lines if line.endswith("is missing")][-1]))
            else:
                failed += 1
                print("FAILED: %s, %s: exit code %s" % (page, name, code))
                for line in lines[-25:]:
                    print("  | " + line)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
