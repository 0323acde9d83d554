#!/bin/sh
# Makes certificates for tests: an authority of its own, and by it a server's and a client's certificate.
#
#   utils/gen-test-certs.sh FOLDER
#
# Afterwards FOLDER has ca.crt ca.key server.crt server.key client.crt client.key, and other-ca.crt, other-client.crt,
# other-client.key of an authority that nobody trusts. The server is localhost, 127.0.0.1 and ::1. They are valid for
# ten years and good for nothing but tests: the keys have no password.
set -eu

[ $# = 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
cd "$1"

extensions=$(mktemp)
trap 'rm -f "$extensions"' EXIT

key() {
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key" 2>/dev/null
    chmod 600 "$1.key"
}

authority() {   # authority NAME
    key "$1"
    openssl req -x509 -new -sha256 -days 3650 -key "$1.key" -subj "/O=KeyDB test/CN=$1" -out "$1.crt" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
}

certificate() { # certificate NAME AUTHORITY USAGE ALTERNATIVE-NAMES
    key "$1"
    cat >"$extensions" <<EOF2
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=$3
subjectAltName=$4
EOF2
    openssl req -new -sha256 -key "$1.key" -subj "/O=KeyDB test/CN=$1" |
        openssl x509 -req -sha256 -days 3650 -CA "$2.crt" -CAkey "$2.key" -set_serial "0x$(openssl rand -hex 8)" \
            -extfile "$extensions" -out "$1.crt" 2>/dev/null
}

authority ca
certificate server ca serverAuth,clientAuth DNS:localhost,IP:127.0.0.1,IP:::1
certificate client ca clientAuth DNS:client.test
authority other-ca
certificate other-client other-ca clientAuth DNS:other-client.test
