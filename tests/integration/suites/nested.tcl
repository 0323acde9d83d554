# KEYDB.NHSET and KEYDB.NHGET: trees of texts.

set wrong_type "WRONGTYPE Operation against a key holding the wrong kind of value"

with_server {enable-debug-command yes} {
    test "a script's path belongs to the key before its first dot" {keydb} {
        foreach key {a h k1 zz} {
            assert_equal 0 [r eval {return redis.call('KEYDB.NHSET', KEYS[1] .. '.x.y', 'v')} 1 $key]
            assert_equal v [r keydb.nhget $key.x.y]
            assert_equal v [r eval {return redis.call('KEYDB.NHGET', KEYS[1] .. '.x.y')} 1 $key]
        }
        assert_equal {a h k1 zz} [lsort [r keys *]]
        r flushall
    }

    test "texts and lists in a tree" {keydb} {
        assert_reply {int 0} r keydb.nhset a.b.c 1
        assert_reply {int 1} r keydb.nhset a.b.c 2
        assert_reply {int 0} r keydb.nhset a.b.list x {} "y\r\n"
        assert_reply {bulk 2} r keydb.nhget a.b.c
        assert_reply {bulk 2} r KEYDB.NHGET resp a.b.c
        assert_equal [list x {} "y\r\n"] [r keydb.nhget a.b.list]
        assert_equal {{c 2} {list {x {} {y
}}}} [lsort [string map {\r {}} [r keydb.nhget a.b]]]
        r del a
        # one child is as many: an array of one pair
        r keydb.nhset a.b.c 2
        assert_equal {{b {{c 2}}}} [r keydb.nhget a]
        assert_reply {int 1} r exists a
        assert_reply {int 0} r exists a.b
        assert_reply {status unknown} r type a
        assert_reply {bulk raw} r object encoding a
        assert_equal a [r keys *]
    }

    test "a key alone is a string, or a list that only NHGET reads" {keydb} {
        assert_reply {int 0} r keydb.nhset s text
        assert_reply {bulk text} r get s
        assert_reply {bulk text} r keydb.nhget s
        assert_reply {bulk {"text"}} r keydb.nhget json s
        assert_reply {int 1} r keydb.nhset s 12
        assert_reply {bulk 12} r keydb.nhget s
        assert_reply {int 1} r keydb.nhset s a b
        assert_equal {a b} [r keydb.nhget s]
        assert_refused $::wrong_type r get s
        assert_refused $::wrong_type r lrange s 0 -1
        assert_reply {int 0} r keydb.nhset l a b
        assert_reply {int 1} r keydb.nhset l b
        assert_reply {bulk b} r get l
    }

    test "what is in the way goes, also what is no tree" {keydb} {
        r set s x ex 1000
        assert_reply {int 0} r keydb.nhset s.a 5
        assert_reply {int -1} r ttl s
        assert_equal {{a 5}} [r keydb.nhget s]
        assert_reply {int 0} r keydb.nhset s.a.b 6
        assert_equal {{a {{b 6}}}} [r keydb.nhget s]
        assert_reply {int 1} r keydb.nhset s.a 7
        assert_equal {{a 7}} [r keydb.nhget s]
        r expire s 1000
        assert_reply {int 0} r keydb.nhset s.c 8
        assert_range [r ttl s] 999 1000
    }

    test "JSON" {keydb} {
        r keydb.nhset k.name "q\"b\\s\x01\x1f\n"
        assert_reply [list bulk "{\"name\" : \"q\\\"b\\\\s\\u0001\\u001f\\u000a\"}"] r keydb.nhget json k
        r keydb.nhset k.name a b
        assert_reply {bulk {{"name" : ["a","b"]}}} r keydb.nhget JSON k
        r keydb.nhset k.other.deep 1
        assert {[r keydb.nhget json k] in {{{"name" : ["a","b"],"other" : {"deep" : "1"}}}
            {{"other" : {"deep" : "1"},"name" : ["a","b"]}}}}
    }

    test "what is refused" {keydb} {
        r keydb.nhset k.a 1
        r rpush list x
        foreach path {{} . a. .a a..b a.b.} {
            assert_refused "ERR syntax error" r keydb.nhset $path v
            assert_refused "ERR syntax error" r keydb.nhget $path
        }
        foreach path {none k.b k.a.x none.a} {
            assert_refused "ERR no such key" r keydb.nhget $path
            assert_refused "ERR no such key" r keydb.nhget json $path
        }
        r set s text
        assert_refused "ERR no such key" r keydb.nhget s.a
        assert_refused "ERR syntax error" r keydb.nhget xml k
        assert_refused "ERR syntax error" r keydb.nhget json k a
        assert_refused $::wrong_type r keydb.nhget list
        assert_refused "ERR wrong number of arguments for 'keydb.nhget' command" r keydb.nhget
        assert_refused "ERR wrong number of arguments for 'keydb.nhset' command" r keydb.nhset k.a
        set deep [string repeat x. 255]y
        assert_reply {int 0} r keydb.nhset $deep 1
        assert_reply {bulk 1} r keydb.nhget $deep
        assert_refused "ERR a path may have at most 256 components" r keydb.nhset $deep.z 1
        assert_refused "ERR a path may have at most 256 components" r keydb.nhget $deep.z
        foreach command {{get k} {hget k a} {lpush k x} {sadd k x} {zadd k 1 x} {append k x} {incr k}} {
            assert_refused $::wrong_type r {*}$command
        }
        assert_reply {bulk 1} r keydb.nhget k.a
    }

    test "a tree is a value like any other: copied, moved, watched, journaled, counted, flushed" {keydb} {
        for {set i 0} {$i < 500} {incr i} {
            r keydb.nhset k.$i.value text$i
        }
        assert_range [r memory usage k samples 0] 30000 300000
        set digest [lindex [r debug digest-value k] 0]
        r copy k c
        assert_equal $digest [lindex [r debug digest-value c] 0]
        r keydb.nhset c.7.value other
        assert {[lindex [r debug digest-value c] 0] ne $digest}
        assert_reply {bulk text7} r keydb.nhget k.7.value
        r rename c d
        r move d 1
        r swapdb 0 1
        assert_reply {bulk other} r keydb.nhget d.7.value
        r select 1
        set other [connect]
        r watch k
        $other select 1
        $other keydb.nhset k.x.y 1
        r multi
        r ping
        assert_reply nullarray r exec
        foreach command {{keydb.nhset k.x.y 1} {keydb.nhget k.x} {keydb.nhget json k.x} {keydb.nhset k v}} {
            assert_equal k [r command getkeys {*}$command]
        }
        r debug journal start
        r keydb.nhset k.x.y 5
        r keydb.nhget k.x
        set stream [r debug journal read]
        r debug journal stop
        assert_match "*keydb.nhset\r\n\$5\r\nk.x.y\r\n\$1\r\n5\r\n" $stream
        assert {![string match -nocase "*nhget*" $stream]}
        r flushall
        assert_reply {int 0} r exists k
    }

    test "what a put replaces is freed in the background, if it is much and the option says so" {keydb} {
        foreach {lazy children path freed} {yes 200 k.tree 1 yes 200 k 1 no 200 k.tree 0 yes 10 k.tree 0} {
            r config set lazyfree-lazy-server-del $lazy
            r del k
            for {set i 0} {$i < $children} {incr i} {
                r keydb.nhset k.tree.$i text
            }
            set before [info_field lazyfreed_objects memory]
            assert_reply {int 1} r keydb.nhset $path x y
            assert_equal {x y} [r keydb.nhget $path]
            wait_for {[info_field lazyfreed_objects memory] == $before + $freed}
            wait_for {[info_field lazyfree_pending_objects memory] == 0}
        }
        r config set lazyfree-lazy-server-del no
    }

    test "the key is what stands before the first dot, also for access rules" {keydb} {
        r acl setuser path on nopass ~a.* ~b %R~read +@all
        set other [connect]
        $other auth path x
        assert_error "NOPERM*" {$other keydb.nhset a.b 1}
        assert_error "NOPERM*" {$other keydb.nhget json a.b}
        assert_reply {int 0} $other keydb.nhset b.c 1
        assert_reply {bulk {{"c" : "1"}}} $other keydb.nhget json b
        assert_error "NOPERM*" {$other keydb.nhset read.x 1}
        assert_refused "ERR no such key" $other keydb.nhget read.x
        r acl deluser path
    }
}
