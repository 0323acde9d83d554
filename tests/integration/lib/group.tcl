# Groups of servers: masters and replicas, ours and redis-server, and proxies between them.
#
# with_group {NAME KIND OPTIONS ...} body    starts all, runs the body (a test's, or tests), stops all. KIND is `ours`
#                                            (the server under test), `oracle` (--oracle; skipped without), `sentinel`
#                                            (the same program as sentinel) or `keydb` (KEYDB_ORACLE; likewise).
#                                            OPTIONS as of with_server; servers have DEBUG, no save points, and no delay
#                                            before a diskless sync. With --tls all is encrypted, links of replicas too.
#                                            .file 1: options are in a file, from which it starts again.
# on NAME command ...      a command on the member's own connection, which is opened again after a restart
# on NAME                  that connection itself
# member NAME FIELD        kind port (where others connect to) plain_port tls_port tls dir log pid process
# member_connect NAME ...  a further connection; takes the options of connect
# member_kill NAME ?SIG?   ends it (KILL; TERM: in order); its folder and its ports stay
# member_start NAME ?OPTIONS?   starts it again in its folder, with other OPTIONS beside those that it had
# member_end NAME          stops it in order and checks its end, as at the end of the group
# follow NAME MASTER ?VIA?      REPLICAOF; VIA: a proxy; MASTER `no`: NO ONE. Does not wait
# replication NAME FIELD   of INFO replication; stats_of NAME FIELD: of INFO stats
# replication_is NAME FIELD VALUE   no also if our connection was closed, as sentinels do; the next look has a new one
# sync_counts NAME         {full partial refused} as counted by a master
# link_is_up NAME          1 or 0
# wait_link NAME ?ms?      the link to its master is up
# wait_same MASTER REPLICA ... ?ms?      links are up, the replicas have all of the master's history, and the same data
# dataset NAME             {DBSIZE-of-all digest}, comparable between servers
# proxy_open NAME          a proxy in front of a member (or a port); gives its id; ends with the group
# proxy_port ID            its port
# proxy ID command ...     see tests/replication/proxy.py: cut, down, up, stall, resume, delay, throttle, at ...

namespace eval group {
    variable members        ;# NAME -> dict
    variable links          ;# NAME -> {process connection}
    variable proxies        ;# id -> dict: pipe port
    variable proxy_serial 0
    array set members {}
    array set links {}
}

proc with_group {description body} {
    set names {}
    foreach {name kind options} $description {
        set missing [group_lacks $kind]
        if {$missing ne {}} {
            if {$check::running} {
                skip $missing
            }
            if {!$::settings(list)} {
                test_skipped "tests of a group with $name" $missing
                return
            }
        }
        set group::members($name) [dict create kind $kind options $options process {}]
        lappend names $name
    }
    set proxies_before [array names group::proxies]
    set failed [catch {
        if {!$::settings(list)} {
            foreach name $names {
                member_start $name
            }
        }
        uplevel 1 $body
    } problem details]
    set complaint {}
    foreach id [array names group::proxies] {
        if {$id ni $proxies_before} {
            proxy_close $id
        }
    }
    foreach name [lreverse $names] {
        append complaint [member_end $name]
        array unset group::members $name
    }
    if {$failed && $complaint eq {}} {
        return -options $details $problem
    }
    if {$complaint ne {}} {
        set complaint "[expr {$failed ? "$problem\n" : {}}]$complaint"
        if {$check::running} {
            fail $complaint
        }
        test_failed "the servers of the group end in order and with clean logs" $complaint
    }
}

# Why there is no member of this kind; empty: there is.
proc group_lacks kind {
    if {$kind in {oracle sentinel} && $::settings(oracle) eq {}} {
        return "needs redis-server (--oracle)"
    }
    if {$kind eq "keydb" && ![info exists ::env(KEYDB_ORACLE)]} {
        return "KEYDB_ORACLE does not name a keydb-server 6.3.4"
    }
    return {}
}

# ---- members

proc member {name field} {
    return [dict get $group::members($name) $field]
}

proc member_start {name {options {}}} {
    set kind [member $name kind]
    set merged [dict merge [dict create .tls $::settings(tls) .dealt 1 save {} appendonly no enable-debug-command yes \
        repl-diskless-sync-delay 0] [member $name options] $options]
    dict set group::members($name) options $merged
    set again [dict exists $group::members($name) dir]
    set tls [dict get $merged .tls]
    for {set attempt 0} {$attempt < 5} {incr attempt} {
        if {!$again} {
            set dir [fresh_dir]
            dict set group::members($name) dir $dir
            dict set group::members($name) log $dir/log
            dict set group::members($name) plain_port [free_port]
            dict set group::members($name) tls_port [expr {$tls ? [free_port] : 0}]
            dict set group::members($name) tls $tls
            dict set group::members($name) port [member $name [expr {$tls ? "tls_port" : "plain_port"}]]
        }
        set id [process_start [member_command $name] [member $name log]]
        dict set group::members($name) process $id
        dict set group::members($name) pid [process_pid $id]
        if {[wait_until {![process_alive $id] || [member_answers $name]} 30000] && [process_alive $id]} {
            return
        }
        set log [log_tail [member $name log]]
        process_stop $id
        dict set group::members($name) process {}
        if {$again || ![string match -nocase "*in use*" $log]} {
            break
        }
    }
    error "$name did not start: [member_command $name]\n$log" {} {SERVER START}
}

proc member_command name {
    set kind [member $name kind]
    switch -- $kind {
        ours { set program $::settings(server) }
        keydb { set program $::env(KEYDB_ORACLE) }
        default { set program $::settings(oracle) }
    }
    set options [member_options $name]
    if {$kind ne "sentinel" && !([dict exists [member $name options] .file])} {
        set argv [list $program]
        dict for {option value} $options {
            lappend argv --$option $value
        }
        return $argv
    }
    set file [member $name dir]/server.conf
    if {![file exists $file]} {
        set text {}
        dict for {option value} $options {
            append text $option " " [expr {$value eq {} ? "\"\"" : $value}] "\n"
        }
        spit $file $text
    }
    return [list $program $file {*}[expr {$kind eq "sentinel" ? "--sentinel" : {}}]]
}

# What it is started with: name and value of each option.
proc member_options name {
    set kind [member $name kind]
    set dir [member $name dir]
    set given [member $name options]
    set options [dict create port [member $name plain_port] dir $dir]
    if {[member $name tls]} {
        set options [dict merge $options [dict create tls-port [member $name tls_port] tls-replication yes \
            tls-cert-file [cert server.crt] tls-key-file [cert server.key] tls-ca-cert-file [cert ca.crt]]]
    }
    if {$kind eq "ours"} {
        foreach {option value} [thread_args [dict get $given .dealt]] {
            dict set options [string range $option 2 end] $value
        }
    }
    if {$kind eq "sentinel"} {
        return $options
    }
    if {$kind eq "keydb"} {
        dict unset given enable-debug-command ;# it always has it
        set options [dict merge [dict create server-threads 1] $options]
    }
    dict for {option value} $given {
        if {![string match .* $option]} {
            dict set options $option [string map [list %DIR% $dir] $value]
        }
    }
    return $options
}

proc member_connect {name args} {
    return [connect -port [member $name port] -tls [member $name tls] {*}$args]
}

# It answers, be it with an error: it may be loading, or want a password.
proc member_answers name {
    return [expr {![catch {
        set probe [member_connect $name -timeout 3000]
        set reply [$probe -typed ping]
        $probe -close
    }] && ![string match "LOADING*" [lindex $reply 1]]}]
}

proc on {name args} {
    set process [member $name process]
    if {[info exists group::links($name)]} {
        lassign $group::links($name) of connection
        if {$of ne $process || ![resp::is_open $connection]} {
            unset group::links($name)
        }
    }
    if {![info exists group::links($name)]} {
        set connection [member_connect $name -timeout 60000]
        set group::links($name) [list $process $connection]
        if {[dict exists [member $name options] requirepass]} {
            $connection auth [dict get [member $name options] requirepass]
        }
    }
    set connection [lindex $group::links($name) 1]
    if {$args eq {}} {
        return $connection
    }
    return [$connection {*}$args]
}

proc member_forget_link name {
    if {[info exists group::links($name)]} {
        catch {[lindex $group::links($name) 1] -close}
        unset group::links($name)
    }
}

proc member_kill {name {signal KILL}} {
    set id [member $name process]
    member_forget_link $name
    process_signal $id CONT
    process_signal $id $signal
    set code [process_wait $id 30000]
    dict set group::members($name) process {}
    if {$code eq "running"} {
        process_stop $id
        fail "$name still runs 30 s after SIG$signal"
    }
    set complaint [process_complaint $id]
    if {$complaint ne {}} {
        fail "$name: $complaint"
    }
    return $code
}

# Empty, or what is wrong with how it ended.
proc member_end name {
    set id [dict get $group::members($name) process]
    if {$id eq {}} {
        return {}
    }
    set complaint {}
    if {![process_alive $id]} {
        set complaint "$name ended with code $process::info($id,exit)\n[log_tail [member $name log]]\n"
    } else {
        process_signal $id CONT
        # Nobody wants to wait for replicas that are gone or behind.
        catch {on $name config set shutdown-timeout 0}
        member_forget_link $name
        set code [process_stop $id]
        if {$code ne "0"} {
            set complaint "$name: exit code $code after SIGTERM\n[log_tail [member $name log]]\n"
        }
    }
    append complaint [process_complaint $id]
    dict set group::members($name) process {}
    return $complaint
}

# What went wrong with any server of a group, after a test: see test_aftermath.
proc group_aftermath {} {
    set problem {}
    foreach name [array names group::members] {
        set id [dict get $group::members($name) process]
        if {$id eq {}} {
            continue
        }
        append problem [process_complaint $id]
        if {![process_alive $id]} {
            append problem "$name ended with code $process::info($id,exit)\n[log_tail [member $name log]]\n"
            dict set group::members($name) process {}
        }
    }
    return $problem
}

# ---- replication

proc follow {name master {via {}}} {
    if {$master eq "no"} {
        return [on $name replicaof no one]
    }
    return [on $name replicaof 127.0.0.1 [expr {$via eq {} ? [member $master port] : [proxy_port $via]}]]
}

proc section_field {name section field} {
    if {![regexp -line "^$field:(\[^\r\n\]*)" [on $name info $section] all value]} {
        fail "INFO $section of $name has no $field"
    }
    return $value
}

proc replication {name field} {
    return [section_field $name replication $field]
}

proc replication_is {name field value} {
    if {[catch {replication $name $field} actual]} {
        member_forget_link $name
        return 0
    }
    return [expr {$actual eq $value}]
}

proc stats_of {name field} {
    return [section_field $name stats $field]
}

proc sync_counts name {
    return [list [stats_of $name sync_full] [stats_of $name sync_partial_ok] [stats_of $name sync_partial_err]]
}

proc link_is_up name {
    return [regexp {master_link_status:up} [on $name info replication]]
}

proc wait_link {name {limit_ms 40000}} {
    if {![wait_until {[link_is_up $name]} $limit_ms]} {
        fail "the link of $name is not up within $limit_ms ms:\n[on $name info replication]\n[log_tail \
            [member $name log] 12]"
    }
}

proc dataset name {
    set sizes {}
    foreach {all db keys} [regexp -all -inline {(db\d+):keys=(\d+)} [on $name info keyspace]] {
        lappend sizes $db $keys
    }
    return [list $sizes [on $name debug digest]]
}

proc has_all {master replica} {
    set offset [replication $master master_repl_offset]
    return [expr {[replication $replica slave_repl_offset] == $offset &&
        [replication $master master_repl_offset] == $offset}]
}

proc wait_same {master args} {
    set limit_ms 30000
    if {[string is integer -strict [lindex $args end]]} {
        set limit_ms [lindex $args end]
        set args [lrange $args 0 end-1]
    }
    foreach replica $args {
        wait_link $replica $limit_ms
        if {![wait_until {[has_all $master $replica]} $limit_ms]} {
            fail "$replica is at [replication $replica slave_repl_offset], $master at\
                [replication $master master_repl_offset], after $limit_ms ms"
        }
        set expected [dataset $master]
        set actual [dataset $replica]
        if {$expected ne $actual} {
            fail "$master has $expected, $replica $actual"
        }
    }
}

# ---- proxies

proc proxy_open name {
    set port [expr {[string is integer -strict $name] ? $name : [member $name port]}]
    set id [incr group::proxy_serial]
    set pipe [open |[list python3 $::root_dir/tests/replication/proxy.py $port] r+]
    chan configure $pipe -buffering line
    set group::proxies($id) [dict create pipe $pipe port [lindex [gets $pipe] 1]]
    return $id
}

proc proxy_port id {
    return [dict get $group::proxies($id) port]
}

proc proxy {id args} {
    set pipe [dict get $group::proxies($id) pipe]
    puts $pipe $args
    set answer [gets $pipe]
    if {[string match error* $answer]} {
        error "proxy: $args: $answer"
    }
    return $answer
}

proc proxy_close id {
    catch {close [dict get $group::proxies($id) pipe]}
    unset group::proxies($id)
}
