package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

// It speaks RESP3, the library's own default. One connection, so that it knows its number.
type goRedis struct{ *redis.Client }

func connectGoRedis() asked {
	return goRedis{redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Getenv("PORT"), PoolSize: 1})}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func (c goRedis) config() map[string]string { return must(c.ConfigGet(ctx, "*").Result()) }
func (c goRedis) setUser(rules ...string) {
	words := []any{"acl", "setuser", "rules"}
	for _, rule := range rules {
		words = append(words, rule)
	}
	check(c.Do(ctx, words...).Err())
}
func (c goRedis) getUser()             { must(c.Do(ctx, "acl", "getuser", "rules").Result()) }
func (c goRedis) deleteUser()          { expect(must(c.Do(ctx, "acl", "deluser", "rules").Int()), 1) }
func (c goRedis) users() []string      { return must(c.Do(ctx, "acl", "users").StringSlice()) }
func (c goRedis) categories() []string { return must(c.Do(ctx, "acl", "cat").StringSlice()) }
func (c goRedis) role() (string, int64, int) {
	reply := must(c.Do(ctx, "role").Slice())
	return reply[0].(string), reply[1].(int64), len(reply[2].([]any))
}
func (c goRedis) wait(replicas, timeoutMs int) int64 {
	return must(c.Wait(ctx, replicas, time.Duration(timeoutMs)*time.Millisecond).Result())
}
func (c goRedis) modules() int { return len(must(c.Do(ctx, "module", "list").Slice())) }
func (c goRedis) refusal(words ...string) string {
	var all []any
	for _, word := range words {
		all = append(all, word)
	}
	return fmt.Sprint(c.Do(ctx, all...).Err())
}
func (c goRedis) clients() string               { return must(c.ClientList(ctx).Result()) }
func (c goRedis) id() int64                     { return must(c.ClientID(ctx).Result()) }
func (c goRedis) info(section ...string) string { return must(c.Info(ctx, section...).Result()) }
