# HOTKEYS: the keys that take most time, and most bytes of requests and replies.

# The one map of HOTKEYS GET, as a dict.
proc hotkeys {} {
    set answer [r hotkeys get]
    assert_equal 1 [llength $answer]
    return [lindex $answer 0]
}

proc hotkeys_of metric {
    return [dict get [hotkeys] [dict get {cpu by-cpu-time-us net by-net-bytes} $metric]]
}

# What the keys have after the script, counted from START with these words on.
proc hotkeys_after {words metric script} {
    r hotkeys stop
    r hotkeys reset
    r hotkeys start {*}$words
    uplevel 1 $script
    set found [hotkeys_of $metric]
    r hotkeys stop
    r hotkeys reset
    return $found
}

# Bytes of a request in the protocol.
proc request_bytes args {
    set bytes [expr {3 + [string length [llength $args]]}]
    foreach arg $args {
        set size [string length $arg]
        incr bytes [expr {5 + [string length $size] + $size}]
    }
    return $bytes
}

with_server {server-threads 2 min-clients-per-thread 0 enable-debug-command yes} {
    foreach ::proto {2 3} {
        test "HOTKEYS: replies and errors, RESP$::proto" {keydb} {
            r hello $::proto
            set nothing [r -typed get no-such-key]
            foreach words {get stop} {
                assert_reply $nothing r hotkeys $words
            }
            assert_reply {status OK} r hotkeys reset
            foreach {words text} {
                {} "METRICS parameter is required"
                {metrics} "METRICS parameter is required"
                {count 3} "METRICS parameter is required"
                {count 3 metrics 1 cpu} "METRICS parameter is required"
                {metrics 0 cpu} "METRICS count must be > 0 and <= 2"
                {metrics -1 cpu} "METRICS count must be > 0 and <= 2"
                {metrics 3 cpu net cpu} "METRICS count must be > 0 and <= 2"
                {metrics cpu} "METRICS count must be > 0 and <= 2"
                {metrics 9223372036854775808 cpu} "METRICS count must be > 0 and <= 2"
                {metrics 2 cpu cpu} "METRICS CPU defined more than once!"
                {metrics 2 net NET} "METRICS NET defined more than once!"
                {metrics 2 cpu} "METRICS count does not match number of metric types provided"
                {metrics 1 net NET} "syntax error"
                {metrics 2 net count 3} "METRICS count does not match number of metric types provided"
                {metrics 1} "METRICS count does not match number of metric types provided"
                {metrics 1 cpu net} "syntax error"
                {metrics 1 disk} "METRICS no valid metrics passed. Supported: CPU|NET"
                {metrics 1 cpu count 0} "COUNT must be between 1 and 64"
                {metrics 1 cpu count 65} "COUNT must be between 1 and 64"
                {metrics 1 cpu count x} "COUNT must be between 1 and 64"
                {metrics 1 cpu duration 0} "DURATION must be between 1 and 1000000"
                {metrics 1 cpu duration 1000001} "DURATION must be between 1 and 1000000"
                {metrics 1 cpu sample 0} "SAMPLE ratio must be positive"
                {metrics 1 cpu sample -1} "SAMPLE ratio must be positive"
                {metrics 1 cpu slots 1 5} "SLOTS parameter cannot be used in non-cluster mode"
                {metrics 1 cpu slots} "SLOTS parameter cannot be used in non-cluster mode"
                {metrics 1 cpu count} "syntax error"
                {metrics 1 cpu sample} "syntax error"
                {metrics 1 cpu nonsense 1} "syntax error"
            } {
                assert_refused "ERR $text" r hotkeys start {*}$words
            }
            assert_reply $nothing r hotkeys get
            foreach {words name} {get|x get stop|x stop reset|x reset help|x help} {
                assert_refused "ERR wrong number of arguments for 'hotkeys|$name' command" r hotkeys \
                    {*}[split $words |]
            }
            assert_refused "ERR wrong number of arguments for 'hotkeys' command" r hotkeys
            assert_match "ERR unknown subcommand 'nonsense'*" [lindex [r -typed hotkeys nonsense] 1]
            assert_match "HOTKEYS <subcommand>*" [lindex [r hotkeys help] 0]

            assert_reply {status OK} r HotKeys Start METRICS 2 Net CPU COUNT 64 DURATION 1000000 SAMPLE 7
            foreach words {{metrics 1 cpu} {metrics 1 cpu count 65} {metrics 1} {}} {
                assert_refused "ERR hotkey tracking session already in progress" r hotkeys start {*}$words
            }
            assert_refused "ERR hotkey tracking session in progress, stop tracking first" r hotkeys reset
            assert_equal {1 7 {{0 16383}}} [lrange [dict values [hotkeys]] 0 2]
            assert_reply {status OK} r hotkeys stop
            assert_reply $nothing r hotkeys stop
            assert_equal 0 [dict get [hotkeys] tracking-active]
            # A new session forgets what an earlier one has found.
            assert_reply {status OK} r hotkeys start metrics 1 net
            assert_equal 1 [dict get [hotkeys] sample-ratio]
            r hotkeys stop
            assert_reply {status OK} r hotkeys reset
            assert_reply $nothing r hotkeys get
            r hello 2
        }

        test "HOTKEYS GET has what was asked for, RESP$::proto" {keydb} {
            r hello $::proto
            set always [list tracking-active sample-ratio selected-slots all-commands-all-slots-us \
                net-bytes-all-commands-all-slots collection-start-time-unix-ms collection-duration-ms]
            foreach {words more} {
                {1 cpu} {total-cpu-time-user-ms total-cpu-time-sys-ms by-cpu-time-us}
                {1 net} {total-net-bytes by-net-bytes}
                {2 net cpu} {total-cpu-time-user-ms total-cpu-time-sys-ms total-net-bytes by-cpu-time-us by-net-bytes}
            } {
                r hotkeys start metrics {*}$words
                assert_equal [list array [dict get {2 array 3 map} $::proto]] \
                    [list [lindex [r -typed hotkeys get] 0] [lindex [r -typed hotkeys get] 1 0 0]]
                assert_equal [list {*}$always {*}$more] [dict keys [hotkeys]]
                assert_range [dict get [hotkeys] collection-start-time-unix-ms] [expr {[clock milliseconds] - 60000}] \
                    [clock milliseconds]
                r hotkeys stop
            }
            r hotkeys reset
            r hello 2
        }
    }

    test "HOTKEYS: bytes are those of requests and replies of all threads" {keydb} {
        set other [lindex [connect_many 2] 1]
        set value [string repeat x 1000]
        set found [hotkeys_after {metrics 1 net count 3} net {
            r set small y
            r get small
            r set large $value
            $other get large
            $other mget large absent
            $other echo $value
        }]
        set small [expr {[request_bytes set small y] + 5 + [request_bytes get small] + 7}]
        set many [expr {[request_bytes mget large absent] + 4 + 7 + 1002 + 5}]
        set large [expr {[request_bytes set large $value] + 5 + [request_bytes get large] + 7 + 1002 + $many / 2}]
        assert_equal [list large $large absent [expr {$many / 2}] small $small] $found
    }

    test "HOTKEYS: COUNT is the number of keys, largest first" {keydb} {
        set found [hotkeys_after {metrics 1 net count 4} net {
            for {set i 1} {$i <= 20} {incr i} {
                r set key:$i [string repeat x [expr {100 * $i}]]
            }
        }]
        assert_equal {key:20 key:19 key:18 key:17} [dict keys $found]
    }

    test "HOTKEYS: a heavy key is found among many" {keydb} {
        set found [hotkeys_after {metrics 1 net count 2} net {
            for {set i 0} {$i < 2000} {incr i} {
                r set light:$i x
                if {$i % 10 == 0} {
                    r set heavy [string repeat x 100]
                }
            }
        }]
        assert_equal heavy [lindex $found 0]
        # What displaces others is not listed with their bytes.
        assert_range [lindex $found 3] 1 [expr {[request_bytes set light:1000 x] + 5}]
        assert_range [lindex $found 1] 20000 [expr {200 * ([request_bytes set heavy [string repeat x 100]] + 5)}]
    }

    test "HOTKEYS: the time of a slow command is its key's" {keydb} {
        r rpush list {*}[lrepeat 20000 x]
        set found [hotkeys_after {metrics 1 cpu count 2} cpu {
            for {set i 0} {$i < 20} {incr i} {
                r linsert list before none y
                r get quick
            }
            assert_range [lindex [hotkeys_of cpu] 1] 20 [dict get [hotkeys] all-commands-all-slots-us]
        }]
        assert_equal {list quick} [dict keys $found]
        r del list
    }

    test "HOTKEYS: SAMPLE looks at each r-th command with keys" {keydb} {
        set found [hotkeys_after {metrics 1 net sample 4} net {
            for {set i 0} {$i < 40} {incr i} {
                r set k v
                r ping
            }
            set all [dict get [hotkeys] net-bytes-all-commands-all-slots]
        }]
        set once [expr {[request_bytes set k v] + 5}]
        assert_equal [list k [expr {10 * $once}]] $found
        assert {$all >= 40 * ($once + [request_bytes ping] + 7)}
    }

    test "HOTKEYS: what EXEC runs counts for itself, and a script for its keys" {keydb} {
        set found [hotkeys_after {metrics 1 net} net {
            r multi
            r set a 1
            r set a 2
            r exec
            set all [dict get [hotkeys] net-bytes-all-commands-all-slots]
        }]
        assert_equal [expr {[request_bytes multi] + 5 + 2 * ([request_bytes set a 1] + 5)}] $all
        assert_equal [list a [expr {2 * ([request_bytes set a 1] + 5)}]] $found
        set script {return redis.call('set', KEYS[1], ARGV[1])}
        set found [hotkeys_after {metrics 1 net} net {
            r eval $script 1 b 3
        }]
        assert_equal [list b [expr {[request_bytes eval $script 1 b 3] + 5}]] $found
    }

    test "HOTKEYS: databases, dropped replies and keys that are too long" {keydb} {
        set c [connect]
        set long [string repeat k 4097]
        r flushall
        set found [hotkeys_after {metrics 1 net} net {
            r set a 1
            r select 5
            r set a 1
            r select 0
            r set $long 1
            r set [string range $long 1 end] 1
            $c -send client reply off
            $c -send set b 1
            wait_for {[r dbsize] == 4}
        }]
        assert_equal [expr {2 * ([request_bytes set a 1] + 5)}] [dict get $found a]
        assert_equal [request_bytes set b 1] [dict get $found b]
        assert {![dict exists $found $long]}
        assert_equal [expr {[request_bytes set [string range $long 1 end] 1] + 5}] \
            [dict get $found [string range $long 1 end]]
        $c -close
        r flushall
    }

    test "HOTKEYS: a session with DURATION ends by itself" {keydb} {
        r hotkeys start metrics 1 net duration 1
        r set k v
        assert_equal 1 [info_field hotkeys_tracking_active hotkeys]
        wait_for {[info_field hotkeys_tracking_active hotkeys] == 0}
        set before [hotkeys]
        assert_range [dict get $before collection-duration-ms] 1000 30000
        assert_equal 0 [dict get $before tracking-active]
        r set k [string repeat v 1000]
        assert_equal $before [hotkeys]
        assert_equal [dict get $before by-net-bytes] [list k [expr {[request_bytes set k v] + 5}]]
        assert_reply nullbulk r hotkeys stop
        assert_equal OK [r hotkeys reset]
    }

    test "INFO hotkeys is shown by its name" {keydb} {
        assert {![dict exists [info_fields everything] hotkeys_tracking_active]}
        assert_equal 0 [info_field hotkeys_tracking_active hotkeys]
        assert_equal 0 [info_field hotkeys_collection_duration_ms hotkeys]
        r hotkeys start metrics 1 cpu sample 3
        r set k v
        assert_equal {1 3} [lrange [dict values [info_fields hotkeys]] 0 1]
        assert {[info_field hotkeys_all_commands_net_bytes hotkeys] > [request_bytes set k v]}
        r hotkeys stop
        r hotkeys reset
    }

    test "COMMANDLOG has its own limit while HOTKEYS is on" {keydb} {
        r commandlog reset large-request
        with_config {commandlog-request-larger-than 200} {
            r hotkeys start metrics 1 cpu
            r set k v
            r config set commandlog-request-larger-than 100
            r set k [string repeat v 100]
            r hotkeys stop
            r set k v
            r set k [string repeat v 101]
        }
        assert_equal 2 [r commandlog len large-request]
        r commandlog reset large-request
        r hotkeys reset
    }

    test "HOTKEYS: channels are no keys, and errors count" {keydb} {
        set found [hotkeys_after {metrics 2 cpu net} net {
            r -typed ssubscribe channel
            r -typed sunsubscribe channel
            r -typed spublish channel message
            r -typed get
            r -typed hset k
            r -typed object freq absent
            r -typed memory usage absent
            r -typed blpop absent 0.01
        }]
        assert_equal {absent} [dict keys $found]
    }

    test "HOTKEYS: rights, scripts and transactions" {keydb} {
        r acl setuser some on >x ~* +@all -@dangerous
        set some [connect]
        $some auth some x
        foreach words {get stop reset {start metrics 1 cpu}} {
            assert_match NOPERM* [lindex [$some -typed hotkeys {*}$words] 1]
        }
        assert_match "HOTKEYS <subcommand>*" [lindex [$some hotkeys help] 0]
        $some -close
        r acl deluser some
        assert_error "ERR This Redis command is not allowed from script*" {
            r eval {return redis.call('hotkeys', 'start', 'metrics', '1', 'cpu')} 0
        }
        r multi
        r hotkeys start metrics 1 net
        r set k v
        r hotkeys get
        r hotkeys stop
        r hotkeys reset
        set answers [r exec]
        assert_equal {OK OK OK OK} [lreplace $answers 2 2]
        assert_equal [list k [expr {[request_bytes set k v] + 5}]] [dict get [lindex $answers 2 0] by-net-bytes]
    }

    test "HOTKEYS: sessions come and go while all threads are busy" {keydb} {
        set clients [connect_many 4]
        for {set round 0} {$round < 30} {incr round} {
            r hotkeys start metrics 2 cpu net count 2
            foreach c $clients {
                for {set i 0} {$i < 50} {incr i} {
                    $c -send set key:[expr {$i % 40}] $i
                }
            }
            assert_range [llength [hotkeys_of net]] 0 4
            r hotkeys stop
            foreach c $clients {
                for {set i 0} {$i < 50} {incr i} {
                    $c -read
                }
            }
            r hotkeys reset
        }
    }
}
