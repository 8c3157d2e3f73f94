// The driver contract for JavaScript drivers: command line, output lines, records.

const LIMIT_MS = 20_000;
const CONCURRENCY = 6;

/** One scenario with one broker. */
export class Run {
  constructor(scenario, bootstrap, name) {
    this.scenario = scenario;
    this.bootstrap = bootstrap;
    /** The name of the topic and of the group. */
    this.name = name;
  }

  report(result, value) {
    this.#print({ result, value });
  }

  async carryOut(scenario) {
    if (scenario === undefined) {
      this.#print({ end: "unsupported", reason: "the client has no call for it" });
      return;
    }
    try {
      await scenario(this);
      this.#print({ end: "ok" });
    } catch (error) {
      console.error(error);
      this.#print({ end: "failed", reason: String(error) });
    }
  }

  #print(line) {
    console.log(JSON.stringify({ scenario: this.scenario, ...line }));
  }
}

/** Run BOOTSTRAP PREFIX SCENARIO... from the command line, several at a time: most of a scenario is waiting. */
export async function main(scenarios) {
  const [bootstrap, prefix, ...names] = process.argv.slice(2);
  const worker = async () => {
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      await new Run(name, bootstrap, `${prefix}-${name}`).carryOut(scenarios[name]);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  process.exit(0); // members of a failed scenario may still run
}

/** Call a function until it returns a truthy value; return the value. */
export async function waitUntil(what, call) {
  for (const limit = Date.now() + LIMIT_MS; Date.now() < limit; ) {
    const value = await call();
    if (value) {
      return value;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`timed out waiting for ${what}`);
}

export const sorted = (numbers) => [...numbers].sort((a, b) => a - b);

export const numbered = (count) =>
  Array.from({ length: count }, (_, n) => ({ key: String(n), value: `value ${n}` }));
