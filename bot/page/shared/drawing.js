// Charts and sortable tables, drawn from plain values.

import { h, s } from "/page/dom.js";

const LEFT = 52, RIGHT = 12, TOP = 10, BOTTOM = 24;
const heightOf = (width) => width < 400 ? 130 : 190; // a phone shows the answer and its chart
const LABEL_ROOM = 66; // pixels that a label on the axis of time needs
export const PALETTE = 6;

// Four steps of 1, 2 or 5 times a power of ten, around all values.
function ticks(values) {
  const low = Math.min(...values, 0), high = Math.max(...values, 0);
  const rough = (high - low || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((each) => each >= rough);
  const first = Math.floor(low / step), last = Math.max(Math.ceil(high / step), first + 1);
  return Array.from({ length: last - first + 1 }, (_, n) => Number(((first + n) * step).toPrecision(12)));
}

const short = (value) => Math.abs(value) >= 1000
  ? new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value)
  : String(Number(value.toPrecision(4)));

// Which labels are written: as many as there is room for, and one that says more than its neighbours.
function written(categories, room) {
  const every = Math.max(1, Math.ceil(categories.length / Math.max(1, Math.floor(room / LABEL_ROOM))));
  const usual = Math.min(...categories.map((each) => each.length));
  const telling = categories.findIndex((each) => each.length > usual);
  return categories.map((_, n) => n === telling
    || (n % every === 0 && (telling < 0 || Math.abs(n - telling) * room / categories.length > LABEL_ROOM)));
}

// The same where points stand at their moments: the last, and whichever keep their distance before it.
function apart(places) {
  const end = places.at(-1);
  let before = -Infinity;
  return places.map((place, n) => {
    const fits = n === places.length - 1 || (place - before >= LABEL_ROOM && end - place >= LABEL_ROOM);
    if (fits) before = place;
    return fits;
  });
}

function drawing(chart, width) {
  const { categories } = chart;
  const height = heightOf(width), across = width - LEFT - RIGHT, down = height - TOP - BOTTOM;
  const marks = ticks(chart.series.flatMap((each) => each.values));
  const [low, high] = [marks[0], marks.at(-1)];
  const isBar = chart.type === "bar";
  const slot = across / categories.length;
  const [first, last] = [chart.moments?.[0], chart.moments?.at(-1)];
  const x = (n) => chart.moments ? LEFT + across * (chart.moments[n] - first) / (last - first || 1)
    : isBar ? LEFT + slot * (n + 0.5)
    : LEFT + (categories.length > 1 ? n * across / (categories.length - 1) : across / 2);
  const y = (value) => TOP + down * (1 - (value - low) / (high - low));
  const nodes = marks.flatMap((mark) => [
    s("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(mark), y2: y(mark) }),
    s("text", { class: "axis", x: LEFT - 7, y: y(mark) + 4, "text-anchor": "end" }, short(mark)),
  ]);
  const shown = chart.moments ? apart(categories.map((_, n) => x(n))) : written(categories, across);
  categories.forEach((name, n) => {
    if (!shown[n]) return;
    const anchor = n === 0 ? "start" : n === categories.length - 1 ? "end" : "middle";
    nodes.push(s("text", { class: "axis", x: x(n), y: height - 6, "text-anchor": anchor }, name));
  });
  chart.series.forEach((series, at) => {
    const { values } = series;
    const tone = `ink-${at % PALETTE}`;
    const path = values.map((value, n) => `${n ? "L" : "M"}${x(n).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    if (isBar) {
      const wide = slot * 0.7 / chart.series.length;
      values.forEach((value, n) => nodes.push(s("rect", {
        class: `fill ${tone}`, x: x(n) - slot * 0.35 + at * wide, width: wide,
        y: Math.min(y(value), y(0)), height: Math.abs(y(value) - y(0)),
      })));
    } else {
      if (chart.type === "area") nodes.push(s("path", { class: `fill ${tone}`, d: `${path}L${x(values.length - 1)} ${y(0)}L${x(0)} ${y(0)}Z` }));
      nodes.push(s("path", { class: `line ${tone}`, d: path }));
    }
    values.forEach((value, n) => nodes.push(s("circle", { class: `point ${tone}`, cx: x(n), cy: y(value), r: 4 },
      s("title", {}, `${series.name}, ${categories[n]}: ${value}`))));
  });
  return s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" }, ...nodes);
}

function legend(chart) {
  return h("ul", { class: "legend" }, ...chart.series.map((series, at) =>
    h("li", { class: `ink-${at % PALETTE}` }, series.name)));
}

// What the lines say, for whoever does not see them.
function spoken(chart) {
  const told = chart.series.map(({ name, values }) =>
    `${name}: from ${values[0]} to ${values.at(-1)}, at least ${Math.min(...values)}, at most ${Math.max(...values)}`);
  return [chart.title, ...told, chart.below ?? ""].join(". ");
}

// `chart`: title, unit, below, type ("line", "area" or "bar"), categories, and series of a name and a value for each;
// `moments` of the categories, where they stand apart as these do.
export function drawnChart(chart) {
  const frame = h("div", { class: "drawing", role: "img", "aria-label": spoken(chart) });
  const unit = chart.unit ? h("span", { class: "unit" }, chart.unit) : null;
  let drawn = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    if (!width || width === drawn) return;
    drawn = width;
    frame.replaceChildren(drawing(chart, width));
  }).observe(frame);
  return h("figure", { class: "chart" },
    h("figcaption", {}, chart.title, unit), frame,
    h("div", { class: "below" }, legend(chart), chart.below ? h("span", { class: "when" }, chart.below) : null));
}

const order = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });

const LONG = 40; // characters of a cell that gets a wider column

// A cell: `value`, a number or a text, by which it is sorted; `node()` where it is shown as something else.
export function sortableTable({ caption, heads, rows, pageSize = 5, nameColumn = 0 }) {
  const state = { by: -1, down: false, page: 0 };
  const body = h("tbody"), count = h("span", { class: "muted" });
  const turn = (by) => h("button", { class: "btn is-plain", type: "button", onclick: () => { state.page += by; show(); } }, by < 0 ? "Back" : "Next");
  const back = turn(-1), next = turn(1);
  const headNodes = heads.map((text, at) => h("th", { scope: "col" }, h("button", {
    class: "sort", type: "button",
    onclick: () => { state.down = state.by === at && !state.down; state.by = at; state.page = 0; show(); },
  }, text)));
  const cellNode = (cell, at) => {
    const isNumber = typeof cell.value === "number";
    return h(at === nameColumn ? "th" : "td", {
      scope: at === nameColumn ? "row" : null, class: isNumber ? "is-number" : String(cell.value).length > LONG ? "is-long" : "",
    }, cell.node ? cell.node() : cell.text ?? String(cell.value));
  };
  function show() {
    const sorted = state.by < 0 ? rows : [...rows].sort((a, b) => order(a[state.by].value, b[state.by].value) * (state.down ? -1 : 1));
    const from = state.page * pageSize;
    body.replaceChildren(...sorted.slice(from, from + pageSize).map((row) => h("tr", {}, ...row.map(cellNode))));
    headNodes.forEach((node, at) => node.setAttribute("aria-sort", at !== state.by ? "none" : state.down ? "descending" : "ascending"));
    count.textContent = `${from + 1}–${Math.min(from + pageSize, rows.length)} of ${rows.length}`;
    back.disabled = from === 0;
    next.disabled = from + pageSize >= rows.length;
  }
  show();
  return h("div", { class: "data-table" },
    h("div", { class: "table", tabindex: "0", role: "region", "aria-label": caption }, h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...headNodes)), body)),
    rows.length > pageSize ? h("div", { class: "row pages" }, back, next, count) : null);
}
