// A picture of numbers: a row for each token, a column for each token or number; labels, frames, and what is under the pointer.
const TOKEN_ROOM = 84; // px for the tokens at the side
const LABEL = 11; // px that a label needs

// One pixel a number; what is NaN stays clear. at(row, column) in -scale..scale or 0..scale.
function pixels({ rows, columns, at, scale, signed }, map) {
  const made = Object.assign(document.createElement("canvas"), { width: columns, height: rows });
  const context = made.getContext("2d");
  const image = context.createImageData(columns, rows);
  const out = new Uint32Array(image.data.buffer);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const share = Math.max(signed ? -1 : 0, Math.min(1, at(row, column) / scale));
      if (!Number.isNaN(share)) out[row * columns + column] = map[Math.round(signed ? 127.5 + 127.5 * share : 255 * share)];
    }
  }
  context.putImageData(image, 0, 0);
  return made;
}

function clipped(ctx, text, room) {
  if (ctx.measureText(text).width <= room) return text;
  let cut = text;
  while (cut.length > 1 && ctx.measureText(`${cut}…`).width > room) cut = cut.slice(0, -1);
  return `${cut}…`;
}

// Which labels have room: every n-th, and the selected one with what is too close to it left out.
function shownLabels(count, step, selected) {
  const every = Math.ceil(LABEL / step);
  const all = Array.from({ length: count }, (_, i) => i);
  return all.filter((i) => i === selected || (i % every === 0 && (selected < 0 || Math.abs(i - selected) >= every)));
}

// Sizes the canvas to the width and draws; returns where the cells are. picture: {image, rows, columns, tall: whether the
// columns are tokens, rowLabels, columnLabels, row, column: the selected, -1 for none}.
function drawMatrix(canvas, picture, room, largest) {
  const { image, rows, columns, rowLabels, columnLabels, row, column } = picture;
  const side = Math.min(TOKEN_ROOM, room / 4);
  const top = columnLabels ? side : 18;
  const cell = Math.max(2, Math.min(26, (Math.min(room, largest) - side) / Math.max(rows, columnLabels ? columns : 1)));
  const wide = columnLabels ? cell : Math.max(2, Math.min(14, (Math.min(room, largest) - side) / columns));
  const [width, height] = [side + wide * columns + 2, top + cell * rows + 2];
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(image, side, top, wide * columns, cell * rows);
  ctx.strokeStyle = css("line");
  ctx.strokeRect(side - 0.5, top - 0.5, wide * columns + 1, cell * rows + 1);
  const [text, accent] = [css("text"), css("accent")];
  const font = (strong) => `${strong ? "600 " : ""}${LABEL}px ${css("mono")}`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "right";
  for (const i of shownLabels(rows, cell, row)) {
    ctx.fillStyle = i === row ? accent : text;
    ctx.font = font(i === row);
    ctx.fillText(clipped(ctx, rowLabels[i], side - 8), side - 6, top + (i + 0.5) * cell);
  }
  ctx.textAlign = "left";
  for (const i of columnLabels ? shownLabels(columns, wide, column) : []) {
    ctx.save();
    ctx.translate(side + (i + 0.5) * wide, top - 6);
    ctx.rotate(-Math.PI / 2);
    ctx.fillStyle = i === column ? accent : text;
    ctx.font = font(i === column);
    ctx.fillText(clipped(ctx, columnLabels[i], top - 8), 0, 0);
    ctx.restore();
  }
  ctx.strokeStyle = accent;
  if (row >= 0) {
    ctx.lineWidth = 1;
    ctx.strokeRect(side - 0.5, top + row * cell - 0.5, wide * columns + 1, cell + 1);
  }
  if (row >= 0 && column >= 0) {
    ctx.lineWidth = 2;
    ctx.strokeRect(side + column * wide - 1, top + row * cell - 1, wide + 2, cell + 2);
  }
  return { side, top, wide, cell, rows, columns };
}

// [row, column] under the pointer, or null.
function cellAt(canvas, place, event) {
  const box = canvas.getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left - place.side) / place.wide);
  const row = Math.floor((event.clientY - box.top - place.top) / place.cell);
  if (row < 0 || row >= place.rows || column >= place.columns || event.clientX < box.left) return null;
  return [row, Math.max(-1, column)];
}

const theme = () => ({
  signed: ramp(Array.from({ length: 9 }, (_, i) => css(`div-${i}`))),
  head: (head, n_head) => ramp([css("surface"), headColour(head, n_head)]),
});
