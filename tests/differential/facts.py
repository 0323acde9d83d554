"""What is known of the commands: taken from the running servers, so that a new command is covered when it appears."""
from harness import Lost

# Why a command is never made up at random. Everything else that both servers have is tried.
EXCLUDED = {
    "quit": "closes the connection", "shutdown": "ends the server", "monitor": "changes the connection",
    "sync": "changes the connection", "psync": "changes the connection", "replconf": "replication link",
    "replicaof": "changes the role", "slaveof": "changes the role", "failover": "changes the role",
    "debug": "a tuned form is used", "config": "would change the server", "acl": "would lock us out",
    "client": "only the allowed subcommands", "module": "loads code", "latency": "measurements",
    "memory": "measurements", "slowlog": "measurements", "info": "measurements", "role": "replication state",
    "lastsave": "time", "save": "disk", "bgsave": "disk", "bgrewriteaof": "disk", "lolwut": "version",
    "dump": "depends on the RDB version", "restore": "depends on the RDB version", "restore-asking": "cluster",
    "migrate": "another server", "wait": "replication state", "cluster": "cluster", "asking": "cluster",
    "readonly": "cluster", "readwrite": "cluster", "spop": "takes members at random",
    "xadd": "a tuned form is used", "script": "scripts are tuned", "function": "scripts are tuned",
    "eval": "scripts are tuned", "eval_ro": "scripts are tuned", "evalsha": "scripts are tuned",
    "evalsha_ro": "scripts are tuned", "fcall": "scripts are tuned", "fcall_ro": "scripts are tuned",
    "pfdebug": "internal", "pfselftest": "takes long", "command|docs": "texts are our own", "command": "whole table",
    "sort": "sets have no order to sort by; a tuned form is used", "sort_ro": "as sort",
    "publish": "pub/sub", "spublish": "pub/sub",
}
EXCLUDED_GROUPS = {"pubsub": "pushes between the replies", "cluster": "cluster", "sentinel": "sentinel"}
ALLOWED_SUBCOMMANDS = {"client|getname", "client|setname", "client|no-evict"}
TAKES_NAMES = {"command|info", "command|getkeys", "command|getkeysandflags", "command|list"}


class Command:
    """name: lower case, "object|encoding" for a subcommand. arguments: the tree of COMMAND DOCS."""

    def __init__(self, name, info, docs):
        self.name = name
        self.words = name.split("|")
        self.arity = int(info[1][1])
        self.flags = {flag[1].decode() for flag in info[2][1]}
        self.tips = {tip[1].decode() for tip in info[7][1]}
        self.group = docs.get("group", "")
        self.arguments = docs.get("arguments", [])


def as_python(reply):
    """Replies of COMMAND DOCS under RESP3 as dictionaries and lists of text."""
    kind, payload = reply
    if kind == "%":
        return {as_python(payload[i]): as_python(payload[i + 1]) for i in range(0, len(payload), 2)}
    if isinstance(payload, list):
        return [as_python(element) for element in payload]
    if kind == ":":
        return int(payload)
    return (payload or b"").decode(errors="replace")


def command_infos(connection):
    reply = connection.command("COMMAND")
    if reply[0] not in "*~":
        raise Lost("COMMAND answers %r" % (reply,))
    infos = {}

    def collect(info):
        infos[info[0][1].decode()] = info
        for sub in info[9][1]:
            collect(sub[1])

    for info in reply[1]:
        collect(info[1])
    return infos


def load(oracle, server):
    """Commands known to both, the full list of shared names, and the names only the oracle has."""
    connection = oracle.connect()
    connection.command("HELLO", "3")
    infos = command_infos(connection)
    docs = as_python(connection.command("COMMAND", "DOCS"))
    connection.close()
    for doc in list(docs.values()):
        docs.update(doc.get("subcommands", {}))
    connection = server.connect()
    ours = set(command_infos(connection))
    connection.close()

    shared = {name for name in infos if name in ours}
    commands = {}
    for name in sorted(shared):
        info = infos[name]
        command = Command(name, [(kind, payload) for kind, payload in info], docs.get(name, {}))
        commands[name] = command
    return commands, shared, set(infos) - ours


def suitable(command):
    name = command.name
    if name in ALLOWED_SUBCOMMANDS:
        return True
    if name in EXCLUDED or command.words[0] in EXCLUDED and len(command.words) > 1 and command.words[0] != "command":
        return False
    if command.group in EXCLUDED_GROUPS or "blocking" in command.flags:
        return False
    return True
