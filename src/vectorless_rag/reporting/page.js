"use strict";
// The page is whole without this: it adds the filter, and unpacks large trees.

const documents = [...document.querySelectorAll(".doc")].map((element) => ({
  element,
  words: words(element),
  unpacked: null, // A promise, once someone has opened it.
}));
const form = document.getElementById("filtering");
const box = document.getElementById("filter");
const matches = document.getElementById("matches");
const OPENED = 3; // So many documents open by themselves when a section matches.
let latest = 0;
let titles = null;

function words(element) {
  const name = element.querySelector(".name")?.textContent ?? "";
  return `${name} ${element.dataset.words}`.toLowerCase();
}

async function read(packed) {
  const text = atob(packed.textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const inflating = new DecompressionStream("deflate");
  return new Response(new Blob([bytes]).stream().pipeThrough(inflating));
}

function titlesIn(element) {
  return [...element.querySelectorAll(".t")].map((title) => title.textContent);
}

// Of every document, in lower case; read once, when someone asks.
async function readTitles() {
  const packed = document.querySelector(".titles");
  const all = packed
    ? await (await read(packed)).json()
    : documents.map(({ element }) => titlesIn(element));
  return all.map((titles) => titles.map((title) => title.toLowerCase()));
}

function unpack(item) {
  item.unpacked ??= (async () => {
    const packed = item.element.querySelector(".packed");
    if (packed === null) return;
    const place = packed.parentElement;
    try {
      const markup = await (await read(packed)).text();
      // It was escaped where it was made, and no script in it would run.
      place.innerHTML = markup;
    } catch {
      place.textContent =
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
  // A browser that cannot unpack them still filters by name.
  titles ??= readTitles().catch(() => documents.map(() => []));
  const known = await titles;
  if (turn !== latest) return; // Typed on meanwhile.
  for (const [number, item] of documents.entries()) {
    const found = all.length
      ? known[number].filter((title) => holds(title, all)).length
      : 0;
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
