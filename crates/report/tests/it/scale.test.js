// The page script's pure functions; run by tests/it/text.rs where there is a node.
"use strict";

const test = require("node:test");
const assert = require("node:assert/strict");
const Scales = require("../../assets/scale.js");

test("formats agree with src/format.rs", () => {
  for (const [number, unit, expected] of require("./format_cases.json")) {
    assert.equal(Scales.format(number, unit), expected, `${number} ${unit}`);
  }
  for (const number of [NaN, Infinity, null]) assert.equal(Scales.format(number, "ns"), "n/a");
});

const labels = (ticks) => ticks.filter((tick) => tick.label).map((tick) => tick.label);

test("ticks are round numbers in units that people use", () => {
  const cases = [
    ["linear", [0, 5500], 6, "tx/min", ["0", "1,000", "2,000", "3,000", "4,000", "5,000"]],
    ["linear", [0, 0.013], 4, "", ["0", "0.005", "0.01"]],
    ["linear", [-3, 3], 4, "", ["-2", "0", "2"]],
    ["linear", [0, 60], 6, "s", ["0 s", "10 s", "20 s", "30 s", "40 s", "50 s", "1 min"]],
    ["linear", [0, 600], 5, "s", ["0 min", "2 min", "4 min", "6 min", "8 min", "10 min"]],
    ["linear", [0, 3 * 2 ** 20], 4, "bytes", ["0 MiB", "1 MiB", "2 MiB", "3 MiB"]],
    [
      "linear",
      [0, 540e6],
      6,
      "bytes/s",
      ["0 MB/s", "100 MB/s", "200 MB/s", "300 MB/s", "400 MB/s", "500 MB/s"],
    ],
    ["linear", [0, 100], 5, "%", ["0%", "20%", "40%", "60%", "80%", "100%"]],
    ["linear", [0, 60000], 3, "tx/min", ["0", "20k", "40k", "60k"]],
    [
      "log2",
      [4096, 2 ** 20],
      9,
      "bytes",
      ["4 KiB", "8 KiB", "16 KiB", "32 KiB", "64 KiB", "128 KiB", "256 KiB", "512 KiB", "1 MiB"],
    ],
    ["log2", [4096, 2 ** 20], 4, "bytes", ["4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"]],
    ["log2", [1, 128], 8, "", ["1", "2", "4", "8", "16", "32", "64", "128"]],
    ["log10", [1e3, 1e7], 5, "ns", ["1 us", "10 us", "100 us", "1 ms", "10 ms"]],
    ["log10", [30, 3000], 8, "us", ["50 us", "100 us", "200 us", "500 us", "1 ms", "2 ms"]],
    ["log10", [0.001, 1], 4, "", ["0.001", "0.01", "0.1", "1"]],
  ];
  for (const [kind, domain, most, unit, expected] of cases) {
    assert.deepEqual(
      labels(Scales.ticks(kind, domain, most, unit)),
      expected,
      `${kind} ${domain} ${unit}`,
    );
  }
});

test("ticks of any range are few, ascending, inside and different", () => {
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let round = 0; round < 4000; round++) {
    const kind = ["linear", "log2", "log10"][round % 3];
    const unit = ["", "ns", "s", "bytes", "bytes/s", "%", "tx/min"][round % 7];
    const low = 10 ** (random() * 12 - 3);
    const domain = [low, low * (1 + 10 ** (random() * 6 - 3))];
    const ticks = Scales.ticks(kind, domain, 8, unit);
    const shown = labels(ticks);
    const where = `${kind} ${unit} ${domain}: ${shown}`;
    assert.ok(shown.length <= 19, where);
    assert.equal(new Set(shown).size, shown.length, where);
    const slack = (domain[1] - domain[0]) * 1e-6;
    for (const [at, tick] of ticks.entries()) {
      assert.ok(tick.value >= domain[0] - slack && tick.value <= domain[1] + slack, where);
      assert.ok(at === 0 || tick.value > ticks[at - 1].value, where);
    }
  }
});

test("scales map there and back", () => {
  for (const kind of ["linear", "log2", "log10"]) {
    const scale = Scales.scale(kind, [2, 2000], [50, 650]);
    assert.equal(scale.to(2), 50);
    assert.ok(Math.abs(scale.to(2000) - 650) < 1e-9);
    for (const value of [2, 3, 77, 2000])
      assert.ok(Math.abs(scale.from(scale.to(value)) / value - 1) < 1e-9);
  }
  assert.equal(Scales.scale("log2", [1, 4], [0, 100]).to(2), 50);
});

test("domains hold the drawable values", () => {
  assert.deepEqual(Scales.domainOf("linear", [], {}), [0, 1]);
  assert.deepEqual(Scales.domainOf("linear", [10, 100, NaN, null]), [0, 105]);
  assert.deepEqual(Scales.domainOf("linear", [95, 100], { fromZero: true })[0], 0);
  assert.deepEqual(Scales.domainOf("linear", [3, 9], { tight: true }), [3, 9]);
  const [low, high] = Scales.domainOf("log10", [-5, 0, 10, 1000]);
  assert.ok(low > 5 && low <= 10 && high >= 1000 && high < 2000, `${low} ${high}`);
  assert.ok(Scales.domainOf("log2", [8])[0] < 8);
});

test("the nearest value is found", () => {
  const sorted = [1, 2, 4, 8];
  for (const [target, expected] of [
    [0, 0],
    [1.4, 0],
    [1.6, 1],
    [3, 1],
    [3.1, 2],
    [99, 3],
  ]) {
    assert.equal(Scales.nearest(sorted, target), expected, String(target));
  }
  assert.equal(Scales.nearest([], 1), -1);
});

test("curves are read on their points and between them", () => {
  const points = [
    [1, 10],
    [2, 20],
    [4, null],
    [8, 80],
    [16, 160],
  ];
  const kinds = { x: "linear", y: "linear" };
  assert.deepEqual(Scales.valueAt(points, 2, "line", kinds), { value: 20, between: false });
  assert.deepEqual(Scales.valueAt(points, 1.5, "line", kinds), { value: 15, between: true });
  assert.deepEqual(Scales.valueAt(points, 12, "step", kinds), { value: 80, between: true });
  assert.equal(Scales.valueAt(points, 3, "line", kinds), null, "a gap");
  assert.equal(Scales.valueAt(points, 1.5, "points", kinds), null, "bare points");
  assert.equal(Scales.valueAt(points, 0.5, "line", kinds), null, "outside");
  assert.equal(Scales.valueAt([], 1, "line", kinds), null);
  const onLog = Scales.valueAt(
    [
      [1, 1],
      [100, 100],
    ],
    10,
    "line",
    { x: "log10", y: "log10" },
  );
  assert.ok(Math.abs(onLog.value - 10) < 1e-9, "straight on the drawn scale");
});

test("words are wrapped", () => {
  assert.deepEqual(Scales.wrapWords("this disk, simulated", 10), ["this disk,", "simulated"]);
  assert.deepEqual(Scales.wrapWords("", 10), [""]);
});
