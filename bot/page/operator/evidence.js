// One result behind an answer: what was asked, its charts, its rows, and the whole of it.

import { api } from "/page/api.js";
import { closed, dialog } from "/page/dialogs.js";
import { h } from "/page/dom.js";
import { drawnChart, sortableTable } from "/page/drawing.js";
import { day, indented, seconds, time, tool, visible } from "/page/words.js";

const MOST_CHARS = 200_000; // of the JSON; a browser lays out no more in a moment
const USUAL = "usual (median)";
const DAY_MS = 86_400_000;

function labels(moments) {
  const isLong = new Date(moments.at(-1)) - new Date(moments[0]) >= DAY_MS;
  return moments.map((at) => isLong ? `${day(at)} ${time(at)}` : time(at));
}

export function chartOf(chart, number = "") {
  const series = chart.lines.map(({ name, values }) => ({ name: visible(name), values }));
  if (chart.usual !== null) series.push({ name: USUAL, values: chart.at.map(() => chart.usual) });
  return drawnChart({
    title: visible([number, chart.product, chart.metric].filter(Boolean).join(" ")), unit: visible(chart.unit), type: "line",
    below: chart.since ? `UTC, unusual since ${time(chart.since)}` : "UTC", categories: labels(chart.at), series,
    moments: chart.at.map((at) => new Date(at).getTime()),
  });
}

export const tableOf = (table, caption) => sortableTable({
  caption, heads: table.heads.map(visible), pageSize: 10,
  rows: table.rows.map((row) => row.map((value) => ({ value, text: typeof value === "number" ? String(Number(value.toPrecision(10))) : visible(value) }))),
});

export async function showEvidence(session, message, number) {
  const found = await api.evidence(session, message, number);
  const content = visible(indented(found.content));
  const drawn = found.charts.length || found.table;
  const body = [
    h("p", {}, visible(found.summary), h("span", { class: "muted" }, ` ${seconds(found.latency_ms)}${found.truncated ? ", cut: there was more" : ""}`)),
    found.asked ? h("pre", { class: "asked", tabindex: "0" }, h("code", {}, visible(found.asked))) : null,
    ...found.charts.map((each) => chartOf(each, found.number)),
    found.table ? tableOf(found.table, `${found.number} ${tool(found.tool)}`) : null,
    h("details", { open: !drawn }, h("summary", {}, "Full result, as the model got it"),
      h("pre", { tabindex: "0" }, h("code", {}, content.slice(0, MOST_CHARS))),
      content.length > MOST_CHARS ? h("p", { class: "muted" }, `${content.length - MOST_CHARS} more characters are not shown.`) : null),
  ];
  await dialog(`${found.number} ${tool(found.tool)}`, body.filter(Boolean), [closed], true);
}
