# What commands are for peers of an active server (docs/active-replication.md, "Operations"). DEBUG OPERATIONS reads it.

# The operations of what ran since the last call: each as a list of its words, with the database in front if it is not
# 0. MULTI and EXEC are left out.
proc operations {} {
    set result {}
    foreach record [r debug operations read] {
        lassign $record db flags bytes
        set words [words_of $bytes]
        if {[lindex $words 0] in {MULTI EXEC}} continue
        if {$db != 0} {
            set words [linsert $words 0 $db]
        }
        lappend result $words
    }
    return $result
}

proc words_of {bytes} {
    set words {}
    regexp {^\*(\d+)\r\n} $bytes head count
    set at [string length $head]
    for {set i 0} {$i < $count} {incr i} {
        regexp -start $at {\A\$(\d+)\r\n} $bytes head size
        incr at [string length $head]
        lappend words [string range $bytes $at [expr {$at + $size - 1}]]
        incr at [expr {$size + 2}]
    }
    return $words
}

# After the preparations the command has these operations.
proc check {preparations command expected} {
    r flushall
    foreach one $preparations {
        r {*}$one
    }
    operations
    r {*}$command
    assert_equal $expected [operations]
}

# Its operation is the value that this key has then.
proc check_value {preparations command key} {
    r flushall
    foreach one $preparations {
        r {*}$one
    }
    operations
    r {*}$command
    set found [operations]
    assert_equal [list [list RESTORE $key 0 [r dump $key] REPLACE ABSTTL]] $found
}

# One line each: what was there, the command, its operations.
proc check_table {rows} {
    foreach {preparations command expected} $rows {
        check $preparations $command $expected
    }
}

with_server {enable-debug-command yes} {
    test "one reader at a time" {keydb} {
        assert_error "ERR operations are not being read*" {r debug operations read}
        r debug operations start
        assert_error "ERR operations are already being read" {r debug operations start}
    }

    test "strings: conditions are decided, one operation a key" {keydb} {
        check_table {
            {} {set k v} {{set k v}}
            {} {set k v nx} {{SET k v}}
            {{set k v}} {set k w nx} {}
            {{set k v}} {set k w xx get keepttl} {{SET k w KEEPTTL}}
            {} {set k v nx pxat 4000000000000} {{SET k v PXAT 4000000000000}}
            {} {set k v ifne x} {{SET k v}}
            {{set k v}} {set k w ifeq x} {}
            {{set k v}} {set k w ifeq v get} {{SET k w}}
            {{set k v}} {set k w ifeq v keepttl} {{SET k w KEEPTTL}}
            {{set k v}} {set k w ifeq v get pxat 4000000000000} {{SET k w PXAT 4000000000000}}
            {{set k v}} {delex k ifeq x} {}
            {{set k v}} {delex k ifeq v} {{UNLINK k}}
            {{set k v}} {delifeq k v} {{UNLINK k}}
            {} {delex k} {}
            {} {setnx k v} {{SET k v}}
            {{set k v}} {getset k w} {{SET k w}}
            {{set k v}} {getdel k} {{UNLINK k}}
            {{set k v}} {getex k pxat 4000000000000} {{PEXPIREAT k 4000000000000}}
            {{set k v ex 1000}} {getex k persist} {{PERSIST k}}
            {} {mset a 1 b 2} {{SET a 1} {SET b 2}}
            {} {msetnx a 1 b 2} {{SET a 1} {SET b 2}}
            {{set a 1}} {msetnx a 1 b 2} {}
            {} {msetex 2 a 1 b 2} {{SET a 1} {SET b 2}}
            {} {msetex 2 a 1 b 2 pxat 4000000000000 nx} {{SET a 1 PXAT 4000000000000} {SET b 2 PXAT 4000000000000}}
            {{set a 1}} {msetex 1 a 2 keepttl xx} {{SET a 2 KEEPTTL}}
            {{set a 1}} {msetex 2 a 1 b 2 nx} {}
            {} {append k v} {{append k v}}
            {} {setrange k 2 v} {{setrange k 2 v}}
            {} {incrby k 3} {{incrby k 3}}
            {} {increx k} {{INCRBY k 1}}
            {{set k 5}} {increx k byint 9 ubound 7 saturate} {{INCRBY k 2}}
            {{set k 5}} {increx k byint 9 ubound 7} {}
            {} {increx k byint 3 pxat 4000000000000} {{INCRBY k 3} {PEXPIREAT k 4000000000000}}
            {{set k 5 ex 100}} {increx k byfloat 0.5 pxat 4000000000000 enx} {{INCRBYFLOAT k 0.5}}
            {{set k 5 ex 100}} {increx k persist} {{INCRBY k 1} {PERSIST k}}
            {{set k 5}} {increx k byfloat 9 ubound 7.5 saturate} {{SET k 7.5 KEEPTTL}}
            {{set k 5}} {increx k pxat 1} {{UNLINK k}}
            {} {increx k pxat 1} {}
            {{set k 1.5}} {incrbyfloat k 1.25} {{incrbyfloat k 1.25}}
            {} {setbit k 7 1} {{setbit k 7 1}}
            {} {bitfield k set u8 0 3} {{bitfield k set u8 0 3}}
            {{set a x}} {bitop or k a} {{SET k x}}
            {{set k x}} {bitop not k a} {{DEL k}}
            {{set a x}} {bitop one k a} {{SET k x}}
            {{set k x}} {bitop diff k a b} {{DEL k}}
            {} {bitop andor k a b} {}
        }
        check {} {pfadd k a} {{pfadd k a}}
        r debug operations read
        check {{pfadd k a b}} {pfcount k} {}
    }

    test "keys: values move as values, deletions of several keys are one each" {keydb} {
        check_table {
            {{mset a 1 b 2}} {del a b c} {{DEL a} {DEL b}}
            {{mset a 1 b 2}} {unlink b a} {{DEL b} {DEL a}}
            {{set a 1 pxat 4000000000000}} {rename a b} {{DEL a} {SET b 1 PXAT 4000000000000}}
            {{mset a 1 b 2}} {renamenx a b} {}
            {{set a 1}} {copy a b} {{SET b 1}}
            {{set a 1}} {copy a b db 2} {{2 SET b 1}}
            {{set a 1}} {move a 3} {{DEL a} {3 SET a 1}}
            {{set a 1}} {expireat a 4000000000 nx} {{PEXPIREAT a 4000000000000}}
            {{set a 1}} {pexpireat a 4000000000000} {{pexpireat a 4000000000000}}
            {{set a 1}} {pexpireat a 4000000000000 gt} {}
            {{set a 1}} {expire a -1} {{UNLINK a}}
            {{set a 1 ex 1000}} {persist a} {{persist a}}
            {{rpush l 2 1}} {flushdb} {flushdb}
        }
        r flushall
        r rpush l a
        set payload [r dump l]
        check {} [list restore l 4000000000000 $payload absttl] \
            [list [list RESTORE l 4000000000000 $payload REPLACE ABSTTL]]
        check_value {{rpush l 2 1}} {sort l store k} k
        check {{rpush k 2 1}} {sort l store k} {{DEL k}}
    }

    test "lists: pops say what they popped" {keydb} {
        check_table {
            {} {rpush l a b} {{rpush l a b}}
            {{rpush l a}} {lpushx l b} {{LPUSH l b}}
            {} {rpushx l b} {}
            {{rpush l a b c}} {lpop l} {{KEYDB.OP.POP l LEFT a}}
            {{rpush l a b c}} {rpop l 2} {{KEYDB.OP.POP l RIGHT c b}}
            {{rpush l a b c}} {lmpop 2 x l left count 5} {{KEYDB.OP.POP l LEFT a b c}}
            {{rpush l a b}} {blpop l 0} {{KEYDB.OP.POP l LEFT a}}
            {{rpush l a b}} {blmpop 0 1 l right} {{KEYDB.OP.POP l RIGHT b}}
            {{rpush l a b}} {lmove l k right left} {{KEYDB.OP.POP l RIGHT b} {LPUSH k b}}
            {{rpush l a b}} {rpoplpush l l} {{KEYDB.OP.POP l RIGHT b} {LPUSH l b}}
            {{rpush l a} {pexpireat l 4000000000000}} {lmove l l left right}
            {{KEYDB.OP.POP l LEFT a} {RPUSH l a} {PEXPIREAT l 4000000000000}}
            {{rpush l a b} {pexpireat l 4000000000000}} {rpoplpush l l} {{KEYDB.OP.POP l RIGHT b} {LPUSH l b}}
            {{rpush l a b}} {blmove l k left right 0} {{KEYDB.OP.POP l LEFT a} {RPUSH k a}}
            {{rpush l a b c}} {lmovem l k left left count 2 obo} {{KEYDB.OP.POP l LEFT a b} {LPUSH k a b}}
            {{rpush l a b c}} {lmovem l k right left exactly 2 bulk} {{KEYDB.OP.POP l RIGHT c b} {LPUSH k c b}}
            {{rpush l a b c}} {lmovem l k right right count 2 bulk} {{KEYDB.OP.POP l RIGHT c b} {RPUSH k b c}}
            {{rpush l a b c}} {lmovem l l left left count 2 bulk} {}
            {{rpush l a b c}} {lmovem l k left left exactly 4 bulk} {}
            {{rpush l a b} {pexpireat l 4000000000000}} {lmovem l l left right count 2 obo}
                {{KEYDB.OP.POP l LEFT a b} {RPUSH l a b} {PEXPIREAT l 4000000000000}}
            {{rpush l a b}} {blmovem l k left right 0} {{KEYDB.OP.POP l LEFT a} {RPUSH k a}}
            {{rpush l a b}} {linsert l before b c} {{linsert l before b c}}
            {{rpush l a b}} {lset l 0 c} {{lset l 0 c}}
            {{rpush l a b}} {lrem l 0 a} {{lrem l 0 a}}
            {{rpush l a b}} {ltrim l 1 1} {{ltrim l 1 1}}
            {{rpush l a b}} {ltrim l 0 -1} {}
        }
    }

    test "a pop of what is gone searches so far, and takes nothing else" {keydb} {
        r flushall
        for {set i 0} {$i < 5000} {incr i} {
            lappend elements e$i
        }
        r rpush l {*}$elements
        assert_equal 1 [r debug operate 0 0 KEYDB.OP.POP l LEFT e4095]
        assert_equal 0 [r debug operate 0 0 KEYDB.OP.POP l LEFT e4097]
        assert_equal 2 [r debug operate 0 0 KEYDB.OP.POP l RIGHT e4097 e0 e4999]
        assert_equal 0 [r debug operate 0 0 KEYDB.OP.POP none LEFT a]
        assert_equal 4997 [r llen l]
        r flushall
        r rpush l a
        assert_equal 1 [r debug operate 0 0 KEYDB.OP.POP l LEFT a b]
        assert_equal 0 [r exists l]
        r set l x
        assert_error "WRONGTYPE*" {r debug operate 0 0 KEYDB.OP.POP l LEFT a}
    }

    test "what came in while a client waited is one stamp's with what it took" {keydb} {
        r flushall
        set waiting [connect]
        $waiting -send blpop l 0
        wait_for {[info_field blocked_clients clients] == 1}
        operations
        r rpush l a b
        assert_equal {l a} [$waiting -read]
        assert_equal {{rpush l a b} {KEYDB.OP.POP l LEFT a}} [operations]
        $waiting -close
    }

    test "sets and hashes" {keydb} {
        check_table {
            {} {sadd s a b} {{sadd s a b}}
            {{sadd s a}} {sadd s a} {}
            {{sadd s a}} {sadd s a b a c b} {{sadd s b c}}
            {{sadd s a b}} {srem s a c b a} {{srem s a b}}
            {{sadd s a b}} {srem s a} {{srem s a}}
            {{sadd s a}} {smove s t a} {{SREM s a} {SADD t a}}
            {{sadd s a}} {spop s} {{SREM s a}}
            {{sadd s a}} {spop s 3} {{SREM s a}}
            {{sadd t a}} {sinterstore s t u} {}
            {{sadd s a}} {sdiffstore s t u} {{DEL s}}
            {} {hset h f v} {{hset h f v}}
            {} {hsetnx h f v} {{HSET h f v}}
            {{hset h f v}} {hsetnx h f v} {}
            {{hset h f v}} {hdel h f} {{hdel h f}}
            {{hset h f v g w}} {hdel h x f y} {{hdel h f}}
            {{hset h f v}} {hset h f v g w} {{hset h f v g w}}
            {} {hincrby h f 2} {{hincrby h f 2}}
            {} {hincrbyfloat h f 2.5} {{hincrbyfloat h f 2.5}}
            {{hset h f v}} {keydb.hrename h f g} {{HSET h g v} {HDEL h f}}
            {{hset h f v}} {hpexpireat h 4000000000000 nx fields 1 f} {{HPEXPIREAT h 4000000000000 FIELDS 1 f}}
            {{hset h f v}} {hexpire h 0 fields 1 f} {{HDEL h f}}
            {} {hsetex h fnx fields 1 f v} {{HSET h f v}}
            {{hset h f v}} {hsetex h fnx fields 1 f v} {}
            {} {hsetex h pxat 4000000000000 fields 1 f v} {{HSET h f v} {HPEXPIREAT h 4000000000000 FIELDS 1 f}}
            {{hset h f v g w} {hpexpireat h 4000000000000 fields 1 f}} {hsetex h keepttl fields 2 f 1 g 2}
                {{HSET h f 1 g 2} {HPEXPIREAT h 4000000000000 FIELDS 1 f}}
            {{hset h f v g w}} {hsetex h px 0 fields 1 f x} {{HDEL h f}}
            {{hset h f v}} {hgetex h fields 1 f} {}
            {{hset h f v}} {hgetex h exat 4000000000 fields 2 f g} {{HPEXPIREAT h 4000000000000 FIELDS 1 f}}
            {{hset h f v} {hpexpireat h 4000000000000 fields 1 f}} {hgetex h persist fields 2 f g}
                {{HPERSIST h FIELDS 1 f}}
            {{hset h f v g w}} {hgetex h px 0 fields 2 f x} {{HDEL h f}}
            {{hset h f v g w}} {hgetdel h fields 3 f x g} {{HDEL h f g}}
            {{hset h f v}} {hgetdel h fields 1 x} {}
            {{sadd s a b}} {expirememberat s a 4000000000} {{PEXPIREMEMBERAT s a 4000000000000}}
            {{sadd s a b}} {pexpirememberat s a 5} {{PEXPIREMEMBERAT s a 5}}
            {} {keydb.nhset h.a v} {{keydb.nhset h.a v}}
        }
        check_value {{sadd t a b}} {sunionstore s t} s
    }

    test "sorted sets" {keydb} {
        check_table {
            {} {zadd z 1 a 2 b} {{zadd z 1 a 2 b}}
            {{zadd z 1 a}} {zadd z nx 5 a 2 b} {{ZADD z 2 b}}
            {{zadd z 1 a}} {zadd z 1 a 2.5 b} {{ZADD z 2.5 b}}
            {{zadd z 1 a 2 b}} {zadd z gt 0 a 3 b} {{ZADD z GT 3 b}}
            {{zadd z 1 a 2 b}} {zrem z x b} {{zrem z b}}
            {{zadd z 1 a}} {zadd z xx gt ch 5 a 2 b} {{ZADD z GT 5 a}}
            {{zadd z 1 a}} {zadd z xx incr 2.5 a} {{ZADD z INCR 2.5 a}}
            {{zadd z 1 a}} {zadd z nx incr 2.5 a} {}
            {{zadd z 1 a}} {zadd z lt 0 a} {{zadd z lt 0 a}}
            {} {zincrby z 2 a} {{zincrby z 2 a}}
            {{zadd z 1 a 2 b 3 c}} {zpopmin z 2} {{ZREM z a b}}
            {{zadd z 1 a 2 b 3 c}} {zmpop 1 z max} {{ZREM z c}}
            {{zadd z 1 a 2 b 3 c}} {bzpopmax z 0} {{ZREM z c}}
            {{zadd z 1 a 2 b 3 c}} {zremrangebyrank z 0 0} {{zremrangebyrank z 0 0}}
            {{zadd z 1 a}} {zdiffstore z 1 x} {{DEL z}}
        }
        check_value {{zadd z 1 a 2 b}} {zrangestore y z 0 0} y
        check_value {{zadd z 1 a 2 b}} {zunionstore y 1 z} y
        check_value {{zadd z 1 a 2 b}} {zunionstore y 1 z aggregate count} y
        check {{zadd z 1 a}} {zinterstore z 2 z x aggregate count} {{DEL z}}
        check {} {geoadd g 1 1 a} {{ZADD g 3377822707026402 a}}
        check_value {{geoadd g 1 1 a}} {geosearchstore y g frommember a byradius 1 m asc} y
        check_value {{geoadd g 1 1 a}} {geosearchstore y g bypolygon 3 0 0 2 0 0 3} y
        check {{geoadd g 1 1 a}} {geosearchstore g g bypolygon 3 5 5 6 5 5 6} {{DEL g}}
    }

    test "streams: ids are decided, trims are exact" {keydb} {
        check_table {
            {} {xadd x 5-* a 1} {{KEYDB.OP.XADD x 5-0 a 1}}
            {{xadd x 1-1 a 1}} {xadd x maxlen 1 2-1 a 1} {{KEYDB.OP.XADD x 2-1 a 1} {XTRIM x MINID = 2-1}}
            {{xadd x 1-1 a 1} {xadd x 2-1 a 1}} {xtrim x maxlen 1} {{XTRIM x MINID = 2-1}}
            {{xadd x 1-1 a 1}} {xtrim x maxlen 0} {{XTRIM x MINID = 1-2}}
            {{xadd x 1-1 a 1}} {xdel x 1-1} {{xdel x 1-1}}
            {{xadd x 1-1 a 1}} {xdelex x ids 2 1-1 2-1} {{XDEL x 1-1}}
            {{xadd x 1-1 a 1}} {xdelex x delref ids 1 2-1} {}
            {{xadd x 1-1 a 1} {xgroup create x g 0}} {xtrim x maxlen 0 keepref} {{XTRIM x MINID = 1-2}}
            {{xadd x 1-1 a 1} {xgroup create x g 0}} {xtrim x maxlen 0 acked} {}
            {{xadd x 1-1 a 1} {xgroup create x g $}} {xtrim x maxlen 0 acked} {{XDEL x 1-1}}
            {{xadd x 1-1 a 1}} {xadd x maxlen 1 acked 2-1 a 1} {{KEYDB.OP.XADD x 2-1 a 1} {XDEL x 1-1}}
            {{xadd x 1-1 a 1} {xcfgset x idmp-maxsize 7}} {xidmprecord x p i 1-1} {{KEYDB.OP.XIDMP x p i 1-1 100 7}}
            {{xadd x 1-1 a 1}} {xcfgset x idmp-maxsize 7} {{XCFGSET x IDMP-DURATION 100 IDMP-MAXSIZE 7}}
            {{xadd x 1-1 a 1}} {xcfgset x idmp-maxsize 100} {{XCFGSET x IDMP-DURATION 100 IDMP-MAXSIZE 100}}
            {{xadd x 1-1 a 1} {xcfgset x idmp-maxsize 7}} {xcfgset x idmp-maxsize 7} {}
            {{xadd x 1-1 a 1}} {xgroup create x g $} {{XGROUP CREATE x g 1-1}}
            {} {xgroup create x g $ mkstream} {{XGROUP CREATE x g 0-0 mkstream}}
            {{xgroup create x g 0 mkstream} {xadd x 1-1 a 1}} {xgroup setid x g $ entriesread 1}
                {{XGROUP SETID x g 1-1 entriesread 1}}
            {{xgroup create x g 0 mkstream} {xadd x 1-1 a 1}} {xgroup setid x g - entriesread 7}
                {{XGROUP SETID x g 0-0 entriesread 1}}
        }
        set claim {XCLAIM x g keydb:released 0 1-1 TIME 0 RETRYCOUNT 0 FORCE JUSTID LASTID 0-0}
        check_table [list \
            {{xgroup create x g 0 mkstream} {xadd x 1-1 a 1}} {xnack x g fail ids 2 1-1 7-1 force} [list $claim] \
            {{xgroup create x g 0 mkstream} {xadd x 1-1 a 1}} {xnack x g fail ids 1 1-1} {} \
            {{xgroup create x g 0 mkstream} {xadd x 1-1 a 1} {xreadgroup group g c streams x >} {xdel x 1-1}} \
                {xnack x g fail ids 1 1-1} {{XACK x g 1-1}}]
        set prepared {{xgroup create x g 0 mkstream} {xadd x 1-1 a 1} {xadd x 2-1 a 1}}
        foreach {command expected} {
            {xdelex x delref ids 2 1-1 3-1} {{XDEL x 1-1} {XACK x g 1-1}}
            {xdelex x acked ids 2 1-1 3-1} {}
            {xackdel x g ids 2 1-1 3-1} {{XACK x g 1-1} {XDEL x 1-1}}
            {xtrim x maxlen 1 delref} {{XACK x g 1-1} {XTRIM x MINID = 2-1}}
            {xadd x delref maxlen 2 3-1 a 1} {{XACK x g 1-1} {KEYDB.OP.XADD x 3-1 a 1} {XTRIM x MINID = 2-1}}
        } {
            check [concat $prepared {{xreadgroup group g c streams x >}}] $command $expected
        }
        r flushall
        foreach one $prepared {
            r {*}$one
        }
        operations
        r xreadgroup group g c streams x >
        set read [operations]
        assert_equal {XGROUP CREATECONSUMER x g c} [lindex $read 0]
        assert_match {KEYDB.OP.DELIVER x g c * ACK 1-1 2-1} [lindex $read 1]
        r xreadgroup group g c noack streams x 0
        assert_match {{XCLAIM x g c 0 1-1 TIME * RETRYCOUNT 2 FORCE JUSTID} *} [operations]
        r xadd x 3-1 a 1
        operations
        r xreadgroup group g d claim 0 streams x >
        set read [operations]
        assert_match {XCLAIM x g d 0 ?-1 TIME * RETRYCOUNT 3 FORCE JUSTID} [lindex $read 0]
        assert_match {XCLAIM x g d 0 ?-1 TIME * RETRYCOUNT 3 FORCE JUSTID} [lindex $read 1]
        assert_equal {KEYDB.OP.DELIVER x g d ACK 3-1} [lreplace [lindex $read end] 4 4]
        r xreadgroup group g d claim 0 count 2 streams x >
        assert_match {{XCLAIM x g d *} {XCLAIM x g d *}} [operations]
        r xack x g 1-1 2-1 3-1
        operations
        foreach {command consumer} {
            {xreadgroup group g e streams x >} e
            {xclaim x g f 0 1-1} f
            {xautoclaim x g h 0 0} h
        } {
            r {*}$command
            assert_equal [list "XGROUP CREATECONSUMER x g $consumer"] [operations]
            r {*}$command
            assert_equal {} [operations]
        }
    }

    test "producers: the pair goes with the entry; the lower id of two is it" {keydb} {
        r flushall
        operations
        set id [r xadd x maxlen 1 idmp p i * a 1]
        assert_equal [list "KEYDB.OP.XADD x $id a 1" "KEYDB.OP.XIDMP x p i $id 100 100"] [operations]
        assert_equal $id [r xadd x idmp p i * a 1]
        assert_equal {} [operations]
        assert_equal 0 [r debug operate 0 0 KEYDB.OP.XIDMP none p i 1-1 100 100]
        assert_equal 0 [r exists none]
        lassign [split $id -] ms seq
        foreach {other done now} [list $ms-[expr {$seq + 1}] 0 $id $id 0 $id [expr {$ms - 1}]-5 1 [expr {$ms - 1}]-5] {
            assert_equal $done [r debug operate 0 0 KEYDB.OP.XIDMP x p i $other 100 100]
            assert_equal $now [r xadd x idmp p i * a 1]
        }
        assert_equal 1 [r debug operate 0 0 KEYDB.OP.XIDMP x p j $id 5 5]
        assert_equal {100 100} [lmap name {idmp-duration idmp-maxsize} {dict get [r xinfo stream x] $name}]
        r xadd y 1-1 f v
        assert_equal 1 [r debug operate 0 0 KEYDB.OP.XIDMP y p j 1-1 5 6]
        assert_equal {5 6} [lmap name {idmp-duration idmp-maxsize} {dict get [r xinfo stream y] $name}]
        foreach words {{p j 1-1 0 6} {p j 1-1 5 0} {{} j 1-1 5 6} {p {} 1-1 5 6} {p j x 5 6}} {
            assert_error ERR* {r debug operate 0 0 KEYDB.OP.XIDMP y {*}$words}
        }
        r set s v
        assert_error WRONGTYPE* {r debug operate 0 0 KEYDB.OP.XIDMP s p j 1-1 5 6}
    }

    test "deliveries of peers" {keydb} {
        r flushall
        assert_equal 0 [r debug operate 0 0 KEYDB.OP.DELIVER x g c 1000 ACK 1-1]
        r xgroup create x g 0 mkstream
        r xadd x 1-1 f v
        r xadd x 2-1 f v
        assert_equal 0 [r debug operate 0 0 KEYDB.OP.DELIVER x none c 1000 ACK 1-1]
        assert_equal 1 [r debug operate 0 0 KEYDB.OP.DELIVER x g c 1000 ACK 1-1]
        assert_equal 1 [r debug operate 0 0 KEYDB.OP.DELIVER x g d 1000 NOACK 2-1]
        assert_equal {1 1-1 1-1 {{c 1}}} [r xpending x g]
        foreach consumer [r xinfo consumers x g] is_active {1 0} {
            assert_equal $is_active [expr {[dict get $consumer inactive] != -1}]
        }
        set group [lindex [r xinfo groups x] 0]
        assert_equal {2-1 2 0} [lmap field {last-delivered-id entries-read lag} {dict get $group $field}]
        assert_equal {} [r xreadgroup group g e streams x >]
    }

    test "entries go where their ids belong, each id once" {keydb} {
        r flushall
        foreach {id done} {5-1 1 3-1 1 9-1 1 5-1 0 3-1 0 1-1 1 4-0 1 0-0 0} {
            assert_equal $done [r debug operate 0 0 KEYDB.OP.XADD x $id f $id]
        }
        assert_equal {{1-1 {f 1-1}} {3-1 {f 3-1}} {4-0 {f 4-0}} {5-1 {f 5-1}} {9-1 {f 9-1}}} [r xrange x - +]
        assert_equal 9-1 [dict get [r xinfo stream x] last-generated-id]
        assert_error "WRONGTYPE*" {
            r set s v
            r debug operate 0 0 KEYDB.OP.XADD s 1-1 f v
        }
        assert_equal 0 [r debug operate 0 0 KEYDB.OP.XADD y 0-0 f v]
        assert_equal 0 [r exists y]
    }

    test "entries that come in any order make the same stream" {keydb} {
        r flushall
        operations
        r config set stream-node-max-entries 7
        for {set i 1} {$i <= 200} {incr i} {
            r xadd x $i-1 f value:$i g $i
        }
        set order {}
        foreach operation [operations] {
            lappend order [list [expr {rand()}] [lreplace $operation 1 1 y]]
        }
        foreach item [lsort $order] {
            r debug operate 0 0 {*}[lindex $item 1]
        }
        assert_equal [r xrange x - +] [r xrange y - +]
        assert_equal 200 [r xlen y]
        r config set stream-node-max-entries 100
    }

    test "clients cannot call what is an operation only" {keydb} {
        assert_error "ERR unknown command 'keydb.op.pop'*" {r keydb.op.pop l LEFT a}
        assert_error "*nknown Redis command*" {r eval {return redis.call('KEYDB.OP.POP', KEYS[1], 'LEFT', 'a')} 1 l}
        assert_equal {{}} [r command info keydb.op.pop]
        assert_error "ERR no such operation" {r debug operate 0 0 KEYDB.OP.NONE l}
    }

    test "an operation treats what had ended when it ran as absent" {keydb} {
        r debug set-active-expire 0
        r flushall
        r set k 5 pxat 4000000000000
        assert_equal 6 [r debug operate 4000000000000 0 INCR k]
        assert_equal 1 [r debug operate 4000000000001 0 INCR k]
        assert_equal -1 [r pttl k]
        r debug set-active-expire 1
    }

    test "expiry is nothing for peers, eviction is" {keydb} {
        r flushall
        r set k v px 1
        wait_for {[r exists k] == 0}
        operations
        r set k v px 1
        wait_for {[r exists k] == 0}
        assert_match {{SET k v PXAT *}} [operations]
    }

    test "the manual has every write command" {keydb} {
        set manual [slurp $::lib_dir/../../../docs/active-replication.md]
        set begin [string first "| command | operation |" $manual]
        set table [string range $manual $begin [string first "\n\n" $manual $begin]]
        set described {}
        foreach line [lrange [split [string trim $table] \n] 2 end] {
            foreach name [split [string trim [lindex [split $line |] 1]] ,] {
                lappend described [string map {" " |} [string tolower [string trim $name]]]
            }
        }
        set there {}
        foreach name [r command list] {
            set rows [list [lindex [r command info $name] 0]]
            lappend rows {*}[lindex $rows 0 9]
            foreach row $rows {
                if {"write" in [lindex $row 2]} {
                    lappend there [lindex $row 0]
                }
            }
        }
        lappend there pfcount
        assert_equal {} [lmap name $there {expr {$name in $described ? [continue] : $name}}]
        assert_equal {} [lmap name $described {expr {$name in $there ? [continue] : $name}}]
        assert_equal [llength $described] [llength [lsort -unique $described]]
    }

    # enum journal_flag: bits for the last one of a stamp, overwriting, evicting, flushing ones, then the key's index.
    test "records say which word is the key, and what overwrites" {keydb} {
        r flushall
        r debug stamping 1
        operations
        r set a 1
        r set a 2 keepttl
        r xgroup create s g $ mkstream
        r multi
        r incr a
        r copy a b
        r exec
        r publish c m
        r del a
        r flushdb
        set found {}
        foreach record [r debug operations read] {
            lassign $record db flags bytes
            set words [words_of $bytes]
            if {[lindex $words 0] in {MULTI EXEC}} continue
            set names {}
            foreach {bit name} {7 ends 8 overwrites 9 evicts 10 flushes} {
                if {$flags & 1 << $bit} {
                    lappend names $name
                }
            }
            lappend found [list [string tolower [lindex $words 0]] [expr {$flags >> 11}] $names]
        }
        assert_equal [list {set 1 {ends overwrites}} {set 1 ends} {xgroup 2 ends} {incr 1 {}} \
            {set 1 {ends overwrites}} {publish 0 ends} \
            {del 1 {ends overwrites}} {flushdb 0 {ends overwrites flushes}}] $found
        r debug stamping 0
    }

    test "the end of the reader" {keydb} {
        r debug operations stop
        r set k v
        assert_error "ERR operations are not being read*" {r debug operations read}
    }
}
