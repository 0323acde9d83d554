#!/bin/sh
# Whether the server of this container answers. It asks at the unix socket of keydb-entrypoint, or, without that, at
# port KEYDB_PORT (6379). A password is read from REDISCLI_AUTH.
#
#   keydb-healthcheck           it answers anything: it lives, also while it loads its data or wants a password
#   keydb-healthcheck --ready   it serves requests
set -eu

socket=/run/keydb/keydb.sock
if [ -S "$socket" ]; then
    set -- "${1-}" -s "$socket"
else
    set -- "${1-}" -p "${KEYDB_PORT:-6379}"
fi
wanted=$1
shift
reply=$(timeout 4 keydb-cli "$@" PING 2>&1) || { echo "$reply"; exit 1; }
echo "$reply"
case $wanted in
--ready) [ "$reply" = PONG ] ;;
*) case $reply in PONG | [A-Z]*\ *) ;; *) exit 1 ;; esac ;;
esac
