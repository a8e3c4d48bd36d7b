"use strict";
(() => {
  const viewers = [...document.querySelectorAll(".viewer")].map(start);
  let current = viewers[0];
  const alone = viewers.length === 1;

  function make(tag, name, text) {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // The states, each made from the one before it and what the step changes.
  function statesOf(steps) {
    let state = new Map();
    return steps.map((step) => {
      const before = state;
      state = new Map(before);
      step.gone.forEach((name) => state.delete(name));
      Object.entries(step.set).forEach(([name, value]) => state.set(name, value));
      return { before, state };
    });
  }

  function start(root) {
    const data = JSON.parse(root.querySelector(".data").textContent);
    const states = statesOf(data.steps);
    const last = data.steps.length - 1;
    const rows = [...root.querySelectorAll("tr[data-step]")];
    const find = (selector) => root.querySelector(selector);
    const viewer = { root, last, at: 0, show };
    const wrong = new Set(data.comparison.filter((line) => !line.same).map((line) => line.name));

    function slotCell(name, value, changed, bad) {
      const slot = value.slot;
      const cell = make("li", `slot ${slot.phase}`);
      if (changed) cell.classList.add("changed");
      if (bad) cell.classList.add("wrong-slot");
      cell.title = name;
      cell.append(make("span", "index", /\d+/.exec(name)[0]), make("b", "", slot.phase));
      const figures = make("span", "figures");
      for (const [word, number] of [["uses", slot.uses], ["pins", slot.pins], ["age", slot.stamp]]) {
        if (number) figures.append(make("span", "", `${word} ${number}`), " ");
      }
      cell.append(figures);
      if (bad) cell.append(make("span", "mark bad", "not as expected"));
      else if (changed) cell.append(make("span", "mark", "changed"));
      return cell;
    }

    function variableRow(name, value, was, changed) {
      const row = make("tr", changed ? "changed" : "");
      const head = make("th", "", name);
      head.scope = "row";
      const cell = make("td", "", value === undefined ? "gone" : value.text);
      if (changed) {
        cell.append(" ", make("span", "mark", "changed"));
        cell.append(make("span", "was", `was ${was === undefined ? "not there" : was.text}`));
      }
      row.append(head, cell);
      return row;
    }

    function showState(number) {
      const { before, state } = states[number];
      const fatal = number === last && number > 0;
      const slots = [];
      const variables = [];
      const names = new Set([...state.keys(), ...(number ? data.steps[number].gone : [])]);
      for (const name of names) {
        const value = state.get(name);
        const changed = number > 0 && (value === undefined || name in data.steps[number].set);
        if (value && value.slot) {
          slots.push(slotCell(name, value, changed, fatal && data.seen && wrong.has(name)));
        } else {
          variables.push(variableRow(name, value, before.get(name), changed));
        }
      }
      find(".slots").replaceChildren(...slots);
      find(".slots").classList.toggle("many", slots.length > 16);
      find(".slots-title").hidden = slots.length === 0;
      find(".variables tbody").replaceChildren(...variables);
    }

    function showParting(number) {
      const here = number === last && data.comparison.length > 0;
      find(".parting").hidden = !here;
      if (!here) return;
      find(".comparison tbody").replaceChildren(...data.comparison.map((line) => {
        const row = make("tr", line.same ? "" : "differs");
        const head = make("th", "", line.name);
        head.scope = "row";
        const seen = make("td", "seen", line.seen === null ? "see above" : line.seen);
        if (!line.same) seen.append(" ", make("span", "mark bad", "differs"));
        row.append(head, make("td", "", line.before), make("td", "", line.expected), seen);
        return row;
      }));
      find(".others").textContent = data.others
        ? `Since the draw is random, more states were allowed (${data.others}); this is the nearest.`
        : "";
    }

    function show(number) {
      const at = Math.min(Math.max(number, 0), last);
      if (last < 0) return;
      viewer.at = at;
      const step = data.steps[at];
      find(".slider").value = String(at);
      find(".where").textContent = `step ${at} of ${last}`;
      find(".step").textContent = step.actor ? `${step.label}, by ${step.actor}` : step.label;
      const notes = [...step.notes];
      if (!step.known) notes.push("the state after this step is not known; shown is the last one known");
      else if (at > 0 && !Object.keys(step.set).length && !step.gone.length) notes.push("nothing changes");
      else if (at === last && data.seen) notes.push("shown is the state that was seen");
      find(".notes").replaceChildren(...notes.map((note) => make("li", "", note)));
      rows.forEach((row, position) => {
        if (position === at) row.setAttribute("aria-current", "step");
        else row.removeAttribute("aria-current");
        row.classList.toggle("later", position > at);
      });
      keepInSight(rows[at]);
      showState(at);
      showParting(at);
      for (const [way, off] of [["first", at === 0], ["back", at === 0], ["on", at === last], ["last", at === last]]) {
        find(`[data-go=${way}]`).disabled = off;
      }
    }

    // Scrolls the timeline alone, never the page.
    function keepInSight(row) {
      const pane = find(".timeline");
      const frame = pane.getBoundingClientRect();
      const chip = row.querySelector(".chip").getBoundingClientRect();
      const head = pane.querySelector("th.number").getBoundingClientRect();
      const margin = 10;
      const above = frame.top + head.height + margin - chip.top;
      const below = chip.bottom + margin - frame.top - pane.clientHeight;
      const before = frame.left + head.width + margin - chip.left;
      const behind = chip.right + margin - frame.left - pane.clientWidth;
      pane.scrollTop += below > 0 ? below : Math.min(0, -above);
      pane.scrollLeft += behind > 0 ? behind : Math.min(0, -before);
    }

    const ways = { first: () => 0, back: () => viewer.at - 1, on: () => viewer.at + 1, last: () => last };
    root.addEventListener("pointerdown", () => { current = viewer; });
    root.addEventListener("focusin", () => { current = viewer; });
    root.querySelectorAll("[data-go]").forEach((button) => {
      button.addEventListener("click", () => go(viewer, ways[button.dataset.go]()));
    });
    find(".slider").addEventListener("input", (event) => go(viewer, Number(event.target.value)));
    rows.forEach((row, position) => row.addEventListener("click", () => go(viewer, position)));
    const copy = find(".copy");
    if (copy) copy.addEventListener("click", () => copyToken(copy));
    return viewer;
  }

  function go(viewer, number) {
    viewer.show(number);
    if (alone) history.replaceState(null, "", `#step=${viewer.at}`);
  }

  async function copyToken(button) {
    const text = button.dataset.copy;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // A page from disk may not be allowed to use the clipboard; a selection may be copied.
      const area = make("textarea", "", text);
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "copied";
  }

  function fromAddress() {
    const wanted = /^#step=(\d+)$/.exec(location.hash);
    return wanted && alone ? Number(wanted[1]) : 0;
  }

  document.addEventListener("keydown", (event) => {
    if (!current || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const to = {
      ArrowLeft: current.at - 1, ArrowRight: current.at + 1, Home: 0, End: current.last,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    go(current, to);
  });
  window.addEventListener("hashchange", () => { if (alone) viewers[0].show(fromAddress()); });
  viewers.forEach((viewer) => viewer.show(fromAddress()));
})();
