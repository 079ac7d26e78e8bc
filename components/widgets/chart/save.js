// Saves the picture as it stands on the screen: its width, its theme, on the colour of its card.
const kinds = root.querySelector(".gb-save");

function nameKinds() {
  const words = SAVE[document.documentElement.lang === "zh" ? "zh" : "en"];
  for (const button of kinds.children) {
    button.title = words.replace("{kind}", button.textContent);
    button.setAttribute("aria-label", button.title);
  }
}

async function savePicture(format) {
  const ground = getComputedStyle(root).getPropertyValue("--gb-card").trim();
  const layout = { ...plot.layout, paper_bgcolor: ground, plot_bgcolor: ground };
  const size = { width: plot.clientWidth, height: plot.clientHeight };
  const link = document.createElement("a");
  link.href = await window.Plotly.toImage({ data: plot.data, layout, config: CONFIG }, { format, scale: 2, ...size });
  link.download = `glassbox-${element.parentElement.closest(".gb-widget").id}.${format}`;
  link.click();
}

for (const button of kinds.children) {
  button.addEventListener("click", () => savePicture(button.textContent.toLowerCase()));
}
for (const event of ["pointerenter", "focusin"]) root.addEventListener(event, nameKinds);
nameKinds();
