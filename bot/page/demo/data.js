// `data_visualization` and `data_table` blocks as DOM nodes.

import { plain, richText } from "/page/blocks.js";
import { h } from "/page/dom.js";
import { drawnChart, PALETTE, sortableTable } from "/page/drawing.js";

function pie(block) {
  const all = block.chart.segments.reduce((sum, each) => sum + each.value, 0);
  return h("figure", { class: "chart" }, h("figcaption", {}, block.title),
    h("ul", { class: "legend" }, ...block.chart.segments.map((each, at) =>
      h("li", { class: `ink-${at % PALETTE}` }, `${each.label} ${Math.round(100 * each.value / all)} %`))));
}

export function chartBlock(block) {
  if (block.chart.type === "pie") return pie(block);
  const { categories, x_label: below, y_label: unit } = block.chart.axis_config;
  const series = block.chart.series.map(({ name, data }) =>
    ({ name, values: categories.map((label) => data.find((point) => point.label === label)?.value) }));
  return drawnChart({ title: block.title, unit, below, type: block.chart.type, categories, series });
}

const cellOf = (cell) => ({
  value: cell.type === "raw_number" ? cell.value : cell.text ?? "",
  text: cell.text ?? "",
  node: cell.type === "rich_text" ? () => richText(cell) : null,
});

export function dataTable(block) {
  const [head, ...rows] = block.rows;
  return sortableTable({
    caption: block.caption, heads: head.map((cell) => plain(cell.text ?? "")), rows: rows.map((row) => row.map(cellOf)),
    pageSize: block.page_size ?? 5, nameColumn: block.row_header_column_index ?? 0,
  });
}
