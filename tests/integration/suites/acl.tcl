# Users and what they may do.

set no_key "NOPERM No permissions to access a key"
set no_channel "NOPERM No permissions to access a channel"
set no_database "NOPERM No permissions to access database"
set wrongpass "WRONGPASS invalid username-password pair or user is disabled."

proc no_command {name {user u}} {
    return "NOPERM User $user has no permissions to run the '$name' command"
}

# A connection of that user.
proc connect_as {user {password x}} {
    set c [connect]
    $c auth $user $password
    return $c
}

proc set_user {name args} {
    assert_equal OK [r acl setuser $name reset {*}$args]
}

proc user_field {name field} {
    return [dict get [r acl getuser $name] $field]
}

proc user_line name {
    foreach line [r acl list] {
        if {[lindex [split $line] 1] eq $name} {
            return [join [lrange [split $line] 2 end]]
        }
    }
    return {}
}

# Command, and the database that the log names; none: it is allowed.
proc assert_databases {client cases} {
    foreach {command object} $cases {
        r acl log reset
        if {$object eq {}} {
            $client {*}$command
            assert_equal {} [r acl log] $command
        } else {
            assert_refused $::no_database $client {*}$command
            set entry [lindex [r acl log] 0]
            assert_equal [list database $object] [list [dict get $entry reason] [dict get $entry object]] $command
        }
    }
}

proc rule_error {rule text} {
    assert_refused "ERR Error in ACL SETUSER modifier '$rule': $text" r acl setuser u $rule
}

# A folder with an ACL file, and a server that reads it.
proc acl_file text {
    return [spit [fresh_dir]/users.acl $text]
}

with_server {} {
    test "the default user, and a new one" {} {
        assert_equal default [r acl whoami]
        assert_equal default [r acl users]
        assert_equal {{user default on nopass ~* &* +@all}} [r acl list]
        assert_equal OK [r acl setuser u]
        assert_equal "off resetchannels -@all" [user_line u]
        assert_equal {default u} [r acl users]
        set databases [expr {$::is_oracle ? {} : {databases alldbs}}]
        assert_equal [list flags off passwords {} commands -@all keys {} channels {} selectors {} {*}$databases] \
            [r acl getuser u]
        assert_reply {int 1} r acl deluser u nobody
        assert_reply nullbulk r acl getuser u
        assert_refused "ERR The 'default' user cannot be removed" r acl deluser default
        assert_refused "ERR Usernames can't contain spaces or null characters" r acl setuser "a b" on
        assert_refused "ERR Usernames can't contain spaces or null characters" r acl setuser "a\x00b" on
    }

    test "rules that are wrong change nothing" {} {
        set_user u on ~a +get
        set before [user_line u]
        set keys "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any\
            effect. Try 'resetkeys' to start with an empty list of patterns"
        foreach rule {bogus ~a\ b &a\tb %X~f %~a % %RR~y %RWR~x +set| (on) (>x) (reset) (bogus) ((+get)) +client|} {
            rule_error $rule "Syntax error"
        }
        foreach rule {+nosuch -nosuch +@nosuch +@ -@ + - +| +config|nosuch -select|0 +get|x|y} {
            rule_error $rule "Unknown command or category name in ACL"
        }
        rule_error +config|get|x "Allowing first-arg of a subcommand is not supported"
        rule_error <nothing "The password you are trying to remove from the user does not exist"
        foreach rule [list #0a !zz #[string repeat A 64]] {
            rule_error $rule "The password hash must be exactly 64 characters and contain only lowercase\
                hexadecimal characters"
        }
        assert_refused "ERR Unmatched parenthesis in acl selector starting at '(+get'." r acl setuser u +set (+get ~x
        assert_refused "ERR Error in ACL SETUSER modifier '~b': $keys" r acl setuser u +set ~* ~b
        assert_refused "ERR Error in ACL SETUSER modifier 'bogus': Syntax error" r acl setuser u +set off bogus
        assert_equal $before [user_line u]
        assert_refused "ERR Error in ACL SETUSER modifier 'bogus': Syntax error" r acl setuser fresh bogus
        assert_equal {} [user_line fresh]
        r acl deluser u
    }

    test "passwords" {} {
        set hash ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb
        set_user u on >a >a >b +acl|whoami
        assert_equal 2 [llength [user_field u passwords]]
        assert_equal $hash [lindex [user_field u passwords] 0]
        foreach password {a b} {
            assert_equal u [[connect_as u $password] acl whoami]
        }
        r acl setuser u <a
        assert_refused $::wrongpass [connect] auth u a
        r acl setuser u #$hash !3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d
        assert_equal [list $hash] [user_field u passwords]
        r acl setuser u nopass
        assert_equal {on nopass sanitize-payload} [user_field u flags]
        assert_equal {} [user_field u passwords]
        assert_equal u [[connect_as u whatever] acl whoami]
        r acl setuser u >c
        assert_equal {on sanitize-payload} [user_field u flags]
        r acl setuser u resetpass
        foreach password {a b c {}} {
            assert_refused $::wrongpass [connect] auth u $password
        }
        r acl setuser u >d off
        assert_refused $::wrongpass [connect] auth u d
        r acl setuser u on ">\x00\xff b"
        assert_equal u [[connect_as u "\x00\xff b"] acl whoami]
        r acl deluser u
    }

    test "patterns of keys are told as they were given" {} {
        set_user u ~a* %R~b %W~c %RW~d %wr~e %r~f %R~b %W~b ~*
        assert_equal ~* [user_field u keys]
        set_user u ~a* %R~b %W~c %RW~d %wr~e %r~f
        assert_equal "~a* %R~b %W~c ~d ~e %R~f" [user_field u keys]
        r acl setuser u %W~b
        assert_equal "~a* ~b %W~c ~d ~e %R~f" [user_field u keys]
        r acl setuser u resetkeys %R~*
        assert_equal "%R~*" [user_field u keys]
        foreach rule {~b %R~b "%RW~x y"} {
            r acl setuser u allkeys
            assert_error "*Adding a pattern after the \\* pattern*" {r acl setuser u $rule}
        }
        set_user u &a &b &a
        assert_equal "&a &b" [user_field u channels]
        r acl setuser u resetchannels &c &*
        assert_equal "&*" [user_field u channels]
        r acl deluser u
    }

    test "rules on commands: in their order, without what a later one made void" {keydb} {
        foreach {rules told} {
            {+set +get}                             {-@all +set +get}
            {+get +@read -get}                      {-@all +@read -get}
            {+@all -@hash -@slow +hget -@hash}      {+@all -@slow +hget -@hash}
            {+@HASH +@hash +@HaSh}                  {-@all +@hash}
            {+HGET +hget +hGeT}                     {-@all +hget}
            {+@hash +@slow +@set +@set +@slow +@hash} {-@all +@set +@slow +@hash}
            {+hget -hset +hset -hget}               {-@all +hset -hget}
            {+client|list +client|list +config|get +config +acl|list -acl} {-@all +client|list +config -acl}
            {+select|0 +select|0 +debug|help +debug} {-@all +select|0 +debug}
            {-@dangerous}                           {-@all -@dangerous}
            {+config +config|get -config|set +config} {-@all +config}
            {+@read +@all}                          {+@all}
            {+get nocommands}                       {-@all}
            {+set|A +set|a +set|B}                  {-@all +set|A +set|B}
            {-get allcommands -flushall}            {+@all -flushall}
        } {
            set_user u {*}$rules
            assert_equal $told [user_field u commands] $rules
            # What is told means the same.
            r acl setuser again reset {*}$told
            assert_equal $told [user_field again commands]
        }
        r acl deluser u again
    }

    test "each category, alone and taken away" {} {
        foreach category [r acl cat] {
            set_user u +@all -@$category
            assert_equal "+@all -@$category" [user_field u commands]
            set_user u +@$category
            assert_equal "-@all +@$category" [user_field u commands]
            foreach command [r acl cat $category] {
                assert {"@$category" in [lindex [lindex [r command info $command] 0] 6]} "$command $category"
            }
        }
        assert_refused "ERR Unknown category 'nosuch'" r acl cat nosuch
        r acl deluser u
    }

    test "commands, subcommands and first arguments" {} {
        set_user u on nopass ~* +get +config|get +client -client|kill +select|1
        set c [connect_as u]
        assert_reply nullbulk $c get k
        assert_refused [no_command set] $c set k v
        assert_refused [no_command config|set] $c config set maxmemory 0
        $c config get maxmemory
        $c client id
        assert_refused [no_command client|kill] $c client kill id 1
        assert_reply {status OK} $c select 1
        assert_refused [no_command select] $c select 2
        assert_refused "ERR wrong number of arguments for 'set' command" $c set k
        assert_refused "ERR unknown command 'nosuch', with args beginning with: " $c nosuch
        assert_refused [no_command acl|whoami] $c acl whoami
        assert_reply {status OK} $c auth u x
        assert_equal array [lindex [$c -typed hello 2 auth u x] 0]
    }

    test "keys: to be read, to be written, or both" {} {
        r set r 1
        set_user u on nopass +@all ~both* %R~r* %W~w*
        set c [connect_as u]
        assert_reply {bulk 1} $c get r
        assert_refused $::no_key $c set r 2
        assert_refused $::no_key $c incr r
        assert_reply {status OK} $c set w 2
        assert_refused $::no_key $c get w
        assert_refused $::no_key $c set w 3 get
        assert_refused $::no_key $c incr w
        assert_reply {int 1} $c incr both
        assert_refused $::no_key $c mget r other
        assert_reply {array {{bulk 1} {bulk 1}}} $c mget r both
        assert_refused $::no_key $c copy w both2
        assert_reply {int 1} $c copy r w2
        assert_refused $::no_key $c rename r w9
        assert_refused $::no_key $c bitfield w get u8 0
        assert_reply {array {{int 49}}} $c bitfield_ro r get u8 0
        assert_reply {int 1} $c exists r
        assert_reply {int 1} $c exists w
        assert_refused $::no_key $c exists other
        assert_reply {status none} $c type both3
    }

    test "selectors: any one of them, all of it" {} {
        r mset a 1 b 2
        set_user u on nopass +get ~a (+set ~b) (+mget %R~a %R~b)
        assert_equal "on nopass sanitize-payload ~a resetchannels -@all +get (~b resetchannels -@all +set) (%R~a %R~b\
            resetchannels -@all +mget)" [user_line u]
        set c [connect_as u]
        assert_reply {bulk 1} $c get a
        assert_refused $::no_key $c get b
        assert_reply {status OK} $c set b 3
        assert_refused $::no_key $c set a 3
        assert_reply {array {{bulk 1} {bulk 3}}} $c mget a b
        assert_refused [no_command del] $c del a
        assert_equal "User u has no permissions to access the 'c' key" [r acl dryrun u mget a b c]
        r acl setuser u clearselectors
        assert_refused [no_command mget] $c mget a b
        r acl setuser u (+del ~x) ( ~y +del ) reset
        assert_equal {} [user_field u selectors]
    }

    test "a change reaches connections that are there, also in the middle of a pipeline" {} {
        set_user u on nopass +@all ~*
        set others {}
        for {set i 0} {$i < 12} {incr i} {
            lappend others [connect_as u]
        }
        foreach c $others {
            assert_reply {status OK} $c set k v
        }
        r acl setuser u -set
        foreach c $others {
            assert_refused [no_command set] $c set k v
        }
        r acl setuser u +set
        foreach c $others {
            assert_reply {status OK} $c set k v
        }
        set c [lindex $others 0]
        $c -raw "GET k\r\nACL SETUSER u -get\r\nGET k\r\nACL SETUSER u +get\r\nGET k\r\n"
        assert_equal {bulk v} [$c -reply]
        assert_equal {status OK} [$c -reply]
        assert_equal [list error [no_command get]] [$c -reply]
        assert_equal {status OK} [$c -reply]
        assert_equal {bulk v} [$c -reply]
    }

    test "the default user may be restricted, too" {} {
        set admin [connect]
        set_user root on nopass +@all ~* &*
        $admin auth root x
        r set k v
        $admin acl setuser default -@all +get
        assert_refused [no_command set default] r set k v
        assert_refused [no_command ping default] [connect] ping
        assert_reply {bulk v} [connect] get k
        $admin acl setuser default +@all
        assert_reply {status OK} r set k v
        assert_reply {bulk v} r get k
    }

    test "who is deleted is closed; a user of that name is another one" {} {
        set_user u on nopass +@all
        set a [connect_as u]
        set b [connect_as u]
        r acl deluser u
        set_user u on nopass +@all
        assert_error * {$a ping; $a ping}
        assert_error * {$b ping; $b ping}
        set c [connect_as u]
        assert_reply {int 1} $c acl deluser u
        assert_error * {$c ping}
        assert_reply {status PONG} r ping
    }

    test "in a transaction: when it is queued, and when it runs" {} {
        set_user u on nopass +@all -del ~a* &c
        set c [connect_as u]
        $c multi
        assert_refused [no_command del] $c del a
        assert_refused $::no_key $c set b 1
        assert_refused "EXECABORT Transaction discarded because of previous errors." $c exec
        $c multi
        $c set a 1
        $c get a
        $c set a2 1
        $c publish c x
        r acl setuser u -get resetkeys ~a2 resetchannels
        set changed "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call.\
            This command is no longer allowed for the following reason:"
        assert_equal [list array [list [list error "$changed no permission to touch the specified keys"] \
            [list error "$changed no permission to execute the command or subcommand"] {status OK} \
            [list error "$changed no permission to access one of the channels used as arguments"]]] [$c -typed exec]
        assert_equal {multi multi multi} [lmap entry [lrange [r acl log] 0 2] {dict get $entry context}]
        if {!$::is_oracle} {
            assert_match "* cmd=exec *" [dict get [lindex [r acl log] 0] client-info]
        }
        $c multi
        $c acl setuser u +get allkeys
        assert_refused [no_command get] $c get a
    }

    test "what scripts call, and redis.acl_check_cmd" {keydb} {
        r acl log reset
        set_user u on nopass +@all -del -object +object|encoding ~a &c
        set c [connect_as u]
        foreach {call error} [list {'del','a'} [no_command del] {'object','freq','a'} [no_command object|freq] \
                {'get','b'} $::no_key {'mget','a','b'} $::no_key {'publish','d','x'} $::no_channel] {
            set error "ERR ACL failure in script: [string range $error [string length "NOPERM "] end]"
            assert_refused $error $c eval "return redis.pcall($call)" 0
            assert_error "$error script: *" {$c eval "return redis.call($call)" 0}
            assert_reply nullbulk $c eval "return redis.acl_check_cmd($call)" 0
        }
        foreach call {{'get','a'} {'object','encoding','a'} {'publish','c','x'} {'auth','x'}} {
            assert_reply {int 1} $c eval "return redis.acl_check_cmd($call)" 0
        }
        assert_error "ERR Invalid command passed to redis.acl_check_cmd()*" \
            {$c eval "return redis.acl_check_cmd('nosuch')" 0}
        assert_error "ERR Wrong number of args for redis.acl_check_cmd()*" \
            {$c eval "return redis.acl_check_cmd('get')" 0}
        assert_match "* cmd=eval *" [dict get [lindex [r acl log] 0] client-info]
        assert_refused $::no_key $c eval "return 1" 1 b
        assert_equal {bulk 1} [$c -typed eval "redis.call('set',KEYS\[1\],1) return redis.call('get','a')" 1 a]
        set log [lmap entry [r acl log] {list [dict get $entry context] [dict get $entry reason] \
            [dict get $entry object] [dict get $entry count]}]
        foreach entry {{lua command del 2} {lua command object|freq 2} {lua key b 4} {lua channel d 2}
                {toplevel key b 1}} {
            assert {$entry in $log} "$entry in $log"
        }
    }

    test "SORT looks at other keys only for who may read all" {} {
        r rpush l 2 1
        set_user u on nopass +@all ~l %W~*
        set c [connect_as u]
        assert_equal {1 2} [$c sort l]
        assert_equal {2 1} [$c sort l by nosort]
        foreach option {BY GET} {
            assert_refused "ERR $option option of SORT denied due to insufficient ACL permissions." $c sort l $option x*
            assert_refused "ERR $option option of SORT denied due to insufficient ACL permissions." \
                $c sort_ro l $option x*
        }
        r acl setuser u %R~*
        assert_equal {1 2} [$c sort l by x* get #]
        r acl setuser u resetkeys ~l (%R~* +get)
        assert_error "ERR BY option*" {$c sort l by x*}
        r acl setuser u (%R~* +sort)
        assert_equal {1 2} [$c sort l by x* get #]
    }

    test "databases: rules, and how they are shown" {keydb} {
        set_user u +get db=2,0 (+set db=1) (+del resetdbs)
        assert_equal "off sanitize-payload resetchannels db=0,2 -@all +get (resetchannels db=1 -@all +set)\
            (resetchannels resetdbs -@all +del)" [user_line u]
        assert_equal {db=0,2 db=1 {}} [list [user_field u databases] {*}[lmap s [user_field u selectors] {
            dict get $s databases}]]
        r acl setuser u alldbs
        assert_equal alldbs [user_field u databases]
        set before [user_line u]
        foreach rule {db db= db=, db=1, db=,1 db=1,,2 db=x db=1.0 db=* (db=) alldb} {
            rule_error $rule "Syntax error"
        }
        foreach rule {db=-1 db=0,2147483648 (db=-1)} {
            rule_error $rule "The provided database ID is out of range"
        }
        assert_equal $before [user_line u]
    }

    test "databases: a user of some works there, and goes nowhere else" {keydb} {
        set_user u on nopass allkeys allchannels +@all db=0,2
        set c [connect_as u]
        $c mset k v j v
        assert_databases $c {
            {get k} {} {dbsize} {} {eval {return 1} 0} {} {select 1} 1 {select 2} {} {select 15} 15 {select 0} {}
            {move k 1} 1 {move k 2} {} {copy k j} {} {copy k j DB 2} {} {copy k j DB 1} 1 {copy k j REPLACE DB 3} 3
            {copy k j DB 2 DB 1 REPLACE} 1 {copy k j DB 1 DB 2 REPLACE} 1 {copy k DB} {} {copy k DB DB 1} 1
            {swapdb 0 2} {} {swapdb 0 1} 1 {swapdb 1 0} 1 {flushall} flushall {flushall async} flushall {flushdb} {}
            {publish a b} {} {eval {return redis.acl_check_cmd('select', 1)} 0} {} {eval {redis.call('select', 2)} 0} {}
        }
        # What is wrong anyway is told.
        foreach {command text} {
            {select 16} "DB index is out of range" {select x} "value is not an integer or out of range"
            {move k 16} "DB index is out of range" {copy k j DB 1 x} "syntax error" {copy k j DB} "syntax error"
            {swapdb 1 16} "DB index is out of range" {swapdb a 1} "invalid first DB index"
        } {
            assert_refused "ERR $text" $c {*}$command
        }
        assert_equal {0 1} [list [$c eval {return redis.acl_check_cmd('select', 1) and 1 or 0} 0] \
            [$c eval {return redis.acl_check_cmd('select', 2) and 1 or 0} 0]]
        assert_error "ERR ACL failure in script: No permissions to access database*" \
            {$c eval {return redis.call('select', 1)} 0}
        assert_error "ERR ACL failure in script: No permissions to access database*" \
            {$c eval {return redis.pcall('flushall')} 0}
        r acl setuser u db=[join [lsearch -all [lrepeat 16 x] x] ,]
        assert_equal OK [$c flushall]
        r config resetstat
        r acl setuser u db=2
        catch {$c get k}
        assert_equal 1 [info_field acl_access_denied_db stats]
    }

    test "databases: a client in one that is not its user's" {keydb} {
        set_user u on nopass allkeys allchannels +@all db=2
        set c [connect_as u]
        assert_databases $c {
            {ping} {} {publish a b} {} {subscribe a} {} {unsubscribe a} {} {config get port} {} {acl whoami} {}
            {script load {return 1}} {} {wait 0 0} {} {unwatch} {}
            {get k} get {set k v} set {dbsize} dbsize {keys *} keys {scan 0} scan {randomkey} randomkey
            {flushdb} flushdb {flushall} flushall {eval {return 1} 0} eval {watch k} watch {object encoding k}
            object|encoding {memory usage k} memory|usage {move k 2} move {copy k j} copy {copy k j DB 2} copy
            {copy k j DB 3} 3 {copy k j DB 99} copy {sort k} sort {function flush} function|flush {lolwut} lolwut
            {blpop k 0} blpop {xread streams s 0} xread {select 0} 0 {swapdb 2 2} {} {swapdb 0 2} 0 {select 2} {}
            {get k} {} {flushdb} {} {function flush} {}
        }
        assert_reply {bulk "User u has no permissions to access database get"} r acl dryrun u get k
        assert_reply {bulk "User u has no permissions to access database 1"} r acl dryrun u select 1
        assert_reply {bulk "User u has no permissions to access database FLUSHALL"} r acl dryrun u FLUSHALL
        assert_reply {status OK} r acl dryrun u select 2
        assert_reply {status OK} r acl dryrun u select 99
        r select 2
        assert_reply {status OK} r acl dryrun u get k
        r select 0
        r acl setuser u resetdbs
        assert_databases $c {{ping} {} {get k} get {select 0} 0 {select 2} 2}
    }

    test "databases: the selector that came farthest says why" {keydb} {
        set_user u on nopass ~a* +get db=0 "(~b* +set +get db=2)" (+select)
        set c [connect_as u]
        assert_reply nullbulk $c get a
        assert_refused $::no_key $c get b
        assert_refused [no_command set] $c set b x
        $c select 2
        assert_equal OK [$c set b x]
        assert_refused $::no_key $c get a
        $c select 1
        assert_refused [no_command get] $c get a
        # Both databases of a command are of one selector.
        set_user u on nopass allkeys +@all db=0 (allkeys db=1 +@all)
        assert_databases $c {{select 0} {} {select 1} {} {move k 0} 0 {swapdb 0 1} 1 {copy k j DB 0} 0}
        r acl setuser u (allkeys db=0,1 +move)
        assert_databases $c {{move k 0} {}}
        assert_refused [no_command copy] $c copy k j DB 0
    }

    test "databases: transactions are in the one that their SELECTs lead to" {keydb} {
        set_user u on nopass allkeys allchannels +@all db=2
        set c [connect_as u]
        $c multi
        assert_refused $::no_database $c get k
        assert_refused "EXECABORT Transaction discarded because of previous errors." $c exec
        $c multi
        foreach command {{select 99} {select 2} {set k v} {select x} {get k}} {
            assert_equal QUEUED [$c {*}$command]
        }
        assert_refused $::no_database $c select 1
        assert_refused $::no_database $c move k 0
        assert_equal QUEUED [$c get k]
        assert_refused "EXECABORT Transaction discarded because of previous errors." $c exec
        $c multi
        $c select 2
        $c set k v
        assert_equal {OK OK} [$c exec]
        assert_equal v [$c get k]
        # Rules that change meanwhile.
        r acl setuser u db=0,2
        $c select 0
        $c multi
        foreach command {{get k} {select 2} {get k} {copy k j DB 0}} {
            $c {*}$command
        }
        r acl setuser u db=2
        set changed "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call.\
            This command is no longer allowed for the following reason: no permission"
        assert_equal [list array [list [list error $changed] {status OK} {bulk v} [list error $changed]]] \
            [$c -typed exec]
        r select 2
        r flushdb
        r select 0
    }

    test "databases: who waits is asked again" {keydb} {
        set_user u on nopass allkeys +@all
        set c [connect_as u]
        $c -send blpop l 0
        wait_for {[info_field blocked_clients clients] == 1}
        r acl setuser u db=1
        r rpush l x
        assert_error $::no_database {$c -read}
        r del l
    }

    test "channels: to publish, to subscribe, by patterns" {} {
        set_user u on nopass +@all &a* &b
        set c [connect_as u]
        assert_reply {int 0} $c publish abc x
        assert_refused $::no_channel $c publish c x
        assert_refused $::no_channel $c spublish c x
        foreach command {{subscribe b c} {ssubscribe c} {psubscribe a?} {psubscribe b a*z}} {
            assert_refused $::no_channel $c {*}$command
        }
        assert_equal {subscribe abc 1} [$c subscribe abc]
        assert_equal {psubscribe a* 2} [$c psubscribe a*]
    }

    test "subscribers whose channels are taken away are closed, others stay" {} {
        set_user u on nopass +@all &a* &b
        foreach {name command} {one {subscribe abc} two {psubscribe a*} three {ssubscribe a} four {subscribe b}} {
            set $name [connect_as u]
            [set $name] {*}$command
        }
        set five [connect_as u]
        r acl setuser u &d
        assert_equal {pong {}} [$one ping]
        r acl setuser u resetchannels &b &a?c
        assert_equal {pong {}} [$one ping]
        foreach c [list $two $three] {
            assert_error * {$c ping; $c ping}
        }
        r acl setuser u resetchannels &b
        assert_error * {$one ping; $one ping}
        assert_equal {pong {}} [$four ping]
        assert_equal PONG [$five ping]
        # Who may everything keeps everything.
        r acl setuser u allchannels
        assert_equal {pong {}} [$four ping]
    }

    test "who waits is asked again when there is something for him" {keydb} {
        set_user u on nopass +@all ~l*
        set a [connect_as u]
        set b [connect_as u]
        $a -send blpop l1 0
        $b -send blpop l2 0
        wait_for {[info_field blocked_clients clients] == 2}
        r acl setuser u resetkeys ~l2
        r acl log reset
        r rpush l1 x
        r rpush l2 y
        assert_equal [list error $::no_key] [$a -reply]
        assert_equal {array {{bulk l2} {bulk y}}} [$b -reply]
        assert_reply {array {{bulk x}}} r lrange l1 0 -1
        set log [r acl log]
        assert_equal 1 [llength $log]
        assert_equal {key toplevel l1 u} [lmap field {reason context object username} {
            dict get [lindex $log 0] $field
        }]
    }

    test "ACL LOG" {} {
        r acl log reset
        assert_equal {} [r acl log]
        set_user u on >x +get +client|setname ~a
        set c [connect_as u]
        $c client setname somebody
        foreach i {1 2 3} {
            catch {$c get b}
        }
        catch {$c get "b\x00c"}
        catch {$c config get x}
        catch {$c AuTh u wrong}
        catch {$c hello 3 auth nobody wrong}
        set log [r acl log]
        assert_equal 5 [llength $log]
        foreach entry $log expected {
            {1 auth hello nobody} {1 auth AuTh u} {1 command config|get u} {1 key b\x00c u} {3 key b u}
        } {
            set expected [subst -nocommands -novariables $expected]
            assert_equal $expected [list [dict get $entry count] [dict get $entry reason] [dict get $entry object] \
                [dict get $entry username]]
            assert_equal toplevel [dict get $entry context]
            assert_match "id=*name=somebody*user=u*" [dict get $entry client-info]
            assert_range [dict get $entry age-seconds] 0 60
        }
        assert_equal 1 [llength [r acl log 1]]
        assert_equal {} [r acl log 0]
        assert_equal {} [r acl log -5]
        assert_refused "ERR value is not an integer or out of range" r acl log x
        r config set acllog-max-len 2
        catch {$c get other}
        assert_equal 2 [llength [r acl log]]
        assert_equal other [dict get [lindex [r acl log] 0] object]
        r config set acllog-max-len 128
        r acl log reset
        assert_equal {} [r acl log]
    }

    test "ACL LOG numbers its entries and says when" {keydb} {
        r acl log reset
        set_user u on >x
        set c [connect_as u]
        catch {$c get a}
        set first [lindex [r acl log] 0]
        catch {$c get a}
        catch {$c set a 1}
        lassign [r acl log] set get
        assert_equal [dict get $first entry-id] [dict get $get entry-id]
        assert_equal [dict get $first timestamp-created] [dict get $get timestamp-created]
        assert {[dict get $get timestamp-last-updated] >= [dict get $first timestamp-last-updated]}
        assert_equal [expr {[dict get $get entry-id] + 1}] [dict get $set entry-id]
        assert_equal 2 [dict get $get count]
    }

    test "INFO counts what was refused" {keydb} {
        r config resetstat
        set_user u on >x +get +mget ~a
        set c [connect_as u]
        catch {$c get b}
        catch {$c mget a b}
        catch {$c set a 1}
        catch {$c auth u y}
        foreach {field count} {cmd 1 key 2 channel 0 auth 1} {
            assert_equal $count [info_field acl_access_denied_$field stats] $field
        }
        assert_match "*rejected_calls=1*" [info_field cmdstat_set commandstats]
        assert_match "count=3" [info_field errorstat_NOPERM errorstats]
    }

    test "ACL DRYRUN" {} {
        set_user u +get +set +config|get ~a %W~b
        assert_reply {status OK} r acl dryrun u get a
        assert_reply {status OK} r acl dryrun u set b 1
        assert_reply {bulk "User u has no permissions to access the 'b' key"} r acl dryrun u get b
        assert_reply {bulk "User u has no permissions to run the 'del' command"} r acl dryrun u del b
        set text "User u has no permissions to run the 'config|set' command"
        assert_reply [list bulk $text] r acl dryrun u config set a b
        assert_reply {status OK} r acl dryrun u auth x
        assert_refused "ERR User 'nobody' not found" r acl dryrun nobody get a
        assert_refused "ERR Command 'nosuch' not found" r acl dryrun u nosuch
        assert_refused "ERR Command 'config' not found" r acl dryrun u config nosuch
        assert_refused "ERR wrong number of arguments for 'get' command" r acl dryrun u get
        assert_refused "ERR wrong number of arguments for 'acl|dryrun' command" r acl dryrun u
    }

    test "ACL GENPASS" {} {
        assert_match {[0-9a-f]*} [r acl genpass]
        assert_equal 64 [string length [r acl genpass]]
        foreach {bits digits} {1 1 4 1 5 2 128 32 4096 1024} {
            assert_equal $digits [string length [r acl genpass $bits]] $bits
        }
        assert {[r acl genpass] ne [r acl genpass]}
        foreach bits {0 -1 4097} {
            assert_refused "ERR ACL GENPASS argument must be the number of bits for the output password, a positive\
                number up to 4096" r acl genpass $bits
        }
        assert_refused "ERR value is not an integer or out of range" r acl genpass x
    }

    test "CLIENT LIST and CLIENT KILL know users" {} {
        set_user u on nopass +@all
        set a [connect_as u]
        set b [connect_as u]
        set users [lmap line [client_lines [r client list]] {dict get $line user}]
        assert_equal 2 [llength [lsearch -all -exact $users u]]
        assert_reply {int 2} r client kill user u
        assert_error * {$a ping; $a ping}
        assert_error * {$b ping; $b ping}
        assert_reply {int 0} r client kill user u
        assert_refused "ERR No such user 'nobody'" r client kill user nobody
    }

    test "RESET makes it the default user's connection" {} {
        set_user u on nopass +reset +acl|whoami
        set c [connect_as u]
        assert_equal u [$c acl whoami]
        assert_reply {status RESET} $c reset
        assert_equal default [$c acl whoami]
    }

    test "secrets stay out of the slow log and away from monitors" {} {
        r config set slowlog-log-slower-than 0
        r slowlog reset
        r acl setuser u >secret +get
        r config set slowlog-log-slower-than 10000
        set shown [lmap entry [r slowlog get 10] {lindex $entry 3}]
        assert {{acl setuser (redacted) (redacted) (redacted)} in $shown} $shown
        assert {[string first secret $shown] < 0}
    }

    test "without a file there is nothing to load or save" {} {
        foreach command {load save} {
            assert_error "ERR This $::product instance is not configured to use an ACL file.*" {r acl $command}
        }
    }
}

with_server {acl-pubsub-default allchannels} {
    test "acl-pubsub-default allchannels" {} {
        r acl setuser u (+get)
        assert_equal "off &* -@all (&* -@all +get)" [user_line u]
        r config set acl-pubsub-default resetchannels
        r acl setuser v
        assert_equal {} [user_field v channels]
        r acl deluser u v
    }
}

test "users of the configuration file, and CONFIG REWRITE" {noconn keydb} {
    set path [spit [fresh_dir]/test.conf "user a on >x ~k +get (+set ~b ~c)\nuser b +@all\nport [free_port]\n"]
    set id [server_launch [list $path]]
    wait_for {[string match "*Ready to accept connections*" [process_log $id]]}
    assert_match "*The user 'b' is disabled*" [process_log $id]
    set port [lindex [regexp -inline {port (\d+)} [slurp $path]] 1]
    set c [connect -port $port -tls 0]
    assert_equal {a b default} [$c acl users]
    $c acl setuser b on nopass
    $c acl setuser c >y %R~z
    $c acl deluser a
    $c acl setuser d "~it's\"" "&\\x" db=3,1 (resetdbs +get)
    set before [$c acl list]
    $c config rewrite
    process_stop $id
    set id [server_launch [list $path]]
    wait_for {[string match "*Ready to accept connections*" [process_log $id]]}
    set c [connect -port $port -tls 0]
    assert_equal $before [$c acl list]
    process_stop $id
}

test "users that are declared wrongly keep the server from starting" {noconn keydb} {
    foreach {lines number text} {
        "user a on bogus"            1 "Error in user declaration 'a': Syntax error"
        "user a on +nosuch"          1 "Error in user declaration 'a': Unknown command or category name in ACL"
        "user a on\nuser a off"      2 "Error in user declaration 'a': Duplicate user found. A user can only be *"
        "user"                       1 "Bad directive or wrong number of arguments"
    } {
        set id [server_launch [list [spit [fresh_dir]/test.conf "$lines\nport 0\n"]]]
        assert_equal 1 [process_wait $id] $lines
        assert_match "*at line $number\n>>> '[lindex [split $lines \n] end]'\n$text*" [process_log $id]
    }
    set file [acl_file "user a on\n"]
    set id [server_launch [list [spit [fresh_dir]/test.conf "user a on\naclfile $file\nport 0\n"]]]
    assert_equal 1 [process_wait $id]
    assert_match "*please define either an ACL file or declare users directly*" [process_log $id]
}

test "an ACL file: loaded, saved, and refused as a whole" {noconn keydb} {
    set file [acl_file "user default on nopass ~* &* +@all\nuser a on >x ~k +get\n\n  user b  on nopass  +@all \r\n"]
    set port [free_port]
    set id [server_launch [list --port $port --aclfile $file]]
    wait_for {[string match "*Ready to accept connections*" [process_log $id]]}
    set c [connect -port $port -tls 0]
    assert_equal {a b default} [$c acl users]
    set a [connect -port $port -tls 0]
    $a auth a x
    set b [connect -port $port -tls 0]
    $b auth b x
    $c acl setuser b db=0,2
    # Saved, it is what it was.
    set before [$c acl list]
    assert_reply {status OK} $c acl save
    assert_equal [join $before \n]\n [slurp $file]
    assert_reply {status OK} $c acl load
    assert_equal $before [$c acl list]
    # All mistakes are told, and nothing changes: the seventh line spoils the file.
    spit $file [join {"user a on" "user b on" "" "user c on" "user d on" "user e on" "user f on bogus +nosuch"
        "user g (+get" "usr x" "user" "user a"} \n]
    set error [lindex [$c -typed acl load] 1]
    foreach text {":7: Syntax error. "
            ":7: Error in applying operation '+nosuch': Unknown command or category name in ACL. "
            ":8: Unmatched parenthesis in selector definition."
            ":9 should start with user keyword followed by the username. "
            ":10 should start with user keyword followed by the username. "
            "WARNING: Duplicate user 'a' found on line 11. "
            "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"} {
        assert {[string first $text $error] > 0} "$text in $error"
    }
    assert_equal $before [$c acl list]
    assert_equal b [$b acl whoami]
    # Who is not in the file is gone; the default user is as it was at first.
    spit $file "user b on nopass +get +acl ~*\n"
    $c acl setuser default -debug
    assert_reply {status OK} $c acl load
    assert_equal {b default} [$c acl users]
    assert_equal +@all [dict get [$c acl getuser default] commands]
    assert_error * {$a ping; $a ping}
    file delete $file
    assert_error "ERR Error loading ACLs, opening file '$file': No such file or directory*" {$c acl load}
    assert_equal {b default} [$c acl users]
    process_stop $id
}

test "who stays in the file stays connected" {noconn keydb} {
    set file [acl_file "user b on nopass +@all ~*\n"]
    set port [free_port]
    set id [server_launch [list --port $port --aclfile $file]]
    wait_for {[string match "*Ready to accept connections*" [process_log $id]]}
    set c [connect -port $port -tls 0]
    set b [connect -port $port -tls 0]
    $b auth b x
    spit $file "user b on nopass +@all -set ~*\n"
    assert_reply {status OK} $c acl load
    assert_reply nullbulk $b get k
    assert_refused [no_command set b] $b set k v
    process_stop $id
}

test "an ACL file that is wrong, or not there, keeps the server from starting" {noconn} {
    set file [acl_file "user a on\nuser a on\n"]
    set id [server_launch [list --port 0 --unixsocket [fresh_dir]/s --aclfile $file]]
    assert_equal 1 [process_wait $id]
    assert_match "*Aborting $::product startup because of ACL errors: WARNING: Duplicate user 'a' found on line 2. *" \
        [process_log $id]
    set good {}
    foreach i {1 2 3 4 5 6} {
        append good "user u$i on nopass ~k$i:* +@read\n"
    }
    # Of a line's mistakes each unknown name is told, of other ones the first.
    foreach {line told} {
        "user a on +nosuch ~*" {%F:7: Error in applying operation '+nosuch': Unknown command or category name in ACL. }
        "user a +@nosuch b c" {%F:7: Error in applying operation '+@nosuch': Unknown command or category name in ACL. \
            %F:7: Syntax error. }
        "user a b +nosuch c" {%F:7: Syntax error. \
            %F:7: Error in applying operation '+nosuch': Unknown command or category name in ACL. }
        "usr a on" {%F:7 should start with user keyword followed by the username. }
        "user u3 on" {WARNING: Duplicate user 'u3' found on line 7. }
    } {
        set file [acl_file "$good$line\nuser z on\n"]
        set told [regsub -all { +} [string map [list %F $file] $told] { }]
        set id [server_launch [list --port 0 --unixsocket [fresh_dir]/s --aclfile $file]]
        assert_equal 1 [process_wait $id]
        assert {[string first "Aborting $::product startup because of ACL errors: ${told}WARNING: ACL errors detected" \
            [process_log $id]] >= 0} [process_log $id]
    }
    set id [server_launch [list --port 0 --unixsocket [fresh_dir]/s --aclfile [fresh_dir]/none]]
    assert_equal 1 [process_wait $id]
    assert_match "*Error loading ACLs, opening file*No such file or directory*" [process_log $id]
}

if {$have_tls} {
    with_server {.tls 1} {
        test "a TLS client is the user whose name its certificate has" {keydb} {
            set_user client on +@all ~*
            assert_equal default [[connect -tls 1] acl whoami]
            r config set tls-auth-clients-user CN
            assert_equal client [[connect -tls 1] acl whoami]
            assert_equal default [[connect -tls 0] acl whoami]
            assert_equal 0 [info_field acl_access_denied_tls_cert stats]
            r acl setuser client off
            assert_equal default [[connect -tls 1] acl whoami]
            assert_equal 1 [info_field acl_access_denied_tls_cert stats]
            assert_equal {1 tls-cert toplevel {} client} [lrange [dict values [lindex [r acl log] 0]] 0 4]
            assert_match "*laddr=127.0.0.1:[srv tls_port] *" [dict get [lindex [r acl log] 0] client-info]
            r acl deluser client
            r config set requirepass x
            assert_refused "NOAUTH Authentication required." [connect -tls 1] acl whoami
            set_user client on +@all
            assert_equal client [[connect -tls 1] acl whoami]
            r config set tls-auth-clients-user off
            assert_refused "NOAUTH Authentication required." [connect -tls 1] acl whoami
            r config set requirepass ""
        }

        test "a TLS client is the first user whose name is a URI in its certificate" {keydb} {
            set dir [fresh_dir]
            spit $dir/names "subjectAltName=URI:urn:first,DNS:localhost,URI:urn:second"
            exec openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout $dir/key \
                -out $dir/request -subj /CN=client 2>@1
            exec openssl x509 -req -in $dir/request -CA [cert ca.crt] -CAkey [cert ca.key] -set_serial 77 -days 30 \
                -extfile $dir/names -out $dir/certificate 2>@1
            set options [list -tls 1 -tlsopts [list -certfile $dir/certificate -keyfile $dir/key]]
            r config resetstat
            r acl log reset
            r config set tls-auth-clients-user uri
            assert_equal {tls-auth-clients-user URI} [r config get tls-auth-clients-user]
            set_user client on +@all
            assert_equal default [[connect {*}$options] acl whoami] "the common name is none of them"
            assert_equal urn:second [dict get [lindex [r acl log] 0] username]
            set_user urn:second on +@all
            assert_equal urn:second [[connect {*}$options] acl whoami]
            set_user urn:first off +@all
            assert_equal urn:second [[connect {*}$options] acl whoami]
            set_user urn:first on +@all
            assert_equal urn:first [[connect {*}$options] acl whoami]
            assert_equal default [[connect -tls 1] acl whoami] "a certificate without a URI"
            assert_equal 1 [info_field acl_access_denied_tls_cert stats]
            r config set tls-auth-clients-user off
            r acl deluser client urn:first urn:second
        }
    }
}
