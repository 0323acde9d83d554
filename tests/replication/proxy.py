#!/usr/bin/env python3
"""A proxy on loopback that forwards connections to one port, and does to them what networks do.

    proxy.py PORT         forwards to PORT; says "port N" when it listens on N, then reads commands, one a line

Each command is answered by one line, "ok" or "error: ..." or, for `stats`, by NAME VALUE pairs. A connection has two
directions: `down` (from the server to who connected, so from a master to its replica), `up` the other way.

    target PORT            connections that come from now on go there
    cut                    resets all connections; new ones are accepted
    down, up               down: as cut, and new ones are reset at once, until up
    stall [down|up]        forwards nothing any more (in one direction, or in both); connections stay
    resume                 ends stall
    delay MS               each byte comes so much later
    throttle BYTES         a second, in each direction; 0: no limit
    at COUNT ACTION [down|up]
                           ACTION (cut, down, stall) when COUNT bytes went that way (default down) through a connection:
                           for the next connection only. Exactly COUNT bytes are forwarded
    seed N LEAST MOST      each connection is cut, stalled for 200 ms, or slowed to 4 MiB/s for 1 s, at byte LEAST ...
                           MOST of a random direction, again and again; seed 0 ends that
    stats                  connections NOW accepted TOTAL down_bytes N up_bytes N
"""
import collections
import os
import random
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time

ROOM = 1 << 20          # bytes that wait in one direction before we stop to read
PIECE = 1 << 18


class Way:
    """One direction of a link: from source to sink."""

    def __init__(self, source, sink):
        self.source, self.sink = source, sink
        self.waiting = collections.deque()      # of [due, bytes]
        self.held = 0
        self.passed = 0                         # bytes sent on
        self.ended = False                      # the source has ended
        self.trap = None                        # (byte, action)
        self.stalled_until = 0.0
        self.slow_until = 0.0
        self.allowance = 0.0
        self.earned = time.monotonic()


class Link:
    def __init__(self, client, server):
        self.down = Way(server, client)
        self.up = Way(client, server)
        self.random = None

    def ways(self):
        return (self.down, self.up)


class Forwarder:
    """Runs in a thread of its own; methods may be called from any."""

    def __init__(self, target):
        self.target = target
        self.links = set()
        self.refuses = False
        self.stalled = set()
        self.delay_s = 0.0
        self.rate = 0
        self.next_trap = None
        self.seed_plan = None
        self.seeded = 0
        self.accepted = 0
        self.bytes = {"down": 0, "up": 0}
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.wake_out, self.wake_in = socket.socketpair()
        self.wake_out.setblocking(False)
        self.selector.register(self.wake_out, selectors.EVENT_READ, None)
        self.orders = collections.deque()
        self.masks = {}
        self.over = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    # ---- orders, from any thread

    def order(self, action):
        done = threading.Event()
        self.orders.append((action, done))
        self.wake_in.send(b"w")
        done.wait(10)

    def set_target(self, port):
        self.target = port

    def cut(self):
        self.order(self.cut_all)

    def take_down(self):
        def act():
            self.refuses = True
            self.cut_all()
        self.order(act)

    def put_up(self):
        def act():
            self.refuses = False
        self.order(act)

    def stall(self, which=("down", "up")):
        which = (which,) if isinstance(which, str) else which
        self.order(lambda: self.stalled.update(which))

    def resume(self):
        def act():
            self.stalled.clear()
            for link in self.links:
                for way in link.ways():
                    way.stalled_until = 0.0
        self.order(act)

    def delay(self, seconds):
        def act():
            self.delay_s = seconds
        self.order(act)

    def throttle(self, rate):
        def act():
            self.rate = rate
        self.order(act)

    def at(self, count, action="cut", which="down"):
        def act():
            self.next_trap = (count, action, which)
        self.order(act)

    def seed(self, number, least=1, most=1 << 20):
        def act():
            self.seed_plan = (number, least, most) if number else None
            if not number:
                for link in self.links:
                    for way in link.ways():
                        way.trap = None
        self.order(act)

    def stats(self):
        return {"connections": len(self.links), "accepted": self.accepted, "down_bytes": self.bytes["down"],
                "up_bytes": self.bytes["up"]}

    def close(self):
        def act():
            self.over = True
            self.cut_all()
        if not self.over:
            self.order(act)
            self.thread.join(10)

    # ---- the thread

    def cut_all(self):
        for link in list(self.links):
            self.drop(link)

    def drop(self, link):
        if link not in self.links:
            return
        self.links.discard(link)
        for end in (link.down.source, link.up.source):
            try:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
            if self.masks.pop(end, 0):
                self.selector.unregister(end)
            end.close()

    def accept(self):
        try:
            client, _ = self.listener.accept()
        except OSError:
            return
        self.accepted += 1
        server = None
        if not self.refuses:
            try:
                server = socket.create_connection(("127.0.0.1", self.target), 2)
            except OSError:
                pass
        if server is None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            return
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.setblocking(False)
        link = Link(client, server)
        if self.next_trap:
            count, action, which = self.next_trap
            self.next_trap = None
            getattr(link, which).trap = (count, action)
        elif self.seed_plan:
            self.seeded += 1
            link.random = random.Random("%d %d" % (self.seed_plan[0], self.seeded))
            self.set_random_trap(link)
        self.links.add(link)

    def set_random_trap(self, link):
        if not self.seed_plan:
            return
        _, least, most = self.seed_plan
        way = link.random.choice(link.ways())
        way.trap = (way.passed + link.random.randint(least, most), link.random.choice(["cut", "pause", "slow"]))

    def may_pass(self, link, way, now):
        """How many bytes may go on now, and when to look again."""
        which = "down" if way is link.down else "up"
        if which in self.stalled:
            return 0, None
        if way.stalled_until > now:
            return 0, way.stalled_until
        if not way.waiting:
            return 0, None
        if way.waiting[0][0] > now:
            return 0, way.waiting[0][0]
        room = PIECE
        rate = self.rate
        if way.slow_until > now:
            rate = min(rate or 1 << 22, 1 << 22)
        if rate:
            way.allowance = min(way.allowance + (now - way.earned) * rate, max(rate * 0.02, 1.0))
            way.earned = now
            if way.allowance < 1:
                return 0, now + max(1 - way.allowance, 0.0) / rate + 0.001
            room = min(room, int(way.allowance))
        if way.trap:
            room = min(room, way.trap[0] - way.passed)
        return room, None

    def forward(self, link, way, now):
        """Sends on what may go. True if the sink takes no more; and when to look again."""
        while True:
            if way.trap and way.passed >= way.trap[0]:
                action = way.trap[1]
                way.trap = None
                if action in ("cut", "down"):
                    self.refuses = self.refuses or action == "down"
                    self.drop(link)
                    return False, None
                way.stalled_until = now + (0.2 if action == "pause" else 1e9 if action == "stall" else 0)
                way.slow_until = now + (1.0 if action == "slow" else 0)
                if link.random:
                    self.set_random_trap(link)
            room, again = self.may_pass(link, way, now)
            if room <= 0:
                if way.ended and not way.waiting:
                    self.drop(link)
                return False, again
            data = way.waiting[0][1]
            try:
                sent = way.sink.send(data[:room])
            except BlockingIOError:
                return True, None
            except OSError:
                self.drop(link)
                return False, None
            way.passed += sent
            way.allowance -= sent
            way.held -= sent
            self.bytes["down" if way is link.down else "up"] += sent
            if sent == len(data):
                way.waiting.popleft()
            else:
                way.waiting[0][1] = data[sent:]

    def receive(self, link, way, now):
        try:
            data = way.source.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            way.ended = True
            return
        way.waiting.append([now + self.delay_s, memoryview(data)])
        way.held += len(data)

    def watch(self, end, mask, link):
        if self.masks.get(end, 0) == mask:
            return
        if not mask:
            self.selector.unregister(end)
            del self.masks[end]
        elif end in self.masks:
            self.selector.modify(end, mask, link)
            self.masks[end] = mask
        else:
            self.selector.register(end, mask, link)
            self.masks[end] = mask

    def run(self):
        timeout = None
        while not self.over:
            events = self.selector.select(timeout)
            now = time.monotonic()
            for key, mask in events:
                if key.fileobj is self.listener:
                    self.accept()
                elif key.fileobj is self.wake_out:
                    self.wake_out.recv(4096)
                elif key.data in self.links and mask & selectors.EVENT_READ:
                    link = key.data
                    self.receive(link, link.down if key.fileobj is link.down.source else link.up, now)
            while self.orders:
                action, done = self.orders.popleft()
                action()
                done.set()
            soonest = None
            for link in list(self.links):
                full = {}
                for way in link.ways():
                    full[way], again = self.forward(link, way, now)
                    if link not in self.links:
                        break
                    if again is not None:
                        soonest = again if soonest is None else min(soonest, again)
                if link not in self.links:
                    continue
                for way, other in (link.ways(), link.ways()[::-1]):
                    mask = selectors.EVENT_READ if way.held < ROOM and not way.ended else 0
                    mask |= selectors.EVENT_WRITE if full[other] else 0
                    self.watch(way.source, mask, link)
            timeout = None if soonest is None else max(0.0, soonest - time.monotonic())
        self.listener.close()


class Proxy:
    """The same in a process of its own, so that a busy test does not slow it down."""

    def __init__(self, target):
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), str(target)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])

    def say(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise ValueError("%s: %s" % (words, answer))
        return answer

    def set_target(self, port):
        self.say("target", port)

    def cut(self):
        self.say("cut")

    def take_down(self):
        self.say("down")

    def put_up(self):
        self.say("up")

    def stall(self, *which):
        self.say("stall", *which)

    def resume(self):
        self.say("resume")

    def delay(self, seconds):
        self.say("delay", int(seconds * 1000))

    def throttle(self, rate):
        self.say("throttle", int(rate))

    def at(self, count, action="cut", which="down"):
        self.say("at", count, action, which)

    def seed(self, number, least=1, most=1 << 20):
        self.say("seed", number, least, most)

    def stats(self):
        words = self.say("stats").split()
        return dict(zip(words[::2], map(int, words[1::2])))

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(20)
            self.process.stdout.close()


def obey(proxy, words):
    name, rest = words[0], words[1:]
    if name == "target":
        proxy.set_target(int(rest[0]))
    elif name == "cut":
        proxy.cut()
    elif name == "down":
        proxy.take_down()
    elif name == "up":
        proxy.put_up()
    elif name == "stall":
        proxy.stall(rest[0] if rest else ("down", "up"))
    elif name == "resume":
        proxy.resume()
    elif name == "delay":
        proxy.delay(int(rest[0]) / 1000)
    elif name == "throttle":
        proxy.throttle(int(rest[0]))
    elif name == "at":
        proxy.at(int(rest[0]), rest[1], rest[2] if len(rest) > 2 else "down")
    elif name == "seed":
        proxy.seed(*map(int, rest))
    elif name == "stats":
        return " ".join("%s %d" % pair for pair in proxy.stats().items())
    else:
        return "error: unknown command %s" % name
    return "ok"


def main():
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    proxy = Forwarder(int(sys.argv[1]))
    print("port", proxy.port, flush=True)
    while True:
        line = sys.stdin.readline()
        if not line:
            break
        words = line.split()
        if words:
            try:
                answer = obey(proxy, words)
            except (ValueError, IndexError, TypeError) as problem:
                answer = "error: %s" % problem
            print(answer, flush=True)
    proxy.close()


if __name__ == "__main__":
    main()
