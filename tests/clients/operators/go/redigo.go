package main

import (
	"fmt"
	"os"

	"github.com/gomodule/redigo/redis"
)

type redigo struct{ connection redis.Conn }

func connectRedigo() asked {
	return redigo{must(redis.Dial("tcp", "127.0.0.1:"+os.Getenv("PORT")))}
}

func (c redigo) do(words ...string) (any, error) {
	rest := []any{}
	for _, word := range words[1:] {
		rest = append(rest, word)
	}
	return c.connection.Do(words[0], rest...)
}

func (c redigo) config() map[string]string { return must(redis.StringMap(c.do("config", "get", "*"))) }
func (c redigo) setUser(rules ...string) {
	expect(must(redis.String(c.do(append([]string{"acl", "setuser", "rules"}, rules...)...))), "OK")
}
func (c redigo) getUser()             { must(redis.Values(c.do("acl", "getuser", "rules"))) }
func (c redigo) deleteUser()          { expect(must(redis.Int(c.do("acl", "deluser", "rules"))), 1) }
func (c redigo) users() []string      { return must(redis.Strings(c.do("acl", "users"))) }
func (c redigo) categories() []string { return must(redis.Strings(c.do("acl", "cat"))) }
func (c redigo) role() (string, int64, int) {
	reply := must(redis.Values(c.do("role")))
	replicas := must(redis.Values(reply[2], nil))
	return must(redis.String(reply[0], nil)), must(redis.Int64(reply[1], nil)), len(replicas)
}
func (c redigo) wait(replicas, timeoutMs int) int64 {
	return must(redis.Int64(c.connection.Do("wait", replicas, timeoutMs)))
}
func (c redigo) modules() int { return len(must(redis.Values(c.do("module", "list")))) }
func (c redigo) refusal(words ...string) string {
	_, err := c.do(words...)
	return fmt.Sprint(err)
}
func (c redigo) clients() string { return must(redis.String(c.do("client", "list"))) }
func (c redigo) id() int64       { return must(redis.Int64(c.do("client", "id"))) }
func (c redigo) info(section ...string) string {
	return must(redis.String(c.do(append([]string{"info"}, section...)...)))
}
