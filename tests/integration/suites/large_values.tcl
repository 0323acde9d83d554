# Values that grow through several blobs while they come.

set block [pattern_bytes [expr {1 << 20}]]

foreach loop {epoll io_uring} {
    with_server [list event-loop $loop] {
        test "values of every size of growth arrive whole ($loop)" {keydb} {
            foreach mib {1 2 5 9 17} {
                foreach odd {"" x} {
                    set value {}
                    for {set i 0} {$i < $mib} {incr i} {
                        append value [format %08d $i] $::block
                    }
                    append value $odd
                    r set k $value
                    assert {[r get k] eq $value} "$mib MiB"
                }
            }
        }

        test "who leaves in the middle of one leaves nothing behind ($loop)" {keydb} {
            r set probe x
            foreach mib {1 3 20} {
                set c [connect]
                $c -raw "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n\$[expr {100 << 20}]\r\n[string repeat $::block $mib]"
                $c -close
            }
            wait_for {[info_field connected_clients clients] == 1}
            wait_for {[info_field used_memory memory] < (20 << 20)}
            assert_equal 0 [r exists k]
        }
    }
}
