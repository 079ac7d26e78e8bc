"""Goals reached by picking a token, a layer or both."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.next_tokens import at_one
from components.tabs.challenges.goals.goal import Goal, Verdict, name, share
from components.tabs.challenges.reading import Reading
from gpt import Edits, logit_lens
from gpt.analysis.saliency import leave_one_out
from gpt.tokenizer import prompt_ids


@dataclass(frozen=True)
class Matters(Goal):
    """Pick the token whose removal lowers the prediction's probability the most."""

    tool = "token"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        if (token := reading.answer.token) is None:
            return Verdict("token")
        p, best = reading.before.max(dim=-1)
        ids = reading.ids
        falls = torch.cat(list(leave_one_out(reading.loaded.model, ids, int(best), range(len(ids)))))
        values = {"out": name(reading, ids[token]), "token": name(reading, best), "p": share(p.item())}
        values["without"] = share(after[best].item())
        return Verdict("matters", values, token == int(falls.argmax()))

    def after(self, reading: Reading) -> Tensor:
        """Return the prediction without the picked token."""
        token, ids = reading.answer.token, reading.ids
        return reading.before if token is None else reading.predicted([*ids[:token], *ids[token + 1 :]])


@dataclass(frozen=True)
class Leads(Goal):
    """Pick the layer at which the logit lens settles on the final prediction."""

    tool = "layer"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        best, layer = int(reading.before.argmax()), reading.answer.layer
        if layer is None:
            return Verdict("layer", {"token": name(reading, best)})
        lens = logit_lens(reading.loaded.model, reading.trace, positions=[len(reading.ids) - 1])
        read = lens.token[:, 1, 0].tolist()  # the top token after each layer
        first = next(i for i in range(len(read)) if all(token == best for token in read[i:]))
        p, top = after.max(dim=-1)
        values = {
            "layer": layer,
            "read": name(reading, top),
            "token": name(reading, best),
            "p": share(p.item()),
        }
        return Verdict("leads", values, layer == first)

    @torch.inference_mode()
    def after(self, reading: Reading) -> Tensor:
        """Return the logit lens's prediction after the picked layer."""
        if (layer := reading.answer.layer) is None:
            return reading.before
        model = reading.loaded.model
        return at_one(model.logits(model.ln_f(reading.trace.layers[layer].resid_post[0, -1])))


@dataclass(frozen=True)
class Twin(Goal):
    """Patch in another text's residual stream at one token and layer to get the other text's prediction.

    Attributes:
        text: The other text, which differs in one token.
        choice: The layers to choose from.
    """

    text: str
    choice: tuple[int, ...]
    tool = "place"

    def layers(self, n_layer: int) -> tuple[int, ...]:
        return tuple(layer for layer in self.choice if layer < n_layer)

    def edits(self, reading: Reading) -> Edits:
        token, layer = reading.answer.token, reading.answer.layer
        if token is None or layer is None:
            return Edits()
        return Edits(patches=(reading.patch("resid_post", token, layer, self.text),))

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        other = int(reading.predicted(prompt_ids(reading.tokenizer, self.text)).argmax())
        is_set = None not in (reading.answer.token, reading.answer.layer)
        values = {"token": name(reading, other), "p": share(after[other].item())}
        values["top"] = name(reading, after.argmax())
        return Verdict("twin" if is_set else "twin.place", values, is_set and other == int(after.argmax()))
