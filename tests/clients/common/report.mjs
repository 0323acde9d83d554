// What programs in JavaScript share: running scenarios one after the other and telling ../run how each went.

export async function waitFor(condition, what, seconds = 40) {
    const deadline = Date.now() + seconds * 1000;
    for (;;) {
        const got = await condition();
        if (got)
            return got;
        if (Date.now() > deadline)
            throw new Error(`not within ${seconds} s: ${what}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}

// Each ends within a minute; `after` closes what it has opened.
export async function run(scenarios, after) {
    for (const [name, scenario] of Object.entries(scenarios)) {
        let timer;
        try {
            await Promise.race([scenario(), new Promise((_, reject) => {
                timer = setTimeout(() => reject(new Error("no end within 60 s")), 60000);
            })]);
            console.log("ok " + name);
        } catch (problem) {
            console.log(`not ok ${name}: ${String(problem.stack).replaceAll("\n", " ")}`);
        }
        clearTimeout(timer);
        await after();
    }
    process.exit(0);
}
