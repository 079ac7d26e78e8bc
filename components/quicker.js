(() => {
  // Two habits of gradio's page cost much on one with hundreds of parts and of events.
  const mend = async (module, method, change) => {
    const parts = module ? await import(new URL(module, document.baseURI)).catch(() => ({})) : {};
    const found = Object.values(parts).find((part) => part?.prototype?.[method]);
    if (found) change(found.prototype); // else gradio is built, or embedded, in another way: it is only slower
  };

  // It keeps, to mark what waits, the inputs of every event that has ended, and goes through all of them, on every tab
  // that was opened, at each word from the server: 20 ms for each token of a text. Nothing here waits in gradio's way.
  mend(MODULES.resolve_args, "resolve_args", (marks) => {
    const { update } = marks;
    marks.update = function (told) {
      update.call(this, { ...told, stream_state: null });
      this.current = {};
    };
  });

  // It goes through all events for each part, to tell it which of its events anybody listens to. Here it does so once.
  const listened = new WeakMap();
  const byPart = (events) => {
    const names = new Map();
    for (const { targets } of events) {
      for (const [part, name] of new Map([...targets].reverse())) { // of several in one event the first counts
        if (name) names.set(part, [...(names.get(part) ?? []), name]);
      }
    }
    return names;
  };
  mend(MODULES.find_attached_events, "find_attached_events", (tree) => {
    tree.find_attached_events = (node, events) => {
      if (!listened.has(events)) listened.set(events, byPart(events));
      node.props.shared_props.attached_events = listened.get(events).get(node.id) ?? [];
      return node;
    };
  });
})();
