// Draws one figure as SVG: axes, curves or bars, legend, read-out. Colours, fonts and dark or light
// come from page.css through classes and variables, so print and theme need no redraw.
"use strict";

const Charts = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const LOOKS = 8; // colours, marks and hatches in page.css and below
  const DASHES = ["7 4", "3 3", "10 3 2 3", "12 5", "2 5", "8 3 2 3 2 3", "5 5", "14 4 4 4"];
  // Marks, about 8 pixels wide, drawn relative to their middle: one path holds those of a series.
  const MARKS = [
    "m4 0a4 4 0 1 1-8 0a4 4 0 1 1 8 0z",
    "m-3.6-3.6h7.2v7.2h-7.2z",
    "m0-4.6l4.4 8h-8.8z",
    "m0-5l5 5l-5 5l-5-5z",
    "m0 4.6l4.4-8h-8.8z",
    "m-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "m0-5l1.5 3.4l3.5.2l-2.7 2.3l.8 3.5l-3.1-1.9l-3.1 1.9l.8-3.5l-2.7-2.3l3.5-.2z",
    "m-4.5-2.5h9v5h-9z",
  ];
  const HATCHES = [
    "",
    "M0 8L8 0M-2 2L2-2M6 10L10 6",
    "M0 4H8",
    "M4 0V8",
    "M0 0L8 8M-2 6L2 10M6-2L10 2",
    "M0 4H8M4 0V8",
    "M0 0L8 8M0 8L8 0",
    "M4 4h.01M0 0h.01",
  ];
  const SHADES = 8; // of a map's cells
  const { format } = Scales;
  let serial = 0;

  function element(name, attributes = {}, parent = null, text = "") {
    const svg = [
      "svg",
      "g",
      "path",
      "line",
      "rect",
      "text",
      "tspan",
      "clipPath",
      "defs",
      "pattern",
      "circle",
    ].includes(name);
    const node = svg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }

  const fixed = (number) => Math.round(number * 100) / 100;

  class Chart {
    constructor(host, figure) {
      this.host = host;
      this.figure = figure;
      this.name = `c${serial++}`;
      const series = figure.lines ?? figure.grid?.series ?? figure.bars.series;
      this.series = series.map((one, index) => ({
        ...one,
        look: (one.colour ?? index) % LOOKS,
        shown: true,
        points: one.xs ? one.xs.map((x, at) => [x, one.ys[at]]) : [],
      }));
      for (const one of this.series)
        one.sorted = one.points
          .filter((point) => Scales.drawable(this.xKind, point[0]))
          .sort((a, b) => a[0] - b[0]);
      this.zoom = null; // {x: [low, high], y: [low, high] or null}
      this.cursor = -1; // index into this.stops
      this.only = -1; // series that the arrow keys walk along; -1 for all
      this.build();
      this.draw();
    }

    get xKind() {
      return this.figure.x.scale;
    }
    get yKind() {
      return this.figure.y.scale;
    }
    get isBars() {
      return this.figure.bars !== undefined;
    }
    get isGrid() {
      return this.figure.grid !== undefined;
    }
    // Bars and maps show all they have: there is nothing to zoom into.
    get isFixed() {
      return this.isBars || this.isGrid;
    }
    get visible() {
      return this.series.filter((one) => one.shown);
    }

    build() {
      const { host, figure } = this;
      this.legend = element(
        "div",
        { class: "legend", role: "group", "aria-label": "Series" },
        host,
      );
      this.series.forEach((one) => this.addLegendEntry(one));
      if (this.series.length < 2) this.legend.hidden = this.isBars || this.series.length === 0;
      const kind = this.isBars ? "Bar chart" : this.isGrid ? "Map" : "Line chart";
      const keys = "Arrow keys read values, plus and minus zoom, Escape resets.";
      this.frame = element(
        "div",
        {
          class: "chart-frame",
          tabindex: "0",
          role: "application",
          "aria-label": `${figure.title}. ${kind}, ${this.series.length} series. ${keys}`,
        },
        host,
      );
      if (!this.isFixed) this.frame.dataset.help = "Arrows read values, + and - zoom, Esc resets";
      this.svg = element("svg", { "aria-hidden": "true", focusable: "false" }, this.frame);
      this.tip = element("div", { class: "tip", "aria-hidden": "true", hidden: "" }, this.frame);
      this.live = element("p", { class: "sr", "aria-live": "polite" }, host);
      this.tools = element("div", { class: "tools" }, host);
      this.reset = element(
        "button",
        { type: "button", class: "reset", hidden: "" },
        this.tools,
        "Reset zoom",
      );
      this.reset.addEventListener("click", () => {
        this.setZoom(null);
        this.frame.focus();
      });
      if (figure.note) element("p", { class: "note" }, host, figure.note);
      this.listen();
    }

    addLegendEntry(one) {
      const button = element(
        "button",
        { type: "button", class: `key look-${one.look}`, "aria-pressed": "true" },
        this.legend,
      );
      const sample = element(
        "svg",
        { width: 30, height: 12, viewBox: "0 0 30 12", "aria-hidden": "true" },
        button,
      );
      if (this.isFixed) {
        element("rect", { x: 8, y: 0, width: 14, height: 12, rx: 2, class: "bar" }, sample);
        if (HATCHES[one.look] && this.isBars)
          element(
            "path",
            { d: HATCHES[one.look], class: "hatch", transform: "translate(11 2)" },
            sample,
          );
      } else {
        if (one.style !== "points")
          element(
            "path",
            { d: "M1 6H29", class: "curve", "stroke-dasharray": this.dash(one) },
            sample,
          );
        const bare = this.series.length < 2 && (one.style === "line" || one.style === "step");
        if (one.style !== "dashed" && !bare)
          element("path", { d: `M15 6${MARKS[one.look]}`, class: "mark" }, sample);
      }
      element("span", {}, button, one.name || "(unnamed)");
      button.addEventListener("click", () => {
        one.shown = !one.shown;
        button.setAttribute("aria-pressed", String(one.shown));
        this.only = -1;
        this.cursor = -1;
        this.draw();
      });
    }

    dash(one) {
      return one.style === "dashed" ? DASHES[one.look] : "none";
    }

    // -- layout -------------------------------------------------------------------------------

    draw(
      width = this.frame.clientWidth || 720,
      height = Math.min(400, Math.max(250, width * 0.46)),
    ) {
      this.width = Math.max(260, width);
      this.height = Math.round(height);
      this.svg.replaceChildren();
      this.defs = element("defs", {}, this.svg);
      if (this.isBars) this.drawBars();
      else if (this.isGrid) this.drawGrid();
      else this.drawLines();
      this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
      this.svg.setAttribute("width", this.width);
      this.svg.setAttribute("height", this.height);
      this.reset.hidden = this.zoom === null;
      this.overlay = element("g", { class: "overlay" }, this.svg);
      this.showCursor(false);
    }

    axisTitle(axis) {
      const inTicks = [
        "ns",
        "us",
        "µs",
        "ms",
        "s",
        "bytes",
        "B",
        "bytes/s",
        "B/s",
        "%",
        "",
      ].includes(axis.unit);
      return inTicks ? axis.label : `${axis.label} (${axis.unit})`.trim();
    }

    // The area that values are drawn in, once the labels' widths are known.
    setArea(left, below, top = 30, beside = 16) {
      const [right, bottom] = [this.width - beside, this.height - below];
      this.area = { left, right, top, bottom };
      const clip = element("clipPath", { id: `${this.name}-clip` }, this.defs);
      element(
        "rect",
        { x: left - 1, y: top - 6, width: right - left + 7, height: bottom - top + 7 },
        clip,
      );
    }

    // Widest of some labels in pixels, measured in the page's own font.
    measure(labels) {
      const probe = element("text", { class: "tick", visibility: "hidden" }, this.svg);
      let widest = 0;
      for (const label of labels) {
        probe.textContent = label;
        widest = Math.max(widest, probe.getComputedTextLength());
      }
      probe.remove();
      return widest;
    }

    drawLines() {
      const { figure } = this;
      const xs = this.visible.flatMap((one) =>
        one.points
          .filter((point) => Scales.drawable(this.yKind, point[1]))
          .map((point) => point[0]),
      );
      const xDomain =
        this.zoom?.x ?? Scales.domainOf(this.xKind, xs, { tight: this.xKind === "linear" });
      const inside = (point) =>
        this.zoom === null || (point[0] >= xDomain[0] && point[0] <= xDomain[1]);
      const ys = this.visible.flatMap((one) => one.points.filter(inside).map((point) => point[1]));
      const yDomain = this.zoom?.y ?? Scales.domainOf(this.yKind, ys);
      const yTicks = Scales.ticks(this.yKind, yDomain, this.height / 42, figure.y.unit);
      this.setArea(Math.ceil(this.measure(yTicks.map((tick) => tick.label))) + 14, 46);
      const { left, right, top, bottom } = this.area;
      this.x = Scales.scale(this.xKind, xDomain, [left, right]);
      this.y = Scales.scale(this.yKind, yDomain, [bottom, top]);
      this.drawYAxis(yTicks);
      this.drawXAxis();
      const plot = element("g", { "clip-path": `url(#${this.name}-clip)` }, this.svg);
      for (const one of this.visible) this.drawSeries(one, plot);
      const stops = this.visible.flatMap((one) =>
        one.style === "dashed" && this.visible.some((other) => other.style !== "dashed")
          ? []
          : one.sorted.map((point) => point[0]),
      );
      this.stops = [...new Set(stops)].sort((a, b) => a - b);
    }

    drawYAxis(ticks) {
      const { left, right, top, bottom } = this.area;
      const axis = element("g", { class: "axis" }, this.svg);
      element("text", { x: 0, y: 12, class: "axis-title" }, axis, this.axisTitle(this.figure.y));
      for (const tick of ticks) {
        const y = fixed(this.y.to(tick.value));
        if (y < top - 1 || y > bottom + 1) continue;
        element(
          "line",
          { x1: left, x2: right, y1: y, y2: y, class: tick.minor ? "grid minor" : "grid" },
          axis,
        );
        if (tick.label)
          element(
            "text",
            { x: left - 8, y: y + 4, class: "tick", "text-anchor": "end" },
            axis,
            tick.label,
          );
      }
    }

    drawXAxis() {
      const { left, right, bottom } = this.area;
      const axis = element("g", { class: "axis" }, this.svg);
      element("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "base" }, axis);
      const ticks = Scales.ticks(
        this.xKind,
        this.x.domain,
        (right - left) / 74,
        this.figure.x.unit,
      );
      const labels = ticks.filter((tick) => tick.label).map((tick) => tick.label);
      const wide = this.measure(labels) + 12;
      let free = -Infinity;
      for (const tick of ticks) {
        const x = fixed(this.x.to(tick.value));
        if (x < left - 1 || x > right + 1) continue;
        element(
          "line",
          { x1: x, x2: x, y1: bottom, y2: bottom + (tick.minor ? 3 : 5), class: "base" },
          axis,
        );
        if (!tick.label || x - wide / 2 < free) continue;
        const anchor = x + wide / 2 > this.width ? "end" : "middle";
        element(
          "text",
          {
            x: anchor === "end" ? this.width : x,
            y: bottom + 19,
            class: "tick",
            "text-anchor": anchor,
          },
          axis,
          tick.label,
        );
        free = x + wide / 2;
      }
      element(
        "text",
        { x: right, y: this.height - 4, class: "axis-title", "text-anchor": "end" },
        axis,
        this.axisTitle(this.figure.x),
      );
    }

    drawSeries(one, plot) {
      const group = element(
        "g",
        { class: `series look-${one.look}`, "data-series": one.name },
        plot,
      );
      const pixels = one.points.map(([x, y]) =>
        Scales.drawable(this.xKind, x) && Scales.drawable(this.yKind, y)
          ? [fixed(this.x.to(x)), fixed(this.y.to(y))]
          : null,
      );
      if (one.style !== "points") {
        let path = "";
        let before = null;
        for (const pixel of pixels) {
          if (pixel !== null) {
            if (before === null) path += `M${pixel[0]} ${pixel[1]}`;
            else
              path +=
                one.style === "step" ? `H${pixel[0]}V${pixel[1]}` : `L${pixel[0]} ${pixel[1]}`;
          }
          before = pixel;
        }
        if (path)
          element("path", { d: path, class: "curve", "stroke-dasharray": this.dash(one) }, group);
      }
      const marks = this.marked(one, pixels).map(([x, y]) => `M${x} ${y}${MARKS[one.look]}`);
      if (marks.length > 0) element("path", { d: marks.join(""), class: "mark" }, group);
    }

    // Which points carry a mark: every one where points matter, a few along a plain line so that it
    // is told from others without colour, none on a dashed one.
    marked(one, pixels) {
      const good = pixels.filter((pixel) => pixel !== null);
      if (one.style === "dashed") return [];
      if (one.style === "points" || one.style === "line_points") return good;
      if (this.series.length < 2) return [];
      const marks = [];
      let free = this.area.left + 18 + 17 * one.look;
      let last = null;
      for (const pixel of good) {
        const far = last === null || Math.hypot(pixel[0] - last[0], pixel[1] - last[1]) > 90;
        if (pixel[0] >= free || (last !== null && Math.abs(pixel[1] - last[1]) > 90)) {
          if (far) {
            marks.push(pixel);
            last = pixel;
            free = pixel[0] + 96;
          }
        }
      }
      return marks;
    }

    // -- bars ---------------------------------------------------------------------------------

    drawBars() {
      const { categories, stacked } = this.figure.bars;
      const shown = this.visible;
      const sums = categories.map((_, at) =>
        shown.reduce((sum, one) => sum + Math.max(0, one.values[at] ?? 0), 0),
      );
      const ends = shown.flatMap((one) => (one.interval ?? []).flat());
      const values = stacked ? sums : [...shown.flatMap((one) => one.values), ...ends];
      // A whole of 100 % ends at 100 %.
      const whole =
        stacked &&
        this.figure.y.unit === "%" &&
        sums.every((sum) => sum <= 100.5) &&
        sums.some((sum) => sum > 90);
      const kind = stacked ? "linear" : this.yKind;
      this.valueDomain = whole ? [0, 100] : Scales.domainOf(kind, values, { fromZero: true });
      this.sums = sums;
      const slot = (this.width - 70) / Math.max(1, categories.length);
      const letters = Math.max(6, Math.floor((slot - 10) / 6.6));
      this.wrapped = categories.map((name) => Scales.wrapWords(name, letters));
      this.across =
        this.wrapped.some(
          (lines) => lines.length > 3 || lines.some((line) => line.length > letters),
        ) || categories.length > 24;
      if (this.across) this.layAcross(kind);
      else this.layUpright(kind);
      this.stops = categories.map((_, at) => at);
      const plot = element("g", {}, this.svg);
      this.labels = [];
      shown.forEach((one, index) => this.drawBarSeries(one, index, shown.length, plot));
      this.drawBarLabels(plot);
    }

    // Whether bars carry their values: where there are few.
    get labelled() {
      const { categories, stacked } = this.figure.bars;
      return !stacked && categories.length * this.visible.length <= 24;
    }

    layUpright(kind) {
      const ticks = Scales.ticks(kind, this.valueDomain, this.height / 42, this.figure.y.unit);
      const lines = Math.max(1, ...this.wrapped.map((lines) => lines.length));
      this.setArea(
        Math.ceil(this.measure(ticks.map((tick) => tick.label))) + 14,
        12 + 15 * lines + (this.figure.x.label ? 18 : 0),
      );
      const { left, right, top, bottom } = this.area;
      this.y = Scales.scale(kind, this.valueDomain, [bottom, top]);
      this.band = (right - left) / Math.max(1, this.figure.bars.categories.length);
      this.drawYAxis(ticks);
      const axis = element("g", { class: "axis" }, this.svg);
      const zero = kind === "linear" ? this.y.to(0) : bottom;
      element("line", { x1: left, x2: right, y1: zero, y2: zero, class: "base" }, axis);
      this.wrapped.forEach((lines, at) => {
        const x = left + this.band * (at + 0.5);
        const label = element("text", { class: "tick category", "text-anchor": "middle" }, axis);
        lines.forEach((line, row) =>
          element("tspan", { x: fixed(x), y: bottom + 18 + 15 * row }, label, line),
        );
      });
      if (this.figure.x.label)
        element(
          "text",
          { x: right, y: this.height - 4, class: "axis-title", "text-anchor": "end" },
          axis,
          this.figure.x.label,
        );
    }

    layAcross(kind) {
      const { categories, stacked } = this.figure.bars;
      // On a narrow screen names stand above their bars, else before them.
      this.above = this.width < 480 ? 18 : 0;
      const most = Math.max(10, Math.floor((this.width * (this.above ? 1 : 0.42)) / 6.6));
      const names = categories.map((name) =>
        name.length > most ? name.slice(0, most - 1) + "…" : name,
      );
      const each = this.above + (stacked ? 22 : 10 + 14 * Math.max(1, this.visible.length));
      this.height = Math.min(1600, 8 + each * categories.length + 50);
      // Labels stand behind the bars and need their room.
      const values = this.visible.flatMap((one) =>
        one.values.map((value) => format(value, this.figure.y.unit)),
      );
      this.setArea(
        this.above ? 1 : Math.ceil(this.measure(names)) + 14,
        46,
        8,
        this.labelled ? Math.ceil(this.measure(values)) + 10 : 16,
      );
      const { left, right, top, bottom } = this.area;
      this.x = Scales.scale(kind, this.valueDomain, [left, right]);
      this.band = (bottom - top) / Math.max(1, categories.length);
      const axis = element("g", { class: "axis" }, this.svg);
      for (const tick of Scales.ticks(
        kind,
        this.valueDomain,
        (right - left) / 90,
        this.figure.y.unit,
      )) {
        const x = fixed(this.x.to(tick.value));
        element(
          "line",
          { x1: x, x2: x, y1: top, y2: bottom, class: tick.minor ? "grid minor" : "grid" },
          axis,
        );
        if (tick.label)
          element(
            "text",
            { x, y: bottom + 19, class: "tick", "text-anchor": x < 12 ? "start" : "middle" },
            axis,
            tick.label,
          );
      }
      element("line", { x1: left, x2: left, y1: top, y2: bottom, class: "base" }, axis);
      names.forEach((name, at) => {
        const row = top + this.band * at;
        const place = this.above
          ? { x: left, y: fixed(row + 15), "text-anchor": "start" }
          : { x: left - 8, y: fixed(row + this.band / 2 + 4), "text-anchor": "end" };
        element("text", { ...place, class: "tick category" }, axis, name);
      });
      element(
        "text",
        { x: right, y: this.height - 4, class: "axis-title", "text-anchor": "end" },
        axis,
        this.axisTitle(this.figure.y),
      );
    }

    // Start and thickness of a series' bar within its category, in pixels along the category axis.
    slotOf(index, among) {
      const stacked = this.figure.bars.stacked;
      const head = this.across ? this.above : 0;
      const band = this.band - head;
      const air = Math.max(4, band * 0.22);
      const room = Math.min(band - air, stacked || among === 1 ? 72 : 64 * among);
      const start = head + (band - room) / 2;
      return stacked
        ? [start, room]
        : [start + (room * index) / among, Math.max(1, room / among - (among > 1 ? 2 : 0))];
    }

    drawBarSeries(one, index, among, plot) {
      const { categories, stacked } = this.figure.bars;
      const group = element(
        "g",
        { class: `series look-${one.look}`, "data-series": one.name },
        plot,
      );
      this.hatch(one.look);
      const value = this.across ? this.x : this.y;
      const floor = value.kind === "linear" ? value.to(0) : value.range[0];
      const [start, thick] = this.slotOf(index, among);
      categories.forEach((_, at) => {
        const amount = one.values[at] ?? null;
        if (!Scales.drawable(value.kind, amount)) return;
        let from = floor;
        let to = value.to(amount);
        if (stacked) {
          const below = this.visible
            .slice(0, index)
            .reduce((sum, other) => sum + Math.max(0, other.values[at] ?? 0), 0);
          [from, to] = [value.to(below), value.to(below + Math.max(0, amount))];
        }
        const along = (this.across ? this.area.top : this.area.left) + this.band * at + start;
        const box = this.across
          ? { x: Math.min(from, to), y: along, width: Math.abs(to - from), height: thick }
          : { x: along, y: Math.min(from, to), width: thick, height: Math.abs(to - from) };
        for (const key of Object.keys(box)) box[key] = fixed(box[key]);
        element("rect", { ...box, class: "bar" }, group);
        if (HATCHES[one.look])
          element("rect", { ...box, fill: `url(#${this.name}-h${one.look})` }, group);
        const reach = this.drawWhisker(
          one.interval?.[at],
          value,
          along + thick / 2,
          group,
          to,
          floor,
        );
        this.labels.push({
          text: format(amount, this.figure.y.unit),
          middle: along + thick / 2,
          thick,
          reach,
          down: to > floor && !this.across,
        });
      });
    }

    hatch(look) {
      if (!HATCHES[look] || this.defs.querySelector(`[id="${this.name}-h${look}"]`)) return;
      const pattern = element(
        "pattern",
        { id: `${this.name}-h${look}`, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
        this.defs,
      );
      element("path", { d: HATCHES[look], class: "hatch" }, pattern);
    }

    // Returns how far the bar with its whisker reaches, so that the label stays clear of it.
    drawWhisker(pair, value, middle, group, to, floor) {
      if (!pair || !pair.every((end) => Scales.drawable(value.kind, end))) return to;
      const [low, high] = pair.map((end) => fixed(value.to(end)));
      const m = fixed(middle);
      const d = this.across
        ? `M${low} ${m}H${high}M${low} ${m - 4}V${m + 4}M${high} ${m - 4}V${m + 4}`
        : `M${m} ${low}V${high}M${m - 4} ${low}H${m + 4}M${m - 4} ${high}H${m + 4}`;
      element("path", { d, class: "whisker-halo" }, group);
      element("path", { d, class: "whisker" }, group);
      return this.across || to > floor ? Math.max(to, low, high) : Math.min(to, low, high);
    }

    // Labels over all bars or over none: some without would look like no value.
    drawBarLabels(plot) {
      if (!this.labelled) return;
      const alone = this.visible.length === 1;
      const fits = ({ text, thick }) =>
        this.across ? thick >= 11 : this.measure([text]) <= (alone ? this.band - 4 : thick + 4);
      if (!this.labels.every(fits)) return;
      for (const { text, middle, reach, down } of this.labels) {
        const place = this.across
          ? {
              x: fixed(Math.max(reach, this.area.left) + 6),
              y: fixed(middle + 4),
              "text-anchor": "start",
            }
          : { x: fixed(middle), y: fixed(reach + (down ? 15 : -6)), "text-anchor": "middle" };
        element("text", { ...place, class: "bar-label" }, plot, text);
      }
    }

    // -- maps ---------------------------------------------------------------------------------

    // Cells shaded by the logarithm of their count; one path per layer and shade keeps them few.
    drawGrid() {
      const { x, y, columns, rows } = this.figure.grid;
      const xDomain = [x[0], x[0] + x[1] * columns];
      const yDomain = [y[0], y[0] + y[1] * rows];
      const yTicks = Scales.ticks("linear", yDomain, this.height / 42, this.figure.y.unit);
      this.setArea(Math.ceil(this.measure(yTicks.map((tick) => tick.label))) + 14, 46);
      const { left, right, top, bottom } = this.area;
      this.x = Scales.scale("linear", xDomain, [left, right]);
      this.y = Scales.scale("linear", yDomain, [bottom, top]);
      this.drawYAxis(yTicks);
      this.drawXAxis();
      this.cell = [(right - left) / columns, (bottom - top) / rows];
      const most = Math.max(1, ...this.series.map((one) => Math.max(0, ...one.cells)));
      for (const one of this.visible) {
        const group = element(
          "g",
          { class: `series look-${one.look}`, "data-series": one.name },
          this.svg,
        );
        const paths = Array.from({ length: SHADES }, () => "");
        one.cells.forEach((count, at) => {
          if (count <= 0) return;
          const shade = Math.ceil((Math.log1p(count) / Math.log1p(most)) * SHADES);
          const [across, down] = this.corner(at).map(fixed);
          const [width, height] = this.cell.map(fixed);
          paths[Math.max(1, shade) - 1] += `M${across} ${down}h${width}v${height}h-${width}z`;
        });
        paths.forEach((d, shade) => {
          if (d)
            element(
              "path",
              { d, class: "bar cell", "fill-opacity": fixed(0.15 + (0.85 * (shade + 1)) / SHADES) },
              group,
            );
        });
      }
      this.stops = Array.from({ length: columns * rows }, (_, at) => at);
    }

    // The upper left corner of a cell, in pixels.
    corner(at) {
      const { columns } = this.figure.grid;
      const row = Math.floor(at / columns);
      return [
        this.area.left + (at % columns) * this.cell[0],
        this.area.bottom - (row + 1) * this.cell[1],
      ];
    }

    readCell(at) {
      const { x, y, columns } = this.figure.grid;
      const rows = this.visible.map((one) => ({ one, text: format(one.cells[at] ?? 0, "") }));
      const across = format(x[0] + x[1] * (at % columns), this.figure.x.unit);
      const up = format(y[0] + y[1] * Math.floor(at / columns), this.figure.y.unit);
      return { heading: `${across}, ${this.figure.y.label} ${up}`, rows };
    }

    markCell() {
      const [x, y] = this.corner(this.stops[this.cursor]).map(fixed);
      const [width, height] = this.cell.map(fixed);
      element("rect", { x, y, width, height, class: "whisker" }, this.overlay);
      return [x + width, y];
    }

    // -- reading ------------------------------------------------------------------------------

    // What the cursor reads: a heading and one row per visible series that has a value there.
    reading() {
      const stop = this.stops[this.cursor];
      if (stop === undefined) return null;
      if (this.isGrid) return this.readCell(stop);
      const unit = this.figure.y.unit;
      if (this.isBars) {
        const rows = this.visible.map((one) => {
          const pair = one.interval?.[stop];
          const text = format(one.values[stop] ?? null, unit);
          return {
            one,
            text: pair ? `${text} (${format(pair[0], unit)} to ${format(pair[1], unit)})` : text,
          };
        });
        if (this.figure.bars.stacked && rows.length > 1)
          rows.push({ one: null, text: `${format(this.sums[stop], unit)} in all` });
        return { heading: this.figure.bars.categories[stop], rows };
      }
      const kinds = { x: this.xKind, y: this.yKind };
      const chosen = this.only >= 0 ? [this.series[this.only]] : this.visible;
      const rows = [];
      for (const one of chosen) {
        const found = Scales.valueAt(one.sorted, stop, one.style, kinds);
        if (found)
          rows.push({
            one,
            value: found.value,
            text: (found.between ? "≈ " : "") + format(found.value, unit),
          });
      }
      return { heading: format(stop, this.figure.x.unit), rows };
    }

    showCursor(announce) {
      this.overlay.replaceChildren();
      const reading = this.reading();
      this.tip.hidden = reading === null;
      if (reading === null) return;
      const spot = this.isBars
        ? this.markBand()
        : this.isGrid
          ? this.markCell()
          : this.markLine(reading.rows);
      this.tip.replaceChildren();
      element(
        "strong",
        {},
        this.tip,
        [this.isBars ? "" : this.figure.x.label, reading.heading].filter(Boolean).join(" "),
      );
      for (const row of reading.rows) {
        const line = element(
          "div",
          { class: row.one ? `row look-${row.one.look}` : "row" },
          this.tip,
        );
        element("i", { class: row.one ? "swatch" : "swatch none" }, line);
        element("span", { class: "name" }, line, row.one ? row.one.name : "");
        element("span", { class: "number" }, line, row.text);
      }
      this.placeTip(spot);
      if (announce) {
        const spoken = reading.rows.map((row) =>
          row.one ? `${row.one.name}: ${row.text}` : row.text,
        );
        this.live.textContent = `${reading.heading}. ${spoken.join("; ")}`;
      }
    }

    markLine(rows) {
      const x = fixed(this.x.to(this.stops[this.cursor]));
      element(
        "line",
        { x1: x, x2: x, y1: this.area.top, y2: this.area.bottom, class: "cursor" },
        this.overlay,
      );
      for (const row of rows) {
        if (!Scales.drawable(this.yKind, row.value)) continue;
        const y = fixed(this.y.to(row.value));
        if (y < this.area.top - 6 || y > this.area.bottom + 1) continue;
        element("circle", { cx: x, cy: y, r: 5, class: `dot look-${row.one.look}` }, this.overlay);
      }
      return [x, this.area.top];
    }

    markBand() {
      const { left, right, top, bottom } = this.area;
      const from = this.band * this.stops[this.cursor];
      const box = this.across
        ? { x: left, y: top + from, width: right - left, height: this.band }
        : { x: left + from, y: top, width: this.band, height: bottom - top };
      element("rect", { ...box, class: "band" }, this.overlay);
      return this.across
        ? [right - 40, top + from + this.band / 2]
        : [left + from + this.band / 2, top];
    }

    placeTip([x, y]) {
      const wide = this.tip.offsetWidth;
      const tall = this.tip.offsetHeight;
      const right = x + 14 + wide <= this.width;
      const left = right ? x + 14 : x - 14 - wide;
      this.tip.style.left = `${Math.max(0, Math.min(this.width - wide, left))}px`;
      this.tip.style.top = `${Math.max(0, Math.min(this.height - tall, y + 4))}px`;
    }

    // -- input --------------------------------------------------------------------------------

    listen() {
      const { frame } = this;
      frame.addEventListener("pointermove", (event) => this.onMove(event));
      frame.addEventListener("pointerdown", (event) => this.onDown(event));
      frame.addEventListener("pointerup", (event) => this.onUp(event));
      frame.addEventListener("pointercancel", () => {
        this.drag = null;
        this.showCursor(false);
      });
      frame.addEventListener("pointerleave", () => {
        if (!this.drag) this.setCursor(-1, false);
      });
      frame.addEventListener("dblclick", () => this.setZoom(null));
      frame.addEventListener("keydown", (event) => this.onKey(event));
      frame.addEventListener("blur", () => this.setCursor(-1, false));
    }

    place(event) {
      const box = this.svg.getBoundingClientRect();
      return [
        ((event.clientX - box.left) / box.width) * this.width,
        ((event.clientY - box.top) / box.height) * this.height,
      ];
    }

    onMove(event) {
      const spot = this.place(event);
      if (this.drag) {
        this.drag.to = spot;
        this.drawDrag();
        return;
      }
      this.only = -1;
      this.setCursor(this.nearestStop(spot), false);
    }

    nearestStop([x, y]) {
      if (this.isBars) {
        const at = Math.floor((this.across ? y - this.area.top : x - this.area.left) / this.band);
        return at >= 0 && at < this.stops.length ? at : -1;
      }
      if (this.isGrid) {
        const { columns, rows } = this.figure.grid;
        const column = Math.floor((x - this.area.left) / this.cell[0]);
        const row = Math.floor((this.area.bottom - y) / this.cell[1]);
        const inside = column >= 0 && column < columns && row >= 0 && row < rows;
        return inside ? row * columns + column : -1;
      }
      return Scales.nearest(
        this.stops.map((stop) => this.x.to(stop)),
        x,
      );
    }

    onDown(event) {
      if (this.isFixed || event.button !== 0 || event.pointerType === "touch") return;
      this.drag = { from: this.place(event), to: null };
      this.frame.setPointerCapture(event.pointerId);
    }

    onUp() {
      const drag = this.drag;
      this.drag = null;
      const range = drag?.to ? this.dragged(drag) : null;
      if (range && range.right - range.left >= 8) {
        const x = [this.x.from(range.left), this.x.from(range.right)];
        this.setZoom({
          x,
          y: range.high ? [this.y.from(range.bottom), this.y.from(range.top)] : null,
        });
      } else if (drag) this.showCursor(false);
    }

    // A flat drag chooses a range of x, one that is also tall a rectangle.
    dragged({ from, to }) {
      const { left, right, top, bottom } = this.area;
      const within = (value, low, high) => Math.max(low, Math.min(high, value));
      const [a, b] = [from[0], to[0]].map((x) => within(x, left, right)).sort((p, q) => p - q);
      const [c, d] = [from[1], to[1]].map((y) => within(y, top, bottom)).sort((p, q) => p - q);
      const high = d - c >= 28;
      return { left: a, right: b, top: high ? c : top, bottom: high ? d : bottom, high };
    }

    drawDrag() {
      const range = this.dragged(this.drag);
      this.tip.hidden = true;
      this.overlay.replaceChildren();
      element(
        "rect",
        {
          x: range.left,
          y: range.top,
          width: range.right - range.left,
          height: range.bottom - range.top,
          class: "selection",
        },
        this.overlay,
      );
    }

    setZoom(zoom) {
      if (this.isFixed) {
        this.setCursor(-1, false);
        return;
      }
      this.zoom = zoom;
      this.cursor = -1;
      this.draw();
    }

    // Zooms about the cursor, or the middle, by a factor along x.
    zoomBy(factor) {
      if (this.isFixed || !this.x) return;
      const { left, right } = this.area;
      const middle = this.cursor >= 0 ? this.x.to(this.stops[this.cursor]) : (left + right) / 2;
      const kept = this.stops[this.cursor];
      const ends = [middle - (middle - left) * factor, middle + (right - middle) * factor];
      this.setZoom({ x: ends.map((pixel) => this.x.from(pixel)), y: null });
      this.setCursor(this.stops.indexOf(kept), true);
    }

    setCursor(cursor, announce) {
      this.cursor = cursor;
      this.showCursor(announce);
    }

    onKey(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const last = this.stops.length - 1;
      const back = this.isBars && this.across ? "ArrowUp" : "ArrowLeft";
      const forth = this.isBars && this.across ? "ArrowDown" : "ArrowRight";
      const keys = {
        [forth]: () => this.step(1),
        [back]: () => this.step(-1),
        PageDown: () => this.step(Math.max(1, Math.round(last / 10))),
        PageUp: () => this.step(-Math.max(1, Math.round(last / 10))),
        Home: () => this.setCursor(0, true),
        End: () => this.setCursor(last, true),
        "+": () => this.zoomBy(0.5),
        "=": () => this.zoomBy(0.5),
        "-": () => this.zoomBy(2),
        Escape: () => {
          this.only = -1;
          this.setZoom(null);
          this.live.textContent = "";
        },
      };
      if (this.isGrid) {
        keys.ArrowUp = () => this.step(this.figure.grid.columns);
        keys.ArrowDown = () => this.step(-this.figure.grid.columns);
      } else if (!this.isBars) {
        keys.ArrowUp = () => this.chooseSeries(-1);
        keys.ArrowDown = () => this.chooseSeries(1);
      }
      if (!Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      keys[event.key]();
    }

    // One step of the cursor; along one series only to that series' own points, and within a zoom
    // only to what is seen.
    step(by) {
      const own =
        this.only >= 0 ? new Set(this.series[this.only].sorted.map((point) => point[0])) : null;
      const seen = (stop) =>
        (!own || own.has(stop)) &&
        (this.zoom === null || (stop >= this.zoom.x[0] && stop <= this.zoom.x[1]));
      const allowed = this.stops
        .map((_, at) => at)
        .filter((at) => this.isFixed || seen(this.stops[at]));
      if (allowed.length === 0) return;
      const at = Scales.nearest(allowed, this.cursor);
      const next =
        this.cursor < 0
          ? by > 0
            ? 0
            : allowed.length - 1
          : Math.max(0, Math.min(allowed.length - 1, at + by));
      this.setCursor(allowed[next], true);
    }

    // Up and down choose one series to walk along; beyond either end all of them again.
    chooseSeries(by) {
      const order = [
        -1,
        ...this.series.flatMap((one, index) =>
          one.shown && one.style !== "dashed" ? [index] : [],
        ),
      ];
      this.only = order[(order.indexOf(this.only) + by + order.length) % order.length];
      if (this.cursor < 0) this.cursor = 0;
      this.setCursor(this.cursor, true);
      if (this.only >= 0)
        this.live.textContent = `${this.series[this.only].name} only. ${this.live.textContent}`;
    }
  }

  return { Chart };
})();
