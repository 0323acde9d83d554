// redlock and rate-limiter-flexible over ioredis: locks and limits that are Lua scripts; see ../run.
import assert from "node:assert/strict";
import Redis from "ioredis";
import limiters from "rate-limiter-flexible";
import Redlock from "redlock";
import { run } from "./report.mjs";

const open = [];

function client(db) {
    const made = new Redis({ port: Number(process.env.PORT), db });
    open.push(made);
    return made;
}

// Databases stand for servers that know nothing of each other.
function locks(options) {
    return new Redlock([client(5), client(6), client(7)], { retryCount: 1000, retryDelay: 2, retryJitter: 5,
        ...options });
}

const scenarios = {
    // What stands between lock and unlock is never run twice at once.
    async lock() {
        const redis = client(5);
        let inside = 0, most = 0;
        await redis.set("counter", 0);
        await Promise.all([...Array(10).keys()].map(async () => {
            const mine = locks();
            for (let turn = 0; turn < 10; turn++) {
                const held = await mine.lock(["lock:a", "lock:b"], 30000);
                most = Math.max(most, ++inside);
                const value = Number(await redis.get("counter"));
                await redis.set("counter", value + 1);
                inside--;
                await held.unlock();
            }
        }));
        assert.equal(most, 1);
        assert.equal(await redis.get("counter"), "100");
        assert.equal(await redis.exists("lock:a", "lock:b"), 0);
    },
    async expiry() {
        const impatient = locks({ retryCount: 0 }), patient = locks();
        const held = await impatient.lock("lock:c", 200);
        await assert.rejects(impatient.lock("lock:c", 200), /LockError/);
        const extended = await held.extend(300);
        const second = await patient.lock("lock:c", 30000);     // when the first has run out
        assert.ok(Date.now() >= extended.expiration - 100);
        await assert.rejects(extended.unlock(), /LockError/);
        await second.unlock();
    },
    async limits() {
        const storeClient = client(5);
        const limiter = new limiters.RateLimiterRedis({ storeClient, points: 10, duration: 600, keyPrefix: "limit" });
        const answers = await Promise.allSettled([...Array(25).keys()].map(() => limiter.consume("caller")));
        assert.equal(answers.filter(({ status }) => status === "fulfilled").length, 10);
        const refused = answers.filter(({ status }) => status === "rejected").map(({ reason }) => reason);
        assert.ok(refused.every(({ msBeforeNext, consumedPoints }) => msBeforeNext > 0 && consumedPoints > 10));
        assert.equal((await limiter.get("caller")).consumedPoints, 25);
        await limiter.reward("caller", 20);
        assert.equal((await limiter.consume("caller")).remainingPoints, 4);
        assert.equal(await limiter.delete("caller"), true);
        const short = new limiters.RateLimiterRedis({ storeClient, points: 1, duration: 1, blockDuration: 1,
            keyPrefix: "short" });
        await short.consume("caller");
        const { msBeforeNext } = await short.consume("caller").catch((reason) => reason);
        await new Promise((resolve) => setTimeout(resolve, msBeforeNext + 50));
        assert.equal((await short.consume("caller")).consumedPoints, 1);
    },
    // A command made of a script: EVALSHA first, EVAL when the server does not know it.
    async commands() {
        const redis = client(5), other = client(5);
        redis.defineCommand("takeMost", { numberOfKeys: 1, lua: `
            local left = tonumber(redis.call('GET', KEYS[1]) or '0')
            local taken = math.min(left, tonumber(ARGV[1]))
            redis.call('DECRBY', KEYS[1], taken)
            return {taken, left - taken}` });
        await redis.set("stock", 10);
        assert.deepEqual(await redis.takeMost("stock", 7), [7, 3]);
        await other.script("FLUSH");
        assert.deepEqual(await redis.takeMost("stock", 7), [3, 0]);
        await redis.set("stock", 4);
        const replies = await redis.pipeline().takeMost("stock", 1).takeMost("stock", 1).takeMost("stock", 9).exec();
        assert.deepEqual(replies, [[null, [1, 3]], [null, [1, 2]], [null, [2, 0]]]);
    },
};

run(scenarios, async () => {
    for (const redis of open.splice(0))
        redis.disconnect();
});
