"""What the Python programs share: running scenarios one after the other and telling ../run how each went."""
import sys
import time


def expect(got, wanted):
    if got != wanted:
        raise AssertionError("%r instead of %r" % (got, wanted))


def wait_for(condition, what, seconds=40):
    """What the condition gives as soon as that is true."""
    deadline = time.monotonic() + seconds
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > deadline:
            raise AssertionError("not within %d s: %s" % (seconds, what))
        time.sleep(0.02)


def run(*scenarios):
    for scenario in scenarios:
        try:
            scenario()
            print("ok " + scenario.__name__)
        except Exception as problem:    # whatever the program makes of it is the result
            print("not ok %s: %s %s" % (scenario.__name__, type(problem).__name__,
                                        str(problem).replace("\n", " ")))
        sys.stdout.flush()
