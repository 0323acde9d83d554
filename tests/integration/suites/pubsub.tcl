# SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE, PUBLISH, SPUBLISH, PUBSUB; what clients with subscriptions may do.

# The command's answers, one for each name.
proc answers {c count args} {
    $c -send {*}$args
    return [lmap x [lrepeat $count x] {$c -read}]
}

# Connections until every worker has one.
proc on_each_worker {} {
    return [lmap x [lrepeat [expr {3 * max(1, $::settings(threads))}] x] {connect}]
}

proc pushes c {
    $c ping
    return [lmap push [$c -pushes] {resp::bare $push}]
}

# Publishes 100 kB, which all of these read; tells how many got it.
proc publish_and_read {channel subscribers} {
    set count [r publish $channel [string repeat v 100000]]
    foreach c $subscribers {
        assert_match "message $channel v*" [$c -read]
    }
    return $count
}

proc sub_fields id {
    set line [lindex [client_lines [r client list id $id]] 0]
    return [list [dict get $line flags] [dict get $line sub] [dict get $line psub] [dict get $line ssub]]
}

with_server {} {
    test "channels: answers, messages, counts" {} {
        set c [connect]
        assert_equal {{subscribe a 1} {subscribe b 2} {subscribe a 2}} [answers $c 3 subscribe a b a]
        assert_equal 1 [r publish a hello]
        assert_equal {message a hello} [$c -read]
        assert_equal 1 [r publish b ""]
        assert_equal {message b {}} [$c -read]
        assert_equal 0 [r publish c nobody]
        assert_equal {a 1 c 0} [r pubsub numsub a c]
        assert_equal {{unsubscribe a 1} {unsubscribe nosuch 1}} [answers $c 2 unsubscribe a nosuch]
        assert_equal 0 [r publish a hello]
        assert_equal {{unsubscribe b 0}} [answers $c 1 unsubscribe]
        assert_reply {array {{bulk unsubscribe} nullbulk {int 0}}} $c unsubscribe
        assert_equal PONG [$c ping]
    }

    test "what came before a change of subscriptions comes before its answer" {} {
        r config set notify-keyspace-events KEA
        set c [connect]
        $c hello 3
        # One piece: nothing is heard of what was before SUBSCRIBE, all of what was before UNSUBSCRIBE.
        $c -raw "[request set k 1][request psubscribe __keyspace*][request set k 2][request del k]"
        $c -raw "[request punsubscribe][request set k 3]"
        assert_equal {OK OK 1 OK} [list [$c -read] [$c -read] [$c -read] [$c -read]]
        assert_equal [list {psubscribe __keyspace* 1} {pmessage __keyspace* __keyspace@0__:k set} \
            {pmessage __keyspace* __keyspace@0__:k del} {punsubscribe __keyspace* 0}] [pushes $c]
        r config set notify-keyspace-events ""
    }

    test "SSUBSCRIBE is not for transactions; EXEC by a subscriber of RESP2 is aborted" {} {
        set c [connect]
        $c multi
        $c ssubscribe a
        $c subscribe b
        $c -send exec
        assert_equal "*2" [$c -line]
        assert_equal "-ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client" [$c -line]
        assert_equal {subscribe b 1} [$c -read]
        assert_error "EXECABORT Transaction discarded because of: Can't execute 'exec': only *" {$c exec}
        assert_error "ERR Can't execute 'multi': only *" {$c multi}
        $c reset
        assert_error "ERR EXEC without MULTI" {$c exec}
    }

    test "patterns: once for each that fits, after the channel" {} {
        set c [connect]
        assert_equal [list {psubscribe news.* 1} {psubscribe {n[aeiou]*} 2} {subscribe news.x 3}] \
            [concat [answers $c 2 psubscribe news.* n\[aeiou\]*] [answers $c 1 subscribe news.x]]
        assert_equal 3 [r publish news.x 1]
        assert_equal {message news.x 1} [$c -read]
        assert_equal [lsort {{pmessage news.* news.x 1} {pmessage {n[aeiou]*} news.x 1}}] \
            [lsort [list [$c -read] [$c -read]]]
        assert_equal 1 [r publish nuts 2]
        assert_equal {pmessage {n[aeiou]*} nuts 2} [$c -read]
        assert_equal 2 [r pubsub numpat]
        set d [connect]
        answers $d 1 psubscribe news.*
        assert_equal 2 [r pubsub numpat]
        assert_equal 3 [r publish news.y 3]
        assert_equal {pmessage news.* news.y 3} [$d -read]
        $c -read
        $c -read
        assert_equal {{punsubscribe news.* 2}} [answers $c 1 punsubscribe news.*]
        assert_equal 2 [r publish news.z 4]
        $d -close
        wait_for {[r pubsub numpat] == 1}
    }

    test "sharded channels are a world of their own" {} {
        wait_for {[r pubsub channels] eq {} && [r pubsub numpat] == 0} ;# others have left
        set c [connect]
        assert_equal {{ssubscribe a 1} {ssubscribe b 2}} [answers $c 2 ssubscribe a b]
        answers $c 1 psubscribe *
        assert_equal 1 [r spublish a x]
        assert_equal {smessage a x} [$c -read]
        assert_equal 1 [r publish a y]
        assert_equal {pmessage * a y} [$c -read]
        assert_equal {a b} [lsort [r pubsub shardchannels]]
        assert_equal {b} [r pubsub shardchannels {[b-z]}]
        assert_equal {} [r pubsub channels]
        assert_equal {a 1 z 0} [r pubsub shardnumsub a z]
        assert_equal {a 0} [r pubsub numsub a]
        assert_equal {{sunsubscribe a 1}} [answers $c 1 sunsubscribe a]
        assert_equal {{sunsubscribe b 0}} [answers $c 1 sunsubscribe]
        assert_reply {array {{bulk sunsubscribe} nullbulk {int 0}}} $c sunsubscribe
        assert_equal 0 [r spublish b x]
    }

    test "what a subscriber may do over RESP2" {} {
        set c [connect]
        answers $c 1 subscribe a
        set text "only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
        assert_refused "ERR Can't execute 'get': $text" $c get x
        assert_refused "ERR Can't execute 'client|list': $text" $c client list
        assert_refused "ERR Can't execute 'multi': $text" $c multi
        assert_refused "ERR Can't execute 'hello': $text" $c hello 3
        assert_refused "ERR Can't execute 'publish': $text" $c publish a b
        assert_refused "ERR wrong number of arguments for 'get' command" $c get
        assert_equal {pong {}} [$c ping]
        assert_equal {pong hello} [$c ping hello]
        assert_equal RESET [$c reset]
        assert_equal PONG [$c ping]
        assert_equal {} [$c get x]
        assert_equal 0 [r publish a x]
        answers $c 1 ssubscribe a
        assert_refused "ERR Can't execute 'get': $text" $c get x
        assert_equal OK [$c quit]
        assert [$c -closed]
        wait_for {[r pubsub shardchannels] eq {}}
    }

    test "over RESP3 messages are pushes, and everything is allowed" {} {
        set c [connect]
        $c hello 3
        $c -send subscribe a
        $c -send get x
        assert_equal {} [$c -read]
        assert_equal {{push {{bulk subscribe} {bulk a} {int 1}}}} [$c -pushes]
        assert_equal PONG [$c ping]
        assert_equal 1 [r publish a one]
        assert_equal {{message a one}} [pushes $c]
        assert_equal 1 [$c publish a own]
        assert_equal {{message a own}} [pushes $c]
        $c -send punsubscribe
        $c ping
        assert_equal {{push {{bulk punsubscribe} null {int 1}}}} [$c -pushes]
        $c hello 2
        assert_error "*Can't execute 'get'*" {$c get x}
    }

    test "transactions: subscribing and publishing in them" {} {
        set c [connect]
        $c multi
        $c set x 1
        $c subscribe exec.a exec.b ;# nobody of an earlier test, who may still be leaving
        $c get x
        $c unsubscribe exec.a
        $c -send exec
        assert_equal {OK {subscribe exec.a 1} {subscribe exec.b 2} 1} [$c -read] ;# two for the second command
        assert_equal {unsubscribe exec.a 1} [$c -read]
        r multi
        r publish exec.b 1
        r set x 2
        r publish exec.b 2
        r publish exec.a 3
        assert_equal {1 OK 1 0} [r exec]
        assert_equal {message exec.b 1} [$c -read]
        assert_equal {message exec.b 2} [$c -read]
    }

    test "a reply of EXEC is not torn by what it publishes to its own client" {keydb} {
        set c [connect]
        $c hello 3
        $c -send subscribe a
        $c ping
        $c -pushes
        $c multi
        $c publish a 1
        $c get x
        assert_equal {1 {}} [$c exec]
        assert_equal {{message a 1}} [pushes $c]
    }

    test "CLIENT REPLY does not silence messages" {} {
        set c [connect]
        $c -send client reply off
        assert_equal {{subscribe a 1}} [answers $c 1 subscribe a]
        assert_equal 1 [r publish a x]
        assert_equal {message a x} [$c -read]
        $c -send ping
        assert_equal {{unsubscribe a 0}} [answers $c 1 unsubscribe a]
        set c [connect]
        $c -send client reply skip
        assert_equal {{psubscribe a 1}} [answers $c 1 psubscribe a]
    }

    test "PUBSUB: channels that fit, errors" {} {
        set c [connect]
        answers $c 4 subscribe ch1 ch2 "" other
        assert_equal [lsort {ch1 ch2 "" other}] [lsort [r pubsub channels]]
        assert_equal {ch1 ch2} [lsort [r pubsub channels ch?]]
        assert_equal {{}} [r pubsub channels ""]
        assert_equal {ch1 1 {} 1 no 0} [r pubsub numsub ch1 "" no]
        assert_equal {} [r pubsub numsub]
        assert_refused "ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP." \
            r pubsub CHANNELS a b
        assert_refused "ERR unknown subcommand 'FOO'. Try PUBSUB HELP." r pubsub FOO
        assert_refused "ERR wrong number of arguments for 'pubsub|numpat' command" r pubsub numpat x
        assert_match "PUBSUB <subcommand>*" [lindex [r pubsub help] 0]
    }

    test "CLIENT LIST, CLIENT KILL and INFO know who subscribes" {} {
        set c [connect]
        set id [$c client id]
        answers $c 2 subscribe a b
        answers $c 1 psubscribe *
        answers $c 3 ssubscribe x y z
        assert_equal {P 2 1 3} [sub_fields $id]
        assert_equal {2 1 3} [list [info_field pubsub_channels stats] [info_field pubsub_patterns stats] \
            [info_field pubsubshard_channels stats]]
        assert_match "id=$id *" [r client list type pubsub]
        assert {![string match "*id=$id *" [r client list type normal]]}
        answers $c 2 unsubscribe
        answers $c 1 punsubscribe
        answers $c 3 sunsubscribe
        assert_equal {N 0 0 0} [sub_fields $id]
        answers $c 1 subscribe a
        assert_equal 1 [r client kill type pubsub]
        assert [$c -closed]
        wait_for {[info_field pubsub_channels stats] == 0}
        assert_equal 0 [r publish a x]
    }

    test "INFO counts clients that subscribe" {keydb} {
        set c [connect]
        answers $c 2 subscribe a b
        assert_equal 1 [info_field pubsub_clients clients]
        $c -close
        wait_for {[info_field pubsub_clients clients] == 0}
    }

    test "subscribers of all workers get all messages of a channel in one order" {} {
        set subscribers [on_each_worker]
        foreach c $subscribers {
            answers $c 1 subscribe a
            answers $c 1 psubscribe a*
        }
        set publishers [on_each_worker]
        set total 0
        for {set i 0} {$i < 50} {incr i} {
            set n 0
            foreach p $publishers {
                $p -send publish a [incr n].$i
                incr total
            }
        }
        foreach p $publishers {
            for {set i 0} {$i < 50} {incr i} {
                assert_equal [expr {2 * [llength $subscribers]}] [$p -read]
            }
        }
        set first {}
        foreach c $subscribers {
            set direct {}
            set by_pattern {}
            for {set i 0} {$i < 2 * $total} {incr i} {
                set message [$c -read]
                if {[lindex $message 0] eq "message"} {
                    lappend direct [lindex $message 2]
                } else {
                    lappend by_pattern [lindex $message 3]
                }
            }
            if {$first eq {}} {
                set first $direct
                assert_equal $total [llength [lsort -unique $first]]
            }
            assert_equal $first $direct
            assert_equal $first $by_pattern
        }
        for {set n 1} {$n <= [llength $publishers]} {incr n} {
            assert_equal [lmap i [lsearch -all -inline $first $n.*] {lindex [split $i .] 1}] \
                [lmap i [lsort -integer [lmap i [lsearch -all -inline $first $n.*] {lindex [split $i .] 1}]] {set i}]
        }
    }

    test "a subscriber's next answer comes after what was published before" {} {
        set subscribers [on_each_worker]
        foreach c $subscribers {
            answers $c 1 subscribe a
        }
        for {set i 0} {$i < 200} {incr i} {
            assert_equal [llength $subscribers] [r publish a $i]
            foreach c $subscribers {
                $c -send ping
            }
            foreach c $subscribers {
                assert_equal [list message a $i] [$c -read]
                assert_equal {pong {}} [$c -read]
            }
        }
        foreach c $subscribers {
            r publish a last
            $c -send unsubscribe
            assert_equal {message a last} [$c -read]
        }
    }

    test "who subscribes after a message was published does not get it" {} {
        set keepers [on_each_worker]
        foreach c $keepers {
            answers $c 1 subscribe a
        }
        for {set i 0} {$i < 100} {incr i} {
            r publish a before
            set c [lindex $keepers [expr {$i % [llength $keepers]}]]
            $c -send subscribe b
            r publish b $i
            $c -send unsubscribe b
            foreach wanted [list {message a before} {subscribe b 2}] {
                assert_equal $wanted [$c -read]
            }
            set next [$c -read]
            if {$next eq [list message b $i]} {
                set next [$c -read]
            }
            assert_equal {unsubscribe b 1} $next
            foreach d $keepers {
                if {$d ne $c} {
                    assert_equal {message a before} [$d -read]
                }
            }
        }
    }

    test "messages of all sizes" {} {
        set c [connect]
        set d [connect]
        $d hello 3
        answers $c 1 subscribe a
        answers $c 1 psubscribe [string repeat * 5000]
        $d -send subscribe a
        $d ping
        $d -pushes
        foreach size {0 1 4000 4050 4096 4097 5000 16383 16384 16385 40000 1000000} {
            set payload [pattern_bytes $size]
            assert_equal 3 [r publish a $payload]
            assert_equal [list message a $payload] [$c -read]
            assert_equal [list pmessage [string repeat * 5000] a $payload] [$c -read]
            assert_equal [list [list message a $payload]] [pushes $d]
        }
    }

    test "a subscriber that stops reading goes when its limit is passed" {keydb} {
        with_config {client-output-buffer-limit "pubsub 1000000 0 0"} {
            set c [connect]
            answers $c 1 subscribe a
            set d [connect]
            answers $d 1 subscribe a
            set payload [string repeat v 100000]
            set before [info_field client_output_buffer_limit_disconnections stats]
            set published 0
            wait_for {
                [incr published] && [r publish a $payload] == 1 || ![string match {message a v*} [$d -read]]
            }
            assert_match {message a v*} [$d -read]
            assert_equal [expr {$before + 1}] [info_field client_output_buffer_limit_disconnections stats]
            assert_range $published 11 1000
            assert [$c -closed]
        }
    }

    test "one that falls behind for too long goes when its soft limit is passed; the others go on" {keydb} {
        with_config {client-output-buffer-limit "pubsub 0 200000 1"} {
            set others [on_each_worker]
            set slow [connect]
            foreach c [list $slow {*}$others] {
                answers $c 1 subscribe a
            }
            set all [expr {1 + [llength $others]}]
            wait_for {[publish_and_read a $others] == $all - 1}
            assert [$slow -closed]
            assert_equal [expr {$all - 1}] [publish_and_read a $others]
        }
    }
}

with_server {maxmemory-clients 0} {
    test "a hundred thousand subscriptions" {} {
        set clients [lmap x [lrepeat 50 x] {connect}]
        set n 0
        foreach c $clients {
            for {set k 0} {$k < 20} {incr k} {
                set names {}
                for {set i 0} {$i < 100} {incr i} {
                    lappend names channel:[incr n]
                }
                $c -send subscribe {*}$names
            }
        }
        foreach c $clients {
            for {set i 1} {$i <= 2000} {incr i} {
                $c -read
            }
        }
        assert_equal 100000 [info_field pubsub_channels stats]
        assert_equal 100000 [llength [r pubsub channels *]]
        assert_equal 1 [r publish channel:1 x]
        assert_equal {message channel:1 x} [[lindex $clients 0] -read]
        [lindex $clients 1] -send unsubscribe
        for {set i 1999} {$i >= 0} {incr i -1} {
            assert_equal $i [lindex [[lindex $clients 1] -read] 2]
        }
        foreach c $clients {
            $c -close
        }
        wait_for {[info_field pubsub_channels stats] == 0}
        assert_equal {} [r pubsub channels]
    }

    test "a publisher faster than its subscribers' worker waits, and all arrives" {} {
        set subscribers [on_each_worker]
        foreach c $subscribers {
            answers $c 1 subscribe a
        }
        set payload [string repeat v 20000]
        set publishers [lmap x {1 2 3} {connect}]
        foreach p $publishers {
            for {set i 0} {$i < 100} {incr i} {
                $p -send publish a $payload
            }
        }
        foreach p $publishers {
            for {set i 0} {$i < 100} {incr i} {
                assert_equal [llength $subscribers] [$p -read]
            }
            assert_equal PONG [$p ping]
        }
        foreach c $subscribers {
            for {set i 0} {$i < 300} {incr i} {
                assert_equal 20000 [string length [lindex [$c -read] 2]]
            }
        }
    }
}
