#!/bin/sh
# guard.sh LOG INPUT PROGRAM [ARG ...]: runs PROGRAM with its output appended to LOG and its input read from INPUT.
# Says "pid N" when it runs and "exit CODE" when it has ended (128 + n after signal n). When our own input is closed,
# because the test run ended in whatever way, the program is killed: no server outlives the run that started it.
log=$1
input=$2
shift 2
exec 3<&0
"$@" >>"$log" 2>&1 <"$input" 3<&- &
pid=$!
echo "pid $pid"
( trap '' INT TERM HUP; read -r _ <&3; kill -9 "$pid" ) >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait "$pid" 2>/dev/null
code=$?
kill -9 "$watcher" 2>/dev/null
echo "exit $code"
