# A value of every type, in every encoding, with all that may hang on it: deadlines, groups of streams, libraries.
#
# fill_everything NAME          into a member of a group; what redis-server 7.0 knows
# change_everything NAME        further writes that touch each of these, and a new value of each type
# assert_everything_same A B ...  the members at rest have the same: digests, and what digests do not tell

proc fill_everything name {
    on $name flushall
    on $name set s:int 12345
    on $name set s:short text
    on $name set s:long [pattern_bytes 5000]
    on $name set s:empty {}
    on $name setrange s:holes 3000 x
    on $name setbit bits 70000 1
    on $name pfadd hll a b c d
    on $name pfadd hll:dense {*}[lmap i [lrepeat 3000 x] {incr n}]
    on $name rpush l:short a b 3 -4 {}
    on $name rpush l:long {*}[lrepeat 2000 [string repeat e 40]]
    on $name rpush l:big [pattern_bytes 100000]
    on $name sadd set:ints 1 2 3 -9223372036854775808
    on $name sadd set:mixed 1 two {}
    on $name sadd set:large {*}[lmap i [lrepeat 1000 x] {string cat member: [incr m]}]
    on $name hset h:short f v g 7 {} empty
    on $name hset h:large {*}[concat {*}[lmap i [lrepeat 600 x] {list field:[incr f] value:$f}]]
    on $name zadd z:short 1.5 a -inf b 3e300 c
    on $name zadd z:large {*}[concat {*}[lmap i [lrepeat 500 x] {list [incr z].25 member:$z}]]
    on $name geoadd geo 13.361389 38.115556 Palermo
    foreach id {1-1 2-1 2-2 5-0 9-9} {
        on $name xadd stream $id field value-$id other [string repeat o 30]
    }
    on $name xgroup create stream readers 0
    on $name xgroup create stream idle 5-0
    on $name xreadgroup group readers alice count 2 streams stream >
    on $name xreadgroup group readers bob count 1 streams stream >
    on $name xgroup createconsumer stream readers nobody
    on $name xack stream readers 1-1
    on $name xclaim stream readers carol 0 2-1 retrycount 7
    on $name xdel stream 5-0
    on $name xsetid stream 20-0 entriesadded 30 maxdeletedid 6-0
    on $name xgroup create stream:empty g $ mkstream
    on $name set ttl:s v pxat [expr {[clock milliseconds] + 3600000}]
    foreach key {l:short set:mixed h:short z:short stream} {
        on $name copy $key ttl:$key
        on $name pexpire ttl:$key 7200000
    }
    on $name select 9
    on $name mset a 1 b 2
    on $name select 0
    on $name function load replace "#!lua name=lib\nredis.register_function{function_name='answer',\
        callback=function() return 42 end, flags={'no-writes'}}\nredis.register_function('put',\
        function(keys, args) return redis.call('set', keys\[1\], args\[1\]) end)"
}

proc change_everything name {
    on $name incr s:int
    on $name append s:short more
    on $name setrange s:long 10 changed
    on $name getdel s:empty
    on $name set s:kept v ex 5000
    on $name set s:kept w keepttl
    on $name incrbyfloat s:float 0.1
    on $name bitop not bits:not s:short
    on $name bitfield bits set u8 #5 200
    on $name pfadd hll e f
    on $name pfmerge hll:all hll hll:dense
    on $name lpush l:short new
    on $name ltrim l:long 5 1500
    on $name lmove l:short l:other left right
    on $name rpush blocked x
    on $name blmpop 1 1 blocked left
    on $name linsert l:short before b between
    on $name spop set:large 10
    on $name smove set:mixed set:ints two
    on $name sunionstore set:union set:ints set:mixed
    on $name hincrbyfloat h:short f2 1.5
    on $name hdel h:large field:3 field:4
    on $name zincrby z:short 2.5 a
    on $name zpopmin z:large 3
    on $name zrangestore z:range z:large 0 10
    on $name geosearchstore geo:near geo fromlonlat 13 38 byradius 500 km
    on $name xadd stream 30-1 field late
    on $name xadd stream * field now
    on $name xreadgroup group readers alice count 1 streams stream >
    on $name xautoclaim stream readers dave 0 0 count 1
    on $name xtrim stream minid 2-1
    on $name xgroup setid stream idle 9-9
    on $name xgroup delconsumer stream readers nobody
    on $name xgroup create stream young $
    on $name persist ttl:s
    on $name expire l:long 9000
    on $name rename ttl:h:short ttl:h:renamed
    on $name restore restored 60000 [on $name dump z:short]
    on $name set gone x px 1
    on $name multi
    on $name set t:1 1
    on $name incr t:1
    on $name select 9
    on $name lpush inside 1
    on $name select 0
    on $name exec
    on $name eval {redis.call('set', KEYS[1], ARGV[1]); return redis.call('incr', KEYS[2])} 2 e:1 e:2 v
    on $name fcall put 1 fcalled by-function
    on $name function load replace "#!lua name=second\nredis.register_function('f', function() return 1 end)"
    on $name swapdb 9 8
    on $name move t:1 3
    on $name publish channel message
    wait_for {[on $name exists gone] == 0}
}

# What DEBUG DIGEST leaves out.
proc everything_beside_digest name {
    set seen [list functions [lsort [lmap library [on $name function list withcode] {
        dict create name [dict get $library library_name] code [dict get $library library_code]
    }]]]
    foreach database {0 3 8 9} {
        on $name select $database
        foreach key [lsort [on $name keys *]] {
            lappend seen "$database $key" [on $name pexpiretime $key]
            if {[on $name type $key] eq "stream"} {
                lappend seen [stream_facts $name $key]
            }
        }
    }
    on $name select 0
    return $seen
}

# Not how many entries a group has read: redis-server 7.0 tells its replicas only some of it. It knows no producers.
proc stream_facts {name key} {
    set facts {}
    foreach {field value} [on $name xinfo stream $key full count 0] {
        if {$field eq "groups"} {
            set value [lmap group $value {
                dict replace $group entries-read - lag - consumers [lmap consumer [dict get $group consumers] {
                    list [dict get $consumer name] [dict get $consumer pel-count] [dict get $consumer pending]
                }]
            }]
        }
        if {$field ni {radix-tree-keys radix-tree-nodes idmp-duration idmp-maxsize pids-tracked iids-tracked iids-added
                iids-duplicates}} {
            lappend facts $field $value
        }
    }
    return $facts
}

proc assert_everything_same {one args} {
    foreach other $args {
        set expected [everything_beside_digest $one]
        set actual [everything_beside_digest $other]
        foreach a $expected b $actual {
            assert_equal $a $b "$one and $other"
        }
        assert_equal [dataset $one] [dataset $other] "$one and $other"
    }
}
