# Places: what the comparison with redis-server cannot see: many of them, borders, several forms of the set.

# How far two points are from each other, in meters, on the sphere that the commands reckon with.
proc distance {lon1 lat1 lon2 lat2} {
    set degree [expr {acos(-1) / 180}]
    set u [expr {sin(($lat2 - $lat1) * $degree / 2)}]
    set v [expr {sin(($lon2 - $lon1) * $degree / 2)}]
    set a [expr {$u * $u + cos($lat1 * $degree) * cos($lat2 * $degree) * $v * $v}]
    return [expr {2 * 6372797.560856 * asin(sqrt($a > 1 ? 1 : $a))}]
}

with_server {} {
    test "every place within a circle is found, and no other" {} {
        foreach count {100 3000} {
            r del g
            set words {}
            for {set i 0} {$i < $count} {incr i} {
                lappend words [expr {rand() * 358 - 179}] [expr {rand() * 168 - 84}] p$i
            }
            r geoadd g {*}$words
            set places {}
            for {set i 0} {$i < $count} {incr i} {
                dict set places p$i [lindex [r geopos g p$i] 0]
            }
            foreach {lon lat km} {15 37 500 179.9 0 3000 -179.9 60 2500 0 84 1500 30 -84 4000 10 10 20000} {
                set inside {}
                dict for {member place} $places {
                    set km_off [expr {[distance $lon $lat {*}$place] / 1000}]
                    if {$km_off <= $km} {
                        lappend inside [list $member $km_off]
                    }
                }
                set inside [lmap row [lsort -real -index 1 $inside] {lindex $row 0}]
                assert_equal $inside [r geosearch g fromlonlat $lon $lat byradius $km km asc]
                assert_equal [lsort $inside] [lsort [r geosearch g fromlonlat $lon $lat byradius $km km]]
                assert_equal [lreverse $inside] [r georadius g $lon $lat $km km desc]
                assert_equal [lrange $inside 0 4] [r georadius_ro g $lon $lat $km km count 5]
                set some [r geosearch g fromlonlat $lon $lat byradius $km km count 5 any]
                assert_equal [expr {min(5, [llength $inside])}] [llength $some]
                foreach member $some {
                    assert {$member in $inside}
                }
                assert_equal [llength $inside] [r geosearchstore d g fromlonlat $lon $lat byradius $km km]
                assert_equal [lsort $inside] [lsort [r zrange d 0 -1]]
            }
        }
    }

    test "places on the upper limits" keydb {
        r geoadd g 180 10 east 0 85.05112878 north 180 85.05112878 both -180 10 west
        assert_equal {east west} [lsort [r geosearch g fromlonlat 179.9 10 byradius 50 km]]
        assert_equal {east west} [lsort [r geosearch g fromlonlat -179.9 10 byradius 50 km]]
        assert_equal north [r geosearch g fromlonlat 0 85 byradius 50 km]
        assert_equal both [r geosearch g frommember both bybox 1 1 km]
    }

    test "what is stored" {} {
        r geoadd g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
        assert_equal 2 [r georadius g 15 37 200 km store d]
        assert_equal [r zrange g 0 -1 withscores] [r zrange d 0 -1 withscores]
        assert_equal 1 [r georadius g 15 37 200 km storedist d count 1]
        assert_match 56.44* [r zscore d Catania]
        assert_equal 0 [r georadiusbymember g Palermo 0 km count 1 desc store d; r georadius g 1 1 1 m store d]
        assert_equal 0 [r exists d]
        assert_equal 2 [r geosearchstore g g frommember Palermo byradius 200 km storedist]
        assert_equal 0 [r zscore g Palermo]
    }

    test "two keys to store to" keydb {
        r geoadd g 13.361389 38.115556 Palermo
        assert_equal 1 [r georadius g 13.4 38 200 km store a storedist b]
        assert_error "ERR syntax error" {r georadius g 13.4 38 200 km store a store c}
        assert_error "ERR syntax error" {r georadius g 13.4 38 200 km store}
    }

    test "all effects of GEOADD are scores" {} {
        r geoadd g 13.361389 38.115556 Palermo
        assert_equal 3479099956230698 [r zscore g Palermo]
        assert_equal 0 [r geoadd g nx 1 1 Palermo]
        assert_equal 1 [r geoadd g xx ch 1 1 Palermo]
        assert_equal 0 [r geoadd g xx ch 1 1 Palermo]
        assert_equal {0 1} [list [r geoadd g xx 1 1 new] [r zcard g]]
    }
}
