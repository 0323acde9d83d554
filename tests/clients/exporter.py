"""Debian's exporter for Prometheus: all that it tells of redis-server it tells of our server, too."""
import glob
import os
import re
import signal
import subprocess
import time
import urllib.request

from harness import Lost, Server, free_port

PACKAGE = "prometheus-redis-exporter"
PATIENCE_S = 120
# What there is to tell of: a key of every kind, deadlines, a group of a stream, a slow command, latency, errors.
BEFORE = """SET s x EX 1000 | RPUSH l a b | SADD set a | HSET h a b | ZADD z 1 a | XADD x * a b | XGROUP CREATE x g 0
    XREADGROUP GROUP g c STREAMS x > | CONFIG SET slowlog-log-slower-than 0 latency-monitor-threshold 1
    EVAL return(1) 0 | DEBUG SLEEP 0.01 | GET l | SELECT 3 | SET s x | SELECT 0""".replace("\n", "|").split("|")
OPTIONS = ["-include-system-metrics", "-export-client-list", "-include-config-metrics=true", "-check-keys", "*",
           "-check-streams", "x", "-count-keys", "db0=*"]
# Their labels say which server it is, and of which version: only which labels there are is compared.
ABOUT_ITSELF = {"redis_instance_info", "redis_connected_client_info", "redis_connected_clients_details"}


def call(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode:
        raise Lost("%s: %s" % (" ".join(command), done.stderr))


def prepare(folder):
    """The package is unpacked, not installed: that would start a service."""
    program = os.path.join(folder, "usr", "bin", PACKAGE)
    if not os.path.exists(program):
        os.makedirs(folder, exist_ok=True)
        call(["apt-get", "download", PACKAGE], folder)
        call(["dpkg-deb", "-x", glob.glob(os.path.join(folder, "*.deb"))[0], folder], folder)
    return program


def scrape(program, server):
    """The names with their labels."""
    connection = server.connect()
    for words in BEFORE:
        connection.command(*words.split())
    connection.close()
    port = free_port()
    process = subprocess.Popen([program, "-redis.addr", "redis://127.0.0.1:%d" % server.port, "-web.listen-address",
                                "127.0.0.1:%d" % port, *OPTIONS], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    try:
        text = None
        deadline = time.monotonic() + 30
        while text is None:
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=30) as page:
                    text = page.read().decode()
            except OSError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise
                time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
    found = set()
    for line in text.splitlines():
        name = re.match(r"(redis_\w+)(?:\{(.*)\})? [^ ]+$", line)
        if name and name[1] in ABOUT_ITSELF:
            found.add((name[1], " ".join(sorted(re.findall(r'(\w+)="(?:[^"\\]|\\.)*"', name[2] or "")))))
        elif name:      # the values of options are their own business
            found.add((name[1], re.sub(r',?value="(?:[^"\\]|\\.)*"', "", name[2] or "")))
    return found


def run(folder, oracle, binary, count):
    try:
        program = prepare(folder)
        found = []
        for each in (oracle, binary):
            with Server(each, ["--enable-debug-command", "yes"]) as server:
                found.append(scrape(program, server))
        missing = sorted("%s{%s}" % row for row in found[0] - found[1])
        few = "only %d metrics of redis-server" % len(found[0]) if len(found[0]) < 300 else None
        count.add("redis_exporter", few or (" ".join(missing) and "missing: " + " ".join(missing)) or None)
    except (Lost, OSError, IndexError, subprocess.SubprocessError) as problem:
        count.add("redis_exporter", str(problem))
