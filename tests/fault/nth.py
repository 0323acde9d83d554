"""One call on a file fails: the first, the second ... of each kind, in the same short life of a server: it starts with
data, takes writes, rewrites its append only file, saves a snapshot, takes writes, and is killed. What it acknowledged
is there when it starts again on a disk that is well; or, if it would not start, what was there before."""
import os
import shutil
import time

from disk import environment_of
from server import Client, Error, Server

KINDS = ("open", "write", "sync", "rename", "remove", "truncate", "read")
HOWS = {"write": ("eio", "enospc", "short", "torn", "interrupt")}
OPTIONS = {"appendonly": "yes", "appendfsync": "always", "save": "", "auto-aof-rewrite-percentage": "0"}


class Wrong(Exception):
    """Data is not what it has to be."""


def write(client, values, first, count):
    """Rising numbers; those that are acknowledged are kept. False: the server is gone."""
    for number in range(first, first + count):
        key = f"k{number % 7}"
        values["sent"][key] = number
        try:
            client.send("SET", key, number)
            reply = client.read()
        except OSError:
            return False
        if reply == "OK":
            values["acked"][key] = number
    return True


def wait_idle(client):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if client.field("rdb_bgsave_in_progress") == "0" and client.field("aof_rewrite_in_progress") == "0" and \
                client.field("aof_rewrite_scheduled") == "0":
            return
        time.sleep(0.01)


def live(client, values):
    """The life of a server whose disk may fail; it may end it."""
    try:
        if not write(client, values, 100, 20):
            return
        for first, command in ((200, "BGREWRITEAOF"), (300, "BGSAVE")):
            try:
                client.call(command)
            except Error:
                pass
            if not write(client, values, first, 5):
                return
            wait_idle(client)
            if not write(client, values, first + 10, 10):
                return
    except OSError:
        pass


def check(binary, data, log, values):
    server = Server(binary, data, log, OPTIONS)
    try:
        client = server.wait_loaded(20)
        if client is None:
            raise Wrong("the server does not start on a disk that is well:\n" + server.log_tail(8))
        for key, acked in values["acked"].items():
            found = int(client.call("GET", key) or -1)
            if not acked <= found <= values["sent"][key]:
                raise Wrong(f"{key}: {found} is there, {acked} was acknowledged, {values['sent'][key]} sent")
        if client.call("GET", "base") != "kept":
            raise Wrong("what was there before is gone")
        client.close()
    finally:
        server.kill()


def one(binary, folder, template, fault):
    """Is there such a call, and what was wrong afterwards (or None)."""
    data, log = os.path.join(folder, "data"), os.path.join(folder, "log")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, data)
    values = {"sent": {}, "acked": {}}
    server = Server(binary, data, log, OPTIONS, environment_of(binary, KEYDB_FAULT=fault))
    try:
        try:
            client = server.wait_loaded(20)
        except TimeoutError:
            client = None
        if client is not None:
            live(client, values)
    finally:
        server.kill()
    text = open(log, encoding="utf-8", errors="replace").read()
    fired = f"fault: {fault}" in text
    try:
        if not fired and client is None:
            raise Wrong("the server does not start:\n" + server.log_tail(8))
        check(binary, data, log, values)
    except (Wrong, TimeoutError, OSError, ValueError) as problem:
        return fired, problem
    return fired, None


def make_template(binary, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    server = Server(binary, folder, folder + ".log", OPTIONS)
    client = server.wait_loaded(20)
    client.call("SET", "base", "kept")
    client.call("BGREWRITEAOF")
    wait_idle(client)
    client.call("RPUSH", "list", 1, 2, 3)
    client.close()
    server.kill()
    data = os.path.join(folder, "appendonlydir")
    last = sorted(name for name in os.listdir(data) if name.endswith(".incr.aof"))[-1]
    with open(os.path.join(data, last), "ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$4\r\nba")  # half a command, which the next start cuts off


def fault_rounds(binary, folder, stride, report):
    template = os.path.join(folder, "template")
    make_template(binary, template)
    for kind in KINDS:
        for how in HOWS.get(kind, ("eio",)):
            number, fired = 0, True
            while fired:
                fault = f"{kind}:{number}" + (f":{how}" if how != "eio" else "")
                fired, problem = one(binary, os.path.join(folder, "nth"), template, fault)
                if not fired and number == 0 and problem is None:
                    problem = Wrong("no fault has happened")
                report(fault, problem)
                number += stride
                if problem is not None:
                    shutil.rmtree(os.path.join(folder, "failed-" + fault.replace(":", "-")), ignore_errors=True)
                    os.rename(os.path.join(folder, "nth"), os.path.join(folder, "failed-" + fault.replace(":", "-")))
