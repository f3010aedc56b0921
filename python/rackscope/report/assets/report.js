// Zooms the charts of the page and reads values from them; the charts are drawn without it. Fetches nothing.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  let zoomed = data.span;

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
  };
  const print = (value, unit) => (value == null || !isFinite(value) ? "–" : formatters[unit](value));

  const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400];
  const tickTime = (seconds, step) => {
    if (data.span[1] < 120) return seconds.toFixed(step >= 1 ? 0 : step >= 0.1 ? 1 : 2) + " s";
    const whole = Math.floor(Math.abs(seconds) + 1e-6);
    const rest = step < 1 ? (Math.abs(seconds) - whole).toFixed(1).slice(1) : "";
    const two = (number) => String(number).padStart(2, "0");
    const hours = Math.floor(whole / 3600), minutes = Math.floor((whole % 3600) / 60);
    return (seconds < 0 ? "-" : "") + (hours ? hours + ":" + two(minutes) : minutes) + ":" + two(whole % 60) + rest;
  };

  const legendOf = (element) => {
    const table = element.closest(".panel").querySelector(".legend");
    const cells = [table.querySelector(".legend-moment"), ...table.querySelectorAll("[data-series]")];
    const rest = cells.map((cell) => cell.textContent);
    return {
      show(moment, series, row, unit) {
        cells[0].textContent = moment;
        for (const item of series) {
          const cell = cells.find((one) => one.dataset.series === item.label);
          if (cell) cell.textContent = print(item.values[row], unit);
        }
      },
      reset: () => cells.forEach((cell, at) => { cell.textContent = rest[at]; }),
    };
  };
  const chartOf = (element, spec, xs) => {
    const frame = element.querySelector(".lines");
    const cursor = frame.appendChild(Object.assign(document.createElement("div"), { className: "cursor", hidden: true }));
    return { frame, cursor, spec, xs, legend: legendOf(element), ticks: frame.querySelector(".ticks-x"), names: [...frame.querySelectorAll(".phase-name")] };
  };
  const charts = data.panels.map((panel) => chartOf(document.querySelector(`[data-panel="${panel.id}"]`), panel, data.clocks[panel.clock]));

  // The row nearest to a value; rows rise.
  const nearest = (xs, value) => {
    let low = 0, high = xs.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (xs[middle] < value) low = middle; else high = middle;
    }
    return Math.abs(xs[high] - value) < Math.abs(xs[low] - value) ? high : low;
  };
  const fractionAt = (frame, event) => {
    const box = frame.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
  };
  const point = (chart, fraction, moment, row) => {
    chart.cursor.hidden = false;
    chart.cursor.style.left = 100 * fraction + "%";
    chart.legend.show(moment, chart.spec.series, row, chart.spec.unit);
  };
  const leave = (chart) => { chart.cursor.hidden = true; chart.legend.reset(); };

  const secondsAt = (fraction) => zoomed[0] + fraction * (zoomed[1] - zoomed[0]);
  const pointAll = (fraction) => {
    for (const chart of charts) {
      const row = nearest(chart.xs, secondsAt(fraction)), seconds = chart.xs[row];
      const phase = data.phases.find(({ start, end }) => seconds >= start && seconds <= end);
      point(chart, fraction, (phase ? phase.label + ", " : "") + seconds.toFixed(1) + " s", row);
    }
  };

  function zoom(range) {
    zoomed = range;
    const width = range[1] - range[0], whole = data.span[1] - data.span[0];
    const percent = (seconds) => 100 * (seconds - range[0]) / width + "%";
    for (const chart of charts) {
      chart.frame.querySelector("svg").setAttribute("viewBox", `${10000 * (range[0] - data.span[0]) / whole} 0 ${10000 * width / whole} 1000`);
      const step = STEPS.find((one) => one >= width / Math.max(chart.frame.clientWidth / 70, 2)) || STEPS[STEPS.length - 1];
      chart.ticks.replaceChildren();
      for (let at = Math.ceil(range[0] / step - 1e-9); at * step <= range[1] + 1e-9; at++) {
        const tick = chart.ticks.appendChild(Object.assign(document.createElement("span"), { className: "tick-x", textContent: tickTime(at * step, step) }));
        tick.style.left = percent(at * step);
      }
      chart.names.forEach((name) => name.remove());
      const shown = data.phases.filter((phase) => phase.end > range[0] && phase.start < range[1]);
      chart.names = shown.map((phase) => {
        const start = Math.max(phase.start, range[0]), end = Math.min(phase.end, range[1]);
        const name = chart.frame.appendChild(Object.assign(document.createElement("span"), { className: "phase-name", textContent: phase.label }));
        Object.assign(name.style, { left: percent(start), width: 100 * (end - start) / width + "%" });
        return name;
      });
      // Each repetition's name, or its number, or nothing: the same for all of them.
      const measured = chart.names.filter((_, at) => shown[at].kind === "measure");
      for (const textOf of [(phase) => phase.repetition ?? phase.name, () => ""]) {
        if (measured.every((name) => name.scrollWidth <= name.clientWidth)) break;
        chart.names.forEach((name, at) => { if (shown[at].kind === "measure") name.textContent = textOf(shown[at]); });
      }
      for (const name of chart.names) if (name.scrollWidth > name.clientWidth) name.textContent = "";
    }
  }

  for (const { frame } of charts) {
    let start = null, selection = null;
    frame.addEventListener("pointermove", (event) => {
      const at = fractionAt(frame, event);
      pointAll(at);
      if (selection) Object.assign(selection.style, { left: 100 * Math.min(start, at) + "%", width: 100 * Math.abs(at - start) + "%" });
    });
    frame.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" || event.button) return;
      start = fractionAt(frame, event);
      selection = frame.appendChild(Object.assign(document.createElement("div"), { className: "selection" }));
      frame.setPointerCapture(event.pointerId);
    });
    const end = (event) => {
      if (!selection) return;
      selection.remove();
      selection = null;
      const ends = [start, fractionAt(frame, event)].sort((a, b) => a - b);
      if (event.type === "pointerup" && (ends[1] - ends[0]) * frame.clientWidth >= 5) zoom(ends.map(secondsAt));
    };
    frame.addEventListener("pointerup", end);
    frame.addEventListener("pointercancel", end);
    frame.addEventListener("pointerleave", () => charts.forEach(leave));
    frame.addEventListener("dblclick", () => zoom(data.span));
  }

  if (data.distribution) {
    const nines = data.distribution.nines.map(Math.log10);
    const chart = chartOf(document.getElementById("latency-distribution"), data.distribution, nines);
    const named = (power) => Number((100 * (1 - 10 ** -power)).toFixed(Math.max(1, Math.ceil(power)))) + "";
    chart.frame.addEventListener("pointermove", (event) => {
      const row = nearest(nines, fractionAt(chart.frame, event) * nines[nines.length - 1]);
      point(chart, nines[row] / nines[nines.length - 1], "at p" + named(nines[row]), row);
    });
    chart.frame.addEventListener("pointerleave", () => leave(chart));
  }

  const measured = data.phases.filter((phase) => phase.kind === "measure");
  const around = (start, end, margin) => zoom([Math.max(data.span[0], start - margin), Math.min(data.span[1], end + margin)]);
  document.getElementById("zoom-all").addEventListener("click", () => zoom(data.span));
  const zoomMeasured = document.getElementById("zoom-measured");
  zoomMeasured.hidden = !measured.length;
  zoomMeasured.addEventListener("click", () => {
    const start = measured[0].start, end = measured[measured.length - 1].end;
    around(start, end, (end - start) * 0.01);
  });
  for (const button of document.querySelectorAll(".show")) {
    button.title = "Show these seconds in the panels";
    button.addEventListener("click", () => {
      const start = Number(button.dataset.start), end = Number(button.dataset.end);
      around(start, end, Math.max((end - start) * 0.05, 0.5));
      document.getElementById("over-time").scrollIntoView();
    });
  }

  // On paper everything is unfolded, and light.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("main details:not([open])")];
    for (const item of folded) item.open = true;
    document.documentElement.classList.add("light");
  });
  addEventListener("afterprint", () => {
    for (const item of folded) item.open = false;
    document.documentElement.classList.remove("light");
  });
})();
