# COMMAND: what the server says about its own commands. The expected rows are in data/commands.txt, and in
# data/commands_newer.txt where they are those of a newer Redis.

proc rows_of_file name {
    set rows {}
    foreach line [split [string trim [slurp $::here_dir/data/$name]] "\n"] {
        if {![string match "#*" $line]} {
            dict set rows [lindex $line 0] $line
        }
    }
    return $rows
}

proc known_commands {} {
    set rows {}
    set lines [rows_of_file commands.txt]
    if {!$::is_oracle} {
        set lines [dict merge $lines [rows_of_file commands_newer.txt]]
    }
    foreach line [dict values $lines] {
        # KeyDB takes a member as third word.
        if {!$::is_oracle && [lindex $line 0] eq "ping"} {
            lset line 4 {@connection @fast @replication} ;# as KeyDB
        }
        if {!$::is_oracle && [lindex $line 0] in {persist ttl pttl}} {
            lset line 1 -2
        }
        lappend rows $line
    }
    return $rows
}

# One search of a key spec, {type range spec {lastkey 0 ...}}, as one flat list.
proc spec_part pairs {
    return [concat [dict get $pairs type] [dict get $pairs spec]]
}

proc command_row info {
    lassign $info name arity flags first last step categories tips specs subcommands
    set shown {}
    foreach spec $specs {
        lappend shown [list [lsort [dict get $spec flags]] [spec_part [dict get $spec begin_search]] \
            [spec_part [dict get $spec find_keys]]]
    }
    return [list $name $arity [lsort $flags] [list $first $last $step] [lsort $categories] [lsort $tips] $shown]
}

with_server {} {
    test "COMMAND INFO has the facts about every command" {} {
        set wrong {}
        foreach row [known_commands] {
            set name [lindex $row 0]
            set info [lindex [r command info $name] 0]
            if {$info eq {}} {
                lappend wrong "$name is missing"
                continue
            }
            foreach expected $row actual [command_row $info] what {name arity flags keys acl tips specs} {
                if {[list {*}$expected] ne [list {*}$actual]} {
                    lappend wrong "$name: $what is {$actual}, not {$expected}"
                }
            }
        }
        if {$wrong ne {}} {
            fail "[llength $wrong] differences:\n[join $wrong \n]"
        }
    }

    test "the form of a COMMAND INFO entry" {} {
        set reply [r -typed command info get]
        assert_equal array [lindex $reply 0]
        set fields [lindex $reply 1 0 1]
        assert_equal {bulk int array int int int array array array array} [lmap field $fields {lindex $field 0}]
        assert_equal {status} [lsort -unique [lmap flag [lindex $fields 2 1] {lindex $flag 0}]]
        assert_equal {status} [lsort -unique [lmap flag [lindex $fields 6 1] {lindex $flag 0}]]
        r hello 3
        set fields [lindex [r -typed command info get] 1 0 1]
        assert_equal {bulk int set int int int set set set set} [lmap field $fields {lindex $field 0}]
        assert_equal map [lindex $fields 8 1 0 0]
    }

    test "notes of key specifications" {} {
        foreach {name noted} {set 1 getex 1 get 0} {
            set spec [lindex [r command info $name] 0 8 0]
            assert_equal $noted [dict exists $spec notes]
            assert {!$noted || [dict get $spec notes] ne {}}
            assert_equal [expr {3 + $noted}] [dict size $spec]
        }
    }

    test "COMMAND INFO of unknown, mixed case and subcommands" {} {
        assert_reply {array {nullbulk}} r command info nosuch
        assert_equal get [lindex [r command info GeT] 0 0]
        assert_reply {array {nullbulk}} r command info config|nosuch
        assert_equal config|get [lindex [r command info CONFIG|GET] 0 0]
        assert_equal {get {} set} [lmap entry [r command info get nosuch set] {lindex $entry 0}]
        r hello 3
        assert_reply {array {null}} r command info nosuch
    }

    test "COMMAND, COUNT, LIST and INFO agree" {} {
        set count [r command count]
        set names [lsort [lmap entry [r command] {lindex $entry 0}]]
        assert_equal $count [llength $names]
        assert_equal $names [lsort -unique $names]
        assert_equal $names [lsort [lmap entry [r command info] {lindex $entry 0}]]
        set listed [lsort [r command list]]
        assert_equal $names [lsearch -all -inline -not $listed *|*]
        foreach row [known_commands] {
            assert {[lindex $row 0] in $listed} [lindex $row 0]
        }
        r hello 3
        assert_equal array [lindex [r -typed command] 0]
    }

    test "containers list their subcommands" {} {
        foreach container {client config object command acl latency xinfo hotkeys} {
            set entry [lindex [r command info $container] 0]
            set subcommands [lmap sub [lindex $entry 9] {lindex $sub 0}]
            foreach row [known_commands] {
                if {[string match $container|* [lindex $row 0]]} {
                    assert {[lindex $row 0] in $subcommands} [lindex $row 0]
                }
            }
        }
    }

    test "COMMAND LIST with filters" {} {
        assert_equal getrange [r command list filterby pattern getr*]
        assert_equal {get getdel getex getrange getset} [lsort [lsearch -all -inline -not \
            [r command list FILTERBY PATTERN get*] getbit]]
        assert_equal {} [r command list filterby pattern nosuch*]
        assert_equal {} [r command list filterby aclcat nosuch]
        assert_equal {} [r command list filterby module nosuch]
        set write [r command list filterby aclcat write]
        assert {"set" in $write && "del" in $write && "get" ni $write && "swapdb" in $write}
        set connection [r command list filterby aclcat CONNECTION]
        assert {"client|id" in $connection && "ping" in $connection && "get" ni $connection}
        assert {"object|encoding" in [r command list filterby pattern object|*]}
        assert_refused "ERR syntax error" r command list foo
        assert_refused "ERR syntax error" r command list filterby pattern
        assert_refused "ERR syntax error" r command list filterby foo bar
        assert_refused "ERR syntax error" r command list filterby pattern a b
    }

    test "COMMAND GETKEYS" {} {
        foreach {expected command} {
            k {get k}  {a b} {mget a b}  {a c} {mset a 1 c 2}  {a b} {copy a b}  {a b} {rename a b}
            k {object encoding k}
            {a b c} {del a b c}  k {set k v ex 10}  {a b} {lcs a b len}  {a b} {watch a b}  {k k} {exists k k}
            k {move k 3}
            k {SetEx k 1 v}  {a b} {msetnx a 1 b 2}
        } {
            assert_equal $expected [r command getkeys {*}$command] $command
        }
        assert_refused "ERR Invalid command specified" r command getkeys nosuch a
        assert_refused "ERR Invalid command specified" r command getkeys object nosuch a
        assert_refused "ERR The command has no key arguments" r command getkeys config get x
        assert_refused "ERR The command has no key arguments" r command getkeys echo x
        assert_refused "ERR Invalid number of arguments specified for command" r command getkeys get a b
        assert_refused "ERR Invalid number of arguments specified for command" r command getkeys set a
        assert_refused "ERR wrong number of arguments for 'command|getkeys' command" r command getkeys
        foreach {text word} {"The command has no key arguments" ping "Invalid command specified" nosuch
            "Invalid number of arguments specified for command" get} {
            if {!$::is_oracle} {
                assert_refused "ERR $text" r command getkeys $word
                assert_refused "ERR $text" r command getkeysandflags $word
            }
        }
    }

    test "COMMAND GETKEYSANDFLAGS" {} {
        foreach {expected command} {
            {{k {RO access}}} {get k}  {{k {OW update}}} {set k v}  {{k {RW access update}}} {set k v get}
            {{a {OW update}} {b {OW update}}} {mset a 1 b 2}  {{a {RO access}} {b {OW update}}} {copy a b}
            {{a {RM delete}} {b {RM delete}}} {del a b}  {{k {RW insert}}} {append k x}  {{k RO}} {strlen k}
            {{a {RW access delete}} {b {OW update}}} {rename a b}
        } {
            assert_equal $expected [r command getkeysandflags {*}$command] $command
        }
        foreach {expected command} {
            {{k {RM delete}}} {delex k}  {{k {RW access delete}}} {delex k ifeq v}
            {{k {RW access update}}} {set k v ifeq w}  {{d {OW update}} {a {RO access}}} {sinterstore d a}
        } {
            if {!$::is_oracle} {
                assert_equal $expected [r command getkeysandflags {*}$command] $command
            }
        }
        assert_equal {array array {bulk status status}} [concat [lindex [r -typed command getkeysandflags get k] 0] \
            [lindex [r -typed command getkeysandflags get k] 1 0 0] [list [list bulk status status]]]
        r hello 3
        assert_equal set [lindex [r -typed command getkeysandflags get k] 1 0 1 1 0]
        assert_refused "ERR The command has no key arguments" r command getkeysandflags echo x
        assert_refused "ERR Invalid command specified" r command getkeysandflags nosuch a
    }

    test "COMMAND DOCS" {} {
        set docs [r command docs set get nosuch config|get]
        assert_equal {config|get get set} [lsort [dict keys $docs]]
        foreach name {set get} {
            set entry [dict get $docs $name]
            assert_equal string [dict get $entry group]
            assert_equal 1.0.0 [dict get $entry since]
            assert {[dict get $entry summary] ne {}}
            assert_equal key [dict get [lindex [dict get $entry arguments] 0] name]
        }
        assert_equal server [dict get [dict get $docs config|get] group]
        assert_equal {} [r command docs nosuch]
        set arguments [dict get [dict get $docs set] arguments]
        assert_equal {key value condition get expiration} [lmap argument $arguments {dict get $argument name}]
        set condition [lindex $arguments 2]
        assert_equal {oneof 2.6.12 optional} [list [dict get $condition type] [dict get $condition since] \
            [dict get $condition flags]]
        assert_equal {NX XX IFEQ IFNE IFDEQ IFDNE} [lmap token [dict get $condition arguments] {dict get $token token}]
        set arguments [dict get [r command docs hsetex] hsetex arguments]
        assert_equal {key condition fields_condition expiration fields} [lmap one $arguments {dict get $one name}]
        assert_equal {numfields integer} [lmap name {name type} {
            dict get [lindex [dict get [lindex $arguments end] arguments] 0] $name
        }]
        # Types and tokens that the notation alone does not tell.
        foreach {command place expected} {
            wait 1 {name timeout type integer}  waitaof 0 {name numlocal type integer}
            hscan 4 {name novalues type pure-token token NOVALUES}
            commandlog|len {0 0} {name slow type pure-token token SLOW}
            client|setinfo {0 0} {name libname type string token LIB-NAME}
            cluster|meet 2 {name cluster-bus-port type integer}  xpending {2 0} {name min-idle-time type integer}
            xclaim 3 {name min-idle-time type string}
        } {
            set arguments [dict get [r command docs $command] $command arguments]
            foreach index [lrange $place 0 end-1] {
                set arguments [dict get [lindex $arguments $index] arguments]
            }
            dict for {field value} $expected {
                assert_equal $value [dict get [lindex $arguments [lindex $place end]] $field] "$command $field"
            }
        }
        foreach {command since} {setnx 2.6.12 setex 2.6.12 psetex 2.6.12 quit 7.2.0 getset 6.2.0} {
            set entry [dict get [r command docs $command] $command]
            assert_equal [list $since deprecated] [list [dict get $entry deprecated_since] [dict get $entry doc_flags]]
            assert {[dict get $entry replaced_by] ne {}} $command
        }
    }

    test "COMMAND DOCS of everything, in the right types" {} {
        set all [r command docs]
        assert_equal [lsort [lmap entry [r command] {lindex $entry 0}]] [lsort [dict keys $all]]
        foreach {name entry} $all {
            foreach field {summary since group} {
                assert {[dict exists $entry $field]} "$name $field"
            }
        }
        assert {"client|id" in [dict keys [dict get [dict get $all client] subcommands]]}
        r hello 3
        set entry [r -typed command docs set]
        assert_equal {map map} [list [lindex $entry 0] [lindex $entry 1 1 0]]
    }

    test "errors and help" {} {
        assert_refused "ERR unknown subcommand 'foo'. Try COMMAND HELP." r command foo
        assert_refused "ERR wrong number of arguments for 'command|count' command" r command count x
        assert_match "HELP {    Print*this help.}" [lrange [r command help] end-1 end]
    }

    test "every listed command checks the number of its arguments" {} {
        foreach row [known_commands] {
            lassign $row name arity
            set least [expr {abs($arity)}]
            set words [split $name |]
            if {$least > [llength $words]} {
                assert_refused "ERR wrong number of arguments for '$name' command" r {*}$words
            }
            if {$arity > 0 && $name ni {quit exec}} {
                assert_refused "ERR wrong number of arguments for '$name' command" \
                    r {*}$words {*}[lrepeat [expr {$arity - [llength $words] + 1}] x]
            }
        }
    }
}

with_server {"rename-command get" fetch "rename-command strlen" "" "rename-command object" thing} {
    test "renamed commands go by their new name" {} {
        r set k v
        assert_refused "ERR unknown command 'get', with args beginning with: 'k' " r get k
        assert_reply {bulk v} r fetch k
        assert_refused "ERR wrong number of arguments for 'get' command" r FETCH
        assert_refused "ERR unknown command 'strlen', with args beginning with: 'k' " r strlen k
        assert_reply {bulk embstr} r thing encoding k
        assert_refused "ERR unknown subcommand 'nonsense'. Try THING HELP." r thing nonsense
        assert_equal "THING <subcommand> \[<arg> \[value\] \[opt\] ...\]. Subcommands are:" [lindex [r thing help] 0]
    }

    test "COMMAND of renamed commands" {} {
        assert_reply {array {nullbulk}} r command info get
        assert_equal get [lindex [r command info fetch] 0 0]
        assert_equal object|freq [lindex [r command info thing|freq] 0 0]
        set names [r command list]
        assert {"get" in $names && "strlen" ni $names && [llength $names] == [llength [lsort -unique $names]]}
        assert_equal [llength [r command]] [r command count]
        assert_equal [expr {2 * [r command count]}] [llength [r command docs]]
        assert_equal k [r command getkeys fetch k]
        assert_refused "ERR Invalid command specified" r command getkeys get k
    }
}

test "mistakes in rename-command end the start" {noconn} {
    foreach {words text} {
        {nonsense x} "No such command in rename-command"
        {get set} "Target command name already exists"
        {get} "Bad directive or wrong number of arguments"
    } {
        set id [server_launch [list --port [free_port] --save "" --rename-command {*}$words]]
        assert_equal 1 [process_wait $id]
        assert_match "*$text*" [process_log $id]
    }
}
