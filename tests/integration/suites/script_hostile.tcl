# Scripts that mean harm (data/hostile_scripts.txt): none takes the server down, keeps it from serving others, or keeps
# what it took; those that do not end are seen as slow and can be ended, by SCRIPT KILL and by the server's end.

proc hostile_scripts {section} {
    set scripts {}
    set here {}
    foreach line [split [slurp $::here_dir/data/hostile_scripts.txt] "\n"] {
        if {[regexp {^\[(\w+)\]$} $line - here] || $line eq {} || [string match #* $line]} {
            continue
        }
        if {$here eq $section} {
            lappend scripts $line
        }
    }
    return $scripts
}

# It ends, but the sanitizers take their time over each error.
proc hostile_over script {
    if {![wait_until {![catch {r ping}]} 60000]} {
        fail "still busy: $script"
    }
}

# Runs it; what it answers is its own affair, also if the client cannot read so deep an answer.
proc hostile_run {script args} {
    set c [connect]
    catch {$c {*}$args}
    $c -close
    hostile_over $script
}

# Until a script is slow and has been told to end. Others are answered meanwhile, with an error or not.
proc hostile_kill {killer others what script} {
    foreach c $others {
        catch {$c get somewhere} answer
        if {$answer ne {} && ![string match BUSY* $answer]} {
            fail "$answer: beside $script"
        }
    }
    if {![wait_until {![catch {$killer $what kill} reply] || ![string match NOTBUSY* $reply]} 30000]} {
        fail "not seen as slow: $script"
    }
    assert_equal OK $reply $script
}

set ::hostile_lua_most 256 ;# MiB

foreach threads {1 4} {
    with_server [list server-threads $threads min-clients-per-thread 1 busy-reply-threshold 50 \
                     enable-debug-command yes] {
        test "hostile scripts that end ($threads threads)" {slow} {
            foreach script [hostile_scripts ends] {
                hostile_run $script eval $script 0
            }
        }

        test "hostile scripts of a user who may do nothing else ($threads threads)" {slow} {
            r acl setuser low on >low resetkeys resetchannels -@all +eval_ro
            foreach script [lrange [hostile_scripts ends] 0 20] {
                set c [connect]
                $c auth low low
                catch {$c eval_ro $script 0}
                $c -close
                hostile_over $script
            }
            r acl deluser low
        }

        test "hostile functions, and hostile libraries ($threads threads)" {slow} {
            foreach script [lrange [hostile_scripts ends] 0 20] {
                r function load replace \
                    "#!lua name=h\nredis.register_function('h', function(KEYS, ARGV) $script end)"
                hostile_run $script fcall h 0
                catch {r function load replace "#!lua name=l\nlocal function f() $script end f()
                    redis.register_function('l', f)"}
                hostile_over $script
            }
            foreach script {{while true do end} {local function f() return f() end f()}
                            {local s = ('a'):rep(100) s:find(('a?'):rep(100) .. s)}} {
                assert_error "*FUNCTION LOAD timeout*" {
                    r function load "#!lua name=l2\n$script\nredis.register_function('l2', print)"
                }
            }
            r function flush
        }

        test "hostile jobs ($threads threads)" {slow keydb} {
            foreach script [lrange [hostile_scripts ends] 0 10] {
                r keydb.cron job single 0 1 $script
                wait_for {![catch {r exists job} left] && $left == 0} 60000
                hostile_over $script
            }
            r keydb.cron job single 0 1 {local function f() while true do pcall(f) end end f()}
            hostile_kill [connect] {} script job
            wait_for {![catch {r exists job} left] && $left == 0}
        }

        test "endless scripts are killed ($threads threads)" {slow} {
            set killer [connect]
            set others [lmap i {1 2 3} {connect}]
            foreach script [hostile_scripts endless] {
                set runs [connect]
                $runs -send eval $script 0
                hostile_kill $killer $others script $script
                assert_error "*Script killed by user with SCRIPT KILL*" {$runs -read}
                assert_equal PONG [$runs ping]
                $runs -close
            }
            r function load "#!lua name=e\nredis.register_function('e', function()
                local function f() while true do pcall(f) end end f() end)"
            set runs [connect]
            $runs -send fcall e 0
            hostile_kill $killer $others function fcall
            assert_error "*Script killed*" {$runs -read}
            r function flush
            # A run after all that is as any other, and what they took has been given back.
            assert_equal 5 [[connect] eval {local n = 0 for i = 1, 100000 do n = n + i end return 5} 0]
            assert_equal 5 [$runs eval {return select(2, pcall(function() return 5 end))} 0]
            assert_range [info_field used_memory_lua] 0 [expr {$::hostile_lua_most * 1024 * 1024}]
        }

        test "an endless script that has written is not killed ($threads threads)" {} {
            set runs [connect]
            $runs -send eval {redis.call('set', KEYS[1], 1)
                local function f() while redis.call('get', KEYS[1]) == '1' do pcall(f) end end
                pcall(f) return 'end'} 1 x
            set killer [connect]
            wait_for {![catch {$killer script kill} reply] || ![string match NOTBUSY* $reply]}
            assert_match UNKILLABLE* $reply
        }
    }
}
# Ends a server in which the script runs; gives its exit code and how many keys it had saved.
proc hostile_end {threads options script how} {
    set folder [fresh_dir]
    set port [free_port]
    set arguments [list --port $port --dir $folder --save "900 1" --server-threads $threads --min-clients-per-thread 1 \
        --busy-reply-threshold 50 {*}$options]
    set id [server_launch $arguments]
    wait_for {![catch {set runs [connect -port $port -tls 0]}]}
    set other [connect -port $port -tls 0]
    $other set before 1
    $runs -send eval $script 1 x
    wait_for {[string match "*Slow script detected*" [process_log $id]]}
    eval $how
    set code [process_wait $id]
    if {$code eq "running"} {
        process_signal $id KILL
        fail "the server does not end:\n[process_log $id]"
    }
    $runs -close
    $other -close
    set id [server_launch $arguments]
    wait_for {![catch {set other [connect -port $port -tls 0]}] && ![catch {$other dbsize} count]}
    $other -close
    process_stop $id
    return [list $code $count]
}

proc hostile_terminated {threads} {
    foreach {options} {{} {--appendonly yes}} {
        assert_equal {0 2} [hostile_end $threads $options {redis.call('set', KEYS[1], 1)
            local function f() while true do pcall(f) end end f()} {process_signal $id TERM}]
    }
}

proc hostile_shut_down {threads} {
    foreach script {{local function f() while true do pcall(f) end end f()}
                    {redis.call('set', KEYS[1], 1) while true do end}
                    {string.find(('a'):rep(100), ('a?'):rep(100) .. ('a'):rep(100))}} {
        assert_equal {0 0} [hostile_end $threads {} $script {$other -send shutdown nosave}]
    }
}

foreach threads {1 4} {
    test "SIGTERM ends a script, and what it has written is kept ($threads threads)" {noconn slow} \
        [list hostile_terminated $threads]
    test "SHUTDOWN NOSAVE ends a script ($threads threads)" {noconn slow} [list hostile_shut_down $threads]
}

test "SIGTERM ends a session of SCRIPT DEBUG SYNC" {noconn} {
    set port [free_port]
    set id [server_launch [list --port $port --save "" --server-threads 1 --event-loop epoll]]
    wait_for {![catch {set c [connect -port $port -tls 0]}]}
    assert_equal OK [$c script debug sync]
    $c -send eval "local a = 1\nreturn a" 0
    assert_match "*Stopped at 1*" [$c -read]
    process_signal $id TERM
    assert_equal 0 [process_wait $id]
    $c -close
}
