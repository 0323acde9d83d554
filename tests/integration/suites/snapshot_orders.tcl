# Orders that come while a snapshot is written, and orders for snapshots from places where few give them.

proc orders_idle {} {
    wait_for {[info_field rdb_bgsave_in_progress] == 0 && [info_field aof_rewrite_in_progress] == 0 &&
        [info_field aof_rewrite_scheduled] == 0} 60000
}

with_server {enable-debug-command yes save {} snapshot-method threads} {
    test "BGSAVE in a transaction saves all of it, or nothing" {} {
        foreach words {bgsave {bgsave schedule}} {
            r mset a 0 b 0
            set saves [info_field rdb_saves]
            r multi
            r incr a
            r {*}$words
            r incr b
            assert_equal {1 {Background saving scheduled} 1} [r exec]
            wait_for {[info_field rdb_saves] == $saves + 1}
            orders_idle
            assert_equal OK [r debug reload nosave]
            assert_equal {1 1} [r mget a b]
        }
        r multi
        r bgsave foo
        assert_match "*ERR syntax error*" [r -typed exec]
    }

    test "SAVE is for no transaction and no script" {} {
        r multi
        assert_refused "ERR Command not allowed inside a transaction" r save
        assert_error "EXECABORT*" {r exec}
        foreach command {save bgsave} {
            assert_error "ERR This Redis command is not allowed from script*" \
                [list r eval "return redis.call('$command')" 0]
        }
    }
}
