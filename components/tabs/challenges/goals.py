"""The challenges and their goals: what visitors can change, and when the goal is reached.

A goal is a function that judges an answer. It takes the `Reading` of the text, and the next-token probabilities under
the visitor's interventions, (vocab_size,).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from components.concepts import loss_of, quoted_concept
from components.labels import Later, marked, token_text
from components.next_tokens import at_one
from components.tabs.challenges.reading import Arc, Reading, Tool, Verdict
from gpt import Edits, logit_lens
from gpt.analysis.concepts import trace_activity
from gpt.analysis.heads import head_roles
from gpt.analysis.saliency import leave_one_out
from gpt.tokenizer import prompt_ids

GOOD = 0.9  # minimum score, as a fraction of the best head's score
WRITTEN = 24  # tokens to generate
N_LISTED = 4  # features per layer
SURE, TORN, SAID = 0.95, 0.25, 0.5  # probabilities to reach


def circuit_arcs(r: Reading) -> list[Arc]:
    last, source = len(r.ids) - 1, r.circuit.source
    return [
        Arc(last, source, r.weights(r.circuit.induction)[last, source].item()),
        Arc(source, source - 1, r.weights(r.circuit.previous_token)[source, source - 1].item()),
    ]


def copied(r: Reading, after: Tensor) -> Verdict:
    """Pick the token that the model writes next."""
    token = r.ids[r.answer.token or 0]
    return Verdict("copied", token == int(after.argmax()), token=r.name(token), p=after[token].item())


def meets(r: Reading, after: Tensor) -> Verdict:
    """Pick the token where the two arcs meet."""
    token = r.answer.token or 0
    second, first = (arc.weight for arc in circuit_arcs(r))
    return Verdict("meets", token == r.circuit.source, token=r.name(r.ids[token]), first=first, second=second)


def off_each(r: Reading, after: Tensor) -> Verdict:
    """Switch off each of the two heads alone: one must lower the copied token's probability to at most a quarter."""
    heads = r.circuit.previous_token, r.circuit.induction
    token = r.ids[r.circuit.source]
    whole = r.before[token].item()
    if not r.answer.tried.issuperset(heads):
        return Verdict("off", token=r.name(token), p=whole, now=after[token].item())
    without = [r.after(Edits(head_scale={head: 0.0}))[token].item() for head in heads]
    back, find = (f"{layer}.{head}" for layer, head in heads)
    left = {"without_back": without[0], "without_find": without[1]}
    return Verdict("off.each", 4 * min(without) <= whole, token=r.name(token), p=whole, back=back, find=find, **left)


def with_piece_back(r: Reading) -> Tensor:
    """Predict with the previous-token head off, and the attention output restored at the picked token and layer."""
    off, token, layer = {r.circuit.previous_token: 0.0}, r.answer.token, r.answer.layer
    patches = () if token is None or layer is None else (r.patch("attn_out", token, layer),)
    return r.after(Edits(head_scale=off, patches=patches))


def put_back(r: Reading, after: Tensor) -> Verdict:
    """The copied token's probability must rise to at least half of its original value."""
    token = r.ids[r.circuit.source]
    whole, now = r.before[token].item(), after[token].item()
    is_set = None not in (r.answer.token, r.answer.layer)
    values = {"token": r.name(token), "p": whole, "now": now, "head": "{}.{}".format(*r.circuit.previous_token)}
    return Verdict("back" if is_set else "place", is_set and 2 * now >= whole, **values)


def looks_at(role: Literal["previous_token", "first_token"], r: Reading, after: Tensor) -> Verdict:
    """Pick the head with the most attention to the previous or the first token."""
    return judge_head(role, getattr(head_roles(r.trace, r.ids), role), r)


def finds(r: Reading, after: Tensor) -> Verdict:
    """Pick the head with the most attention from the last token to the token after its earlier occurrence."""
    weights = torch.stack([layer.attn_weights[0, :, -1, r.circuit.source] for layer in r.trace.layers])
    return judge_head("finds", weights, r)


def judge_head(key: str, scores: Tensor, r: Reading) -> Verdict:
    """Judge the picked head: its score must be close to the highest in `scores`, (n_layer, n_head)."""
    scores, head = scores.float().cpu(), r.answer.head
    best = scores.max().item()
    if head is None:
        return Verdict("head", best=best)
    score = scores[head].item()
    return Verdict(key, score >= GOOD * best, layer=head[0], head=head[1], share=score, best=best)


def head_arcs(r: Reading) -> list[Arc]:
    """Return an arc from each token to the token that the picked head attends to most."""
    if r.answer.head is None:
        return []
    weights, targets = r.weights(r.answer.head).max(dim=-1)
    pairs = enumerate(zip(targets.tolist(), weights.tolist(), strict=True))
    return [Arc(start, end, weight) for start, (end, weight) in pairs if end != start]


def last_arc(r: Reading) -> list[Arc]:
    return [arc for arc in head_arcs(r) if arc.start == len(r.ids) - 1]


def with_heads_off(r: Reading) -> Tensor:
    return r.after(Edits(head_scale=dict.fromkeys(r.answer.off, 0.0)))


def tops(r: Reading, after: Tensor) -> Verdict:
    """Make a dragon the most likely next word by switching off at most two heads."""
    token, best, n = first_id(r, " dragon"), int(after.argmax()), len(r.answer.off)
    done = token == best and 0 < n <= 2
    return Verdict("tops", done, token=r.name(token), p=after[token].item(), top=r.name(best), n=n)


def keeps(r: Reading, after: Tensor) -> Verdict:
    """Switch off at least 40 heads without changing the most likely next token."""
    best, now, n = int(r.before.argmax()), int(after.argmax()), len(r.answer.off)
    done = best == now and n >= 40
    score = {"score": n} if done else {}
    return Verdict("keeps", done, **score, token=r.name(best), p=after[best].item(), top=r.name(now), n=n)


def without_token(r: Reading) -> Tensor:
    token = r.answer.token
    return r.before if token is None else r.predicted([*r.ids[:token], *r.ids[token + 1 :]])


def matters(r: Reading, after: Tensor) -> Verdict:
    """Pick the token whose removal lowers the prediction's probability the most."""
    token, best = r.answer.token or 0, int(r.before.argmax())
    falls = torch.cat(list(leave_one_out(r.loaded.model, r.ids, best, range(len(r.ids)))))
    shares = {"p": r.before[best].item(), "without": after[best].item()}
    return Verdict("matters", token == int(falls.argmax()), out=r.name(r.ids[token]), token=r.name(best), **shares)


@torch.inference_mode()
def after_layer(r: Reading) -> Tensor:
    """Predict from the residual stream after the chosen layer."""
    if (layer := r.answer.layer) is None:
        return r.before
    model = r.loaded.model
    return at_one(model.logits(model.ln_f(r.trace.layers[layer].resid_post[0, -1])))


def leads(r: Reading, after: Tensor) -> Verdict:
    """Pick the layer at which the logit lens settles on the final prediction."""
    best, layer = int(r.before.argmax()), r.answer.layer
    if layer is None:
        return Verdict("layer", token=r.name(best))
    lens = logit_lens(r.loaded.model, r.trace, positions=[len(r.ids) - 1])
    read = lens.token[:, 1, 0].tolist()  # the top token after each layer
    first = next(i for i in range(len(read)) if all(token == best for token in read[i:]))
    p, top = after.max(dim=-1)
    return Verdict("leads", layer == first, layer=layer, read=r.name(top), token=r.name(best), p=p.item())


DOG = "Lily had a dog. One day, the cat ran away. Lily looked for her"


def with_twin(r: Reading) -> Tensor:
    """Predict with the residual stream of `DOG` at the picked token and layer."""
    token, layer = r.answer.token, r.answer.layer
    if token is None or layer is None:
        return r.before
    return r.after(Edits(patches=(r.patch("resid_post", token, layer, DOG),)))


def twin(r: Reading, after: Tensor) -> Verdict:
    """Get the prediction for `DOG`, which differs from the text in one token."""
    other, top = int(r.predicted(prompt_ids(r.tokenizer, DOG)).argmax()), int(after.argmax())
    is_set = None not in (r.answer.token, r.answer.layer)
    values = {"token": r.name(other), "p": after[other].item(), "top": r.name(top)}
    return Verdict("twin" if is_set else "twin.place", is_set and other == top, **values)


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def first_id(r: Reading, word: str) -> int:
    """Return the id of the first token of a word that continues a text."""
    return r.tokenizer.encode_continuation(word)[0]


def shortcut(r: Reading, *token_ids: int, most: int = 0) -> str:
    """Return the key of the message that explains why a text is not a valid answer, or "" if it is valid.

    Merely deleting words from the initial text does not count. Each token must begin a word that occurs in the text at
    most `most` times; otherwise the model would simply repeat it.
    """
    first, text = iter(words_of(r.start)), words_of(r.answer.text)
    if r.answer.text != r.start and all(word in first for word in text):
        return "own.deleted"
    names = [token_text(r.tokenizer, token_id) for token_id in token_ids]
    if not all(re.match(r"\W+\w", name) for name in names):
        return "own.piece"
    return "own.repeated" if any(text.count(word) > most for name in names for word in words_of(name)) else ""


def sure(r: Reading, after: Tensor) -> Verdict:
    """Write a new text whose most likely next word has a probability of at least 95%."""
    best = int(after.argmax())
    p = after[best].item()
    refused = p >= SURE and shortcut(r, best)
    return Verdict(refused or "sure", p >= SURE and not refused, token=r.name(best), p=p)


def torn(r: Reading, after: Tensor) -> Verdict:
    """Write a new text whose two most likely next words each have a probability of at least 25%."""
    (p, q), (first, second) = (each.tolist() for each in after.topk(2))
    refused = q >= TORN and shortcut(r, first, second)
    values = {"first": r.name(first), "second": r.name(second), "token": r.name(first)}
    return Verdict(refused or "torn", q >= TORN and not refused, p=p, q=q, **values)


def says(r: Reading, after: Tensor) -> Verdict:
    """Reach a probability of at least 50% for a volcano, which occurs in the text at most once."""
    token = first_id(r, " volcano")
    p = after[token].item()
    refused = p >= SAID and shortcut(r, token, most=1)
    values = {"token": r.name(token), "p": p, "top": r.name(after.argmax())}
    return Verdict(refused or "says", p >= SAID and not refused, **values)


def lower_loss(r: Reading, after: Tensor) -> Verdict:
    """Bring the mean loss on the text below 0.6 nats per token by replacing at most three words."""
    before, now = r.start.split(), r.answer.text.split()
    if len(before) != len(now):
        return Verdict("loss.words", n=len(before), now=len(now))
    changed = sum(a != b for a, b in zip(before, now, strict=True))
    loss = sum(-p.log().item() for p in probabilities(r)) / max(1, len(r.ids) - 1)
    return Verdict("loss", loss < 0.6 and changed <= 3, loss=f"{loss:.2f}", changed=changed, words=3)


@torch.inference_mode()
def probabilities(r: Reading) -> Tensor:
    """Return the probability of each token after the first, given the tokens before it, (T - 1,)."""
    logits = r.loaded.model.logits(r.trace.final_norm[0, :-1]).float().cpu()
    return logits.softmax(-1).gather(1, torch.tensor(r.ids[1:])[:, None])[:, 0]


def turned(r: Reading) -> Edits:
    return Edits(steering=tuple(r.concepts.steering(*place, by) for place, by in r.answer.turned if by))


def turns_up(r: Reading, after: Tensor) -> Verdict:
    """Turn up concepts so that it rains in the continuation.

    The continuation must remain plausible: the unsteered model's loss on it must be below 1.4 nats per token.
    """
    written = goes_on(r, turned(r))
    text = r.tokenizer.decode(written)
    mentions = re.search(r"\b(rain|wet|storm)", text, re.IGNORECASE) is not None
    is_plausible = loss_of(r.loaded, r.ids, written) < 1.4
    key = "turned" if not mentions else "turned.done" if is_plausible else "turned.torn"
    return Verdict(key, mentions and is_plausible, text=marked(text).strip())


@torch.inference_mode()
def goes_on(r: Reading, edits: Edits) -> list[int]:
    model = r.loaded.model
    written: list[int] = []
    cache, new = model.new_cache(), torch.tensor([list(r.ids)], device=model.device)
    while len(written) < WRITTEN:
        written.append(int(model(new, cache=cache, edits=edits)[0, -1].argmax()))
        new = torch.tensor([written[-1:]], device=model.device)
    return written


def speaks(r: Reading, after: Tensor) -> Verdict:
    """Find a feature that is strongest right before somebody speaks.

    In at least three quarters of the feature's snippets, one of the two tokens after the strongest token contains
    a quotation mark, and the strongest token itself does not.
    """
    place, n = r.answer.feature, 0
    if place is None:
        return Verdict("speaks.none")
    snippets = r.concepts.snippets(*place, r.tokenizer)
    for snippet in snippets:
        at = snippet.tint.index(max(snippet.tint))
        strongest, *following = (r.tokenizer.decode([token]) for token in snippet.ids[at : at + 3])
        n += '"' not in strongest and any('"' in text for text in following)
    name = Later(quoted_concept, r.loaded, place)
    return Verdict("speaks", bool(snippets) and n >= 0.75 * len(snippets), name=name, n=n, total=len(snippets))


def strongest(r: Reading, position: int) -> list[tuple[tuple[int, int], Tensor]]:
    """Return the strongest features at a position, with their activity relative to their natural strength, (T,)."""
    found = []
    for layer, dictionary in r.concepts.dictionaries.items():
        activity = trace_activity(r.concepts, r.trace, layer)
        for feature in dictionary.strongest(activity[position], N_LISTED):
            found.append(((layer, feature), dictionary.relative(activity, feature)))
    return found


@dataclass(frozen=True)
class Challenge:
    """A challenge. Its texts are `challenge.<key>.title`, `.goal`, `.hint` and `.learned` in the catalogues.

    Attributes:
        key: Also identifies it in links.
        after: Returns the next-token probabilities under the visitor's interventions, (vocab_size,).
        layers: The layers to choose from; () for all.
    """

    key: str
    group: Literal["hunt", "goals"]
    text: str
    tool: Tool
    goal: Callable[[Reading, Tensor], Verdict]
    after: Callable[[Reading], Tensor] = with_heads_off
    arcs: Callable[[Reading], list[Arc]] | None = None
    bars: bool = True
    layers: tuple[int, ...] = ()

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        if self.tool == "token" and reading.answer.token is None:
            return Verdict("token")
        return self.goal(reading, after)


# Random words, then the first three again. The model copies the fourth word only if both heads of the circuit are on.
COPIED = "The tree red dog cloud fire cold tree red dog"
ZOO = "Lily and Tom went to the zoo. Tom was scared of the lion, so Lily held his hand."
STRANGE = (
    "Once upon a time, there was a little girl named Griselda. She loved to play with her thermometer. One day, she "
    "went to the volcano with her mom."
)
CAT = "Lily had a cat. One day, the cat ran away. Lily looked for her"
PARK = 'Tom saw a big dog in the park. He smiled and said, "Hello, dog!"'
CHALLENGES = (
    Challenge("copied", "hunt", COPIED, "token", copied, bars=False),
    Challenge("back", "hunt", COPIED, "head", partial(looks_at, "previous_token"), arcs=head_arcs, bars=False),
    Challenge("find", "hunt", COPIED, "head", finds, arcs=last_arc, bars=False),
    Challenge("hops", "hunt", COPIED, "token", meets, arcs=circuit_arcs, bars=False),
    Challenge("off", "hunt", COPIED, "switches", off_each, arcs=circuit_arcs),
    Challenge("put_back", "hunt", COPIED, "place", put_back, with_piece_back, arcs=circuit_arcs),
    Challenge("sure", "goals", "Once upon a time there was a", "text", sure),
    Challenge("torn", "goals", "Once upon a time there was a little", "text", torn),
    Challenge("rare", "goals", "Lily ran away from the", "text", says),
    Challenge("story", "goals", STRANGE, "text", lower_loss, bars=False),
    Challenge(
        "matters", "goals", "Lily lost her hat. It was cold outside. Tom gave her his", "token", matters, without_token
    ),
    Challenge("first", "goals", ZOO, "head", partial(looks_at, "first_token"), arcs=head_arcs, bars=False),
    Challenge("lens", "goals", CAT, "layer", leads, after_layer),
    Challenge("dragon", "goals", "The brave knight saw a big, scary", "switches", tops),
    Challenge("spare", "goals", "Once upon a time, there was a little girl named", "switches", keeps),
    Challenge(
        "rain", "goals", "Ben and Mia wanted to play in the garden.", "concepts", turns_up, lambda r: r.after(turned(r))
    ),
    Challenge("speak", "goals", PARK, "feature", speaks, bars=False),
    Challenge("twin", "goals", CAT, "place", twin, with_twin, layers=(5, 6)),
)
BY_KEY = {challenge.key: challenge for challenge in CHALLENGES}
