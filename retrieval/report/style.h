// The style sheet of a report, and the script that browses its queries. Neither contains a
// character that HTML or XML would take for markup, so that the page is valid as both.
#pragma once

namespace rk {

// The series have Okabe and Ito's colours, which colour-blind readers can tell apart (darker on a
// light page, lighter on a dark one).
inline constexpr const char* kReportStyle = R"css(
:root { color-scheme: light dark;
  --paper: #ffffff; --soft: #f3f5f7; --line: #cdd3da; --ink: #1a1f26; --quiet: #55606c;
  --link: #0b5cad; --c0: #0072b2; --c1: #c44e00; --c2: #00785a; --c3: #a8488a;
  --right: #00694e; --wrong: #b3261e; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #11161c; --soft: #1b222b; --line: #3a4450; --ink: #e7eaee; --quiet: #a3afbb;
  --link: #7ab8ff; --c0: #56b4e9; --c1: #ff9d4d; --c2: #2fc69b; --c3: #e79ccb;
  --right: #43cf9f; --wrong: #ff8a80; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 72rem; padding: 1.2rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .4rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .5rem; padding-top: .6rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; overflow-wrap: anywhere; }
p { margin: .4rem 0 .8rem; max-width: 46rem; overflow-wrap: anywhere; }
.remark, figcaption + .legend, .under { color: var(--quiet); font-size: .9rem; }
.remark { margin: .2rem 0; }
a { color: var(--link); }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; background: var(--paper); padding: .5rem; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; list-style: none; padding: 0;
  margin: .8rem 0; }
nav a { display: inline-block; padding: .25rem 0; }
.wide { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .4rem 0; }
th, td { text-align: right; padding: .28rem .7rem; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { font-weight: 600; }
tbody th { font-weight: 400; }
th:first-child, td:first-child, .text { text-align: left; }
td:first-child, th:first-child { overflow-wrap: break-word; max-width: 24rem; }
td.text { min-width: 10rem; }
.numbers td, .numbers th { padding: .12rem .7rem; font-size: .85rem; }
.interval { color: var(--quiet); white-space: nowrap; }
.best { font-weight: 700; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .7rem;
  margin: 1rem 0; padding: 0; list-style: none; }
.tiles li { background: var(--soft); border-radius: .5rem; padding: .6rem .8rem; }
.tiles .value { display: block; font-size: 1.65rem; font-weight: 650; line-height: 1.25; }
.tiles .under { display: block; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20.5rem, 100%), 1fr));
  gap: 0 1.6rem; }
.pairs { grid-template-columns: repeat(auto-fill, minmax(min(max(20.5rem, 34%), 100%), 1fr)); }
figure { margin: 0 0 1.4rem; min-width: 0; }
@supports (grid-template-rows: subgrid) {
  .chart { display: grid; grid-row: span 5; grid-template: subgrid / minmax(0, 1fr); }
}
.tables { display: flex; flex-wrap: wrap; gap: 0 2rem; }
.tables th, .tables td { padding: .28rem .45rem; }
.tables div { max-width: 100%; }
figcaption { font-weight: 600; overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; align-content: flex-start; gap: 0 1rem;
  list-style: none; padding: 0; margin: .1rem 0; font-size: .9rem; }
.legend svg { vertical-align: -2px; }
.plot { display: block; width: 100%; max-width: 28rem; height: auto; overflow: visible; }
.plot text { font-size: 14px; fill: var(--quiet); }
.plot .tx { text-anchor: middle; }
.plot .ty { text-anchor: end; }
.plot .name { fill: var(--ink); }
.grid { stroke: var(--line); stroke-width: .7; fill: none; opacity: .7; }
.axis { stroke: var(--quiet); stroke-width: 1; fill: none; }
.mark { stroke-width: 1.4; stroke-dasharray: 2 2; fill: none; }
.k0 { stroke: var(--c0); } .k1 { stroke: var(--c1); }
.k2 { stroke: var(--c2); } .k3 { stroke: var(--c3); }
.s0, .s1, .s2, .s3 { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
.s0 { stroke: var(--c0); } .s1 { stroke: var(--c1); }
.s2 { stroke: var(--c2); } .s3 { stroke: var(--c3); }
.m0 { fill: var(--c0); } .m1 { fill: var(--c1); } .m2 { fill: var(--c2); } .m3 { fill: var(--c3); }
.dashed { stroke-dasharray: 6 4; }
.area { stroke-width: 1.6; fill-opacity: .22; }
.area.s0 { fill: var(--c0); } .area.s1 { fill: var(--c1); }
.area.s2 { fill: var(--c2); } .area.s3 { fill: var(--c3); }
summary { cursor: pointer; color: var(--link); padding: .25rem 0; font-size: .9rem; }
.query { border: 1px solid var(--line); border-radius: .5rem; padding: .7rem .8rem;
  margin: .8rem 0; }
.query h3, .query h4 { margin: 0 0 .1rem; font-size: 1rem; overflow-wrap: anywhere; }
.query p { margin: 0 0 .5rem; }
.row { display: flex; flex-wrap: wrap; gap: .6rem; margin: 0 0 .4rem; padding: 0;
  list-style: none; }
.item { width: 6.4rem; font-size: .78rem; line-height: 1.3; overflow-wrap: anywhere;
  border: 3px solid var(--line); border-radius: .4rem; padding: .25rem; }
.item img { display: block; width: 100%; height: 5.6rem; object-fit: contain;
  background: var(--soft); }
.item b { display: block; }
.item .under { font-size: inherit; }
.right { border: 3px solid var(--right); }
.wrong { border: 3px dashed var(--wrong); }
.right b { color: var(--right); } .wrong b { color: var(--wrong); }
.asked { border-color: var(--ink); }
.clip { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
  overflow: hidden; }
.bar { display: flex; flex-wrap: wrap; gap: .5rem .9rem; align-items: center; margin: .8rem 0;
  padding: .6rem .8rem; background: var(--soft); border-radius: .5rem; }
.bar input, .bar select, .bar button { font: inherit; padding: .3rem .5rem; color: var(--ink);
  background: var(--paper); border: 1px solid var(--quiet); border-radius: .3rem;
  max-width: 100%; }
.bar button[aria-pressed="true"] { background: var(--ink); color: var(--paper); }
[hidden], .below { display: none; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .15rem 1rem;
  margin: .4rem 0; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 32rem) {
  body { padding: .8rem; }
  th, td { padding: .25rem .4rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .4rem; }
  .item { width: calc(33.3% - .45rem); }
  .beside { display: none; }
  .below { display: block; font-size: .8rem; line-height: 1.25; }
}
@media print {
  :root { color-scheme: light; --paper: #fff; --soft: #f3f5f7; --line: #bbb; --ink: #000;
    --quiet: #444; --link: #000; --c0: #0072b2; --c1: #c44e00; --c2: #00785a; --c3: #a8488a;
    --right: #00694e; --wrong: #b3261e; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  nav, .bar, .skip, .numbers { display: none; }
  .wide { overflow: visible; }
  table { font-size: 9pt; }
  th, td { padding: .2rem .4rem; }
  figure, .query, tr, .tiles li { break-inside: avoid; }
  h2, h3, h4 { break-after: avoid; }
  .tiles { grid-template-columns: repeat(5, 1fr); }
  .tiles li { padding: .4rem .6rem; }
  .charts { grid-template-columns: 1fr 1fr; gap: 0 1.2rem; }
  figure { margin-bottom: .8rem; }
  .query { padding: .35rem .5rem; margin: .45rem 0; }
  .query p { margin: 0 0 .2rem; }
  .row { flex-wrap: nowrap; gap: .25rem; }
  .item { width: 11%; font-size: 6.5pt; border-width: 2px; padding: .15rem; }
  .item img { height: 3.4rem; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
)css";

// Adds a bar above the queries: choose a group, search a class, or step through one at a time with
// the arrow keys. Without the script the page shows all queries.
inline constexpr const char* kReportScript = R"js(
(function () {
  "use strict";
  var browser = document.getElementById("browser");
  if (!browser) { return; }
  function all(name) { return Array.prototype.slice.call(browser.querySelectorAll(name)); }
  var groups = all("section"), cards = all("article"), shown = cards, at = 0;
  function make(name, parent, text) {
    var element = document.createElement(name);
    if (text) { element.textContent = text; }
    parent.appendChild(element);
    return element;
  }
  var bar = document.createElement("form");
  bar.className = "bar";
  var group = make("select", make("label", bar, "Show "));
  make("option", group, "all queries").value = "";
  group.parentNode.hidden = !groups.length;
  groups.forEach(function (section) {
    make("option", group, section.querySelector("h3").textContent).value = section.dataset.group;
  });
  var find = make("input", make("label", bar, "Class or file "));
  find.type = "search";
  find.size = 14;
  function button(text) {
    var element = make("button", bar, text);
    element.type = "button";
    return element;
  }
  var single = button("One at a time");
  single.setAttribute("aria-pressed", "false");
  var before = button("\u2190 Previous"), after = button("Next \u2192");
  var said = make("span", bar);
  said.setAttribute("role", "status");
  browser.insertBefore(bar, browser.firstChild);
  // Without case and accents, which file systems write in two ways.
  function plain(text) {
    return text.normalize("NFD").replace(/[\u0300-\u036f]/g, "").toLowerCase().trim();
  }
  function alone() { return single.getAttribute("aria-pressed") === "true"; }
  function update() {
    var words = plain(find.value).split(/\s+/);
    shown = cards.filter(function (card) {
      if (group.value) { if (card.parentNode.dataset.group !== group.value) { return false; } }
      var text = plain(card.dataset.find);
      return words.every(function (word) { return text.indexOf(word) !== -1; });
    });
    at = Math.max(0, Math.min(at, shown.length - 1));
    cards.forEach(function (card) {
      var place = shown.indexOf(card);
      card.hidden = alone() ? place !== at : place === -1;
    });
    groups.forEach(function (section) {
      section.hidden = !section.querySelector("article:not([hidden])");
    });
    before.hidden = after.hidden = !alone();
    if (!shown.length) { said.textContent = "nothing matches"; return; }
    said.textContent = alone() ? at + 1 + " of " + shown.length
                               : shown.length + (shown.length === 1 ? " query" : " queries");
  }
  function move(by) {
    if (shown.length) { at = (at + by + shown.length) % shown.length; }
    update();
  }
  group.addEventListener("change", update);
  find.addEventListener("input", update);
  bar.addEventListener("submit", function (event) { event.preventDefault(); });
  single.addEventListener("click", function () {
    single.setAttribute("aria-pressed", alone() ? "false" : "true");
    update();
  });
  before.addEventListener("click", function () { move(-1); });
  after.addEventListener("click", function () { move(1); });
  document.addEventListener("keydown", function (event) {
    if (!alone()) { return; }
    if (/INPUT|SELECT/.test(event.target.tagName)) { return; }
    if (event.key === "ArrowLeft") { move(-1); }
    if (event.key === "ArrowRight") { move(1); }
  });
  update();
}());
)js";

}  // namespace rk
