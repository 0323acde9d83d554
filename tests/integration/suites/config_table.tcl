# Every option: by file, by flag, by CONFIG SET, read back, written anew, wrong values refused; and keydb.conf
# says what holds. Made from data/options.tsv, keydb.conf and what CONFIG GET tells; few servers, many options each.

set table_root [file normalize $::lib_dir/../../..]

# name -> {alias type default least most choices mutable kind}
proc read_table {} {
    set table {}
    foreach line [split [slurp $::lib_dir/../data/options.tsv] "\n"] {
        if {$line eq {} || [string index $line 0] eq "#"} {
            continue
        }
        lassign [split $line "\t"] name alias type preset least most choices mutable kind
        dict set table $name [dict create alias $alias type $type preset $preset least $least most $most \
            choices [split $choices "|"] mutable [expr {$mutable eq "yes"}] kind $kind]
    }
    return $table
}
set options_table [read_table]

# Where this server goes its own way; each with the reason.
set own_options {
    event-loop        "only this server has it"
    event-loop-spin-us "likewise"
    journal-memory-limit "likewise"
    journal-spill-limit "likewise"
    repl-backpressure-limit "likewise"
    aof-lag-limit     "likewise"
    active-history-limit "likewise"
    active-peer-timeout "likewise"
    active-repair-rate "likewise"
    active-tombstones-limit "likewise"
    active-window-size "likewise"
    metrics-bind      "likewise"
    metrics-port      "likewise"
    metrics-tls       "likewise"
    metrics-token     "likewise"
    rdb-version       "likewise"
    snapshot-memory-limit "likewise"
    snapshot-method   "likewise"
    snapshot-threads  "likewise"
    stream-idmp-duration "as in Redis 8.6"
    stream-idmp-maxsize "likewise"
    tls-auth-clients-user "as in Redis 8"
}
# server-threads 0: as many as processors; the others are kept within narrower bounds than may be given.
set own_bounds {
    server-threads {0 64}  hz {1 500}  watchdog-period {200 2147483647}  repl-backlog-size {16384 9223372036854775807}
}
set own_presets {
    server-threads 0  version-override {}
}
# What promises a part that is not there can only be given with the value that promises nothing.
set only_preset {cluster-enabled db-s3-object}
# Options whose change would cut us off, or that need the outside; they have tests of their own.
set elsewhere {port tls-port bind dir requirepass unixsocket unixsocketgroup logfile pidfile daemonize supervised
    aclfile server-cpulist bio-cpulist bgsave-cpulist aof-rewrite-cpulist tls-cert-file tls-key-file
    tls-ca-cert-file tls-ca-cert-dir tls-dh-params-file
    tls-client-cert-file tls-client-key-file tls-client-key-file-pass tls-key-file-pass tls-protocols
    tls-ciphers tls-ciphersuites tls-allowlist
    tls-auditlog-blocklist tls-rotation tls-replication replicaof active-replica
    multi-master
    syslog-enabled socket-mark-id server-threads event-loop
    activedefrag maxclients protected-mode maxmemory maxmemory-clients loglevel appendonly}
# Texts that are looked at.
set text_values {
    proc-title-template "{title} x"  locale-collate C  server-thread-affinity true
    client-output-buffer-limit "normal 1048576 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"
    save "11 12"  oom-score-adj absolute  watchdog-period 321  oom-score-adj-values "1 2 3"
    bind-source-addr 127.0.0.7  availability-zone zone-a
    latency-tracking-info-percentiles "10 20"  notify-keyspace-events glE
}

proc option_field {name field} {
    return [dict get $::options_table $name $field]
}

proc names_of_table {} {
    return [dict keys $::options_table]
}

# A value that is good and not the default; what CONFIG GET shows for it.
proc other_value name {
    set preset [option_field $name preset]
    if {[dict exists $::text_values $name]} {
        return [dict get $::text_values $name]
    }
    switch [option_field $name type] {
        bool {
            return [expr {$preset eq "yes" ? "no" : "yes"}]
        }
        enum {
            foreach choice [option_field $name choices] {
                if {$choice ne $preset && $choice ne "yes"} {
                    return $choice
                }
            }
            return [lindex [option_field $name choices] 0]
        }
        int - octal - memory - memory|percent {
            lassign [bounds_of $name] least most
            set value [expr {$preset eq {} ? $least : $preset}]
            set value [expr {$value + 1 <= $most ? $value + 1 : $value - 1}]
            return [expr {[option_field $name type] eq "octal" ? 7 : $value}]
        }
        default {
            return "some-text"
        }
    }
}

proc bounds_of name {
    if {[dict exists $::own_bounds $name]} {
        return [dict get $::own_bounds $name]
    }
    return [list [option_field $name least] [option_field $name most]]
}

proc preset_of name {
    if {[dict exists $::own_presets $name]} {
        return [dict get $::own_presets $name]
    }
    return [option_field $name preset]
}

proc value_of {c name} {
    return [dict get [$c config get $name] $name]
}

# Those that can be tried out here: known to the server under test, and harmless.
proc tried_names {} {
    set names {}
    foreach name [names_of_table] {
        if {$name ni $::elsewhere && $name ni $::only_preset} {
            lappend names $name
        }
    }
    return $names
}

# {value text}: what must be refused, and why.
proc wrong_values name {
    lassign [bounds_of $name] least most
    switch [option_field $name type] {
        bool {
            return [list maybe "argument must be 'yes' or 'no'"]
        }
        enum {
            return [list no-such-word "argument(s) must be one of the following: *"]
        }
        int {
            set wrong [list x "argument couldn't be parsed into an integer"]
            if {![dict exists $::own_bounds $name] && $most < 9223372036854775807} {
                lappend wrong [expr {$most + 1}] "argument must be between $least and $most inclusive"
            }
            if {![dict exists $::own_bounds $name] && $least > -9223372036854775807} {
                lappend wrong [expr {$least - 1}] "argument must be between $least and $most inclusive"
            }
            return $wrong
        }
        memory {
            return [list x "argument must be a memory value" 1zb "argument must be a memory value"]
        }
        memory|percent {
            return [list x "argument must be a memory or percent value"]
        }
        octal {
            return [list 8 "argument couldn't be parsed as an octal number"]
        }
        default {
            return {}
        }
    }
}

with_server {.dealt 0} {
    test "every option is there, with its default, its other name, and nothing else is" {keydb} {
        set all [r config get *]
        foreach name [names_of_table] {
            assert_equal $name [lindex [r config get $name] 0]
            if {$name ni {port dir save appendonly tls-port tls-cert-file tls-key-file tls-ca-cert-file \
                server-threads}} {
                assert_equal [preset_of $name] [value_of r $name] $name
            }
            assert_equal [expr {[option_field $name kind] ne "hidden"}] [dict exists $all $name] \
            "$name in CONFIG GET *"
            set alias [option_field $name alias]
            if {$alias ne {}} {
                assert_equal [list $alias [value_of r $name]] [r config get $alias]
            }
        }
        foreach name [dict keys $all] {
            set is_alias 0
            dict for {known row} $::options_table {
                if {[dict get $row alias] eq $name} {
                    set is_alias 1
                }
            }
            assert {[dict exists $::options_table $name] || $is_alias || [dict exists $::own_options $name]} $name
        }
    }

    test "CONFIG SET of every mutable option, read back, and set back" {keydb} {
        foreach name [tried_names] {
            if {![option_field $name mutable] || [option_field $name kind] eq "protected"} {
                continue
            }
            set value [other_value $name]
            set before [value_of r $name]
            assert_equal [list $name OK] [list $name [r config set $name $value]]
            assert_equal $value [value_of r $name] $name
            r config set $name $before
            assert_equal $before [value_of r $name] $name
        }
    }

    test "both ends of every range" {keydb} {
        foreach name [tried_names] {
            if {![option_field $name mutable] || [option_field $name type] ni {int memory}} {
                continue
            }
            set before [value_of r $name]
            foreach value [bounds_of $name] {
                assert_equal [list $name OK] [list $name [r config set $name $value]]
                assert_equal $value [value_of r $name] $name
            }
            r config set $name $before
        }
    }

    test "wrong values are refused and change nothing" {keydb} {
        foreach name [tried_names] {
            if {![option_field $name mutable]} {
                continue
            }
            set before [value_of r $name]
            foreach {value text} [wrong_values $name] {
                set reply [r -typed config set $name $value]
                assert_match "error {ERR CONFIG SET failed (possibly related to argument '$name') - $text}" $reply
                assert_equal $before [value_of r $name] $name
            }
        }
    }

    test "what cannot change says so, and what is protected, too" {keydb} {
        foreach name [names_of_table] {
            set reply [r -typed config set $name [other_value $name] hz nonsense]
            if {![option_field $name mutable]} {
                assert_equal "error {ERR CONFIG SET failed (possibly related to argument '$name') - can't set\
                    immutable config}" $reply
            } elseif {[option_field $name kind] eq "protected"} {
                assert_equal "error {ERR CONFIG SET failed (possibly related to argument '$name') - can't set\
                    protected config}" $reply
            }
        }
    }

    test "options of parts that are not there are refused, not ignored" {keydb} {
        foreach name $::only_preset {
            if {[option_field $name mutable]} {
                assert_match "error {ERR CONFIG SET failed (possibly related to argument '$name') - *}" \
                    [r -typed config set $name [expr {[option_field $name type] eq "bool" ? "yes" : "KEA"}]]
            }
        }
    }
}

# Lines of a file that sets everything that can be tried.
proc everything_lines {} {
    set lines {}
    foreach name [tried_names] {
        set value [other_value $name]
        if {$name in {save client-output-buffer-limit oom-score-adj-values latency-tracking-info-percentiles}} {
            lappend lines "$name $value"
        } else {
            lappend lines "$name [quoted $value]"
        }
    }
    return $lines
}

proc quoted value {
    return "\"[string map {\\ \\\\ \" \\\"} $value]\""
}

proc assert_everything c {
    foreach name [tried_names] {
        assert_equal [other_value $name] [value_of $c $name] $name
    }
}

proc table_server {arguments} {
    set port [free_port]
    set id [server_launch [concat $arguments [list --port $port] [thread_args 0]]]
    wait_until {![process_alive $id] || ![catch {[connect -port $port -tls 0] -typed ping}]} 15000
    if {![process_alive $id]} {
        fail "the server ended:\n[process_log $id]"
    }
    return [list $id [connect -port $port -tls 0]]
}

test "every option from a file, rewritten, and from that file again" {noconn keydb} {
    set dir [fresh_dir]
    set path [spit $dir/test.conf "# a comment\n\n[join [everything_lines] \n]\n\n# the end\n"]
    lassign [table_server [list $path]] id c
    assert_everything $c
    assert_equal OK [$c config rewrite]
    set text [slurp $path]
    assert_match "# a comment\n\n*\n\n# the end\n*" $text
    assert_equal 0 [process_stop $id]
    lassign [table_server [list $path]] id c
    assert_everything $c
    # A second time nothing is left to change.
    assert_equal OK [$c config rewrite]
    set again [slurp $path]
    assert_equal [llength [lsort -unique [split $text \n]]] [llength [lsort -unique [split $again \n]]]
    assert_equal {watchdog-period 321} [$c config get watchdog-period]
    # Back to the defaults: the lines stay, with the default values.
    foreach name {hz timeout latency-monitor-threshold} {
        $c config set $name [preset_of $name]
    }
    $c config rewrite
    assert_match "*\nhz 10\n*" [slurp $path]
}

test "what is set while the server runs is added at the end, once" {noconn keydb} {
    set path [spit [fresh_dir]/test.conf "# mine\nhz 20\nhz 30\nnonsense-that-follows\n"]
    set id [server_launch [list $path --port 0]]
    assert_equal 1 [process_wait $id]
    spit $path "# mine\nhz 20\n# between\nhz 30"
    lassign [table_server [list $path]] id c
    $c config set timeout 77 maxmemory-samples 9 hz 40
    $c config rewrite
    $c config rewrite
    set text [slurp $path]
    assert_match "# mine\nhz 40\n# between\n*# Generated by CONFIG REWRITE\n*" $text
    foreach line {"timeout 77" "maxmemory-samples 9" "hz 40" "# Generated by CONFIG REWRITE"} {
        assert_equal 1 [regexp -all -line "^$line\$" $text] $line
    }
    # A line that came into the file meanwhile and that nobody knows is kept as a comment.
    spit $path "$text\nwhat-is-this 1\n"
    $c config rewrite
    assert_match "*\n# ??? what-is-this 1\n*" [slurp $path]
}

test "every option as a flag" {noconn keydb} {
    set arguments {}
    foreach name [tried_names] {
        if {$name in {save client-output-buffer-limit oom-score-adj-values latency-tracking-info-percentiles}} {
            lappend arguments --$name {*}[other_value $name]
        } else {
            lappend arguments --$name [other_value $name]
        }
    }
    lassign [table_server $arguments] id c
    assert_everything $c
}

test "wrong values of fixed options are refused at the start" {noconn keydb} {
    foreach name [names_of_table] {
        if {[option_field $name mutable] || $name in {client-output-buffer-limit}} {
            continue
        }
        foreach {value text} [wrong_values $name] {
            set path [spit [fresh_dir]/test.conf "$name $value\n"]
            assert_equal 1 [catch {exec $::settings(server) $path --port 0 < /dev/null 2>@1} output]
            assert_match "*at line 1\n>>> '$name $value'\n[string map {( \\( [ \\[} $text]*" $output
        }
    }
}

# ---- keydb.conf

# {name value in_force}: lines "name value" and "#name value"; text of comments begins with "# ".
proc documented_options {} {
    set found {}
    foreach line [split [slurp $::table_root/keydb.conf] "\n"] {
        if {[regexp {^(#?)([a-z][a-z0-9_-]*)(?:\s+(.*))?$} $line -> mark name value]} {
            lappend found $name $value [expr {$mark eq {}}]
        }
    }
    return $found
}

set file_directives {include rename-command loadmodule user}
# What the file recommends instead of the default.
set recommended {bind}

test "keydb.conf names every option, and only options" {noconn keydb} {
    set named {}
    foreach {name value in_force} [documented_options] {
        lappend named $name
    }
    foreach name [concat [names_of_table] [dict keys $::own_options]] {
        assert {$name in $named} "keydb.conf does not name $name"
    }
    foreach name $named {
        assert {[dict exists $::options_table $name] || $name in $::file_directives ||
            [dict exists $::own_options $name]} "keydb.conf names $name, which nobody knows"
    }
}

test "the values in keydb.conf are the defaults" {noconn keydb} {
    lassign [table_server [list $::table_root/keydb.conf]] id c
    lassign [table_server {}] id plain
    set all [$plain config get *]
    dict for {name value} [$c config get *] {
        if {$name ni $::recommended && $name ne "port" && $name ne "dir"} {
            assert_equal [dict get $all $name] $value $name
        }
    }
    # Those in comments that have a default show it; the others show an example.
    foreach {name value in_force} [documented_options] {
        if {$in_force || ![dict exists $::options_table $name]} {
            continue
        }
        set preset [preset_of $name]
        if {$preset ne {} && $name ni {tls-port server-thread-affinity dir port maxmemory-clients} && $preset \
            ne "0"} {
            set before [value_of $plain $name]
            assert_equal $preset [string trim $value \"] $name
        }
    }
}

# The names from the head of its section on, and in force or not.
proc idle_section {} {
    set text [slurp $::table_root/keydb.conf]
    set at [string first "# ---- accepted options without effect" $text]
    assert {$at > 0}
    set names {}
    foreach line [split [string range $text $at end] "\n"] {
        assert {![regexp {^[a-z]} $line]} "in force, and does nothing: $line"
        if {[regexp {^#([a-z][a-z0-9_-]*)(\s|$)} $line -> name]} {
            lappend names $name
        }
    }
    return $names
}

test "keydb.conf names each option once" {noconn keydb} {
    set seen {}
    foreach {name value in_force} [documented_options] {
        if {$name ni {include rename-command user loadmodule save client-output-buffer-limit}} {
            assert {$name ni $seen} "keydb.conf names $name twice"
        }
        lappend seen $name
    }
}

# The server itself says, in its log, which of the options that were given have no effect.
test "what does nothing stands in keydb.conf's section for that, and the manual says so" {noconn keydb} {
    set path [spit [fresh_dir]/test.conf "[join [everything_lines] \n]\nlog-format legacy\n"]
    lassign [table_server [list $path]] id c
    set idle $::only_preset
    foreach {all name} [regexp -all -inline {'([a-z0-9_-]+)' is accepted but has no effect: } [process_log $id]] {
        lappend idle $name
    }
    assert {[llength $idle] > 50}
    set section [idle_section]
    set manual [slurp $::table_root/docs/directives.md]
    foreach name [concat [tried_names] $::only_preset] {
        assert_equal [expr {$name in $idle}] [expr {$name in $section}] "$name"
        if {[regexp "\n\\| `$name` \\| \[^|]* \\| \[^|]* \\| (\[^|]*)" $manual -> here]} {
            assert_equal [expr {$name in $idle}] [string match "no effect*" $here] "$name in the manual"
        } else {
            assert_equal hidden [option_field $name kind] "$name in the manual"
        }
    }
}
