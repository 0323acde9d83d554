"""The effects of commands as each server hands them on: Redis' replication stream, and our journal."""
from harness import Incomplete, Lost, parse
from compare import ABSOLUTE_TIME_TOLERANCE_MS, as_number, show_words


class ReplicaStream:
    """Attached like a replica: the snapshot is read and thrown away, then comes the stream."""

    def __init__(self, server):
        self.server = server
        self.admin = server.connect()
        self.link = server.connect()
        reply = self.link.command("PSYNC", "?", "-1")
        if reply[0] != "+" or not reply[1].startswith(b"FULLRESYNC"):
            raise Lost("PSYNC answers %r" % (reply,))
        self.offset = int(reply[1].split()[2])
        self.skip_snapshot()
        self.pending = bytearray(self.link.data)
        self.offset += len(self.pending)
        self.link.data.clear()

    def skip_snapshot(self):
        link = self.link
        while True:     # line feeds keep the link alive while the snapshot is made
            stripped = link.data.lstrip(b"\n")
            if stripped[:1] == b"$" and b"\r\n" in stripped:
                break
            self.receive()
        end = stripped.index(b"\r\n")
        size = int(stripped[1:end])
        link.data = bytearray(stripped[end + 2:])
        while len(link.data) < size:
            self.receive()
        del link.data[:size]

    def receive(self):
        received = self.link.sock.recv(1 << 20)
        if not received:
            raise Lost("the replication link was closed")
        self.link.data += received

    def read(self):
        """All that the server has written so far."""
        info = self.admin.command("INFO", "replication")[1]
        wanted = int(info.split(b"master_repl_offset:")[1].split(b"\r\n")[0])
        while self.offset < wanted:
            received = self.link.sock.recv(1 << 20)
            if not received:
                raise Lost("the replication link was closed")
            self.offset += len(received)
            self.pending += received
        data = bytes(self.pending)
        self.pending.clear()
        return data


class DebugJournal:
    def __init__(self, server):
        self.admin = server.connect()
        reply = self.admin.command("DEBUG", "JOURNAL", "START")
        if reply[0] == "-":
            raise Lost("DEBUG JOURNAL START answers %r" % (reply,))

    def read(self):
        reply = self.admin.command("DEBUG", "JOURNAL", "READ")
        if reply[0] != "$":
            raise Lost("DEBUG JOURNAL READ answers %r" % (reply,))
        return reply[1] or b""


def attach(server):
    return ReplicaStream(server) if server.redis else DebugJournal(server)


def effects(data):
    """The stream as a list of (database, words); SELECT and PING are taken out."""
    result = []
    database = None
    at = 0
    while at < len(data):
        try:
            reply, at = parse(data, at)
        except Incomplete:
            raise Lost("the journal ends within a command: %r" % data[at:at + 80]) from None
        if reply[0] != "*":
            raise Lost("no command in the journal: %r" % (reply,))
        words = without_limit([word[1] for word in reply[1]])
        name = words[0].upper()
        if name == b"SELECT":
            database = int(words[1])
        elif name not in (b"PING", b"REPLCONF"):
            # The database of MULTI itself means nothing, it may stand before or behind the SELECT.
            result.append((None if name in (b"MULTI", b"EXEC") else database, words))
    return result


def settle_order(effects_in_order):
    """Several keys that one command found expired are deleted in any order: runs of such deletions are sorted."""
    result, run = [], []
    for effect in effects_in_order:
        if len(effect[1]) == 2 and effect[1][0].upper() in (b"DEL", b"UNLINK"):
            run.append(effect)
            continue
        result += sorted(run, key=repr)
        run = []
        result.append(effect)
    return result + sorted(run, key=repr)


def without_growth(oracle, server):
    """Both without each BITFIELD that made the string longer and then failed to write: the oracle keeps that from its
    replicas, ours does not. MULTI and EXEC may have been needed for it alone."""
    def failed(effect):
        words = [word.upper() for word in effect[1]]
        return words[0] == b"BITFIELD" and b"FAIL" in words and effect not in oracle

    if not any(failed(effect) for effect in server):
        return oracle, server
    return [[effect for effect in side if effect[0] is not None and not failed(effect)] for side in (oracle, server)]


def without_consumers(oracle, server):
    """Both without consumers that come and go, since the oracle has none that asked in vain and keeps it from its
    replicas when one is made by reading what it had had; and without how much a group has read, which it does not tell.
    MULTI and EXEC may have been needed for it alone."""
    def is_own(effect):
        words = [word.upper() for word in effect[1]]
        if words[:2] in ([b"XGROUP", b"CREATECONSUMER"], [b"XGROUP", b"DELCONSUMER"]):
            return True
        return words[:2] == [b"XGROUP", b"SETID"] and words[5:6] == [b"ENTRIESREAD"]

    if not any(is_own(effect) for effect in server):
        return oracle, server
    return [[effect for effect in side if effect[0] is not None and not is_own(effect)] for side in (oracle, server)]


def without_limit(words):
    """XADD and XTRIM with "=" and LIMIT is what only replicas take; ours leaves LIMIT out."""
    if words[0].upper() not in (b"XADD", b"XTRIM") or b"=" not in words:
        return words
    end = words.index(b"=") + 2
    while end + 1 < len(words) and words[end].upper() == b"LIMIT":
        del words[end:end + 2]
    while len(words) > 3 and words[2].upper() == b"LIMIT":
        del words[2:4]
    return words


def equal_effect(one, two):
    if one[0] != two[0] or len(one[1]) != len(two[1]) or one[1][0].upper() != two[1][0].upper():
        return False
    for left, right in zip(one[1][1:], two[1][1:]):
        if left == right or left.upper() == right.upper() and left.upper() in (b"PXAT", b"EXAT", b"PX", b"KEEPTTL"):
            continue
        first, second = as_number(left), as_number(right)
        if first is None or second is None or min(first, second) < 10**12 or \
                abs(first - second) > ABSOLUTE_TIME_TOLERANCE_MS:
            return False
    return True


def show_effect(effect):
    if effect is None:
        return "(nothing)"
    return ("" if effect[0] is None else "db%d " % effect[0]) + show_words(effect[1])


def first_difference(oracle, server):
    """(index, oracle's effect, ours) or None."""
    for index in range(max(len(oracle), len(server))):
        one = oracle[index] if index < len(oracle) else None
        two = server[index] if index < len(server) else None
        if one is None or two is None or not equal_effect(one, two):
            return index, one, two
    return None
