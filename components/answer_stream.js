// Wraps a session's response stream so that it ends as gradio expects.

const CLOSE = '"close_stream"';
const END = new TextEncoder().encode(
  `data: {"msg":"broken_connection","message":"Connection errored out. "}\n\ndata: {"msg":${CLOSE}}\n\n`,
);

/**
 * Returns a response whose body tells gradio if the stream breaks: pending events fail, and the next event opens a new
 * stream. If the page itself aborts the request, reading the body still fails.
 * @param {Response} response @param {AbortSignal | null} [signal] of the request
 */
export function ended(response, signal) {
  const reader = response.ok ? response.body?.getReader() : undefined;
  let last = new Uint8Array();
  /** @param {ReadableStreamDefaultController} controller */
  async function pull(controller) {
    try {
      const { done, value } = (await reader?.read()) ?? { done: true };
      if (!done) {
        last = value;
        controller.enqueue(value);
        return;
      }
    } catch (problem) {
      if (signal?.aborted) {
        controller.error(problem);
        return;
      }
    }
    if (!new TextDecoder().decode(last).includes(CLOSE)) controller.enqueue(END);
    controller.close();
  }
  return new Response(new ReadableStream({ pull, cancel: (reason) => reader?.cancel(reason) }), {
    headers: response.headers,
  });
}
