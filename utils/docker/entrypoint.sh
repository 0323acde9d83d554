#!/bin/sh
# keydb-server in a container:
#
#   docker run IMAGE                                                         no configuration file
#   docker run IMAGE --port 7000                                             words for the server
#   docker run IMAGE /data/own.conf --maxmemory 1gb                          a file and more words
#   docker run IMAGE keydb-server /etc/keydb/keydb.conf --appendonly yes     the same, with the program's name
#   docker run IMAGE keydb-cli --version                                     another program
#
# Unless the arguments or the file say otherwise, protected mode is off, as a port is open only where its owner
# publishes it, and there is a unix socket for keydb-healthcheck, which so needs to know neither port nor TLS.
set -eu

case ${1--} in
-*) file= ;;
*.conf) file=$1 && shift ;;
keydb-server | redis-server)
    shift
    file=
    case ${1--} in -*) ;; *) file=$1 && shift ;; esac
    ;;
*) exec "$@" ;;
esac

in_file() {     # in_file DIRECTIVE
    [ -n "$file" ] && grep -qi "^[[:space:]]*$1[[:space:]]" "$file"
}

# What is given twice counts as it was given last.
if [ -d /run/keydb ] && [ -w /run/keydb ]; then
    in_file unixsocket || set -- --unixsocket /run/keydb/keydb.sock "$@"
fi
in_file protected-mode || set -- --protected-mode no "$@"
exec keydb-server ${file:+"$file"} "$@"
