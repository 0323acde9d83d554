"""Argument forms of commands whose results are measurements: what both servers refuse and take, in which words.

A row is a command and how its reply is compared: "exact", or "kind" where the reply is a measurement (the type, and for
an error its text). The rows run in order, on both servers, in RESP2 and RESP3.
"""
ROWS = [
    ("exact", "CONFIG SET slowlog-log-slower-than -1 latency-monitor-threshold 0"),
    ("exact", "SLOWLOG RESET"), ("exact", "SLOWLOG LEN"), ("exact", "slowlog len"), ("exact", "SLOWLOG GET"),
    ("exact", "SLOWLOG GET 0"), ("exact", "SLOWLOG GET -1"), ("exact", "SLOWLOG GET 10"),
    ("exact", "SLOWLOG GET -2"), ("exact", "SLOWLOG GET -9223372036854775808"), ("exact", "SLOWLOG GET x"),
    ("exact", "SLOWLOG GET 1.5"), ("exact", "SLOWLOG GET 9223372036854775807"),
    ("exact", "SLOWLOG GET 9223372036854775808"), ("exact", "SLOWLOG GET 1 2"), ("exact", "SLOWLOG"),
    ("exact", "SLOWLOG LEN x"), ("exact", "SLOWLOG RESET x"), ("exact", "SLOWLOG nonsense"),
    ("exact", "SLOWLOG HELP x"), ("kind", "SLOWLOG HELP"),
    ("exact", "CONFIG SET slowlog-log-slower-than 0"), ("exact", "PING"), ("exact", "SLOWLOG RESET"),
    ("kind", "SLOWLOG GET 1"), ("kind", "SLOWLOG GET -1"), ("exact", "CONFIG SET slowlog-log-slower-than -1"),
    ("exact", "CONFIG SET slowlog-max-len 0"), ("exact", "SLOWLOG RESET"), ("exact", "SLOWLOG LEN"),
    ("exact", "CONFIG SET slowlog-max-len -1"), ("exact", "CONFIG SET slowlog-log-slower-than -2"),
    ("exact", "CONFIG SET slowlog-log-slower-than x"), ("exact", "CONFIG SET slowlog-max-len 128"),
    ("exact", "LATENCY RESET"), ("exact", "LATENCY LATEST"), ("exact", "LATENCY HISTORY command"),
    ("exact", "LATENCY HISTORY no-such-event"), ("exact", "LATENCY HISTORY"), ("exact", "LATENCY HISTORY a b"),
    ("exact", "LATENCY RESET command"), ("exact", "LATENCY RESET a b c"), ("exact", "LATENCY LATEST x"),
    ("exact", "LATENCY GRAPH"), ("exact", "LATENCY GRAPH no-such-event"), ("exact", "LATENCY GRAPH a b"),
    ("exact", "LATENCY"), ("exact", "LATENCY nonsense"), ("exact", "LATENCY HELP x"), ("kind", "LATENCY HELP"),
    ("kind", "LATENCY DOCTOR"), ("exact", "LATENCY DOCTOR x"), ("kind", "LATENCY HISTOGRAM"),
    ("exact", "LATENCY HISTOGRAM no-such-command"), ("kind", "LATENCY HISTOGRAM ping no-such-command"),
    ("exact", "CONFIG SET latency-monitor-threshold -1"), ("exact", "CONFIG SET latency-monitor-threshold x"),
    ("exact", "CONFIG SET latency-tracking maybe"), ("exact", "CONFIG RESETSTAT x"), ("exact", "CONFIG RESETSTAT"),
    ("exact", "CLIENT PAUSE 1 WRITE x"), ("exact", "CLIENT PAUSE 1 x y z"), ("exact", "CLIENT UNBLOCK 1 x y"),
    ("exact", "CLIENT UNBLOCK 1 x"), ("exact", "CLIENT UNPAUSE x"), ("exact", "CLIENT REPLY x y"),
    ("exact", "MONITOR x"), ("exact", "OBJECT FREQ"), ("exact", "MEMORY"), ("exact", "MEMORY nonsense"),
    ("exact", "MEMORY USAGE"), ("exact", "MEMORY USAGE key SAMPLES"), ("exact", "MEMORY USAGE key SAMPLES -1"),
    ("exact", "MEMORY USAGE no-such-key SAMPLES 0"), ("exact", "MEMORY DOCTOR x"), ("exact", "MEMORY PURGE x"),
]


def kind_of(reply):
    kind, value = reply[0], reply[1]
    return kind, value if kind == "-" else None


def run(oracle, server):
    """Both started; gives the numbers of what passed and what failed."""
    passed = failed = 0
    for protocol in ("2", "3"):
        sides = [side.connect() for side in (oracle, server)]
        for side in sides:
            side.command("HELLO", protocol)
        for how, row in ROWS:
            replies = [side.command(*row.split(" ")) for side in sides]
            if how == "kind":
                replies = [kind_of(reply) for reply in replies]
            if replies[0] == replies[1]:
                passed += 1
            else:
                failed += 1
                print("FAILED forms, RESP%s: %s\n  oracle: %r\n  ours:   %r" % (protocol, row, *replies))
        for side in sides:
            side.command("CONFIG", "SET", "slowlog-log-slower-than", "10000", "slowlog-max-len", "128")
            side.close()
    return passed, failed
