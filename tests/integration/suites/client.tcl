# CLIENT: what is shown about connections and what can be done to them.

proc my_line client {
    return [lindex [client_lines [$client client info]] 0]
}

proc gone client {
    return [$client -closed]
}

with_server {} {
    test "ids grow, one each" {} {
        set a [connect]
        set id [$a client id] ;# only now: two that wait to be accepted may be taken by two workers in any order
        set b [connect]
        assert_equal int [lindex [$a -typed client id] 0]
        assert_equal $id [$a client id]
        assert {[$b client id] > $id}
    }

    test "names" {} {
        assert_reply nullbulk r client getname
        assert_reply {status OK} r client setname worker:1
        assert_reply {bulk worker:1} r client getname
        assert_equal worker:1 [dict get [my_line r] name]
        foreach name [list "a b" "a\nb" "\x7f" "\x01" " " "\xc3\xa9"] {
            assert_refused "ERR Client names cannot contain spaces, newlines or special characters." r client setname \
                $name
        }
        assert_reply {bulk worker:1} r client getname
        assert_reply {status OK} r client setname ""
        assert_reply nullbulk r client getname
        r hello 3
        assert_reply null r client getname
        r client setname !~
        assert_reply {bulk !~} r client getname
    }

    test "CLIENT INFO has the fields Redis has, in its order" {} {
        set fields [dict keys [my_line r]]
        set known [list {*}{id addr laddr fd name age idle flags db sub psub ssub multi qbuf qbuf-free argv-mem \
            multi-mem rbs rbp obl oll
            omem tot-mem events cmd user redir resp}]
        assert_equal $known [lmap field $fields {
            if {$field ni $known} {
                continue
            }
            set field
        }]
    }

    test "CLIENT INFO tells the truth" {} {
        r client setname me
        r select 3
        set line [my_line r]
        assert_equal [r client id] [dict get $line id]
        assert_equal [r -address] [dict get $line addr]
        assert_match "127.0.0.1:[expr {[srv tls] ? [srv tls_port] : [srv port]}]" [dict get $line laddr]
        foreach {field value} {name me db 3 multi -1 sub 0 psub 0 ssub 0 flags N user default redir -1 resp 2 cmd \
            client|info
                events r omem 0 oll 0 qbuf 26 argv-mem 10} {
            assert_equal $value [dict get $line $field] $field
        }
        assert_range [dict get $line age] 0 5
        assert_range [dict get $line idle] 0 1
        r hello 3
        assert_equal 3 [dict get [my_line r] resp]
    }

    test "what was sent and done is not shown as waiting" {} {
        r set large [string repeat v 300000]
        set c [connect]
        $c client setname reader
        assert_equal 300000 [string length [$c get large]]
        wait_for {[client_field reader omem] == 0}
        $c client list
        assert_equal {0 0 0 r} [lmap field {omem oll argv-mem events} {client_field reader $field}]
        $c get nothing
        assert_equal {0 0 0} [lmap field {omem oll qbuf} {client_field reader $field}]
        $c -close
    }

    test "CLIENT LIST shows every connection" {} {
        set others {}
        for {set i 0} {$i < 8} {incr i} {
            set c [connect]
            $c client setname c$i
            $c select $i
            $c get k
            lappend others $c
        }
        set lines [client_lines [r client list]]
        assert_equal 9 [llength $lines]
        set ids {}
        foreach line $lines {
            lappend ids [dict get $line id]
            if {[string match c? [dict get $line name]]} {
                assert_equal c[dict get $line db] [dict get $line name]
                assert_equal get [dict get $line cmd]
            }
        }
        assert_equal [llength $ids] [llength [lsort -unique $ids]]
        assert_match "* multi -1 watch 0 qbuf * user default redir -1 resp 2 lib-name {} lib-ver {} *" [lindex $lines 0]
        foreach c $others {
            assert {[$c client id] in $ids}
        }
    }

    test "CLIENT LIST by id and by type" {} {
        set a [connect]
        set b [connect]
        set ids [list [$a client id] [$b client id]]
        assert_equal $ids [lmap line [client_lines [r client list id {*}$ids]] {dict get $line id}]
        assert_equal [lindex $ids 1] [lmap line [client_lines [r client list ID [lindex $ids 1] 999999]] \
            {dict get $line id}]
        assert_equal {} [client_lines [r client list id 999999]]
        wait_for {[llength [client_lines [r client list type normal]]] == 3} ;# others have left
        foreach type {pubsub replica slave master} {
            assert_equal {} [client_lines [r client list TYPE $type]] $type
        }
        assert_refused "ERR Unknown client type 'foo'" r client list type foo
        assert_refused "ERR Invalid client ID" r client list id x
        assert_refused "ERR syntax error" r client list id
        assert_refused "ERR syntax error" r client list foo
        assert_refused "ERR syntax error" r client list type
        assert_refused "ERR syntax error" r client list type normal x
    }

    test "CLIENT KILL by address" {} {
        set c [connect]
        $c ping
        assert_reply {status OK} r client kill [$c -address]
        assert {[gone $c]}
        assert_refused "ERR No such client" r client kill 127.0.0.1:1
        assert_refused "ERR No such client" r client kill nonsense
        set c [connect]
        $c ping
        assert_reply {int 1} r client kill addr [$c -address]
        assert {[gone $c]}
        assert_reply {int 0} r client kill addr 127.0.0.1:1
    }

    test "CLIENT KILL by id" {} {
        set c [connect]
        set id [$c client id]
        assert_reply {int 1} r client kill id $id
        assert {[gone $c]}
        assert_reply {int 0} r client kill id $id
        assert_reply {int 0} r client kill id [r client id]
        assert_refused "ERR client-id should be greater than 0" r client kill id 0
        assert_refused "ERR client-id should be greater than 0" r client kill id x
    }

    test "CLIENT KILL of oneself" {} {
        set c [connect]
        assert_reply {status OK} $c client kill [$c -address]
        assert {[gone $c]}
        set c [connect]
        assert_reply {int 1} $c client kill id [$c client id] skipme no
        assert {[gone $c]}
        set c [connect]
        assert_reply {int 0} $c client kill id [$c client id]
        assert_reply {int 0} $c client kill id [$c client id] skipme yes
        assert_reply {status PONG} $c ping
    }

    test "CLIENT KILL by local address, type and user" {} {
        foreach filter [list [list laddr 127.0.0.1:[expr {[srv tls] ? [srv tls_port] : [srv port]}]] {type normal} \
            {user default} \
                {TYPE NORMAL USER default SKIPME YES}] {
            set clients {}
            for {set i 0} {$i < 5} {incr i} {
                set c [connect]
                $c ping
                lappend clients $c
            }
            assert_reply {int 5} r client kill {*}$filter
            foreach c $clients {
                assert {[gone $c]} $filter
            }
        }
        foreach filter {{type pubsub} {type master} {type replica} {type slave} {laddr 127.0.0.1:1}} {
            assert_reply {int 0} r client kill {*}$filter
        }
        assert_reply {status PONG} r ping
    }

    test "CLIENT KILL with several filters kills who meets all" {} {
        set a [connect]
        set b [connect]
        set id [$a client id]
        $b ping
        assert_reply {int 0} r client kill id $id addr [$b -address]
        assert_reply {int 1} r client kill id $id addr [$a -address] type normal user default
        assert {[gone $a]}
        assert_reply {status PONG} $b ping
    }

    test "CLIENT KILL refuses" {} {
        assert_refused "ERR Unknown client type 'foo'" r client kill type foo
        assert_refused "ERR No such user 'nobody'" r client kill user nobody
        foreach words {{skipme maybe} {a b c} {id} {id 1 addr} {foo bar}} {
            if {[llength $words] > 1} {
                assert_refused "ERR syntax error" r client kill {*}$words
            }
        }
        assert_refused "ERR wrong number of arguments for 'client|kill' command" r client kill
    }

    test "a killed client's pipeline ends where it was" {} {
        set c [connect]
        set id [$c client id]
        $c -raw "SET a 1\r\nCLIENT KILL ID $id SKIPME no\r\nSET b 1\r\n"
        assert_equal +OK [$c -line]
        assert_equal :1 [$c -line]
        assert {[gone $c]}
        assert_reply {int 1} r exists a b
    }

    test "NO-EVICT and GETREDIR" {} {
        assert_reply {status OK} r client no-evict on
        assert_match "*e*" [dict get [my_line r] flags]
        assert_reply {status OK} r client no-evict off
        assert_equal N [dict get [my_line r] flags]
        assert_refused "ERR syntax error" r client no-evict maybe
        assert_reply {int -1} r client getredir
    }

    test "NO-TOUCH" {keydb slow} {
        assert_reply {status OK} r client no-touch on
        assert_match "*T*" [dict get [my_line r] flags]
        r set k v
        wait_for {[r object idletime k] >= 1}
        r get k
        assert_range [r object idletime k] 1 5
        r touch k
        assert_range [r object idletime k] 0 0
        assert_reply {status OK} r client no-touch off
        assert_refused "ERR syntax error" r client no-touch maybe
    }

    test "SETINFO" {keydb} {
        assert_reply {status OK} r client setinfo lib-name my-lib
        assert_reply {status OK} r client setinfo LIB-VER 1.2.3
        assert_equal {my-lib 1.2.3} [list [dict get [my_line r] lib-name] [dict get [my_line r] lib-ver]]
        assert_refused "ERR lib-name cannot contain spaces, newlines or special characters." r client setinfo lib-name \
            "a b"
        assert_refused "ERR lib-ver cannot contain spaces, newlines or special characters." r client setinfo lib-ver \
            "1\n"
        assert_refused "ERR Unrecognized option 'foo'" r client setinfo foo bar
        assert_reply {status OK} r client setinfo lib-name ""
        assert_equal {} [dict get [my_line r] lib-name]
        assert_refused "ERR wrong number of arguments for 'client|setinfo' command" r client setinfo lib-name
    }

    test "subcommands are checked" {} {
        assert_refused "ERR unknown subcommand 'foo'. Try CLIENT HELP." r client foo
        assert_refused "ERR wrong number of arguments for 'client' command" r client
        foreach {sub words} {id x info x getname x setname {} setname {a b} getredir x reply {} reply {on off} \
            no-evict {}
                help x} {
            assert_refused "ERR wrong number of arguments for 'client|$sub' command" r client $sub {*}$words
        }
        set help [r client help]
        assert_equal "CLIENT <subcommand> \[<arg> \[value\] \[opt\] ...\]. Subcommands are:" [lindex $help 0]
        assert_match "HELP {    Print*this help.}" [lrange $help end-1 end]
    }

    test "connections are counted and forgotten" {} {
        r config resetstat
        set clients {}
        for {set i 0} {$i < 30} {incr i} {
            lappend clients [connect]
        }
        foreach c $clients {
            $c ping
        }
        assert_equal 31 [info_field connected_clients clients]
        assert_equal 30 [info_field total_connections_received stats]
        foreach c $clients {
            $c -close
        }
        wait_for {[info_field connected_clients clients] == 1}
        assert_equal 1 [llength [client_lines [r client list]]]
    }

    test "idle and age" {slow} {
        set c [connect]
        $c ping
        set id [$c client id]
        # Their clocks differ by up to a millisecond.
        wait_for {
            [dict get [lindex [client_lines [r client list id $id]] 0] idle] >= 1 &&
            [dict get [lindex [client_lines [r client list id $id]] 0] age] >= 1
        }
        assert_range [dict get [lindex [client_lines [r client list id $id]] 0] age] 1 5
        $c ping
        assert_equal 0 [dict get [lindex [client_lines [r client list id $id]] 0] idle]
    }

    # Whom a filter means is known from the fields of the whole list.
    test "the filters of CLIENT LIST and CLIENT KILL, and their opposites" {keydb} {
        r acl setuser u on nopass +@all ~* &*
        foreach {name db user library version} {a 1 default one 1.0 b 2 u one 2.0 c 2 default two 2.0 {} 0 u {} {}} {
            set c [connect]
            if {$user eq "u"} {
                $c auth u x
            }
            $c client setname $name
            $c client setinfo lib-name $library
            $c client setinfo lib-ver $version
            $c select $db
            lappend others $c
        }
        [lindex $others 0] multi
        [lindex $others 1] subscribe x
        [lindex $others 2] client no-touch on
        [lindex $others 2] client tracking on bcast
        set all [client_lines [r client list]]
        assert_equal 5 [llength $all]
        set line [lindex $all 2]
        set ip [join [lrange [split [dict get $line addr] :] 0 end-1] :]
        foreach {words condition} [list \
            "id [dict get $line id]" {$id == [dict get $line id]} \
            "id [dict get $line id] 999999 [dict get [lindex $all 0] id]" \
                {$id in [list [dict get $line id] [dict get [lindex $all 0] id]]} \
            "addr [dict get $line addr]" {$addr eq [dict get $line addr]} \
            "laddr [dict get $line laddr]" {$laddr eq [dict get $line laddr]} \
            "ip $ip" 1   "ip 1.2.3.4" 0   "user u" {$user eq "u"}   "user default" {$user eq "default"} \
            "name b" {$name eq "b"}   "name {}" {$name eq ""}   "lib-name one" {${lib-name} eq "one"} \
            "lib-ver 2.0" {${lib-ver} eq "2.0"}   "db 2" {$db == 2}   "type pubsub" {"P" in [split $flags ""]} \
            "type normal" {"P" ni [split $flags ""]}   "type primary" 0   "flags tB" {[string match *t*B* $flags]} \
            "flags x" {"x" in [split $flags ""]}   "flags TB" {[string match *B*T* $flags]} \
            "flags N" {$flags eq "N"} \
        ] {
            set meant {}
            set others_of {}
            foreach one $all {
                dict with one {
                    lappend [expr {[expr $condition] ? "meant" : "others_of"}] $id
                }
            }
            set not "not-[lindex $words 0] [lrange $words 1 end]"
            set found [lmap one [client_lines [r client list {*}$words]] {dict get $one id}]
            assert_equal $meant [lsort -integer $found] $words
            assert_equal $others_of [lmap one [client_lines [r client list {*}$not]] {dict get $one id}] $not
            assert_equal {} [client_lines [r client list {*}$words {*}$not]] "$words $not"
        }
        assert_equal 4 [llength [client_lines [r client list skipme yes]]]
        assert_equal 5 [llength [client_lines [r client list skipme no not-db 15]]]
        assert_equal 1 [llength [client_lines [r client list db 2 user u]]]
        assert_equal 1 [llength [client_lines [r client list db 1 db 2 user u]]] "the last one counts"
        assert_equal {} [client_lines [r client list maxage 1000]]
        assert_equal {} [client_lines [r client list idle 1000]]
        assert_reply {int 0} r client kill idle 1000
        assert_reply {int 2} r client kill db 2
        assert_reply {int 1} r client kill not-user u not-name nobody
        assert_reply {int 1} r client kill id 999999 [dict get [lindex [client_lines [r client list user u]] 0] id]
        assert_equal 1 [llength [client_lines [r client list]]]
        set last [connect]
        assert_reply {int 0} $last client kill id [$last client id]
        assert_reply {int 1} $last client kill id [$last client id] skipme no
        assert {[$last -closed]}
        r acl deluser u
    }

    test "filters refuse" {keydb} {
        foreach {words error} {
            {id} "syntax error"   {foo bar} "syntax error"   {not-maxage 1} "syntax error"
            {not-skipme yes} "syntax error"
            {not- x} "syntax error"   {skipme maybe} "syntax error"   {addr} "syntax error"   {id 1 addr} "syntax error"
            {user nobody} "No such user 'nobody'"   {not-user nobody} "No such user 'nobody'"
            {type foo} "Unknown client type 'foo'"   {db 16} "DB number should be between 0 and 15"
            {db -1} "DB number should be between 0 and 15"
            {not-db 16} "NOT-DB number should be between 0 and 15"
            {not-flags Nz} "Unknown flags found in the NOT-FLAGS filter: Nz"
            {db x} "DB is not an integer or out of range"   {flags Nz} "Unknown flags found in the provided filter: Nz"
            {maxage 0} "maxage should be greater than 0"   {maxage x} "maxage is not an integer or out of range"
            {idle 0} "idle should be greater than 0"   {idle x} "idle is not an integer or out of range"
        } {
            assert_refused "ERR $error" r client list {*}$words
            if {$words ne "id" && $words ne "addr"} {
                assert_refused "ERR $error" r client kill {*}$words
            }
        }
        assert_refused "ERR Invalid client ID" r client list id x
        assert_refused "ERR Invalid client ID" r client list not-id x
        foreach words {{id 0} {id x} {id 1 -1} {not-id 0}} {
            assert_refused "ERR client-id should be greater than 0" r client kill {*}$words
        }
        assert_refused "ERR No such client" r client kill 1.2.3.4:5
        assert_reply {status PONG} r ping
    }
}
