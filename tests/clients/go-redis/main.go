// go-redis: one function a scenario, see ../run.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func address(variable string) string { return "127.0.0.1:" + os.Getenv(variable) }

// plain speaks RESP2; the library's own default is RESP3, which has its scenario.
func plain() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: address("PORT"), Protocol: 2, DisableIndentity: true})
}

func expect(got, wanted any) {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		panic(fmt.Sprintf("%.200v instead of %.200v", got, wanted))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func connect() {
	client := redis.NewClient(&redis.Options{Addr: address("PORT"), Protocol: 2, DB: 2, ClientName: "scenario"})
	defer client.Close()
	expect(client.Ping(ctx).Val(), "PONG")
	check(client.Set(ctx, "go:connect", "\x00\xff\r\n", 0).Err())
	expect(client.Get(ctx, "go:connect").Val(), "\x00\xff\r\n")
	expect(client.ClientGetName(ctx).Val(), "scenario")
	other := plain()
	defer other.Close()
	expect(other.Get(ctx, "go:connect").Err(), redis.Nil)
	check(other.Set(ctx, "go:ttl", "x", time.Hour).Err())
	if ttl := other.TTL(ctx, "go:ttl").Val(); ttl < 3590*time.Second || ttl > time.Hour {
		panic(ttl)
	}
}

func pipeline() {
	client := plain()
	defer client.Close()
	replies, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for number := 0; number < 1000; number++ {
			key := fmt.Sprintf("go:%d", number)
			pipe.Set(ctx, key, number, 0)
			pipe.Incr(ctx, key)
			pipe.Get(ctx, key)
		}
		return nil
	})
	check(err)
	for number := 0; number < 1000; number++ {
		expect(replies[3*number+2].(*redis.StringCmd).Val(), number+1)
	}
}

func multi() {
	client := plain()
	defer client.Close()
	client.Del(ctx, "go:n")
	replies, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Incr(ctx, "go:n")
		pipe.IncrBy(ctx, "go:n", 10)
		pipe.Get(ctx, "go:n")
		return nil
	})
	check(err)
	expect(replies[1].(*redis.IntCmd).Val(), 11)
	expect(replies[2].(*redis.StringCmd).Val(), 11)
}

func watch() {
	client, other := plain(), plain()
	defer client.Close()
	defer other.Close()
	write := func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "go:w", 3, 0)
		return nil
	}
	err := client.Watch(ctx, func(tx *redis.Tx) error {
		check(other.Set(ctx, "go:w", 2, 0).Err())
		_, err := tx.TxPipelined(ctx, write)
		return err
	}, "go:w")
	expect(errors.Is(err, redis.TxFailedErr), true)
	check(client.Watch(ctx, func(tx *redis.Tx) error {
		_, err := tx.TxPipelined(ctx, write)
		return err
	}, "go:w"))
	expect(client.Get(ctx, "go:w").Val(), 3)
}

func tlsConfig(withCertificate bool) *tls.Config {
	certs := os.Getenv("CERTS")
	authority, err := os.ReadFile(certs + "/ca.crt")
	check(err)
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}
	config.RootCAs.AppendCertsFromPEM(authority)
	if withCertificate {
		pair, err := tls.LoadX509KeyPair(certs+"/client.crt", certs+"/client.key")
		check(err)
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

func tlsMutual() {
	client := redis.NewClient(&redis.Options{Addr: address("TLS_PORT"), TLSConfig: tlsConfig(true)})
	defer client.Close()
	value := strings.Repeat("x", 100000)
	check(client.Set(ctx, "go:tls", value, 0).Err())
	expect(client.Get(ctx, "go:tls").Val(), value)
	stranger := redis.NewClient(&redis.Options{
		Addr: address("TLS_PORT"), TLSConfig: tlsConfig(false), MaxRetries: -1,
	})
	defer stranger.Close()
	if stranger.Ping(ctx).Err() == nil {
		panic("a client without a certificate was let in")
	}
}

func resp3() {
	client := redis.NewClient(&redis.Options{Addr: address("PORT"), Protocol: 3})
	defer client.Close()
	check(client.Set(ctx, "go:3", "three", 0).Err())
	expect(client.Get(ctx, "go:3").Val(), "three")
	expect(client.Get(ctx, "go:missing").Err(), redis.Nil)
	reply, err := client.Do(ctx, "HELLO").Result()
	check(err)
	expect(reply.(map[any]any)["proto"], 3)
}

func unix() {
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: os.Getenv("UNIX_SOCKET"), Protocol: 2})
	defer client.Close()
	check(client.Set(ctx, "go:unix", 1, 0).Err())
	expect(client.Incr(ctx, "go:unix").Val(), 2)
}

func large() {
	client := redis.NewClient(&redis.Options{Addr: address("PORT"), Protocol: 2, ReadTimeout: 30 * time.Second,
		WriteTimeout: 30 * time.Second})
	defer client.Close()
	for _, size := range []int{16384, 32767, 32768, 1 << 20, 20 << 20} {
		value := bytes.Repeat([]byte("0123456789abcde"), size/15+1)[:size]
		check(client.Set(ctx, "go:large", value, 0).Err())
		got, err := client.Get(ctx, "go:large").Bytes()
		check(err)
		expect(bytes.Equal(got, value), true)
	}
	client.Del(ctx, "go:large")
}

func reconnect() {
	client := redis.NewClient(&redis.Options{Addr: address("PORT"), Protocol: 2, PoolSize: 1})
	other := plain()
	defer client.Close()
	defer other.Close()
	id := client.ClientID(ctx).Val()
	expect(other.ClientKillByFilter(ctx, "ID", fmt.Sprint(id)).Val(), 1)
	check(client.Ping(ctx).Err())
	if client.ClientID(ctx).Val() == id {
		panic("still the same connection")
	}
}

func errorReplies() {
	client := plain()
	defer client.Close()
	check(client.Set(ctx, "go:text", "text", 0).Err())
	expect(client.Incr(ctx, "go:text").Err(), "ERR value is not an integer or out of range")
	expect(client.Do(ctx, "NOSUCH", "a").Err(), "ERR unknown command 'NOSUCH', with args beginning with: 'a' ")
	expect(client.Do(ctx, "GET").Err(), "ERR wrong number of arguments for 'get' command")
}

func try(name string, scenario func()) {
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Printf("not ok %s: %s\n", name, strings.ReplaceAll(fmt.Sprint(problem), "\n", " "))
		} else {
			fmt.Println("ok " + name)
		}
	}()
	scenario()
}

func main() {
	try("connect", connect)
	try("pipeline", pipeline)
	try("multi", multi)
	try("watch", watch)
	try("tls", tlsMutual)
	try("resp3", resp3)
	try("unix", unix)
	try("large", large)
	try("reconnect", reconnect)
	try("errors", errorReplies)
}
