# What a server answers that has no replicas, no cluster and no modules, when it is asked about them. The same is asked
# of redis-server where that is the server under test.

set standalone_names {asking cluster failover module psync readonly readwrite replconf replicaof restore-asking role
    slaveof sync wait}
# Those between KeyDB's active replicas; redis-server has not heard of them.
if {!$is_oracle} {
    lappend standalone_names keydb.mvccrestore rreplay
}

with_server {} {
    test "a cluster is off" {} {
        set error "ERR This instance has cluster support disabled"
        foreach words {{cluster info} {cluster nodes} {cluster slots} {cluster shards} {cluster myid} {cluster help}
                {cluster keyslot a} {readonly} {readwrite} {asking}} {
            assert_refused $error r {*}$words
        }
        assert_refused "ERR unknown subcommand 'foo'. Try CLUSTER HELP." r cluster foo
        assert_refused "ERR wrong number of arguments for 'cluster|keyslot' command" r cluster keyslot
        assert_refused "ERR wrong number of arguments for 'asking' command" r asking 1
    }

    test "there are no modules" {} {
        assert_reply {array {}} r module list
        assert_match "MODULE <subcommand>*" [lindex [r module help] 0]
        assert_refused "ERR wrong number of arguments for 'module|load' command" r module load
    }

    test "MODULE LOAD, LOADEX and UNLOAD have to be allowed" {} {
        foreach words {{load /no/such.so} {loadex /no/such.so} {unload nothing}} {
            assert_refused "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\",\
                you can run it from a local connection, otherwise you need to set this option in the configuration\
                file, and then restart the server." r module {*}$words
        }
        r multi
        assert_equal QUEUED [r module list]
        assert_error "ERR MODULE command not allowed*" {r module unload nothing}
        assert_refused "EXECABORT Transaction discarded because of previous errors." r exec
    }

    test "a master without replicas" {} {
        assert_reply {array {{bulk master} {int 0} {array {}}}} r role
        assert_equal 0 [r wait 0 0]
        assert_equal 0 [r wait 1 10]
        assert_refused "ERR timeout is negative" r wait 1 -1
        assert_refused "ERR value is not an integer or out of range" r wait a 1
        assert_refused "ERR timeout is not an integer or out of range" r wait 1 a
        r multi
        r wait 1 0 ;# nobody waits in a transaction
        assert_equal 0 [r exec]
        assert_equal {OK OK} [list [r replicaof no one] [r slaveof NO ONE]]
        assert_refused "ERR FAILOVER requires connected replicas." r failover
        assert_refused "ERR No failover in progress." r failover abort
    }

    test "WAIT waits for as long as it was told, and CLIENT UNBLOCK ends it" {} {
        set waits [connect]
        set id [$waits client id]
        $waits -send wait 1 0
        wait_for {[r client unblock $id] == 1}
        assert_equal 0 [$waits -read]
        $waits -send wait 1 0
        wait_for {[r client unblock $id error] == 1}
        assert_match "UNBLOCKED*" [lindex [$waits -reply] 1]
        $waits -close
    }

    test "rules of users name commands that are not here" {} {
        foreach name $::standalone_names {
            assert_equal OK [r acl setuser someone +$name -$name]
        }
        assert_equal OK [r acl setuser someone +@dangerous -psync "+module|list" "-cluster|info"]
        assert_match "*-psync*" [r acl list]
        r acl deluser someone
    }

    test "commands that are not here are unknown" {keydb} {
        assert_error "ERR unknown command 'restore-asking'*" {r restore-asking a 0 b}
        assert_equal {{}} [r command info restore-asking]
        assert {"restore-asking" ni [r command list]}
    }

    test "every value of CONFIG GET is one string" {} {
        foreach {name value} [lrange [lindex [r -typed config get *] 1] 0 end] {
            assert_equal {bulk bulk} [list [lindex $name 0] [lindex $value 0]] $name
        }
    }
}

test "rename-command names commands that are not here" {} {
    set port [free_port]
    set file [fresh_dir]/server.conf
    set text "port $port\n"
    foreach name $::standalone_names {
        append text "rename-command $name \"\"\n"
    }
    set id [server_launch [list [spit $file $text] {*}[thread_args]]]
    wait_for {![process_alive $id] || ![catch {set s [connect -port $port -tls 0]}]}
    assert {[process_alive $id]} [process_log $id]
    assert_error "ERR unknown command 'role'*" {$s role}
    assert_error "ERR unknown command 'psync'*" {$s psync ? -1}
    $s -close
    assert_equal 0 [process_stop $id]
}

foreach allowed {yes local} {
    with_server [list enable-module-command $allowed] {
        test "there are no modules where enable-module-command is $allowed either" {} {
            assert_error "ERR Error loading the extension.*" {r module load /no/such.so}
            assert_error "ERR Error loading the extension.*" {r module loadex /no/such.so}
            assert_refused "ERR Error unloading module: no such module with that name" r module unload nothing
        }
    }
}
