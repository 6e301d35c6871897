"use strict";
// The page is whole without this: it adds the filter, and unpacks large trees.

const documents = [...document.querySelectorAll(".doc")].map((element) => ({
  element,
  words: words(element),
  titles: null, // Of its sections, once someone asks.
  unpacked: null,
}));
const form = document.getElementById("filtering");
const box = document.getElementById("filter");
const matches = document.getElementById("matches");
const OPENED = 3; // So many documents open by themselves when a section matches.
let latest = 0;

function words(element) {
  const name = element.querySelector(".name")?.textContent ?? "";
  return `${name} ${element.dataset.words}`.toLowerCase();
}

async function read(packed) {
  const bytes = Uint8Array.from(atob(packed.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream();
  const text = stream.pipeThrough(new DecompressionStream("deflate"));
  return new Response(text).json();
}

async function titlesOf(item) {
  if (item.titles === null) {
    const packed = item.element.querySelector(".packed");
    const titles = packed
      ? (await read(packed)).titles
      : [...item.element.querySelectorAll(".t")].map((t) => t.textContent);
    item.titles = titles.map((title) => title.toLowerCase());
  }
  return item.titles;
}

function unpack(item) {
  item.unpacked ??= (async () => {
    const packed = item.element.querySelector(".packed");
    if (packed === null) return;
    try {
      const { html, titles } = await read(packed);
      item.titles ??= titles.map((title) => title.toLowerCase());
      // The markup was escaped where it was made, and no script in it would run.
      packed.parentElement.innerHTML = html;
    } catch {
      packed.parentElement.textContent =
        "This browser cannot unpack the tree; `vectorless-rag show` prints it.";
    }
  })();
  return item.unpacked;
}

function wanted() {
  return box.value.toLowerCase().split(/\s+/).filter(Boolean);
}

function holds(text, all) {
  return all.every((word) => text.includes(word));
}

function highlight(item, all) {
  for (const title of item.element.querySelectorAll(".t")) {
    const node = title.closest(".node");
    const hit = all.length > 0 && holds(title.textContent.toLowerCase(), all);
    node.classList.toggle("hit", hit);
    if (!hit) continue;
    let above = node.parentElement.closest(".node");
    for (; above; above = above.parentElement.closest(".node")) above.open = true;
  }
}

async function filter() {
  const turn = ++latest;
  const all = wanted();
  const shown = [];
  let sections = 0;
  for (const item of documents) {
    const found = all.length
      ? (await titlesOf(item)).filter((title) => holds(title, all)).length
      : 0;
    if (turn !== latest) return; // Typed on meanwhile.
    const kept = found > 0 || holds(item.words, all);
    item.element.hidden = !kept;
    if (kept) shown.push({ item, found });
    sections += found;
  }
  document.getElementById("nothing").hidden = shown.length > 0 || !all.length;
  const told = `${shown.length} of ${documents.length} documents`;
  matches.textContent = all.length ? `${told}, ${sections} matching sections` : "";
  const few = shown.filter(({ found }) => found > 0).slice(0, OPENED);
  for (const { item } of few) {
    item.element.open = true;
    await unpack(item);
  }
  if (turn !== latest) return;
  for (const item of documents) if (item.element.open) highlight(item, all);
}

for (const item of documents) {
  item.element.addEventListener("toggle", async () => {
    if (!item.element.open) return;
    await unpack(item);
    if (box?.value) highlight(item, wanted());
  });
}

if (form) {
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  let timer = 0;
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(filter, 120);
  });
}
