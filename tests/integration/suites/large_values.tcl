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

        test "a value for which there is no memory is refused, and what is behind it is served ($loop)" {keydb} {
            if {![string match jemalloc* [info_field mem_allocator memory]]} {
                skip "the allocators of sanitizers end the process themselves"
            }
            r set k old
            r config resetstat
            regexp {VmSize:\s+(\d+) kB} [slurp /proc/[srv pid]/status] -> kilobytes
            exec prlimit --as=[expr {($kilobytes + (48 << 10)) << 10}]: --pid [srv pid]
            set refusal "OOM not enough memory for an argument of this command"
            set value "\$[expr {200 << 20}]\r\n[string repeat $::block 200]\r\n"
            r -raw "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n$value" "*2\r\n\$3\r\nGET\r\n\$1\r\nk\r\n"
            assert_equal [list error $refusal] [r -reply]
            assert_equal old [r -read]
            r multi
            r -raw "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n$value"
            assert_equal [list error $refusal] [r -reply]
            assert_refused "EXECABORT Transaction discarded because of previous errors." r exec
            assert_equal old [r get k]
            assert_equal count=2 [info_field errorstat_OOM errorstats]
            assert_match *rejected_calls=2* [info_field cmdstat_set commandstats]
            assert_match "*qbuf-free=0 *" [r client info]
            exec prlimit --as=unlimited: --pid [srv pid]
            r -raw "*3\r\n\$3\r\nSET\r\n\$1\r\nk\r\n$value"
            assert_equal OK [r -read]
            assert_equal [expr {200 << 20}] [r strlen k]
        }
    }
}
