// The page of a directory of runs: a table that is filtered here, two runs compared by the server,
// the event stream of a run drawn as it grows, studies started and stopped. Asks only its own
// server, and asks for the table and the stream again each second while something runs.
"use strict";

const $ = (id) => document.getElementById(id);
const EVERY_MS = 1000;
const REST_MS = 5000;

/** An element with text and attributes; all text goes through textContent. */
function make(tag, { text, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

async function ask(path, changes = false) {
  const answer = await fetch(path, { method: changes ? "POST" : "GET", cache: "no-store" });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `${path}: ${answer.status}`);
  return answer;
}

/** Shows what went wrong, or that nothing does any more. */
async function tried(work) {
  try {
    await work();
    $("error").textContent = "";
  } catch (error) {
    $("error").textContent = `error: ${error.message}`;
  }
}

const grouped = (value) => Math.round(value).toLocaleString("en-US");

/** A time with three digits. */
function time(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]]) {
    if (ns >= size) return `${Number((ns / size).toPrecision(3))} ${unit}`;
  }
  return `${ns} ns`;
}

// --- the table ---------------------------------------------------------------------------------

const chosen = new Set();
let table = { runs: [], studies: [], jobs: [] };

function rowOf(run) {
  const name = make("button", { text: run.name, class: "name", type: "button" });
  name.title = run.title;
  name.addEventListener("click", () => watch(run.name));
  const box = make("input", { type: "checkbox", "aria-label": `Compare ${run.name}` });
  box.checked = chosen.has(run.name);
  box.addEventListener("change", () => {
    if (box.checked) chosen.add(run.name);
    else chosen.delete(run.name);
    offerCompare();
  });
  const begun = new Date(run.began_s * 1000).toISOString().slice(0, 16).replace("T", " ");
  const open = make("td", { "data-head": "Open" });
  const files = run.page ? [["report", "report.html"], ["result", "result.json"]] : [];
  for (const [what, file] of [...files, ["study", "study.toml"]]) {
    const href = `/run/${encodeURIComponent(run.name)}/${file}`;
    open.append(make("a", { text: what, href }), " ");
  }
  const cell = (head, text, kind = "") => make("td", { "data-head": head, text, class: kind });
  return make(
    "tr", {},
    make("td", {}, box),
    make("td", {}, name, make("div", { text: run.title, class: "soft" })),
    cell("State", run.state, run.state),
    cell("Load", `${run.load}, ${run.terminals} terminals`),
    cell("Transactions/min", run.per_min === null ? "n/a" : grouped(run.per_min), "n"),
    cell("p99", run.p99_ms === null ? "n/a" : time(run.p99_ms * 1e6), "n"),
    cell("Devices", String(run.devices), "n"),
    cell("Warnings", String(run.warnings), "n"),
    cell("Begun", begun),
    open,
  );
}

function matches(run, words) {
  const text = `${run.name} ${run.title} ${run.load} ${run.state}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

function showTable() {
  const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = table.runs.filter((run) => matches(run, words));
  // A row that has the focus keeps it: rows are made anew.
  const focused = document.activeElement?.closest("tr")?.dataset.run;
  const which = document.activeElement?.type;
  $("rows").replaceChildren(...found.map((run) => {
    const row = rowOf(run);
    row.dataset.run = run.name;
    return row;
  }));
  if (focused) {
    const row = [...$("rows").children].find((one) => one.dataset.run === focused);
    row?.querySelector(which === "checkbox" ? "input" : "button")?.focus();
  }
  $("count").textContent = `${found.length} of ${table.runs.length}`;
  $("none").hidden = found.length > 0;
  $("none").textContent = table.runs.length
    ? "No run has all of these words."
    : "There is no run yet. Start a study above, or run 'wearmark study run' in a terminal.";
  offerCompare();
}

function offerCompare() {
  const known = table.runs.map((run) => run.name);
  for (const name of chosen) if (!known.includes(name)) chosen.delete(name);
  $("compare").disabled = chosen.size !== 2;
}

async function compareTwo() {
  // The older one is the old one: the table has the newest first.
  const names = table.runs.map((run) => run.name).filter((name) => chosen.has(name));
  const [after, before] = names;
  const query = new URLSearchParams({ old: before, new: after });
  const found = await (await ask(`/api/compare?${query}`)).json();
  $("compared").hidden = false;
  $("compared-title").textContent = `${before} and ${after}`;
  $("verdict").textContent = found.headline;
  const [names_, ...rows] = found.rows;
  const head = names_.map((text) => make("th", { text, scope: "col" }));
  $("figure-names").replaceChildren(make("tr", {}, ...head));
  $("figures").replaceChildren(...rows.map((row, at) => {
    const verdict = found.verdicts[at];
    const kind = { regressed: "worse", better: "better" }[verdict] ?? "";
    return make("tr", { class: kind }, ...row.map((text, column) =>
      make("td", { text, "data-head": names_[column] })));
  }));
  $("compared").scrollIntoView({ block: "nearest" });
}

// --- what was started --------------------------------------------------------------------------

function showStudies() {
  const now = $("study").value;
  const names = table.studies.map((study) => study.name).join("\n");
  if ($("study").dataset.names === names) return;
  $("study").dataset.names = names;
  $("study").replaceChildren(...table.studies.map((study) =>
    make("option", { value: study.name, text: `${study.name}: ${study.title}` })));
  if (table.studies.some((study) => study.name === now)) $("study").value = now;
}

function showJobs() {
  $("jobs").replaceChildren(...table.jobs.map((job) => {
    if (job.ended === null) {
      const stop = make("button", { text: `Stop ${job.study}`, type: "button" });
      stop.addEventListener("click", () =>
        tried(() => ask(`/api/stop?${new URLSearchParams({ id: job.id })}`, true)));
      return make("li", { text: `${job.study} runs (process ${job.id}). ` }, stop);
    }
    const how = { 0: "is complete", 130: "was stopped; starting it again goes on" }[job.ended] ??
      `ended with code ${job.ended}`;
    const said = job.ended === 0 || job.ended === 130 ? "" : ` ${job.said}`;
    return make("li", { text: `${job.study} ${how}.${said}` });
  }));
}

// --- a run as it goes on -----------------------------------------------------------------------

let watched = null;

/** What the events of a run add up to. */
function begin(name) {
  return { name, from: 0, stage: "", done: 0, doing: "", eta: null, told: [],
    series: new Map(), heat: [], base: 0, last: 0 };
}

/** Seconds of work on the run: a process that goes on with it counts from its own beginning. */
function since(state, at) {
  state.base = Math.max(state.base, state.last - at);
  state.last = state.base + at;
  return state.last;
}

function put(state, chart, line, at, value) {
  if (!state.series.has(chart)) state.series.set(chart, new Map());
  const lines = state.series.get(chart);
  if (!lines.has(line)) lines.set(line, []);
  lines.get(line).push([at, value]);
}

/** The value below which a share of what is in buckets lies. */
function quantile(buckets, share) {
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  let seen = 0;
  for (const [lower, count] of buckets) {
    seen += count;
    if (seen >= share * total) return lower;
  }
  return null;
}

function take(state, event) {
  if (event.event === "progress") {
    Object.assign(state, { stage: event.stage, done: event.done, doing: event.doing,
      eta: event.eta_s });
  } else if (event.event === "sample") {
    const at = since(state, event.run_s);
    put(state, `${event.stage}: ${event.series.replaceAll("_", " ")}`, "", at, event.value);
  } else if (event.event === "completions") {
    const [all, at] = [new Map(), since(state, event.run_s)];
    for (const { class: kind, requests, buckets } of event.classes) {
      put(state, "completions per second", kind, at, requests / event.span_s);
      put(state, "p99, ms", kind, at, (quantile(buckets, 0.99) ?? 0) / 1e6);
      for (const [lower, count] of buckets) all.set(lower, (all.get(lower) ?? 0) + count);
    }
    put(state, "in flight", "", at, event.in_flight);
    state.heat.push([at, [...all]]);
  } else if (event.event === "warning") {
    const text = event.hint ? `${event.message}; ${event.hint}` : event.message;
    if (!state.told.includes(text)) state.told.push(text);
  } else if (event.event === "done") {
    Object.assign(state, { stage: event.stage, done: 1, eta: null,
      doing: `${event.ending} after ${event.elapsed_s.toFixed(1)} s` });
  }
}

const SVG = "http://www.w3.org/2000/svg";

/** Lines over time, from zero, with the last value of each in the caption. */
function lineChart(title, lines) {
  const points = [...lines.values()].flat();
  const [from, to] = [Math.min(...points.map((p) => p[0])), Math.max(...points.map((p) => p[0]))];
  const most = Math.max(...points.map((p) => p[1]), 1e-9);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 400 140");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", title);
  const said = make("figcaption", { text: `${title}: ` });
  [...lines].forEach(([name, list], at) => {
    const line = document.createElementNS(SVG, "polyline");
    const place = ([x, y]) =>
      `${(((x - from) / Math.max(to - from, 1e-9)) * 396 + 2).toFixed(1)},` +
      `${(136 - (y / most) * 130).toFixed(1)}`;
    line.setAttribute("points", list.map(place).join(" "));
    line.setAttribute("fill", "none");
    line.setAttribute("stroke", `var(--look-${at % 5})`);
    line.setAttribute("stroke-width", "2");
    line.setAttribute("vector-effect", "non-scaling-stroke");
    svg.append(line);
    // The colour of a name is that of its line.
    const text = `${name} ${Number(list.at(-1)[1].toPrecision(4))}`.trim();
    said.append(make("span", { text, style: `color: var(--look-${at % 5})` }), ", ");
  });
  said.append(`up to ${Number(most.toPrecision(4))}`);
  return make("figure", {}, svg, said);
}

/** Response times over time: a column per interval, a row per bucket, darker where more ended. */
function heatMap(heat) {
  const canvas = make("canvas", { width: heat.length, height: 80, role: "img",
    "aria-label": "Response times over time" });
  const all = heat.flatMap(([, buckets]) => buckets.map(([lower]) => Math.max(lower, 1)));
  const [least, most] = [Math.min(...all), Math.max(...all, 2)];
  const span = Math.max(Math.log(most / least), 1e-9);
  const peak = Math.max(...heat.flatMap(([, buckets]) => buckets.map(([, count]) => count)), 1);
  const drawn = canvas.getContext("2d");
  drawn.fillStyle = "#3b8fc4";
  heat.forEach(([, buckets], x) => {
    for (const [lower, count] of buckets) {
      const y = 78 - (Math.log(Math.max(lower, 1) / least) / span) * 76;
      drawn.globalAlpha = Math.max(0.15, Math.log1p(count) / Math.log1p(peak));
      drawn.fillRect(x, y, 1, 3);
    }
  });
  const caption = `Response times, ${time(least)} at the bottom to ${time(most)} at the top`;
  return make("figure", {}, canvas, make("figcaption", { text: caption }));
}

function showLive() {
  $("live").hidden = watched === null;
  if (!watched) return;
  $("live-title").textContent = watched.name;
  const left = watched.eta === null ? "" : `, about ${Math.ceil(watched.eta)} s left`;
  $("doing").textContent = watched.stage
    ? `${watched.stage}: ${watched.doing}${left}` : "It has said nothing yet.";
  $("done").value = watched.done;
  const charts = [...watched.series].map(([title, lines]) => lineChart(title, lines));
  if (watched.heat.some(([, buckets]) => buckets.length)) charts.push(heatMap(watched.heat));
  $("charts").replaceChildren(...charts);
  $("told").replaceChildren(...watched.told.map((text) => make("li", { text })));
}

async function follow() {
  const state = watched;
  if (!state) return;
  const path = `/api/events/${encodeURIComponent(state.name)}?from=${state.from}`;
  const answer = await ask(path);
  const text = await answer.text();
  if (watched !== state) return;
  state.from = Number(answer.headers.get("X-Next"));
  for (const line of text.split("\n").filter(Boolean)) take(state, JSON.parse(line));
  if (text || state.from === 0) showLive();
}

function watch(name) {
  watched = begin(name);
  showLive();
  tried(follow);
  $("live").scrollIntoView({ block: "nearest" });
}

// --- all of it ---------------------------------------------------------------------------------

async function refresh() {
  const found = await (await ask("/api/runs")).json();
  const changed = JSON.stringify(found) !== JSON.stringify(table);
  // What begins to run is what people want to see.
  const running = found.runs.find((run) => run.state === "running");
  const known = table.runs.find((run) => run.name === running?.name);
  table = found;
  if (changed) {
    $("place").textContent = table.place;
    showStudies();
    showJobs();
    showTable();
  }
  if (running && known?.state !== "running") watch(running.name);
  else await follow();
}

$("filter").addEventListener("input", showTable);
$("compare").addEventListener("click", () => tried(compareTwo));
$("start").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = new URLSearchParams({ study: $("study").value });
  tried(async () => {
    await ask(`/api/start?${query}`, true);
    await refresh();
  });
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
  event.preventDefault();
  $("filter").focus();
});

(async function loop() {
  await tried(refresh);
  const busy = table.runs.some((run) => run.state === "running") ||
    table.jobs.some((job) => job.ended === null);
  setTimeout(loop, busy ? EVERY_MS : REST_MS);
})();
