# Servers under test. Each runs in its own folder below the run's temporary folder, under guard.sh, on a free port.
#
# with_server {name value ...} body    tests in body share one server started with --name value ...; it is started
#                                      for the first test that runs and stopped after the last one
# srv FIELD                            of the innermost server: port tls_port tls pid dir log
# server_launch ARGS ?stdin file?      a bare process, for tests of start and stop; returns its number, then
# process_alive N, process_wait N ?ms? 1 while it runs; exit code (128 + n for signal n), "running" after the limit
# process_log N, process_pid N, process_signal N NAME, process_stop N

namespace eval process {
    variable serial 0
    variable info
    variable running {}
}
namespace eval server {
    variable stack {}       ;# of dicts: options, process (or empty while not started), port, dir ...
    variable next_port 0
}

# ---- processes

proc process_start {argv log {input /dev/null}} {
    set id [incr process::serial]
    set pipe [open |[concat [list sh $::lib_dir/guard.sh $log $input] $argv] r+]
    chan configure $pipe -blocking 0 -buffering line
    array set process::info [list $id,pipe $pipe $id,pid {} $id,exit {} $id,log $log $id,seen 0]
    lappend process::running $id
    wait_until {[process_pid $id] ne {}} 30000
    return $id
}

proc process_poll id {
    if {$process::info($id,exit) ne {}} {
        return
    }
    set pipe $process::info($id,pipe)
    while {[gets $pipe line] >= 0} {
        lassign $line what number
        set process::info($id,$what) $number
    }
    if {$process::info($id,exit) ne {}} {
        catch {close $pipe}
        set at [lsearch -exact $process::running $id]
        set process::running [lreplace $process::running $at $at]
    }
}

proc process_pid id {
    process_poll $id
    return $process::info($id,pid)
}

proc process_alive id {
    process_poll $id
    return [expr {$process::info($id,exit) eq {}}]
}

proc process_wait {id {limit_ms 40000}} {
    wait_until {![process_alive $id]} $limit_ms
    return [expr {[process_alive $id] ? "running" : $process::info($id,exit)}]
}

# As process_wait, for a crash that is wanted: what the log says of it is no complaint.
proc process_crashed {id {limit_ms 40000}} {
    set code [process_wait $id $limit_ms]
    set process::info($id,seen) [string length [process_log $id]]
    return $code
}

proc process_signal {id name} {
    if {[process_alive $id]} {
        catch {exec kill -$name [process_pid $id]}
    }
}

# Politely first, as sanitizers report at a regular exit.
proc process_stop id {
    process_signal $id TERM
    set code [process_wait $id 40000]
    if {$code eq "running"} {
        process_signal $id KILL
        process_wait $id
    }
    return $code
}

proc process_log id {
    return [slurp $process::info($id,log)]
}

# What sanitizers and crashes leave in the log since the last look; empty when it is clean.
proc process_complaint id {
    set log $process::info($id,log)
    if {![file exists $log]} {
        return {}
    }
    set file [open $log rb]
    seek $file $process::info($id,seen)
    set fresh [read $file]
    close $file
    foreach sign {"ERROR: AddressSanitizer" "WARNING: ThreadSanitizer" "runtime error:" "LeakSanitizer"
            "BUG REPORT START" "Assertion"} {
        set at [string first $sign $fresh]
        if {$at >= 0} {
            incr process::info($id,seen) [string length $fresh]
            return "server log has \"$sign\":\n[string range $fresh [expr {max(0, $at - 200)}] [expr {$at + 1500}]]"
        }
    }
    # A sign may still be incomplete at the end: look at the last line again next time.
    set last [string last "\n" $fresh]
    incr process::info($id,seen) [expr {$last + 1}]
    return {}
}

proc log_tail {log {lines 25}} {
    return [join [lrange [split [string trimright [slurp $log]] "\n"] end-[expr {$lines - 1}] end] "\n"]
}

proc slurp path {
    if {![file exists $path]} {
        return {}
    }
    set file [open $path rb]
    set text [read $file]
    close $file
    return $text
}

proc spit {path text} {
    set file [open $path wb]
    puts -nonewline $file $text
    close $file
    return $path
}

# ---- servers

# Below the range the kernel takes for outgoing connections; bound once to see that it is free.
proc free_port {} {
    lassign $::settings(ports) first last
    if {$server::next_port == 0} {
        set server::next_port [expr {$first + ([pid] * 97) % ($last - $first)}]
    }
    while 1 {
        set port $server::next_port
        if {[incr server::next_port] > $last} {
            set server::next_port $first
        }
        if {![catch {socket -server {} -myaddr 127.0.0.1 $port} probe]} {
            close $probe
            return $port
        }
    }
}

proc fresh_dir {} {
    set dir $::run_dir/[format %03d [incr ::dir_serial]]
    file mkdir $dir
    return $dir
}

# Connections are dealt out one by one, so that even two of them are on two threads; not dealt: as by default.
proc thread_args {{dealt 1}} {
    if {$::is_oracle} {
        return {}
    }
    return [list --server-threads $::settings(threads) {*}[expr {$dealt ? {--min-clients-per-thread 1} : {}}]]
}

# A server that loads 300 keys for half a minute; gives its id and a connection.
proc server_launch_loading args {
    set port [free_port]
    set folder [fresh_dir]
    for {set i 100} {$i < 400} {incr i} {
        append records \0\3$i\1v
    }
    spit $folder/dump.rdb REDIS0009$records\xff[string repeat \0 8]
    set id [server_launch [list --port $port --dir $folder --save "" --key-load-delay 100000 \
        --enable-protected-configs yes {*}$args {*}[thread_args]]]
    wait_for {![catch {set s [connect -port $port -tls 0]}]}
    return [list $id $s]
}

proc server_launch {arguments {input /dev/null}} {
    set dir [fresh_dir]
    set argv [list $::settings(server) {*}$arguments]
    set here [pwd]
    cd $dir ;# what it saves stays there
    try {
        set id [process_start $argv $dir/log $input]
    } finally {
        cd $here
    }
    set process::info($id,dir) $dir
    lappend ::test_processes $id
    return $id
}

# One call on a file fails in servers that the body starts: see tests/fault/preload.c.
proc with_fault {fault body} {
    set library [file join [file dirname $::settings(server)] .. test fault.so]
    if {![file exists $library]} {
        error "$library: make programs builds it beside the server"
    }
    set asan [expr {[info exists ::env(ASAN_OPTIONS)] ? "$::env(ASAN_OPTIONS):" : {}}]
    set before [array get ::env]
    array set ::env [list KEYDB_FAULT $fault LD_PRELOAD $library ASAN_OPTIONS ${asan}verify_asan_link_order=0]
    try {
        uplevel 1 $body
    } finally {
        foreach name {KEYDB_FAULT LD_PRELOAD ASAN_OPTIONS} {
            unset ::env($name)
        }
        array set ::env $before
    }
}

proc with_server {options body} {
    lappend server::stack [dict create options $options process {}]
    set failed [catch {uplevel 1 $body} problem details]
    if {[srv process] ne {}} {
        server_stop
    }
    set server::stack [lrange $server::stack 0 end-1]
    if {$failed} {
        return -options $details $problem
    }
}

proc srv field {
    return [dict get [lindex $server::stack end] $field]
}

proc server_set args {
    lset server::stack end [dict merge [lindex $server::stack end] $args]
}

# Options whose name begins with a dot are for us: .tls 0|1 overrides --tls, .port 0 starts without a plain port,
# .dealt 0 leaves it to the server which thread gets a connection.
proc server_begin {} {
    for {set attempt 0} {$attempt < 5} {incr attempt} {
        set options [dict merge [dict create .tls $::settings(tls) .port 1 .dealt 1 save {} appendonly no] \
            [srv options]]
        set dir [fresh_dir]
        set tls [dict get $options .tls]
        set port [expr {[dict get $options .port] ? [free_port] : 0}]
        set tls_port 0
        set argv [list $::settings(server) --port $port --dir $dir {*}[thread_args [dict get $options .dealt]]]
        if {$tls} {
            set tls_port [free_port]
            lappend argv --tls-port $tls_port
            set options [dict merge [dict create tls-cert-file [cert server.crt] tls-key-file [cert server.key] \
                tls-ca-cert-file [cert ca.crt]] $options]
        }
        foreach {name value} $options {
            if {![string match .* $name]} {
                lappend argv --$name [string map [list %DIR% $dir] $value]
            }
        }
        set id [process_start $argv $dir/log]
        server_set process $id port $port tls_port $tls_port tls $tls dir $dir log $dir/log pid [process_pid $id] \
            password [expr {[dict exists $options requirepass] ? [dict get $options requirepass] : {}}]
        if {[wait_until {![process_alive $id] || [server_answers]} 20000] && [process_alive $id]} {
            return
        }
        set log [log_tail $dir/log]
        process_stop $id
        server_set process {}
        if {![string match -nocase "*in use*" $log]} {
            break
        }
    }
    error "the server did not start: $argv\n$log" {} {SERVER START}
}

proc server_answers {} {
    if {[catch {
        set probe [connect -timeout 3000]
        set reply [$probe -typed ping]
        $probe -close
    }]} {
        return 0
    }
    return [expr {[lindex $reply 0] eq "status" || [string match "NOAUTH*" [lindex $reply 1]]}]
}

# A server which does not end in order is a failure too, although it belongs to no single test.
proc server_stop {} {
    set id [srv process]
    set code [process_stop $id]
    set problem [process_complaint $id]
    if {$problem eq {} && $code ne "0"} {
        set problem "exit code $code after SIGTERM\n[log_tail [srv log]]"
    }
    if {$problem ne {}} {
        test_failed "the server ends in order and with a clean log" $problem
    }
    server_set process {}
}
