// The simulator of the page: controls, a worker that holds the WebAssembly module, and answers
// beside those of the first device as it is. The module is woken when a reader comes near it, and
// keeps to the latest question: one that takes long is given up for the next.
"use strict";

(() => {
  const form = document.getElementById("what-if-form");
  if (!form) return;
  const byId = (id) => document.getElementById(`what-if-${id}`);
  const given = JSON.parse(byId("given").textContent);
  const [device, rate, cache, field, factor, times] = [
    "device",
    "rate",
    "cache",
    "field",
    "factor",
    "times",
  ].map(byId);
  const MOST_REQUESTS = 5e6; // of one simulation, as the module has it
  const { format } = Scales;

  // Runs in the worker, from its text: it sees nothing of this page.
  function work() {
    let wasm = null;
    const put = (bytes) => {
      // May enlarge the memory, which takes the place of the array that was there.
      const at = wasm.reserve(bytes.length) >>> 0;
      new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
    };
    onmessage = ({ data }) => {
      try {
        if (data.module) {
          wasm = new WebAssembly.Instance(data.module).exports;
          put(data.load);
          if (wasm.load() < 0) throw new Error("the load of this page cannot be read");
          return;
        }
        const began = performance.now();
        put(new TextEncoder().encode(data));
        wasm.ask();
        const answer = new Uint8Array(wasm.memory.buffer, wasm.output() >>> 0, wasm.length() >>> 0);
        const found = JSON.parse(new TextDecoder().decode(answer));
        postMessage({ question: data, found, ms: performance.now() - began });
      } catch (error) {
        postMessage({ question: data, found: { error: String(error) }, ms: 0, broken: true });
      }
    };
  }

  // The module behind a worker. Answers are kept: the same question is asked once.
  class Module {
    constructor() {
      this.known = new Map();
      this.waiting = null; // {question, resolve}
      const url = (text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      this.script = url(`"use strict";(${work})()`);
      this.parts = Promise.all(["module", "load"].map(unpacked)).then(async ([module, load]) => ({
        module: await WebAssembly.compile(module),
        load,
      }));
    }

    async ask(asked) {
      const question = JSON.stringify(asked);
      if (this.known.has(question)) return this.known.get(question);
      const parts = await this.parts;
      if (this.waiting) this.stop();
      if (!this.worker) {
        this.worker = new Worker(this.script);
        this.worker.postMessage(parts);
        this.worker.onmessage = ({ data }) => this.take(data);
      }
      return new Promise((resolve) => {
        this.waiting = { question, resolve };
        this.worker.postMessage(question);
      });
    }

    take({ question, found, ms, broken }) {
      const { waiting } = this;
      // The load itself could not be read: whatever was asked has no answer.
      if (!waiting || (typeof question === "string" && question !== waiting.question)) return;
      this.waiting = null;
      if (broken) this.stop();
      const answer = { ...(Array.isArray(found) ? { list: found } : found), ms };
      if (!broken) this.known.set(waiting.question, answer);
      waiting.resolve(answer);
    }

    // What is being computed is given up; nobody is told.
    stop() {
      this.worker.terminate();
      this.worker = null;
      this.waiting = null;
    }
  }

  async function unpacked(part) {
    const bytes = Uint8Array.from(atob(byId(part).textContent), (c) => c.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(plain).arrayBuffer());
  }

  // -- controls -------------------------------------------------------------------------------

  const half = (input) => 2 ** (input.valueAsNumber / 2); // half a doubling a step
  const option = (parent, value, text) => parent.append(new Option(text, value));
  const short = (number) => Number(number.toPrecision(3)).toLocaleString("en");
  const own = (value) => given.devices.find(([name]) => `page:${name}` === value)?.[1] ?? value;

  function fillFixed() {
    const group = document.createElement("optgroup");
    group.label = "On this page";
    for (const [name] of given.devices) option(group, `page:${name}`, name);
    device.append(group);
    for (const count of [1, 2, 5, 10, 20, 50, 100])
      if (count * given.requests <= MOST_REQUESTS)
        option(times, count, count === 1 ? "once" : `${count} times in a row`);
  }

  async function fillShipped() {
    const shipped = (await module.ask({ ask: "devices" })).list ?? [];
    const group = document.createElement("optgroup");
    group.label = "Shipped profiles";
    for (const one of shipped) option(group, one.name, one.name);
    if (device.children.length < 2) device.append(group);
  }

  let fieldsOf = null; // the device whose fields are offered
  let values = new Map();
  async function fillFields() {
    if (fieldsOf === device.value) return;
    const wanted = device.value;
    const fields = (await module.ask({ ask: "fields", device: own(wanted) })).list ?? [];
    fieldsOf = wanted;
    const kept = field.value;
    values = new Map(fields.map((one) => [one.path, one.value]));
    field.replaceChildren();
    option(field, "", "none");
    for (const one of fields)
      if (one.path !== "write_cache.capacity_mb")
        option(field, one.path, one.path + (one.assumed ? " (assumed)" : ""));
    field.value = values.has(kept) ? kept : "";
  }

  // Counts stay whole.
  function changed() {
    const before = values.get(field.value);
    const now = before * half(factor);
    return Number.isInteger(before) && before > 0 ? Math.max(1, Math.round(now)) : now;
  }

  function cacheMb() {
    const step = cache.valueAsNumber;
    return step === -2 ? null : step === -1 ? 0 : 2 ** step;
  }

  function label() {
    const says = (input, text) => {
      input.nextElementSibling.textContent = text;
      input.setAttribute("aria-valuetext", text);
    };
    says(rate, `${short(half(rate))} times that of the trace`);
    const mb = cacheMb();
    says(cache, mb === null ? "as the device has it" : mb === 0 ? "none" : `${short(mb)} MB`);
    factor.disabled = field.value === "";
    says(factor, factor.disabled ? "as the profile has it" : short(changed()));
  }

  function question() {
    const asked = { ask: "simulate", device: own(device.value), seed: given.seed };
    asked.rate = half(rate);
    asked.times = Number(times.value);
    if (cacheMb() !== null) asked.cache_mb = cacheMb();
    if (field.value !== "" && factor.valueAsNumber !== 0)
      asked.fields = { [field.value]: changed() };
    return asked;
  }

  // -- answers --------------------------------------------------------------------------------

  const FIGURES = [
    ["mean", (one) => one.mean_ns],
    ["p50", (one) => one.p50_ns],
    ["p99", (one) => one.p99_ns],
    ["p99.9", (one) => one.p999_ns],
  ];

  function row(cells) {
    const tr = document.createElement("tr");
    cells.forEach((text, index) => {
      const td = document.createElement("td");
      td.className = index < 2 ? "left" : "right";
      td.textContent = text;
      tr.append(td);
    });
    byId("rows").append(tr);
  }

  function compare(name, figure, before, after, unit) {
    const text = (number) =>
      (number ?? null) === null ? "" : unit === null ? short(number) : format(number, unit);
    const ratio = before > 0 && (after ?? null) !== null ? short(after / before) : "";
    row([name, figure, text(before), text(after), ratio]);
  }

  let chart = null;
  function draw(before, after) {
    byId("rows").replaceChildren();
    byId("before").textContent = `${before.device} as it is`;
    for (const one of after.classes) {
      const other = before.classes.find((class_) => class_.name === one.name);
      for (const [figure, of] of FIGURES)
        compare(one.name, figure, other ? of(other) : null, of(one), "ns");
    }
    compare("all", "offered per second", before.offered_per_s, after.offered_per_s, null);
    compare("all", "completed per second", before.completed_per_s, after.completed_per_s, null);
    const [old, now] = [before, after].map((answer) => answer.write_amplification);
    if (old !== null || now !== null) compare("write", "amplification", old, now, null);
    byId("answer").hidden = false;
    const line = (name, colour, { distribution }) => ({
      name,
      colour,
      style: "step",
      xs: distribution.map((point) => point[0]),
      ys: distribution.map((point) => point[1]),
    });
    const axis = (label, unit, scale) => ({ label, unit, scale });
    byId("plot").replaceChildren();
    chart = new Charts.Chart(byId("plot"), {
      id: "what-if-plot",
      title: "Response times",
      x: axis("Response time", "ns", "log10"),
      y: axis("Share of the requests", "%", "linear"),
      lines: [line(`${before.device} as it is`, 0, before), line("what if", 1, after)],
      note: "",
    });
  }

  function say(before, after) {
    const p99 = (answer) => answer.classes[0].p99_ns;
    const parts = [
      `p99 ${format(p99(after), "ns")} on ${after.device}, ${format(p99(before), "ns")} on ` +
        `${before.device} as it is.`,
    ];
    if (after.overloaded)
      parts.push("The device cannot keep up: its times tell how long the trace is.");
    if (after.assumed) parts.push(`${after.assumed}.`);
    const count = after.requests.toLocaleString("en");
    parts.push(`${count} requests in ${format(after.ms * 1e6, "ns")}.`);
    byId("status").textContent = parts.join(" ");
  }

  let module = null;
  let turn = 0;
  async function update() {
    module ??= new Module();
    const mine = ++turn;
    const stale = () => mine !== turn;
    try {
      await fillShipped();
      if (stale()) return;
      await fillFields();
      if (stale()) return;
      label();
      const asked = question();
      byId("status").textContent = "Simulating.";
      const base = { ask: "simulate", device: given.devices[0][1], seed: given.seed };
      const before = await module.ask({ ...base, rate: 1, times: 1 });
      if (stale()) return;
      const after = before.error ? before : await module.ask(asked);
      if (stale()) return;
      if (after.error) {
        byId("answer").hidden = true;
        byId("status").textContent = after.error + (after.hint ? `; ${after.hint}` : "");
        return;
      }
      draw(before, after);
      say(before, after);
    } catch (error) {
      byId("status").textContent = `This browser cannot simulate here: ${error}`;
    }
  }

  let soon = 0;
  const later = () => {
    label();
    clearTimeout(soon);
    soon = setTimeout(update, 60);
  };
  fillFixed();
  option(field, "", "none");
  form.hidden = false;
  label();
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    if (event.target === device || event.target === field) factor.value = 0;
    later();
  });
  form.addEventListener("reset", () => setTimeout(later));
  const near = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    near.disconnect();
    update();
  });
  near.observe(form);
  new ResizeObserver(([{ contentRect }]) => {
    if (chart && contentRect.width > 0 && Math.abs(chart.width - contentRect.width) > 1)
      chart.draw(contentRect.width);
  }).observe(byId("plot"));
})();
