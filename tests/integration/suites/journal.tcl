# What readers of the journal cost: a slow one that may go to a file, and one that keeps writers waiting. DEBUG JOURNAL
# is such a reader.

proc fact name {
    regexp "$name:(\\d+)" [r debug journal facts] all value
    return $value
}

# So many megabytes of effects. Values that a key has do not count for the journal: here there are few.
proc write_megabytes {count {keys 10}} {
    set value [string repeat x 10000]
    for {set i 0} {$i < $count * 100} {incr i} {
        r -send set key:[expr {$i % $keys}] $value
    }
    for {set i 0} {$i < $count * 100} {incr i} {
        r -read
    }
}

with_server {enable-debug-command yes enable-protected-configs yes journal-memory-limit 1mb repl-backlog-size 64kb} {
    test "what a slow reader has not read goes to a file, and comes back from it" {keydb} {
        r debug journal start spills
        set begin [fact end]
        write_megabytes 20
        wait_for {[fact spilled_total] > 15000000}
        wait_for {[fact memory] < 6000000}
        assert_equal {} [glob -nocomplain [file join [lindex [r config get dir] 1] temp-journal-*]]
        set stream [r debug journal read]
        assert_equal 2000 [regexp -all {SET\r\n} [string map -nocase {set SET} $stream]]
        assert_equal [expr {[fact end] - $begin}] [string length $stream]
        assert_equal 0 [fact spilled]
        r debug journal stop
        assert_equal 0 [fact memory]
    }

    test "what keys have is memory of the data, and of the journal when they have gone" {keydb} {
        r flushall sync
        r config set journal-memory-limit 4mb
        r debug journal start spills
        set total [fact spilled_total]
        write_megabytes 16 2000
        assert {[fact memory] < 3000000}
        wait_for {[fact spilled] == 0}
        assert_equal $total [fact spilled_total]
        r flushall sync
        r set k v
        wait_for {[fact spilled_total] - $total > 8000000 && [fact memory] < 8000000}
        set stream [r debug journal read]
        assert_equal 1600 [regexp -all {\r\n\$10000\r\nx} $stream]
        r debug journal stop
        r config set journal-memory-limit 1mb
        assert_equal 0 [fact memory]
    }

    test "where the file cannot be written the slow reader is lost, and nobody else notices" {keydb} {
        set folder [lindex [r config get dir] 1]
        set gone [file join $folder gone]
        file mkdir $gone
        r config set dir $gone
        file delete $gone
        r debug journal start spills
        write_megabytes 10
        wait_for {[fact memory] < 6000000}
        assert_equal 0 [fact spilled]
        assert_refused {ERR the next part of the journal is lost: No space left on device} r debug journal read
        r config set dir $folder
        r debug journal stop
        r debug journal start
        r set k v
        assert_match "*SELECT*set*k*v*" [r debug journal read]
        r debug journal stop
        assert_match "*Can't spill replica backlog: No such file or directory. Slow replicas need*" [slurp [srv log]]
    }

    test "beyond journal-spill-limit a slow reader is lost" {keydb} {
        r config set journal-spill-limit 3mb
        r debug journal start spills
        write_megabytes 20
        wait_for {[fact spilled] < 6000000 && [fact memory] < 6000000}
        assert_refused "ERR the next part of the journal is lost: No space left on device" r debug journal read
        r debug journal stop
        r config set journal-spill-limit 10gb
    }

    test "writers wait for a reader that holds them, others do not" {keydb} {
        r config set aof-lag-limit 1mb
        r debug journal start holds
        set begin [fact end]
        set writer [connect]
        r set k before
        for {set i 0} {$i < 300} {incr i} {
            $writer -send set big [string repeat y 10000]
        }
        $writer -send set k after
        wait_for {[info_field blocked_clients clients] == 1}
        assert_equal before [r get k]
        assert {[fact end] - $begin < 1300000}
        wait_for {[string match "*AOF lag exceeds aof-lag-limit*" [slurp [srv log]]]}
        # the end of CLIENT PAUSE is not the end of this
        r client pause 100000 write
        r client unpause
        assert_equal before [r get k]
        assert_equal 1 [info_field blocked_clients clients]
        while {[r get k] ne "after"} {
            r debug journal read
        }
        for {set i 0} {$i < 301} {incr i} {
            assert_equal OK [$writer -read]
        }
        r debug journal stop
        assert_equal OK [r set k v]
    }

    test "the backlog is as long as repl-backlog-size says" {keydb} {
        r debug journal start
        r config set repl-backlog-size 5mb
        write_megabytes 10
        r debug journal read
        set kept [expr {[fact end] - [fact begin]}]
        assert {$kept >= 5 * 1048576 && $kept < 8 * 1048576}
        r config set repl-backlog-size 64kb
        wait_for {[fact end] - [fact begin] < 3 * 1048576}
        r debug journal stop
    }
}
