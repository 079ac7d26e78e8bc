// Decodes numbers from base64.

/** @param {string} text */
export const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** @param {string} text */
export const floats = (text) => new Float32Array(bytes(text).buffer);
