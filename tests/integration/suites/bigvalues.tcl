# Values around 32 KiB, where they may be received in place, and very large ones.

with_server {} {
    test "every operation on both sides of 32 KiB" {} {
        foreach size {32766 32767 32768 32769 65536} {
            set value [pattern_bytes $size $size]
            r set k $value
            assert_reply [list int $size] r strlen k
            assert {[r get k] eq $value}
            assert_reply [list int [expr {$size + 3}]] r append k abc
            assert {[r get k] eq "${value}abc"}
            r copy k k2
            assert_reply [list int [expr {$size + 3}]] r setrange k 10 0123456789
            assert {[r get k] eq [string replace ${value}abc 10 19 0123456789]}
            assert {[r get k2] eq "${value}abc"}
            r rename k2 k3
            assert {[r getdel k3] eq "${value}abc"}
            assert_reply [list bulk [string range $value $size-5 end]] r getrange k [expr {$size - 5}] \
                [expr {$size - 1}]
            assert {[r getset k new] ne {}}
            assert_reply {bulk new} r get k
        }
    }

    test "large bulks cut anywhere, with commands behind them" {} {
        set value [pattern_bytes 40000]
        set request [request SET k $value][request PING][request GET k]
        foreach cut {1 5 20 25 26 27 28 29 30 31 32 33 34 35 36 100 16384 32767 32768 40000 40035 40036 40037 40038 \
            40039 40040 40045} {
            r del k
            r -raw [string range $request 0 $cut-1]
            pause 2
            r -raw [string range $request $cut end]
            assert_equal {OK PONG} [list [r -read] [r -read]] "cut at $cut"
            assert {[r -read] eq $value} "cut at $cut"
        }
    }

    test "large arguments which are no value" {} {
        set big [pattern_bytes 100000]
        r set $big v
        assert_reply {bulk v} r get $big
        assert_reply {int 1} r exists $big
        assert {[r echo $big] eq $big}
        assert_equal 1 [r del $big]
        assert_match "ERR unknown command *" [lindex [r -typed [string repeat x 100000] $big] 1]
        r multi
        r set k $big
        r append k $big
        r get k
        assert {[lindex [r exec] 2] eq "$big$big"}
        assert_equal OK [r mset a $big b $big c small]
        assert {[r mget c b a] eq [list small $big $big]}
    }

    test "1 MiB" {} {
        set value [pattern_bytes 1048576]
        for {set i 0} {$i < 8} {incr i} {
            r set k$i $value
        }
        for {set i 0} {$i < 8} {incr i} {
            assert {[r get k$i] eq $value}
        }
        assert_reply {int 2097152} r append k0 $value
        assert_equal [string range $value 1048570 end][string range $value 0 4] [r getrange k0 1048570 1048580]
    }

    test "64 MiB: SET, GET, GETRANGE, SETRANGE, APPEND" {slow} {
        set size 67108864
        set value [string repeat 0123456789abcdef [expr {$size / 16}]]
        assert_reply {status OK} r set k $value
        assert_reply [list int $size] r strlen k
        assert {[r get k] eq $value}
        assert_reply {bulk 0123456789abcdef} r getrange k [expr {$size - 16}] -1
        assert_reply {bulk def0123} r getrange k 1048573 1048579
        assert_reply [list int $size] r setrange k [expr {$size - 4}] WXYZ
        assert_reply {bulk abWXYZ} r getrange k -6 -1
        assert_reply [list int [expr {$size + 3}]] r append k end
        assert_reply {bulk YZend} r getrange k -5 -1
        assert_reply {int 1} r copy k other
        assert_reply [list int [expr {$size + 3}]] r strlen other
        assert_reply {int 2} r del k other
        wait_for {[info_field used_memory memory] < 40000000}
    }

    test "SETRANGE far behind the end" {slow} {
        assert_reply {int 67108864} r setrange k 67108863 x
        assert_reply [list bulk [string repeat \x00 9]x] r getrange k -10 -1
        assert_reply [list bulk [string repeat \x00 10]] r getrange k 0 9
        r del k
    }

    test "a connection lost in the middle of a large value leaves nothing behind" {} {
        set before [info_field used_memory memory]
        for {set i 0} {$i < 10} {incr i} {
            set c [connect]
            $c -raw "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n\$5000000\r\n"
            $c -raw [string repeat x 2000000]
            $c -close
        }
        wait_for {[info_field connected_clients clients] == 1}
        assert_reply {int 0} r exists k
        wait_for {[info_field used_memory memory] < $before + 3000000}
    }

    test "large replies to clients which go away" {} {
        r set k [string repeat x 4000000]
        for {set i 0} {$i < 10} {incr i} {
            set c [connect]
            $c -send get k
            $c -send get k
            $c -close
        }
        wait_for {[info_field connected_clients clients] == 1}
        assert_reply {int 4000000} r strlen k
    }
}
