#!/bin/sh
# keydb-server in a container: a port is open only where its owner publishes it, hence protected mode is off unless the
# arguments or the configuration file say otherwise. Another program named as first word is run as it is.
set -eu

case ${1--} in
-*) file= ;;
*.conf) file=$1 && shift ;;
keydb-server)
    shift
    file=
    case ${1--} in -*) ;; *) file=$1 && shift ;; esac
    ;;
*) exec "$@" ;;
esac

if [ -z "$file" ] || ! grep -qi '^[[:space:]]*protected-mode[[:space:]]' "$file"; then
    set -- --protected-mode no "$@" # what is given twice counts as it was given last
fi
exec keydb-server ${file:+"$file"} "$@"
