// The skeleton: every row's vector goes straight from its embedding to the head, through passages where nothing is.
function paintBare(ctx, scene) {
  const { value, place, colours, fonts, labels } = scene;
  const stops = ["pre", "mid", "post", "fin"];
  value.tokens.forEach((_, row) => {
    const [y, h] = [middle(scene, row), thickness(scene, row)];
    const alpha = row === value.selected - value.start ? 0.3 : 0.06;
    let from = right(place.tokens) + 6;
    for (const stop of stops) {
      ribbon(ctx, from, y, h, place[stop].x, y, h, colours.muted, alpha);
      from = right(place[stop]);
    }
  });
  ctx.strokeStyle = colours.muted;
  ctx.lineWidth = 1;
  ctx.setLineDash([4, 4]);
  for (const [name, label] of [["attn", labels.att], ["mlp", labels.out]]) {
    const { x, w } = place[name];
    box(ctx, x + 14, HEAD - 42, w - 28, bottom(scene) + 10 - (HEAD - 42), 8);
    ctx.stroke();
    write(ctx, label, x + w / 2, HEAD - 30, { font: fonts.name, colour: colours.muted, align: "center" });
    write(ctx, value.identity, x + w / 2, HEAD - 14, { font: fonts.shape, colour: colours.muted, align: "center" });
  }
  ctx.setLineDash([]);
  write(ctx, value.title, place.open.x + 12, 21, { font: fonts.title, colour: colours.text });
}
