# Integration tests: what a client can see, through a socket. See README.md.
#
# tclsh run.tcl --server PATH [--oracle PATH] [--single SUITE ...] [--match TEXT] [--tags a,-b] [--tls] [--threads N]
#               [--jobs N] [--ports FIRST-LAST] [--list] [--verbose] [--keep]
# Most tests wait for something: with --jobs several suites run side by side, each in a process of its own.
# Exit code 0 when nothing failed, 1 when something did, 2 for a wrong call.

package require Tcl 8.6

set here_dir [file dirname [file normalize [info script]]]
set lib_dir $here_dir/lib
set root_dir [file dirname [file dirname $here_dir]]
set dir_serial 0
set test_processes {}

array set settings {server {} oracle {} single {} match {} tags {} tls 0 threads 4 jobs 1
    ports 15000-31000 list 0 verbose 0 keep 0}

proc usage text {
    puts stderr "$text\nusage: run.tcl --server PATH \[--oracle PATH\] \[--single SUITE ...\] \[--match TEXT\]\
        \[--tags a,-b\] \[--tls\] \[--threads N\] \[--jobs N\] \[--ports FIRST-LAST\] \[--list\] \[--verbose\]\
        \[--keep\]"
    exit 2
}

proc read_arguments words {
    global settings
    while {$words ne {}} {
        set words [lassign $words word]
        set name [string range $word 2 end]
        switch -- $word {
            --tls - --list - --verbose - --keep {
                set settings($name) 1
            }
            --only {
                set words [lassign $words settings(single)]
            }
            --server - --oracle - --match - --threads - --tags - --jobs - --ports {
                if {$words eq {}} {
                    usage "$word needs a value"
                }
                set words [lassign $words settings($name)]
            }
            --single {
                while {$words ne {} && ![string match --* [lindex $words 0]]} {
                    set words [lassign $words suite]
                    lappend settings(single) $suite
                }
            }
            default {
                usage "unknown option $word"
            }
        }
    }
    if {[scan $settings(ports) %d-%d first last] != 2 || $last - $first < 1000} {
        usage "--ports needs at least a thousand"
    }
    set settings(ports) [list $first $last]
    set settings(tags) [split $settings(tags) ,]
    if {$settings(server) eq {} && !$settings(list)} {
        usage "--server is missing"
    }
    foreach which {server oracle} {
        if {$settings($which) ne {}} {
            set settings($which) [file normalize $settings($which)]
            if {![file executable $settings($which)]} {
                usage "$settings($which) is no program"
            }
        }
    }
}

proc suite_paths {} {
    set paths {}
    foreach path [lsort [glob $::here_dir/suites/*.tcl]] {
        set name [file rootname [file tail $path]]
        if {$::settings(single) eq {} || $name in $::settings(single)} {
            lappend paths $path
        }
    }
    foreach name $::settings(single) {
        if {![file exists $::here_dir/suites/$name.tcl]} {
            usage "there is no suite $name"
        }
    }
    return $paths
}

proc procedures {} {
    set bodies {}
    foreach name [info procs ::*] {
        dict set bodies $name [list [info args $name] [info body $name]]
    }
    return $bodies
}

# What a suite defines is its own: it is gone behind the suite, and none may define what the library has, for the suites
# that follow would call it instead.
proc check_procedures before {
    dict for {name body} [procedures] {
        if {![dict exists $before $name]} {
            rename $name {}
        } elseif {[dict get $before $name] ne $body} {
            test_failed "the suite as such" "it defines $name anew, which the library has"
        }
    }
}

# A mistake in the suite itself, outside of any test, counts as a failed test of that suite.
proc run_suite path {
    set check::suite [file rootname [file tail $path]]
    set failed_before $check::failed
    set passed_before $check::passed
    set started [clock milliseconds]
    set before [procedures]
    if {[catch {uplevel #0 [list source $path]} problem details]} {
        test_failed "the suite as such" [dict get $details -errorinfo]
    }
    check_procedures $before
    if {!$::settings(list)} {
        puts [format "        %s: %d passed, %d failed, %.1f s" $check::suite [expr {$check::passed - $passed_before}] \
            [expr {$check::failed - $failed_before}] [expr {([clock milliseconds] - $started) / 1000.0}]]
    }
}

# ------------------------------------------------------------------------------------------- suites side by side --

namespace eval jobs {
    variable waiting {}     ;# paths of suites
    variable running 0
    variable output         ;# channel -> what it said
    variable passed 0 failed 0 skipped 0
    variable failures {}
}

# Slot n of all has ports of its own: a port that was seen free must still be so when a server opens it.
proc jobs::start slot {
    variable waiting
    variable running
    variable output
    if {$waiting eq {}} {
        return
    }
    set waiting [lassign $waiting path]
    lassign $::settings(ports) first last
    set share [expr {($last - $first) / $::settings(jobs)}]
    set ports [expr {$first + $slot * $share}]-[expr {$first + ($slot + 1) * $share - 1}]
    set suite [file rootname [file tail $path]]
    set channel [open [list | [info nameofexecutable] $::here_dir/run.tcl {*}$::argv --jobs 1 --ports $ports \
        --only $suite 2>@1] r]
    set output($channel) {}
    incr running
    chan configure $channel -blocking 0
    chan event $channel readable [list jobs::on_output $channel $slot $suite]
}

proc jobs::on_output {channel slot suite} {
    variable running
    variable output
    append output($channel) [read $channel]
    if {![eof $channel]} {
        return
    }
    chan configure $channel -blocking 1
    catch {close $channel}
    take $suite $output($channel)
    unset output($channel)
    incr running -1
    start $slot
}

proc jobs::take {suite text} {
    variable passed
    variable failed
    variable skipped
    variable failures
    set counted 0
    foreach line [split [string trimright $text \n] \n] {
        if {[regexp {^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$} $line - good bad left]} {
            set counted 1
            incr passed $good
            incr failed $bad
            incr skipped [expr {$left eq {} ? 0 : $left}]
        } elseif {[string match "failed: *" $line]} {
            lappend failures [string range $line 8 end]
        } elseif {![string match "server: *" $line]} {
            puts $line
        }
    }
    if {!$counted} {
        puts "FAILED  $suite: it ended without a count"
        incr failed
        lappend failures "$suite: it ended without a count"
    }
}

# The largest file first: the longest suite must not begin last.
proc jobs::run_all paths {
    variable waiting [lmap entry [lsort -integer -decreasing -index 0 [lmap path $paths {
        list [file size $path] $path
    }]] {lindex $entry 1}]
    variable running
    for {set slot 0} {$slot < $::settings(jobs)} {incr slot} {
        start $slot
    }
    while {$running > 0} {
        vwait jobs::running
    }
}

# ------------------------------------------------------------------------------------------------------------------

proc say_result {passed failed skipped failures} {
    foreach name $failures {
        puts "failed: $name"
    }
    puts "$passed passed, $failed failed[expr {$skipped ? ", $skipped skipped" : {}}]"
    exit [expr {$failed > 0}]
}

read_arguments $argv
foreach part {check server resp certs group fake_master everything} {
    source $lib_dir/$part.tcl
}
chan configure stdout -buffering line
set have_tls [expr {![catch {package require tls}]}]
if {$settings(tls) && !$have_tls} {
    usage "--tls needs the Tcl package tls"
}
set version [expr {$settings(server) eq {} ? {} : [exec $settings(server) --version]}]
set is_oracle [string match "Redis server*" $version]
set product [expr {$is_oracle ? "Redis" : "KeyDB"}]
set base_dir [expr {[info exists env(TMPDIR)] ? $env(TMPDIR) : "/tmp"}]
set run_dir $base_dir/keydb-integration-[pid]
file delete -force $run_dir
file mkdir $run_dir

if {!$settings(list)} {
    puts "server: $version"
}
if {$settings(jobs) > 1 && !$settings(list)} {
    jobs::run_all [suite_paths]
    file delete -force $run_dir
    say_result $jobs::passed $jobs::failed $jobs::skipped $jobs::failures
}
foreach path [suite_paths] {
    run_suite $path
}
foreach id $process::running {
    process_stop $id
}
if {$settings(keep)} {
    puts "kept: $run_dir"
} else {
    file delete -force $run_dir
}
if {$settings(list)} {
    exit 0
}
say_result $check::passed $check::failed $check::skipped $check::failures
