# Tests and what they assert.
#
# test NAME TAGS BODY      BODY runs with a fresh connection [r] on an empty server; connections it opens are closed
#                          for it. Tags select and describe; some have a meaning:
#                            keydb    behaviour only KeyDB has: skipped when the server under test is Redis
#                            redis    skipped unless the server under test is Redis
#                            noconn   the test does its own connecting: no [r], no flush (the server may be absent)
#                            plain    needs a connection without TLS
#                            slow     takes more than a second
# test_each VARIABLES NAME TAGS BODY   as test; the body knows these variables of the caller's, as of a loop
# skip REASON              ends the test as skipped
#
# assert EXPRESSION                        assert_equal EXPECTED ACTUAL
# assert_reply TYPED client command ...    the reply has exactly this type and value
# assert_refused TEXT client command ...   the reply is an error with exactly this text
# assert_error GLOB SCRIPT                 the script throws such an error (from a reply or a lost connection)
# assert_match GLOB TEXT                   assert_range NUMBER LOW HIGH
# wait_for CONDITION ?MS?                  fails unless the condition becomes true in time

namespace eval check {
    variable passed 0
    variable failed 0
    variable skipped 0
    variable suite {}
    variable failures {}
    variable running 0      ;# a test runs
}

proc selected {name tags} {
    set all [concat $check::suite $tags]
    set wanted {}
    foreach tag $::settings(tags) {
        if {[string match -* $tag]} {
            if {[string range $tag 1 end] in $all} {
                return 0
            }
        } else {
            lappend wanted $tag
        }
    }
    if {$::settings(match) ne {} && ![string match -nocase *$::settings(match)* $name]} {
        return 0
    }
    if {$wanted eq {}} {
        return 1
    }
    foreach tag $wanted {
        if {$tag in $all} {
            return 1
        }
    }
    return 0
}

proc test {name tags body} {
    if {![selected $name $tags]} {
        return
    }
    if {$::settings(list)} {
        puts [format "%-14s %-60s %s" $check::suite $name $tags]
        return
    }
    if {"keydb" in $tags && $::is_oracle} {
        test_skipped $name "only KeyDB has this"
        return
    }
    if {"redis" in $tags && !$::is_oracle} {
        test_skipped $name "only Redis has this"
        return
    }
    if {"plain" in $tags && $::settings(tls)} {
        test_skipped $name "needs a connection without TLS"
        return
    }
    set started [clock milliseconds]
    set mark $resp::serial
    set ::test_processes {}
    set check::running 1
    set failed [catch {
        if {$server::stack ne {} && "noconn" ni $tags} {
            if {[srv process] eq {}} {
                server_begin
            }
            test_default_connection
        }
        apply [list {} $body]
    } problem details]
    set check::running 0
    set code [expr {$failed ? [dict get $details -errorcode] : {}}]
    set crash [test_aftermath]
    resp::drop_since $mark
    if {$failed && $code eq "SKIP"} {
        test_skipped $name $problem
        return
    }
    if {$crash ne {}} {
        test_failed $name [expr {$failed ? "$problem\n$crash" : $crash}]
    } elseif {$failed} {
        if {$code ni {CHECK} && [lindex $code 0] ni {RESP SERVER}} {
            set problem "[dict get $details -errorinfo]"
        } else {
            append problem "\n    [test_place [dict get $details -errorinfo]]"
        }
        test_failed $name $problem
    } else {
        incr check::passed
        if {$::settings(verbose)} {
            puts [format "ok      %s: %s (%d ms)" $check::suite $name [expr {[clock milliseconds] - $started}]]
        }
    }
}

# The line of the body that failed, out of Tcl's trace.
proc test_place trace {
    if {[regexp {\(lambda term "[^\n]*\n?.*?" line (\d+)\)} $trace all line] ||
            [regexp {line (\d+)\)\s+invoked from within\s+"apply} $trace all line]} {
        return "(line $line of the test)"
    }
    return {}
}

proc test_each {variables name tags body} {
    set known {}
    foreach variable $variables {
        upvar 1 $variable value
        append known "set $variable [list $value];"
    }
    test $name $tags $known$body
}

proc test_default_connection {} {
    set client [connect]
    interp alias {} ::r {} $client
    if {[srv password] ne {}} {
        r auth [srv password]
    }
    # Clients of the test before may still be leaving: they are subscribed, blocked, and counted.
    catch {wait_until {[info_field connected_clients clients] <= [llength $resp::open_ids]} 300}
    r flushall sync
}

# A server that is gone was not meant to be: servers a test ends itself are its own processes.
proc test_aftermath {} {
    set problem {}
    foreach id $::test_processes {
        process_stop $id
        append problem [process_complaint $id]
    }
    append problem [group_aftermath]
    if {$server::stack ne {} && [srv process] ne {}} {
        set id [srv process]
        append problem [process_complaint $id]
        if {![process_alive $id]} {
            append problem "the server ended with code $process::info($id,exit)\n[log_tail [srv log]]"
            server_set process {}
        }
    }
    return $problem
}

proc test_failed {name problem} {
    incr check::failed
    lappend check::failures "$check::suite: $name"
    puts "FAILED  $check::suite: $name\n    [string map [list \n "\n    "] [string trimright $problem]]"
}

proc test_skipped {name reason} {
    incr check::skipped
    puts "skipped $check::suite: $name ($reason)"
}

proc skip reason {
    return -code error -errorcode SKIP $reason
}

# ---- assertions

proc fail text {
    return -code error -errorcode CHECK $text
}

proc assert {expression {text {}}} {
    if {![uplevel 1 [list expr $expression]]} {
        fail "not true: $expression [expr {$text eq {} ? {} : "($text)"}]"
    }
}

proc assert_equal {expected actual {text {}}} {
    if {$expected ne $actual} {
        fail "[expr {$text eq {} ? {} : "$text: "}]expected \"[escape $expected]\", got \"[escape $actual]\""
    }
}

proc assert_match {glob actual} {
    if {![string match $glob $actual]} {
        fail "expected something like \"[escape $glob]\", got \"[escape $actual]\""
    }
}

proc assert_range {number low high} {
    if {![string is double -strict $number] || $number < $low || $number > $high} {
        fail "expected $low .. $high, got \"[escape $number]\""
    }
}

proc assert_reply {expected client args} {
    set actual [$client -typed {*}$args]
    if {![same_reply $expected $actual]} {
        fail "[escape $args]: expected {[escape $expected]}, got {[escape $actual]}"
    }
}

proc assert_refused {text client args} {
    set actual [$client -typed {*}$args]
    if {$actual ne [list error $text]} {
        fail "[escape $args]: expected error \"[escape $text]\", got {[escape $actual]}"
    }
}

proc assert_error {glob script} {
    if {![catch {uplevel 1 $script} problem details]} {
        fail "expected an error like \"$glob\", got \"[escape $problem]\" from: $script"
    }
    if {[lindex [dict get $details -errorcode] 0] ne "RESP"} {
        return -options $details $problem
    }
    if {![string match $glob $problem]} {
        fail "expected an error like \"$glob\", got error \"[escape $problem]\""
    }
}

# Literals in tests may spell a list differently from what [list] makes of it: compare element by element.
proc same_reply {expected actual} {
    lassign $expected type value
    if {$type ne [lindex $actual 0] || [llength $expected] != [llength $actual]} {
        return 0
    }
    if {$type ni {array set map push}} {
        foreach one [lrange $expected 1 end] other [lrange $actual 1 end] {
            if {$one ne $other} {
                return 0
            }
        }
        return 1
    }
    set found [lindex $actual 1]
    if {[llength $value] != [llength $found]} {
        return 0
    }
    foreach one $value other $found {
        if {![same_reply $one $other]} {
            return 0
        }
    }
    return 1
}

# ---- waiting

proc pause ms {
    after $ms {set ::paused 1}
    vwait ::paused
}

# Evaluates the condition in the caller until it is true (1) or the time is over (0). A server that loads a file does
# not know yet.
proc wait_until {condition limit_ms} {
    set deadline [expr {[clock milliseconds] + $limit_ms}]
    set step 1
    while {1} {
        if {[catch {uplevel 1 [list expr $condition]} value details]} {
            if {![string match "LOADING *" $value]} {
                return -options $details $value
            }
        } elseif {$value} {
            return 1
        }
        if {[clock milliseconds] >= $deadline} {
            return 0
        }
        pause $step
        set step [expr {min(20, $step * 2)}]
    }
}

proc wait_for {condition {limit_ms 30000}} {
    if {![uplevel 1 [list wait_until $condition $limit_ms]]} {
        fail "not true within $limit_ms ms: $condition"
    }
}

# ---- shared by suites

# What SCRIPT puts into the journal: a list of commands.
proc effects_of script {
    r debug journal start
    uplevel 1 $script
    set stream [r debug journal read]
    r debug journal stop
    set words [regsub -all {\*\d+\r\n} [regsub -all {\$\d+\r\n} $stream {}] \n]
    return [lmap command [split [string map {\r\n { }} $words] \n] {
        set command [string trim $command]
        if {$command eq {} || [string match -nocase "select *" $command]} continue
        set command
    }]
}

# The names of the events of keys that SCRIPT makes happen, in their order; they have to be switched on.
proc key_events_of script {
    set listener [connect]
    $listener psubscribe __keyspace@*
    uplevel 1 $script
    r publish __keyspace@end end
    set found {}
    while {[set event [lindex [$listener -read] 3]] ne "end"} {
        lappend found $event
    }
    $listener -close
    return $found
}

# Runs the body with configuration values changed, and puts the old ones back.
proc with_config {changes body} {
    set old {}
    foreach {name value} $changes {
        lappend old $name [dict get [r config get $name] $name]
    }
    r config set {*}$changes
    set failed [catch {uplevel 1 $body} problem details]
    set restorer [connect]
    if {[srv password] ne {}} {
        $restorer auth [srv password]
    }
    $restorer config set {*}$old
    $restorer -close
    if {$failed} {
        return -options $details $problem
    }
}

# The fields of INFO as a dict, of CLIENT LIST / CLIENT INFO as a list of dicts.
proc info_fields {args} {
    set fields {}
    foreach line [split [r info {*}$args] "\n"] {
        set line [string trimright $line "\r"]
        if {$line ne {} && ![string match "#*" $line]} {
            set at [string first : $line]
            dict set fields [string range $line 0 $at-1] [string range $line $at+1 end]
        }
    }
    return $fields
}

proc info_field {name args} {
    return [dict get [info_fields {*}$args] $name]
}

# How often a command has had to wait for a key that somebody held for long.
proc parked_so_far {} {
    return [info_field long_lock_waits cpu]
}

# Does a GET of the key wait?
proc get_is_parked key {
    set c [connect]
    set before [parked_so_far]
    $c -send get $key
    pause 10
    return [expr {[parked_so_far] > $before}]
}

# Connections on different workers, as the server places them one after the other.
proc connect_many count {
    set clients {}
    for {set i 0} {$i < $count} {incr i} {
        set c [connect]
        $c ping
        lappend clients $c
    }
    return $clients
}

# What is allocated is known where the allocator tells of all that goes through it; the sanitizers' do not.
proc memory_needs_jemalloc {} {
    if {![string match jemalloc* [info_field mem_allocator memory]]} {
        skip "used memory is compared with jemalloc's statistics"
    }
}

proc client_lines text {
    set lines {}
    foreach line [split [string trimright $text "\n"] "\n"] {
        set fields {}
        foreach word [split $line " "] {
            set at [string first = $word]
            dict set fields [string range $word 0 $at-1] [string range $word $at+1 end]
        }
        lappend lines $fields
    }
    return $lines
}

# A field of CLIENT LIST about the client of that name; 0 when there is none.
proc client_field {name field} {
    foreach line [client_lines [r client list]] {
        if {[dict get $line name] eq $name} {
            return [dict get $line $field]
        }
    }
    return 0
}

# What SCRIPT puts into the journal: a list of commands, also those of transactions.
proc journaled_by script {
    r debug journal start
    uplevel 1 $script
    set stream [r debug journal read]
    r debug journal stop
    set words [regsub -all {\*\d+\r\n} [regsub -all {\$\d+\r\n} $stream {}] \n]
    return [lsearch -all -inline -not -regexp [lmap command [split [string map {\r\n { }} $words] \n] {
        string trim $command
    }] {(?i)^(select .*|multi|exec)?$}]
}

# A flat list of pairs in the order of their first elements.
proc lsort_pairs pairs {
    return [lsort -stride 2 $pairs]
}

# Text that does not repeat early and has every byte value, cheap to make again.
proc pattern_bytes {count {seed 1}} {
    set block {}
    for {set i 0} {$i < 1021} {incr i} {
        lappend block [expr {($i * 7 + $seed * 13 + ($i >> 3)) & 255}]
    }
    set block [binary format c* $block]
    return [string range [string repeat $block [expr {$count / 1021 + 1}]] 0 [expr {$count - 1}]]
}

# CRC-64 (Jones) of bytes, as 16 hexadecimal digits: of payloads and of identity files.
proc crc64 text {
    set crc 0
    binary scan $text cu* bytes
    foreach byte $bytes {
        set crc [expr {$crc ^ $byte}]
        for {set i 0} {$i < 8} {incr i} {
            set crc [expr {$crc & 1 ? ($crc >> 1) ^ 0x95ac9329ac4bc9b5 : $crc >> 1}]
        }
    }
    return [format %016llx $crc]
}
