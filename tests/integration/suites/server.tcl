# Start, configuration file, signals, SHUTDOWN, DEBUG.

# Starts a server that ought to refuse, returns {code output}.
proc refused_start {arguments {input /dev/null}} {
    set id [server_launch $arguments $input]
    set code [process_wait $id]
    return [list $code [process_log $id]]
}

# Starts a server that ought to run, on a port of its own; returns its process and a connection.
proc started {arguments {input /dev/null}} {
    set port [free_port]
    set id [server_launch [concat $arguments [list --port $port --save "" {*}[thread_args]]] $input]
    wait_for_port $id $port
    return [list $id [connect -port $port -tls 0]]
}

proc wait_for_port {id port} {
    wait_until {![process_alive $id] || ![catch {[connect -port $port -tls 0] -typed ping}]} 15000
    if {![process_alive $id]} {
        fail "the server ended:\n[process_log $id]"
    }
}

proc fatal {line directive text} {
    return "*\n\\*\\*\\* FATAL CONFIG FILE ERROR ($::product *) \\*\\*\\*\nReading the configuration file, at line\
        $line\n>>>\
        '$directive'\n$text\n*"
}

test "--version and --help" {noconn} {
    assert_match "$::product server v=* sha=*:* malloc=* bits=64 build=*" [exec $::settings(server) -v]
    assert_equal [exec $::settings(server) -v] [exec $::settings(server) --version]
    assert_equal 1 [catch {exec $::settings(server) --help 2>@1} text]
    assert_match "*Usage: *" $text
}

test "a wrong line of the configuration file is named" {noconn} {
    set dir [fresh_dir]
    set path [spit $dir/test.conf "# comment\n\nport 0\nsave \"\"\n\n# more\nmaxmemory nonsense\nhz 10\n"]
    lassign [refused_start [list $path]] code text
    assert_equal 1 $code
    assert_match [fatal 7 "maxmemory nonsense" "argument must be a memory value"] \n$text
}

test "kinds of errors in a configuration file" {noconn} {
    set dir [fresh_dir]
    foreach {line text} {
        "nonsense 1"            "Bad directive or wrong number of arguments"
        "hz"                    "wrong number of arguments"
        "hz 1 2"                "wrong number of arguments"
        "hz x"                  "argument couldn't be parsed into an integer"
        "port 65536"            "argument must be between 0 and 65535 inclusive"
        "daemonize maybe"       "argument must be 'yes' or 'no'"
        "hz \"10"               "Unbalanced quotes in configuration line"
        "supervised maybe"      "argument(s) must be one of the following: upstart, systemd, auto, no"
        "unixsocketperm 999"    "argument couldn't be parsed as an octal number"
        "databases 0"           "argument must be between 1 and 2147483647 inclusive"
    } {
        lassign [refused_start [list [spit $dir/test.conf "port 0\nsave \"\"\n$line\n"]]] code output
        assert_equal 1 $code $line
        assert_match [fatal 3 $line $text] \n$output
    }
}

test "a wrong option of the command line" {noconn} {
    lassign [refused_start {--nonsense 1}] code text
    assert_equal 1 $code
    assert_match [fatal 2 {nonsense "1"} "Bad directive or wrong number of arguments"] \n$text
    lassign [refused_start {--port 0 --hz x}] code text
    assert_equal 1 $code
    assert_match [fatal 3 {hz "x"} "argument couldn't be parsed into an integer"] \n$text
}

test "a missing configuration file" {noconn} {
    lassign [refused_start {/nowhere/test.conf}] code text
    assert_equal 1 $code
    assert_match "*Fatal error, can't open config file '/nowhere/test.conf': No such file or directory*" $text
}

test "a configuration file, standard input and options, the last one wins" {noconn} {
    set dir [fresh_dir]
    set path [spit $dir/test.conf "hz 11\n  maxmemory   1mb  \r\ntimeout 5\n\tmaxclients 100\nTCP-KEEPALIVE 7\n"]
    set input [spit $dir/stdin "timeout 6\nmaxclients 200\n"]
    set port [free_port]
    set id [server_launch [list $path --maxclients 300 {*}[thread_args] --port $port --save "" -] $input]
    wait_for_port $id $port
    set c [connect -port $port -tls 0]
    foreach {name value} {hz 11 maxmemory 1048576 timeout 6 tcp-keepalive 7 maxclients 300} {
        assert_equal [list $name $value] [$c config get $name]
    }
    assert_equal 0 [process_stop $id]
}

test "configuration from standard input" {noconn} {
    set dir [fresh_dir]
    set port [free_port]
    set threads [expr {$::is_oracle ? {} : "server-threads $::settings(threads)\n"}]
    set input [spit $dir/stdin "port $port\nsave \"\"\nhz 33\nrequirepass \"a b\\x41\"\n$threads"]
    set id [server_launch - $input]
    wait_for_port $id $port
    set c [connect -port $port -tls 0]
    assert_equal OK [$c auth "a bA"]
    assert_equal {hz 33} [$c config get hz]
}

test "standard input that cannot be read ends the start" {noconn keydb} {
    set id [server_launch [list --port [free_port] -] [fresh_dir]] ;# a folder
    assert_equal 1 [process_wait $id]
    assert_match "*Fatal error, can't read config from stdin: Is a directory*" [process_log $id]
}

test "quoting in a configuration file" {noconn} {
    set dir [fresh_dir]
    set path [spit $dir/test.conf "requirepass 'it\\'s \"me\"'\nproc-title-template \"{title} \\\"x\\\" \\x41\"\n"]
    lassign [started [list $path]] id c
    assert_equal OK [$c auth "it's \"me\""]
    assert_equal [list proc-title-template "{title} \"x\" A"] [$c config get proc-title-template]
}

test "include" {noconn} {
    set dir [fresh_dir]
    spit $dir/one.conf "hz 21\n"
    spit $dir/two.inc "timeout 9\n"
    set path [spit $dir/test.conf "hz 5\ninclude $dir/one.conf\ninclude $dir/*.inc\ninclude $dir/*.none\n"]
    lassign [started [list $path]] id c
    assert_equal {hz 21 timeout 9} [concat [$c config get hz] [$c config get timeout]]
    assert_equal [file normalize $path] [lindex [regexp -inline {config_file:([^\r]*)} [$c info server]] 1]
    lassign [refused_start [list [spit $dir/bad.conf "include $dir/none.conf\n"]]] code text
    assert_equal 1 $code
    assert_match "*can't open config file '$dir/none.conf': No such file or directory*" $text
}

test "options in one word" {noconn} {
    lassign [started {"--hz 17" "--maxmemory 2mb"}] id c
    assert_equal {hz 17 maxmemory 2097152} [concat [$c config get hz] [$c config get maxmemory]]
}

test "SIGTERM and SIGINT end the server in order" {noconn} {
    foreach signal {TERM INT} {
        lassign [started {}] id c
        $c set k v
        process_signal $id $signal
        assert_equal 0 [process_wait $id]
        assert {[$c -closed]}
        assert_match "*[expr {$signal eq "TERM" ? "SIGTERM" : "SIGINT"}]*ready to exit, bye bye*" [process_log $id]
    }
}

test "the start is logged in the usual form" {noconn} {
    lassign [started {}] id c
    set log [process_log $id]
    assert_match "*Ready to accept connections*" $log
    assert {[regexp -line {^\d+(:\d+)?:M \d\d [A-Z][a-z][a-z] \d{4} \d\d:\d\d:\d\d\.\d{3} [-*.#] .*Ready to accept} \
        $log]}
}

test "logfile, loglevel and pidfile" {noconn} {
    set dir [fresh_dir]
    lassign [started [list --logfile $dir/out.log --pidfile $dir/server.pid --loglevel warning]] id c
    assert_equal [process_pid $id] [string trim [slurp $dir/server.pid]]
    assert {![string match "*Ready to accept*" [slurp $dir/out.log]]}
    $c config set loglevel notice
    assert_equal 0 [process_stop $id]
    assert_match "*bye bye*" [slurp $dir/out.log]
    assert {![file exists $dir/server.pid]}
}

test "SHUTDOWN in its forms" {noconn} {
    foreach words {{} nosave {NOSAVE NOW} {nosave force} now} {
        lassign [started {}] id c
        $c -send shutdown {*}$words
        assert {[$c -closed]}
        assert_equal 0 [process_wait $id] $words
    }
}

test "who sends SHUTDOWN sees the end when files are as they remain" {noconn} {
    set dir [fresh_dir]
    foreach method {threads fork} {
        set words [expr {$::is_oracle ? {} : [list --snapshot-method $method]}]
        lassign [started [list --dir $dir --pidfile $dir/server.pid {*}$words]] id c
        for {set i 0} {$i < 20} {incr i} {
            $c set k$i $i
        }
        $c config set rdb-key-save-delay 500000
        $c bgsave
        wait_for {[llength [glob -nocomplain $dir/temp-*]] == 1}
        $c -send shutdown nosave
        assert {[$c -closed]}
        assert_equal {} [glob -nocomplain $dir/temp-* $dir/server.pid] $method
        assert_match "*bye bye*" [process_log $id]
        assert_equal 0 [process_wait $id]
    }
}

test "what SHUTDOWN refuses" {noconn} {
    lassign [started {}] id c
    assert_refused "ERR syntax error" $c shutdown foo
    assert_refused "ERR syntax error" $c shutdown save nosave
    assert_refused "ERR syntax error" $c shutdown abort now
    assert_refused "ERR No shutdown in progress." $c shutdown abort
    assert_equal PONG [$c ping]
}

test "SHUTDOWN with many clients, working and idle" {noconn} {
    lassign [started {}] id c
    set port [lindex [$c config get port] 1]
    set clients {}
    for {set i 0} {$i < 50} {incr i} {
        set other [connect -port $port -tls 0]
        $other -send set k$i [string repeat x 10000]
        lappend clients $other
    }
    $c -send shutdown nosave
    assert_equal 0 [process_wait $id]
    foreach other $clients {
        assert {[$other -closed]}
    }
}

test "the server ends while clients write as fast as they can" {noconn} {
    lassign [started {}] id c
    set port [lindex [$c config get port] 1]
    for {set i 0} {$i < 8} {incr i} {
        set other [connect -port $port -tls 0]
        for {set j 0} {$j < 2000} {incr j} {
            $other -send incr n$j
        }
    }
    process_signal $id TERM
    assert_equal 0 [process_wait $id]
}

proc time_of script {
    set begin [clock milliseconds]
    uplevel 1 $script
    return [expr {[clock milliseconds] - $begin}]
}

with_server {enable-debug-command yes} {
    test "DEBUG SLEEP" {} {
        set begin [clock milliseconds]
        assert_reply {status OK} r debug sleep 0.2
        assert_range [expr {[clock milliseconds] - $begin}] 199 5000
        assert_reply {status OK} r debug sleep 0
    }

    test "DEBUG SLEEP in a script and in a transaction" {} {
        r debug set-disable-deny-scripts 1
        assert_reply {status OK} r eval {return redis.call('debug', 'sleep', '0.01')} 1 k
        assert_reply {status OK} r eval {redis.call('set', KEYS[1], 1) return redis.call('debug', 'sleep', '0.01')} 1 k
        r debug set-disable-deny-scripts 0
        r multi
        r set k 2
        r debug sleep 0.01
        assert_equal {OK OK} [r exec]
        assert_equal 2 [r get k]
    }

    test "DEBUG SLEEP stops the whole server" {} {
        set sleeper [connect]
        for {set i 0} {$i < 6} {incr i} {
            set c [connect]
            $sleeper -send debug sleep 0.2
            wait_for {[time_of {$c ping}] >= 100}
            assert_equal OK [$sleeper -read]
        }
    }

    # As with one thread, which looks at who has written before it answers anybody.
    test "what came during DEBUG SLEEP is done before the first answer" {} {
        set sleeper [connect]
        for {set i 0} {$i < 6} {incr i} {
            set c [connect]
            set probe [connect -timeout 50]
            $sleeper -send debug sleep 0.5
            wait_for {[catch {$probe ping}]}
            $c -send set order $i
            set took [time_of {r ping}]
            if {$took >= 100} { # else the probe was slow for some other reason
                assert_equal $i [r get order]
            }
            assert_equal OK [$sleeper -read]
            assert_equal OK [$c -read]
        }
    }

    test "DEBUG OBJECT" {} {
        r set k 12345
        assert_match "Value at:* refcount:* encoding:int serializedlength:* lru:* lru_seconds_idle:*" [r debug object k]
        assert_equal status [lindex [r -typed debug object k] 0]
        r set k [string repeat x 100]
        assert_match "*encoding:raw*" [r debug object k]
        assert_refused "ERR no such key" r debug object none
    }

    test "DEBUG DIGEST tells data apart, and only data" {} {
        assert_reply {status 0000000000000000000000000000000000000000} r debug digest
        r mset a 1 b 2
        set digest [r debug digest]
        assert {[regexp {^[0-9a-f]{40}$} $digest]}
        assert_equal $digest [r debug digest]
        r flushall
        r set b 2
        r set a 1
        assert_equal $digest [r debug digest]
        r set a 2
        assert {[r debug digest] ne $digest}
        r set a 1
        r select 1
        r set a 1
        assert {[r debug digest] ne $digest}
        r del a
        assert_equal $digest [r debug digest]
        r select 0
        r expire a 1000
        assert {[r debug digest] ne $digest}
    }

    test "DEBUG JMAP" {keydb} {
        # Builds for sanitizers have the C library's allocator, which has nothing to tell.
        if {[string match "*malloc=jemalloc*" [exec $::settings(server) -v]]} {
            assert_match "*jemalloc*" [r debug jmap]
        } else {
            assert_match "Stats not supported*" [r debug jmap]
        }
    }

    test "DEBUG SET-ACTIVE-EXPIRE" {} {
        assert_reply {status OK} r debug set-active-expire 0
        assert_reply {status OK} r debug set-active-expire 1
    }

    test "DEBUG: errors and help" {} {
        set refused [r -typed debug nonsense]
        assert_equal error [lindex $refused 0]
        assert_match "ERR unknown subcommand or wrong number of arguments for 'nonsense'. Try DEBUG HELP." \
            [lindex $refused 1]
        assert_match "DEBUG <subcommand> *" [lindex [r debug help] 0]
    }
}

with_server {} {
    test "DEBUG has to be allowed" {} {
        assert_refused "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can\
            run it\
            from a local connection, otherwise you need to set this option in the configuration file, and then\
            restart the\
            server." r debug sleep 0
    }

    test "what is not allowed is not queued either" {} {
        r multi
        assert_match "ERR DEBUG command not allowed.*" [lindex [r -typed debug sleep 0] 1]
        assert_refused "EXECABORT Transaction discarded because of previous errors." r exec
    }
}

with_server {requirepass secret} {
    test "that DEBUG is not allowed is said before a password is asked for" {} {
        set c [connect]
        assert_match "ERR DEBUG command not allowed.*" [lindex [$c -typed debug sleep 0] 1]
        assert_refused "ERR wrong number of arguments for 'debug' command" $c debug
        assert_refused "NOAUTH Authentication required." $c ping
    }
}

with_server {enable-debug-command local} {
    test "DEBUG for local connections" {} {
        assert_reply {status OK} r debug sleep 0
    }
}

with_server {maxmemory 6mb} {
    test "maxmemory without a policy refuses writes, not reads" {} {
        r config set maxmemory [expr {[info_field used_memory memory] + 3000000}]
        r set small v
        set refused 0
        for {set i 0} {$i < 200 && !$refused} {incr i} {
            set reply [r -typed set k$i [string repeat x 50000]]
            set refused [expr {[lindex $reply 0] eq "error"}]
        }
        assert_equal {error {OOM command not allowed when used memory > 'maxmemory'.}} $reply
        assert_reply {bulk v} r get small
        assert_reply {int 1} r del small
        # A bit less, so that what one request more or less takes does not matter.
        r config set maxmemory [expr {[info_field used_memory memory] - 500000}]
        r multi
        assert_refused "OOM command not allowed when used memory > 'maxmemory'." r set k v
        assert_refused "EXECABORT Transaction discarded because of previous errors." r exec
        r flushall
        assert_reply {status OK} r set k v
    }

    test "EXEC is refused when memory is short and a queued command may need some" {keydb} {
        set used [info_field used_memory memory]
        foreach {queued answer} {
            {set k v} {error {EXECABORT Transaction discarded because of: OOM command not allowed when used memory >\
                'maxmemory'.}}
            {get k} {array {{bulk v}}}
        } {
            r config set maxmemory 0
            r set k v
            r multi
            r {*}$queued
            [connect] config set maxmemory 1
            assert_equal [join $answer] [join [r -typed exec]]
            assert_refused "ERR EXEC without MULTI" r exec
            r multi
            assert_reply {status QUEUED} r get k
            assert_refused "OOM command not allowed when used memory > 'maxmemory'." r incr n
            assert_reply {status OK} r discard
            assert_reply {bulk v} r get k
        }
        assert_refused "OOM command not allowed when used memory > 'maxmemory'." r incr n
        r config set maxmemory [expr {$used + 100000000}]
        assert_reply {int 1} r incr n
        r config set maxmemory 0
    }
}
