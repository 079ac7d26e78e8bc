() => {
  const asked = new URLSearchParams(location.search).get("__theme");
  const kept = localStorage.getItem("glassbox-theme");
  if (!asked && kept) document.body.classList.toggle("dark", kept === "dark");
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    [...document.querySelectorAll("button.primary")].find((button) => button.offsetParent)?.click();
  });
  document.addEventListener("keydown", (event) => { // gradio leaves a list open over the page when the focus goes on
    if (event.key !== "Tab" || event.target.getAttribute("role") !== "combobox") return;
    event.target.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  });
  if (!matchMedia("(max-width: 900px)").matches) return;
  // On a telephone the settings fold away, and what is written comes into view.
  document.querySelector(".gb-settings button.open")?.click();
  document.addEventListener("click", (event) => {
    if (event.target.closest("#generate, #step")) document.querySelector(".gb-text")?.scrollIntoView({ behavior: "smooth" });
  });
}
