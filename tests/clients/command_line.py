"""redis-cli and redis-benchmark, as a user calls them."""
import os
import subprocess

PATIENCE_S = 120


def call(program, arguments, text=""):
    try:
        done = subprocess.run([program, *arguments], input=text, capture_output=True, text=True, timeout=PATIENCE_S)
    except (OSError, subprocess.SubprocessError) as problem:
        return None, str(problem)
    return done.stdout if done.returncode == 0 else None, done.stdout + done.stderr


def tls(where):
    certs = where["CERTS"]
    return ["-p", where["TLS_PORT"], "--tls", "--cert", certs + "/client.crt", "--key", certs + "/client.key",
            "--cacert", certs + "/ca.crt"]


def run_cli(oracle, where, count):
    program = os.path.join(oracle, "redis-cli")
    plain = ["-p", where["PORT"]]
    many = "".join("SET cli:%d %d\r\n" % (number, number) for number in range(10000))
    call(program, [*plain, "FLUSHALL"])
    cases = [
        ("plain", [*plain, "SET", "cli", "value"], "", "OK"),
        ("RESP3", [*plain, "-3", "GET", "cli"], "", "value"),
        ("unix socket", ["-s", where["UNIX_SOCKET"], "STRLEN", "cli"], "", "5"),
        ("TLS", [*tls(where), "GET", "cli"], "", "value"),
        ("standard input", plain, "MULTI\nINCR cli:n\nINCR cli:n\nEXEC\nDEL cli:n\n", "OK\nQUEUED\nQUEUED\n1\n2\n1"),
        ("database", [*plain, "-n", "3", "GET", "cli"], "", ""),
        ("--pipe", [*plain, "--pipe"], many, "errors: 0, replies: 10000"),
        ("--scan", [*plain, "--scan", "--pattern", "cli:777*"], "", "cli:777"),
        ("--bigkeys", [*plain, "--bigkeys"], "", "Sampled 10001 keys"),
        ("--memkeys", [*plain, "--memkeys"], "", "Sampled 10001 keys"),
        ("a policy by frequency", [*plain, "CONFIG", "SET", "maxmemory-policy", "allkeys-lfu"], "", "OK"),
        ("reads", [*plain, "--pipe"], "GET cli:5\r\n" * 3000, "errors: 0, replies: 3000"),
        ("--hotkeys", [*plain, "--hotkeys"], "", 'keyname: "cli:5"'),
        ("no policy", [*plain, "CONFIG", "SET", "maxmemory-policy", "noeviction"], "", "OK"),
        ("error", [*plain, "INCR", "cli"], "", "ERR value is not an integer or out of range"),
    ]
    for name, arguments, text, wanted in cases:
        output, everything = call(program, arguments, text)
        fine = output is not None and wanted in output and (wanted or not output.strip())
        count.add("redis-cli " + name, None if fine else everything[-600:])
    call(program, [*plain, "FLUSHALL"])


def run_benchmark(oracle, where, count):
    program = os.path.join(oracle, "redis-benchmark")
    plain = ["-p", where["PORT"], "--csv", "-r", "10000"]
    cases = [
        ("P1", [*plain, "-t", "ping,set,get,incr,mset", "-n", "10000"], 6),
        ("P16", [*plain, "-t", "ping,set,get,incr,mset", "-n", "50000", "-P", "16"], 6),
        ("threads", [*plain, "-t", "ping,set,get,incr,mset", "-n", "50000", "-P", "32", "--threads", "2"], 6),
        ("large values", [*plain, "-t", "set,get", "-n", "2000", "-d", "65536"], 2),
        ("RESP3", [*plain, "-3", "-t", "set,get", "-n", "10000"], 2),
        ("unix socket", ["-s", where["UNIX_SOCKET"], "--csv", "-t", "set,get", "-n", "10000"], 2),
        ("TLS", [*tls(where), "--csv", "-t", "set,get,incr", "-n", "10000", "-P", "4"], 3),
        ("reconnecting", [*plain, "-k", "0", "-t", "get", "-n", "3000"], 1),
        ("idle", ["-p", where["PORT"], "--csv", "-c", "500", "-t", "ping", "-n", "5000"], 2),
    ]
    for name, arguments, wanted in cases:
        output, everything = call(program, arguments)
        rows = [line for line in (output or "").splitlines() if line.startswith('"') and line[1:5] != "test"]
        fine = len(rows) == wanted and "rror" not in everything
        count.add("redis-benchmark " + name, None if fine else "%d rows\n%s" % (len(rows), everything[-600:]))
