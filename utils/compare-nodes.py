#!/usr/bin/env python3
"""Compares the data of two running servers and names the keys that differ.

    compare-nodes.py [--user NAME] [--askpass] [--tls] [--cacert FILE] [--cert FILE --key FILE]
                     [--rounds N] HOST:PORT HOST:PORT

Both servers make digests of their hash slots (DEBUG DIGEST-SLOT, with a new random seed), which stops their clients for
about 0.1 s for each million keys. If slots differ, all names of keys are read with SCAN, and DEBUG DIGEST-KEY and
DEBUG DIGEST-VALUE of the keys in these slots are compared. Writes that go on meanwhile make keys look different: these
are looked at again, up to --rounds times, a second apart; a key that stays in the list differs, or changes all the
time.

A password comes from the environment (KEYDB_PASSWORD) or is asked for with --askpass. The servers have to allow DEBUG
(enable-debug-command).

Each line tells: database, key, and what differs: "only on ADDRESS", "value", or "beside the value" (the time of a
deadline, a group of a stream, the start of a job).

Exit code: 0 the data are equal, 1 keys differ, 2 something else failed.
"""

import argparse
import getpass
import os
import secrets
import socket
import ssl
import sys
import time

SLOT_COUNT = 16384
KEYS_AT_ONCE = 500
NO_DIGEST = "0" * 32


class ReplyError(Exception):
    pass


class Node:
    def __init__(self, address, options, password):
        host, _, port = address.rpartition(":")
        self.address = address
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout=600)
        if options.tls or options.cacert:
            context = ssl.create_default_context(cafile=options.cacert)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_REQUIRED if options.cacert else ssl.CERT_NONE
            if options.cert:
                context.load_cert_chain(options.cert, options.key)
            self.socket = context.wrap_socket(self.socket)
        self.file = self.socket.makefile("rb")
        if password:
            self.call("AUTH", *([options.user] if options.user else []), password)

    def call(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(
            b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        reply = self.read()
        if isinstance(reply, ReplyError):
            raise ReplyError("%s: %s" % (self.address, reply))
        return reply

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("%s closed the connection" % self.address)
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return ReplyError(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if int(rest) < 0 else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        raise OSError("%s: not a reply: %r" % (self.address, line))

    def databases(self):
        text = self.call("INFO", "keyspace").decode()
        return {int(line[2:line.index(":")]) for line in text.splitlines() if line.startswith("db")}

    def slots(self, seed):
        return self.call("DEBUG", "DIGEST-SLOT", "SEED", seed, "0-%d" % (SLOT_COUNT - 1))

    def keys_in(self, database, slots):
        self.call("SELECT", database)
        cursor, found = b"0", set()
        while True:
            cursor, names = self.call("SCAN", cursor, "COUNT", 1000)
            found.update(name for name in names if slot_of(name) in slots)
            if cursor == b"0":
                return found

    def digests(self, which, database, keys):
        self.call("SELECT", database)
        result = {}
        for at in range(0, len(keys), KEYS_AT_ONCE):
            some = keys[at:at + KEYS_AT_ONCE]
            result.update(zip(some, self.call("DEBUG", which, *some)))
        return result


def make_crc_table():
    table = []
    for byte in range(256):
        crc = byte << 8
        for _ in range(8):
            crc = crc << 1 ^ (0x11021 if crc & 0x8000 else 0)
        table.append(crc & 0xFFFF)
    return table


CRC_TABLE = make_crc_table()


def slot_of(key):
    begin = key.find(b"{") + 1
    end = key.find(b"}", begin)
    if begin > 0 and end > begin:
        key = key[begin:end]
    crc = 0
    for byte in key:
        crc = (crc << 8 & 0xFFFF) ^ CRC_TABLE[crc >> 8 ^ byte]
    return crc % SLOT_COUNT


def differing_slots(nodes):
    seed = secrets.token_hex(16)
    first, second = (node.slots(seed) for node in nodes)
    return {slot for slot in range(SLOT_COUNT) if first[slot] != second[slot]}


def differing_keys(nodes, candidates):
    """Of these (database, key), those that differ, with what differs."""
    result = {}
    for database in sorted({database for database, _ in candidates}):
        keys = sorted(key for where, key in candidates if where == database)
        first, second = (node.digests("DIGEST-KEY", database, keys) for node in nodes)
        keys = [key for key in keys if first[key] != second[key]]
        values = [node.digests("DIGEST-VALUE", database, keys) for node in nodes]
        for key in keys:
            if first[key] == NO_DIGEST or second[key] == NO_DIGEST:
                what = "only on " + nodes[first[key] == NO_DIGEST].address
            else:
                what = "value" if values[0][key] != values[1][key] else "beside the value"
            result[database, key] = what
    return result


def readable(key):
    return '"' + "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else "\\x%02x" % byte
                         for byte in key) + '"'


def compare(nodes, rounds):
    slots = differing_slots(nodes)
    if not slots:
        return {}
    candidates = set()
    for database in sorted(set().union(*(node.databases() for node in nodes))):
        for node in nodes:
            candidates.update((database, key) for key in node.keys_in(database, slots))
    found = differing_keys(nodes, candidates)
    for _ in range(rounds - 1):
        if not found:
            break
        time.sleep(1)
        found = differing_keys(nodes, set(found))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", nargs=2, metavar="HOST:PORT")
    parser.add_argument("--user", default="")
    parser.add_argument("--askpass", action="store_true")
    parser.add_argument("--tls", action="store_true", help="connect by TLS; certificates are not checked")
    parser.add_argument("--cacert", metavar="FILE", help="connect by TLS; FILE has who signs certificates")
    parser.add_argument("--cert", metavar="FILE", help="certificate of the client")
    parser.add_argument("--key", metavar="FILE")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    password = getpass.getpass("Password: ") if options.askpass else os.environ.get("KEYDB_PASSWORD", "")
    try:
        nodes = [Node(address, options, password) for address in options.nodes]
        found = compare(nodes, options.rounds)
    except (OSError, ReplyError, ValueError) as error:
        print("compare-nodes: %s" % error, file=sys.stderr)
        return 2
    for database, key in sorted(found):
        print("%d %s %s" % (database, readable(key), found[database, key]))
    print("%d keys differ" % len(found) if found else "the data are equal")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
