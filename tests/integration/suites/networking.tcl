# Listening, accepting, limits and time-outs of connections.

# Fills the output of a client that does not read, until the server has had enough or the limit of rounds is over.
proc flood {client key rounds} {
    for {set i 0} {$i < $rounds} {incr i} {
        if {[catch {$client -send get $key}]} {
            return
        }
    }
}

with_server {maxclients 12} {
    test "maxclients" {} {
        set clients {}
        for {set i 0} {$i < 11} {incr i} {
            set c [connect]
            assert_equal PONG [$c ping]
            lappend clients $c
        }
        if {[srv tls]} {
            assert_error * {[connect] ping}
        } else {
            set late [connect]
            assert_equal "-ERR max number of clients reached" [$late -line]
            assert {[$late -closed]}
        }
        wait_for {[info_field rejected_connections stats] == 1}
        [lindex $clients 0] -close
        wait_for {[info_field connected_clients clients] == 11}
        set again [connect]
        assert_equal PONG [$again ping]
        foreach c [concat [lrange $clients 1 end] $again] {
            $c -close
        }
        wait_for {[info_field connected_clients clients] == 1}
    }

    test "maxclients can be raised while running" {} {
        r config set maxclients 20
        for {set i 0} {$i < 19} {incr i} {
            assert_equal PONG [[connect] ping]
        }
        assert_equal 20 [info_field connected_clients clients]
        assert_equal 20 [info_field maxclients clients]
        r config set maxclients 12
    }
}

# A connection to another address of this machine than loopback: to the server it comes from outside.
proc connect_from_outside {} {
    set address {}
    catch {set address [lindex [exec hostname -I] 0]}
    if {$address eq {} || [string match 127.* $address]} {
        skip "this machine has only loopback addresses"
    }
    if {[catch {connect -host $address -port [srv port]} c]} {
        skip "cannot connect to $address"
    }
    return $c
}

with_server {maxclients 6 maxclients-reserved 2 protected-mode no bind "*"} {
    test "the last places are for connections from this machine" {keydb plain} {
        set clients {}
        for {set i 0} {$i < 3} {incr i} {
            set c [connect_from_outside]
            assert_equal PONG [$c ping]
            lappend clients $c
        }
        set late [connect_from_outside]
        assert_equal "-ERR max number of clients reached" [$late -line]
        assert {[$late -closed]}
        wait_for {[info_field rejected_connections stats] == 1}
        for {set i 0} {$i < 2} {incr i} {
            set c [connect]
            assert_equal PONG [$c ping]
            lappend clients $c
        }
        assert_equal "-ERR max number of clients reached" [[connect] -line]
        r config set maxclients-reserved 0
        [lindex $clients 0] -close
        wait_for {[info_field connected_clients clients] == 5}
        assert_equal PONG [[connect_from_outside] ping]
        assert_error "*must be between 0 and 100*" {r config set maxclients-reserved 101}
        r config set maxclients-reserved 2
    }
}

with_server {overload-protect-percent 1 server-threads 2} {
    test "overload closes ordinary clients, not those who asked to stay or wait" {keydb slow} {
        r client no-evict on
        set clients {}
        for {set i 0} {$i < 60} {incr i} {
            set c [connect]
            $c ping
            lappend clients $c
        }
        set waiting [connect]
        $waiting monitor
        r set k [string repeat x 4000000]
        wait_for {[r get k; r get k; r get k; r get k; info_field connected_clients clients] < 55} 60000
        assert {![$waiting -closed 0]}
        assert_equal PONG [r ping]
        r config set overload-protect-percent 0
        assert_equal PONG [[connect] ping]
    }
}

with_server {timeout 1} {
    test "timeout closes who is idle, not who is busy" {slow} {
        set idle [connect]
        $idle ping
        set begin [clock milliseconds]
        while {![$idle -closed 100]} {
            r ping
            assert {[clock milliseconds] - $begin < 8000}
        }
        assert_range [expr {[clock milliseconds] - $begin}] 900 8000
        assert_equal PONG [r ping]
    }

    test "timeout 0 lets everybody stay" {slow} {
        r config set timeout 0
        set idle [connect]
        $idle ping
        set begin [clock milliseconds]
        wait_for {[clock milliseconds] - $begin > 2200}
        assert_equal PONG [$idle ping]
    }
}

with_server {tcp-keepalive 123} {
    test "tcp-keepalive is set on accepted sockets" {} {
        assert_equal {tcp-keepalive 123} [r config get tcp-keepalive]
        if {[auto_execok ss] eq {}} {
            skip "there is no ss to look with"
        }
        set c [connect]
        $c ping
        set filter "sport = :[expr {[srv tls] ? [srv tls_port] : [srv port]}]"
        wait_for {[string match "*timer:(keepalive,*" [exec ss -tnHo $filter]]}
        assert_match {*timer:(keepalive,[12]min*} [exec ss -tnHo $filter]
    }
}

with_server {bind "127.0.0.1 -::1 -192.0.2.77"} {
    test "bind: several addresses, and one that fails is forgiven after a minus sign" {plain} {
        assert_equal {bind {127.0.0.1 -::1 -192.0.2.77}} [r config get bind]
        assert_equal PONG [[connect] ping]
        if {![catch {socket -server {} -myaddr ::1 0} probe]} {
            close $probe
            assert_equal PONG [[connect -host ::1] ping]
        }
    }

    test "CONFIG SET bind and port move the listening sockets, connections stay" {plain} {
        set stays [connect]
        $stays ping
        set port [free_port]
        set old [srv port]
        assert_reply {status OK} r config set port $port
        assert_equal PONG [[connect -port $port] ping]
        assert_equal PONG [$stays ping]
        assert {[catch {connect -port $old}]}
        assert_equal [list port $port] [r config get port]
        assert_reply {status OK} r config set port $old bind 127.0.0.1
        assert_equal PONG [[connect] ping]
        assert {[catch {connect -port $port}]}
        assert_equal PONG [$stays ping]
    }

    test "CONFIG SET of a taken port changes nothing" {plain} {
        set squatter [socket -server {} -myaddr 127.0.0.1 0]
        set taken [lindex [chan configure $squatter -sockname] 2]
        assert_refused "ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port.\
            Check\
            server logs." r config set port $taken
        close $squatter
        assert_equal [list port [srv port]] [r config get port]
        assert_equal PONG [[connect] ping]
    }
}

test "bind to an address that does not exist ends the start" {noconn} {
    set id [server_launch [list --port [free_port] --bind 192.0.2.77 --save ""]]
    assert_equal 1 [process_wait $id]
    assert_match "*192.0.2.77*" [process_log $id]
}

test "a port in use ends the start with a message" {noconn} {
    set squatter [socket -server {} -myaddr 127.0.0.1 0]
    set taken [lindex [chan configure $squatter -sockname] 2]
    set id [server_launch [list --port $taken --bind 127.0.0.1 --save "" {*}[thread_args]]]
    assert_equal 1 [process_wait $id]
    close $squatter
    assert_match "*Could not create server TCP listening socket 127.0.0.1:$taken: bind: Address already in use*" \
        [process_log $id]
}

with_server {} {
    test "a second server on the same port does not start silently" {plain} {
        set id [server_launch [list --port [srv port] --save "" {*}[thread_args]]]
        assert_equal 1 [process_wait $id]
        assert_match "*Address already in use*" [process_log $id]
        for {set i 0} {$i < 20} {incr i} {
            assert_equal PONG [[connect] ping]
        }
    }
}

with_server {unixsocket %DIR%/sock unixsocketperm 700} {
    test "unix socket" {} {
        set path [srv dir]/sock
        assert_equal socket [file type $path]
        assert_match *700 [file attributes $path -permissions]
        set c [connect -unix $path]
        assert_reply {status OK} $c set k [pattern_bytes 100000]
        assert {[$c get k] eq [pattern_bytes 100000]}
        assert {[r get k] eq [pattern_bytes 100000]}
        set line [lindex [client_lines [$c client info]] 0]
        assert_equal $path:0 [dict get $line addr]
        assert_equal $path:0 [dict get $line laddr]
        assert_match "*U*" [dict get $line flags]
        assert_equal [list unixsocket $path] [r config get unixsocket]
    }

    test "several clients on the unix socket, killed by its address" {} {
        set path [srv dir]/sock
        set clients {}
        for {set i 0} {$i < 6} {incr i} {
            set c [connect -unix $path]
            $c ping
            lappend clients $c
        }
        foreach c $clients {
            $c -send incr n
        }
        assert_equal {1 2 3 4 5 6} [lsort [lmap c $clients {$c -read}]]
        assert_reply {int 6} r client kill addr $path:0
        foreach c $clients {
            assert {[$c -closed]}
        }
    }
}

test "the unix socket goes with the server, an old one is no obstacle" {noconn} {
    set dir [fresh_dir]
    spit $dir/sock old
    set id [server_launch [list --port 0 --unixsocket $dir/sock --save "" {*}[thread_args]]]
    wait_for {[file exists $dir/sock] && [file type $dir/sock] eq "socket"}
    wait_for {[string match "*ready to accept connections*" [string tolower [process_log $id]]]}
    assert_equal PONG [[connect -unix $dir/sock] ping]
    assert_equal 0 [process_stop $id]
    assert {![file exists $dir/sock]}
}

with_server {protected-mode yes} {
    test "protected mode lets loopback in" {} {
        assert_equal PONG [[connect] ping]
        assert_equal {protected-mode yes} [r config get protected-mode]
    }

    test "protected mode refuses others" {plain} {
        set c [connect_from_outside]
        assert_match "-DENIED $::product is running in protected mode because protected mode is enabled and no\
            password is\
            set for the default user.*" [$c -line]
        assert {[$c -closed]}
        r config set requirepass x
        set c [connect_from_outside]
        assert_refused "NOAUTH Authentication required." $c ping
        [connect] auth x
        r config set requirepass "" protected-mode no
        assert_equal PONG [[connect_from_outside] ping]
        r config set protected-mode yes
    }
}

with_server {client-output-buffer-limit "normal 3000000 0 0"} {
    test "a hard output limit ends a slow reader and nobody else" {} {
        r set k [string repeat x 100000]
        set slow [connect]
        $slow client setname slow
        flood $slow k 400
        wait_for {![string match *name=slow* [r client list]]}
        assert_equal 100000 [string length [r get k]]
        wait_for {[info_field used_memory memory] < 20000000}
    }

    test "a reader that keeps up may get any amount" {} {
        r set k [string repeat x 100000]
        for {set i 0} {$i < 200} {incr i} {
            assert_equal 100000 [string length [r get k]]
        }
    }

    test "one reply larger than the limit ends the connection" {} {
        r set big [string repeat x 8000000]
        set c [connect]
        $c client setname big
        catch {$c get big}
        wait_for {![string match *name=big* [r client list]]}
    }
}

with_server {client-output-buffer-limit "normal 0 1000000 1"} {
    test "a soft output limit counts seconds" {slow} {
        r set k [string repeat x 100000]
        set slow [connect]
        $slow client setname slow
        flood $slow k 300
        assert_match *name=slow* [r client list]
        wait_for {![string match *name=slow* [r client list]]}
    }
}

with_server {} {
    test "a slow reader gets everything, when there is no limit" {} {
        set value [pattern_bytes 200000]
        r set k $value
        set slow [connect]
        $slow client setname slow
        flood $slow k 300
        wait_for {[client_field slow omem] > 1000000}
        r set k changed
        for {set i 0} {$i < 300} {incr i} {
            if {[$slow -read] ni [list $value changed]} {
                fail "reply $i is neither the old nor the new value"
            }
        }
    }

    test "client-query-buffer-limit" {} {
        r config set client-query-buffer-limit 1mb
        set c [connect]
        $c client setname greedy
        catch {
            $c -raw "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n\$9000000\r\n"
            for {set i 0} {$i < 90} {incr i} {
                $c -raw [string repeat x 100000]
            }
        }
        wait_for {![string match *name=greedy* [r client list]]}
        assert_reply {int 0} r exists k
        assert_reply {status OK} r set k [string repeat x 500000]
        r config set client-query-buffer-limit 1gb
    }

    test "connections come and go by the hundred" {} {
        set count [expr {[srv tls] ? 20 : 100}]
        for {set round 0} {$round < 5} {incr round} {
            set clients {}
            for {set i 0} {$i < $count} {incr i} {
                set c [connect]
                $c -send incr n
                lappend clients $c
            }
            foreach c $clients {
                if {$round % 2} {
                    $c -read
                }
                $c -close
            }
        }
        wait_for {[info_field connected_clients clients] == 1}
        wait_for {[r get n] == 5 * $count}
    }

    test "half-closed: what was asked is still answered" {plain} {
        set c [connect]
        set chan $resp::chan([string map {::resp::c {}} $c])
        $c -send set k v
        $c -send get k
        chan close $chan write
        assert_equal {OK v} [list [$c -read] [$c -read]]
        assert {[$c -closed]}
    }
}

# The replies wait for the disk, or for a thread, when the end is read.
foreach loop {epoll io_uring} {
    with_server [list event-loop $loop appendonly yes appendfsync always] {
        test "half-closed, $loop: what takes a while is answered, too" {keydb plain} {
            foreach {words replies} {{set k v} OK save OK {bgsave schedule} {Background saving *}} {
                for {set i 0} {$i < 5} {incr i} {
                    wait_for {[info_field rdb_bgsave_in_progress persistence] == 0}
                    set c [connect]
                    set chan $resp::chan([string map {::resp::c {}} $c])
                    $c -send {*}$words
                    $c -send echo behind
                    chan close $chan write
                    assert_match [list $replies behind] [list [$c -read] [$c -read]]
                    assert {[$c -closed]}
                }
            }
        }

        test "half-closed, $loop: a client that waits for a key is gone" {plain} {
            set c [connect]
            set chan $resp::chan([string map {::resp::c {}} $c])
            $c -send blpop list 0
            wait_for {[info_field blocked_clients clients] == 1}
            chan close $chan write
            wait_for {[info_field blocked_clients clients] == 0}
            assert {[$c -closed]}
            r rpush list element
            assert_equal 1 [r llen list]
        }
    }
}
