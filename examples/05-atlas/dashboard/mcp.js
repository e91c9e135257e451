// An MCP client of 2026-07-28: one POST for each question, the token in memory alone.
const VERSION = "2026-07-28";
const PREFIX = "io.modelcontextprotocol/";

export class Refused extends Error {
  constructor(status) {
    super(status === 401 ? "a token is asked for" : "this token is not taken");
    this.status = status;
  }
}

export class Failed extends Error {
  constructor(message, reason = "") {
    super(message);
    this.reason = reason;
  }
}

export class Gateway {
  #token = "";
  #serial = 0;

  set token(token) {
    this.#token = token;
  }

  get known() {
    return Boolean(this.#token);
  }

  async json(path, body) {
    return JSON.parse(await this.text(path, body));
  }

  async text(path, body) {
    const response = await this.#fetch(path, {
      method: body ? "POST" : "GET",
      headers: body ? { "Content-Type": "application/json" } : {},
      body: body && JSON.stringify(body),
    });
    if (response.ok) return response.text();
    const { error } = await response.json().catch(() => ({}));
    throw new Failed(error?.message ?? `HTTP ${response.status}`, error?.reason);
  }

  // The result of a tool; one that the tool calls an error is thrown.
  async tool(path, name, args, { signal, progress } = {}) {
    const id = ++this.#serial;
    const _meta = {
      [`${PREFIX}protocolVersion`]: VERSION,
      [`${PREFIX}clientCapabilities`]: {},
      [`${PREFIX}clientInfo`]: { name: "atlas-dashboard", version: "1" },
      ...(progress ? { progressToken: id } : {}),
    };
    const response = await this.#fetch(path, {
      method: "POST",
      signal,
      headers: {
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args, _meta } }),
    });
    for await (const message of messages(response)) {
      if (message.method === "notifications/progress") progress?.(message.params);
      else if (message.error) throw new Failed(message.error.message, message.error.data?.reason);
      else if (message.result) return checked(message.result);
    }
    throw new Failed(`the answer ended before it was whole (HTTP ${response.status})`);
  }

  async #fetch(path, options) {
    const headers = { ...options.headers, ...(this.#token ? { Authorization: `Bearer ${this.#token}` } : {}) };
    const response = await fetch(path, { ...options, headers, cache: "no-store", redirect: "error" });
    if (response.status === 401 || response.status === 403) throw new Refused(response.status);
    return response;
  }
}

function checked(result) {
  const text = (result.content ?? []).filter((block) => block.type === "text").map((block) => block.text).join("\n");
  if (result.isError) throw new Failed(text || "the tool failed");
  return { text, data: result.structuredContent ?? {} };
}

async function* messages(response) {
  if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    yield await response.json().catch(() => {
      throw new Failed(`HTTP ${response.status}`);
    });
    return;
  }
  let rest = "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
      if (data.length) yield JSON.parse(data.join("\n"));
    }
  }
}
