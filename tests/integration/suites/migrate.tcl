# MIGRATE: between two servers of ours, to and from redis-server, to targets that do not answer; keys that others use
# meanwhile.

proc migrate {key args} {
    return [list migrate 127.0.0.1 $::target_port $key 0 5000 {*}$args]
}

proc there args {
    return [[connect -port $::target_port] {*}$args]
}

proc fill {} {
    r flushall
    r set string value
    r set number 17
    r set expires soon px 100000
    r rpush list a b [string repeat c 100]
    r hset hash f v g w
    r sadd set 1 2 3
    r sadd words one two three
    r zadd zset 1.5 a -inf b
    r xadd stream 5-1 f v
    r xgroup create stream g 0
    r xreadgroup group g consumer count 1 streams stream >
    r setbit bits 100000 1
}

# Accepts connections, and does with them what the script says; no script: nothing, until all are closed.
proc silent_target {} {
    set ::accepted {}
    return [target {lappend ::accepted $socket}]
}

proc close_target socket {
    close $socket
    foreach accepted $::accepted {
        close $accepted
    }
}

proc target script {
    set socket [socket -server [list apply [list {socket host port} $script]] -myaddr 127.0.0.1 0]
    return [list $socket [lindex [chan configure $socket -sockname] 2]]
}


with_server {.tls 0 enable-debug-command yes} {
    test "a target" {} {
        set ::target_port [srv port]
        r ping
    }

    with_server {.tls 0 enable-debug-command yes} {
        test "keys of all types move, with their deadlines" {} {
            fill
            there flushall
            set digest [r debug digest]
            set keys [lsort [r keys *]]
            assert_equal OK [r {*}[migrate "" keys {*}$keys nothing]]
            assert_equal 0 [r dbsize]
            assert_equal $digest [there debug digest]
            assert_range [there pttl expires] 1 100000
            assert_equal 1 [lindex [there xpending stream g] 0]
            assert_equal 1 [info_field migrate_cached_sockets stats]
        }

        test "COPY leaves keys, REPLACE replaces, one that is there is an error" {} {
            r flushall
            there flushall
            r mset a 1 b 2
            assert_equal OK [r {*}[migrate a copy]]
            assert_equal 1 [r get a]
            r set a 3
            assert_refused "ERR Target instance replied with error: BUSYKEY Target key name already exists." \
                r {*}[migrate "" keys a b]
            assert_equal a [r keys *]
            assert_equal {1 2} [there mget a b]
            assert_equal OK [r {*}[migrate a replace]]
            assert_equal 3 [there get a]
            assert_equal 0 [r dbsize]
        }

        test "another database, and none" {} {
            r set k v
            assert_equal OK [r migrate localhost $::target_port k 5 1000]
            set target [connect -port $::target_port]
            $target select 5
            assert_equal v [$target get k]
            r set k v
            assert_refused "ERR Target instance replied with error: ERR DB index is out of range" \
                r migrate 127.0.0.1 $::target_port k 99 1000
            assert_equal {v 0} [list [r get k] [there exists k]] "nothing gets into another database"
        }

        test "words" {} {
            set integer "ERR value is not an integer or out of range"
            assert_refused $integer r migrate h 1 k x 1
            assert_refused $integer r migrate h 1 k 1 x
            assert_refused "ERR syntax error" r migrate h 1 k 0 1 foo
            assert_refused "ERR syntax error" r migrate h 1 k 0 1 auth
            assert_refused "ERR syntax error" r migrate h 1 k 0 1 auth2 u
            assert_refused "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string" \
                r migrate h 1 k 0 1 keys a
            assert_equal NOKEY [r migrate h 1 nothing 0 1]
            assert_equal NOKEY [r migrate h 1 "" 0 1 keys]
            assert_equal {a b} [r command getkeys migrate h 1 "" 0 1 auth keys keys a b]
            assert_equal k [r command getkeys migrate h 1 k 0 1 auth keys]
            assert_refused "ERR Invalid arguments specified for command" r command getkeys migrate h 1 k 0 1 keys a
        }

        test "AUTH, AUTH2" {} {
            r set k v
            set target [connect -port $::target_port]
            $target config set requirepass secret
            assert_refused "ERR Target instance replied with error: NOAUTH Authentication required." \
                r migrate 127.0.0.2 $::target_port k 0 1000 ;# not one that is kept
            assert_error "ERR Target instance replied with error: WRONGPASS*" {r {*}[migrate k auth wrong]}
            assert_equal v [r get k]
            assert_equal OK [r {*}[migrate k replace copy auth secret]]
            assert_equal OK [r {*}[migrate k replace auth2 default secret]]
            $target auth secret
            $target config set requirepass ""
            assert_equal v [there getdel k]
            r config set slowlog-log-slower-than 0
            r migrate h 1 nothing 0 1 auth secret
            r config set slowlog-log-slower-than 10000
            assert_match "*auth (redacted)*" [r slowlog get 5]
        }

        test "targets that are not there, do not answer, or go" {} {
            r set k v
            assert_refused "IOERR error or timeout connecting to the client" r migrate no.such.host.invalid 1 k 0 100
            assert_refused "IOERR error or timeout writing to target instance" r migrate 127.0.0.1 1 k 0 1000
            lassign [silent_target] socket port
            assert_refused "IOERR error or timeout reading to target instance" r migrate 127.0.0.1 $port k 0 50
            close_target $socket
            lassign [target {close $socket}] socket port
            r -send migrate 127.0.0.1 $port k 0 5000
            assert_error "IOERR error or timeout *ing to target instance" {r -read}
            close $socket
            assert_equal v [r get k]
        }

        test "commands in the same packet are answered after it" {} {
            r mset k v other 1
            lassign [silent_target] socket port
            set c [connect]
            set packet {}
            foreach command [list [list migrate 127.0.0.1 $port k 0 300] {incr other} {config set slowlog-max-len 10} \
                                  {multi} {incr other} {exec}] {
                append packet "*[llength $command]\r\n"
                foreach word $command {
                    append packet "$[string length $word]\r\n$word\r\n"
                }
            }
            $c -raw $packet
            assert_error "IOERR error or timeout *ing to target instance" {$c -read}
            assert_equal {2 OK OK QUEUED 3} [list [$c -read] [$c -read] [$c -read] [$c -read] {*}[$c -read]]
            close_target $socket
        }

        test "while the target does not answer reads go on, writes to the key wait, others do not" {} {
            r mset k v other v
            lassign [silent_target] socket port
            set mover [connect]
            set writer [connect]
            $mover -send migrate 127.0.0.1 $port k 0 60000
            wait_for {[info_field blocked_clients clients] == 1}
            assert_equal v [r get k]
            assert_equal OK [r set other w]
            set writers {}
            foreach command {{append k w} {rename other k} {eval "return redis.call('append', 'k', 'w')" 0} \
                    {flushall}} {
                lappend writers [connect]
                [lindex $writers end] -send {*}$command
                wait_for {[info_field blocked_clients clients] == [llength $writers] + 1}
            }
            assert_equal v [r get k]
            close_target $socket
            assert_error "IOERR error or timeout reading to target instance" {$mover -read}
            foreach writer $writers {
                catch {$writer -read} ;# RENAME may come behind FLUSHALL
            }
            assert_equal 0 [info_field blocked_clients clients]
        }

        test "increments and moves at once: each is counted once" {} {
            r set counter 0
            there del counter
            set writers [lmap n {1 2 3 4} {connect}]
            set mover [connect]
            set target [connect -port $::target_port]
            set moved 0
            for {set round 0} {$round < 100} {incr round} {
                foreach writer $writers {
                    for {set i 0} {$i < 10} {incr i} {
                        $writer -send incr counter
                    }
                }
                assert_match {[ON][KO]*} [$mover {*}[migrate counter]]
                set there [$target getdel counter]
                incr moved [expr {$there eq {} ? 0 : $there}]
            }
            foreach writer $writers {
                for {set i 0} {$i < 1000} {incr i} {
                    $writer -read
                }
            }
            set here [r get counter]
            assert_equal 4000 [expr {$moved + ($here eq {} ? 0 : $here)}]
            assert {$moved > 0}
        }

        test "within EXEC and scripts it is done on the spot" {} {
            r mset a 1 b 2
            there flushall
            r multi
            r set a 3
            r {*}[migrate a]
            r exists a
            assert_equal {OK OK 0} [r exec]
            assert_equal 3 [there get a]
            assert_equal OK [r eval {return redis.call(unpack(ARGV))} 1 b {*}[migrate b]]
            assert_equal {0 2} [list [r exists b] [there get b]]
        }

        # Redis does so with its replicas' connections only.
        test "connections come from bind-source-addr, where it can be had" {keydb} {
            set ::peers {}
            lassign [target {lappend ::peers $host; close $socket}] socket port
            set wanted {}
            foreach {source peer} {"" 127.0.0.1 127.0.0.7 127.0.0.7 ::1 127.0.0.1 192.0.2.1 127.0.0.1} {
                with_config [list bind-source-addr $source] {
                    r set k v
                    assert_error "IOERR*" {r migrate 127.0.0.1 $port k 0 5000}
                    lappend wanted $peer
                    wait_for {$::peers eq $wanted}
                }
            }
            close $socket
            assert_match "*Can't bind to the source address 192.0.2.1 (bind-source-addr): *" \
                [process_log [srv process]]
        }

        test "others hear of it as DEL" {keydb} {
            r mset a 1 b 2 c 3
            there flushall
            r debug journal start
            r {*}[migrate "" keys a b nothing]
            r {*}[migrate c copy]
            set stream [string trim [string map {\r\n " "} [r debug journal read]]]
            assert_equal "*2 \$6 SELECT \$1 0 *3 \$3 DEL \$1 a \$1 b" $stream
            r debug journal stop
        }

        test "to redis-server and back" {} {
            if {$::settings(oracle) eq {}} {
                skip "needs redis-server (--oracle)"
            }
            set port [free_port]
            set dir [fresh_dir]
            lappend ::test_processes [process_start [list $::settings(oracle) --port $port --dir $dir --save {} \
                --enable-debug-command yes] $dir/log]
            wait_for {![catch {[set redis [connect -port $port]] ping}]}
            fill
            set digest [r debug digest]
            set keys [lsort [r keys *]]
            assert_equal OK [r migrate 127.0.0.1 $port "" 0 5000 keys {*}$keys]
            assert_equal {0 0} [list [r dbsize] [llength [r keys *]]]
            assert_equal $digest [$redis debug digest]
            assert_equal OK [$redis migrate 127.0.0.1 [srv port] "" 0 5000 keys {*}$keys]
            assert_equal 0 [$redis dbsize]
            assert_equal $digest [r debug digest]
            assert_range [r pttl expires] 1 100000
        }

        test "a server ends although a target does not answer" {} {
            r set k v
            lassign [silent_target] socket port
            set mover [connect]
            $mover -send migrate 127.0.0.1 $port k 0 1000000
            wait_for {[info_field blocked_clients clients] == 1}
        }
    }
}
