# Options whose effect no other suite looks at: background turns, lazy freeing, expiry's share of time, the log's form,
# how signals end the server, the availability zone.

proc options_server args {
    set port [free_port]
    set id [server_launch [concat $args [list --port $port --save ""] [thread_args]]]
    wait_until {![process_alive $id] || ![catch {[connect -port $port -tls 0] -typed ping}]} 15000
    if {![process_alive $id]} {
        fail "the server ended:\n[process_log $id]"
    }
    return [list $id [connect -port $port -tls 0]]
}

proc turns_now {} {
    return [list [info_field configured_hz server] [info_field hz server]]
}

with_server {enable-debug-command yes} {
    test "hz follows the number of clients if dynamic-hz says so" {} {
        set others {}
        with_config {hz 1} {
            assert_equal {1 1} [turns_now]
            for {set i 0} {$i < 205} {incr i} {
                lappend others [connect]
            }
            [lindex $others end] ping
            wait_for {[turns_now] eq {1 2}}
            r config set hz 3
            wait_for {[turns_now] eq {3 3}}
            r config set hz 1 dynamic-hz no
            wait_for {[turns_now] eq {1 1}}
            r config set dynamic-hz yes
            wait_for {[turns_now] eq {1 2}}
            foreach other [lrange $others 0 99] {
                $other -close
            }
            wait_for {[turns_now] eq {1 1}}
        }
    }

    test "more clients do not push hz above 500" {} {
        with_config {hz 500} {
            assert_equal {500 500} [turns_now]
        }
    }

    # A large value goes; did the background thread get it?
    proc frees_later script {
        set before [info_field lazyfreed_objects memory]
        uplevel $script
        wait_for {[info_field lazyfree_pending_objects memory] == 0}
        return [expr {[info_field lazyfreed_objects memory] - $before}]
    }

    proc set_large name {
        r set $name [string repeat x 300000]
    }

    test "who frees large values is for the lazyfree options to say" {keydb} {
        set options {lazyfree-lazy-expire no lazyfree-lazy-user-del no lazyfree-lazy-server-del no
            lazyfree-lazy-user-flush no lazyfree-lazy-eviction no}
        set cases {
            lazyfree-lazy-user-del   {r del big}
            lazyfree-lazy-user-del   {r getdel big}
            lazyfree-lazy-server-del {r set big x}
            lazyfree-lazy-server-del {r setrange small 0 x; r rename small big}
            lazyfree-lazy-expire     {r pexpire big 1; wait_for {[r dbsize] == 0}}
            lazyfree-lazy-expire     {r expire big -1}
            lazyfree-lazy-expire     {r debug set-active-expire 0; r pexpire big 1; wait_for {[r get big] eq {}};
                                      r debug set-active-expire 1}
            lazyfree-lazy-user-flush {r flushall}
            lazyfree-lazy-eviction   {r config set maxmemory-policy allkeys-random maxmemory 1;
                                      wait_for {[r dbsize] == 0}; r config set maxmemory 0}
        }
        with_config $options {
            foreach {option script} $cases {
                r flushall
                set_large big
                assert_equal 0 [frees_later $script] "$script without $option"
                r flushall sync
                # All options but this one: still no.
                foreach {other value} $options {
                    r config set $other [expr {$other eq $option ? "no" : "yes"}]
                }
                set_large big
                assert_equal 0 [frees_later $script] "$script, all but $option"
                r flushall sync
                r config set {*}$options
                r config set $option yes
                set_large big
                assert_equal 1 [frees_later $script] "$script with $option"
                r config set {*}$options
            }
        }
    }

    test "UNLINK frees large values in the background, whatever the options say" {keydb} {
        set options {lazyfree-lazy-user-del no lazyfree-lazy-server-del no}
        with_config $options {
            set_large big
            assert_equal 1 [frees_later {r unlink big}]
        }
    }

    test "as delivered all large values are freed in the background, and their memory comes back" {keydb} {
        memory_needs_jemalloc
        r flushall sync
        set before [info_field used_memory memory]
        foreach script {
            {r del big}  {r set big x}  {r rename small big}  {r zunionstore big 1 small}  {r pexpire big 0}
            {r pexpire big 1; wait_for {[r dbsize] == 1}}  {r flushall}
        } {
            r del small big
            r zadd small 1 a
            r eval {for i = 1, 20000 do redis.call('zadd', KEYS[1], i, 'member:' .. i) end} 1 big
            assert {[info_field used_memory memory] > $before + 1000000}
            set count [expr {$script eq {r flushall} ? 2 : 1}]
            assert_equal $count [frees_later $script] $script
            assert_range [info_field used_memory memory] 0 [expr {$before + 500000}]
        }
    }

    test "a large value of a transaction and of a group of commands is freed once" {keydb} {
        foreach round {1 2 3} {
            r multi
            foreach name {a b c} {
                r set $name [string repeat $name 300000]
                r set $name [string repeat x 300000]
                r del $name
            }
            r exec
            assert_equal 0 [r dbsize]
        }
        foreach name {a b c} {
            r -send set $name [string repeat $name 300000]
        }
        r -send del a b c
        assert_equal {OK OK OK 3} [list [r -read] [r -read] [r -read] [r -read]]
    }

    test "with lazyfree-lazy-expire the stream of changes has UNLINK for keys that expire" {keydb} {
        foreach {lazy command} {no DEL yes UNLINK} {
            with_config [list lazyfree-lazy-expire $lazy] {
                r debug journal start
                r set key v px 1
                wait_for {[r dbsize] == 0}
                set stream [r debug journal read]
                r debug journal stop
                assert_equal 1 [regexp -all $command $stream]
            }
        }
    }

    test "many keys that are due at once are deleted in slices" {keydb} {
        r config resetstat
        assert_equal 0 [info_field expired_time_cap_reached_count stats]
        r debug set-active-expire 0
        for {set i 0} {$i < 100} {incr i} {
            for {set k 0} {$k < 2000} {incr k} {
                r -send set key:$i:$k v px 1
            }
            for {set k 0} {$k < 2000} {incr k} {
                r -read
            }
        }
        r debug set-active-expire 1
        wait_for {[r dbsize] == 0}
        assert {[info_field expired_time_cap_reached_count stats] > 0}
        assert_equal 200000 [info_field expired_keys stats]
        r config resetstat
        assert_equal 0 [info_field expired_time_cap_reached_count stats]
    }

    test "availability-zone is shown by INFO" {keydb} {
        assert_equal {} [info_field availability_zone server]
        r config set availability-zone "zone a"
        assert_equal "zone a" [info_field availability_zone server]
        assert_match "*ERR CONFIG SET failed*one line*" [r -typed config set availability-zone "a\r\nb:1"]
        assert_match "*no longer than 256 bytes*" [r -typed config set availability-zone [string repeat x 257]]
        assert_equal "zone a" [info_field availability_zone server]
        assert_equal OK [r config set availability-zone [string repeat x 256]]
        assert_equal [string repeat x 256] [info_field availability_zone server]
        r config set availability-zone ""
        assert_equal {} [info_field availability_zone server]
    }

    test "bind-source-addr takes addresses only" {keydb} {
        foreach address {127.0.0.1 ::1 fe80::1 ""} {
            assert_equal OK [r config set bind-source-addr $address]
            assert_equal $address [lindex [r config get bind-source-addr] 1]
        }
        foreach address {nonsense 127.0.0 127.0.0.1.1 1.2.3.4:5 localhost fffff::1} {
            assert_match "*argument must be an IPv4 or IPv6 address*" [r -typed config set bind-source-addr $address]
        }
        assert_match "*IPv4 or IPv6 address*" [r -typed config set bind-source-addr [string repeat 1 500]]
    }

    test "combinations of shutdown words" {} {
        foreach name {shutdown-on-sigterm shutdown-on-sigint} {
            with_config [list $name default] {
                foreach {words shown} {default default nosave nosave "force now" "now force" "SAVE FORCE" "save force"
                    "nosave default" nosave} {
                    assert_equal OK [r config set $name $words]
                    assert_equal $shown [lindex [r config get $name] 1]
                }
                assert_refused "ERR CONFIG SET failed (possibly related to argument '$name') - shutdown options SAVE\
                    and NOSAVE can't be used simultaneously" r config set $name "save nosave"
                assert_refused "ERR CONFIG SET failed (possibly related to argument '$name') - argument(s) must be one\
                    of the following: default, save, nosave, now, force" r config set $name "save never"
                assert_equal nosave [lindex [r config get $name] 1]
            }
        }
    }
}

test "the form of the log can be chosen, also while the server runs" {noconn keydb} {
    lassign [options_server --enable-debug-command yes --log-format logfmt --log-timestamp-format iso8601] id c
    assert {![regexp -line {^\d+:\d+:M } [process_log $id]]}
    assert {[regexp -line {^pid=\d+ tid=0 role=primary timestamp="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d"\
        level=notice message="Ready to accept connections"$} [process_log $id]]}
    $c config set log-timestamp-format milliseconds
    $c debug log "say \"so\""
    assert {[regexp -line {^pid=\d+ tid=\d+ role=primary timestamp="\d{13}" level=warning message=".*say \\"so\\""$} \
        [process_log $id]]}
    $c config set log-format json
    $c debug log "say \"so\" \xe9"
    set form {^{"pid":\d+,"tid":\d+,"role":"primary","timestamp":"\d{13}","level":"warning","message":}
    assert {[regexp -line "$form[string cat {".*say \\"so\\" \?"}$}]" [process_log $id]]}
    $c config set log-format legacy log-timestamp-format legacy
    $c debug log "plain again"
    assert {[regexp -line {^\d+:\d+:M \d\d [A-Z][a-z][a-z] \d{4} \d\d:\d\d:\d\d\.\d{3} # .*plain again$} \
        [process_log $id]]}
    assert_equal 0 [process_stop $id]
}

test "signals end the server as the options say" {noconn keydb} {
    foreach {name signal text} {shutdown-on-sigterm TERM SIGTERM shutdown-on-sigint INT SIGINT} {
        foreach words {default nosave now "nosave now force" "save force"} {
            lassign [options_server --$name {*}$words] id c
            process_signal $id $signal
            assert_equal 0 [process_wait $id] "$name $words"
            assert_match "*Received $text*bye bye*" [process_log $id]
        }
    }
}

test "a server that is to save and cannot does not end" {noconn keydb} {
    lassign [options_server --shutdown-on-sigterm save --shutdown-on-sigint save now --dbfilename taken] id c
    $c set key value
    file mkdir [lindex [$c config get dir] 1]/taken/already ;# no file can take its place
    # Several times: a refused signal is forgotten.
    foreach {signal count} {TERM 1 INT 2 INT 3} {
        process_signal $id $signal
        wait_for {[regexp -all {can't exit} [process_log $id]] == $count}
        assert_equal value [$c get key]
    }
    assert_refused "ERR Errors trying to SHUTDOWN. Check logs." $c shutdown save
    assert_refused "ERR No shutdown in progress." $c shutdown abort
    assert_equal value [$c get key]
    $c config set shutdown-on-sigterm "save force"
    process_signal $id TERM
    assert_equal 0 [process_wait $id]
    lassign [options_server --dbfilename taken] id c
    file mkdir [lindex [$c config get dir] 1]/taken/already
    $c -send shutdown save force
    assert {[$c -closed]}
    assert_equal 0 [process_wait $id]
}
