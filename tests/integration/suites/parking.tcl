# Commands that wait for a stripe, the gate or a pause: each kind is found by what it waits for.

proc retries {} {
    return [info_field parked_retries cpu]
}

proc numbers count {
    set numbers {}
    for {set i 0} {$i < $count} {incr i} {
        lappend numbers $i
    }
    return $numbers
}

# Runs the body beside scripts on the key `counter`, one at the heels of the other, until what it does has taken the
# gate some times; what it asks, by the client in `asks_name`, needs very many stripes.
proc beside_scripts {asks_name round_name body} {
    upvar 1 $asks_name asks $round_name round
    set script {local n = 0 for i = 1, 100000 do n = n + i end return redis.call('incr', KEYS[1])}
    set flood [connect]
    set asks [connect]
    set before [info_field parked_by_gate cpu]
    r config set busy-reply-threshold 60000 ;# none of these scripts is to count as slow, however slow the machine
    for {set round 0} {$round < 300 && [info_field parked_by_gate cpu] < $before + 4} {incr round} {
        r del counter
        $flood -raw [string repeat [request eval $script 1 counter] 100]
        wait_for {[r exists counter]}
        uplevel 1 $body
        for {set i 1} {$i <= 100} {incr i} {
            $flood -read
        }
    }
    r config set busy-reply-threshold 20
    assert {[info_field parked_by_gate cpu] >= $before + 4}
    assert {[info_field parked_tries_most cpu] <= 3}
}

# Holds the key's stripe by a background thread; returns when it is held, as a command finds out that waits for it.
proc hold {key {probe {}}} {
    if {$probe eq {}} {
        set probe [list get $key]
    }
    set holds [connect]
    $holds -send debug hold $key 60
    set before [parked_so_far]
    wait_for {[[connect] -send {*}$probe] eq {} && [parked_so_far] > $before}
    return $holds
}

proc release holds {
    r debug release hold
    assert_equal OK [$holds -read]
}

# So many clients that send `words` and wait.
proc crowd {count words} {
    set before [parked_so_far]
    set clients {}
    for {set i 0} {$i < $count} {incr i} {
        set c [connect]
        $c -send {*}$words
        lappend clients $c
    }
    wait_for {[parked_so_far] >= $before + $count}
    return $clients
}

foreach threads {1 4} {
    with_server [list server-threads $threads min-clients-per-thread 0 enable-debug-command yes \
                     busy-reply-threshold 20] {
        test "mail and other stripes let nobody be tried again ($threads threads)" {keydb} {
            set holds [hold held]
            set waits [crowd 60 {incr held}]
            set subscribers [lmap i {1 2 3 4 5 6} {connect}]
            foreach s $subscribers {
                $s subscribe news
            }
            set before [retries]
            for {set i 0} {$i < 300} {incr i} {
                r publish news $i
                r set other $i
            }
            foreach s $subscribers {
                for {set i 0} {$i < 300} {incr i} {
                    assert_equal "message news $i" [$s -read]
                }
            }
            assert_equal $before [retries]
            release $holds
            set replies [lmap c $waits {$c -read}]
            assert_equal 60 [llength [lsort -unique $replies]]
        }

        test "who waits for one stripe is tried until it is held again, in order ($threads threads)" {keydb} {
            r del list
            set holds [hold held]
            set waits {}
            for {set i 0} {$i < 40} {incr i} {
                set before [parked_so_far]
                lappend waits [set c [connect]]
                $c -raw [request multi][request exists held][request rpush list $i][request exec]
                wait_for {[parked_so_far] > $before}
            }
            set before [retries]
            release $holds
            foreach c $waits {
                $c -read
                $c -read
                $c -read
                $c -read
            }
            # Of each worker the first may have met one of another worker.
            set numbers [r lrange list 0 -1]
            assert_equal 40 [llength $numbers]
            if {[info_field server_threads] == 1} {
                assert_equal [lsort -integer $numbers] $numbers
            }
        }

        test "commands of several stripes go on when the last of them is free ($threads threads)" {keydb} {
            set first [hold a]
            set waits [crowd 5 {mset a 1 b 1 c 1}]
            set others [crowd 5 {sunion a b}]
            assert_equal OK [r set b 2]
            release $first
            foreach c $waits {
                assert_equal OK [$c -read]
            }
            foreach c $others {
                assert_error WRONGTYPE* {$c -read}
            }
        }

        if {$threads > 1} {
            test "a read of very many keys has its stripes after three tries, or the gate" {keydb} {
                beside_scripts asks round {
                    set reply [$asks mget counter {*}[lmap i [numbers 2000] {string cat key: $i}]]
                    assert_equal 2001 [llength $reply]
                }
            }

            test "a write of very many keys has its stripes after three tries, or the gate" {keydb} {
                beside_scripts asks round {
                    assert_equal OK [$asks mset {*}[concat {*}[lmap i [numbers 2000] {list key:$i $round}]] counter 0]
                }
            }

            test "a transaction of very many keys has its stripes after three tries, or the gate" {keydb} {
                beside_scripts asks round {
                    $asks multi
                    foreach i [numbers 100] {
                        $asks incr counted:$i
                    }
                    $asks get counter
                    assert_equal [lrepeat 100 [expr {$round + 1}]] [lrange [$asks exec] 0 99]
                }
            }
        }

        test "walks that wait for a stripe go on when it is free ($threads threads)" {keydb} {
            r flushall
            r set held 1
            release [hold elsewhere] ;# where others have waited
            set holds [hold held randomkey]
            set waits [crowd 3 randomkey]
            release $holds
            foreach c $waits {
                assert_equal held [$c -read]
            }
            r flushall
        }

        test "CLIENT PAUSE holds what waits for nothing else, and its end lets it go ($threads threads)" {keydb} {
            set holds [hold held]
            set waits [crowd 5 {incr held}]
            r client pause 100000 write
            set paused [connect]
            $paused -send incr free
            wait_for {[string match *cmd=incr* [r client list]]}
            release $holds
            # They were tried and are paused now.
            r client unpause
            assert_equal {1 2 3 4 5} [lsort -integer [lmap c $waits {$c -read}]]
            assert_equal 1 [$paused -read]
        }

        test "what stands behind a slow script is told so, all of it ($threads threads)" {keydb} {
            set runs [connect]
            $runs -send eval {while true do end} 1 busy
            wait_for {![catch {r script kill} reply] || ![string match NOTBUSY* $reply]}
            assert_error *killed* {$runs -read}
            set clients [lmap i {1 2 3 4 5 6 7 8} {connect}]
            $runs -send eval {while true do end} 1 busy
            wait_for {[catch {r get busy} reply] && [string match BUSY* $reply]}
            foreach c $clients {
                $c -send get busy
                $c -send flushdb
                $c -send eval {return redis.call('get', 'busy')} 0
            }
            foreach c $clients {
                foreach i {1 2 3} {
                    assert_error BUSY* {$c -read}
                }
            }
            wait_for {![catch {r script kill} reply]}
            assert_error *killed* {$runs -read}
            assert_equal OK [r flushdb]
        }

        test "clients that leave while they wait are forgotten ($threads threads)" {keydb} {
            set holds [hold held]
            set waits [crowd 20 {incr held}]
            set ids [lmap line [client_lines [r client list]] {
                expr {[dict get $line cmd] eq "incr" ? [dict get $line id] : [continue]}
            }]
            assert_equal 20 [llength $ids]
            foreach {stays leaves} $ids {
                assert_equal 1 [r client kill id $leaves]
            }
            wait_for {[llength [regexp -all -inline {cmd=incr} [r client list]]] == 10}
            release $holds
            foreach c $waits {
                if {![catch {$c -read} reply]} {
                    lappend replies $reply
                }
            }
            assert_equal {1 2 3 4 5 6 7 8 9 10} [lsort -integer $replies]
            assert_equal 10 [r get held]
        }
    }
}
