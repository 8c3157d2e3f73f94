// What a driver written in JavaScript needs of the contract: its command line, the lines that it prints, and records.

const LIMIT_MS = 20_000;
const AT_ONCE = 6;

/** One scenario with one broker. */
export class Run {
  constructor(scenario, bootstrap, name) {
    this.scenario = scenario;
    this.bootstrap = bootstrap;
    /** Of its topic and of its group. */
    this.name = name;
  }

  tell(fact, value) {
    this.#print({ fact, value });
  }

  async carryOut(scenario) {
    if (scenario === undefined) {
      this.#print({ end: "unsupported", why: "no call for it" });
      return;
    }
    try {
      await scenario(this);
      this.#print({ end: "ok" });
    } catch (error) {
      console.error(error);
      this.#print({ end: "failed", why: String(error) });
    }
  }

  #print(line) {
    console.log(JSON.stringify({ scenario: this.scenario, ...line }));
  }
}

/** Run BOOTSTRAP PREFIX SCENARIO... from the command line, a few at a time: most of a scenario is waiting. */
export async function main(scenarios) {
  const [bootstrap, prefix, ...names] = process.argv.slice(2);
  const worker = async () => {
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      await new Run(name, bootstrap, `${prefix}-${name}`).carryOut(scenarios[name]);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  process.exit(0); // members of a scenario that failed may still be there
}

/** Ask until the answer is something; return it. */
export async function until(what, ask) {
  for (const limit = Date.now() + LIMIT_MS; Date.now() < limit; ) {
    const answer = await ask();
    if (answer) {
      return answer;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`timed out waiting for ${what}`);
}

export const sorted = (numbers) => [...numbers].sort((a, b) => a - b);

export const numbered = (count) =>
  Array.from({ length: count }, (_, n) => ({ key: String(n), value: `value ${n}` }));
