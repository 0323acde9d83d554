# The append only file switched on and off while it is rewritten.

proc aof_switch_done {} {
    return [regexp -all {Background AOF rewrite finished successfully} [slurp [srv log]]]
}

with_server {enable-debug-command yes min-clients-per-thread 1} {
    test "a rewrite that began while the file was off does not switch it on" {} {
        r debug populate 300
        r config set rdb-key-save-delay 3000
        assert_match "Background append only file rewriting started" [r bgrewriteaof]
        r config set rdb-key-save-delay 0
        r config set appendfsync always appendonly yes
        wait_for {[aof_switch_done] == 2} ;# the second is the one that has what came since
        assert_equal OK [r set key value]
        assert_equal {1 0} [r waitaof 1 0 0]
        r debug loadaof
        assert_equal value [r get key]
        assert_equal 301 [r dbsize]
        r config set appendonly no
    }
}
