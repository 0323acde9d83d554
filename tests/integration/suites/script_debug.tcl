# Stepping through scripts: sessions as redis-cli --ldb speaks them, in a child and in place, and redis-cli itself.

proc stepped {} {
    return [join {"local a = 1" "local r = redis.call('incr', KEYS[1])" "for i = 1, 2 do" "  a = a + i" "end"
                  "return {a, ARGV[1]}"} \n]
}

# A session's connection: SCRIPT DEBUG, EVAL; gives the client. What it shows first is read.
proc debug_begin {mode script args} {
    set c [connect]
    assert_equal OK [$c script debug $mode]
    $c -send eval $script {*}$args
    return $c
}

# Says something, gives the lines that are shown.
proc say {c args} {
    $c -send {*}$args
    return [$c -read]
}

proc strip text {
    return [regsub -all {\x1b\[[0-9;]*m} $text {}]
}

# Processes of the server's own, also those that have ended and that it has not waited for.
proc has_children {} {
    return [expr {![catch {exec ps -o pid= --ppid [srv pid]}]}]
}

with_server {enable-debug-command yes} {
    test "a session in a child: lines, variables, and nothing of it stays" {} {
        set c [debug_begin yes [stepped] 1 n x]
        assert_equal {{* Stopped at 1, stop reason = step over} {-> 1   local a = 1}} [$c -read]
        assert_equal {{* Stopped at 2, stop reason = step over} {-> 2   local r = redis.call('incr', KEYS[1])}} \
            [say $c s]
        assert_equal {{<value> a = 1}} [say $c p]
        assert_equal {{<value> 1}} [say $c print a]
        assert_equal {{No such variable.}} [say $c print b]
        assert_equal {{<value> {"n"}}} [say $c p KEYS]
        # The server goes on meanwhile, and does not know of what the session does.
        assert_equal OK [r set n 41]
        assert_equal {{<redis> incr n} {<reply> 1} {* Stopped at 3, stop reason = step over} {-> 3   for i = 1, 2 do}} \
            [say $c next]
        assert_equal {{<redis> get n} {<reply> "1"}} [say $c r get n]
        assert_equal 41 [r get n]
        assert_equal {{-> 3   for i = 1, 2 do} {  #4     a = a + i} {   5   end}} [say $c b 4]
        assert_equal {{* Stopped at 4, stop reason = break point} {->#4     a = a + i}} [say $c c]
        assert_equal {{<retval> 3}} [say $c e 1 + 2]
        assert_equal {{<error> ldb_eval:1: Attempt to modify a readonly table}} [say $c e x=1]
        assert_equal {{In top level:} {->#4     a = a + i}} [say $c t]
        assert_equal 6 [llength [say $c w]]
        assert_equal {{Breakpoint removed.}} [say $c b -4]
        assert_match "*Unknown*" [say $c nonsense]
        assert_equal <endsession> [say $c c]
        assert_equal {4 x} [$c -read]
        assert_equal 1 [$c -closed]
        assert_equal 41 [r get n]
        wait_for {![has_children]}
    }

    test "a session in place: what it does stays, others wait, its client may go" {} {
        r set n 1
        set c [debug_begin sync [stepped] 1 n x]
        $c -read
        say $c s
        say $c s
        set other [connect]
        $other -send incr n
        $c -send continue
        assert_equal <endsession> [$c -read]
        assert_equal {4 x} [$c -read]
        assert_equal 3 [$other -read]
        assert_equal 1 [$c -closed]
        # Who goes in the middle leaves a script that runs to its end.
        set c [debug_begin sync [stepped] 1 n x]
        $c -read
        $c -close
        wait_for {[r get n] == 4}
    }

    test "abort, errors, breakpoints of the script's own, what it says" {} {
        set lines {"redis.debug('a', {1, {x = true}}, 1.5)" "if redis.breakpoint() then KEYS[1]() end" "return 1"}
        set c [debug_begin yes [join $lines \n] 0]
        $c -read
        assert_equal [list {<debug> line 1: "a", {1; {["x"]=true}}, 1.5} {* Stopped at 2, stop reason = step over} \
            {-> 2   if redis.breakpoint() then KEYS[1]() end}] [say $c s]
        assert_equal <endsession> [say $c c]
        assert_error "ERR user_script:2: attempt to call*" {$c -read}
        set c [debug_begin yes "local ok = pcall(function()\nreturn 1\nend)\nreturn 'not reached'" 0]
        $c -read
        say $c s
        assert_equal <endsession> [say $c a]
        assert_error "ERR script aborted for user request*" {$c -read}
        set c [debug_begin yes "return (" 0]
        assert_equal <endsession> [$c -read]
        assert_error "ERR Error compiling script*" {$c -read}
    }

    test "a loop without an end stops after busy-reply-threshold" {} {
        r config set busy-reply-threshold 20
        set c [debug_begin yes "local i = 0\nwhile true do i = i + 1 end" 0]
        $c -read
        assert_match "*Stopped at 2, stop reason = timeout reached, infinite loop?*" [say $c c]
        assert_equal <endsession> [say $c a]
        r config set busy-reply-threshold 5000
    }

    test "values and replies are cut" {} {
        set c [debug_begin yes "local s = string.rep('x', 300)\nlocal t = redis.call('echo', s)\nreturn 1" 0]
        $c -read
        say $c s
        assert_match "*<value> \"[string repeat x 247] ...*<hint>*" [say $c p s]
        assert_equal {{<value> replies are truncated at 60 bytes.}} [say $c m 5]
        assert_equal [list "<value> \"[string repeat x 51] ..."] [say $c p s]
        assert_equal {{<value> replies are unlimited.}} [say $c m 0]
        assert_equal [list "<value> \"[string repeat x 300]\""] [say $c p s]
        $c -close
    }

    test "a script that was parked is stepped through, too" {} {
        foreach mode {yes sync} {
            r client pause 100000 write
            set c [debug_begin $mode {redis.call('set', KEYS[1], '5') return 1} 1 k1]
            wait_for {[info_field blocked_clients clients] == 1}
            r -send client unpause ;# answered after a session in place, with one thread
            assert_match "*Stopped at 1*" [lindex [$c -read] 0]
            $c -send c
            assert_match "*<endsession>*" [$c -read]
            assert_equal OK [r -read]
            $c -close
        }
    }

    test "what is no session" {} {
        set c [connect]
        $c script debug yes
        assert_refused {ERR Please use EVAL instead of EVALSHA for debugging} $c evalsha [string repeat a 40] 0
        assert_error "ERR value is not an integer*" {$c eval {return 1} x}
        $c script debug no
        assert_equal 1 [$c eval {return 1} 0]
        assert_refused {ERR Use SCRIPT DEBUG YES/SYNC/NO} $c script debug x
        $c multi
        $c script debug yes
        assert_match "*outside a pipeline*" [lindex [$c exec] 0]
        assert_equal 0 [$c eval {return redis.breakpoint() and 1 or 0} 0]
    }

    test "redis-cli --ldb steps through a script" {} {
        set cli [file join [file dirname $::settings(oracle)] redis-cli]
        if {![file executable $cli] && [set cli [auto_execok redis-cli]] eq {}} {
            skip "there is no redis-cli"
        }
        set file [file join [file dirname [srv log]] ldb.lua]
        set out [open $file w]
        puts -nonewline $out [stepped]
        close $out
        r set n 5
        foreach {mode count ended} {--ldb 5 "session ended -- dataset changes rolled back"
                                    --ldb-sync-mode 6 "session ended)"} {
            set said "s\ns\np a\nb 4\nc\nt\nm 100\nc\nc\n"
            set shown [strip [exec {*}$cli -p [srv port] $mode --eval $file n , arg << $said 2>@1]]
            assert_match "*Stopped at 1*<redis> incr n*<reply> 6*<value> 1*break point*In top level*->#4*" $shown
            assert_match "*1) (integer) 4*2) \"arg\"*$ended*" $shown
            assert_equal $count [r get n]
        }
        r set n 5
        set shown [strip [exec {*}$cli -p [srv port] --ldb --eval $file n << "s\nrestart\ns\na\n" 2>@1]]
        assert_equal 2 [regexp -all {debugging session started} $shown]
        assert_match "*aborted for user request*" $shown
    }
}
