# The process: words of the command line, crash reports, the watchdog, title, scores, processors, pid file, ports.

proc process_server {args} {
    set port [free_port]
    set id [server_launch [concat [list --port $port --save "" --enable-debug-command yes] [thread_args] $args]]
    wait_until {![process_alive $id] || ![catch {[connect -port $port -tls 0] -typed ping}]} 15000
    if {![process_alive $id]} {
        fail "the server ended:\n[process_log $id]"
    }
    return [list $id [connect -port $port -tls 0]]
}

proc command_line id {
    set file [open /proc/[process_pid $id]/cmdline rb]
    set text [read $file]
    close $file
    return [string trimright $text "\0 "]
}

proc oom_score id {
    return [string trim [slurp /proc/[process_pid $id]/oom_score_adj]]
}

proc run_words {args} {
    set code [catch {exec $::settings(server) {*}$args < /dev/null 2>@1} text details]
    if {$code} {
        set code [lindex [dict get $details -errorcode] 2]
    }
    return [list $code $text]
}

test "words that end the program at once" {noconn} {
    lassign [run_words --test-memory 1] code text
    assert_equal 0 $code
    assert_match "*our memory passed this test*" $text
    lassign [run_words --test-memory] code text
    assert_equal 1 $code
    assert_match "*Please specify the amount of memory to test in megabytes.*" $text
    lassign [run_words --check-system] code text
    foreach name {slow-clocksource xen-clocksource overcommit THP} {
        assert_match "*\\\[$name\\]...*" $text
    }
    assert_equal [string match *WARNING:* $text] $code
}

test "programs that are not part of this build say so" {noconn keydb} {
    foreach {word} {--sentinel --is-flash-enabled} {
        lassign [run_words $word] code text
        assert_equal 1 $code $word
    }
    set link [fresh_dir]/redis-sentinel
    file link -symbolic $link [file normalize $::settings(server)]
    assert_equal 1 [catch {exec $link 2>@1} text]
    assert_match "Sentinel is not part of this build.*" $text
    set link [fresh_dir]/redis-server
    file link -symbolic $link [file normalize $::settings(server)]
    assert_match "KeyDB server v=*" [exec $link --version]
}

test "a memory test needs a size" {noconn keydb} {
    foreach size {x 0 -1 1x {}} {
        lassign [run_words --test-memory $size] code text
        assert_equal 1 $code
        assert_match "*Please specify the amount of memory to test in megabytes.*" $text
    }
}

test "directives for parts that are not there" {noconn keydb} {
    foreach {line text} {
        "loadmodule /nowhere.so"  "Modules are not part of this build"
        "user"                    "Bad directive or wrong number of arguments"
        "user a on bogus"         "Error in user declaration 'a': Syntax error"
        "module.option 1"         "Module configuration given*"
        "sentinel myid x"         "sentinel directive while not in sentinel mode"
        "storage-provider flash /x" "Values on flash are not part of this build"
        "rename-command get"      "Bad directive or wrong number of arguments"
        "rename-command foo bar"  "No such command in rename-command"
    } {
        set id [server_launch [list [spit [fresh_dir]/test.conf "port 0\n$line\n"]]]
        assert_equal 1 [process_wait $id] $line
        assert_match "*at line 2\n>>> '$line'\n$text*" [process_log $id]
    }
}

test "the title of the process" {noconn} {
    lassign [process_server --bind 127.0.0.1] id c
    set port [dict get [$c config get port] port]
    assert_match "*127.0.0.1:$port" [command_line $id]
    assert_equal OK [$c config set proc-title-template "{port}-{tls-port}-{config-file}-x"]
    assert_equal "$port-0---x" [lindex [split [command_line $id] \0] 0]
    assert_error "*template format is invalid or contains unknown variables" {
        $c config set proc-title-template "{nonsense}"
    }
    lassign [process_server --set-proc-title no] id c
    assert_match "*--set-proc-title*no*" [command_line $id]
}

test "oom-score-adj, relative, absolute, and put back" {noconn} {
    lassign [process_server] id c
    set base [oom_score $id]
    assert_equal OK [$c config set oom-score-adj yes oom-score-adj-values "3 200 800"]
    assert_equal [expr {$base + 3}] [oom_score $id]
    assert_equal OK [$c config set oom-score-adj absolute]
    assert_equal 3 [oom_score $id]
    assert_equal OK [$c config set oom-score-adj-values "700 800 900"]
    assert_equal 700 [oom_score $id]
    assert_equal OK [$c replicaof 127.0.0.1 1]
    assert_equal 800 [oom_score $id]
    assert_equal OK [$c replicaof no one]
    assert_equal 700 [oom_score $id]
    assert_error "*elements must be between -2000 and 2000." {$c config set oom-score-adj-values "1 2 2001"}
    assert_error "*wrong number of arguments*" {$c config set oom-score-adj-values "1 2"}
    assert_equal 700 [oom_score $id]
    assert_equal OK [$c config set oom-score-adj no]
    assert_equal $base [oom_score $id]
    lassign [process_server --oom-score-adj absolute --oom-score-adj-values "44 200 800"] id c
    assert_equal 44 [oom_score $id]
}

# The processors each thread may use, by the thread's name.
proc thread_cpus id {
    set found {}
    foreach folder [glob /proc/[process_pid $id]/task/*] {
        regexp {Cpus_allowed_list:\s*(\S+)} [slurp $folder/status] -> cpus
        dict set found [string trim [slurp $folder/comm]] $cpus
    }
    return $found
}

test "lists of processors bind threads" {noconn keydb} {
    lassign [process_server --server-cpulist 0 --server-threads 2] id c
    assert_equal 0 [dict get [thread_cpus $id] worker-1]
    lassign [process_server --bio-cpulist 0 --server-threads 2] id c
    assert_equal 0 [dict get [thread_cpus $id] background]
    assert_equal [lindex [regexp -inline {Cpus_allowed_list:\s*(\S+)} [slurp /proc/self/status]] 1] \
        [dict get [thread_cpus $id] worker-1]
    lassign [process_server --bgsave-cpulist 0 --rdb-key-save-delay 100000 --snapshot-method fork] id c
    $c debug populate 100
    $c bgsave
    wait_for {![catch {exec pgrep -P [process_pid $id]} pid]}
    wait_for {[lindex [regexp -inline {Cpus_allowed_list:\s*(\S+)} [slurp /proc/$pid/status]] 1] eq "0"}
    lassign [process_server --bgsave-cpulist 0 --rdb-key-save-delay 100000 --snapshot-method threads] id c
    $c debug populate 100
    $c bgsave
    wait_for {[dict exists [thread_cpus $id] snapshot] && [dict get [thread_cpus $id] snapshot] eq "0"}
    foreach bad {x 1- 3-1 0,, 0-3:0 9999} {
        set other [server_launch [list --port 0 --server_cpulist $bad]]
        assert_equal 1 [process_wait $other] $bad
        assert_match "*Invalid list of processors*" [process_log $other]
    }
}

test "the pid file holds the number and goes with the server" {noconn} {
    set path [fresh_dir]/server.pid
    lassign [process_server --pidfile $path] id c
    wait_for {[file exists $path]}
    assert_equal [process_pid $id] [string trim [slurp $path]]
    assert_equal 0 [process_stop $id]
    assert {![file exists $path]}
}

# A daemon is no child of ours: whatever becomes of the test, it is gone afterwards, and it gets no descriptor of ours
# (a lock that somebody above us holds, say).
proc with_daemon {dir port body} {
    exec sh -c {exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec "$0" "$@"} $::settings(server) --port $port \
        --daemonize yes --pidfile $dir/pid --logfile $dir/log --save "" --dir $dir {*}[thread_args] \
        </dev/null >@stderr 2>@1
    try {
        uplevel 1 $body
    } finally {
        # The log knows its number first: each line begins with it. The start's own process has ended by now.
        wait_until {[regexp -line {^(\d+):.* Server initialized} [slurp $dir/log] -> pid]} 15000
        if {[info exists pid]} {
            catch {exec kill -TERM $pid}
            if {![wait_until {![file exists /proc/$pid]} 15000]} {
                catch {exec kill -KILL $pid}
            }
        }
    }
}

test "daemonize leaves the terminal and writes its number" {noconn} {
    set dir [fresh_dir]
    set port [free_port]
    with_daemon $dir $port {
        wait_for {![catch {[connect -port $port -tls 0] ping} text] && $text eq "PONG"}
        wait_for {[string is integer -strict [string trim [slurp $dir/pid]]]}
        set pid [string trim [slurp $dir/pid]]
        set c [connect -port $port -tls 0]
        assert_equal $pid [lindex [regexp -inline {process_id:(\d+)} [$c info server]] 1]
        assert_equal /dev/null [file readlink /proc/$pid/fd/0]
    }
    assert {![file exists $dir/pid]}
}

test "the working folder, and warnings that are not wanted" {noconn keydb} {
    lassign [process_server --ignore-warnings "overcommit THP backlog xen-clocksource"] id c
    assert {![string match "*WARNING:*" [process_log $id]]}
    lassign [process_server --tcp-backlog 2000000000] id c
    wait_for {[string match "*The TCP backlog setting of 2000000000 cannot be enforced*" [process_log $id]]}
}

test "a locale that is not there is refused" {noconn keydb} {
    lassign [process_server] id c
    assert_equal OK [$c config set locale-collate C]
    assert_error "*Invalid locale name*" {$c config set locale-collate no_such_LOCALE}
    assert_equal {locale-collate C} [$c config get locale-collate]
}

test "loglevel nothing" {noconn keydb} {
    lassign [process_server --loglevel nothing] id c
    assert_equal OK [$c debug log "hear me"]
    assert_equal {} [process_log $id]
    $c config set loglevel warning
    $c debug log "hear me"
    wait_for {[string match "*hear me*" [process_log $id]]}
}

# ---- ports that change

test "a port is exchanged, and set back at once" {noconn} {
    lassign [process_server] id c
    set first [dict get [$c config get port] port]
    set second [free_port]
    for {set i 0} {$i < 30} {incr i} {
        assert_equal OK [$c config set port $second]
        assert_equal OK [$c config set port $first]
    }
    assert_equal PONG [[connect -port $first -tls 0] ping]
}

test "port and tls-port change places" {noconn} {
    set tls_port [free_port]
    lassign [process_server --tls-port $tls_port --tls-cert-file [cert server.crt] --tls-key-file [cert server.key] \
        --tls-ca-cert-file [cert ca.crt] --tls-auth-clients no] id c
    set port [dict get [$c config get port] port]
    if {$::is_oracle} {
        skip "Redis cannot"
    }
    foreach {plain tls} [list $tls_port $port $port $tls_port $tls_port $port] {
        assert_equal OK [$c config set port $plain tls-port $tls]
        wait_for {![catch {[connect -port $plain -tls 0] ping} text] && $text eq "PONG"}
        wait_for {![catch {[connect -port $tls -tls 1] ping} text] && $text eq "PONG"}
    }
    assert_error "*" {$c config set tls-port [dict get [$c config get port] port]}
    assert_equal $port [dict get [$c config get tls-port] tls-port]
}

# ---- the watchdog

test "the watchdog reports a worker that does not come back" {noconn} {
    lassign [process_server] id c
    foreach {given kept} {100 200 1 200 0 0 300 300} {
        assert_equal OK [$c config set watchdog-period $given]
        assert_equal [list watchdog-period $kept] [$c config get watchdog-period]
    }
    assert_error "*must be between 0 and 2147483647 inclusive*" {$c config set watchdog-period -1}
    assert_equal {} [$c config get watchdog*]
    $c config set watchdog-period 200
    # Under load a worker that only waits for a processor may be reported first.
    wait_for {[$c debug sleep 0.5] eq "OK" &&
        [string match "*WATCHDOG TIMER EXPIRED*nanosleep*" [process_log $id]]} 20000
    assert_equal PONG [$c ping]
    $c config set watchdog-period 0
    assert_equal 0 [process_stop $id]
}

# ---- crashes

proc expect_crash {id c words signal} {
    catch {$c {*}$words}
    assert_equal [expr {128 + $signal}] [process_crashed $id] $words
}

test "a crash leaves a report with the stacks of all threads" {noconn keydb} {
    lassign [process_server --server-threads 2 --hide-user-data-from-log no] id c
    expect_crash $id $c {debug segfault some-argument} 11
    set log [process_log $id]
    foreach part {"=== KEYDB BUG REPORT START: Cut & paste starting from here ==="
            "=== REDIS BUG REPORT START: Cut & paste starting from here ===" "crashed by signal: 11"
            "Accessing address: 0x" "STACK TRACE" "worker-1" "background" "REGISTERS" "argv\\\[0]: 'debug'"
            "argv\\\[2]: 'some-argument'" "cmd=*" "INFO OUTPUT" "keydb_version:" "MEMORY TEST"
            "=== KEYDB BUG REPORT END. Make sure to include from START to END. ==="} {
        assert_match "*$part*" $log
    }
}

test "assertions and panics leave one, too" {noconn keydb} {
    lassign [process_server --crash-memcheck-enabled no] id c
    expect_crash $id $c {debug assert} 6
    assert_match "*=== ASSERTION FAILED ===*assertion failed: *argv?1?: 'assert'*crash-memcheck-enabled is no*REPORT\
        END*" [process_log $id]
    lassign [process_server --hide-user-data-from-log yes] id c
    expect_crash $id $c {debug panic some-argument} 6
    assert_match "*DEBUG PANIC called*=== PANIC ===*REPORT END*" [process_log $id]
    assert {![string match *some-argument* [process_log $id]]}
}

test "a signal from outside is reported with its sender" {noconn} {
    lassign [process_server] id c
    process_signal $id ABRT
    assert_equal 134 [process_crashed $id]
    assert_match "*crashed by signal: 6*Killed by PID: *REPORT END*" [process_log $id]
}

test "without crash-log-enabled there is no report" {noconn} {
    lassign [process_server] id c
    $c config set crash-log-enabled no
    expect_crash $id $c {debug segfault} 11
    assert {![string match "*BUG REPORT*" [process_log $id]]}
}

test "use-exit-on-panic ends with code 1" {noconn keydb} {
    lassign [process_server] id c
    assert_equal {use-exit-on-panic no} [$c config get use-exit-on-panic]
    $c config set use-exit-on-panic yes
    catch {$c debug panic}
    assert_equal 1 [process_crashed $id]
}

proc end_with_unread_replies loop {
    set port [free_port]
    set id [server_launch [list --port $port --event-loop $loop --save {} {*}[thread_args]]]
    wait_for {![process_alive $id] || ![catch {set s [connect -port $port -tls 0]}]}
    $s set key [string repeat x 1000000]
    set links {}
    for {set i 0} {$i < 50} {incr i} {
        set link [connect -port $port -tls 0]
        $link -raw [string repeat "GET key\r\n" 20]
        lappend links $link
    }
    wait_for {[llength [regexp -all -inline {obl=[1-9]} [$s client list]]] == 50}
    assert_equal 0 [process_stop $id]
    foreach link [list $s {*}$links] {
        $link -close
    }
}

foreach loop {epoll io_uring} {
    test "a server ends although clients read no replies, $loop" {} "end_with_unread_replies $loop"
}
