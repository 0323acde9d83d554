#!/usr/bin/env python3
"""The examples of utils/active as processes of this machine: the commands that the compose files give to containers,
with names of services as ports of loopback, and HAProxy in front where it is installed; the systemd unit and the lines
that it asks for. (What documents show is run by tests/docs.)

    tests/active/examples.py --server build/release/bin/keydb-server
"""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests"))

from free_ports import free_port    # noqa: E402

EXAMPLES = os.path.join(ROOT, "utils", "active")
SECONDS = 60  # for everything that is waited for


def call(port, *words):
    """One reply, as text; an error of the server is returned like another reply."""
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.settimeout(10)
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


def wait_for(what, condition):
    end = time.monotonic() + SECONDS
    last = None
    while time.monotonic() < end:
        try:
            last = condition()
            if last is True:
                return
        except OSError as error:
            last = error
        time.sleep(0.02)
    raise SystemExit("not within %d s: %s (%s)" % (SECONDS, what, last))


def services(path):
    """Names with the commands of a compose file; ours are written one service, one command, one line."""
    found, name = {}, None
    for line in open(path, encoding="utf-8"):
        service = re.match(r"^  ([a-z]+):$", line)
        command = re.match(r"^    command: (\[.*\])$", line)
        if service:
            name = service.group(1)
        elif command:
            found[name] = json.loads(command.group(1))
    return found


class Mesh:
    def __init__(self, server, path, folder):
        self.server, self.folder, self.processes = server, folder, {}
        self.commands = services(path)
        self.ports = {name: free_port() for name in self.commands}

    def start(self, name):
        words = []
        for word in self.commands[name]:
            match = re.match(r"^([a-z]+) 6379$", word)
            words.append("127.0.0.1 %d" % self.ports[match.group(1)] if match else word)
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        log = open(os.path.join(folder, "log"), "ab")
        self.processes[name] = subprocess.Popen(
            [self.server] + words + ["--port", str(self.ports[name]), "--bind", "127.0.0.1", "--dir", folder],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()

    def kill(self, name, number=signal.SIGKILL):
        process = self.processes.pop(name)
        process.send_signal(number)
        process.wait(SECONDS)

    def ready(self, name):
        return call(self.ports[name], "KEYDB.ACTIVE", "READY").startswith("+READY")

    def stop(self):
        for name in list(self.processes):
            self.kill(name)


def check_pair(server, folder):
    mesh = Mesh(server, os.path.join(EXAMPLES, "docker-compose.pair.yml"), folder)
    try:
        for name in mesh.commands:
            mesh.start(name)
        check(mesh)
    finally:
        mesh.stop()


def check(mesh):
    names = list(mesh.commands)
    for name in names:
        wait_for("%s is ready" % name, lambda name=name: mesh.ready(name))
    for count, name in enumerate(names):
        call(mesh.ports[name], "INCRBY", "counter", 10 ** count)
    total = sum(10 ** count for count in range(len(names)))
    for name in names:
        wait_for("%s has all increments" % name,
                 lambda name=name: call(mesh.ports[name], "GET", "counter") == str(total))
    mesh.kill(names[0])
    call(mesh.ports[names[1]], "INCR", "counter")
    mesh.start(names[0])
    for name in names:
        wait_for("%s has the increment behind the restart" % name,
                 lambda name=name: call(mesh.ports[name], "GET", "counter") == str(total + 1))


def check_unit(server, folder):
    """The lines in its comment make nodes; systemd finds nothing wrong with the unit."""
    path = os.path.join(EXAMPLES, "keydb-server@.service")
    text = open(path, encoding="utf-8").read()
    lines = [re.sub(r"  +one line.*", "", line[4:]) for line in re.findall(r"^#   [a-z-]+ .*$", text, re.MULTILINE)
             if not line.startswith(("#   install", "#   systemctl"))]
    mesh = Mesh(server, os.path.join(EXAMPLES, "docker-compose.pair.yml"), folder)
    names = list(mesh.commands)
    for name, other in zip(names, reversed(names)):
        config = os.path.join(folder, name + ".conf")
        with open(config, "w", encoding="utf-8") as file:
            for line in lines:
                file.write(line.replace("OTHER-HOST PORT", "127.0.0.1 %d" % mesh.ports[other]) + "\n")
        mesh.commands[name] = [config]
    try:
        for name in names:
            mesh.start(name)
        check(mesh)
    finally:
        mesh.stop()
    if shutil.which("systemd-analyze") is None:
        print("skipped: whether systemd takes the unit: systemd-analyze is not installed")
        return
    unit = os.path.join(folder, os.path.basename(path))
    with open(unit, "w", encoding="utf-8") as file:
        file.write(text.replace("/usr/local/bin/keydb-server", server))
    found = subprocess.run(["systemd-analyze", "verify", unit], stderr=subprocess.PIPE, check=False, timeout=SECONDS)
    if os.path.basename(path).split("@")[0] in found.stderr.decode():
        raise SystemExit("systemd: %s" % found.stderr.decode())


def check_mesh(server, folder):
    mesh = Mesh(server, os.path.join(EXAMPLES, "docker-compose.mesh.yml"), folder)
    front = None
    try:
        for name in mesh.commands:
            mesh.start(name)
        check(mesh)
        if shutil.which("haproxy") is None:
            print("skipped: HAProxy in front of the mesh: haproxy is not installed")
            return
        port = free_port()
        text = open(os.path.join(EXAMPLES, "haproxy.cfg"), encoding="utf-8").read()
        text = text.replace("bind :6379", "bind 127.0.0.1:%d" % port)
        text = re.sub(r" ([a-z]+):6379", lambda match: " 127.0.0.1:%d" % mesh.ports[match.group(1)], text)
        path = os.path.join(folder, "haproxy.cfg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        front = subprocess.Popen(["haproxy", "-f", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        wait_for("HAProxy serves a node", lambda: call(port, "SET", "front", "1") == "+OK")
        names = list(mesh.commands)
        for name in names: # what only a node has that is away comes back with it
            wait_for("%s has the write" % name, lambda name=name: call(mesh.ports[name], "GET", "front") == "1")
        mesh.kill(names[0])
        wait_for("HAProxy serves another node", lambda: call(port, "GET", "front") == "1")
    finally:
        if front is not None:
            front.terminate()
            front.wait(SECONDS)
        mesh.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    arguments = parser.parse_args()
    parts = (("pair", check_pair), ("mesh", check_mesh), ("unit", check_unit))
    for name, part in parts:
        with tempfile.TemporaryDirectory(prefix="keydb-examples-") as folder:
            part(os.path.abspath(arguments.server), folder)
        print("passed: example %s" % name, flush=True)
    print("%d passed, 0 failed" % len(parts))


if __name__ == "__main__":
    sys.exit(main())
