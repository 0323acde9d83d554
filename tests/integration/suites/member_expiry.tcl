# Members with a time to live: fields of hashes, members of sets and sorted sets; what sets the time, what takes it
# away, and that a dead member is not there for anybody.

set wrong_int "ERR value is not an integer or out of range"
set wrong_type "WRONGTYPE Operation against a key holding the wrong kind of value"
set far 4102444800

# The members of key k and what they have left: a sorted list.
proc members {} {
    switch [r type k] {
        hash {return [lsort [r hkeys k]]}
        set {return [lsort [r smembers k]]}
        zset {return [lsort [r zrange k 0 -1]]}
        default {return {}}
    }
}

with_server {enable-debug-command yes} {
    test "HEXPIRE, HPEXPIRE, HEXPIREAT, HPEXPIREAT set, HTTL and its kin read" {keydb} {
        r hset k a 1 b 2
        foreach {command time} [list hexpire 100 hpexpire 100000 hexpireat $::far hpexpireat ${::far}000] {
            r del k
            r hset k a 1 b 2
            assert_equal {1 -2} [r $command k $time fields 2 a none] $command
            assert_equal {-1 -2} [r httl k FIELDS 2 b none]
            set at [lindex [r hexpiretime k fields 1 a] 0]
            if {$time eq $::far || $time eq "${::far}000"} {
                assert_equal $::far $at
                assert_equal ${::far}000 [r hpexpiretime k fields 1 a]
            } else {
                assert_range [r httl k fields 1 a] 99 100
                assert_range [r hpttl k fields 1 a] 99000 100000
                assert_range $at [expr {[clock seconds] + 98}] [expr {[clock seconds] + 101}]
            }
            assert_equal {1 2} [r hmget k a b]
            assert_reply {int -1} r ttl k
        }
        foreach command {hexpire hpexpire hexpireat hpexpireat} {
            assert_equal {-2 -2} [r $command none 100 fields 2 a b]
        }
        foreach command {httl hpttl hexpiretime hpexpiretime hpersist} {
            assert_equal {-2 -2} [r $command none fields 2 a b]
        }
        assert_reply {int 0} r exists none
    }

    test "times in seconds are rounded up" {keydb} {
        r hset k a 1
        r hpexpireat k ${::far}001 fields 1 a
        assert_equal [expr {$::far + 1}] [r hexpiretime k fields 1 a]
        assert_equal ${::far}001 [r hpexpiretime k fields 1 a]
        r hpexpire k 99300 fields 1 a
        assert_equal 100 [r httl k fields 1 a]
    }

    test "HEXPIRE: NX, XX, GT, LT" {keydb} {
        r hset k a 1
        foreach {option before after expected} {
            nx -1 100 1   nx 50 100 0   xx -1 100 0   XX 50 20 1   gt -1 100 0   gt 50 100 1   gt 50 20 0   gt 50 50 0
            lt -1 100 1   lt 50 100 0   LT 50 20  1   lt 50 50 0
        } {
            r hpersist k fields 1 a
            if {$before >= 0} {
                r hexpireat k [expr {$::far + $before}] fields 1 a
            }
            assert_equal $expected [r hexpireat k [expr {$::far + $after}] $option fields 1 a] "$option $before $after"
            set now [expr {$expected ? $after : $before}]
            assert_equal [expr {$now < 0 ? -1 : $::far + $now}] [r hexpiretime k fields 1 a]
        }
        assert_equal 0 [r hexpire k 0 gt fields 1 a]
        assert_equal 2 [r hexpire k 0 lt fields 1 a]
    }

    test "HEXPIRE with a time that has passed deletes" {keydb} {
        foreach {command time} {hexpire 0 hpexpire 0 hexpireat 1 hpexpireat 1 hexpireat 0} {
            r hset k a 1 b 2
            assert_equal {2 -2 -2} [r $command k $time fields 3 a a none]
            assert_equal b [r hkeys k]
            assert_equal 2 [r $command k $time fields 1 b]
            assert_reply {int 0} r exists k
        }
    }

    test "a small hash with deadlines has a name of its own" {keydb} {
        r hset k a 1 b 2
        assert_equal listpack [r object encoding k]
        r hexpire k 1000 fields 1 a
        assert_equal listpackex [r object encoding k]
        r debug reload
        assert_equal listpackex [r object encoding k]
    }

    test "HPERSIST" {keydb} {
        r hset k a 1 b 2
        r hexpire k 100 fields 1 a
        assert_equal {1 -1 -2} [r hpersist k fields 3 a b none]
        assert_equal {-1 -1 -2} [r hpersist k fields 3 a b none]
        assert_equal -1 [r httl k fields 1 a]
    }

    test "conditions come before or behind the fields, and may be repeated" {keydb} {
        r hset k a 1 b 2
        assert_equal {1 1} [r hpexpireat k 4102444800000 fields 2 a b nx]
        assert_equal {0 0} [r hpexpireat k 4102444800000 nx fields 2 a b nx]
        assert_equal 1 [r hpexpireat k 4102444800001 gt gt fields 1 a]
        assert_equal -2 [r hpexpireat none 4102444800001 fields 1 a lt]
    }

    test "what is refused" {keydb} {
        set where "ERR Mandatory argument FIELDS is missing or not at the right position"
        set match "ERR The `numfields` parameter must match the number of arguments"
        r hset k a 1
        foreach command {hexpire hpexpire hexpireat hpexpireat} {
            foreach key {k none} {
                assert_refused $::wrong_int r $command $key x fields 1 a
                assert_refused $::wrong_int r $command $key 1.5 fields 1 a
                assert_refused "ERR invalid expire time, must be >= 0" r $command $key -1 fields 1 a
                assert_refused "ERR invalid expire time in '$command' command" r $command $key 9223372036854775807 \
                    fields 1 a
                foreach {words error} {
                    {nx nx 1 a} "unknown argument: 1"      {field 1 a} "unknown argument: field"
                    {1 fields a} "unknown argument: 1"     {xx fields 1 a b} "unknown argument: b"
                    {fields 2 a} "wrong number of arguments" {fields 1 a nx gt} "Multiple condition flags specified"
                    {nx xx nx} "missing FIELDS argument"   {fields 1 a fields} "FIELDS keyword specified multiple times"
                    {nx nx fields} "FIELDS requires at least numfields and one field argument"
                } {
                    assert_refused "ERR $error" r $command $key 10 {*}$words
                }
                foreach count {0 -1 x 1.0 2147483648} {
                    assert_refused "ERR Parameter `numFields` should be greater than 0" r $command $key 10 fields \
                        $count a
                }
            }
            assert_refused "ERR wrong number of arguments for '$command' command" r $command k 10 fields 1
        }
        foreach command {httl hpttl hexpiretime hpexpiretime hpersist} {
            assert_refused $where r $command k field 1 a
            foreach count {0 -1 x} {
                assert_refused "ERR Number of fields must be a positive integer" r $command k fields $count a
            }
            assert_refused $match r $command k fields 2 a
            assert_refused $match r $command k fields 1 a b
            assert_refused "ERR wrong number of arguments for '$command' command" r $command k fields 1
        }
        r set s v
        foreach command {hexpire hpexpire hexpireat hpexpireat} {
            assert_refused $::wrong_type r $command s 10 fields 1 a
            assert_refused $::wrong_type r $command s x field 1 a
        }
        foreach command {httl hpttl hexpiretime hpexpiretime hpersist} {
            assert_refused $::wrong_type r $command s fields 1 a
            assert_refused $::wrong_type r $command s field x a
        }
        # 46 bits of milliseconds are what others can keep
        assert_equal 1 [r hpexpireat k 70368744177663 fields 1 a]
        assert_refused "ERR invalid expire time in 'hpexpireat' command" r hpexpireat k 70368744177664 fields 1 a
        assert_equal 70368744177663 [r hpexpiretime k fields 1 a]
    }

    test "EXPIREMEMBER, EXPIREMEMBERAT, PEXPIREMEMBERAT, and TTL, PTTL, PERSIST of a member" {keydb} {
        foreach fill {{hset k a 1 b 2} {sadd k a b} {zadd k 1 a 2 b}} {
            r del k
            r {*}$fill
            assert_reply {int -1} r ttl k a
            assert_reply {int -1} r ttl k none
            assert_reply {int -2} r ttl none a
            assert_reply {int 1} r expiremember k a 100
            assert_range [r ttl k a] 99 100
            assert_range [r pttl k a] 99000 100000
            assert_reply {int -1} r pttl k b
            assert_reply {int -1} r pttl k
            assert_reply {int 1} r expiremember k a 100 S
            assert_range [r ttl k a] 99 100
            assert_reply {int 1} r expiremember k a 50600 ms
            assert_reply {int 51} r ttl k a
            assert_reply {int 1} r expirememberat k a [expr {[clock seconds] + 100}]
            assert_range [r ttl k a] 98 100
            assert_reply {int 1} r pexpirememberat k a [expr {[clock milliseconds] + 200000}]
            assert_range [r pttl k a] 199000 200000
            assert_reply {int 0} r expiremember k none 10
            assert_reply {int 0} r expiremember none a 10
            assert_reply {int 0} r persist k b
            assert_reply {int 0} r persist none a
            assert_reply {int 1} r persist k a
            assert_reply {int 0} r persist k a
            assert_reply {int -1} r ttl k a
            assert_reply {int 1} r pexpirememberat k a 9223372036854775807
            assert_reply {int 1} r expiremember k b 0
            assert_equal a [members]
            assert_reply {int 1} r pexpirememberat k a -1
            assert_reply {int 0} r exists k
        }
    }

    test "what EXPIREMEMBER and its kin refuse" {keydb} {
        r hset k a 1
        assert_refused "ERR Invalid unit arg" r expiremember k a 10 h
        assert_refused "ERR Invalid number of arguments" r expiremember k a 10 s s
        foreach command {expiremember expirememberat pexpirememberat} {
            assert_refused $::wrong_int r $command k a x
            assert_refused $::wrong_int r $command none a 9223372036854775808
            assert_refused "ERR wrong number of arguments for '$command' command" r $command k a
        }
        assert_refused "ERR invalid expire time in 'expiremember' command" r expiremember k a 9223372036854775807
        assert_refused "ERR wrong number of arguments for 'expirememberat' command" r expirememberat k a 1 ms
        r set s v
        r rpush l a
        foreach key {s l} {
            assert_refused "ERR object type is unsupported" r expiremember $key a 10
        }
        foreach command {ttl pttl} {
            assert_refused "ERR Invalid arguments" r $command k a b
            assert_reply {int -2} r $command none a b
        }
        assert_refused "ERR Invalid arguments" r persist k a b
        assert_reply {int -1} r ttl k a
    }

    test "a key has its own deadline beside those of its members" {keydb} {
        r hset k a 1 b 2
        r pexpireat k ${::far}123
        r hexpire k 100 fields 1 a
        assert_reply [list int ${::far}123] r pexpiretime k
        assert_match "keys=1,expires=1,avg_ttl=*" [info_field db0 keyspace]
        assert_reply {int 1} r persist k
        assert_reply {int -1} r ttl k
        assert_range [r httl k fields 1 a] 99 100
        assert_match "keys=1,expires=0,*" [info_field db0 keyspace]
        assert_reply {int 1} r pexpireat k ${::far}456
        assert_equal 1 [r hpersist k fields 1 a]
        assert_reply [list int ${::far}456] r pexpiretime k
        r hexpire k 100 fields 1 a
        r pexpire k 1
        wait_for {[r exists k] == 0}
        r hset k a 1
        assert_equal -1 [r httl k fields 1 a]
    }

    test "a dead member is not there for any command" {keydb} {
        r debug set-active-expire 0
        foreach {fill command expected} {
            {hset k d 1 e 2} {hget k d} {}       {hset k d 1 e 2} {hmget k d e} {{} 2}  {hset k d 1 e 2} {hexists k d} 0
            {hset k d 1 e 2} {hlen k} 1          {hset k d 1 e 2} {hgetall k} {e 2}     {hset k d 1 e 2} {hkeys k} e
            {hset k d 1 e 2} {hvals k} 2         {hset k d 1 e 2} {hstrlen k d} 0       {hset k d 1 e 2} {hdel k d} 0
            {hset k d 1 e 2} {hscan k 0} {0 {e 2}}      {hset k d 1 e 2} {hrandfield k 9} e
            {hset k d 1 e 2} {hrandfield k} e           {hset k d 7 e 2} {hincrby k d 1} 1
            {hset k d 7 e 2} {hincrbyfloat k d 1} 1     {hset k d 7 e 2} {hsetnx k d 3} 1
            {hset k d 7 e 2} {hset k d 3} 1      {hset k d 7 e 2} {httl k fields 1 d} -2 {hset k d 7} {exists k} 0
            {hset k d 7} {type k} none           {hset k d 7} {hgetall k} {}            {hset k d 7} {randomkey} {}
            {hset k d 7} {keys *} {}             {hset k d 7} {scan 0} {0 {}}           {hset k d 7} {copy k k2} 0
            {hset k d 7 e 2} {keys *} k          {hset k d 7 e 2} {scan 0 type hash} {0 k}
            {hset k d 7 e 2} {randomkey} k       {hset k d 7} {sadd k x} 1              {hset k d 7} {get k} {}
            {hset k d 7} {del k} 0               {hset k d 7} {unlink k} 0              {hset k d 7} {touch k} 0
            {hset k d 7} {move k 1} 0            {hset k d 7} {setnx k 1} 1             {hset k d 7} {expire k 10} 0
            {hset k d 7} {object encoding k} {}  {hset k d 7} {dbsize} 1                {hset k d 7} {ttl k d} -2
            {hset k d 7 e 2} {hpersist k fields 1 d} -2 {hset k d 7 e 2} {hpexpire k 9000 fields 1 d} -2
            {hset k d 7 e 2} {expiremember k d 9} 0 {hset k d 7 e 2} {keydb.hrename k e d} 1
            {sadd k d e} {sismember k d} 0       {sadd k d e} {smismember k d e} {0 1}  {sadd k d e} {scard k} 1
            {sadd k d e} {smembers k} e          {sadd k d e} {srandmember k 9} e       {sadd k d e} {srem k d} 0
            {sadd k d e} {spop k 9} e            {sadd k d e} {sadd k d} 1              {sadd k d e} {smove k x d} 0
            {sadd k d e} {sunion k none} e       {sadd k d e} {sinter k k} e            {sadd k d e} {sdiff k x} e
            {sadd k d e} {sintercard 1 k} 1      {sadd k d e} {sinterstore x k} 1       {sadd k 1 d} {sscan k 0} {0 1}
            {sadd k d} {sinter k} {}             {sadd k d} {exists k} 0                {sadd k d} {spop k} {}
            {zadd k 1 d 2 e} {zscore k d} {}     {zadd k 1 d 2 e} {zmscore k d e} {{} 2} {zadd k 1 d 2 e} {zcard k} 1
            {zadd k 1 d 2 e} {zrange k 0 -1} e   {zadd k 1 d 2 e} {zrank k e} 0
            {zadd k 1 d 2 e} {zcount k 0 9} 1
            {zadd k 1 d 2 e} {zpopmin k} {e 2}   {zadd k 1 d 2 e} {zincrby k 5 d} 5     {zadd k 1 d 2 e} {zadd k 7 d} 1
            {zadd k 1 d 2 e} {zrem k d} 0        {zadd k 1 d 2 e} {zlexcount k - +} 1   {zadd k 1 d} {zpopmax k} {}
            {zadd k 1 d 2 e} {zrandmember k 9} e {zadd k 1 d 2 e} {zscan k 0} {0 {e 2}} {zadd k 1 d} {exists k} 0
            {zadd k 1 d 2 e} {zunion 1 k} e      {zadd k 1 d 2 e} {zrangestore x k 0 -1} 1
            {zadd k 1 d 2 e} {zremrangebyrank k 0 0} 1
        } {
            r flushall
            r {*}$fill
            r expiremember k d 1 ms
            pause 2
            assert_equal $expected [r {*}$command] $command
        }
        r flushall
        r hset k d 1
        r expiremember k d 1 ms
        pause 2
        assert_refused "ERR no such key" r rename k other
        r debug set-active-expire 1
    }

    test "members nobody asks for disappear by themselves" {keydb} {
        r config resetstat
        for {set i 0} {$i < 300} {incr i} {
            r -send hset h$i a 1 b 2 c 3
            r -send hpexpire h$i [expr {1 + $i % 50}] fields 2 a b
            r -send sadd s$i 1 2 3
            foreach member {1 2 3} {
                r -send expiremember s$i $member [expr {1 + $i % 30}] ms
            }
        }
        for {set i 0} {$i < 300 * 6} {incr i} {
            r -read
        }
        wait_for {[r dbsize] == 300}
        wait_for {[info_field expired_subkeys stats] == 1500}
        assert_equal 0 [info_field expired_keys stats]
        r hset last a 1 b 2
        r hpexpire last 1 fields 1 a
        wait_for {[info_field expired_subkeys stats] == 1501}
        assert_reply {int 1} r hlen last
    }

    test "many members of one key, in every database" {keydb} {
        for {set db 0} {$db < 16} {incr db} {
            r select $db
            for {set i 0} {$i < 1000} {incr i 100} {
                set words {}
                set fields {}
                for {set j $i} {$j < $i + 100} {incr j} {
                    lappend words f$j value$j
                    lappend fields f$j
                }
                r hset k {*}$words stay 1
                r hpexpire k 20 fields 100 {*}$fields
            }
        }
        for {set db 0} {$db < 16} {incr db} {
            r select $db
            wait_for {[r hlen k] == 1}
            assert_equal stay [r hkeys k]
        }
    }

    test "a member lives until its time and no longer" {keydb} {
        foreach ms {30 80} {
            r hset k f v stay 1
            set begin [clock milliseconds]
            r hpexpire k $ms fields 1 f
            set sent [clock milliseconds]
            set alive $sent
            while 1 {
                set asked [clock milliseconds]
                if {![r hexists k f]} {
                    break
                }
                set alive $asked
            }
            set gone [clock milliseconds]
            assert_range [expr {$gone - $begin}] [expr {$ms - 1}] 10000
            assert_range [expr {$alive - $sent}] 0 [expr {$ms + 1}]
        }
    }

    test "who removes a member removes its deadline, who changes it may keep it" {keydb} {
        foreach {command left} {
            {hset k a 2} -1          {hmset k a 2} -1         {hincrby k a 1} 100       {hincrbyfloat k a 1} 100
            {hsetnx k a 3} 100       {hset k b 2} 100         {hdel k b} 100            {keydb.hrename k b a} -1
            {sadd k a} 100           {srem k b} 100           {smove k x b} 100         {zadd k 5 a} 100
            {zincrby k 5 a} 100      {zrem k b} 100           {zadd k xx incr 5 a} 100
        } {
            r flushall
            switch -glob $command {
                s* {r sadd k a b}
                z* - g* {r zadd k 1 a 2 b}
                default {r hset k a 1 b 2}
            }
            r expiremember k a 100
            r {*}$command
            assert_range [r ttl k a] [expr {$left == 100 ? 99 : -1}] $left
        }
        foreach {fill remove again} {
            {hset k a 1 b 2} {hdel k a} {hset k a 1}     {hset k a 1 b 2} {keydb.hrename k a c} {hset k a 1}
            {sadd k a b} {srem k a} {sadd k a}           {sadd k a b} {smove k x a} {sadd k a}
            {sadd k 1 2} {srem k 1} {sadd k 1}           {hset k a 1} {hdel k a} {hset k a 1}
            {sadd k a} {spop k} {sadd k a}               {sadd k a b} {spop k 2} {sadd k a}
            {sadd k a} {smove k x a} {sadd k a}          {hset k a 1} {hpexpire k 0 fields 1 a} {hset k a 1}
            {sadd k a} {sunionstore k k} {sadd k a}      {hset k a 1} {set k 1} {persist k}
            {zadd k 1 a 2 b} {zrem k a} {zadd k 1 a}     {zadd k 1 a 2 b} {zpopmin k} {zadd k 1 a}
            {zadd k 1 a} {zpopmax k} {zadd k 1 a}        {zadd k 1 a 2 b} {zremrangebyrank k 0 0} {zadd k 1 a}
            {zadd k 1 a 2 b} {zremrangebyscore k 1 1} {zadd k 1 a} {zadd k 1 a 1 b} {zremrangebylex k - [a} {zadd k 1 a}
            {zadd k 1 a 2 b} {zmpop 1 k min} {zadd k 1 a} {zadd k 1 a 2 b} {zrangestore k k 0 -1} {zadd k 1 a}
        } {
            r flushall
            r {*}$fill
            r expiremember k a 1000
            r expiremember k 1 1000
            r {*}$remove
            catch {r {*}$again}
            assert_equal {-1 -1} [list [r ttl k a] [r ttl k 1]] "$fill $remove"
        }
        r flushall
        r sadd k a b c d e f g h
        foreach member {a b c d e f g h} {
            r expiremember k $member 1000
        }
        foreach member [r spop k 3] {
            r sadd k $member
            assert_reply {int -1} r ttl k $member
        }
        r sadd k a
        set with 0
        foreach member {a b c d e f g h} {
            incr with [expr {[r ttl k $member] > 0}]
        }
        assert_equal 5 $with
    }

    test "KEYDB.HRENAME takes the deadline along" {keydb} {
        r hset k a 1 b 2
        r hexpireat k $::far fields 1 a
        r keydb.hrename k a b
        assert_equal "$::far" [r hexpiretime k fields 1 b]
        assert_equal -2 [r hexpiretime k fields 1 a]
    }

    test "deadlines go with the key" {keydb} {
        foreach {fill at} {
            {hset a f 1 g 2} 4102444800123 {sadd a f g} 4102444800456 {zadd a 1 f 1 g} 4102444800789
        } {
            r flushall
            r {*}$fill
            r pexpirememberat a f $at
            r pexpireat a ${::far}999
            set ttl [r pttl a f]
            r rename a b
            assert_range [r pttl b f] [expr {$ttl - 5000}] $ttl
            r copy b c
            assert_range [r pttl b f] [expr {$ttl - 5000}] $ttl
            assert_range [r pttl c f] [expr {$ttl - 5000}] $ttl
            assert_reply [list int ${::far}999] r pexpiretime c
            r persist b f
            assert_range [r pttl c f] [expr {$ttl - 5000}] $ttl
            r move c 1
            assert_reply {int -2} r pttl c f
            r select 1
            assert_range [r pttl c f] [expr {$ttl - 5000}] $ttl
            r swapdb 0 1
            r select 0
            assert_range [r pttl c f] [expr {$ttl - 5000}] $ttl
            assert_reply {int -1} r pttl c g
            r expiremember c f 1 ms
            wait_for {[r exists c] == 1 && [r pttl c f] == -1}
        }
    }

    test "what is journaled" {keydb} {
        r debug set-active-expire 0
        foreach {script expected} {
            {r hexpireat k 4102444800 fields 2 a none}
            {{HPEXPIREAT k 4102444800000 FIELDS 1 a}}
            {r hpexpireat k 4102444800000 nx fields 2 a b; r hexpireat k 1 nx fields 1 a}
            {{HPEXPIREAT k 4102444800000 FIELDS 2 a b}}
            {r hexpire k 0 fields 2 a none}
            {{HDEL k a}}
            {r hexpire k 0 fields 2 a b; r hexpire k 0 fields 1 a}
            {{HDEL k a b}}
            {r hexpireat k 4102444800 xx fields 2 a b; r hexpire k 5 fields 1 none}
            {}
            {r hexpireat k 4102444800 fields 1 a; r hpersist k fields 2 a b; r hpersist k fields 2 a b}
            {{HPEXPIREAT k 4102444800000 FIELDS 1 a} {hpersist k fields 2 a b}}
            {r hpexpireat k 4102444800123 fields 1 a; r hincrbyfloat k a 1.5}
            {{HPEXPIREAT k 4102444800123 FIELDS 1 a} MULTI {HSET k a 2.5}
                {HPEXPIREAT k 4102444800123 FIELDS 1 a} EXEC}
            {r hpexpireat k 4102444800123 fields 1 a; r keydb.hrename k a b}
            {{HPEXPIREAT k 4102444800123 FIELDS 1 a} MULTI {HSET k b 1} {HDEL k a}
                {HPEXPIREAT k 4102444800123 FIELDS 1 b} EXEC}
            {r pexpirememberat k a 99999999999999; r hincrbyfloat k a 1.5}
            {{PEXPIREMEMBERAT k a 99999999999999} MULTI {HSET k a 2.5} {PEXPIREMEMBERAT k a 99999999999999} EXEC}
            {r expirememberat k a 4102444800}
            {{PEXPIREMEMBERAT k a 4102444800000}}
            {r expirememberat k a 1; r expirememberat k a 1}
            {{HDEL k a}}
            {r expirememberat k a 1; r expirememberat k b 1; r persist k b; r expirememberat s m 5}
            {{HDEL k a} {UNLINK k} {SREM s m}}
            {r expirememberat z n 5; r expirememberat z m 5}
            {{ZREM z n} {UNLINK z}}
            {r pexpirememberat k a 4102444800000; r persist k a; r persist k b}
            {{PEXPIREMEMBERAT k a 4102444800000} {persist k a}}
        } {
            r flushall
            r hset k a 1 b 2
            r sadd s m n
            r zadd z 1 m 2 n
            assert_equal [list {*}$expected] [effects_of $script] $script
        }
        r flushall
        r hset k a 1 b 2
        r sadd s m n
        r sadd t m
        r hpexpire k 1 fields 1 a
        r expiremember s n 1 ms
        r expiremember t m 1 ms
        pause 2
        assert_equal {{HDEL k a} {SREM s n} {UNLINK t} {set t 1}} [effects_of {
            r hget k a
            r scard s
            r smembers t
            r set t 1
            r hget k a
        }]
        r hset k a 1
        r hpexpire k 1 fields 1 a
        pause 2
        assert_equal {MULTI {HDEL k a} {hset k c 1} EXEC} [effects_of {
            r hset k c 1
        }]
        r debug set-active-expire 1
        set effects [effects_of {
            r hpexpire k 20 fields 1 c
            r expiremember s m 20 ms
            wait_for {[r exists s] == 0 && [r hlen k] == 1}
        }]
        assert_equal {{HDEL k c} {UNLINK s}} [lsort [lrange $effects 2 end]]
    }

    test "keyspace events" {keydb} {
        r config set notify-keyspace-events Kghszxe
        r debug set-active-expire 0
        foreach {script expected} {
            {r hset k a 1 b 2; r hexpire k 100 fields 2 a none}                 {k hset k hexpire}
            {r hpersist k fields 2 a b; r hpersist k fields 1 a}                {k hpersist}
            {r hexpire k 0 fields 1 a; r hexpire k 100 xx fields 1 b}           {k hdel}
            {r hexpire k 0 fields 1 b}                                          {k hdel k del}
            {r sadd s a b; r expiremember s a 100; r persist s a; r persist s a} {s sadd s persist}
            {r expirememberat s a 1; r expirememberat s b 1}                    {s srem s srem s del}
            {r zadd z 1 a 2 b; r expirememberat z a 1; r expirememberat z b 1}  {z zadd z zrem z zrem z del}
            {r hset k a 1 b 2; r expirememberat k a 1; r expirememberat k b 1}  {k hset k hexpired k hexpired k del}
            {r hset k a 1 b 2; r hpexpire k 1 fields 1 a; pause 2; r hlen k}    {k hset k hexpire k hexpired}
            {r hpexpire k 1 fields 1 b; pause 2; r hlen k}                      {k hexpire k hexpired k del}
            {r keydb.nhset n.a 1; r keydb.nhset n.a 2}                          {n nhset n nhset}
        } {
            set listener [connect]
            $listener psubscribe __keyspace@*
            eval $script
            r publish __keyspace@end end
            set found {}
            while {[lindex [set event [$listener -read]] 3] ne "end"} {
                lappend found [regsub {.*:} [lindex $event 2] {}] [lindex $event 3]
            }
            assert_equal $expected $found $script
            $listener -close
        }
        r debug set-active-expire 1
        set listener [connect]
        $listener psubscribe __keyspace@*
        r sadd s a
        r expiremember s a 1 ms
        assert_equal {sadd srem del} [list [lindex [$listener -read] 3] [lindex [$listener -read] 3] [
            lindex [$listener -read] 3]]
        r config set notify-keyspace-events {}
    }

    test "a transaction sees one time, and WATCH that a member went" {keydb} {
        r hset k f v stay 1
        r hpexpire k 400 fields 1 f
        r multi
        r hget k f
        r debug sleep 0.5
        r hget k f
        set replies [r exec]
        assert_equal v [lindex $replies 0]
        assert_equal v [lindex $replies 2]
        assert_reply nullbulk r hget k f
        r debug set-active-expire 0
        r hset k f v
        r hpexpire k 400 fields 1 f
        r watch k
        pause 420
        r multi
        r ping
        assert_reply nullarray r exec
        # dead already when it is watched
        r hset k f v
        r hpexpire k 1 fields 1 f
        pause 3
        r watch k
        r multi
        r hlen k
        assert_equal 1 [r exec]
        r debug set-active-expire 1
    }

    test "a script sees one time" {keydb} {
        assert_reply {int 2} r eval {
            redis.call('hset', KEYS[1], 'a', '1', 'b', '2')
            redis.call('hpexpire', KEYS[1], 5, 'FIELDS', 1, 'a')
            local begin = os.clock()
            while os.clock() - begin < 0.02 do end
            return redis.call('hlen', KEYS[1])
        } 1 k
        wait_for {[r hlen k] == 1}
        assert_equal {{UNLINK k}} [effects_of {r eval {redis.call('pexpirememberat', KEYS[1], 'b', 1)} 1 k}]
        assert_reply {int 0} r exists k
    }

    test "while deadlines stand still, dead members are hidden" {keydb} {
        r hset k a 1 b 2 c 3
        r sadd s m
        r hpexpire k 30 fields 1 a
        r hpexpire k 60 fields 1 b
        r expiremember s m 30 ms
        r client pause 100000 write
        wait_for {[r hlen k] == 2}
        assert_equal {2 3} [lsort [r hvals k]]
        wait_for {[r hlen k] == 1}
        assert_equal {c 3} [r hgetall k]
        assert_equal -2 [r httl k fields 1 b]
        assert_reply {int 0} r exists s
        assert_equal k [r keys *]
        assert_equal {0 k} [r scan 0]
        assert_equal k [r randomkey]
        assert_reply {int 2} r dbsize
        # who watches changes nothing, and what was dead before is no change
        set gone [info_field expired_subkeys stats]
        r watch k s
        r multi
        r hlen k
        assert_equal 1 [r exec]
        assert_equal $gone [info_field expired_subkeys stats]
        r client unpause
        wait_for {[r dbsize] == 1}
        assert_equal {c 3} [r hgetall k]
    }

    test "DEBUG DIGEST knows of deadlines, not of their time, and not of dead members" {keydb} {
        r hset k a 1 b 2
        set bare [r debug digest]
        r hexpire k 100 fields 1 a
        set with [r debug digest]
        assert {$bare ne $with}
        assert_equal [r debug digest-value k] [r debug digest-value k]
        r hexpire k 1000 fields 1 a
        assert_equal $with [r debug digest]
        r hpersist k fields 1 a
        assert_equal $bare [r debug digest]
        r hexpire k 1000 fields 1 b
        assert {$with ne [r debug digest]}
        r hpersist k fields 1 b
        r debug set-active-expire 0
        r hset k c 3
        r hpexpire k 1 fields 1 c
        pause 3
        assert_equal $bare [r debug digest]
        r debug set-active-expire 1
    }

    test "memory: MEMORY USAGE counts deadlines, DEFRAG moves them, freeing frees them" {keydb} {
        set words {}
        set fields {}
        for {set i 0} {$i < 2000} {incr i} {
            lappend words field:$i $i
            lappend fields field:$i
        }
        r hset k {*}$words
        set before [r memory usage k samples 0]
        r hexpire k 10000 fields 2000 {*}$fields
        assert_range [r memory usage k samples 0] [expr {$before + 2000 * 30}] [expr {$before + 2000 * 80}]
        catch {r debug defrag-all}
        assert_range [r httl k fields 1 field:1999] 9900 10000
        r copy k k2
        foreach field $fields {
            r -send hpersist k fields 1 $field
        }
        foreach field $fields {
            assert_equal 1 [r -read]
        }
        assert_equal $before [r memory usage k samples 0]
        r flushdb
    }
}
