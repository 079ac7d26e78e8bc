// The words in the box: ranges of tokens that are hidden together.

/**
 * Returns the word that a token belongs to, or -1 for none.
 * @param {number[]} words each word's first token @param {number} token
 */
export const wordAt = (words, token) => words.findLastIndex((start) => start <= token && token >= 0);

/**
 * Returns the hidden tokens after a click on a word; at least one word stays visible.
 * @param {number[]} words @param {number} count number of tokens @param {Set<number>} hidden @param {number} word
 */
export function toggled(words, count, hidden, word) {
  const end = words[word + 1] ?? count;
  const tokens = Array.from({ length: end - words[word] }, (_, i) => words[word] + i);
  const after = new Set(hidden);
  const isHidden = hidden.has(words[word]);
  for (const token of tokens) isHidden ? after.delete(token) : after.add(token);
  return words.every((start) => after.has(start)) ? hidden : after;
}
