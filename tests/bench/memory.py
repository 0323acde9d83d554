"""Bytes a key and bytes an idle connection: resident memory after, less before, divided. What the allocator keeps for
itself is part of the price."""
import re
import resource
import socket
import ssl
import time

from bytes import key_bytes
from harness import Server, encode, free_port
from workloads import CONNECTION_LIMITS, CONNECTIONS, KEY_BYTES_LIMIT, KEY_COUNTS

SETTLE_S = 2


def bytes_a_connection(binary, kind, count, certs):
    options = ["--maxclients", count + 100]
    if kind == "tls":
        tls_port = free_port()
        options += ["--tls-port", tls_port, "--tls-cert-file", certs + "/server.crt", "--tls-key-file",
                    certs + "/server.key", "--tls-ca-cert-file", certs + "/ca.crt", "--tls-auth-clients", "no"]
    context = ssl.create_default_context(cafile=certs + "/ca.crt")
    server = Server(binary, options, 1)
    connections = []
    try:
        before = server.rss()
        for _ in range(count):
            sock = socket.create_connection(("127.0.0.1", tls_port if kind == "tls" else server.port))
            if kind == "tls":
                sock = context.wrap_socket(sock, server_hostname="localhost")
            sock.sendall(encode(["PING"]))
            sock.recv(100)
            connections.append(sock)
        time.sleep(SETTLE_S + 1)
        return (server.rss() - before) / count
    finally:
        for sock in connections:
            sock.close()
        server.stop()


def run(options, table, results):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    counts = [count // (10 if options.quick else 1) for count in KEY_COUNTS]
    rows = [("memory_key", KEY_BYTES_LIMIT, lambda binary: key_bytes(binary, (16, 64, False), counts))]
    for kind, limit in CONNECTION_LIMITS.items():
        count = min(CONNECTIONS[kind], (hard - 200) // 2)
        rows.append(("memory_connection_" + kind, limit,
                     lambda binary, kind=kind, count=count: bytes_a_connection(binary, kind, count, options.certs)))
    for name, limit, measure in rows:
        if not re.search(options.workloads, name):
            continue
        redis, ours = measure(options.oracle), measure(options.server)
        results[name] = {"oracle": redis, "server": ours}
        print("%-26s redis %9.1f   ours %9.1f bytes   x%.2f   %s budget %d" % (
            name, redis, ours, ours / redis, table.judge(ours <= limit), limit), flush=True)
