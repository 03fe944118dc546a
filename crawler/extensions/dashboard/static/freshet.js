// Pages work without this file: it draws the tables of class "plot" as curves. The first column is
// x (times or numbers), each other one a curve; "NAME, low" and "NAME, high" bound an interval.
"use strict";
const STYLES = ["a", "b", "c", "d", "e", "f"];
const EDGE = /, (low|high)$/;
const curveOf = (name) => name.replace(EDGE, "");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dates = (_chart, all, _axis, _space, step) => all.map((at) =>
  new Date(at * 1000).toISOString().slice(...(step < 86400 ? [11, 16] : [5, 10])));

function number(cell) {
  const time = cell.querySelector("time"), text = cell.textContent.replace(/[,\s%]/g, "");
  if (time) return Date.parse(time.dateTime) / 1000;
  return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
}

const heightOf = (table) => Number(table.dataset.height) || 260;

function plotted(table, names, data, holder) {
  const unit = table.dataset.unit || "", time = table.tBodies[0].querySelector("time") !== null;
  const curves = [...new Set(names.slice(1).map(curveOf))];
  const style = (name) => `--${STYLES[curves.indexOf(curveOf(name)) % STYLES.length]}`;
  const told = (_, value) =>
    value == null ? "–" : value.toLocaleString("en", { maximumSignificantDigits: 4 }) + unit;
  const line = { stroke: css("--line"), width: 1 };
  const axis = { stroke: css("--faint"), font: "12px system-ui", grid: line, ticks: line };
  const series = names.slice(1).map((name) => ({
    label: name, value: told, stroke: css(style(name)), width: EDGE.test(name) ? 0 : 2,
    class: EDGE.test(name) ? "edge" : "curve", points: { show: EDGE.test(name) ? false : undefined },
    dash: (css(`${style(name)}-dash`).match(/\d+/g) || []).map(Number),
  }));
  const bands = curves.map((name) => [`${name}, high`, `${name}, low`].map((it) => names.indexOf(it)))
    .filter((edges) => Math.min(...edges) > 0)
    .map((edges) => ({ series: edges, fill: `${css(style(names[edges[0]]))}2e` }));
  return new uPlot({
    title: table.caption?.textContent, width: holder.clientWidth, height: heightOf(table), bands,
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
    series: [{ label: names[0], value: time ? "{YYYY}-{MM}-{DD} {HH}:{mm}" : told }, ...series],
    scales: { x: { time }, y: { range: (_, low, high) => [Math.min(low, 0), high * 1.05 || 1] } },
    axes: [time ? { ...axis, values: dates } : axis,
      { ...axis, size: 60, values: (chart, all) => all.map((value) => told(chart, value)) }],
    cursor: { drag: { x: false, y: false } },
    legend: { markers: { dash: (chart, i) => (chart.series[i].dash?.length ? "dashed" : "solid") } },
    hooks: { setSeries: [(chart, at, { show }) => names.forEach((name, i) => {
      if (show != null && EDGE.test(name) && curveOf(name) === names[at]) chart.setSeries(i, { show });
    })] },
  }, data, holder);
}

function draw(table) {
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const data = names.map((_, i) => [...table.tBodies[0].rows].map((row) => number(row.cells[i])));
  if (data[0].length < 2) return;
  const holder = Object.assign(document.createElement("div"), { className: "chart", role: "img",
    ariaLabel: `${table.caption?.textContent || "Curves"}; the table follows` });
  const details = document.createElement("details"), place = table.closest(".wide") || table;
  details.append(Object.assign(document.createElement("summary"), { textContent: "As a table" }));
  place.before(holder, details);
  details.append(place);
  table.classList.add("drawn");
  let chart = plotted(table, names, data, holder);
  new ResizeObserver(() => chart.setSize({ width: holder.clientWidth, height: heightOf(table) })).observe(holder);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    chart.destroy();
    chart = plotted(table, names, data, holder);
  });
}

const drawAll = (root) => root.querySelectorAll("table.plot:not(.drawn)").forEach(draw);
drawAll(document);
document.addEventListener("htmx:load", (event) => drawAll(event.detail.elt));

// The live part stays as it is while somebody is in it by keyboard, and says when it is live no more.
document.addEventListener("htmx:sseBeforeMessage", (event) => {
  if (event.target.contains(document.activeElement)) event.preventDefault();
});
for (const [name, hidden] of [["htmx:sseError", false], ["htmx:sseOpen", true]])
  document.addEventListener(name, () => { document.getElementById("lost").hidden = hidden; });
// A server that answers, but not to this login: loading the page leads to a new one. Of one that does not, #lost tells.
document.addEventListener("htmx:sseError", () => fetch("/settings", { method: "HEAD" }).then(
  ({ status }) => status === 401 && location.reload(), () => {}));
