#!/usr/bin/env python3
"""make lint: the rules of the house that a program can check.

    utils/lint.py [--no-headers] [FILE...]      all files of the project unless given

Prints "file:line: message" for each breach and ends with exit code 1 if there was one. Rules:

 1. layering: a folder of src/ includes from itself and from the folders before it in FOLDERS, tools/ from what
    is below server/ only (its rooms from those before them in TOOL_ROOMS), a unit test also cmocka; so there is no
    cycle between files of different folders;
 2. a header compiles alone and has "#pragma once"; a source file includes its own header first, then ours, then the
    system's;
 3. no mutable variable with external linkage outside main.c, unless its line says why: /* global: why */;
 4. lines of at most 120 columns, no tabs for indentation, no white space at the end, no reminders to do it later; a
    comment of one line stands above what it is about, not above another comment;
 5. scripts are at least well-formed;
 6. each row of the conformance tests' table is compared by exactly one run (tests/conformance/table.py);
 7. what returns an enum status is marked must_check, and who drops what is so marked says why (status_ignore): no cast
    to void, which clang lets pass, and no variable that is only written to;
 8. a function whose header names a thread, a lock or a state in which it is called contains an assertion, or stands in
    utils/doors.txt with the reason why not. The phrases that count as naming are below (THREAD_PHRASES and on);
 9. C is laid out as .clang-format says: "clang-format -i FILE" does it. Version 14 decides, as others differ;
10. docs/commands.md is what utils/commands.py writes.
"""
import ast
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# The stack, bottom first. Replication and the cluster will stand where the comment says.
FOLDERS = ["base", "net", "data", "merge", "store", "persist",
           "server/config", "server/process", "server/command", "server/core", "server/observe", "server/tls",
           "server/pubsub", "server/acl", "server/durable", "server/memory", "server/run", "server/upkeep",
           "server/diagnose",
           "replication",
           "active", "metrics",
           # cluster
           "commands/shared", "commands/keys", "commands/string", "commands/collection", "commands/sorted_set",
           "commands/stream", "commands/connection", "commands/debug", "commands/admin",
           "script"]
TOOLS_MAY = ["base", "net", "data", "store", "persist"]
TOOL_ROOMS = ["tools/link", "tools/cli", "tools/benchmark", "tools"]
WIDTH = 120

# What is text of ours, by suffix, and which of it is code (with limits on its lines).
CODE = {".c", ".h", ".inc", ".def", ".py", ".sh", ".tcl", ".js", ".mjs", ".cjs", ".go", ".rs", ".rb", ".mk", ".test"}
TEXT = CODE | {".md", ".txt", ".conf", ".yml", ".yaml", ".service", ""}
TABS_ALLOWED = {".go", ".mk"}
SKIPPED = re.compile(r"(^|/)(\.git|build|node_modules|__pycache__)/|^tests/fuzz/corpus/|(^|/)go\.sum$")
REMINDERS = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")

LONELY_COMMENT = re.compile(r"^ */\* (?!-|clang-format)[^\n]*\*/\n(?= */\*(?! clang-format))", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
GLOBAL_MARK = re.compile(r"/\* global: \S")

HEADER_FLAGS = ("-std=gnu11 -D_GNU_SOURCE= -Isrc -fsyntax-only -Wall -Wextra -Wshadow -Wstrict-prototypes "
                "-Wpointer-arith -Wcast-qual -Wvla -Wundef -Wwrite-strings -Werror").split()
CACHE = "build/lint"

breaches = []


def breach(path, line, message):
    breaches.append((path, line, message))


def project_files():
    listed = None
    if os.path.exists(".git") and shutil.which("git"):
        run = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
        if run.returncode == 0:
            listed = run.stdout.splitlines()
    if listed is None:
        listed = []
        for folder, names, files in os.walk("."):
            names[:] = [name for name in names if name not in (".git", "build", "node_modules", "__pycache__")]
            listed += [os.path.relpath(os.path.join(folder, name)) for name in files]
    return sorted(path for path in listed if os.path.isfile(path) and not SKIPPED.search(path))


def suffix_of(path):
    return os.path.splitext(path)[1]


def read_text(path):
    with open(path, "rb") as file:
        data = file.read()
    if b"\0" in data:
        return None
    return data.decode("utf-8", errors="replace")


def blank_out(source):
    """C source with comments, strings and characters replaced by spaces; line breaks stay."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)


# ---- 4. lines ----

def check_lines(path, text):
    suffix = suffix_of(path)
    is_code = suffix in CODE or text.startswith("#!")
    may_tab = suffix in TABS_ALLOWED or os.path.basename(path) == "Makefile"
    for number, line in enumerate(text.split("\n"), 1):
        if is_code and len(line.expandtabs(8)) > WIDTH:
            breach(path, number, f"line of {len(line.expandtabs(8))} columns, at most {WIDTH}")
        if line != line.rstrip():
            breach(path, number, "white space at the end of the line")
        if is_code and not may_tab and re.match(r" *\t", line):
            breach(path, number, "tab in the indentation")
        found = REMINDERS.search(line)
        if found:
            breach(path, number, f"{found.group()}: do it now, or say what is missing where users read it")
    if suffix in (".c", ".h"):
        for match in LONELY_COMMENT.finditer(text):
            breach(path, text.count("\n", 0, match.start()) + 1, "a comment above a comment: what is it about?")
    if text and not text.endswith("\n"):
        breach(path, text.count("\n") + 1, "no line break at the end of the file")


# ---- 1. layering, 2. order of includes ----

def folder_of(name):
    """The folder of a path below src/: "base", "server/core"; "" for main.c."""
    return name.rpartition("/")[0]


def may_include(path, folder, target_folder):
    if path == "src/main.c":
        return target_folder in FOLDERS
    if folder in TOOL_ROOMS:
        return target_folder in TOOLS_MAY + TOOL_ROOMS[:TOOL_ROOMS.index(folder) + 1]
    return (folder in FOLDERS and target_folder in FOLDERS and
            FOLDERS.index(target_folder) <= FOLDERS.index(folder))


def check_includes(path, text):
    includes = []       # (line, '"' or '<', name)
    for number, line in enumerate(text.split("\n"), 1):
        match = INCLUDE.match(line)
        if match:
            includes.append((number, match.group(1), match.group(2)))
    for number, _, name in includes:
        if name.startswith("/"):
            breach(path, number, f"absolute include path {name}")
        elif ".." in name.split("/"):
            breach(path, number, f"include {name}: paths are relative to src/")
    if not path.startswith("src/"):
        return

    folder = folder_of(path[len("src/"):])
    if folder and folder not in FOLDERS + TOOL_ROOMS:
        breach(path, 1, f"src/{folder} has no place in the order of the folders ({', '.join(FOLDERS + TOOL_ROOMS)})")
        return

    is_test = path.endswith("_test.c")
    for number, kind, name in includes:
        if kind != '"':
            if os.path.exists("src/" + name):
                breach(path, number, f"<{name}> is ours: write \"{name}\"")
            if name == "cmocka.h" and not is_test:
                breach(path, number, "cmocka belongs to unit tests")
            continue
        if not os.path.exists("src/" + name):
            breach(path, number, f"include \"{name}\": there is no src/{name}")
            continue
        target_folder = folder_of(name)
        if not may_include(path, folder, target_folder):
            breach(path, number, f"include points up: {folder or 'main.c'} must not know {target_folder}")
        if name.endswith("_priv.h") and target_folder != folder:
            breach(path, number, f"{name} is private to src/{target_folder}")

    if path.endswith(".c") and not is_test:
        own = path[len("src/"):-1] + "h"
        if os.path.exists("src/" + own) and (not includes or includes[0][2] != own):
            breach(path, includes[0][0] if includes else 1, f"own header first: \"{own}\"")
    if not is_test:
        system_seen = False
        for number, kind, name in includes:
            if kind == "<":
                system_seen = True
            elif system_seen and not name.endswith((".def", ".inc")):
                breach(path, number, f"\"{name}\" after the system's headers: ours come first")
                break


# ---- 2. headers alone ----

def check_pragma_once(path, text):
    lines = [line for line in blank_out(text).split("\n") if line.strip()]
    if not lines or not re.match(r"#\s*pragma\s+once\b", lines[0]):
        breach(path, 1, "a header begins with #pragma once")


def header_closure(path, seen):
    if path in seen or not os.path.exists(path):
        return seen
    seen.add(path)
    for line in (read_text(path) or "").split("\n"):
        match = INCLUDE.match(line)
        if match and match.group(1) == '"':
            header_closure("src/" + match.group(2), seen)
    return seen


def library_flags():
    flags = []
    for name in ("jemalloc", "openssl", "luajit", "liblzf", "libxxhash", "liburing", "libsystemd", "libmicrohttpd"):
        run = subprocess.run(["pkg-config", "--cflags", name], capture_output=True, text=True)
        if run.returncode == 0:
            flags += shlex.split(run.stdout)
            if name in ("liburing", "libsystemd", "libmicrohttpd"):
                flags.append("-DHAVE_" + name.upper())
    return flags


def check_headers_alone(headers):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler or not headers:
        return
    command = [compiler] + HEADER_FLAGS + (library_flags() if shutil.which("pkg-config") else [])
    os.makedirs(CACHE, exist_ok=True)

    def check(path):
        digest = hashlib.sha256(" ".join(command).encode())
        for member in sorted(header_closure(path, set())):
            with open(member, "rb") as file:
                digest.update(member.encode() + b"\0" + file.read())
        stamp = os.path.join(CACHE, digest.hexdigest())
        if os.path.exists(stamp):
            return
        run = subprocess.run(command + ["-x", "c", "-"], input=f'#include "{path[len("src/"):]}"\n',
                             capture_output=True, text=True)
        if run.returncode == 0:
            open(stamp, "w").close()
            return
        errors = [line for line in run.stderr.split("\n") if "error" in line]
        match = re.match(r"([^:]+):(\d+):(?:\d+:)? *(.*)", errors[0]) if errors else None
        if match:
            where, number, message = match.groups()
            breach(path, int(number) if where == path else 1, f"does not compile alone: {where}: {message}")
        else:
            breach(path, 1, "does not compile alone: " + run.stderr.strip()[:200])

    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        list(pool.map(check, headers))


# ---- 3. globals ----

DECLARES_NO_VARIABLE = re.compile(r"^(static|typedef|extern|_Static_assert|static_assert)\b|^$")


def ends_function(statement):
    """Does the braced block at the end of the statement belong to a function? "name(...) ATTRIBUTE(x) {}"."""
    head = statement[:-2].rstrip()              # without the braces
    while True:
        shorter = re.sub(r"(?<=[\s)])[A-Z_]+(\([^()]*\))?$", "", head).rstrip()
        if shorter == head:
            return head.endswith(")")
        if shorter == "" or (head.endswith(")") and not shorter.endswith(")")):
            return head.endswith(")")
        head = shorter


def file_scope_statements(source):
    """Yields (line, text) of each statement at file scope; bodies and initializers are cut out."""
    lines = source.split("\n")
    for index, line in enumerate(lines):        # preprocessor lines, with their continuations
        if re.match(r"\s*#", line):
            while lines[index].endswith("\\") and index + 1 < len(lines):
                lines[index] = ""
                index += 1
            lines[index] = ""
    depth = 0
    statement = ""
    begin = 1
    number = 1
    for char in "\n".join(lines):
        if char == "\n":
            number += 1
        if char == "{":
            depth += 1
            if depth == 1:
                statement += "{}"
        elif char == "}":
            depth -= 1
            if depth == 0 and ends_function(statement):
                statement = ""      # that was a function
        elif depth == 0:
            if char == ";":
                yield begin, " ".join(statement.split())
                statement = ""
            else:
                if not statement.strip():
                    statement = ""
                    begin = number
                statement += char


def is_mutable_global(statement):
    if DECLARES_NO_VARIABLE.match(statement):
        return False
    declaration = statement.split("=")[0].strip()
    declaration = re.sub(r"__attribute__\s*\(\(.*?\)\)|\b_Alignas\s*\([^)]*\)", "", declaration)
    declaration = re.sub(r"\b_Atomic\s*\(([^)]*)\)", r"\1", declaration)
    if declaration == statement and re.match(r"(struct|union|enum)\b.*\{\}$", declaration):
        return False                                    # a type, and no variable of it
    if re.match(r"(struct|union|enum)\s+\w+$", declaration):
        return False                                    # a type announced
    pointer_to_function = re.search(r"^[^(]*\(\s*\*\s*(const\b)?", declaration)
    if pointer_to_function:
        return not pointer_to_function.group(1)
    if "(" in declaration:
        return False                                    # a function announced, or a row
    if "*" in declaration:
        return "const" not in declaration.rsplit("*", 1)[1]
    return not re.search(r"\bconst\b", declaration) and len(declaration.split()) > 1


def check_globals(path, text):
    if not path.startswith("src/") or path == "src/main.c" or path.endswith("_test.c"):
        return
    lines = text.split("\n")
    for number, statement in file_scope_statements(blank_out(text)):
        if is_mutable_global(statement) and not GLOBAL_MARK.search(lines[number - 1]):
            name = statement.split("=")[0].strip()
            breach(path, number, f"global variable '{name[:60]}': make it static, const, or say /* global: why */")


# ---- 5. scripts ----

def run_quietly(command, text=None):
    run = subprocess.run(command, input=text, capture_output=True, text=True)
    return run.returncode == 0, (run.stderr or run.stdout).strip().split("\n")[0]


TCL_COMPLETE = """
foreach path $argv {
    set file [open $path]; set text [read $file]; close $file
    set pending {}; set begin 0; set number 0
    foreach line [split $text \\n] {
        incr number
        if {$pending eq {}} { set begin $number }
        append pending $line \\n
        if {[info complete $pending]} { set pending {} }
    }
    if {$pending ne {}} { puts "$path:$begin" }
}
"""


def check_scripts(files, texts):
    tcl_files = []
    for path in files:
        text = texts[path]
        first = text.split("\n", 1)[0]
        if path.endswith(".py") or (first.startswith("#!") and "python" in first):
            try:
                ast.parse(text, path)
            except SyntaxError as error:
                breach(path, error.lineno or 1, f"python: {error.msg}")
        elif path.endswith(".sh") or re.match(r"#!.*\b(ba|da)?sh\b", first):
            shell = "bash" if "bash" in first else "sh"
            if shutil.which(shell):
                fine, message = run_quietly([shell, "-n", path])
                if not fine:
                    number = re.search(r"\b(\d+):", message)
                    breach(path, int(number.group(1)) if number else 1, f"{shell}: {message}")
        elif path.endswith(".tcl") or (first.startswith("#!") and "tclsh" in first):
            tcl_files.append(path)
        elif suffix_of(path) in (".js", ".mjs", ".cjs") and shutil.which("node"):
            fine, message = run_quietly(["node", "--check", path])
            if not fine:
                breach(path, 1, f"node: {message}")
    if tcl_files and shutil.which("tclsh"):
        os.makedirs(CACHE, exist_ok=True)
        script = os.path.join(CACHE, "complete.tcl")
        with open(script, "w") as file:
            file.write(TCL_COMPLETE)
        run = subprocess.run(["tclsh", script] + tcl_files, capture_output=True, text=True)
        for line in (run.stdout + run.stderr).splitlines():
            path, _, number = line.rpartition(":")
            if number.isdigit():
                breach(path, int(number), "tcl: a brace, bracket or quote that begins here is never closed")
            else:
                breach(tcl_files[0], 1, f"tcl: {line}")


# ---- 6. the table of conformance tests ----

def check_conformance_table():
    run = subprocess.run([sys.executable, "tests/conformance/table.py"], capture_output=True, text=True)
    for line in run.stdout.splitlines():
        path, number, message = line.split(":", 2)
        breach(path, int(number), message.strip())
    if run.returncode and not run.stdout:
        breach("tests/conformance/table.py", 1, run.stderr.strip()[-200:])


# ---- 10. the page of commands ----

SERVER = "build/release/bin/keydb-server"


def check_commands_page():
    """By the server, where it is built from the sources as they are; make test does it in any case."""
    if not os.path.exists(SERVER):
        return
    built = os.path.getmtime(SERVER)
    if any(os.path.getmtime(os.path.join(folder, name)) > built
           for folder, _, names in os.walk("src") for name in names if name.endswith((".c", ".h"))):
        return
    run = subprocess.run([sys.executable, "utils/commands.py", "--server", SERVER, "--check"], capture_output=True,
                         text=True)
    if run.returncode:
        breach("docs/commands.md", 1, (run.stdout.splitlines() or run.stderr.splitlines()[-1:] or ["?"])[0])


# ---- 9. layout ----

FORMAT_VERSION = "14"


def clang_format():
    """The program that decides on the layout, or None."""
    for name in ("clang-format-" + FORMAT_VERSION, "clang-format"):
        program = shutil.which(name)
        if program:
            version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if re.search(rf"version {FORMAT_VERSION}\.", version):
                return program
    return None


def check_layout(files):
    program = clang_format()
    if program is None:
        print(f"lint: the layout of C is not checked: there is no clang-format {FORMAT_VERSION} on this machine")
        return
    command = [program, "--style=file", "--dry-run", "--Werror"]

    def check(batch):
        run = subprocess.run(command + batch, capture_output=True, text=True)
        told = {}
        for match in re.finditer(r"^([^:\n]+):(\d+):", run.stderr, re.M):
            told.setdefault(match.group(1), int(match.group(2)))
        if run.returncode != 0 and not told:
            told = {batch[0]: 1}
        for path, number in told.items():
            breach(path, number, "clang-format would change this: run it with -i")

    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        list(pool.map(check, [files[at:at + 50] for at in range(0, len(files), 50)]))


# ---- 7. dropped results ----

FUNCTION = re.compile(r"^((?:\w+ )*?)((?:enum |struct |union )?\w+[ *]+)(\w+)\(", re.M)
NOT_FUNCTIONS = {"return", "else", "case", "typedef"}


def functions_of(blank):
    """Yields (line, qualifiers, type, name) of what is declared or defined at the beginning of a line."""
    for match in FUNCTION.finditer(blank):
        qualifiers, kind, name = match.groups()
        if not NOT_FUNCTIONS & set((qualifiers + kind).split()):
            yield blank.count("\n", 0, match.start()) + 1, qualifiers.split(), kind.strip(), name


def must_check_of_headers():
    names = set()
    for path in project_files():
        if path.startswith("src/") and path.endswith(".h"):
            names |= {name for _, qualifiers, _, name in functions_of(blank_out(read_text(path)))
                      if "must_check" in qualifiers}
    return names


def is_only_written(name, body):
    """Is this variable given what a call returns, and looked at by nobody but a cast to void?"""
    if not re.search(rf"\b{name}\s*=(?!=)[^;]*\(", body):
        return False
    written = len(re.findall(rf"\b{name}\s*=(?!=)", body)) + len(re.findall(rf"^\s+[\w ]*\w[ *]+{name};", body, re.M))
    return len(re.findall(rf"\b{name}\b", body)) == written + len(re.findall(rf"\(void\){name};", body))


def check_results(path, text, of_headers):
    blank = blank_out(text)
    lines = blank.split("\n")
    own = {name: qualifiers for _, qualifiers, _, name in functions_of(blank)}
    checked = {name for name in of_headers if name not in own or "static" not in own[name]}
    checked |= {name for name, qualifiers in own.items() if "must_check" in qualifiers}
    if path.startswith("src/"):
        for number, qualifiers, kind, name in functions_of(blank):
            if kind == "enum status" and "must_check" not in qualifiers and name not in checked:
                breach(path, number, f"{name} returns a status: must_check")
    begin = 0
    for number, line in enumerate(lines, 1):
        if line == "{":
            begin = number
        for name in re.findall(r"\(void\)\s*(\w+)\(", line):
            if name in checked:
                breach(path, number, f"(void){name}(): status_ignore says why")
        for name in re.findall(r"^\s*\(void\)(\w+);$", line):
            end = next((at for at in range(number, len(lines)) if lines[at] == "}"), number)
            if is_only_written(name, "\n".join(lines[begin:end])):
                breach(path, number, f"(void){name} is a result that nobody looks at: status_ignore says why")


# ---- 8. assertions at doors ----

DOORS_EXCEPTIONS = "utils/doors.txt"

# What a comment says of the thread, the locks and the state in which a function may be called. Each is looked for in
# one clause at a time, that is up to the next full stop, question mark, semicolon, colon or dash.
OWNER = r"(?:(?:the|a|its|this) )?(?:worker|client|loop|member|owner|connection|caller)'s(?: own)?"
THREAD_PHRASES = re.compile("|".join((
    rf"(?:^|, |and |\b(?:in|by|for) )(?:{OWNER}|its(?: own)?|(?:the )?(?:own|main)) thread\b(?!')",
    r"(?:^|, |\bby )(?:the client's(?: own)?|its(?: own)?) worker\b(?!')",
    r"(?:^|, |\bby )worker 0\b(?!')",
    r"^(?:by )?(?:a|the|this) worker(?:,|$)",
    r"^(?:in|by) the thread (?:of|that)\b",
)), re.I)
LOCK_PHRASES = re.compile("|".join((
    r"\b(?:gate|stripes?|locks?|roster|turn)(?: \w+){0,3}? (?:is|are) (?:held|owned|locked)\b(?! while)",
    r"\b(?:gate|stripes?|locks?) (?:held|owned)\b",
    r"\b(?:owns|holds) the gate\b|^at the gate\b|\b(?:inside|outside)(?: of)? the gate\b",
    r"\b(?:in|inside) (?:an|the) exclusive section\b|^exclusive\b",
)), re.I)
STATE_PHRASES = re.compile("|".join((
    r"\b(?:before|after|when|once) (?:the |any |other |they |there are )?(?:first )?(?:workers?|threads?|others)\b"
    r"(?! of\b| have served)",
    r"^(?:the )?workers have (?:ended|gone)\b|\bafter they have gone\b",
    r"\b(?:before|after) \w+_(?:setup|start|load|begin|end)\b",
    r"^once(?:,|$)",
    r"\bmust (?:not )?(?:be|have|hold|lie)\b",
)), re.I)
# These clauses tell of something else than the call: when a callback is called, what holds under a condition.
NO_PROMISE = re.compile(r"(?:called|if|unless|while)\b", re.I)
ANY_THREAD = re.compile(r"\bany (?:thread|worker)\b", re.I)
# The comment at the top of a header speaks for its functions only where a clause begins so.
HEAD_PHRASES = re.compile(r"(?:functions are for|whoever calls (?:owns|is alone|holds)|everything of a \w+ is used by)"
                          r"\b|(?:in|by) (?:the|its) (?:main|own|(?:worker|client)'s(?: own)?) thread\b", re.I)
ASSERTION = re.compile(r"\b(?!static_)(?:debug_)?assert\(|\b\w+_assert_\w+\(|\b\w+_validate\(")
DOOR = re.compile(r"^[A-Za-z_][^;{}()=#\n]*?[ *](\w+)\(", re.M)
NO_DOOR = re.compile(r"(?:typedef|return|else|case|extern const)\b")


def matching(blank, at, opening, closing):
    depth = 0
    for match in re.compile(f"[{re.escape(opening + closing)}]").finditer(blank, at):
        depth += 1 if match.group() == opening else -1
        if depth == 0:
            return match.end()
    return len(blank)


def doors_of(blank):
    """Yields (begin, end, name, qualifiers, body) of the functions at file scope; body None: it is elsewhere."""
    for match in DOOR.finditer(blank):
        if NO_DOOR.match(match.group()):
            continue
        end = matching(blank, match.end() - 1, "(", ")")
        stop = re.compile("[^;{]*").match(blank, end).end()
        body = None
        if blank[stop:stop + 1] == "{":
            body = blank[stop:matching(blank, stop, "{", "}")]
        yield (match.start(), stop + len(body or ";"), match.group(1),
               blank[match.start():match.start(1)] + blank[end:stop], body)


def clauses(comment):
    text = re.sub(r"\s*\n\s*\*? ?", " ", comment[2:-2])
    return [clause.strip(" -") for clause in re.split(r"[.?;:](?:\s|$)|\s--+\s|\s- ", text)]


def promise_of(own, shared, section, head):
    """The first clause that says in which thread or state a function may be called; None: there is none. `own` are the
    clauses about this function, `shared` those about one above it that speak for it, too: but for states."""
    if any(ANY_THREAD.search(clause) for clause in own):
        shared, section, head, own_phrases = [], [], [], (LOCK_PHRASES, STATE_PHRASES)
    else:
        own_phrases = (THREAD_PHRASES, LOCK_PHRASES, STATE_PHRASES)
    if any(ANY_THREAD.search(clause) for clause in shared + section):
        head = []
    phrases_of = ((own, own_phrases), (shared, (THREAD_PHRASES, LOCK_PHRASES)),
                  (section, (THREAD_PHRASES, LOCK_PHRASES, STATE_PHRASES)))
    for said, phrases in phrases_of:
        for clause in said:
            if not NO_PROMISE.match(clause) and any(phrase.search(clause) for phrase in phrases):
                return clause
    return next((clause for clause in head if HEAD_PHRASES.match(clause)), None)


def promises_of(path, text):
    """Yields (line, name, clause, body) of each function of a header that promises to be called in some way only.

    A comment speaks for the function on its line or below it; what it says of threads and locks also for those that
    follow until a blank line or another comment; a comment with dashes (--- any thread ---) for all up to the next."""
    blank = blank_out(text)
    doors = list(doors_of(blank))
    inside = [(begin + blank[begin:end].index("{"), end) for begin, end, _, _, body in doors if body]
    lines = text.split("\n")
    head, section, above, shared, above_end, beside = [], [], [], [], 0, {}
    events = [(begin, "door", door) for door in doors for begin in door[:1]]
    for match in re.finditer(r"/\*.*?\*/", text, re.S):
        begin = match.start()
        if any(low < begin < high for low, high in inside):
            continue
        if text[text.rfind("\n", 0, begin) + 1:begin].strip():
            beside.setdefault(text.count("\n", 0, begin), []).extend(clauses(match.group()))
        elif not head and not text[:begin].strip():
            head = clauses(match.group())
        else:
            events.append((begin, "comment", match))
    for begin, kind, what in sorted(events, key=lambda event: event[0]):
        number = text.count("\n", 0, begin)
        if kind == "comment":
            said = clauses(what.group())
            if what.group().startswith("/* ---"):
                section, above, shared = said, [], []
            else:
                above, shared, above_end = said, [], text.count("\n", 0, what.end()) + 1
            continue
        _, end, name, qualifiers, body = what
        if any(not line.strip() for line in lines[above_end:number]):
            above, shared = [], []
        last = number if body else text.count("\n", 0, end - 1)
        own = above + [clause for line in range(number, last + 1) for clause in beside.get(line, [])]
        clause = promise_of(own, shared, section, head)
        above, shared = [], above + shared
        if "REQUIRES(" in qualifiers or name.endswith("_locked"):
            clause = "a lock is held"
        if clause is not None:
            yield number + 1, name, clause, body


def read_door_exceptions(path, names):
    exceptions = {}
    before = ""
    for number, line in enumerate((read_text(path) or "").splitlines(), 1):
        name, _, reason = line.partition("\t")
        if not re.fullmatch(r"\w+", name) or not reason.strip():
            breach(path, number, "a line is a function, a tab, and the reason why it asserts nothing")
        if name <= before:
            breach(path, number, f"{name} does not stand in the order of names")
        if name not in names:
            breach(path, number, f"{name} needs no exception: it asserts, or its header says nothing, or it is gone")
        before = name
        exceptions[name] = reason
    return exceptions


def check_doors():
    paths = [path for path in project_files() if path.startswith("src/") and not path.endswith("_test.c")]
    bodies = {}         # what is not static, by name; several where the build chooses
    promised = {}       # name: (path, line, clause)
    for path in paths:
        if path.endswith(".c"):
            for _, _, name, qualifiers, body in doors_of(blank_out(read_text(path))):
                if body and "static" not in qualifiers.split():
                    bodies.setdefault(name, []).append(body)
    for path in paths:
        if path.endswith(".h"):
            for line, name, clause, body in promises_of(path, read_text(path)):
                found = [body] if body else bodies.get(name, [])
                if not all(ASSERTION.search(one) for one in found):
                    promised[name] = (path, line, clause)
    exceptions = read_door_exceptions(DOORS_EXCEPTIONS, promised)
    for name, (path, line, clause) in promised.items():
        if name not in exceptions:
            breach(path, line, f"{name} asserts nothing of \"{clause[:80]}\": do so, or say why not in "
                               f"{DOORS_EXCEPTIONS}")


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    arguments = sys.argv[1:]
    with_headers = "--no-headers" not in arguments
    chosen = [os.path.relpath(argument) for argument in arguments if not argument.startswith("--")]
    texts = {}
    for path in chosen or project_files():
        text = read_text(path)
        if text is not None and (suffix_of(path) in TEXT or text.startswith("#!")):
            texts[path] = text
    files = list(texts)
    headers = []
    of_headers = must_check_of_headers()
    for path in files:
        check_lines(path, texts[path])
        if suffix_of(path) in (".c", ".h"):
            check_includes(path, texts[path])
            check_globals(path, texts[path])
            check_results(path, texts[path], of_headers)
        if path.endswith(".h") and path.startswith("src/"):
            check_pragma_once(path, texts[path])
            headers.append(path)
    check_layout([path for path in files if suffix_of(path) in (".c", ".h")])
    check_scripts(files, texts)
    check_conformance_table()
    check_doors()
    check_commands_page()
    if with_headers:
        check_headers_alone(headers)
    for path, line, message in sorted(breaches):
        print(f"{path}:{line}: {message}")
    print(f"lint: {len(files)} files, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
