"""The challenges and their goals: what visitors can change, and when the goal is reached."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from components.concepts import loss_of, quoted_concept
from components.labels import Later, marked, token_text
from components.next_tokens import at_one
from components.tabs.challenges.reading import Arc, Goal, Head, Reading, Verdict, first_id, name, share
from gpt import Edits, logit_lens
from gpt.analysis.concepts import Snippet, trace_activity
from gpt.analysis.heads import head_roles
from gpt.analysis.saliency import leave_one_out
from gpt.tokenizer import prompt_ids

GOOD = 0.9  # minimum score, as a fraction of the best head's score
WRITTEN = 24  # tokens to generate
N_LISTED = 4  # features per layer


# The two heads that copy an earlier token


class Circuit(Goal):
    """A goal about the two heads that copy an earlier token. Its arcs show where the two heads attend."""

    has_arcs = True

    def arcs(self, reading: Reading) -> list[Arc]:
        last, source = len(reading.ids) - 1, reading.circuit.source
        back, find = reading.circuit.previous_token, reading.circuit.induction
        return [
            Arc(last, source, reading.weights(find)[last, source].item()),
            Arc(source, source - 1, reading.weights(back)[source, source - 1].item()),
        ]

    def copied(self, reading: Reading, after: Tensor) -> tuple[Later, float, float]:
        """Return the name of the token to copy, and its probability before and after the edits."""
        token = reading.ids[reading.circuit.source]
        return name(reading, token), reading.before[token].item(), after[token].item()


@dataclass(frozen=True)
class Copied(Circuit):
    """Pick the token that the model writes next."""

    tool = "token"
    shows_bars = False
    has_arcs = False

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        if reading.answer.token is None:
            return Verdict("token")
        token = reading.ids[reading.answer.token]
        values = {"token": name(reading, token), "p": share(after[token].item())}
        return Verdict("copied", values, token == int(after.argmax()))

    def arcs(self, reading: Reading) -> list[Arc]:
        return []


@dataclass(frozen=True)
class Meets(Circuit):
    """Pick the token where the two arcs meet."""

    tool = "token"
    shows_bars = False

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        if reading.answer.token is None:
            return Verdict("token")
        second, first = (share(arc.weight) for arc in self.arcs(reading))
        values = {"token": name(reading, reading.ids[reading.answer.token]), "first": first, "second": second}
        return Verdict("meets", values, reading.answer.token == reading.circuit.source)


@dataclass(frozen=True)
class OffEach(Circuit):
    """Switch off each of the two heads on its own.

    For at least one of them, the copied token's probability must fall to at most `most` times its original value.
    """

    most: float
    tool = "switches"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        heads = reading.circuit.previous_token, reading.circuit.induction
        token, whole, now = self.copied(reading, after)
        source = reading.ids[reading.circuit.source]
        left = {head: reading.after(Edits(head_scale={head: 0.0}))[source].item() for head in heads}
        values: dict[str, Any] = {"token": token, "p": share(whole), "now": share(now)}
        values |= {"back": "{}.{}".format(*heads[0]), "find": "{}.{}".format(*heads[1])}
        values |= {"without_back": share(left[heads[0]]), "without_find": share(left[heads[1]])}
        if reading.answer.tried.issuperset(heads):
            return Verdict("off.each", values, min(left.values()) <= self.most * whole)
        return Verdict("off", values)

    def marked(self, reading: Reading) -> tuple[Head, ...]:
        return reading.circuit.previous_token, reading.circuit.induction


@dataclass(frozen=True)
class PutBack(Circuit):
    """With the previous-token head off, restore the attention output at one token and layer.

    The copied token's probability must rise to at least `least` times its original value.
    """

    least: float
    tool = "place"

    def edits(self, reading: Reading) -> Edits:
        off, token, layer = {reading.circuit.previous_token: 0.0}, reading.answer.token, reading.answer.layer
        if token is None or layer is None:
            return Edits(head_scale=off)
        return Edits(head_scale=off, patches=(reading.patch("attn_out", token, layer),))

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        token, whole, now = self.copied(reading, after)
        values: dict[str, Any] = {"token": token, "p": share(whole), "now": share(now)}
        values["head"] = "{}.{}".format(*reading.circuit.previous_token)
        is_set = None not in (reading.answer.token, reading.answer.layer)
        return Verdict("back" if is_set else "place", values, is_set and now >= self.least * whole)


# Heads to pick or to switch off


@dataclass(frozen=True)
class Looks(Goal):
    """Pick the head with the highest score for a role."""

    role: Literal["previous_token", "first_token"]
    tool = "head"
    shows_bars = False
    has_arcs = True

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        return judge_head(self.role, getattr(head_roles(reading.trace, reading.ids), self.role).cpu(), reading)

    def arcs(self, reading: Reading) -> list[Arc]:
        return head_arcs(reading)


@dataclass(frozen=True)
class Finds(Goal):
    """Pick the head with the most attention from the last token to the token after its earlier occurrence."""

    tool = "head"
    shows_bars = False
    has_arcs = True

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        source = reading.circuit.source
        weights = torch.stack([layer.attn_weights[0, :, -1, source] for layer in reading.trace.layers]).float().cpu()
        return judge_head("finds", weights, reading)

    def arcs(self, reading: Reading) -> list[Arc]:
        last = len(reading.ids) - 1
        return [arc for arc in head_arcs(reading) if arc.start == last]


def judge_head(key: str, scores: Tensor, reading: Reading) -> Verdict:
    """Judge the picked head: its score must be close to the highest in `scores`, (n_layer, n_head)."""
    best, head = scores.max().item(), reading.answer.head
    if head is None:
        return Verdict("head", {"best": share(best)})
    score = scores[head].item()
    values = {"layer": head[0], "head": head[1], "share": share(score), "best": share(best)}
    return Verdict(key, values, score >= GOOD * best)


def head_arcs(reading: Reading) -> list[Arc]:
    """Return an arc from each token to the token that the picked head attends to most."""
    head = reading.answer.head
    if head is None:
        return []
    weights, targets = reading.weights(head).max(dim=-1)
    pairs = enumerate(zip(targets.tolist(), weights.tolist(), strict=True))
    return [Arc(start, end, weight) for start, (end, weight) in pairs if end != start]


@dataclass(frozen=True)
class Tops(Goal):
    """Make a word the most likely next word by switching off at most `most_off` heads."""

    word: str
    most_off: int
    tool = "switches"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        token, best, n = first_id(reading.tokenizer, self.word), int(after.argmax()), len(reading.answer.off)
        values = {
            "token": name(reading, token),
            "p": share(after[token].item()),
            "top": name(reading, best),
            "n": n,
        }
        return Verdict("tops", values, token == best and 0 < n <= self.most_off)


@dataclass(frozen=True)
class Keeps(Goal):
    """Switch off at least `least_off` heads without changing the most likely next token."""

    least_off: int
    tool = "switches"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        best, now, n = int(reading.before.argmax()), int(after.argmax()), len(reading.answer.off)
        values = {
            "token": name(reading, best),
            "p": share(after[best].item()),
            "top": name(reading, now),
            "n": n,
        }
        done = best == now and n >= self.least_off
        return Verdict("keeps", values, done, n if done else None)


# Tokens and layers to pick


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
        if (layer := reading.answer.layer) is None:
            return reading.before
        model = reading.loaded.model
        return at_one(model.logits(model.ln_f(reading.trace.layers[layer].resid_post[0, -1])))


@dataclass(frozen=True)
class Twin(Goal):
    """Patch in another text's residual stream at one token and layer to get the other text's prediction.

    text: the other text, which differs in one token.
    """

    text: str
    layers: tuple[int, ...]
    tool = "place"

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


# Texts to write


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def shortcut(reading: Reading, *token_ids: int, most: int = 0) -> str:
    """Return the key of the message that explains why a text is not a valid answer, or "" if it is valid.

    Merely deleting words from the initial text does not count. Each token must begin a word that occurs in the text at
    most `most` times; otherwise the model would simply repeat it.
    """
    first, text = iter(words_of(reading.start)), words_of(reading.answer.text)
    if reading.answer.text != reading.start and all(word in first for word in text):
        return "own.deleted"
    names = [token_text(reading.tokenizer, token_id) for token_id in token_ids]
    if not all(re.match(r"\W+\w", name) for name in names):
        return "own.piece"
    return "own.repeated" if any(text.count(word) > most for name in names for word in words_of(name)) else ""


@dataclass(frozen=True)
class Sure(Goal):
    """Write a new text whose most likely next word has a probability of at least `least`."""

    least: float
    tool = "text"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        p, best = after.max(dim=-1)
        reached = p.item() >= self.least
        key = (shortcut(reading, int(best)) if reached else "") or "sure"
        return Verdict(key, {"token": name(reading, best), "p": share(p.item())}, reached and key == "sure")


@dataclass(frozen=True)
class Torn(Goal):
    """Write a new text whose two most likely next words each have a probability of at least `least`."""

    least: float
    tool = "text"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        (p, q), (first, second) = (each.tolist() for each in after.topk(2))
        values = {
            "first": name(reading, first),
            "p": share(p),
            "second": name(reading, second),
            "q": share(q),
        }
        key = (shortcut(reading, first, second) if q >= self.least else "") or "torn"
        return Verdict(key, values | {"token": name(reading, first)}, q >= self.least and key == "torn")


@dataclass(frozen=True)
class Says(Goal):
    """Reach a probability of at least `least` for a word that occurs in the text at most once."""

    word: str
    least: float
    tool = "text"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        token = first_id(reading.tokenizer, self.word)
        p = after[token].item()
        values = {"token": name(reading, token), "p": share(p), "top": name(reading, after.argmax())}
        key = (shortcut(reading, token, most=1) if p >= self.least else "") or "says"
        return Verdict(key, values, p >= self.least and key == "says")


@dataclass(frozen=True)
class LowerLoss(Goal):
    """Bring the mean loss on the text below `below` nats per token by replacing at most `words` words."""

    below: float
    words: int
    tool = "text"
    shows_bars = False

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        before, now = reading.start.split(), reading.answer.text.split()
        if len(before) != len(now):
            return Verdict("loss.words", {"n": len(before), "now": len(now)})
        changed = sum(a != b for a, b in zip(before, now, strict=True))
        loss = sum(-p.log().item() for p in probabilities(reading)) / max(1, len(reading.ids) - 1)
        values = {"loss": f"{loss:.2f}", "changed": changed, "words": self.words}
        return Verdict("loss", values, loss < self.below and changed <= self.words)


@torch.inference_mode()
def probabilities(reading: Reading) -> Tensor:
    """Return the probability of each token after the first, given the tokens before it, (T - 1,)."""
    logits = reading.loaded.model.logits(reading.trace.final_norm[0, :-1]).float().cpu()
    return logits.softmax(-1).gather(1, torch.tensor(reading.ids[1:])[:, None])[:, 0]


# Concepts and features


@dataclass(frozen=True)
class TurnsUp(Goal):
    """Turn up concepts so that the continuation contains one of these words.

    The continuation must remain plausible: the unsteered model's loss on it must be below `most_loss` nats per token.
    """

    words: tuple[str, ...]
    most_loss: float
    tool = "concepts"

    def edits(self, reading: Reading) -> Edits:
        steering = reading.concepts.steering
        return Edits(steering=tuple(steering(*place, by) for place, by in reading.answer.turned if by))

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        written = goes_on(reading, self.edits(reading))
        text = reading.tokenizer.decode(written)
        loss = loss_of(reading.loaded, reading.ids, written)
        mentions = re.search(rf"\b({'|'.join(self.words)})", text, re.IGNORECASE) is not None
        key = "turned" if not mentions else "turned.torn" if loss >= self.most_loss else "turned.done"
        return Verdict(key, {"text": marked(text).strip()}, key == "turned.done")


@torch.inference_mode()
def goes_on(reading: Reading, edits: Edits) -> list[int]:
    """Continue the text greedily and return the new token ids."""
    model = reading.loaded.model
    written: list[int] = []
    cache, new = model.new_cache(), torch.tensor([list(reading.ids)], device=model.device)
    while len(written) < WRITTEN:
        written.append(int(model(new, cache=cache, edits=edits)[0, -1].argmax()))
        new = torch.tensor([written[-1:]], device=model.device)
    return written


@dataclass(frozen=True)
class Speaks(Goal):
    """Find a feature that is strongest right before somebody speaks.

    In at least a fraction `least` of the feature's snippets, one of the two tokens after the strongest token contains
    a quotation mark, and the strongest token itself does not.
    """

    least: float
    tool = "feature"
    shows_bars = False

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        concepts, place = reading.concepts, reading.answer.feature
        if place is None:
            return Verdict("speaks.none")
        snippets = concepts.snippets(*place, reading.tokenizer)
        n = sum(speaks_next(reading, each) for each in snippets)
        name = Later(lambda: quoted_concept(reading.loaded, place))
        values = {"name": name, "n": n, "total": len(snippets)}
        return Verdict("speaks", values, bool(snippets) and n >= self.least * len(snippets))


def speaks_next(reading: Reading, snippet: Snippet) -> bool:
    """Return whether the strongest token contains no quotation mark but one of the next two tokens does."""
    at = snippet.tint.index(max(snippet.tint))
    strongest, *following = (reading.tokenizer.decode([token]) for token in snippet.ids[at : at + 3])
    return '"' not in strongest and any('"' in text for text in following)


def strongest(reading: Reading, position: int) -> list[tuple[tuple[int, int], Tensor]]:
    """Return the strongest features at a position, with their activity across the text.

    Each activity has shape (T,) and is relative to the feature's natural strength.
    """
    concepts, found = reading.concepts, []
    for layer, dictionary in concepts.dictionaries.items():
        activity = trace_activity(concepts, reading.trace, layer)
        for feature in dictionary.strongest(activity[position], N_LISTED):
            found.append(((layer, feature), dictionary.relative(activity, feature)))
    return found


# Their texts are `challenge.<key>.title`, `.goal`, `.hint` and `.learned` in the catalogues.


@dataclass(frozen=True)
class Challenge:
    """A challenge. `key` also identifies it in links; `text` is its initial text."""

    key: str
    group: Literal["hunt", "goals"]
    text: str
    goal: Goal


# Random words, then the first three again. The model copies the fourth word only if both heads of the circuit are on.
COPIED = "The tree red dog cloud fire cold tree red dog"
ZOO = "Lily and Tom went to the zoo. Tom was scared of the lion, so Lily held his hand."
STRANGE = (
    "Once upon a time, there was a little girl named Griselda. She loved to play with her thermometer. One day, she "
    "went to the volcano with her mom."
)
CHALLENGES = (
    Challenge("copied", "hunt", COPIED, Copied()),
    Challenge("back", "hunt", COPIED, Looks("previous_token")),
    Challenge("find", "hunt", COPIED, Finds()),
    Challenge("hops", "hunt", COPIED, Meets()),
    Challenge("off", "hunt", COPIED, OffEach(most=0.25)),
    Challenge("put_back", "hunt", COPIED, PutBack(least=0.5)),
    Challenge("sure", "goals", "Once upon a time there was a", Sure(0.95)),
    Challenge("torn", "goals", "Once upon a time there was a little", Torn(0.25)),
    Challenge("rare", "goals", "Lily ran away from the", Says(" volcano", 0.5)),
    Challenge("story", "goals", STRANGE, LowerLoss(below=0.6, words=3)),
    Challenge("matters", "goals", "Lily lost her hat. It was cold outside. Tom gave her his", Matters()),
    Challenge("first", "goals", ZOO, Looks("first_token")),
    Challenge("lens", "goals", "Lily had a cat. One day, the cat ran away. Lily looked for her", Leads()),
    Challenge("dragon", "goals", "The brave knight saw a big, scary", Tops(" dragon", most_off=2)),
    Challenge("spare", "goals", "Once upon a time, there was a little girl named", Keeps(least_off=40)),
    Challenge("rain", "goals", "Ben and Mia wanted to play in the garden.", TurnsUp(("rain", "wet", "storm"), 1.4)),
    Challenge("speak", "goals", 'Tom saw a big dog in the park. He smiled and said, "Hello, dog!"', Speaks(0.75)),
    Challenge(
        "twin",
        "goals",
        "Lily had a cat. One day, the cat ran away. Lily looked for her",
        Twin("Lily had a dog. One day, the cat ran away. Lily looked for her", layers=(5, 6)),
    ),
)
BY_KEY = {challenge.key: challenge for challenge in CHALLENGES}
