// The end of an answer stream: Gradio learns of a stream that breaks off.

import assert from "node:assert/strict";
import test from "node:test";

import { ended } from "../../components/answer_stream.js";

const ANSWER = 'data: {"msg":"process_completed"}\n\n';
const CLOSE = 'data: {"msg":"close_stream","event_id":null}\n\n';
const BROKEN = ["broken_connection", "close_stream"];

/** Creates a response that sends these texts and then breaks off or closes. */
function response(texts, { breaks = false, status = 200 } = {}) {
  const rest = [...texts];
  const pull = (controller) => {
    if (rest.length) controller.enqueue(new TextEncoder().encode(rest.shift()));
    else if (breaks) controller.error(new TypeError("network error"));
    else controller.close();
  };
  return new Response(new ReadableStream({ pull }), { status, headers: { "content-type": "text/event-stream" } });
}

const kinds = (text) => [...text.matchAll(/"msg":"(\w+)"/g)].map(([, kind]) => kind);
const read = async (stream) => kinds(await stream.text());

test("a stream that ends as it should is passed on unchanged", async () => {
  assert.equal(await ended(response([ANSWER, CLOSE])).text(), ANSWER + CLOSE);
});

test("what waits is told of a stream that breaks off or ends early, and the stream is closed", async () => {
  assert.deepEqual(await read(ended(response([ANSWER], { breaks: true }))), ["process_completed", ...BROKEN]);
  assert.deepEqual(await read(ended(response([ANSWER]))), ["process_completed", ...BROKEN]);
  assert.deepEqual(await read(ended(response([], { breaks: true }))), BROKEN);
});

test("the page of a proxy that finds no server is such an end, too", async () => {
  assert.deepEqual(await read(ended(response(["<html>Bad Gateway</html>"], { status: 502 }))), BROKEN);
});

test("a stream that the page leaves tells nothing", async () => {
  const leaving = new AbortController();
  const stream = ended(response([ANSWER], { breaks: true }), leaving.signal);
  leaving.abort();
  await assert.rejects(stream.text(), /network error/);
});

test("the headers stay", () => {
  assert.equal(ended(response([])).headers.get("content-type"), "text/event-stream");
});
