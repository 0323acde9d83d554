#!/bin/sh
# Puts a runnable Redis 7.0 into build/oracle, for the tests that compare us with it and for the benchmarks.
# Nothing is installed and no service starts: Debian's packages are downloaded and unpacked, also without root.
#
#   deps/oracle.sh [FOLDER]      FOLDER is build/oracle unless given
#
# afterwards FOLDER holds redis-server, redis-cli, redis-benchmark, redis-check-rdb and redis-check-aof: small
# scripts that set the library path and start the unpacked program under its own name.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
oracle=${1:-$root/build/oracle}
stamp=$oracle/.complete
programs="redis-server redis-cli redis-benchmark redis-check-rdb redis-check-aof"
version=7.0

[ -e "$stamp" ] && [ -x "$oracle/redis-server" ] && exit 0

say() { echo "oracle: $*"; }
die() { echo "oracle: $*" >&2; exit 1; }

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    die "needs apt-get and dpkg-deb (Debian 12). Elsewhere bring Redis $version: make test ORACLE=/path/to/redis-server"

mkdir -p "$oracle"
oracle=$(cd "$oracle" && pwd)
# Several tests may ask for the oracle at once: the first one fetches, the others wait for it.
if command -v flock >/dev/null && [ -z "${ORACLE_LOCKED:-}" ]; then
    ORACLE_LOCKED=1 exec flock "$oracle/.lock" "$0" "$oracle"
fi
[ -e "$oracle/.complete" ] && [ -x "$oracle/redis-server" ] && exit 0

work=$oracle/.work
rm -rf "$work"
mkdir -p "$work/debs" "$work/lists/partial" "$work/cache/archives/partial"
trap 'rm -rf "$work"' EXIT

private_lists=
fetch() {   # fetch PACKAGE...: into $work/debs, with the machine's package lists or else with our own
    if [ -z "$private_lists" ]; then
        (cd "$work/debs" && apt-get -qq -o APT::Sandbox::User=root download "$@") >"$work/log" 2>&1 && return 0
        say "the machine's package lists don't serve; fetching lists of our own"
        private_lists=yes
        apt-get -qq -o APT::Sandbox::User=root -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" \
            update >"$work/log" 2>&1 || { cat "$work/log" >&2; die "apt-get update failed: is there a network?"; }
    fi
    (cd "$work/debs" && apt-get -qq -o APT::Sandbox::User=root -o Dir::State::lists="$work/lists" \
        -o Dir::Cache="$work/cache" download "$@") >"$work/log" 2>&1 ||
        { cat "$work/log" >&2; die "cannot download: $*"; }
}

unpack() {
    for deb in "$work"/debs/*.deb; do
        dpkg-deb -x "$deb" "$work/root"
        rm "$deb"
    done
}

library_path() {
    find "$1" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:
}

missing_libraries() {
    (cd "$work/root/usr/bin" && LD_LIBRARY_PATH=$(library_path "$work/root") ldd redis-check-rdb redis-cli) |
        awk '/not found/ { print $1 }' | sort -u
}

say "downloading Redis $version (unpacked into ${oracle#"$root"/}, not installed)"
mkdir "$work/root"
fetch redis-server redis-tools libatomic1 libjemalloc2 liblzf1
unpack
for library in $(missing_libraries); do
    case $library in
    libssl.so.3 | libcrypto.so.3) fetch libssl3 ;;
    libsystemd.so.0) fetch libsystemd0 ;;
    libcap.so.2) fetch libcap2 ;;
    libgcrypt.so.20) fetch libgcrypt20 ;;
    libgpg-error.so.0) fetch libgpg-error0 ;;
    liblzma.so.5) fetch liblzma5 ;;
    libzstd.so.1) fetch libzstd1 ;;
    liblz4.so.1) fetch liblz4-1 ;;
    libstdc++.so.6) fetch libstdc++6 ;;
    libgcc_s.so.1) fetch libgcc-s1 ;;
    esac
    [ -z "$(ls "$work/debs")" ] || unpack
done
[ -z "$(missing_libraries)" ] || die "libraries are missing:" $(missing_libraries)

rm -rf "$oracle/root"
mv "$work/root" "$oracle/root"
libraries=$(cd "$oracle" && library_path root | sed 's,root/,$here/root/,g')
for program in $programs; do
    binary=$oracle/root/usr/bin/$program
    [ -e "$binary" ] || die "the package has no $program"
    # The server is one executable with several names: what it is depends on the name it is started by.
    cat >"$work/$program" <<EOF2
#!/bin/sh
here=\$(cd "\$(dirname "\$0")" && pwd)
LD_LIBRARY_PATH="$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH
exec "\$here/root/usr/bin/$program" "\$@"
EOF2
    chmod +x "$work/$program"
    mv "$work/$program" "$oracle/$program"
done

found=$("$oracle/redis-server" --version)
case $found in
*"v=$version."*) ;;
*) die "expected Redis $version, this distribution has: $found" ;;
esac
touch "$oracle/.complete"
say "$found"
