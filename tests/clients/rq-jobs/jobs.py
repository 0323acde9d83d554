"""What RQ's workers run for scenarios.py."""
import os
import time

from redis import Redis


def connect():
    return Redis(port=int(os.environ["PORT"]), db=1)


def square(number):
    return number * number


def total(*names):
    """The sum of what other jobs left."""
    return sum(int(value) for value in connect().mget(names))


def leave(name, number):
    connect().set(name, number)


def fail_until(name, times):
    if connect().incr(name) < times:
        raise ValueError("not yet")
    return "done"


def fail(why):
    raise ValueError(why)


def linger(name):
    connect().set(name, os.getpid())
    time.sleep(600)
