// What operators and their tools ask, by Jedis, in both protocols: see ../../run.

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.exceptions.JedisDataException;

class Operators {
    interface Scenario {
        void run(Jedis client) throws Exception;
    }

    static void expect(Object got, Object wanted) {
        if (!got.equals(wanted))
            throw new IllegalStateException(got + " instead of " + wanted);
    }

    static void config(Jedis client) {
        Map<String, String> options = client.configGet("*");
        expect(options.size() > 150, true);
        expect(options.get("maxmemory"), "0");
    }

    static void acl(Jedis client) throws Exception {
        String[] names = Files.readString(Path.of(System.getenv("COMMAND_NAMES"))).trim().split("\\s+");
        for (String name : names)
            expect(client.aclSetUser("rules", "reset", "+" + name, "-" + name), "OK");
        client.aclSetUser("rules", "reset", "on", "~a*");
        for (String name : names)
            client.aclSetUser("rules", "+" + name);
        expect(client.aclGetUser("rules").getFlags().contains("on"), true);
        for (String category : client.aclCat()) {
            client.aclSetUser("rules", "+@" + category, "-@" + category);
            client.aclCat(category);
        }
        expect(client.aclUsers().size(), 2);
        expect(client.aclList().size(), 2);
        expect(client.aclDelUser("rules"), 1L);
    }

    static void role(Jedis client) {
        List<Object> role = client.role();
        expect(role.get(0), "master");
        expect(((List<?>) role.get(2)).size(), 0);
        expect(client.waitReplicas(0, 0) + client.waitReplicas(1, 10), 0L);
    }

    static void modules(Jedis client) {
        expect(client.moduleList().size(), 0);
    }

    static void cluster(Jedis client) {
        List<Runnable> calls = List.of(client::clusterInfo, client::readonly, client::readwrite);
        for (Runnable call : calls) {
            try {
                call.run();
            } catch (JedisDataException refusal) {
                expect(refusal.getMessage(), "ERR This instance has cluster support disabled");
                continue;
            }
            throw new IllegalStateException("it is not refused");
        }
    }

    static void clients(Jedis client) {
        expect(client.clientList().contains("id=" + client.clientId() + " "), true);
    }

    static void info(Jedis client) {
        expect(client.info().contains("\r\nredis_version:7."), true);
        for (String line : client.info("everything").split("\r\n"))
            expect(line.isEmpty() || line.startsWith("#") || line.contains(":"), true);
    }

    public static void main(String[] arguments) {
        Map<String, Scenario> scenarios = new LinkedHashMap<>();
        scenarios.put("config", Operators::config);
        scenarios.put("acl", Operators::acl);
        scenarios.put("role", Operators::role);
        scenarios.put("modules", Operators::modules);
        scenarios.put("cluster", Operators::cluster);
        scenarios.put("clients", Operators::clients);
        scenarios.put("info", Operators::info);
        HostAndPort address = new HostAndPort("127.0.0.1", Integer.parseInt(System.getenv("PORT")));
        scenarios.forEach((name, scenario) -> {
            try {
                for (RedisProtocol protocol : RedisProtocol.values()) {
                    var options = DefaultJedisClientConfig.builder().protocol(protocol).build();
                    try (Jedis client = new Jedis(address, options)) {
                        scenario.run(client);
                    }
                }
                System.out.println("ok " + name);
            } catch (Exception problem) {
                System.out.println("not ok " + name + ": " + problem);
            }
        });
    }
}
