"""Endpoints that look inside a model: attention, logit lens, attribution, ablation, steering, patching and loss."""

from __future__ import annotations

import math

from components.api import arguments, results
from components.concepts import concept_name, found_concept, usual_strength
from components.errors import PageError
from components.labels import token_text
from components.limits import MAX_ATTENTION_TOKENS, MAX_LENGTH, MAX_PATCHED_TOKENS
from components.next_tokens import at_one, best
from gpt import Edits, Generation, LoadedModel, SamplingParams, Trace, encode_prompt, logit_lens
from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.lens import LENS_POINTS, lens_top_tokens
from gpt.analysis.patching import patch_sweep
from gpt.analysis.predictions import kl_divergence
from gpt.analysis.tracing import trace_window
from gpt.documents.generation import together
from gpt.edits import check_patchable
from gpt.errors import check_integer, quoted
from gpt.tokenizer import hold_back, prompt_ids
from gpt.training.evaluation import score_text


class AnalysisEndpoints(arguments.Endpoints):
    """Endpoints that look inside a model.

    Most of them run one or two forward passes over the text. Patching, and the loss on a long text, take more.
    """

    def attention(
        self, prompt: str, layer: int, head: int, model: str = "", special: bool = False
    ) -> results.HeadWeights:
        """Get the attention weights of one head. Prompt, layer and head are required.

        Parameters:
            prompt: up to 512 tokens to read; if empty, the model sees only the start-of-text token
            layer: counted from 0
            head: counted from 0
        Returns:
            tokens, and weights[query][key]; each row sums to 1 and ends with the query itself, the last token it reads
        """
        loaded = self.find_model(model)
        config = loaded.model.config
        check_integer("layer", layer, 0, config.n_layer - 1)
        check_integer("head", head, 0, config.n_head - 1)
        document = arguments.read(loaded, prompt, special=special)
        if (n := len(document.ids)) > MAX_ATTENTION_TOKENS:
            raise PageError("error.attention_too_long", n=n, limit=MAX_ATTENTION_TOKENS)
        weights = document.attn_weights(layer, head)
        looks_ahead = bool(weights.triu(1).any())  # a program of the course without a causal mask
        rows = weights if looks_ahead else (row[: n + 1] for n, row in enumerate(weights))
        return {
            "tokens": [token_text(loaded.tokenizer, i) for i in document.ids],
            "weights": [row.tolist() for row in rows],
        }

    def logit_lens(
        self, prompt: str, position: int = -1, token_id: int | None = None, model: str = "", special: bool = False
    ) -> results.LogitLens:
        """Apply the logit lens: what the model would predict if it ended at each layer. Only the prompt is required.

        Parameters:
            prompt: text to read; if empty, the model sees only the start-of-text token
            position: the last token that the prediction sees, counted from 0; -1 is the last token of the prompt
            token_id: the token to follow, an id from next_token or tokenize; null is the predicted token
        Returns:
            chosen: the followed token; rows: two per layer, with its and the best token's probability at temperature 1
        """
        loaded, trace, only = self._trace(prompt, position, model, special)
        token_id = _chosen(loaded, trace, token_id, only)
        lens = logit_lens(loaded.model, trace, chosen=token_id, only=only)
        assert lens.chosen_probability is not None
        assert lens.chosen_rank is not None
        columns = (lens.token, lens.probability, lens.entropy, lens.chosen_probability, lens.chosen_rank)
        rows = zip(*(column[..., 0].flatten().tolist() for column in columns), strict=True)
        return {
            "chosen_id": token_id,
            "chosen": token_text(loaded.tokenizer, token_id),
            "rows": [
                {
                    "layer": number // len(LENS_POINTS),
                    "point": LENS_POINTS[number % len(LENS_POINTS)],
                    "token_id": token,
                    "token": token_text(loaded.tokenizer, token),
                    "probability": probability,
                    "entropy": entropy,
                    "chosen_probability": chosen_probability,
                    "chosen_rank": chosen_rank,
                }
                for number, (token, probability, entropy, chosen_probability, chosen_rank) in enumerate(rows)
            ],
        }

    def attribution(
        self,
        prompt: str,
        position: int = -1,
        token_id: int | None = None,
        against: int | None = None,
        model: str = "",
        special: bool = False,
    ) -> results.Contributions:
        """Split a logit into contributions of heads and layers (direct logit attribution). Only the prompt is required.

        Parameters:
            prompt: text to read; if empty, the model sees only the start-of-text token
            position: the last token that the prediction sees, counted from 0; -1 is the last token of the prompt
            token_id: the token whose logit is decomposed, an id from next_token or tokenize; null: the predicted token
            against: id of a second token whose logit is subtracted; null subtracts nothing
        Returns:
            the logit before any cap, and the parts that sum to it: heads[layer][head], mlp[layer], biases and so on
        """
        loaded, trace, only = self._trace(prompt, position, model, special)
        if against is not None:
            check_integer("against", against, 0, loaded.model.config.vocab_size - 1)
        token_id = _chosen(loaded, trace, token_id, only)
        parts = direct_logit_attribution(loaded.model, trace, 0, token_id, against=against)
        return {
            "token_id": token_id,
            "token": token_text(loaded.tokenizer, token_id),
            "logit": parts.logit,
            "token_embedding": parts.embedding,
            "position_embedding": parts.position,
            "heads": parts.heads.tolist(),
            "attn_bias": parts.attn_bias.tolist(),
            "mlp": parts.mlp.tolist(),
            "norm_bias": parts.norm_bias,
            "rounding": parts.rest,
        }

    def ablate(
        self,
        prompt: str,
        heads: list[list[int]] | None = None,
        attn_layers: list[int] | None = None,
        mlp_layers: list[int] | None = None,
        k: int = 20,
        model: str = "",
        special: bool = False,
    ) -> results.Ablation:
        """Compare the next tokens before and after switching off heads or layers. Prompt and one part are required.

        Parameters:
            prompt: text before the predicted token; if empty, the model sees only the start-of-text token
            heads: heads to switch off, each as [layer, head], counted from 0: [[6, 0], [4, 1]]
            attn_layers: layers whose attention is switched off, counted from 0
            mlp_layers: layers whose feed-forward network is switched off; list a layer in both to skip it entirely
            k: number of best tokens to take from each prediction
        Returns:
            tokens, best first, with the probability before and after at temperature 1; kl_bits: their divergence
        """
        loaded = self.find_model(model)
        check_integer("k", k, 1, loaded.tokenizer.n_vocab)
        for each in heads or []:
            if len(each) != 2:
                raise PageError("error.edits.head", value=quoted(each))
        edits = Edits(
            head_scale=dict.fromkeys([(layer, head) for layer, head in heads or []], 0.0),
            attn_scale=dict.fromkeys(attn_layers or [], 0.0),
            mlp_scale=dict.fromkeys(mlp_layers or [], 0.0),
        )
        if edits == Edits():
            raise PageError("error.nothing_ablated")
        edits.check(loaded.model.config)
        original, edited = _read_both(loaded, prompt, edits, special)
        log_p, log_q = (at_one(each.logits(each.n_read - 1)).log() for each in (original, edited))
        bits = kl_divergence(log_p, log_q).item()
        return {"tokens": _before_and_after(loaded, original, edited, k), "kl_bits": bits}

    def steer(
        self,
        prompt: str,
        concept: str,
        strength: float | None = None,
        max_new_tokens: int = 40,
        temperature: float = 0.7,
        seed: int = 1,
        k: int = 20,
        model: str = "",
        special: bool = False,
    ) -> results.Steered:
        """Turn a concept up and compare predictions and continuations. Prompt and concept are required.

        Parameters:
            prompt: text to continue; if empty, the model sees only the start-of-text token
            concept: a word such as "dog", which selects its first match, or layer and feature, such as "5.1553"
            strength: multiple of the natural strength, -10 to 10; null uses the page's default
            max_new_tokens: length of both continuations; 0 generates none
            temperature: temperature of both continuations; 0 always takes the most probable token
            seed: seed of both continuations
            k: number of best tokens to take from each prediction
        Returns:
            the concept; tokens, best first, with the probability before and after at temperature 1; both continuations
        """
        loaded = self.find_model(model)
        check_integer("k", k, 1, loaded.tokenizer.n_vocab)
        check_integer("max_new_tokens", max_new_tokens, 0, MAX_LENGTH)
        params = SamplingParams(temperature=temperature, seed=seed)
        layer, feature = found_concept(loaded, arguments.checked_text("concept", concept))
        strength = usual_strength(loaded, (layer, feature)) if strength is None else strength
        assert loaded.concepts is not None
        edits = Edits(steering=(loaded.concepts.steering(layer, feature, strength),))
        original, edited = _read_both(loaded, prompt, edits, special)
        tokens = _before_and_after(loaded, original, edited, k)
        without, steered = _both(original, edited, params, max_new_tokens) if max_new_tokens else ("", "")
        return {
            "layer": layer,
            "feature": feature,
            "name": concept_name(loaded, (layer, feature)),
            "strength": strength,
            "tokens": tokens,
            "without": without,
            "steered": steered,
        }

    def hidden_state(
        self,
        prompt: str,
        layer: int,
        position: int = -1,
        name: str = "resid_post",
        model: str = "",
        special: bool = False,
    ) -> results.HiddenState:
        """Get the residual stream, or what a layer adds to it, at one position. Prompt and layer are required.

        Parameters:
            prompt: text to read; if empty, the model sees only the start-of-text token
            layer: counted from 0
            position: position of the token, counted from 0; -1 is the last token of the prompt
            name: resid_pre, attn_out, resid_mid, mlp_out or resid_post
        Returns:
            token, and values: n_embd numbers
        """
        check_patchable(name)
        loaded = self.find_model(model)
        check_integer("layer", layer, 0, loaded.model.config.n_layer - 1)
        ids, _ = _typed(loaded, "prompt", prompt, special)
        place = arguments.checked_position(position, len(ids))
        trace = trace_window(loaded.model, ids, place, place + 1)
        return {
            "token": token_text(loaded.tokenizer, ids[place]),
            "values": trace[f"layers.{layer}.{name}"][0, 0].float().tolist(),
        }

    def patch(
        self,
        clean: str,
        corrupted: str,
        answer: int | None = None,
        other: int | None = None,
        name: str = "resid_pre",
        model: str = "",
        special: bool = False,
    ) -> results.PatchedLogits:
        """Find activations of one text that restore its prediction in another (activation patching). Both are required.

        Parameters:
            clean: the original text
            corrupted: a text with the same number of tokens but a different prediction
            answer: id of the token that follows the clean text; null is the predicted token
            other: id of the token that follows the corrupted text; null is the predicted token
            name: resid_pre, attn_out, resid_mid, mlp_out or resid_post
        Returns:
            recovered[layer][position], from 0 (corrupted) to 1 (clean); both logit differences, tokens and texts
        """
        loaded = self.find_model(model)
        typed = [_typed(loaded, *each, special) for each in (("clean", clean), ("corrupted", corrupted))]
        texts = [ids for ids, _ in typed]
        if (longest := max(map(len, texts))) > MAX_PATCHED_TOKENS:
            raise PageError("error.patch_too_long", n=longest, limit=MAX_PATCHED_TOKENS)
        chosen = [
            _chosen(loaded, trace_window(loaded.model, ids, len(ids) - 1, len(ids)), token, only)
            for (ids, only), token in zip(typed, (answer, other), strict=True)
        ]
        found = patch_sweep(loaded, texts[0], texts[1], chosen[0], chosen[1], name=name)
        written = [[token_text(loaded.tokenizer, i) for i in ids] for ids in (*texts, chosen)]
        return {
            "clean_tokens": written[0],
            "corrupted_tokens": written[1],
            "answer": written[2][0],
            "other": written[2][1],
            "clean": found.clean,
            "corrupted": found.corrupted,
            "recovered": found.recovered.tolist(),
        }

    def loss(self, text: str, model: str = "", special: bool = False) -> results.TextLoss:
        """Measure how well a model predicts a text: loss, perplexity, bits per byte. Only the text is required.

        Parameters:
            text: 2 to 4,096 tokens; a text longer than the context is read in windows that overlap by half
        Returns:
            loss in nats per token, perplexity, bits_per_byte, and tokens: all but the first, with their surprisal
        """
        loaded = self.find_model(model)
        ids = prompt_ids(loaded.tokenizer, arguments.checked_text("text", text), special=special)
        arguments.check_scored_length(len(ids))
        found = score_text(loaded, ids)
        return {
            "loss": found.score.loss,
            "perplexity": found.score.perplexity,
            "bits_per_byte": found.score.bits_per_byte,
            "tokens": [
                {
                    "token_id": token_id,
                    "token": token_text(loaded.tokenizer, token_id),
                    "probability": token.probability,
                    "log_probability": -token.surprisal * math.log(2),
                    "rank": token.rank,
                    "surprisal": token.surprisal,
                    "entropy": token.entropy,
                }
                for token_id, token in zip(found.ids[1:], found.losses, strict=True)
            ],
        }

    def _trace(self, prompt: str, position: int, model: str, special: bool) -> tuple[LoadedModel, Trace, list[int]]:
        """Return the model, the trace of one position in the prompt, and the tokens that can follow; [] for all."""
        loaded = self.find_model(model)
        ids, only = _typed(loaded, "prompt", prompt, special)
        place = arguments.checked_position(position, len(ids))
        trace = trace_window(loaded.model, ids, place, place + 1)
        return loaded, trace, only if place == len(ids) - 1 else []


def _typed(loaded: LoadedModel, name: str, text: str, special: bool) -> tuple[list[int], list[int]]:
    """Encode a typed text. Also return the tokens that can follow it; [] for all (see `gpt.tokenizer.hold_back`)."""
    rest, held = hold_back(loaded.tokenizer, arguments.checked_text(name, text))
    return encode_prompt(loaded, rest, special=special), loaded.tokenizer.ids_after(held)


def _read_both(loaded: LoadedModel, prompt: str, edits: Edits, special: bool) -> tuple[Generation, Generation]:
    """Let the model read the prompt without and with the edits."""
    original = arguments.read(loaded, prompt, special=special)
    edited = Generation(loaded, original.ids, edits=edits, held=original.held)
    edited.read()
    return original, edited


def _before_and_after(
    loaded: LoadedModel, original: Generation, edited: Generation, count: int
) -> list[results.AblatedToken]:
    """Return the `count` best next tokens in either document, with their probabilities in both."""
    before, after = (at_one(each.logits(each.n_read - 1)).numpy() for each in (original, edited))
    shown = dict.fromkeys([*best(after, before, count).tolist(), *best(before, after, count).tolist()])
    return [
        {"token_id": i, "token": token_text(loaded.tokenizer, i), "before": float(before[i]), "after": float(after[i])}
        for i in sorted(shown, key=lambda i: (-after[i], -before[i], i))
    ]


def _both(original: Generation, edited: Generation, params: SamplingParams, length: int) -> tuple[str, str]:
    """Continue both documents, in one place in the model's admission queue, and return the new texts."""
    texts = ["", ""]
    with original.loaded.engine.admission.enter() as place:
        for _ in place:
            pass
        for steps in together([(original, params), (edited, params)], length):
            texts = [text + (step.text if step else "") for text, step in zip(texts, steps, strict=True)]
            for _ in place.after_token():
                pass
    return texts[0], texts[1]


def _chosen(loaded: LoadedModel, trace: Trace, token_id: int | None, only: list[int]) -> int:
    """Return the checked id. Defaults to the most probable token in `only` after the traced position."""
    if token_id is None:
        last = len(trace.layers) - 1
        best, _ = lens_top_tokens(loaded.model, trace, last, LENS_POINTS[-1], 0, k=1, only=only)
        return int(best)
    check_integer("token_id", token_id, 0, loaded.model.config.vocab_size - 1)
    return token_id
