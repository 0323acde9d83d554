// As failover_writer.py, by ioredis.
import Redis from "ioredis";

const [port, prefix, replicas] = process.argv.slice(2);
const now = () => Date.now() / 1000;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const client = new Redis({
    sentinels: [{ host: "127.0.0.1", port: Number(port) }], name: "group", maxRetriesPerRequest: 0,
    enableOfflineQueue: false, commandTimeout: 1500, connectTimeout: 500, retryStrategy: () => 50,
    sentinelRetryStrategy: () => 50, reconnectOnError: (problem) => problem.message.startsWith("READONLY"),
});
let ended = false;

client.on("error", () => {});
process.stdin.on("end", () => { ended = true; });
process.stdin.resume();
await new Promise((done) => client.once("ready", done));
for (let number = 1; !ended; number++) {
    try {
        const replies = await client.pipeline().set(prefix + number, number).call("WAIT", replicas, 500).exec();
        const problem = replies.find(([failed]) => failed);
        if (problem)
            throw problem[0];
        console.log("ack", number, replies[1][1], now());
    } catch (problem) {
        console.log("error", now(), problem.name, problem.message.slice(0, 80));
        await pause(20);
    }
    await pause(1);
}
process.exit(0);
