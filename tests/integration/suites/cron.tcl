# KEYDB.CRON: keys that have a script run at a time, or again and again.

proc now_ms {} {
    return [clock milliseconds]
}

# Nothing is due any more: a job made last has been run.
proc let_jobs_run {} {
    r keydb.cron cron:last single 0 1 {return 1}
    wait_for {[r exists cron:last] == 0}
}

proc journal_text {} {
    return [string map {\r\n { }} [r debug journal read]]
}

with_server {hz 100 enable-debug-command yes} {
    test "once: the script is run with keys and arguments, and the key goes" {keydb} {
        assert_reply {status OK} r keydb.cron job single 0 1 {
            redis.call('rpush', KEYS[1], KEYS[2], ARGV[1], ARGV[2], #KEYS, #ARGV)} 2 list "k\r\n" {} "\x00x"
        wait_for {[r exists job] == 0}
        assert_equal [list "k\r\n" {} "\x00x" 2 2] [r lrange list 0 -1]
        r keydb.cron job SINGLE 30 {redis.call('set', 'undeclared', redis.call('exists', 'job'))}
        wait_for {[r exists job] == 0}
        assert_equal 1 [r get undeclared]
        # in its own database
        r select 3
        r keydb.cron job single 1 {redis.call('set', KEYS[1], 3)} 1 x
        wait_for {[r exists job] == 0}
        assert_equal 3 [r get x]
        r select 0
        assert_equal {} [r get x]
    }

    test "again and again, at the times that its start says, those missed left out" {keydb} {
        r keydb.cron job repeat 0 1000000 {redis.call('incr', KEYS[1])} 1 n
        wait_for {[r get n] == 1}
        assert_range [r pttl job job] 990000 1000000
        set start [expr {[now_ms] - 100500}]
        r keydb.cron job Repeat $start 1000 {redis.call('incr', KEYS[1])} 1 n
        wait_for {[r get n] == 2}
        assert_range [r pttl job job] 1 1000
        let_jobs_run
        assert_equal 2 [r get n]
        r keydb.cron job repeat 20 {redis.call('incr', KEYS[1])} 1 n
        wait_for {[r get n] >= 6}
        r del job
        set n [r get n]
        let_jobs_run
        assert_equal $n [r get n]
    }

    test "a job is a key of a type of its own" {keydb} {
        r keydb.cron job repeat 100000 {return 1} 1 k arg
        assert_reply {status unknown} r type job
        assert_reply {bulk raw} r object encoding job
        assert_range [r memory usage job] 50 500
        assert_reply {int -1} r ttl job
        assert_reply {int 100} r ttl job job
        assert_range [r pttl job job] 90000 100000
        assert_reply {int -1} r ttl job other
        assert_reply {int 0} r persist job
        foreach command {{get job} {hget job f} {lpush job x} {append job x} {sadd job x} {keydb.nhget job.x}} {
            assert_error WRONGTYPE* {r {*}$command}
        }
        assert_error "ERR object type is unsupported" {r expiremember job job 10}
        set digest [r debug digest-value job]
        r copy job twin
        assert_equal $digest [r debug digest-value twin]
        r keydb.cron twin single 100000 {return 1} 1 k arg
        assert {[r debug digest-value twin] ne $digest}
        r keydb.cron twin repeat 100000 {return 1} 0 k arg
        assert {[r debug digest-value twin] ne $digest}
        assert_equal job [r command getkeys keydb.cron job repeat 1 s 1 x]
        r expire job 1000
        assert_range [r ttl job] 999 1000
        assert_range [r ttl job job] 99 100
        r set job x
        assert_reply {int -1} r ttl job job
        r keydb.cron job repeat 100000 {return 1}
        assert_reply {int -1} r ttl job
    }

    test "moved, copied, dumped and restored, a job goes on" {keydb} {
        set script {redis.call('incr', KEYS[1])}
        r keydb.cron job repeat 10 $script 1 n
        r rename job other
        wait_for {[r get n] > 2}
        r copy other third
        r del other n
        wait_for {[r get n] > 2}
        r move third 1
        r del n
        r select 1
        wait_for {[r get n] > 2}
        r swapdb 1 2
        r select 2
        r del n
        wait_for {[r get n] > 2}
        set payload [r dump third]
        r flushdb
        let_jobs_run
        assert_equal {} [r get n]
        r restore fourth 0 $payload
        wait_for {[r get n] > 2}
        r flushall
        let_jobs_run
        assert_equal 0 [r dbsize]
        r select 0
        # one that is to be run once stays that, and is due when it was
        r keydb.cron job single [expr {[now_ms] - 50000}] 100000 {redis.call('incr', KEYS[1])} 1 once
        set payload [r dump job]
        r del job
        r restore copy 0 $payload
        assert_range [r pttl copy copy] 40000 50000
        set value [string range $payload 0 [string first \xfa\x13 $payload]]
        assert_equal $value [string range [r dump copy] 0 [string length $value]-1]
        r keydb.cron copy single 1 $script 1 once
        set payload [r dump copy]
        wait_for {[r exists copy] == 0}
        r restore copy 0 $payload
        wait_for {[r exists copy] == 0}
        assert_equal 2 [r get once]
    }

    test "jobs are saved and loaded, with the time when each is due" {keydb} {
        r keydb.cron far repeat 1000000 {return 1} 2 a {} {} "\xff" x
        r keydb.cron once single [expr {[now_ms] + 1}] 50000 {return 1}
        r keydb.cron due repeat 15 {redis.call('incr', KEYS[1])} 1 n
        r debug set-active-expire 0
        foreach key {far once due} {
            lappend digests [r debug digest-value $key]
        }
        r debug reload
        foreach key {far once due} digest $digests {
            assert_equal $digest [r debug digest-value $key]
        }
        assert_range [r pttl far far] 990000 1000000
        assert_range [r pttl once once] 40000 50001
        r del n
        r debug set-active-expire 1
        wait_for {[r get n] > 1}
        r keydb.cron once single 0 1 {redis.call('incr', KEYS[1])} 1 m
        wait_for {[r exists once] == 0}
        assert_equal 1 [r get m]
    }

    test "what is refused" {keydb} {
        assert_refused "ERR syntax error" r keydb.cron job twice 1 s
        assert_refused "ERR missing expire time" r keydb.cron job single soon s
        assert_refused "ERR interval must be positive" r keydb.cron job single 0 s
        assert_refused "ERR interval must be positive" r keydb.cron job single 100 0 s
        assert_refused "ERR interval must be positive" r keydb.cron job single 100 -1 s
        assert_refused "ERR value is not an integer or out of range" r keydb.cron job single 100 s k
        assert_refused "ERR Missing arguments or numkeys is too big" r keydb.cron job single 100 s 1
        assert_refused "ERR Missing arguments or numkeys is too big" r keydb.cron job single 0 100 s 3 a b
        assert_refused "ERR Number of keys can't be negative" r keydb.cron job single 100 s -1 a
        assert_refused "ERR wrong number of arguments for 'keydb.cron' command" r keydb.cron job single 100
        assert_refused "ERR wrong number of arguments for 'keydb.cron' command" r keydb.cron job single 0 100
        assert_reply {int 0} r exists job
        r set job text
        assert_refused "ERR syntax error" r keydb.cron job twice 1 s
        assert_equal text [r get job]
        assert_reply {status OK} r keydb.cron job single 9223372036854775807 9223372036854775807 s
        assert_reply {status OK} r keydb.cron early repeat -9223372036854775808 1 {redis.call('set', KEYS[1], 1)} 1 x
        wait_for {[r get x] == 1}
        assert_range [r pttl early early] 0 1
        r keydb.cron nought single -1001 1000 {redis.call('set', KEYS[1], 1)} 1 y
        wait_for {[r exists nought] == 0}
        assert_equal 1 [r get y]
    }

    test "a job that takes itself away has ended, one that replaces itself goes on as the new one" {keydb} {
        r keydb.cron job repeat 1 {redis.call('incr', KEYS[1]) redis.call('del', KEYS[2])} 2 n job
        wait_for {[r exists job] == 0}
        assert_equal 1 [r get n]
        r keydb.cron job single 1 {
            redis.call('incr', KEYS[1])
            redis.call('keydb.cron', 'job', 'single', 100000, 'return 1')} 1 n
        wait_for {[r get n] == 2}
        let_jobs_run
        assert_reply {int 1} r exists job
        assert_range [r pttl job job] 90000 100000
        r keydb.cron job repeat 1 {redis.call('flushall') redis.call('set', KEYS[1], 'f')} 1 n
        wait_for {[r exists job] == 0}
        assert_equal f [r get n]
        # moves within a script, while others wait for what it makes
        set other [connect]
        $other -send blpop list 0
        wait_for {[info_field blocked_clients clients] == 1}
        r keydb.cron job single 1 {redis.call('rename', 'job', 'moved') redis.call('rpush', KEYS[1], 'x')} 1 list
        assert_equal {list x} [$other -read]
        wait_for {[r exists moved] == 0}
    }

    test "errors of the script are in the log, once, and the job goes on" {keydb} {
        r keydb.cron wrong repeat 5 {redis.call('incr', KEYS[1]) error('on purpose')} 1 n
        wait_for {[r get n] > 4}
        r del wrong
        assert_equal 1 [regexp -all {Job wrong of database 0 failed: -ERR [^\n]*on purpose} [slurp [srv log]]]
        r keydb.cron syntax single 1 {this is no Lua}
        wait_for {[r exists syntax] == 0}
        assert_match "*Job syntax of database 0 failed: -ERR Error compiling script*" [slurp [srv log]]
        assert_range [dict get [regsub -all {[,=]} [info_field cmdstat_eval commandstats] { }] failed_calls] 5 100000
    }

    test "one transaction in the journal: what the script did, and what becomes of the job" {keydb} {
        r debug set-active-expire 0
        r debug journal start
        r keydb.cron a single 5 {redis.call('incr', KEYS[1])} 1 n
        set text [journal_text]
        set start [lindex $text 13]
        assert_range $start [expr {[now_ms] - 10000}] [now_ms]
        assert_match "*keydb.cron*a*single*$start*5*redis.call('incr', KEYS?1?)*1*n*" $text
        r debug set-active-expire 1
        wait_for {[r exists a] == 0}
        set text [journal_text]
        assert_match "*MULTI*incr*n*DEL*a*EXEC*" $text
        assert {![string match -nocase *eval* $text]}
        r keydb.cron b repeat 1000 500000 {redis.call('incr', KEYS[1])} 1 n x
        wait_for {[r get n] == 2}
        set text [journal_text]
        set told {MULTI .*incr .* KEYDB.CRON .* b .* REPEAT \$13 (\d+) \$6 500000 .* 1 .* n .* x .*EXEC}
        assert {[regexp $told $text all start]}
        assert_equal 1000 [expr {$start % 500000}]
        assert_range [expr {[now_ms] - $start}] 0 500000
        # what a script without effects leaves is the job's own
        r keydb.cron b repeat 1000 500000 {return 1}
        wait_for {[string match *REPEAT* [journal_text]]}
        r keydb.cron c single 1 {return 1}
        wait_for {[r exists c] == 0}
        set text [journal_text]
        assert_match "*keydb.cron*DEL*c*" $text
        assert {![string match *MULTI* $text]}
        # the new start leaves the key's own deadline
        r debug set-active-expire 0
        r keydb.cron d repeat 1000 500000 {return 1}
        r pexpire d 5000000
        r debug set-active-expire 1
        wait_for {[string match *REPEAT*PEXPIREAT* [append text [journal_text]]]}
        assert_match "*MULTI*KEYDB.CRON*d*REPEAT*PEXPIREAT*d*[r pexpiretime d] *EXEC*" $text
        r debug journal stop
    }

    test "in transactions and scripts; watched" {keydb} {
        r multi
        r keydb.cron a single 1 {redis.call('incr', KEYS[1])} 1 n
        r exists a
        assert_equal {OK 1} [r exec]
        wait_for {[r get n] == 1}
        r eval {return redis.call('keydb.cron', KEYS[1], 'single', 1, 'redis.call("incr", KEYS[1])', 1, 'n')} 1 a
        wait_for {[r get n] == 2}
        r keydb.cron b repeat 5 {redis.call('incr', KEYS[1])} 1 n
        set other [connect]
        r watch b
        wait_for {[$other get n] > 3}
        r multi
        r ping
        assert_reply nullarray r exec
    }

    test "the event of a run is told whoever wants events by name" {keydb} {
        with_config {notify-keyspace-events E} {
            set other [connect -proto 3]
            $other subscribe "__keyevent@0__:CRON Executed"
            r keydb.cron job single 1 {return 1}
            assert_equal {message {__keyevent@0__:CRON Executed} job} [$other -read]
            $other subscribe __keyspace@0__:two
            r config set notify-keyspace-events EK
            r keydb.cron two single 1 {return 1}
            assert_equal {message __keyspace@0__:two {CRON Executed}} [$other -read]
            assert_equal {message {__keyevent@0__:CRON Executed} two} [$other -read]
        }
    }

    test "jobs rest while clients are paused, and while keys do not expire" {keydb} {
        r client pause 600000 write
        r debug set-active-expire 0
        r client unpause
        r keydb.cron job single 0 1 {redis.call('set', KEYS[1], 1)} 1 x
        # ten turns of the timer that runs jobs
        assert_reply nullarray r xread block 100 streams none $
        assert_reply {int 1} r exists job
        r client pause 600000 write
        r debug set-active-expire 1
        assert_reply nullarray r xread block 100 streams none $
        assert_reply {int 1} r exists job
        r client unpause
        wait_for {[r exists job] == 0}
        assert_equal 1 [r get x]
    }

    test "only who may do everything makes jobs" {keydb} {
        r acl setuser maker on nopass ~* &* +@all -flushall
        r keydb.cron job single 100000 {return 1}
        set payload [r dump job]
        set other [connect]
        $other auth maker x
        assert_error "NOPERM A job runs with all permissions*" {$other keydb.cron a single 1 {return 1}}
        assert_error "NOPERM A job runs with all permissions*" {$other restore a 0 $payload}
        assert_error "*NOPERM A job*" {$other eval {return redis.call('keydb.cron', 'a', 'single', 1, 's')} 0}
        assert_reply {int 0} r exists a
        assert_reply {int 1} $other del job
        r acl setuser maker +flushall
        assert_reply {status OK} $other restore a 0 $payload
        r acl deluser maker
    }

    test "many jobs at once, on all threads, among others' commands" {keydb} {
        set clients [lmap i {1 2 3 4} {connect}]
        for {set i 0} {$i < 400} {incr i} {
            set key n:[expr {$i % 7}]
            r keydb.cron job:$i single 1 {redis.call('incr', KEYS[1]) redis.call('incr', 'undeclared')} 1 $key
            foreach client $clients {
                $client -send incr other:$i
                $client -send eval {return redis.call('incr', KEYS[1])} 1 $key
            }
        }
        foreach client $clients {
            for {set i 0} {$i < 800} {incr i} {
                $client -read
            }
        }
        wait_for {[r get undeclared] == 400}
        set sum 0
        for {set i 0} {$i < 7} {incr i} {
            incr sum [r get n:$i]
        }
        assert_equal 2000 $sum
        assert_equal 0 [llength [r keys job:*]]
    }
}

with_server {hz 100 busy-reply-threshold 50} {
    test "a job that does not end is slow like any script, and is killed like one" {keydb} {
        set others [lmap i {1 2 3 4 5 6} {connect}]
        r keydb.cron endless repeat 1 {while true do end} 1 x
        foreach other $others {
            set seen {}
            wait_for {[catch {$other get x} seen] && [string match BUSY* $seen]}
        }
        assert_equal OK [[lindex $others 1] script kill]
        wait_for {![catch {r del endless}]}
        foreach other $others {
            wait_for {![catch {$other get x} seen]}
        }
        assert_match "*Job endless of database 0 failed*Script killed*" [slurp [srv log]]
    }
}

with_server {hz 100 enable-debug-command yes} {
    test "a job of KeyDB's file, which does not say how often it is to be run, repeats" {keydb} {
        set text {text {return [binary format c [string length $text]]$text}}
        set key "\x40[apply $text job][apply $text {redis.call('incr', KEYS[1])}][binary format ww 1000 100000]"
        append key \x01[apply $text n]\x01[apply $text a]
        append key \xfa[apply $text keydb-subexpire-key][apply $text job]
        append key \xfa[apply $text keydb-subexpire-when][apply $text [expr {[now_ms] + 70000}]]
        spit [srv dir]/dump.rdb "REDIS0009\xfe\x00$key\xff[string repeat \0 8]"
        assert_equal OK [r debug reload nosave]
        assert_range [r pttl job job] 60000 70000
        r debug set-active-expire 0
        set early [string map [list [binary format ww 1000 100000] [binary format ww 1000 0]] $key]
        spit [srv dir]/dump.rdb "REDIS0009\xfe\x00$early\xff[string repeat \0 8]"
        assert_error "ERR Error trying to load*" {r debug reload nosave}
        set key [string range $key 0 [string first \xfa $key]-1]
        spit [srv dir]/dump.rdb "REDIS0009\xfe\x00$key\xff[string repeat \0 8]"
        assert_equal OK [r debug reload nosave]
        r debug set-active-expire 1
        wait_for {[r get n] == 1}
        assert_range [r pttl job job] 1 100000
    }
}

foreach preamble {yes no} {
    with_server [list hz 100 appendonly yes aof-use-rdb-preamble $preamble enable-debug-command yes] {
        test "jobs from the append only file go on where they stood (with a base in RDB: $preamble)" {keydb} {
            set script {redis.call('incr', KEYS[1])}
            r keydb.cron often repeat 20 $script 1 n
            r keydb.cron once single 1 $script 1 m
            r keydb.cron far repeat 0 1000000 $script 1 f
            r keydb.cron later single [expr {[now_ms] - 1}] 500000 $script 1 l
            wait_for {[r get n] > 3 && [r get m] == 1 && [r get f] == 1}
            foreach rewritten {0 1} {
                if {$rewritten} {
                    r bgrewriteaof
                    wait_for {[info_field aof_rewrite_in_progress persistence] == 0}
                    wait_for {[info_field aof_rewrite_scheduled persistence] == 0}
                }
                r debug set-active-expire 0
                set digest [r debug digest]
                set far [r pttl far far]
                r debug loadaof
                assert_equal $digest [r debug digest]
                assert_equal {1 1 0} [list [r get m] [r get f] [r exists once]]
                assert_range [r pttl far far] [expr {$far - 60000}] $far
                assert_range [r pttl later later] 400000 500000
                set n [r get n]
                r debug set-active-expire 1
                wait_for {[r get n] > $n + 1}
                assert_equal 1 [r get f]
            }
        }
    }
}

set commands [fresh_dir]/commands.conf
spit $commands "rename-command EVAL \"\"\n"
with_server [list include $commands] {
    test "where EVAL was taken away there are no jobs" {keydb} {
        assert_refused "ERR EVAL is disabled by rename-command, so jobs cannot run" r keydb.cron job single 1 {return 1}
        assert_reply {int 0} r exists job
    }
}
