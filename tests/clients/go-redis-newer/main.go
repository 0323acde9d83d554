// go-redis of 2026: the methods it has for commands and options that are newer than Redis 7.4, in RESP2 and RESP3; see
// ../run. Replies are compared with what was written, by hand.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func expect(got, wanted any) {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		panic(fmt.Sprintf("%.200v instead of %.200v", got, wanted))
	}
}

func within(got, least, most time.Duration) {
	if got < least || got > most {
		panic(fmt.Sprintf("%v is not from %v to %v", got, least, most))
	}
}

func value[T any](got T, err error) T {
	if err != nil {
		panic(err)
	}
	return got
}

// missing is for replies that say that there is nothing.
func missing(err error) {
	expect(err, redis.Nil)
}

func stringsOf(client *redis.Client, key string) {
	value(client.Set(ctx, key, "one", 0).Result())
	digest := value(client.Digest(ctx, key).Result())
	missing(client.SetIFEQ(ctx, key, "two", "nothing", 0).Err())
	expect(value(client.SetIFEQGet(ctx, key, "two", "one", 0).Result()), "one")
	value(client.SetIFNE(ctx, key, "three", "one", time.Minute).Result())
	within(client.TTL(ctx, key).Val(), 50*time.Second, time.Minute)
	missing(client.SetIFDEQ(ctx, key, "four", digest, 0).Err())
	value(client.SetIFDNE(ctx, key, "one", digest, 0).Result())
	value(client.SetIFDEQ(ctx, key, "four", digest, 0).Result())
	expect(value(client.DelExArgs(ctx, key, redis.DelExArgs{Mode: "IFEQ", MatchValue: "one"}).Result()), 0)
	expect(value(client.DelExArgs(ctx, key, redis.DelExArgs{Mode: "IFDNE", MatchDigest: digest}).Result()), 1)
	expect(client.Digest(ctx, key).Err(), redis.Nil)
	minute := redis.MSetEXArgs{Condition: redis.NX, Expiration: &redis.ExpirationOption{Mode: redis.EX, Value: 60}}
	expect(value(client.MSetEX(ctx, minute, key, 1, key+":a", 2).Result()), 1)
	expect(value(client.MSetEX(ctx, minute, key, 3, key+":b", 4).Result()), 0)
	expect(value(client.MGet(ctx, key, key+":a", key+":b").Result()), "[1 2 <nil>]")
	within(client.TTL(ctx, key+":a").Val(), 50*time.Second, time.Minute)
}

func counters(client *redis.Client, key string) {
	whole := func(args redis.IncrEXIntArgs) redis.IncrEXIntResult {
		return value(client.IncrEXInt(ctx, key, args).Result())
	}
	expect(whole(redis.IncrEXIntArgs{}), "{1 1}")
	expect(whole(redis.IncrEXIntArgs{By: 10, HasBy: true, UBound: 8, HasUBound: true, Saturate: true}), "{8 7}")
	expect(whole(redis.IncrEXIntArgs{By: 10, HasBy: true, UBound: 8, HasUBound: true}), "{8 0}")
	minute := &redis.ExpirationOption{Mode: redis.EX, Value: 60}
	expect(whole(redis.IncrEXIntArgs{By: -3, HasBy: true, Expiration: minute}), "{5 -3}")
	within(client.TTL(ctx, key).Val(), 50*time.Second, time.Minute)
	float := value(client.IncrEXFloat(ctx, key, redis.IncrEXFloatArgs{By: 0.5}).Result())
	expect(float, "{5.5 0.5}")
}

func hashes(client *redis.Client, key string) {
	set := func(options redis.HSetEXOptions, words ...string) int64 {
		return value(client.HSetEXWithArgs(ctx, key, &options, words...).Result())
	}
	minute := redis.HSetEXOptions{ExpirationType: redis.HSetEXExpirationEX, ExpirationVal: 60}
	expect(set(minute, "a", "1", "b", "2"), 1)
	expect(set(redis.HSetEXOptions{Condition: redis.HSetEXFNX}, "a", "3"), 0)
	expect(set(redis.HSetEXOptions{Condition: redis.HSetEXFXX, ExpirationType: redis.HSetEXExpirationKEEPTTL},
		"a", "3"), 1)
	left := value(client.HTTL(ctx, key, "a", "b").Result())
	within(time.Duration(left[0])*time.Second, 50*time.Second, time.Minute)
	persist := redis.HGetEXOptions{ExpirationType: redis.HGetEXExpirationPERSIST}
	expect(value(client.HGetEXWithArgs(ctx, key, &persist, "a").Result()), "[3]")
	expect(value(client.HTTL(ctx, key, "a").Result()), "[-1]")
	expect(value(client.HGetEX(ctx, key, "b").Result()), "[2]")
	expect(value(client.HGetDel(ctx, key, "a", "b").Result()), "[3 2]")
	expect(client.Exists(ctx, key).Val(), 0)
}

func lists(client *redis.Client, key string) {
	client.RPush(ctx, key, "a", "b", "c", "d", "e", "f")
	move := func(from, to string, mode redis.LMoveMMode, count int64, order redis.LMoveMOrder) ([]string, error) {
		return client.LMoveM(ctx, key, key+":a", from, to,
			redis.LMoveMArgs{Mode: mode, Count: count, Order: order}).Result()
	}
	expect(value(move("LEFT", "RIGHT", redis.LMoveMCount, 2, redis.LMoveMBulk)), "[a b]")
	_, err := move("LEFT", "RIGHT", redis.LMoveMExactly, 9, redis.LMoveMOBO)
	missing(err)
	expect(value(move("RIGHT", "LEFT", redis.LMoveMExactly, 2, redis.LMoveMBulk)), "[e f]")
	expect(value(client.BLMoveM(ctx, key, key+":a", "LEFT", "LEFT", time.Second,
		redis.LMoveMArgs{Mode: redis.LMoveMCount, Count: 9, Order: redis.LMoveMOBO}).Result()), "[d c]")
	expect(client.LRange(ctx, key+":a", 0, -1).Val(), "[d c e f a b]")
}

func sets(client *redis.Client, key string) {
	for number := 0; number < 100; number++ {
		client.SAdd(ctx, key, number)
		client.SAdd(ctx, key+":a", number+50)
	}
	expect(value(client.SDiffCard(ctx, &redis.SDiffCardOptions{}, key, key+":a").Result()), 50)
	expect(value(client.SDiffCard(ctx, &redis.SDiffCardOptions{Limit: 7}, key, key+":a").Result()), 7)
	expect(value(client.SUnionCard(ctx, &redis.SUnionCardOptions{}, key, key+":a").Result()), 150)
	client.ZAdd(ctx, key+":b", redis.Z{Score: 10, Member: "x"}, redis.Z{Score: 20, Member: "y"})
	client.ZAdd(ctx, key+":c", redis.Z{Score: 30, Member: "y"}, redis.Z{Score: 40, Member: "z"})
	union := redis.ZStore{Keys: []string{key + ":b", key + ":c"}, Weights: []float64{2, 3}, Aggregate: "COUNT"}
	expect(value(client.ZUnionWithScores(ctx, union).Result()), "[{2 x} {3 z} {5 y}]")
	expect(value(client.ZInterWithScores(ctx, &union).Result()), "[{5 y}]")
}

func bits(client *redis.Client, key string) {
	client.Set(ctx, key+":a", "\xf0", 0)
	client.Set(ctx, key+":b", "\x3c", 0)
	calls := map[string]func(context.Context, string, ...string) *redis.IntCmd{
		"\xc0": client.BitOpDiff, "\x0c": client.BitOpDiff1, "\x30": client.BitOpAndOr, "\xcc": client.BitOpOne}
	for wanted, call := range calls {
		expect(value(call(ctx, key, key+":a", key+":b").Result()), 1)
		expect(client.Get(ctx, key).Val(), wanted)
	}
}

func fill(client *redis.Client, key string, count int) {
	for number := 1; number <= count; number++ {
		value(client.XAdd(ctx, &redis.XAddArgs{Stream: key, ID: fmt.Sprintf("%d-0", number),
			Values: []any{"f", number}}).Result())
	}
}

func read(client *redis.Client, consumer, key string, args redis.XReadGroupArgs) []redis.XMessage {
	args.Group, args.Consumer, args.Streams, args.Block = "g", consumer, []string{key, ">"}, -1
	return value(client.XReadGroup(ctx, &args).Result())[0].Messages
}

func references(client *redis.Client, key string) {
	fill(client, key, 5)
	client.XGroupCreate(ctx, key, "g", "0")
	read(client, "c", key, redis.XReadGroupArgs{Count: 3})
	expect(value(client.XDelEx(ctx, key, "ACKED", "1-0", "4-0", "9-0").Result()), "[2 2 -1]")
	expect(value(client.XAckDel(ctx, key, "g", "ACKED", "1-0", "9-0").Result()), "[1 -1]")
	expect(value(client.XDelEx(ctx, key, "DELREF", "2-0").Result()), "[1]")
	expect(client.XPending(ctx, key, "g").Val().Count, 1)
	expect(value(client.XTrimMaxLenMode(ctx, key, 0, "ACKED").Result()), 0)
	expect(value(client.XTrimMaxLenMode(ctx, key, 0, "DELREF").Result()), 3)
	expect(client.XPending(ctx, key, "g").Val().Count, 0)
}

func amounts(client *redis.Client, key string) {
	fill(client, key, 5)
	fill(client, key+":a", 5)
	got := value(client.XRead(ctx, &redis.XReadArgs{
		Streams: []string{key, key + ":a", "0", "0"}, Count: 4, MaxCount: 6, Block: -1}).Result())
	total := 0
	for _, stream := range got {
		total += len(stream.Messages)
	}
	expect(total, 6)
	client.XGroupCreate(ctx, key, "g", "0")
	expect(len(read(client, "c", key, redis.XReadGroupArgs{MaxSize: 1})), 1)
}

func claims(client *redis.Client, key string) {
	fill(client, key, 3)
	client.XGroupCreate(ctx, key, "g", "0")
	read(client, "first", key, redis.XReadGroupArgs{Count: 2})
	time.Sleep(5 * time.Millisecond)
	got := read(client, "second", key, redis.XReadGroupArgs{Claim: time.Millisecond})
	counts := []int64{}
	for _, each := range got {
		counts = append(counts, each.DeliveredCount)
	}
	expect(counts, "[1 1 0]")
	expect(value(client.XNack(ctx, &redis.XNackArgs{Stream: key, Group: "g", Mode: "SILENT",
		IDs: []string{"1-0", "9-0"}}).Result()), 1)
	count := uint64(7)
	expect(value(client.XNack(ctx, &redis.XNackArgs{Stream: key, Group: "g", Mode: "FATAL", IDs: []string{"2-0"},
		RetryCount: &count}).Result()), 1)
	rows := value(client.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: key, Group: "g", Start: "-", End: "+",
		Count: 9}).Result())
	seen := []string{}
	for _, row := range rows {
		seen = append(seen, fmt.Sprintf("%s%s:%d", row.Consumer, row.ID, row.RetryCount))
	}
	expect(seen, "[1-0:1 2-0:7 second3-0:1]")
}

func producers(client *redis.Client, key string) {
	add := func(args redis.XAddArgs) string {
		args.Stream, args.ProducerID = key, "p"
		return value(client.XAdd(ctx, &args).Result())
	}
	first := add(redis.XAddArgs{IdempotentID: "i", Values: []any{"f", 1}})
	expect(add(redis.XAddArgs{IdempotentID: "i", Values: []any{"f", 2}}), first)
	second := add(redis.XAddArgs{IdempotentAuto: true, Values: []any{"f", 3}})
	expect(add(redis.XAddArgs{IdempotentAuto: true, Values: []any{"f", 3}}), second)
	facts := value(client.XInfoStream(ctx, key).Result())
	expect([]int64{facts.Length, facts.PIDsTracked, facts.IIDsTracked, facts.IIDsDuplicates}, "[2 1 2 2]")
	expect(value(client.XCfgSet(ctx, &redis.XCfgSetArgs{Stream: key, Duration: 1000, MaxSize: 5}).Result()), "OK")
	facts = value(client.XInfoStream(ctx, key).Result())
	expect([]int64{facts.IDMPDuration, facts.IDMPMaxSize, facts.IIDsTracked}, "[1000 5 0]")
}

func hotkeys(client *redis.Client, key string) {
	value(client.HotKeysStart(ctx, &redis.HotKeysStartArgs{Count: 5,
		Metrics: []redis.HotKeysMetric{redis.HotKeysMetricCPU, redis.HotKeysMetricNET}}).Result())
	for number := 0; number < 200; number++ {
		client.Set(ctx, key, strings.Repeat("x", 1000), 0)
	}
	facts := value(client.HotKeysGet(ctx).Result())
	expect(facts.TrackingActive, true)
	names := []string{}
	for _, entry := range facts.ByNetBytes {
		names = append(names, entry.Key)
	}
	sort.Strings(names)
	expect(strings.Contains(fmt.Sprint(names), key), true)
	value(client.HotKeysStop(ctx).Result())
	value(client.HotKeysReset(ctx).Result())
}

// both runs the scenario once for each protocol, with a client and keys of its own.
func both(name string, body func(*redis.Client, string)) {
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Printf("not ok %s: %s\n", name, strings.ReplaceAll(fmt.Sprint(problem), "\n", " "))
			return
		}
		fmt.Println("ok", name)
	}()
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Getenv("PORT"), Protocol: protocol})
		key := fmt.Sprintf("go:{%s}:%d", name, protocol)
		client.Del(ctx, key, key+":a", key+":b", key+":c")
		body(client, key)
		client.Close()
	}
}

func main() {
	both("strings", stringsOf)
	both("counters", counters)
	both("hashes", hashes)
	both("lists", lists)
	both("sets", sets)
	both("bits", bits)
	both("references", references)
	both("amounts", amounts)
	both("claims", claims)
	both("producers", producers)
	both("hotkeys", hotkeys)
}
