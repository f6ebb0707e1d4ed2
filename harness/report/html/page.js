"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 600px)");

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function axis(given) {
    const lines = { gridcolor: colour("--line"), zerolinecolor: colour("--line"), automargin: true };
    return Object.assign(lines, given);
  }

  function look(chart) {
    const layout = chart.layout;
    const made = Object.assign({ height: 340, margin: { l: 55, r: 12, t: 10, b: 45 }, hovermode: "closest" }, layout);
    made.paper_bgcolor = made.plot_bgcolor = "rgba(0,0,0,0)";
    // the buttons lie over the plot on touch screens, where they never hide
    made.modebar = { bgcolor: "rgba(0,0,0,0)", color: colour("--faint") };
    made.font = { color: colour("--ink"), size: narrow.matches ? 11 : 12 };
    made.legend = { orientation: "h", y: 1.02, x: 0, yanchor: "bottom", traceorder: "normal" };
    made.xaxis = axis(layout.xaxis);
    made.yaxis = axis(layout.yaxis);
    if (narrow.matches && chart.narrow) {
      made.yaxis.ticktext = chart.narrow;
      made.height = 1.8 * layout.height - 120;
    }
    if (layout.yaxis2) made.yaxis2 = Object.assign(axis(layout.yaxis2), { showgrid: false });
    return made;
  }

  // on paper nothing opens: what a reader needs is unfolded, in the colours and the width of paper
  let printing = false;
  const unfolded = [];
  window.addEventListener("beforeprint", function () {
    document.documentElement.classList.add("paper");
    printing = true;
    document.querySelectorAll(".advice details, .finding.error, .finding.warning, details.others").forEach(function (one) {
      if (!one.open) unfolded.push(one);
      one.open = true;
    });
    redraw();
  });
  window.addEventListener("afterprint", function () {
    document.documentElement.classList.remove("paper");
    printing = false;
    unfolded.splice(0).forEach((one) => { one.open = false; });
    redraw();
  });

  const drawn = new Map();
  function draw(place, chart) {
    drawn.set(place, chart);
    const options = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"] };
    const layout = look(chart);
    layout.width = printing ? place.clientWidth : undefined;
    return Plotly.react(place, chart.traces, layout, options);
  }
  function redraw() {
    drawn.forEach((chart, place) => (place.isConnected ? draw(place, chart) : drawn.delete(place)));
  }
  dark.addEventListener("change", redraw);
  narrow.addEventListener("change", redraw);

  function make(tag, text, parent) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  }

  function pairs(rows, parent) {
    const body = make("tbody", undefined, make("table", undefined, parent));
    rows.forEach(([name, value]) => {
      const row = make("tr", undefined, body);
      make("th", name, row).scope = "row";
      make("td", value, row);
    });
  }

  function folded(title, parent, fill) {
    const details = make("details", undefined, parent);
    make("summary", title, details);
    details.addEventListener("toggle", function () {
      if (details.open && details.childElementCount === 1) fill(details);
    });
  }

  // a logarithmic axis labelled at 1, 2 and 5 of each decade, in whole numbers
  function decades(sorted) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(sorted[0])); power <= Math.log10(sorted[sorted.length - 1]); power += 1) {
      ticks.push(...[1, 2, 5].map((digit) => digit * 10 ** power));
    }
    return { type: "log", rangemode: "normal", tickmode: "array", tickvals: ticks, ticktext: ticks.map((t) => String(Number(t.toPrecision(3)))) };
  }

  function traceChart(trace) {
    const first = trace.steady_from === null ? Infinity : trace.steady_from;
    const part = (wanted) => trace.step.map((step, i) => ((step >= first) === wanted ? trace.ms[i] : null));
    const dots = (name, steady, tint) => ({
      type: "scatter", mode: "markers", name: name, x: trace.step, y: part(steady), marker: { color: tint, size: 5 },
    });
    const traces = [dots("steady", true, "#0072B2"), dots("left out", false, "#999999")];
    const layout = { xaxis: { title: { text: "step" } }, yaxis: { title: { text: "step time, ms" }, rangemode: "tozero" },
      height: 300, showlegend: true };
    const sorted = trace.ms.slice().sort((a, b) => a - b);
    if (sorted[sorted.length - 1] > 8 * sorted[sorted.length >> 1] && sorted[0] > 0) Object.assign(layout.yaxis, decades(sorted));
    if (trace.occupancy.length) {
      traces.push({ type: "scatter", mode: "lines", name: "batches ready", x: trace.step, y: trace.occupancy, yaxis: "y2",
        line: { color: "#D55E00", width: 1, shape: "hv" } });
      layout.yaxis2 = { title: { text: "batches ready" }, overlaying: "y", side: "right", rangemode: "tozero",
        tickmode: "auto", nticks: 6 };
      layout.margin = { l: 55, r: 50, t: 10, b: 45 };
    }
    return { traces: traces, layout: layout };
  }

  function showRun(run, parent) {
    const box = make("details", undefined, parent);
    box.className = "run";
    const rate = run.numbers.length ? ": " + run.numbers[0][1] : "";
    make("summary", run.name + ", " + run.state + rate, box);
    if (run.reason) make("p", run.reason, box);
    pairs(run.numbers.concat([["directory", run.directory]]), box);
    if (run.trace) {
      const thinned = run.trace.step.length < run.trace.of ? " (" + run.trace.step.length + " of " + run.trace.of + " steps)" : "";
      folded("step trace" + thinned, box, function (inside) {
        const place = make("div", undefined, inside);
        place.className = "plot trace";
        draw(place, traceChart(run.trace));
      });
    }
    folded("environment", box, (inside) => pairs(run.environment, inside));
    if (run.script) folded("job script", box, (inside) => make("pre", run.script, inside));
  }

  function showPoint(point, columns) {
    const row = document.createElement("tr");
    row.className = "detail";
    const cell = make("td", undefined, row);
    cell.colSpan = columns;
    const inside = make("div", undefined, cell);
    inside.className = "inside";
    make("strong", point.label + " ", inside);
    make("code", point.id, inside);
    if (point.findings.length) {
      const list = make("ul", undefined, inside);
      point.findings.forEach((finding) => make("li", finding, list));
    }
    folded("all axes", inside, (box) => pairs(point.axes, box));
    point.runs.forEach((run) => showRun(run, inside));
    return row;
  }

  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const headers = Array.from(table.tHead.rows[0].cells);
  const rows = Array.from(body.rows);

  body.addEventListener("click", function (event) {
    const button = event.target.closest("button.open");
    if (!button) return;
    const row = button.closest("tr");
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    if (open) row.nextElementSibling.remove();
    else row.after(showPoint(data.points[Number(row.dataset.point)], headers.length));
  });

  function closeAll() {
    body.querySelectorAll("tr.detail").forEach((row) => row.remove());
    body.querySelectorAll("button.open").forEach((button) => button.setAttribute("aria-expanded", "false"));
  }

  function compare(numeric, sign) {
    return function (a, b) {
      const x = a.key, y = b.key;
      if (x === "" || y === "") return (x === "" ? 1 : 0) - (y === "" ? 1 : 0);  // unknown last, both ways
      const order = numeric ? Number(x) - Number(y) : x.localeCompare(y, undefined, { numeric: true });
      return sign * order || a.place - b.place;
    };
  }

  headers.forEach(function (header, column) {
    header.querySelector("button").addEventListener("click", function () {
      closeAll();
      const sign = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      const keyed = rows.map((row, place) => ({ row: row, place: place, key: row.cells[column].dataset.key }));
      keyed.sort(compare(header.classList.contains("number"), sign));
      body.append(...keyed.map((item) => item.row));
    });
  });

  const filter = document.getElementById("filter");
  const menus = Array.from(document.querySelectorAll(".filters select"));
  const shown = document.getElementById("shown");
  const texts = rows.map((row) => Array.from(row.cells, (cell) => cell.textContent));

  function apply() {
    closeAll();
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach(function (row, number) {
      const whole = texts[number].join(" ").toLowerCase();
      const fits = words.every((word) => whole.includes(word)) &&
        menus.every((menu) => menu.value === "" || texts[number][Number(menu.dataset.column)] === menu.value);
      row.hidden = !fits;
      count += fits ? 1 : 0;
    });
    shown.textContent = count + " of " + rows.length + " points";
  }
  filter.addEventListener("input", apply);
  menus.forEach((menu) => menu.addEventListener("change", apply));
  document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
  apply();

  function chosen(chart, number) {
    if (!chart.choices) return chart;
    const choice = chart.choices[number];
    if (choice.point === undefined) return choice;
    const runs = data.points[choice.point].runs.filter((run) => run.trace);
    return traceChart((runs.find((run) => run.state === "SUCCEEDED") || runs[0]).trace);
  }

  document.querySelectorAll(".chart").forEach(function (figure) {
    const place = figure.querySelector(".plot");
    const menu = figure.querySelector(".choose");
    const chart = data.charts[Number(place.dataset.chart)];
    draw(place, chosen(chart, 0));
    if (menu) menu.addEventListener("change", () => draw(place, chosen(chart, Number(menu.value))));
  });
})();
