// BullMQ: queues of jobs that live in Lua scripts, streams of events and blocking reads; see ../run.
import assert from "node:assert/strict";
import { FlowProducer, Queue, QueueEvents, UnrecoverableError, Worker } from "bullmq";
import { run, waitFor } from "./report.mjs";

const connection = { host: "127.0.0.1", port: Number(process.env.PORT), db: 4, maxRetriesPerRequest: null };
const open = [];

function opened(one) {
    one.on("error", () => {});
    open.push(one);
    return one;
}

const queue = (name, options) => opened(new Queue(name, { connection, ...options }));
const worker = (name, fn, options) => opened(new Worker(name, fn, { connection, ...options }));
const flows = () => opened(new FlowProducer({ connection }));

async function events(name) {
    const made = opened(new QueueEvents(name, { connection }));
    await made.waitUntilReady();
    return made;
}

async function finished(job) {
    await waitFor(async () => ["completed", "failed"].includes(await job.getState()), "job " + job.id);
    return job.getState();
}

const scenarios = {
    // Two workers share what is there; every job is run once, and its result comes through the stream of events.
    async jobs() {
        const all = queue("jobs"), heard = await events("jobs"), seen = [];
        for (let number = 0; number < 2; number++)
            worker("jobs", async (job) => { seen.push(job.data.number); return job.data.number ** 2; },
                { concurrency: 5 });
        const added = await all.addBulk([...Array(100).keys()].map((number) => ({ name: "square", data: { number } })));
        const results = await Promise.all(added.map((job) => job.waitUntilFinished(heard, 40000)));
        assert.deepEqual(results, [...Array(100).keys()].map((number) => number ** 2));
        assert.deepEqual(seen.sort((one, two) => one - two), [...Array(100).keys()]);
        await waitFor(async () => await all.getCompletedCount() === 100, "all completed");
        const counts = await all.getJobCounts();
        assert.equal(counts.waiting + counts.active + counts.delayed + counts.failed, 0);
    },
    async delayed() {
        const all = queue("delayed"), order = [];
        await all.add("late", {}, { delay: 400 });
        await all.add("later", {}, { delay: 800 });
        await all.add("now", {});
        assert.equal(await all.getDelayedCount(), 2);
        worker("delayed", async (job) => { order.push([job.name, Date.now() - job.timestamp]); });
        await waitFor(() => order.length === 3, "three jobs");
        assert.deepEqual(order.map(([name]) => name), ["now", "late", "later"]);
        assert.ok(order[1][1] >= 395 && order[2][1] >= 795, "too early: " + order.join(" "));
    },
    async priorities() {
        const all = queue("priorities"), order = [];
        for (const priority of [5, 1, 9, 3, 1])
            await all.add("p", { priority }, { priority });
        worker("priorities", async (job) => { order.push(job.data.priority); });
        await waitFor(() => order.length === 5, "five jobs");
        assert.deepEqual(order, [1, 1, 3, 5, 9]);
    },
    async failures() {
        const all = queue("failures");
        let tries = 0;
        worker("failures", async (job) => {
            if (job.name === "never")
                throw new UnrecoverableError("on purpose");
            if (++tries < 3)
                throw new Error("not yet");
            return "done";
        });
        const again = await all.add("again", {}, { attempts: 5, backoff: { type: "exponential", delay: 20 } });
        assert.equal(await finished(again), "completed");
        assert.equal(tries, 3);
        const never = await all.add("never", {}, { attempts: 5 });
        assert.equal(await finished(never), "failed");
        const [failed] = await all.getFailed();
        assert.equal(failed.failedReason, "on purpose");
        assert.equal(failed.attemptsMade, 1);
    },
    // A job runs after those it depends on, with their results.
    async flow() {
        worker("parts", async (job) => job.data.number);
        worker("whole", async (job) => Object.values(await job.getChildrenValues()).reduce((sum, one) => sum + one, 0));
        const { job } = await flows().add({ name: "sum", queueName: "whole", children:
            [1, 2, 3, 4].map((number) => ({ name: "part", queueName: "parts", data: { number } })) });
        assert.equal(await finished(job), "completed");
        assert.equal((await queue("whole").getJob(job.id)).returnvalue, 10);
    },
    async limits() {
        const all = queue("limits"), times = [];
        worker("limits", async () => { times.push(Date.now()); }, { limiter: { max: 2, duration: 300 } });
        await all.addBulk([...Array(6).keys()].map(() => ({ name: "n", data: {} })));
        await waitFor(() => times.length === 6, "six jobs");
        assert.ok(times[5] - times[0] >= 300, "six jobs within " + (times[5] - times[0]) + " ms");
    },
    async repeated() {
        const all = queue("repeated");
        let runs = 0;
        await all.upsertJobScheduler("tick", { every: 100 }, { name: "tick" });
        worker("repeated", async () => { runs++; });
        await waitFor(() => runs >= 3, "three runs");
        assert.equal((await all.getJobSchedulers()).length, 1);
        assert.equal(await all.removeJobScheduler("tick"), true);
        assert.equal((await all.getJobSchedulers()).length, 0);
    },
    // A worker that is gone leaves its job; another takes it over when the lock has run out.
    async stalled() {
        const all = queue("stalled");
        const gone = worker("stalled", () => new Promise(() => {}), { skipLockRenewal: true, lockDuration: 300 });
        const job = await all.add("one", {});
        await waitFor(async () => await job.getState() === "active", "its begin");
        await gone.close(true);
        worker("stalled", async () => "taken over", { lockDuration: 300, stalledInterval: 100 });
        assert.equal(await finished(job), "completed");
        assert.equal((await all.getJob(job.id)).returnvalue, "taken over");
    },
    async pause() {
        const all = queue("pause"), seen = [];
        const busy = worker("pause", async (job) => { seen.push(job.name); });
        await busy.waitUntilReady();
        await all.pause();
        await all.add("held", {});
        assert.equal(await all.isPaused(), true);
        assert.equal((await all.getJobCounts("paused")).paused, 1);
        assert.deepEqual(seen, []);
        await all.resume();
        await waitFor(() => seen.length === 1, "the held job");
        await all.add("removed", {}, { delay: 100000 });
        await all.obliterate({ force: true });
        assert.equal(await all.count(), 0);
    },
    async telling() {
        const all = queue("telling"), heard = await events("telling"), progress = [];
        heard.on("progress", ({ data }) => progress.push(data));
        worker("telling", async (job) => {
            for (const percent of [25, 50, 100])
                await job.updateProgress(percent);
            await job.log("a line");
        });
        const job = await all.add("one", {}, { jobId: "only" });
        await all.add("one", {}, { jobId: "only" });    // the same again: no second job
        await job.waitUntilFinished(heard, 40000);
        await waitFor(() => progress.length === 3, "its progress");
        assert.deepEqual(progress, [25, 50, 100]);
        assert.deepEqual((await all.getJobLogs("only")).logs, ["a line"]);
        assert.equal(await all.getCompletedCount(), 1);
    },
};

run(scenarios, async () => {
    for (const one of open.splice(0).reverse())
        await one.close(true).catch(() => {});
});
