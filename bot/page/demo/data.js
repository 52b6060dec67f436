// Charts and sortable tables: `data_visualization` and `data_table` blocks as DOM nodes.

import { h, plain, richText } from "/page/blocks.js";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 190, LEFT = 52, RIGHT = 12, TOP = 10, BOTTOM = 24;
const LABEL_ROOM = 66; // pixels that a label on the axis of time needs
const PALETTE = 6;

function s(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

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

function drawing(chart, width) {
  const categories = chart.axis_config.categories;
  const across = width - LEFT - RIGHT, down = HEIGHT - TOP - BOTTOM;
  const marks = ticks(chart.series.flatMap((each) => each.data.map((point) => point.value)));
  const [low, high] = [marks[0], marks.at(-1)];
  const isBar = chart.type === "bar";
  const slot = across / categories.length;
  const x = (n) => isBar ? LEFT + slot * (n + 0.5)
    : LEFT + (categories.length > 1 ? n * across / (categories.length - 1) : across / 2);
  const y = (value) => TOP + down * (1 - (value - low) / (high - low));
  const nodes = marks.flatMap((mark) => [
    s("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(mark), y2: y(mark) }),
    s("text", { class: "axis", x: LEFT - 7, y: y(mark) + 4, "text-anchor": "end" }, short(mark)),
  ]);
  const shown = written(categories, across);
  categories.forEach((name, n) => {
    if (!shown[n]) return;
    const anchor = n === 0 ? "start" : n === categories.length - 1 ? "end" : "middle";
    nodes.push(s("text", { class: "axis", x: x(n), y: HEIGHT - 6, "text-anchor": anchor }, name));
  });
  chart.series.forEach((series, at) => {
    const values = categories.map((name) => series.data.find((point) => point.label === name)?.value);
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
  return s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, "aria-hidden": "true" }, ...nodes);
}

function legend(chart) {
  return h("ul", { class: "legend" }, ...chart.series.map((series, at) =>
    h("li", { class: `ink-${at % PALETTE}` }, series.name)));
}

// What the lines say, for whoever does not see them.
function spoken(block) {
  const told = block.chart.series.map((series) => {
    const values = series.data.map((point) => point.value);
    return `${series.name}: from ${values[0]} to ${values.at(-1)}, at least ${Math.min(...values)}, at most ${Math.max(...values)}`;
  });
  return [block.title, ...told, block.chart.axis_config.x_label ?? ""].join(". ");
}

function pie(block) {
  const all = block.chart.segments.reduce((sum, each) => sum + each.value, 0);
  return h("figure", { class: "chart" }, h("figcaption", {}, block.title),
    h("ul", { class: "legend" }, ...block.chart.segments.map((each, at) =>
      h("li", { class: `ink-${at % PALETTE}` }, `${each.label} ${Math.round(100 * each.value / all)} %`))));
}

export function chartBlock(block) {
  if (block.chart.type === "pie") return pie(block);
  const axis = block.chart.axis_config;
  const frame = h("div", { class: "drawing", role: "img", "aria-label": spoken(block) });
  const unit = axis.y_label ? h("span", { class: "unit" }, axis.y_label) : null;
  let drawn = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    if (!width || width === drawn) return;
    drawn = width;
    frame.replaceChildren(drawing(block.chart, width));
  }).observe(frame);
  return h("figure", { class: "chart" },
    h("figcaption", {}, block.title, unit), frame,
    h("div", { class: "below" }, legend(block.chart), axis.x_label ? h("span", { class: "when" }, axis.x_label) : null));
}

const sortable = (cell) => cell.type === "raw_number" ? cell.value : (cell.text ?? "");
const order = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });

const LONG = 40; // characters of a cell that gets a wider column

export function dataTable(block) {
  const [head, ...rows] = block.rows;
  const size = block.page_size ?? 5;
  const state = { by: -1, down: false, page: 0 };
  const body = h("tbody"), count = h("span", { class: "muted" });
  const turn = (by) => h("button", { class: "btn is-plain", type: "button", onclick: () => { state.page += by; show(); } }, by < 0 ? "Back" : "Next");
  const back = turn(-1), next = turn(1);
  const heads = head.map((cell, at) => h("th", { scope: "col" }, h("button", {
    class: "sort", type: "button",
    onclick: () => { state.down = state.by === at && !state.down; state.by = at; state.page = 0; show(); },
  }, plain(cell.text ?? ""))));
  const cellNode = (cell, at) => h(at === (block.row_header_column_index ?? 0) ? "th" : "td",
    { class: cell.type === "raw_number" ? "is-number" : (cell.text ?? "").length > LONG ? "is-long" : "" }, cell.type === "rich_text" ? richText(cell) : cell.text ?? "");
  function show() {
    const sorted = state.by < 0 ? rows : [...rows].sort((a, b) => order(sortable(a[state.by]), sortable(b[state.by])) * (state.down ? -1 : 1));
    const from = state.page * size;
    body.replaceChildren(...sorted.slice(from, from + size).map((row) => h("tr", {}, ...row.map(cellNode))));
    heads.forEach((node, at) => node.setAttribute("aria-sort", at !== state.by ? "none" : state.down ? "descending" : "ascending"));
    count.textContent = `${from + 1}–${Math.min(from + size, rows.length)} of ${rows.length}`;
    back.disabled = from === 0;
    next.disabled = from + size >= rows.length;
  }
  show();
  return h("div", { class: "data-table" },
    h("div", { class: "table" }, h("table", {}, h("caption", {}, block.caption), h("thead", {}, h("tr", {}, ...heads)), body)),
    rows.length > size ? h("div", { class: "row pages" }, back, next, count) : null);
}
