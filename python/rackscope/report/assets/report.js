// Draws the panels over time and the latency distribution from the data in the page. Fetches nothing.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const root = document.documentElement;
  const darkScheme = matchMedia("(prefers-color-scheme: dark)");
  const charts = [];
  const legends = new Map();
  let distribution = null;
  let zoomed = null;
  let printing = false;

  // Quantities, printed as quantities.py prints them.
  const digits = (value) => {
    const magnitude = Math.abs(value);
    if (magnitude === 0) return "0";
    return magnitude >= 100 ? value.toFixed(0) : magnitude >= 10 ? value.toFixed(1) : magnitude >= 1 ? value.toFixed(2) : String(Number(value.toPrecision(2)));
  };
  const scaled = (value, steps, last) => {
    for (const [factor, unit] of steps) if (Math.abs(value) >= factor) return digits(value / factor) + " " + unit;
    return value === 0 ? "0 " + last[1] : digits(value / last[0]) + " " + last[1];
  };
  const KIBI = [[1024 ** 4, "TiB"], [1024 ** 3, "GiB"], [1024 ** 2, "MiB"], [1024, "KiB"]];
  const THOUSANDS = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const formatters = {
    percent: (value) => (value > 99.9 && value < 100 ? String(Math.min(Number(value.toFixed(3)), 99.999)) : digits(value).replace(/(\.\d)\d$/, "$1")) + " %",
    bytes: (value) => scaled(value, KIBI, [1, "B"]),
    "bytes/s": (value) => scaled(value, KIBI, [1, "B"]) + "/s",
    "operations/s": (value) => (Math.abs(value) >= 1e7 ? scaled(value, THOUSANDS, [1, ""]) : Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3)))) + "/s",
    seconds: (value) => scaled(value, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]], [1e-9, "ns"]),
    cores: (value) => value.toFixed(2) + " cores",
    watts: (value) => scaled(value, [[1e6, "MW"], [1e3, "kW"], [1, "W"]], [1e-3, "mW"]),
    cycles: (value) => String(Number(value.toPrecision(3))),
    count: (value) => scaled(value, THOUSANDS, [1, ""]).trim(),
  };
  const print = (value, unit) => (value == null || !isFinite(value) ? "–" : formatters[unit](value));

  // Axis labels: the same without trailing zeros and as short as can be.
  const plain = (value) => String(Number(value.toPrecision(6)));
  const axisLabels = (unit, values) => {
    const largest = Math.max(...values.filter((value) => value != null).map(Math.abs), 0);
    const pick = (steps, last) => steps.find(([factor]) => largest >= factor) || last;
    if (unit === "bytes" || unit === "bytes/s") {
      const [factor, name] = pick(KIBI, [1, "B"]);
      const rate = unit === "bytes" ? "" : "/s";
      return values.map((value) => (value === 0 ? "0" : plain(value / factor) + " " + name + rate));
    }
    if (unit === "operations/s") {
      const [factor, name] = pick(THOUSANDS, [1, ""]);
      return values.map((value) => (value === 0 ? "0" : plain(value / factor) + (name && " " + name)));
    }
    if (unit === "seconds") {
      return values.map((value) => {
        if (value == null) return "";
        const [factor, name] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]].find(([factor]) => value >= factor * 0.9999) || [1e-9, "ns"];
        return plain(value / factor) + " " + name;
      });
    }
    if (unit === "watts") return values.map((value) => (value == null ? "" : value >= 1e4 ? plain(value / 1e3) + " kW" : plain(value) + " W"));
    if (unit === "percent") return values.map((value) => plain(value) + " %");
    return values.map((value) => (value == null ? "" : plain(value)));
  };
  // Byte axes step by powers of 1024 rather than of 1000.
  const BINARY_STEPS = [];
  for (let power = 0; power <= 50; power++) BINARY_STEPS.push(2 ** power);

  const clock = (seconds, step) => {
    const magnitude = Math.abs(seconds);
    if (data.span[1] < 120) return (step < 1 ? seconds.toFixed(step < 0.1 ? 2 : 1) : String(Math.round(seconds))) + " s";
    const sign = seconds < 0 ? "-" : "";
    const whole = Math.floor(magnitude + 1e-6);
    const rest = step < 1 ? (magnitude - whole).toFixed(1).slice(1) : "";
    const two = (number) => String(number).padStart(2, "0");
    const hours = Math.floor(whole / 3600), minutes = Math.floor((whole % 3600) / 60);
    return sign + (hours ? hours + ":" + two(minutes) : minutes) + ":" + two(whole % 60) + rest;
  };

  const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const FONT = "11px -apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
  const channels = (value) => [16, 8, 0].map((shift) => (parseInt(value.slice(1), 16) >> shift) & 255);
  const faded = (value, share) => `rgba(${channels(value).join(", ")}, ${share})`;
  // Calmer than the line around it, and opaque: what is stacked below must not shine through.
  const onPaper = (value, share) => {
    const paper = channels(colour("paper"));
    return `rgb(${channels(value).map((channel, index) => Math.round(channel * share + paper[index] * (1 - share))).join(", ")})`;
  };
  const dash = { dashed: [6, 4], dotted: [1.5, 3] };
  const axisWidth = () => (innerWidth < 760 && !printing ? 58 : 66);
  // On paper there is no layout to ask before it is too late: the sizes that report.css gives charts there.
  const sizeOf = (element) => (printing
    ? { width: 494, height: element.classList.contains("chart-tall") ? 240 : 120 }
    : { width: element.clientWidth, height: element.clientHeight });

  const phaseAt = (seconds) => data.phases.find((phase) => seconds >= phase.start && seconds <= phase.end);

  // As much of the phases' names as there is room for: each repetition's, or its number, or one for neighbours.
  function phaseLabels(shown, widthOf) {
    const fits = (label) => widthOf(label.text) < label.right - label.left;
    const isMeasured = ({ phase }) => phase.kind === "measure";
    const each = (items, textOf) => items.map(({ phase, left, right }) => ({ text: textOf(phase), left, right }));
    const labels = each(shown.filter((item) => !isMeasured(item)), (phase) => phase.label).filter(fits);
    const measured = shown.filter(isMeasured);
    if (!measured.length) return labels;
    const first = measured[0], last = measured[measured.length - 1];
    const around = (items, text) => ({ text, left: items[0].left, right: items[items.length - 1].right });
    const repetitions = Object.entries(Object.groupBy ? Object.groupBy(measured, ({ phase }) => phase.repetition ?? "") : {});
    const choices = measured.every(({ phase }) => phase.name === first.phase.name)
      ? [each(measured, (phase) => phase.label), each(measured, (phase) => String(phase.repetition ?? phase.name)),
        [around(measured, `${first.phase.name} ${first.phase.repetition} to ${last.phase.repetition}`)]]
      : [each(measured, (phase) => phase.label), each(measured, (phase) => phase.name),
        ...(repetitions.length > 1 ? [repetitions.map(([number, items]) => around(items, "repetition " + number)), repetitions.map(([number, items]) => around(items, number))] : [])];
    // What is cut by the edge of the panel does not decide for the others.
    const widest = Math.max(...measured.map((item) => item.right - item.left));
    const suits = (choice) => choice.every((label) => fits(label) || label.right - label.left < widest / 2);
    return [...labels, ...(choices.find(suits) || [around(measured, "measured")]).filter(fits)];
  }

  // Phases behind the data, their names above it.
  function drawPhases(chart) {
    const { ctx, bbox } = chart;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = FONT.replace("11px", 10.5 * ratio + "px");
    ctx.textAlign = "center";
    ctx.textBaseline = "alphabetic";
    const shown = data.phases.map((phase, index) => ({
      phase,
      left: Math.max(bbox.left, chart.valToPos(phase.start, "x", true)),
      right: Math.min(bbox.left + bbox.width, chart.valToPos(phase.end, "x", true)),
      tone: phase.kind === "measure" ? (index % 2 ? "phase-measure" : "phase-measure-other") : "phase-other",
    })).filter(({ left, right }) => right > left);
    for (const { left, right, tone } of shown) {
      ctx.fillStyle = colour(tone);
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
    }
    ctx.fillStyle = colour("faint");
    for (const { text, left, right } of phaseLabels(shown, (text) => ctx.measureText(text).width + 5 * ratio)) {
      ctx.fillText(text, (left + right) / 2, bbox.top - 4 * ratio);
    }
    ctx.restore();
  }

  function drawReferences(chart, panel) {
    const { ctx, bbox } = chart;
    const ratio = devicePixelRatio;
    for (const reference of panel.references) {
      const y = chart.valToPos(reference.value, "y", true);
      if (y < bbox.top || y > bbox.top + bbox.height) continue;
      ctx.save();
      ctx.strokeStyle = colour("grey");
      ctx.lineWidth = 1.5 * ratio;
      ctx.setLineDash([6 * ratio, 4 * ratio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.restore();
    }
  }

  // A panel's series as uPlot draws them: the top of a stack first, each lower one over it, lines last.
  function prepare(panel) {
    const columns = [data.clocks[panel.clock]];
    const series = [{}];
    const bands = [];
    const areas = panel.series.filter((item) => item.style === "area");
    const sums = [];
    areas.forEach((item, position) => {
      sums.push(item.values.map((value, row) => (value == null ? null : value + (position ? sums[position - 1][row] || 0 : 0))));
    });
    for (let position = areas.length - 1; position >= 0; position--) {
      const tone = colour(areas[position].colour);
      const single = areas.length === 1;
      columns.push(sums[position]);
      series.push({ stroke: tone, width: single ? 1.5 : 1, fill: single ? faded(tone, 0.18) : onPaper(tone, 0.62), points: { show: false } });
    }
    for (const item of panel.series) {
      const tone = colour(item.colour);
      if (item.band) {
        columns.push(item.band[1], item.band[0]);
        series.push({ stroke: "transparent", width: 0, points: { show: false } }, { stroke: "transparent", width: 0, points: { show: false } });
        bands.push({ series: [series.length - 2, series.length - 1], fill: faded(tone, 0.3) });
      }
      if (item.style === "area") continue;
      columns.push(item.values);
      series.push({ stroke: tone, width: item.style === "dotted" ? 1.5 : 1.4, dash: dash[item.style], points: { show: false } });
    }
    return { columns, series, bands };
  }

  function legendOf(element) {
    const table = element.closest(".panel").querySelector(".legend");
    const moment = table.querySelector(".legend-moment");
    const cells = new Map([...table.querySelectorAll("[data-series]")].map((cell) => [cell.dataset.series, cell]));
    const rest = { moment: moment.textContent, values: new Map([...cells].map(([name, cell]) => [name, cell.textContent])) };
    return {
      show(text, values, unit) {
        moment.textContent = text;
        for (const [name, value] of values) if (cells.has(name)) cells.get(name).textContent = print(value, unit);
      },
      reset() {
        moment.textContent = rest.moment;
        for (const [name, text] of rest.values) cells.get(name).textContent = text;
      },
    };
  }

  // uPlot listens to mice only; a finger moves the cursor, and scrolls the page when it moves up or down.
  function followFingers(chart) {
    const move = (event) => {
      const box = chart.over.getBoundingClientRect();
      chart.setCursor({ left: event.touches[0].clientX - box.left, top: event.touches[0].clientY - box.top }, true, true);
    };
    chart.over.addEventListener("touchstart", move, { passive: true });
    chart.over.addEventListener("touchmove", move, { passive: true });
  }

  const yRange = (panel) => (chart, low, high) => {
    if (panel.scale === "logarithmic") {
      if (low == null || high == null) return [1e-6, 1];
      return [10 ** Math.floor(Math.log10(low) + 1e-9), Math.max(high * 1.15, 10 ** Math.floor(Math.log10(low) + 1e-9) * 10)];
    }
    if (panel.maximum != null) return [0, panel.maximum];
    let top = high == null || high <= 0 ? 1 : high;
    for (const reference of panel.references) if (reference.value < top * 4) top = Math.max(top, reference.value);
    return [0, top * 1.08];
  };

  function axes(panel) {
    const text = colour("soft"), grid = { stroke: colour("grid"), width: 1 };
    const logarithmic = panel.scale === "logarithmic";
    return [
      { stroke: text, font: FONT, grid: { show: false }, ticks: { stroke: colour("rule"), size: 4 }, size: 24, gap: 3, space: 70,
        values: (chart, splits, axis, space, step) => splits.map((value) => clock(value, step)),
        incrs: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800] },
      { stroke: text, font: FONT, grid: logarithmic ? { ...grid, filter: powersOnly } : grid, ticks: { show: false }, size: axisWidth(), gap: 6, space: 34,
        ...(panel.unit.startsWith("bytes") ? { incrs: BINARY_STEPS } : {}),
        ...(logarithmic ? { filter: powersOnly } : {}),
        values: (chart, splits) => axisLabels(panel.unit, splits) },
    ];
  }
  const powersOnly = (chart, splits) => splits.map((value) => (isPower(value) ? value : null));
  const isPower = (value) => value > 0 && Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;

  function drawPanel(element, panel) {
    const { columns, series, bands } = prepare(panel);
    const legend = legends.get(element) || legendOf(element);
    legends.set(element, legend);
    legend.reset();
    const chart = new uPlot({
      ...sizeOf(element), series, bands, padding: [16, 8, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false }, sync: { key: "time", scales: ["x", null], filters: { pub: (type) => type !== "mousedown" && type !== "mouseup" } } },
      scales: {
        x: { time: false, range: () => zoomed || data.span },
        y: panel.scale === "logarithmic" ? { distr: 3, log: 10, range: yRange(panel) } : { range: yRange(panel) },
      },
      axes: axes(panel),
      hooks: {
        drawClear: [drawPhases],
        draw: [(self) => drawReferences(self, panel)],
        setSelect: [(self) => {
          if (self.select.width < 5) return;
          zoom([self.posToVal(self.select.left, "x"), self.posToVal(self.select.left + self.select.width, "x")]);
          self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
        setCursor: [(self) => {
          const row = self.cursor.idx;
          if (row == null || self.cursor.left < 0) return legend.reset();
          const seconds = columns[0][row];
          const phase = phaseAt(seconds);
          legend.show((phase ? phase.label + ", " : "") + seconds.toFixed(1) + " s", panel.series.map((item) => [item.label, item.values[row]]), panel.unit);
        }],
      },
    }, columns, element);
    chart.over.addEventListener("dblclick", () => zoom(null));
    followFingers(chart);
    return { chart, element };
  }

  function drawDistribution(element) {
    const spec = data.distribution;
    const legend = legends.get(element) || legendOf(element);
    legends.set(element, legend);
    const at99 = spec.nines.findIndex((value) => value >= 99.99);
    const rest = () => legend.show("at p99", spec.series.map((item) => [item.label, at99 < 0 ? null : item.values[at99]]), "seconds");
    rest();
    const share = (nines) => {
      const percent = 100 * (1 - 1 / nines);
      return percent >= 99.995 ? percent.toFixed(4) : percent >= 99.95 ? percent.toFixed(3) : percent >= 99.5 ? percent.toFixed(2) : percent.toFixed(1);
    };
    const panel = { unit: "seconds", scale: "logarithmic", references: [], maximum: null };
    const [, y] = axes(panel);
    const chart = new uPlot({
      ...sizeOf(element), padding: [12, 16, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false, setScale: false }, points: { size: 7 } },
      scales: { x: { time: false, distr: 3, log: 10, range: () => [1, spec.nines[spec.nines.length - 1]] }, y: { distr: 3, log: 10, range: yRange(panel) } },
      axes: [
        { stroke: colour("soft"), font: FONT, grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("rule"), size: 4 }, size: 26,
          splits: () => [1, 2, 10, 100, 1e3, 1e4, 1e5, 1e6].filter((value) => value <= spec.nines[spec.nines.length - 1] * 1.001),
          filter: (self, splits) => splits,
          values: (self, splits) => splits.map((value) => (value === 1 ? "" : "p" + plain(100 * (1 - 1 / value)))) },
        y,
      ],
      series: [{}, ...spec.series.map((item) => ({ stroke: colour(item.colour), width: 1.8, dash: dash[item.style], points: { show: false } }))],
      hooks: {
        setCursor: [(self) => {
          const row = self.cursor.idx;
          if (row == null || self.cursor.left < 0) return rest();
          legend.show("at p" + share(spec.nines[row]), spec.series.map((item) => [item.label, item.values[row]]), "seconds");
        }],
      },
    }, [spec.nines, ...spec.series.map((item) => item.values)], element);
    followFingers(chart);
    return { chart, element };
  }

  function zoom(range) {
    zoomed = range;
    for (const { chart } of charts) chart.setScale("x", { min: (range || data.span)[0], max: (range || data.span)[1] });
  }

  function build() {
    for (const { chart } of charts) chart.destroy();
    charts.length = 0;
    if (distribution) distribution.chart.destroy();
    for (const panel of data.panels) {
      const element = document.querySelector(`[data-panel="${panel.id}"]`);
      element.querySelector("noscript")?.remove();
      charts.push(drawPanel(element, panel));
    }
    if (data.distribution) distribution = drawDistribution(document.getElementById("latency-distribution"));
  }

  function fit() {
    if (printing) return;
    for (const { chart, element } of [...charts, ...(distribution ? [distribution] : [])]) {
      if (element.clientWidth && (element.clientWidth !== chart.width || element.clientHeight !== chart.height)) chart.setSize({ width: element.clientWidth, height: element.clientHeight });
    }
  }

  const measured = data.phases.filter((phase) => phase.kind === "measure");
  const showMeasured = () => {
    const margin = (measured[measured.length - 1].end - measured[0].start) * 0.01;
    zoom([measured[0].start - margin, measured[measured.length - 1].end + margin]);
  };
  document.getElementById("zoom-all").addEventListener("click", () => zoom(null));
  const zoomMeasured = document.getElementById("zoom-measured");
  if (measured.length) zoomMeasured.addEventListener("click", showMeasured);
  else zoomMeasured.hidden = true;
  for (const button of document.querySelectorAll(".show")) {
    button.title = "Show these seconds in the panels";
    button.addEventListener("click", () => {
      const start = Number(button.dataset.start), end = Number(button.dataset.end);
      const margin = Math.max((end - start) * 0.05, 0.5);
      zoom([Math.max(data.span[0], start - margin), Math.min(data.span[1], end + margin)]);
      document.getElementById("over-time").scrollIntoView();
    });
  }

  // Paper is white and has no mouse: light colours, everything unfolded, then back.
  let folded = [];
  const beforePrint = () => {
    if (printing) return;
    printing = true;
    root.classList.add("light");
    folded = [...document.querySelectorAll("main details:not([open])")];
    for (const item of folded) item.open = true;
    build();
  };
  const afterPrint = () => {
    if (!printing) return;
    printing = false;
    root.classList.remove("light");
    for (const item of folded) item.open = false;
    build();
  };
  addEventListener("beforeprint", beforePrint);
  addEventListener("afterprint", afterPrint);
  darkScheme.addEventListener("change", build);
  build();
  new ResizeObserver(fit).observe(document.querySelector("main"));
})();
