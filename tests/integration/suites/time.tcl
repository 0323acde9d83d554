# Which time a command sees: never one before its own start, however long those took that ran before it.

# Milliseconds of the server's clock, from a reply of TIME.
proc ms_of reply {
    return [expr {[lindex $reply 0] * 1000 + [lindex $reply 1] / 1000}]
}

# A script that takes `ms`, on a key of its own.
proc slow ms {
    return [request eval [string map [list MS $ms] {
        local function now() local t = redis.call('time') return t[1] * 1000 + math.floor(t[2] / 1000) end
        local start = now()
        while now() < start + MS do end
        return 'slow'}] 1 slow]
}

# Sends all at once, so that it is read in one turn; returns the replies.
proc batch {c args} {
    $c -raw [join $args ""]
    return [lmap bytes $args {$c -read}]
}

with_server {} {
    test "deadlines count from when a command runs, not from when its bytes came" {} {
        foreach {name commands ask} {
            set {{set k v px 100000}} {pexpiretime k}
            getex {{getex k px 100000}} {pexpiretime k}
            pexpire {{pexpire k 100000}} {pexpiretime k}
            setnx {{del k} {set k v nx px 100000}} {pexpiretime k}
            exec {multi {psetex k 100000 v} exec} {pexpiretime k}
            script {{eval "return redis.call('psetex', KEYS\[1], 100000, 'v')" 1 k}} {pexpiretime k}
            other {{eval "return redis.call('psetex', 'k', 100000, 'v')" 0}} {pexpiretime k}
            xadd {{del x} {xadd x * f v}} {xrevrange x + - count 1}
        } {
            r set k v
            set requests [list [slow 30] [request time]]
            foreach command $commands {
                lappend requests [request {*}$command]
            }
            set replies [batch r {*}$requests]
            assert_equal slow [lindex $replies 0]
            set began [ms_of [lindex $replies 1]]
            set told [r {*}$ask]
            if {$name eq "xadd"} {
                assert {[lindex [split [lindex $told 0 0] -] 0] >= $began} "xadd: $told, but it was $began"
            } else {
                assert {$told >= $began + 100000} "$name: a deadline [expr {$began + 100000 - $told}] ms too early"
            }
        }
    }

    test "a key whose time ends during a slow command has ended for the next one" {} {
        foreach read {{get k} {exists k} {strlen k}} none {{} 0 0} {
            r set k v px 20
            assert_equal [list slow $none] [batch r [slow 40] [request {*}$read]]
        }
    }

    test "a script and an EXEC see one time, however long they take" {} {
        assert_equal 1 [r eval {
            redis.call('set', KEYS[1], 'v', 'px', 20)
            local function now() local t = redis.call('time') return t[1] * 1000 + math.floor(t[2] / 1000) end
            local start = now()
            while now() < start + 40 do end
            return redis.call('exists', KEYS[1])} 1 k]
        wait_for {[r exists k] == 0}
        set replies [batch r [request multi] [request set k v px 20] [slow 40] [request exists k] [request exec]]
        assert_equal {OK slow 1} [lindex $replies end]
    }

    test "who waits is served at the time of what fills its key" {} {
        r xgroup create s g $ mkstream
        set waits [connect]
        $waits -send xreadgroup group g c block 0 streams s >
        wait_for {[info_field blocked_clients] == 1}
        set replies [batch r [slow 30] [request time] [request xadd s * f v]]
        $waits -read
        set idle [lindex [r xpending s g - + 1] 0 2]
        set now [ms_of [r time]]
        assert {$idle <= $now - [ms_of [lindex $replies 1]]} "idle $idle"
        $waits -close
    }
}

with_server {} {
    test "who waits gets nothing whose time is over when it is served" {} {
        foreach {command fill more expected} {
            {blpop k 0} {rpush k old} {rpush k new} {k new}
            {blmove k other left left 0} {rpush k old} {rpush k new} new
            {bzpopmin k 0} {zadd k 1 old} {zadd k 2 new} {k new 2}
            {xread block 0 streams k 0-0} {xadd k 1-1 f old} {xadd k 2-1 f new} {{k {{2-1 {f new}}}}}
        } {
            r flushall
            set waits [connect]
            $waits -send {*}$command
            wait_for {[info_field blocked_clients] == 1}
            r multi
            r {*}$fill
            r pexpire k 20
            r eval {
                local function now() local t = redis.call('time') return t[1] * 1000 + math.floor(t[2] / 1000) end
                local start = now()
                while now() < start + 60 do end} 0
            r exec
            assert_equal 0 [r exists k]
            r {*}$more
            assert_equal $expected [$waits -read] $command
            $waits -close
        }
    }
}

with_server {enable-debug-command yes} {
    test "a command that waited for its key counts from when it runs" {keydb} {
        set holds [connect]
        set waits [connect]
        $holds -send debug hold k 30
        set before [info_field long_lock_waits cpu]
        wait_for {[[connect] -send get k] eq {} && [info_field long_lock_waits cpu] > $before}
        set before [info_field long_lock_waits cpu]
        $waits -send set k v px 100000
        wait_for {[info_field long_lock_waits cpu] > $before}
        set began [ms_of [r time]]
        r debug release hold
        assert_equal OK [$holds -read]
        assert_equal OK [$waits -read]
        assert {[r pexpiretime k] >= $began + 100000}
    }
}
