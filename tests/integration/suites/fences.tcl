# What a reply promises about other connections, on other threads: behind the reply of CLIENT KILL, CLIENT PAUSE and
# ACL nothing that began before goes on.

proc client_id c {
    return [$c client id]
}

with_server {enable-debug-command yes} {
    test "who is killed takes no element that comes afterwards" {} {
        foreach c [connect_many 4] {
            for {set round 0} {$round < 25} {incr round} {
                set victim [connect]
                set id [client_id $victim]
                $victim -send blpop list 0
                wait_for {[string match *cmd=blpop* [r client list id $id]]}
                $c -send client kill id $id
                $c -send rpush list element
                $c -send llen list
                assert_equal {1 1 1} [list [$c -read] [$c -read] [$c -read]] "round $round"
                $c del list
            }
        }
    }

    test "the same within a transaction" {} {
        foreach c [connect_many 4] {
            set victim [connect]
            set id [client_id $victim]
            $victim -send blpop list 0
            wait_for {[string match *cmd=blpop* [r client list id $id]]}
            $c multi
            $c client kill id $id
            $c rpush list element
            $c llen list
            assert_equal {1 1 1} [$c exec]
            assert_equal 1 [$c llen list]
            $c del list
        }
    }

    test "who is killed changes nothing behind the reply" {} {
        foreach c [connect_many 4] {
            for {set round 0} {$round < 10} {incr round} {
                set victim [connect]
                set id [client_id $victim]
                $c set counter 0
                for {set i 0} {$i < 2000} {incr i} {
                    $victim -send incr counter
                }
                wait_for {[$c get counter] > 0}
                assert_equal 1 [$c client kill id $id]
                set value [$c get counter]
                for {set i 0} {$i < 20} {incr i} {
                    assert_equal $value [$c get counter] "round $round"
                }
                $victim -close
            }
        }
    }

    test "who is killed gets no message, and none is counted for it" {} {
        foreach c [connect_many 4] {
            set victim [connect]
            set id [client_id $victim]
            $victim subscribe channel
            $victim -send psubscribe chan*
            $victim -read
            assert_equal 2 [$c publish channel first]
            $c -send client kill id $id
            $c -send publish channel second
            $c -send pubsub numsub channel
            assert_equal 1 [$c -read]
            assert_equal 0 [$c -read]
            assert_equal {channel 0} [$c -read]
        }
    }

    test "who is killed is not there any more behind the reply" {} {
        foreach c [connect_many 4] {
            for {set round 0} {$round < 25} {incr round} {
                set victim [connect]
                set id [client_id $victim]
                $c -send client kill id $id
                $c -send client list id $id
                $c -send client kill id $id
                assert_equal {1 {} 0} [list [$c -read] [$c -read] [$c -read]]
            }
        }
    }

    test "MIGRATE of a killed client deletes nothing behind the reply" {} {
        foreach c [connect_many 4] {
            set ::accepted {}
            set target [socket -server {apply {{socket host port} {lappend ::accepted $socket}}} -myaddr 127.0.0.1 0]
            $c set moving value
            set victim [connect]
            set id [client_id $victim]
            $victim -send migrate 127.0.0.1 [lindex [chan configure $target -sockname] 2] moving 0 10000
            wait_for {[llength $::accepted] > 0}
            assert_equal 1 [$c client kill id $id]
            chan configure $::accepted -blocking 0 -translation binary
            puts -nonewline $::accepted "+OK\r\n+OK\r\n"
            flush $::accepted
            # A write to this key waits for the migration's end.
            assert_equal 5 [$c strlen moving]
            assert_equal 6 [$c append moving s]
            assert_equal values [$c get moving]
            close $::accepted
            close $target
        }
    }

    test "behind the reply of CLIENT PAUSE no script writes" {} {
        foreach c [connect_many 4] {
            set writer [connect]
            $c set counter 0
            $writer -send eval {
                for i = 1, 100000 do redis.call('incr', KEYS[1]) end
                return redis.call('get', KEYS[1])
            } 1 counter
            wait_for {[string match *cmd=eval* [r client list]]}
            assert_equal OK [$c client pause 100000 write]
            set value [$c get counter]
            assert {$value in {0 100000}} $value
            assert_equal $value [$c get counter]
            $c client unpause
            assert_equal 100000 [$writer -read]
        }
    }

    test "behind the reply of ACL SETUSER and DELUSER nothing is done for who may not any more" {} {
        foreach c [connect_many 4] {
            foreach change {{acl setuser worker off -@all} {acl deluser worker}} {
                $c acl setuser worker on nopass ~* +@all
                set victim [connect]
                $victim auth worker any
                $c set counter 0
                for {set i 0} {$i < 2000} {incr i} {
                    $victim -send incr counter
                }
                wait_for {[$c get counter] > 0}
                $c {*}$change
                set value [$c get counter]
                for {set i 0} {$i < 20} {incr i} {
                    assert_equal $value [$c get counter]
                }
                $victim -close
            }
        }
    }

    test "messages are journaled beside CONFIG SET appendonly yes and no" {} {
        set publishers [connect_many 6]
        for {set round 0} {$round < 6} {incr round} {
            foreach mode {yes no} {
                foreach p $publishers {
                    for {set i 0} {$i < 300} {incr i} {
                        $p -send publish channel [string repeat m 200]
                    }
                }
                assert_equal OK [r config set appendonly $mode]
                foreach p $publishers {
                    for {set i 0} {$i < 300} {incr i} {
                        assert_equal 0 [$p -read]
                    }
                }
                wait_for {[info_field aof_rewrite_in_progress persistence] == 0}
            }
        }
    }

    test "a change of an option holds for all connections behind the reply" {} {
        set all [connect_many 8]
        foreach c [lrange $all 0 3] {
            foreach limit {1048576 2097152} {
                assert_equal OK [$c config set proto-max-bulk-len $limit]
                foreach other [lrange $all 4 end] {
                    set big [connect]
                    $big -send set key [string repeat x 1500000]
                    if {$limit == 1048576} {
                        assert_error "ERR Protocol error: invalid bulk length" {$big -read}
                    } else {
                        assert_equal OK [$big -read]
                    }
                    $big -close
                }
            }
        }
        assert {$::settings(threads) == 1 || [info_field rendezvous_count stats] > 0} "one thread waits for nobody"
    }
}

with_server {server-threads 4 min-clients-per-thread 1} {
    test "whom ACL SETUSER closes is not shown behind its reply" {} {
        for {set round 0} {$round < 100} {incr round} {
            r acl setuser reader on nopass resetchannels &news +@all
            set readers {}
            for {set i 0} {$i < 4} {incr i} {
                set c [connect]
                $c auth reader any
                $c client setname reader$i
                $c subscribe news
                lappend readers $c
            }
            r acl setuser reader resetchannels
            assert_equal 0 [regexp -all {name=reader} [r client list]] "round $round"
            foreach c $readers {
                assert {[$c -closed 5000]}
                $c -close
            }
        }
        r acl deluser reader
    }
}
