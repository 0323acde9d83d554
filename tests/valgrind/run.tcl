#!/usr/bin/env tclsh
# Valgrind watches a server start, work for all its threads, and stop: no byte is lost, none is used wrongly.
#
#   tclsh tests/valgrind/run.tcl --server build/valgrind/bin/keydb-server
#
# The server is one built without jemalloc (make BUILD=valgrind), so that valgrind sees every block. The last line is
# "N passed, N failed". libraries.supp names what libraries do with memory, nothing of ours.

set here [file dirname [file normalize [info script]]]
set server build/valgrind/bin/keydb-server
foreach {name value} $argv {
    if {$name eq "--server"} {
        set server $value
    }
}
set ::passed 0
set ::failed 0
set dir [exec mktemp -d]

proc free_port {} {
    set socket [socket -server {} -myaddr 127.0.0.1 0]
    set port [lindex [fconfigure $socket -sockname] 2]
    close $socket
    return $port
}

proc send {channel args} {
    puts -nonewline $channel "*[llength $args]\r\n"
    foreach word $args {
        puts -nonewline $channel "\$[string length $word]\r\n$word\r\n"
    }
    flush $channel
    return [gets $channel]
}

proc open_client port {
    for {set i 0} {$i < 300 && ![regexp {exit \d+\n$} [read_file $::dir/out]]} {incr i} {
        if {![catch {socket 127.0.0.1 $port} channel]} {
            fconfigure $channel -translation binary
            if {![catch {send $channel PING} reply] && [string match +PONG* $reply]} {
                return $channel
            }
            close $channel
        }
        after 100
    }
    error "the server does not answer"
}

# A run of the server under valgrind; `work` gets the port and leaves the server stopped.
proc watched {name arguments expected_code work} {
    global server here dir
    set port [free_port]
    set log $dir/valgrind.log
    set argv [list valgrind --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all \
        --error-exitcode=99 --track-fds=no --suppressions=$here/libraries.supp --log-file=$log --quiet \
        $server {*}[string map [list %PORT% $port %DIR% $dir] $arguments]]
    set pid [exec sh -c {"$@" >>"$0" 2>&1; echo "exit $?" >>"$0"} $dir/out {*}$argv &]
    set problem [catch {uplevel #0 [list apply $work $port]} text]
    for {set i 0} {$i < 1200 && ![regexp {exit (\d+)\n$} [read_file $dir/out] -> code]} {incr i} {
        after 100
    }
    if {![info exists code]} {
        set code "none: it runs on"
        catch {exec kill -KILL -$pid}
    }
    if {$problem || $code ne $expected_code || [file size $log] != 0} {
        incr ::failed
        puts "FAILED  $name: exit code $code\n[expr {$problem ? $text : ""}]\n[read_file $log]\n[read_file $dir/out]"
    } else {
        incr ::passed
        puts "ok      $name"
    }
    file delete $dir/out $log
}

proc read_file path {
    if {![file exists $path]} {
        return {}
    }
    set file [open $path]
    set text [read $file]
    close $file
    return $text
}

set common {--port %PORT% --dir %DIR% --save {} --server-threads 2 --enable-debug-command yes --loglevel verbose}

watched "start and stop" $common 0 {port {
    set c [open_client $port]
    catch {send $c SHUTDOWN NOSAVE}
    close $c
}}

watched "work, options changed, stop with clients connected" $common 0 {port {
    set clients {}
    for {set i 0} {$i < 12} {incr i} {
        lappend clients [open_client $port]
    }
    foreach c $clients {
        foreach command {{SET k v} {SET big 1} {APPEND big xyz} {INCR n} {EXPIRE n 1} {DEL k} {FLUSHALL ASYNC}
                {CLIENT SETNAME me} {MULTI} {SET a 1} {EXEC} {WATCH a} {CONFIG SET hz 100 timeout 100}
                {CONFIG SET requirepass {}} {CONFIG SET watchdog-period 500} {CONFIG SET proc-title-template x-{port}}
                {CONFIG SET oom-score-adj-values {1 2 3}} {SELECT 3} {NONSENSE x} {SET b 1 EX 1000} {RANDOMKEY}} {
            send $c {*}$command
        }
    }
    set c [open_client $port]
    catch {send $c SHUTDOWN NOSAVE}
    foreach c $clients {
        close $c
    }
}}

set file [open $dir/test.conf w]
puts $file "# mine\nhz 20\nrename-command RANDOMKEY x\ninclude $dir/none*.conf"
close $file
watched "a configuration file, rewritten" [concat %DIR%/test.conf $common] 0 {port {
    set c [open_client $port]
    send $c CONFIG SET hz 33
    if {[send $c CONFIG REWRITE] ne "+OK\r"} {
        error "CONFIG REWRITE failed"
    }
    catch {send $c SHUTDOWN NOSAVE}
}}

foreach {name arguments code} {
    "--version"                  {--version}             0
    "a mistake in an option"     {--hz nonsense}         1
    "an option nobody knows"     {--nonsense 1}          1
    "a file that is not there"   {/nowhere/test.conf}    1
    "nowhere to listen"          {--port 0 --save {}}    1
} {
    watched $name $arguments $code {port {}}
}

file delete -force $dir
puts "$::passed passed, $::failed failed"
exit [expr {$::failed != 0}]
