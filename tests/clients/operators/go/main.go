// What operators and their tools ask, by go-redis or redigo (the argument), see ../../run.
package main

import (
	"fmt"
	"os"
	"strings"
)

// What both clients can be asked; every method panics where the reply is not what it should be.
type asked interface {
	config() map[string]string
	setUser(rules ...string)
	getUser()
	deleteUser()
	users() []string
	categories() []string
	role() (string, int64, int)
	wait(replicas, timeoutMs int) int64
	modules() int
	refusal(words ...string) string
	clients() string
	id() int64
	info(section ...string) string
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

func configOf(client asked) {
	options := client.config()
	expect(len(options) > 150, true)
	expect(options["maxmemory"], "0")
}

func aclOf(client asked) {
	text, err := os.ReadFile(os.Getenv("COMMAND_NAMES"))
	check(err)
	names := strings.Fields(string(text))
	all := []string{"reset", "on", "~a*"}
	for _, name := range names {
		client.setUser("reset", "+"+name, "-"+name)
		all = append(all, "+"+name)
	}
	client.setUser(all...)
	client.getUser()
	for _, category := range client.categories() {
		client.setUser("+@"+category, "-@"+category)
	}
	expect(len(client.users()), 2)
	client.deleteUser()
}

func roleOf(client asked) {
	name, _, replicas := client.role()
	expect(fmt.Sprint(name, replicas), fmt.Sprint("master", 0))
	expect(client.wait(0, 0)+client.wait(1, 10), 0)
}

func modulesOf(client asked) { expect(client.modules(), 0) }

func clusterOf(client asked) {
	for _, words := range [][]string{{"cluster", "info"}, {"readonly"}, {"readwrite"}} {
		expect(client.refusal(words...), "ERR This instance has cluster support disabled")
	}
}

func clientsOf(client asked) {
	expect(strings.Contains("\n"+client.clients(), fmt.Sprintf("\nid=%d ", client.id())), true)
}

func infoOf(client asked) {
	for _, sections := range [][]string{{}, {"everything"}, {"commandstats"}} {
		for _, line := range strings.Split(client.info(sections...), "\r\n") {
			if line != "" && line[0] != '#' && !strings.Contains(line, ":") {
				panic("a line of INFO: " + line)
			}
		}
	}
	expect(strings.Contains(client.info(), "\r\nredis_version:7."), true)
}

func main() {
	connect := map[string]func() asked{"go-redis": connectGoRedis, "redigo": connectRedigo}[os.Args[1]]
	scenarios := []struct {
		name string
		run  func(asked)
	}{{"config", configOf}, {"acl", aclOf}, {"role", roleOf}, {"modules", modulesOf}, {"cluster", clusterOf},
		{"clients", clientsOf}, {"info", infoOf}}
	for _, scenario := range scenarios {
		func() {
			defer func() {
				if problem := recover(); problem != nil {
					fmt.Printf("not ok %s: %v\n", scenario.name, problem)
				} else {
					fmt.Println("ok " + scenario.name)
				}
			}()
			scenario.run(connect())
		}()
	}
}
