// Pure functions under the charts: number formats, scales, ticks, nearest point. No DOM here, so
// that node can test them (tests/it/scale.test.js); the formats are those of src/format.rs.
"use strict";

const Scales = (() => {
  const TIMES = [
    ["ns", 1],
    ["us", 1e3],
    ["ms", 1e6],
    ["s", 1e9],
    ["min", 60e9],
    ["h", 3600e9],
    ["d", 86400e9],
  ];
  const SIZES = [
    ["B", 1],
    ["KiB", 2 ** 10],
    ["MiB", 2 ** 20],
    ["GiB", 2 ** 30],
    ["TiB", 2 ** 40],
    ["PiB", 2 ** 50],
  ];
  const RATES = [
    ["B/s", 1],
    ["kB/s", 1e3],
    ["MB/s", 1e6],
    ["GB/s", 1e9],
    ["TB/s", 1e12],
  ];
  const NOTHING = "n/a";
  // Units that are drawn on a ladder: which one, and the factor to its base.
  const LADDERS = {
    ns: [TIMES, 1],
    us: [TIMES, 1e3],
    µs: [TIMES, 1e3],
    ms: [TIMES, 1e6],
    s: [TIMES, 1e9],
    bytes: [SIZES, 1],
    B: [SIZES, 1],
    "bytes/s": [RATES, 1],
    "B/s": [RATES, 1],
  };
  const ladderOf = (unit) => (Object.hasOwn(LADDERS, unit) ? LADDERS[unit] : null);

  const decimalsOf = (number) =>
    number === 0 ? 0 : Math.min(7, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(number)))));

  function rounded(number, decimals) {
    const factor = 10 ** decimals;
    return (Math.floor(Math.abs(number) * factor + 0.5) / factor) * (number < 0 ? -1 : 1);
  }

  // Three significant digits without trailing zeros; thousands apart.
  function grouped(number) {
    const decimals = decimalsOf(number);
    const value = rounded(number, decimals);
    const [whole, fraction = ""] = Math.abs(value).toFixed(decimals).split(".");
    const digits = fraction.replace(/0+$/, "");
    return (
      (value < 0 ? "-" : "") + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (digits ? "." + digits : "")
    );
  }

  function onLadder(number, ladder) {
    const fits = ([, factor]) => {
      const scaled = Math.abs(number) / factor;
      return rounded(scaled, decimalsOf(scaled)) >= 1;
    };
    const [unit, factor] = ladder.findLast(fits) ?? ladder[0];
    return `${grouped(number / factor)} ${unit}`;
  }

  function count(number) {
    const size = Math.abs(number);
    if (size >= 1e16 || (size !== 0 && size < 1e-4))
      return number.toExponential(2).replace("e+", "e");
    if (size >= 1e12) return grouped(number / 1e12) + " T";
    if (size >= 1e9) return grouped(number / 1e9) + " G";
    if (size >= 1e7) return grouped(number / 1e6) + " M";
    return grouped(number);
  }

  // A number in an axis' unit, with the unit behind it.
  function format(number, unit) {
    if (number === null || !Number.isFinite(number)) return NOTHING;
    const ladder = ladderOf(unit);
    if (ladder && number === 0) return `0 ${{ bytes: "B", "bytes/s": "B/s" }[unit] ?? unit}`;
    if (ladder) return onLadder(number * ladder[1], ladder[0]);
    if (unit === "%") return count(number) + "%";
    return unit ? `${count(number)} ${unit}` : count(number);
  }

  // The same for a tick: the unit stands in the axis' title unless it is part of the number.
  // `step` is the distance of ticks; it decides the digits, so that neighbours differ.
  function formatTick(number, unit, step = 0) {
    const ladder = ladderOf(unit);
    if (!ladder) {
      const size = Math.abs(number);
      const suffix = unit === "%" ? "%" : "";
      if (size >= 1e4 || size < 1e-4) {
        const short = [
          [1e12, "T"],
          [1e9, "G"],
          [1e6, "M"],
          [1e3, "k"],
        ].find(([factor]) => size >= factor);
        if (short) return withDigits(number / short[0], step / short[0]) + short[1] + suffix;
        if (size > 0 && step === 0) return number.toExponential(0).replace("e+", "e") + suffix;
      }
      return withDigits(number, step) + suffix;
    }
    const [names, base] = ladder;
    const scaled = number * base;
    const [name, factor] =
      names.findLast(([, factor]) => Math.abs(scaled) >= factor * (1 - 1e-9)) ?? names[0];
    if (scaled === 0) {
      // Zero in the unit that the steps are in.
      const [of] = names.findLast(([, factor]) => step * base >= factor * (1 - 1e-9)) ?? names[0];
      return `0 ${of}`;
    }
    return `${withDigits(scaled / factor, (step * base) / factor)} ${name}`;
  }

  function withDigits(number, step) {
    if (step <= 0) return grouped(number);
    const decimals = Math.min(12, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));
    const exact = Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) < 1e-6;
    const text = Math.abs(number).toFixed(exact ? decimals : decimals + 2);
    const [whole, fraction = ""] = text.split(".");
    const digits = fraction.replace(/0+$/, "");
    const grouped3 = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (digits ? "." + digits : "");
    return number < 0 && Number(text) !== 0 ? "-" + grouped3 : grouped3;
  }

  // Whether a value has a place on a scale. Beyond 1e250 sums and powers of axis ends overflow.
  const drawable = (kind, value) =>
    value !== null && Math.abs(value) < 1e250 && (kind === "linear" || value > 1e-250);
  const warp = (kind, value) =>
    kind === "linear" ? value : kind === "log2" ? Math.log2(value) : Math.log10(value);
  const unwarp = (kind, value) =>
    kind === "linear" ? value : kind === "log2" ? 2 ** value : 10 ** value;

  // Maps values in `domain` to pixels in `range` and back.
  function scale(kind, domain, range) {
    const low = warp(kind, domain[0]);
    const width = warp(kind, domain[1]) - low || 1;
    const to = (value) => range[0] + ((warp(kind, value) - low) / width) * (range[1] - range[0]);
    const from = (pixel) =>
      unwarp(kind, low + ((pixel - range[0]) / (range[1] - range[0])) * width);
    return { kind, domain, range, to, from };
  }

  // The range of drawable values with a little air; from zero where that is asked for or near.
  function domainOf(kind, values, options = {}) {
    const good = values.filter((value) => drawable(kind, value));
    if (good.length === 0) return kind === "linear" ? [0, 1] : [1, 10];
    let low = good.reduce((a, b) => Math.min(a, b));
    let high = good.reduce((a, b) => Math.max(a, b));
    if (kind !== "linear") {
      const air =
        low === high ? 1 : 0.04 * (warp(kind, high) - warp(kind, low)) * (options.tight ? 0 : 1);
      const floor = options.fromZero ? 0.35 : 0;
      return [unwarp(kind, warp(kind, low) - air - floor), unwarp(kind, warp(kind, high) + air)];
    }
    if (options.tight) return low === high ? [low - 0.5, high + 0.5] : [low, high];
    const near = low >= 0 && low <= 0.6 * high;
    if (options.fromZero || near) low = Math.min(0, low);
    if (options.fromZero) high = Math.max(0, high);
    if (low === high)
      return low === 0 ? [0, 1] : [low - Math.abs(low) * 0.1, high + Math.abs(high) * 0.1];
    const air = 0.05 * (high - low);
    return [low === 0 ? 0 : low - air, high === 0 ? 0 : high + air];
  }

  // 1, 2 or 5 times a power of ten; powers of two where the unit counts bytes.
  function niceStep(rough, binary) {
    if (!(rough > 0) || !Number.isFinite(rough)) return 1;
    if (binary) return Math.max(1, 2 ** Math.ceil(Math.log2(rough)));
    const power = 10 ** Math.floor(Math.log10(rough) + 1e-12);
    const lead = rough / power;
    return power * (lead <= 1.0000001 ? 1 : lead <= 2.0000001 ? 2 : lead <= 5.0000001 ? 5 : 10);
  }

  // Times step by 1, 2, 5, 10, 15, 30 of the unit that they are shown in.
  function niceTimeStep(roughNs) {
    const steps = [1, 2, 5, 10, 15, 30]
      .flatMap((n) => [n * 60e9, n * 3600e9])
      .sort((a, b) => a - b);
    if (roughNs <= 30e9) return niceStep(roughNs, false) === 50e9 ? 60e9 : niceStep(roughNs, false);
    return steps.find((step) => step >= roughNs) ?? niceStep(roughNs / 86400e9, false) * 86400e9;
  }

  function linearTicks([low, high], most, unit) {
    const ladder = ladderOf(unit);
    const rough = (high - low) / Math.max(1, most);
    let step;
    if (ladder && ladder[0] === TIMES) step = niceTimeStep(rough * ladder[1]) / ladder[1];
    else step = niceStep(rough, ladder !== null && ladder[0] === SIZES);
    const ticks = [];
    const first = Math.ceil(low / step - 1e-9);
    const last = Math.floor(high / step + 1e-9);
    for (let index = first; index <= last && ticks.length < 200; index++) {
      const value = index === 0 ? 0 : Number((index * step).toPrecision(12));
      ticks.push({ value, label: formatTick(value, unit, step) });
    }
    return ticks;
  }

  function logTicks(kind, [low, high], most, unit) {
    const from = warp(kind, low);
    const to = warp(kind, high);
    // Zoomed into less than one power: equal steps tell more.
    if (to - from < 1 || !Number.isFinite(to - from))
      return linearTicks([low, high], most, unit).filter((tick) => tick.value > 0);
    const stride = Math.max(1, Math.ceil((to - from) / Math.max(1, most)));
    const ticks = [];
    for (
      let power = Math.ceil(from / stride - 1e-9) * stride;
      power <= to + 1e-9;
      power += stride
    ) {
      const value = unwarp(kind, power);
      ticks.push({ value, label: formatTick(value, unit) });
    }
    if (kind === "log10" && stride === 1) {
      // Between few decades 2 and 5 get labels too; with many they are marks only.
      const labelled = (to - from) * 3 <= most;
      for (let power = Math.floor(from); power <= to; power++) {
        for (let lead = 2; lead < 10; lead++) {
          const value = lead * 10 ** power;
          if (value < low * (1 - 1e-9) || value > high * (1 + 1e-9)) continue;
          const named = labelled && (lead === 2 || lead === 5);
          ticks.push({ value, label: named ? formatTick(value, unit) : "", minor: !named });
        }
      }
      ticks.sort((a, b) => a.value - b.value);
    }
    return ticks;
  }

  // Ticks within a domain, at most about `most` of them labelled.
  const ticks = (kind, domain, most, unit) =>
    kind === "linear" ? linearTicks(domain, most, unit) : logTicks(kind, domain, most, unit);

  // Index of the value nearest to `target` in an ascending list; -1 if it is empty.
  function nearest(sorted, target) {
    let low = 0;
    let high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < target) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return sorted.length === 0 ? -1 : 0;
    if (low === sorted.length) return low - 1;
    return target - sorted[low - 1] <= sorted[low] - target ? low - 1 : low;
  }

  // The value of a curve at x: a measured point where there is one, else on the line between its
  // neighbours (`between` is then true). Null outside the curve, in a gap, and between bare points.
  function valueAt(points, x, style, kinds) {
    if (points.length === 0) return null;
    const at = nearest(
      points.map((point) => point[0]),
      x,
    );
    if (points[at][0] === x) return { value: points[at][1], between: false };
    if (style === "points") return null;
    const right = points[at][0] > x ? at : at + 1;
    const left = right - 1;
    if (left < 0 || right >= points.length) return null;
    const [a, b] = [points[left], points[right]];
    if (a[1] === null || b[1] === null) return null;
    if (style === "step") return { value: a[1], between: true };
    if (![a, b].every((point) => drawable(kinds.x, point[0]) && drawable(kinds.y, point[1])))
      return null;
    const share =
      (warp(kinds.x, x) - warp(kinds.x, a[0])) / (warp(kinds.x, b[0]) - warp(kinds.x, a[0]));
    const height = warp(kinds.y, a[1]) + share * (warp(kinds.y, b[1]) - warp(kinds.y, a[1]));
    return { value: unwarp(kinds.y, height), between: true };
  }

  // Splits a text into lines of about `most` characters at spaces; one word may be longer.
  function wrapWords(text, most) {
    const lines = [""];
    for (const word of text.split(" ")) {
      const last = lines.length - 1;
      if (lines[last] === "") lines[last] = word;
      else if (lines[last].length + 1 + word.length <= most) lines[last] += " " + word;
      else lines.push(word);
    }
    return lines;
  }

  return {
    format,
    formatTick,
    drawable,
    scale,
    domainOf,
    ticks,
    nearest,
    valueAt,
    wrapWords,
    NOTHING,
  };
})();

if (typeof module !== "undefined") module.exports = Scales;
