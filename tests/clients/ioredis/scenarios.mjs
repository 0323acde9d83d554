// ioredis: one function a scenario, see ../run.
import assert from "node:assert/strict";
import fs from "node:fs";
import Redis from "ioredis";

const port = Number(process.env.PORT);
const certs = process.env.CERTS;
const open = [];

function client(options) {
    const made = new Redis({ port, maxRetriesPerRequest: 2, ...options });
    made.on("error", () => {});
    open.push(made);
    return made;
}

function tlsOptions(withCertificate) {
    const tls = { ca: fs.readFileSync(certs + "/ca.crt"), servername: "localhost" };
    if (withCertificate) {
        tls.cert = fs.readFileSync(certs + "/client.crt");
        tls.key = fs.readFileSync(certs + "/client.key");
    }
    return { port: Number(process.env.TLS_PORT), tls };
}

const scenarios = {
    async connect() {
        const redis = client({ db: 2, connectionName: "scenario" });
        assert.equal(await redis.ping(), "PONG");
        assert.equal(await redis.set("js:connect", Buffer.from([0, 255, 13, 10])), "OK");
        assert.deepEqual(await redis.getBuffer("js:connect"), Buffer.from([0, 255, 13, 10]));
        assert.equal(await redis.client("GETNAME"), "scenario");
        assert.equal(await client().get("js:connect"), null);
    },
    async pipeline() {
        const redis = client();
        const pipeline = redis.pipeline();
        for (let number = 0; number < 1000; number++)
            pipeline.set("js:" + number, number).incr("js:" + number).get("js:" + number);
        const replies = await pipeline.exec();
        for (let number = 0; number < 1000; number++)
            assert.deepEqual(replies[3 * number + 2], [null, String(number + 1)]);
        const automatic = client({ enableAutoPipelining: true });
        const values = await Promise.all([...Array(500).keys()].map((number) => automatic.get("js:" + number)));
        assert.deepEqual(values, [...Array(500).keys()].map((number) => String(number + 1)));
    },
    async multi() {
        const redis = client();
        await redis.del("js:n");
        assert.deepEqual(await redis.multi().incr("js:n").incrby("js:n", 10).get("js:n").exec(),
            [[null, 1], [null, 11], [null, "11"]]);
        await assert.rejects(redis.multi().set("js:n").exec(), /EXECABORT/);
    },
    async watch() {
        const redis = client(), other = client();
        await redis.watch("js:w");
        await other.set("js:w", 2);
        assert.equal(await redis.multi().set("js:w", 3).exec(), null);
        await redis.watch("js:w");
        assert.deepEqual(await redis.multi().set("js:w", 4).exec(), [[null, "OK"]]);
        assert.equal(await redis.get("js:w"), "4");
    },
    async tls() {
        const redis = client(tlsOptions(true));
        assert.equal(await redis.set("js:tls", "x".repeat(100000)), "OK");
        assert.equal(await redis.get("js:tls"), "x".repeat(100000));
        await assert.rejects(client({ ...tlsOptions(false), maxRetriesPerRequest: 0, retryStrategy: null }).ping());
    },
    async unix() {
        const redis = client({ path: process.env.UNIX_SOCKET });
        assert.equal(await redis.set("js:unix", 1), "OK");
        assert.equal(await redis.incr("js:unix"), 2);
    },
    async large() {
        const redis = client();
        for (const size of [16384, 32767, 32768, 1 << 20, 20 << 20]) {
            const value = Buffer.alloc(size, "0123456789abcde");
            assert.equal(await redis.set("js:large", value), "OK");
            assert.ok(value.equals(await redis.getBuffer("js:large")), size + " bytes came back differently");
        }
        await redis.del("js:large");
    },
    async reconnect() {
        const redis = client(), other = client();
        const number = await redis.client("ID");
        const again = new Promise((resolve) => redis.once("reconnecting", resolve));
        assert.equal(await other.client("KILL", "ID", number), 1);
        await again;
        assert.equal(await redis.ping(), "PONG");
        assert.notEqual(await redis.client("ID"), number);
    },
    async errors() {
        const redis = client();
        await redis.set("js:text", "text");
        await assert.rejects(redis.incr("js:text"), /^ReplyError: ERR value is not an integer or out of range$/);
        await assert.rejects(redis.call("NOSUCH", "a"), /unknown command 'NOSUCH', with args beginning with: 'a' /);
        await assert.rejects(redis.call("GET"), /ERR wrong number of arguments for 'get' command/);
        const replies = await redis.pipeline().set("js:text", "x").incr("js:text").get("js:text").exec();
        assert.equal(replies[0][1], "OK");
        assert.match(replies[1][0].message, /^ERR/);
        assert.equal(replies[2][1], "x");
    },
};

for (const [name, scenario] of Object.entries(scenarios)) {
    try {
        let timer;
        await Promise.race([scenario(), new Promise((_, reject) => {
            timer = setTimeout(() => reject(new Error("no end within 30 s")), 30000);
        })]);
        clearTimeout(timer);
        console.log("ok " + name);
    } catch (problem) {
        console.log(`not ok ${name}: ${String(problem.message).replaceAll("\n", " ")}`);
    }
    for (const redis of open.splice(0))
        redis.disconnect();
}
process.exit(0);
