// Progress lines (seed 000 section 4) -> the tree of calls behind an answer. A line names the server and the tool, not who
// called: that is the agent that is at work and said last that it calls tools.

const LINE = /^([^/]+)\/(.+): (started|completed|failed)$/;
const STEP = /^([^/]+) step \d+ \((llm|tool)\)$/;

export class Calls {
  constructor(agent, began) {
    this.root = { label: agent, server: agent, agent: true, began, ended: null, failed: false, calls: [] };
    this.open = [];
    this.steps = new Map();
  }

  add(message, now) {
    const step = STEP.exec(message);
    if (step) {
      this.steps.delete(step[1]);
      this.steps.set(step[1], step[2]);
      return;
    }
    const line = LINE.exec(message);
    if (!line) return;
    const [, server, tool, event] = line;
    if (event === "started") {
      const agent = tool.startsWith(`${server}__`);
      const call = { label: agent ? server : `${server}/${tool}`, server, tool, agent, began: now, ended: null, failed: false, calls: [] };
      this.#caller().calls.push(call);
      this.open.push(call);
      return;
    }
    const index = this.open.findIndex((call) => call.server === server && call.tool === tool);
    if (index < 0) return;
    const [call] = this.open.splice(index, 1);
    call.ended = now;
    call.failed = event === "failed";
  }

  end(now, failed) {
    for (const call of [...this.open, this.root]) call.ended ??= now;
    this.root.failed = failed;
  }

  #caller() {
    const agents = new Map([this.root, ...this.open].filter((call) => call.agent).map((call) => [call.server, call]));
    const said = [...this.steps].reverse().find(([name, step]) => step === "tool" && agents.has(name));
    return said ? agents.get(said[0]) : [...agents.values()].at(-1);
  }
}
