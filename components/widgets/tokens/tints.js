// How deep the tint of a token is, 0..1, by each of its own numbers; null: none. With the words at both ends.
const DEEPEST = 8; // bits
const WORST = 1000; // rank
const unit = (value) => `${Number.isFinite(value) ? value.toFixed(1) : "∞"} ${label("unit")}`;
const surprise = (record) => -Math.log2(record.probability);
const known = (value) => value !== null && value !== undefined;
const inUnits = (name, of) => ({
  level: (record) => (known(record.entropy) ? Math.min(1, of(record) / DEEPEST) : null),
  ends: () => [`${label(name)} 0`, `≥ ${DEEPEST} ${label("unit")}`],
});
const scales = {
  probability: {
    level: (record) => (record.kind === "p" ? null : record.probability),
    ends: () => [`${label("probability")} 0 %`, percent(1)],
  },
  rank: {
    level: (record) => (known(record.rank) ? Math.max(0, 1 - Math.log(record.rank) / Math.log(WORST)) : null),
    ends: () => [`${label("rank")} ≥ ${WORST}`, "1"],
  },
  entropy: inUnits("entropy", (record) => record.entropy),
  surprisal: inUnits("surprise", surprise),
};

function tint(chip, record) {
  const level = scales[by].level(record);
  if (known(level)) chip.style.setProperty("--p", level);
  else chip.style.removeProperty("--p");
}
