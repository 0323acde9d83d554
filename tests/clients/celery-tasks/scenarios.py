"""Celery with broker and results in the server: tasks, groups, chords, retries, remote control; see ../run.

The broker's queues are lists with BRPOP, what was not acknowledged yet stands in a sorted set, remote control and
results are messages, chords count in transactions.
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "common"))

from celery import chain, chord, group      # noqa: E402
from celery.exceptions import TaskRevokedError      # noqa: E402
from redis import Redis     # noqa: E402

import tasks    # noqa: E402
from report import expect, run, wait_for    # noqa: E402

PATIENCE_S = 40
broker = Redis.from_url(tasks.URL + "1")


def start_worker():
    command = [os.path.join(os.path.dirname(sys.executable), "celery"), "--quiet", "-A", "tasks", "worker",
               "--concurrency", "2", "--loglevel", "ERROR"]
    return subprocess.Popen(command, cwd=HERE, env=dict(os.environ, PYTHONPATH=HERE), stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def control():
    """Asked by a message, answered through a list."""
    wait_for(lambda: tasks.app.control.ping(timeout=1), "the worker's answer")
    registered = tasks.app.control.inspect(timeout=5).registered()
    expect(any("tasks.add" in names for names in registered.values()), True)


def results():
    made = [tasks.add.delay(number, 1) for number in range(30)]
    expect([result.get(timeout=PATIENCE_S) for result in made], list(range(1, 31)))
    wait_for(lambda: broker.llen("celery") == 0 and broker.zcard("unacked_index") == 0, "acknowledgements")


def groups():
    expect(group(tasks.add.s(number, number) for number in range(10))().get(timeout=PATIENCE_S),
           [2 * number for number in range(10)])
    expect(chain(tasks.add.s(1, 2), tasks.add.s(10), tasks.add.s(100))().get(timeout=PATIENCE_S), 113)


def chords():
    expect(chord([tasks.add.s(number, 0) for number in range(12)])(tasks.total.s()).get(timeout=PATIENCE_S), 66)
    outer = chain(group(tasks.add.s(1, 1), tasks.add.s(2, 2)), tasks.total.s(), tasks.add.s(1))
    expect(outer().get(timeout=PATIENCE_S), 7)


def retries():
    expect(tasks.fail_until.delay("celery:tries", 3).get(timeout=PATIENCE_S), 2)
    result = tasks.fail.delay("on purpose")
    try:
        result.get(timeout=PATIENCE_S)
    except ValueError as problem:
        expect(str(problem), "on purpose")
    else:
        raise AssertionError("no error")


def countdown():
    """A task for later is taken, kept as not acknowledged, and run when its time has come."""
    late = tasks.note.apply_async(("celery:order", "late"), countdown=1)
    early = tasks.note.delay("celery:order", "early")
    expect([early.get(timeout=PATIENCE_S), late.get(timeout=PATIENCE_S)], [1, 2])
    expect(tasks.redis.lrange("celery:order", 0, -1), [b"early", b"late"])


def revoke():
    result = tasks.linger.delay("celery:lingers")
    wait_for(lambda: tasks.redis.get("celery:lingers"), "the task's begin")
    result.revoke(terminate=True)
    try:
        result.get(timeout=PATIENCE_S)
    except TaskRevokedError:
        pass
    expect(result.status, "REVOKED")
    expect(tasks.add.delay(2, 3).get(timeout=PATIENCE_S), 5)


worker = start_worker()
try:
    run(control, results, groups, chords, retries, countdown, revoke)
finally:
    worker.terminate()
    try:
        worker.wait(20)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
    broker.flushall()
