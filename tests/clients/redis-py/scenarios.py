"""redis-py: one function a scenario, see ../run."""
import os
import sys

import redis

PORT = int(os.environ["PORT"])
CERTS = os.environ["CERTS"]


def plain(**options):
    return redis.Redis(port=PORT, socket_timeout=30, **options)


def expect(got, wanted):
    if got != wanted:
        raise AssertionError("%r instead of %r" % (got, wanted))


def connect():
    client = plain(client_name="scenario", db=2)
    expect(client.ping(), True)
    expect(client.set("py:connect", b"\x00\xff\r\n"), True)
    expect(client.get("py:connect"), b"\x00\xff\r\n")
    expect(client.client_getname(), "scenario")
    expect(plain().get("py:connect"), None)
    expect(client.ttl("py:connect"), -1)
    expect(client.info("server")["tcp_port"], PORT)


def pipeline():
    with plain().pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.set("py:%d" % number, number)
            pipe.incr("py:%d" % number)
            pipe.get("py:%d" % number)
        replies = pipe.execute()
    expect(replies[2::3], [b"%d" % (number + 1) for number in range(1000)])


def multi():
    client = plain()
    client.delete("py:n")
    with client.pipeline(transaction=True) as pipe:
        expect(pipe.incr("py:n").incrby("py:n", 10).get("py:n").execute(), [1, 11, b"11"])


def watch():
    client, other = plain(), plain()
    client.set("py:w", 1)
    with client.pipeline() as pipe:
        pipe.watch("py:w")
        other.set("py:w", 2)
        pipe.multi()
        pipe.set("py:w", 3)
        try:
            pipe.execute()
        except redis.WatchError:
            pass
        else:
            raise AssertionError("EXEC did not notice the change")
        pipe.watch("py:w")
        pipe.multi()
        pipe.set("py:w", 4)
        expect(pipe.execute(), [True])
    expect(client.get("py:w"), b"4")


def tls():
    options = dict(host="localhost", port=int(os.environ["TLS_PORT"]), ssl=True, ssl_ca_certs=CERTS + "/ca.crt",
                   ssl_check_hostname=True, socket_timeout=30)
    client = redis.Redis(ssl_certfile=CERTS + "/client.crt", ssl_keyfile=CERTS + "/client.key", **options)
    expect(client.set("py:tls", b"x" * 100000), True)
    expect(client.get("py:tls"), b"x" * 100000)
    try:
        redis.Redis(**options).ping()
    except redis.ConnectionError:
        return
    raise AssertionError("a client without a certificate was let in")


def resp3():
    client = plain(protocol=3)
    expect(client.set("py:3", "three"), True)
    expect(client.get("py:3"), b"three")
    expect(client.execute_command("HELLO")[b"proto"], 3)
    expect(client.get("py:missing"), None)
    with client.pipeline() as pipe:
        expect(pipe.get("py:3").get("py:missing").execute(), [b"three", None])


def unix():
    client = redis.Redis(unix_socket_path=os.environ["UNIX_SOCKET"])
    expect(client.set("py:unix", 1), True)
    expect(client.incr("py:unix"), 2)


def large():
    client = plain()
    for size in (16384, 32767, 32768, 1 << 20, 20 << 20):
        value = os.urandom(size)
        expect(client.set("py:large", value), True)
        if client.get("py:large") != value:
            raise AssertionError("%d bytes came back differently" % size)
        expect(client.getrange("py:large", size - 16, -1), value[-16:])
    client.delete("py:large")


def reconnect():
    client, other = plain(single_connection_client=False), plain()
    number = client.client_id()
    expect(other.client_kill_filter(_id=number), 1)
    expect(client.ping(), True)
    if client.client_id() == number:
        raise AssertionError("still the same connection")


def errors():
    client = plain()
    client.set("py:text", "text")
    for call, wanted in ((lambda: client.incr("py:text"), "value is not an integer or out of range"),
                         (lambda: client.execute_command("NOSUCH", "a"), "unknown command 'NOSUCH', with args "
                                                                         "beginning with: 'a' "),
                         (lambda: client.execute_command("GET"), "wrong number of arguments for 'get' command")):
        try:
            call()
        except redis.ResponseError as problem:
            expect(str(problem), wanted)
        else:
            raise AssertionError("no error: " + wanted)
    with client.pipeline() as pipe:
        pipe.set("py:text", "x").incr("py:text").get("py:text")
        replies = pipe.execute(raise_on_error=False)
    expect([replies[0], isinstance(replies[1], redis.ResponseError), replies[2]], [True, True, b"x"])


for scenario in (connect, pipeline, multi, watch, tls, resp3, unix, large, reconnect, errors):
    try:
        scenario()
        print("ok " + scenario.__name__)
    except Exception as problem:    # whatever the client makes of it is the result
        print("not ok %s: %s %s" % (scenario.__name__, type(problem).__name__, str(problem).replace("\n", " ")))
    sys.stdout.flush()
