# Hashes: what the comparison with redis-server cannot see: forms at their limits, fields by chance, scans of large
# ones, and KeyDB's own.

proc fill_big {} {
    for {set i 0} {$i < 1000} {incr i} {
        r -send hset big field:$i $i
    }
    for {set i 0} {$i < 1000} {incr i} {
        r -read
    }
}

with_server {} {
    test "a hash becomes a table at its limits, and stays one" {} {
        with_config {hash-max-listpack-entries 4 hash-max-listpack-value 8} {
            r hset h a 1 b 2 c 3 d 12345678
            assert_equal listpack [r object encoding h]
            r hset h d x a 12345678
            assert_equal listpack [r object encoding h]
            r hset h e 5
            assert_equal hashtable [r object encoding h]
            assert_equal {a 12345678 b 2 c 3 d x e 5} [lsort_pairs [r hgetall h]]
            r hdel h b c d e
            assert_equal hashtable [r object encoding h]
            r hset i f 123456789
            assert_equal hashtable [r object encoding i]
            r hset j 123456789 f
            assert_equal hashtable [r object encoding j]
            r del h i j
        }
    }

    test "values of a table grow and shrink in place or elsewhere" {} {
        fill_big
        assert_equal hashtable [r object encoding big]
        foreach size {0 1 7 8 9 63 64 1000 3 70000 2} {
            set value [pattern_bytes $size $size]
            assert_equal 0 [r hset big field:500 $value]
            assert {[r hget big field:500] eq $value} $size
        }
        assert_equal 1000 [r hlen big]
        assert_equal 499 [r hget big field:499]
    }

    test "HSCAN meets every field of a large hash once" {} {
        fill_big
        set seen {}
        set cursor 0
        while 1 {
            lassign [r hscan big $cursor count 37] cursor pairs
            foreach {field value} $pairs {
                lappend seen $field
            }
            if {$cursor == 0} {
                break
            }
        }
        assert_equal 1000 [llength $seen]
        assert_equal 1000 [llength [lsort -unique $seen]]
        lassign [r hscan big 0 match field:9?? count 100000] cursor pairs
        assert_equal {0 200} [list $cursor [llength $pairs]]
        lassign [r hscan big 0 match field:9?? count 100000 novalues] cursor fields
        assert_equal {0 100} [list $cursor [llength $fields]]
    }

    test "HRANDFIELD: different ones, repeated ones, every one in time" {} {
        fill_big
        r hset h a 1 b 2 c 3 d 4 e 5
        foreach key {h big} {
            set all [r hlen $key]
            assert_equal 5 [llength [lsort -unique [r hrandfield $key 5]]]
            assert_equal $all [llength [lsort -unique [r hrandfield $key 100000]]]
            assert_equal 400 [llength [lsort -unique [r hrandfield big 400]]]
            assert_equal 50 [llength [r hrandfield $key -50]]
            foreach {field value} [r hrandfield $key 5 withvalues] {
                assert_equal $value [r hget $key $field]
            }
        }
        set seen {}
        for {set i 0} {[llength $seen] < 5 && $i < 1000} {incr i} {
            set seen [lsort -unique [concat $seen [r hrandfield h]]]
        }
        assert_equal {a b c d e} $seen
    }

    test "KEYDB.HRENAME" {keydb} {
        r del h
        assert_reply {nullbulk} r keydb.hrename h a b
        r hset h a 1 b 2
        assert_reply {int 1} r keydb.hrename h a c
        assert_equal {b 2 c 1} [lsort_pairs [r hgetall h]]
        assert_reply {int 1} r keydb.hrename h b c
        assert_equal {c 2} [r hgetall h]
        assert_refused "ERR hash key doesn't exist" r keydb.hrename h b c
        r set s v
        assert_refused "WRONGTYPE Operation against a key holding the wrong kind of value" r keydb.hrename s b c
        assert_reply {int 1} r keydb.hrename h c c
        assert_equal {c 2} [r hgetall h]
        r del s
    }

    test "a copy is its own" {} {
        fill_big
        r copy big twin
        r hset twin field:1 changed
        r hdel twin field:2
        assert_equal {1 2} [r hmget big field:1 field:2]
        assert_equal 999 [r hlen twin]
        assert {[r memory usage big samples 0] > 20000}
    }
}
