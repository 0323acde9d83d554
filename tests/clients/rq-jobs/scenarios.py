"""RQ: queues, dependencies, failures, schedules and commands to workers, with two worker processes; see ../run.

Queues are lists with BLMOVE, results streams, registries sorted sets, commands to workers messages; WATCH guards
dependencies.
"""
import os
import subprocess
import sys
from datetime import timedelta

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "common"))

from redis import Redis     # noqa: E402
from rq import Queue, Retry, Worker     # noqa: E402
from rq.command import send_stop_job_command    # noqa: E402
from rq.job import JobStatus    # noqa: E402
from rq.registry import FailedJobRegistry, FinishedJobRegistry      # noqa: E402

import jobs     # noqa: E402
from report import expect, run, wait_for    # noqa: E402

WORKERS = 2
QUEUES = ["high", "low"]
redis = jobs.connect()
high, low = (Queue(name, connection=redis) for name in QUEUES)


def start_worker():
    command = [os.path.join(os.path.dirname(sys.executable), "rq"), "worker", "--quiet", "--with-scheduler", "--url",
               "redis://127.0.0.1:%s/1" % os.environ["PORT"], *QUEUES]
    return subprocess.Popen(command, cwd=HERE, env=dict(os.environ, PYTHONPATH=HERE), stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def finished(job):
    wait_for(lambda: job.get_status() in (JobStatus.FINISHED, JobStatus.FAILED, JobStatus.STOPPED), job.id)
    return job.get_status()


def results():
    wait_for(lambda: len(Worker.all(connection=redis)) == WORKERS, "workers")
    made = [(number, (low if number % 3 else high).enqueue(jobs.square, number)) for number in range(20)]
    for number, job in made:
        expect(finished(job), JobStatus.FINISHED)
        expect(job.return_value(refresh=True), number * number)
    wait_for(lambda: len(FinishedJobRegistry(queue=high)) + len(FinishedJobRegistry(queue=low)) == 20, "registries")
    expect(high.count + low.count, 0)


def dependencies():
    first = [low.enqueue(jobs.leave, "rq:part:%d" % number, number) for number in range(6)]
    last = high.enqueue(jobs.total, *["rq:part:%d" % number for number in range(6)], depends_on=first)
    expect(finished(last), JobStatus.FINISHED)
    expect(last.return_value(refresh=True), 15)


def failures():
    job = high.enqueue(jobs.fail_until, "rq:tries", 3, retry=Retry(max=3))
    expect(finished(job), JobStatus.FINISHED)
    expect(redis.get("rq:tries"), b"3")
    job = high.enqueue(jobs.fail, "on purpose")
    expect(finished(job), JobStatus.FAILED)
    wait_for(lambda: job.id in FailedJobRegistry(queue=high), "failed job")
    result = wait_for(job.latest_result, "its result")
    if "ValueError: on purpose" not in result.exc_string:
        raise AssertionError(result.exc_string)


def schedule():
    job = low.enqueue_in(timedelta(seconds=1), jobs.square, 12)
    expect(job.get_status(), JobStatus.SCHEDULED)
    expect(finished(job), JobStatus.FINISHED)
    expect(job.return_value(refresh=True), 144)


def commands():
    job = high.enqueue(jobs.linger, "rq:lingers")
    wait_for(lambda: redis.get("rq:lingers"), "the job's begin")
    send_stop_job_command(redis, job.id)
    expect(finished(job), JobStatus.STOPPED)


workers = [start_worker() for _ in range(WORKERS)]
try:
    run(results, dependencies, failures, schedule, commands)
finally:
    for worker in workers:
        worker.terminate()
    for worker in workers:
        try:
            worker.wait(10)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
    Redis(port=int(os.environ["PORT"])).flushall()
