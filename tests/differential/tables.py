"""COMMAND INFO and COMMAND DOCS of every command that both servers have, field by field.

Texts (summary, complexity, notes, the words of a history) are everybody's own. Other differences are listed in
tables_accepted.txt, each with its reason; a rule that matches nothing is a failure, too.
"""
import fnmatch
import os

from compare import SET_FIELDS_OF_INFO, canonical, show, without_notes
from facts import as_python, command_infos

INFO_FIELDS = ["name", "arity", "flags", "first key", "last key", "step", "categories", "tips", "key specs"]
TEXTS = {"summary", "complexity"}
ACCEPTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tables_accepted.txt")


def info_differences(name, oracle, server):
    for index, field in enumerate(INFO_FIELDS):
        one, two = oracle[index], server[index]
        if field == "key specs":
            noted = [[b"notes" in [each[1] for each in spec[1][::2]] for spec in side[1]] for side in (one, two)]
            if noted[0] != noted[1]:
                yield "%s: notes of key specs" % name, repr(noted[0]), repr(noted[1])
            one, two = without_notes(one), without_notes(two)
        if index in SET_FIELDS_OF_INFO:
            one, two = canonical(one), canonical(two)
        if one != two:
            yield "%s: %s" % (name, field), show(one), show(two)


def argument_differences(place, oracle, server):
    names = [[argument["name"] for argument in side] for side in (oracle, server)]
    if names[0] != names[1]:
        yield place, " ".join(names[0]), " ".join(names[1])
        return
    for one, two in zip(oracle, server):
        inner = "%s %s" % (place, one["name"])
        for field in sorted(set(one) | set(two) - {"arguments"}):
            left, right = one.get(field), two.get(field)
            if field == "arguments":
                yield from argument_differences(inner, left or [], right or [])
            elif left != right and not (field == "flags" and sorted(left or []) == sorted(right or [])):
                yield "%s: %s" % (inner, field), repr(left), repr(right)


def doc_differences(name, oracle, server):
    for field in sorted((set(oracle) | set(server)) - TEXTS - {"subcommands"}):
        one, two = oracle.get(field), server.get(field)
        if field == "history":      # when there were changes; the words are our own
            one, two = (sorted(entry[0] for entry in side or []) for side in (one, two))
        if field == "arguments":
            yield from argument_differences("%s: arguments" % name, one or [], two or [])
        elif one != two:
            yield "%s: %s" % (name, field), repr(one), repr(two)


def docs_of(connection):
    docs = as_python(connection.command("COMMAND", "DOCS"))
    for entry in list(docs.values()):
        docs.update(entry.get("subcommands", {}))
    return docs


def load_rules():
    rules = []
    with open(ACCEPTED) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                pattern, reason = (part.strip() for part in line.split(" | ", 1))
                rules.append((pattern, reason))
    return rules


def differences(oracle, server):
    connections = [side.connect() for side in (oracle, server)]
    for connection in connections:
        connection.command("HELLO", "3")
    infos = [command_infos(connection) for connection in connections]
    docs = [docs_of(connection) for connection in connections]
    for connection in connections:
        connection.close()
    shared = sorted(set(infos[0]) & set(infos[1]))
    found = []
    for name in shared:
        found += info_differences(name, infos[0][name], infos[1][name])
        found += doc_differences(name, docs[0].get(name, {}), docs[1].get(name, {}))
    return len(shared), found


def run(oracle, server):
    """Both started; gives the numbers of what passed and what failed."""
    count, found = differences(oracle, server)
    rules = load_rules()
    used = set()
    failed = 0
    for place, one, two in found:
        allowed = [rule for rule in rules if fnmatch.fnmatchcase(place, rule[0])]
        used.update(allowed)
        if not allowed:
            failed += 1
            print("FAILED tables: %s\n  oracle: %s\n  ours:   %s" % (place, one, two))
    for rule in rules:
        if rule not in used:
            failed += 1
            print("FAILED tables: nothing needs the rule \"%s | %s\"" % rule)
    print("tables of %d commands compared, %d differences are accepted" % (count, len(found) - failed))
    return count - min(failed, count), failed
