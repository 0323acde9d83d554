# TLS for those who run the server: who is on the allowlist, what is audited, certificates that change on disk, facts
# about them in INFO, sessions that outlive a reload.

if {!$have_tls} {
    test "TLS for operators" {noconn} {
        skip "the Tcl package tls is missing"
    }
    return
}

# What openssl s_client says after these commands.
proc tls_session {commands args} {
    catch {exec timeout 10 openssl s_client -connect 127.0.0.1:[srv tls_port] -CAfile [cert ca.crt] \
        -cert [cert client.crt] -key [cert client.key] -ign_eof {*}$args << $commands 2>@1} text
    return $text
}

proc tls_answers args {
    if {[catch {
        set c [connect -tls 1 {*}$args]
        set answer [$c ping]
    }]} {
        return 0
    }
    $c -close
    return [expr {$answer eq "PONG"}]
}

proc log_count text {
    return [regexp -all -- $text [slurp [srv log]]]
}

proc fingerprint path {
    regexp {=([0-9A-F:]+)} [exec openssl x509 -in $path -noout -fingerprint -sha256] - hex
    return [string tolower [string map {: {}} $hex]]
}

with_server {.tls 1} {
    test "tls-allowlist: names in the certificate, any case, globs" {keydb} {
        assert_equal {tls-allowlist {}} [r config get tls-allowlist]
        foreach {patterns admits} {
            client 1
            CLIENT 1
            cl?ent 1
            client.test 1
            *.TEST 1
            client. 0
            nobody 0
            "nobody *.test" 1
        } {
            r config set tls-allowlist $patterns
            assert_equal $admits [tls_answers] $patterns
        }
        assert_match "*Client CN (client) and SANs not found in allowlist.*" [slurp [srv log]]
        r config set tls-allowlist ""
        assert {[tls_answers]}
    }

    test "tls-allowlist: as many patterns as one likes, read back as one string" {keydb} {
        assert_reply {status OK} r config set tls-allowlist nobody "no body" client
        assert_equal {tls-allowlist {nobody "no body" client}} [r config get tls-allowlist]
        assert {[tls_answers]}
        assert_reply {status OK} r config set tls-allowlist "one two"
        assert_equal {tls-allowlist {one two}} [r config get tls-allowlist]
        r config set tls-allowlist {nobody "no body" client} ;# what is read is what can be set
        assert_equal {tls-allowlist {nobody "no body" client}} [r config get tls-allowlist]
        assert_equal PONG [r ping] "who is in stays"
        r config set tls-allowlist ""
        assert_equal {tls-allowlist {}} [r config get tls-allowlist]
    }

    test "tls-allowlist: an address in the certificate is matched as text" {keydb} {
        r config set tls-allowlist "127.0.0.?"
        assert {![tls_answers]}
        assert {[tls_answers -tlsopts [list -certfile [cert server.crt] -keyfile [cert server.key]]]}
        r config set tls-allowlist "::1"
        assert {[tls_answers -tlsopts [list -certfile [cert server.crt] -keyfile [cert server.key]]]}
        r config set tls-allowlist ""
    }

    test "tls-allowlist: without a certificate nobody is on it" {keydb} {
        r config set tls-auth-clients optional
        assert {[tls_answers -tlsopts {-certfile {} -keyfile {}}]}
        r config set tls-allowlist "*"
        assert {![tls_answers -tlsopts {-certfile {} -keyfile {}}]}
        assert {[tls_answers]}
        r config set tls-allowlist ""
        r config set tls-auth-clients yes
    }

    test "tls-allowlist: resumed sessions are looked at, too" {keydb} {
        set file [srv dir]/resumed
        foreach version {-tls1_2 -tls1_3} {
            assert_match "*+PONG*" [tls_session "PING\r\nQUIT\r\n" $version -sess_out $file]
            assert_match "*Reused*+PONG*" [tls_session "PING\r\nQUIT\r\n" $version -sess_in $file]
            r config set tls-allowlist nobody
            assert {![string match "*+PONG*" [tls_session "PING\r\nQUIT\r\n" $version -sess_in $file]]} $version
            r config set tls-allowlist ""
        }
    }

    test "INFO tells when certificates expire" {keydb} {
        foreach {name file} {server server.crt ca ca.crt client server.crt} {
            set serial [lindex [split [exec openssl x509 -in [cert $file] -noout -serial] =] 1]
            set date [lindex [split [exec openssl x509 -in [cert $file] -noout -enddate] =] 1]
            set expires [clock scan $date -format "%b %d %H:%M:%S %Y %Z"]
            assert_equal $serial [info_field tls_${name}_cert_serial tls]
            assert_equal $expires [info_field tls_${name}_cert_expires_at tls]
            set left [expr {$expires - [clock seconds]}]
            assert_range [info_field tls_${name}_cert_expires_in_seconds tls] [expr {$left - 10}] [expr {$left + 10}]
        }
    }

    test "sessions begun before a reload are resumed after it" {keydb} {
        set file [srv dir]/kept
        foreach version {-tls1_2 -tls1_3} {
            tls_session "PING\r\nQUIT\r\n" $version -sess_out $file
            r config set tls-ciphers DEFAULT
            assert_match "*Reused*" [tls_session "QUIT\r\n" $version -sess_in $file]
            r config set tls-ciphers ""
        }
    }

    test "sessions are not resumed when another authority counts" {keydb} {
        set file [srv dir]/gone
        foreach version {-tls1_2 -tls1_3} {
            tls_session "PING\r\nQUIT\r\n" $version -sess_out $file
            r config set tls-ca-cert-file [cert ca.crt other]
            assert {![string match "*Reused*" [tls_session "QUIT\r\n" $version -sess_in $file]]} $version
            r config set tls-ca-cert-file [cert ca.crt]
        }
    }

    test "handshakes in a crowd all end well" {} {
        set crowd {}
        for {set i 0} {$i < 60} {incr i} {
            set c [connect -tls 0 -port [srv tls_port]]
            lappend crowd $c
            $c -raw "\x16\x03\x01"
        }
        set clients {}
        for {set i 0} {$i < 30} {incr i} {
            lappend clients [connect]
        }
        foreach c $clients {
            assert_equal PONG [$c ping]
        }
        foreach c $crowd {
            $c -close
        }
    }
}

test "tls-allowlist and tls-auditlog-blocklist stand once in a file" {noconn keydb} {
    set path [fresh_dir]/server.conf
    spit $path "tls-allowlist a\ntls-allowlist b\n"
    set id [server_launch [list $path --port [free_port]]]
    assert_equal 1 [process_wait $id]
    assert_match "*tls-allowlist may only be set once*" [process_log $id]
    spit $path "tls-auditlog-blocklist a\ntls-auditlog-blocklist b\n"
    set id [server_launch [list $path --port [free_port]]]
    assert_equal 1 [process_wait $id]
    assert_match "*tls-auditlog-blocklist may only be set once*" [process_log $id]
}

with_server {.tls 1 tls-auditlog-blocklist "nobody other.*"} {
    test "audit: each command of a TLS client, with its keys" {keydb} {
        set fp [fingerprint [cert client.crt]]
        wait_for {[log_count "Audit Log: enabled for $fp"] > 0}
        set c [connect]
        $c mset audit:a 1 audit:b 2
        $c ping
        $c set "two words\n3:M" v
        wait_for {[log_count "Audit Log: $fp, cmd mset, keys: audit:a audit:b \n"] == 1}
        wait_for {[log_count "Audit Log: $fp, cmd ping\n"] > 0}
        wait_for {[log_count "Audit Log: $fp, cmd set, keys: \"two words\\\\n3:M\" \n"] == 1}
        $c multi
        $c get audit:in
        $c exec
        wait_for {[log_count "Audit Log: $fp, cmd get, keys: audit:in \n"] == 1}
        assert_equal {tls-auditlog-blocklist {nobody other.*}} [r config get tls-auditlog-blocklist]
    }

    test "audit: plain clients are not written down" {keydb} {
        set plain [connect -tls 0]
        $plain get audit:plain
        r get audit:seen
        wait_for {[log_count "keys: audit:seen "] == 1}
        assert_equal 0 [log_count "audit:plain"]
    }
}

with_server {.tls 1 tls-auditlog-blocklist "CLIENT"} {
    test "audit: names on the blocklist are left out" {keydb} {
        wait_for {[log_count "Audit Log: disabled for [fingerprint [cert client.crt]]"] > 0}
        r set audit:c v
        assert_equal 0 [log_count "cmd set"]
    }
}

# Copies of certificates that may change.
proc put_certs {folder set names} {
    foreach name $names {
        file copy -force [cert $name $set] $folder/.$name.new
        file rename -force $folder/.$name.new $folder/$name
    }
}

set rotating [fresh_dir]
put_certs $rotating main {ca.crt server.crt server.key}

with_server [list .tls 1 tls-rotation yes tls-cert-file $rotating/server.crt tls-key-file $rotating/server.key \
        tls-ca-cert-file $rotating/ca.crt] {
    set others [list -cafile [cert ca.crt other] -certfile [cert client.crt other] -keyfile [cert client.key other]]

    test "tls-rotation: all files at once, connections stay" {keydb} {
        set old [connect]
        assert {![tls_answers -tlsopts $::others]}
        put_certs $::rotating other {ca.crt server.crt server.key}
        wait_for {[tls_answers -tlsopts $::others]}
        assert {![tls_answers]}
        assert_equal PONG [$old ping]
        put_certs $::rotating main {ca.crt server.crt server.key}
        wait_for {[tls_answers]}
    }

    test "tls-rotation: half of a pair changes nothing, the other half completes it" {keydb} {
        set half [list -cafile [cert ca.crt other]]
        put_certs $::rotating other {server.key}
        wait_for {[log_count "TLS: certificates changed on disk, but can't be used"] == 1}
        assert {[tls_answers]}
        put_certs $::rotating other {server.crt}
        wait_for {[tls_answers -tlsopts $half]}
        put_certs $::rotating other {ca.crt}
        wait_for {[tls_answers -tlsopts $::others]}
        assert_equal 1 [log_count "but can't be used"]
        put_certs $::rotating main {ca.crt server.crt server.key}
        wait_for {[tls_answers]}
    }

    test "tls-auto-reload-interval does the same, less often" {keydb} {
        r config set tls-rotation no tls-auto-reload-interval 3600
        put_certs $::rotating other {ca.crt server.crt server.key}
        set times [log_count "certificates changed on disk"]
        pause 1500
        assert_equal $times [log_count "certificates changed on disk"]
        r config set tls-auto-reload-interval 1
        wait_for {[tls_answers -tlsopts $::others]}
        put_certs $::rotating main {ca.crt server.crt server.key}
        wait_for {[tls_answers]}
        r config set tls-rotation yes tls-auto-reload-interval 0
    }

    test "tls-rotation: switched off, nothing happens on its own" {keydb} {
        r config set tls-rotation no
        put_certs $::rotating other {ca.crt server.crt server.key}
        set times [log_count "certificates changed on disk"]
        pause 1500
        assert_equal $times [log_count "certificates changed on disk"]
        assert {[tls_answers]}
        r config set tls-rotation yes
        wait_for {[tls_answers -tlsopts $::others]}
    }
}

with_server {.tls 1 protected-mode yes} {
    test "protected mode tells TLS clients from elsewhere, after the handshake" {keydb} {
        set host [lindex [exec hostname -I] 0]
        if {$host eq ""} {
            skip "this machine has no address but loopback"
        }
        set c [connect -host $host -tls 1]
        assert_match "-DENIED * is running in protected mode*" [$c -line]
        assert {[$c -closed]}
        assert_equal PONG [[connect] ping]
    }
}
