# Keyspace events that Redis 7.0 does not know: values that are overwritten, and the fields that events of hashes are
# about.

proc listener {{pattern __*}} {
    set c [connect]
    $c psubscribe $pattern
    return $c
}

# What a listener has got up to now, each as {channel message}; without the channel's "__" in front and the database.
proc told c {
    r publish __end__ end
    set found {}
    while 1 {
        lassign [$c -read] kind pattern channel message
        if {$channel eq "__end__"} {
            return $found
        }
        assert [regexp {^__([a-z]+)@(\d+)__:(.*)$} $channel all form db rest] $channel
        assert_equal 0 $db
        lappend found "$form $rest" $message
    }
}

proc told_of {c script} {
    told $c
    uplevel 1 $script
    return [told $c]
}

# The events of a script by key, as "key event ...".
proc events_of {c script} {
    set found {}
    foreach {channel message} [uplevel 1 [list told_of $c $script]] {
        assert_match {keyspace *} $channel
        lappend found [lindex $channel 1] $message
    }
    return $found
}

# What came in channels by key that tell of fields, as "key message ...".
proc fields_told c {
    set found {}
    foreach {channel message} [told $c] {
        assert_match {subkeyspace *} $channel
        lappend found [lindex $channel 1] $message
    }
    return $found
}

proc fields_of {c script} {
    told $c
    uplevel 1 $script
    return [fields_told $c]
}

proc subkeys {event args} {
    return $event|[join [lmap field $args {format %d:%s [string length $field] $field}] ,]
}

proc with_letters {letters script} {
    r config set notify-keyspace-events $letters
    try {uplevel 1 $script} finally {r config set notify-keyspace-events {}}
}

with_server {enable-debug-command yes} {
    test "letters: o and c are not in A; S T I V need neither K nor E, but h" {keydb} {
        foreach {given told} {
            o o KEAoc AKEoc KEAocSTIV AKEocSTIV STIVh hSTIV VITSh hSTIV KEAcm AKEmc Kncm Knmc SKEg gKES} {
            r config set notify-keyspace-events $given
            set letters [lindex [r config get notify-keyspace-events] 1]
            assert_equal [lsort [split $told {}]] [lsort [split $letters {}]] "of $given"
            r config set notify-keyspace-events $letters
            assert_equal $letters [lindex [r config get notify-keyspace-events] 1]
        }
        assert_error "*Invalid event class character*" {r config set notify-keyspace-events KEAW}
        foreach letters {A KE$lszxetd Koc S T STIV STIV$ oc hoc} {
            with_letters $letters {
                set c [listener]
                assert_equal {} [told_of $c {r hset nobody f v}] "with $letters"
                r del nobody
            }
        }
    }

    foreach {letters expected} {
        Ko {overwritten} Kc {type_changed} Koc {overwritten type_changed} K$oc {overwritten type_changed set}
        KAoc {overwritten type_changed set} KA {set}
    } {
        test_each {letters expected} "another value of another type, with $letters" {keydb} {
            r del a
            r rpush a x
            with_letters $letters {
                set c [listener]
                assert_equal [concat {*}[lmap event $expected {list a $event}]] [events_of $c {r set a 1}]
            }
        }
    }

    test "by event, too" {keydb} {
        r del a
        r rpush a x
        with_letters Eoc {
            set c [listener]
            assert_equal {{keyevent overwritten} a {keyevent type_changed} a} [told_of $c {r set a 1}]
        }
    }

    # What is there before, the command, and the events expected of it with all letters.
    foreach {before command expected} {
        {set a 1} {set a 2} {a overwritten a set}
        {set a 1} {set a 1 ex 100} {a overwritten a set a expire}
        {set a 1} {set a 2 keepttl} {a overwritten a set}
        {set a 1} {set a 2 get} {a overwritten a set}
        {set a 1} {set a 2 xx} {a overwritten a set}
        {set a 1} {set a 2 nx} {}
        {set a 1} {set a 2 ifeq 1} {a overwritten a set}
        {set a 1} {getset a 2} {a overwritten a set}
        {set a 1} {setex a 100 2} {a overwritten a set a expire}
        {set a 1} {psetex a 100000 2} {a overwritten a set a expire}
        {set a 1} {setnx a 2} {}
        {set a 1} {mset a 2 b 3} {a overwritten a set b set}
        {set a 1} {msetex 2 a 2 b 3} {a overwritten a set b set}
        {set a 1} {incr a} {a incrby}
        {set a 1} {incrbyfloat a 1} {a incrbyfloat}
        {set a 1} {append a x} {a append}
        {set a 1} {setrange a 0 x} {a setrange}
        {set a 1} {setbit a 0 1} {a setbit}
        {set a 1} {getdel a} {a del}
        {set a 1} {getex a ex 100} {a expire}
        {hset a f v} {set a 1} {a overwritten a type_changed a set}
        {set b 1} {set a 1} {a set}
        {mset a 1 b 2} {bitop not a b} {a overwritten a set}
        {sadd a x} {bitop and a nosuch} {a del}
        {hset a f v} {hset a f w} {a hset}
        {rpush a x} {lset a 0 y} {a lset}
        {sadd a x} {sunionstore a a} {a overwritten a sunionstore}
        {rpush a x} {sunionstore a nosuch} {a del}
        {rpush a x} {zunionstore a 1 nosuch} {a del}
        {rpush a 2 1} {sort a store a} {a overwritten a sortstore}
        {sadd a 2 1} {sort a store a} {a overwritten a type_changed a sortstore}
        {zadd a 1 x} {zrangestore a a 0 -1} {a overwritten a zrangestore}
        {geoadd a 1 1 x} {geosearchstore a a fromlonlat 1 1 byradius 1 km} {a overwritten a geosearchstore}
        {mset a 1 b 2} {rename b a} {a overwritten b rename_from a rename_to}
        {set b 1} {rename b a} {b rename_from a rename_to}
        {mset a 1 b 2} {copy b a replace} {a overwritten a copy_to}
        {mset a 1 b 2} {copy b a} {}
        {pfadd a x} {pfadd a y} {a pfadd}
        {pfadd a x} {pfmerge a a} {a pfadd}
        {keydb.nhset a.b 1} {keydb.nhset a.b 2} {a nhset}
        {rpush a 1} {keydb.nhset a.b 2} {a overwritten a type_changed a nhset}
        {rpush a 1} {keydb.nhset a 2} {a overwritten a type_changed a set}
    } {
        test_each {before command expected} "$before; $command" {keydb} {
            r flushall
            r {*}$before
            with_letters KAoc {
                set c [listener]
                assert_equal $expected [events_of $c {r {*}$command}]
            }
            r flushall
            r {*}$before
            with_letters KAoc {
                set c [listener]
                assert_equal $expected [events_of $c {r multi; r {*}$command; r exec}] "in a transaction"
            }
        }
    }

    # With a missing key, too, which is told where Redis tells it.
    foreach {before command expected} {
        {set a 1} {msetex 2 a 2 b 3 ex 100} {a overwritten a expire a set b new b expire b set}
        {set a 1} {msetex 1 a 2 keepttl} {a overwritten a set}
        {} {set a 2 ifeq 1} {}
        {} {set a 2 ifne 1} {a new a set}
        {} {set a 2 ifeq 1 get} {a keymiss}
        {} {delex a} {}
        {} {delex a ifeq 1} {a keymiss}
        {} {delifeq a 1} {}
        {} {hgetdel a fields 1 f} {}
        {} {hgetex a fields 1 f} {}
        {} {hgetex a ex 100 fields 1 f} {}
        {} {xack a g 1-1} {a keymiss}
        {} {xackdel a g ids 1 1-1} {a keymiss}
        {rpush a 1} {lcs a b} {b keymiss}
    } {
        test_each {before command expected} "$before; $command, with misses" {keydb} {
            r flushall
            if {$before ne {}} {
                r {*}$before
            }
            with_letters KAocmn {
                set c [listener]
                assert_equal $expected [events_of $c {catch {r {*}$command}}]
            }
        }
    }

    test "XCLAIM and XAUTOCLAIM of a missing key" {keydb} {
        r flushall
        with_letters KAm {
            set c [listener]
            foreach command {{xclaim a g c 0 1-1} {xautoclaim a g c 0 0}} {
                assert_equal {a keymiss} [events_of $c {assert_error "NOGROUP*" {r {*}$command}}]
            }
        }
        r config resetstat
        r xgroup create a g 0 mkstream
        r xack a g 1-1
        r xclaim a g c 0 1-1
        r xautoclaim a g c 0 0
        assert_equal {3 0} [list [info_field keyspace_hits stats] [info_field keyspace_misses stats]]
    }

    test "RESTORE over a key of another type, and RENAME and COPY of one" {keydb} {
        r flushall
        r set s 1
        set payload [r dump s]
        with_letters KAoc {
            set c [listener]
            foreach {command last} {
                {restore a 0 PAYLOAD replace} {a restore}
                {rename s a} {s rename_from a rename_to}
                {copy s a replace} {a copy_to}
            } {
                set command [lmap word $command {expr {$word eq "PAYLOAD" ? $payload : $word}}]
                r del a
                r set s 1
                r rpush a x
                assert_equal [list a overwritten a type_changed {*}$last] [events_of $c {r {*}$command}]
            }
            r del a
            assert_equal {a restore} [events_of $c {r restore a 0 $payload}]
        }
    }

    test "what has expired is not overwritten" {keydb} {
        r flushall
        r debug set-active-expire 0
        with_letters KAocx {
            r set a 1 px 1
            r hset h f v
            r hpexpire h 1 fields 1 f
            set c [listener]
            wait_for {[clock milliseconds] % 20 == 0}
            assert_equal {a expired a set h hexpired h del h set} [events_of $c {
                r set a 2
                r set h 2
            }]
        }
        r debug set-active-expire 1
    }

    test "the four forms of a hash's event, behind those by key and by event" {keydb} {
        r flushall
        with_letters KEASTIV {
            set c [listener]
            assert_equal [list {keyspace h} hset {keyevent hset} h \
                {subkeyspace h} hset|1:a,3:b,c {subkeyevent hset} 1:h|1:a,3:b,c \
                "subkeyspaceitem h\na" hset "subkeyspaceitem h\nb,c" hset \
                {subkeyspaceevent hset|h} 1:a,3:b,c] [told_of $c {r hset h a 1 b,c 2}]
        }
        foreach {letters expected} {
            S {{subkeyspace h} hdel|1:a} T {{subkeyevent hdel} 1:h|1:a} V {{subkeyspaceevent hdel|h} 1:a}
            I {"subkeyspaceitem h\na" hdel} TK {{keyspace h} hdel {subkeyevent hdel} 1:h|1:a}
        } {
            r hset h a 1
            with_letters h$letters {
                set c [listener]
                assert_equal [list {*}[subst -nocommands $expected]] [told_of $c {r hdel h a}] "with $letters"
            }
        }
    }

    test "odd names: empty, with newlines, bars and other bytes; I leaves out keys with a newline" {keydb} {
        r flushall
        with_letters hSI {
            set c [listener]
            assert_equal [list {subkeyspace h|k} "hset|0:,3:x\ny,3:x|y" "subkeyspaceitem h|k\n" hset \
                "subkeyspaceitem h|k\nx\ny" hset "subkeyspaceitem h|k\nx|y" hset] \
                [told_of $c {r hset h|k {} 1 "x\ny" 2 x|y 3}]
            assert_equal [list "subkeyspace h\nk" hset|1:f] [told_of $c {r hset "h\nk" f 1}]
            assert_equal [list {subkeyspace } hset|1:f "subkeyspaceitem \nf" hset] [told_of $c {r hset {} f 1}]
        }
        with_letters hTV {
            set c [listener]
            assert_equal [list {subkeyevent hset} "5:k\n|1:|2:f," "subkeyspaceevent hset|k\n|1:" 2:f,] \
                [told_of $c {r hset "k\n|1:" f, 1}]
            assert_equal [list {subkeyevent hset} "2:\x00\xff|2:\x01\xfe" \
                "subkeyspaceevent hset|\x00\xff" "2:\x01\xfe"] \
                [told_of $c {r hset "\x00\xff" "\x01\xfe" 1}]
        }
    }

    # What is there before, the command, and what it tells of fields, in channels by key.
    foreach {before command expected} {
        {} {hset h a 1 b 2} {h hset|1:a,1:b}
        {} {hset h a 1 a 2} {h hset|1:a,1:a}
        {} {hmset h a 1 b 2} {h hset|1:a,1:b}
        {} {hsetnx h a 1} {h hset|1:a}
        {hset h a 1} {hsetnx h a 2} {}
        {} {hincrby h n 2} {h hincrby|1:n}
        {hset h n 1} {hincrby h n 2} {h hincrby|1:n}
        {} {hincrbyfloat h n 1.5} {h hincrbyfloat|1:n}
        {hset h a 1} {hincrby h a x} {}
        {hset h a 1 b 2 c 3} {hdel h a nosuch c} {h hdel|1:a,1:c}
        {hset h a 1 b 2} {hdel h a a b} {h hdel|1:a,1:b}
        {hset h a 1} {hdel h nosuch} {}
        {hset h a 1} {hget h a} {}
        {hset h a 1} {del h} {}
        {hset h a 1} {set h 1} {}
        {hset h a 1} {rename h i} {}
        {hset h a 1} {copy h i} {}
        {hset h a 1} {keydb.hrename h a bb} {h hset|1:a,2:bb}
        {hset h a 1} {keydb.hrename h a a} {h hset|1:a}
        {} {hsetex h fields 2 a 1 b 2} {h hset|1:a,1:b}
        {} {hsetex h ex 100 fields 2 a 1 b 2} {h hset|1:a,1:b h hexpire|1:a,1:b}
        {} {hsetex h exat 1 fields 2 a 1 b 2} {h hset|1:a,1:b h hdel|1:a,1:b}
        {hset h a 1} {hsetex h keepttl fields 1 a 2} {h hset|1:a}
        {hset h a 1} {hsetex h fnx fields 1 a 2} {}
        {hset h a 1 b 2} {hgetex h ex 100 fields 3 a x b} {h hexpire|1:a,1:b}
        {hset h a 1 b 2} {hgetex h exat 1 fields 3 a x b} {h hdel|1:a,1:b}
        {hset h a 1} {hgetex h persist fields 1 a} {}
        {hset h a 1} {hgetex h fields 1 a} {}
        {hsetex h ex 100 fields 2 a 1 b 2} {hgetex h persist fields 3 b x a} {h hpersist|1:b,1:a}
        {hset h a 1 b 2} {hgetdel h fields 3 a x b} {h hdel|1:a,1:b}
        {hset h a 1 b 2} {hgetdel h fields 1 x} {}
        {hset h a 1 b 2} {hexpire h 100 fields 3 a x b} {h hexpire|1:a,1:b}
        {hset h a 1 b 2} {hpexpire h 100000 xx fields 1 a} {}
        {hset h a 1 b 2} {hexpireat h 1 fields 2 b a} {h hdel|1:b,1:a}
        {hset h a 1 b 2} {hpexpireat h 1 fields 1 b} {h hdel|1:b}
        {hsetex h ex 100 fields 2 a 1 b 2} {hpersist h fields 3 a x b} {h hpersist|1:a,1:b}
        {hset h a 1} {hpersist h fields 1 a} {}
        {hset h a 1 b 2} {pexpirememberat h b 1} {h hexpired|1:b}
        {hset h a 1} {pexpirememberat h a 1} {h hexpired|1:a}
        {sadd h a} {srem h a} {}
        {sadd h a b} {pexpirememberat h a 1} {}
        {zadd h 1 a} {zrem h a} {}
    } {
        test_each {before command expected} "fields: $before; $command" {keydb} {
            foreach form {alone transaction script} {
                r flushall
                if {$before ne {}} {
                    r {*}$before
                }
                with_letters ASoc {
                    set c [listener]
                    set found [fields_of $c {
                        switch $form {
                            alone {catch {r {*}$command}}
                            transaction {r multi; r {*}$command; catch {r exec}}
                            script {catch {r eval {return redis.pcall(unpack(ARGV))} 1 h {*}$command}}
                        }
                    }]
                    assert_equal $expected $found $form
                }
            }
        }
    }

    test "fields of a large hash" {keydb} {
        r flushall
        for {set i 0} {$i < 1000} {incr i} {
            lappend names f$i
            lappend pairs f$i $i
        }
        with_letters hS {
            set c [listener]
            assert_equal [list h [subkeys hset {*}$names]] [fields_of $c {r hset h {*}$pairs}]
            assert_equal [list h [subkeys hexpire {*}$names]] [fields_of $c {r hexpire h 100 fields 1000 {*}$names}]
            assert_equal [list h [subkeys hdel {*}$names]] [fields_of $c {r hdel h {*}$names}]
        }
    }

    # How many times each field was named in messages of hexpired.
    proc count_expired {messages} {
        set count [dict create]
        foreach {key message} $messages {
            assert_match {hexpired|*} $message
            foreach part [split [string range $message 9 end] ,] {
                dict incr count [lindex [split $part :] 1]
            }
        }
        return $count
    }

    foreach {way active} {"when the key is looked at" 0 "in the background" 1} {
        foreach {what stays} {"some fields" 1 "all fields" 0} {
            test_each {active stays} "fields that expire $way: $what, each once" {keydb} {
                r flushall
                r debug set-active-expire 0
                set names {}
                for {set i 0} {$i < 700} {incr i} {
                    lappend names f$i
                    r hset h f$i 1
                }
                if {$stays} {
                    r hset h keep 1
                }
                with_letters hS {
                    set at [expr {[clock milliseconds] + 50}]
                    r hpexpireat h $at fields 700 {*}$names
                    set c [listener]
                    wait_for {[clock milliseconds] > $at}
                    if {$active} {
                        r debug set-active-expire 1
                    }
                    set found {}
                    wait_for {
                        ($active || [r exists h] == $stays) &&
                        [llength [lappend found {*}[fields_told $c]]] &&
                        [dict size [count_expired $found]] >= 700
                    }
                    set count [count_expired $found]
                    assert_equal [lsort $names] [lsort [dict keys $count]]
                    assert_equal {1} [lsort -unique [dict values $count]]
                    assert_equal $stays [r hlen h]
                }
                r debug set-active-expire 1
            }
        }
    }

    test "RESP3, and sharded by many clients: each key's messages in the order of its changes" {keydb} {
        r flushall
        with_letters hS {
            set c [connect]
            $c hello 3
            $c -send psubscribe __subkeyspace@0__:*
            $c ping
            $c -pushes
            $c hset h f 1
            $c ping
            assert_equal {{pmessage __subkeyspace@0__:* __subkeyspace@0__:h hset|1:f}} \
                [lmap push [$c -pushes] {resp::bare $push}]
            set listeners [lmap x {1 2 3} {listener __subkeyspace@0__:*}]
            set writers [lmap x {1 2 3 4} {connect}]
            for {set i 0} {$i < 200} {incr i} {
                set n 0
                foreach w $writers {
                    $w -send hset w[incr n] f$i 1
                }
            }
            foreach w $writers {
                for {set i 0} {$i < 200} {incr i} {
                    assert_equal 1 [$w -read]
                }
            }
            foreach c $listeners {
                array unset next
                for {set i 0} {$i < 800} {incr i} {
                    lassign [$c -read] kind pattern channel message
                    assert [regexp {^__subkeyspace@0__:w(\d)$} $channel all n]
                    set k [expr {[incr next($n)] - 1}]
                    assert_equal [subkeys hset f$k] $message
                }
            }
        }
    }
}
