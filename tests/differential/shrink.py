"""Delta debugging: the shortest list of commands that still fails, within a time."""
import time


def shrink(items, fails, seconds):
    """fails(items) runs them on empty servers and gives the difference, or None. Gives the list and its difference;
    no difference at all if the whole list does not fail again."""
    deadline = time.monotonic() + seconds
    difference = fails(items)
    if difference is None:
        return items, None
    items, difference = cut_end(items, difference)
    pieces = 2
    while len(items) > 1 and time.monotonic() < deadline:
        size = max(1, len(items) // pieces)
        for begin in range(0, len(items), size):
            # Pauses stay: without its pause a key that is about to expire would make a difference of its own.
            pauses = [item for item in items[begin:begin + size] if item[1][0] == "@sleep"]
            shorter = items[:begin] + pauses + items[begin + size:]
            if len(shorter) == len(items):
                continue
            outcome = fails(shorter) if shorter else None
            if outcome:
                items, difference = cut_end(shorter, outcome)
                pieces = max(2, pieces - 1)
                break
            if time.monotonic() > deadline:
                break
        else:
            if size == 1:
                break
            pieces = min(len(items), pieces * 2)
    return shorten_words(items, difference, fails, deadline)


def cut_end(items, difference):
    if difference.index is not None:
        items = items[:difference.index + 1]
    return items, difference


def shorten_words(items, difference, fails, deadline):
    """Then the single words: long values become short ones, arguments at the end go."""
    for index in range(len(items)):
        if items[index][1][0] == "@sleep":
            continue
        place = len(items[index][1]) - 1
        while place > 0 and time.monotonic() < deadline:
            which, words = items[index]
            candidates = []
            if place == len(words) - 1:
                candidates.append(words[:place])
            if isinstance(words[place], bytes) and len(words[place]) > 3:
                candidates.append(words[:place] + [b"x"] + words[place + 1:])
            for candidate in candidates:
                attempt = items[:index] + [(which, candidate)] + items[index + 1:]
                outcome = fails(attempt)
                if outcome:
                    items, difference = attempt, outcome
                    break
            place -= 1
    return items, difference
