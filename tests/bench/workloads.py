"""The budgets as data. Shares are of the server CPU time a request that Redis needs in the same run."""

# name, threads, CPUs of the server, CPUs of the client, TLS, requests, redis-benchmark's arguments, arguments that fill
# the keyspace before, most CPU (share of Redis), most CPU (share of the floor, with "get" or "set": what it answers),
# whether requests/s and p50 must be no worse than Redis'.
FILL = "-t set -c 50 -P 32 -n 300000 -r 100000 -d 64"
WORKLOADS = [
    ("get_p1", 1, "0", "1", False, 200000, "-t get -c 50 -r 100000 -d 64", FILL, 0.95, 1.15, True),
    ("set_p1", 1, "0", "1", False, 200000, "-t set -c 50 -r 100000 -d 64", None, 0.95, 1.15, True),
    ("get_p32", 1, "0", "1", False, 2000000, "-t get -c 50 -P 32 -r 100000 -d 64", FILL, 0.5, None, False),
    ("set_p32", 1, "0", "1", False, 2000000, "-t set -c 50 -P 32 -r 100000 -d 64", None, 0.4, None, False),
    ("get_5m_keys_p32", 1, "0", "1", False, 2000000, "-t get -c 50 -P 32 -r 5000000 -d 64",
     "-t set -c 50 -P 64 -n 5000000 -r 5000000 -d 64", 0.5, None, False),
    ("get_p1_2thr", 2, "0,1", "0,1", False, 200000, "-t get -c 50 -r 100000 -d 64", FILL, 0.5, None, False),
    ("get_p32_2thr", 2, "0,1", "0,1", False, 2000000, "-t get -c 50 -P 32 -r 100000 -d 64", FILL, 0.3, None, False),
    ("tls_get_p1", 1, "0", "1", True, 150000, "-t get -c 50 -r 100000 -d 64", FILL, 0.88, None, False),
    ("tls_get_p32", 1, "0", "1", True, 1500000, "-t get -c 50 -P 32 -r 100000 -d 64", FILL, 0.65, None, False),
    ("get_8k_p1", 1, "0", "1", False, 100000, "-t get -c 50 -r 10000 -d 8192",
     "-t set -c 50 -n 30000 -r 10000 -d 8192", 0.95, None, False),
    ("set_8k_p1", 1, "0", "1", False, 100000, "-t set -c 50 -r 10000 -d 8192", None, 0.95, None, False),
    ("get_1m_2thr", 2, "0,1", "0,1", False, 3000, "-t get -c 20 -r 100 -d 1048576",
     "-t set -c 20 -n 500 -r 100 -d 1048576", 0.6, None, False),
    ("set_1m_2thr", 2, "0,1", "0,1", False, 3000, "-t set -c 20 -r 100 -d 1048576", None, 0.8, None, False),
]

KEY_COUNTS = (2_000_000, 3_000_000, 4_000_000, 5_000_000)
KEY_BYTES_LIMIT = 110
CONNECTION_LIMITS = {"plain": 1024, "tls": 18 * 1024}
CONNECTIONS = {"plain": 5000, "tls": 1000}

# CPU time a command of two threads of one server, as a share of that of two servers of one thread (scaling.c).
SCALING_WORKLOADS = "?et uniform 32 plain"
SCALING_BUDGET = 1.05
SCALING_ROUNDS = 7

# CPU time a step of the sorted index, as a share of a skiplist's (zindex.c).
ZINDEX_BUDGETS = {"insert, random scores": 0.7, "rank of a member": 0.7, "100 from a rank": 0.7,
                  "100 from a score": 0.7}

# What else the plan sets and this program cannot see from outside.
ELSEWHERE = ["replication: tests/bench/replication.py", "snapshots: tests/bench/snapshots.py"]
