#!/bin/sh
# Makes sure that what deps/packages lists is on this machine.
#
#   deps/install.sh [--dry-run] [build] [run] [test] [check] [campaign]        (build unless given)
#   deps/install.sh --list apt|dnf|apk GROUP ...                       (prints names, installs nothing)
#
# When everything is there it says nothing and takes some milliseconds. Otherwise it says what is missing and why,
# and installs it with apt, dnf or apk, as root or through sudo. No service is installed or started.
set -eu

cd "$(dirname "$0")/.."
table=deps/packages
dry_run=
list=
groups=
if [ "${1-}" = --list ]; then
    list=$2
    shift 2
fi
for argument in "$@"; do
    case $argument in
    --dry-run) dry_run=yes ;;
    build | run | test | check | campaign) groups="$groups $argument" ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
[ -n "$groups" ] || groups=build

rows() {    # rows of the wanted groups as: need|check|apt|dnf|apk|why
    awk -F '[ \t]*[|][ \t]*' -v groups=" $groups " '
        /^#/ || NF < 7 { next }
        index(groups, " " $1 " ") { print $2 "|" $3 "|" $4 "|" $5 "|" $6 "|" $7 }' "$table"
}

if [ -n "$list" ]; then
    rows | awk -F '|' -v manager="$list" '
        { name = manager == "apt" ? $3 : manager == "dnf" ? $4 : $5; if (name != "-") print name }'
    exit 0
fi

first_command() {   # first_command A,B: the first of them that exists
    for name in $(echo "$1" | tr ',' ' '); do
        command -v "$name" && return 0
    done 2>/dev/null
    return 1
}

links_fuzzer() {
    compiler=$(first_command "$1") &&
        printf '%s\n' '#include <stddef.h>' '#include <stdint.h>' \
            'int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n) { (void)d; (void)n; return 0; }' |
        "$compiler" -x c -fsanitize=fuzzer,address - -o /dev/null >/dev/null 2>&1
}

is_there() {
    case $1 in
    cmd:*) first_command "${1#cmd:}" >/dev/null ;;
    pkg:*) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "${1#pkg:}" ;;
    lib:*) ldconfig -p 2>/dev/null | grep -q "[[:space:]]${1#lib:} " ;;
    tcl:*) command -v tclsh >/dev/null 2>&1 &&
        echo "exit [catch {package require ${1#tcl:}}]" | tclsh >/dev/null 2>&1 ;;
    fuzzer:*) links_fuzzer "${1#fuzzer:}" ;;
    *) echo "deps: unknown check '$1' in $table" >&2; exit 2 ;;
    esac
}

# The slow checks are skipped where they passed with this very table before; the cheap ones are always made.
stamp=build/.deps/$(echo $groups | tr ' ' '-')
checked_before=
[ -e "$stamp" ] && [ -z "$(find "$table" -newer "$stamp")" ] && checked_before=yes
is_there_quickly() {
    case $checked_before$1 in
    yestcl:* | yesfuzzer:*) ;;
    *) is_there "$1" ;;
    esac
}

if command -v apt-get >/dev/null 2>&1; then manager=apt
elif command -v dnf >/dev/null 2>&1; then manager=dnf
elif command -v apk >/dev/null 2>&1; then manager=apk
else manager=none
fi

packages=
report=
must_miss=
rows_file=$(mktemp)
trap 'rm -f "$rows_file"' EXIT
rows >"$rows_file"
while IFS='|' read -r need check apt dnf apk why; do
    is_there_quickly "$check" && continue
    case $manager in
    apt) names=$apt ;;
    dnf) names=$dnf ;;
    apk) names=$apk ;;
    *) names="(${check#*:})" ;;
    esac
    [ "$names" != "-" ] || { [ "$need" = may ] && continue; names="(${check#*:})"; }
    packages="$packages $names"
    [ "$need" = may ] || must_miss="$must_miss $names"
    report="$report
    $names: $why"
done <"$rows_file"

finish() {
    mkdir -p build/.deps
    touch "$stamp"
    exit 0
}

[ -n "$packages" ] || finish
echo "deps: missing for$( [ "$groups" = build ] && echo ' build' || echo "$groups"):$report"
[ -z "$dry_run" ] || exit 1

case $manager in
apt) install="apt-get install -y --no-install-recommends$packages" ;;
dnf) install="dnf install -y$packages" ;;
apk) install="apk add$packages" ;;
*) install= ;;
esac

cannot() {
    if [ -z "$must_miss" ]; then
        echo "deps: $*; going on without: they are optional" >&2
        finish
    fi
    echo "deps: $*" >&2
    [ -z "$install" ] || echo "deps: please run as root:  $install" >&2
    exit 1
}

case $packages in
*"("*) cannot "$table doesn't know this system's packages: please install the above yourself" ;;
esac
as_root=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || cannot "installing needs root and there is no sudo"
    if sudo -n true 2>/dev/null || [ -t 0 ]; then as_root=sudo
    else cannot "installing needs root and sudo asks for a password"
    fi
fi

echo "deps: $as_root $install"
if [ "$manager" = apt ]; then
    apt_get="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0"
    # First with the package lists the machine has, then with fresh ones.
    # shellcheck disable=SC2086
    $apt_get install -y --no-install-recommends $packages </dev/null >/dev/null 2>&1 ||
        { $apt_get update && $apt_get install -y --no-install-recommends $packages </dev/null >/dev/null; } ||
        cannot "apt-get failed"
else
    # shellcheck disable=SC2086
    $as_root $install </dev/null || cannot "$manager failed"
fi

while IFS='|' read -r need check _ _ _ why; do
    [ "$need" = may ] || is_there "$check" || {
        echo "deps: still missing after installing: $check ($why)" >&2
        exit 1
    }
done <"$rows_file"
finish
