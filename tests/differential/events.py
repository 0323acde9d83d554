"""The keyspace events of each server, as a subscriber sees them."""
import re

from compare import show_words
from harness import Lost, exchange_all

CLASSES = "AKEnm"
END = b"__keyend__"


class Listener:
    def __init__(self, server):
        self.admin = server.connect()
        reply = self.admin.command("CONFIG", "SET", "notify-keyspace-events", CLASSES)
        if reply != ("+", b"OK"):
            raise Lost("CONFIG SET notify-keyspace-events answers %r" % (reply,))
        self.link = server.connect()
        self.link.command("PSUBSCRIBE", "__key*__*")
        self.count = 0

    def read(self):
        """All that were published so far: (channel, message)."""
        self.count += 1
        end = b"%d" % self.count
        self.admin.command("PUBLISH", END, end)
        found = []
        while True:
            result = exchange_all([(self.link, b"", 1)])[0]
            if isinstance(result, Lost):
                raise result
            _, _, channel, message = (part[1] for part in result[0][1])
            if channel == END:
                if message == end:
                    return found
                continue
            found.append((channel, message))


def without_vain_looks(events):
    """For the oracle SCAN with TYPE misses a key that it finds expired, for ours it does not look for it: who misses a
    key that has just expired is left out."""
    result, gone = [], set()
    for channel, message in events:
        database, _, name = channel.partition(b"__:")
        by_key = database.startswith(b"__keyspace")
        key, event = (name, message) if by_key else (message, name)
        if event == b"keymiss" and key in gone:
            continue
        if event == b"expired":
            gone.add(key)
        elif event != b"keymiss":
            gone.clear()
        result.append((channel, message))
    return result


ASKING = (b"xgroup-createconsumer", b"xgroup-delconsumer")   # ours has consumers that asked in vain, the oracle not


def settle_order(events):
    """Several keys that one command found expired go in any order: runs of such events are sorted."""
    result, run = [], []
    for event in without_vain_looks(events):
        if event[1] in ASKING or event[0].partition(b"__:")[2] in ASKING:
            continue
        if b"expired" in (event[1], event[0].partition(b"__:")[2]):
            run.append(event)
            continue
        result += sorted(run) + [event]
        run = []
    return result + sorted(run)


def show_event(event):
    return "(nothing)" if event is None else show_words(event)


def first_difference(oracle, server):
    """(index, oracle's event, ours) or None."""
    oracle, server = settle_order(oracle), settle_order(server)
    for index in range(max(len(oracle), len(server))):
        one = oracle[index] if index < len(oracle) else None
        two = server[index] if index < len(server) else None
        if one != two:
            return index, one, two
    return None


def signature(text):
    """What two differences have in common that come from the same mistake: the event without the key."""
    found = re.match(r"(?:__keyspace@\d+__:\S* (\S+)|__keyevent@\d+__:(\S+) )", text)
    return (found.group(1) or found.group(2)) if found else text
