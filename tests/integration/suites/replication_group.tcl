# Groups of servers and the proxy between them, as the tests of replication use them.

# What every pair of servers must be able to do, whoever they are.
proc pair_works {master replica} {
    on $master set a 1
    on $master rpush l x y z
    set via [proxy_open $master]
    follow $replica $master $via
    wait_same $master $replica
    assert_equal {1 0} [lrange [sync_counts $master] 0 1]
    on $master set b 2
    wait_same $master $replica
    assert_equal 2 [on $replica get b]

    proxy $via down
    wait_for {![link_is_up $replica]}
    on $master set c 3
    proxy $via up
    wait_same $master $replica
    assert_equal {1 1} [lrange [sync_counts $master] 0 1]

    member_kill $master
    wait_for {![link_is_up $replica]}
    member_start $master
    wait_same $master $replica
    assert_equal {} [on $replica keys *]
    follow $replica no
    on $replica set mine 1
}

with_server {} {
    test "a redis-server follows another one through a proxy" {noconn} {
        with_group {m oracle {} r oracle {}} {
            pair_works m r
        }
    }

    foreach {diskless load} {no disabled yes swapdb} {
        test_each {diskless load} "a chain over TLS: full sync, diskless $diskless, partial sync, WAIT" {noconn} {
            if {!$::have_tls} {
                skip "needs the Tcl package tls"
            }
            set options [list .tls 1 repl-diskless-sync $diskless repl-diskless-load $load]
            with_group [list a ours $options b ours $options c ours $options] {
                on a debug populate 5000 key 100
                set via [proxy_open a]
                follow b a $via
                follow c b
                wait_same a b c
                on a set small 1
                assert_equal 1 [on a wait 1 5000]
                proxy $via down
                wait_for {![link_is_up b]}
                on a set large [string repeat x 300000]
                proxy $via up
                wait_same a b c
                assert_equal {1 1} [lrange [sync_counts a] 0 1]
                assert_equal 300000 [on c strlen large]
            }
        }
    }

    test "the lines of the log say whether the server is a replica" {noconn} {
        with_group {m ours {} r ours {}} {
            assert {![regexp -line {^\d+:\d+:S } [process_log [member r process]]]}
            follow r m
            wait_same m r
            assert {[regexp -line {^\d+:\d+:S .*sync} [process_log [member r process]]]}
            assert {![regexp -line {^\d+:\d+:S } [process_log [member m process]]]}
        }
    }

    test "DEBUG RELOAD on a master tells its replicas of the keys past their deadlines" {noconn} {
        with_group {m ours {} r ours {}} {
            on m set long 1
            on m hset h f 1 g 2
            follow r m
            wait_same m r
            on m debug set-active-expire 0
            on m set short 1 px 1
            on m hpexpire h 1 fields 1 f
            wait_for {[on m debug sleep 0.002] eq "OK"}
            on m debug reload
            on m debug set-active-expire 1
            wait_for {[on m dbsize] == 2 && [on m hlen h] == 1}
            wait_same m r
            assert_equal {2 1 0} [list [on r dbsize] [on r hlen h] [on r exists short]]
            assert_equal {1 0} [lrange [sync_counts m] 0 1]
        }
    }

    test "a full sync has the keys past their deadlines, which the stream removes" {noconn} {
        with_group {m ours {} r ours {}} {
            on m debug set-active-expire 0
            on m set short 1 px 1
            on m set long 1
            wait_for {[on m debug sleep 0.002] eq "OK"}
            follow r m
            wait_for {[link_is_up r]}
            assert_equal {2 2} [list [on m dbsize] [on r dbsize]]
            assert_equal {} [on r get short]
            assert_equal {} [on m get short]
            wait_for {[on r dbsize] == 1}
        }
    }

    test "MONITOR on a replica shows large batches of the stream in their order" {noconn} {
        with_group {m ours {} r ours {server-threads 4 min-clients-per-thread 1}} {
            follow r m
            wait_same m r
            set monitor [member_connect r]
            $monitor monitor
            set bytes {}
            for {set i 0} {$i < 20000} {incr i} {
                append bytes "*3\r\n\$3\r\nSET\r\n\$8\r\nkey:[format %04d [expr {$i % 1000}]]\r\n"
                append bytes "\$5\r\n[format %05d $i]\r\n"
            }
            set writer [member_connect m]
            $writer -raw $bytes
            for {set i 0} {$i < 20000} {} {
                if {[regexp {"SET" "key:\d+" "(\d+)"} [$monitor -line] -> number]} {
                    assert_equal [format %05d $i] $number
                    incr i
                }
            }
            $monitor -close
            wait_same m r
            $writer -close
        }
    }

    test "at a given byte the proxy cuts a connection" {} {
        set port [expr {[srv tls] ? [srv tls_port] : [srv port]}]
        with_group {} {
            set via [proxy_open $port]
            set c [connect -port [proxy_port $via]]
            assert_equal PONG [$c ping]
            proxy $via cut
            assert_equal 1 [$c -closed]

            if {![srv tls]} {
                proxy $via at 10 cut
                set c [connect -port [proxy_port $via] -tls 0]
                $c -send ping
                $c -send ping
                assert_equal "+PONG\r\n+PO" [$c -bytes 10]
                assert_equal 1 [$c -closed]
            }
        }
    }

    test "the proxy delays, stalls and slows" {} {
        set port [expr {[srv tls] ? [srv tls_port] : [srv port]}]
        with_group {} {
            set via [proxy_open $port]
            set c [connect -port [proxy_port $via]]
            proxy $via delay 30
            set began [clock milliseconds]
            $c ping
            assert {[clock milliseconds] - $began >= 60}
            proxy $via delay 0

            proxy $via stall down
            $c -send set key value
            wait_for {[r get key] eq "value"}
            proxy $via resume
            assert_equal OK [$c -read]

            r set large [string repeat x 300000]
            proxy $via throttle 1000000
            set began [clock milliseconds]
            assert_equal 300000 [string length [$c get large]]
            assert {[clock milliseconds] - $began >= 200}
        }
    }
}
