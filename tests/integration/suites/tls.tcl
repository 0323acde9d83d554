# TLS: who is let in, which protocols, new certificates while running, and all the data as without it.

if {$have_tls} {
    # The protocol a handshake ends with, or the error.
    proc tls_protocol args {
        set command [list timeout 10 openssl s_client -connect 127.0.0.1:[srv tls_port] -brief -CAfile [cert ca.crt] \
            -cert [cert client.crt] -key [cert client.key] {*}$args]
        catch {exec {*}$command << "PING\r\nQUIT\r\n" 2>@1} text
        return $text
    }

    # 1 when a command works over such a connection. With TLS 1.3 a refused certificate shows only after the handshake.
    proc tls_works args {
        if {[catch {
            set c [connect -tls 1 {*}$args]
            set answer [$c ping]
        }]} {
            return 0
        }
        $c -close
        return [expr {$answer eq "PONG"}]
    }

    set no_cert {-certfile {} -keyfile {}}

    with_server {.tls 1} {
        test "commands work over TLS and beside it without" {} {
            assert_reply {status OK} r set k v
            set plain [connect -tls 0]
            assert_reply {bulk v} $plain get k
            assert_equal [list tls-port [srv tls_port]] [r config get tls-port]
        }

        test "a client certificate is demanded" {} {
            assert {[tls_works]}
            assert {![tls_works -tlsopts $::no_cert]}
        }

        test "a certificate of another authority is refused" {} {
            assert {![tls_works -tlsopts [list -certfile [cert client.crt other] -keyfile [cert client.key other]]]}
            assert {[tls_works]}
        }

        test "the client can tell the wrong server" {} {
            assert {![tls_works -tlsopts [list -cafile [cert ca.crt other]]]}
        }

        test "tls-auth-clients no and optional" {} {
            r config set tls-auth-clients no
            assert {[tls_works -tlsopts $::no_cert]}
            assert {[tls_works -tlsopts [list -certfile [cert client.crt other] -keyfile [cert client.key other]]]}
            r config set tls-auth-clients optional
            assert {[tls_works -tlsopts $::no_cert]}
            assert {[tls_works]}
            assert {![tls_works -tlsopts [list -certfile [cert client.crt other] -keyfile [cert client.key other]]]}
            r config set tls-auth-clients yes
            assert {![tls_works -tlsopts $::no_cert]}
        }

        test "a plain client on the TLS port is dropped" {} {
            set c [connect -tls 0 -port [srv tls_port]]
            $c -raw "PING\r\n*1\r\n\$4\r\nPING\r\n"
            assert {[$c -closed]}
            set c [connect -tls 0 -port [srv tls_port]]
            catch {$c -raw [string repeat "\x16\x03\x01\xff\xff" 20000]}
            $c -close
            assert_equal PONG [r ping]
        }

        test "protocol versions" {} {
            assert_match "*TLSv1.3*" [tls_protocol]
            assert_match "*TLSv1.2*" [tls_protocol -tls1_2]
            r config set tls-protocols TLSv1.2
            assert_match "*TLSv1.2*" [tls_protocol]
            assert_match "*alert protocol version*" [tls_protocol -tls1_3]
            r config set tls-protocols "TLSv1.3"
            assert_match "*TLSv1.3*" [tls_protocol]
            assert_match "*alert protocol version*" [tls_protocol -tls1_2]
            assert_refused "ERR CONFIG SET failed (possibly related to argument 'tls-protocols') - Unable to update TLS\
                configuration. Check server logs." r config set tls-protocols nonsense
            assert_equal {tls-protocols TLSv1.3} [r config get tls-protocols]
            r config set tls-protocols ""
            assert_match "*TLSv1.2*" [tls_protocol -tls1_2]
        }

        test "ciphers" {} {
            r config set tls-ciphersuites TLS_CHACHA20_POLY1305_SHA256
            assert_match "*TLS_CHACHA20_POLY1305_SHA256*" [tls_protocol]
            r config set tls-ciphersuites ""
            r config set tls-ciphers ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384
            assert_match "*AES256-GCM-SHA384*" [tls_protocol -tls1_2]
            r config set tls-ciphers ""
        }

        test "new certificates without a restart, old connections stay" {} {
            set old [connect]
            $old ping
            r config set tls-cert-file [cert server.crt other] tls-key-file [cert server.key other] \
                tls-ca-cert-file [cert ca.crt other]
            assert_equal PONG [$old ping]
            assert {![tls_works]}
            assert {[tls_works -tlsopts [list -cafile [cert ca.crt other] -certfile [cert client.crt other] \
                -keyfile [cert client.key other]]]}
            $old config set tls-cert-file [cert server.crt] tls-key-file [cert server.key] tls-ca-cert-file \
                [cert ca.crt]
            assert {[tls_works]}
        }

        test "a key that does not fit its certificate changes nothing" {} {
            assert_error "ERR CONFIG SET failed (possibly related to argument 'tls-*-file') - Unable to update TLS\
                configuration. Check server logs." {r config set tls-key-file [cert server.key other]}
            assert_error "ERR CONFIG SET failed (possibly related to argument 'tls-*-file') - Unable to update TLS\
                configuration. Check server logs." {r config set tls-cert-file /nowhere/at/all}
            assert_equal [list tls-key-file [cert server.key]] [r config get tls-key-file]
            assert {[tls_works]}
        }

        test "values of any size in both directions" {} {
            foreach size {0 1 100 16383 16384 16385 32768 100000 1048576 5000000} {
                set value [pattern_bytes $size $size]
                assert_reply {status OK} r set k $value
                assert {[r get k] eq $value} $size
            }
        }

        test "pipelines over TLS" {} {
            for {set i 0} {$i < 5000} {incr i} {
                r -send set k:$i [string repeat $i 20]
                r -send get k:$i
            }
            for {set i 0} {$i < 5000} {incr i} {
                assert_equal OK [r -read]
                assert_equal [string repeat $i 20] [r -read]
            }
        }

        test "large replies in a pipeline, a slow reader" {} {
            set value [pattern_bytes 150000]
            r set k $value
            set c [connect]
            for {set i 0} {$i < 60} {incr i} {
                $c -send get k
            }
            assert_equal PONG [r ping]
            for {set i 0} {$i < 60} {incr i} {
                assert {[$c -read] eq $value} "reply $i"
            }
        }

        test "several clients at once" {} {
            set clients {}
            for {set i 0} {$i < 12} {incr i} {
                lappend clients [connect]
            }
            for {set round 0} {$round < 20} {incr round} {
                foreach c $clients {
                    $c -send incr n
                }
                foreach c $clients {
                    $c -read
                }
            }
            assert_reply {bulk 240} r get n
        }

        test "one byte a record" {} {
            foreach byte [split "*2\r\n\$4\r\nECHO\r\n\$3\r\nabc\r\n" {}] {
                r -raw $byte
                pause 1
            }
            assert_equal "\$3\r\nabc\r\n" [r -bytes 9]
        }

        test "CLIENT KILL and QUIT close with a proper end" {} {
            set c [connect]
            set id [$c client id]
            r client kill id $id
            assert {[$c -closed]}
            set c [connect]
            assert_equal OK [$c quit]
            assert {[$c -closed]}
            assert_match "*PONG*OK*" [tls_protocol -quiet -ign_eof]
        }

        test "an unfinished handshake harms nobody" {} {
            set half {}
            for {set i 0} {$i < 20} {incr i} {
                set c [connect -tls 0 -port [srv tls_port]]
                $c -raw "\x16\x03\x01\x02\x00\x01"
                lappend half $c
            }
            assert_equal PONG [r ping]
            assert {[tls_works]}
            foreach c $half {
                $c -close
            }
            assert_equal PONG [[connect] ping]
        }

        # One has shaken hands and says nothing, another one has said the beginning of its first message.
        test "who stalls in a handshake keeps nobody from his own" {} {
            set hello [open "| timeout 10 openssl s_client -connect 127.0.0.1:[srv tls_port] -CAfile [cert ca.crt] \
                -cert [cert client.crt] -key [cert client.key] 2>/dev/null" r+]
            set c [connect -tls 0 -port [srv tls_port]]
            $c -raw "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
            set others {}
            for {set i 0} {$i < 30} {incr i} {      ;# they stay, so that each worker gets some
                lappend others [connect]
                assert_equal PONG [[lindex $others end] ping]
            }
            foreach other $others {
                $other -close
            }
            $c -close
            close $hello
        }

        test "a client may not renegotiate, and others go on" {} {
            set c [connect]
            set text ""
            set client [open "| timeout 10 openssl s_client -connect 127.0.0.1:[srv tls_port] -tls1_2 -CAfile \
                [cert ca.crt] -cert [cert client.crt] -key [cert client.key] 2>@1" r+]
            fconfigure $client -buffering line
            puts $client R
            while {[gets $client line] >= 0} {
                append text $line \n
                if {[string match "*no renegotiation*" $line]} {
                    break
                }
            }
            catch {close $client}
            assert_match "*RENEGOTIATING*no renegotiation*" $text
            assert_equal PONG [$c ping]
        }

        test "sessions are resumed" {} {
            set file [srv dir]/session
            tls_protocol -tls1_2 -sess_out $file
            if {![file exists $file]} {
                skip "openssl kept no session"
            }
            catch {exec timeout 10 openssl s_client -connect 127.0.0.1:[srv tls_port] -tls1_2 -CAfile [cert ca.crt] \
                -cert [cert client.crt] -key [cert client.key] -sess_in $file << "QUIT\r\n" 2>@1} text
            assert_match "*Reused, TLSv1.2*" $text
            r config set tls-session-caching no
            tls_protocol -tls1_2 -sess_out $file
            catch {exec timeout 10 openssl s_client -connect 127.0.0.1:[srv tls_port] -tls1_2 -CAfile [cert ca.crt] \
                -cert [cert client.crt] -key [cert client.key] -sess_in $file << "QUIT\r\n" 2>@1} text
            assert_match "*New, TLSv1.2*" $text
            r config set tls-session-caching yes
        }
    }

    with_server {.tls 1 .port 0} {
        test "TLS alone, without a plain port" {} {
            assert_equal PONG [r ping]
            assert_equal {port 0} [r config get port]
            assert_equal [srv tls_port] [info_field tcp_port server]
        }
    }

    with_server {.tls 1 tls-protocols TLSv1.2 tls-auth-clients no requirepass secret} {
        test "from the command line, with a password" {} {
            assert_match "*TLSv1.2*" [tls_protocol]
            set c [connect -tlsopts $::no_cert]
            assert_refused "NOAUTH Authentication required." $c ping
            assert_reply {status OK} $c auth secret
        }
    }

    test "a missing certificate ends the start" {noconn} {
        set id [server_launch [list --port 0 --tls-port [free_port] --save "" --tls-cert-file /nowhere/at/all \
            --tls-key-file /nowhere/either --tls-ca-cert-file [cert ca.crt] {*}[thread_args]]]
        assert_equal 1 [process_wait $id]
        assert_match "*Failed to load certificate: /nowhere/at/all*" [process_log $id]
    }
} else {
    test "TLS" {noconn} {
        skip "the Tcl package tls is missing"
    }
}
