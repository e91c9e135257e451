// The calls of a gateway in the console: what is under way, what was refused, what waits for the viewer's word. The
// arguments are shown as the text that the gateway wrote: what a browser reads as a number may be another one.

const FIRST = 1_000;
const LONGEST = 30_000;
const SILENCE = 30_000; // the gateway writes every few seconds: a connection that says nothing for longer was lost without a word
const CLOSED = 20;
const $ = (id) => document.getElementById(id);

async function* events(response, heard) {
  let rest = "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const fields = Object.fromEntries(part.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      if (fields.event) yield [fields.event, JSON.parse(fields.data)];
    }
  }
}

export class Watch {
  // `headers` has the token, `refused` asks for another one, `element` makes a node, `waiting` hears how much waits.
  constructor(path, { headers, refused, element, waiting }) {
    Object.assign(this, { path, headers, refused, element, waiting });
    this.cards = new Map();
    this.stop = null;
    this.pause = FIRST;
    this.clock = setInterval(() => this.tick(), 1_000);
  }

  async open() {
    if (this.stop) return;
    const stop = (this.stop = new AbortController());
    while (this.stop === stop) {
      const lost = new AbortController();
      let silence = 0;
      const heard = () => {
        clearTimeout(silence);
        silence = setTimeout(() => lost.abort(new Error("nothing was heard")), SILENCE);
      };
      try {
        heard();
        const response = await fetch(this.path, { headers: this.headers({}), signal: AbortSignal.any([stop.signal, lost.signal]) });
        if (response.status === 401 || response.status === 403) {
          this.stop = null;
          return this.refused(response.status);
        }
        if (!response.ok) throw new Error(`HTTP ${response.status}`);
        this.say("");
        for await (const [kind, data] of events(response, heard)) {
          this.pause = FIRST;
          if (kind === "calls") this.calls(data);
          else this.confirmations(data);
        }
      } catch (error) {
        if (this.stop !== stop) return;
        this.say(`What follows may be old: ${error.message}. Asked again in ${this.pause / 1_000} s.`);
      } finally {
        clearTimeout(silence);
      }
      await new Promise((resolve) => setTimeout(resolve, this.pause));
      this.pause = Math.min(2 * this.pause, LONGEST);
    }
  }

  close() {
    const stop = this.stop;
    this.stop = null;
    stop?.abort();
  }

  say(text) {
    $("watch-state").textContent = text;
    $("watch-state").hidden = !text;
  }

  row(entry, ...more) {
    const who = [entry.principal || "anybody", entry.tenant && `(${entry.tenant})`].filter(Boolean).join(" ");
    const what = [entry.agent || "no agent", entry.method === "tools/call" ? "" : entry.method, entry.name].filter(Boolean).join(" ");
    return this.element("li", {}, this.element("b", { textContent: what }), ` for ${who} `, ...more);
  }

  calls({ under_way, calls, refused, confirmed }) {
    const now = performance.now();
    const began = calls.map((call) => {
      const time = this.element("span", { className: "quiet" });
      time.dataset.began = String(now - 1_000 * call.seconds);
      return this.row(call, time);
    });
    $("under-way").replaceChildren(...began);
    $("under-way-count").textContent = under_way > calls.length ? `${under_way}, the first ${calls.length}` : String(under_way);
    const at = (entry) => this.element("span", { className: "quiet", textContent: new Date(entry.time).toLocaleTimeString() });
    const word = (text) => this.element("span", { className: "word", textContent: text });
    $("refused").replaceChildren(...refused.map((entry) => this.row(entry, word(entry.reason), " ", at(entry))));
    const fate = { approved: "approved, not called yet", refused: "refused", consumed: "approved and called" };
    const by = (entry) => (entry.by ? ` by ${entry.by}` : "");
    $("confirmed").replaceChildren(...confirmed.map((entry) => this.row(entry, word(`${fate[entry.state]}${by(entry)}`), " ", at(entry))));
    for (const [list, none] of [["under-way", "no-call"], ["refused", "no-refusal"], ["confirmed", "no-confirmation"]]) $(none).hidden = $(list).childElementCount > 0;
    this.tick();
  }

  confirmations({ may, entries, problem }) {
    $("waiting").hidden = !may;
    if (problem) this.say(`What waits cannot be shown: ${problem}.`);
    const there = new Set(entries.map((entry) => entry.id));
    for (const card of this.cards.values()) {
      if (card.open && !there.has(card.id) && !problem) this.settle(card, "decided elsewhere, or expired");
    }
    for (const entry of entries) if (!this.cards.has(entry.id)) this.add(entry);
    this.count();
    this.tick();
  }

  add(entry) {
    const { element } = this;
    const what = `${entry.tool} of ${entry.agent}`;
    const text = element("pre", { textContent: entry.text ?? "", tabIndex: 0, ariaLabel: `Arguments of ${what}` });
    text.setAttribute("role", "group");
    const left = element("span");
    const approve = element("button", { type: "button", className: "approve", textContent: "Approve", ariaLabel: `Approve ${what}` });
    const refuse = element("button", { type: "button", className: "refuse", textContent: "Refuse", ariaLabel: `Refuse ${what}` });
    const outcome = element("p", { className: "outcome" });
    outcome.setAttribute("role", "status");
    const row = element("div", { className: "row" }, approve, refuse);
    const by = `asked by ${entry.caller}${entry.tenant ? `, tenant ${entry.tenant}` : ""}`;
    const node = element("li", { className: "card", tabIndex: -1 }, element("h4", { textContent: what }), element("p", { className: "quiet" }, by, left), text, row, outcome);
    const card = { id: entry.id, open: true, node, row, outcome, left, ends: performance.now() + 1_000 * entry.expires_in };
    if (entry.text === undefined) {
      // nobody approves what nobody has been shown
      approve.disabled = true;
      text.hidden = true;
      const show = element("button", { type: "button", textContent: `Show all ${entry.characters} characters` });
      show.addEventListener("click", () => this.show(card, text, show, approve));
      row.prepend(show);
    }
    approve.addEventListener("click", () => this.decide(card, "approve"));
    refuse.addEventListener("click", () => this.decide(card, "refuse"));
    this.cards.set(entry.id, card);
    $("waiting-list").append(node);
  }

  async show(card, text, show, approve) {
    try {
      const response = await fetch(`/confirmations/${card.id}`, { headers: this.headers({}) });
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      text.textContent = await response.text();
    } catch (error) {
      card.outcome.textContent = `It cannot be shown: ${error.message}`;
      return;
    }
    text.hidden = false;
    show.remove();
    approve.disabled = false;
    text.focus();
  }

  async decide(card, decision) {
    for (const button of card.row.children) button.disabled = true;
    try {
      const response = await fetch(`/confirmations/${card.id}`, {
        method: "POST",
        headers: this.headers({ "Content-Type": "application/json" }),
        body: JSON.stringify({ decision }),
      });
      if (response.status === 401 || response.status === 403) throw new Error("this token is not taken any more");
      if (response.status !== 200 && response.status !== 404) throw new Error((await response.json()).error.message);
      const known = { approve: "approved: the caller may send it now, once", refuse: "refused" };
      const mine = card.node.contains(document.activeElement) || document.activeElement === document.body;
      this.settle(card, response.ok ? known[decision] : "decided elsewhere, or expired");
      if (mine) this.next(card);
    } catch (error) {
      for (const button of card.row.children) button.disabled = false;
      card.outcome.textContent = `Not decided: ${error.message}`;
    }
    this.count();
  }

  // The next one that waits, and not its button: who presses the key twice has decided once.
  next(card) {
    const open = [...this.cards.values()].filter((other) => other.open);
    const after = open.find((other) => card.node.compareDocumentPosition(other.node) & Node.DOCUMENT_POSITION_FOLLOWING);
    (after ?? open[0])?.node.focus();
    if (!open.length) $("waiting-title").focus();
  }

  // It stays where it is: nothing may move under the pointer of somebody who decides.
  settle(card, text) {
    card.open = false;
    card.row.hidden = true;
    card.node.classList.add("settled");
    card.outcome.textContent = text;
    card.left.textContent = "";
  }

  count() {
    const cards = [...this.cards.values()];
    const closed = cards.filter((card) => !card.open);
    if (!$("waiting-list").matches(":hover, :focus-within")) {
      for (const card of closed.slice(0, -CLOSED)) {
        card.node.remove();
        this.cards.delete(card.id);
      }
    }
    const open = cards.length - closed.length;
    $("waiting-count").textContent = open ? String(open) : "";
    $("no-question").hidden = cards.length > 0;
    this.waiting(open);
  }

  tick() {
    if ($("watch").hidden) return;
    const now = performance.now();
    for (const node of $("under-way").querySelectorAll("[data-began]")) node.textContent = `${Math.round((now - Number(node.dataset.began)) / 1_000)} s`;
    for (const card of this.cards.values()) {
      if (!card.open) continue;
      const seconds = Math.max(0, Math.round((card.ends - now) / 1_000));
      card.left.textContent = `, ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} left`;
    }
  }
}
