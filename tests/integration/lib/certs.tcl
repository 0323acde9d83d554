# Certificates for the TLS tests, made once a run on first use: [cert NAME ?SET?] is a path. A set has its own
# authority; NAME is one of ca.crt ca.key server.crt server.key client.crt client.key.

namespace eval certs {
    variable made
}

proc cert {name {set main}} {
    if {![info exists certs::made($set)]} {
        set dir $::run_dir/certs-$set
        file mkdir $dir
        set script $::root_dir/utils/gen-test-certs.sh
        if {[file exists $script]} {
            exec sh $script $dir >$dir/log 2>@1
        } else {
            certs::generate $dir
        }
        set certs::made($set) $dir
    }
    return $certs::made($set)/$name
}

# Without the project's script: openssl directly, with the same file names.
proc certs::generate dir {
    set curve {-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes}
    exec openssl req -x509 {*}$curve -keyout $dir/ca.key -out $dir/ca.crt -days 30 -subj "/CN=Test CA [pid]" 2>@1
    set extensions [open $dir/names w]
    puts $extensions "subjectAltName=DNS:localhost,IP:127.0.0.1"
    close $extensions
    foreach who {server client} {
        exec openssl req {*}$curve -keyout $dir/$who.key -out $dir/$who.csr -subj "/CN=$who" 2>@1
        exec openssl x509 -req -in $dir/$who.csr -CA $dir/ca.crt -CAkey $dir/ca.key -CAcreateserial -days 30 \
            -extfile $dir/names -out $dir/$who.crt 2>@1
    }
}
