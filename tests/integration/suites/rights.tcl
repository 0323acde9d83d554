# Files with secrets in them stay unreadable for others when the server writes them anew.

test "CONFIG REWRITE and ACL SAVE keep the mode of their files" {keydb} {
    set dir [fresh_dir]
    set port [free_port]
    spit $dir/users.acl "user default on nopass ~* &* +@all\n"
    spit $dir/server.conf "port $port\ndir $dir\nsave \"\"\naclfile $dir/users.acl\nmasterauth secret\n"
    foreach {config acl} {0600 0640 0640 0600} {
        file attributes $dir/server.conf -permissions $config
        file attributes $dir/users.acl -permissions $acl
        set id [server_launch [list $dir/server.conf {*}[thread_args]]]
        wait_for {[string match "*Ready to accept connections*" [process_log $id]]}
        set c [connect -port $port -tls 0]
        assert_equal OK [$c config rewrite]
        assert_equal OK [$c acl save]
        assert_match *$config [file attributes $dir/server.conf -permissions]
        assert_match *$acl [file attributes $dir/users.acl -permissions]
        process_stop $id
    }
}
