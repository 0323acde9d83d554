# Places: what the comparison with redis-server cannot see: many of them, borders, several forms of the set.

# How far two points are from each other, in meters, on the sphere that the commands reckon with.
proc distance {lon1 lat1 lon2 lat2} {
    set degree [expr {acos(-1) / 180}]
    set u [expr {sin(($lat2 - $lat1) * $degree / 2)}]
    set v [expr {sin(($lon2 - $lon1) * $degree / 2)}]
    set a [expr {$u * $u + cos($lat1 * $degree) * cos($lat2 * $degree) * $v * $v}]
    return [expr {2 * 6372797.560856 * asin(sqrt($a > 1 ? 1 : $a))}]
}

# Of "lon lat lon lat ...": the direction of the sum of their vectors from the middle of the earth.
proc mean corners {
    set degree [expr {acos(-1) / 180}]
    lassign {0.0 0.0 0.0} x y z
    foreach {lon lat} $corners {
        set x [expr {$x + cos($lat * $degree) * cos($lon * $degree)}]
        set y [expr {$y + cos($lat * $degree) * sin($lon * $degree)}]
        set z [expr {$z + sin($lat * $degree)}]
    }
    return [list [expr {atan2($y, $x) / $degree}] [expr {atan2($z, hypot($x, $y)) / $degree}]]
}

# Whether a ray to the north crosses the edges an odd number of times.
proc is_within {lon lat corners} {
    set within 0
    lassign [lrange $corners end-1 end] x0 y0
    foreach {x y} $corners {
        if {($x > $lon) != ($x0 > $lon) && $lat < $y + ($y0 - $y) * ($lon - $x) / double($x0 - $x)} {
            set within [expr {!$within}]
        }
        set x0 $x
        set y0 $y
    }
    return $within
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

    test "BYPOLYGON: every place within is found, and no other, in the order of distances from the mean" {keydb} {
        foreach {west east south north} {
            -180 180 -85 85 -1 1 -1 1 179 180 80 85.05 -180 -179.5 -85.05 -84 12 14 40 40.5
        } {
            r del g
            set words {}
            for {set i 0} {$i < 400} {incr i} {
                lappend words [expr {$west + rand() * ($east - $west)}] [expr {$south + rand() * ($north - $south)}] p$i
            }
            r geoadd g {*}$words $east $north corner $west $south first 0 0 middle
            set places {}
            foreach member [r zrange g 0 -1] {
                dict set places $member [lindex [r geopos g $member] 0]
            }
            for {set round 0} {$round < 20} {incr round} {
                set corners {}
                set count [expr {3 + int(rand() * 5)}]
                for {set i 0} {$i < $count} {incr i} {
                    lappend corners [expr {$west + rand() * ($east - $west)}] \
                        [expr {$south + rand() * ($north - $south)}]
                }
                if {$round == 0} {
                    set corners [list $west $south $east $south $east $north $west $north]
                    set count 4
                }
                lassign [mean $corners] lon lat
                set inside {}
                dict for {member place} $places {
                    lassign $place x y
                    set is_in_box [expr {$x >= $west && $x <= $east && $y >= $south && $y <= $north}]
                    if {$round == 0 ? $is_in_box : [is_within $x $y $corners]} {
                        lappend inside [list $member [distance $lon $lat {*}$place]]
                    }
                }
                set inside [lmap row [lsort -real -index 1 $inside] {lindex $row 0}]
                set search [list geosearch g bypolygon $count {*}$corners]
                assert_equal [lsort $inside] [lsort [r {*}$search]]
                if {$round != 0} { # there two corners are as far away
                    assert_equal $inside [r {*}$search asc] $corners
                    assert_equal [lreverse $inside] [r {*}$search desc]
                }
                assert_equal [lrange $inside 0 4] [r {*}$search count 5]
                assert_equal [expr {min(5, [llength $inside])}] [llength [r {*}$search count 5 any]]
                assert_equal [llength $inside] [r geosearchstore d g bypolygon $count {*}$corners]
                assert_equal [lsort $inside] [lsort [r zrange d 0 -1]]
                foreach row [r {*}$search withdist] {
                    lassign $row member meters
                    assert {abs($meters - [distance $lon $lat {*}[dict get $places $member]]) < 0.01}
                }
            }
        }
    }

    foreach ::proto {2 3} {
        test "BYPOLYGON: its words, RESP$::proto" {keydb} {
            r hello $::proto
            r geoadd g 1 1 a 3 1 b 5 5 c
            r set s v
            r set d v
            set wrong_type "WRONGTYPE Operation against a key holding the wrong kind of value"
            assert_equal {a b} [r geosearch g bypolygon 4 0 0 3 0 3 4 0 4 asc]
            assert_equal {a b} [r geosearch g ASC BYPOLYGON 3 0 0 4 0 1.5 5]
            assert_equal c [r geosearch g bypolygon 3 0 0 4 0 1.5 5 bypolygon 3 4 4 6 4 5 6]
            assert_equal {a 111} [lindex [lmap row [r geosearch g bypolygon 3 0 0 2 0 1 6 withdist] {
                list [lindex $row 0] [expr {int([lindex $row 1] / 1000)}]}] 0]
            assert_equal {} [r geosearch none bypolygon 3 0 0 4 0 1.5 5]
            assert_equal 1 [llength [r geosearch g bypolygon 4 0 0 4 0 4 4 0 4 count 1 any]]
            # Edges and corners belong to it, a polygon may have no area, and what is surrounded twice is outside.
            lassign [lindex [r geopos g a] 0] lon lat
            foreach corners [list [list $lon 0 $lon 2 0 1] [list 0 $lat 2 $lat 1 0] [list $lon $lat 9 9 9 8] \
                    [list $lon $lat $lon $lat $lon $lat] [list 0 $lat 2 $lat 1 $lat]] {
                assert_equal a [r geosearch g bypolygon 3 {*}$corners] $corners
            }
            assert_equal {} [r geosearch g bypolygon 8 0 0 2 0 2 2 0 2 0 0 2 0 2 2 0 2]
            foreach {words error} {
                {bypolygon 2 0 0 1 1} "ERR GEOSEARCH BYPOLYGON must have at least 3 vertices"
                {bypolygon -1 0 0 1 1 2 2} "ERR GEOSEARCH BYPOLYGON must have at least 3 vertices"
                {bypolygon x 0 0 1 1 2 2} "ERR invalid number of vertices"
                {bypolygon 4 0 0 1 1 2 2} "ERR GEOSEARCH BYPOLYGON must have at least 3 vertices"
                {bypolygon 9223372036854775807 0 0 1 1 2 2} "ERR invalid number of vertices"
                {bypolygon 3 0 0 1 1 2 2 2} "ERR syntax error"
                {asc desc asc desc bypolygon} "ERR syntax error"
                {bypolygon 3 0 0 1 1 2 x} "ERR value is not a valid float"
                {bypolygon 3 0 0 1 1 181 2} "ERR invalid longitude,latitude pair 181.000000,2.000000"
                {bypolygon 3 0 0 1 1 18 86} "ERR invalid longitude,latitude pair 18.000000,86.000000"
                {bypolygon 3 0 0 1 1 2 2 bypolygon 3 0 0 1 1 2 nan} "ERR value is not a valid float"
                {bypolygon 3 0 0 1 1 2 2 any} "ERR the ANY argument requires COUNT argument"
                {bypolygon 3 0 0 1 1 2 2 count 0} "ERR COUNT must be > 0"
                {bypolygon 3 0 0 1 1 2 2 frommember a} "ERR syntax error"
                {frommember a bypolygon 3 0 0 1 1 2 2} "ERR syntax error"
                {bypolygon 3 0 0 1 1 2 2 fromlonlat 1 1} "ERR syntax error"
                {fromlonlat 1 1 bypolygon 3 0 0 1 1 2 2} "ERR syntax error"
                {bypolygon 3 0 0 1 1 2 2 byradius 1 m} "ERR syntax error"
                {byradius 1 m bypolygon 3 0 0 1 1 2 2} "ERR syntax error"
                {bypolygon 3 0 0 1 1 2 2 bybox 1 1 m} "ERR syntax error"
                {bybox 1 1 m bypolygon 3 0 0 1 1 2 2} "ERR syntax error"
            } {
                assert_refused $error r geosearch g {*}$words
                assert_refused $error r geosearchstore d g {*}$words
            }
            assert_refused "ERR syntax error" r georadius g 1 1 1 m bypolygon 3 0 0 1 1 2 2
            assert_refused $wrong_type r geosearch s bypolygon 3 0 0 1 1 2 2
            assert_refused $wrong_type r geosearchstore d s bypolygon 3 0 0 1 1 2 2
            assert_refused "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options" \
                r geosearchstore d g bypolygon 3 0 0 1 1 2 2 withdist
            assert_equal v [r get d]
            r multi
            r geosearchstore d g bypolygon 4 0 0 4 0 4 4 0 4
            r geosearchstore d2 g bypolygon 4 0 0 4 0 4 4 0 4 storedist
            r geosearchstore none g bypolygon 3 50 50 51 51 50 51
            assert_equal {2 2 0} [r exec]
            assert_equal {a b} [lsort [r zrange d 0 -1]]
            assert_equal {a b} \
                [r eval {return redis.call('geosearch', KEYS[1], 'bypolygon', 4, 0, 0, 3, 0, 3, 4, 0, 4)} 1 g]
            r hello 2
        }
    }
}
