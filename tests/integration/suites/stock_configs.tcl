# Configurations that others have written: with every directive of redis-server 7.0 and of KeyDB, Debian's, and hardened
# ones. What they are made of is asked of those servers, so each test needs one.

# Directives whose value in a file is several words.
set stock_words {bind client-output-buffer-limit latency-tracking-info-percentiles oom-score-adj-values save}
# What is about the other server's own place, or of another kind here, each with the reason.
set stock_own {
    port "ours is another"  dir "likewise"
    bind "KeyDB tells none where it listens everywhere"
    io-threads "threads of another kind: 1 there is what 0 is here"
    min-clients-per-thread "connections are spread by load"
    tls-allowlist "a list there, a string here"
}
proc stock_oracle which {
    if {$which eq "redis"} {
        if {$::settings(oracle) eq {}} {
            skip "needs --oracle, a redis-server 7.0"
        }
        return $::settings(oracle)
    }
    if {![info exists ::env(KEYDB_ORACLE)]} {
        skip "KEYDB_ORACLE does not name a keydb-server 6.3.4"
    }
    return $::env(KEYDB_ORACLE)
}

# What the other server answers to these commands.
proc ask_oracle {program args} {
    set port [free_port]
    set dir [fresh_dir]
    set id [process_start [list $program --port $port --dir $dir --save {} --appendonly no] $dir/log]
    wait_for {[process_alive $id] && ![catch {set c [connect -port $port -tls 0]}]}
    set answers [lmap words $args {$c {*}$words}]
    $c -close
    assert_equal 0 [process_stop $id]
    return $answers
}

proc stock_line {name value} {
    if {$name in $::stock_words && $value ne {}} {
        return "$name $value\n"
    }
    return "$name \"[string map {\\ \\\\ \" \\\"} $value]\"\n"
}

# A server of ours with that file; its connection.
proc start_with {file args} {
    upvar id id port port
    set port [free_port]
    set id [server_launch [list $file --port $port --dir [fresh_dir] --daemonize no --pidfile {} --logfile {} \
        {*}[thread_args] {*}$args]]
    wait_for {![process_alive $id] || ![catch {set c [connect -port $port -tls 0]}]}
    assert {[process_alive $id]} [process_log $id]
    return $c
}

foreach which {redis keydb} {
    test "every directive of $which is known, with its default" {noconn keydb} [string map [list @which $which] {
        lassign [ask_oracle [stock_oracle @which] {config get *}] pairs
        set text {}
        dict for {name value} $pairs {
            if {$name ni {port dir} && !($name eq {bind} && $value eq {})} {
                append text [stock_line $name $value]
            }
        }
        set c [start_with [spit [fresh_dir]/server.conf $text]]
        set wrong {}
        dict for {name value} $pairs {
            if {[dict exists $::stock_own $name]} continue
            set here [$c config get $name]
            if {$here ne [list $name $value]} {
                lappend wrong "$name is '[lindex $here 1]', not '$value'"
            }
        }
        assert_equal {} $wrong
        assert {[dict size $pairs] > 180}
        assert_equal PONG [$c ping]
        $c -close
        assert_equal 0 [process_stop $id]
    }]
}

test "Debian's redis.conf starts the server" {noconn keydb} {
    set file [file join [file dirname [stock_oracle redis]] root etc redis redis.conf]
    if {![file exists $file]} {
        skip "Debian's package is not unpacked beside redis-server"
    }
    # Its folder is made by the package.
    assert_equal 1 [regsub -line {^dir .*$} [slurp $file] "dir [fresh_dir]" text]
    set c [start_with [spit [fresh_dir]/redis.conf $text]]
    assert_equal PONG [$c ping]
    assert_equal {protected-mode yes} [$c config get protected-mode]
    assert_equal {save {3600 1 300 100 60 10000}} [$c config get save]
    $c -close
    assert_equal 0 [process_stop $id]
}

test "a hardened configuration: every command renamed, users of every category and command" {noconn keydb} {
    lassign [ask_oracle [stock_oracle redis] {acl cat} {command list}] categories commands
    set names [lmap name $commands {expr {[string first | $name] < 0 ? $name : [continue]}}]
    assert {[llength $categories] > 20 && [llength $names] > 220}
    set file [fresh_dir]/server.conf
    set users "user default on nopass ~* &* +@all\n"
    foreach category $categories {
        append users "user cat-$category on nopass ~* &* -@all +@$category\n"
        append users "user not-$category on nopass ~* &* +@all -@$category\n"
    }
    foreach name $names {
        append users "user one-$name on nopass ~* &* -@all +$name\nuser no-$name on nopass ~* &* +@all -$name\n"
    }
    spit [file dirname $file]/users.acl $users
    foreach name $names {
        append text "rename-command $name [expr {$name in {get set acl shutdown} ? "x-$name" : "\"\""}]\n"
    }
    set c [start_with [spit $file $text] --aclfile [file dirname $file]/users.acl]
    assert_equal OK [$c x-set k v]
    assert_equal v [$c x-get k]
    assert_equal [expr {1 + 2 * ([llength $categories] + [llength $names])}] [llength [$c x-acl users]]
    foreach name $names {
        assert_error "ERR unknown command*" {$c $name}
    }
    $c -close
    assert_equal 0 [process_stop $id]
}

# directive -> {redis keydb here}, as the manual has it.
proc stock_table {} {
    set table {}
    foreach line [split [slurp $::lib_dir/../../../docs/directives.md] "\n"] {
        if {[regexp {^\| `([^`]+)` \| (\S+) \| (\S+) \| (.*) \|$} $line all name redis keydb here]} {
            dict set table $name [list $redis $keydb $here]
        }
    }
    return $table
}

# In files alone, or told of nowhere.
set stock_silent {include loadmodule rename-command user list-max-ziplist-entries list-max-ziplist-value}

foreach {which column} {redis 0 keydb 1} {
    test "the manual's table has each directive of $which" {noconn keydb} [string map [list @which $which \
            @column $column] {
        set table [stock_table]
        set names [dict keys [dict remove [dict filter $table script {name row} {
            string equal [lindex $row @column] yes
        }] {*}$::stock_silent]]
        # Some are told only to who asks for them by name.
        set answers [ask_oracle [stock_oracle @which] {config get *} {*}[lmap name $names {list config get $name}]]
        assert_equal {} [lmap name [dict keys [lindex $answers 0]] {
            expr {$name in $names ? [continue] : $name}
        }]
        assert_equal {} [lmap name $names answer [lrange $answers 1 end] {
            expr {$answer ne {} ? [continue] : $name}
        }]
    }]
}

with_server {} {
    test "the manual's table has each directive of this server" {keydb} {
        set table [stock_table]
        assert_equal {} [lmap name [dict keys [r config get *]] {
            expr {[dict exists $table $name] ? [continue] : $name}
        }]
        assert_equal {} [lmap name [dict keys [dict remove $table {*}$::stock_silent]] {
            expr {[r config get $name] ne {} ? [continue] : $name}
        }]
    }
}
