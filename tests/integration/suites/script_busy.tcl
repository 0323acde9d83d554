# A script that runs too long, from every client's side.
foreach threads {1 4} {
    with_server [list server-threads $threads busy-reply-threshold 50] {
        test "a slow script: others get -BUSY, SCRIPT KILL ends it ($threads threads)" {} {
            foreach script {{while true do end} {while true do pcall(function() while true do end end) end}
                            {while true do redis.pcall('get', 'x') end}
                            {local f = coroutine.wrap(function() while true do end end) while true do pcall(f) end}} {
                set runs [connect]
                set others [lmap i {1 2 3 4 5 6} {connect}]
                $runs -send eval $script 1 x
                wait_for {![catch {r script kill} reply] || ![string match NOTBUSY* $reply]}
                assert_error "*Script killed by user with SCRIPT KILL*" {$runs -read}
                foreach c $others {
                    assert_equal PONG [$c ping]
                }
                $runs -send eval $script 1 x
                wait_for {[catch {r get x} reply] && [string match BUSY* $reply]}
                foreach c $others {
                    assert_error "BUSY*" {$c get x}
                    assert_error "BUSY*" {$c flushall}
                    assert_error "BUSY*" {$c eval {return redis.call('get', 'x')} 0}
                    $c multi
                    catch {$c get x}
                    assert_equal OK [$c discard]
                }
                $runs -send get after
                assert_error "BUSY*" {[lindex $others 3] function kill}
                assert_equal OK [[lindex $others 2] script kill]
                assert_error "*Script killed*" {$runs -read}
                assert_equal {} [$runs -read]
                foreach c $others {
                    assert_equal OK [$c set x 1]
                    $c -close
                }
                assert_error NOTBUSY* {r script kill}
            }
        }

        test "a script that has written is not killed ($threads threads)" {} {
            set runs [connect]
            $runs -send eval {redis.call('set', KEYS[1], 1)
                while redis.call('exists', KEYS[1]) == 1 do
                    if #redis.sha1hex('x') == 40 and redis.call('incr', KEYS[1]) > 300000 then break end
                end return 'end'} 1 x
            wait_for {![catch {r script kill} reply] || [string match UNKILLABLE* $reply]}
            assert_match UNKILLABLE* $reply
            assert_equal end [$runs -read]
            assert_equal PONG [r ping]
        }

        test "a slow function, and FUNCTION STATS ($threads threads)" {} {
            r function load "#!lua name=slow\nredis.register_function('slow', function() while true do end end)"
            set runs [connect]
            $runs -send fcall slow 1 k v
            wait_for {[catch {dict get [r function stats] running_script} running] || $running ne {}}
            assert_match {name slow command {fcall slow 1 k v} duration_ms *} $running
            assert_error BUSY* {r script kill}
            assert_equal OK [r function kill]
            assert_error "*Script killed*" {$runs -read}
            r function flush
        }
    }
}
# Ends a server in the middle of a script: the append only file has all of what it does.
proc script_not_cut {how} {
    set folder [fresh_dir]
    set port [free_port]
    set arguments [list --port $port --dir $folder --save "" --appendonly yes --server-threads 4 \
        --min-clients-per-thread 1 --busy-reply-threshold 60000]
    set id [server_launch $arguments]
    wait_for {![catch {set other [connect -port $port -tls 0]}]}
    set runs [connect -port $port -tls 0] ;# of another thread than the first, which a signal reaches
    $runs -send eval {redis.call('set', KEYS[1], 1)
        redis.log(redis.LOG_WARNING, 'half of it')
        local began = os.clock()
        while os.clock() - began < 0.3 do end
        redis.call('set', KEYS[2], 1)} 2 first second
    wait_for {[string match "*half of it*" [process_log $id]]}
    eval $how
    assert_equal 0 [process_wait $id]
    $runs -close
    $other -close
    set id [server_launch $arguments]
    wait_for {![catch {set other [connect -port $port -tls 0]}] && ![catch {$other exists first second} count]}
    $other -close
    process_stop $id
    assert_equal 2 $count
}

test "SHUTDOWN NOSAVE while a script runs" {} {
    set port [free_port]
    set id [server_launch [list --port $port --busy-reply-threshold 50 --save "" \
        {*}[expr {$::is_oracle ? {} : {--server-threads 1}}]]]
    wait_for {[string match "*Ready to accept connections*" [process_log $id]]}
    set runs [connect -port $port -tls 0]
    set ends [connect -port $port -tls 0]
    $runs -send eval {redis.call('set', KEYS[1], 1) while true do end} 1 x
    wait_for {![catch {$ends script kill} reply] || [string match UNKILLABLE* $reply]}
    $ends -send shutdown nosave
    assert_equal 1 [$runs -closed 10000]
    assert_equal 0 [process_wait $id]
}

foreach how {{process_signal $id TERM} {$other -send shutdown nosave}} {
    test "a script that is not slow comes to its end before the server: [lindex $how 2]" {noconn keydb} \
        [list script_not_cut $how]
}
