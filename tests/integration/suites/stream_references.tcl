# Streams: XDELEX, XACKDEL, and the policies KEEPREF, DELREF and ACKED, as since Redis 8.2.

set wrong_type "WRONGTYPE Operation against a key holding the wrong kind of value"
set wrong_id "ERR Invalid stream ID specified as stream command argument"

# Entries 1-0 to 5-0; group g has been given 1 to 4, of which 3 is acknowledged, and group h 1 and 2.
proc prepare {{key k}} {
    r del $key
    foreach ms {1 2 3 4 5} {
        r xadd $key $ms-0 f $ms
    }
    r xgroup create $key g 0
    r xgroup create $key h 0
    r xreadgroup group g a count 2 streams $key >
    r xreadgroup group g b count 2 streams $key >
    r xack $key g 3-0
    r xreadgroup group h a count 2 streams $key >
}

proc entries {{key k}} {
    return [lmap entry [r xrange $key - +] {lindex [split [lindex $entry 0] -] 0}]
}

proc pending {group {key k}} {
    if {[catch {r xpending $key $group}]} {
        return "no group"
    }
    return [lmap row [r xpending $key $group - + 10000] {lindex [split [lindex $row 0] -] 0}]
}

proc all_of {{key k}} {
    return [list [entries $key] [pending g $key] [pending h $key]]
}

with_server {enable-debug-command yes appendonly yes stream-node-max-entries 3} {
    foreach ::proto {2 3} {
        test "XDELEX, RESP$::proto" {keydb} {
            r hello $::proto
            foreach {words reply left} {
                {ids 2 2-0 9-0}                {1 -1}       {{1 3 4 5} {1 2 4} {1 2}}
                {keepref IDS 2 2-0 2-0}        {1 -1}       {{1 3 4 5} {1 2 4} {1 2}}
                {DELREF ids 3 2-0 3-0 9-0}     {1 1 -1}     {{1 4 5} {1 4} 1}
                {acked ids 5 1-0 2-0 3-0 4-0 5-0} {2 2 2 2 2} {{1 2 3 4 5} {1 2 4} {1 2}}
                {acked ids 1 9-0}              {-1}         {{1 2 3 4 5} {1 2 4} {1 2}}
                {ids 1 2}                      {1}          {{1 3 4 5} {1 2 4} {1 2}}
            } {
                prepare
                assert_reply [list array [lmap number $reply {list int $number}]] r xdelex k {*}$words
                assert_equal $left [all_of] $words
            }
            # Both groups have had 3: now one may go. A row without an entry goes with DELREF alone.
            prepare
            r xreadgroup group h a count 1 streams k >
            r xack k h 3-0
            assert_equal {2 1 2} [r xdelex k ACKED IDS 3 2-0 3-0 5-0]
            r xdel k 1-0
            assert_equal -1 [r xdelex k KEEPREF IDS 1 1-0]
            assert_equal {{2 4 5} {1 2 4} {1 2}} [all_of]
            assert_equal -1 [r xdelex k DELREF IDS 1 1-0]
            assert_equal {{2 4 5} {2 4} 2} [all_of]
            # What is late or not there at all.
            assert_reply {array {{int -1} {int -1}}} r xdelex none acked ids 2 1-0 2
            assert_equal 0 [r exists none]
            # No groups: nobody refers to anything. The stream stays, though it is empty.
            r del k
            r xadd k 1-0 f v
            assert_equal 1 [r xdelex k acked ids 1 1-0]
            assert_equal {0 1} [list [r xlen k] [r exists k]]
            r hello 2
        }

        test "XACKDEL, RESP$::proto" {keydb} {
            r hello $::proto
            foreach {words reply left} {
                {g ids 4 2-0 3-0 9-0 2-0}          {1 -1 -1 -1}   {{1 3 4 5} {1 4} {1 2}}
                {g KEEPREF ids 2 1-0 4-0}          {1 1}          {{2 3 5} 2 {1 2}}
                {g delref ids 3 2-0 4-0 5-0}       {1 1 -1}       {{1 3 5} 1 1}
                {h delref ids 1 4-0}               {-1}           {{1 2 3 4 5} {1 2 4} {1 2}}
                {g ACKED ids 3 1-0 4-0 3-0}        {2 2 -1}       {{1 2 3 4 5} 2 {1 2}}
                {none acked ids 2 1-0 2-0}         {-1 -1}        {{1 2 3 4 5} {1 2 4} {1 2}}
            } {
                prepare
                assert_reply [list array [lmap number $reply {list int $number}]] r xackdel k {*}$words
                assert_equal $left [all_of] $words
            }
            # The last one that acknowledges it deletes it.
            prepare
            assert_equal 2 [r xackdel k g ACKED IDS 1 1-0]
            assert_equal 1 [r xackdel k h ACKED IDS 1 1-0]
            assert_equal {{2 3 4 5} {2 4} 2} [all_of]
            # Only the row is there.
            foreach policy {KEEPREF DELREF ACKED} left {{1 2} 1 {1 2}} {
                prepare
                r xdel k 2-0
                assert_equal 1 [r xackdel k g $policy IDS 1 2-0]
                assert_equal [list {1 3 4 5} {1 4} $left] [all_of] $policy
            }
            assert_reply {array {{int -1} {int -1}}} r xackdel none g acked ids 2 1-0 2
            assert_equal 0 [r exists none]
            r hello 2
        }

        test "XTRIM and XADD, RESP$::proto" {keydb} {
            r hello $::proto
            foreach {words count left} {
                {maxlen 3}                2 {{3 4 5} {1 2 4} {1 2}}
                {maxlen = 3 KEEPREF}      2 {{3 4 5} {1 2 4} {1 2}}
                {maxlen = 3 DELREF}       2 {{3 4 5} 4 {}}
                {delref minid 5-0}        4 {5 {} {}}
                {minid 4-0 delref}        3 {{4 5} 4 {}}
                {maxlen 0 delref}         5 {{} {} {}}
                {maxlen 0 ACKED}          0 {{1 2 3 4 5} {1 2 4} {1 2}}
                {acked maxlen = 4}        0 {{1 2 3 4 5} {1 2 4} {1 2}}
                {minid 9 acked}           0 {{1 2 3 4 5} {1 2 4} {1 2}}
                {maxlen ~ 2 delref}       3 {{4 5} 4 {}}
                {maxlen ~ 2 limit 2 delref} 0 {{1 2 3 4 5} {1 2 4} {1 2}}
            } {
                prepare
                assert_reply [list int $count] r xtrim k {*}$words
                assert_equal $left [all_of] $words
            }
            # Those that stay are passed over: 3 and 4 go in the place of 1.
            foreach {words count left} {
                {maxlen 4 acked}          1 {{1 3 4 5} 1 1}
                {maxlen 3 acked}          2 {{1 4 5} 1 1}
                {maxlen 1 acked}          3 {{1 5} 1 1}
                {minid 3 acked}           1 {{1 3 4 5} 1 1}
                {minid 5-0 acked}         3 {{1 5} 1 1}
                {minid 99 acked}          3 {{1 5} 1 1}
                {maxlen ~ 1 acked}        2 {{1 4 5} 1 1}
                {maxlen ~ 1 limit 3 acked} 2 {{1 4 5} 1 1}
                {maxlen ~ 1 limit 2 acked} 0 {{1 2 3 4 5} 1 1}
                {minid ~ 5-0 acked}       2 {{1 4 5} 1 1}
                {minid ~ 4-0 acked}       2 {{1 4 5} 1 1}
                {minid ~ 3-0 acked}       0 {{1 2 3 4 5} 1 1}
            } {
                prepare
                r xreadgroup group h a count 2 streams k >
                r xack k h 2-0 3-0 4-0
                r xack k g 2-0 4-0
                assert_reply [list int $count] r xtrim k {*}$words
                assert_equal $left [all_of] $words
            }
            foreach {words left} {
                {maxlen 3}                {{4 5 6} {1 2 4} {1 2}}
                {keepref maxlen 3}        {{4 5 6} {1 2 4} {1 2}}
                {maxlen 3 delref}         {{4 5 6} 4 {}}
                {delref minid ~ 4-0}      {{4 5 6} 4 {}}
                {delref}                  {{1 2 3 4 5 6} {1 2 4} {1 2}}
                {nomkstream acked maxlen 0} {{1 2 3 4 5 6} {1 2 4} {1 2}}
            } {
                prepare
                assert_equal 6-0 [r xadd k {*}$words 6-0 f v]
                assert_equal $left [all_of] $words
            }
            # A new entry that nobody will ask for.
            r del k
            assert_equal 1-0 [r xadd k acked maxlen 0 1-0 f v]
            assert_equal {0 1-0} [list [r xlen k] [dict get [r xinfo stream k] last-generated-id]]
            r hello 2
        }
    }

    test "they refuse, and nothing has changed" {keydb} {
        prepare
        r rpush l a
        set before [r debug digest]
        set positive "ERR Number of IDs must be a positive integer"
        set match "ERR The `numids` parameter must match the number of arguments"
        set syntax "ERR syntax error"
        foreach {words error} [list \
            {ids 0 1-0} $positive              {ids -1 1-0} $positive         {ids x 1-0} $positive \
            {ids 9223372036854775808 1-0} $positive {ids {} 1-0} $positive    {ids 1.0 1-0} $positive \
            {ids 2 1-0} $match                 {ids 1 1-0 2-0} $syntax        {ids 9223372036854775807 1-0} $match \
            {acked ids 1} $match               {acked ids 1 1-0 2-0} $syntax  {ids 1 1-0 ids} $syntax \
            {ids 1 1-0 acked delref} $syntax   {acked ids 1 1-0 acked} $syntax {ids 1 1-0 ids 1} $match \
            {1-0 2-0 3-0} $syntax              {id 1 1-0} $syntax             {ids 1 ids} $::wrong_id \
            {acked delref ids 1 1-0} $syntax   {acked acked ids 1 1-0} $syntax {maxlen ids 1 1-0} $syntax \
            {acked {} 1 1-0} $syntax           {keepref keepref keepref} $syntax {acked delref x} $syntax \
            {acked delref ids} $syntax        {ids 2 1-0 x} $::wrong_id      {ids 1 -} $::wrong_id \
            {delref ids 2 1-0 +} $::wrong_id   {ids 1 {}} $::wrong_id         {ids 1 (1-0} $::wrong_id \
            {ids 1 *} $::wrong_id              {ids 1 1-*} $::wrong_id        {ids 1 -1-0} $::wrong_id \
        ] {
            foreach command {{xdelex %s} {xackdel %s g}} {
                assert_refused $error r {*}[format $command k] {*}$words
                assert_refused $::wrong_type r {*}[format $command l] {*}$words
                if {$error ne $::wrong_id} {
                    assert_refused $error r {*}[format $command none] {*}$words
                }
            }
        }
        # where there is nothing to delete from nobody reads the ids
        assert_equal {-1 -1} [r xdelex none ids 2 x 1-0]
        assert_equal {-1 -1} [r xackdel none g ids 2 x 1-0]
        assert_equal -1 [r xackdel k none ids 1 x]
        assert_refused $::wrong_type r xdelex l ids 1 1-0
        assert_refused $::wrong_type r xackdel l g acked ids 1 1-0
        foreach words {{xdelex k ids 1} {xdelex k} {xackdel k g ids 1} {xackdel k} {xackdel}} {
            assert_error "ERR wrong number of arguments for '[lindex $words 0]' command" {r {*}$words}
        }
        set strategy "ERR syntax error, XTRIM must be called with a trimming strategy"
        set limit "ERR syntax error, LIMIT cannot be used without the special ~ option"
        foreach {words error} [list \
            {maxlen 1 acked delref} $syntax    {acked maxlen 1 acked} $syntax {keepref maxlen 1 keepref} $syntax \
            {acked maxlen} $syntax             {maxlen 1 acke} $syntax        {maxlen 1 acked x} $syntax \
            {maxlen 1 limit 2 acked} $limit    {acked acked} $syntax \
        ] {
            assert_refused $error r xtrim k {*}$words
            assert_refused $error r xtrim none {*}$words
        }
        assert_error "ERR wrong number*" {r xtrim k acked}
        assert_error "ERR value is not an integer*" {r xtrim k maxlen acked}
        foreach {words error} [list \
            {acked delref 9-0 f v} $::wrong_id {maxlen 1 acked acked * f v} $::wrong_id \
            {acked f v} $::wrong_id            {maxlen 1 acked} "ERR wrong number of arguments for 'xadd' command" \
            {acked limit 2 * f v} "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy" \
        ] {
            assert_refused $error r xadd k {*}$words
            assert_refused $error r xadd none {*}$words
        }
        assert_refused $::wrong_type r xadd l maxlen 1 acked * f v
        assert_refused $::wrong_type r xtrim l maxlen 1 acked
        assert_equal {k l} [lsort [r keys *]]
        assert_equal $before [r debug digest]
    }

    test "words of XDELEX and XACKDEL come in any order, and the last ids count" {keydb} {
        prepare
        assert_equal {2 2} [r xdelex k ids 2 1-0 2-0 acked]
        assert_equal 2 [r xackdel k g ids 1 9-0 ids 1 2-0 acked]
        assert_equal 1 [r xdelex k ids 1 1-0 ids 1 2-0 delref]
    }

    test "others are told by XDEL and XACK" {keydb} {
        foreach {script expected} {
            {r xdelex k ids 3 2-0 9-0 4-0}             {{XDEL k 2-0 4-0}}
            {r xdelex k delref ids 4 2-0 9-0 4-0 5}
                {MULTI {XDEL k 2-0 4-0 5-0} {XACK k g 2-0 4-0} {XACK k h 2-0} EXEC}
            {r xdelex k acked ids 2 1-0 2-0}           {}
            {r xdelex k delref ids 1 9-0}              {}
            {r xdel k 1-0; r xdelex k delref ids 1 1-0} {{xdel k 1-0} MULTI {XACK k g 1-0} {XACK k h 1-0} EXEC}
            {r xackdel k g ids 2 2-0 3-0}              {MULTI {XACK k g 2-0} {XDEL k 2-0} EXEC}
            {r xackdel k g acked ids 2 2-0 3-0}        {{XACK k g 2-0}}
            {r xackdel k h delref ids 2 2-0 3-0}       {MULTI {XACK k h 2-0} {XDEL k 2-0} {XACK k g 2-0} EXEC}
            {r xackdel k h acked ids 1 4-0}            {}
            {r xtrim k maxlen 4 keepref}               {{xtrim k maxlen 4}}
            {r xtrim k delref maxlen ~ 2}
                {MULTI {XACK k g 1-0 2-0} {XACK k h 1-0 2-0} {xtrim k maxlen = 2} EXEC}
            {r xtrim k minid 2-0 acked}                {}
            {r xgroup destroy k g; r xgroup destroy k h; r xtrim k maxlen 1 acked}
                {{xgroup destroy k g} {xgroup destroy k h} {xtrim k maxlen 1}}
            {r xgroup destroy k g; r xack k h 2-0; r xtrim k maxlen 1 acked}
                {{xgroup destroy k g} {xack k h 2-0} {XDEL k 2-0}}
            {r xadd k acked maxlen 1 9-0 f v}          {{xadd k 9-0 f v}}
            {r xadd k keepref 9-0 f acked}             {{xadd k 9-0 f acked}}
            {r xadd k maxlen ~ 3 limit 5 delref nomkstream 9-* f v}
                {MULTI {XACK k g 1-0 2-0} {XACK k h 1-0 2-0} {xadd k maxlen = 3 nomkstream 9-0 f v} EXEC}
            {r xgroup destroy k g; r xack k h 2-0; r xadd k nomkstream maxlen ~ 1 limit 99 acked 9-0 limit v}
                {{xgroup destroy k g} {xack k h 2-0} MULTI {xadd k nomkstream 9-0 limit v} {XDEL k 2-0} EXEC}
        } {
            prepare
            assert_equal [list {*}$expected] [effects_of $script] $script
            set before [list [r debug digest] [all_of] [r xinfo stream k]]
            r debug loadaof
            assert_equal $before [list [r debug digest] [all_of] [r xinfo stream k]] $script
        }
        # Many ids, in several effects.
        r del k
        for {set i 1} {$i <= 300} {incr i} {
            r xadd k $i-0 f v
            lappend ids $i-0
        }
        r xgroup create k g 0
        r xreadgroup group g a streams k >
        set told [effects_of {r xdelex k delref ids 300 {*}$ids}]
        assert_equal {130 130 46 131 131 47} [lmap words [lrange $told 1 end-1] {llength $words}]
        assert_equal {0 0} [list [r xlen k] [lindex [r xpending k g] 0]]
        r debug loadaof
        assert_equal {0 0} [list [r xlen k] [lindex [r xpending k g] 0]]
    }

    test "keyspace events" {keydb} {
        with_config {notify-keyspace-events Kt} {
            foreach {script expected} {
                {r xdelex k ids 2 1-0 2-0}                                   xdel
                {r xdelex k acked ids 2 1-0 2-0; r xdelex k ids 1 9-0}       {}
                {r xdelex k delref ids 2 1-0 9-0}                            xdel
                {r xdel k 1-0; r xdelex k delref ids 1 1-0}                  xdel
                {r xackdel k g ids 2 1-0 9-0}                                xdel
                {r xackdel k g acked ids 1 1-0; r xackdel k g ids 1 3-0}     {}
                {r xtrim k maxlen 2 delref; r xtrim k maxlen 0 acked}        xtrim
                {r xadd k maxlen 2 delref 9-0 f v}                           {xadd xtrim}
                {r xadd k maxlen 2 acked 9-0 f v}                            xadd
            } {
                prepare
                assert_equal $expected [key_events_of $script] $script
            }
        }
    }

    test "within MULTI and scripts, watched, above maxmemory" {keydb} {
        prepare
        r multi
        r xdelex k delref ids 2 1-0 9-0
        r xackdel k g acked ids 1 2-0
        r xackdel k h acked ids 1 2-0
        assert_equal {{1 -1} 2 1} [r exec]
        assert_equal {{3 4 5} 4 {}} [all_of]
        assert_equal {2 1} [r eval {
            local kept = redis.call('xdelex', KEYS[1], 'acked', 'ids', 1, '4-0')
            local gone = redis.call('xackdel', KEYS[1], 'g', 'delref', 'ids', 1, '4-0')
            return {kept[1], gone[1]}
        } 1 k]
        assert_equal {{3 5} {} {}} [all_of]
        foreach {words is_changed} {{xdelex k acked ids 1 1-0} 0 {xdelex k ids 1 9-0} 0 {xdelex k ids 1 1-0} 1
                {xdelex k delref ids 1 1-0} 1 {xackdel k g ids 1 3-0} 0 {xackdel k g acked ids 1 2-0} 1
                {xtrim k maxlen 0 acked} 0 {xtrim k maxlen 4 delref} 1} {
            prepare
            if {$words eq "xdelex k delref ids 1 1-0"} {
                r xdel k 1-0
            }
            r watch k
            [set other [connect]] {*}$words
            $other -close
            r multi
            r ping
            assert_equal [expr {$is_changed ? {} : "PONG"}] [r exec] $words
        }
        prepare
        with_config {maxmemory 1} {
            assert_equal 1 [r xdelex k delref ids 1 1-0]
            assert_equal 1 [r xackdel k g ids 1 2-0]
            assert_equal 1 [r xtrim k maxlen 2 delref]
        }
    }

    test "users need the key for what a command does to it" {keydb} {
        r flushall
        r acl setuser u on nopass +@all resetkeys %W~w* %R~r* %RW~a*
        set c [connect]
        $c auth u x
        foreach words {{xdelex K ids 1 1-0} {xackdel K g ids 1 1-0}} {
            assert_error "NOPERM No permissions to access a key*" {$c {*}[string map {K r} $words]}
            assert_equal -1 [$c {*}[string map {K a} $words]]
            assert_equal -1 [$c {*}[string map {K w} $words]]
        }
        r acl setuser u -@stream
        assert_error "NOPERM User u has no permissions to run the 'xdelex' command*" {$c xdelex a ids 1 1-0}
        assert_error "NOPERM User u has no permissions to run the 'xackdel' command*" {$c xackdel a g ids 1 1-0}
        $c -close
        r acl deluser u
    }

    # --- at random, against a model ---

    proc below n {
        return [expr {int(rand() * $n)}]
    }

    proc one_of list {
        return [lindex $list [below [llength $list]]]
    }

    proc is_referenced id {
        foreach group {g h} {
            if {$id > $::last($group) || [dict exists $::rows($group) $id]} {
                return 1
            }
        }
        return 0
    }

    proc drop id {
        set at [lsearch -integer $::there $id]
        if {$at < 0} {
            return 0
        }
        set ::there [lreplace $::there $at $at]
        return 1
    }

    proc forget id {
        foreach group {g h} {
            dict unset ::rows($group) $id
        }
    }

    proc model_delete {policy id} {
        if {$policy eq "ACKED" && $id in $::there && [is_referenced $id]} {
            return 2
        }
        set found [drop $id]
        if {$policy eq "DELREF"} {
            forget $id
        }
        return [expr {$found ? 1 : -1}]
    }

    proc model_ack_delete {group policy id} {
        if {![dict exists $::rows($group) $id]} {
            return -1
        }
        dict unset ::rows($group) $id
        return [expr {[model_delete $policy $id] == 2 ? 2 : 1}]
    }

    # by: maxlen or minid
    proc model_trim {by limit policy} {
        set count 0
        foreach id $::there {
            if {$by eq "maxlen" ? [llength $::there] <= $limit : $id >= $limit} break
            if {$policy ne "ACKED" || ![is_referenced $id]} {
                model_delete $policy $id
                incr count
            }
        }
        return $count
    }

    proc some_ids {} {
        set ids {}
        for {set i [expr {1 + [below 6]}]} {$i > 0} {incr i -1} {
            lappend ids [expr {max(1, $::newest - 40 + [below 42])}]
        }
        return $ids
    }

    proc random_step {} {
        set policy [one_of {KEEPREF DELREF ACKED}]
        set group [one_of {g h}]
        switch [below 8] {
            0 - 1 - 2 {
                incr ::newest
                lappend ::there $::newest
                if {[below 3]} {
                    r xadd k $::newest-0 f v
                } else {
                    set most [below 40]
                    r xadd k maxlen = $most $policy $::newest-0 f v
                    model_trim maxlen $most $policy
                }
            }
            3 {
                set new [lmap id $::there {if {$id <= $::last($group)} continue; set id}]
                set new [lrange $new 0 [below 6]]
                r xreadgroup group $group c count [llength [concat $new [expr {[llength $new] ? {} : 1}]]] streams k >
                foreach id $new {
                    dict set ::rows($group) $id 1
                    set ::last($group) $id
                }
            }
            4 {
                set ids [some_ids]
                r xack k $group {*}[lmap id $ids {set id $id-0}]
                foreach id $ids {
                    dict unset ::rows($group) $id
                }
            }
            5 {
                set ids [some_ids]
                assert_equal [lmap id $ids {model_delete $policy $id}] \
                    [r xdelex k $policy ids [llength $ids] {*}[lmap id $ids {set id $id-0}]] "$policy $ids"
            }
            6 {
                set ids [some_ids]
                assert_equal [lmap id $ids {model_ack_delete $group $policy $id}] \
                    [r xackdel k $group $policy ids [llength $ids] {*}[lmap id $ids {set id $id-0}]] \
                    "$group $policy $ids"
            }
            7 {
                set by [one_of {maxlen minid}]
                set limit [expr {$by eq "maxlen" ? [below 30] : max(1, $::newest - [below 60])}]
                assert_equal [model_trim $by $limit $policy] [r xtrim k $by $limit $policy] "$by $limit $policy"
            }
        }
    }

    test "random commands match a model, also when files are replayed" {keydb} {
        set seed [clock clicks]
        expr {srand($seed)}
        for {set round 0} {$round < 12} {incr round} {
            r flushall
            set ::newest 0
            set ::there {}
            foreach group {g h} {
                r xgroup create k $group 0 mkstream
                set ::last($group) 0
                set ::rows($group) {}
            }
            for {set i 0} {$i < 200} {incr i} {
                random_step
                assert_equal [list $::there [lsort -integer [dict keys $::rows(g)]] \
                    [lsort -integer [dict keys $::rows(h)]]] [all_of] "seed $seed, round $round, step $i"
            }
            set before [list [r debug digest] [all_of]]
            r debug loadaof
            assert_equal $before [list [r debug digest] [all_of]] "seed $seed, round $round"
        }
    }

    test "~ with a policy: what a group refers to stays, and what goes is pending nowhere" {keydb} {
        set seed [clock clicks]
        expr {srand($seed)}
        for {set round 0} {$round < 60} {incr round} {
            r del k
            for {set i 1} {$i <= 40} {incr i} {
                r xadd k $i-0 f v
            }
            foreach group {g h} {
                r xgroup create k $group 0
                r xreadgroup group $group c count [expr {1 + [below 40]}] streams k >
                for {set i [below 40]} {$i > 0} {incr i -1} {
                    r xack k $group [expr {1 + [below 40]}]-0
                }
            }
            set pending [lsort -integer -unique [concat [pending g] [pending h]]]
            set policy [one_of {ACKED DELREF}]
            set words [one_of [list "maxlen ~ [below 40]" "maxlen ~ [below 40] limit [below 30]" "minid ~ [below 45]"]]
            set before [entries]
            set count [r xtrim k {*}$words $policy]
            set gone [lmap id $before {if {$id in [entries]} continue; set id}]
            assert_equal $count [llength $gone]
            set left [lsort -integer -unique [concat [pending g] [pending h]]]
            foreach id $gone {
                assert {$policy eq "DELREF" || $id ni $pending} "seed $seed: $words $policy: $id"
            }
            assert_equal [lmap id $pending {if {$policy eq "DELREF" && $id in $gone} continue; set id}] $left \
                "seed $seed: $words $policy"
        }
    }
}
