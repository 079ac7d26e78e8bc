// The selected layer, and the way to the next one; clicks that come faster than answers are added up by `want`.
const group = element.querySelector(".gb-picks");
const noHeads = document.createElement("span");

function draw() {
  let value = null;
  try {
    value = JSON.parse(props.value);
  } catch {
    // nothing to show
  }
  group.hidden = !value;
  answered();
  if (value) picks({ ...value, head: 0, n_head: 0 }, group, noHeads);
}

watch(["value", "labels"], draw);
draw();
