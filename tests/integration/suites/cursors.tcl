# SCAN, HSCAN, SSCAN, ZSCAN: whatever cursor a client comes with, the scan ends.

# How many calls until the cursor is 0; more than `most` are too many.
proc calls_to_the_end {command cursor most args} {
    for {set calls 1} {$calls <= $most} {incr calls} {
        lassign [r {*}$command $cursor {*}$args] cursor elements
        if {$cursor eq "0"} {
            return $calls
        }
    }
    fail "$command has not ended after $most calls, at $cursor"
}

proc random_cursor {} {
    set bits [expr {int(rand() * 64) + 1}]
    return [expr {(int(rand() * (1 << 32)) << 32 | int(rand() * (1 << 32))) & ((1 << $bits) - 1)}]
}

# A value of each type in each form of at most `count` elements.
proc fill_values {count} {
    for {set i 0} {$i < $count} {incr i} {
        r hset h field:$i v
        r sadd numbers $i
        r sadd s member:$i
        r zadd z $i member:$i
        r set key:$i v
    }
}

with_server {} {
    foreach count {1 5 100 1000} {
        test "a scan of $count elements ends from any cursor" {} [string map [list @count $count] {
            fill_values @count
            set cursors {1 17179869183 17179869184 281474976710655 281474976710656 281474976710657 4611686018427387904 \
                9223372036854775807 9223372036854775808 18446744073709551615 -1}
            for {set i 0} {$i < 15} {incr i} {
                lappend cursors [random_cursor]
            }
            foreach cursor $cursors {
                foreach command {{hscan h} {sscan s} {sscan numbers} {zscan z} scan} {
                    calls_to_the_end $command $cursor [expr {200 + 2 * @count}]
                }
            }
        }]
    }

    test "a scan ends whatever it is to count" {} {
        fill_values 1000
        foreach count {1 9223372036854775807 1844674407370955160 1844674407370955161} {
            foreach command {{hscan h} {sscan s} {sscan numbers} {zscan z} scan} {
                calls_to_the_end $command 0 3000 count $count
            }
        }
    }
}
