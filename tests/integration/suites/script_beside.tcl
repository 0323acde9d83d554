# Scripts beside each other: those whose text shows that they keep to their keys, on other keys than the running one's.
# Connections are dealt over the threads in turn.

# Runs the script on each connection until its thread has it compiled.
proc compile_everywhere {connections script args} {
    foreach c $connections {
        for {set i 0} {$i < 3} {incr i} {
            $c eval $script {*}$args
        }
    }
}

# The connections of threads other than those that run slow scripts: the others' get -BUSY for any key.
proc those_elsewhere connections {
    set found {}
    foreach c $connections {
        if {![catch {$c get free}]} {
            lappend found $c
        }
    }
    return $found
}

proc is_busy key {
    expr {[catch {r get $key} reply] && [string match BUSY* $reply]}
}

with_server {server-threads 4 min-clients-per-thread 1 busy-reply-threshold 50} {
    test "scripts on other keys answer while a script runs" keydb {
        set reads {return redis.call('get', KEYS[1])}
        set counts {return redis.call('incr', KEYS[1])}
        set gathers {return redis.call('get', 'undeclared')}
        set clients [lmap i {1 2 3 4 5 6 7 8} {connect}]
        set runs [connect]
        r set undeclared u
        foreach script [list $reads $counts] {
            compile_everywhere $clients $script 1 free
        }
        set sha [r script load $counts]
        r set free 100
        $runs -send eval {while true do end} 1 held
        wait_for {[is_busy held] || [is_busy free]}
        set elsewhere [those_elsewhere $clients]
        assert {[llength $elsewhere] > 0}
        set expected 100
        foreach c $elsewhere {
            assert_equal $expected [$c eval $reads 1 free]
            assert_equal [incr expected] [$c eval $counts 1 free]
            assert_equal [incr expected] [$c evalsha $sha 1 free]
            assert_equal [incr expected] [$c evalsha [string toupper $sha] 1 free]
            assert_error BUSY* {$c eval $counts 1 held}
            assert_error BUSY* {$c eval $gathers 0}
            $c multi
            $c eval $counts 1 free
            assert_error *BUSY* {$c exec}
        }
        assert_equal OK [[lindex $elsewhere 0] script kill]
        assert_error "*Script killed*" {$runs -read}
        assert_equal u [r eval $gathers 0]
        assert_equal $expected [r get free]
        foreach c [list $runs {*}$clients] {
            $c -close
        }
    }

    test "SCRIPT KILL ends all slow scripts that have not written" keydb {
        set clients [lmap i {1 2 3 4 5 6 7 8} {connect}]
        set endless {while ARGV[1] == 'go' do end return 'left'}
        set writes {local n = 0
            while ARGV[1] == 'go' and n < 1500000 do n = redis.call('incr', KEYS[1]) end
            return 'written'}
        compile_everywhere $clients $endless 1 free stop
        compile_everywhere $clients $writes 1 free stop
        set slow 0
        set running {}
        set log_before [regexp -all {Slow script detected} [process_log [srv process]]]
        foreach script [list $endless $endless $writes] key {first second third} {
            set c [lindex [those_elsewhere $clients] 0]
            assert {$c ne {}} "a thread without a slow script"
            $c -send eval $script 1 $key go
            lappend running $c
            set clients [lsearch -all -inline -not -exact $clients $c]
            incr slow
            wait_for {[regexp -all {Slow script detected} [process_log [srv process]]] == $log_before + $slow}
        }
        set c [lindex [those_elsewhere $clients] 0]
        assert_equal OK [$c script kill]
        assert_error "*Script killed*" {[lindex $running 0] -read}
        assert_error "*Script killed*" {[lindex $running 1] -read}
        assert_match {written} [[lindex $running 2] -read]
        assert_error NOTBUSY* {$c script kill}
        foreach key {first second third} {
            assert_equal 0 [is_busy $key]
        }
        r del third
        foreach c [list {*}$clients {*}$running] {
            $c -close
        }
    }
}

with_server {server-threads 4 min-clients-per-thread 1} {
    # A sum that each script leaves as it is, seen by those that hold all, with keys they declare or not.
    test "scripts beside each other are atomic to those that have to be alone" keydb {
        set moves {local from, to = KEYS[1], KEYS[2]
            for i = 1, 20 do
                redis.call('decr', from)
                redis.call('incr', to)
            end return 1}
        set sums {local sum = 0
            for i = 1, 6 do sum = sum + tonumber(redis.call('get', 'n' .. i) or 0) end return sum}
        set clients [lmap i {1 2 3 4 5 6} {connect}]
        compile_everywhere $clients $moves 2 n1 n2
        foreach c $clients i {1 2 3 4 5 6} {
            for {set n 0} {$n < 300} {incr n} {
                $c -send eval $moves 2 n$i n[expr {$i % 6 + 1}]
            }
        }
        for {set n 0} {$n < 100} {incr n} {
            assert_equal 0 [r eval $sums 0] "by undeclared keys"
            assert_equal 0 [expr [join [lmap value [r mget n1 n2 n3 n4 n5 n6] {expr {$value eq {} ? 0 : $value}}] +]]
            r multi
            r eval $sums 6 n1 n2 n3 n4 n5 n6
            assert_equal 0 [r exec]
        }
        foreach c $clients {
            for {set n 0} {$n < 300} {incr n} {
                assert_equal 1 [$c -read]
            }
            $c -close
        }
        assert_equal 0 [r eval $sums 0]
    }

    test "a global's text, where a local variable of its name has a key" {} {
        r set {Lua 5.1} value
        set script {
            do local _VERSION = KEYS[1] redis.call('get', _VERSION) end
            return redis.call('get', _VERSION)
        }
        assert_equal value [r eval $script 1 key]
    }
}
