# maxmemory-clients: the clients that take most memory go when all together take too much.

proc is_listed id {
    return [expr {[r client list id $id] ne {}}]
}

proc total_of id {
    regexp {tot-mem=(\d+)} [r client list id $id] all bytes
    return $bytes
}

# A client with its number.
proc numbered {} {
    set c [connect]
    return [list $c [$c client id]]
}

with_server {maxmemory-clients 3000000} {
    test "a large argument" {} {
        lassign [numbered] c id
        assert_equal OK [$c mset k v k2 [string repeat v 1000000]]
        catch {$c mset k v k2 [string repeat v 3000000]}
        wait_for {![is_listed $id]}
        assert_equal 1 [info_field evicted_clients stats]
        assert_equal v [r get k]
    }

    test "an unfinished request; as percent of maxmemory" {} {
        r config set maxmemory 60mb
        r config set maxmemory-clients 5%
        lassign [numbered] c id
        $c -raw "*1\r\n\$1000000\r\n[string repeat v 1000000]"
        wait_for {[total_of $id] >= 1000000}
        lassign [numbered] other other_id
        catch {$other -raw "*1\r\n\$3500000\r\n[string repeat v 3500000]"}
        wait_for {![is_listed $other_id]}
        assert {[is_listed $id]}
        r config set maxmemory 0
        r config set maxmemory-clients 3000000
    }

    test "a queue" {} {
        lassign [numbered] c id
        $c multi
        catch {
            for {set i 0} {$i < 5} {incr i} {
                $c set k [string repeat v 750000]
            }
        }
        wait_for {![is_listed $id]}
    }

    test "watched keys" {} {
        r config set maxmemory-clients 200000
        lassign [numbered] c id
        catch {
            for {set i 0} {$i < 20000} {incr i} {
                $c watch $i
            }
        }
        wait_for {![is_listed $id]}
        r config set maxmemory-clients 3000000
    }

    test "replies that nobody reads" {} {
        r setrange big 200000 v
        lassign [numbered] c id
        while {[is_listed $id]} {
            if {[catch {$c -send get big}]} break
        }
        wait_for {![is_listed $id]}
    }

    test "who goes for the limit of its own output takes nobody along" {keydb} {
        r config set client-output-buffer-limit "normal 100000 0 0"
        r setrange big 2000000 v
        set value [string repeat v 1500000]
        lassign [numbered] patient patient_id
        $patient -raw "*2\r\n\$3\r\nget\r\n\$1500000\r\n[string range $value 1 end]"
        wait_for {[total_of $patient_id] >= 1500000}
        set before [info_field evicted_clients stats]
        set closed [info_field client_output_buffer_limit_disconnections stats]
        for {set i 1} {$i <= 5} {incr i} {
            lassign [numbered] c id
            $c -send get big
            wait_for {![is_listed $id]}
            assert_equal [expr {$closed + $i}] [info_field client_output_buffer_limit_disconnections stats]
        }
        assert_equal $before [info_field evicted_clients stats]
        assert {[is_listed $patient_id]}
        $patient -close
        r config set client-output-buffer-limit "normal 0 0 0"
    }

    test "NO-EVICT protects" {} {
        lassign [numbered] c id
        $c client no-evict on
        $c -raw "*1\r\n\$4000000\r\n[string repeat v 4000000]"
        wait_for {[total_of $id] > 4000000}
        assert {[is_listed $id]}
        assert_match *flags=e* [r client list id $id]
    }

    test "the largest go, as few as will do" {keydb} {
        r config set maxmemory-clients 0
        set ids {}
        foreach size {300000 600000 900000 1200000} {
            lassign [numbered] c id
            $c multi
            $c set k [string repeat v $size]
            lappend ids $id
        }
        foreach id $ids {
            wait_for {[is_listed $id]}
        }
        set before [info_field evicted_clients stats]
        r config set maxmemory-clients 2500000
        wait_for {[info_field evicted_clients stats] > $before}
        pause 50
        assert {[is_listed [lindex $ids 0]]}
        assert {![is_listed [lindex $ids 3]]}
        assert_equal 1 [expr {[info_field evicted_clients stats] - $before}]
    }
}

# What the server allocates beside what it did before, and what it says that this client takes.
proc agree {before id} {
    set grown [expr {[info_field used_memory memory] - $before}]
    set total [total_of $id]
    return [expr {$grown > 1000000 && abs($total - $grown) < $grown / 25}]
}

proc query_of id {
    regexp { qbuf=(\d+)} [r client list id $id] all bytes
    return $bytes
}

# The first two without the look at all clients that each second brings.
with_server {enable-debug-command yes} {
    # Tools compare such numbers, and so do those who decide who has to go.
    test "a client that has sent a part of a large argument takes what it takes with all of it" {keydb} {
        r debug pause-cron 1
        lassign [numbered] c id
        $c -raw "*3\r\n\$3\r\nset\r\n\$1\r\nk\r\n\$131072\r\n[string repeat v 1000]"
        wait_for {[total_of $id] >= 131072}
        set early [total_of $id]
        $c -raw [string repeat v [expr {131072 - 1000}]]
        wait_for {[query_of $id] == 131072} ;# it alone: what is in front of it is read
        assert_equal $early [total_of $id]
        r debug pause-cron 0
    }

    test "a large argument's smaller memory counts until its bytes are in the larger one, and not longer" {keydb} {
        r debug pause-cron 1
        lassign [numbered] c id
        $c -raw "*2\r\n\$10485760\r\n[string repeat v 5000000]"
        wait_for {[total_of $id] > 10485760 + 4194304}
        $c -raw [string repeat v 4000000]
        wait_for {[total_of $id] < 10485760 + 4194304}
        r debug pause-cron 0
    }

    test "what an unfinished command takes is all told" {keydb} {
        set few [string repeat "\$1\r\na\r\n" 100000]
        set large "\$1\r\nk\r\n\$5000000\r\n[string repeat v 5000000]\r\n"
        foreach {field piece times} [list argv-mem $few 20 qbuf $large 3] {
            set before [info_field used_memory memory]
            lassign [numbered] c id
            $c -raw "*20000000\r\n"
            for {set i 0} {$i < $times} {incr i} {
                $c -raw $piece
            }
            wait_for {[regexp " $field=(\\d+)" [r client list id $id] -> bytes] && $bytes >= 15000000}
            wait_for {[agree $before $id]}
            $c -close
            wait_for {![is_listed $id]}
            wait_for {[info_field used_memory memory] < $before + 1000000}
        }
    }

    test "what a transaction has queued counts for client-query-buffer-limit" {keydb} {
        r config set client-query-buffer-limit 1mb
        lassign [numbered] c id
        $c multi
        catch {
            for {set i 0} {$i < 30} {incr i} {
                assert_equal QUEUED [$c set k$i [string repeat v 100000]]
            }
        }
        assert_range $i 8 10
        assert {[$c -closed]}
        assert_equal 0 [r exists k0]
        assert_equal 1 [info_field client_query_buffer_limit_disconnections stats]
        lassign [numbered] c id
        $c multi
        for {set i 0} {$i < 8} {incr i} {
            $c set k$i [string repeat v 100000]
        }
        assert_equal [lrepeat 8 OK] [$c exec]
        r config set client-query-buffer-limit 1gb
        r config resetstat
    }

    test "the table of an unfinished command counts for client-query-buffer-limit" {keydb} {
        r config set client-query-buffer-limit 1mb
        lassign [numbered] c id
        catch {$c -raw "*20000000\r\n" [string repeat "\$1\r\na\r\n" 70000]}
        assert {[$c -closed]}
        assert_equal 1 [info_field client_query_buffer_limit_disconnections stats]
        # An argument received on its own counts once, and so a command may be larger than that.
        lassign [numbered] c id
        assert_equal OK [$c mset a [string repeat v 700000] b [string repeat v 700000]]
    }
}
