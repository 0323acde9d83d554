"""What Celery's worker runs for scenarios.py."""
import os
import time

from celery import Celery
from redis import Redis

URL = "redis://127.0.0.1:%s/" % os.environ["PORT"]
app = Celery("tasks", broker=URL + "1", backend=URL + "2")
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=1, task_track_started=True,
                broker_connection_retry_on_startup=True, result_expires=600)
redis = Redis.from_url(URL + "3")


@app.task
def add(one, two):
    return one + two


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def note(name, what):
    return redis.rpush(name, what)


@app.task(bind=True, max_retries=5)
def fail_until(self, name, times):
    if redis.incr(name) < times:
        raise self.retry(countdown=0.2)
    return self.request.retries


@app.task
def fail(why):
    raise ValueError(why)


@app.task
def linger(name):
    redis.set(name, 1)
    time.sleep(600)
