"""What operators and their tools ask, by redis-py, in both protocols: see ../run."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))

import redis        # noqa: E402
from report import expect, run      # noqa: E402

NAMES = open(os.environ["COMMAND_NAMES"]).read().split()
NO_CLUSTER = "This instance has cluster support disabled"


def connections():
    for protocol in (2, 3):
        yield redis.Redis(port=int(os.environ["PORT"]), socket_timeout=30, decode_responses=True, protocol=protocol)


def refused(text, call, *words):
    try:
        call(*words)
    except redis.ResponseError as error:
        expect(str(error), text)
        return
    raise AssertionError("%r was not refused" % (words,))


def config():
    for client in connections():
        options = client.config_get("*")
        expect(len(options) > 150, True)
        expect([name for name, value in options.items() if not isinstance(value, str)], [])
        expect(options["maxmemory"], "0")


def acl():
    for client in connections():
        for name in NAMES:
            expect(client.acl_setuser("rules", reset=True, commands=["+" + name, "-" + name]), True)
        expect(client.acl_setuser("rules", reset=True, enabled=True, keys=["a*"],
                                  commands=["+" + name for name in NAMES]), True)
        expect(set(client.acl_getuser("rules")["flags"]) >= {"on"}, True)
        for category in client.acl_cat():
            expect(client.acl_setuser("rules", categories=["+" + category, "-" + category]), True)
            client.acl_cat(category)
        expect("rules" in client.acl_users(), True)
        expect(len(client.acl_list()), 2)
        expect(client.acl_deluser("rules"), 1)


def role():
    for client in connections():
        name, offset, replicas = client.role()
        expect((name, isinstance(offset, int), replicas), ("master", True, []))
        expect((client.wait(0, 0), client.wait(1, 10)), (0, 0))


def modules():
    for client in connections():
        expect(client.module_list(), [])


def cluster():
    for client in connections():
        refused(NO_CLUSTER, client.execute_command, "CLUSTER INFO")
        refused(NO_CLUSTER, client.readonly)
        refused(NO_CLUSTER, client.readwrite)


def clients():
    for client in connections():
        own = client.client_id()
        expect([row["cmd"] for row in client.client_list() if int(row["id"]) == own], ["client|list"])
        expect(int(client.client_info()["id"]), own)


def info():
    for client in connections():
        for section in (None, "everything", "all"):
            fields = client.info(section) if section else client.info()
            expect(int(fields["redis_version"].split(".")[0]), 7)
            for name in ("used_memory", "connected_clients", "uptime_in_seconds"):
                expect(type(fields[name]), int)
            expect((fields["role"], fields["connected_slaves"]), ("master", 0))
        expect(client.info("commandstats")["cmdstat_info"]["calls"] > 0, True)


run(config, acl, role, modules, cluster, clients, info)
