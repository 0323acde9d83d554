# INFO keysizes: how many values of each type have which size, beside a model.

set keysizes_types {string strings_sizes list lists_items set sets_items zset zsets_items hash hashes_items}

proc size_class size {
    if {$size == 0} {
        return 0
    }
    set power 0
    while {$size > 1} {
        set size [expr {$size / 2}]
        incr power
    }
    return [expr {1 << $power % 10}][lindex {{} K M G} [expr {$power / 10}]]
}

# What the section should tell of these databases: name and value, by name.
proc keysizes_expected databases {
    set c [connect]
    set counts [dict create]
    foreach db $databases {
        $c select $db
        foreach key [$c keys *] {
            set type [$c type $key]
            if {![dict exists $::keysizes_types $type]} {
                continue
            }
            set size [$c [dict get {string strlen list llen set scard zset zcard hash hlen} $type] $key]
            dict incr counts [list $db $type $size]
        }
    }
    set lines [dict create]
    foreach place [lsort -command order_places [dict keys $counts]] {
        lassign $place db type size
        set name db${db}_distrib_[dict get $::keysizes_types $type]
        set class [size_class $size]
        set bins [expr {[dict exists $lines $name] ? [dict get $lines $name] : {}}]
        dict incr bins $class [dict get $counts $place]
        dict set lines $name $bins
    }
    return [dict map {name bins} $lines {join [lmap {class count} $bins {format %s=%d $class $count}] ,}]
}

proc order_places {a b} {
    set types [dict keys $::keysizes_types]
    set left [list [lindex $a 0] [lsearch $types [lindex $a 1]] [lindex $a 2]]
    foreach x $left y [list [lindex $b 0] [lsearch $types [lindex $b 1]] [lindex $b 2]] {
        if {$x != $y} {
            return [expr {$x - $y}]
        }
    }
    return 0
}

proc keysizes {} {
    return [dict filter [info_fields keysizes] key db*]
}

# Waits for the end of a walk that begins later; no two end in the same second.
proc keysizes_fresh {} {
    wait_for {[info_field keysizes_walk_in_progress keysizes] == 0}
    set before [info_field keysizes_time keysizes]
    wait_for {[info_field keysizes_time keysizes] > $before}
    return [keysizes]
}

with_server {enable-debug-command yes} {
    test "the section is only there when it is named, and a walk is counted in the background" {keydb} {
        foreach words {{} all everything default {everything debug}} {
            assert {[string first Keysizes [r info {*}$words]] < 0} $words
        }
        r set a 1
        assert_match "# Keysizes\r\nkeysizes_time:0\r\nkeysizes_usec:0\r\nkeysizes_walk_in_progress:1\r\n" \
            [r info keysizes]
        wait_for {[info_field keysizes_time keysizes] > 0}
        assert_range [info_field keysizes_time keysizes] [expr {[clock seconds] - 60}] [clock seconds]
        assert_equal {db0_distrib_strings_sizes 1=1} [keysizes]
        assert {[info_field keysizes_usec keysizes] > 0}
    }

    test "classes of sizes, all types, in several databases" {keydb} {
        foreach size {0 1 2 3 4 7 8 511 512 513 1023 1024 1025 2047 2048 65535 65536 1048576 3000000} {
            r set string:$size [string repeat x $size]
        }
        r set number -1234567
        for {set i 1} {$i <= 300} {incr i} {
            r rpush list:[expr {$i % 7}] $i
            r sadd set:[expr {$i % 5}] $i
            r zadd zset:[expr {$i % 11}] $i $i
            r hset hash:[expr {$i % 3}] f$i $i
        }
        for {set i 0} {$i < 5000} {incr i 100} {
            lappend members {*}[lmap k {1 2 3 4 5 6 7 8 9 10} {string cat m $i $k}]
        }
        r sadd large {*}$members
        r xadd stream * f v
        r setbit bits 100 1
        r pfadd hll a b c
        r select 3
        r set s abc
        r hset h f v
        r select 15
        r rpush l a b
        set expected [keysizes_expected {0 3 15}]
        assert_equal 7 [dict size [dict filter $expected key db0* db3*]]
        assert_equal $expected [keysizes_fresh]
        assert_equal {1=1 1=1 2=1} [list [dict get $expected db3_distrib_hashes_items] \
            [dict get [keysizes] db3_distrib_hashes_items] [dict get [keysizes] db15_distrib_lists_items]]
    }

    test "each class is named by its least size" {keydb} {
        foreach size {0 1 2 3 4 512 1023 1024 2000 1048576} {
            r set string:$size [string repeat x $size]
        }
        assert_equal {db0_distrib_strings_sizes 0=1,1=1,2=2,4=1,512=2,1K=2,1M=1} [keysizes_fresh]
    }

    test "changes, loss of keys and of databases are seen by the next walk" {keydb} {
        for {set i 0} {$i < 2000} {incr i} {
            r set k$i [string repeat v $i]
        }
        assert_equal [keysizes_expected 0] [keysizes_fresh]
        for {set i 0} {$i < 2000} {incr i 2} {
            r del k$i
            r append k[expr {$i + 1}] more
        }
        r rename k1 k2
        r lpush l a b c
        assert_equal [keysizes_expected 0] [keysizes_fresh]
        r swapdb 0 4
        assert_equal [keysizes_expected 4] [keysizes_fresh]
        r flushall
        assert_equal {} [keysizes_fresh]
    }

    test "databases that are emptied or exchanged in the middle of a walk" {keydb} {
        foreach pause_ms {100 200 300 400} command {flushall {swapdb 0 1} {swapdb 0 1} flushall} {
            r debug populate 200000 key 10
            keysizes_fresh
            set before [info_field keysizes_time keysizes]
            wait_for {[info_field keysizes_walk_in_progress keysizes] == 1}
            after $pause_ms ;# somewhere in the walk, or before: both have to do
            r {*}$command
            set is_walking [expr {[info_field keysizes_time keysizes] == $before}]
            wait_for {[info_field keysizes_time keysizes] > $before}
            set expected [expr {$command eq "flushall" ? {} : {db1_distrib_strings_sizes 8=200000}}]
            if {$is_walking} { # otherwise the walk had ended before
                incr walking
                assert_equal $expected [keysizes]
            }
            r flushall
        }
        assert {[info exists walking]}
    }

    test "within MULTI and scripts, and over RESP3" {keydb} {
        r set a 1
        keysizes_fresh
        r multi
        r info keysizes
        r set a 2
        assert_match "*db0_distrib_strings_sizes:1=1*" [lindex [r exec] 0]
        assert_match "*db0_distrib_strings_sizes:1=1*" [r eval {return redis.call('info', 'keysizes')} 0]
        set c [connect]
        $c hello 3
        assert_match "*db0_distrib_strings_sizes:1=1*" [$c info keysizes]
    }

    test "beside writers: every key that stays is counted once" {keydb} {
        for {set i 0} {$i < 20000} {incr i} {
            r -send set stays:$i [string repeat v 300]
        }
        for {set i 0} {$i < 20000} {incr i} {
            r -read
        }
        set writers [lmap x {1 2 3} {connect}]
        set ended [info_field keysizes_time keysizes]
        set n 0
        while {[info_field keysizes_time keysizes] <= $ended + 1} {
            foreach w $writers {
                for {set i 0} {$i < 200} {incr i} {
                    $w -send set moves:[expr {$n * 7 % 5000}] [string repeat m [expr {[incr n] % 100}]]
                    $w -send del moves:[expr {$n * 13 % 5000}]
                }
            }
            foreach w $writers {
                for {set i 0} {$i < 400} {incr i} {
                    $w -read
                }
            }
        }
        assert [regexp {256=(\d+)} [dict get [keysizes] db0_distrib_strings_sizes] -> count]
        assert {$count >= 20000} $count
        assert_equal [keysizes_expected 0] [keysizes_fresh]
    }
}
