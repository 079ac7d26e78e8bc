// The layer and the head as buttons, and what they ask of the server: one question at a time.
let wanted = {}; // what the person wants to see and is not there yet
let sent = ""; // what of it the server was asked for

function want(change) {
  Object.assign(wanted, change);
  if (!sent) ask();
}

function ask() {
  sent = JSON.stringify(wanted);
  trigger("select", { ...wanted });
  setTimeout(() => (sent = ""), 3000); // an answer that is lost must not block the next question
}

// A new value came: ask again if the person went on meanwhile.
function answered() {
  const more = sent && sent !== JSON.stringify(wanted);
  sent = "";
  if (more) ask();
  else wanted = {};
}

function pickButton(text, title, change, pressed) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: text, disabled: !change });
  made.setAttribute("aria-label", title);
  if (pressed !== undefined) made.setAttribute("aria-pressed", String(pressed));
  if (change) made.addEventListener("click", () => want(change));
  return made;
}

// Fills the two groups; the focus stays where it was.
function picks({ layer, head, n_layer, n_head }, layerPick, headPicks) {
  const title = (text) => Object.assign(document.createElement("span"), { textContent: text });
  const inside = [layerPick, headPicks].find((group) => group.contains(document.activeElement));
  const index = inside ? [...inside.children].indexOf(document.activeElement) : -1;
  const [name, headName] = [props.labels?.layer ?? "", props.labels?.head ?? ""];
  layerPick.replaceChildren(
    pickButton("‹", `${name} −`, layer > 0 && { layer: layer - 1 }), title(`${name} ${layer}`),
    pickButton("›", `${name} +`, layer + 1 < n_layer && { layer: layer + 1 }),
  );
  const heads = Array.from({ length: n_head }, (_, i) => {
    const made = pickButton(n_head > 16 ? "" : String(i), `${headName} ${i}`, { head: i }, i === head);
    made.style.setProperty("--hue", headColour(i, n_head));
    return made;
  });
  headPicks.replaceChildren(title(headName), ...heads);
  layerPick.setAttribute("aria-label", name);
  headPicks.setAttribute("aria-label", headName);
  inside?.children[index]?.focus();
}
