#!/bin/sh
# Runs groups of tests, prints one line a program and at the end "N passed, N failed". Called by the Makefile.
#
#   tests/run.sh [--level short|core|whole] GROUP...      groups: see the functions group_* below
#   tests/run.sh --sum STEP...                            steps: see the functions step_*; sums several runs
#
# A program says its counts in its last line "N passed, N failed", or is a cmocka program. It counts as one failure if
# it ends with an error without having counted one, if it counted nothing at all, if it ran out of time, or if a
# sanitizer left a report. The output of what failed is shown, all output is kept under $OUT/logs.
#
# From the environment: BUILD (variant), OUT (its folder), ORACLE, FUZZ_SECONDS, MAKE, RESULTS (a file that gets the
# two totals), SEED (if it is not given: random at level whole, else always the same, so that each commit has to pass
# the same).
set -u
cd "$(dirname "$0")/.." || exit 1

BUILD=${BUILD:-release}
OUT=${OUT:-build/$BUILD}
ORACLE=${ORACLE:-build/oracle/redis-server}
FUZZ_SECONDS=${FUZZ_SECONDS:-30}
MAKE=${MAKE:-make}
RESULTS=${RESULTS:-$OUT/results}
server=$OUT/bin/keydb-server
level=short
mode=groups
total_passed=0
total_failed=0
total_skipped=0     # programs

# How much of each: VALUE short core whole.
pick() {
    case $level in
    short) echo "$1" ;;
    core) echo "$2" ;;
    whole) echo "$3" ;;
    esac
}

case $BUILD in
asan | tsan) patience=4 ;;
*) patience=1 ;;
esac

# Integration suites that run side by side: they wait most of the time.
jobs=4
lane= # number of the one that runs here; empty: there are none

count() {   # count PASSED FAILED
    total_passed=$((total_passed + $1))
    total_failed=$((total_failed + $2))
}

# A sanitizer writes its reports where we look for them, so that no report gets lost with a server's output.
sanitizer_options() {
    reports=$PWD/$1
    export ASAN_OPTIONS="log_path=$reports/asan:detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1"
    export UBSAN_OPTIONS="log_path=$reports/ubsan:print_stacktrace=1"
    export TSAN_OPTIONS="log_path=$reports/tsan:second_deadlock_stack=1:history_size=4:die_after_fork=0"
}

# gcc's thread sanitizer cannot live with the address space as randomly arranged as newer kernels do it.
fixed_addresses=
if [ "$BUILD" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then
    fixed_addresses="setarch $(uname -m) -R"
fi

# run_program LABEL SECONDS COMMAND...
run_program() {
    label=$1
    seconds=$(($2 * patience))
    shift 2
    log=$OUT/logs/$(echo "$label" | tr ' /' '--').log
    reports=$OUT/logs/reports$lane
    rm -rf "$reports"
    mkdir -p "$reports"
    sanitizer_options "$reports"
    begin=$(date +%s)
    # shellcheck disable=SC2086
    timeout -k 10 "$seconds" $fixed_addresses "$@" >"$log" 2>&1 </dev/null
    code=$?
    took=$(($(date +%s) - begin))

    counts=$(awk '
        /^[0-9]+ passed, [0-9]+ failed/ { passed = $1; failed = $3; said = 1 }
        /^\[  PASSED  \] [0-9]+ test/ { cmocka_passed += $4 }
        /^\[  FAILED  \] [0-9]+ test/ { cmocka_failed += $4 }
        END { if (said) print passed + 0, failed + 0; else print cmocka_passed + 0, cmocka_failed + 0 }' "$log")
    passed=${counts% *}
    failed=${counts#* }
    why=
    if [ "$code" = 124 ] || [ "$code" = 137 ]; then
        why="out of time after $seconds s"
    elif [ -n "$(ls "$reports")" ]; then
        why="sanitizer reports"
        cat "$reports"/* >>"$log"
    elif [ "$code" != 0 ]; then
        why="exit code $code"
    elif [ $((passed + failed)) = 0 ] && grep -q '^skipped: ' "$log"; then
        printf '  skipped %-44s %s\n' "$label" "$(sed -n 's/^skipped: //p' "$log" | head -1)"
        total_skipped=$((total_skipped + 1))
        return
    elif [ $((passed + failed)) = 0 ]; then
        why="it counted no test"
    fi
    [ -n "$why" ] && [ "$failed" = 0 ] && failed=1
    count "$passed" "$failed"
    if [ "$failed" = 0 ]; then
        printf '  ok      %-44s %6d passed %13s %4d s\n' "$label" "$passed" "" "$took"
        return
    fi
    printf '  FAILED  %-44s %6d passed, %4d failed %5d s  %s\n' "$label" "$passed" "$failed" "$took" "$why"
    echo "  ------- $log:"
    if [ "$(wc -l <"$log")" -le 120 ]; then
        sed 's/^/  | /' "$log"
    else
        # First what went wrong, as whoever reads this may get only its beginning.
        grep -n -A8 -E '^ *(FAILED|FAIL|wrong|not ok) ' "$log" | cut -c1-300 | head -60 | sed 's/^/  | /'
        grep -n -i -E 'fail|error|assert|Sanitizer' "$log" | grep -v ' 0 failed' | cut -c1-300 | head -30 |
            sed 's/^/  | /'
        echo "  | ..."
        tail -20 "$log" | cut -c1-300 | sed 's/^/  | /'
    fi
}

# runner_of FOLDER: how the tests in there are started; nothing where the folder does not exist.
runner_of() {
    [ -d "tests/$1" ] || return 0
    if [ -x "tests/$1/run" ]; then echo "tests/$1/run"
    elif [ -e "tests/$1/run.tcl" ]; then echo "tclsh tests/$1/run.tcl"
    elif [ -e "tests/$1/run.py" ]; then echo "python3 tests/$1/run.py"
    else echo "false"      # there are tests, but nothing that runs them: that must not pass
    fi
}

# run_suite LABEL SECONDS FOLDER ARGUMENT...
run_suite() {
    suite_label=$1
    suite_seconds=$2
    runner=$(runner_of "$3")
    shift 3
    [ -n "$runner" ] || { echo "  ($suite_label: there are none)"; return; }
    # shellcheck disable=SC2086
    run_program "$suite_label" "$suite_seconds" $runner "$@"
}

# run_lanes FUNCTION...: calls each at the same time, in a lane of its own. Each lane prints at its end.
run_lanes() {
    lane=0
    for function in "$@"; do
        echo "0 1 0" >"$OUT/logs/lane$lane.counts" # until it has come to its end
        (
            total_passed=0
            total_failed=0
            total_skipped=0
            "$function"
            echo "$total_passed $total_failed $total_skipped" >"$OUT/logs/lane$lane.counts"
        ) >"$OUT/logs/lane$lane.lines" 2>&1 &
        lane=$((lane + 1))
    done
    wait
    for lane in $(seq 0 $(($# - 1))); do
        cat "$OUT/logs/lane$lane.lines"
        read -r passed failed skipped <"$OUT/logs/lane$lane.counts"
        count "$passed" "$failed"
        total_skipped=$((total_skipped + skipped))
    done
    lane=
}

# The unit tests that are not worth their time in this build.
left_out_tests() {
    [ "$BUILD $level" != "tsan core" ] || sed 's/#.*//' tests/one-thread-tests
}

# Every unit test of the sources, not what an older build has left behind: what the lane's turn is.
unit_tests() {
    left_out=$(left_out_tests)
    turn=0
    for source in src/*/*_test.c src/*/*/*_test.c; do
        [ -e "$source" ] || continue
        name=${source#src/}
        name=${name%.c}
        ! echo "$left_out" | grep -qx "$name" || continue
        turn=$(((turn + 1) % $(nproc)))
        [ "$turn" = "$lane" ] || continue
        run_program "unit $name" 120 "$OUT/test/$name"
    done
}

# They need one processor each, so they run in as many lanes as there are processors.
group_unit() {
    # shellcheck disable=SC2046
    run_lanes $(seq "$(nproc)" | sed 's/.*/unit_tests/')
}

group_make() {
    run_suite "make, what it installs" 60 make
    # Leaks are not looked for under strace, so this is for the programs that are installed in earnest.
    [ "$BUILD" != release ] || run_suite "package, make install" 60 package --out "$OUT"
}

# What the documents say: the page of commands, and what commands they show do.
group_docs() {
    run_program "docs, commands" 60 python3 utils/commands.py --server "$server" --check
    [ "$BUILD" != release ] || run_suite "docs, what they show" 180 docs --server "$server" --oracle "$ORACLE"
}

# Roots of other machines: what stands in a package does not depend on how it is built.
group_package() {
    [ "$BUILD" = release ] || return
    run_program "package, Debian" 600 python3 tests/package/deb.py --out "$OUT"
    run_suite "package, container" 600 image --out "$OUT"
}

core_suites() {
    sed 's/#.*//' tests/core-suites
}

long_suites() {
    sed 's/#.*//' tests/long-suites
}

# What takes long is left to make check.
group_long() {
    # shellcheck disable=SC2046
    run_suite "integration, long suites" 500 integration --jobs $jobs --server "$server" --oracle "$ORACLE" \
        --single $(long_suites)
}

group_integration() {
    # shellcheck disable=SC2046
    case $level in
    core)
        run_suite "integration core" 300 integration --jobs $jobs --server "$server" --oracle "$ORACLE" \
            --single $(core_suites)
        ;;
    short)
        run_suite "integration" 450 integration --jobs $jobs --server "$server" --oracle "$ORACLE" \
            --tags "$(long_suites | tr -s '\n ' ',' | sed 's/^,//; s/,$//; s/[a-z_][a-z_]*/-&/g')"
        run_suite "integration core, TLS" 120 integration --jobs $jobs --server "$server" --oracle "$ORACLE" --tls \
            --single $(core_suites)
        ;;
    whole)
        run_suite "integration" 900 integration --jobs $jobs --server "$server" --oracle "$ORACLE"
        run_suite "integration, 1 thread" 900 integration --jobs $jobs --server "$server" --oracle "$ORACLE" --threads 1
        run_suite "integration, TLS" 900 integration --jobs $jobs --server "$server" --oracle "$ORACLE" --tls
        ;;
    esac
}

group_differential() {
    run_suite "differential" "$(pick 120 120 1200)" differential --server "$server" --oracle "$ORACLE" \
        --count "$(pick 3000 1000 30000)" --seed "$SEED"
    run_suite "differential, small limits" "$(pick 120 120 1200)" differential --server "$server" --oracle "$ORACLE" \
        --count "$(pick 1000 500 20000)" --seed "$SEED" --small-limits
    run_program "differential, waiting" "$(pick 120 120 1200)" python3 tests/differential/waiting.py \
        --server "$server" --oracle "$ORACLE" --count "$(pick 1000 500 20000)" --seed "$SEED"
    run_program "differential, messages" "$(pick 60 60 900)" python3 tests/differential/messages.py \
        --server "$server" --oracle "$ORACLE" --count "$(pick 4000 2000 100000)" --seed "$SEED"
    run_program "differential, users" "$(pick 60 60 600)" python3 tests/differential/acl.py \
        --server "$server" --oracle "$ORACLE" --count "$(pick 3000 1000 100000)" --seed "$SEED"
    run_program "differential, operations" "$(pick 60 60 600)" python3 tests/differential/operations.py \
        --server "$server" --oracle "$ORACLE" --rounds 4 --commands "$(pick 1500 1000 30000)" --seed "$SEED"
    run_program "differential, placing" "$(pick 60 180 900)" python3 tests/differential/placing.py \
        --server "$server" --oracle "$ORACLE" --rounds "$(pick 3 4 200)" --commands "$(pick 600 400 2000)" \
        --seed "$SEED"
    run_program "differential, newer commands" "$(pick 60 180 1200)" python3 tests/differential/newer.py \
        --server "$server" --oracle "$ORACLE" --rounds "$(pick 6 6 120)" --commands "$(pick 1500 800 4000)" \
        --seed "$SEED"
    run_program "differential, append only files" "$(pick 120 120 1200)" python3 tests/differential/aof.py \
        --server "$server" --oracle "$ORACLE" --blocks "$(pick 5 5 100)" --seed "$SEED"
}

group_replication() {
    run_program "replication, prefixes" "$(pick 60 60 400)" python3 tests/replication/prefix.py \
        --server "$server" --oracle "$ORACLE" --seconds "$(pick 5 5 180)" --seed "$SEED"
    run_program "replication, with redis-server" "$(pick 120 120 1800)" python3 tests/differential/replication.py \
        --server "$server" --oracle "$ORACLE" --count "$(pick 7200 4800 120000)" --seed "$SEED"
    run_program "replication, chaos" "$(pick 120 180 2400)" python3 tests/replication/chaos.py --server "$server" \
        --oracle "$ORACLE" --rounds "$(pick 10 10 200)" --seconds "$(pick 60 90 1800)" --seed "$SEED"
    [ "$level" != whole ] || run_program "replication, chaos with redis-server" 1200 \
        python3 tests/replication/chaos.py --server "$server" --oracle "$ORACLE" --rounds 100 --seconds 900 \
        --kinds ours,oracle,ours,ours --seed "$SEED"
}

active_directed() { # active_directed K: half of them
    run_program "active, directed, $1 of 2" "$(pick 120 240 900)" python3 tests/active/directed.py --server "$server" \
        --oracle "$ORACLE" --level "$level" --part "$1/2"
}

active_first_lane() {
    for threads in $(pick 4 "1 4" "1 4"); do
        run_program "active, receiving, $threads threads" "$(pick 120 240 240)" python3 tests/active/receiving.py \
            --server "$server" --threads "$threads"
    done
    active_directed 1
}

active_second_lane() {
    run_program "active, sending" "$(pick 120 180 180)" python3 tests/active/sending.py --server "$server"
    run_program "active, examples" 120 python3 tests/active/examples.py --server "$server"
    run_program "active, what KeyDB does" 120 python3 tests/active/directed.py --server "$server" \
        --oracle "$ORACLE" --nodes keydb --must-fail "counter in a cut, results written by hand"
    active_directed 2
}

# Nodes that all take writes, which wait for each other most of the time. KeyDB's server, where it is, has defects that
# these tests have to find.
group_active() {
    run_lanes active_first_lane active_second_lane
    [ "$level" != whole ] || run_program "active, comparing" 600 python3 tests/active/comparing.py --server "$server" \
        --keys 1000000 --changes 100000 --nodes 6 --check
    # It finds what is still open: see docs/active-replication.md.
    [ "$level" != whole ] || run_program "active, chaos" 2400 python3 tests/active/chaos.py --server "$server" \
        --oracle "$ORACLE" --rounds 300 --seconds 1800 --seed "$SEED" --shrink 200
}

# The rules of active replication in a simulated world of one thread. The whole form runs more than 10 million
# operations.
group_merge() {
    [ "$BUILD $level" != "tsan core" ] || return
    run_program "merge, directed histories" 60 "$OUT/test/merge_sim" --directed
    run_program "merge, both forms of records" "$(pick 60 60 600)" "$OUT/test/merge_sim" --forms \
        --seed "${SEED}000000" --count "$(pick 20000 10000 1000000)"
    # What it finds does not depend on how it is built, and sanitizers take minutes for it.
    [ "$level" = core ] || run_program "merge, each rule broken" "$(pick 120 0 1200)" "$OUT/test/merge_sim" --breaks \
        --most "$(pick 10000 0 20000)"
    run_program "merge, random histories" "$(pick 120 120 2400)" "$OUT/test/merge_sim" --seed "${SEED}000000" \
        --count "$(pick 5000 2000 200000)"
}

# The client for the command line and the program that measures, beside redis-cli and redis-benchmark.
group_cli() {
    run_suite "client for the command line" 90 cli --server "$server" --oracle "$ORACLE"
    run_program "program for measuring" 120 python3 tests/cli/benchmark.py --server "$server" --oracle "$ORACLE"
}

group_stress() {
    run_suite "stress" "$(pick 90 120 900)" stress --server "$server" --seconds "$(pick 10 20 180)" --seed "$SEED"
    run_program "stress, snapshots" "$(pick 60 120 1500)" python3 tests/stress/snapshot_model.py --server "$server" \
        --method threads --snapshots "$(pick 25 10 1000)" --seconds "$(pick 9 20 1200)" --seed "$SEED"
    [ "$level" != whole ] || run_program "stress, snapshots of large values" 900 \
        python3 tests/stress/snapshot_model.py --server "$server" --method threads --large --snapshots 200 \
        --seconds 600 --seed "$SEED"
    [ "$level" != whole ] || run_program "stress, snapshots with eviction" 600 \
        python3 tests/stress/snapshot_model.py --server "$server" --method threads --evict --preamble no \
        --snapshots 200 --seconds 300 --seed "$SEED"
    [ "$level" != whole ] || run_program "stress, snapshots by fork" 600 \
        python3 tests/stress/snapshot_model.py --server "$server" --method fork --snapshots 200 --seconds 300 \
        --seed "$SEED"
}

group_conformance() {
    run_program "conformance, the gauge itself" 60 tests/conformance/gauge_test.py
    case $level in
    whole) run_suite "conformance" 1500 conformance --server "$server" --oracle "$ORACLE" ;;
    *) run_suite "conformance, fast part" 180 conformance --server "$server" --oracle "$ORACLE" --fast ;;
    esac
}

# Its limits of memory are those of a build without sanitizers.
group_badinput() {
    case $BUILD in
    asan | tsan) return ;;
    esac
    run_suite "bad input" 120 badinput --server "$server" --oracle "$ORACLE" --seed "$SEED"
}

group_fault() {
    run_suite "fault" "$(pick 120 120 2400)" fault --server "$server" --seed "$SEED" \
        --rounds "$(pick 10 10 500)" --stride "$(pick 31 31 1)"
}

group_valgrind() {
    run_suite "valgrind" 600 valgrind --server "$server"
}

# The reference is that of a release build.
group_instructions() {
    [ "$BUILD" = release ] || return
    run_program "instructions a request" 180 python3 tests/bench/instructions.py --server "$server"
}

group_clients() {
    run_suite "clients" 1500 clients --server "$server" --oracle "$ORACLE"
}

# A fuzz target is one test: passed when it found nothing. What it found stays under build/fuzz/found.
group_fuzz() {
    set -- tests/fuzz/*.c
    [ -e "$1" ] || { echo "  (fuzz: there are none)"; return; }
    $MAKE BUILD=fuzz OUT=build/fuzz fuzzers || { echo "  FAILED  fuzz targets don't build"; count 0 1; return; }
    OUT=build/fuzz
    mkdir -p build/fuzz/found
    for source in "$@"; do
        name=$(basename "$source" .c)
        corpus=tests/fuzz/corpus/$name
        mkdir -p "build/fuzz/corpus/$name"
        # A server's threads still have keys between two inputs, and their addresses, with a tag above, are none to the
        # sanitizer: there leaks are looked for at the end alone.
        leaks=$([ "$name" != dispatch ] || echo "-detect_leaks=0")
        # shellcheck disable=SC2086
        run_program "fuzz $name" "$((FUZZ_SECONDS + 120))" tests/run.sh --fuzz-one \
            "build/fuzz/fuzz/$name" -max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=2048 $leaks \
            -artifact_prefix="build/fuzz/found/$name-" $([ -e "tests/fuzz/$name.dict" ] &&
            echo "-dict=tests/fuzz/$name.dict") "build/fuzz/corpus/$name" $([ -d "$corpus" ] && echo "$corpus")
    done
}

# sum_of NAME COMMAND...: the totals which that run wrote, or one failure when it got nowhere.
sum_of() {
    name=$1
    shift
    echo "== $name"
    results=build/results/$name
    mkdir -p build/results
    rm -f "$results"
    RESULTS=$results TOTAL_PREFIX="$name: " "$@"
    code=$?
    passed=0
    failed=0
    [ ! -e "$results" ] || read -r passed failed <"$results"
    [ "$code" = 0 ] || [ "$failed" != 0 ] || failed=1
    [ -e "$results" ] || echo "$name: $passed passed, $failed failed"
    count "$passed" "$failed"
}

make_lint() {
    $MAKE lint && echo "1 0" >"$RESULTS"
}

make_tidy() {   # make_tidy TARGET: one failure however many files
    $MAKE "$1" && echo "1 0" >"$RESULTS"
}

make_clang() {
    $MAKE CC=clang BUILD=release OUT=build/clang all && echo "1 0" >"$RESULTS"
}

step_clang() { sum_of clang make_clang; }
step_tidy() { sum_of tidy make_tidy tidy; }
step_tidy_all() { sum_of tidy make_tidy tidy-all; }
step_lint() { sum_of lint make_lint; }
step_clients() { sum_of clients $MAKE BUILD=release OUT=build/release clients; }
step_valgrind() { sum_of valgrind $MAKE BUILD=valgrind OUT=build/valgrind valgrind; }
step_fuzz() { sum_of fuzz $MAKE BUILD=release OUT=build/release fuzz; }
step_instructions() { sum_of instructions $MAKE BUILD=release OUT=build/release instructions; }
step_long() { sum_of long $MAKE BUILD=release OUT=build/release long; }
step_tsan_core() { sum_of tsan $MAKE BUILD=tsan OUT=build/tsan core-groups; }
step_asan_core() { sum_of asan $MAKE BUILD=asan OUT=build/asan core-groups; }
step_tsan_whole() { sum_of tsan $MAKE BUILD=tsan OUT=build/tsan whole-groups; }
step_asan_whole() { sum_of asan $MAKE BUILD=asan OUT=build/asan whole-groups; }
step_release_whole() { sum_of release $MAKE BUILD=release OUT=build/release whole-groups; }

while [ $# -gt 0 ]; do
    case $1 in
    --level) level=$2; shift 2 ;;
    --sum) mode=steps; shift ;;
    --fuzz-one)
        shift
        "$@" && { echo "1 passed, 0 failed"; exit 0; }
        echo "0 passed, 1 failed"
        exit 1
        ;;
    *) break ;;
    esac
done

if [ "$level" = whole ]; then
    SEED=${SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
else
    SEED=${SEED:-1}
fi

case $mode in
groups)
    mkdir -p "$OUT/logs"
    echo "== tests ($BUILD, $level, seed $SEED): $*"
    for group in "$@"; do "group_$group"; done
    ;;
steps)
    for step in "$@"; do "step_$(echo "$step" | tr - _)"; done
    ;;
esac

mkdir -p "$(dirname "$RESULTS")"
echo "$total_passed $total_failed" >"$RESULTS"
echo "${TOTAL_PREFIX:-}$total_passed passed, $total_failed failed"
[ "$total_failed" = 0 ] && [ $((total_passed + total_skipped)) -gt 0 ]
