// The words of the box: ranges of tokens that are hidden together.

/** The word that a token belongs to; -1 for none. @param {number[]} words the first token of each word @param {number} token */
export const wordAt = (words, token) => words.findLastIndex((start) => start <= token && token >= 0);

/** The hidden tokens after a click on a word; at least one word remains. @param {number[]} words @param {number} count number of tokens @param {Set<number>} hidden @param {number} word */
export function toggled(words, count, hidden, word) {
  const end = words[word + 1] ?? count;
  const tokens = Array.from({ length: end - words[word] }, (_, i) => words[word] + i);
  const after = new Set(hidden);
  const isHidden = hidden.has(words[word]);
  for (const token of tokens) isHidden ? after.delete(token) : after.add(token);
  return words.every((start) => after.has(start)) ? hidden : after;
}
